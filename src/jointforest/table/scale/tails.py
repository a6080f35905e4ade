"""Open tails beyond the ends of what was observed: how much lies there, and how far it reaches."""

from __future__ import annotations

import numpy as np

from .tally import Tally

EXPECTED = 5.0
"""Rows expected beyond an end, of which there are none, before it counts as hard."""
HARD_ROWS = 1e-6
"""Rows beyond a hard end."""
MOST = 0.2 * float(np.finfo(float).max)


def upper_tail(tally: Tally, start: float, bin_rows: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What lies beyond the greatest place: t = 1 or 2 segments from ``start`` to inf; ends (t + 1,), rates, rows (t,).

    A column of negative numbers whose tail would reach beyond 0 has next to nothing there. ``bin_rows`` are the rows of
    the outermost bin.
    """
    rows, rate = _rows(tally, bin_rows), 1.0 / _scale(tally)
    zero = tally.zero + tally.half  # 0 itself may be reached
    with np.errstate(over="ignore", invalid="ignore"):
        reaches = tally.place[-1] < tally.zero and start < zero and rows * np.exp(-rate * (zero - start)) > HARD_ROWS
    if reaches:
        return np.array([start, zero, np.inf]), np.array([rate, rate]), np.array([rows, HARD_ROWS])
    return np.array([start, np.inf]), np.array([rate]), np.array([rows])


def is_hard(tally: Tally) -> bool:
    """Whether the column ends hard at its greatest place: at an atom, or where rows should lie beyond and do not.

    Should lie: as many as in the last place, less by the factor by which that has fewer than the one before.
    """
    last = float(tally.rows[-1])
    before = float(tally.rows[-2]) if len(tally.rows) > 1 else 0.0
    return bool(tally.is_atom[-1]) or last * last > EXPECTED * max(last, before)


def _rows(tally: Tally, bin_rows: float) -> float:
    """Rows that the tail counts for in its bin.

    The chance that one row more lies beyond the greatest of n is 1 / (n + 1); at most as much as the bin itself.
    """
    if is_hard(tally):
        return HARD_ROWS
    share = min(0.5, tally.n / (tally.n + 1) / bin_rows)
    return bin_rows * share / (1 - share)


def _scale(tally: Tally) -> float:
    """Mean distance, in places, of what lies beyond the end: the mean excess of the outermost sqrt(n) rows.

    Where they do not differ: the column's spread over sqrt(n), else one unit.
    """
    place, weight = tally.place, tally.weight
    beyond = np.cumsum(weight[::-1])[::-1]
    first = max(int(np.searchsorted(-beyond, -np.sqrt(weight.sum()), side="right")) - 1, 0)
    # quarters, because the distance of two floats may be too large for one
    excess = 0.25 * place[first:] - 0.25 * place[max(first - 1, 0)]
    mean = 4 * min(float(excess @ (weight[first:] / weight[first:].sum())), MOST)
    spread = 4 * min(float(0.25 * place[-1] - 0.25 * place[0]) / float(np.sqrt(weight.sum())), MOST)
    least = 1.0 if tally.half > 0 else 1e-300
    return max(mean if mean > least else spread if spread > least else 1.0, least)
