"""Kernels: grow one tree on ranks, whatever the learner; what differs is the criterion, `purity`."""

from __future__ import annotations

import math

import numpy as np

from ...models.box_forest.leaves.level_kernels import has_level
from ...runtime.compile import entry, kernel
from ...runtime.numeric_kernels import lowest_bit, stable_sort
from ...runtime.random_kernels import below

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


# ---- Kernels: grow one tree on ranks, whatever the learner; what differs is the criterion (`purity`).


@kernel
def _goes_left(code, below_rank, levels_at, words):
    """Whether a rank or level goes left."""
    if levels_at < 0:
        return code <= below_rank
    return has_level(words, np.int64(levels_at), np.int64(code))


@kernel
def _partition(tree, node, codes, rows, spare):
    """Bring the rows of a node that go left before the others, keeping their order; return how many go left. ``codes``
    (n,) are those of the split's column, ``rows`` (int32) the node's rows and ``spare`` as long at least."""
    below_rank, levels_at, words = tree.below_rank[node], tree.levels_at[node], tree.level_words
    n_left = 0
    n_right = 0
    for k in range(rows.shape[0]):  # without a branch that nobody can predict
        i = rows[k]
        is_left = 1 if _goes_left(codes[i], below_rank, levels_at, words) else 0
        rows[n_left] = i
        spare[n_right] = i
        n_left += is_left
        n_right += 1 - is_left
    for k in range(n_right):
        rows[n_left + k] = spare[k]
    return n_left


@entry
def route(codes, tree, rows, spare, start, stop, out):
    """Leaf node of some rows of ``codes`` (d, n) in one tree, into ``out`` (int32, n). ``rows`` (int32, m) are the
    rows' numbers, which end node by node, and ``spare`` is scratch. ``start``, ``stop`` (int64, N) receive where the
    rows of each node are, and know it of the root."""
    left, right = tree.left, tree.right
    for node in range(left.shape[0]):
        here = rows[start[node] : stop[node]]
        if left[node] < 0:
            for i in here:
                out[i] = node
            continue
        a, b = left[node], right[node]
        start[a] = start[node]
        stop[a] = start[b] = start[node] + _partition(tree, node, codes[tree.feature[node]], here, spare)
        stop[b] = stop[node]


@entry
def cut_ranks(feature, below_rank, above_rank, value_start, values):
    """Largest rank that goes left, into ``below_rank`` (int32, N), if each split is cut halfway between its two
    neighbours in the node; these are given as ``below_rank`` and ``above_rank``."""
    # Rows that the tree was not grown on may have values in between: they go to the nearer side.
    for node in range(feature.shape[0]):
        if below_rank[node] < 0:
            continue
        first = value_start[feature[node]]
        low, high = first + below_rank[node], first + above_rank[node]
        middle = values[low] / 2 + values[high] / 2
        while high - low > 1:
            k = (low + high) // 2
            if values[k] <= middle:
                low = k
            else:
                high = k
        below_rank[node] = low - first


# ---- Kernels: the best set of levels of a categorical column in a node.


@kernel
def best_levels(criterion, codes, n_levels, ordered, rows, scratch, least_weight):
    """Gain, in units of `purity`, of the best set of levels over a node's ``rows``, which ``scratch`` describes and
    ``scratch.trial`` receives; 0 if no split is allowed, minus infinity if the column has one level in the node."""
    # With two classes the levels are ordered by their share of class 1, with VARIANCE by their mean, which is exact
    # (Fisher 1958; Breiman et al. 1984, Theorem 4.5); with more classes, by the share of each in turn. Ordered levels
    # keep their order. Levels that no row of the node has go to the heavier side.
    table, total = scratch.table, scratch.node
    n_statistics = total.shape[0]
    for k in range(n_levels):
        for c in range(n_statistics):
            table[k, c] = 0.0
    for k in range(rows.shape[0]):
        add(criterion, table[codes[rows[k]]], scratch.target[k], scratch.weight[k])
    present = present_groups(criterion, n_levels, scratch)
    if present < 2:
        return -np.inf
    best = -np.inf
    by_one = ordered or n_statistics == 2
    for by in range(n_statistics - 1 if by_one else 0, n_statistics):
        if not ordered:
            _sort_levels(criterion, scratch, present, by)
        score, cut = cut_groups(criterion, scratch, present, least_weight)
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


# ---- Kernels: the best cut of a numeric column in a node, on ranks.

_ONE = np.uint64(1)


