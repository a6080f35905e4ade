"""Kernels of quantile leaves: the corridor around an empirical CDF, and a line of few pieces through it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...models.box_forest.leaves.grid_kernels import cell_centre
from ...models.box_forest.leaves.slot_kernels import safe_log, value_log_density
from ...runtime.compile import entry, kernel
from ...runtime.numeric_kernels import first_at_least
from ...runtime.records import record

# ---- Kernels that give a piecewise-linear CDF the mean and the variance of the values that it stands for.

_ROUNDS = 12
"""A round changes a mass to a half at least and to its double at most."""


@kernel
def keep_moments(knot_x, knot_p, span, mean, spread, variances, step, scratch):
    """Change heights of knots so that the mean is exact and the variance between two ``variances``; success."""
    first, end, size = span
    u, q, mass = scratch
    for i in range(size - 1):
        mass[i] = knot_p[i + 1] - knot_p[i]
        a, b = (knot_x[i] - mean) / spread, (knot_x[i + 1] - mean) / spread
        # of a grid, cells count at their middle
        u[i], q[i] = 0.5 * (a + b), (a * a + a * b + b * b) / 3.0 - (step / spread) ** 2 / 12.0
    if not _tilt(u, q, mass, span, variances[0] / spread**2, variances[1] / spread**2):
        return False
    for i in range(first, end):
        knot_p[i + 1] = min(knot_p[i] + mass[i], 1.0)
    for i in range(end + 1, size):
        knot_p[i] = max(knot_p[i], knot_p[i - 1])
    knot_p[size - 1] = 1.0
    return True


@kernel
def _tilt(u, q, mass, span, least, most):
    """Multiply masses by 1 + a u + b q until their mean of u is 0 and that of q from least to most; success."""
    # If no factor is negative one round is exact: two linear equations. b is 0 until the mean of q is off.
    first, end, size = span
    second = False
    for _ in range(_ROUNDS):
        mean_u, mean_q = 0.0, 0.0
        for i in range(size - 1):
            mean_u += mass[i] * u[i]
            mean_q += mass[i] * q[i]
        off = min(max(mean_q, least), most) - mean_q
        if abs(mean_u) <= 1e-13:
            if abs(off) <= 1e-9:
                return True
            second = True
        total, near_u, near_q = _near_means(u, q, mass, first, end)
        uu, uq, qq = 0.0, 0.0, 0.0
        for i in range(first, end):
            du, dq = u[i] - near_u, q[i] - near_q
            uu += mass[i] * du * du
            uq += mass[i] * du * dq
            qq += mass[i] * dq * dq
        a, b, det = 0.0, 0.0, uu * qq - uq * uq
        if not (uu > 0.0 and (det > 1e-9 * uu * qq or not second)):
            return False
        if second:
            a, b = (-mean_u * qq - off * uq) / det, (off * uu + mean_u * uq) / det
        else:
            a = -mean_u / uu
        new_total = 0.0
        for i in range(first, end):
            mass[i] *= min(max(1.0 + a * (u[i] - near_u) + b * (q[i] - near_q), 0.5), 2.0)
            new_total += mass[i]
        for i in range(first, end):
            mass[i] *= total / new_total
    return False


@kernel
def _near_means(u, q, mass, first, end):
    """Sum of the masses that may change, and their means of u and q."""
    total, mean_u, mean_q = 0.0, 0.0, 0.0
    for i in range(first, end):
        total += mass[i]
        mean_u += mass[i] * u[i]
        mean_q += mass[i] * q[i]
    return total, mean_u / total, mean_q / total


_TIE = 1e-12
"""Rounding of a sum of weights."""
_SAME = 1e-14
"""Differences of heights that may be rounding."""
_SLACK = 1e-13
"""By how much rounding may miss a gate."""
_LEAST = 2.0
"""To either side gates have so many rows, where these are not all of the variance."""
_FAR = 0.05
"""Share of the variance that the mass far beyond the values may add on either side."""
_VARIANCE = 0.05
"""By how much, relatively, the variance of the values may be missed, beside what is allowed in addition."""
_FEW = 12
"""Pieces of which each is halved where they are too few for the moments."""


@record
class Samples(NamedTuple):
    """Values of one numeric column in l leaves, and how closely the CDF of each is to be followed.

    x : float64 array (n,). The values of leaf k are ``x[start[k]:start[k + 1]]``, ascending.
    share : float64 array (n,). Their weights, which sum to 1 over a leaf.
    start : int64 array (l + 1,)
    rows : float64 array (l,). How many rows the values stand for.
    epsilon : float64 array (l,). Largest distance between the leaf's two CDFs.
    outside : float64 array (l,). Mass, if there is room for it, beyond the leaf's values.
    extra : float64 array (l,). By how much the variance may exceed that of the values.
    mean, var : float64 arrays (l,). Moments of the values.
    lo, hi : float64 arrays (l,). Support (lo, hi] of the CDF.
    step, origin : float. The column's grid; a step of 0 for none.
    width : float. Values closer than this count as one, and no piece is narrower than half of it. Not used on a grid.
    """

    x: np.ndarray
    share: np.ndarray
    start: np.ndarray
    rows: np.ndarray
    epsilon: np.ndarray
    outside: np.ndarray
    extra: np.ndarray
    mean: np.ndarray
    var: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    step: float
    origin: float
    width: float


@record
class Gates(NamedTuple):
    """Scratch: the gates ``lower <= p <= upper`` at ``at`` that a CDF has to pass, all ascending, and a line through.
    ``knot`` are the numbers of the gates at which the line bends, ``low`` and ``high`` the part of the gate that it can
    reach there, and ``height`` where it passes."""

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
    """Write the gates through which a CDF within ``epsilon`` of one leaf's values passes; the number of gates."""
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
    """Write where a CDF on a grid has to pass to be within ``epsilon`` of that of one leaf; the number of gates."""
    # Of a cell's inside nobody asks, so F counts at the edges of the cells with values.
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
def _cut_polygon(p, slope, n, length, bound, sign, new_p, new_slope):
    """Write the part of a polygon of n corners where ``sign * (p + length * slope) <= sign * bound``; its corners."""
    # Bounds may be reached up to rounding. Of corners that are equal up to rounding one is kept.
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
def _last_gate(gates, n, here, a, b, polygons):
    """The last gate that a straight line gets to from the part [a, b] of gate ``here``, and the part it can reach."""
    # The lines that pass all gates so far are a convex polygon, which every further gate cuts.
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
        n_corners = _cut_polygon(p, slope, m, longer, upper[gate + 1], 1.0, polygons.half_p, polygons.half_slope)
        n_corners = _cut_polygon(
            polygons.half_p, polygons.half_slope, n_corners, longer, lower[gate + 1], -1.0, new_p, new_slope
        )  # fmt: skip
        if n_corners == 0:
            break
        p, slope, new_p, new_slope = new_p, new_slope, p, slope
        m, length = n_corners, longer
        gate += 1
    low, high = math.inf, -math.inf
    for i in range(m):
        height = p[i] + length * slope[i]
        low, high = min(low, height), max(high, height)
    low = min(max(low, lower[gate]), upper[gate])
    return gate, low, max(min(high, upper[gate]), low)


