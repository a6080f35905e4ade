"""Kernels of quantile leaves: the corridor around an empirical CDF, and a line of few pieces through it."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel, entry, kernel

_TIE = 1e-12
"""Rounding of a sum of weights."""
_SAME = 1e-14
"""Heights that rounding cannot tell apart."""
_SLACK = 1e-13
"""By how much rounding may miss a gate."""


@array_kernel
def steps_corridor(x, share, epsilon, floor, width, lo, hi):
    """Where a CDF has to pass to be within ``epsilon`` of that of the values ``x`` (n,), ascending, (lo, hi].

    A continuous CDF is that close if it is between (F(v) - epsilon) and (F(v-) + epsilon) at each value v. No CDF
    passes a step of more than 2 epsilon (less ``floor``, which is kept for the least slope): values closer than
    ``width`` count as one, and one of such a mass is spread over ``width``, with F before and behind it.

    Parameters
    ----------
    share : float64 array (n,)
        Weights of the values, which sum to 1.

    Returns
    -------
    at, lower, upper : float64 arrays (m,)
        Ascending points; the first and last are a half ``width`` beyond the values, if (lo, hi] has the room.
    """
    n = x.shape[0]
    at, lower, upper = np.empty(2 * n + 2), np.empty(2 * n + 2), np.empty(2 * n + 2)
    at[0], lower[0], upper[0] = max(x[0] - 0.5 * width, lo), -epsilon, epsilon
    m, i, before = 1, 0, 0.0
    while i < n:
        first = i
        mass = 0.0
        while i < n and x[i] - x[first] <= width:
            mass += share[i]
            i += 1
        last = x[i - 1]
        behind = before + mass
        # at a side of the box without room the CDF is 0, or 1, right beside the value
        at_side = (first == 0 and x[0] - lo < 0.5 * width) or (i == n and hi - last < 0.5 * width)
        if mass > (epsilon if at_side else 2.0 * epsilon - floor) + _TIE:
            left = max(x[first] - 0.5 * width, 0.5 * (at[m - 1] + x[first]), lo)
            right = min(last + 0.5 * width, hi) if i == n else min(last + 0.5 * width, 0.5 * (last + x[i]))
            if first > 0 and left > at[m - 1]:
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
    end = min(x[n - 1] + 0.5 * width, hi)
    if end > at[m - 1]:
        at[m] = end
        m += 1
    lower[m - 1], upper[m - 1] = 1.0 - epsilon, 1.0 + epsilon
    return at[:m], lower[:m], upper[:m]


@array_kernel
def cells_corridor(x, share, epsilon, step, origin, lo, hi):
    """`steps_corridor` on a grid: of a cell's inside nobody asks, so F counts at the edges of the cells with values."""
    n = x.shape[0]
    at, lower, upper = np.empty(2 * n), np.empty(2 * n), np.empty(2 * n)
    m, i, before, edge = 0, 0, 0.0, -math.inf
    while i < n:
        cell = np.rint((x[i] - origin) / step)
        mass = 0.0
        while i < n and np.rint((x[i] - origin) / step) == cell:
            mass += share[i]
            i += 1
        if m == 0 or cell > edge:
            at[m], lower[m], upper[m] = max(origin + (cell - 0.5) * step, lo), before - epsilon, before + epsilon
            m += 1
        before += mass
        edge = cell + 1.0
        at[m], lower[m], upper[m] = min(origin + (cell + 0.5) * step, hi), before - epsilon, before + epsilon
        m += 1
    return at[:m], lower[:m], upper[:m]


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


@array_kernel
def _corners(n):
    return np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)


@array_kernel
def few_knots(at, lower, upper):
    """Knots of a non-decreasing line through the gates ``lower[i] <= p <= upper[i]`` at ``at[i]`` (m,).

    Gates do not fall, and every one is open. From the part of a gate that the line can reach, the next knot is at the
    last gate that a straight line gets to; the lines that pass all gates so far are a convex polygon, which every gate
    cuts. Which of the points within reach are taken is settled backwards, from the last one.

    Returns
    -------
    knot : int64 array (k,)
        Numbers of the gates with a knot, the first and the last among them.
    p : float64 array (k,)
    """
    n = at.shape[0]
    knot, low, high = np.empty(n, np.int64), np.empty(n), np.empty(n)
    knot[0], low[0], high[0] = 0, lower[0], upper[0]
    p, slope, half_p, half_slope, new_p, new_slope = _corners(64)
    k = 0
    while knot[k] < n - 1:
        here, a, b = knot[k], low[k], high[k]
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
        while gate + 1 < n:
            if 4 * m > p.shape[0]:  # a cut at most doubles the corners
                old_p, old_slope = p, slope
                p, slope, half_p, half_slope, new_p, new_slope = _corners(8 * m)
                p[:m], slope[:m] = old_p[:m], old_slope[:m]
            longer = at[gate + 1] - at[here]
            some = _cut(p, slope, m, longer, upper[gate + 1], 1.0, half_p, half_slope)
            some = _cut(half_p, half_slope, some, longer, lower[gate + 1], -1.0, new_p, new_slope)
            if some == 0:
                break
            p, slope, new_p, new_slope = new_p, new_slope, p, slope
            m, length = some, longer
            gate += 1
        reach_low, reach_high = math.inf, -math.inf
        for i in range(m):
            height = p[i] + length * slope[i]
            reach_low, reach_high = min(reach_low, height), max(reach_high, height)
        k += 1
        knot[k] = gate
        low[k] = min(max(reach_low, lower[gate]), upper[gate])
        high[k] = max(min(reach_high, upper[gate]), low[k])
    value = np.empty(k + 1)
    value[k] = 0.5 * (low[k] + high[k])
    for i in range(k - 1, -1, -1):
        a, b = low[i], min(high[i], value[i + 1])
        left, right = knot[i], knot[i + 1]
        for gate in range(left + 1, right):
            t = (at[gate] - at[left]) / (at[right] - at[left])
            a = max(a, (lower[gate] - t * value[i + 1]) / (1.0 - t))
            b = min(b, (upper[gate] - t * value[i + 1]) / (1.0 - t))
        middle = 0.5 * (lower[left] + upper[left])
        value[i] = min(max(middle, a), b) if a <= b else min(max(0.5 * (a + b), low[i]), min(high[i], value[i + 1]))
    return knot[: k + 1].copy(), value


