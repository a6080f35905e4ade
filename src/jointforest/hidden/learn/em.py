"""Stepwise expectation maximisation: running counts, moved by each batch towards what its rows say."""

from __future__ import annotations

import numpy as np

from ...ground.threads import chunks, map_ordered
from ..messages import down, log_probability, up
from ..tree import HiddenTree
from .columns import CodeColumn
from .tables import Counts, Smoothing, tree_of

_CHUNK = 128  # most rows of one piece of work; sums are merged in the order of the pieces, whatever the threads
_FLOATS = 16_000_000  # most numbers in the messages of one kind of a piece


def own_messages(tree: HiddenTree, codes: np.ndarray) -> list[np.ndarray]:
    """p(cell | state) of each node, m arrays (n, H_k): of its code and that it is known, or of its being missing (K).

    That a cell is missing counts in learning alone: so states know which cells are missing together.
    """
    return [table[codes[:, j]] for table, j in zip(tree.by_cell, tree.column.tolist(), strict=True)]


def expected_counts(tree: HiddenTree, codes: np.ndarray, weight: np.ndarray | None) -> tuple[Counts, float]:
    """Expected counts of states and codes over rows of codes (n, d), and the sum of their log-probabilities."""
    from scipy.sparse import csc_array

    n = len(codes)
    upward = up(tree, own_messages(tree, codes), n)
    downward = down(tree, upward)
    ones = np.ones(n, tree.dtype) if weight is None else weight.astype(tree.dtype)
    transition, emission, blank = [], [], []
    for k, j in enumerate(tree.column.tolist()):
        inside = upward.inside[k]
        states = downward.outside[k] * inside
        scale = (ones / states.sum(axis=1))[:, None]
        transition.append(tree.transition[k] * ((downward.above[k] * scale).T @ inside))
        K = tree.emission[k].shape[1]
        sums = csc_array((np.ones(n, tree.dtype), codes[:, j], np.arange(n + 1)), shape=(K + 1, n))
        cells = sums @ (states * scale)
        emission.append(np.ascontiguousarray(cells[:K].T))
        blank.append(cells[K])
    total = upward.log_probability if weight is None else weight * upward.log_probability
    return Counts(transition, emission, blank), float(total.sum())


def improve(
    tree: HiddenTree,
    counts: Counts,
    codes: np.ndarray,
    weight: np.ndarray | None,
    columns: tuple[CodeColumn, ...],
    smoothing: Smoothing,
    shares: np.ndarray,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[HiddenTree, Counts]:
    """One pass over the rows in random order; ``shares`` (batches,) are those of each batch in the running counts."""
    n = len(codes)
    places = np.array_split(rng.permutation(n), len(shares))
    total = float(n if weight is None else weight.sum())
    for rows, share in zip(places, shares.tolist(), strict=True):
        w = None if weight is None else weight[rows]
        found = _batch_counts(tree, codes[rows], w, n_jobs)
        gain = share * total / max(float(len(rows) if w is None else w.sum()), 1e-12)
        counts = Counts(*([(1 - share) * old + np.float32(gain) * new for old, new in zip(a, b, strict=True)]
                          for a, b in zip(counts, found, strict=True)))  # fmt: skip
        tree = tree_of(counts, tree.column, tree.parent, columns, smoothing)
    return tree, counts


def mean_log_probability(tree: HiddenTree, codes: np.ndarray, weight: np.ndarray | None, n_jobs: int | None) -> float:
    """Mean log-probability of rows of codes."""

    def one(a: int, b: int) -> np.ndarray:
        return log_probability(tree, own_messages(tree, codes[a:b]), b - a)

    found = np.concatenate(list(map_ordered(one, chunks(len(codes), _rows_at_once(tree)), n_jobs)))
    return float(np.average(found, weights=weight))


def _batch_counts(tree: HiddenTree, codes: np.ndarray, weight: np.ndarray | None, n_jobs: int | None) -> Counts:
    def one(a: int, b: int) -> Counts:
        return expected_counts(tree, codes[a:b], None if weight is None else weight[a:b])[0]

    total: Counts | None = None
    for found in map_ordered(one, chunks(len(codes), _rows_at_once(tree)), n_jobs):
        total = found if total is None else Counts(*([x + y for x, y in zip(a, b, strict=True)]
                                                     for a, b in zip(total, found, strict=True)))  # fmt: skip
    assert total is not None
    return total


def _rows_at_once(tree: HiddenTree) -> int:
    return int(np.clip(_FLOATS // max(int(tree.n_states.sum()), 1), 32, _CHUNK))