@kernel
def best_threshold(criterion, codes, rows, scratch, least_weight):
    """Gain of the best cut of a column of ranks ``codes`` (n,) over a node's ``rows``, which ``scratch`` describes, as
    of `best_levels`; largest rank that goes left and smallest that goes right, of rows in the node, -1 without a
    cut."""
    m = rows.shape[0]
    lowest = np.int64(2147483647)
    highest = np.int64(-1)
    for k in range(m):
        code = codes[rows[k]]
        scratch.code[k] = code
        lowest = min(lowest, np.int64(code))
        highest = max(highest, np.int64(code))
    if highest <= lowest:
        return -np.inf, np.int64(-1), np.int64(-1)
    weight, power = weight_and_power(criterion, scratch.node)
    if (highest - lowest + 1) * scratch.node.shape[0] <= m:  # few values
        best, below, above = _cut_of_counts(criterion, m, lowest, highest, scratch, least_weight)
    else:
        best, below, above = _cut_of_lists(criterion, m, lowest, highest, weight, power, scratch, least_weight)
    if below < 0:
        return 0.0, below, above
    return best - purity(criterion, weight, power), below, above


@kernel
def _cut_of_counts(criterion, m, lowest, highest, scratch, least_weight):
    """Best cut by statistics of each rank from ``lowest`` to ``highest``: (score, below, above)."""
    table, order = scratch.table, scratch.order
    n_statistics = table.shape[1]
    for k in range(highest - lowest + 1):
        for c in range(n_statistics):
            table[k, c] = 0.0
    for k in range(m):
        add(criterion, table[scratch.code[k] - lowest], scratch.target[k], scratch.weight[k])
    present = present_groups(criterion, highest - lowest + 1, scratch)
    best, cut = cut_groups(criterion, scratch, present, least_weight)
    if cut == 0:
        return best, np.int64(-1), np.int64(-1)
    return best, order[cut - 1] + lowest, order[cut] + lowest


@kernel
def _cut_of_lists(criterion, m, lowest, highest, weight, power, scratch, least_weight):
    """Best cut by going through the rows by rank: (score, below, above)."""
    # Rows are not sorted: each is put on the list of its rank, and the ranks in use are bits of a set, read in order.
    first, after, words, groups = scratch.first, scratch.after, scratch.words, scratch.groups
    left, total = scratch.left, scratch.node
    for k in range(m):
        code = np.int64(scratch.code[k])
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
            at = (g << 6) | lowest_bit(group)
            group &= group - _ONE
            word = words[at]
            words[at] = np.uint64(0)
            while word != 0:
                code = (at << 6) | lowest_bit(word)
                word &= word - _ONE
                if last >= 0 and allowed(weight_left, weight, least_weight):
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


_LEAST_GAIN = 1e-9
"""Smallest gain worth a split, a unit of weight; with VARIANCE as a share of the node's sum of squares."""
_PURE = 1e-14
"""Nodes are pure up to this variance, where that of the whole table is 1, or this share of rows outside the largest
class. Less is rounding."""


@entry
def grow_tree(table, rules, growing, scratch):
    """Grow a tree, best split first if the number of leaves is limited, else depth first; whether the tree is whole. If
    it is not, ``growing`` is full: call again with the same tree and more room, at least for the sets of two splits."""
    counts, tree = growing.counts, growing.tree
    most_words = (scratch.trial.shape[0] + 63) // 64
    while True:
        while counts[N_EXAMINED] < counts[N_NODES]:
            examine(counts[N_EXAMINED], table, rules, growing, scratch)
            counts[N_EXAMINED] += 1
        n_leaves = (counts[N_NODES] + 1) // 2
        if counts[N_QUEUED] == 0 or n_leaves == rules.max_leaf_nodes:
            break
        if counts[N_NODES] + 2 > tree.feature.shape[0] or counts[N_WORDS] + 2 * most_words > tree.level_words.shape[0]:
            return False
        _split_rows(pop(growing), table, growing, scratch)
    for node in range(counts[N_NODES]):  # queued but never split
        if tree.left[node] < 0:
            tree.feature[node] = -1
            tree.below_rank[node] = -1
            tree.levels_at[node] = -1
    return True


@kernel
def examine(node, table, rules, growing, scratch):
    """Find the best split of a node, and queue the node if there is one."""
    criterion, tree = rules.criterion, growing.tree
    rows = scratch.rows[growing.start[node] : growing.stop[node]]
    size, spread = describe_node(criterion, table.target, table.weight, rows, scratch)
    if size < rules.min_weight or spread <= _PURE * size or 0 <= rules.max_depth <= growing.depth[node]:
        return
    least = _LEAST_GAIN * (spread if criterion == VARIANCE else size)
    gain, feature, below_rank, above_rank = _best_column_split(table, rules, rows, least, scratch)
    if feature < 0:
        return
    tree.feature[node] = feature
    if table.is_categorical[feature]:
        first, n_levels = growing.counts[N_WORDS], np.int64(table.n_codes[feature])
        tree.levels_at[node] = first
        for k in range(n_levels):
            if scratch.chosen[k] == 1:
                tree.level_words[first + (k >> 6)] |= np.uint64(1) << np.uint64(k & 63)
        growing.counts[N_WORDS] += (n_levels + 63) >> 6
    else:
        tree.below_rank[node] = below_rank
        growing.above_rank[node] = above_rank
    push(growing, gain if rules.max_leaf_nodes > 0 else float(node), node)


