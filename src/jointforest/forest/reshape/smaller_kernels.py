"""Kernel: trees without some of their leaves, and without the splits of some columns."""

from __future__ import annotations

import numpy as np

from ...ground.compile import entry


@entry
def smaller(trees, alive, stays):
    """The trees of the leaves ``alive`` (uint8 (L,)), cut off at splits of columns that do not stay (uint8 (d,)).

    The sibling of what goes takes their parent's place. Where a tree is cut off, one new leaf stands for all that are
    below. Trees without leaves go.

    Returns
    -------
    node : int64 array (n,)
        Which node each was; parents before children, tree by tree.
    left, right, number : int32 arrays (n,)
        Children, and the numbers of new leaves; -1 of others.
    root, old_tree : int32 arrays (t,)
    start : int64 array (l + 1,), leaf : int64 array (m,)
        New leaf k stands for the leaves ``leaf[start[k]:start[k + 1]]``.
    """
    n_nodes, n_leaves = trees.feature.shape[0], alive.shape[0]
    below = np.zeros(n_nodes, np.int64)
    for q in range(n_nodes - 1, -1, -1):  # children come after their parent
        below[q] = alive[trees.leaf[q]] if trees.leaf[q] >= 0 else below[trees.left[q]] + below[trees.right[q]]
    node = np.empty(n_nodes, np.int64)
    left, right = np.full(n_nodes, -1, np.int32), np.full(n_nodes, -1, np.int32)
    number = np.full(n_nodes, -1, np.int32)
    root, old_tree = np.empty(trees.root.shape[0], np.int32), np.empty(trees.root.shape[0], np.int32)
    start, leaf = np.zeros(n_leaves + 1, np.int64), np.empty(n_leaves, np.int64)
    # negative: the right child of a parent, whose number is in `parent`
    stack, parent = np.empty(n_nodes + 1, np.int64), np.empty(n_nodes + 1, np.int64)
    rest = np.empty(n_nodes + 1, np.int64)
    n, n_new, n_old, n_trees = 0, 0, 0, 0
    for tree in range(trees.root.shape[0]):
        if below[trees.root[tree]] == 0:
            continue
        root[n_trees], old_tree[n_trees] = n, tree
        n_trees += 1
        stack[0], parent[0], height = trees.root[tree], -1, 1
        while height > 0:
            height -= 1
            q, above = stack[height], parent[height]
            is_right = q < 0
            if is_right:
                q = -q
            while trees.leaf[q] < 0 and (below[trees.left[q]] == 0 or below[trees.right[q]] == 0):
                q = trees.right[q] if below[trees.left[q]] == 0 else trees.left[q]
            node[n] = q
            if above >= 0:
                if is_right:
                    right[above] = n
                else:
                    left[above] = n
            if trees.leaf[q] < 0 and stays[trees.feature[q]]:
                stack[height], parent[height] = -trees.right[q], n
                stack[height + 1], parent[height + 1] = trees.left[q], n
                height += 2
            else:
                number[n] = n_new
                rest[0], waiting = q, 1
                while waiting > 0:
                    waiting -= 1
                    q = rest[waiting]
                    if trees.leaf[q] < 0:
                        rest[waiting], rest[waiting + 1] = trees.right[q], trees.left[q]
                        waiting += 2
                    elif alive[trees.leaf[q]]:
                        leaf[n_old] = trees.leaf[q]
                        n_old += 1
                n_new += 1
                start[n_new] = n_old
            n += 1
    return (
        node[:n].copy(), left[:n].copy(), right[:n].copy(), number[:n].copy(), root[:n_trees].copy(),
        old_tree[:n_trees].copy(), start[: n_new + 1].copy(), leaf[:n_old].copy(),
    )  # fmt: skip


@entry
def weights_below(left, right, number, root, log_weight):
    """Weight of each node, (n,), from the leaves' log weights: 1 at roots; and the log weight of each tree, (t,)."""
    n = left.shape[0]
    weight, of_tree = np.empty(n, np.float64), np.empty(root.shape[0], np.float64)
    for t in range(root.shape[0]):
        end = root[t + 1] if t + 1 < root.shape[0] else n
        top = -np.inf
        for q in range(root[t], end):
            if number[q] >= 0:
                top = max(top, log_weight[number[q]])
        for q in range(end - 1, root[t] - 1, -1):
            weight[q] = np.exp(log_weight[number[q]] - top) if number[q] >= 0 else weight[left[q]] + weight[right[q]]
        total = weight[root[t]]
        weight[root[t] : end] /= total
        of_tree[t] = top + np.log(total)
    return weight, of_tree
