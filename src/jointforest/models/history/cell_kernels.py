"""Kernels: the distribution of one cell given everything before it."""

import math

import numpy as np

from ...runtime.compile import kernel
from ...runtime.numeric_kernels import first_at_least
from .base_kernels import range_weight
from .contexts import CENTER, CODE, OFFSET_EDGES, OFFSET_FIRST, OFFSET_USUAL, SOURCE
from .memory_kernels import M_BACK, M_FIRST, M_PREVIOUS, N_MEMORY, context, mean_code, usual_code

_ONE = np.uint64(1)
N_OFFSETS = len(OFFSET_EDGES) + 1
_CLASS_OF_STEPS = np.searchsorted(OFFSET_EDGES, np.arange(-CENTER, CENTER + 1)).astype(np.int64)
"""Class of the steps -64, ..., 64 from a reference code."""
FLOOR = 1e-30
"""Least probability of a known cell, so that its logarithm is finite."""


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
    first = layout.edge_start[k]
    return first_at_least(layout.edge, first, layout.edge_start[k + 1] - 1, x) - first + 1


@kernel
def offset_class(code, reference):
    """Class of the steps from a reference code; 0 if that is missing, the last one if the code is."""
    if code == 0:
        return N_OFFSETS
    if reference == 0:
        return 0
    return _CLASS_OF_STEPS[code - reference + CENTER]


@kernel
def class_of(sort, code, memory, mean, usual, seen):
    """Class of a code of values, for classes of this kind; with `mean_code` and `usual_code` of the memory."""
    if sort == SOURCE:
        if code == memory[M_PREVIOUS]:
            return 0
        if code == memory[M_BACK]:
            return 1
        return 2 if (seen >> np.uint64(code)) & _ONE else 3
    if sort == CODE:
        return code
    if sort == OFFSET_USUAL:
        return offset_class(code, usual)
    return offset_class(code, memory[M_FIRST] if sort == OFFSET_FIRST else mean)


@kernel
def fill_classes(sort, n_codes, memory, mean, usual, seen, place):
    """Class of each code of values, as `class_of` gives it."""
    if sort == SOURCE:
        for c in range(n_codes):
            place[c] = 3 - ((seen >> np.uint64(c)) & _ONE)
        place[memory[M_BACK]] = 1
        place[memory[M_PREVIOUS]] = 0
        return
    reference = usual if sort == OFFSET_USUAL else memory[M_FIRST] if sort == OFFSET_FIRST else mean
    place[0] = N_OFFSETS
    for c in range(1, n_codes):
        place[c] = _CLASS_OF_STEPS[c - reference + CENTER] if reference > 0 else 0


@kernel
def value_code(layout, k, change, reference):
    """Code of the value that a change code leads to from a reference value; of the median change."""
    if change == 0:
        return 0
    return bin_of(layout, k, reference + layout.middle[layout.change_start[k] + change - 1])


@kernel
def target_of(layout, state, h, j, row):
    """The target of column j: that of a first row where nothing is before, or no value that a change starts from."""
    d = layout.n_codes.shape[0]
    if row == 0 or (layout.change[j] >= 0 and math.isnan(state.value[state.past[h], j])):
        return layout.n_head + j
    return layout.n_head + d + j


@kernel
def distribution(conditionals, layout, target, state, h, row, out):
    """Distribution over the codes of a target by its trees, into ``out``; its number of codes."""
    first = conditionals.tree_start[target]
    for tree in range(first, conditionals.tree_start[target + 1]):
        node = leaf_node(conditionals, tree, state, h, row, layout)
        state.leaf[h, tree - first] = -1 - conditionals.child[node]
    find_classes(conditionals, layout, target, state, h)
    return by_leaves(conditionals, layout, target, state, h, out)


