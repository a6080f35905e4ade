"""Kernels: remove leaves with too few rows, and count rows below nodes."""

from __future__ import annotations

import numpy as np

from ..ground.compile import entry


@entry
def pruned(left, right, rows_at, min_rows):
    """Children of the pruned tree, depth first and parents before children, and which old node each new one is.

    See `grow.prune` for the rule. ``left``, ``right`` are int32 (N,), ``rows_at`` int64 (N,).
    """
    n_nodes = left.shape[0]
    stands_for = np.arange(n_nodes)  # the node that takes this place
    new_left = left.astype(np.int64)
    new_right = right.astype(np.int64)
    for node in range(n_nodes - 1, -1, -1):
        if left[node] < 0:
            continue
        a = stands_for[left[node]]
        b = stands_for[right[node]]
        small_a = new_left[a] < 0 and rows_at[a] < min_rows
        small_b = new_left[b] < 0 and rows_at[b] < min_rows
        if small_a and small_b:  # so is the node: no row ends there, its own sibling takes its place
            new_left[node] = -1
            new_right[node] = -1
        elif small_a or small_b:
            stands_for[node] = b if small_a else a
        else:
            new_left[node] = a
            new_right[node] = b
    order = np.empty(n_nodes, np.int64)
    number = np.full(n_nodes, -1, np.int32)
    stack = np.empty(n_nodes, np.int64)
    stack[0] = stands_for[0]
    height = 1
    kept = 0
    while height > 0:
        height -= 1
        node = stack[height]
        order[kept] = node
        number[node] = kept
        kept += 1
        if new_left[node] >= 0:
            stack[height] = new_right[node]
            stack[height + 1] = new_left[node]
            height += 2
    out_left = np.full(kept, -1, np.int32)
    out_right = np.full(kept, -1, np.int32)
    for k in range(kept):
        node = order[k]
        if new_left[node] >= 0:
            out_left[k] = number[new_left[node]]
            out_right[k] = number[new_right[node]]
    return out_left, out_right, order[:kept].copy()


@entry
def rows_below(left, right, rows_at):
    """Rows below each node (float64, N), from those that end in each leaf; children come after their parent."""
    rows = rows_at.copy()
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] >= 0:
            rows[node] = rows[left[node]] + rows[right[node]]
    return rows
