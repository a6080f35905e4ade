"""Probabilities of the levels of categorical columns."""

from __future__ import annotations

import numpy as np

from ...table.evidence import Evidence
from ..forest import Forest
from ..posterior.posterior import LeafPosterior, OneRow, by_chunks
from .level_kernels import level_rows


def level_probability(
    forest: Forest,
    evidence: Evidence,
    j: int,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    known: OneRow | None = None,
) -> np.ndarray:
    """Posterior probability of each level of a categorical column, given each row of evidence.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        n rows. A cell with a value gives that level probability 1; a region leaves 0 to the levels outside it.
    j : int
        Number of a categorical column with K levels.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    beta : float
        How trees are weighed, see `posterior.chunk_posterior`.
    known : OneRow, optional
        The evidence, if it was weighed before.

    Returns
    -------
    float64 array (n, K)
        Rows sum to 1; NaN where the evidence has probability 0.

    Raises
    ------
    ValueError
        If column j is not categorical.
    """
    if not forest.columns.is_categorical[j]:
        column = forest.schema.columns[j]
        raise ValueError(f"column {column.name!r} is {column.kind}: it has no levels; ask for mean, cdf or quantile")

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        # sums of many weights may end a rounding error above 1
        return np.minimum(level_rows(forest.columns, forest.leaves, rows, j, post, first), 1.0)

    return by_chunks(forest, evidence, read, n_jobs, j, beta, known)
