"""Whether a node table is a forest: each node reached once, from one root, and every split within its column."""

from __future__ import annotations

import numpy as np

from ..table.columns import Columns
from .nodes import Trees

TREE_FIELDS = {
    "feature": (np.int32, "N"),
    "threshold": (np.float64, "N"),
    "levels_at": (np.int32, "N"),
    "left_levels": (np.uint64, "W"),
    "left": (np.int32, "N"),
    "right": (np.int32, "N"),
    "leaf": (np.int32, "N"),
    "weight": (np.float64, "N"),
    "root": (np.int32, "T"),
}
"""Type and length of the fields of `Trees`."""

TOLERANCE = 1e-6
"""By how much the weights of two children may differ from their parent's."""


def need(holds: bool | np.bool_, message: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not holds:
        raise ValueError(message)


def need_all(name: str, holds: np.ndarray, values: np.ndarray, expected: str) -> None:
    """Raise ValueError that names the first entry for which the condition does not hold."""
    if not holds.all():
        at = tuple(int(i) for i in np.argwhere(~holds)[0])
        where = ", ".join(map(str, at))
        raise ValueError(f"{name}[{where}] is {values[at]}, expected {expected}")


def check_array(name: str, array: np.ndarray, dtype: type, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless an array has this type and this shape, and is contiguous."""
    need(isinstance(array, np.ndarray), f"{name}: expected an array, got {type(array).__name__}")
    need(array.dtype == np.dtype(dtype), f"{name}: expected {np.dtype(dtype)}, got {array.dtype}")
    need(array.shape == shape, f"{name}: expected shape {shape}, got {array.shape}")
    need(array.flags.c_contiguous, f"{name}: expected a C-contiguous array")


def check_trees(columns: Columns, trees: Trees, has_background: bool) -> None:
    """Check every array of the node table, under columns that were checked before.

    Raises
    ------
    ValueError
        Naming the first field, and the entry of it, that is not as `Trees` promises.
    """
    sizes = {"N": np.size(trees.feature), "T": np.size(trees.root), "W": np.size(trees.left_levels)}
    for name, (dtype, size) in TREE_FIELDS.items():
        check_array(f"trees.{name}", getattr(trees, name), dtype, (sizes[size],))
    need(0 < sizes["N"] < 2**31 and sizes["T"] > 0, "trees: expected at least one node and one root")

    feature = trees.feature
    need_all("trees.feature", (feature >= -1) & (feature < len(columns.slot)), feature, "a column's number or -1")
    is_leaf = feature == -1
    _check_links(trees, is_leaf)
    _check_leaf_numbers(trees, is_leaf)
    _check_splits(columns, trees, is_leaf)
    _check_weights(trees, is_leaf)
    need(
        not has_background or is_leaf[trees.root[-1]],
        "trees.root: the background (the last tree) must be a single leaf",
    )


def _check_links(trees: Trees, is_leaf: np.ndarray) -> None:
    n = len(is_leaf)
    number = np.arange(n)
    for name, child in (("left", trees.left), ("right", trees.right)):
        below = (child > number) & (child < n)
        need_all(f"trees.{name}", np.where(is_leaf, child == -1, below), child, "a later node, or -1 at a leaf")
    need_all("trees.root", (trees.root >= 0) & (trees.root < n), trees.root, "a node's number")
    # children come after their parent, so there is no cycle; reached once each, the nodes form disjoint trees
    inner = ~is_leaf
    reached = np.bincount(np.concatenate([trees.left[inner], trees.right[inner], trees.root]), minlength=n)
    if not (reached == 1).all():
        node = int(np.argmax(reached != 1))
        raise ValueError(f"trees: node {node} is reached {reached[node]} times, expected once")
    rises = np.diff(trees.root, prepend=-1) > 0
    need_all("trees.root", rises, trees.root, "the number of a node behind the tree before")
    end = np.append(trees.root[1:], n)[np.searchsorted(trees.root, number, side="right") - 1]
    for name, child in (("left", trees.left), ("right", trees.right)):
        need_all(f"trees.{name}", child < end, child, "a node of the same tree, whose nodes are side by side")


def _check_leaf_numbers(trees: Trees, is_leaf: np.ndarray) -> None:
    n_leaves = int(is_leaf.sum())
    within = (trees.leaf >= 0) & (trees.leaf < n_leaves)
    need_all("trees.leaf", np.where(is_leaf, within, trees.leaf == -1), trees.leaf, "a leaf's number, or -1")
    need(
        (np.bincount(trees.leaf[is_leaf], minlength=n_leaves) == 1).all(), "trees.leaf: a leaf's number is there twice"
    )


def _check_splits(columns: Columns, trees: Trees, is_leaf: np.ndarray) -> None:
    feature = np.where(is_leaf, 0, trees.feature)
    by_levels = ~is_leaf & (columns.is_categorical[feature] == 1)
    threshold = trees.threshold
    need_all("trees.threshold", ~np.isnan(threshold), threshold, "a number")
    need_all("trees.threshold", ~(is_leaf | by_levels) | (threshold == 0), threshold, "0 where no number is split")
    first = trees.levels_at
    need_all("trees.levels_at", np.where(by_levels, first >= 0, first == -1), first, "-1 unless levels are split")

    node = np.flatnonzero(by_levels)
    if not len(node):
        return
    n_levels = np.diff(columns.level_start)[columns.slot[feature[node]]].astype(np.int64)
    last = first[node].astype(np.int64) + (n_levels + 63) // 64 - 1
    fits = last < len(trees.left_levels)
    need_all("trees.levels_at of split", fits, first[node], "a set of levels within trees.left_levels")
    last_bit = ((n_levels - 1) % 64).astype(np.uint64)
    # two shifts, because one by 64 bits is undefined
    beyond = (trees.left_levels[last] >> last_bit) >> np.uint64(1)
    need_all("trees.left_levels of split", beyond == 0, beyond, "no bits beyond the column's levels")


def _check_weights(trees: Trees, is_leaf: np.ndarray) -> None:
    weight = trees.weight
    need_all("trees.weight", (weight >= 0) & (weight <= 1 + TOLERANCE), weight, "a share between 0 and 1")
    at_roots = weight[trees.root]
    need_all("trees.weight of root", np.abs(at_roots - 1) <= TOLERANCE, at_roots, "1")
    node = np.flatnonzero(~is_leaf)
    parts = weight[trees.left[node]] + weight[trees.right[node]]
    need_all("trees.weight of split", np.abs(weight[node] - parts) <= TOLERANCE, parts, "the sum of its children's")
