"""Whether a column of numbers lies on a grid, and which of its values have a mass of their own."""

from __future__ import annotations

import math

import numpy as np

from .schema import MAX_ATOMS
from .times import TIME_STEPS

MAX_CELLS = 2.0**51
"""Largest cell number on a grid: beyond it half a cell is no longer exact in float64."""
MAX_DECIMALS = 9
FEW = 20


def decimal_step(distinct: np.ndarray, eps: float = 2.3e-16) -> float:
    """Coarsest step such that all values are multiples of it: 10^-k (k <= 9), or 2, 5, 25 or 125 times that; 0 if none.

    A multiple other than 1 is taken only if so many distinct values would share it by chance in less than one of
    a thousand columns. Whole numbers have step 1.

    Parameters
    ----------
    distinct : float64 array
        The distinct observed values.
    eps : float
        Relative precision of the values as they were stored.

    Examples
    --------
    >>> decimal_step(np.array([0.1, 0.25, 1.37])), decimal_step(np.arange(10) / 2), decimal_step(np.array([math.pi]))
    (0.01, 0.5, 0.0)
    """
    largest = np.abs(distinct).max()
    for k in range(MAX_DECIMALS + 1):
        if largest * 10.0**k > min(2.0**45, 0.01 / eps) and not (k == 0 and largest <= MAX_CELLS):
            return 0.0
        scaled = distinct * 10.0**k
        whole = np.rint(scaled)
        if np.all(np.abs(scaled - whole) <= np.minimum(4 * eps * np.abs(scaled), 0.03)):
            for m in (125, 25, 5, 2) if k > 0 else ():
                if len(distinct) * math.log(m) > math.log(1000.0) and np.all(whole % m == 0) and m < 10**k:
                    return m / 10.0**k
            return 1.0 / 10.0**k
    return 0.0


def is_tied(counts: np.ndarray) -> bool:
    """Whether values repeat clearly: at least a twentieth of the observed cells (and 2) repeat an earlier one.

    Without ties a grid is finer than what the rows can tell, and a density says the same with less work.
    """
    n = int(counts.sum())
    return n - len(counts) >= max(2.0, 0.05 * n)


def find_atoms(distinct: np.ndarray, counts: np.ndarray, step: float) -> tuple[float, ...]:
    """Values that hold much of the column, clearly more than a smooth density would give them.

    The rule: at least 5 % of the observed cells and at least 5 of them. Without a grid, where a density would never
    repeat a value, 0.2 % and at least 20 of them are enough. On a grid with more than 20 distinct values a heap is
    enough: 0.5 % of the cells, at least 5, over twice the mean of the 4 nearest cells (2 on either side within
    the column's span, cells without rows count 0), and above that mean by more than four standard deviations of
    chance. A bell of narrow cells is smooth; 40 hours, or a capital gain of 7,298, is a heap. A column with a single
    value that occurs at least twice has it as its atom. Of more than 64 the most common are taken.

    Parameters
    ----------
    distinct, counts : array (k,)
        Distinct values, ascending, and how often each occurs.
    step : float
        Width of the grid's cells, 0 if there is no grid.
    """
    if len(distinct) == 1:
        return (float(distinct[0]),) if counts[0] >= 2 else ()
    common = counts >= max(5.0, 0.05 * counts.sum())
    if step == 0:
        common |= counts >= max(20.0, 0.002 * counts.sum())
    elif len(distinct) > FEW:
        cells = np.rint((distinct - distinct[0]) / step)
        around, near = np.zeros(len(cells)), np.zeros(len(cells))
        for shift in (-2, -1, 1, 2):
            near += (cells + shift >= cells[0]) & (cells + shift <= cells[-1])
            at = np.minimum(np.searchsorted(cells, cells + shift), len(cells) - 1)
            around += np.where(cells[at] == cells + shift, counts[at], 0)
        common = counts >= max(5.0, 0.005 * counts.sum())
        expected = around / near
        common &= counts > np.maximum(2 * expected, expected + 4 * np.sqrt(expected))
    most = np.flatnonzero(common)
    most = most[np.argsort(-counts[most], kind="stable")[:MAX_ATOMS]]
    return tuple(distinct[np.sort(most)].tolist())


def time_step(ticks: np.ndarray, per_second: float) -> float:
    """Coarsest of day, hour, minute, second, ms and us (in seconds) that divides all distances.

    Times finer than a microsecond count as the nearest one.

    Parameters
    ----------
    ticks : int64 array
        Distances from one moment; a single moment is measured from 1970-01-01.
    per_second : float
        Ticks in a second.
    """
    for seconds in TIME_STEPS[:-1]:
        size = round(seconds * per_second)
        if size <= 1 or np.all(ticks % size == 0):
            return max(seconds, 1 / per_second)
    return TIME_STEPS[-1]
