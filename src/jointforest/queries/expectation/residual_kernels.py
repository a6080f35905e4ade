"""Kernels: the residual trees of a row, those that its known cells leave of an ensemble's."""

from __future__ import annotations

from ...ground.compile import kernel
from ...trees.level_bits_kernels import has_level
from .split_regions import ONE, ZERO


@kernel
def next_open(splits, rows, row, node):
    """The first node from ``node`` on that the row cannot pass, because it is a leaf or its column is missing."""
    while splits.leaf[node] < 0:
        f = splits.feature[node]
        x = rows.X[row, f]
        if rows.other[row, f]:
            left = splits.other_left[node]
        elif x != x:
            return node
        elif splits.levels_at[node] < 0:
            left = x <= splits.threshold[node]
        else:
            left = has_level(splits.left_levels, splits.levels_at[node], int(x))
        node = splits.left[node] if left else splits.right[node]
    return node


@kernel
def splits_only(splits, residual, k, j):
    """Whether no split from place k on is of another column than j."""
    return residual.right[k] < 0 or (residual.one_column[k] != 0 and splits.column[residual.node[k]] == j)


@kernel
def find_residual(splits, rows, row, stack, residual):
    """Write the residual trees of a row; return their numbers of nodes and of split regions. ``stack`` is scratch."""
    n = 0
    for m in range(residual.is_used.shape[0]):
        residual.is_used[m] = 0
    for tree in range(splits.root.shape[0]):
        residual.start[tree] = n
        node, parent, depth = splits.root[tree], -1, 0
        while True:
            node = next_open(splits, rows, row, node)
            residual.node[n], residual.parent[n], residual.right[n] = node, parent, -1
            if splits.leaf[node] < 0:
                residual.is_used[splits.lo[node]] = 1
                residual.is_used[splits.mid[node]] = 1
                residual.is_used[splits.hi[node]] = 1
                stack[depth] = n
                depth += 1
                node, parent = splits.left[node], n
                n += 1
                continue
            n += 1
            if depth == 0:
                break
            depth -= 1
            parent = int(stack[depth])
            residual.right[parent] = n
            node = splits.right[residual.node[parent]]
    residual.start[splits.root.shape[0]] = n
    for k in range(n - 1, -1, -1):  # children come after their parent
        residual.one_column[k] = 1
        right = int(residual.right[k])
        if right >= 0:
            j = splits.column[residual.node[k]]
            is_one = splits_only(splits, residual, k + 1, j) and splits_only(splits, residual, right, j)
            residual.one_column[k] = is_one
    return n, number_regions(residual)


@kernel
def number_regions(residual):
    """Number the split regions that the residual trees refer to, ZERO and ONE first; return how many there are."""
    residual.is_used[ZERO], residual.is_used[ONE] = 1, 1
    n = 0
    for m in range(residual.is_used.shape[0]):
        if residual.is_used[m]:
            residual.used[n], residual.local[m] = m, n
            n += 1
    return n
