"""Kernels: grow one tree on ranks, whatever the learner; what differs is the criterion (`criterion_kernels`)."""

from __future__ import annotations

import numpy as np

from ...ground.compile import entry, kernel
from ...ground.random_kernels import below
from .best_levels_kernels import best_levels
from .best_threshold_kernels import best_threshold
from .criterion_kernels import VARIANCE, add, weight_and_power
from .growing import N_EXAMINED, N_NODES, N_QUEUED, N_WORDS
from .route_kernels import partition

_PURE = 1e-14
"""Nodes are pure up to this variance, the whole table's being 1, or this share of rows outside the largest class."""


@entry
def grow_tree(table, rules, growing, scratch):
    """Grow a tree, best split first if the number of leaves is limited, else depth first.

    Parameters
    ----------
    table : GrowthRows
    rules : Rules
    growing : GrowingTree
        Has words for the sets of two splits, at least.
    scratch : Scratch

    Returns
    -------
    bool
        Whether the tree is whole; else ``growing`` is full: call again with the same tree and more room.
    """
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
        split(pop(growing), table, growing, scratch)
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
    size, spread = describe(criterion, table.target, table.weight, rows, scratch)
    if size < rules.min_weight or spread <= _PURE * size or 0 <= rules.max_depth <= growing.depth[node]:
        return
    least = rules.min_gain * (spread if criterion == VARIANCE else size)
    gain, feature, below_rank, above_rank = best_split(table, rules, rows, least, scratch)
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
def best_split(table, rules, rows, least_gain, scratch):
    """The split of a node that gains most, of some columns drawn at random: (gain, column, below, above).

    The column is -1 if none gains more than ``least_gain``. A categorical split's levels are ``scratch.chosen``; a
    numeric split is between the ranks ``below`` and ``above``.
    """
    criterion, limits, tried = rules.criterion, rules.limits, scratch.tried
    best, feature, below_rank, above_rank = least_gain, np.int64(-1), np.int64(-1), np.int64(-1)
    informative = False
    for k in range(tried.shape[0]):
        pick = k + below(scratch.state, tried.shape[0] - k)
        j = tried[pick]
        tried[pick] = tried[k]
        tried[k] = j
        if table.is_categorical[j]:
            n_levels = np.int64(table.n_codes[j])
            gain = best_levels(criterion, table.codes[j], n_levels, table.is_ordered[j], rows, scratch, limits)
            if gain > best:
                best, feature = gain, j
                for level in range(n_levels):
                    scratch.chosen[level] = scratch.trial[level]
        else:
            gain, low, high = best_threshold(criterion, table.codes[j], rows, scratch, limits)
            if gain > best:
                best, feature, below_rank, above_rank = gain, j, low, high
        informative = informative or gain > -np.inf
        if k + 1 >= rules.max_features and (informative or not rules.keep_looking):
            break
    return best, feature, below_rank, above_rank


@kernel
def split(parent, table, growing, scratch):
    """Divide the rows of a node between two new nodes."""
    tree, counts = growing.tree, growing.counts
    start, stop = growing.start[parent], growing.stop[parent]
    codes, rows = table.codes[tree.feature[parent]], scratch.rows[start:stop]
    middle = start + partition(tree, parent, codes, rows, scratch.spare, table.weight, 0.0, 0.0, scratch.state)
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
def describe(criterion, target, weight, rows, scratch):
    """Put the rows of a node into ``scratch``, numbers less their mean; its weight and how far it is from pure.

    For classes that is the weight of all but the largest, for VARIANCE the sum of squares around the mean.
    """
    own_target, own_weight, node = scratch.target, scratch.weight, scratch.node
    m = rows.shape[0]
    for k in range(m):
        own_target[k] = target[rows[k]]
        own_weight[k] = weight[rows[k]]
    for c in range(node.shape[0]):
        node[c] = 0.0
    for k in range(m):
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
