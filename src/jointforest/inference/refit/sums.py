"""What refitting an ensemble's leaf values takes of the rows: sums over rows of probabilities of leaves and pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...ensembles.evaluate import leaves
from ...models.box_forest.posterior import chunk_posterior, row_chunks
from ...runtime.records import record
from ...runtime.threads import map_ordered
from ..expectation.cell_kernels import complete_stratified
from ..expectation.component_kernels import STRIDE
from ..expectation.expectation import MatchedRows, distinct, knows_splits, leaf_probability, take_matched
from ..expectation.match import MatchedEnsemble, filled
from ..expectation.scratch import cell_scratch, expectation_scratch
from .refit_kernels import cell_leaves, leaf_pair_rows, pair_leaves

_ROWS = 32
"""Rows of a chunk for a thread."""
_AT_ONCE = 4096
"""Rows whose leaf probabilities are held at a time, which bounds memory."""
_MOST_PARTS = 16
"""Most parts of a sum. They do not depend on the number of threads, so that the answer does not either."""
_PART_BYTES = 2**28
"""Memory that all parts of a sum may have."""


class RefitSample(NamedTuple):
    """Weighted rows with targets; rows that are alike are one.

    leaf : int32 array (n, T). Leaves of the rows that know all features that are split.
    leaf_weight : float64 array (n,)
    leaf_target : float64 array (n, K). Weight times target, summed.
    part : Rows. The other m rows.
    part_weight : float64 array (m,)
    part_target : float64 array (m, K)
    """

    leaf: np.ndarray
    leaf_weight: np.ndarray
    leaf_target: np.ndarray
    part: MatchedRows
    part_weight: np.ndarray
    part_target: np.ndarray


@record
class _PairSums(NamedTuple):
    """What pairs of leaves are added to, see `pair_kernels.pair_rows`.

    tree, stop : int
    value, matrix, product : float64 arrays
    """

    tree: int
    stop: int
    value: np.ndarray
    matrix: np.ndarray
    product: np.ndarray


def gather(matched: MatchedEnsemble, rows: MatchedRows, y: np.ndarray, weight: np.ndarray) -> RefitSample:
    """n rows with targets (n, K) and weights (n,)."""
    counts = weight > 0
    complete = knows_splits(matched.features, rows) & counts
    known_rows, incomplete_rows = np.flatnonzero(complete), np.flatnonzero(~complete & counts)
    leaf = leaves(matched.ensemble, rows.X[known_rows], rows.other[known_rows])
    part, place = take_matched(rows, incomplete_rows), np.arange(len(incomplete_rows))
    if len(incomplete_rows):
        part, same = distinct(part)
        place = place[same] if isinstance(same, slice) else same
    total = weight[:, None] * y
    return RefitSample(
        leaf,
        weight[known_rows],
        total[known_rows],
        part,
        np.bincount(place, weight[incomplete_rows], len(part.X)),
        np.column_stack([np.bincount(place, column, len(part.X)) for column in total[incomplete_rows].T]),
    )


def refit_sums(matched: MatchedEnsemble, sample: RefitSample) -> tuple[np.ndarray, np.ndarray]:
    """Sums over rows of weight times P(in the leaf | known cells), (L,), and of this times the target, (L, K)."""
    n_leaves, n_outputs = matched.ensemble.value.shape
    mass, target = np.zeros(n_leaves), np.zeros((n_leaves, n_outputs))
    for leaf in sample.leaf.T:
        mass += np.bincount(leaf, sample.leaf_weight, n_leaves)
        for k in range(n_outputs):
            target[:, k] += np.bincount(leaf, sample.leaf_target[:, k], n_leaves)
    for first in range(0, len(sample.part_weight), _AT_ONCE):
        here = np.arange(first, min(first + _AT_ONCE, len(sample.part_weight)))
        reached = leaf_probability(matched, take_matched(sample.part, here))
        size = np.diff(reached.start)
        if not size.all():
            raise ValueError(
                f"{int((size == 0).sum())} of the rows with missing cells have probability 0 under the joint, so that "
                "nothing is known of their completions: leave them out, or fit the joint with a background"
            )
        mass += np.bincount(reached.leaf, reached.probability * np.repeat(sample.part_weight[here], size), n_leaves)
        for k in range(n_outputs):
            share = reached.probability * np.repeat(sample.part_target[here, k], size)
            target[:, k] += np.bincount(reached.leaf, share, n_leaves)
    return mass, target


def pair_matrix(matched: MatchedEnsemble, sample: RefitSample) -> np.ndarray:
    """Sums over rows of weight times P(in leaf a and in leaf b | known cells), (L, L)."""
    n_leaves, n_outputs = matched.ensemble.value.shape
    nothing = np.empty((0, n_outputs))

    def add(first: int, stop: int, rows: list[tuple[int, int]]) -> np.ndarray:
        out = np.zeros((n_leaves, n_leaves))
        pair_leaves(sample.leaf, sample.leaf_weight, first, stop, out)
        _add_rows(matched, sample, rows, _PairSums(-1, 0, nothing, out, nothing))
        return out

    out = _sum_parts(matched, sample, n_leaves**2, add)
    out += out.T - np.diag(np.diagonal(out))
    return out


def pair_product(
    matched: MatchedEnsemble, sample: RefitSample, value: np.ndarray, tree: int = -1, stop: int = 0
) -> np.ndarray:
    """`pair_matrix` times value (L, K), without the matrix; (L, K)."""
    # If ``tree`` is given, only for its leaves, and without its own values and those of the trees from ``stop`` on.
    ensemble = matched.ensemble
    nothing = np.empty((0, 0))

    def add(first: int, end: int, rows: list[tuple[int, int]]) -> np.ndarray:
        out = np.zeros(value.shape)
        leaf = sample.leaf[first:end]
        trees = range(len(ensemble.root)) if tree < 0 else [s for s in range(stop) if s != tree]
        total = np.zeros((len(leaf), value.shape[1]))
        for s in trees:
            total += value[leaf[:, s]]
        total *= sample.leaf_weight[first:end, None]
        for s in trees if tree < 0 else [tree]:
            for k in range(value.shape[1]):
                out[:, k] += np.bincount(leaf[:, s], total[:, k], len(value))
        _add_rows(matched, sample, rows, _PairSums(tree, stop, value, nothing, out))
        return out

    return _sum_parts(matched, sample, value.size, add)


def _add_rows(matched: MatchedEnsemble, sample: RefitSample, rows: list[tuple[int, int]], sums: _PairSums) -> None:
    """Add the pairs of leaves of these chunks of the rows with missing cells."""
    part = sample.part
    # every leaf counts, also beside one of its value
    arrays = matched.arrays()._replace(half_most=np.ones(len(matched.half)))
    scratch, narrow = expectation_scratch(arrays), np.empty((len(arrays.regions.column), STRIDE))
    for first, end in rows:
        post = chunk_posterior(matched.model, part.evidence, first, end)
        leaf_pair_rows(arrays, part, first, post, sample.part_weight, sums, scratch, narrow)


def _sum_parts(matched: MatchedEnsemble, sample: RefitSample, size: int, add: Callable[..., np.ndarray]) -> np.ndarray:
    """Sum of what some parts of the rows have: parts that do not depend on the number of threads, few if large."""
    n = max(1, min(_MOST_PARTS, _PART_BYTES // (8 * size)))
    chunks = row_chunks(matched.model, sample.part.evidence, _ROWS) if len(sample.part_weight) else []
    ends = np.linspace(0, len(sample.leaf), n + 1).astype(int)
    chunk_ends = np.linspace(0, len(chunks), n + 1).astype(int)
    parts = [(int(ends[i]), int(ends[i + 1]), chunks[chunk_ends[i] : chunk_ends[i + 1]]) for i in range(n)]
    total: np.ndarray | None = None
    for part in map_ordered(add, parts):
        total = part if total is None else total + part
    assert total is not None
    return total


# ---- Rows as weighted complete ones: all that they may be where these are few, else a stratified sample.

_DRAWN = 100_000
"""Completed rows that a thread holds at a time."""


class Completions(NamedTuple):
    """N weighted complete rows.

    leaf : int32 array (N, T)
    weight : float64 array (N,)
    target : float64 array (N, K). Weight times target.
    """

    leaf: np.ndarray
    weight: np.ndarray
    target: np.ndarray


def complete(matched: MatchedEnsemble, sample: RefitSample, m: int, seed: int) -> Completions:
    """Rows of a sample completed: to all combinations of cells if they are at most ``m``, else to m draws."""
    part = sample.part
    arrays = matched.arrays()

    def work(first: int, stop: int) -> tuple[np.ndarray, ...]:
        post = chunk_posterior(matched.model, part.evidence, first, stop)
        count, probability, leaf = cell_leaves(
            arrays, part, first, post, m, expectation_scratch(arrays), cell_scratch(arrays, m)
        )
        row = np.repeat(np.arange(first, stop), np.maximum(count, 0))
        if not (count < 0).any():
            return count, row, probability, leaf
        many = np.flatnonzero(count < 0)
        drawn = _draw(matched, sample, first + many, m, seed)
        return (
            count,
            np.concatenate([row, np.repeat(first + many, m)]),
            np.concatenate([probability, np.full(len(drawn), 1.0 / m)]),
            np.concatenate([leaf, drawn]),
        )

    size = max(1, min(256, _DRAWN // m))
    cut = row_chunks(matched.model, part.evidence, size) if len(sample.part_weight) else []
    parts: list[Any] = list(map_ordered(work, cut))
    lost = sum(int((count == 0).sum()) for count, *_ in parts)
    if lost:
        raise ValueError(
            f"{lost} of the rows with missing cells have probability 0 under the joint, so that nothing is known of "
            "their completions: leave them out, or fit the joint with a background"
        )
    row = np.concatenate([np.empty(0, dtype=np.int64), *(p[1] for p in parts)])
    share = np.concatenate([np.empty(0), *(p[2] for p in parts)])
    return Completions(
        np.concatenate([sample.leaf, *(p[3] for p in parts)]),
        np.concatenate([sample.leaf_weight, sample.part_weight[row] * share]),
        np.concatenate([sample.leaf_target, sample.part_target[row] * share[:, None]]),
    )


def _draw(matched: MatchedEnsemble, sample: RefitSample, row: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Leaves of m completions of each of some rows, (m * rows, T)."""
    model, rows = matched.model, take_matched(sample.part, row)
    drawn = np.empty((m * len(row), rows.evidence.value.shape[1]))
    post = chunk_posterior(model, rows.evidence, 0, len(row))
    complete_stratified(model.columns, model.leaves, rows.evidence, post, m, seed, int(row[0]), drawn)
    X, other = filled(matched.features, np.repeat(rows.X, m, axis=0), np.repeat(rows.other, m, axis=0), drawn)
    return leaves(matched.ensemble, X, other)
