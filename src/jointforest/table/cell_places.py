"""Places of numbers on a column's grid, counted in cells."""

from __future__ import annotations

import math

import numpy as np

from .schema import Column


def place(column: Column, number: float) -> float:
    """Place of a number on the column's grid, in cells; whole (up to rounding errors) at cell centres."""
    if column.is_categorical or column.step == 0.0:
        return number
    cells = (number - column.center) / column.step
    if math.isinf(cells):
        return cells
    near = float(round(cells))
    return near if abs(cells - near) <= 1e-6 + 4e-16 * abs(cells) else cells


def center(column: Column, number: float) -> float:
    """Place of the cell of a number (the number itself where there is no grid); between two cells, the lower one."""
    at = place(column, number)
    return float(math.ceil(at - 0.5)) if column.step > 0.0 and math.isfinite(at) else at


def centers(column: Column, numbers: np.ndarray) -> np.ndarray:
    """`center` of finite numbers (n,) of a column with a grid."""
    cells = (numbers - column.center) / column.step
    near = np.rint(cells)
    at = np.where(np.abs(cells - near) <= 1e-6 + 4e-16 * np.abs(cells), near, cells)
    return np.asarray(np.ceil(at - 0.5))