@kernel
def _choose_heights(gates, k):
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
    """Write the knots of a non-decreasing line of few pieces through the n gates; their number."""
    # Gates do not fall, and every one is open. From the part of a gate that the line can reach, the next knot is at the
    # last gate that a straight line gets to. Which of the points within reach are taken is settled backwards.
    knot = gates.knot
    knot[0], gates.low[0], gates.high[0] = 0, gates.lower[0], gates.upper[0]
    k = 0
    while knot[k] < n - 1:
        gate, low, high = _last_gate(gates, n, knot[k], gates.low[k], gates.high[k], polygons)
        k += 1
        knot[k], gates.low[k], gates.high[k] = gate, low, high
    _choose_heights(gates, k)
    return k + 1


@kernel
def _mass_beyond(gates, n, outside, least_room, epsilon, lo, hi):
    """Mass below the first and above the last gate: together ``outside``, at most that of the uniform on (lo, hi]."""
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
def _make_ascending(gates, n):
    """Take from the gates what a line that does not fall cannot pass."""
    lower, upper = gates.lower, gates.upper
    for i in range(1, n):
        lower[i] = max(lower[i], lower[i - 1])
    for i in range(n - 2, -1, -1):
        upper[i] = min(upper[i], upper[i + 1])
    for i in range(n):
        upper[i] = max(upper[i], lower[i])  # equal up to rounding


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
    _make_ascending(gates, n)


