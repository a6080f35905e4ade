"""Kernels: the posterior over leaves, with trees weighed anew."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry, kernel
from ...leaves.one_slot.slot_kernels import level_region_log_mass, region_log_mass
from .circuit_kernels import has_circuit, rows_of_column, share_out
from .reach_kernels import level_goes_left, reachable
from .region_kernels import cell_region
from .weight_kernels import widened


@entry
def weigh_trees(start, log_weight, fallen, tree, n_trees, beta):
    """Log-weights of the entries when tree t counts (pi_t p_t(evidence))^beta, and the log of their sum in each row.

    The sum is 1, or 0 where no tree has a say. ``tree`` (M,) is the tree of each entry, ascending within a row. Trees
    from ``n_trees`` on (the background) do not count. ``fallen`` (M,) marks entries of trees with p_t(evidence) = 0:
    these count only where all trees of the row are such, then all the same, or if beta is 0.
    """
    out = np.full(log_weight.shape[0], -math.inf)
    log_sum = np.full(start.shape[0] - 1, -math.inf)
    log_tree, power = np.empty(n_trees + 1), np.empty(n_trees)
    for i in range(start.shape[0] - 1):
        first, end = start[i], start[i + 1]
        log_tree[:] = -math.inf
        power[:] = -math.inf
        a = first
        while a < end:
            b = a
            top = -math.inf
            while b < end and tree[b] == tree[a]:
                top = max(top, log_weight[b])
                b += 1
            total = 0.0
            for k in range(a, b):
                total += math.exp(log_weight[k] - top)
            log_tree[tree[a]] = top + math.log(total)
            if tree[a] < n_trees and not fallen[a]:
                power[tree[a]] = beta * log_tree[tree[a]]
            a = b
        if beta == 0.0 or power.max() == -math.inf:
            power[:] = np.where(log_tree[:n_trees] > -math.inf, 0.0, -math.inf)
        top = power.max()
        if top == -math.inf:
            continue
        log_total = top + math.log(np.exp(power - top).sum())
        log_sum[i] = 0.0
        for k in range(first, end):
            if tree[k] < n_trees and power[tree[k]] > -math.inf:
                out[k] = log_weight[k] - log_tree[tree[k]] + power[tree[k]] - log_total
    return out, log_sum


@entry
def routed_rows(trees, value, first, stop, n_trees):
    """The leaf of each of the first ``n_trees`` trees in which each of the rows first..stop-1 of ``value`` ends.

    The rows know the values of all splits. Trees are the outer loop: one tree's nodes stay in the processor's cache.
    """
    out = np.empty((stop - first, n_trees), np.int32)
    for t in range(n_trees):
        for row in range(first, stop):
            node = trees.root[t]
            while trees.feature[node] >= 0:
                x = value[row, trees.feature[node]]
                if trees.levels_at[node] < 0:
                    left = x <= trees.threshold[node]
                else:
                    left = level_goes_left(trees.left_levels, trees.levels_at[node], int(x))
                node = trees.left[node] if left else trees.right[node]
            out[row - first, t] = trees.leaf[node]
    return out.ravel()


@entry
def with_routed(columns, trees, leaves, evidence, first, start, leaf, log_weight, column, n_trees):
    """The entries, and those of the trees that give a row's evidence probability 0: the leaves that it can reach.

    Their boxes still tell something, though their densities exclude the evidence, as uniform or cut ones do. Each
    weighs as its share of rows. The last array marks these entries.
    """
    n = start.shape[0] - 1
    stack = np.empty(trees.feature.shape[0], np.int32)
    reached = np.empty(leaves.log_weight.shape[0], np.int32)
    reached_weight = np.empty(leaves.log_weight.shape[0], np.float64)
    zero, weight = np.zeros(leaves.node_kind.shape[0]), np.empty(leaves.node_kind.shape[0])
    row_leaf, row_weight = np.empty(leaves.tree.shape[0], np.int32), np.empty(leaves.tree.shape[0], np.float64)
    met = np.empty(n_trees, np.bool_)
    new_start = np.zeros(n + 1, np.int64)
    new_leaf, new_weight = np.empty(leaf.shape[0], np.int32), np.empty(leaf.shape[0], np.float64)
    is_fallen = np.empty(leaf.shape[0], np.bool_)
    end = 0
    for i in range(n):
        met[:] = False
        for k in range(start[i], start[i + 1]):
            if leaves.tree[leaf[k]] < n_trees:
                met[leaves.tree[leaf[k]]] = True
        fallen = 0
        if not met.all():
            m = reachable(columns, trees, evidence, first + i, stack, reached)
            kept = 0
            for k in range(m):
                at = reached[k]
                if leaves.tree[at] < n_trees and not met[leaves.tree[at]]:
                    reached[kept], reached_weight[kept] = at, leaves.log_weight[at]
                    if column >= 0 and has_circuit(leaves, at):
                        share_out(leaves, at, reached_weight[kept], zero, weight)
                    kept += 1
            if column >= 0:
                fallen = rows_of_column(leaves, column, reached, reached_weight, kept, weight, row_leaf, row_weight)
                region = cell_region(evidence, first + i, column)
                if region >= 0:
                    fallen = rows_that_meet(columns, leaves, evidence, column, region, row_leaf, row_weight, fallen)
            else:
                fallen = kept
                row_leaf[:kept], row_weight[:kept] = reached[:kept], reached_weight[:kept]
        size = fallen + start[i + 1] - start[i]
        if end + size > new_leaf.shape[0]:
            room = max(2 * new_leaf.shape[0], end + size)
            new_leaf, new_weight = widened(new_leaf, end, room), widened(new_weight, end, room)
            is_fallen = widened(is_fallen, end, room)
        a, b = start[i], 0
        for k in range(end, end + size):  # both are in the order of trees
            if b == fallen or (a < start[i + 1] and leaves.tree[leaf[a]] < leaves.tree[row_leaf[b]]):
                new_leaf[k], new_weight[k], is_fallen[k] = leaf[a], log_weight[a], False
                a += 1
            else:
                new_leaf[k], new_weight[k], is_fallen[k] = row_leaf[b], row_weight[b], True
                b += 1
        end += size
        new_start[i + 1] = end
    return new_start, new_leaf[:end], new_weight[:end], is_fallen[:end]


@kernel
def rows_that_meet(columns, leaves, evidence, column, region, row, log_row, n):
    """Keep those of the n rows that leave the column's region some mass, in place; return how many."""
    kept, slot = 0, columns.slot[column]
    for k in range(n):
        if columns.is_categorical[column]:
            log_mass = level_region_log_mass(columns, leaves, evidence, row[k], slot, region)
        else:
            log_mass = region_log_mass(columns, leaves, evidence, row[k], slot, region)
        if log_mass > -math.inf:
            row[kept], log_row[kept] = row[k], log_row[k]
            kept += 1
    return kept
