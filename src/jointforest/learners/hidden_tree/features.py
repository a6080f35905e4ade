"""What clustering and splits see of columns: numbers by normal scores, levels by indicators."""

from __future__ import annotations

import numpy as np

from .constants import FIXED
from .structure import CodeColumn


def features(codes: np.ndarray, columns: tuple[CodeColumn, ...]) -> list[np.ndarray]:
    """Features of the cells of each column, d float32 arrays (n, f_j); those of a missing cell are 0."""
    return [table[codes[:, j]] for j, table in enumerate(feature_tables(columns))]


def feature_tables(columns: tuple[CodeColumn, ...]) -> list[np.ndarray]:
    """Features of each code, and 0 for a missing cell, d float32 arrays (K_j + 1, f_j): of mean 0 and variance 1."""
    # A number has its normal score, a level an indicator. Columns that stand for several have the features of these.
    levels = _levels(len(columns))
    return [
        np.hstack([_table(view, levels)[to_view] for to_view, view in column.views])
        if column.views
        else _table(column, levels)
        for column in columns
    ]


def _table(column: CodeColumn, levels: int) -> np.ndarray:
    K = column.n_codes
    if column.is_ordered:
        table = column.score[:, None]
    else:
        common = np.argsort(-column.marginal, kind="stable")[:levels]
        common = common[column.marginal[common] >= FIXED.rare_level]
        if len(common) == 2 and K == 2:
            common = common[:1]
        table = np.zeros((K, len(common)))
        table[common, np.arange(len(common))] = 1.0
    mean = column.marginal @ table
    spread = np.sqrt(column.marginal @ (table - mean) ** 2)
    table = (table - mean) / np.where(spread > 0, spread, 1.0)
    return np.vstack([table, np.zeros(table.shape[1])]).astype(np.float32)


def most_rows(columns: tuple[CodeColumn, ...]) -> int:
    """Most rows that clustering should see, by the features of the columns."""
    return int(
        max(FIXED.cluster_cells // max(sum(_n_features(column, _levels(len(columns))) for column in columns), 1), 1_000)
    )


def _levels(n_columns: int) -> int:
    return int(np.clip(FIXED.indicators // max(n_columns, 1), 1, FIXED.indicator_levels))


def _n_features(column: CodeColumn, levels: int) -> int:
    if column.views:
        return sum(_n_features(view, levels) for _, view in column.views)
    return 1 if column.is_ordered else min(levels, column.n_codes)
