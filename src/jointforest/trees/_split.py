"""Kernels: the best split of a node, by one column at a time, on ranks."""

from __future__ import annotations

import numpy as np
from numba import njit

GINI = 0
"""Criterion: weighted Gini impurity of the classes (two or more)."""


@njit(nogil=True, cache=True)
def purity(criterion, counts):
    """Purity of a node, times its weight; a split gains purity(left) + purity(right) - purity(node).

    The one place that knows the criterion. Gini (Breiman et al. 1984): the sum of squared class weights over their sum.
    """
    total = 0.0
    squares = 0.0
    for c in range(counts.shape[0]):
        total += counts[c]
        squares += counts[c] * counts[c]
    return squares / total if total > 0.0 else 0.0


@njit(nogil=True, cache=True)
def _allowed(left, total, min_class):
    """Whether both sides keep the smallest weight of every class, and some weight at all."""
    here = 0.0
    there = 0.0
    for c in range(left.shape[0]):
        right = total[c] - left[c]
        if left[c] < min_class[c] or right < min_class[c]:
            return False
        here += left[c]
        there += right
    return here > 0.5 and there > 0.5


@njit(nogil=True, cache=True)
def _scan(criterion, table, order, n_order, left, right, total, min_class):
    """Best cut of the entries ``order[:n_order]`` of ``table`` (class weights): (score, number on the left)."""
    n_classes = left.shape[0]
    best = -1.0
    cut = 0
    left[:] = 0.0
    for k in range(n_order - 1):
        entry = order[k]
        for c in range(n_classes):
            left[c] += table[entry, c]
            right[c] = total[c] - left[c]
        if _allowed(left, total, min_class):
            score = purity(criterion, left) + purity(criterion, right)
            if score > best:
                best = score
                cut = k + 1
    return best, cut


@njit(nogil=True, cache=True)
def best_threshold(criterion, codes, y, weight, rows, table, keys, total, left, right, min_class):
    """Best cut of a numeric column over the node's ``rows``.

    ``codes`` (n,) are the column's ranks. ``table`` and ``keys`` are work space. Rows whose value is missing do not
    count.

    Returns
    -------
    gain : float
        In units of `purity`; negative if there is no cut.
    below, above : int
        Largest rank that goes left and smallest that goes right, both of rows in the node.
    """
    n_classes = total.shape[0]
    total[:] = 0.0
    lowest = np.int64(2147483647)
    highest = np.int64(-1)
    known = 0
    for i in rows:
        code = codes[i]
        if code >= 0:
            known += 1
            total[y[i]] += weight[i]
            lowest = min(lowest, code)
            highest = max(highest, code)
    if highest <= lowest:
        return -1.0, -1, -1
    best = -1.0
    below = np.int64(-1)
    above = np.int64(-1)
    left[:] = 0.0
    width = highest - lowest + 1
    if width <= 3 * known:  # many rows for few values: count instead of sorting
        table[:width] = 0.0
        for i in rows:
            code = codes[i]
            if code >= 0:
                table[code - lowest, y[i]] += weight[i]
        last = np.int64(-1)
        for k in range(width):
            here = 0.0
            for c in range(n_classes):
                here += table[k, c]
            if here == 0.0:
                continue
            if last >= 0 and _allowed(left, total, min_class):
                for c in range(n_classes):
                    right[c] = total[c] - left[c]
                score = purity(criterion, left) + purity(criterion, right)
                if score > best:
                    best, below, above = score, last + lowest, k + lowest
            for c in range(n_classes):
                left[c] += table[k, c]
            last = np.int64(k)
    else:
        m = 0
        for i in rows:
            if codes[i] >= 0:
                keys[m] = (np.int64(codes[i]) << 32) | np.int64(i)
                m += 1
        keys[:m].sort()
        last = np.int64(-1)
        for k in range(m):
            code = keys[k] >> 32
            if last >= 0 and code > last and _allowed(left, total, min_class):
                for c in range(n_classes):
                    right[c] = total[c] - left[c]
                score = purity(criterion, left) + purity(criterion, right)
                if score > best:
                    best, below, above = score, last, code
            i = keys[k] & 0xFFFFFFFF
            left[y[i]] += weight[i]
            last = code
    if best < 0.0:
        return -1.0, -1, -1
    return best - purity(criterion, total), below, above


@njit(nogil=True, cache=True)
def best_levels(
    criterion, codes, n_levels, ordered, y, weight, rows, table, order, goes_left, total, left, right, min_class
):
    """Best set of levels of a categorical column over the node's ``rows``; ``goes_left`` (uint8, a level) receives it.

    With two classes the levels are ordered by their share of class 1, which is exact (Breiman et al. 1984, Theorem
    4.5); with more, by the share of each class in turn. Ordered levels keep their order. Levels that no row of the
    node has go to the heavier side.

    Returns
    -------
    gain : float
        In units of `purity`; negative if there is no split.
    """
    n_classes = total.shape[0]
    total[:] = 0.0
    table[:n_levels] = 0.0
    for i in rows:
        code = codes[i]
        if code >= 0:
            table[code, y[i]] += weight[i]
            total[y[i]] += weight[i]
    present = 0
    for k in range(n_levels):
        here = 0.0
        for c in range(n_classes):
            here += table[k, c]
        if here > 0.0:
            order[present] = k
            present += 1
    if present < 2:
        return -1.0
    best = -1.0
    first = n_classes - 1 if ordered or n_classes == 2 else 0
    for by in range(first, n_classes):
        if not ordered:
            _sort_levels(table, order, present, n_classes, by)
        score, cut = _scan(criterion, table, order, present, left, right, total, min_class)
        if score > best:
            best = score
            goes_left[:n_levels] = 2
            weight_left = 0.0
            weight_right = 0.0
            for k in range(present):
                goes_left[order[k]] = 1 if k < cut else 0
                for c in range(n_classes):
                    if k < cut:
                        weight_left += table[order[k], c]
                    else:
                        weight_right += table[order[k], c]
            if ordered:
                _fill_ordered(goes_left, n_levels, order[cut - 1])
            else:
                heavier = 1 if weight_left >= weight_right else 0
                for k in range(n_levels):
                    if goes_left[k] == 2:
                        goes_left[k] = heavier
    if best < 0.0:
        return -1.0
    return best - purity(criterion, total)


@njit(nogil=True, cache=True)
def _fill_ordered(goes_left, n_levels, last):
    """Everything up to level ``last`` goes left."""
    for k in range(n_levels):
        goes_left[k] = 1 if k <= last else 0


@njit(nogil=True, cache=True)
def _sort_levels(table, order, present, n_classes, by):
    """Sort ``order[:present]`` by the share of class ``by`` (insertion sort up to 32 levels, else argsort)."""
    share = np.empty(present)
    for k in range(present):
        total = 0.0
        for c in range(n_classes):
            total += table[order[k], c]
        share[k] = table[order[k], by] / total
    if present > 32:
        order[:present] = order[:present][np.argsort(share, kind="mergesort")]
        return
    for k in range(1, present):
        value, level = share[k], order[k]
        m = k - 1
        while m >= 0 and share[m] > value:
            share[m + 1] = share[m]
            order[m + 1] = order[m]
            m -= 1
        share[m + 1] = value
        order[m + 1] = level
