"""Kernels of quantile leaves: the corridor around an empirical CDF, and a line of few pieces through it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...ground.compile import entry, kernel
from ...ground.records import record

_TIE = 1e-12
"""Rounding of a sum of weights."""
_SAME = 1e-14
"""Heights that rounding cannot tell apart."""
_SLACK = 1e-13
"""By how much rounding may miss a gate."""


@record
class Samples(NamedTuple):
    """Values of one numeric column in l leaves, and how closely the CDF of each is to be followed.

    Attributes
    ----------
    x : float64 array (n,)
        The values of leaf k are ``x[start[k]:start[k + 1]]``, ascending.
    share : float64 array (n,)
        Their weights, which sum to 1 over a leaf.
    start : int64 array (l + 1,)
    epsilon : float64 array (l,)
        Largest distance between the leaf's two CDFs.
    outside : float64 array (l,)
        Mass, if there is room for it, beyond the leaf's values.
    lo, hi : float64 arrays (l,)
        Support (lo, hi] of the CDF.
    step, origin : float
        The column's grid; a step of 0 for none.
    width : float
        Values closer than this count as one, and no piece is narrower than half of it. Not used on a grid.
    """

    x: np.ndarray
    share: np.ndarray
    start: np.ndarray
    epsilon: np.ndarray
    outside: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    step: float
    origin: float
    width: float


@record
class Gates(NamedTuple):
    """Scratch: the gates ``lower <= p <= upper`` at ``at`` that a CDF has to pass, all ascending, and a line through.

    ``knot`` are the numbers of the gates at which the line bends, ``low`` and ``high`` the part of the gate that it can
    reach there, and ``height`` where it passes.
    """

    at: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    knot: np.ndarray
    low: np.ndarray
    high: np.ndarray
    height: np.ndarray


@record
class Polygons(NamedTuple):
    """Scratch: corners (p, slope) of a convex polygon of lines, and of what two cuts leave of it."""

    p: np.ndarray
    slope: np.ndarray
    half_p: np.ndarray
    half_slope: np.ndarray
    new_p: np.ndarray
    new_slope: np.ndarray


def make_scratch(n: int) -> tuple[Gates, Polygons]:
    """Scratch for leaves of at most n values."""
    m = 2 * n + 2
    # A cut of a polygon adds a corner at most, and at most doubles them whatever rounding does.
    return (
        Gates(np.empty(m), np.empty(m), np.empty(m), np.empty(m, np.int64), np.empty(m), np.empty(m), np.empty(m)),
        Polygons(*(np.empty(8 * m + 64) for _ in range(6))),
    )


@kernel
def _steps_corridor(samples, first_row, end_row, epsilon, floor, lo, hi, gates):
    """Write where a CDF has to pass to be within ``epsilon`` of that of the values of one leaf; the number of gates.

    A continuous CDF is that close if it is between (F(v) - epsilon) and (F(v-) + epsilon) at each value v. No CDF
    passes a step of more than 2 epsilon (less ``floor``, which is kept for the least slope): values closer than
    ``width`` count as one, and one of such a mass is spread over ``width``, with F before and behind it. The first and
    last gates are half a ``width`` beyond the values, if (lo, hi] has the room.
    """
    x, share, width = samples.x, samples.share, samples.width
    at, lower, upper = gates.at, gates.lower, gates.upper
    at[0], lower[0], upper[0] = max(x[first_row] - 0.5 * width, lo), -epsilon, epsilon
    m, i, before = 1, first_row, 0.0
    while i < end_row:
        first = i
        mass = 0.0
        while i < end_row and x[i] - x[first] <= width:
            mass += share[i]
            i += 1
        last = x[i - 1]
        behind = before + mass
        # at a side of the box without room the CDF is 0, or 1, right beside the value
        at_side = (first == first_row and x[first_row] - lo < 0.5 * width) or (i == end_row and hi - last < 0.5 * width)
        if mass > (epsilon if at_side else 2.0 * epsilon - floor) + _TIE:
            left = max(x[first] - 0.5 * width, 0.5 * (at[m - 1] + x[first]), lo)
            right = min(last + 0.5 * width, hi) if i == end_row else min(last + 0.5 * width, 0.5 * (last + x[i]))
            if first > first_row and left > at[m - 1]:
                at[m], lower[m], upper[m] = left, before - epsilon, before + epsilon
                m += 1
            at[m], lower[m], upper[m] = right, behind - epsilon, behind + epsilon
            m += 1
        else:
            at[m], lower[m], upper[m] = x[first], behind - epsilon, before + epsilon
            m += 1
            if last > x[first]:
                at[m], lower[m], upper[m] = last, behind - epsilon, before + epsilon
                m += 1
        before = behind
    end = min(x[end_row - 1] + 0.5 * width, hi)
    if end > at[m - 1]:
        at[m] = end
        m += 1
    lower[m - 1], upper[m - 1] = 1.0 - epsilon, 1.0 + epsilon
    return m


@kernel
def _cells_corridor(samples, first_row, end_row, epsilon, lo, hi, gates):
    """Write where a CDF on a grid has to pass to be within ``epsilon`` of that of one leaf; the number of gates.

    Of a cell's inside nobody asks, so F counts at the edges of the cells with values.
    """
    x, step, origin = samples.x, samples.step, samples.origin
    at, lower, upper = gates.at, gates.lower, gates.upper
    m, i, before, edge = 0, first_row, 0.0, -math.inf
    while i < end_row:
        cell = np.rint((x[i] - origin) / step)
        mass = 0.0
        while i < end_row and np.rint((x[i] - origin) / step) == cell:
            mass += samples.share[i]
            i += 1
        if m == 0 or cell > edge:
            at[m], lower[m], upper[m] = max(origin + (cell - 0.5) * step, lo), before - epsilon, before + epsilon
            m += 1
        before += mass
        edge = cell + 1.0
        at[m], lower[m], upper[m] = min(origin + (cell + 0.5) * step, hi), before - epsilon, before + epsilon
        m += 1
    return m


@kernel
def _cut(p, slope, n, length, bound, sign, new_p, new_slope):
    """Write the part of a polygon of n corners where ``sign * (p + length * slope) <= sign * bound``; its corners.

    Bounds may be met up to rounding. Of corners that rounding cannot tell apart one is kept.
    """
    m = 0
    bound += sign * _SLACK
    for i in range(n):
        k = i + 1 if i + 1 < n else 0
        a = sign * (p[i] + length * slope[i] - bound)
        b = sign * (p[k] + length * slope[k] - bound)
        if a <= 0.0:
            m = _add_corner(p[i], slope[i], length, new_p, new_slope, m)
        if (a < 0.0 < b) or (b < 0.0 < a):
            t = a / (a - b)
            m = _add_corner(p[i] + t * (p[k] - p[i]), slope[i] + t * (slope[k] - slope[i]), length, new_p, new_slope, m)
    return m


@kernel
def _add_corner(p, slope, length, new_p, new_slope, m):
    for i in (0, m - 1):
        if m > 0 and abs(p - new_p[i]) <= _SAME and abs(slope - new_slope[i]) * length <= _SAME:
            return m
    new_p[m], new_slope[m] = p, slope
    return m + 1


@kernel
def _reach(gates, n, here, a, b, polygons):
    """The last gate that a straight line gets to from the part [a, b] of gate ``here``, and the part it can reach.

    The lines that pass all gates so far are a convex polygon, which every further gate cuts.
    """
    at, lower, upper = gates.at, gates.lower, gates.upper
    p, slope, new_p, new_slope = polygons.p, polygons.slope, polygons.new_p, polygons.new_slope
    gate = here + 1
    length = at[gate] - at[here]
    # lines by their height p here and their slope, none falling
    least, most = lower[gate], upper[gate]
    p[0], slope[0], p[1], slope[1] = a, (most - a) / length, a, max(least - a, 0.0) / length
    m = 2
    if a < least < b:
        p[m], slope[m] = least, 0.0
        m += 1
    p[m], slope[m], p[m + 1], slope[m + 1] = b, max(least - b, 0.0) / length, b, (most - b) / length
    m += 2
    while gate + 1 < n and 4 * m <= p.shape[0]:
        longer = at[gate + 1] - at[here]
        some = _cut(p, slope, m, longer, upper[gate + 1], 1.0, polygons.half_p, polygons.half_slope)
        some = _cut(
            polygons.half_p, polygons.half_slope, some, longer, lower[gate + 1], -1.0, new_p, new_slope
        )  # fmt: skip
        if some == 0:
            break
        p, slope, new_p, new_slope = new_p, new_slope, p, slope
        m, length = some, longer
        gate += 1
    low, high = math.inf, -math.inf
    for i in range(m):
        height = p[i] + length * slope[i]
        low, high = min(low, height), max(high, height)
    low = min(max(low, lower[gate]), upper[gate])
    return gate, low, max(min(high, upper[gate]), low)


@kernel
def _settle(gates, k):
    """Choose, backwards from the last of the knots 0..k, where the line passes each, into ``gates.height``."""
    at, lower, upper, knot, height = gates.at, gates.lower, gates.upper, gates.knot, gates.height
    height[k] = 0.5 * (gates.low[k] + gates.high[k])
    for i in range(k - 1, -1, -1):
        behind = height[i + 1]
        a, b = gates.low[i], min(gates.high[i], behind)
        left, right = knot[i], knot[i + 1]
        for gate in range(left + 1, right):
            t = (at[gate] - at[left]) / (at[right] - at[left])
            a = max(a, (lower[gate] - t * behind) / (1.0 - t))
            b = min(b, (upper[gate] - t * behind) / (1.0 - t))
        middle = 0.5 * (lower[left] + upper[left])
        if a <= b:
            height[i] = min(max(middle, a), b)
        else:
            height[i] = min(max(0.5 * (a + b), gates.low[i]), min(gates.high[i], behind))


@kernel
def _few_knots(gates, n, polygons):
    """Write the knots of a non-decreasing line of few pieces through the n gates; their number.

    Gates do not fall, and every one is open. From the part of a gate that the line can reach, the next knot is at the
    last gate that a straight line gets to. Which of the points within reach are taken is settled backwards.
    """
    knot = gates.knot
    knot[0], gates.low[0], gates.high[0] = 0, gates.lower[0], gates.upper[0]
    k = 0
    while knot[k] < n - 1:
        gate, low, high = _reach(gates, n, knot[k], gates.low[k], gates.high[k], polygons)
        k += 1
        knot[k], gates.low[k], gates.high[k] = gate, low, high
    _settle(gates, k)
    return k + 1


@kernel
def _mass_beyond(gates, n, outside, least_room, epsilon, lo, hi):
    """Mass below the first and above the last gate; a gate without room beyond it moves to the side of the box.

    Together ``outside``, but at most what the uniform distribution on (lo, hi] has there.
    """
    at = gates.at
    if at[0] - lo < least_room:
        at[0] = lo
    if hi - at[n - 1] < least_room:
        at[n - 1] = hi
    beyond = (at[0] - lo) + (hi - at[n - 1])
    if not beyond > 0.0:
        return 0.0, 0.0
    total = min(outside, beyond / (hi - lo))
    return min(total * ((at[0] - lo) / beyond), epsilon), min(total * ((hi - at[n - 1]) / beyond), epsilon)


@kernel
def _keep_slope(gates, n, below, above, floor):
    """Take a line of slope ``floor`` over the span from the gates, so that it can be added to what passes them."""
    at, lower, upper = gates.at, gates.lower, gates.upper
    lower[0], upper[0] = below, below
    lower[n - 1], upper[n - 1] = 1.0 - above, 1.0 - above
    span = at[n - 1] - at[0]
    for i in range(n):
        lower[i] -= floor * ((at[i] - at[0]) / span)
        upper[i] -= floor * ((at[i] - at[0]) / span)
    for i in range(1, n):
        lower[i] = max(lower[i], lower[i - 1])
    for i in range(n - 2, -1, -1):
        upper[i] = min(upper[i], upper[i + 1])
    for i in range(n):
        upper[i] = max(upper[i], lower[i])  # equal up to rounding


@kernel
def _fit_cdf(samples, leaf, gates, polygons, knot_x, knot_p):
    """Write the knots of a CDF within the leaf's epsilon of that of its values; their number.

    Half of the mass beyond the values is the least within: everywhere in (lo, hi] is some density. Beyond the values it
    is at most that of the uniform distribution on (lo, hi].
    """
    epsilon, outside, lo, hi = samples.epsilon[leaf], samples.outside[leaf], samples.lo[leaf], samples.hi[leaf]
    first, end = samples.start[leaf], samples.start[leaf + 1]
    floor = 0.5 * outside
    if samples.step > 0.0:
        n = _cells_corridor(samples, first, end, epsilon, lo, hi, gates)
        least_room = 0.5 * samples.step
    else:
        n = _steps_corridor(samples, first, end, epsilon, min(floor, epsilon), lo, hi, gates)
        least_room = samples.width
    below, above = 0.0, 0.0
    if outside > 0.0:
        below, above = _mass_beyond(gates, n, outside, least_room, epsilon, lo, hi)
    floor = max(min(floor, epsilon - max(below, above), 0.5 * (1.0 - below - above)), 0.0)
    _keep_slope(gates, n, below, above, floor)
    k = _few_knots(gates, n, polygons)
    at = gates.at
    span = at[n - 1] - at[0]
    tail_below, tail_above = int(at[0] > lo and outside > 0.0), int(at[n - 1] < hi and outside > 0.0)
    for i in range(k):
        x = at[gates.knot[i]]
        knot_x[tail_below + i] = x
        knot_p[tail_below + i] = gates.height[i] + floor * ((x - at[0]) / span)
    size = k + tail_below + tail_above
    knot_x[0] = lo if tail_below else at[0]
    knot_x[size - 1] = hi if tail_above else at[n - 1]
    knot_p[0], knot_p[size - 1] = 0.0, 1.0
    return size


@entry
def cdf_knots(samples, gates, polygons, knot_start, knot_x, knot_p):
    """Write the knots of each leaf's CDF, of leaf k from ``knot_start[k]`` on; leaves without values are uniform."""
    knot_start[0] = 0
    for leaf in range(samples.start.shape[0] - 1):
        at = knot_start[leaf]
        if samples.start[leaf] == samples.start[leaf + 1]:
            knot_x[at], knot_x[at + 1] = samples.lo[leaf], samples.hi[leaf]
            knot_p[at], knot_p[at + 1] = 0.0, 1.0
            knot_start[leaf + 1] = at + 2
        else:
            knot_start[leaf + 1] = at + _fit_cdf(samples, leaf, gates, polygons, knot_x[at:], knot_p[at:])
