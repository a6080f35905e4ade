"""Draws of whole rows, given evidence; no rejection."""

from __future__ import annotations

import numpy as np

from ...model.model import Model
from ...table.evidence import Evidence
from ..posterior.mixing import shares


def sample(
    model: Model, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """Draw m rows for each row of evidence: a part by how well the evidence fits it, then a row of that part.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        n rows. Cells with a value keep it.
    m : int
        Draws for each row.
    seed : int
        Not negative; the answer depends on it alone.
    missing : bool
        Blank cells of which nothing is known as often as they were missing at learning.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (n * m, d)
        The draws of a row are contiguous; all NaN where the evidence has probability 0.
    """
    if len(model.parts) == 1:
        return model.parts[0].sample(evidence, m, seed, missing, n_jobs)
    n, d = evidence.value.shape
    out = np.full((n * m, d), np.nan)
    last = np.cumsum(shares(model, evidence, n_jobs), axis=1)
    chosen = (np.random.default_rng(seed).random((n, m, 1)) >= last[:, None, :-1]).sum(axis=2).ravel()
    chosen[np.repeat(np.isnan(last[:, 0]), m)] = -1
    for k, part in enumerate(model.parts):
        mine = np.flatnonzero(chosen == k)
        out[mine] = part.sample(evidence.take(mine // max(m, 1)), 1, seed + k + 1, missing, n_jobs)
    return out
