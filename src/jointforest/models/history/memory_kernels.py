"""Kernels: what is remembered of the rows before, and the contexts that are computed from it."""

import math

import numpy as np

from ...runtime.compile import kernel
from .contexts import (
    BACK,
    CENTER,
    CHANGED,
    CHANGES,
    DISTINCT,
    EXCESS,
    EXPECTED,
    FIRST,
    FROM_EXPECTED,
    FROM_FIRST,
    FROM_LAG2,
    FROM_MEAN,
    FROM_USUAL,
    HEAD,
    HIGH,
    KNOWN,
    LAG2,
    LAST_CHANGE,
    LAST_EXCESS,
    LENGTH,
    LOW,
    MEAN,
    NOW,
    POSITION,
    PREVIOUS,
    REMAINING,
    RUN,
)

M_PREVIOUS, M_LAG2, M_FIRST, M_BACK, M_KNOWN, M_CHANGES, M_RUN, M_SUM, M_COUNT, M_LOW, M_HIGH, M_CHANGE = range(12)
M_EXCESS, M_EXCESSES = 12, 13
N_MEMORY = 14
"""Entries of the memory of a column."""

UNBINNED = 32
"""Counts up to this one are contexts themselves."""

_ONE = np.uint64(1)


@kernel
def count_bin(n):
    """A count as a context: itself up to 32, then four bins to every doubling."""
    if n <= UNBINNED:
        return max(n, 0)
    return min(UNBINNED + int(4.0 * math.log2(n / UNBINNED)), 127)


@kernel
def difference(a, b):
    """a - b as a context; 0 if one of the codes is that of a missing cell."""
    if a == 0 or b == 0:
        return 0
    return a - b + CENTER


@kernel
def count_bits(word):
    """Number of bits of a word of 64 that are set."""
    n = 0
    while word:
        word &= word - _ONE
        n += 1
    return n


@kernel
def mean_code(memory):
    """Mean of the known codes so far, rounded; 0 if there are none."""
    n = memory[M_COUNT]
    return (2 * memory[M_SUM] + n) // (2 * n) if n > 0 else 0


@kernel
def mean_excess(memory):
    """Mean of code less expected code so far, rounded."""
    n = memory[M_COUNT]
    return (2 * memory[M_EXCESSES] + n) // (2 * n) if n > 0 else 0


@kernel
def usual_code(memory, expected, n_codes):
    """The expected code plus the mean excess, among the codes; 0 if there is no expected code."""
    return min(max(expected + mean_excess(memory), 1), n_codes - 1) if expected > 0 else 0


@kernel
def note_expected(layout, state, h, j, row):
    """Note the code that the earlier columns of the row suggest for column j, if it has an expectation tree."""
    node = layout.expect_root[j]
    if node < 0:
        return
    while layout.expect_child[node] >= 0:
        found = context(layout.expect_kind[node], layout.expect_column[node], state, h, row, layout)
        node = layout.expect_child[node] + (1 if found > layout.expect_threshold[node] else 0)
    state.expected[h, j] = -1 - layout.expect_child[node]


@kernel
def context(kind, column, state, h, row, layout):
    """The context of a kind and column for hypothesis ``h`` of the state, in row number ``row``."""
    if kind == NOW:
        return state.now[h, column]
    if kind == PREVIOUS:
        return state.memory[state.past[h], column, M_PREVIOUS]
    if kind == CHANGED:
        if layout.change[column] >= 0:
            return state.change[h, column]
        now, before = state.now[h, column], state.memory[state.past[h], column, M_PREVIOUS]
        if layout.is_number[column]:
            return difference(now, before)
        return 1 if now == before else 2
    if kind == HEAD:
        return state.head[h, column]
    if kind == POSITION:
        return count_bin(row)
    if kind == LENGTH:
        return count_bin(state.length[h])
    if kind == REMAINING:
        return count_bin(state.length[h] - row)
    p = state.past[h]
    if kind >= EXPECTED:
        return expected_context(kind, state.memory[p, column], state.expected[h, column], layout.n_codes[column])
    return memory_context(kind, state.memory[p, column], state.seen[p, column])


