"""Settings of the whole test suite: the same examples on every run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

# Two processes that compile different signatures of one kernel can overwrite each other's cache entries, so under
# pytest-xdist each worker has a cache of its own. Must be set before numba is imported.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"jointforest-numba-{os.getuid()}-{worker}")


settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,  # the first call of a kernel compiles it
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")
