"""A forest with Chow-Liu trees on codes in its leaves, learned as a mixture of hidden trees whose states are codes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.threads import map_ordered, one_blas_thread
from ..learn.structure import coarse, mutual_information, spanning_tree
from ..tree import HiddenTree
from .tables import PAIR_ROWS, Edges, leaf_counts, leaf_marginals, leaf_pair_counts, table_edges, tilt

_LEAVES = 64  # leaves whose tables are counted at once
_BLANK_ROWS = 1.0  # rows of the column's own share of missing cells


class Boxes(NamedTuple):
    """The leaves of a forest of T trees: their boxes, and the n rows in them.

    Attributes
    ----------
    allowed : list of d bool arrays (L, K_j)
        Codes of each column inside each leaf's box.
    first : int64 array (T + 1,)
        Leaves of tree t are ``first[t]..first[t + 1] - 1``.
    share : float64 array (L,)
        Share of each leaf in its tree.
    leaf_of : int32 array (T, n)
        Leaf in which each row ends, in each tree; -1 for none.
    weight : float64 array (T, n)
        How much each row counts in each tree.
    """

    allowed: list[np.ndarray]
    first: np.ndarray
    share: np.ndarray
    leaf_of: np.ndarray
    weight: np.ndarray


def chow_liu_tree(codes: np.ndarray, n_codes: np.ndarray, is_ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tree of greatest mutual information in codes (n, d), code ``n_codes[j]`` where missing.

    Returns
    -------
    order, parent : int32 arrays (d,)
        See `structure.spanning_tree`.
    """
    return spanning_tree(mutual_information(*coarse(codes, n_codes, is_ordered)))


def learn_leaves(
    codes: np.ndarray, n_codes: np.ndarray, is_ordered: np.ndarray, boxes: Boxes, epsilon: float, n_jobs: int | None
) -> tuple[tuple[HiddenTree, ...], np.ndarray]:
    """One hidden tree a leaf, and one of the whole table as background; and the logarithms of their weights.

    All trees have one structure: the Chow-Liu tree of the table.

    Parameters
    ----------
    codes : int array (n, d)
        Code ``n_codes[j]`` where missing.
    epsilon : float
        Weight of the background; 0 leaves it out.
    """
    order, parent = chow_liu_tree(codes, n_codes, is_ordered)
    edges = table_edges(codes, n_codes, is_ordered, order, parent)
    blank = (codes == n_codes).mean(axis=0)
    T = len(boxes.first) - 1
    pieces = [(t, a, min(a + _LEAVES, int(boxes.first[t + 1]))) for t in range(T)
              for a in range(int(boxes.first[t]), int(boxes.first[t + 1]), _LEAVES)]  # fmt: skip
    emissions = _Emissions(n_codes)

    def work(t: int, a: int, b: int) -> list[HiddenTree]:
        rows = np.flatnonzero((boxes.weight[t] > 0) & (boxes.leaf_of[t] >= a) & (boxes.leaf_of[t] < b))
        allowed = [inside[a:b] for inside in boxes.allowed]
        return _piece(edges, codes[rows], boxes.leaf_of[t, rows] - a, boxes.weight[t, rows], allowed, blank, emissions)

    with one_blas_thread():
        trees = [tree for piece in map_ordered(work, pieces, n_jobs) for tree in piece]
    weight = (1.0 - epsilon) * boxes.share / T
    keep = np.flatnonzero(weight > 0.0)
    trees, weight = [trees[i] for i in keep], weight[keep]
    if epsilon > 0.0:
        trees.append(_whole(edges, blank, emissions))
        weight = np.append(weight, epsilon)
    return tuple(trees), np.log(weight / weight.sum())


class _Emissions:
    """Tables of ones that pick codes, one for all leaves that have the same codes of a column."""

    def __init__(self, n_codes: np.ndarray) -> None:
        self._n_codes = n_codes
        self._made: dict[tuple[int, bytes], np.ndarray] = {}

    def pick(self, j: int, codes: np.ndarray) -> np.ndarray:
        """(H, K): state h is code ``codes[h]`` of column j."""
        key = (j, codes.tobytes())
        if key not in self._made:
            table = np.zeros((len(codes), int(self._n_codes[j])), np.float32)
            table[np.arange(len(codes)), codes] = 1.0
            self._made.setdefault(key, table)
        return self._made[key]


def _whole(edges: Edges, blank: np.ndarray, emissions: _Emissions) -> HiddenTree:
    """The Chow-Liu tree of the whole table."""
    transition = [(pair / pair.sum(axis=1, keepdims=True)).astype(np.float32) for pair in edges.pair]
    columns = edges.order.tolist()
    sizes = [len(marginal) for marginal in edges.marginal]
    return HiddenTree(
        edges.order,
        edges.parent,
        tuple(transition),
        tuple(emissions.pick(j, np.arange(K)) for j, K in zip(columns, sizes, strict=True)),
        tuple(np.full(K, blank[j], np.float32) for j, K in zip(columns, sizes, strict=True)),
    )


def _piece(
    edges: Edges,
    codes: np.ndarray,
    leaf: np.ndarray,
    weight: np.ndarray,
    allowed: list[np.ndarray],
    blank: np.ndarray,
    emissions: _Emissions,
) -> list[HiddenTree]:
    """The trees of some leaves, from their rows of codes (n, d); the leaf of each row counts from 0."""
    L = len(allowed[0])
    columns, parent = edges.order.tolist(), edges.parent.tolist()
    rows = np.bincount(leaf, weight, L)
    leaves, nodes = range(L), range(len(columns))
    states, share, transition, emission, blanks = [], [], [], [], []
    for k, j in enumerate(columns):
        K = len(edges.marginal[k])
        count = leaf_counts(codes[:, j], leaf, L, K, weight)
        share.append(leaf_marginals(count, allowed[j], edges.marginal[k], edges.is_ordered[k]))
        states.append([np.flatnonzero(inside) for inside in allowed[j]])
        emission.append([emissions.pick(j, found) for found in states[k]])
        lost = np.clip((rows - count.sum(axis=1) + _BLANK_ROWS * blank[j]) / (rows + _BLANK_ROWS), 0.0, 1.0)
        blanks.append([np.full(len(states[k][i]), lost[i], np.float32) for i in leaves])
        if parent[k] < 0:
            transition.append([share[k][i : i + 1, states[k][i]].astype(np.float32) for i in leaves])
            continue
        above, up = columns[parent[k]], states[parent[k]]
        pairs = leaf_pair_counts(codes[:, above], codes[:, j], leaf, L, len(edges.marginal[parent[k]]), K, weight)
        factor = tilt(edges.pair[k], share[parent[k]], share[k])
        transition.append([_conditional(pairs[i], edges.pair[k], factor[i], up[i], states[k][i]) for i in leaves])
    return [
        HiddenTree(
            edges.order,
            edges.parent,
            tuple(transition[k][i] for k in nodes),
            tuple(emission[k][i] for k in nodes),
            tuple(blanks[k][i] for k in nodes),
        )
        for i in leaves
    ]


def _conditional(
    count: np.ndarray, pair: np.ndarray, factor: np.ndarray, above: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """p(code of the child | code of the parent) in a leaf, over the codes inside its box, (len(above), len(own))."""
    inside = np.ix_(above, own)
    prior = pair[inside] * factor[own]
    total = prior.sum(axis=1, keepdims=True)
    prior = np.where(total > 0.0, prior / np.where(total > 0.0, total, 1.0), 1.0 / len(own))
    table = count[inside] + PAIR_ROWS * prior
    return (table / table.sum(axis=1, keepdims=True)).astype(np.float32)
