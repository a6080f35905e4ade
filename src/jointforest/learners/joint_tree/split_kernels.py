"""Kernels of joint trees: the best split of a node by one column, and whether chance explains it."""

import math

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.numeric_kernels import stable_sort
from ..growing.grow_kernels import ENTROPY, GINI, class_growth, class_power, purity

# ---- Kernel: the best cut of a column's groups, judged on all targets (Nyga et al. 2023, Eq. 19-20).


@kernel
def best_cut(data, groups, n_groups, targets, impurity, criterion, min_weight, scratch):
    """Best cut of the groups in ``scratch.order[0]``: (sum of the targets' relative reductions, groups left or 0).
    ``impurity`` and ``criterion`` are as in `grow.NodeStatistics`; ``scratch`` is a `grow.SplitScratch`."""
    order, left, right, powers = scratch.order[0], scratch.sides[0], scratch.sides[1], scratch.powers
    known_left, known_right, power_left, power_right = powers[0], powers[1], powers[2], powers[3]
    purity_of_both = powers[4]
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
            purity_of_both[k] = purity(criterion, known_right[k], power_right[k])
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
                    gain += purity(criterion, known_right[k], power_right[k]) - purity_of_both[k]
                else:
                    gain = _squares_between(left, right, data.first[k])
                score += gain / impurity[k]
        if score > best + 1e-12:
            best = score
            cut = place + 1
    return best, cut


@kernel
def _squares_between(left, right, at):
    """Sum of squares between two sides, from their weights and sums; from the means, so that no digits are lost."""
    a, b = left[at], right[at]
    if a <= 0.0 or b <= 0.0:
        return 0.0
    distance = left[at + 1] / a - right[at + 1] / b
    return a * b / (a + b) * distance * distance


# ---- Kernels: group the rows of a node by one column's value.


@kernel
def count_groups(data, rows, weight, by, groups):
    """Groups of rows (int32 (m,)) of weights (n,), from a table of bin by statistic, for nodes with many rows; returns
    how many. ``groups`` are those of `grow.empty_groups`, binned."""
    code, size, start, stat, value = groups.code, groups.size, groups.start, groups.stat, groups.value
    cells = by.statistic.shape[0]
    _count_by_bin(data, rows, weight, by, value, size)
    n_groups = 0
    n_entries = 0
    start[0] = 0
    for b in range(by.n_bins):
        if size[b] > 0.0:
            for s in range(cells):
                v = value[b * cells + s]
                if v != 0.0:  # to a place that has been read
                    stat[n_entries] = by.statistic[s]
                    value[n_entries] = v
                    n_entries += 1
            code[n_groups] = b
            size[n_groups] = size[b]
            n_groups += 1
            start[n_groups] = n_entries
    return n_groups


@kernel
def _count_by_bin(data, rows, weight, by, table, size):
    """Count each row in the table, a bin after the other, and its weight in the size of its bin."""
    bins, z, source, cell, n_numeric = data.bins, data.z, by.source, by.cell, by.n_numeric
    cells = by.statistic.shape[0]
    for b in range(by.n_bins):
        size[b] = 0.0
    for c in range(by.n_bins * cells):
        table[c] = 0.0
    for i in rows:
        b = bins[i, by.column]
        if b < 0:
            continue
        w, at = weight[i], b * cells
        size[b] += w
        for t in range(n_numeric):
            x = z[i, source[t]]
            if x == x:
                table[at + cell[t]] += w
                table[at + cell[t] + 1] += w * x
        for t in range(n_numeric, source.shape[0]):
            c = bins[i, source[t]]
            if c >= 0:
                table[at + cell[t] + c] += w


@kernel
def list_groups(data, rows, weight, by, groups, scratch):
    """Groups of equal values of rows (int32 (m,)) of weights (n,), each row's statistics listed, for nodes with few
    rows and tables too large to make; returns how many. ``groups`` are those of `grow.empty_groups`, not binned."""
    code, size, start, stat, value = groups.code, groups.size, groups.start, groups.stat, groups.value
    key, order, targets = scratch.key[0], scratch.order[0], by.targets
    n_known = _sort_known(data.ranks[by.column], rows, scratch)
    n_groups = 0
    e = 0
    start[0] = 0
    for at in range(n_known):
        i, rank = order[at], key[at]
        if n_groups == 0 or rank != code[n_groups - 1]:
            code[n_groups] = rank
            size[n_groups] = 0.0
            n_groups += 1
        w = weight[i]
        size[n_groups - 1] += w
        for k in targets:
            s = data.first[k]
            if data.is_categorical[k]:
                c = data.bins[i, k]
                if c >= 0:
                    stat[e], value[e] = s + c, w
                    e += 1
            else:
                z = data.z[i, data.slot[k]]
                if z == z:
                    stat[e], value[e] = s, w
                    stat[e + 1], value[e + 1] = s + 1, w * z
                    e += 2
        start[n_groups] = e
    return n_groups


