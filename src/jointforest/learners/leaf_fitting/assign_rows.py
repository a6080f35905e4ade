"""Where the training rows end in the trees that were grown on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...models.box_forest.structure import Trees
from ..growing.grow import join
from ..growing.rank_tree import RankTree, find_again, find_leaves, incomplete, prune
from ..growing.ranks import Ranks
from .statistics_kernels import rows_by_leaf


class Arrival(NamedTuple):
    """A forest, and where the training rows end in it.

    Attributes
    ----------
    trees : Trees
        T trees with L leaves, without background.
    leaf_of : int32 array (T, n)
        Leaf (0..L-1) in which each row ends, in each tree; -1 for a row that ends in none, which has no weight.
    weight : float64 array (T, n)
        How much each row counts in each tree; 0 is out of bag. Trees may share one row of it.
    """

    trees: Trees
    leaf_of: np.ndarray
    weight: np.ndarray


def arrive(
    columns: Columns,
    ranks: Ranks,
    trees: Sequence[RankTree],
    leaf_node: Sequence[np.ndarray] | np.ndarray,
    weight: Sequence[np.ndarray] | np.ndarray,
) -> Arrival:
    """Join trees on ranks to a forest, whose nodes weigh as the rows that end in them.

    Parameters
    ----------
    trees : sequence of T `RankTree`
    leaf_node : T int arrays (n,)
        Node in which each row ends; -1 for none.
    weight : T float64 arrays (n,)
        How much each row counts.
    """
    counted = [w > 0 for w in weight]
    rows_at = [
        np.bincount(node[some], w[some], minlength=len(tree.feature))
        for tree, node, w, some in zip(trees, leaf_node, weight, counted, strict=True)
    ]
    forest = join(columns, ranks, list(trees), rows_at)
    leaf_of = np.empty((len(trees), len(leaf_node[0])), dtype=np.int32)
    for out, node, first in zip(leaf_of, leaf_node, forest.root, strict=True):
        out[:] = np.where(node >= 0, forest.leaf[node + first], -1)
    return Arrival(forest, leaf_of, np.asarray(weight))


def first_trees(arrival: Arrival, n_trees: int) -> Arrival:
    """The first trees of the forest alone."""
    trees = arrival.trees
    if n_trees >= len(trees.root):
        return arrival
    end = trees.root[n_trees]
    cut = {field: getattr(trees, field)[:end] for field in trees._fields if field not in ("root", "left_levels")}
    return Arrival(
        trees._replace(root=trees.root[:n_trees], **cut), arrival.leaf_of[:n_trees], arrival.weight[:n_trees]
    )


def first_leaves(trees: Trees) -> np.ndarray:
    """Leaves of tree t are ``first[t]..first[t + 1] - 1``; shape (T + 1,)."""
    n_leaves = np.add.reduceat(trees.leaf >= 0, trees.root, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(n_leaves)])


def rows_in_leaves(arrival: Arrival, first: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that count in tree t, by leaf: those of its leaf l, from 0, are ``rows[start[l] : start[l + 1]]``.

    ``first`` (T + 1,) are the `first_leaves` of the forest.
    """
    own = np.where(arrival.weight[t] > 0, arrival.leaf_of[t] - first[t], -1).astype(np.int32)
    return rows_by_leaf(own, int(first[t + 1] - first[t]))


def settle(
    tree: RankTree,
    codes: np.ndarray,
    counts: np.ndarray,
    min_rows: int,
    seed: int,
    number: int,
    node: np.ndarray | None = None,
) -> tuple[RankTree, np.ndarray]:
    """Prune a tree until enough rows end in each leaf; the pruned tree, and the node (int32, n) in which each row ends.

    Rows that miss a split value take a side by a draw, so they may end elsewhere after each pruning; of the others only
    the rows of the leaves that are gone do.

    Parameters
    ----------
    codes : int32 array (d, n)
        Ranks of the rows.
    counts : bool array (n,)
        Rows that count.
    min_rows : int
        Fewest of these in a leaf.
    seed, number : int
        Random stream of the draws.
    node : int32 array (n,), optional
        The node in which each row ends in the tree as it is, if that is known.
    """
    if node is None:
        node = find_leaves(tree, codes, seed, number)
    misses = np.zeros(codes.shape[1], dtype=bool)
    misses[incomplete(codes)] = True
    while True:
        rows_at = np.bincount(node[counts], minlength=len(tree.feature))
        pruned, new = prune(tree, rows_at, min_rows)
        if len(pruned.feature) == len(tree.feature):
            return tree, node
        tree = pruned
        node = new[node]
        node = find_again(tree, codes, node, np.flatnonzero(misses | (node < 0)), seed, number)
