"""Missing cells filled in."""

from __future__ import annotations

import numpy as np

from ...table.evidence import Evidence
from ..column.moments import moments_table
from ..forest import Forest
from ..posterior.posterior import LeafPosterior, background_share, by_chunks
from .imputation_kernels import impute_rows


def impute(forest: Forest, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Fill each cell without a value: numbers by posterior mean, categorical cells by the most probable level.

    On a grid the mean goes to the nearest cell centre. A mean may lie between the parts of a region; among levels of
    the same probability the first is taken.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        n rows.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (n, d)
        ``evidence.value`` with its NaNs replaced; they stay where the row's evidence has probability 0.
    """
    return impute_and_weigh(forest, evidence, n_jobs)[0]


def impute_and_weigh(forest: Forest, evidence: Evidence, n_jobs: int | None = -1) -> tuple[np.ndarray, np.ndarray]:
    """`impute`, and the posterior weight of the background in each row (n,), in one pass."""
    means = _means(forest, evidence, n_jobs)

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        filled = impute_rows(forest.columns, forest.leaves, rows, post, first, means)
        return np.column_stack([filled, background_share(forest, post)])

    both = by_chunks(forest, evidence, read, n_jobs)
    return np.ascontiguousarray(both[:, :-1]), both[:, -1]


def _means(forest: Forest, evidence: Evidence, n_jobs: int | None) -> np.ndarray:
    """Means of the numeric slots in every parameter row, (R, p), where a cell wants one; (0, 0) for few rows."""
    numeric = np.flatnonzero(forest.columns.is_categorical == 0)
    tables = {
        int(forest.columns.slot[j]): moments_table(forest, evidence, int(forest.columns.slot[j]), n_jobs)
        for j in numeric
        if np.isnan(evidence.value[:, j]).any()
    }
    if not any(len(table) for table in tables.values()):
        return np.empty((0, 0))
    means = np.full((len(forest.leaves.tree), len(numeric)), np.nan)
    for slot, table in tables.items():
        means[:, slot] = table[:, 0]
    return means
