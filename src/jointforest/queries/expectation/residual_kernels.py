"""Kernels: what is left of an ensemble's trees once a row's known cells have passed their splits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.compile import array_kernel, kernel
from ...ground.records import record
from .region_kernels import ONE, ZERO


@record
class Left(NamedTuple):
    """What is left of the trees for one row: n nodes in preorder, a node's left child next to it.

    Attributes
    ----------
    node : int32 array (N,)
        Number of the node in the ensemble.
    right : int32 array (N,)
        Place of the right child; -1 at leaves.
    above : int32 array (N,)
        Place of the parent; -1 at roots.
    start : int32 array (T + 1,)
        Place of each tree's root.
    is_single : uint8 array (N,)
        Of inner nodes: whether all splits from here on are of one column.
    mass : float64 array (N,)
        Probability of the leaf; also of an inner node below which nothing was told apart.
    is_used : uint8 array (M,), used : int32 array (M,), local : int32 array (M,)
        Marks that the nodes refer to, in order, ZERO and ONE first, and the place of each among these.
    """

    node: np.ndarray
    right: np.ndarray
    above: np.ndarray
    start: np.ndarray
    is_single: np.ndarray
    mass: np.ndarray
    is_used: np.ndarray
    used: np.ndarray
    local: np.ndarray


@array_kernel
def scratch_left(n_nodes, n_trees, n_marks):
    """Scratch for `what_is_left`."""
    return Left(
        np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32),
        np.zeros(n_trees + 1, np.int32), np.empty(n_nodes, np.uint8), np.empty(n_nodes, np.float64),
        np.zeros(n_marks, np.uint8), np.empty(n_marks, np.int32), np.empty(n_marks, np.int32),
    )  # fmt: skip


@kernel
def next_open(splits, X, other, i, node):
    """The first node from ``node`` on that row i cannot pass, because it is a leaf or its column is missing."""
    while splits.leaf[node] < 0:
        f = splits.feature[node]
        x = X[i, f]
        if other[i, f]:
            left = splits.other_left[node]
        elif x != x:
            return node
        elif splits.levels_at[node] < 0:
            left = x <= splits.threshold[node]
        else:
            level = int(x)
            left = (splits.left_levels[splits.levels_at[node] + (level >> 6)] >> (level & 63)) & 1 != 0
        node = splits.left[node] if left else splits.right[node]
    return node


@kernel
def splits_only(splits, out, k, j):
    """Whether no split from place k on is of another column than j."""
    return out.right[k] < 0 or (out.is_single[k] != 0 and splits.column[out.node[k]] == j)


@kernel
def what_is_left(splits, X, other, i, stack, out):
    """Write what is left of the trees for row i; return the numbers of nodes and marks. ``stack`` (N,) is scratch."""
    n = 0
    out.is_used[:] = 0
    for tree in range(splits.root.shape[0]):
        out.start[tree] = n
        node, above, depth = splits.root[tree], -1, 0
        while True:
            node = next_open(splits, X, other, i, node)
            out.node[n], out.above[n], out.right[n] = node, above, -1
            if splits.leaf[node] < 0:
                out.is_used[splits.lo[node]] = 1
                out.is_used[splits.mid[node]] = 1
                out.is_used[splits.hi[node]] = 1
                stack[depth] = n
                depth += 1
                node, above = splits.left[node], n
                n += 1
                continue
            n += 1
            if depth == 0:
                break
            depth -= 1
            above = stack[depth]
            out.right[above] = n
            node = splits.right[out.node[above]]
    out.start[splits.root.shape[0]] = n
    for k in range(n - 1, -1, -1):  # children come after their parent
        out.is_single[k] = 1
        if out.right[k] >= 0:
            j = splits.column[out.node[k]]
            out.is_single[k] = splits_only(splits, out, k + 1, j) and splits_only(splits, out, out.right[k], j)
    out.is_used[ZERO], out.is_used[ONE] = 1, 1
    n_used = 0
    for m in range(out.is_used.shape[0]):
        if out.is_used[m]:
            out.used[n_used], out.local[m] = m, n_used
            n_used += 1
    return n, n_used
