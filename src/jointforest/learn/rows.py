"""Some rows of a table: those of a bootstrap."""

from __future__ import annotations

import numpy as np


def draw_rows(n: int, n_draws: int, bootstrap: bool, seed: int, number: int) -> np.ndarray:
    """Weight (float64, n) of each row in tree ``number``: how often it was drawn; 0 is out of bag."""
    rng = np.random.default_rng([seed, number])
    if bootstrap:
        return np.bincount(rng.integers(0, n, n_draws), minlength=n).astype(np.float64)
    weight = np.zeros(n)
    weight[rng.permutation(n)[:n_draws]] = 1.0
    return weight
