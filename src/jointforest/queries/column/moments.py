"""Means and variances of numeric columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...forest.column import moments as forest_moments
from ...model.model import Model
from ...table.evidence import Evidence
from ..posterior.mixing import shares, weighted
from .sorts import need_numbers


def mean_variance(
    model: Model,
    evidence: Evidence,
    j: int,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    known: tuple[Any, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and variance of a numeric column, given each row of evidence.

    The parts' means mix by their shares s_k, and the variance is ``sum_k s_k (v_k + (m_k - mean)^2)``.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        n rows. A cell with a value has it (on a grid its cell's centre) as mean, and variance 0.
    j : int
        Number of a numeric column.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    beta : float
        How the trees of a forest are weighed, see `forest.posterior.posterior.chunk_posterior`; 1 is the joint itself.
    known : tuple, optional
        `WeighedEvidence.known` of this evidence.

    Returns
    -------
    mean, variance : float64 arrays (n,)
        In the column's units and their square (date-times: seconds); NaN where the evidence has probability 0. Grids
        count with their cell centres, so no variance within a cell is added.

    Raises
    ------
    ValueError
        If column j is not numeric, or ``beta`` is not 1 and the model is no single forest.
    """
    need_numbers(model.schema, j)
    if beta != 1.0:
        return forest_moments.mean_variance(model.forest_for("weighing trees by beta"), evidence, j, n_jobs, beta)
    each = [part.mean_variance(evidence, j, n_jobs, known and known[k]) for k, part in enumerate(model.parts)]
    if len(each) == 1:
        return each[0]
    share = shares(model, evidence, n_jobs)
    mean = weighted(share, [m for m, _ in each])
    return mean, weighted(share, [v + (m - mean) ** 2 for m, v in each])
