"""Why a memory row misses by more than 5 %, judges nothing, or cannot be judged.

Each reason is about that row's log; a row that misses and is not here is a finding.
"""

FITTED: dict[tuple[str, str], str] = {}
LARGER_ERRORS: dict[tuple[str, str], str] = {}
NOT_JUDGED: dict[str, str] = {}
