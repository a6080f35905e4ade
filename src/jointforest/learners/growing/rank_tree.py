"""One tree on ranks: where rows end in it, and what it is without its small leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...models.box_forest.structure import pruned, rows_below
from ...runtime.random_kernels import stream
from ...runtime.records import record
from .route_kernels import route, set_shares


@record
class RankTree(NamedTuple):
    """One tree of N nodes on ranks, children after their parent.

    Attributes
    ----------
    feature : int32 array (N,)
        Column of the split; -1 at leaves.
    below_rank : int32 array (N,)
        Largest rank that goes left; -1 unless the split is numeric. Rows up to it go left, whether the tree was grown
        on them or not: the threshold lies between the column's values of that rank and the next.
    levels_at : int32 array (N,)
        First word of the node's set in ``level_words``; -1 unless the split is categorical.
    left, right : int32 arrays (N,)
        Children; -1 at leaves.
    level_words : uint64 array
        Level sets that go left, see `nodes.Trees.left_levels`.
    share_left : float64 array (N,)
        Share of the node's rows with known value that went left: rows with the value missing are sent left by a
        draw with this probability, at learning. Nothing is imputed, and nothing is learned from a missing cell.
    """

    feature: np.ndarray
    below_rank: np.ndarray
    levels_at: np.ndarray
    left: np.ndarray
    right: np.ndarray
    level_words: np.ndarray
    share_left: np.ndarray


def find_leaves(tree: RankTree, codes: np.ndarray, seed: int, number: int) -> np.ndarray:
    """Leaf node (int32, n) of each row of ``codes`` (d, n); rows missing a split value take a side by a seeded draw."""
    return find_again(tree, codes, np.empty(codes.shape[1], np.int32), np.arange(codes.shape[1]), seed, number)


def find_again(
    tree: RankTree, codes: np.ndarray, node: np.ndarray, rows: np.ndarray, seed: int, number: int
) -> np.ndarray:
    """Leaf nodes (int32, n) as `find_leaves` has them, known as ``node`` but for some rows (int64)."""
    out, moved = node.copy(), rows.astype(np.int32)
    start, stop = np.zeros((2, len(tree.feature)), dtype=np.int64)
    stop[0] = len(rows)
    route(codes, tree, moved, np.empty_like(moved), start, stop, seed, number, out)
    return out


def incomplete(codes: np.ndarray) -> np.ndarray:
    """Rows of ``codes`` (d, n) with a missing cell: int64."""
    return np.flatnonzero(codes.min(axis=0, initial=0) < 0)


def with_shares(
    tree: RankTree, codes: np.ndarray, node: np.ndarray, missing: np.ndarray, seed: int, number: int
) -> RankTree:
    """The tree, but rows missing a split value take sides as often as the rows of ``codes`` (d, n) do.

    The rows that a tree was grown on are those of all classes; the rows of one class may split otherwise. Nodes that
    no row reaches keep their shares.

    Parameters
    ----------
    node : int32 array (n,)
        Leaf node of each row; what it says of rows with missing cells does not matter.
    missing : int64 array
        Rows with missing cells (`incomplete`).
    """
    n_nodes = len(tree.feature)
    changed = tree._replace(share_left=tree.share_left.copy())
    complete = np.bincount(node, minlength=n_nodes) - np.bincount(node[missing], minlength=n_nodes)
    start, stop = np.zeros((2, n_nodes), dtype=np.int64)
    stop[0] = len(missing)
    rows, weight = missing.astype(np.int32), np.ones(codes.shape[1])
    known = rows_below(tree.left, tree.right, complete)
    set_shares(codes, changed, rows, np.empty_like(rows), weight, known, start, stop, stream(seed, number))
    return changed


def prune(tree: RankTree, rows_at: np.ndarray, min_rows: int) -> tuple[RankTree, np.ndarray]:
    """Remove leaves that fewer than ``min_rows`` rows reach (Watson et al. 2023, Algorithm 1).

    Returns the smaller tree, and the number that each node has in it (int32, N); -1 for those that are gone.

    The sibling of such a leaf takes the place of their parent, so its box grows to hold both. Where both children
    are too small, so is their parent.

    Parameters
    ----------
    rows_at : int array (N,)
        Number of rows that end in each node, as leaves of ``tree``.
    """
    left, right, order = pruned(tree.left, tree.right, rows_at, min_rows)
    inner = left >= 0
    number = np.full(len(tree.left), -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    smaller = RankTree(
        feature=np.where(inner, tree.feature[order], -1).astype(np.int32),
        below_rank=np.where(inner, tree.below_rank[order], -1).astype(np.int32),
        levels_at=np.where(inner, tree.levels_at[order], -1).astype(np.int32),
        left=left,
        right=right,
        level_words=tree.level_words,
        share_left=tree.share_left[order],
    )
    return smaller, number