@kernel
def _sort_known(ranks, rows, scratch):
    """The rows with known value by rank, in ``scratch.order[0]``; their ranks in ``scratch.key[0]``; their number."""
    key, order = scratch.key[0], scratch.order[0]
    n_known = 0
    for i in rows:
        if ranks[i] >= 0:
            key[n_known] = ranks[i]
            order[n_known] = i
            n_known += 1
    stable_sort(key, order, n_known, scratch.key[1], scratch.order[1])
    return n_known


# ---- Kernel: levels in an order in which a good set of them is a cut.

_POWER_STEPS = 30
"""Steps of the power method. A direction that is not yet exact orders levels nearly as well."""
_MEAN, _UNIT, _DIRECTION, _SUMS, _SLOPE = range(5)  # of `grow.SplitScratch.axes`


@kernel
def place_levels(data, groups, n_groups, targets, node, criterion, scratch):
    """Place of each level along the direction in which the targets' means differ most, into ``scratch.key[0]``. With
    more it is a heuristic (Coppersmith, Hong, Hosking 1999)."""
    # The direction is the first principal component of the levels' deviations from the node, each statistic in units in
    # which its squared deviation is what a split gains (for entropy: to second order). With one numeric target that is
    # the order of means, with one of two levels the order of shares: then the best set is one of the cuts (Breiman et
    # al. 1984, Theorem 4.5).
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


@entry
def split_rows(data, rows, weight, by, node, criterion, min_weight, groups, scratch, goes_left):
    """The split that `grow.best_split` gives: its score, the ranks beside it, and the number of groups. The ranks are
    the largest that goes left and the smallest that goes right, -1 of levels; ``goes_left`` (K,) receives the levels
    that go left. ``min_weight`` is the smallest weight of either side."""
    # The score is the sum of the targets' relative reductions, 0 without a split. Groups are the values, or bins of
    # values, that the rows have.
    key, order, code = scratch.key[0], scratch.order[0], groups.code
    if groups.is_binned:
        n_groups = count_groups(data, rows, weight, by, groups)
    else:
        n_groups = list_groups(data, rows, weight, by, groups, scratch)
    for g in range(n_groups):
        order[g] = g
    if by.is_nominal and n_groups > 2:
        place_levels(data, groups, n_groups, by.targets, node, criterion, scratch)
        stable_sort(key, order, n_groups, scratch.key[1], scratch.order[1])
    score, cut = best_cut(data, groups, n_groups, by.targets, node.impurity, criterion, min_weight, scratch)
    below, above = -1, -1
    if cut > 0 and by.n_levels > 0:
        _mark_levels(groups, n_groups, order, cut, by.is_nominal, goes_left)
    elif cut > 0:
        below, above = code[order[cut - 1]], code[order[cut]]
        if groups.is_binned:
            at = data.bin_start[by.column]
            below, above = data.last_rank[at + below], data.last_rank[at + above - 1] + 1
    return score, below, above, n_groups


@kernel
def _mark_levels(groups, n_groups, order, cut, is_nominal, goes_left):
    """The set of levels of a cut; levels that no row of the node has go to the heavier side (ordered: keep order)."""
    code, size = groups.code, groups.size
    if not is_nominal:
        for level in range(code[order[cut - 1]] + 1):
            goes_left[level] = 1
        return
    left, total = 0.0, 0.0
    for place in range(n_groups):
        total += size[order[place]]
        if place < cut:
            left += size[order[place]]
    for level in range(goes_left.shape[0]):
        goes_left[level] = 2.0 * left >= total
    for place in range(n_groups):
        goes_left[code[order[place]]] = place < cut


# ---- Kernel: the statistics of all targets in a node, and how impure they are.

_PURE = 1e-14
"""Share of a target's weight below which its variance, in units of the table's, is rounding."""


@entry
def describe_targets(data, rows, weight, targets, criterion, node):
    """Fill ``node``, a `grow.NodeStatistics` of zeros, from rows (int32 (m,)) of weights (n,) and targets (int64);
    ``criterion`` is ENTROPY or GINI, for categorical targets."""
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
    of_all = class_power(criterion, known) / (1.0 if criterion == ENTROPY else known)
    return of_all - (power if criterion == ENTROPY else power / known)


# ---- Kernel: divide the rows of a node between two children.


@entry
def partition(codes, rows, spare, below_rank, goes_left):
    """Bring the rows of a node that go left before the others, keeping their order; return how many go left."""
    # codes : int32 array (n,). Ranks or levels of the split column; none is missing.
    # below_rank : int. Largest rank that goes left; -1 if the split is categorical.
    # goes_left : uint8 array (K,). Whether a level goes left.
    n_left = 0
    n_right = 0
    for k in range(rows.shape[0]):
        i = rows[k]
        code = codes[i]
        if (code <= below_rank) if below_rank >= 0 else (goes_left[code] == 1):
            rows[n_left] = i
            n_left += 1
        else:
            spare[n_right] = i
            n_right += 1
    for k in range(n_right):
        rows[n_left + k] = spare[k]
    return n_left


