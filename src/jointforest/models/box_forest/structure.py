"""The node table: the structure of all trees of a forest, one array per field."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...data.schema import Columns, Schema
from ...runtime.records import record
from .leaves.table import Leaves
from .structure_kernels import add_rows, fill_boxes, number_nodes, replace_small


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


# ---- The box of each leaf, from the splits above it.


def leaf_boxes(trees: Trees, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes of the L leaves: half-open sides ``(lo, hi]`` of numeric slots, each (L, p), and admitted levels (L, S)."""
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


# ---- Removing leaves with too few rows, and counting rows below nodes.


def pruned(
    left: np.ndarray, right: np.ndarray, rows_at: np.ndarray, min_rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Children (M,) of the tree without leaves that fewer than ``min_rows`` rows reach, and which old node each one is.

    The sibling of such a leaf takes the place of their parent. Where both children are too small, so is their parent.
    """
    new_left, new_right = left.astype(np.int64), right.astype(np.int64)
    n_nodes = len(left)
    stands_for = np.arange(n_nodes)
    replace_small(new_left, new_right, rows_at.astype(np.int64), min_rows, stands_for)
    order, number, stack = (np.empty(n_nodes, dtype=np.int64) for _ in range(3))
    stack[0] = stands_for[0]
    kept = order[: number_nodes(new_left, new_right, stack, order, number)].copy()
    inner = new_left[kept] >= 0
    children = (np.where(inner, number[child[kept]], -1).astype(np.int32) for child in (new_left, new_right))
    return *children, kept  # type: ignore[return-value]  # two children


def rows_below(left: np.ndarray, right: np.ndarray, rows_at: np.ndarray) -> np.ndarray:
    """Rows below each node (float64, N), from the number of rows that end in each leaf."""
    rows = rows_at.astype(np.float64)
    add_rows(left, right, rows)
    return rows


# ---- A forest: its schema, trees and leaves.


@dataclass(frozen=True)
class Forest:
    """P(x) = sum over leaves of exp(log_weight) * 1[x in box] * product of the leaf's distributions.

    A leaf may have a circuit in place of the product, see `models.box_forest.leaves.table.Leaves`.

    With ``has_background`` the last tree is the background: one node, one leaf, a wide distribution over everything
    that carries the weight epsilon.
    """

    schema: Schema
    columns: Columns
    trees: Trees
    leaves: Leaves
    has_background: bool

    @cached_property
    def at_atoms(self) -> np.ndarray:
        """Log densities of leaves without circuit at atoms, float64 (L, A): 0 until a kernel needs one.

        Rows meet the same atoms again and again, and what two threads both find is the same number.
        """
        return np.zeros((len(self.leaves.log_weight), len(self.columns.atom_value)))

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: a copy finds its own `at_atoms`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
