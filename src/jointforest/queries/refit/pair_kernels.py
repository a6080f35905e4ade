"""Kernels: for pairs of leaves of an ensemble, how much of the rows' weight is expected to be in both."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry, kernel
from ..expectation.component_kernels import BLOCK, STRIDE
from ..expectation.descent_kernels import descend, row_sum
from ..expectation.leaf_probability_kernels import load, scratch, start_row, with_room
from ..expectation.pair_kernels import copy_column, leaf_region, restrict
from .circuit_kernels import add_pair, circuit_pairs


@entry
def pair_rows(bound, evidence, X, other, first, post, weight, tree, stop, value, matrix, product):
    """Add weight times P(in leaf a and in leaf b | known cells) of the rows of a posterior (rows first.. of all).

    To ``matrix`` (L, L) at [a, b], each pair once, and pairs of a leaf and itself; if it is empty, times ``value``
    (L, K) of leaf b to ``product`` (L, K) of leaf a, and the other way round. Of all trees if ``tree`` is -1; else only
    of leaves a of this tree and b of the trees before ``stop``, itself left out, to the ``product`` of a.
    """
    room = scratch(bound)
    left, splits = room.left, bound.splits
    n_trees = splits.root.shape[0]
    mass, narrow = np.empty((256, STRIDE), np.float64), np.empty((256, STRIDE), np.float64)
    split = np.empty(bound.columns.slot.shape[0], np.int32)
    begin, end = (0, n_trees) if tree < 0 else (tree, tree + 1)
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        if post.log_evidence[at] == -math.inf or weight[row] == 0.0:
            continue
        _, n_used = start_row(bound, evidence, X, other, row, post, at, 0.0, room)
        mass, narrow = with_room(mass, n_used), with_room(narrow, n_used)
        n_products = room.live.n_products[0]
        for block in range(0, n_products, BLOCK):
            n, _ = load(bound, evidence, n_used, block, room, mass)
            copy_column(bound.marks, left.used, n_used, -1, n, mass, narrow)
            size = min(BLOCK, n_products - block)
            for t in range(begin, end):
                for k in range(left.start[t], left.start[t + 1]):
                    if left.right[k] >= 0:
                        continue
                    n_split = leaf_region(splits, left, k, room.region, split)
                    for i in range(n):
                        room.vector[0, i] = weight[row] * room.live.weight[block + i] if i < size else 0.0
                    for c in range(n_split):
                        restrict(
                            bound.columns, bound.marks, left.used, n_used, split[c], room.region[split[c], 0],
                            room.region[split[c], 1], n, mass, room.level_row, room.vector, narrow,
                        )  # fmt: skip
                    total = row_sum(room.vector, 0, n)
                    if total > 0.0:
                        others = n_trees if tree < 0 else stop
                        add_leaf(bound, room, narrow, n_used, t, k, n, total, tree, others, value, matrix, product)
                    for c in range(n_split):
                        copy_column(bound.marks, left.used, n_used, split[c], n, mass, narrow)
        for i in range(n_products, room.live.n[0]):
            share = weight[row] * room.live.weight[i]
            circuit_pairs(
                bound, evidence, room, n_used, room.live.component[i], share, tree, stop, value, matrix, product
            )


@kernel
def add_leaf(bound, room, mass, n_used, t, k, n, total, tree, stop, value, matrix, product):
    """Add the leaf at place k of tree t, of probability ``total``, with itself and with the leaves of other trees."""
    left, splits = room.left, bound.splits
    a = splits.leaf[left.node[k]]
    if tree < 0:
        add_pair(a, a, total, False, value, matrix, product)
    for u in range(n_used):
        room.base[u] = math.nan
    for s in range(t + 1 if tree < 0 else 0, stop):
        first, end = left.start[s], left.start[s + 1]
        if s == t:
            continue
        if left.right[first] < 0:
            add_pair(a, splits.leaf[left.node[first]], total, tree < 0, value, matrix, product)
            continue
        for p in range(first, end):
            left.mass[p] = 0.0
        descend(splits, bound.reach, left, s, room.vector, mass, room.base, n, total, 0.0, room.stack, room.stack_mass)
        for p in range(first, end):
            if left.right[p] < 0 and left.mass[p] > 0.0:
                add_pair(a, splits.leaf[left.node[p]], left.mass[p], tree < 0, value, matrix, product)


@entry
def pair_leaves(leaf, weight, first, stop, matrix):
    """Add the weight of rows first..stop-1, whose leaves (n, T) are known, to ``matrix`` at [a, b], each pair once."""
    for i in range(first, stop):
        for t in range(leaf.shape[1]):
            for s in range(t, leaf.shape[1]):
                matrix[leaf[i, t], leaf[i, s]] += weight[i]


@entry
def means_above(left, right, leaf, mass, value):
    """Mean value (N, K), by mass, of the leaves below each node; at nodes without mass that of the nearest node above.

    ``mass`` (L,) and ``value`` (L, K) are of leaves.
    """
    n_nodes, n_outputs = leaf.shape[0], value.shape[1]
    here, mean = np.zeros(n_nodes, np.float64), np.zeros((n_nodes, n_outputs), np.float64)
    for node in range(n_nodes - 1, -1, -1):  # children come after their parent
        if leaf[node] >= 0:
            here[node] = mass[leaf[node]]
            mean[node] = value[leaf[node]]
            continue
        a, b = left[node], right[node]
        here[node] = here[a] + here[b]
        if here[node] > 0.0:
            share = here[a] / here[node]
            for k in range(n_outputs):
                mean[node, k] = (mean[a, k] * share if share > 0.0 else 0.0) + (
                    mean[b, k] * (1.0 - share) if share < 1.0 else 0.0
                )
    for node in range(n_nodes):
        if leaf[node] < 0:
            for child in (left[node], right[node]):
                if here[child] == 0.0:
                    mean[child] = mean[node]
    return mean
