"""Kernels: the posterior over leaves, with trees weighed anew."""

import math

import numpy as np

from ...runtime.compile import entry, kernel
from .descent_kernels import reachable
from .leaves.slot_kernels import level_region_log_mass, region_log_mass
from .posterior_kernels import widened
from .region_kernels import cell_region


@entry
def weigh_trees(start, log_weight, fallen, tree, n_trees, beta):
    """Log-weights of the entries when tree t counts (pi_t p_t(evidence))^beta, and the log of their sum by row."""
    # ``tree`` (M,) ascends within a row; trees from ``n_trees`` on (the background) do not count. ``fallen`` (M,) marks
    # trees with p_t(evidence) = 0, which count only where all trees of the row are such, or if beta is 0.
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
def with_routed(columns, trees, leaves, evidence, first, post, wanted, n_trees, scratch):
    """The posterior's entries and, of trees with p_t(evidence) = 0, the leaves that the evidence can reach."""
    # Their boxes are still informative. Each weighs as its share of rows. Returns start, leaf, log weight, and whether
    # an entry is one of these.
    n = post.log_evidence.shape[0]
    met = np.empty(n_trees, np.bool_)
    start = np.zeros(n + 1, np.int64)
    leaf, log_weight = np.empty(post.leaf.shape[0], np.int32), np.empty(post.leaf.shape[0], np.float64)
    is_fallen = np.empty(post.leaf.shape[0], np.bool_)
    end = np.int64(0)
    for i in range(n):
        met[:] = False
        for k in range(post.start[i], post.start[i + 1]):
            if leaves.tree[post.leaf[k]] < n_trees:
                met[leaves.tree[post.leaf[k]]] = True
        fallen = np.int64(0)
        if not met.all():
            fallen = entries_of_others(columns, trees, leaves, evidence, first + i, wanted, met, scratch)
        size = fallen + post.start[i + 1] - post.start[i]
        if end + size > leaf.shape[0]:
            longer = max(2 * leaf.shape[0], end + size)
            leaf, log_weight = widened(leaf, end, longer), widened(log_weight, end, longer)
            is_fallen = widened(is_fallen, end, longer)
        a, b = post.start[i], 0
        for k in range(end, end + size):  # both are in the order of trees
            if b == fallen or (a < post.start[i + 1] and leaves.tree[post.leaf[a]] < leaves.tree[scratch.leaf[b]]):
                leaf[k], log_weight[k], is_fallen[k] = post.leaf[a], post.log_weight[a], False
                a += 1
            else:
                leaf[k], log_weight[k], is_fallen[k] = scratch.leaf[b], scratch.log_weight[b], True
                b += 1
        end += size
        start[i + 1] = end
    return start, leaf[:end], log_weight[:end], is_fallen[:end]


@kernel
def entries_of_others(columns, trees, leaves, evidence, row, wanted, met, scratch):
    """Write the leaves that a row can reach in trees that are not in ``met``, with their share of rows; how many."""
    leaf, log_weight = scratch.leaf, scratch.log_weight
    kept = 0
    for k in range(reachable(columns, trees, evidence, row, scratch.stack, leaf)):
        at = leaf[k]
        if leaves.tree[at] < met.shape[0] and not met[leaves.tree[at]]:
            leaf[kept], log_weight[kept] = at, leaves.log_weight[at]
            kept += 1
    region = cell_region(evidence, row, wanted) if wanted >= 0 else -1
    return leaves_that_meet(columns, leaves, evidence, wanted, region, leaf, log_weight, kept) if region >= 0 else kept


@kernel
def leaves_that_meet(columns, leaves, evidence, column, region, leaf, log_weight, n):
    """Keep those of the n leaves that give the column's region some mass, in place; return how many."""
    kept, slot = 0, columns.slot[column]
    for k in range(n):
        if columns.is_categorical[column]:
            log_mass = level_region_log_mass(columns, leaves, evidence, leaf[k], slot, region)
        else:
            log_mass = region_log_mass(columns, leaves, evidence, leaf[k], slot, region)
        if log_mass > -math.inf:
            leaf[kept], log_weight[kept] = leaf[k], log_weight[k]
            kept += 1
    return kept
