"""Kernels: the best set of levels of a categorical column in a node."""

from __future__ import annotations

import numpy as np

from ...ground.compile import kernel
from ...ground.sort_kernels import stable_sort
from .criterion_kernels import add, cut_groups, present_groups, purity, total_of_known, weight_and_power


@kernel
def best_levels(criterion, codes, n_levels, ordered, rows, scratch, limits):
    """Best set of levels of a categorical column over a node's ``rows``, which ``scratch`` describes.

    With two classes the levels are ordered by their share of class 1, with VARIANCE by their mean, which is exact
    (Fisher 1958; Breiman et al. 1984, Theorem 4.5); with more classes, by the share of each in turn. Ordered levels
    keep their order. Levels that no row of the node has go to the heavier side. ``scratch.trial`` receives the set.

    Returns
    -------
    gain : float
        In units of `purity`; 0 if no split is allowed, minus infinity if the column has one level in the node, or none.
    """
    table, total = scratch.table, scratch.total
    n_statistics = total.shape[0]
    for k in range(n_levels):
        for c in range(n_statistics):
            table[k, c] = 0.0
    known = 0
    for k in range(rows.shape[0]):
        code = codes[rows[k]]
        scratch.code[k] = code
        if code >= 0:
            known += 1
            add(criterion, table[code], scratch.target[k], scratch.weight[k])
    total_of_known(criterion, known, rows.shape[0], scratch)
    present = present_groups(criterion, n_levels, scratch)
    if present < 2:
        return -np.inf
    best = -np.inf
    by_one = ordered or n_statistics == 2
    for by in range(n_statistics - 1 if by_one else 0, n_statistics):
        if not ordered:
            _sort_levels(criterion, scratch, present, by)
        score, cut = cut_groups(criterion, scratch, present, limits)
        if score > best:
            best = score
            _levels_left(criterion, n_levels, ordered, present, cut, scratch)
    if best == -np.inf:
        return 0.0
    weight, power = weight_and_power(criterion, total)
    return best - purity(criterion, weight, power)


@kernel
def _levels_left(criterion, n_levels, ordered, present, cut, scratch):
    """The set of levels of a cut after ``scratch.order[:cut]``."""
    order, trial, left, right = scratch.order, scratch.trial, scratch.left, scratch.right
    if ordered:
        for k in range(n_levels):
            trial[k] = 1 if k <= order[cut - 1] else 0
        return
    for c in range(left.shape[0]):
        left[c] = 0.0
        right[c] = 0.0
    for k in range(present):
        for c in range(left.shape[0]):
            if k < cut:
                left[c] += scratch.table[order[k], c]
            else:
                right[c] += scratch.table[order[k], c]
    heavier_left = weight_and_power(criterion, left)[0] >= weight_and_power(criterion, right)[0]
    for k in range(n_levels):
        trial[k] = 1 if heavier_left else 0
    for k in range(present):
        trial[order[k]] = 1 if k < cut else 0


@kernel
def _sort_levels(criterion, scratch, present, by):
    """Sort ``scratch.order[:present]`` by the share of class ``by``, or by the mean; equals keep their order."""
    table, order, share = scratch.table, scratch.order, scratch.share
    for k in range(present):
        weight, _ = weight_and_power(criterion, table[order[k]])
        share[k] = table[order[k], by] / weight
    stable_sort(share, order, present, scratch.spare_share, scratch.spare_order)
