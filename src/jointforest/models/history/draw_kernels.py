"""Kernels: histories of new subjects, drawn side by side so that their shares are close to the probabilities."""

# Every subject has exactly the distribution of the model, but subjects are not independent. At each cell, subjects are
# sorted by the leaf of the first tree that they reach, and drawn systematically in this order. This is array-RQMC
# (L'Ecuyer, Lecot and Tuffin, "A randomized quasi-Monte Carlo simulation method for Markov chains", 2008).

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.random_kernels import start_stream, uniform
from ...runtime.records import record
from .cell_kernels import FLOOR, cell_target, class_of, distribution, leaf_node, range_factor, value_code
from .memory_kernels import context, forget, mean_code, note_expected, remember, usual_code
from .walk_kernels import GOLDEN, drawn_value, take_code


@record
class Drawing(NamedTuple):
    """Scratch for n subjects.

    rank : int32 array (N,). For each leaf of the model its place among the leaves of its tree, from left to right.
    share : float64 array (n, C + 1). For each subject the probabilities of the codes below each code.
    order, spare : int64 array (n,). Subjects that have the cell, in the order in which they are drawn.
    key : int64 array (n,)
    places : int64 array (L + 2,). For counting subjects by rank.
    stack : int64 array (64, 4)
    random : uint64 array (1,)
    """

    rank: np.ndarray
    share: np.ndarray
    order: np.ndarray
    spare: np.ndarray
    key: np.ndarray
    places: np.ndarray
    stack: np.ndarray
    random: np.ndarray


@kernel
def sort_by_leaf(conditionals, layout, drawing, state, target, row, n):
    """Sort the first n subjects of ``order`` by the rank of their leaf; equal ones stay in their order."""
    tree = conditionals.tree_start[target]
    places = drawing.places
    greatest = 0
    for i in range(n):
        h = drawing.order[i]
        rank = drawing.rank[leaf_node(conditionals, tree, state, h, row, layout)]
        drawing.key[h] = rank
        greatest = max(greatest, rank)
    for k in range(greatest + 2):
        places[k] = 0
    for i in range(n):
        places[drawing.key[drawing.order[i]] + 1] += 1
    for k in range(1, greatest + 2):
        places[k] += places[k - 1]
    for i in range(n):
        h = drawing.order[i]
        drawing.spare[places[drawing.key[h]]] = h
        places[drawing.key[h]] += 1
    for i in range(n):
        drawing.order[i] = drawing.spare[i]


@kernel
def fill_shares(conditionals, layout, drawing, state, target, row, n):
    """Cumulative distribution of the cell of each subject; the number of codes."""
    n_codes = 0
    for i in range(n):
        h = drawing.order[i]
        share = drawing.share[h]
        n_codes = distribution(conditionals, layout, target, state, h, row, share)
        below = 0.0
        for c in range(n_codes):
            here = share[c]
            share[c] = below
            below += here
        share[n_codes] = below
    return n_codes


@kernel
def _draw_codes(drawing, n, n_codes):
    """Draw a code for each of the first n subjects of ``order``, into ``key``."""
    # The codes are halved again and again; each half is drawn systematically: u, u + p_1, u + p_1 + p_2, ... take it
    # where they pass a whole number.
    stack, order, spare, share = drawing.stack, drawing.order, drawing.spare, drawing.share
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n, 0, n_codes
    depth = 1
    while depth > 0:
        depth -= 1
        start, stop, low, high = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if high - low == 1:
            for i in range(start, stop):
                drawing.key[order[i]] = low
            continue
        middle = (low + high) // 2
        point, left, right = uniform(drawing.random), start, 0
        for i in range(start, stop):
            h = order[i]
            whole = share[h, high] - share[h, low]
            p = (share[h, middle] - share[h, low]) / whole if whole > 0.0 else 0.5
            point += p
            if p > 0.0 and (point >= 1.0 or p >= 1.0):
                point -= 1.0
                order[left] = h
                left += 1
            else:
                spare[right] = h
                right += 1
        for i in range(right):
            order[left + i] = spare[i]
        if left > start:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = start, left, low, middle
            depth += 1
        if stop > left:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = left, stop, middle, high
            depth += 1


@entry
def draw_heads(conditionals, layout, drawing, state, seed, number, head):
    """Draw the codes of the head variables of n new subjects into ``head``, int16 (n, h)."""
    n = head.shape[0]
    start_stream(drawing.random, seed, number)
    for h in range(n):
        forget(state, h)
        drawing.order[h] = h
    for v in range(layout.n_head):
        sort_by_leaf(conditionals, layout, drawing, state, v, 0, n)
        _draw_codes(drawing, n, fill_shares(conditionals, layout, drawing, state, v, 0, n))
        for h in range(n):
            state.head[h, v] = drawing.key[h]
            head[h, v] = drawing.key[h]


