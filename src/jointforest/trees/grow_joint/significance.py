"""Could a split be noise? docs/joint_trees.md derives the bound."""

from __future__ import annotations

import numpy as np

from .joint_rows import JointRows
from .significance_kernels import log_chance_of_tables


def log_chance(
    data: JointRows, rows: np.ndarray, j: int, below_rank: int, goes_left: np.ndarray, targets: np.ndarray
) -> float:
    """Logarithm of a bound on the chance that a fixed split by column j, independent of the targets, separates any of
    them as far; rows count 1 each, so that a bootstrap's repeats are no evidence.

    Returns
    -------
    float
        At most 0; with the correction for the number of targets, not for the number of splits.
    """
    count = np.zeros((len(data.last_rank), 2))
    return float(log_chance_of_tables(data, rows, j, below_rank, goes_left, targets, count))
