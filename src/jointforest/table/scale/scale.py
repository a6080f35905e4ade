"""The scale of one column: codes, and what the column looks like inside each code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .segments import mean_variance


@dataclass(frozen=True, eq=False)
class Scale:
    """Codes 0..K-1 of a column, and a *base measure* inside each code, as one list of S segments.

    A segment with ``lo == hi`` is a point with a mass of its own: an atom of a column without a grid, or a level of a
    categorical column (level k is the point k). Any other segment is an interval ``(lo, hi]`` whose density is
    proportional to ``exp(-rate * x)``: uniform if the rate is 0, an open tail if an end is infinite. On a grid ``lo``
    and ``hi`` are edges of cells, and a cell has its share of the segment.

    The codes of a numeric column are ordered: everything of code k lies below everything of code k + 1. A scale cut to
    a region (`restrict`) has fewer and shorter segments, and their masses are what they were in the whole scale.

    Attributes
    ----------
    n_codes : int
        K.
    step, origin : float
        Width of a grid cell and centre of one of them; step 0 where there is no grid.
    lo, hi, rate : float64 array (S,)
        Segments, ascending by (lo, hi), disjoint.
    code : int32 array (S,)
        The code that each segment belongs to.
    log_mass : float64 array (S,)
        Log of the segment's share of its code; in a whole scale the shares of each code sum to 1.

    Examples
    --------
    >>> nothing = np.zeros(2)
    >>> island = Scale(2, 0.0, 0.0, np.arange(2.0), np.arange(2.0), nothing, np.arange(2, dtype=np.int32), nothing)
    >>> island.is_point
    array([ True,  True])
    """

    n_codes: int
    step: float
    origin: float
    lo: np.ndarray
    hi: np.ndarray
    rate: np.ndarray
    code: np.ndarray
    log_mass: np.ndarray

    @cached_property
    def is_point(self) -> np.ndarray:
        """Which segments are points, (S,)."""
        return np.asarray(self.lo == self.hi)

    @cached_property
    def points(self) -> np.ndarray:
        """Numbers of the segments that are points, ascending."""
        return np.flatnonzero(self.is_point)

    @cached_property
    def intervals(self) -> np.ndarray:
        """Numbers of the segments that are intervals, ascending."""
        return np.flatnonzero(~self.is_point)

    @cached_property
    def log_code(self) -> np.ndarray:
        """Log of the share of each code that the scale still has, (K,): 0 in a whole scale, -inf for a code cut off."""
        top = np.full(self.n_codes, -np.inf)
        np.maximum.at(top, self.code, self.log_mass)
        finite = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            total = np.bincount(self.code, np.exp(self.log_mass - finite[self.code]), self.n_codes)
            return np.asarray(finite + np.log(total))

    @cached_property
    def log_share(self) -> np.ndarray:
        """Log of each segment's share of what its code still has, (S,)."""
        return np.asarray(self.log_mass - self.log_code[self.code]) if len(self.code) else self.log_mass

    @cached_property
    def share(self) -> np.ndarray:
        """Each segment's share of what its code still has, (S,): sums to 1 in every code that has any."""
        return np.exp(self.log_share)

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Share, mean and variance of each code, each (K,), on a grid of the cells' centres; 0 where nothing is."""
        mean, var = mean_variance(self.lo, self.hi, self.rate, self.step)
        with np.errstate(over="ignore", invalid="ignore"):
            center = np.bincount(self.code, self.share * mean, self.n_codes)
            spread = self.share * (var + (mean - center[self.code]) ** 2)
            return np.exp(self.log_code), center, np.bincount(self.code, spread, self.n_codes)

    @cached_property
    def by_code(self) -> np.ndarray:
        """Numbers of the segments by code, within a code ascending."""
        return np.argsort(self.code, kind="stable")

    @cached_property
    def code_start(self) -> np.ndarray:
        """``by_code[code_start[c]:code_start[c + 1]]`` are the segments of code c, (K + 1,)."""
        return np.searchsorted(self.code[self.by_code], np.arange(self.n_codes + 1))

    @cached_property
    def share_before(self) -> np.ndarray:
        """Share of its code that lies in the segments of the code before it, (S,)."""
        ordered = self.share[self.by_code]
        total = np.concatenate([[0.0], np.cumsum(ordered)])
        first = self.code_start[self.code[self.by_code]]
        before = np.empty(len(self.code))
        before[self.by_code] = total[:-1] - total[first]
        return before


def whole(scale: Scale) -> Scale:
    """The scale with the masses of every code divided by their sum, so that they sum to 1 again."""
    return replace(scale, log_mass=scale.log_share)