@entry
def draw_subject_rows(conditionals, layout, drawing, state, start, code, value):
    """Draw the rows start[i]:start[i + 1] of new subjects after `draw_heads`: codes (R, d), and values of changes."""
    n, d = start.shape[0] - 1, layout.n_codes.shape[0]
    row = 0
    while n > 0:
        alive = 0
        for i in range(n):
            h = drawing.order[i]
            if start[h] + row < start[h + 1]:
                drawing.order[alive] = h
                alive += 1
        n = alive
        for j in range(d):
            draw_cell(conditionals, layout, drawing, state, j, row, n, start, code, value)
        for i in range(n):
            remember(state, drawing.order[i], row)
        row += 1


@kernel
def draw_cell(conditionals, layout, drawing, state, j, row, n, start, code, value):
    """Draw column j of a row of the first n subjects of ``order``, those of each target together."""
    d = layout.n_codes.shape[0]
    for i in range(n):
        note_expected(layout, state, drawing.order[i], j, row)
    for later in range(2):
        target = layout.n_head + later * d + j
        # subjects of this target come first
        first, others = 0, 0
        for i in range(n):
            h = drawing.order[i]
            if cell_target(layout, state, h, j, row) == target:
                drawing.order[first] = h
                first += 1
            else:
                drawing.spare[others] = h
                others += 1
        for i in range(others):
            drawing.order[first + i] = drawing.spare[i]
        if first == 0:
            continue
        sort_by_leaf(conditionals, layout, drawing, state, target, row, first)
        _draw_codes(drawing, first, fill_shares(conditionals, layout, drawing, state, target, row, first))
        u = uniform(drawing.random)
        for i in range(first):
            h = drawing.order[i]
            u = (u + GOLDEN) % 1.0
            x = drawn_value(layout, state, h, j, drawing.key[h], later == 1, u)
            take_code(layout, state, h, j, drawing.key[h], later == 1, x)
            value[start[h] + row, j] = x
            code[start[h] + row, j] = state.now[h, j]


@kernel
def repetition(repeat, stay, is_last, fresh, again):
    """Probability that a known value, or one that it repeats, repeats the value of an unknown cell of the same code."""
    # ``stay`` is the probability that the unknown cell has the last known value; ``is_last`` says if that is this
    # value.
    if is_last and stay > 0.0 and math.isinf(again):
        return 1.0
    reached = (1.0 - stay) * fresh + (stay * again if is_last and stay > 0.0 else 0.0)
    total = repeat * reached + (1.0 - repeat) * fresh
    return repeat * reached / total if total > 0.0 else 0.0


@entry
def fill_repeats(code, is_first, is_known, repeat, fresh, again, draws, stay, last, linked, value):
    """Let cells have the value of the row before, as their codes and the known values on both sides have it."""
    # code : int64 array (N,). Codes of all cells, 0 for missing ones.
    # repeat : float64 array (K + 1,). Probability of a repetition, by the code.
    # fresh, again : float64 array (N,). Of known cells: density of the value inside its code, and that of a repetition;
    #     infinite where it is a mass.
    # draws : float64 array (N,). Uniform numbers.
    # stay, last, linked : arrays (N,). Scratch: probability that a cell has the last known value before it; that value;
    #     whether a cell has the value of a known cell after it.
    # value : float64 array (N,). Known values, and draws inside the codes; receives the values.
    for t in range(code.shape[0]):
        is_same = not is_first[t] and code[t] > 0 and code[t] == code[t - 1]
        before = math.nan
        if not is_first[t]:
            before = value[t - 1] if is_known[t - 1] else last[t - 1]
        last[t], linked[t] = before, False
        stay[t] = (1.0 if is_known[t - 1] else stay[t - 1]) * repeat[code[t]] if is_same else 0.0
    x, f, a = math.nan, 0.0, 0.0
    for t in range(code.shape[0] - 1, 0, -1):
        if is_known[t]:
            x, f, a = value[t], fresh[t], again[t]
        elif not linked[t]:
            continue
        if is_first[t] or is_known[t - 1] or code[t] == 0 or code[t] != code[t - 1]:
            continue
        if draws[t] < repetition(repeat[code[t]], stay[t - 1], last[t - 1] == x, f, a):
            linked[t - 1], value[t - 1] = True, x
    for t in range(1, code.shape[0]):
        if not (is_known[t] or linked[t] or is_first[t] or code[t] == 0) and code[t] == code[t - 1]:
            value[t] = value[t - 1] if draws[t] < repeat[code[t]] else value[t]


# ---- Kernels: histories without unknown cells, row after row: contexts, expected classes, probabilities of cells.


@kernel
def begin(histories, i, state):
    """Take the head variables of subject i, as hypothesis 0."""
    forget(state, 0)
    state.length[0] = max(histories.length[i], 0)
    for v in range(state.head.shape[1]):
        state.head[0, v] = histories.head[i, v]


