"""Kernels: expectations of functions of an ensemble, over the cells into which its splits cut the missing columns.

Within a cell the ensemble is constant, so that E[g(F)] is a sum over cells for any g. Cells of a number lie between
neighbouring edges; levels that no split tells apart are one cell.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...ground.compile import array_kernel, entry, kernel
from ...ground.random_kernels import mix
from ...ground.records import record
from ...leaves.table import FACTORS
from .circuit_kernels import circuit_fit, circuit_shares
from .component_kernels import BLOCK, STRIDE
from .descent_kernels import row_sum
from .leaf_probability_kernels import load, scratch, start_row, with_room
from .region_kernels import ONE, ZERO, row_mass

IDENTITY, LOGISTIC, SOFTMAX, EXP = 0, 1, 2, 3


@record
class Cells(NamedTuple):
    """The cells of one row: those of its D missing columns that are split, and all their combinations.

    Attributes
    ----------
    column : int32 array (D,)
    first, size : int32 arrays (D,)
        The cells of column c are ``first[c]:first[c] + size[c]``.
    mark : int32 array (D,)
        Place of the column's first mark among the used ones.
    level_cell : int32 array (S,)
        Which of its column's cells a level is in.
    place : int32 array (d,)
        Where a column is among the D; -1 if it is not.
    member : uint8 array (marks, levels)
        Whether a set of levels has the cell of this number.
    """

    column: Any
    first: Any
    size: Any
    mark: Any
    level_cell: Any
    place: Any
    member: Any


@array_kernel
def find_cells(columns, marks, used, n_used, most):
    """The cells that the used marks make, and how many combinations there are; -1 if more than ``most``."""
    d, n_levels = columns.slot.shape[0], columns.level_start[-1]
    column, first, size = np.empty(d, np.int32), np.empty(d, np.int32), np.empty(d, np.int32)
    mark, place = np.empty(d, np.int32), np.full(d, -1, np.int32)
    level_cell, key = np.zeros(n_levels, np.int32), np.zeros(n_levels, np.uint64)
    n, total, end, widest, u = 0, 1, 0, 1, 2
    while u < n_used:
        j, stop = marks.column[used[u]], u
        while stop < n_used and marks.column[used[stop]] == j:
            stop += 1
        column[n], first[n], mark[n], place[j] = j, end, u, n
        if columns.is_categorical[j]:
            start, end_level = columns.level_start[columns.slot[j]], columns.level_start[columns.slot[j] + 1]
            for v in range(u, stop):
                for at in range(marks.level_start[used[v]], marks.level_start[used[v] + 1]):
                    key[start + marks.level[at]] += mix(np.uint64(v + 1))
            size[n] = number_keys(key, start, end_level, level_cell, most)
            widest = max(widest, size[n])
        else:
            size[n] = stop - u + 1
        total *= size[n]
        end += size[n]
        n += 1
        u = stop
        if total > most:
            total = -1
            break
    member = np.zeros((n_used if total > 0 else 0, widest), np.uint8)
    if total > 0:
        for v in range(2, n_used):
            j = marks.column[used[v]]
            if columns.is_categorical[j]:
                start = columns.level_start[columns.slot[j]]
                for at in range(marks.level_start[used[v]], marks.level_start[used[v] + 1]):
                    member[v, level_cell[start + marks.level[at]]] = 1
    return Cells(column[:n], first[:n], size[:n], mark[:n], level_cell, place, member), total


@kernel
def number_keys(key, start, end, number, most):
    """Number the distinct keys from ``start`` to ``end`` in the order in which they come; return how many."""
    n = 0
    for k in range(start, end):
        number[k] = -1
        for before in range(start, k):
            if key[before] == key[k]:
                number[k] = number[before]
                break
        if number[k] < 0:
            number[k] = n
            n += 1
            if n > most:
                return n
    return n


@kernel
def cell_masses(columns, cells, n, mass, level_row, out):
    """Masses of each column's cells in the block's first n components, into ``out`` (cells, STRIDE)."""
    for c in range(cells.column.shape[0]):
        j, first, size, u = cells.column[c], cells.first[c], cells.size[c], cells.mark[c]
        if not columns.is_categorical[j]:
            for k in range(size):
                for i in range(n):
                    low = mass[u + k - 1, i] if k > 0 else 0.0
                    high = mass[u + k, i] if k < size - 1 else mass[ONE, i]
                    out[first + k, i] = max(high - low, 0.0)
            continue
        for k in range(size):
            for i in range(n):
                out[first + k, i] = 0.0
        for level in range(columns.level_start[columns.slot[j]], columns.level_start[columns.slot[j] + 1]):
            at = first + cells.level_cell[level]
            for i in range(n):
                out[at, i] += level_row[level, i]


@kernel
def scale(vector, source, mass, m, n, target):
    """Multiply the weights in row ``source`` by a mass, into row ``target``."""
    for i in range(n):
        vector[target, i] = vector[source, i] * mass[m, i]


@kernel
def advance(cells, index):
    """Go on to the next combination, the last column's cells first; return the first column that changes."""
    c = cells.column.shape[0] - 1
    while c >= 0:
        index[c] += 1
        if index[c] < cells.size[c]:
            return c
        index[c] = 0
        c -= 1
    return 0


