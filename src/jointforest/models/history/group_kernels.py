"""Kernels: hypotheses in groups, those of each group with one distribution of the cell at hand.

Hypotheses are sorted through each tree together: what they share is looked at once for all of them.
"""

from __future__ import annotations

from ...runtime.compile import kernel
from .cell_kernels import by_leaves, find_classes, has_same_ratios, is_alike, multiply_ratios, target_of
from .contexts import CHANGED, EXPECTED, FROM_EXPECTED, FROM_USUAL, HEAD, LENGTH, NOW, REMAINING
from .memory_kernels import context, expect

NOTHING, PAST, ALL_BUT_LENGTH = range(3)
"""What all hypotheses have in common; with the last one they are in the order of their numbers of rows."""

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
    first, last = (0, 1) if row == 0 else (0, 2) if layout.change[j] >= 0 else (1, 2)
    for later in range(first, last):
        target = layout.n_head + later * d + j
        having = 0
        for h in range(n):
            if has_ended(layout, state, h, row):
                scratch.group[0, h] = -1
            elif target_of(layout, state, h, j, row) == target:
                scratch.order[having] = h
                having += 1
        if having > 0:
            groups = group_by_leaves(conditionals, layout, scratch, state, target, row, having, groups)
    return groups


@kernel
def expect_all(layout, scratch, state, n, j, row):
    """Note the expected code of column j under every hypothesis."""
    if layout.expect_root[j] < 0:
        return
    expect(layout, state, 0, j, row)
    for h in range(1, n):
        if scratch.common[0] == ALL_BUT_LENGTH:
            state.expected[h, j] = state.expected[0, j]
        else:
            expect(layout, state, h, j, row)


@kernel
def group_by_leaves(conditionals, layout, scratch, state, target, row, n, groups):
    """Group the first n hypotheses of ``order``, all of one target; the number of groups with those before."""
    order, first = scratch.order, conditionals.tree_start[target]
    n_trees = conditionals.tree_start[target + 1] - first
    # the first tree comes last: hypotheses of one leaf of it are then beside each other
    for t in range(n_trees - 1, -1, -1):
        sort_through(conditionals, layout, scratch, state, first + t, t, row, n)
    j = (target - layout.n_head) % layout.n_codes.shape[0]
    begin, classes_of, expected, ratios_of = groups, -1, -1, -1
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
            if i == 0 or not has_same_ratios(conditionals, layout, target, state, ratios_of, h):
                if state.past[h] != classes_of or state.expected[h, j] != expected:
                    classes_of, expected = state.past[h], state.expected[h, j]
                    find_classes(conditionals, layout, target, state, h)
                multiply_ratios(conditionals, layout, target, state, h)
                ratios_of = h
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
            if stop - start == 1 or is_common(layout, kind, column, common):
                is_right = context(kind, column, state, order[start], row, layout) > threshold
                node = child[node] + (1 if is_right else 0)
                continue
            if common == ALL_BUT_LENGTH:
                middle = first_beyond(layout, state, order, kind, column, threshold, row, start, stop)
            else:
                middle = divide(layout, scratch, state, kind, column, threshold, row, start, stop)
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
    if common == NOTHING:
        return False
    if kind in (LENGTH, REMAINING):
        return False
    if kind == HEAD:
        return common == ALL_BUT_LENGTH and column < layout.n_head - layout.has_length
    return common == ALL_BUT_LENGTH or kind not in (NOW, CHANGED, EXPECTED, FROM_EXPECTED, FROM_USUAL)


@kernel
def first_beyond(layout, state, order, kind, column, threshold, row, start, stop):
    """Place of the first hypothesis whose context, which grows with the number of rows, is above the threshold."""
    while start < stop:
        middle = (start + stop) // 2
        if context(kind, column, state, order[middle], row, layout) > threshold:
            stop = middle
        else:
            start = middle + 1
    return start


@kernel
def divide(layout, scratch, state, kind, column, threshold, row, start, stop):
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
