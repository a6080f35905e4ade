"""Rows of a frame: those that are picked by number, and how much rows count."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows (numbers, (m,)) of a frame or array."""
    return X[rows] if isinstance(X, np.ndarray) else nw.from_native(X, eager_only=True)[rows].to_native()


def row_weights(given: Any, n: int) -> np.ndarray:
    """Weights of n rows, float64, with a mean of 1 over the rows that have any.

    Raises
    ------
    ValueError
        If there is not one a row, one is negative or not finite, or all are 0.
    """
    weight = np.asarray(given, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight: expected one weight a row, shape ({n},), got {weight.shape}")
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if len(wrong):
        raise ValueError(f"sample_weight: expected finite numbers >= 0, got {weight[wrong[0]]} in row {wrong[0]}")
    if not weight.any():
        raise ValueError("sample_weight: every weight is zero; give some rows more")
    weight = weight / weight.max()
    return np.asarray(weight * (np.count_nonzero(weight) / weight.sum()))
