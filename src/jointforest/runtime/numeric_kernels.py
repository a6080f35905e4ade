"""Kernel of mixtures of a table's rows."""

# Not by matrix products: BLAS takes all cores for one of these, whatever else they work on.

import numpy as np

from .compile import entry, kernel


@entry
def mix_rows(table, rows, weight, out):
    """Add rows (m,), int32, of a table (R, N) times their weight (m,) to ``out`` (N,), float64, in their order."""
    for i in range(rows.shape[0]):
        row, w = rows[i], weight[i]
        for k in range(out.shape[0]):
            out[k] += w * table[row, k]


# ---- Kernel: the lowest bit of a word.

_ONE, _SHIFT = np.uint64(1), np.uint64(58)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # its 64 runs of six bits differ, and so identify the shift
_PLACE = np.zeros(64, dtype=np.int64)
_PLACE[(_DE_BRUIJN << np.arange(64, dtype=np.uint64)) >> _SHIFT] = np.arange(64)


@kernel
def lowest_bit(word):
    """Return the number of the lowest bit, int64, that is set in a uint64 other than 0."""
    return _PLACE[((word & (~word + _ONE)) * _DE_BRUIJN) >> _SHIFT]


# ---- Kernel: the place of a number among others.


@kernel
def first_at_least(ascending, start, stop, target):
    """The first place from ``start`` on whose number, which ascend, is at least the target; ``stop`` if none is."""
    low, high = np.int64(start), np.int64(stop)
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


# ---- Kernel: one step of a bracketed search for the zero of a function.


@kernel
def chandrupatla(a, fa, b, fb, c, fc):
    """Fraction of the way from a to b at which to look next: inverse quadratic where that is safe, else the middle."""
    # a is the newest end of the bracket, b the other one, c the point that was an end before. T. R. Chandrupatla, "A
    # new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function", Adv. Eng. Software 28
    # (1997).
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
        return fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return 0.5


# ---- Kernel: a stable sort with one signature, for numba compiles its own anew, in seconds, for each type of array.

_RUN = 32


@kernel
def stable_sort(key, item, n, spare_key, spare_item):
    """Sort the first ``n`` keys (no NaN) ascending, and the items with them, stably; the other arrays are scratch."""
    for begin in range(0, n, _RUN):
        for k in range(begin + 1, min(begin + _RUN, n)):
            value, moved = key[k], item[k]
            at = k
            while at > begin and key[at - 1] > value:
                key[at] = key[at - 1]
                item[at] = item[at - 1]
                at -= 1
            key[at] = value
            item[at] = moved
    width = _RUN
    while width < n:
        for k in range(n):
            spare_key[k] = key[k]
            spare_item[k] = item[k]
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            a, b = begin, middle
            for k in range(begin, end):
                if b >= end or (a < middle and spare_key[a] <= spare_key[b]):
                    key[k] = spare_key[a]
                    item[k] = spare_item[a]
                    a += 1
                else:
                    key[k] = spare_key[b]
                    item[k] = spare_item[b]
                    b += 1
        width *= 2
