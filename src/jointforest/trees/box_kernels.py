"""Kernel: the box of each leaf."""

from __future__ import annotations

import numpy as np

from ..ground.compile import entry
from .level_bits_kernels import has_level


@entry
def fill_boxes(trees, columns, start, stop, first_leaf, lo, hi, allowed):
    """Cut the boxes of leaves, which are the whole space, by every split above them, in whole trees.

    The box of an inner node stands where that of its leftmost leaf will stand: a split copies it to its right child.

    Parameters
    ----------
    trees : Trees
    columns : Columns
    start, stop : int
        The trees' nodes: ``start..stop - 1``.
    first_leaf : int32 array (stop - start,)
        Scratch: the leftmost leaf below each node.
    lo, hi : float64 arrays (l, p), allowed : uint8 array (l, S)
        Of the trees' leaves, which begin with the first one's.
    """
    least = np.int64(trees.leaf.shape[0])
    for node in range(start, stop):
        if trees.left[node] < 0:
            least = min(least, np.int64(trees.leaf[node]))
    for node in range(stop - 1, start - 1, -1):
        is_leaf = trees.left[node] < 0
        first_leaf[node - start] = trees.leaf[node] - least if is_leaf else first_leaf[trees.left[node] - start]
    for node in range(start, stop):
        if trees.left[node] < 0:
            continue
        a, b = first_leaf[node - start], first_leaf[trees.right[node] - start]
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
