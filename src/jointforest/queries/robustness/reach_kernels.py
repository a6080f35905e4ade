"""Kernels: the part of the trees that a row of values reaches, node by node, and the row's known cells."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...forest.posterior.reach_kernels import level_goes_left
from ...ground.compile import entry, kernel
from ...ground.records import record
from ...leaves.one_slot.grid_kernels import cell_centre
from ...leaves.one_slot.slot_kernels import find_atom


@record
class Reached(NamedTuple):
    """What one row reaches: scratch for trees of N nodes and L leaves over d columns, written by `reach`.

    Nodes are in preorder. Those of tree t are ``node_start[t]:node_start[t + 1]``, its leaves
    ``leaf_start[t]:leaf_start[t + 1]``.

    Attributes
    ----------
    node_start, leaf_start : int32 arrays (T + 1,)
    leaf : int32 array (L,)
        Leaves that are reached.
    leaf_at : int32 array (N,)
        Which of the reached leaves the node is; -1 of inner nodes.
    child, other : int32 arrays (N,)
        The node's children; ``other`` is -1 if the row reaches only one.
    share : float64 array (N,)
        Weight of ``child`` at the node; that of the other child is the rest.
    n_levels, n_numbers : int64 arrays (1,)
        Known categorical cells that can be contaminated, and known numbers.
    level_at : int32 array (d,)
        Place of each such level in the tables of levels.
    number : int32 array (d,)
        Columns of the known numbers.
    x : float64 array (d,)
        By column: the number, on a grid the centre of its cell, or the level's place; NaN where nothing is known.
    atom : int32 array (d,)
        By column: number of x's atom within the slot, -1 if none.
    """

    node_start: np.ndarray
    leaf_start: np.ndarray
    leaf: np.ndarray
    leaf_at: np.ndarray
    child: np.ndarray
    other: np.ndarray
    share: np.ndarray
    n_levels: np.ndarray
    n_numbers: np.ndarray
    level_at: np.ndarray
    number: np.ndarray
    x: np.ndarray
    atom: np.ndarray


@entry
def node_weights(trees, leaves):
    """Weight of each node, (N,): the sum of the leaves' below it; of a root, that of its tree."""
    weight = np.empty(trees.feature.shape[0], np.float64)
    for node in range(weight.shape[0] - 1, -1, -1):  # children come after their parent
        if trees.leaf[node] >= 0:
            weight[node] = math.exp(leaves.log_weight[trees.leaf[node]])
        else:
            weight[node] = weight[trees.left[node]] + weight[trees.right[node]]
    return weight


@entry
def allowed_levels(columns, trees, j):
    """Which levels of categorical column j the box of each leaf admits; uint8 (L, K)."""
    slot = columns.slot[j]
    n_levels = columns.level_start[slot + 1] - columns.level_start[slot]
    at_node = np.ones((trees.feature.shape[0], n_levels), np.uint8)
    out = np.ones((np.max(trees.leaf) + 1, n_levels), np.uint8)
    for node in range(trees.feature.shape[0]):
        if trees.leaf[node] >= 0:
            out[trees.leaf[node]] = at_node[node]
            continue
        for k in range(n_levels):
            left, right = at_node[node, k], at_node[node, k]
            if trees.feature[node] == j:
                goes_left = level_goes_left(trees.left_levels, trees.levels_at[node], k)
                left, right = left & goes_left, right & (not goes_left)
            at_node[trees.left[node], k], at_node[trees.right[node], k] = left, right
    return out


@kernel
def know(columns, evidence, row, reached):
    """Write what is known of the row's cells."""
    n_levels, n_numbers = 0, 0
    for j in range(columns.slot.shape[0]):
        x, slot = evidence.value[row, j], columns.slot[j]
        reached.x[j], reached.atom[j] = x, -1
        if x != x:
            continue
        if columns.is_categorical[j]:
            first = columns.level_start[slot]
            reached.x[j] = first + x
            if columns.level_start[slot + 1] - first > 1:  # the only level of a column has probability 1
                reached.level_at[n_levels] = first + int(x)
                n_levels += 1
            continue
        step = columns.step[slot]
        reached.x[j] = cell_centre(step, columns.origin[slot], x) if step > 0.0 else x
        reached.atom[j] = find_atom(columns, slot, x)
        reached.number[n_numbers] = j
        n_numbers += 1
    reached.n_levels[0], reached.n_numbers[0] = n_levels, n_numbers


@kernel
def reach(columns, trees, weight, evidence, row, stack, reached):
    """Write the nodes that the row reaches; both ways where the split column is not known.

    ``weight`` is from `node_weights`; ``stack`` (N,) is scratch.
    """
    n_nodes, n_leaves = 0, 0
    for tree in range(trees.root.shape[0]):
        reached.node_start[tree], reached.leaf_start[tree] = n_nodes, n_leaves
        node, depth = trees.root[tree], 0
        while True:
            j = trees.feature[node]
            reached.other[n_nodes] = -1
            if j < 0:
                reached.leaf_at[n_nodes], reached.leaf[n_leaves] = n_leaves, trees.leaf[node]
                n_leaves += 1
                n_nodes += 1
                if depth == 0:
                    break
                depth -= 1
                parent = stack[depth]
                reached.other[parent] = n_nodes
                node = trees.right[reached.child[parent]]
                reached.child[parent] = parent + 1
                continue
            x = evidence.value[row, j]
            reached.leaf_at[n_nodes] = -1
            if x != x:
                down = trees.left[node]
                reached.child[n_nodes] = node  # until its other side has been found
                stack[depth] = n_nodes
                depth += 1
            else:
                if trees.levels_at[node] < 0:
                    left = x <= trees.threshold[node]
                else:
                    left = level_goes_left(trees.left_levels, trees.levels_at[node], int(x))
                down = trees.left[node] if left else trees.right[node]
                reached.child[n_nodes] = n_nodes + 1
            # nodes that no row of learning reached have no shares of their own
            reached.share[n_nodes] = weight[down] / weight[node] if weight[node] > 0.0 else 0.5
            node = down
            n_nodes += 1
    reached.node_start[trees.root.shape[0]], reached.leaf_start[trees.root.shape[0]] = n_nodes, n_leaves
