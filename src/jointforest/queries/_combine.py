"""Kernels: the posterior over leaves, with trees weighed anew."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ._walk import reachable


@njit(nogil=True, cache=True)
def weigh_trees(start, log_weight, tree, n_trees, beta):
    """Log-weights of the entries when tree t counts p_t(evidence)^beta, normalised to sum to 1 in each row.

    ``tree`` (M,) is the tree of each entry, ascending within a row. Trees from ``n_trees`` on (the background) count
    only in rows that no other tree gives a probability above 0.
    """
    out = np.full(log_weight.shape[0], -math.inf)
    log_tree = np.empty(n_trees + 1)
    for i in range(start.shape[0] - 1):
        first, end = start[i], start[i + 1]
        log_tree[:] = -math.inf
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
            a = b
        top = -math.inf
        for t in range(n_trees):
            if log_tree[t] > -math.inf:
                top = max(top, beta * log_tree[t])
        total = 0.0
        for t in range(n_trees):
            if log_tree[t] > -math.inf:
                total += math.exp(beta * log_tree[t] - top)
        for k in range(first, end):
            t = tree[k]
            if t < n_trees:
                out[k] = log_weight[k] - log_tree[t] + beta * log_tree[t] - top - math.log(total)
            elif top == -math.inf:
                out[k] = log_weight[k] - log_tree[t]
    return out


@njit(nogil=True, cache=True)
def routed_rows(columns, trees, leaves, evidence, first, stop, n_trees):
    """The one leaf of each of the first ``n_trees`` trees that each of the rows first..stop-1 meets, in their order.

    Empty if a row meets several leaves of a tree: then it takes densities to weigh them.
    """
    stack = np.empty(trees.feature.shape[0], np.int32)
    leaf = np.empty(leaves.log_weight.shape[0], np.int32)
    out = np.empty((stop - first) * n_trees, np.int32)
    n_all = trees.root.shape[0]
    for row in range(first, stop):
        if reachable(columns, trees, evidence, row, stack, leaf) != n_all:
            return out[:0]
        for t in range(n_trees):
            if leaves.tree[leaf[t]] != t:
                return out[:0]
            out[(row - first) * n_trees + t] = leaf[t]
    return out
