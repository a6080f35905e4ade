"""Boxes: sets of rows that branch and bound cuts in two."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.records import record
from ...table.columns import Columns
from ...table.evidence import Evidence


@record
class Box(NamedTuple):
    """A set of rows: an interval for each number, and some of the levels.

    Attributes
    ----------
    lo, hi : float64 arrays (p,)
        ``(lo, hi]`` of the numeric slots; on cell edges of grids.
    allowed : uint8 array (S,)
        1 for the levels in it.
    """

    lo: np.ndarray
    hi: np.ndarray
    allowed: np.ndarray


def whole(columns: Columns, evidence: Evidence) -> Box:
    """The box of everything, with just those levels that the one row of evidence admits."""
    p, allowed = len(columns.step), np.ones(columns.level_start[-1], np.uint8)
    for j in np.flatnonzero(columns.is_categorical):
        slot, x = columns.slot[j], evidence.value[0, j]
        region = evidence.region[0, j] if evidence.region.size else -1
        level = np.arange(columns.level_start[slot + 1] - columns.level_start[slot])
        held = level == x if x == x else np.full(len(level), region < 0)
        for run in range(evidence.run_start[region], evidence.run_start[region + 1]) if region >= 0 else ():
            held |= (evidence.run_lo[run] < level) & (level <= evidence.run_hi[run])
        allowed[columns.level_start[slot] + level] = held
    return Box(np.full(p, -np.inf), np.full(p, np.inf), allowed)


def halves(columns: Columns, box: Box, j: int, cut: float, goes_left: np.ndarray) -> tuple[Box, Box]:
    """The two parts of a box: column j up to ``cut`` and above, or the levels that go left and the others."""
    slot = columns.slot[j]
    if columns.is_categorical[j]:
        left, right = box.allowed.copy(), box.allowed.copy()
        levels = slice(columns.level_start[slot], columns.level_start[slot + 1])
        left[levels] &= goes_left
        right[levels] &= 1 - goes_left
        return box._replace(allowed=left), box._replace(allowed=right)
    hi, lo = box.hi.copy(), box.lo.copy()
    hi[slot] = lo[slot] = cut
    return box._replace(hi=hi), box._replace(lo=lo)
