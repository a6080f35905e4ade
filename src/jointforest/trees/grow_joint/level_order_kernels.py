"""Kernel: levels in an order in which a good set of them is a cut."""

from __future__ import annotations

import math

from ...ground.compile import kernel
from ..grow.criterion_kernels import GINI

_POWER_STEPS = 30
_MEAN, _UNIT, _DIRECTION, _SUMS, _SLOPE = range(5)  # of `split.SplitScratch.axes`


@kernel
def place_levels(data, groups, n_groups, targets, node, criterion, scratch):
    """Place of each level along the direction in which the targets' means differ most between levels.

    The direction is the first principal component of the levels' deviations from the node, each statistic in units
    in which its squared deviation is what a split gains (for entropy: to second order). With one numeric target that
    is the order of means, with one of two levels the order of shares: then the best set is one of the cuts (Breiman
    et al. 1984, Theorem 4.5). With more it is a heuristic (Coppersmith, Hong, Hosking 1999).

    Parameters
    ----------
    data : JointRows
    groups : Groups
    n_groups : int
    targets : int64 array
    node : NodeStatistics
    criterion : int
        ENTROPY or GINI.
    scratch : SplitScratch
        Its ``key[0]`` receives the answer.
    """
    direction, sums, place = scratch.axes[_DIRECTION], scratch.axes[_SUMS], scratch.key[0]
    for g in range(n_groups):
        place[g] = 0.0
    _units(data, targets, node, criterion, scratch)
    farthest = -1.0
    for g in range(n_groups):  # start where one level is farthest from the node
        _clear(sums)
        for e in range(groups.start[g], groups.start[g + 1]):
            sums[groups.stat[e]] += groups.value[e]
        _centre(data, targets, scratch)
        length = _squared_length(sums) / groups.size[g]
        if length > farthest:
            farthest = length
            for s in range(sums.shape[0]):
                direction[s] = sums[s]
    for _ in range(_POWER_STEPS):
        length = math.sqrt(_squared_length(direction))
        if length <= 0.0:
            break
        for s in range(direction.shape[0]):
            direction[s] /= length
        _project(data, groups, n_groups, targets, scratch)
        _clear(sums)
        for g in range(n_groups):
            for e in range(groups.start[g], groups.start[g + 1]):
                sums[groups.stat[e]] += place[g] * groups.value[e]
        _centre(data, targets, scratch)
        length = math.sqrt(_squared_length(sums))
        change = 0.0
        for s in range(sums.shape[0]):
            change = max(change, abs(sums[s] - length * direction[s]))
            direction[s] = sums[s]
        if change <= 1e-6 * length:
            break


@kernel
def _units(data, targets, node, criterion, scratch):
    """Mean of each statistic in the node (of levels: their shares), and the unit in which deviations are measured."""
    total, impurity, mean, unit = node.total, node.impurity, scratch.axes[_MEAN], scratch.axes[_UNIT]
    for k in targets:
        if impurity[k] <= 0.0:
            continue
        at, end = data.first[k], data.first[k + 1]
        if not data.is_categorical[k]:
            mean[at + 1] = total[at + 1] / total[at]
            unit[at + 1] = 1.0 / math.sqrt(impurity[k])
            continue
        known = 0.0
        for s in range(at, end):
            known += total[s]
        for s in range(at, end):
            if total[s] > 0.0:
                mean[s] = total[s] / known
                unit[s] = 1.0 / math.sqrt(impurity[k] * (1.0 if criterion == GINI else 2.0 * mean[s]))


@kernel
def _clear(sums):
    """Set to 0."""
    for s in range(sums.shape[0]):
        sums[s] = 0.0


@kernel
def _squared_length(direction):
    """Sum of squares."""
    total = 0.0
    for s in range(direction.shape[0]):
        total += direction[s] * direction[s]
    return total


@kernel
def _centre(data, targets, scratch):
    """Sums of statistics become deviations from what the node has for the same weight, in units of gain."""
    sums, mean, unit = scratch.axes[_SUMS], scratch.axes[_MEAN], scratch.axes[_UNIT]
    for k in targets:
        at, end = data.first[k], data.first[k + 1]
        if data.is_categorical[k]:
            known = 0.0
            for s in range(at, end):
                known += sums[s]
            for s in range(at, end):
                sums[s] = unit[s] * (sums[s] - known * mean[s])
        else:
            sums[at + 1] = unit[at + 1] * (sums[at + 1] - sums[at] * mean[at + 1])
            sums[at] = 0.0


@kernel
def _project(data, groups, n_groups, targets, scratch):
    """Place of each group's mean deviation along the direction, into ``scratch.key[0]``."""
    mean, unit, direction = scratch.axes[_MEAN], scratch.axes[_UNIT], scratch.axes[_DIRECTION]
    slope, place = scratch.axes[_SLOPE], scratch.key[0]
    for s in range(slope.shape[0]):  # of a statistic, then less what the node has of it
        slope[s] = direction[s] * unit[s]
    for k in targets:
        at, end = data.first[k], data.first[k + 1]
        if data.is_categorical[k]:
            shared = 0.0
            for s in range(at, end):
                shared += slope[s] * mean[s]
            for s in range(at, end):
                slope[s] -= shared
        else:
            slope[at] = -slope[at + 1] * mean[at + 1]
    for g in range(n_groups):
        total = 0.0
        for e in range(groups.start[g], groups.start[g + 1]):
            total += slope[groups.stat[e]] * groups.value[e]
        place[g] = total / groups.size[g]