@kernel
def _narrow_gates(gates, n, masses, least, epsilon, mean, spread):
    """Narrow gates farther than ``spread`` from the mean, by its square, because error there changes the variance."""
    at, lower, upper, target = gates.at, gates.lower, gates.upper, gates.height
    below, above, floor = masses
    for i in range(n):
        if abs(at[i] - mean) > spread:
            share = (spread / (at[i] - mean)) ** 2
            middle = min(max(below + (1.0 - below - above - floor) * target[i], lower[i]), upper[i])
            half = max(epsilon * share, least if share > least else 0.0)
            lower[i], upper[i] = max(lower[i], middle - half), min(upper[i], middle + half)
    _make_ascending(gates, n)


@kernel
def _near_sides(gates, n, reach, samples, leaf):
    """Where what is near the values ends on either side: ``reach`` beyond them, on a grid at edges of cells."""
    # If no more than that would be left to the side of the box, all of it is near.
    lo, hi, step, origin = samples.lo[leaf], samples.hi[leaf], samples.step, samples.origin
    near_lo, near_hi = gates.at[0] - reach, gates.at[n - 1] + reach
    if step > 0.0:
        near_lo = origin + (np.floor((near_lo - origin) / step) - 0.5) * step
        near_hi = origin + (np.ceil((near_hi - origin) / step) + 0.5) * step
    return (lo if near_lo - lo < reach else near_lo), (hi if hi - near_hi < reach else near_hi)


@kernel
def _far_mass(from_x, to_x, mean, allowed, density):
    """Mass between two points: uniform of a density that adds at most ``allowed`` to the second moment."""
    if not to_x > from_x:
        return 0.0
    a, b = from_x - mean, to_x - mean
    return min(allowed / ((a * a + a * b + b * b) / 3.0), density * (to_x - from_x))


@kernel
def _write_knots(samples, leaf, mean, spread, gates, polygons, knot_x, knot_p):
    """Write the knots of a CDF within epsilon of that of a leaf's values; the number of knots, first and last near."""
    # Half of the mass beyond the values is the least within: everywhere in (lo, hi] is some density. Farther there is
    # half a row's uniform density at most, and little for the variance.
    epsilon, outside, lo, hi = samples.epsilon[leaf], samples.outside[leaf], samples.lo[leaf], samples.hi[leaf]
    first, end = samples.start[leaf], samples.start[leaf + 1]
    at = gates.at
    floor = 0.5 * outside
    if samples.step > 0.0:
        n = _cells_corridor(samples, first, end, epsilon, lo, hi, gates)
        least_room = 0.5 * samples.step
    else:
        n = _steps_corridor(samples, first, end, epsilon, min(floor, epsilon), lo, hi, gates)
        least_room = samples.width
    for i in range(n):
        gates.height[i] = min(max(0.5 * (gates.lower[i] + gates.upper[i]), 0.0), 1.0)
    below, above, far_below, far_above = 0.0, 0.0, 0.0, 0.0
    near_lo, near_hi = at[0], at[n - 1]
    if outside > 0.0:
        near_lo, near_hi = _near_sides(gates, n, max(spread, 2.0 * least_room), samples, leaf)
        allowed, density = _FAR * spread * spread, 0.5 * outside / (hi - lo)
        far_below = _far_mass(lo, near_lo, mean, allowed, density)
        far_above = _far_mass(near_hi, hi, mean, allowed, density)
        below, above = _mass_beyond(gates, n, outside, least_room, epsilon, near_lo, near_hi)
        if below + above > 0.0:  # in a leaf of one row all mass lies beyond its value
            part = min((1.0 - far_below - far_above) / (below + above), 1.0)
            below, above = below * part + far_below, above * part + far_above
    floor = max(min(floor, epsilon - max(below, above), 0.5 * (1.0 - below - above)), 0.0)
    _keep_slope(gates, n, below, above, floor)
    _narrow_gates(gates, n, (below, above, floor), _LEAST / samples.rows[leaf], epsilon, mean, spread)
    k = _few_knots(gates, n, polygons)
    span, size = at[n - 1] - at[0], 0
    if far_below > 0.0:
        size = _add_knot(knot_x, knot_p, size, lo, 0.0)
    near = size
    if at[0] > near_lo:
        size = _add_knot(knot_x, knot_p, size, near_lo, far_below)
    for i in range(k):
        x = at[gates.knot[i]]
        size = _add_knot(knot_x, knot_p, size, x, gates.height[i] + floor * ((x - at[0]) / span))
    if at[n - 1] < near_hi:
        size = _add_knot(knot_x, knot_p, size, near_hi, 1.0 - far_above)
    near_end = size - 1
    if far_above > 0.0:
        size = _add_knot(knot_x, knot_p, size, hi, 1.0)
    knot_p[0], knot_p[size - 1] = 0.0, 1.0
    return size, near, near_end


