"""Tables of Chow-Liu trees on codes: pairs of columns in the whole table, and in a leaf, where rows are few."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MARGINAL_ROWS = 2.0
"""Rows of the table's marginal added to the codes of each leaf."""
PAIR_ROWS = 30.0
"""Rows added to the codes of a child given each code of its parent in a leaf: the table's pairs, tilted."""
_TABLE_ROWS = (0.3, 3.0, 30.0, 200.0, 1_000.0)  # rows of the neighbours' pairs added to each code of the parent
_FLOOR = 0.1  # rows of the child's marginal added to them
_PAIR_WIDTH = 0.2  # neighbours in the table's pairs, in normal scores of the column
_LEAF_WIDTH = 0.1  # and in the marginals of leaves
_ROUNDS = 4  # turns of tilting; a further one changes little


class Edges(NamedTuple):
    """A tree over d columns, with the whole table's tables.

    Attributes
    ----------
    order : int32 array (d,)
        Column of each node, parents before children.
    parent : int32 array (d,)
        Node of the parent; -1 of the root.
    is_ordered : list of d bool
        Whether each node's codes have an order.
    marginal : list of d arrays (K_k,)
        Shares of each node's codes, above 0.
    pair : list of d arrays (K_parent, K_k)
        Joint shares of the parent's codes and the node's, above 0; of the root (1, K).
    blank : list of d float
        Shares of missing cells.
    """

    order: np.ndarray
    parent: np.ndarray
    is_ordered: list[bool]
    marginal: list[np.ndarray]
    pair: list[np.ndarray]
    blank: list[float]


def table_edges(
    codes: np.ndarray, n_codes: np.ndarray, is_ordered: np.ndarray, order: np.ndarray, parent: np.ndarray
) -> Edges:
    """The tables of a tree over the columns, from rows of codes (n, d), of which code ``n_codes[j]`` is missing."""
    columns, above = order.tolist(), parent.tolist()
    ordered = is_ordered[order].tolist()
    marginal, pair = [], []
    for j in columns:
        count = np.bincount(codes[:, j], minlength=n_codes[j] + 1)[: n_codes[j]] + 0.0
        count[count == 0.0] = 0.5
        marginal.append(count / count.sum())
    for k, j in enumerate(columns):
        if above[k] < 0:
            pair.append(marginal[k][None])
            continue
        up = above[k]
        of = [_pair_counts(codes[half::2, columns[up]], codes[half::2, j], len(marginal[up]), len(marginal[k]))
              for half in (0, 1)]  # fmt: skip
        moves = neighbours(marginal[up], _PAIR_WIDTH) if ordered[up] else np.eye(len(marginal[up]))
        near = neighbours(marginal[k], _PAIR_WIDTH) if ordered[k] else np.eye(len(marginal[k]))
        both = [(count, moves.T @ count @ near + _FLOOR * marginal[k]) for count in (*of, of[0] + of[1])]
        gain = [sum(float((of[1 - i] * np.log(_given(*both[i], rows))).sum()) for i in (0, 1)) for rows in _TABLE_ROWS]
        pair.append(marginal[up][:, None] * _given(*both[2], _TABLE_ROWS[int(np.argmax(gain))]))
    blank = [float((codes[:, j] == n_codes[j]).mean()) for j in columns]
    return Edges(order, parent, ordered, marginal, pair, blank)


def _given(count: np.ndarray, smooth: np.ndarray, rows: float) -> np.ndarray:
    """p(code of the child | code of the parent): counts, and some rows of smoothed ones, (K, H)."""
    given = count + rows * smooth / smooth.sum(axis=1, keepdims=True)
    return np.asarray(given / given.sum(axis=1, keepdims=True))


def neighbours(marginal: np.ndarray, width: float) -> np.ndarray:
    """Where the rows of each ordered code go when they are smoothed, (K, K): rows sum to 1.

    A normal kernel on the column's normal scores: a common value is far from its neighbours, and so are the few rows of
    a tail, which lie far apart.
    """
    from scipy.special import ndtri

    at = ndtri(np.clip((np.cumsum(marginal) - 0.5 * marginal) / marginal.sum(), 1e-12, 1.0 - 1e-12))
    kernel = np.exp(-0.5 * ((at[:, None] - at) / width) ** 2) * marginal
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def _pair_counts(a: np.ndarray, b: np.ndarray, K: int, H: int) -> np.ndarray:
    """Number of the rows with each two codes, (K, H); codes K and H are missing."""
    return np.bincount(a * (H + 1) + b, minlength=(K + 1) * (H + 1)).reshape(K + 1, H + 1)[:K, :H].astype(np.float64)


def leaf_pair_counts(
    a: np.ndarray, b: np.ndarray, leaf: np.ndarray, n_leaves: int, K: int, H: int, weight: np.ndarray
) -> np.ndarray:
    """Weight of the rows with each two codes in each leaf, (L, K + 1, H + 1); codes K and H are blank."""
    count = np.bincount((leaf * (K + 1) + a) * (H + 1) + b, weight, n_leaves * (K + 1) * (H + 1))
    return count.reshape(n_leaves, K + 1, H + 1)


def leaf_marginals(count: np.ndarray, allowed: np.ndarray, marginal: np.ndarray, is_ordered: bool) -> np.ndarray:
    """Shares of a column's codes in each leaf, (L, K): counts, smoothed, and some rows of the table's, in the box."""
    if is_ordered:
        count = count @ neighbours(marginal, _LEAF_WIDTH)
    prior = allowed * marginal
    share = count * allowed + MARGINAL_ROWS * prior / prior.sum(axis=1, keepdims=True)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def tilt(pair: np.ndarray, above: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Factors (L, H) of the columns of ``pair`` (K, H), which with some factors of its rows give it leaves' marginals.

    Iterative proportional fitting: of all tables with the marginals ``above`` (L, K) and ``own`` (L, H) this one is the
    nearest to ``pair`` in Kullback-Leibler divergence; zeros of the marginals are zeros of the table.
    """
    factor = own
    for _ in range(_ROUNDS):
        rows = np.divide(above, factor @ pair.T, out=np.zeros_like(above), where=above > 0.0)
        factor = np.divide(own, rows @ pair, out=np.zeros_like(own), where=own > 0.0)
    return factor
