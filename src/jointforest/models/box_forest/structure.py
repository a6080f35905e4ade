"""The node table: the structure of all trees of a forest, one array per field."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...data.schema import Columns, Schema
from ...runtime.records import record
from .leaves.table import Leaves
from .structure_kernels import MIXED, fill_boxes, number_layers, restrict_trees, rows_below


@record
class Trees(NamedTuple):
    """Structure of T trees with N nodes and L leaves in all; the nodes of each tree are side by side, its root first.

    A row goes left at a numeric node if ``x <= threshold`` (boxes are half-open, ``(lo, hi]``), at a categorical
    node if the bit of its level is set in the node's words of ``left_levels``. A MIXED node has no split: its children
    share its box, and their distributions are mixed by their weights, so that a row goes both ways.

    feature : int32 array (N,). Column of the split; -1 at leaves, `structure_kernels.MIXED` at nodes without a split.
    threshold : float64 array (N,). Threshold of numeric splits, never NaN; 0 elsewhere.
    levels_at : int32 array (N,). First word of the node's set in ``left_levels``; -1 unless the split is categorical.
        Level k is bit ``k % 64`` of word ``k // 64``.
    left_levels : uint64 array (W,). Sets of levels that go left.
    left, right : int32 array (N,). Children, which come after their parent; -1 at leaves.
    leaf : int32 array (N,). Number of the leaf, each of 0..L-1 once, tree by tree; -1 at inner nodes.
    weight : float64 array (N,). Share of the tree's rows that reach the node; 1 at roots.
    root : int32 array (T,). Root of each tree.
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


def leaf_nodes(leaf: np.ndarray) -> np.ndarray:
    """The node of each leaf, (L,), from the leaf of each node, (N,)."""
    nodes = np.flatnonzero(leaf >= 0)
    return nodes[np.argsort(leaf[nodes])]


def mix_leaves(trees: Trees, leaf: np.ndarray, share: np.ndarray) -> Trees:
    """The trees in which each leaf is a mixture: new leaf k has the weight ``share[k]`` of leaf ``leaf[k]``."""
    # A leaf of m components becomes m - 1 MIXED nodes, each of which has one component on its left.
    count = np.bincount(leaf)
    extra = np.where(trees.leaf >= 0, 2 * (count[trees.leaf] - 1), 0)
    at = np.arange(len(extra)) + np.cumsum(extra) - extra
    total = len(extra) + int(extra.sum())
    start = np.cumsum(count) - count
    k = np.arange(len(leaf)) - start[leaf]
    is_last = k == count[leaf] - 1
    node_of = leaf_nodes(trees.leaf)
    mixed = at[node_of[leaf]] + 2 * k  # the node above component k, and the last component itself
    below = np.cumsum(share[::-1])[::-1]  # of this component and all after it; of its leaf, without those after that
    below = below - np.append(below, 0.0)[start + count][leaf]

    def spread(field: np.ndarray, other: float) -> np.ndarray:
        out = np.full(total, other, field.dtype)
        out[at] = field
        return out

    new_at = np.append(at, -1)
    fields = {
        "feature": spread(trees.feature, -1), "threshold": spread(trees.threshold, 0.0),
        "levels_at": spread(trees.levels_at, -1), "left": spread(new_at[trees.left].astype(np.int32), -1),
        "right": spread(new_at[trees.right].astype(np.int32), -1), "leaf": np.full(total, -1, np.int32),
        "weight": spread(trees.weight, 0.0),
    }  # fmt: skip
    own = mixed + ~is_last
    fields["leaf"][own] = np.arange(len(leaf))
    weight = trees.weight[node_of[leaf]]
    fields["weight"][mixed] = weight * np.minimum(below, 1.0)
    fields["weight"][own] = weight * share
    inner = mixed[~is_last]
    fields["feature"][inner], fields["left"][inner], fields["right"][inner] = MIXED, inner + 1, inner + 2
    return Trees(**fields, left_levels=trees.left_levels, root=at[trees.root].astype(np.int32))


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


# ---- Trees of some of the leaves, and the weights of nodes.


def keep_leaves(trees: Trees, keep: np.ndarray) -> tuple[Trees, np.ndarray, np.ndarray]:
    """The trees with the leaves ``keep`` (bool (L,)) alone, numbered anew; and which leaf and tree each one was."""
    # The sibling of a leaf that goes takes their parent's place. Trees without leaves go. Weights have no meaning then.
    stays = at_leaves(trees, keep).astype(np.uint8)
    node, left, right, root, old_tree = restrict_trees(trees.left, trees.right, trees.root, stays)
    kept = Trees(
        feature=trees.feature[node],
        threshold=trees.threshold[node],
        levels_at=trees.levels_at[node],
        left_levels=trees.left_levels,
        left=left,
        right=right,
        leaf=np.where(left < 0, np.cumsum(left < 0) - 1, -1).astype(np.int32),
        weight=np.zeros(len(node)),
        root=root,
    )
    return kept, trees.leaf[node[left < 0]], old_tree


def at_leaves(trees: Trees, number: np.ndarray) -> np.ndarray:
    """Numbers of leaves, (L,), at their nodes, float64 (N,); 0 at the others."""
    is_leaf = trees.leaf >= 0
    out = np.zeros(len(is_leaf))
    out[is_leaf] = number[trees.leaf[is_leaf]]
    return out


def with_weights(trees: Trees, rows_in_leaf: np.ndarray) -> Trees:
    """The trees, each node's weight the share of its tree's rows below it; ``rows_in_leaf`` (L,) has their number."""
    rows = rows_below(trees.left, trees.right, at_leaves(trees, rows_in_leaf))
    total = rows[trees.root]
    if not (total > 0).all():
        raise ValueError(f"tree {int(np.argmin(total))}: no row of positive weight ends in it")
    return trees._replace(weight=rows / np.repeat(total, np.diff(np.append(trees.root, len(rows)))))


# ---- A forest: its schema, trees and leaves.


@dataclass(frozen=True)
class Forest:
    """P(x) = sum over leaves of exp(log_weight) * 1[x in box] * product of the leaf's distributions. With
    ``has_background`` the last tree is the background: a wide distribution over everything that carries the weight
    epsilon. It has no splits, and one leaf, or one of each forest that was mixed."""

    schema: Schema
    columns: Columns
    trees: Trees
    leaves: Leaves
    has_background: bool

    @property
    def n_background(self) -> int:
        """Number of leaves of the background, which come last."""
        return (len(self.trees.feature) - int(self.trees.root[-1]) + 1) // 2 if self.has_background else 0

    @cached_property
    def layers(self) -> tuple[np.ndarray, int]:
        """The layer of each leaf, int64 (L,), of which no two leaves overlap; and the number of layers."""
        layer, scratch = (
            np.empty(len(self.leaves.log_weight), np.int64),
            np.empty((2, len(self.trees.feature)), np.int64),
        )
        return layer, int(number_layers(self.trees, *scratch, layer))

    @cached_property
    def at_atoms(self) -> np.ndarray:
        """Log densities of leaves at atoms, float64 (L, A): 0 until a kernel needs one."""
        # Rows have the same atoms again and again, and two threads compute the same number.
        return np.zeros((len(self.leaves.log_weight), len(self.columns.atom_value)))

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: a copy finds its own `at_atoms` and `layers`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
