"""Kernel: grow one tree on ranks. One grower for all learners; what differs is the criterion (see `_split.purity`)."""

from __future__ import annotations

import numpy as np

from ...ground.compile import array_kernel, entry, kernel
from ...ground.random_kernels import below, stream, uniform
from .criterion_kernels import VARIANCE, Limits, add, weight_and_power
from .level_set_kernels import best_levels
from .node_rows_kernels import work_space
from .threshold_kernels import best_threshold

_PURE = 1e-14
"""Nodes are pure up to this variance, the whole table's being 1, or this share of rows outside the largest class."""


@entry
def grow_tree(
    codes, n_codes, is_categorical, is_ordered, y, n_statistics, weight, rows, criterion, max_features, keep_looking,
    min_samples_split, min_samples_leaf, min_class, max_depth, max_leaf_nodes, min_gain, seed, number,
):  # fmt: skip
    """Grow one tree, best split first if the number of leaves is limited, else depth first.

    Parameters
    ----------
    codes : int32 array (d, n), n_codes : int32 array (d,)
        See `ranks.Ranks`.
    is_categorical, is_ordered : uint8 arrays (d,)
    y : float64 array (n,)
        Class of each row, 0..n_statistics-1; or for VARIANCE a number, of variance 1 or 0.
    n_statistics : int
        Number of classes; 2 for VARIANCE.
    weight : float64 array (n,)
        Weight of each row (how often the bootstrap drew it).
    rows : int32 array (m,)
        Rows with positive weight. Reordered in place.
    max_features : int
        Columns tried at each node, of those with more than one value in the table.
    keep_looking : bool
        Whether to try more where all of them are constant in the node; else it becomes a leaf.
    min_samples_split : float
        Nodes of less weight become leaves.
    min_samples_leaf : float
        Smallest weight of a leaf.
    min_class : float64 array (n_classes,), or (0,) for no limits
        Smallest weight of each class in a leaf.
    max_depth, max_leaf_nodes : int
        -1 for no limit.
    min_gain : float
        Smallest gain worth a split, a unit of weight; with VARIANCE as a share of the node's sum of squares.
    seed, number : int
        The tree's random stream.

    Returns
    -------
    feature, below_rank, above_rank, levels_at, left, right : int32 arrays (N,)
        Rows with rank <= below_rank go left; above_rank is the smallest rank of a row of the node that goes right.
        Rows of ranks in between were not in the node; see `cut_ranks`.
    level_words : uint64 array
        Level sets that go left, see `nodes.Trees.left_levels`.
    share_left : float64 array (N,)
        Share of the node's rows with known value that went left: rows with the value missing are sent left by a
        draw with this probability, at learning. Nothing is imputed, and nothing is learned from a missing cell.

    Notes
    -----
    All arrays are sized by the number of nodes; children come after their parent.
    """
    d = codes.shape[0]
    m = rows.shape[0]
    state = stream(seed, number)
    capacity = 64
    feature = np.full(capacity, -1, np.int32)
    below_rank = np.full(capacity, -1, np.int32)
    above_rank = np.full(capacity, -1, np.int32)
    levels_at = np.full(capacity, -1, np.int32)
    left_child = np.full(capacity, -1, np.int32)
    right_child = np.full(capacity, -1, np.int32)
    share_left = np.zeros(capacity, np.float64)
    start = np.zeros(capacity, np.int64)
    stop = np.zeros(capacity, np.int64)
    depth = np.zeros(capacity, np.int32)
    words = np.zeros(64, np.uint64)
    n_words = 0

    most_ranks = np.int64(1)
    most_levels = np.int64(1)
    for j in range(d):
        if is_categorical[j]:
            most_levels = np.maximum(most_levels, np.int64(n_codes[j]))
        else:
            most_ranks = np.maximum(most_ranks, np.int64(n_codes[j]))
    work = work_space(m, n_statistics, most_ranks, most_levels)
    limits = Limits(min_samples_leaf, min_class)
    trial = np.empty(most_levels, np.uint8)
    chosen = np.empty(most_levels, np.uint8)
    spare = np.empty(m, np.int32)
    tried = np.flatnonzero(n_codes > 1)  # columns of one value tell nothing, and do not count

    # A max-heap of (priority, node): the gain if leaves are limited, else the node number (depth first).
    heap_priority = np.empty(capacity, np.float64)
    heap_node = np.empty(capacity, np.int64)
    heap_size = 0
    stop[0] = m
    n_nodes = 1
    n_leaves = 1
    node = 0
    opened = 0  # nodes of the last split still to be examined
    while True:
        # Examine: find the best split of `node`, and queue it if there is one.
        size, spread = describe(criterion, y, weight, rows, start[node], stop[node], work)
        best = min_gain * (spread if criterion == VARIANCE else size)
        best_feature = -1
        best_below = np.int64(-1)
        best_above = np.int64(-1)
        is_mixed = spread > _PURE * size
        if size >= min_samples_split and is_mixed and (max_depth < 0 or depth[node] < max_depth):
            informative = False
            for k in range(len(tried)):
                pick = k + below(state, len(tried) - k)
                tried[k], tried[pick] = tried[pick], tried[k]
                j = tried[k]
                if is_categorical[j]:
                    gain = best_levels(
                        criterion, codes[j], n_codes[j], is_ordered[j], rows, start[node], stop[node], trial, work,
                        limits,
                    )  # fmt: skip
                    if gain > best:
                        best, best_feature = gain, j
                        chosen[: n_codes[j]] = trial[: n_codes[j]]
                else:
                    gain, low, high = best_threshold(criterion, codes[j], rows, start[node], stop[node], work, limits)
                    if gain > best:
                        best, best_feature, best_below, best_above = gain, j, low, high
                informative = informative or gain > -np.inf
                if k + 1 >= max_features and (informative or not keep_looking):
                    break
        if best_feature >= 0:
            feature[node] = best_feature
            if is_categorical[best_feature]:
                needed = (n_codes[best_feature] + 63) // 64
                while n_words + needed > words.shape[0]:
                    words = np.concatenate((words, np.zeros_like(words)))
                levels_at[node] = n_words
                for k in range(n_codes[best_feature]):
                    if chosen[k] == 1:
                        words[n_words + k // 64] |= np.uint64(1) << np.uint64(k % 64)
                n_words += needed
            else:
                below_rank[node] = best_below
                above_rank[node] = best_above
            if heap_size == heap_priority.shape[0]:
                heap_priority = np.concatenate((heap_priority, np.empty_like(heap_priority)))
                heap_node = np.concatenate((heap_node, np.empty_like(heap_node)))
            _push(heap_priority, heap_node, heap_size, best if max_leaf_nodes > 0 else float(node), node)
            heap_size += 1
        if opened > 0:
            opened -= 1
            node += 1
            continue
        # Split the node at the top of the heap.
        if heap_size == 0 or n_leaves == max_leaf_nodes:
            break
        parent = heap_node[0]
        heap_size -= 1
        _pop(heap_priority, heap_node, heap_size)
        if n_nodes + 2 > feature.shape[0]:
            feature = _grown(feature, -1)
            below_rank = _grown(below_rank, -1)
            above_rank = _grown(above_rank, -1)
            levels_at = _grown(levels_at, -1)
            left_child = _grown(left_child, -1)
            right_child = _grown(right_child, -1)
            share_left = np.concatenate((share_left, np.zeros_like(share_left)))
            start = np.concatenate((start, np.zeros_like(start)))
            stop = np.concatenate((stop, np.zeros_like(stop)))
            depth = _grown(depth, 0)
        middle = _partition(
            codes[feature[parent]], rows, spare, weight, start[parent], stop[parent], below_rank[parent],
            levels_at[parent], words, share_left, parent, state,
        )  # fmt: skip
        left_child[parent] = n_nodes
        right_child[parent] = n_nodes + 1
        start[n_nodes], stop[n_nodes] = start[parent], middle
        start[n_nodes + 1], stop[n_nodes + 1] = middle, stop[parent]
        depth[n_nodes] = depth[parent] + 1
        depth[n_nodes + 1] = depth[parent] + 1
        node = n_nodes
        opened = 1
        n_nodes += 2
        n_leaves += 1
    for node in range(n_nodes):  # queued but never split
        if left_child[node] < 0:
            feature[node] = -1
            below_rank[node] = -1
            above_rank[node] = -1
            levels_at[node] = -1
    return (
        feature[:n_nodes].copy(), below_rank[:n_nodes].copy(), above_rank[:n_nodes].copy(), levels_at[:n_nodes].copy(),
        left_child[:n_nodes].copy(), right_child[:n_nodes].copy(), words[:n_words].copy(), share_left[:n_nodes].copy(),
    )  # fmt: skip


@kernel
def describe(criterion, y, weight, rows, start, stop, work):
    """Put the rows of a node into ``work``, numbers less their mean; its weight and how far it is from pure.

    For classes that is the weight of all but the largest, for VARIANCE the sum of squares around the mean.
    """
    m = stop - start
    for k in range(m):
        work.target[k] = y[rows[start + k]]
        work.weight[k] = weight[rows[start + k]]
    work.node[:] = 0.0
    for k in range(m):
        add(criterion, work.node, work.target[k], work.weight[k])
    size, power = weight_and_power(criterion, work.node)
    if criterion != VARIANCE:
        largest = 0.0
        for c in range(work.node.shape[0]):
            largest = max(largest, work.node[c])
        return size, size - largest
    mean = power / size  # sums of squares around it lose no digits
    squares = 0.0
    work.node[1] = 0.0
    for k in range(m):
        work.target[k] -= mean
        work.node[1] += work.weight[k] * work.target[k]
        squares += work.weight[k] * work.target[k] * work.target[k]
    return size, squares


@array_kernel
def _grown(array, fill):
    """The array at twice its size."""
    larger = np.full(2 * array.shape[0], fill, array.dtype)
    larger[: array.shape[0]] = array
    return larger


@array_kernel
def _partition(codes, rows, spare, weight, start, stop, below_rank, levels_at, words, share_left, node, state):
    """Bring the rows that go left before the others, keeping their order; return where the others begin."""
    known_left = 0.0
    known = 0.0
    for i in rows[start:stop]:
        if codes[i] >= 0:
            known += weight[i]
            if goes_left(codes[i], below_rank, levels_at, words):
                known_left += weight[i]
    if known > 0.0:
        share_left[node] = known_left / known
    share = share_left[node]
    middle = start
    n_right = 0
    for k in range(start, stop):
        i = rows[k]
        is_left = goes_left(codes[i], below_rank, levels_at, words) if codes[i] >= 0 else uniform(state) < share
        if is_left:
            rows[middle] = i
            middle += 1
        else:
            spare[n_right] = i
            n_right += 1
    rows[middle:stop] = spare[:n_right]
    return middle


@entry
def cut_ranks(feature, below_rank, above_rank, value_start, values):
    """Largest rank that goes left (int32, N) if each split is cut halfway between its two neighbours in the node.

    Rows that the tree was not grown on may have values in between: they go to the nearer side.
    """
    out = below_rank.copy()
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
        out[node] = low - first
    return out


@entry
def shares_of(codes, feature, below_rank, levels_at, words, left, right, share_left, seed, number):
    """`grow_tree`'s ``share_left`` as the rows of ``codes`` (d, n) have it; nodes that none reaches keep theirs."""
    n_nodes = feature.shape[0]
    n = codes.shape[1]
    rows = np.arange(n).astype(np.int32)
    spare = np.empty(n, np.int32)
    weight = np.ones(n)
    out = share_left.copy()
    start = np.zeros(n_nodes, np.int64)
    stop = np.zeros(n_nodes, np.int64)
    stop[0] = n
    state = stream(seed, number)
    for node in range(n_nodes):
        a, b = left[node], right[node]
        if a >= 0:
            middle = _partition(
                codes[feature[node]], rows, spare, weight, start[node], stop[node], below_rank[node], levels_at[node],
                words, out, node, state,
            )  # fmt: skip
            start[a], stop[a], start[b], stop[b] = start[node], middle, middle, stop[node]
    return out


@kernel
def goes_left(code, below_rank, levels_at, words):
    """Whether a known rank or level goes left."""
    if levels_at < 0:
        return code <= below_rank
    return (words[levels_at + code // 64] >> np.uint64(code % 64)) & np.uint64(1) == np.uint64(1)


@kernel
def _push(priority, node, size, new_priority, new_node):
    """Add an entry to a binary max-heap of ``size`` entries."""
    k = size
    while k > 0 and priority[(k - 1) // 2] < new_priority:
        priority[k] = priority[(k - 1) // 2]
        node[k] = node[(k - 1) // 2]
        k = (k - 1) // 2
    priority[k] = new_priority
    node[k] = new_node


@kernel
def _pop(priority, node, size):
    """Remove the top of a binary max-heap; ``size`` entries remain."""
    last_priority, last_node = priority[size], node[size]
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
        node[k] = node[child]
        k = child
    priority[k] = last_priority
    node[k] = last_node


@entry
def route(codes, feature, below_rank, levels_at, words, left, right, share_left, seed, number, out):
    """Leaf node of every row of ``codes`` (d, n) in one tree, into ``out`` (int32, n).

    A row with a missing split value goes left with probability ``share_left``, by a draw of its own.
    """
    for i in range(codes.shape[1]):
        node = 0
        state = stream(seed, number)
        drawn = False
        while left[node] >= 0:
            code = codes[feature[node], i]
            if code >= 0:
                is_left = goes_left(code, below_rank[node], levels_at[node], words)
            else:
                if not drawn:
                    state = stream(seed + 1, number * codes.shape[1] + i)
                    drawn = True
                is_left = uniform(state) < share_left[node]
            node = left[node] if is_left else right[node]
        out[i] = node