@kernel
def _add_knot(knot_x, knot_p, size, x, p):
    knot_x[size], knot_p[size] = x, p
    return size + 1


@kernel
def _halve(samples, knot_x, knot_p, size, near, near_end):
    """Put a knot amid each piece from one knot to another, if there is room, moving the others up; their number."""
    n_new = 0
    for i in range(near_end - 1, near - 1, -1):
        middle = _middle(samples, knot_x[i], knot_x[i + 1])
        if knot_x[i] < middle < knot_x[i + 1]:
            t = (middle - knot_x[i]) / (knot_x[i + 1] - knot_x[i])
            p = knot_p[i] + t * (knot_p[i + 1] - knot_p[i])
            for k in range(size + n_new, i + 1, -1):
                knot_x[k], knot_p[k] = knot_x[k - 1], knot_p[k - 1]
            knot_x[i + 1], knot_p[i + 1] = middle, p
            n_new += 1
    return n_new


@kernel
def _middle(samples, a, b):
    """The middle of two points, on a grid the edge of a cell beside it; without room, b."""
    if samples.step > 0.0:
        edge = samples.origin + 0.5 * samples.step
        middle = edge + np.floor((0.5 * (a + b) - edge) / samples.step + 1e-6) * samples.step
        return middle if min(middle - a, b - middle) > 0.5 * samples.step else b
    return 0.5 * (a + b) if b - a > 2.0 * samples.width else b


@kernel
def _fit_cdf(samples, leaf, gates, polygons, knot_x, knot_p):
    """Write the knots of a CDF that is near that of the leaf's values and has their mean and variance; their number."""
    mean, var, extra = samples.mean[leaf], samples.var[leaf], samples.extra[leaf]
    spread = math.sqrt(var + extra)
    if not 0.0 < spread < math.inf:  # squares of the smallest and largest floats
        return _write_knots(samples, leaf, mean, math.inf, gates, polygons, knot_x, knot_p)[0]
    size, near, near_end = _write_knots(samples, leaf, mean, spread, gates, polygons, knot_x, knot_p)
    pieces = polygons.p, polygons.slope, polygons.half_p
    close, any_ = ((1.0 - _VARIANCE) * var, (1.0 + _VARIANCE) * var + extra), (-math.inf, math.inf)
    while not keep_moments(knot_x, knot_p, (near, near_end, size), mean, spread, close, samples.step, pieces):
        n_new = _halve(samples, knot_x, knot_p, size, near, near_end) if near_end - near <= _FEW else 0
        if n_new == 0:
            keep_moments(knot_x, knot_p, (near, near_end, size), mean, spread, any_, samples.step, pieces)
            break
        size, near_end = size + n_new, near_end + n_new
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


# ---- Kernel of what validation rows gain by quantile leaves of one column.


@entry
def gains_of_slot(columns, leaves, s, leaf, x, atom, start, knot_x, knot_p):
    """Log-density under CDFs less that in the leaves, of numbers x (m,) in leaves (m,), on ``atom`` (m,; -1: none)."""
    # The gain is 0 of a missing number, of an atom off a grid, and in leaves without knots.
    out = np.zeros(leaf.shape[0])
    step = columns.step[s]
    for e in range(leaf.shape[0]):
        l = leaf[e]  # noqa: E741
        if x[e] != x[e] or start[l] == start[l + 1] or (step == 0.0 and atom[e] >= 0):
            continue
        at = cell_centre(step, columns.origin[s], x[e]) if step > 0.0 else x[e]
        last = first_at_least(knot_x, start[l] + 1, start[l + 1] - 1, at)  # the end of the piece with the number
        first = last - 1
        new = -math.inf
        if knot_x[first] < at <= knot_x[last]:
            new = leaves.log_rest[l, s] + safe_log((knot_p[last] - knot_p[first]) / (knot_x[last] - knot_x[first]))
        if atom[e] >= 0:
            mass = leaves.atom_mass[l, columns.atom_start[s] + atom[e]] + math.exp(new) * step
            new = safe_log(mass) - math.log(step)
        out[e] = new - value_log_density(columns, leaves, l, s, x[e], atom[e])
    return out
