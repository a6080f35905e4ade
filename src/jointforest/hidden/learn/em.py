"""Stepwise expectation maximisation: running counts, moved by each batch towards what its rows say."""

from __future__ import annotations

import numpy as np

from ...ground.products import of_finite
from ...ground.threads import Run, chunks, one_by_one
from ..messages import down, log_probability, up
from ..tree import HiddenTree
from .columns import CodeColumn
from .tables import Counts, Smoothing, normals_of, tree_of

_ENTRIES = 1 << 15  # of a message, in one piece of work: rows x states; sums are merged in the order of the pieces
_ROWS = 128, 256  # fewest and most rows of a piece, unless their messages are too many
_PIECES = 8  # pieces whose sums wait to be merged
_LONG = 1_024  # rows of a batch that is cut to longer pieces: merging tables takes long, too
_AS_IT_WAS = 4  # batches after which states' normals are fitted anew: they take long, and hardly change
_FEW = 1 << 14  # rows x codes up to which a table of ones is faster than a sparse one
_SOME_STATES = 64  # from which rows of a batch are worth threads
_MANY_STATES = 192  # from which tables are
_FLOATS = 16_000_000  # most numbers in the messages of one kind of a piece


def own_messages(tree: HiddenTree, codes: np.ndarray) -> list[np.ndarray]:
    """p(cell | state) of each node, m arrays (n, H_k): of its code and that it is known, or of its being missing (K).

    That a cell is missing counts in learning alone: so states know which cells are missing together.
    """
    return [table[codes[:, j]] for table, j in zip(tree.by_cell, tree.column.tolist(), strict=True)]


@of_finite
def sent_messages(tree: HiddenTree, codes: np.ndarray) -> dict[int, np.ndarray]:
    """p(cell | state of the parent), (n, H_parent), of nodes without children and with fewer cells than rows.

    A table over the cells is a smaller product than that of the rows, and many rows have the same cell.
    """
    ends = [k for k, own in enumerate(tree.by_cell) if k and not tree.children[k] and len(own) <= len(codes)]
    return {k: tree.sent_by_cell(k)[codes[:, tree.column[k]]] for k in ends}


@of_finite
def expected_counts(tree: HiddenTree, codes: np.ndarray, weight: np.ndarray | None) -> tuple[Counts, float]:
    """Expected counts of states and codes over rows of codes (n, d), and the sum of their log-probabilities."""
    n = len(codes)
    sent = sent_messages(tree, codes)
    upward = up(tree, own_messages(tree, codes), n, sent)
    downward = down(tree, upward, None, sent)
    ones = np.ones(n, tree.dtype) if weight is None else weight.astype(tree.dtype)
    transition, emission, blank = [], [], []
    for k, j in enumerate(tree.column.tolist()):
        K = tree.emission[k].shape[1]
        above = downward.above[k] if k else np.ones((n, 1), tree.dtype)
        if k in sent:  # sums over rows of what depends on their cells are sums over cells
            of_cell = _sums(codes[:, j], K + 1, ones / _row_sums(above * sent[k]), above)
            transition.append(tree.transition[k] * (of_cell.T @ tree.by_cell[k]))
            cells = tree.by_cell[k] * (of_cell @ tree.transition[k])
        else:
            both = downward.outside[k] * upward.inside[k]
            share = ones / _row_sums(both)
            transition.append(tree.transition[k] * ((above * share[:, None]).T @ upward.inside[k]))
            cells = _sums(codes[:, j], K + 1, share, both)
        emission.append(np.ascontiguousarray(cells[:K].T))
        blank.append(cells[K])
    found = upward.log_probability if weight is None else weight * upward.log_probability
    return Counts(transition, emission, blank), float(found.sum())


def _row_sums(x: np.ndarray) -> np.ndarray:
    """Sums of the rows of x (n, H), (n,): NumPy's own take four times as long."""
    return x @ np.ones(x.shape[1], x.dtype)


def _sums(code: np.ndarray, K: int, weight: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Sums of the rows of x (n, H) with each code, by their weights (n,): (K, H)."""
    n = len(code)
    if n * K <= _FEW:
        return np.where(np.arange(K)[:, None] == code, weight, np.zeros((), x.dtype)) @ x
    from scipy.sparse import csc_array

    return csc_array((weight, code, np.arange(n + 1)), shape=(K, n)) @ x


def improve(
    tree: HiddenTree,
    counts: Counts,
    codes: np.ndarray,
    weight: np.ndarray | None,
    columns: tuple[CodeColumn, ...],
    smoothing: Smoothing,
    shares: np.ndarray,
    rng: np.random.Generator,
    run: Run,
) -> tuple[HiddenTree, Counts]:
    """One pass over the rows in random order; ``shares`` (batches,) are those of each batch in the running counts.

    The counts that are given are changed in place.
    """
    n = len(codes)
    places = np.array_split(rng.permutation(n), len(shares))
    total = float(n if weight is None else weight.sum())
    side_by_side = run if int(tree.n_states.max()) >= _MANY_STATES else one_by_one
    normals = None
    for i, (rows, share) in enumerate(zip(places, shares.tolist(), strict=True)):
        w = None if weight is None else weight[rows]
        found = batch_counts(tree, codes[rows], w, run)
        gain = share * total / max(float(len(rows) if w is None else w.sum()), 1e-12)
        _move(counts, found, share, gain)
        if i % _AS_IT_WAS == 0:
            normals = normals_of(counts, tree.column, tree.parent, columns, smoothing)
        tree = tree_of(counts, tree.column, tree.parent, columns, smoothing, normals, side_by_side)
    return tree, counts


def mean_log_probability(
    tree: HiddenTree, codes: np.ndarray, weight: np.ndarray | None, run: Run = one_by_one
) -> float:
    """Mean log-probability of rows of codes."""

    def one(a: int, b: int) -> np.ndarray:
        return log_probability(tree, own_messages(tree, codes[a:b]), b - a, sent_messages(tree, codes[a:b]))

    return float(np.average(np.concatenate(run(one, chunks(len(codes), _rows_at_once(tree)))), weights=weight))


def _move(counts: Counts, found: Counts, share: float, gain: float) -> None:
    """Running counts towards those of a batch, in place."""
    for olds, news in zip(counts, found, strict=True):
        for old, new in zip(olds, news, strict=True):
            old *= np.float32(1 - share)
            new *= np.float32(gain)
            old += new


def batch_counts(tree: HiddenTree, codes: np.ndarray, weight: np.ndarray | None, run: Run) -> Counts:
    """Expected counts over rows of codes, at least one, piece by piece."""

    def one(a: int, b: int) -> Counts:
        return expected_counts(tree, codes[a:b], None if weight is None else weight[a:b])[0]

    run = run if int(tree.n_states.max()) >= _SOME_STATES else one_by_one
    at_once = _rows_at_once(tree) * (1 if len(codes) <= _LONG else 4)
    total: Counts | None = None
    for first in range(0, len(codes), _PIECES * at_once):
        pieces = chunks(min(len(codes) - first, _PIECES * at_once), at_once)
        for found in run(one, [(first + a, first + b) for a, b in pieces]):
            if total is None:
                total = found
            else:
                for olds, news in zip(total, found, strict=True):
                    for old, new in zip(olds, news, strict=True):
                        old += new
    assert total is not None
    return total


def _rows_at_once(tree: HiddenTree) -> int:
    rows = int(np.clip(_ENTRIES // int(tree.n_states.max()), *_ROWS))
    return int(np.clip(_FLOATS // max(int(tree.n_states.sum()), 1), 32, rows))
