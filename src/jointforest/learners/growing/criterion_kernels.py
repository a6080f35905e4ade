"""Kernels: what a split gains, from the statistics of groups of rows, by criterion; and the best cut of groups."""

import math

import numpy as np

from ...runtime.compile import kernel

GINI = 0
"""Criterion: weighted Gini impurity of the classes (two or more)."""
ENTROPY = 1
"""Criterion: weighted entropy of the classes, natural logarithm (information gain)."""
VARIANCE = 2
"""Criterion: weighted squared deviation of a number from its mean."""


@kernel
def purity(criterion, weight, power):
    """Purity of a group of rows, times its weight; a split gains purity(left) + purity(right) - purity(node). ``power``
    is the sum of `class_power` over the classes; for VARIANCE the sum of weight times target."""
    # So Gini is the sum of squared class weights over their sum, entropy minus the weight times the entropy, variance
    # the part of the sum of squares that the mean explains (Breiman et al. 1984).
    if weight <= 0.0:
        return 0.0
    if criterion == ENTROPY:
        return power - weight * math.log(weight)
    if criterion == VARIANCE:
        return power * power / weight
    return power / weight


@kernel
def class_power(criterion, weight):
    """What a class of this weight adds to the power of a group."""
    if criterion == ENTROPY:
        return weight * math.log(weight) if weight > 0.0 else 0.0
    return weight * weight


@kernel
def class_growth(criterion, weight, more):
    """How much `class_power` grows when a class of this weight gets ``more``."""
    if criterion == GINI:
        return more * (2.0 * weight + more)
    return class_power(criterion, weight + more) - class_power(criterion, weight)


@kernel
def weight_and_power(criterion, statistics):
    """Weight of a group of rows and its power, see `purity`, from its statistics."""
    if criterion == VARIANCE:
        return statistics[0], statistics[1]
    weight = 0.0
    power = 0.0
    for c in range(statistics.shape[0]):
        weight += statistics[c]
        power += class_power(criterion, statistics[c])
    return weight, power


@kernel
def add(criterion, statistics, target, weight):
    """Add a row to a group's statistics."""
    if criterion == VARIANCE:
        statistics[0] += weight
        statistics[1] += weight * target
    else:
        statistics[np.int64(target)] += weight


@kernel
def allowed(weight_left, weight, least):
    """Whether both sides keep the least weight; a difference of all weight may be less than nothing by rounding."""
    return weight_left >= least and max(weight - weight_left, 0.0) >= least


@kernel
def present_groups(criterion, n_groups, scratch):
    """Put the groups ``scratch.table[:n_groups]`` that have rows into ``scratch.order``, ascending; return how many."""
    present = 0
    for k in range(n_groups):
        weight = scratch.table[k, 0]
        if criterion != VARIANCE:
            for c in range(1, scratch.table.shape[1]):
                weight += scratch.table[k, c]
        if weight > 0.0:
            scratch.order[present] = k
            present += 1
    return present


@kernel
def cut_groups(criterion, scratch, n_order, least_weight):
    """Best cut of the groups ``scratch.order[:n_order]`` of ``scratch.table``: (score, groups on the left)."""
    left, right, total = scratch.left, scratch.right, scratch.node
    weight, _ = weight_and_power(criterion, total)
    best = -np.inf
    cut = 0
    for c in range(left.shape[0]):
        left[c] = 0.0
    for k in range(n_order - 1):
        group = scratch.order[k]
        for c in range(left.shape[0]):
            left[c] += scratch.table[group, c]
            right[c] = total[c] - left[c]
        weight_left, power_left = weight_and_power(criterion, left)
        if allowed(weight_left, weight, least_weight):
            weight_right, power_right = weight_and_power(criterion, right)
            score = purity(criterion, weight_left, power_left) + purity(criterion, weight_right, power_right)
            if score > best:
                best = score
                cut = k + 1
    return best, cut
