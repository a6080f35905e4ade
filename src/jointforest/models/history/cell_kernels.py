"""Kernels: the distribution of one cell given everything before it."""

from __future__ import annotations

import math

import numpy as np

from ...runtime.compile import kernel
from .contexts import CENTER, CODE, OFFSET_EDGES, OFFSET_FIRST, SOURCE
from .memory_kernels import M_BACK, M_FIRST, M_PREVIOUS, N_MEMORY, context, mean_code

_ONE = np.uint64(1)
N_OFFSETS = len(OFFSET_EDGES) + 1
_CLASS_OF_STEPS = np.searchsorted(OFFSET_EDGES, np.arange(-CENTER, CENTER + 1)).astype(np.int64)
"""Class of the steps -64, ..., 64 from a reference code."""
FLOOR = 1e-30
"""Least probability of a known cell, so that its logarithm is finite."""
N_PARTS = 16
"""Parts of equal mass inside a change code."""
MIDDLE = N_PARTS // 2


@kernel
def leaf_node(conditionals, tree, state, h, row, layout):
    """The leaf that the contexts lead to: the number of its node."""
    node = conditionals.root[tree]
    while conditionals.child[node] >= 0:
        found = context(conditionals.kind[node], conditionals.column[node], state, h, row, layout)
        node = conditionals.child[node] + (1 if found > conditionals.threshold[node] else 0)
    return node


@kernel
def bin_of(layout, k, x):
    """Code of a value of column of changes k."""
    low, high = layout.edge_start[k], layout.edge_start[k + 1] - 1
    first = low
    while low < high:
        middle = (low + high) // 2
        if layout.edge[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low - first + 1


@kernel
def offset_class(code, reference):
    """Class of the steps from a reference code; 0 if that is missing, the last one if the code is."""
    if code == 0:
        return N_OFFSETS
    if reference == 0:
        return 0
    return _CLASS_OF_STEPS[code - reference + CENTER]


@kernel
def class_of(sort, code, memory, mean, seen):
    """Class of a code of values, for classes of this sort; ``mean`` is `mean_code` of the memory."""
    if sort == SOURCE:
        if code == memory[M_PREVIOUS]:
            return 0
        if code == memory[M_BACK]:
            return 1
        return 2 if (seen >> np.uint64(code)) & _ONE else 3
    if sort == CODE:
        return code
    return offset_class(code, memory[M_FIRST] if sort == OFFSET_FIRST else mean)


@kernel
def value_code(layout, k, change, reference):
    """Code of the value that a change code leads to from a reference value; of the median change."""
    if change == 0:
        return 0
    return bin_of(layout, k, reference + layout.quantile[layout.quantile_start[k] + change - 1, MIDDLE])


@kernel
def target_of(layout, state, h, j, row):
    """The target of column j: that of a first row where nothing is before, or no value that a change starts from."""
    d = layout.n_codes.shape[0]
    if row == 0 or (layout.change[j] >= 0 and math.isnan(state.value[h, j])):
        return layout.n_head + j
    return layout.n_head + d + j


@kernel
def distribution(conditionals, layout, target, state, h, row, out):
    """Distribution over the codes of a target by its trees, into ``out``; its number of codes."""
    find_leaves(conditionals, layout, target, state, h, row)
    return by_leaves(conditionals, layout, target, state, h, out)


@kernel
def find_leaves(conditionals, layout, target, state, h, row):
    """Note the first entry, in the table, of the leaf of each tree of the target."""
    first = conditionals.tree_start[target]
    for tree in range(first, conditionals.tree_start[target + 1]):
        node = leaf_node(conditionals, tree, state, h, row, layout)
        state.leaf[h, tree - first] = -1 - conditionals.child[node]


@kernel
def by_leaves(conditionals, layout, target, state, h, out):
    """Distribution over the codes of a target by the leaves found, into ``out``; its number of codes."""
    n = conditionals.target_codes[target]
    first = conditionals.tree_start[target]
    leaf = state.leaf[h]
    for c in range(n):
        out[c] = conditionals.table[leaf[0] + c]
    d = layout.n_codes.shape[0]
    j = target - layout.n_head - d
    if j < 0:
        return n
    k, n_trees = layout.change[j], conditionals.tree_start[target + 1] - first
    memory, seen = state.memory[h, j], state.seen[h, j]
    mean, total = mean_code(memory), 0.0
    for c in range(n):
        code = c if k < 0 else value_code(layout, k, c, state.value[h, j])
        for t in range(1, n_trees):
            place = class_of(conditionals.tree_class[first + t], code, memory, mean, seen)
            out[c] *= conditionals.table[leaf[t] + place]
        total += out[c]
    for c in range(n):
        out[c] /= total
    if k >= 0:
        keep_in_range(layout, k, state.value[h, j], n, out)
    return n


@kernel
def is_alike(layout, target, n_trees, state, a, b):
    """Whether two hypotheses have the same distribution: the same leaves, and the same past of the column."""
    for tree in range(n_trees):
        if state.leaf[a, tree] != state.leaf[b, tree]:
            return False
    j = target - layout.n_head - layout.n_codes.shape[0]
    if j < 0:
        return True
    for m in range(N_MEMORY):
        if state.memory[a, j, m] != state.memory[b, j, m]:
            return False
    return state.seen[a, j] == state.seen[b, j] and (layout.change[j] < 0 or state.value[a, j] == state.value[b, j])


@kernel
def keep_in_range(layout, k, reference, n, out):
    """Give changes that lead out of the range of the values no probability."""
    total, kept = 0.0, 0.0
    for c in range(n):
        total += out[c]
        if c > 0:
            x = reference + layout.quantile[layout.quantile_start[k] + c - 1, MIDDLE]
            if x < layout.low[k] or x > layout.high[k]:
                out[c] *= 1e-6
        kept += out[c]
    for c in range(n):
        out[c] *= total / kept
