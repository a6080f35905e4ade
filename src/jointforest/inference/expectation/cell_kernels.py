"""Kernels: expectations of functions of an ensemble, over the cells into which its splits cut the missing columns."""

# Within a combination of cells the ensemble is constant, so that E[g(F)] is a sum over combinations for any g.

import math

import numpy as np

from ...models.box_forest.posterior_kernels import row_mixture
from ...models.box_forest.sampling_kernels import draw_row
from ...runtime.compile import entry, kernel
from ...runtime.random_kernels import mix_bits, stream, uniform
from .component_kernels import COMPONENTS_AT_ONCE
from .descent_kernels import load_block, row_sum, start_row
from .match import ONE, ZERO

IDENTITY, LOGISTIC, SOFTMAX, EXP = 0, 1, 2, 3


@kernel
def find_cells(columns, regions, used, n_used, most, cells):
    """Write the cells that the used split regions make; return how many combinations, -1 if more than ``most``."""
    for j in range(columns.slot.shape[0]):
        cells.place[j] = -1
    n, total, end, u = 0, 1, 0, 2
    while u < n_used:
        j, stop = regions.column[used[u]], u
        while stop < n_used and regions.column[used[stop]] == j:
            stop += 1
        cells.column[n], cells.first[n], cells.region[n], cells.place[j] = j, end, u, n
        size = stop - u + 1
        if columns.is_categorical[j]:
            size = level_cells(columns, regions, used, u, stop, most, cells)
        cells.size[n] = size
        total *= size
        end += size
        n += 1
        u = stop
        if total > most:
            return -1
    cells.n[0] = n
    for v in range(2, n_used):
        j = regions.column[used[v]]
        if columns.is_categorical[j]:
            start = columns.level_start[columns.slot[j]]
            for k in range(cells.size[cells.place[j]]):
                cells.member[v, k] = 0
            for at in range(regions.level_start[used[v]], regions.level_start[used[v] + 1]):
                cells.member[v, cells.level_cell[start + regions.level[at]]] = 1
    return total


@kernel
def level_cells(columns, regions, used, u, stop, most, cells):
    """Number the cells of the column of levels that the used split regions u..stop-1 are of; return how many."""
    slot, key = columns.slot[regions.column[used[u]]], cells.level_key
    start, end = columns.level_start[slot], columns.level_start[slot + 1]
    for k in range(start, end):
        key[k] = 0
    for v in range(u, stop):
        for at in range(regions.level_start[used[v]], regions.level_start[used[v] + 1]):
            key[start + regions.level[at]] += mix_bits(np.uint64(v + 1))
    return _number_keys(key, start, end, cells.level_cell, most)


@kernel
def _number_keys(key, start, end, number, most):
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
def cell_masses(columns, cells, n, mass, level_mass, out):
    """Masses of each column's cells in the block's first n components, into ``out`` (cells, STRIDE)."""
    for c in range(cells.n[0]):
        j, first, size, u = cells.column[c], cells.first[c], cells.size[c], cells.region[c]
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
                out[at, i] += level_mass[level, i]


@kernel
def scale(vector, source, mass, m, n, target):
    """Multiply the weights in row ``source`` by a mass, into row ``target``."""
    for i in range(n):
        vector[target, i] = vector[source, i] * mass[m, i]


@kernel
def start_combinations(cells, index):
    """Set ``index`` to the first combination."""
    for c in range(cells.n[0]):
        index[c] = 0


@kernel
def advance(cells, index):
    """Go on to the next combination, the last column's cells first; return the first column that changes."""
    c = cells.n[0] - 1
    while c >= 0:
        index[c] += 1
        if index[c] < cells.size[c]:
            return c
        index[c] = 0
        c -= 1
    return 0


@kernel
def add_block(total, n, weight, grid):
    """Add a block's probabilities of all combinations; ``weight`` (STRIDE,) are those of its n components."""
    cells, index, vector, mass = grid.cells, grid.combination, grid.vector, grid.mass
    for i in range(n):
        vector[0, i] = weight[i]
    start_combinations(cells, index)
    changed, last = 0, cells.n[0]
    for combination in range(total):
        for c in range(changed, last):
            scale(vector, c, mass, cells.first[c] + index[c], n, c + 1)
        grid.probability[combination] += row_sum(vector, last, n)
        changed = advance(cells, index)


