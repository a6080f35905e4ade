"""Kernels: hypotheses in groups, those of each group with one distribution of the current cell."""

# Hypotheses are sorted through each tree together: what they share is examined once for all of them.

import numpy as np

from ...runtime.compile import kernel
from .cell_kernels import by_leaves, cell_target, find_classes, is_alike
from .contexts import CHANGED, EXPECTED, FROM_EXPECTED, FROM_USUAL, HEAD, LENGTH, N_KINDS, NOW, REMAINING
from .memory_kernels import UNBINNED, context, note_expected

NOTHING, PAST, ALL_BUT_LENGTH = range(3)
"""What all hypotheses have in common; with the last one they are in the order of their numbers of rows."""

_OF_LENGTH = (LENGTH, REMAINING)
_OF_ROW = (NOW, CHANGED, EXPECTED, FROM_EXPECTED, FROM_USUAL, HEAD)
_IS_COMMON = np.array([
    np.zeros(N_KINDS), ~np.isin(np.arange(N_KINDS), _OF_LENGTH + _OF_ROW), ~np.isin(np.arange(N_KINDS), _OF_LENGTH)
]).astype(np.bool_)  # fmt: skip
"""Whether all hypotheses have the same context of a kind, by what they have in common; but the code of the length."""

LOOKED_AT = 16
"""Groups that a hypothesis is compared with before it begins one: more comparisons take longer than they save."""


@kernel
def has_ended(layout, state, h, row):
    """Whether a history has no such row under hypothesis h."""
    return layout.has_length == 1 and row >= state.length[h]


@kernel
def find_groups(conditionals, layout, scratch, state, n, j, row):
    """Group n hypotheses by their distributions of column j, which are put into ``scratch.share``; how many groups."""
    d, groups = layout.n_codes.shape[0], 0
    expect_all(layout, scratch, state, n, j, row)
    if scratch.common[0] == ALL_BUT_LENGTH:
        return find_groups_in_order(conditionals, layout, scratch, state, n, j, row)
    first, last = (0, 1) if row == 0 else (0, 2) if layout.change[j] >= 0 else (1, 2)
    for later in range(first, last):
        target = layout.n_head + later * d + j
        having = 0
        for h in range(n):
            if has_ended(layout, state, h, row):
                scratch.group[0, h] = -1
            elif cell_target(layout, state, h, j, row) == target:
                scratch.order[having] = h
                having += 1
        if having > 0:
            groups = group_by_leaves(conditionals, layout, scratch, state, target, row, having, groups)
    return groups


@kernel
def find_groups_in_order(conditionals, layout, scratch, state, n, j, row):
    """As `find_groups`, where hypotheses differ in their numbers of rows alone and are in the order of these."""
    # Every leaf then holds hypotheses that follow each other, and groups begin where a leaf of some tree does.
    begin, begins = 0, scratch.order
    while begin < n and has_ended(layout, state, begin, row):
        scratch.group[0, begin] = -1
        begin += 1
    if begin == n:
        return 0
    for h in range(begin, n):
        begins[h] = 0
    target = cell_target(layout, state, begin, j, row)
    first = conditionals.tree_start[target]
    n_trees = conditionals.tree_start[target + 1] - first
    for t in range(n_trees):
        _note_leaves(conditionals, layout, scratch, state, first + t, t, row, begin, n)
    groups, before = 0, begin
    for h in range(begin, n):
        if begins[h] != 0:
            for t in range(n_trees):
                if not (begins[h] >> t) & 1:
                    state.leaf[h, t] = state.leaf[before, t]
            if h == begin:
                find_classes(conditionals, layout, target, state, h)
            by_leaves(conditionals, layout, target, state, h, scratch.share[groups])
            scratch.group[1, groups] = h
            groups, before = groups + 1, h
        scratch.group[0, h] = groups - 1
    return groups


@kernel
def _note_leaves(conditionals, layout, scratch, state, tree, t, row, start, stop):
    """Note the leaves of a tree that hypotheses ``start`` to ``stop`` - 1 reach, each at its first hypothesis."""
    stack, child = scratch.stack, conditionals.child
    stack[0, 0], stack[0, 1], stack[0, 2] = conditionals.root[tree], start, stop
    depth = 1
    while depth > 0:
        depth -= 1
        node, start, stop = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        while child[node] >= 0:
            kind, column, threshold = conditionals.kind[node], conditionals.column[node], conditionals.threshold[node]
            if is_common(layout, kind, column, ALL_BUT_LENGTH):
                node = child[node] + (1 if common_context(layout, scratch, state, kind, column, row) > threshold else 0)
                continue
            middle = first_beyond(layout, state, kind, column, threshold, row, start, stop)
            node = child[node]
            if middle == start:
                node += 1
            elif middle < stop:
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = node + 1, middle, stop
                depth += 1
                stop = middle
        scratch.order[start] |= 1 << t
        state.leaf[start, t] = -1 - child[node]


