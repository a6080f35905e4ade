"""Kernels: histories without unknown cells, row after row: contexts, expected classes, probabilities of cells."""

import math

from ...runtime.compile import entry, kernel
from .base_kernels import range_factor
from .cell_kernels import FLOOR, class_of, distribution, target_of, value_code
from .memory_kernels import context, forget, mean_code, note_expected, remember, usual_code


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
            if target_of(layout, state, 0, j, row) == target:
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
            if target_of(layout, state, 0, j, r - histories.start[i]) == target:
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
            if target_of(layout, state, 0, j, row) == target:
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
                target = target_of(layout, state, 0, j, row)
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
