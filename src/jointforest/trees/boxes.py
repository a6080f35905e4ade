"""The box of each leaf, from the splits above it."""

from __future__ import annotations

import numpy as np

from ..table.columns import Columns
from .box_kernels import fill_boxes
from .nodes import Trees


def leaf_boxes(trees: Trees, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Box of each of the L leaves.

    Returns
    -------
    lo, hi : float64 arrays (L, p)
        Half-open sides ``(lo, hi]`` of the numeric slots; infinite where no split bounds them.
    allowed : bool array (L, S)
        Levels that the box admits.
    """
    n_leaves = int(trees.leaf.max()) + 1
    lo = np.full((n_leaves, len(columns.step)), -np.inf)
    hi = np.full((n_leaves, len(columns.step)), np.inf)
    allowed = np.ones((n_leaves, int(columns.level_start[-1])), dtype=np.uint8)
    fill_boxes(trees, columns, np.empty(len(trees.leaf), dtype=np.int32), lo, hi, allowed)
    return lo, hi, allowed.view(np.bool_)
