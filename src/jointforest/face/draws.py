"""Draws of rows given evidence, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..queries.posterior.weighed import WeighedEvidence
from ..queries.rows.sampling import sample
from ..table import values as answers


def draw(
    weighed: WeighedEvidence, n: int, random_state: Any, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """n rows for each row of evidence, contiguous, float64 (len(weighed) * n, d); n is checked, and the evidence."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ValueError(f"n must be a non-negative integer, got {n!r}")
    weighed.check(n_jobs)
    return sample(weighed.model, weighed.evidence, int(n), answers.seed_of(random_state), missing, n_jobs)
