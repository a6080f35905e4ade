"""Rows as ranks: each numeric cell becomes the rank of its value among the column's distinct values.

Splits on ranks are exact, and cheap: nodes with many rows count ranks instead of sorting values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..ground.records import record
from ..table.columns import Columns


@record
class Ranks(NamedTuple):
    """Table of n rows and d columns as integer codes.

    Attributes
    ----------
    codes : int32 array (d, n)
        Rank of the value (numeric) or level (categorical); -1 where missing.
    n_codes : int32 array (d,)
        Number of distinct values of the column, or of its levels.
    value_start : int64 array (d + 1,)
        The distinct values of column j, ascending, are ``values[value_start[j]:value_start[j + 1]]`` (none if
        categorical).
    values : float64 array
    """

    codes: np.ndarray
    n_codes: np.ndarray
    value_start: np.ndarray
    values: np.ndarray


def snap(columns: Columns, X: np.ndarray) -> np.ndarray:
    """Copy of X (n, d) with the values of grid columns moved to the centres of their cells."""
    X = np.array(X, dtype=np.float64)
    for j in np.flatnonzero(columns.is_categorical == 0):
        step, origin = columns.step[columns.slot[j]], columns.origin[columns.slot[j]]
        if step > 0:
            X[:, j] = origin + step * np.ceil((X[:, j] - origin) / step - 0.5)
    return X


def rank(columns: Columns, X: np.ndarray) -> Ranks:
    """Ranks of the cells of X (n, d), NaN where missing; grid columns must be snapped."""
    n, d = X.shape
    codes = np.empty((d, n), dtype=np.int32)
    n_codes = np.zeros(d, dtype=np.int32)
    values: list[np.ndarray] = []
    for j in range(d):
        known = ~np.isnan(X[:, j])
        codes[j] = -1
        if columns.is_categorical[j]:
            slot = columns.slot[j]
            codes[j, known] = X[known, j].astype(np.int32)
            n_codes[j] = columns.level_start[slot + 1] - columns.level_start[slot]
            values.append(np.empty(0))
        else:
            distinct, inverse = np.unique(X[known, j], return_inverse=True)
            codes[j, known] = inverse
            n_codes[j] = len(distinct)
            values.append(distinct)
    start = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
    return Ranks(codes, n_codes, start, np.concatenate(values) if values else np.empty(0))
