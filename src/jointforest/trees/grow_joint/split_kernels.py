"""Kernels: the best split of a node by one column, judged on all targets (Nyga et al. 2023, Eq. 19-20)."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel, entry, kernel
from ..grow.criterion_kernels import GINI, class_growth, class_power, purity
from .group_kernels import groups_of

_POWER_STEPS = 30


@entry
def best_split(data, rows, weight, j, targets, total, impurity, criterion, n_others, min_weight):
    """Best split of a node by column j.

    Parameters
    ----------
    rows : int32 array (m,)
    targets : int64 array
        Columns that the split is judged by.
    total, impurity : float64 arrays (S,), (d,)
        Of the node, see `_joint_groups.describe`.
    criterion : int
        ENTROPY or GINI, for categorical targets.
    n_others : int
        What the sum of relative reductions is divided by: the number of targets other than j.
    min_weight : float
        Smallest weight of either side.

    Returns
    -------
    improvement : float
        Mean relative reduction of the targets' impurity; 0 if there is no split.
    log_cuts : float
        Logarithm of the number of splits that were possible.
    below, above : int
        Largest rank that goes left and smallest that goes right; -1 if categorical, or without a split.
    goes_left : uint8 array (K,), or (0,) if numeric
        Levels that go left.
    """
    groups = groups_of(data, rows, weight, j, targets)
    n_groups = groups.code.shape[0]
    is_set = data.is_categorical[j] == 1
    goes_left = np.zeros(data.n_bins[j] if is_set else 0, np.uint8)
    if n_groups < 2:
        return 0.0, 0.0, np.int64(-1), np.int64(-1), goes_left
    order = np.arange(n_groups)
    log_cuts = math.log(n_groups - 1.0)
    if is_set and not data.is_ordered[j] and n_groups > 2:
        order = level_order(groups, data, targets, total, impurity, criterion)
        log_cuts = (n_groups - 1) * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - n_groups)))
    score, cut = _best_cut(groups, order, data, targets, impurity, criterion, min_weight)
    if cut == 0:
        return 0.0, log_cuts, np.int64(-1), np.int64(-1), goes_left
    improvement = score / n_others
    last, following = groups.code[order[cut - 1]], groups.code[order[cut]]
    if is_set:
        _mark_levels(groups, order, cut, data.is_ordered[j], goes_left)
        return improvement, log_cuts, np.int64(-1), np.int64(-1), goes_left
    if groups.is_binned:
        at = data.bin_start[j]
        return (
            improvement, log_cuts, np.int64(data.last_rank[at + last]),
            np.int64(data.last_rank[at + following - 1] + 1), goes_left,
        )  # fmt: skip
    return improvement, log_cuts, np.int64(last), np.int64(following), goes_left


@array_kernel
def _best_cut(groups, order, data, targets, impurity, criterion, min_weight):
    """Best cut of the groups in this order: (sum of the targets' relative reductions, groups on the left or 0)."""
    S, d = data.owner.shape[0], impurity.shape[0]
    left, right = np.zeros(S), np.zeros(S)
    for e in range(groups.stat.shape[0]):
        right[groups.stat[e]] += groups.value[e]
    size, size_left = groups.size.sum(), 0.0
    known_left, known_right = np.zeros(d), np.zeros(d)
    power_left, power_right, whole = np.zeros(d), np.zeros(d), np.zeros(d)
    for k in targets:
        if data.is_categorical[k]:
            for s in range(data.first[k], data.first[k + 1]):
                known_right[k] += right[s]
                power_right[k] += class_power(criterion, right[s])
            whole[k] = purity(criterion, known_right[k], power_right[k])
    best = 0.0
    cut = 0
    for place in range(order.shape[0] - 1):
        g = order[place]
        size_left += groups.size[g]
        for e in range(groups.start[g], groups.start[g + 1]):
            s, v = groups.stat[e], groups.value[e]
            k = data.owner[s]
            if data.is_categorical[k]:
                power_left[k] += class_growth(criterion, left[s], v)
                power_right[k] -= class_growth(criterion, right[s] - v, v)
                known_left[k] += v
                known_right[k] -= v
            left[s] += v
            right[s] -= v
        if size_left < min_weight or size - size_left < min_weight:
            continue
        score = 0.0
        for k in targets:
            if impurity[k] > 0.0:
                if data.is_categorical[k]:
                    gain = purity(criterion, known_left[k], power_left[k])
                    gain += purity(criterion, known_right[k], power_right[k]) - whole[k]
                else:
                    gain = _between(left, right, data.first[k])
                score += gain / impurity[k]
        if score > best + 1e-12:
            best = score
            cut = place + 1
    return best, cut


@kernel
def _between(left, right, at):
    """Sum of squares between two sides, from their weights and sums; from the means, so that no digits are lost."""
    a, b = left[at], right[at]
    if a <= 0.0 or b <= 0.0:
        return 0.0
    distance = left[at + 1] / a - right[at + 1] / b
    return a * b / (a + b) * distance * distance


@array_kernel
def level_order(groups, data, targets, total, impurity, criterion):
    """Levels by their place along the direction in which the targets' means differ most between levels.

    The direction is the first principal component of the levels' deviations from the node, each statistic in units
    in which its squared deviation is what a split gains (for entropy: to second order). With one numeric target that
    is the order of means, with one of two levels the order of shares: then the best set is one of the cuts (Breiman
    et al. 1984, Theorem 4.5). With more it is a heuristic (Coppersmith, Hong, Hosking 1999).
    """
    S = data.owner.shape[0]
    n_groups = groups.code.shape[0]
    mean = np.zeros(S)  # of categorical statistics: shares; of numeric sums: the mean
    unit = np.zeros(S)
    for k in targets:
        if impurity[k] <= 0.0:
            continue
        at, end = data.first[k], data.first[k + 1]
        if not data.is_categorical[k]:
            mean[at + 1] = total[at + 1] / total[at]
            unit[at + 1] = 1.0 / math.sqrt(impurity[k])
            continue
        known = total[at:end].sum()
        for s in range(at, end):
            if total[s] > 0.0:
                mean[s] = total[s] / known
                unit[s] = 1.0 / math.sqrt(impurity[k] * (1.0 if criterion == GINI else 2.0 * mean[s]))
    place = np.zeros(n_groups)
    direction = np.zeros(S)
    farthest = -1.0
    for g in range(n_groups):  # start where one level is farthest from the node
        deviation = np.zeros(S)
        for e in range(groups.start[g], groups.start[g + 1]):
            deviation[groups.stat[e]] += groups.value[e]
        _centre(deviation, mean, unit, data, targets)
        length = (deviation * deviation).sum() / groups.size[g]
        if length > farthest:
            farthest = length
            direction[:] = deviation
    for _ in range(_POWER_STEPS):
        length = math.sqrt((direction * direction).sum())
        if length <= 0.0:
            break
        direction /= length
        _project(groups, direction, mean, unit, data, targets, place)
        following = np.zeros(S)
        for g in range(n_groups):
            for e in range(groups.start[g], groups.start[g + 1]):
                following[groups.stat[e]] += place[g] * groups.value[e]
        _centre(following, mean, unit, data, targets)
        length = math.sqrt((following * following).sum())
        change = np.abs(following - length * direction).max()
        direction[:] = following
        if change <= 1e-6 * length:
            break
    return np.argsort(place, kind="mergesort")


@array_kernel
def _centre(sums, mean, unit, data, targets):
    """Sums of statistics become deviations from what the node has for the same weight, in units of gain."""
    for k in targets:
        at, end = data.first[k], data.first[k + 1]
        if data.is_categorical[k]:
            known = sums[at:end].sum()
            for s in range(at, end):
                sums[s] = unit[s] * (sums[s] - known * mean[s])
        else:
            sums[at + 1] = unit[at + 1] * (sums[at + 1] - sums[at] * mean[at + 1])
            sums[at] = 0.0


@array_kernel
def _project(groups, direction, mean, unit, data, targets, place):
    """Place of each group's mean deviation along a direction, into ``place`` (G,)."""
    slope = direction * unit  # of a statistic, then less what the node has of it
    for k in targets:
        at, end = data.first[k], data.first[k + 1]
        if data.is_categorical[k]:
            slope[at:end] -= (slope[at:end] * mean[at:end]).sum()
        else:
            slope[at] = -slope[at + 1] * mean[at + 1]
    for g in range(place.shape[0]):
        total = 0.0
        for e in range(groups.start[g], groups.start[g + 1]):
            total += slope[groups.stat[e]] * groups.value[e]
        place[g] = total / groups.size[g]


@array_kernel
def _mark_levels(groups, order, cut, is_ordered, goes_left):
    """The set of levels of a cut; levels that no row of the node has go to the heavier side (ordered: keep order)."""
    if is_ordered:
        goes_left[: groups.code[order[cut - 1]] + 1] = 1
        return
    size_left = 0.0
    for place in range(cut):
        size_left += groups.size[order[place]]
    goes_left[:] = 1 if 2.0 * size_left >= groups.size.sum() else 0
    for place in range(order.shape[0]):
        goes_left[groups.code[order[place]]] = 1 if place < cut else 0
