"""Settings of all tests: examples take as long as a loaded machine needs, and repeat in CI."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "roofline",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("roofline")
