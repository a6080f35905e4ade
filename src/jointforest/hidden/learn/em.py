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
def expected_counts(tree: HiddenTree, codes: np.ndarray, weight: np.ndarray | None) -> tuple[Counts, float]:
    """Expected counts of states and codes over rows of codes (n, d), and the sum of their log-probabilities."""
    n = len(codes)
    upward = up(tree, own_messages(tree, codes), n)
    downward = down(tree, upward)
    ones = np.ones(n, tree.dtype) if weight is None else weight.astype(tree.dtype)
    transition, emission, blank = [], [], []
    for k, j in enumerate(tree.column.tolist()):
        inside, outside = upward.inside[k], downward.outside[k]
        H, K = tree.emission[k].shape
        total = (outside * inside) @ np.ones(H, tree.dtype)  # a sum over rows of a matrix takes four times as long
        inside = inside * (ones / total)[:, None]
        above = downward.above[k] if k else np.ones((n, 1), tree.dtype)
        transition.append(tree.transition[k] * (above.T @ inside))
        cells = _sums(codes[:, j], K + 1, outside * inside)
        emission.append(np.ascontiguousarray(cells[:K].T))
        blank.append(cells[K])
    found = upward.log_probability if weight is None else weight * upward.log_probability
    return Counts(transition, emission, blank), float(found.sum())


def _sums(code: np.ndarray, K: int, x: np.ndarray) -> np.ndarray:
    """Sums of the rows of x (n, H) with each code, (K, H)."""
    n = len(code)
    if n * K <= _FEW:
        return (np.arange(K)[:, None] == code).astype(x.dtype) @ x
    from scipy.sparse import csc_array

    return csc_array((np.ones(n, x.dtype), code, np.arange(n + 1)), shape=(K, n)) @ x


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
        return log_probability(tree, own_messages(tree, codes[a:b]), b - a)

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
