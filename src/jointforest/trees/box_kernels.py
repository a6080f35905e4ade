"""Kernel: the box of each leaf."""

from __future__ import annotations

import numpy as np

from ..ground.compile import entry
from .level_bits_kernels import has_level


@entry
def fill_boxes(trees, columns, first_leaf, lo, hi, allowed):
    """Cut the boxes of leaves, which are the whole space, by every split above them.

    The box of an inner node stands where that of its leftmost leaf will stand: a split copies it to its right child.

    Parameters
    ----------
    trees : Trees
    columns : Columns
    first_leaf : int32 array (N,)
        Scratch: the leftmost leaf below each node.
    lo, hi : float64 arrays (L, p), allowed : uint8 array (L, S)
    """
    n_nodes = trees.left.shape[0]
    for node in range(n_nodes - 1, -1, -1):
        first_leaf[node] = trees.leaf[node] if trees.left[node] < 0 else first_leaf[trees.left[node]]
    for node in range(n_nodes):
        if trees.left[node] < 0:
            continue
        a, b = first_leaf[node], first_leaf[trees.right[node]]
        for s in range(lo.shape[1]):
            lo[b, s] = lo[a, s]
            hi[b, s] = hi[a, s]
        for level in range(allowed.shape[1]):
            allowed[b, level] = allowed[a, level]
        slot = np.int64(columns.slot[trees.feature[node]])
        at = np.int64(trees.levels_at[node])
        if at < 0:
            hi[a, slot] = min(hi[a, slot], trees.threshold[node])
            lo[b, slot] = max(lo[b, slot], trees.threshold[node])
            continue
        first = np.int64(columns.level_start[slot])
        for k in range(columns.level_start[slot + 1] - first):
            side = b if has_level(trees.left_levels, at, k) else a  # the side that lacks the level
            allowed[side, first + k] = 0