@kernel
def find_classes(conditionals, layout, target, state, h):
    """Note the class that each code of a target has in each of its trees of ratios, under hypothesis h."""
    j = target - layout.n_head - layout.n_codes.shape[0]
    state.held[:] = -1
    if j < 0:
        return
    p, k, first = state.past[h], layout.change[j], conditionals.tree_start[target]
    memory, seen = state.memory[p, j], state.seen[p, j]
    mean, usual = mean_code(memory), usual_code(memory, state.expected[h, j], layout.n_codes[j])
    for t in range(1, conditionals.tree_start[target + 1] - first):
        sort, place = conditionals.tree_class[first + t], state.place[t]
        if is_by_code(conditionals, layout, first + t, j):
            continue
        if k < 0:
            fill_classes(sort, conditionals.target_codes[target], memory, mean, usual, seen, place)
            continue
        for c in range(conditionals.target_codes[target]):
            place[c] = class_of(sort, value_code(layout, k, c, state.value[p, j]), memory, mean, usual, seen)


@kernel
def is_by_code(conditionals, layout, tree, j):
    """Whether a tree of ratios of column j has an entry for each code that is predicted."""
    return conditionals.tree_class[tree] == CODE and layout.change[j] < 0


@kernel
def hold_ratios(conditionals, target, state, t, leaf):
    """Note the ratio of each code by this leaf of a tree and the classes found, if it is not the one noted last."""
    if state.held[t] == leaf:
        return
    entry, place, ratio = conditionals.table[leaf:], state.place[t], state.ratio[t]
    for c in range(conditionals.target_codes[target]):
        ratio[c] = entry[place[c]]
    state.held[t] = leaf


@kernel
def by_leaves(conditionals, layout, target, state, h, out):
    """Distribution over the codes of a target by its leaves and the classes found, into ``out``; how many codes."""
    n, first = conditionals.target_codes[target], conditionals.tree_start[target]
    entry = conditionals.table[state.leaf[h, 0] :]
    for c in range(n):
        out[c] = entry[c]
    j = target - layout.n_head - layout.n_codes.shape[0]
    if j < 0:
        return n
    for t in range(1, conditionals.tree_start[target + 1] - first):
        leaf = state.leaf[h, t]
        if is_by_code(conditionals, layout, first + t, j):
            entry = conditionals.table[leaf:]
            for c in range(n):
                out[c] *= entry[c]
        else:
            hold_ratios(conditionals, target, state, t, leaf)
            ratio = state.ratio[t]
            for c in range(n):
                out[c] *= ratio[c]
    scale = 1.0 / total_of(out, n)
    for c in range(n):
        out[c] *= scale
    if layout.change[j] >= 0:
        keep_in_range(layout, layout.change[j], state.value[state.past[h], j], n, out)
    return n


@kernel
def total_of(x, n):
    """Sum of the first n numbers, in four parts: one sum would wait for each addition."""
    a = b = c = d = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
    for i in range(whole, n):
        a += x[i]
    return (a + b) + (c + d)


@kernel
def is_alike(layout, target, n_trees, state, a, b):
    """Whether two hypotheses have the same distribution: the same leaves, and the same past of the column."""
    for tree in range(n_trees):
        if state.leaf[a, tree] != state.leaf[b, tree]:
            return False
    j, p, q = target - layout.n_head - layout.n_codes.shape[0], state.past[a], state.past[b]
    if j < 0:
        return True
    if state.expected[a, j] != state.expected[b, j]:
        return False
    if p == q:
        return True
    for m in range(N_MEMORY):
        if state.memory[p, j, m] != state.memory[q, j, m]:
            return False
    return state.seen[p, j] == state.seen[q, j] and (layout.change[j] < 0 or state.value[p, j] == state.value[q, j])


@kernel
def keep_in_range(layout, k, reference, n, out):
    """Take from each change what leads out of the range of the values: see `base_kernels`."""
    total, kept = 0.0, 0.0
    for c in range(n):
        total += out[c]
        if c > 0:
            out[c] *= range_weight(layout, k, layout.change_start[k] + c - 1, reference)
        kept += out[c]
    for c in range(n):
        out[c] *= total / kept
