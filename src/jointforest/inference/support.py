"""What an answer rests on: how many training rows evidence stands for, and the standard errors that follow.

With n training rows, the evidence e stands for N = n P(e) rows. A value of a column with a density has probability 0.
It counts as an event of probability `NEIGHBOURHOOD` in the column alone, so that

    N = n p(e) prod_j NEIGHBOURHOOD / p_j(e_j),   j over the columns with a density whose value is known.

The standard errors are those of a share and a mean of N independent rows. They assume that the model is right and that
its answer uses only the rows that the evidence stands for. A model that shares rows between answers varies less.
"""

from __future__ import annotations

import numpy as np

from ..data.evidence import Evidence
from ..models.base import Distribution

NEIGHBOURHOOD = 0.05
"""Probability of the neighbourhood in its column that a value with a density stands for."""
FEW = 5.0
"""Answers that rest on fewer rows than this are extrapolated."""


def rows_like(
    model: Distribution, evidence: Evidence, log_probability: np.ndarray, n_jobs: int | None = -1
) -> np.ndarray:
    """Number of training rows that each row of evidence stands for, (n,); NaN if the model does not know its rows.

    ``log_probability`` (n,) is that of the evidence, with the cells that are said to be missing.
    """
    n_rows, n = model.schema.n_rows, len(evidence.value)
    if n_rows == 0.0:
        return np.full(n, np.nan)
    log_share = log_probability
    for j, column in enumerate(model.schema.columns):
        known = ~np.isnan(evidence.value[:, j])
        if column.is_categorical or not known.any():
            continue
        if column.step > 0.0:
            # log_probability holds the density of the cell's mass
            log_share = log_share + np.where(known, np.log(column.step), 0.0)
            continue
        is_dense = known & ~np.isin(evidence.value[:, j], column.atoms)
        alone = model.log_density(_column_alone(evidence, j), n_jobs)
        log_share = log_share + np.where(is_dense, np.log(NEIGHBOURHOOD) - alone, 0.0)
    return np.asarray(n_rows * np.exp(np.minimum(log_share, 0.0)))


def _column_alone(evidence: Evidence, j: int) -> Evidence:
    """The known values of column j, and nothing else."""
    value = np.full_like(evidence.value, np.nan)
    value[:, j] = evidence.value[:, j]
    region = np.full_like(evidence.region, -1) if evidence.region.size else evidence.region
    return evidence._replace(value=value, region=region, log_penalty=np.zeros_like(evidence.log_penalty))


def share_error(share: np.ndarray, n_rows: np.ndarray) -> np.ndarray:
    """Standard error of probabilities that rest on so many rows; at most one half."""
    # as if half a row more had been seen of either outcome: shares of 0 and 1 are uncertain, too
    shrunk = (share * n_rows + 0.5) / (n_rows + 1.0)
    return np.asarray(np.minimum(np.sqrt(shrunk * (1.0 - shrunk) / np.maximum(n_rows, 1e-300)), 0.5))


def mean_error(variance: np.ndarray, n_rows: np.ndarray) -> np.ndarray:
    """Standard error of means of columns with this variance; of fewer than one row that of one."""
    return np.asarray(np.sqrt(variance / np.maximum(n_rows, 1.0)))


def in_words(n_rows: float, n_table: float) -> str:
    """How many rows an answer rests on, as a person says it; empty if it is not known."""
    if np.isnan(n_rows) or n_table == 0.0:
        return ""
    if n_rows < FEW:
        return f"extrapolated: fewer than {FEW:.0f} of {n_table:,.0f} rows are like this"
    digits = 10.0 ** max(int(np.floor(np.log10(n_rows))) - 2, 0)
    return f"about {round(n_rows / digits) * digits:,.0f} of {n_table:,.0f} rows"
