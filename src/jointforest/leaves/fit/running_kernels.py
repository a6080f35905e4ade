"""Kernels: sums over the rows of leaves that more rows can be added to, twice as precise as float64.

A sum is a pair of float64 numbers, the second below the rounding of the first, so that sums of the same rows are equal
to the last bit, but for one in some 10^15, in whatever order they were added (Dekker 1971; Knuth, TAOCP 2, 4.2.2).
"""

from __future__ import annotations

import math

from ...ground.compile import entry, kernel

_SPLITTER = 134217729.0  # 2^27 + 1: halves of 26 bits, whose products are exact


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
def _add(pair, value, more):
    """Add ``value + more``, the second below the rounding of the first, to a pair (2,)."""
    s = pair[0] + value
    part = s - pair[0]
    lost = (pair[0] - (s - part)) + (value - part) + pair[1] + more
    pair[0] = s + lost
    pair[1] = lost - (pair[0] - s)


@entry
def add_numbers(x, atom, leaf_of, times, scale, atoms, count, ends, total, squares):
    """Add one numeric column ``x`` (n,), whose cells lie on atom ``atom`` (n,; -1: none), of rows in leaves (n,).

    Each row counts ``times``, int64 (n,).

    Parameters
    ----------
    scale : float64 array (2,)
        Numbers are added up as distances from the first over the second.
    atoms : int64 array (l, n_atoms), count : int64 array (l, 2)
        Rows on each atom; rows whose cell is missing, and those on no atom.
    ends : float64 array (l, 2)
        Smallest and largest of the numbers on no atom.
    total, squares : float64 arrays (l, 2)
        Pairs: their sum, and that of their squares.
    """
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
                _add(total[leaf], z, 0.0)
                _add(squares[leaf], square, below)
            else:
                t = float(times[i])
                value, lost = _product(z, t)
                _add(total[leaf], value, lost)
                value, lost = _product(square, t)
                _add(squares[leaf], value, lost + below * t)


@entry
def add_levels(codes, leaf_of, times, count, missing):
    """Add one column of levels, codes (n,) with -1 where missing, to ``count`` (l, K) and ``missing`` (l,), int64.

    Each row counts ``times``, int64 (n,).
    """
    for i in range(codes.shape[0]):
        if codes[i] < 0:
            missing[leaf_of[i]] += times[i]
        else:
            count[leaf_of[i], codes[i]] += times[i]


@entry
def add_pairs(a, b):
    """Add the pairs b (k, 2) to the pairs a."""
    for k in range(a.shape[0]):
        _add(a[k], b[k, 0], b[k, 1])


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
            rest = ((s - product) - lost + more) / n  # m + rest is the mean
            product, lost = _product(m, s)
            lost += m * more + rest * s
            mean[leaf] = m + rest
            deviations[leaf] = max((squares[leaf, 0] - product) + (squares[leaf, 1] - lost), 0.0)
