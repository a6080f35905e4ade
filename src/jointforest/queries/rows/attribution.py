"""Which cells make a row unlikely: log p(cell | the other cells)."""

from __future__ import annotations

import numpy as np

from ...model.model import Model
from ...table.evidence import Evidence
from ..posterior.density import log_density


def attribution(model: Model, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Log-probability of each known cell, given everything else that is known of its row.

    By the chain rule log p(x_j | x_others) = log p(x_o) - log p(x_o without j), both exact; one pass over the rows for
    each column.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        n rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (n, d)
        Measured as in `density.log_density`; NaN where nothing is known of the cell, and where the rest of the row has
        probability 0.
    """
    n, d = evidence.value.shape
    known = ~np.isnan(evidence.value) | (evidence.cell_regions() >= 0)
    whole = log_density(model, evidence, n_jobs)
    out = np.full((n, d), np.nan)
    for j in range(d):
        rows = np.flatnonzero(known[:, j])
        rest = log_density(model, evidence.take(rows).without(j), n_jobs)
        with np.errstate(invalid="ignore"):  # -inf - -inf
            out[rows, j] = whole[rows] - rest
    return out
