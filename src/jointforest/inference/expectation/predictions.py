"""Expected answers of an ensemble, link included, and their spread: by cells, by pairs of leaves, by completions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...integrations.ensembles.evaluate import apply_link, raw, raw_blocks
from ...models.box_forest.posterior import chunk_posterior, row_chunks, shared_posterior
from ...runtime.parameters import check
from ...runtime.records import record
from ...runtime.threads import map_ordered
from .cell_kernels import EXP, IDENTITY, LOGISTIC, SOFTMAX, cell_rows, complete_rows
from .component_kernels import STRIDE
from .expectation import Rows, distinct, expected, knows_splits, take
from .match import MatchedEnsemble, filled
from .pair_kernels import pair_rows
from .scratch import cell_scratch, row_scratch

# ---- Second moments of an ensemble, and expectations of its link, given the known cells of each row.

_LINKS = {"identity": IDENTITY, "logistic": LOGISTIC, "softmax": SOFTMAX, "exp": EXP}
_ROWS = 32
_DRAWN = 100_000
MOST_CELLS = 4096
"""Combinations of cells up to which a row is answered by going through them: some 4 ms."""
MOST_PAIRS = 4e6
"""Numbers up to which a row is answered by pairs of leaves: about what completions of it take."""


@record
class Moments(NamedTuple):
    """Moments of n rows' sums F before the link.

    Attributes
    ----------
    mean : float64 array (n, K)
        E[F]
    second : float64 array (n, K, K)
        E[F F']
    is_exact : bool array (n,)
        Where False, both are NaN: too many pairs of leaves. NaN and True: the known cells have probability 0.
    """

    mean: np.ndarray
    second: np.ndarray
    is_exact: np.ndarray


@record
class CellMoments(NamedTuple):
    """What `cell_rows` writes of n rows.

    Attributes
    ----------
    linked : float64 array (n, K)
        E[link(F)]
    mean : float64 array (n, K)
    second : float64 array (n, K, K)
    n_combinations : int64 array (n,)
        -1 if there are too many, then the others are NaN.
    """

    linked: np.ndarray
    mean: np.ndarray
    second: np.ndarray
    n_combinations: np.ndarray


def by_cells(
    matched: MatchedEnsemble, rows: Rows, most: int = MOST_CELLS, n_jobs: int | None = -1
) -> tuple[np.ndarray, Moments]:
    """E[link(F) | known cells] and moments of F, by all combinations of cells of the missing columns.

    The ensemble's splits cut each column into cells (levels that no split tells apart are one); in a combination of
    them F is constant. So this is exact for any link and any joint, but there are products of the numbers of cells.
    """
    k, base = len(matched.ensemble.base), matched.ensemble.base

    def one(few: Rows) -> tuple[np.ndarray, ...]:
        n, arrays, link = len(few.X), matched.arrays(), _LINKS[matched.ensemble.link]
        out = CellMoments(np.empty((n, k)), np.empty((n, k)), np.empty((n, k, k)), np.empty(n, dtype=np.int64))

        def work(first: int, stop: int) -> None:
            post = chunk_posterior(matched.model, few.evidence, first, stop)
            cell_rows(arrays, few, first, post, most, link, base, row_scratch(arrays), cell_scratch(arrays, most), out)

        list(map_ordered(work, row_chunks(matched.model, few.evidence, _ROWS), n_jobs))
        return out.linked, out.mean, out.second, out.n_combinations >= 0

    linked, mean, second, is_exact = _incomplete(matched, rows, one, n_jobs)
    return linked, Moments(mean, second, is_exact)


def by_pairs(matched: MatchedEnsemble, rows: Rows, most: float = MOST_PAIRS, n_jobs: int | None = -1) -> Moments:
    """Moments of F by pairs of leaves: Lemma 2 of Khosravi and others.

    E[f g] of two trees is the sum over pairs of their leaves of both values times P(in both leaves | known cells);
    within a tree (Lemma 1) only a leaf and itself ("Handling Missing Data in Decision Trees", 2020). To have E[f g] of
    two ensembles, join them to one with two outputs.
    """
    base = matched.ensemble.base

    def one(few: Rows) -> tuple[np.ndarray, ...]:
        n, k, arrays = len(few.X), len(base), matched.arrays()
        out = Moments(np.empty((n, k)), np.empty((n, k, k)), np.empty(n, dtype=bool))

        def work(first: int, stop: int) -> None:
            post = chunk_posterior(matched.model, few.evidence, first, stop)
            narrow = np.empty((len(arrays.regions.column), STRIDE))
            pair_rows(arrays, few, first, post, float(most), row_scratch(arrays), narrow, np.empty(k), out)

        list(map_ordered(work, row_chunks(matched.model, few.evidence, _ROWS), n_jobs))
        cross = out.mean[:, :, None] * base
        out.second[:] += cross + cross.transpose(0, 2, 1) + np.outer(base, base)
        return out.mean, out.mean + base, out.second, out.is_exact  # the first is not read

    _, mean, second, is_exact = _incomplete(matched, rows, one, n_jobs)
    return Moments(mean, second, is_exact)


def completed(matched: MatchedEnsemble, rows: Rows, m: int, seed: int, n_jobs: int | None = -1) -> np.ndarray:
    """F of m random completions of each row, float64 (n, m, K); NaN where the known cells have probability 0.

    Stratified: among a row's completions, those from each leaf of the joint are as many as its posterior weight says,
    but for less than one. So means over completions have less variance than those of independent draws, and no bias.
    """
    model = matched.model
    n, d = rows.evidence.value.shape
    k = len(matched.ensemble.base)
    out = np.empty((n, m, k))

    def work(first: int, stop: int) -> None:
        part = take(rows, np.arange(first, stop))
        post = shared_posterior(model, part.evidence)
        drawn = np.empty(((stop - first) * m, d))
        complete_rows(model.columns, model.leaves, part.evidence, post, m, seed, first, drawn)
        X, other = filled(matched.features, np.repeat(part.X, m, axis=0), np.repeat(part.other, m, axis=0), drawn)
        total = raw_blocks(matched.ensemble, X, other, ~np.isnan(part.X) | part.other)
        total[np.isnan(drawn).all(axis=1)] = np.nan
        out[first:stop] = total.reshape(stop - first, m, k)

    list(map_ordered(work, row_chunks(model, rows.evidence, max(1, min(256, _DRAWN // m))), n_jobs))
    return out


def _incomplete(
    matched: MatchedEnsemble, rows: Rows, one: Callable[[Rows], tuple[np.ndarray, ...]], n_jobs: int | None
) -> tuple[np.ndarray, ...]:
    """Link, mean, second moments and exactness of all rows: plain ones of complete rows, by ``one`` of the others."""
    total = raw(matched.ensemble, rows.X, rows.other, n_jobs)
    answers = [
        apply_link(matched.ensemble.link, total),
        total,
        total[:, :, None] * total[:, None, :],
        np.ones(len(total), dtype=bool),
    ]
    part = np.flatnonzero(~knows_splits(matched.features, rows))
    if len(part):
        few, place = distinct(take(rows, part))
        for answer, found in zip(answers, one(few), strict=True):
            answer[part] = found[place]
    return tuple(answers)


METHODS = ("auto", "exact", "probit", "sample")
_EXACT_CELLS = 10**6
_AT_ONCE = 4096
_DRAWS_OF_SPREAD = 8
"""How many times as many completions a spread takes as a mean: its relative error is about 1 / sqrt(2 m)."""


class Answered(NamedTuple):
    """Expected answers (n, K), and the standard error (n, K) of each: 0 where it is no mean over draws."""

    answer: np.ndarray
    error: np.ndarray


def expected_answer(
    matched: MatchedEnsemble,
    rows: Rows,
    method: str = "auto",
    m: int = 128,
    seed: int = 0,
    tolerance: float = 0.0,
    n_jobs: int | None = -1,
) -> Answered:
    """E[link(F) | known cells]; NaN where the joint gives the known cells probability 0.

    With an identity link it is E[F] itself, whatever the method. An unknown method, "probit" with another link, and
    "exact" of a row with more than a million combinations of cells are ValueErrors.
    """
    link = matched.ensemble.link
    check("method", method, METHODS)
    if method == "probit" and link not in ("logistic", "identity"):
        raise ValueError(
            f"method='probit' is for the log-odds of two classes; the model's link is {link!r}: use 'auto'"
        )
    if link == "identity":
        return _sure(expected(matched, rows, tolerance, n_jobs)[0])
    if method == "probit":
        mean, variance = spread(matched, rows, m, seed, n_jobs)
        # MacKay, "The evidence framework applied to classification networks" (1992): a normal F, its tail a probit
        return _sure(apply_link(link, mean / np.sqrt(1.0 + np.pi / 8.0 * variance)))
    if method == "sample":
        return _by_completions(matched, rows, m, seed, tolerance, n_jobs)
    answer, moments = by_cells(matched, rows, _EXACT_CELLS if method == "exact" else MOST_CELLS, n_jobs)
    many = np.flatnonzero(~moments.is_exact)
    if method == "exact" and len(many):
        raise ValueError(
            f"row {many[0]}: its missing columns are cut into more than {_EXACT_CELLS} combinations of cells; "
            "use method='auto'"
        )
    found = _sure(answer)
    found.answer[many], found.error[many] = _by_completions(matched, take(rows, many), m, seed, tolerance, n_jobs)
    return found


def _sure(answer: np.ndarray) -> Answered:
    return Answered(answer, np.where(np.isnan(answer), np.nan, 0.0))


def spread(
    matched: MatchedEnsemble, rows: Rows, m: int = 128, seed: int = 0, n_jobs: int | None = -1
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of F over the completions of each row, both (n, K).

    Exact where a row has few combinations of cells, or few pairs of leaves (`second_moments`); else the variance
    is that of ``8 m`` completions around the exact mean.
    """
    _, moments = by_cells(matched, rows, MOST_CELLS, n_jobs)
    mean, variance = moments.mean, _variance(moments)
    many = np.flatnonzero(~moments.is_exact)
    if len(many):
        pairs = by_pairs(matched, take(rows, many), MOST_PAIRS, n_jobs)
        mean[many], variance[many] = pairs.mean, _variance(pairs)
        many = many[~pairs.is_exact]
    for first in range(0, len(many), _AT_ONCE // _DRAWS_OF_SPREAD):
        part = many[first : first + _AT_ONCE // _DRAWS_OF_SPREAD]
        mean[part] = expected(matched, take(rows, part), 0.0, n_jobs)[0]
        total = completed(matched, take(rows, part), _DRAWS_OF_SPREAD * m, seed, n_jobs)
        variance[part] = ((total - mean[part][:, None]) ** 2).mean(axis=1)
    return mean, variance


def _variance(moments: Moments) -> np.ndarray:
    variance: np.ndarray = np.maximum(np.einsum("nkk->nk", moments.second) - moments.mean**2, 0.0)
    return variance


def _by_completions(
    matched: MatchedEnsemble, rows: Rows, m: int, seed: int, tolerance: float, n_jobs: int | None
) -> Answered:
    """Mean of the link over completions, corrected by how far the completions' mean of F is from the exact one.

    The regression estimator (a control variate): W. G. Cochran, "Sampling Techniques" (1977), chapter 7. The
    standard error is that of plain draws; stratified ones with this correction do better.
    """
    link = matched.ensemble.link
    out, error = np.empty((2, len(rows.X), len(matched.ensemble.base)))
    exact, _ = expected(matched, rows, tolerance, n_jobs)
    for first in range(0, len(out), _AT_ONCE):
        here = slice(first, first + _AT_ONCE)
        total = completed(matched, take(rows, np.arange(len(out))[here]), m, seed, n_jobs)
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
