"""Kernels that count the rows of leaves at and between some of their values, and make numbers of the counts."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry

MOST = 8
"""Numbers for the rows between two marks."""


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


@entry
def numbers_at(mark, start, at, above, lowest, highest, step, x, weight, found):
    """Numbers ``x`` and their weights, by leaf and ascending, of rows at and between marks; see `count_at`.

    Leaf k has those from ``found[k]`` to ``found[k + 1]``; its first and last row are ``lowest[k]`` and ``highest[k]``.
    The others between two marks lie evenly, as at most ``MOST`` numbers; on a grid of ``step``, 0 for none.
    """
    n = 0
    for leaf in range(len(start) - 1):
        found[leaf] = n
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
    found[len(start) - 1] = n