@kernel
def add_block(cells, total, n, mass, vector, index, probability):
    """Add a block's probabilities of all combinations; row 0 of ``vector`` has the components' weights."""
    index[:] = 0
    changed, last = 0, cells.column.shape[0]
    for cell in range(total):
        for c in range(changed, last):
            scale(vector, c, mass, cells.first[c] + index[c], n, c + 1)
        probability[cell] += row_sum(vector, last, n)
        changed = advance(cells, index)


@array_kernel
def add_circuit(bound, evidence, cells, total, used, c, weight, value, region, index, probability):
    """Add the probabilities of all combinations in a component whose columns depend on each other."""
    columns, leaves, marks = bound.columns, bound.leaves, bound.marks
    first = bound.components.node[c]
    size = leaves.node_end[first] - first
    n_columns = cells.column.shape[0]
    n_cells = cells.first[n_columns - 1] + cells.size[n_columns - 1] if n_columns > 0 else 0
    below = np.zeros((size, n_cells + n_columns), np.float64)  # mass of a column's cells before each
    share, fit = np.zeros(size, np.float64), np.empty(size, np.float64)
    circuit_shares(leaves, first, size, value, share)
    for q in range(first, first + size):
        if leaves.node_kind[q] != FACTORS:
            continue
        row = leaves.node_row[q]
        for d in range(n_columns):
            j, at, k = cells.column[d], cells.first[d] + d, cells.size[d]
            if not leaves.scope[leaves.node_scope[q], j]:
                continue
            if columns.is_categorical[j]:
                for level in range(columns.level_start[columns.slot[j]], columns.level_start[columns.slot[j] + 1]):
                    below[q - first, at + 1 + cells.level_cell[level]] += leaves.level_mass[row, level]
                for i in range(k):
                    below[q - first, at + i + 1] += below[q - first, at + i]
                continue
            for i in range(1, k):
                mark = used[cells.mark[d] + i - 1]
                below[q - first, at + i] = row_mass(columns, leaves, evidence, marks, row, mark)
            below[q - first, at + k] = 1.0
    index[:] = 0
    for cell in range(total):
        for d in range(n_columns):
            at = cells.first[d] + d + index[d]
            region[cells.column[d], 0], region[cells.column[d], 1] = at, at + 1
        fitting = circuit_fit(leaves, first, size, below, share, fit, region, cells.column, n_columns)
        probability[cell] += weight * fitting
        advance(cells, index)


