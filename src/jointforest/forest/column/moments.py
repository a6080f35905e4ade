"""Means and variances of numeric columns."""

from __future__ import annotations

import numpy as np

from ...ground.threads import chunks, map_ordered
from ...table.evidence import Evidence
from ..forest import Forest
from ..posterior.posterior import LeafPosterior, OneRow, by_chunks
from .moment_kernels import leaf_moments, mean_variance_rows

_FEW_ROWS = 8


def mean_variance(
    forest: Forest,
    evidence: Evidence,
    j: int,
    n_jobs: int | None = -1,
    beta: float = 1.0,
    known: OneRow | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and variance of a numeric column, given each row of evidence.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        n rows. A cell with a value has it (on a grid its cell's centre) as mean, and variance 0.
    j : int
        Number of a numeric column.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    beta : float
        How trees are weighed, see `posterior.chunk_posterior`.
    known : OneRow, optional
        The evidence, if it was weighed before.

    Returns
    -------
    mean, variance : float64 arrays (n,)
        In the column's units and their square (date-times: seconds); NaN where the evidence has probability 0. Grids
        count with their cell centres, so no variance within a cell is added.

    Raises
    ------
    ValueError
        If column j is not numeric.
    """
    table = moments_table(forest, evidence, numeric_slot(forest, j), n_jobs)

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        return mean_variance_rows(forest.columns, forest.leaves, rows, j, post, first, table)

    both = by_chunks(forest, evidence, read, n_jobs, j, beta, known)
    return both[:, 0].copy(), both[:, 1].copy()


def moments_table(
    forest: Forest, evidence: Evidence, slot: int, n_jobs: int | None, few: int = _FEW_ROWS
) -> np.ndarray:
    """Mean and variance of a numeric slot in every parameter row, (R, 2); NaN where one lacks it.

    Shared by all rows of evidence; (0, 2) if these are no more than ``few``, too few to pay.
    """
    if len(evidence.value) <= few:
        return np.empty((0, 2))
    j = int(np.flatnonzero(forest.columns.is_categorical == 0)[slot])
    leaves = forest.leaves
    described = np.arange(len(leaves.tree)) < len(leaves.log_weight)
    described[leaves.node_row[leaves.node_scope >= 0][leaves.scope[:, j] == 1]] = True

    def work(first: int, stop: int) -> np.ndarray:
        return leaf_moments(forest.columns, leaves, evidence, j, described, first, stop)

    return np.concatenate(list(map_ordered(work, chunks(len(forest.leaves.tree), 4096), n_jobs)))


def numeric_slot(forest: Forest, j: int) -> int:
    """Slot of numeric column j; a ValueError if it is categorical."""
    if forest.columns.is_categorical[j]:
        column = forest.schema.columns[j]
        raise ValueError(f"column {column.name!r} is {column.kind}: this question needs numbers; ask for its levels")
    return int(forest.columns.slot[j])
