"""Whether a column of numbers lies on a grid, and which of its values have a mass of their own."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..schema import MAX_ATOMS
from ..times import TIME_STEPS

MAX_CELLS = 2.0**51
"""Largest cell number on a grid: beyond it half a cell is no longer exact in float64."""
MAX_DECIMALS = 9
FEW = 20


class OnGrids(NamedTuple):
    """Which decimal grids some numbers lie on.

    Attributes
    ----------
    power : bool array (10,)
        Whether all are multiples of 10^-k, as closely as they are stored.
    multiple : bool array (10, 4)
        Whether all are multiples of 125, 25, 5 or 2 times that.
    """

    power: np.ndarray
    multiple: np.ndarray


_MULTIPLES = (125, 25, 5, 2)
_FEW_VALUES = 1000  # the first ones mostly tell that there is no grid


def on_grids(distinct: np.ndarray, eps: float) -> OnGrids:
    """`OnGrids` of finite values, float64 (k,), stored with the relative precision ``eps``."""
    power = np.array([_is_on(distinct, k, eps) for k in range(MAX_DECIMALS + 1)])
    multiple = np.zeros((MAX_DECIMALS + 1, len(_MULTIPLES)), bool)
    if power.any():
        first = int(power.argmax())
        largest = float(np.abs(distinct).max(initial=0.0)) * 10.0**first
        divisor = int(np.gcd.reduce(np.rint(distinct * 10.0**first).astype(np.int64))) if largest < 2.0**62 else 1
        for k in range(first, MAX_DECIMALS + 1):
            multiple[k] = [divisor * 10 ** (k - first) % m == 0 for m in _MULTIPLES]
    return OnGrids(power, multiple)


def _is_on(distinct: np.ndarray, k: int, eps: float) -> bool:
    """Whether all values are multiples of 10^-k, as closely as they are stored."""
    for some in (distinct[:_FEW_VALUES], distinct):
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = some * 10.0**k
            if not np.all(np.abs(scaled - np.rint(scaled)) <= np.minimum(4 * eps * np.abs(scaled), 0.03)):
                return False
    return True


def grid_step(grids: OnGrids, n_distinct: int, largest: float, eps: float) -> float:
    """Coarsest step such that all values are multiples of it: 10^-k (k <= 9), or 2, 5, 25 or 125 times that; 0 if none.

    A multiple other than 1 is taken only if so many distinct values would share it by chance in less than one of
    a thousand columns. Whole numbers have step 1.

    Parameters
    ----------
    grids : OnGrids
    n_distinct : int
        Number of distinct values.
    largest : float
        The largest of them without its sign.
    eps : float
        Relative precision of the values as they were stored.

    Examples
    --------
    >>> values = np.array([0.1, 0.25, 1.37])
    >>> grid_step(on_grids(values, 2.3e-16), 3, 1.37, 2.3e-16)
    0.01
    """
    for k in range(MAX_DECIMALS + 1):
        if largest * 10.0**k > min(2.0**45, 0.01 / eps) and not (k == 0 and largest <= MAX_CELLS):
            return 0.0
        if grids.power[k]:
            for m, is_on in zip(_MULTIPLES, grids.multiple[k], strict=True) if k > 0 else ():
                if n_distinct * math.log(m) > math.log(1000.0) and is_on and m < 10**k:
                    return m / 10.0**k
            return 1.0 / 10.0**k
    return 0.0


def is_tied(n: int, n_distinct: int) -> bool:
    """Whether values repeat clearly: at least a twentieth of the n observed cells (and 2) repeat an earlier one.

    Without ties a grid is finer than what the rows can tell, and a density says the same with less work.
    """
    return n - n_distinct >= max(2.0, 0.05 * n)


def find_atoms(values: np.ndarray, counts: np.ndarray, step: float, n: int, n_distinct: int) -> tuple[float, ...]:
    """Values that hold much of the column, clearly more than a smooth density would give them.

    The rule: at least 5 % of the observed cells and at least 5 of them. Without a grid, where a density would never
    repeat a value, 0.2 % and at least 20 of them are enough. On a grid with more than 20 distinct values a heap is
    enough: 0.5 % of the cells, at least 5, over twice the mean of the 4 nearest cells (2 on either side within
    the column's span, cells without rows count 0), and above that mean by more than four standard deviations of
    chance. A bell of narrow cells is smooth; 40 hours, or a capital gain of 7,298, is a heap. A column with a single
    value that occurs at least twice has it as its atom. Of more than 64 the most common are taken.

    Parameters
    ----------
    values, counts : array (k,)
        Distinct values, ascending, the column's smallest and largest among them, and how often each occurs: all, or
        those that may be atoms, on a grid with the values of the cells around them.
    step : float
        Width of the grid's cells, 0 if there is no grid.
    n, n_distinct : int
        Observed cells, and their distinct values.
    """
    if n_distinct == 1:
        return (float(values[0]),) if n >= 2 else ()
    common = counts >= max(5.0, 0.05 * n)
    if step == 0:
        common |= counts >= max(20.0, 0.002 * n)
    elif n_distinct > FEW:
        cells = np.rint((values - values[0]) / step)
        around, near = np.zeros(len(cells)), np.zeros(len(cells))
        for shift in (-2, -1, 1, 2):
            near += (cells + shift >= cells[0]) & (cells + shift <= cells[-1])
            at = np.minimum(np.searchsorted(cells, cells + shift), len(cells) - 1)
            around += np.where(cells[at] == cells + shift, counts[at], 0)
        common = counts >= max(5.0, 0.005 * n)
        expected = around / near
        common &= counts > np.maximum(2 * expected, expected + 4 * np.sqrt(expected))
    most = np.flatnonzero(common)
    most = most[np.argsort(-counts[most], kind="stable")[:MAX_ATOMS]]
    return tuple(values[np.sort(most)].tolist())


def alike(ticks: np.ndarray, per_second: float) -> np.ndarray:
    """Which of day, hour, minute, second and ms divide all of some distances in time: bool (5,)."""
    return np.array([is_step(ticks, size) for size in sizes(per_second)])


def sizes(per_second: float) -> list[int]:
    """Ticks in a day, hour, minute, second and ms; what is below one tick divides all."""
    return [round(seconds * per_second) for seconds in TIME_STEPS[:-1]]


def is_step(ticks: np.ndarray | int, size: int) -> bool:
    """Whether so many ticks divide all of some distances."""
    return size <= 1 or bool(np.all(ticks % size == 0))


def time_step(divides: np.ndarray, per_second: float) -> float:
    """Coarsest of day, hour, minute, second, ms and us (in seconds) that divides all distances, by `alike` of them.

    Times finer than a microsecond count as the nearest one.
    """
    for seconds, is_common in zip(TIME_STEPS[:-1], divides, strict=True):
        if is_common:
            return max(seconds, 1 / per_second)
    return TIME_STEPS[-1]
