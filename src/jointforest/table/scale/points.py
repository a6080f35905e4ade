"""How many of the rows at a place are a mass of its own, and how many belong to the density around it."""

from __future__ import annotations

import numpy as np

from .bins import Bins
from .runs import Runs
from .tally import Tally

MAX_POINTS = 8192
"""Cells of a grid that have a mass of their own inside bins."""
DISCOUNTS = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0)
"""Rows taken off each value that are tried beside the Good-Turing discount."""
FACTORS = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Shares of what is left that are tried."""
LEAST = 0.01


def point_rows(tally: Tally, bins: Bins, runs: Runs) -> np.ndarray:
    """Rows at each place that are a point of their own, (m,); the others are spread over the place's run.

    Without a grid atoms are points and nothing else is. On a grid a value of c rows keeps c - D of them if it is heavy,
    with D = n1 / (n1 + 2 n2), and factor (c - D) of them, c >= 2, if it is not. Heaps want a small D and a factor
    of 1, chance ties of a smooth column the contrary: the two are those under which every row is most likely
    given the others.
    """
    if tally.half == 0:
        return np.where(tally.is_atom, tally.weight, 0.0)
    once, twice = float((tally.rows == 1).sum()), float((tally.rows == 2).sum())
    turing = once / (once + 2 * twice) if once else 0.0
    heavy = tally.weight * (1 - turing / np.maximum(tally.rows, 2.0))
    light = ~bins.is_heavy
    kept = np.zeros(len(tally.rows))
    kept[light] = _most_likely(tally.rows[light], runs.of_place[light], runs.hi - runs.lo, turing)
    if np.count_nonzero(kept) > MAX_POINTS:
        kept[np.argsort(-kept, kind="stable")[MAX_POINTS:]] = 0.0
    return np.where(bins.is_heavy, heavy, kept * tally.weight / tally.rows)


def _most_likely(rows: np.ndarray, run: np.ndarray, cells: np.ndarray, turing: float) -> np.ndarray:
    """Rows that stay at places of runs, by the discount and factor under which rows left out one by one are likeliest.

    rows, run (m,): rows of the places, and their runs; cells (R,): cells of the runs.
    """
    in_run = np.bincount(run, rows, len(cells))[run]
    n_cells = np.maximum(cells, 1.0)[run]
    best, found = -np.inf, np.zeros(len(rows))
    for discount in (turing, *DISCOUNTS):
        point = _left(rows, discount)
        fewer = _left(rows - 1, discount)
        points = np.bincount(run, point, len(cells))[run]
        for factor in FACTORS:
            spread = in_run - 1 - factor * (points - point + fewer)
            share = factor * fewer + np.maximum(spread, LEAST) / n_cells
            fit = float(rows @ np.log(share / np.maximum(in_run - 1, LEAST)))
            if fit > best:
                best, found = fit, factor * point
    return found


def _left(rows: np.ndarray, discount: float) -> np.ndarray:
    """Rows left at places that several rows share, after the discount."""
    return np.where(rows >= 2, np.maximum(rows - discount, 0.0), 0.0)
