"""Expected answers of an ensemble under one forest as means over completions: many coalitions in little time."""

from __future__ import annotations

import numpy as np

from ...ensembles.evaluate import apply_link, raw
from ..expectation.expectation import Rows, knows_splits, take
from ..expectation.match import MatchedEnsemble
from ..expectation.second_moments import completed

_DRAWN = 200_000
"""Completions at once."""


def by_completions(
    matched: MatchedEnsemble, rows: Rows, m: int, seed: int, link: str, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Means over m stratified completions of each row and their standard errors, each (n, K).

    Rows that know all that is split have the ensemble's own answers. The errors are those of neighbouring strata
    taken together two by two.

    Parameters
    ----------
    matched : MatchedEnsemble
    rows : Rows
    m : int
        At least 2; odd ones are made even.
    seed : int
    link : str
        What becomes of the sums before the mean is taken, as `Ensemble.link`.
    n_jobs : int or None

    Notes
    -----
    Errors: W. G. Cochran, "Sampling Techniques" (1977), section 5A.12 (collapsed strata): rather
    too large than too small.
    """
    m += m % 2
    mean, error = np.zeros((2, len(rows.X), len(matched.ensemble.base)))
    complete = knows_splits(matched.features, rows)
    whole = np.flatnonzero(complete)
    mean[whole] = apply_link(link, raw(matched.ensemble, rows.X[whole], rows.other[whole], n_jobs))
    part, size = np.flatnonzero(~complete), max(1, _DRAWN // m)
    for block, first in enumerate(range(0, len(part), size)):
        mine = part[first : first + size]
        own = int(np.random.SeedSequence([seed, block]).generate_state(1, np.uint64)[0] >> 2)
        total = completed(matched, take(rows, mine), m, own, n_jobs)
        answer = apply_link(link, total.reshape(-1, total.shape[2])).reshape(total.shape)
        mean[mine] = answer.mean(axis=1)
        error[mine] = np.sqrt(((answer[:, 0::2] - answer[:, 1::2]) ** 2).sum(axis=1)) / m
    return mean, error
