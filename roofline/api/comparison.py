"""What ``compare`` gives: one row an accelerator, sorted, with both rankings and words.

Units    base units; USD per TFLOP-hour, per TB/s-hour and per million tokens as the names say.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from roofline.planning.candidate import Excluded
from roofline.timing.interval import Interval

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, kw_only=True)
class Row:
    """One accelerator for one workload; rates and times are of one replica.

    Args:
        accelerator, name: spec id and name.
        plan: how many of them a replica takes, and how it is divided.
        accelerators: of the replica.
        fits: whether the workload fits its memory.
        tokens_per_s: output tokens (serving) or trained tokens (training).
        bound_tokens_per_s: most tokens that physics allows.
        ttft_s, tpot_s: estimates; None in training.
        limited_by: what limits the longer part of the work, by the bound.
        compute: compute type of the blocks' matmuls.
        peak_flop_per_s: its dense datasheet peak, one accelerator.
        bytes_per_s: datasheet bandwidth of one accelerator.
        effective_flop_per_s: model FLOP over estimated time, one accelerator; prefill in serving.
        decode_flop_per_s: the same in decode; None in training.
        effective_bytes_per_s: bytes over estimated time of decode, one accelerator.
        reached_flop_per_s: measured matmul rate; None without a record.
        usd_per_hour: of the replica; None without a price.
        price_basis: the offer in words.
        usd_per_nominal_tflop_hour, usd_per_effective_tflop_hour: of the two rates above.
        usd_per_decode_tflop_hour, usd_per_effective_tb_per_s_hour: of decode.
        usd_per_million_tokens: of the tokens counted in ``tokens_per_s``, at full load.
        usd_per_million_input_tokens, usd_per_million_output_tokens: divided by time.
        gpu_hours_per_million_tokens: accelerator-hours of the same tokens.
        power_w: of the replica at TDP; ``tokens_per_joule`` with it.
        nominal_rank, effective_rank: by nominal and effective cost; None without a price.
        ratio_to_first: tokens per second and USD over the first row's, per accelerator without
            prices.
    """

    accelerator: str
    name: str
    plan: str
    accelerators: int
    fits: bool
    tokens_per_s: Interval
    bound_tokens_per_s: float
    ttft_s: Interval | None = None
    tpot_s: Interval | None = None
    limited_by: str
    compute: str
    peak_flop_per_s: float
    bytes_per_s: float
    effective_flop_per_s: float
    decode_flop_per_s: float | None = None
    effective_bytes_per_s: float | None = None
    reached_flop_per_s: float | None = None
    usd_per_hour: float | None = None
    price_basis: str = ""
    usd_per_nominal_tflop_hour: float | None = None
    usd_per_effective_tflop_hour: float | None = None
    usd_per_decode_tflop_hour: float | None = None
    usd_per_effective_tb_per_s_hour: float | None = None
    usd_per_million_tokens: float | None = None
    usd_per_million_input_tokens: float | None = None
    usd_per_million_output_tokens: float | None = None
    gpu_hours_per_million_tokens: float
    power_w: float | None
    tokens_per_joule: float | None
    nominal_rank: int | None = None
    effective_rank: int | None = None
    ratio_to_first: float | None = None

    @property
    def achieved_share(self) -> float:
        """Effective over nominal FLOP/s."""
        return self.effective_flop_per_s / self.peak_flop_per_s

    def to_dict(self) -> dict[str, Any]:
        """All fields in base units; intervals as low, mid, high."""
        return asdict(self) | {"achieved_share": self.achieved_share}


@dataclass(frozen=True)
class Comparison:
    """Accelerators compared for one workload and scenario.

    Args:
        model, scenario: what was compared for what.
        rows: sorted as asked; what does not fit, or has no value to sort by, last.
        excluded: what could not be compared, and why.
        recommendation, assumptions, warnings: in words.
    """

    model: str
    scenario: str
    sort: str
    rows: tuple[Row, ...]
    excluded: tuple[Excluded, ...]
    recommendation: tuple[str, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether any accelerator does."""
        return any(row.fits for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Everything in base units, with units in the keys."""
        return {
            "model": self.model,
            "scenario": self.scenario,
            "sort": self.sort,
            "rows": [row.to_dict() for row in self.rows],
            "excluded": [vars(one) for one in self.excluded],
            "recommendation": list(self.recommendation),
        }

    def to_frame(self) -> "pandas.DataFrame":
        """Rows as a table; an interval becomes three columns."""
        import pandas

        return pandas.DataFrame(self.flat_rows())

    def flat_rows(self) -> list[dict[str, Any]]:
        """Rows as plain values in base units; an interval becomes three of them."""
        flat = []
        for row in self.rows:
            cells: dict[str, Any] = {}
            for key, value in row.to_dict().items():
                if isinstance(value, dict):
                    cells |= {f"{key}_{end}": number for end, number in value.items()}
                else:
                    cells[key] = value
            flat.append(cells)
        return flat
