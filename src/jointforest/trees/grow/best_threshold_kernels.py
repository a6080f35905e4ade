"""Kernels: the best cut of a numeric column in a node, on ranks."""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from ...ground.compile import kernel
from .criterion_kernels import (
    VARIANCE,
    add,
    allowed,
    class_growth,
    cut_groups,
    present_groups,
    purity,
    total_of_known,
    weight_and_power,
)

_ONE = np.uint64(1)


@kernel
def best_threshold(criterion, codes, rows, scratch, limits):
    """Best cut of a numeric column over a node's ``rows``, which ``scratch`` describes.

    ``codes`` (n,) are the column's ranks. Rows whose value is missing do not count.

    Returns
    -------
    gain : float
        In units of `purity`; 0 if no cut is allowed, minus infinity if the column has one value in the node, or none.
    below, above : int
        Largest rank that goes left and smallest that goes right, both of rows in the node; -1 without a cut.
    """
    m = rows.shape[0]
    lowest = np.int64(2147483647)
    highest = np.int64(-1)
    known = 0
    for k in range(m):
        code = codes[rows[k]]
        scratch.code[k] = code
        if code >= 0:
            known += 1
            lowest = min(lowest, np.int64(code))
            highest = max(highest, np.int64(code))
    if highest <= lowest:
        return -np.inf, np.int64(-1), np.int64(-1)
    total_of_known(criterion, known, m, scratch)
    weight, power = weight_and_power(criterion, scratch.total)
    if (highest - lowest + 1) * scratch.total.shape[0] <= known:  # few values
        best, below, above = _cut_of_counts(criterion, m, lowest, highest, scratch, limits)
    else:
        best, below, above = _cut_of_lists(criterion, m, lowest, highest, weight, power, scratch, limits)
    if below < 0:
        return 0.0, below, above
    return best - purity(criterion, weight, power), below, above


@kernel
def _cut_of_counts(criterion, m, lowest, highest, scratch, limits):
    """Best cut by statistics of each rank from ``lowest`` to ``highest``: (score, below, above)."""
    table, order = scratch.table, scratch.order
    n_statistics = table.shape[1]
    for k in range(highest - lowest + 1):
        for c in range(n_statistics):
            table[k, c] = 0.0
    for k in range(m):
        if scratch.code[k] >= 0:
            add(criterion, table[scratch.code[k] - lowest], scratch.target[k], scratch.weight[k])
    present = present_groups(criterion, highest - lowest + 1, scratch)
    best, cut = cut_groups(criterion, scratch, present, limits)
    if cut == 0:
        return best, np.int64(-1), np.int64(-1)
    return best, order[cut - 1] + lowest, order[cut] + lowest


@kernel
def _cut_of_lists(criterion, m, lowest, highest, weight, power, scratch, limits):
    """Best cut by going through the rows by rank: (score, below, above).

    Rows are not sorted: each is put on the list of its rank, and the ranks in use are bits of a set, read in order.
    """
    first, after, words, groups = scratch.first, scratch.after, scratch.words, scratch.groups
    left, total = scratch.left, scratch.total
    for k in range(m):
        code = np.int64(scratch.code[k])
        if code >= 0:
            after[k] = first[code]
            first[code] = k
            words[code >> 6] |= _ONE << np.uint64(code & 63)
            groups[code >> 12] |= _ONE << np.uint64((code >> 6) & 63)
    for k in range(left.shape[0]):
        left[k] = 0.0
    weight_left = 0.0
    power_left = 0.0
    power_right = power
    best = -np.inf
    below = above = last = np.int64(-1)
    for g in range(lowest >> 12, (highest >> 12) + 1):
        group = groups[g]
        groups[g] = np.uint64(0)
        while group != 0:
            at = (g << 6) | _lowest_bit(group)
            group &= group - _ONE
            word = words[at]
            words[at] = np.uint64(0)
            while word != 0:
                code = (at << 6) | _lowest_bit(word)
                word &= word - _ONE
                if last >= 0 and allowed(left, total, weight_left, weight, limits):
                    score = purity(criterion, weight_left, power_left)
                    score += purity(criterion, weight - weight_left, power_right)
                    if score > best:
                        best, below, above = score, last, code
                last = code
                row = np.int64(first[code])
                first[code] = -1
                while row >= 0:
                    w = scratch.weight[row]
                    weight_left += w
                    if criterion == VARIANCE:
                        power_left += w * scratch.target[row]
                        power_right = power - power_left
                    else:
                        c = np.int64(scratch.target[row])
                        here = left[c]
                        there = total[c] - here
                        left[c] = here + w
                        power_left += class_growth(criterion, here, w)
                        power_right -= class_growth(criterion, there - w, w)
                    row = np.int64(after[row])
    return best, below, above


@kernel
def _lowest_bit(word):
    """Number of the lowest bit of a uint64 that is set."""
    return np.int64(trailing_zeros(word))  # type: ignore[call-arg]  # not typed as what it becomes in a kernel
