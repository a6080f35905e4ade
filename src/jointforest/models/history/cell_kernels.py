"""Kernels: the distribution of one cell given everything before it, and the density inside codes."""

# A code of a column of changes is a list of segments, as in `data.discretization.discretizer.Scale`. Its place g in the
# lists of `Layout` names it. Values beyond the range of the column have `OUT_OF_RANGE` times their density.

from __future__ import annotations

import math

import numpy as np

from ...runtime.compile import kernel
from ...runtime.numeric_kernels import first_at_least
from .contexts import CENTER, CODE, OFFSET_EDGES, OFFSET_FIRST, OFFSET_USUAL, SOURCE
from .memory_kernels import M_BACK, M_FIRST, M_PREVIOUS, N_MEMORY, context, mean_code, usual_code

OUT_OF_RANGE = 1e-6
"""Factor of the density of values beyond the range of their column."""
_FLAT = 1e-14
"""Decay of a density over a segment below which it counts as uniform."""
_INSIDE = 2.0**-53
"""Least distance of a draw from the ends of its segment, as a share."""


@kernel
def cell_of(layout, k, x, origin):
    """Number of the grid cell of a value; of one between two cells, the lower one."""
    cells = (x - origin) / layout.step[k]
    near = math.floor(cells + 0.5)
    return near if abs(cells - near) <= 1e-6 + 4e-16 * abs(cells) else math.ceil(cells - 0.5)


@kernel
def origin_of(layout, k, g):
    """Centre of a grid cell of values or changes; changes count from 0."""
    return layout.origin[k] if g < layout.change_start[0] else 0.0


@kernel
def decayed(rate, length):
    """Integral of exp(-abs(rate) s) over a length."""
    decay = abs(rate) * length
    return length if decay < _FLAT else -math.expm1(-decay) / abs(rate)


@kernel
def share_below(layout, s, x):
    """Share of a segment at or below x."""
    lo, hi, rate = layout.seg_lo[s], layout.seg_hi[s], layout.seg_rate[s]
    if x >= hi:
        return 1.0
    if x <= lo:
        return 0.0
    whole = decayed(rate, hi - lo)
    return decayed(rate, x - lo) / whole if rate >= 0.0 else 1.0 - decayed(rate, hi - x) / whole


@kernel
def code_below(layout, g, x):
    """Share of a code at or below x."""
    total = 0.0
    for s in range(layout.seg_start[g], layout.seg_start[g + 1]):
        total += layout.seg_share[s] * share_below(layout, s, x)
    return total


@kernel
def reach(layout, k, g, before):
    """Range of the values of code g after a value: what is above the first number and up to the second one."""
    # ``before`` is 0 for codes of values.
    low, high = layout.low[k] - before, layout.high[k] - before
    step = layout.step[k]
    if step == 0.0:
        return np.nextafter(low, -math.inf), high
    origin = origin_of(layout, k, g)
    return (
        origin + (math.ceil((low - origin) / step - 1e-6) - 0.5) * step,
        origin + (math.floor((high - origin) / step + 1e-6) + 0.5) * step,
    )


@kernel
def share_in_range(layout, k, g, before):
    """Share of a code that leads to values within the range."""
    low, high = reach(layout, k, g, before)
    first, last = layout.seg_start[g], layout.seg_start[g + 1] - 1
    if low <= layout.seg_lo[first] and layout.seg_hi[last] <= high and layout.seg_lo[first] < layout.seg_hi[last]:
        return 1.0
    if high < low:
        return 0.0
    return max(code_below(layout, g, high) - code_below(layout, g, low), 0.0)


@kernel
def range_weight(layout, k, g, before):
    """Share of a code that is within the range, and a little of what is beyond: see `OUT_OF_RANGE`."""
    return OUT_OF_RANGE + (1.0 - OUT_OF_RANGE) * share_in_range(layout, k, g, before)


@kernel
def range_factor(layout, k, g, before, x):
    """What the range multiplies the density of a value x inside its code by."""
    margin = 0.5 * layout.step[k]
    is_inside = layout.low[k] - margin <= x <= layout.high[k] + margin
    return (1.0 if is_inside else OUT_OF_RANGE) / range_weight(layout, k, g, before)


