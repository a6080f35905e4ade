"""Expected predictions of an ensemble of trees under a joint, given the known cells of each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...data.evidence import Evidence, distinct_rows
from ...ensembles.evaluate import apply_link, cell_edges, raw, raw_blocks
from ...models.base import Distribution
from ...models.box_forest.posterior import chunk_posterior, row_chunks
from ...runtime.parameters import check
from ...runtime.records import record
from ...runtime.threads import chunks, map_ordered
from ..sampling import sample
from .cell_kernels import EXP, IDENTITY, LOGISTIC, SOFTMAX, cell_rows, complete_stratified
from .component_kernels import STRIDE, fill_region_masses
from .descent_kernels import expected_rows, leaf_probabilities, pair_moments
from .match import Features, MatchedArrays, MatchedEnsemble, filled, split_features

# ---- Memory that kernels write to and read again, one row after the other: made once for a chunk of rows.


@record
class ResidualTrees(NamedTuple):
    """The residual trees of one row: n nodes in preorder, a node's left child next to it.

    node : int32 array (N,). Number of the node in the ensemble.
    right : int32 array (N,). Place of the right child; -1 at leaves.
    parent : int32 array (N,). Place of the parent; -1 at roots.
    start : int32 array (T + 1,). Place of each tree's root.
    one_column : uint8 array (N,). Of inner nodes: whether all splits from here on are of one column.
    mass : float64 array (N,). Probability of the leaf; also of an inner node whose subtree was not followed.
    is_used : uint8 array (M,), used : int32 array (M,), local : int32 array (M,). Split regions that the nodes refer
        to, in order, ZERO and ONE first, and the place of each among these.
    """

    node: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    start: np.ndarray
    one_column: np.ndarray
    mass: np.ndarray
    is_used: np.ndarray
    used: np.ndarray
    local: np.ndarray


@record
class ActiveComponents(NamedTuple):
    """The components (leaves) of the joint that count for one row.

    component : int32 array (C,)
    weight : float64 array (C,). Sums to 1 over the row's components.
    n : int64 array (1,). How many.
    dropped : float64 array (1,). Share of the posterior weight of components that were left out.
    """

    component: np.ndarray
    weight: np.ndarray
    n: np.ndarray
    dropped: np.ndarray


@record
class _ExpectationScratch(NamedTuple):
    """Scratch for one row.

    box : int32 array (d, 2), box_column : int32 array (d,). A leaf's box: its columns, and their split regions.
    stack, one_stack : int32 arrays, stack_mass, one_stack_mass : float64 arrays. Ways still to go down a tree, and down
        a part of it that splits one column.
    mass : float64 array (M, STRIDE). Masses of the used split regions in a block of components.
    vector : float64 array (depth + 3, STRIDE). Weights of the block's components down a tree; row 0 at its root.
    level_mass : float64 array (S, STRIDE)
    root_mass : float64 array (M,). Masses of the used split regions under the weights in row 0; NaN: not computed yet.
    """

    residual: ResidualTrees
    active: ActiveComponents
    box: np.ndarray
    box_column: np.ndarray
    stack: np.ndarray
    one_stack: np.ndarray
    stack_mass: np.ndarray
    one_stack_mass: np.ndarray
    mass: np.ndarray
    vector: np.ndarray
    level_mass: np.ndarray
    root_mass: np.ndarray


def expectation_scratch(arrays: MatchedArrays) -> _ExpectationScratch:
    """Scratch for the rows of one thread; memory is only taken for what a row writes."""
    n_nodes, n_trees, d = len(arrays.splits.feature), len(arrays.splits.root), len(arrays.columns.slot)
    n_regions, n_components = len(arrays.regions.column), len(arrays.leaves.log_weight)
    n_levels, depth = int(arrays.columns.level_start[-1]), arrays.depth

    def integers(*shape: int) -> np.ndarray:
        return np.empty(shape, dtype=np.int32)

    residual = ResidualTrees(
        integers(n_nodes), integers(n_nodes), integers(n_nodes), integers(n_trees + 1), np.empty(n_nodes,
        dtype=np.uint8), np.empty(n_nodes), np.empty(n_regions, dtype=np.uint8), integers(n_regions),
        integers(n_regions),
    )  # fmt: skip
    active = ActiveComponents(
        integers(n_components), np.empty(n_components), np.zeros(1, dtype=np.int64), np.zeros(1),
    )  # fmt: skip
    return _ExpectationScratch(
        residual=residual,
        active=active,
        box=integers(d, 2),
        box_column=integers(d),
        stack=integers(2 * depth + 4),
        one_stack=integers(2 * depth + 4),
        stack_mass=np.empty(2 * depth + 4),
        one_stack_mass=np.empty(2 * depth + 4),
        mass=np.empty((n_regions, STRIDE)),
        vector=np.empty((depth + 3, STRIDE)),
        level_mass=np.empty((n_levels, STRIDE)),
        root_mass=np.empty(n_regions),
    )


@record
class PairSums(NamedTuple):
    """What pairs of leaves are added to, see `descent_kernels.leaf_pair_rows`.

    tree, stop : int
    value, matrix, product, mass : float64 arrays
    """

    tree: int
    stop: int
    value: np.ndarray
    matrix: np.ndarray
    product: np.ndarray
    mass: np.ndarray


@record
class SplitCells(NamedTuple):
    """The cells of one row: those into which its D missing columns are split, and all their combinations.

    Cells of a number lie between neighbouring edges; levels that no split separates are one cell.

    n : int64 array (1,). D, the number of columns; the next four have a place for each.
    column : int32 array (d,)
    first, size : int32 arrays (d,). The cells of column c are ``first[c]:first[c] + size[c]``.
    region : int32 array (d,). Place of the column's first split region among the used ones.
    place : int32 array (d,). Where a column of the joint is among the D; -1 if it is not.
    level_cell : int32 array (S,). Which of its column's cells a level is in.
    level_key : uint64 array (S,). Equal for levels that no split separates.
    member : uint8 array (M, levels). Whether a set of levels has the cell of this number.
    """

    n: np.ndarray
    column: np.ndarray
    first: np.ndarray
    size: np.ndarray
    region: np.ndarray
    place: np.ndarray
    level_cell: np.ndarray
    level_key: np.ndarray
    member: np.ndarray


@record
class CellScratch(NamedTuple):
    """Scratch for the combinations of one row's cells.

    combination : int64 array (d,). The cell of each column.
    probability : float64 array (most combinations,)
    mass : float64 array (cells, STRIDE). Mass of each cell in a block of components.
    vector : float64 array (d + 1, STRIDE). Weights of components times masses of cells of the first columns.
    total, answer : float64 arrays (K,)
    """

    cells: SplitCells
    combination: np.ndarray
    probability: np.ndarray
    mass: np.ndarray
    vector: np.ndarray
    total: np.ndarray
    answer: np.ndarray


def cell_scratch(arrays: MatchedArrays, most: int) -> CellScratch:
    """Scratch for rows with at most ``most`` combinations of cells."""
    d, n_levels, n_outputs = len(arrays.columns.slot), int(arrays.columns.level_start[-1]), arrays.middle.shape[1]
    n_regions = len(arrays.regions.column)
    n_cells = n_regions + n_levels + d  # at most
    widest = int(np.diff(arrays.columns.level_start).max(initial=1))
    column, first, size, region, place = np.empty((5, d), dtype=np.int32)
    cells = SplitCells(
        np.zeros(1, dtype=np.int64), column, first, size, region, place, np.empty(n_levels, dtype=np.int32),
        np.empty(n_levels, dtype=np.uint64), np.empty((n_regions, min(widest, most)), dtype=np.uint8),
    )  # fmt: skip
    return CellScratch(
        cells=cells,
        combination=np.zeros(d, dtype=np.int64),
        probability=np.empty(most),
        mass=np.empty((n_cells, STRIDE)),
        vector=np.empty((d + 1, STRIDE)),
        total=np.empty(n_outputs),
        answer=np.empty(n_outputs),
    )


_MEAN_ROWS = 128
"""Rows of a chunk for a thread, where only the mean is computed."""
_TABLE_BYTES = 2**29
"""Most memory for masses of regions that are computed beforehand."""


class LeafProbabilities(NamedTuple):
    """Probabilities of an ensemble's leaves, sparse: row i has the entries ``start[i]:start[i + 1]``.

    start : int64 array (n + 1,)
    leaf : int32 array (m,). Leaves of probability above 0, tree by tree.
    probability : float64 array (m,). Sum to 1 over the leaves of each tree. A row of probability 0 has no entries.
    """

    start: np.ndarray
    leaf: np.ndarray
    probability: np.ndarray


@record
class MatchedRows(NamedTuple):
    """n rows as the joint and as the ensemble see them.

    evidence : Evidence. Values and levels, no regions.
    X : float64 array (n, n_features)
    other : bool array (n, n_features). As `ensembles.evaluate.encode` gives them.
    """

    evidence: Evidence
    X: np.ndarray
    other: np.ndarray


def with_table(matched: MatchedEnsemble, most_bytes: int = _TABLE_BYTES) -> MatchedEnsemble:
    """The ensemble with the masses of as many numeric regions as fit into so many bytes computed in advance."""
    # This pays, at about 50 ns a region and leaf, where thousands of rows are answered; answers do not depend on it.
    n, model, regions = len(matched.model.leaves.log_weight), matched.model, matched.regions
    is_number = (regions.column >= 0) & (model.columns.is_categorical[regions.column] == 0)
    region = np.flatnonzero(is_number)[: most_bytes // (8 * n)].astype(np.int32)
    place = np.full(len(regions.column), -1, dtype=np.int32)
    place[region] = np.arange(len(region))
    table = np.empty((n, len(region)))
    evidence = Evidence.nothing(len(model.schema.columns))

    def work(first: int, stop: int) -> None:
        fill_region_masses(model.columns, model.leaves, evidence, regions, region, first, stop, table)

    list(map_ordered(work, chunks(n, 1024)))
    return replace(matched, masses=matched.masses._replace(table=table, place=place))


def expected(matched: MatchedEnsemble, rows: MatchedRows, tolerance: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """E[F | known cells] of the sums F before the link, and a certified error bound, both (n, K)."""
    # Proposition 1 of Khosravi et al., "Handling Missing Data in Decision Trees" (2020): the sum over leaves of value
    # times probability given the known cells; forests by linearity. NaN where the known cells have probability 0.
    n_outputs = matched.middle.shape[1]
    mean, error = np.empty((len(rows.X), n_outputs)), np.zeros((len(rows.X), n_outputs))
    complete = knows_splits(matched.features, rows)
    known_rows = np.flatnonzero(complete)
    mean[known_rows] = raw(matched.ensemble, rows.X[known_rows], rows.other[known_rows])
    part = np.flatnonzero(~complete)
    if not len(part):
        return mean, error
    few, place = distinct(take_matched(rows, part))
    of_few, bounds = np.empty((len(few.X), n_outputs)), np.empty((len(few.X), n_outputs))

    arrays = matched.arrays()

    def work(first: int, stop: int) -> None:
        post = chunk_posterior(matched.model, few.evidence, first, stop)
        expected_rows(arrays, few, first, post, float(tolerance), expectation_scratch(arrays), of_few, bounds)

    list(map_ordered(work, row_chunks(matched.model, few.evidence, _MEAN_ROWS)))
    mean[part], error[part] = (of_few + matched.ensemble.base)[place], bounds[place]
    return mean, error


def leaf_probability(matched: MatchedEnsemble, rows: MatchedRows) -> LeafProbabilities:
    """P(X in box of the leaf | known cells) of every leaf of every tree, exactly."""
    # every leaf counts, also beside one of the same value
    arrays = matched.arrays()._replace(half_most=np.ones(len(matched.half)))

    def work(first: int, stop: int) -> Any:
        post = chunk_posterior(matched.model, rows.evidence, first, stop)
        return leaf_probabilities(arrays, rows, first, post, expectation_scratch(arrays))

    parts = list(map_ordered(work, row_chunks(matched.model, rows.evidence, _MEAN_ROWS)))
    ends = np.cumsum([0] + [len(leaf) for _, leaf, _ in parts])
    starts = [start[1:] + end for (start, _, _), end in zip(parts, ends[:-1], strict=True)]
    return LeafProbabilities(
        np.concatenate([np.zeros(1, dtype=np.int64), *starts]),
        np.concatenate([leaf for _, leaf, _ in parts]),
        np.concatenate([probability for _, _, probability in parts]),
    )


def knows_splits(features: Features, rows: MatchedRows) -> np.ndarray:
    """Whether each row knows every feature that is split, bool (n,)."""
    split = split_features(features)
    return np.asarray((~np.isnan(rows.X[:, split]) | rows.other[:, split]).all(axis=1))


def take_matched(rows: MatchedRows, index: np.ndarray) -> MatchedRows:
    """The rows of these numbers."""
    return MatchedRows(
        rows.evidence.take(index), np.ascontiguousarray(rows.X[index]), np.ascontiguousarray(rows.other[index])
    )


def distinct(rows: MatchedRows) -> tuple[MatchedRows, np.ndarray | slice]:
    """Rows without repetition, and which of them each row is; see `data.evidence`."""
    d, f = rows.evidence.value.shape[1], rows.X.shape[1]
    both = np.ascontiguousarray(np.hstack([rows.evidence.value, rows.X, rows.other]))
    few, place = distinct_rows(rows.evidence._replace(value=both))
    if isinstance(place, slice):
        return rows, place
    value = few.value
    evidence = few._replace(value=np.ascontiguousarray(value[:, :d]))
    return MatchedRows(evidence, np.ascontiguousarray(value[:, d : d + f]), value[:, d + f :] != 0), place


# ---- Second moments of an ensemble, and expectations of its link, given the known cells of each row.

_LINKS = {"identity": IDENTITY, "logistic": LOGISTIC, "softmax": SOFTMAX, "exp": EXP}
_LINK_ROWS = 32
"""Rows of a chunk for a thread, where there is a link: a row takes longer than one of `_MEAN_ROWS`."""
_DRAWN = 100_000
"""Completed rows that a thread holds at a time."""
_MOST_CELLS = 4096
"""Combinations of cells up to which a row is answered by going through them: some 4 ms."""
_MOST_PAIRS = 4e6
"""Numbers up to which a row is answered by pairs of leaves: about what completions of it take."""


class _Moments(NamedTuple):
    """Moments of n rows' sums F before the link.

    mean : float64 array (n, K). E[F]
    second : float64 array (n, K, K). E[F F']
    is_exact : bool array (n,). False, with NaN: too many pairs of leaves. True, with NaN: evidence of probability 0.
    """

    mean: np.ndarray
    second: np.ndarray
    is_exact: np.ndarray


@record
class CellMoments(NamedTuple):
    """What `cell_rows` writes of n rows.

    linked : float64 array (n, K). E[link(F)]
    mean : float64 array (n, K)
    second : float64 array (n, K, K)
    n_combinations : int64 array (n,). -1 if there are too many, then the others are NaN.
    """

    linked: np.ndarray
    mean: np.ndarray
    second: np.ndarray
    n_combinations: np.ndarray


def by_cells(matched: MatchedEnsemble, rows: MatchedRows, most: int = _MOST_CELLS) -> tuple[np.ndarray, _Moments]:
    """E[link(F) | known cells] and moments of F, by all combinations of cells of the missing columns."""
    # The splits cut each column into cells, and F is constant in a combination of cells. So this is exact for any link.
    k, base = len(matched.ensemble.base), matched.ensemble.base

    def one(few: MatchedRows) -> tuple[np.ndarray, ...]:
        n, arrays, link = len(few.X), matched.arrays(), _LINKS[matched.ensemble.link]
        out = CellMoments(np.empty((n, k)), np.empty((n, k)), np.empty((n, k, k)), np.empty(n, dtype=np.int64))

        def work(first: int, stop: int) -> None:
            post = chunk_posterior(matched.model, few.evidence, first, stop)
            cell_rows(
                arrays, few, first, post, most, link, base, expectation_scratch(arrays), cell_scratch(arrays, most), out
            )

        list(map_ordered(work, row_chunks(matched.model, few.evidence, _LINK_ROWS)))
        return out.linked, out.mean, out.second, out.n_combinations >= 0

    linked, mean, second, is_exact = _incomplete(matched, rows, one)
    return linked, _Moments(mean, second, is_exact)


def by_pairs(matched: MatchedEnsemble, rows: MatchedRows, most: float = _MOST_PAIRS) -> _Moments:
    """Moments of F by pairs of leaves: Lemma 2 of Khosravi et al. (2020)."""
    # E[f g] of two trees is the sum over pairs of leaves of both values times P(in both leaves | known cells); within a
    # tree (Lemma 1) only a leaf and itself.
    base, value = matched.ensemble.base, matched.ensemble.value
    # every leaf counts, also beside one of its value
    arrays = matched.arrays()._replace(half_most=np.ones(len(matched.half)))

    def one(few: MatchedRows) -> tuple[np.ndarray, ...]:
        mean, second = np.empty((len(few.X), len(base))), np.empty((len(few.X), len(base), len(base)))

        def work(first: int, stop: int) -> np.ndarray:
            post = chunk_posterior(matched.model, few.evidence, first, stop)
            sums = PairSums(-1, 0, value, np.empty((0, 0)), np.empty(value.shape), np.empty(len(value)))
            scratch, narrow = expectation_scratch(arrays), np.empty((len(arrays.regions.column), STRIDE))
            return pair_moments(arrays, few, first, post, float(most), sums, scratch, narrow, mean, second)

        is_exact = np.concatenate(list(map_ordered(work, row_chunks(matched.model, few.evidence, _LINK_ROWS))))
        cross = mean[:, :, None] * base
        return mean, mean + base, second + cross + cross.transpose(0, 2, 1) + np.outer(base, base), is_exact

    _, mean, second, is_exact = _incomplete(matched, rows, one)
    return _Moments(mean, second, is_exact)


def completed_sums(matched: MatchedEnsemble, rows: MatchedRows, m: int, seed: int) -> np.ndarray:
    """F of m random completions of each row, float64 (n, m, K); NaN where the known cells have probability 0."""
    # Stratified by the joint's leaves, so that means have less variance than those of independent draws, and no bias.
    model = matched.model
    n, d = rows.evidence.value.shape
    k = len(matched.ensemble.base)
    out = np.empty((n, m, k))

    def work(first: int, stop: int) -> None:
        part = take_matched(rows, np.arange(first, stop))
        post = chunk_posterior(model, rows.evidence, first, stop)
        drawn = np.empty(((stop - first) * m, d))
        complete_stratified(model.columns, model.leaves, part.evidence, post, m, seed, first, drawn)
        X, other = filled(matched.features, np.repeat(part.X, m, axis=0), np.repeat(part.other, m, axis=0), drawn)
        total = raw_blocks(matched.ensemble, X, other, ~np.isnan(part.X) | part.other)
        total[np.isnan(drawn).all(axis=1)] = np.nan
        out[first:stop] = total.reshape(stop - first, m, k)

    list(map_ordered(work, row_chunks(model, rows.evidence, max(1, min(256, _DRAWN // m)))))
    return out


def _incomplete(
    matched: MatchedEnsemble, rows: MatchedRows, one: Callable[[MatchedRows], tuple[np.ndarray, ...]]
) -> tuple[np.ndarray, ...]:
    """Link, mean, second moments and exactness of all rows: plain ones of complete rows, by ``one`` of the others."""
    total = raw(matched.ensemble, rows.X, rows.other)
    answers = [
        apply_link(matched.ensemble.link, total),
        total,
        total[:, :, None] * total[:, None, :],
        np.ones(len(total), dtype=bool),
    ]
    part = np.flatnonzero(~knows_splits(matched.features, rows))
    if len(part):
        few, place = distinct(take_matched(rows, part))
        for answer, of_few in zip(answers, one(few), strict=True):
            answer[part] = of_few[place]
    return tuple(answers)


_METHODS = ("auto", "exact", "probit", "sample")
_EXACT_CELLS = 10**6
"""Most combinations of cells with ``method="exact"``: about a second for a row."""
_AT_ONCE = 4096
"""Rows at a time, which bounds memory."""
_DRAWS_OF_SPREAD = 8
"""How many times as many completions a spread takes as a mean: its relative error is about 1 / sqrt(2 m)."""


class Answered(NamedTuple):
    """Expected answers (n, K), and the standard error (n, K) of each: 0 where it is no mean over draws."""

    answer: np.ndarray
    error: np.ndarray


def expected_answer(
    matched: MatchedEnsemble,
    rows: MatchedRows,
    method: str = "auto",
    m: int = 128,
    seed: int = 0,
    tolerance: float = 0.0,
) -> Answered:
    """E[link(F) | known cells] by a method; NaN where the known cells have probability 0."""
    link = matched.ensemble.link
    check("method", method, _METHODS)
    if method == "probit" and link not in ("logistic", "identity"):
        raise ValueError(
            f"method='probit' is for the log-odds of two classes; the model's link is {link!r}: use 'auto'"
        )
    if link == "identity":
        return _sure(expected(matched, rows, tolerance)[0])
    if method == "probit":
        mean, variance = spread(matched, rows, m, seed)
        # MacKay, "The evidence framework applied to classification networks" (1992): a normal F, its tail a probit
        return _sure(apply_link(link, mean / np.sqrt(1.0 + np.pi / 8.0 * variance)))
    if method == "sample":
        return _by_completions(matched, rows, m, seed, tolerance)
    answer, moments = by_cells(matched, rows, _EXACT_CELLS if method == "exact" else _MOST_CELLS)
    many = np.flatnonzero(~moments.is_exact)
    if method == "exact" and len(many):
        raise ValueError(
            f"row {many[0]}: its missing columns are cut into more than {_EXACT_CELLS} combinations of cells; "
            "use method='auto'"
        )
    answered = _sure(answer)
    answered.answer[many], answered.error[many] = _by_completions(matched, take_matched(rows, many), m, seed, tolerance)
    return answered


def _sure(answer: np.ndarray) -> Answered:
    return Answered(answer, np.where(np.isnan(answer), np.nan, 0.0))


def spread(matched: MatchedEnsemble, rows: MatchedRows, m: int = 128, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of F over the completions of each row, (n, K); exact for few combinations, else by draws."""
    _, moments = by_cells(matched, rows, _MOST_CELLS)
    mean, variance = moments.mean, _variance(moments)
    many = np.flatnonzero(~moments.is_exact)
    if len(many):
        pairs = by_pairs(matched, take_matched(rows, many), _MOST_PAIRS)
        mean[many], variance[many] = pairs.mean, _variance(pairs)
        many = many[~pairs.is_exact]
    for first in range(0, len(many), _AT_ONCE // _DRAWS_OF_SPREAD):
        part = many[first : first + _AT_ONCE // _DRAWS_OF_SPREAD]
        mean[part] = expected(matched, take_matched(rows, part), 0.0)[0]
        total = completed_sums(matched, take_matched(rows, part), _DRAWS_OF_SPREAD * m, seed)
        variance[part] = ((total - mean[part][:, None]) ** 2).mean(axis=1)
    return mean, variance


def _variance(moments: _Moments) -> np.ndarray:
    variance: np.ndarray = np.maximum(np.einsum("nkk->nk", moments.second) - moments.mean**2, 0.0)
    return variance


def _by_completions(matched: MatchedEnsemble, rows: MatchedRows, m: int, seed: int, tolerance: float) -> Answered:
    """Mean of the link over completions, corrected by the exact mean of F."""
    # The regression estimator (a control variate): W. G. Cochran, "Sampling Techniques" (1977), chapter 7. The standard
    # error is that of plain draws; stratified ones with this correction do better.
    link = matched.ensemble.link
    out, error = np.empty((2, len(rows.X), len(matched.ensemble.base)))
    exact, _ = expected(matched, rows, tolerance)
    for first in range(0, len(out), _AT_ONCE):
        here = slice(first, first + _AT_ONCE)
        total = completed_sums(matched, take_matched(rows, np.arange(len(out))[here]), m, seed)
        answer = apply_link(link, total.reshape(-1, total.shape[2])).reshape(total.shape)
        mean = total.mean(axis=1)
        off = total - mean[:, None]
        variance, covariance = (off**2).mean(axis=1), (off * answer).mean(axis=1)
        varies = variance > 1e-20 * (1.0 + mean**2)  # more than rounding
        slope = np.divide(covariance, variance, out=np.zeros_like(variance), where=varies)
        error[here] = answer.std(axis=1) / np.sqrt(m - 1)
        corrected = answer.mean(axis=1) + slope * (exact[here] - mean)
        out[here] = np.clip(corrected, answer.min(axis=1), answer.max(axis=1))
    error[knows_splits(matched.features, rows)] = 0.0
    return Answered(out / out.sum(axis=1, keepdims=True) if link == "softmax" else out, error)


# ---- Expected answers of an ensemble under a joint of any parts: by cells of one missing column, else by draws.

_EXACT_OR_SAMPLE = ("auto", "exact", "sample")
_CELLS = 4096
"""Most cells that a missing column is summed over."""


class DrawnAnswers(NamedTuple):
    """Expected answers for n rows, and how well they are known.

    answer, answer_error : float64 array (n, K). E[link(F)], and its standard error: 0 where it is exact.
    mean, mean_error : float64 array (n, K). E[F] of the sums F before the link, and its standard error.
    variance : float64 array (n, K). Var[F]
    """

    answer: np.ndarray
    answer_error: np.ndarray
    mean: np.ndarray
    mean_error: np.ndarray
    variance: np.ndarray


def expected_by_draws(
    features: Features, model: Distribution, rows: MatchedRows, method: str, m: int, seed: int
) -> DrawnAnswers:
    """Expectations over completions: exact if at most one split column is missing, else means over m draws."""
    check("method", method, _EXACT_OR_SAMPLE)
    out = _own_answers(features, rows)
    part = np.flatnonzero(~knows_splits(features, rows))
    if not len(part):
        return out
    few, place = distinct(take_matched(rows, part))
    lacks = _lacking(features, few)
    alone = _only_missing_feature(features, lacks) if method != "sample" else np.full(len(lacks), -1)
    many = np.flatnonzero(alone < 0)
    if method == "exact" and len(many):
        first = int(part[np.flatnonzero(np.isin(np.arange(len(few.X))[place], many))[0]])
        raise ValueError(
            f"row {first} lacks several of the columns that the {features.ensemble.library} splits: for a joint that "
            "is not one forest only one is summed exactly; use method='auto'"
        )
    of_few = DrawnAnswers(*np.empty((5, len(few.X), out.mean.shape[1])))
    _sum_lone(of_few, features, model, few, alone)
    size = max(1, _DRAWN // m)
    for first in range(0, len(many), size):
        rows_here = many[first : first + size]
        own_seed = int(np.random.default_rng([seed, first]).integers(2**62))
        _put(of_few, rows_here, _mean_over_draws(features, model, take_matched(few, rows_here), m, own_seed))
    _put(out, part, DrawnAnswers(*(answers[place] for answers in of_few)))
    return out


def _sum_lone(out: DrawnAnswers, features: Features, model: Distribution, rows: MatchedRows, alone: np.ndarray) -> None:
    """Put the answers of rows that lack one feature alone, ``alone`` (n,), into their places; -1: not such a row."""
    for f in np.unique(alone[alone >= 0]).tolist():
        rows_here = np.flatnonzero(alone == f)
        _put(out, rows_here, _exact_by_cells(features, model, take_matched(rows, rows_here), f))


def needs_draws(features: Features, rows: MatchedRows) -> np.ndarray:
    """Rows whose expectations are means over draws, bool (n,): they lack several of the features that are split."""
    lacks = _lacking(features, rows)
    return lacks.any(axis=1) & (_only_missing_feature(features, lacks) < 0)


def expected_by_completions(
    features: Features, model: Distribution, rows: MatchedRows, completed: np.ndarray
) -> DrawnAnswers:
    """As `expected_by_draws`, over draws (n, m, d) that are there already, of the rows that need them."""
    out = _own_answers(features, rows)
    lacks = _lacking(features, rows)
    alone = _only_missing_feature(features, lacks)
    _sum_lone(out, features, model, rows, alone)
    many = np.flatnonzero(lacks.any(axis=1) & (alone < 0))
    if len(many):
        _put(out, many, _over(features, take_matched(rows, many), completed[many]))
    return out


def _put(out: DrawnAnswers, at: np.ndarray, answers_there: DrawnAnswers) -> None:
    for answers, new in zip(out, answers_there, strict=True):
        answers[at] = new


def _own_answers(features: Features, rows: MatchedRows) -> DrawnAnswers:
    """The ensemble's own answers."""
    total = raw(features.ensemble, rows.X, rows.other)
    nothing = np.zeros((3, *total.shape))
    return DrawnAnswers(apply_link(features.ensemble.link, total).copy(), nothing[0], total, nothing[1], nothing[2])


def _lacking(features: Features, rows: MatchedRows) -> np.ndarray:
    """Which of the features that are split each row lacks, bool (n, n_features)."""
    split = np.zeros(rows.X.shape[1], bool)
    split[split_features(features)] = True
    return np.isnan(rows.X) & ~rows.other & split


def _only_missing_feature(features: Features, lacks: np.ndarray) -> np.ndarray:
    """The only feature that a row lacks, if its cells are few enough to be summed; -1 otherwise, (n,)."""
    few = np.array([len(_cells(features, f)[1]) <= _CELLS for f in range(lacks.shape[1])])
    feature = lacks.argmax(axis=1)
    return np.where((lacks.sum(axis=1) == 1) & few[feature], feature, -1)


def _cells(features: Features, f: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges (c - 1,) between the cells into which splits cut feature f's column, and a value in each cell (c,)."""
    # Of a column of levels there are no edges, and each level is a cell.
    ensemble, columns = features.ensemble, features.columns
    j = int(features.column[f])
    slot = columns.slot[j]
    if columns.is_categorical[j]:
        return np.empty(0), np.arange(columns.n_levels(slot), dtype=np.float64)
    step, threshold = float(columns.step[slot]), np.unique(ensemble.threshold[ensemble.feature == f])
    edges = cell_edges(threshold, step, float(columns.origin[slot])) if step > 0.0 else threshold
    is_finite = np.isfinite(edges)
    edges, first = np.unique(edges[is_finite], return_index=True)
    if not len(edges):
        return edges, np.zeros(1)
    # a threshold's own value goes left, as does the cell below its edge; the last cell is beyond all thresholds
    value = threshold[is_finite]
    return edges, np.append(value[first], np.nextafter(value[-1], np.inf))


def _exact_by_cells(features: Features, model: Distribution, rows: MatchedRows, f: int) -> DrawnAnswers:
    """Exact answers for rows that lack feature f alone."""
    j = int(features.column[f])
    edges, value = _cells(features, f)
    if features.columns.is_categorical[j]:
        mass = model.observe(rows.evidence).level_probabilities(j)
    else:
        below = np.hstack([np.zeros((len(rows.X), 1)), model.observe(rows.evidence).cdf(j, edges)])
        mass = np.diff(below, axis=1, append=1.0)
    out = DrawnAnswers(*np.empty((5, len(rows.X), len(features.ensemble.base))))
    size = max(1, _DRAWN // len(value))
    for first in range(0, len(mass), size):
        here = slice(first, first + size)
        cells = np.full((len(mass[here]), len(value), rows.evidence.value.shape[1]), np.nan)
        cells[:, :, j] = value
        total = _totals(features, take_matched(rows, np.arange(len(mass))[here]), cells)
        _put(out, np.arange(len(mass))[here], _weighed_answers(features, total, mass[here][:, :, None], exact=True))
    return out


def _mean_over_draws(features: Features, model: Distribution, rows: MatchedRows, m: int, seed: int) -> DrawnAnswers:
    """Means over m draws for each row, and their standard errors."""
    n, d = rows.evidence.value.shape
    return _over(features, rows, sample(model, rows.evidence, m, seed, False).reshape(n, m, d))


def _over(features: Features, rows: MatchedRows, completed: np.ndarray) -> DrawnAnswers:
    """Means over m draws for each row, ``completed`` (n, m, d), and their standard errors."""
    n, m, _ = completed.shape
    total = _totals(features, rows, completed)
    total[np.isnan(completed).all(axis=2)] = np.nan
    return _weighed_answers(features, total, np.full((n, m, 1), 1.0 / m), exact=False)


def _totals(features: Features, rows: MatchedRows, cells: np.ndarray) -> np.ndarray:
    """F of each row with its missing cells from each of c rows, ``cells`` (n, c, d): (n, c, K)."""
    n, c, d = cells.shape
    X, other = filled(features, np.repeat(rows.X, c, axis=0), np.repeat(rows.other, c, axis=0), cells.reshape(-1, d))
    return raw(features.ensemble, X, other).reshape(n, c, -1)


def _weighed_answers(features: Features, total: np.ndarray, weight: np.ndarray, exact: bool) -> DrawnAnswers:
    """Drawn from F (n, c, K) and weights (n, c, 1) that sum to 1 for each row."""
    answer = apply_link(features.ensemble.link, total.reshape(-1, total.shape[2])).reshape(total.shape)
    mean, expected = (weight * total).sum(axis=1), (weight * answer).sum(axis=1)
    variance = (weight * (total - mean[:, None]) ** 2).sum(axis=1)
    if exact:
        nothing = np.where(np.isnan(mean), np.nan, 0.0)
        return DrawnAnswers(expected, nothing, mean, nothing, variance)
    spread = (weight * (answer - expected[:, None]) ** 2).sum(axis=1)
    m = total.shape[1]
    return DrawnAnswers(
        expected, np.sqrt(spread / (m - 1)), mean, np.sqrt(variance / (m - 1)), variance * (m / (m - 1))
    )
