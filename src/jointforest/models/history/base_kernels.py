"""Kernels: values of columns of changes inside their codes: their density, their shares, and draws.

A code is a list of segments, as in `data.discretization.discretizer.Scale`. Its place g in the lists of `Layout` names
it. Values beyond the range of the column have `OUT_OF_RANGE` times their density.
"""

import math

import numpy as np

from ...runtime.compile import kernel
from ...runtime.numeric_kernels import first_at_least

OUT_OF_RANGE = 1e-6
"""Factor of the density of values beyond the range of their column."""
_FLAT = 1e-14
"""Decay of a density over a segment below which it counts as uniform."""
_INSIDE = 2.0**-53
"""Least distance of a draw from the ends of its segment, as a share."""


@kernel
def cell_of(layout, k, x, origin):
    """Number of the grid cell of a value; of one between two cells, the lower one."""
    cells = (x - origin) / layout.step[k]
    near = math.floor(cells + 0.5)
    return near if abs(cells - near) <= 1e-6 + 4e-16 * abs(cells) else math.ceil(cells - 0.5)


@kernel
def origin_of(layout, k, g):
    """Centre of a grid cell of values or changes; changes count from 0."""
    return layout.origin[k] if g < layout.change_start[0] else 0.0


@kernel
def decayed(rate, length):
    """Integral of exp(-abs(rate) s) over a length."""
    decay = abs(rate) * length
    return length if decay < _FLAT else -math.expm1(-decay) / abs(rate)


@kernel
def share_below(layout, s, x):
    """Share of a segment at or below x."""
    lo, hi, rate = layout.seg_lo[s], layout.seg_hi[s], layout.seg_rate[s]
    if x >= hi:
        return 1.0
    if x <= lo:
        return 0.0
    whole = decayed(rate, hi - lo)
    return decayed(rate, x - lo) / whole if rate >= 0.0 else 1.0 - decayed(rate, hi - x) / whole


@kernel
def code_below(layout, g, x):
    """Share of a code at or below x."""
    total = 0.0
    for s in range(layout.seg_start[g], layout.seg_start[g + 1]):
        total += layout.seg_share[s] * share_below(layout, s, x)
    return total


@kernel
def reach(layout, k, g, before):
    """Range of the values of code g after a value: what is above the first number and up to the second one."""
    # ``before`` is 0 for codes of values.
    low, high = layout.low[k] - before, layout.high[k] - before
    step = layout.step[k]
    if step == 0.0:
        return np.nextafter(low, -math.inf), high
    origin = origin_of(layout, k, g)
    return (
        origin + (math.ceil((low - origin) / step - 1e-6) - 0.5) * step,
        origin + (math.floor((high - origin) / step + 1e-6) + 0.5) * step,
    )


@kernel
def share_in_range(layout, k, g, before):
    """Share of a code that leads to values within the range."""
    low, high = reach(layout, k, g, before)
    first, last = layout.seg_start[g], layout.seg_start[g + 1] - 1
    if low <= layout.seg_lo[first] and layout.seg_hi[last] <= high and layout.seg_lo[first] < layout.seg_hi[last]:
        return 1.0
    if high < low:
        return 0.0
    return max(code_below(layout, g, high) - code_below(layout, g, low), 0.0)


@kernel
def range_weight(layout, k, g, before):
    """Share of a code that is within the range, and a little of what is beyond: see `OUT_OF_RANGE`."""
    return OUT_OF_RANGE + (1.0 - OUT_OF_RANGE) * share_in_range(layout, k, g, before)


@kernel
def range_factor(layout, k, g, before, x):
    """What the range multiplies the density of a value x inside its code by."""
    margin = 0.5 * layout.step[k]
    is_inside = layout.low[k] - margin <= x <= layout.high[k] + margin
    return (1.0 if is_inside else OUT_OF_RANGE) / range_weight(layout, k, g, before)


@kernel
def segment_of(layout, first, last, x):
    """The segment with x in it, of those from ``first`` to ``last``; of a point and an interval, the point."""
    low = first_at_least(layout.seg_hi, first, last, x)
    if low < last and layout.seg_lo[low + 1] == x and layout.seg_hi[low + 1] == x:
        return low + 1
    return low


@kernel
def change_of(layout, k, change):
    """Code of a change, from 1, and its base density there."""
    g, after = layout.change_start[k], layout.change_start[k + 1]
    step = layout.step[k]
    x = cell_of(layout, k, change, 0.0) * step if step > 0.0 else change
    s = segment_of(layout, layout.seg_start[g], layout.seg_start[after] - 1, x)
    lo, hi, rate, share = layout.seg_lo[s], layout.seg_hi[s], layout.seg_rate[s], layout.seg_share[s]
    code = layout.seg_code[s] + 1
    if lo == hi:
        return code, share
    whole, width = decayed(rate, hi - lo), step if step > 0.0 else 1.0
    away = (x - lo if rate >= 0.0 else hi - x) - 0.5 * step
    part = math.exp(-abs(rate) * away) * (decayed(rate, step) if step > 0.0 else 1.0) / whole
    return code, share * part / width


@kernel
def value_inside(layout, k, g, before, u):
    """The value within the range that has the share u of its code below it, after a value (0 for codes of values)."""
    low, _ = reach(layout, k, g, before)
    inside = share_in_range(layout, k, g, before)
    share = code_below(layout, g, low) + u * inside if inside > 0.0 else u
    s, last = layout.seg_start[g], layout.seg_start[g + 1] - 1
    while s < last and share > layout.seg_share[s]:
        share -= layout.seg_share[s]
        s += 1
    part = min(max(share / layout.seg_share[s], _INSIDE), 1.0 - _INSIDE)
    lo, hi, rate = layout.seg_lo[s], layout.seg_hi[s], layout.seg_rate[s]
    if lo == hi:
        return before + lo
    x = _point_at(lo, hi, rate, part)
    step = layout.step[k]
    if step > 0.0:
        origin = origin_of(layout, k, g)
        x = origin + cell_of(layout, k, x, origin) * step
        x = min(max(x, lo + 0.5 * step), hi - 0.5 * step)
    if inside > 0.0:
        return min(max(before + x, layout.low[k]), layout.high[k])
    return before + x


@kernel
def _point_at(lo, hi, rate, part):
    """The point of a segment with this share at or below it."""
    length = hi - lo
    if abs(rate) * length < _FLAT:
        return lo + part * length
    if rate > 0.0:
        return min(lo - math.log1p(part * math.expm1(-rate * length)) / rate, hi)
    if math.isinf(lo):
        return hi + math.log(part) / -rate
    return max(hi + math.log1p((1.0 - part) * math.expm1(rate * length)) / -rate, lo)


@kernel
def cells_within(layout, k, g, s, before):
    """First and last grid cell of a segment within the range; the last one is the lower one if there is none."""
    low, high = reach(layout, k, g, before)
    origin, step = origin_of(layout, k, g), layout.step[k]
    first = math.floor((max(low, layout.seg_lo[s]) - origin) / step + 1.0)
    last = math.floor((min(high, layout.seg_hi[s]) - origin) / step)
    return first, last


@kernel
def cell_share(layout, k, g, s, cell):
    """Share of a code that is in one grid cell of its segment."""
    centre, half = origin_of(layout, k, g) + cell * layout.step[k], 0.5 * layout.step[k]
    return layout.seg_share[s] * (share_below(layout, s, centre + half) - share_below(layout, s, centre - half))
