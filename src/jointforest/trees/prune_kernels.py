"""Kernels: remove leaves with too few rows, and count rows below nodes; children come after their parent."""

from __future__ import annotations

from ..ground.compile import entry


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
