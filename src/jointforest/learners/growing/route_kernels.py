"""Kernels: the side that a row takes in a tree on ranks, and the leaf where it ends."""

from __future__ import annotations

import numpy as np

from ...models.box_forest.leaves.level_kernels import has_level
from ...runtime.compile import entry, kernel
from ...runtime.random_kernels import stream, uniform


@kernel
def goes_left(code, below_rank, levels_at, words):
    """Whether a known rank or level goes left."""
    if levels_at < 0:
        return code <= below_rank
    return has_level(words, np.int64(levels_at), np.int64(code))


@kernel
def partition(tree, node, codes, rows, spare, weight, known_left, known, state):
    """Bring the rows of a node that go left before the others, keeping their order; return how many go left.

    ``codes`` (n,) are those of the split's column, ``rows`` (int32) the node's rows and ``spare`` as long at least.
    Sets the node's ``share_left``, unless no row has a known value, and sends rows without one left by it; rows of
    weight ``known`` with a known value that are not in ``rows``, ``known_left`` of them left, count for it, too.
    """
    below_rank, levels_at, words = tree.below_rank[node], tree.levels_at[node], tree.level_words
    n_known = 0
    for i in rows:
        if codes[i] >= 0:
            n_known += 1
            known += weight[i]
            known_left += weight[i] if goes_left(codes[i], below_rank, levels_at, words) else 0.0
    if known > 0.0:
        tree.share_left[node] = known_left / known
    share = tree.share_left[node]
    n_left = 0
    n_right = 0
    if n_known == rows.shape[0]:
        for i in rows:  # without a branch that nobody can predict
            is_left = 1 if goes_left(codes[i], below_rank, levels_at, words) else 0
            rows[n_left] = i
            spare[n_right] = i
            n_left += is_left
            n_right += 1 - is_left
    else:
        for i in rows:
            is_left = goes_left(codes[i], below_rank, levels_at, words) if codes[i] >= 0 else uniform(state) < share
            if is_left:
                rows[n_left] = i
                n_left += 1
            else:
                spare[n_right] = i
                n_right += 1
    for k in range(n_right):
        rows[n_left + k] = spare[k]
    return n_left


@entry
def set_shares(codes, tree, rows, spare, weight, known, start, stop, state):
    """Set ``tree.share_left`` to what the rows of ``codes`` (d, n) have; nodes that none reaches keep theirs.

    ``rows``, ``spare`` (int32, m) are the numbers of those with missing cells and scratch; ``known`` (float64, N) is
    how many of the others reach each node. ``start``, ``stop`` (int64, N) receive where the rows of each node are, and
    know it of the root.
    """
    for node in range(tree.left.shape[0]):
        a, b = tree.left[node], tree.right[node]
        if a >= 0:
            first, last = start[node], stop[node]
            of_column, here = codes[tree.feature[node]], rows[first:last]
            middle = first + partition(tree, node, of_column, here, spare, weight, known[a], known[node], state)
            start[a], stop[a], start[b], stop[b] = first, middle, middle, last


@entry
def route(codes, tree, rows, spare, start, stop, seed, number, out):
    """Leaf node of some rows of ``codes`` (d, n) in one tree, into ``out`` (int32, n).

    A row with a missing split value goes left with probability ``share_left``, by draws of its own. ``rows`` (int32, m)
    are the rows' numbers, which end node by node; ``spare``, ``start`` and ``stop`` as of `set_shares`.
    """
    left, right = tree.left, tree.right
    for node in range(left.shape[0]):
        here = rows[start[node] : stop[node]]
        if left[node] < 0:
            for i in here:
                out[i] = node
            continue
        column, below_rank, levels_at = codes[tree.feature[node]], tree.below_rank[node], tree.levels_at[node]
        n_left = 0
        n_right = 0
        for i in here:  # without a branch that nobody can predict
            code = column[i]
            if code < 0:
                out[i] = _follow(i, node, codes, tree, stream(seed + 1, number * codes.shape[1] + i))
                continue
            is_left = 1 if goes_left(code, below_rank, levels_at, tree.level_words) else 0
            here[n_left] = i
            spare[n_right] = i
            n_left += is_left
            n_right += 1 - is_left
        a, b = left[node], right[node]
        start[a] = start[node]
        stop[a] = start[b] = start[node] + n_left
        stop[b] = start[b] + n_right
        for k in range(n_right):
            here[n_left + k] = spare[k]


@kernel
def _follow(i, node, codes, tree, state):
    """Leaf node below ``node`` of row i, which takes a side by a draw wherever its value is missing."""
    while tree.left[node] >= 0:
        code = codes[tree.feature[node], i]
        if code >= 0:
            is_left = goes_left(code, tree.below_rank[node], tree.levels_at[node], tree.level_words)
        else:
            is_left = uniform(state) < tree.share_left[node]
        node = np.int64(tree.left[node] if is_left else tree.right[node])
    return node


@entry
def cut_ranks(feature, below_rank, above_rank, value_start, values):
    """Largest rank that goes left, into ``below_rank`` (int32, N), if each split is cut halfway between its two
    neighbours in the node; these are given as ``below_rank`` and ``above_rank``.

    Rows that the tree was not grown on may have values in between: they go to the nearer side.
    """
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