@kernel
def take_cell(layout, histories, r, j, state):
    """Take column j of row r of the table."""
    state.now[0, j] = histories.code[r, j]
    k = layout.change[j]
    if k >= 0:
        state.change[0, j] = histories.change[r, k]
        if not math.isnan(histories.value[r, k]):
            state.next_value[0, j] = histories.value[r, k]


@entry
def collect_contexts(layout, histories, kinds, columns, target, state, out):
    """Contexts of one target in every row of it, into ``out``, uint8 (K, R); returns the number of rows."""
    d = layout.n_codes.shape[0]
    found = 0
    for i in range(histories.start.shape[0] - 1):
        begin(histories, i, state)
        if target < layout.n_head:
            for f in range(kinds.shape[0]):
                out[f, found] = context(kinds[f], columns[f], state, 0, 0, layout)
            found += 1
            continue
        for r in range(histories.start[i], histories.start[i + 1]):
            row = r - histories.start[i]
            for j in range(d):
                take_cell(layout, histories, r, j, state)
            j = (target - layout.n_head) % d
            note_expected(layout, state, 0, j, row)
            if cell_target(layout, state, 0, j, row) == target:
                for f in range(kinds.shape[0]):
                    out[f, found] = context(kinds[f], columns[f], state, 0, row, layout)
                found += 1
            remember(state, 0, row)
    return found


@entry
def target_codes_of(layout, histories, target, state, out):
    """Codes of a target in every row where it is the target, into ``out``; the number of rows."""
    d = layout.n_codes.shape[0]
    found = 0
    for i in range(histories.start.shape[0] - 1):
        if target < layout.n_head:
            out[found] = histories.head[i, target]
            found += 1
            continue
        j = (target - layout.n_head) % d
        k = layout.change[j]
        later = target >= layout.n_head + d
        state.value[0, j] = math.nan
        for r in range(histories.start[i], histories.start[i + 1]):
            if cell_target(layout, state, 0, j, r - histories.start[i]) == target:
                out[found] = histories.change[r, k] if later and k >= 0 else histories.code[r, j]
                found += 1
            if k >= 0 and not math.isnan(histories.value[r, k]):
                state.value[0, j] = histories.value[r, k]
    return found


@entry
def expected_classes(layout, conditionals, histories, target, sort, state, share, observed, expected):
    """Class of the cell, int64 (R,), and the probability of each class by the target's trees, float32 (R, K)."""
    d = layout.n_codes.shape[0]
    j = target - layout.n_head - d
    k = layout.change[j]
    found = 0
    for i in range(histories.start.shape[0] - 1):
        begin(histories, i, state)
        for r in range(histories.start[i], histories.start[i + 1]):
            row = r - histories.start[i]
            for other in range(d):
                take_cell(layout, histories, r, other, state)
            note_expected(layout, state, 0, j, row)
            if cell_target(layout, state, 0, j, row) == target:
                n = distribution(conditionals, layout, target, state, 0, row, share)
                memory, seen = state.memory[0, j], state.seen[0, j]
                mean, usual = mean_code(memory), usual_code(memory, state.expected[0, j], layout.n_codes[j])
                for c in range(expected.shape[1]):
                    expected[found, c] = 0.0
                for c in range(n):
                    code = c if k < 0 else value_code(layout, k, c, state.value[0, j])
                    expected[found, class_of(sort, code, memory, mean, usual, seen)] += share[c]
                c = histories.code[r, j] if k < 0 else histories.change[r, k]
                code = c if k < 0 else value_code(layout, k, c, state.value[0, j])
                observed[found] = class_of(sort, code, memory, mean, usual, seen)
                found += 1
            remember(state, 0, row)
    return found


@entry
def cell_log_probabilities(layout, conditionals, histories, state, share, of_head, of_cell):
    """Log-probability of the code of every cell given all before it: of heads (n, h) and of cells (N, d)."""
    d = layout.n_codes.shape[0]
    for i in range(histories.start.shape[0] - 1):
        begin(histories, i, state)
        for v in range(layout.n_head):
            distribution(conditionals, layout, v, state, 0, 0, share)
            of_head[i, v] = math.log(max(share[histories.head[i, v]], FLOOR))
        for r in range(histories.start[i], histories.start[i + 1]):
            row = r - histories.start[i]
            for j in range(d):
                take_cell(layout, histories, r, j, state)
                note_expected(layout, state, 0, j, row)
                target = cell_target(layout, state, 0, j, row)
                distribution(conditionals, layout, target, state, 0, row, share)
                k = layout.change[j]
                is_change = k >= 0 and target >= layout.n_head + d
                code, factor = histories.change[r, k] if is_change else histories.code[r, j], 1.0
                if k >= 0 and code > 0:
                    g = (layout.change_start[k] if is_change else layout.edge_start[k]) + code - 1
                    before = state.value[0, j] if is_change else 0.0
                    factor = range_factor(layout, k, g, before, histories.value[r, k])
                of_cell[r, j] = math.log(max(share[code] * factor, FLOOR))
            remember(state, 0, row)
