"""Expected answers of an ensemble, link included, and their spread: by cells, by pairs of leaves, by completions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ensembles.evaluate import apply_link
from ...ground.checks import check
from .expectation import Rows, expected, knows_splits, take
from .match import MatchedEnsemble
from .second_moments import MOST_CELLS, MOST_PAIRS, Moments, by_cells, by_pairs, completed

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
    """E[link(F) | known cells].

    With an identity link it is E[F] itself, whatever the method.

    Parameters
    ----------
    matched : MatchedEnsemble
    rows : Rows
        n rows.
    method : {"auto", "exact", "probit", "sample"}
        "exact": by all combinations of cells. "probit", of a logistic link: by mean and variance of F. "sample": by
        ``m`` completions. "auto": exact where there are few combinations, else by completions.
    m : int
        Completions of each row.
    seed : int
        Of these.
    tolerance : float
        Of E[F], see `expectation.expected`.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    Answered
        NaN where the joint gives the known cells probability 0.

    Raises
    ------
    ValueError
        An unknown method; "probit" with another link; "exact" if a row has more than a million combinations of cells.
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
    """Mean and variance of F over the completions of each row.

    Exact where a row has few combinations of cells, or few pairs of leaves (`second_moments`); else the variance
    is that of ``8 m`` completions around the exact mean.

    Parameters
    ----------
    matched, rows, m, seed, n_jobs
        As of `expected_answer`.

    Returns
    -------
    mean, variance : float64 arrays (n, K)
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
