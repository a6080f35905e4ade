"""Probabilities of the levels of categorical columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...forest.column import levels as forest_levels
from ...model.model import Model
from ...table.evidence import Evidence
from ..posterior.mixing import mixed
from .sorts import need_levels


def level_probability(
    model: Model,
    evidence: Evidence,
    j: int,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    known: tuple[Any, ...] | None = None,
) -> np.ndarray:
    """Posterior probability of each level of a categorical column, given each row of evidence.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        n rows. A cell with a value gives that level probability 1; a region leaves 0 to the levels outside it.
    j : int
        Number of a categorical column with K levels.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    beta : float
        How the trees of a forest are weighed, see `forest.posterior.posterior.chunk_posterior`; 1 is the joint itself.
    known : tuple, optional
        `WeighedEvidence.known` of this evidence.

    Returns
    -------
    float64 array (n, K)
        Rows sum to 1; NaN where the evidence has probability 0.

    Raises
    ------
    ValueError
        If column j is not categorical, or ``beta`` is not 1 and the model is no single forest.
    """
    need_levels(model.schema, j)
    if beta != 1.0:
        return forest_levels.level_probability(model.forest_for("weighing trees by beta"), evidence, j, n_jobs, beta)
    return mixed(model, evidence, lambda part, k: part.level_probability(evidence, j, n_jobs, k), n_jobs, known)
