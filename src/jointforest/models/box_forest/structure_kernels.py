"""Kernels: the boxes and layers of leaves, and trees without leaves that have too few rows."""

from __future__ import annotations

import numpy as np

from ...runtime.compile import entry
from .leaves.level_kernels import has_level

MIXED = -2
"""What `structure.Trees.feature` is at a node that mixes its children."""


@entry
def fill_boxes(trees, columns, start, stop, first_leaf, lo, hi, allowed):
    """Cut the boxes of leaves, which are the whole space, by every split above them, in whole trees.

    The box of an inner node stands where that of its leftmost leaf will stand: a split copies it to its right child.
    """
    least = np.int64(trees.leaf.shape[0])
    for node in range(start, stop):
        if trees.left[node] < 0:
            least = min(least, np.int64(trees.leaf[node]))
    for node in range(stop - 1, start - 1, -1):
        is_leaf = trees.left[node] < 0
        first_leaf[node - start] = trees.leaf[node] - least if is_leaf else first_leaf[trees.left[node] - start]
    for node in range(start, stop):
        if trees.left[node] < 0:
            continue
        a, b = first_leaf[node - start], first_leaf[trees.right[node] - start]
        for s in range(lo.shape[1]):
            lo[b, s] = lo[a, s]
            hi[b, s] = hi[a, s]
        for level in range(allowed.shape[1]):
            allowed[b, level] = allowed[a, level]
        if trees.feature[node] == MIXED:
            continue
        slot = np.int64(columns.slot[trees.feature[node]])
        at = np.int64(trees.levels_at[node])
        if at < 0:
            hi[a, slot] = min(hi[a, slot], trees.threshold[node])
            lo[b, slot] = max(lo[b, slot], trees.threshold[node])
            continue
        first = np.int64(columns.level_start[slot])
        for k in range(columns.level_start[slot + 1] - first):
            side = b if has_level(trees.left_levels, at, k) else a  # the side that lacks the level
            allowed[side, first + k] = 0


@entry
def number_layers(trees, width, first, layer):
    """Write a layer for each leaf, int64 (L,), so that leaves of one layer have disjoint boxes; return how many there
    are. ``width`` and ``first`` (N,) are scratch.

    A tree of splits alone is one layer; the two sides of a node without a split have layers of their own.
    """
    for node in range(width.shape[0] - 1, -1, -1):  # children come after their parent
        if trees.leaf[node] >= 0:
            width[node] = 1
        elif trees.feature[node] == MIXED:
            width[node] = width[trees.left[node]] + width[trees.right[node]]
        else:
            width[node] = max(width[trees.left[node]], width[trees.right[node]])
    total = np.int64(0)
    for root in trees.root:
        first[root] = total
        total += width[root]
    for node in range(width.shape[0]):
        if trees.leaf[node] >= 0:
            layer[trees.leaf[node]] = first[node]
            continue
        left, right = trees.left[node], trees.right[node]
        first[left] = first[node]
        first[right] = first[node] + (width[left] if trees.feature[node] == MIXED else 0)
    return total


# ---- Kernels: remove leaves with too few rows, and count rows below nodes; children come after their parent.


@entry
def replace_small(left, right, rows_at, min_rows, stands_for):
    """Take leaves with fewer than ``min_rows`` rows out of a tree; arrays are int64 (N,).

    ``left`` and ``right`` become the children of what is kept, ``stands_for[node]`` (at first the node itself) the
    node that takes its place.
    """
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] < 0:
            continue
        a = stands_for[left[node]]
        b = stands_for[right[node]]
        small_a = left[a] < 0 and rows_at[a] < min_rows
        small_b = left[b] < 0 and rows_at[b] < min_rows
        if small_a and small_b:  # so is the node: no row ends there, its own sibling takes its place
            left[node] = -1
            right[node] = -1
        elif small_a or small_b:
            stands_for[node] = b if small_a else a
        else:
            left[node] = a
            right[node] = b


@entry
def number_nodes(left, right, stack, order, number):
    """Number the nodes below the root ``stack[0]``, depth first: ``order[number[node]] = node``; returns how many."""
    height = 1
    kept = 0
    while height > 0:
        height -= 1
        node = stack[height]
        order[kept] = node
        number[node] = kept
        kept += 1
        if left[node] >= 0:
            stack[height] = right[node]
            stack[height + 1] = left[node]
            height += 2
    return kept


@entry
def add_rows(left, right, rows):
    """Rows that end in each leaf (float64, N) become the rows below each node."""
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] >= 0:
            rows[node] = rows[left[node]] + rows[right[node]]
