"""Kernel: the best cut of a column's groups, judged on all targets (Nyga et al. 2023, Eq. 19-20)."""

from __future__ import annotations

from ...ground.compile import kernel
from ..grow.criterion_kernels import class_growth, class_power, purity


@kernel
def best_cut(data, groups, n_groups, targets, impurity, criterion, min_weight, scratch):
    """Best cut of the groups in ``scratch.order[0]``: (sum of the targets' relative reductions, groups left or 0).

    ``impurity`` and ``criterion`` are as in `split.NodeStatistics`; ``scratch`` is a `split.SplitScratch`.
    """
    order, left, right, powers = scratch.order[0], scratch.sides[0], scratch.sides[1], scratch.powers
    known_left, known_right, power_left, power_right, whole = powers[0], powers[1], powers[2], powers[3], powers[4]
    for e in range(groups.start[n_groups]):
        right[groups.stat[e]] += groups.value[e]
    size, size_left = 0.0, 0.0
    for g in range(n_groups):
        size += groups.size[g]
    for k in targets:
        if data.is_categorical[k]:
            for s in range(data.first[k], data.first[k + 1]):
                known_right[k] += right[s]
                power_right[k] += class_power(criterion, right[s])
            whole[k] = purity(criterion, known_right[k], power_right[k])
    best = 0.0
    cut = 0
    for place in range(n_groups - 1):
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
