"""Kernels: the part of the trees that a row of values reaches, node by node, and the row's known cells."""

from __future__ import annotations

import math

from ...ground.compile import entry, kernel
from ...leaves.one_slot.grid_kernels import cell_centre
from ...leaves.one_slot.slot_kernels import find_atom
from ...trees.level_bits_kernels import has_level


@entry
def node_weights(trees, leaves, weight):
    """Write the weight of each node, (N,): the sum of the leaves' below it; of a root, that of its tree."""
    for node in range(weight.shape[0] - 1, -1, -1):  # children come after their parent
        if trees.leaf[node] >= 0:
            weight[node] = math.exp(leaves.log_weight[trees.leaf[node]])
        else:
            weight[node] = weight[trees.left[node]] + weight[trees.right[node]]


@entry
def allowed_levels(trees, j, at_node, allowed):
    """Write which levels of categorical column j the box of each leaf admits, uint8 (L, K).

    ``at_node`` (N, K) is scratch; 1 in the rows of roots.
    """
    for node in range(at_node.shape[0]):
        leaf, left, right = trees.leaf[node], trees.left[node], trees.right[node]
        for k in range(at_node.shape[1]):
            if leaf >= 0:
                allowed[leaf, k] = at_node[node, k]
                continue
            at_node[left, k], at_node[right, k] = at_node[node, k], at_node[node, k]
            if trees.feature[node] == j:
                other = right if has_level(trees.left_levels, trees.levels_at[node], k) else left
                at_node[other, k] = 0


@kernel
def known_cells(columns, evidence, row, reached):
    """Write what is known of the row's cells."""
    n_levels, n_numbers = 0, 0
    for j in range(columns.slot.shape[0]):
        x, slot = evidence.value[row, j], columns.slot[j]
        reached.x[j], reached.atom[j] = x, -1
        if x != x:
            continue
        if columns.is_categorical[j]:
            if columns.level_start[slot + 1] - columns.level_start[slot] > 1:  # an only level has probability 1
                reached.level_slot[n_levels], reached.level[n_levels] = slot, int(x)
                n_levels += 1
            continue
        step = columns.step[slot]
        reached.x[j] = cell_centre(step, columns.origin[slot], x) if step > 0.0 else x
        reached.atom[j] = find_atom(columns, slot, x)
        reached.number[n_numbers] = j
        n_numbers += 1
    reached.n_levels[0], reached.n_numbers[0] = n_levels, n_numbers


@kernel
def reached_nodes(problem, evidence, row, reached):
    """Write the nodes that the row reaches; both ways where the split column is not known."""
    trees, weight, stack = problem.trees, problem.weight, reached.stack
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
                    left = has_level(trees.left_levels, trees.levels_at[node], int(x))
                down = trees.left[node] if left else trees.right[node]
                reached.child[n_nodes] = n_nodes + 1
            # nodes that no row of learning reached have no shares of their own
            reached.share[n_nodes] = weight[down] / weight[node] if weight[node] > 0.0 else 0.5
            node = down
            n_nodes += 1
    reached.node_start[trees.root.shape[0]], reached.leaf_start[trees.root.shape[0]] = n_nodes, n_leaves
