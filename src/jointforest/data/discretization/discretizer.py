"""The scale of one column: codes, and what the column looks like inside each code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...runtime.threads import map_ordered
from .counts import cell_number

# ---- One segment: density proportional to exp(-rate x) on (lo, hi]; shares, inverse, moments. All vectorised.

_FLAT = 1e-14
"""A segment with a L below this is uniform to the last digit."""
SHORT = 0.5
"""Below this a L moments are taken from series."""
LEAST_LOG = -1e300
"""Logs of densities further out than this are this, so that sums of them stay finite."""


def distance(far: np.ndarray, near: np.ndarray) -> np.ndarray:
    """far - near, at most the largest float, where both are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        gap = far - near
    return np.where(np.isinf(gap) & np.isfinite(far) & np.isfinite(near), np.finfo(float).max, gap)


def log_norm(rate: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Log of the integral of exp(-abs(rate) s) over a segment of this length."""
    a = np.abs(rate)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        decay = a * length
        flat = np.log(length) - 0.5 * decay
        return np.asarray(np.where(decay < _FLAT, flat, np.log(-np.expm1(-decay)) - np.log(a)))


def log_density(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Log of the density of segments at points x inside them."""
    s = np.where(rate >= 0, distance(x, lo), distance(hi, x))
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.where(rate == 0, 0.0, np.abs(rate) * s)
    return np.asarray(np.maximum(-fall - log_norm(rate, distance(hi, lo)), LEAST_LOG))


def log_part(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Log of the share of segments that lies in (a, b], lo <= a < b <= hi."""
    start = np.where(rate >= 0, distance(a, lo), distance(hi, b))
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.where(rate == 0, 0.0, np.abs(rate) * start)
    log_share = -fall + log_norm(rate, distance(b, a)) - log_norm(rate, distance(hi, lo))
    return np.asarray(np.where((a == lo) & (b == hi), 0.0, np.clip(log_share, LEAST_LOG, 0.0)))


def part_below(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Share of segments at or below x, lo <= x <= hi."""
    length, below = distance(hi, lo), distance(x, lo)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        decay = np.abs(rate) * length
        flat = below / length
        falling = np.expm1(-rate * below) / np.expm1(-decay)
        rising = 1.0 - np.expm1(rate * distance(hi, x)) / np.expm1(-decay)
        # in a lower tail the share is that of the distance from hi, without a difference of ones
        open_low = np.exp(rate * distance(hi, x))
    share = np.where(rate >= 0, falling, np.where(np.isinf(lo), open_low, rising))
    return np.clip(np.where(decay < _FLAT, flat, share), 0.0, 1.0)


def from_anchor(rate: np.ndarray, length: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Distance from the anchor of the point of segments with this share (0..1) at or below it."""
    # The inverse of `part_below`. The anchor is lo if rate >= 0, else hi.
    a = np.abs(rate)
    near = np.where(rate >= 0, share, 1.0 - share)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        decay = a * length
        # of a lower tail: exp(-a s) = share
        s = np.where((rate < 0) & np.isinf(length), -np.log(share), -np.log1p(near * np.expm1(-decay))) / a
        return np.where(decay < _FLAT, near * length, s)


def point_at(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The point of segments with this share (0..1) at or below it."""
    s = from_anchor(rate, distance(hi, lo), share)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip(np.where(rate >= 0, lo + s, hi - s), lo, hi)


def decay_of_mean(fraction: np.ndarray) -> np.ndarray:
    """rate (hi - lo) of segments whose mean lies at a fraction (0..1) of their length: positive below 1/2."""
    if len(fraction) == 0:
        return np.empty(0)
    near = np.clip(np.minimum(fraction, 1.0 - fraction), 1e-6, 0.5)
    low, high = np.full(len(near), 1e-3), np.full(len(near), 2e6)
    for _ in range(60):  # bisection: the mean 1/t - 1/(exp(t) - 1) falls with t
        t = np.sqrt(low * high)
        mean = np.where(t < SHORT, 0.5 - _excess(np.minimum(t, SHORT)), 1 / t - _ratio(t))
        low, high = np.where(mean > near, t, low), np.where(mean > near, high, t)
    return np.where(fraction < 0.5, low, -low)


def mean_variance(lo: np.ndarray, hi: np.ndarray, rate: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of segments; on a grid (step > 0) those of the cells' centres."""
    length = distance(hi, lo)
    a = np.abs(rate)
    if step > 0:
        cells = np.rint(np.where(np.isinf(length), np.inf, length) / step)
        number, square = _cell_moments(a * step, cells)
        mean, var = (number + 0.5) * step, square * step * step
    else:
        mean, var = _moments(a, length)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(rate >= 0, lo + mean, hi - mean), np.maximum(var, 0.0)


def _moments(a: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the distance from the anchor."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        t = a * length
        near = np.where(t < SHORT, t, 0.0)
        span = np.minimum(length, np.finfo(float).max)
        mean = np.where(t < SHORT, length * (0.5 - _excess(near)), 1 / a - span * _ratio(t))
        var = np.where(t < SHORT, -(length**2) * (_bend(near) - 1 / 12), (1 / a) ** 2 - (span * _half_csch(t)) ** 2)
    return mean, var


def _cell_moments(t: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the number, 0..m-1, of a cell with probability proportional to exp(-t number)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        all_cells = t * cells
        far = all_cells >= SHORT
        little, near = np.where(far, 0.0, t), np.where(far, 0.0, all_cells)
        cells = np.minimum(cells, np.finfo(float).max)
        mean = np.where(
            far, 1 / np.expm1(t) - cells * _ratio(all_cells), (cells - 1) / 2 + _excess(little) - cells * _excess(near)
        )
        far_var = _half_csch(t) ** 2 - (cells * _half_csch(all_cells)) ** 2
        var = np.where(far, far_var, (cells - 1) * (cells + 1) / 12 + _bend(little) - cells**2 * _bend(near))
    return mean, var


def _ratio(t: np.ndarray) -> np.ndarray:
    """1 / (exp(t) - 1)."""
    return np.where(t < 700.0, 1 / np.expm1(np.minimum(t, 700.0)), 0.0)


def _half_csch(t: np.ndarray) -> np.ndarray:
    """1 / (2 sinh(t/2))."""
    return np.where(t < 1400.0, 0.5 / np.sinh(np.minimum(t, 1400.0) / 2), 0.0)


def _excess(t: np.ndarray) -> np.ndarray:
    """1 / (exp(t) - 1) - 1/t + 1/2 for 0 <= t < 1/2: its Bernoulli series, to the last digit."""
    y = t * t
    return t * (1 / 12 - y * (1 / 720 - y * (1 / 30240 - y * (1 / 1209600 - y * (1 / 47900160 - y * _LAST)))))


def _bend(t: np.ndarray) -> np.ndarray:
    """1 / (4 sinh(t/2)^2) - 1/t^2 + 1/12 for 0 <= t < 1/2."""
    y = t * t
    return y * (3 / 720 - y * (5 / 30240 - y * (7 / 1209600 - y * (9 / 47900160 - y * 11 * _LAST))))


_LAST = 691 / 1307674368000
"""Sixth coefficient of the Bernoulli series."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Codes 0..K-1 of a column, and a *base measure* inside each code, as one list of S segments.

    A segment with ``lo == hi`` is a point with a mass of its own: an atom of a column without a grid, or a level of a
    categorical column (level k is the point k). Any other segment is an interval ``(lo, hi]`` whose density is
    proportional to ``exp(-rate * x)``: uniform if the rate is 0, an open tail if an end is infinite. On a grid ``lo``
    and ``hi`` are edges of cells, and a cell has its share of the segment.

    The codes of a numeric column are ordered: everything of code k lies below everything of code k + 1. A scale cut to
    a region (`restrict`) has fewer and shorter segments, and their masses are those in the complete scale.

    n_codes : int. K.
    step, origin : float. Width of a grid cell and centre of one of them; step 0 where there is no grid.
    lo, hi, rate : float64 array (S,). Segments, ascending by (lo, hi), disjoint.
    code : int32 array (S,). The code that each segment belongs to.
    log_mass : float64 array (S,). Log of the segment's share of its code; in a whole scale the shares of each code sum
        to 1.

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


# ---- Values to codes, and their base density.


def codes_of(scale: Scale, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes of values (n,), and the log of their base density within the code; K and 0 where missing."""
    # On a grid the density is the cell's share of the code over the step; at an atom or level it is its share of the
    # code. Outside the region of a restricted scale, the code is 0 and the log density -inf.
    x = np.asarray(x, dtype=np.float64)
    missing = np.isnan(x)
    at = np.where(missing, scale.origin, x)
    segment = _segments(scale, at)
    log_base = _on_grid(scale, at, segment) if scale.step > 0 else _off_grid(scale, at, segment)
    nowhere = (segment < 0) & ~missing
    return _codes(scale, segment, missing), np.where(missing, 0.0, np.where(nowhere, -np.inf, log_base))


def code_table(scales: Sequence[Scale], X: np.ndarray) -> np.ndarray:
    """The codes of all columns of X (n, d), int32 (n, d), as `codes_of` has them."""

    def one(j: int) -> np.ndarray:
        missing = np.isnan(X[:, j])
        return _codes(scales[j], _segments(scales[j], np.where(missing, scales[j].origin, X[:, j])), missing)

    return np.column_stack(list(map_ordered(one, [(j,) for j in range(len(scales))])))


def _codes(scale: Scale, segment: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Codes of segments, int32; 0 where there is none (-1), K where missing."""
    code = scale.code[segment] if len(scale.code) else np.zeros(len(segment), dtype=np.int32)
    return np.where(missing, scale.n_codes, np.where(segment < 0, 0, code)).astype(np.int32)


def _segments(scale: Scale, x: np.ndarray) -> np.ndarray:
    """Numbers of the segments of values; of points before intervals; -1 if none."""
    if scale.step > 0:
        return _found(scale, scale.intervals, scale.origin + cell_number(x, scale.step, scale.origin) * scale.step)
    segment = _found(scale, scale.intervals, x)
    if len(scale.points):
        place = np.minimum(np.searchsorted(scale.lo[scale.points], x), len(scale.points) - 1)
        point = scale.points[place]
        segment = np.where(scale.lo[point] == x, point, segment)
    return segment


def _found(scale: Scale, among: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Number of the interval with x in it, of those whose numbers are given; -1 if none."""
    if len(among) == 0:
        return np.full(len(x), -1)
    place = np.minimum(np.searchsorted(scale.hi[among], x), len(among) - 1)
    segment = among[place]
    return np.where((scale.lo[segment] < x) & (x <= scale.hi[segment]), segment, -1)


def _on_grid(scale: Scale, x: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Log of the share of the values' cells in their segments over the step."""
    if len(scale.lo) == 0:
        return np.zeros(len(x))
    cell = cell_number(x, scale.step, scale.origin)
    first, last = first_cell(scale, scale.lo[segment]), last_cell(scale, scale.hi[segment])
    rate = scale.rate[segment] * scale.step
    cells = distance(last, first) + 1
    with np.errstate(over="ignore", invalid="ignore"):
        fall = np.where(rate == 0, 0.0, np.abs(rate) * np.where(rate >= 0, cell - first, last - cell))
    # one cell's integral over that of all cells, both in cells from the anchor
    log_cell = log_norm(rate, np.ones(len(x))) - fall - log_norm(rate, cells)
    log_cell = np.where(cells == 1, 0.0, np.maximum(log_cell, LEAST_LOG))
    return np.asarray(scale.log_mass[segment] + log_cell - np.log(scale.step))


def first_cell(scale: Scale, lo: np.ndarray) -> np.ndarray:
    """Number of the first grid cell above an edge."""
    return np.asarray(np.rint((lo - scale.origin) / scale.step + 0.5))


def last_cell(scale: Scale, hi: np.ndarray) -> np.ndarray:
    """Number of the last grid cell below an edge."""
    return np.asarray(np.rint((hi - scale.origin) / scale.step - 0.5))


def _off_grid(scale: Scale, x: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Log of share (points) or of density, of values in segments."""
    log_base = np.zeros(len(x))
    found = np.flatnonzero(segment >= 0)
    log_base[found] = scale.log_mass[segment[found]]
    inside = found[scale.lo[segment[found]] < scale.hi[segment[found]]]
    s = segment[inside]
    log_base[inside] += log_density(scale.lo[s], scale.hi[s], scale.rate[s], x[inside])
    return log_base