@kernel
def weigh_combinations(arrays, rows, row, post, at, most, scratch, grid):
    """Write the probabilities of a row's combinations of cells; return how many there are, -1 if above ``most``."""
    _, n_used = start_row(arrays, rows, row, post, at, scratch)
    active, cells, used = scratch.active, grid.cells, scratch.residual.used
    total = find_cells(arrays.columns, arrays.regions, used, n_used, most, cells)
    for combination in range(total):
        grid.probability[combination] = 0.0
    if total < 0:
        return total
    for block in range(0, active.n[0], COMPONENTS_AT_ONCE):
        n, _ = load_block(arrays, rows.evidence, n_used, block, scratch)
        cell_masses(arrays.columns, cells, n, scratch.mass, scratch.level_mass, grid.mass)
        add_block(total, n, scratch.vector[0], grid)
    start_combinations(cells, grid.combination)
    return total


@kernel
def end_node(splits, residual, cells, index, tree):
    """The leaf (a node of the ensemble) that a combination of cells ends in, in a residual tree."""
    k = int(residual.start[tree])
    while residual.right[k] >= 0:
        node = residual.node[k]
        mid = residual.local[splits.mid[node]]
        if mid == ZERO:
            goes_left = False
        elif mid == ONE:
            goes_left = True
        else:
            c = cells.place[splits.column[node]]
            goes_left = cells.member[mid, index[c]] != 0 if splits.is_set[node] else index[c] <= mid - cells.region[c]
        k = k + 1 if goes_left else int(residual.right[k])
    return residual.node[k]


@kernel
def _apply_link(link, total, out):
    """The link of sums (K,), into ``out`` (K,)."""
    n = total.shape[0]
    if link == SOFTMAX:
        top, exp_sum = -math.inf, 0.0
        for k in range(n):
            top = max(top, total[k])
        for k in range(n):
            out[k] = math.exp(total[k] - top)
            exp_sum += out[k]
        for k in range(n):
            out[k] /= exp_sum
        return
    for k in range(n):
        if link == LOGISTIC:
            small = math.exp(-abs(total[k]))
            out[k] = (1.0 if total[k] >= 0.0 else small) / (1.0 + small)
        else:
            out[k] = math.exp(total[k]) if link == EXP else total[k]


@entry
def cell_rows(arrays, rows, first, post, most, link, base, scratch, grid, out):
    """Expectations of the link of F, of F and of its products, and the number of combinations, by row, into ``out``."""
    # A row with more than ``most`` combinations has -1 of them, and nothing else is written for it.
    linked, mean, second, total, answer = out.linked, out.mean, out.second, grid.total, grid.answer
    n_outputs, splits, value = base.shape[0], arrays.splits, arrays.middle
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        linked[row], mean[row], second[row], out.n_combinations[row] = math.nan, math.nan, math.nan, 0
        if post.log_evidence[at] == -math.inf:
            continue
        out.n_combinations[row] = weigh_combinations(arrays, rows, row, post, at, most, scratch, grid)
        if out.n_combinations[row] < 0:
            continue
        linked[row], mean[row], second[row] = 0.0, 0.0, 0.0
        for combination in range(out.n_combinations[row]):
            p = grid.probability[combination]
            if p != 0.0:
                for o in range(n_outputs):
                    total[o] = base[o]
                for tree in range(splits.root.shape[0]):
                    node = end_node(splits, scratch.residual, grid.cells, grid.combination, tree)
                    for o in range(n_outputs):
                        total[o] += value[node, o]
                _apply_link(link, total, answer)
                for a in range(n_outputs):
                    linked[row, a] += p * answer[a]
                    mean[row, a] += p * total[a]
                    for b in range(n_outputs):
                        second[row, a, b] += p * total[a] * total[b]
            advance(grid.cells, grid.combination)


# ---- Kernel that completes rows, stratified by components.


@entry
def complete_stratified(columns, leaves, evidence, post, m, seed, offset, out):
    """m completions of each row of the evidence, into ``out`` (n * m, d)."""
    # The leaf of draw k is at a random place of the k-th of m equal parts of the cumulated weights (stratified
    # sampling). Streams are by row and draw, rows counted from ``offset`` on.
    for i in range(post.log_evidence.shape[0]):
        at = i * m
        if post.log_evidence[i] == -math.inf:
            out[at : at + m] = math.nan
            continue
        leaf, weight = row_mixture(post, i)
        total = weight.sum()
        entry, up_to = 0, weight[0]
        for k in range(m):
            state = stream(seed, offset * m + at + k)
            target = (k + uniform(state)) / m * total
            while up_to < target and entry < leaf.shape[0] - 1:
                entry += 1
                up_to += weight[entry]
            draw_row(columns, leaves, evidence, i, leaf[entry], False, state, out[at + k])
