"""The box of every leaf, by following every path from every root."""

from __future__ import annotations

import math

MIXED = -2
"""The feature of a node without a split, whose children have its box."""


def leaf_boxes(model):
    """Box of every leaf: {column: (lo, hi)} and {column: set of levels}, by following every path from every root."""
    boxes = {}
    for root in model.trees.root:
        follow(model, int(root), {}, {}, boxes)
    return boxes


def follow(model, node, bounds, levels, boxes):
    """Go down both ways; note the box at leaves. Columns without a split on the path are absent from the box."""
    trees, j = model.trees, int(model.trees.feature[node])
    if j == -1:
        boxes[int(trees.leaf[node])] = (bounds, levels)
        return
    left, right = int(trees.left[node]), int(trees.right[node])
    if j == MIXED:
        for child in (left, right):
            follow(model, child, bounds, levels, boxes)
        return
    if model.columns.is_categorical[j]:
        goes_left = {k for k in range(n_levels(model, j)) if level_bit(trees, node, k)}
        here = levels.get(j, set(range(n_levels(model, j))))
        follow(model, left, bounds, {**levels, j: here & goes_left}, boxes)
        follow(model, right, bounds, {**levels, j: here - goes_left}, boxes)
    else:
        (lo, hi), cut = bounds.get(j, (-math.inf, math.inf)), float(trees.threshold[node])
        follow(model, left, {**bounds, j: (lo, min(hi, cut))}, levels, boxes)
        follow(model, right, {**bounds, j: (max(lo, cut), hi)}, levels, boxes)


def level_bit(trees, node, k):
    """Whether level k goes left at a categorical node."""
    word = int(trees.left_levels[trees.levels_at[node] + k // 64])
    return word >> (k % 64) & 1 == 1


def n_levels(model, j):
    """Number of levels of a categorical column."""
    s = model.columns.slot[j]
    return int(model.columns.level_start[s + 1] - model.columns.level_start[s])
