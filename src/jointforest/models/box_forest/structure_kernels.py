"""Kernels: the boxes and layers of leaves, trees of some of the leaves, and rows below nodes."""

import numpy as np

from ...runtime.compile import entry, kernel
from .leaves.level_kernels import has_level

MIXED = -2
"""What `structure.Trees.feature` is at a node that mixes its children."""


@entry
def fill_boxes(trees, columns, start, stop, first_leaf, lo, hi, allowed):
    """Cut the boxes of leaves, which are the whole space, by every split above them, in whole trees."""
    # The box of an inner node stands where that of its leftmost leaf will stand: a split copies it to its right child.
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
    """Write a layer for each leaf, int64 (L,), so that leaves of a layer are disjoint; return the number of layers."""
    # A tree of splits is one layer; the two sides of a node without a split have layers of their own.
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


# ---- Kernels: trees restricted to some of their leaves, and rows below nodes; children come after their parent.


@entry
def restrict_trees(left, right, root, stays):
    """The trees of the nodes that stay (uint8 (N,)): old number and children of nodes, root and old number of trees."""
    # The sibling of a removed node takes their parent's place.
    n_nodes, n_trees = left.shape[0], root.shape[0]
    node, new_left = np.empty(n_nodes, np.int64), np.full(n_nodes, -1, np.int32)
    new_right = new_left.copy()
    new_root, old_tree = np.empty(n_trees, np.int32), np.empty(n_trees, np.int32)
    stack, parent = np.empty(n_nodes + 1, np.int64), np.empty(n_nodes + 1, np.int64)  # a right child is negative
    below = stays.astype(np.float64)
    add_below(left, right, below)
    n, t = 0, 0
    for tree in range(n_trees):
        if below[root[tree]] == 0:
            continue
        new_root[t], old_tree[t] = n, tree
        t += 1
        stack[0], parent[0], height = root[tree], -1, 1
        while height > 0:
            height -= 1
            q, above = abs(stack[height]), parent[height]
            side = new_right if stack[height] < 0 else new_left
            while left[q] >= 0 and (below[left[q]] == 0 or below[right[q]] == 0):
                q = np.int64(right[q] if below[left[q]] == 0 else left[q])
            node[n] = q
            if above >= 0:
                side[above] = n
            if left[q] >= 0:
                stack[height], parent[height] = -right[q], n
                stack[height + 1], parent[height + 1] = left[q], n
                height += 2
            n += 1
    return node[:n].copy(), new_left[:n].copy(), new_right[:n].copy(), new_root[:t].copy(), old_tree[:t].copy()


@kernel
def add_below(left, right, rows):
    """What is counted at each leaf (N,) becomes what is below each node."""
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] >= 0:
            rows[node] = rows[left[node]] + rows[right[node]]


@entry
def rows_below(left, right, rows_at):
    """Rows below each node, float64 (N,), from those that end in each leaf."""
    rows = rows_at.copy()
    add_below(left, right, rows)
    return rows
