"""The node table: the structure of all trees of a forest, one array per field."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..ground.records import record


@record
class Trees(NamedTuple):
    """Structure of T trees with N nodes and L leaves in all; the nodes of each tree are side by side, its root first.

    A row goes left at a numeric node if ``x <= threshold`` (boxes are half-open, ``(lo, hi]``), at a categorical
    node if the bit of its level is set in the node's words of ``left_levels``.

    Attributes
    ----------
    feature : int32 array (N,)
        Column of the split; -1 at leaves.
    threshold : float64 array (N,)
        Threshold of numeric splits, never NaN; 0 elsewhere.
    levels_at : int32 array (N,)
        First word of the node's set in ``left_levels``; -1 unless the split is categorical. The set has
        ``(n_levels + 63) // 64`` words; level k is bit ``k % 64`` of word ``k // 64``.
    left_levels : uint64 array (W,)
        Sets of levels that go left.
    left, right : int32 array (N,)
        Children (indices into the node table, always greater than the parent's); -1 at leaves.
    leaf : int32 array (N,)
        Leaf number of leaves, each of 0..L-1 once; -1 at inner nodes. Leaves of one tree are contiguous.
    weight : float64 array (N,)
        Share of the tree's rows that reach the node: 1 at roots, the sum of its children's at inner nodes.
    root : int32 array (T,)
        Root of each tree.
    """

    feature: np.ndarray
    threshold: np.ndarray
    levels_at: np.ndarray
    left_levels: np.ndarray
    left: np.ndarray
    right: np.ndarray
    leaf: np.ndarray
    weight: np.ndarray
    root: np.ndarray


def add_stump(trees: Trees) -> Trees:
    """These trees and one more: a single node, the last leaf (the background)."""

    def append(array: np.ndarray, value: float) -> np.ndarray:
        return np.append(array, np.array([value], dtype=array.dtype))

    return Trees(
        feature=append(trees.feature, -1),
        threshold=append(trees.threshold, 0.0),
        levels_at=append(trees.levels_at, -1),
        left_levels=trees.left_levels,
        left=append(trees.left, -1),
        right=append(trees.right, -1),
        leaf=append(trees.leaf, trees.leaf.max() + 1),
        weight=append(trees.weight, 1.0),
        root=append(trees.root, len(trees.feature)),
    )
