"""Open tails beyond the ends of what was observed: how much lies there, and how far it reaches."""

from __future__ import annotations

import numpy as np

from .tally import Tally

HARD_SHARE = 0.01
"""A column ends hard at a value that holds more than this share of the rows."""
HARD_ROWS = 1e-6
"""Rows beyond a hard end."""

MOST = 0.2 * float(np.finfo(float).max)


def tail_rows(tally: Tally, end: int, bin_rows: float) -> float:
    """Rows that the tail counts for in its bin, which has ``bin_rows``; ``end`` is 0 (lower tail) or -1 (upper).

    The chance that one row more lies beyond the outermost of n is 1 / (n + 1); at most as much as the bin itself.
    """
    n = tally.n
    if tally.is_atom[end] or (n >= 1 and tally.rows[end] > max(1.0, HARD_SHARE * n)):
        return HARD_ROWS
    share = min(0.5, n / (n + 1) / bin_rows)
    return bin_rows * share / (1 - share)


def tail_scale(tally: Tally, end: int) -> float:
    """Mean distance, in places, of what lies beyond an end: the mean excess of the outermost sqrt(n) rows.

    Where they do not differ: the column's spread over sqrt(n), else one unit.
    """
    place, weight = (tally.place, tally.weight) if end else (-tally.place[::-1], tally.weight[::-1])
    beyond = np.cumsum(weight[::-1])[::-1]
    first = int(np.searchsorted(-beyond, -np.sqrt(weight.sum()), side="right")) - 1
    first = max(first, 0)
    # quarters, because the distance of two floats may be too large for one
    excess = 0.25 * place[first:] - 0.25 * place[max(first - 1, 0)]
    mean = 4 * min(float(excess @ (weight[first:] / weight[first:].sum())), MOST)
    spread = 4 * min(float(0.25 * place[-1] - 0.25 * place[0]) / float(np.sqrt(weight.sum())), MOST)
    least = 1.0 if tally.half > 0 else 1e-300
    return max(mean if mean > least else spread if spread > least else 1.0, least)
