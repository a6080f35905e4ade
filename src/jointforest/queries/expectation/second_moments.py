"""Second moments of an ensemble, and expectations of its link, given the known cells of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...ensembles.evaluate import apply_link, raw, raw_blocks
from ...forest.posterior.posterior import chunk_posterior, row_chunks
from ...forest.posterior.shared import shared_posterior
from ...ground.records import record
from ...ground.threads import map_ordered
from .active_kernels import STRIDE
from .cell_kernels import EXP, IDENTITY, LOGISTIC, SOFTMAX, cell_rows
from .completion_kernels import complete_rows
from .expectation import Rows, distinct, knows_splits, take
from .features import filled
from .match import MatchedEnsemble
from .pair_kernels import pair_rows
from .scratch import cell_scratch, row_scratch

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

    Parameters
    ----------
    matched : MatchedEnsemble
    rows : Rows
        n rows.
    most : int
        Rows with more combinations are not answered.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    linked : float64 array (n, K)
        NaN where it is not answered.
    moments : Moments
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

    Parameters
    ----------
    matched, rows, n_jobs
        As of `by_cells`.
    most : float
        Rows that take more steps (pairs of leaves times components of the joint) are not answered, nor are those that
        meet leaves of the joint whose columns depend on each other (circuits).

    Returns
    -------
    Moments
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

    Parameters
    ----------
    matched : MatchedEnsemble
    rows : Rows
        n rows.
    m : int
    seed : int
        Not negative; the same seed gives the same completions, whatever the other rows' cells are.
    n_jobs : int or None
        Threads; the answer does not depend on it.
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