@kernel
def end_node(splits, left, cells, index, tree):
    """The leaf (a node of the ensemble) that a combination of cells ends in, in what is left of a tree."""
    k = left.start[tree]
    while left.right[k] >= 0:
        node = left.node[k]
        mid = left.local[splits.mid[node]]
        if mid == ZERO:
            goes_left = False
        elif mid == ONE:
            goes_left = True
        else:
            c = cells.place[splits.column[node]]
            goes_left = cells.member[mid, index[c]] != 0 if splits.is_set[node] else index[c] <= mid - cells.mark[c]
        k = k + 1 if goes_left else left.right[k]
    return left.node[k]


@kernel
def add_values(bound, left, cells, index, value, out):
    """Add what the trees say of a combination of cells to ``out`` (K,); ``value`` (N, K) has the leaves' values."""
    for tree in range(left.start.shape[0] - 1):
        node = end_node(bound.splits, left, cells, index, tree)
        for o in range(out.shape[0]):
            out[o] += value[node, o]


@kernel
def apply(link, total, out):
    """The link of sums (K,), into ``out`` (K,)."""
    n = total.shape[0]
    if link == SOFTMAX:
        top, whole = -math.inf, 0.0
        for k in range(n):
            top = max(top, total[k])
        for k in range(n):
            out[k] = math.exp(total[k] - top)
            whole += out[k]
        for k in range(n):
            out[k] /= whole
        return
    for k in range(n):
        if link == LOGISTIC:
            small = math.exp(-abs(total[k]))
            out[k] = (1.0 if total[k] >= 0.0 else small) / (1.0 + small)
        else:
            out[k] = math.exp(total[k]) if link == EXP else total[k]


@entry
def cell_rows(bound, evidence, X, other, first, post, most, link, base, linked, mean, second, n_cells):
    """Expectations of the link of F (n, K), of F, and of its products (n, K, K), and the number of cells, by row.

    A row with more than ``most`` cells has -1 of them, and nothing is written for it.
    """
    room = scratch(bound)
    n_outputs, d = base.shape[0], bound.columns.slot.shape[0]
    mass, cell_mass = np.empty((256, STRIDE), np.float64), np.empty((256, STRIDE), np.float64)
    vector, index = np.empty((d + 1, STRIDE), np.float64), np.zeros(d, np.int64)
    total, answer = np.empty(n_outputs, np.float64), np.empty(n_outputs, np.float64)
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        linked[row], mean[row], second[row], n_cells[row] = math.nan, math.nan, math.nan, 0
        if post.log_evidence[at] == -math.inf:
            continue
        _, n_used = start_row(bound, evidence, X, other, row, post, at, 0.0, room)
        cells, n_cells[row] = find_cells(bound.columns, bound.marks, room.left.used, n_used, most)
        if n_cells[row] < 0:
            continue
        mass = with_room(mass, n_used)
        probability = np.zeros(n_cells[row], np.float64)
        last = cells.column.shape[0] - 1
        cell_mass = with_room(cell_mass, cells.first[last] + cells.size[last] if last >= 0 else 1)
        for block in range(0, room.live.n_products[0], BLOCK):
            end, _ = load(bound, evidence, n_used, block, room, mass)
            cell_masses(bound.columns, cells, end, mass, room.level_row, cell_mass)
            vector[0] = room.vector[0]
            add_block(cells, n_cells[row], end, cell_mass, vector, index, probability)
        for i in range(room.live.n_products[0], room.live.n[0]):
            add_circuit(
                bound, evidence, cells, n_cells[row], room.left.used, room.live.component[i], room.live.weight[i],
                room.value, room.region, index, probability,
            )  # fmt: skip
        linked[row], mean[row], second[row] = 0.0, 0.0, 0.0
        index[:] = 0
        for cell in range(n_cells[row]):
            p = probability[cell]
            if p != 0.0:
                total[:] = base
                add_values(bound, room.left, cells, index, bound.middle, total)
                apply(link, total, answer)
                for a in range(n_outputs):
                    linked[row, a] += p * answer[a]
                    mean[row, a] += p * total[a]
                    for b in range(n_outputs):
                        second[row, a, b] += p * total[a] * total[b]
            advance(cells, index)