@kernel
def expected_context(kind, memory, expected, n_codes):
    """The context of a kind that reads the expected code of a column."""
    if kind == EXPECTED:
        return expected
    if kind == FROM_EXPECTED:
        return difference(memory[M_PREVIOUS], expected)
    if kind == EXCESS:
        return CENTER + mean_excess(memory)
    if kind == LAST_EXCESS:
        return memory[M_EXCESS]
    if kind == FROM_USUAL:
        return difference(memory[M_PREVIOUS], usual_code(memory, expected, n_codes))
    return 0


@kernel
def memory_context(kind, memory, seen):
    """The context of a kind that reads what is remembered of a column."""
    if kind == LAG2:
        return memory[M_LAG2]
    if kind == FIRST:
        return memory[M_FIRST]
    if kind == BACK:
        return memory[M_BACK]
    if kind == KNOWN:
        return memory[M_KNOWN]
    if kind == CHANGES:
        return count_bin(memory[M_CHANGES])
    if kind == RUN:
        return count_bin(memory[M_RUN])
    if kind == MEAN:
        return mean_code(memory)
    if kind == LOW:
        return memory[M_LOW]
    if kind == HIGH:
        return memory[M_HIGH]
    if kind == DISTINCT:
        return count_bits(seen)
    if kind == FROM_FIRST:
        return difference(memory[M_PREVIOUS], memory[M_FIRST])
    if kind == FROM_LAG2:
        return difference(memory[M_PREVIOUS], memory[M_LAG2])
    if kind == FROM_MEAN:
        return difference(memory[M_PREVIOUS], mean_code(memory))
    if kind == LAST_CHANGE:
        return memory[M_CHANGE]
    return 0


@kernel
def forget(state, h):
    """Begin a history: nothing is remembered."""
    state.past[h] = h
    for j in range(state.now.shape[1]):
        state.seen[h, j] = np.uint64(0)
        state.value[h, j] = math.nan
        state.next_value[h, j] = math.nan
        state.change[h, j] = 0
        state.expected[h, j] = 0
        state.stay[h, j] = 0.0
        for m in range(N_MEMORY):
            state.memory[h, j, m] = 0


@kernel
def remember(state, h, row):
    """Take the codes of the row, ``state.now``, into the past of the hypothesis."""
    p = state.past[h]
    for j in range(state.now.shape[1]):
        code, memory = state.now[h, j], state.memory[p, j]
        state.value[p, j] = state.next_value[h, j]
        if row == 0:
            memory[M_FIRST] = code
            memory[M_LAG2] = code
            memory[M_BACK] = code
        else:
            before = memory[M_PREVIOUS]
            memory[M_LAG2] = before
            if code == before:
                memory[M_RUN] += 1
            else:
                memory[M_CHANGES] += 1
                memory[M_RUN] = 0
                memory[M_BACK] = before
        memory[M_PREVIOUS] = code
        memory[M_CHANGE] = state.change[h, j]
        state.seen[p, j] |= _ONE << np.uint64(code)
        if code > 0:
            memory[M_KNOWN] = code
            memory[M_LOW] = code if memory[M_COUNT] == 0 else min(memory[M_LOW], code)
            memory[M_HIGH] = max(memory[M_HIGH], code)
            memory[M_SUM] += code
            memory[M_COUNT] += 1
            expected = state.expected[h, j]
            if expected > 0:
                memory[M_EXCESS] = difference(code, expected)
                memory[M_EXCESSES] += code - expected


@kernel
def move_past(state, h, to):
    """Copy the past of a hypothesis to another place, where it can go on on its own."""
    p = state.past[h]
    for j in range(state.now.shape[1]):
        state.value[to, j] = state.value[p, j]
        state.seen[to, j] = state.seen[p, j]
        for m in range(N_MEMORY):
            state.memory[to, j, m] = state.memory[p, j, m]
    state.past[h] = to
