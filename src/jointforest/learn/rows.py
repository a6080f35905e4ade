"""Some rows of a table: those of a bootstrap, and those of a trial."""

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


def trial_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of n to learn from and rows to judge by on trial, at most 20,000 and 2,000: int arrays, drawn at random.

    Examples
    --------
    >>> kept, held = trial_rows(100, 0)
    >>> len(kept), len(held), len(set(kept) & set(held))
    (75, 25, 0)
    """
    order = np.random.default_rng([seed, 6]).permutation(n)[:22_000]
    n_held = min(len(order) // 4, 2_000)
    return np.sort(order[n_held:]), np.sort(order[:n_held])
