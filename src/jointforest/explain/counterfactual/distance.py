"""Gower's distance of rows to one row, by the ranges of a joint's columns."""

from __future__ import annotations

import numpy as np

from ...table.schema import Column


def gower(columns: tuple[Column, ...], X: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Mean distance over the row's known cells, of rows (n, d) to a row (d,): 0..1, (n,).

    Of numbers and dates the difference as a share of the range that learning saw (at most 1), of ordered levels that of
    the codes as a share of theirs, of other levels 0 or 1.
    """
    known = np.flatnonzero(~np.isnan(row)).tolist()
    total = np.zeros(len(X))
    for j in known:
        gap = np.abs(X[:, j] - row[j])
        if columns[j].is_categorical and columns[j].kind != "ordered":
            total += gap > 0.0
            continue
        width = len(columns[j].levels) - 1.0 if columns[j].is_categorical else columns[j].maximum - columns[j].minimum
        total += np.minimum(gap / width, 1.0) if width > 0.0 else gap > 0.0
    return total / max(len(known), 1)