@kernel
def _best_column_split(table, rules, rows, least_gain, scratch):
    """The split of a node that gains most, of some columns drawn at random: (gain, column, below, above). The column is
    -1 if none gains more than ``least_gain``. A categorical split's levels are ``scratch.chosen``; a numeric split is
    between the ranks ``below`` and ``above``."""
    criterion, least_weight, tried = rules.criterion, rules.min_leaf, scratch.tried
    best, feature, below_rank, above_rank = least_gain, np.int64(-1), np.int64(-1), np.int64(-1)
    informative = False
    for k in range(tried.shape[0]):
        pick = k + below(scratch.state, tried.shape[0] - k)
        j = tried[pick]
        tried[pick] = tried[k]
        tried[k] = j
        if table.is_categorical[j]:
            n_levels = np.int64(table.n_codes[j])
            gain = best_levels(criterion, table.codes[j], n_levels, table.is_ordered[j], rows, scratch, least_weight)
            if gain > best:
                best, feature = gain, j
                for level in range(n_levels):
                    scratch.chosen[level] = scratch.trial[level]
        else:
            gain, low, high = best_threshold(criterion, table.codes[j], rows, scratch, least_weight)
            if gain > best:
                best, feature, below_rank, above_rank = gain, j, low, high
        informative = informative or gain > -np.inf
        if k + 1 >= rules.max_features and (informative or not rules.keep_looking):
            break
    return best, feature, below_rank, above_rank


@kernel
def _split_rows(parent, table, growing, scratch):
    """Divide the rows of a node between two new nodes."""
    tree, counts = growing.tree, growing.counts
    start, stop = growing.start[parent], growing.stop[parent]
    codes, rows = table.codes[tree.feature[parent]], scratch.rows[start:stop]
    middle = start + _partition(tree, parent, codes, rows, scratch.spare)
    left = counts[N_NODES]
    right = left + 1
    tree.left[parent] = left
    tree.right[parent] = right
    growing.start[left], growing.stop[left] = start, middle
    growing.start[right], growing.stop[right] = middle, stop
    growing.depth[left] = growing.depth[parent] + 1
    growing.depth[right] = growing.depth[parent] + 1
    counts[N_NODES] += 2


@kernel
def describe_node(criterion, target, weight, rows, scratch):
    """Put the rows of a node into ``scratch``, numbers less their mean; its weight and how far it is from pure."""
    # For classes that is the weight of all but the largest, for VARIANCE the sum of squares around the mean.
    own_target, own_weight, node = scratch.target, scratch.weight, scratch.node
    m = rows.shape[0]
    for c in range(node.shape[0]):
        node[c] = 0.0
    if node.shape[0] == 2:  # sums in registers
        both = second = 0.0
        for k in range(m):
            own_target[k], own_weight[k] = target[rows[k]], weight[rows[k]]
            both += own_weight[k]
            second += own_weight[k] * own_target[k]
        node[0], node[1] = both if criterion == VARIANCE else max(both - second, 0.0), second
    else:
        for k in range(m):
            own_target[k], own_weight[k] = target[rows[k]], weight[rows[k]]
            add(criterion, node, own_target[k], own_weight[k])
    size, power = weight_and_power(criterion, node)
    if criterion != VARIANCE:
        largest = 0.0
        for c in range(node.shape[0]):
            largest = max(largest, node[c])
        return size, size - largest
    mean = power / size  # sums of squares around it lose no digits
    squares = 0.0
    node[1] = 0.0
    for k in range(m):
        own_target[k] -= mean
        node[1] += own_weight[k] * own_target[k]
        squares += own_weight[k] * own_target[k] * own_target[k]
    return size, squares


@kernel
def push(growing, new_priority, new_node):
    """Queue a node."""
    priority, queue = growing.priority, growing.queue
    k = growing.counts[N_QUEUED]
    growing.counts[N_QUEUED] += 1
    while k > 0:
        parent = (k - 1) >> 1
        if priority[parent] >= new_priority:
            break
        priority[k] = priority[parent]
        queue[k] = queue[parent]
        k = parent
    priority[k] = new_priority
    queue[k] = new_node


@kernel
def pop(growing):
    """Take the node of the largest priority out of the queue."""
    priority, queue = growing.priority, growing.queue
    top = queue[0]
    growing.counts[N_QUEUED] -= 1
    size = growing.counts[N_QUEUED]
    last_priority, last_node = priority[size], queue[size]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        if child + 1 < size and priority[child + 1] > priority[child]:
            child += 1
        if priority[child] <= last_priority:
            break
        priority[k] = priority[child]
        queue[k] = queue[child]
        k = child
    priority[k] = last_priority
    queue[k] = last_node
    return top


N_NODES, N_EXAMINED, N_QUEUED, N_WORDS = range(4)
"""Places in `GrowingTree.counts`."""
