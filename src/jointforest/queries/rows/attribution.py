"""Which cells make a row unlikely: log p(cell | the other cells)."""

from __future__ import annotations

import numpy as np

from ...hidden.leave_one_out import log_density_without
from ...hidden.part import HiddenPart
from ...model.model import Model
from ...model.part import Part
from ...table.evidence import Evidence


def attribution(model: Model, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Log-probability of each known cell, given everything else that is known of its row.

    By the chain rule log p(x_j | x_others) = log p(x_o) - log p(x_o without j), both exact: in hidden trees by one pass
    up and one down for all columns, in other parts by one pass over the rows for each column.

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
    known = ~np.isnan(evidence.value) | (evidence.cell_regions() >= 0)
    whole = np.logaddexp.reduce(
        [part.log_density(evidence, n_jobs) + w for part, w in zip(model.parts, model.log_weight, strict=True)], axis=0
    )
    rest = np.logaddexp.reduce(
        [_without(part, evidence, known, n_jobs) + w for part, w in zip(model.parts, model.log_weight, strict=True)],
        axis=0,
    )
    with np.errstate(invalid="ignore"):  # -inf - -inf
        return np.where(known, whole[:, None] - rest, np.nan)


def _without(part: Part, evidence: Evidence, known: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """log p(evidence without column j) of each row and column, (n, d); 0 where nothing is known of the cell."""
    if isinstance(part, HiddenPart):
        return log_density_without(part.hidden, evidence, n_jobs)
    out = np.zeros(known.shape)
    for j in range(known.shape[1]):
        rows = np.flatnonzero(known[:, j])
        out[rows, j] = part.log_density(evidence.take(rows).without(j), n_jobs)
    return out