@kernel
def expect_all(layout, scratch, state, n, j, row):
    """Note the expected code of column j under every hypothesis."""
    if layout.expect_root[j] < 0:
        return
    note_expected(layout, state, 0, j, row)
    for h in range(1, n):
        if scratch.common[0] == ALL_BUT_LENGTH:
            state.expected[h, j] = state.expected[0, j]
        else:
            note_expected(layout, state, h, j, row)


@kernel
def group_by_leaves(conditionals, layout, scratch, state, target, row, n, groups):
    """Group the first n hypotheses of ``order``, all of one target; the number of groups with those before."""
    order, first = scratch.order, conditionals.tree_start[target]
    n_trees = conditionals.tree_start[target + 1] - first
    # the first tree comes last: hypotheses of one leaf of it are then beside each other
    for t in range(n_trees - 1, -1, -1):
        sort_through(conditionals, layout, scratch, state, first + t, t, row, n)
    j = (target - layout.n_head) % layout.n_codes.shape[0]
    begin, classes_of, expected = groups, -1, -1
    for i in range(n):
        h = order[i]
        if i > 0 and state.leaf[h, 0] != state.leaf[order[i - 1], 0]:
            begin = groups
        # the last group comes first, which is most often the right one
        g, first_g = groups - 1, max(begin, groups - LOOKED_AT)
        while g >= first_g and not is_alike(layout, target, n_trees, state, scratch.group[1, g], h):
            g -= 1
        scratch.group[0, h] = g if g >= first_g else groups
        if g < first_g:
            if state.past[h] != classes_of or state.expected[h, j] != expected:
                classes_of, expected = state.past[h], state.expected[h, j]
                find_classes(conditionals, layout, target, state, h)
            by_leaves(conditionals, layout, target, state, h, scratch.share[groups])
            scratch.group[1, groups] = h
            groups += 1
    return groups


@kernel
def sort_through(conditionals, layout, scratch, state, tree, t, row, n):
    """Note the first entry of the leaf that each of the first n hypotheses of ``order`` reaches in a tree."""
    order, stack, child = scratch.order, scratch.stack, conditionals.child
    stack[0, 0], stack[0, 1], stack[0, 2] = conditionals.root[tree], 0, n
    depth, common = 1, scratch.common[0]
    while depth > 0:
        depth -= 1
        node, start, stop = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        while child[node] >= 0:
            kind, column, threshold = conditionals.kind[node], conditionals.column[node], conditionals.threshold[node]
            if is_common(layout, kind, column, common):
                node = child[node] + (1 if common_context(layout, scratch, state, kind, column, row) > threshold else 0)
                continue
            if stop - start == 1:
                is_right = context(kind, column, state, order[start], row, layout) > threshold
                node = child[node] + (1 if is_right else 0)
                continue
            middle = _divide(layout, scratch, state, kind, column, threshold, row, start, stop)
            node = child[node]
            if middle == start:
                node += 1
            elif middle < stop:
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = node + 1, middle, stop
                depth += 1
                stop = middle
        for i in range(start, stop):
            state.leaf[order[i], t] = -1 - child[node]


@kernel
def is_common(layout, kind, column, common):
    """Whether all hypotheses have the same context of this kind and column."""
    return _IS_COMMON[common, kind] and (kind != HEAD or column < layout.n_head - layout.has_length)


@kernel
def common_context(layout, scratch, state, kind, column, row):
    """A context that all hypotheses have, computed once for a row."""
    found = scratch.context[kind, column]
    if found < 0:
        found = context(kind, column, state, 0, row, layout)
        scratch.context[kind, column] = found
    return found


@kernel
def first_beyond(layout, state, kind, column, threshold, row, start, stop):
    """The first hypothesis whose context, which grows with the number of rows, is above the threshold."""
    if kind != HEAD and threshold < UNBINNED:
        # numbers of rows most often follow each other
        least = threshold + 1 + (row if kind == REMAINING else 0)
        h = min(max(start + least - state.length[start], start), stop)
        if (h == start or state.length[h - 1] < least) and (h == stop or state.length[h] >= least):
            return h
    while start < stop:
        middle = (start + stop) // 2
        if context(kind, column, state, middle, row, layout) > threshold:
            stop = middle
        else:
            start = middle + 1
    return start


@kernel
def _divide(layout, scratch, state, kind, column, threshold, row, start, stop):
    """Put hypotheses with a context up to the threshold first; where the others begin."""
    order, spare = scratch.order, scratch.spare
    left, right = start, 0
    for i in range(start, stop):
        h = order[i]
        if context(kind, column, state, h, row, layout) > threshold:
            spare[right] = h
            right += 1
        else:
            order[left] = h
            left += 1
    for i in range(right):
        order[left + i] = spare[i]
    return left
