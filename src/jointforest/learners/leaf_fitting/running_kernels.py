"""Kernels: sums over the rows of leaves that more rows can be added to, twice as precise as float64."""

# A sum is a pair of float64 numbers, so that it does not depend on the order of the rows (Dekker 1971).

import math

import numpy as np

from ...runtime.compile import entry, kernel

_SPLITTER = 134217729.0
"""2^27 + 1, which splits a number into halves of 26 bits, whose products are exact."""


@kernel
def _product(a, b):
    """a b, and what rounding took from it."""
    p = a * b
    t = _SPLITTER * a
    high_a = t - (t - a)
    t = _SPLITTER * b
    high_b = t - (t - b)
    low_a, low_b = a - high_a, b - high_b
    return p, ((high_a * high_b - p) + high_a * low_b + low_a * high_b) + low_a * low_b


@kernel
def _add_to_pair(pair, value, more):
    """Add ``value + more``, the second below the rounding of the first, to a pair (2,)."""
    s = pair[0] + value
    part = s - pair[0]
    lost = (pair[0] - (s - part)) + (value - part) + pair[1] + more
    pair[0] = s + lost
    pair[1] = lost - (pair[0] - s)


@entry
def add_numbers(x, atom, leaf_of, times, scale, atoms, count, ends, total, squares):
    """Add a numeric column ``x`` (n,), on atoms ``atom`` (n,; -1: none), of rows in leaves that count ``times``."""
    # scale : float64 array (2,). Numbers are added up as distances from the first over the second.
    # atoms : int64 array (l, n_atoms), count : int64 array (l, 2). Rows on each atom; rows that are missing, or on
    #     none.
    # ends : float64 array (l, 2). Smallest and largest of the numbers on no atom.
    # total, squares : float64 arrays (l, 2). Pairs: their sum, and that of their squares.
    for i in range(x.shape[0]):
        leaf = leaf_of[i]
        if math.isnan(x[i]):
            count[leaf, 0] += times[i]
        elif atom[i] >= 0:
            atoms[leaf, atom[i]] += times[i]
        else:
            count[leaf, 1] += times[i]
            ends[leaf, 0] = min(ends[leaf, 0], x[i])
            ends[leaf, 1] = max(ends[leaf, 1], x[i])
            z = (x[i] - scale[0]) / scale[1]
            square, below = _product(z, z)
            if times[i] == 1:
                _add_to_pair(total[leaf], z, 0.0)
                _add_to_pair(squares[leaf], square, below)
            else:
                t = float(times[i])
                value, lost = _product(z, t)
                _add_to_pair(total[leaf], value, lost)
                value, lost = _product(square, t)
                _add_to_pair(squares[leaf], value, lost + below * t)


@entry
def count_levels(codes, leaf_of, times, count, missing):
    """Add codes (n,) of levels, -1 where missing, to ``count`` (l, K) and ``missing`` (l,), ``times`` (n,) each."""
    for i in range(codes.shape[0]):
        if codes[i] < 0:
            missing[leaf_of[i]] += times[i]
        else:
            count[leaf_of[i], codes[i]] += times[i]


@entry
def add_pairs(a, b):
    """Add the pairs b (k, 2) to the pairs a."""
    for k in range(a.shape[0]):
        _add_to_pair(a[k], b[k, 0], b[k, 1])


@entry
def moments_of(count, total, squares, mean, deviations):
    """Mean (l,) and sum of squared deviations from it (l,), from counts (l,) and pairs (l, 2); 0 without rows."""
    for leaf in range(count.shape[0]):
        n = float(count[leaf])
        mean[leaf], deviations[leaf] = 0.0, 0.0
        if n > 0.0:
            s, more = total[leaf, 0], total[leaf, 1]
            m = s / n
            product, lost = _product(m, n)
            excess = ((s - product) - lost + more) / n  # m + excess is the mean
            product, lost = _product(m, s)
            lost += m * more + excess * s
            mean[leaf] = m + excess
            deviations[leaf] = max((squares[leaf, 0] - product) + (squares[leaf, 1] - lost), 0.0)


# ---- Kernels that count the rows of leaves at and between some of their values, and make numbers of the counts.

MOST = 8
"""Numbers for the rows between two marks."""


@entry
def count_at(x, atom, leaf_of, times, order, reached, mark, start, at, above):
    """Count numbers ``x`` (n,) off atoms at marks, in ``at`` (m,), and between them, in ``above`` (m + l,), by leaf."""
    for i in order:
        if math.isnan(x[i]) or atom[i] >= 0:
            continue
        leaf = leaf_of[i]
        low, end, step = reached[leaf], start[leaf + 1], 1
        while low + step <= end and mark[low + step - 1] <= x[i]:  # steps that double, then halves
            low += step
            step *= 2
        high = min(low + step - 1, end)
        while low < high:  # the first mark above x
            middle = (low + high) // 2
            if mark[middle] <= x[i]:
                low = middle + 1
            else:
                high = middle
        reached[leaf] = low
        if low > start[leaf] and mark[low - 1] == x[i]:
            at[low - 1] += times[i]
        else:
            above[low + leaf] += times[i]


@entry
def numbers_at(mark, start, at, above, lowest, highest, step, x, weight, new_start):
    """Numbers and their weights, by leaf and ascending, of rows at and between marks; see `count_at`."""
    n = 0
    for leaf in range(len(start) - 1):
        new_start[leaf] = n
        first, last = start[leaf] + leaf, start[leaf + 1] + leaf
        for gap in range(first, last + 1):
            low = lowest[leaf] if gap == first else mark[gap - leaf - 1]
            high = highest[leaf] if gap == last else mark[gap - leaf]
            # the ends of a leaf that are no marks are rows of the gap
            has_low = gap == first and above[gap] > 0
            has_high = gap == last and above[gap] > 0 and (high > low or not has_low)
            end = min(above[gap] / max(has_low + has_high, 1), 1.0)  # rows with weights may be less
            inside = above[gap] - end * has_low - end * has_high
            if has_low:
                x[n], weight[n] = low, end
                n += 1
            if inside > 0:
                cells = np.rint((high - low) / step) - 1 if step > 0 else np.inf
                points = int(max(min(inside, MOST, cells), 1.0))
                value = low
                for k in range(points):
                    part = (k + 1.0) / (points + 1)
                    if step > 0:
                        point = low + np.rint(part * (high - low) / step) * step
                    else:
                        point = (1.0 - part) * low + part * high
                    value = min(max(point, value), high)  # rounding keeps the order
                    x[n], weight[n] = value, inside / points
                    n += 1
            if has_high:
                x[n], weight[n] = high, end
                n += 1
            if gap < last and at[gap - leaf] > 0:
                x[n], weight[n] = mark[gap - leaf], at[gap - leaf]
                n += 1
    new_start[len(start) - 1] = n
