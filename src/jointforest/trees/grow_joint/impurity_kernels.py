"""Kernel: the statistics of all targets in a node, and how impure they are."""

from __future__ import annotations

from ...ground.compile import entry, kernel
from ..grow.criterion_kernels import ENTROPY, class_power

_PURE = 1e-14


@entry
def describe(data, rows, weight, targets, criterion, node):
    """Fill ``node``, a `split.NodeStatistics` of zeros, from the rows of a node.

    Parameters
    ----------
    data : JointRows
    rows : int32 array (m,)
    weight : float64 array (n,)
    targets : int64 array
    criterion : int
        ENTROPY or GINI, for categorical targets.
    """
    total, mean, squares = node.total, node.mean, node.squares
    for i in rows:
        w = weight[i]
        for k in targets:
            at = data.first[k]
            if data.is_categorical[k]:
                if data.bins[i, k] >= 0:
                    total[at + data.bins[i, k]] += w
            else:
                z = data.z[i, data.slot[k]]
                if z == z:
                    total[at] += w
                    total[at + 1] += w * z
    for k in targets:
        at = data.first[k]
        if not data.is_categorical[k] and total[at] > 0.0:
            mean[k] = total[at + 1] / total[at]
    for i in rows:
        for k in targets:
            if not data.is_categorical[k]:
                z = data.z[i, data.slot[k]]
                if z == z:
                    squares[k] += weight[i] * (z - mean[k]) ** 2
    for k in targets:
        at, end = data.first[k], data.first[k + 1]
        if data.is_categorical[k]:
            node.impurity[k] = _impurity_of_levels(criterion, total, at, end)
        else:
            node.impurity[k] = squares[k] if squares[k] > _PURE * total[at] else 0.0


@kernel
def _impurity_of_levels(criterion, total, at, end):
    """Weighted impurity of one target, from the weights ``total[at:end]`` of its levels."""
    known, largest, power = 0.0, 0.0, 0.0
    for s in range(at, end):
        known += total[s]
        largest = max(largest, total[s])
        power += class_power(criterion, total[s])
    if known - largest <= 0.0:
        return 0.0
    whole = class_power(criterion, known) / (1.0 if criterion == ENTROPY else known)
    return whole - (power if criterion == ENTROPY else power / known)
