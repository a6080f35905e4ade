"""Kernel: a stable sort with one signature, for numba compiles its own anew, in seconds, for each type of array."""

from __future__ import annotations

from .compile import kernel

_RUN = 32


@kernel
def stable_sort(key, item, n, spare_key, spare_item):
    """Sort the first ``n`` keys ascending, and the items with them; items of equal keys keep their order.

    Parameters
    ----------
    key, spare_key : float64 arrays (at least n,)
        None of them NaN; scratch.
    item, spare_item : int64 arrays (at least n,)
        Scratch.
    """
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
