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
    return _boxes(trees, columns, 0, len(trees.leaf))


def tree_boxes(trees: Trees, columns: Columns, t: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Box of each leaf of tree t alone, as `leaf_boxes`: those of a whole forest may take much memory."""
    stop = trees.root[t + 1] if t + 1 < len(trees.root) else len(trees.leaf)
    return _boxes(trees, columns, int(trees.root[t]), int(stop))


def _boxes(trees: Trees, columns: Columns, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes of the leaves of the trees whose nodes these are."""
    n_leaves = int(np.count_nonzero(trees.leaf[start:stop] >= 0))
    lo = np.full((n_leaves, len(columns.step)), -np.inf)
    hi = np.full((n_leaves, len(columns.step)), np.inf)
    allowed = np.ones((n_leaves, int(columns.level_start[-1])), dtype=np.uint8)
    fill_boxes(trees, columns, start, stop, np.empty(stop - start, dtype=np.int32), lo, hi, allowed)
    return lo, hi, allowed.view(np.bool_)