@kernel
def segment_of(layout, first, last, x):
    """The segment with x in it, of those from ``first`` to ``last``; of a point and an interval, the point."""
    low = first_at_least(layout.seg_hi, first, last, x)
    if low < last and layout.seg_lo[low + 1] == x and layout.seg_hi[low + 1] == x:
        return low + 1
    return low


@kernel
def change_of(layout, k, change):
    """Code of a change, from 1, and its base density there."""
    g, after = layout.change_start[k], layout.change_start[k + 1]
    step = layout.step[k]
    x = cell_of(layout, k, change, 0.0) * step if step > 0.0 else change
    s = segment_of(layout, layout.seg_start[g], layout.seg_start[after] - 1, x)
    lo, hi, rate, share = layout.seg_lo[s], layout.seg_hi[s], layout.seg_rate[s], layout.seg_share[s]
    code = layout.seg_code[s] + 1
    if lo == hi:
        return code, share
    whole, width = decayed(rate, hi - lo), step if step > 0.0 else 1.0
    away = (x - lo if rate >= 0.0 else hi - x) - 0.5 * step
    part = math.exp(-abs(rate) * away) * (decayed(rate, step) if step > 0.0 else 1.0) / whole
    return code, share * part / width


@kernel
def value_inside(layout, k, g, before, u):
    """The value within the range that has the share u of its code below it, after a value (0 for codes of values)."""
    low, _ = reach(layout, k, g, before)
    inside = share_in_range(layout, k, g, before)
    share = code_below(layout, g, low) + u * inside if inside > 0.0 else u
    s, last = layout.seg_start[g], layout.seg_start[g + 1] - 1
    while s < last and share > layout.seg_share[s]:
        share -= layout.seg_share[s]
        s += 1
    part = min(max(share / layout.seg_share[s], _INSIDE), 1.0 - _INSIDE)
    lo, hi, rate = layout.seg_lo[s], layout.seg_hi[s], layout.seg_rate[s]
    if lo == hi:
        return before + lo
    x = _point_at(lo, hi, rate, part)
    step = layout.step[k]
    if step > 0.0:
        origin = origin_of(layout, k, g)
        x = origin + cell_of(layout, k, x, origin) * step
        x = min(max(x, lo + 0.5 * step), hi - 0.5 * step)
    if inside > 0.0:
        return min(max(before + x, layout.low[k]), layout.high[k])
    return before + x


@kernel
def _point_at(lo, hi, rate, part):
    """The point of a segment with this share at or below it."""
    length = hi - lo
    if abs(rate) * length < _FLAT:
        return lo + part * length
    if rate > 0.0:
        return min(lo - math.log1p(part * math.expm1(-rate * length)) / rate, hi)
    if math.isinf(lo):
        return hi + math.log(part) / -rate
    return max(hi + math.log1p((1.0 - part) * math.expm1(rate * length)) / -rate, lo)


@kernel
def cells_within(layout, k, g, s, before):
    """First and last grid cell of a segment within the range; the last one is the lower one if there is none."""
    low, high = reach(layout, k, g, before)
    origin, step = origin_of(layout, k, g), layout.step[k]
    first = math.floor((max(low, layout.seg_lo[s]) - origin) / step + 1.0)
    last = math.floor((min(high, layout.seg_hi[s]) - origin) / step)
    return first, last


@kernel
def cell_share(layout, k, g, s, cell):
    """Share of a code that is in one grid cell of its segment."""
    centre, half = origin_of(layout, k, g) + cell * layout.step[k], 0.5 * layout.step[k]
    return layout.seg_share[s] * (share_below(layout, s, centre + half) - share_below(layout, s, centre - half))


# ---- Kernels: the distribution of one cell given everything before it.

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
def cell_target(layout, state, h, j, row):
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
    """Take from each change what leads out of the range of the values: these count `OUT_OF_RANGE` times."""
    total, kept = 0.0, 0.0
    for c in range(n):
        total += out[c]
        if c > 0:
            out[c] *= range_weight(layout, k, layout.change_start[k] + c - 1, reference)
        kept += out[c]
    for c in range(n):
        out[c] *= total / kept
