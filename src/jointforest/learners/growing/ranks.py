"""Rows as ranks: each numeric cell becomes the rank of its value among the column's distinct values.

Splits on ranks are exact, and cheap: nodes with many rows count ranks instead of sorting values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...runtime.records import record


@record
class Ranks(NamedTuple):
    """Table of n rows and d columns as integer codes.

    Attributes
    ----------
    codes : int32 array (d, n)
        Rank of the value (numeric) or level (categorical); -1 where missing.
    n_codes : int32 array (d,)
        Number of ranked values of the column, or of its levels.
    value_start : int64 array (d + 1,)
        The ranked values of column j, distinct, ascending, are ``values[value_start[j]:value_start[j + 1]]`` (none if
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


def between(low: np.ndarray, high: np.ndarray, step: np.ndarray | float, origin: np.ndarray | float) -> np.ndarray:
    """Thresholds between pairs of values, ``low <= threshold < high``: halfway; on a grid the cell edge next to it."""
    middle = low / 2 + high / 2
    middle = np.where((middle >= low) & (middle < high), middle, low)
    grid = np.asarray(step) > 0
    safe = np.where(grid, step, 1.0)
    cell_low, cell_high = (np.rint((np.where(grid, x, 0.0) - origin) / safe) for x in (low, high))
    edge = origin + step * (cell_low + np.floor((cell_high - cell_low - 1) / 2) + 0.5)
    return np.where(grid, edge, middle)


def rank(columns: Columns, X: np.ndarray, rows: np.ndarray | None = None) -> Ranks:
    """Ranks of the cells of X (n, d), NaN where missing; grid columns must be snapped.

    Ranked are the values of all rows, or of ``rows`` (numbers, (m,)): then a cell of another row has the rank of the
    value on its side of every threshold `between` two neighbours, so that it goes where a split of these sends it.
    """
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
            continue
        if rows is None:
            distinct, codes[j, known] = np.unique(X[known, j], return_inverse=True)
        else:
            distinct = np.unique(X[rows[known[rows]], j])
            slot = columns.slot[j]
            thresholds = between(distinct[:-1], distinct[1:], columns.step[slot], columns.origin[slot])
            codes[j, known] = np.searchsorted(thresholds, X[known, j])
        n_codes[j] = len(distinct)
        values.append(distinct)
    start = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
    return Ranks(codes, n_codes, start, np.concatenate(values) if values else np.empty(0))
