"""Kernels: the best set of levels of a categorical column in a node."""

from __future__ import annotations

import numpy as np

from ...ground.compile import array_kernel, kernel
from .criterion_kernels import add, cut_groups, present_groups, purity, weight_and_power


@array_kernel
def best_levels(criterion, codes, n_levels, ordered, rows, start, stop, goes_left, work, limits):
    """Best set of levels of a categorical column over the node ``rows[start:stop]``, which ``work`` describes.

    With two classes the levels are ordered by their share of class 1, with VARIANCE by their mean, which is exact
    (Fisher 1958; Breiman et al. 1984, Theorem 4.5); with more classes, by the share of each in turn. Ordered levels
    keep their order. Levels that no row of the node has go to the heavier side. ``goes_left`` (uint8, a level)
    receives the set.

    Returns
    -------
    gain : float
        In units of `purity`; 0 if no split is allowed, minus infinity if the column has one level in the node, or none.
    """
    table, total = work.table, work.total
    n_statistics = total.shape[0]
    total[:] = 0.0
    for k in range(n_levels):
        for c in range(n_statistics):
            table[k, c] = 0.0
    for k in range(stop - start):
        code = codes[rows[start + k]]
        if code >= 0:
            add(criterion, table[code], work.target[k], work.weight[k])
            add(criterion, total, work.target[k], work.weight[k])
    present = present_groups(criterion, n_levels, work)
    if present < 2:
        return -np.inf
    best = -np.inf
    by_one = ordered or n_statistics == 2
    for by in range(n_statistics - 1 if by_one else 0, n_statistics):
        if not ordered:
            _sort_levels(criterion, work, present, by)
        score, cut = cut_groups(criterion, work, present, limits)
        if score > best:
            best = score
            _levels_left(criterion, n_levels, ordered, present, cut, work, goes_left)
    if best == -np.inf:
        return 0.0
    weight, power = weight_and_power(criterion, total)
    return best - purity(criterion, weight, power)


@kernel
def _levels_left(criterion, n_levels, ordered, present, cut, work, goes_left):
    """The set of levels of a cut after ``work.order[:cut]``."""
    order = work.order
    if ordered:
        for k in range(n_levels):
            goes_left[k] = 1 if k <= order[cut - 1] else 0
        return
    work.left[:] = 0.0
    work.right[:] = 0.0
    for k in range(present):
        for c in range(work.left.shape[0]):
            if k < cut:
                work.left[c] += work.table[order[k], c]
            else:
                work.right[c] += work.table[order[k], c]
    heavier_left = weight_and_power(criterion, work.left)[0] >= weight_and_power(criterion, work.right)[0]
    for k in range(n_levels):
        goes_left[k] = 1 if heavier_left else 0
    for k in range(present):
        goes_left[order[k]] = 1 if k < cut else 0


@array_kernel
def _sort_levels(criterion, work, present, by):
    """Sort ``work.order[:present]`` by the share of class ``by``, or by the mean; equals keep their order."""
    table, order, share = work.table, work.order, work.share
    for k in range(present):
        weight, _ = weight_and_power(criterion, table[order[k]])
        share[k] = table[order[k], by] / weight
    if present > 32:
        order[:present] = order[:present][np.argsort(share[:present], kind="mergesort")]
        return
    for k in range(1, present):
        value, level = share[k], order[k]
        at = k
        while at > 0 and share[at - 1] > value:
            share[at] = share[at - 1]
            order[at] = order[at - 1]
            at -= 1
        share[at] = value
        order[at] = level
