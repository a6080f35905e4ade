"""Kernels: second moments of an ensemble, over the pairs of leaves of its trees (Lemma 2).

Components given that a row is in a leaf are components again: weights times the leaf's masses, and the columns that the
leaf tells of restricted to its region. So for each leaf the other trees' leaves have their masses by the same descent.
"""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry, kernel
from .component_kernels import BLOCK, STRIDE
from .descent_kernels import descend
from .leaf_probability_kernels import load, scratch, start_row, with_room
from .region_kernels import ONE


@kernel
def leaf_region(splits, left, k, region, split):
    """Write, for the leaf at place k, the marks of its region of each column that is split above; return how many.

    ``split`` gets the columns, ``region`` (d, 2) is valid for these.
    """
    n = 0
    below, above = k, left.above[k]
    while above >= 0:  # the nearest split of a column tells its region
        node = left.node[above]
        j = splits.column[node]
        is_known = False
        for i in range(n):
            is_known = is_known or split[i] == j
        if not is_known:
            is_left = below == above + 1
            region[j, 0] = left.local[splits.lo[node] if is_left else splits.mid[node]]
            region[j, 1] = left.local[splits.mid[node] if is_left else splits.hi[node]]
            split[n] = j
            n += 1
        below, above = above, left.above[above]
    return n


@kernel
def restrict(columns, marks, used, n_used, j, low, high, n, mass, level_row, vector, out):
    """Multiply row 0 of ``vector`` by the masses of a region of column j, and restrict the column's marks to it.

    Restricted masses go to ``out``.
    """
    for i in range(n):
        vector[0, i] *= max(mass[high, i] - mass[low, i], 0.0)
    first = columns.level_start[columns.slot[j]] if columns.is_categorical[j] else 0
    for u in range(2, n_used):
        if marks.column[used[u]] != j:
            continue
        if columns.is_categorical[j]:
            for i in range(n):
                out[u, i] = 0.0
            for at in range(marks.level_start[used[u]], marks.level_start[used[u] + 1]):
                level = marks.level[at]
                if in_mark(marks, used[high], level) and not in_mark(marks, used[low], level):
                    for i in range(n):
                        out[u, i] += level_row[first + level, i]
        else:
            for i in range(n):
                out[u, i] = min(max(mass[u, i], mass[low, i]), mass[high, i]) - mass[low, i]
        for i in range(n):
            whole = mass[high, i] - mass[low, i]
            out[u, i] = min(out[u, i] / whole, 1.0) if whole > 0.0 else 0.0


@kernel
def in_mark(marks, m, level):
    """Whether a level is in a set."""
    if m <= ONE:
        return m == ONE
    at, end = marks.level_start[m], marks.level_start[m + 1]
    while at < end and marks.level[at] != level:
        at += 1
    return at < end


@kernel
def copy_column(marks, used, n_used, j, n, mass, out):
    """Copy the masses of the marks of column j (all columns if -1)."""
    for u in range(n_used):
        if j < 0 or marks.column[used[u]] == j:
            for i in range(n):
                out[u, i] = mass[u, i]


@kernel
def pair_cost(left, n_live):
    """About how many numbers the pairs of a row take: its leaves times the other trees' splits times components."""
    cost, later = 0.0, 0
    for tree in range(left.start.shape[0] - 2, -1, -1):
        n = left.start[tree + 1] - left.start[tree]
        cost += float((n + 1) // 2) * later
        later += n // 2
    return cost * n_live


@entry
def pair_rows(bound, evidence, X, other, first, post, most, mean, second, is_exact):
    """E[F] (n, K) and E[F F'] (n, K, K) of the sums over trees, by row, and whether it was affordable.

    It is not for rows whose `pair_cost` is above ``most``, nor where a component's columns depend on each other; then
    nothing is written.
    """
    room = scratch(bound)
    left, splits, value = room.left, bound.splits, bound.middle
    n_outputs, n_trees = value.shape[1], splits.root.shape[0]
    mass, narrow = np.empty((256, STRIDE), np.float64), np.empty((256, STRIDE), np.float64)
    split, others = np.empty(bound.columns.slot.shape[0], np.int32), np.empty(n_outputs, np.float64)
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        is_exact[row], mean[row], second[row] = True, math.nan, math.nan
        if post.log_evidence[at] == -math.inf:
            continue
        _, n_used = start_row(bound, evidence, X, other, row, post, at, 0.0, room)
        n_live = room.live.n[0]
        if room.live.n_products[0] < n_live or pair_cost(left, n_live) > most:
            is_exact[row] = False
            continue
        mass, narrow = with_room(mass, n_used), with_room(narrow, n_used)
        mean[row], second[row] = 0.0, 0.0
        for block in range(0, n_live, BLOCK):
            end, _ = load(bound, evidence, n_used, block, room, mass)
            copy_column(bound.marks, left.used, n_used, -1, end, mass, narrow)
            size = min(BLOCK, n_live - block)
            for tree in range(n_trees):
                for k in range(left.start[tree], left.start[tree + 1]):
                    if left.right[k] >= 0:
                        continue
                    n_split = leaf_region(splits, left, k, room.region, split)
                    for i in range(end):
                        room.vector[0, i] = room.live.weight[block + i] if i < size else 0.0
                    for c in range(n_split):
                        restrict(
                            bound.columns, bound.marks, left.used, n_used, split[c], room.region[split[c], 0],
                            room.region[split[c], 1], end, mass, room.level_row, room.vector, narrow,
                        )  # fmt: skip
                    total = 0.0
                    for i in range(end):
                        total += room.vector[0, i]
                    if total > 0.0:
                        add_leaf(bound, room, narrow, n_used, tree, k, end, total, others, mean[row], second[row])
                    for c in range(n_split):
                        copy_column(bound.marks, left.used, n_used, split[c], end, mass, narrow)


@kernel
def add_leaf(bound, room, mass, n_used, tree, k, n, total, others, mean, second):
    """Add a leaf, and its pairs with the leaves of later trees, to the moments; ``total`` is its probability."""
    left, splits, value = room.left, bound.splits, bound.middle
    n_outputs = value.shape[1]
    leaf = left.node[k]
    others[:] = 0.0
    for u in range(n_used):
        room.base[u] = math.nan
    for later in range(tree + 1, splits.root.shape[0]):
        first, stop = left.start[later], left.start[later + 1]
        if left.right[first] < 0:
            for o in range(n_outputs):
                others[o] += total * value[left.node[first], o]
            continue
        for p in range(first, stop):
            left.mass[p] = 0.0
        descend(
            splits, bound.reach, left, later, room.vector, mass, room.base, n, total, 0.0, room.stack, room.stack_mass
        )
        for p in range(first, stop):
            if left.mass[p] > 0.0:
                for o in range(n_outputs):
                    others[o] += left.mass[p] * value[left.node[p], o]
    for a in range(n_outputs):
        mean[a] += total * value[leaf, a]
        for b in range(n_outputs):
            second[a, b] += total * value[leaf, a] * value[leaf, b]
            second[a, b] += value[leaf, a] * others[b] + others[a] * value[leaf, b]
