"""Draws of rows given evidence, as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ground.checks import check_number
from ..ground.random_state import seed_of
from ..queries.posterior.weighed import WeighedEvidence
from ..queries.rows.sampling import sample, sample_and_weigh, sample_blocks

MOST_CELLS = 2_000_000_000
"""Most cells of a draw."""


def draw(
    weighed: WeighedEvidence, n: int, random_state: Any, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """n rows for each row of evidence, contiguous, float64 (len(weighed) * n, d); n is checked, and the evidence."""
    check_draws(weighed, n)
    if len(weighed) == 1:
        weighed.check(n_jobs)
        return sample(weighed.model, weighed.evidence, int(n), seed_of(random_state), missing, n_jobs)
    drawn, background = sample_and_weigh(
        weighed.model, weighed.evidence, int(n), seed_of(random_state), missing, n_jobs
    )
    weighed.knows(background)
    weighed.check(n_jobs)
    return drawn


def check_draws(weighed: WeighedEvidence, n: Any) -> None:
    """Raise ValueError if n rows for each row of evidence cannot be drawn at once."""
    check_number("n", n, 0, whole=True, text="a non-negative integer")
    d, rows = len(weighed.model.schema.names), max(len(weighed), 1)
    if n * rows * d > MOST_CELLS:
        each = f" and {rows:,} rows of evidence" if rows > 1 else ""
        raise ValueError(
            f"n={n:,}: at most {MOST_CELLS:,} cells (16 GB) are drawn at once, of {d} columns{each} "
            f"n={MOST_CELLS // (rows * d):,}; draw in batches: given(...).sample_batches(n)"
        )


def draw_batches(
    weighed: WeighedEvidence, n: int, random_state: Any, missing: bool = False, n_jobs: int | None = -1
) -> Iterator[np.ndarray]:
    """The rows of `draw` for one row of evidence, some at a time; n is checked, and the evidence."""
    check_number("n", n, 0, whole=True, text="a non-negative integer")
    if len(weighed) != 1:
        raise ValueError(f"batches of draws are for one row of evidence, got {len(weighed)}; ask row by row")
    weighed.check(n_jobs)
    return sample_blocks(weighed.model, weighed.evidence, int(n), seed_of(random_state), missing, n_jobs)