@entry
def fit_cdf(x, share, epsilon, outside, step, origin, width, lo, hi):
    """Knots (x, p) of a CDF on (lo, hi] within ``epsilon`` of that of the values, whose shares sum to 1.

    ``outside`` is the mass, if there is room for it, beyond the values, and half of it the least within: everywhere in
    (lo, hi] is some density. Beyond the values it is at most that of the uniform distribution on (lo, hi].
    """
    floor = 0.5 * outside
    if step > 0.0:
        at, lower, upper = cells_corridor(x, share, epsilon, step, origin, lo, hi)
    else:
        at, lower, upper = steps_corridor(x, share, epsilon, min(floor, epsilon), width, lo, hi)
    least_room = 0.5 * step if step > 0.0 else width
    n = at.shape[0]
    below, above = 0.0, 0.0
    if outside > 0.0:
        if at[0] - lo < least_room:
            at[0] = lo
        if hi - at[n - 1] < least_room:
            at[n - 1] = hi
        room = (at[0] - lo) + (hi - at[n - 1])
        total = min(outside, room / (hi - lo))
        if room > 0.0:
            below = min(total * ((at[0] - lo) / room), epsilon)
            above = min(total * ((hi - at[n - 1]) / room), epsilon)
    floor = max(min(floor, epsilon - max(below, above), 0.5 * (1.0 - below - above)), 0.0)
    lower[0], upper[0] = below, below
    lower[n - 1], upper[n - 1] = 1.0 - above, 1.0 - above
    span = at[n - 1] - at[0]
    for i in range(n):  # what is left for the line when the least density is taken away
        lower[i] -= floor * ((at[i] - at[0]) / span)
        upper[i] -= floor * ((at[i] - at[0]) / span)
    for i in range(1, n):
        lower[i] = max(lower[i], lower[i - 1])
    for i in range(n - 2, -1, -1):
        upper[i] = min(upper[i], upper[i + 1])
    for i in range(n):
        upper[i] = max(upper[i], lower[i])  # equal up to rounding
    knot, p = few_knots(at, lower, upper)
    tail_below, tail_above = int(at[0] > lo and outside > 0.0), int(at[n - 1] < hi and outside > 0.0)
    k = knot.shape[0]
    knot_x, knot_p = np.empty(k + tail_below + tail_above), np.empty(k + tail_below + tail_above)
    for i in range(k):
        knot_x[tail_below + i] = at[knot[i]]
        knot_p[tail_below + i] = p[i] + floor * ((at[knot[i]] - at[0]) / span)
    knot_x[0] = lo if tail_below else at[0]
    knot_x[-1] = hi if tail_above else at[n - 1]
    knot_p[0], knot_p[-1] = 0.0, 1.0
    return knot_x, knot_p


@entry
def leaf_knots(values, atom, rows, start, weight, epsilon, noise, step, origin, width, lo, hi):
    """`fit_cdf` of one numeric column in each leaf, from the rows ``values`` (n,) that lie on no ``atom`` (n,; -1).

    In a leaf of w rows the CDF is as close as the largest of ``epsilon``, ``noise / sqrt(w)`` and 1 / w, and one row's
    mass is beyond its values; leaves without rows are uniform.

    Returns
    -------
    knot_start : int64 array (l + 1,), knot_x, knot_p : float64 arrays
    """
    n_leaves = start.shape[0] - 1
    knot_start = np.zeros(n_leaves + 1, np.int64)
    knot_x, knot_p = np.empty(8 * n_leaves + 8), np.empty(8 * n_leaves + 8)
    for leaf in range(n_leaves):
        size = start[leaf + 1] - start[leaf]
        x, share = np.empty(size), np.empty(size)
        n = 0
        for r in rows[start[leaf] : start[leaf + 1]]:
            if atom[r] < 0 and not math.isnan(values[r]):
                x[n], share[n] = values[r], weight[r]
                n += 1
        total = share[:n].sum()
        if n == 0:
            own_x, own_p = np.array([lo[leaf], hi[leaf]]), np.array([0.0, 1.0])
        else:
            order = np.argsort(x[:n])
            close = min(max(epsilon, noise / math.sqrt(total), 1.0 / total), 1.0)
            outside = min(1.0 / total, 1.0)
            own_x, own_p = fit_cdf(
                x[:n][order], share[:n][order] / total, close, outside, step, origin, width, lo[leaf], hi[leaf]
            )
        end = knot_start[leaf] + own_x.shape[0]
        if end > knot_x.shape[0]:
            knot_x = np.concatenate((knot_x, np.empty(max(end, knot_x.shape[0]))))
            knot_p = np.concatenate((knot_p, np.empty(max(end, knot_p.shape[0]))))
        knot_x[knot_start[leaf] : end] = own_x
        knot_p[knot_start[leaf] : end] = own_p
        knot_start[leaf + 1] = end
    return knot_start, knot_x[: knot_start[-1]].copy(), knot_p[: knot_start[-1]].copy()
