"""Kernel: completions of rows that lack few columns, all of them, as leaves of an ensemble."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry, kernel
from ..expectation.cell_kernels import add_block, add_circuit, advance, cell_masses, end_node, find_cells
from ..expectation.component_kernels import BLOCK, STRIDE
from ..expectation.leaf_probability_kernels import load, scratch, start_row, with_room


@entry
def cell_leaves(bound, evidence, X, other, first, post, most):
    """All combinations of cells of the missing columns, of the rows with at most ``most``.

    Returns
    -------
    count : number of combinations of each row, -1 where there are more
    probability : of each combination
    leaf : the leaf of each combination in each tree (combinations, T)
    """
    room = scratch(bound)
    n, d, n_trees = post.log_evidence.shape[0], bound.columns.slot.shape[0], bound.splits.root.shape[0]
    mass, cell_mass = np.empty((256, STRIDE), np.float64), np.empty((256, STRIDE), np.float64)
    vector, index = np.empty((d + 1, STRIDE), np.float64), np.zeros(d, np.int64)
    count, probability = np.full(n, -1, np.int64), np.empty(n * most, np.float64)
    leaf = np.empty((n * most, n_trees), np.int32)
    end = 0
    for at in range(n):
        row = first + at
        if post.log_evidence[at] == -math.inf:
            count[at] = 0
            continue
        _, n_used = start_row(bound, evidence, X, other, row, post, at, 0.0, room)
        cells, total = find_cells(bound.columns, bound.marks, room.left.used, n_used, most)
        if total < 0:
            continue
        count[at] = total
        mass = with_room(mass, n_used)
        here = probability[end : end + total]
        here[:] = 0.0
        last = cells.column.shape[0] - 1
        cell_mass = with_room(cell_mass, cells.first[last] + cells.size[last] if last >= 0 else 1)
        for block in range(0, room.live.n_products[0], BLOCK):
            size, _ = load(bound, evidence, n_used, block, room, mass)
            cell_masses(bound.columns, cells, size, mass, room.level_row, cell_mass)
            vector[0] = room.vector[0]
            add_block(cells, total, size, cell_mass, vector, index, here)
        for i in range(room.live.n_products[0], room.live.n[0]):
            add_circuit(
                bound, evidence, cells, total, room.left.used, room.live.component[i], room.live.weight[i], room.value,
                room.region, index, here,
            )  # fmt: skip
        index[:] = 0
        for cell in range(total):
            route(bound.splits, room.left, cells, index, leaf[end + cell])
            advance(cells, index)
        end += total
    return count, probability[:end].copy(), leaf[:end].copy()


@kernel
def route(splits, left, cells, index, out):
    """The leaf of a combination of cells in each tree, into ``out`` (T,)."""
    for tree in range(left.start.shape[0] - 1):
        out[tree] = splits.leaf[end_node(splits, left, cells, index, tree)]


@entry
def curvature(leaf, tree, output, shift, weight, share, out):
    """Add second derivatives of log-loss to ``out``, those of each pair of numbers of leaves once.

    A number of the v-th kind is added to output ``output[v]`` in the leaves of tree ``tree[v]``; its place is the
    leaf's number plus ``shift[v]``. ``share`` (N, K) are the probabilities of the outputs, ``leaf`` (N, T).
    """
    for i in range(leaf.shape[0]):
        for v in range(tree.shape[0]):
            a, p = leaf[i, tree[v]] + shift[v], share[i, output[v]]
            out[a, a] += weight[i] * p * (1.0 - p)
            for u in range(v + 1, tree.shape[0]):
                same = 1.0 if output[u] == output[v] else 0.0
                out[a, leaf[i, tree[u]] + shift[u]] += weight[i] * p * (same - share[i, output[u]])