# ---- Kernels: a bound on the chance that a split of independent columns separates the targets as far.

_STEPS = 30
"""Most Newton steps of a logistic regression. Its likelihood is concave, so that few are enough."""


@entry
def log_chance_of_tables(data, rows, j, below_rank, goes_left, targets, count):
    """The bound of `grow.log_chance`; splits are given as to `partition`. ``count`` (bins of all columns, 2) comes as
    zeros: the table of target k is ``count[bin_start[k]:bin_start[k + 1]]``, a row a bin or level."""
    ranks, at = data.ranks[j], data.bin_start
    for i in rows:
        code = ranks[i]
        if code >= 0:
            is_left = code <= below_rank if below_rank >= 0 else goes_left[code] == 1
            for k in targets:
                b = data.bins[i, k]
                if b >= 0:
                    count[at[k] + b, 1 if is_left else 0] += 1.0
    lowest = 0.0
    for k in targets:
        lowest = min(lowest, _log_chance_of(count[at[k] : at[k + 1]], data.is_categorical[k] == 1))
    return min(lowest + math.log(targets.shape[0]), 0.0)


@kernel
def _log_chance_of(count, is_categorical):
    """Bound for one target, from its table ``count`` (bins or levels, 2): rows that went right, and left."""
    right, left, present = 0.0, 0.0, 0
    for b in range(count.shape[0]):
        right += count[b, 0]
        left += count[b, 1]
        if count[b, 0] + count[b, 1] > 0.0:
            present += 1
    n = left + right
    if left == 0.0 or right == 0.0:
        return 0.0
    log_given = (  # chance that a draw row by row puts as many rows left as there are
        math.lgamma(n + 1.0) - math.lgamma(left + 1.0) - math.lgamma(right + 1.0)
        + left * math.log(left / n) + right * math.log(right / n)
    )  # fmt: skip
    if is_categorical and present > 2:
        t = _divergence(count, left, right)
        if t <= present:
            return 0.0
        return -t + present * (1.0 + math.log(t / present)) - log_given
    return math.log(2.0) - _logistic(count, left, right) - log_given


@kernel
def _divergence(count, left, right):
    """Half the likelihood ratio statistic of independence of level and side."""
    total = 0.0
    for b in range(count.shape[0]):
        both_sides = count[b, 0] + count[b, 1]
        if count[b, 0] > 0.0:
            total += count[b, 0] * math.log(count[b, 0] * (left + right) / (both_sides * right))
        if count[b, 1] > 0.0:
            total += count[b, 1] * math.log(count[b, 1] * (left + right) / (both_sides * left))
    return total


@kernel
def _logistic(count, left, right):
    """Half the likelihood ratio statistic of a logistic regression of the side on the number of the bin."""
    n_bins = count.shape[0]
    n = left + right
    share = left / n
    mean = 0.0
    square = 0.0
    for b in range(n_bins):
        mean += (count[b, 0] + count[b, 1]) * b / n
    for b in range(n_bins):
        square += (count[b, 0] + count[b, 1]) * (b - mean) ** 2 / n
    if square <= 0.0:
        return 0.0
    unit = math.sqrt(square)
    a, c, best = 0.0, 0.0, -np.inf
    step_a, step_c, scale = 0.0, 0.0, 1.0
    for _ in range(_STEPS):
        likelihood = 0.0
        g0 = g1 = h00 = h01 = h11 = 0.0
        for b in range(n_bins):
            m = count[b, 0] + count[b, 1]
            if m > 0.0:
                x = (b - mean) / unit
                eta = a + scale * step_a + (c + scale * step_c) * x
                # log(1 - share + share * exp(eta)), without overflow
                high = max(eta, 0.0)
                log_sum = high + math.log((1.0 - share) * math.exp(-high) + share * math.exp(eta - high))
                p = share * math.exp(eta - log_sum)
                likelihood += count[b, 1] * eta - m * log_sum
                g0 += count[b, 1] - m * p
                g1 += (count[b, 1] - m * p) * x
                h00 += m * p * (1.0 - p)
                h01 += m * p * (1.0 - p) * x
                h11 += m * p * (1.0 - p) * x * x
        if likelihood < best:  # too far: half the step
            scale *= 0.5
            continue
        a += scale * step_a
        c += scale * step_c
        gained, best = likelihood - best, likelihood
        determinant = h00 * h11 - h01 * h01
        if determinant <= 1e-12 * h00 * h11 or (step_c != 0.0 and gained < 1e-4):
            break
        step_a = (h11 * g0 - h01 * g1) / determinant
        step_c = (h00 * g1 - h01 * g0) / determinant
        scale = 1.0
    return max(best, 0.0)
