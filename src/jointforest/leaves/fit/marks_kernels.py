"""Kernels that count the rows of leaves at and between some of their values."""

from __future__ import annotations

import math

from ...ground.compile import entry


@entry
def count_at(x, atom, leaf_of, times, order, reached, mark, start, at, above):
    """Count one numeric column ``x`` (n,), whose cells lie on atom ``atom`` (n,; -1: none), of rows in leaves (n,).

    The marks of leaf k are ``mark[start[k]:start[k + 1]]``, ascending. ``at`` (m,) gets the rows on each mark,
    ``above`` (m + l,) those between a mark and the next; the first of a leaf, at ``start[k] + k``, those before all.
    Each row counts ``times``, int64 (n,). ``order`` (n,) are the rows by ascending x; ``reached`` (l,), where the marks
    of each leaf start, is changed.
    """
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
