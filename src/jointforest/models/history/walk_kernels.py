"""Kernels: histories with unknown cells, row after row, under hypotheses about what the unknown cells hold."""

# Every unknown cell splits a hypothesis into one for each code. Sums over at most ``cap`` hypotheses are exact. Of
# more, a stratified draw keeps ``cap``, with weights that leave every sum unbiased. Hypotheses share one past until a
# row has an unknown cell.

import math

from ...runtime.compile import entry, kernel
from ...runtime.random_kernels import start_stream, uniform
from .cell_kernels import (
    FLOOR,
    bin_of,
    cell_share,
    cell_target,
    cells_within,
    change_of,
    distribution,
    origin_of,
    range_factor,
    share_in_range,
    total_of,
    value_inside,
)
from .columns import PRESENT
from .group_kernels import ALL_BUT_LENGTH, NOTHING, PAST, find_groups, has_ended
from .memory_kernels import M_PREVIOUS, forget, move_past, remember

ENDLESS = 10**9
"""Number of rows of a history that goes on beyond all that were seen."""
_LEAST = 1e-12
"""Share of all weight below which a hypothesis is dropped."""
LAG = 64
"""Unknown cells after an unknown cell whose evidence counts for its distribution."""
_BLOCK = 8
"""Codes that a draw may skip at once."""
GOLDEN = 0.6180339887498949
"""Steps of this size spread over the unit interval evenly."""

# ---- Hypotheses: copying, weighing, choosing.


@kernel
def copy_hypothesis(layout, source, a, target, b, n_known):
    """Copy hypothesis a of a state to hypothesis b of another; of the row the first columns, which are known."""
    target.length[b], target.past[b] = source.length[a], source.past[a]
    for v in range(source.head.shape[1]):
        target.head[b, v] = source.head[a, v]
    for j in range(n_known):
        target.now[b, j] = source.now[a, j]
        target.change[b, j] = source.change[a, j]
        target.expected[b, j] = source.expected[a, j]
    for j in range(source.now.shape[1]):
        target.stay[b, j] = source.stay[a, j]
        if layout.change[j] >= 0:
            target.ahead[b, j] = source.ahead[a, j]
            target.next_value[b, j] = source.next_value[a, j]


@kernel
def _rescale(state, n):
    """Divide the weights by their sum, which is returned."""
    total = 0.0
    for h in range(n):
        total += state.weight[h]
    for h in range(n):
        state.weight[h] /= total
    return total


@kernel
def keep_candidates(scratch, state, n, n_codes, cap, is_drawn):
    """Choose among candidates (hypothesis, code): all, or ``cap`` stratified draws; returns number, whether all."""
    # Hypothesis h with code c has its weight times ``share[group[h], c]`` (times ``factor[h, c]`` when looking ahead).
    # With ``is_drawn`` there are always ``cap`` draws, because a value inside the code is drawn next.
    total = 0.0
    for h in range(n):
        total += state.weight[h] * mass_of(scratch, h, n_codes)
    if not is_drawn and count_candidates(scratch, state, n, n_codes, _LEAST * total, cap) <= cap:
        kept = 0
        for h in range(n):
            for c in range(codes_of_group(scratch, h, n_codes)):
                weight = candidate(scratch, state, h, c)
                if weight > _LEAST * total:
                    _keep(scratch, kept, h, c, weight)
                    kept += 1
        return kept, True
    # a point of its own in each of ``cap`` strata: evenly spaced points would take the same code under hypotheses of
    # equal weight
    last_h, last_c = last_candidate(scratch, state, n, n_codes, _LEAST * total)
    stratum = total / cap
    before, drawn, point, kept = 0.0, 0, stratum * uniform(scratch.random), 0
    for h in range(last_h + 1):
        up_to = before
        before += state.weight[h] * mass_of(scratch, h, n_codes)
        c = -1
        while c < codes_of_group(scratch, h, n_codes) - 1:
            if point >= before and h < last_h:
                break
            c += 1
            if h < last_h and c + _BLOCK <= n_codes and up_to + block_mass(scratch, state, h, c) <= point:
                up_to += block_mass(scratch, state, h, c)
                c += _BLOCK - 1
                continue
            up_to += candidate(scratch, state, h, c)
            is_last, first = h == last_h and c == last_c, drawn
            while drawn < cap and (point < up_to or is_last):
                if is_drawn:
                    _keep(scratch, kept, h, c, stratum)
                    kept += 1
                drawn += 1
                point = stratum * (drawn + uniform(scratch.random))
            if drawn > first and not is_drawn:
                _keep(scratch, kept, h, c, (drawn - first) * stratum)
                kept += 1
            if is_last:
                break
    return kept, False


@kernel
def mass_of(scratch, h, n_codes):
    """Sum of the distribution of a hypothesis, with its factors where draws look ahead."""
    g = scratch.group[0, h]
    if g < 0:
        return 1.0
    if scratch.next_known[1] == 0.0:
        return scratch.mass[g]
    total = 0.0
    for c in range(n_codes):
        total += scratch.share[g, c] * scratch.factor[h, c]
    return total


@kernel
def block_mass(scratch, state, h, c):
    """Weight of hypothesis h with any of the codes of a block from c on; infinite if they are not to be skipped."""
    g = scratch.group[0, h]
    if g < 0 or scratch.next_known[1] > 0.0:
        return math.inf
    share = scratch.share[g, c:]
    return state.weight[h] * ((share[0] + share[1] + share[2] + share[3]) + (share[4] + share[5] + share[6] + share[7]))


@kernel
def codes_of_group(scratch, h, n_codes):
    """Number of candidates of a hypothesis."""
    return n_codes if scratch.group[0, h] >= 0 else 1


@kernel
def candidate(scratch, state, h, c):
    """Weight of hypothesis h with code c."""
    g = scratch.group[0, h]
    if g < 0:
        return state.weight[h]
    weight = state.weight[h] * scratch.share[g, c]
    return weight * scratch.factor[h, c] if scratch.next_known[1] > 0.0 else weight


@kernel
def count_candidates(scratch, state, n, n_codes, least, most):
    """Number of candidates of more than this weight, or some number above ``most``."""
    found = 0
    for h in range(n):
        for c in range(codes_of_group(scratch, h, n_codes)):
            found += 1 if candidate(scratch, state, h, c) > least else 0
        if found > most:
            break
    return found


@kernel
def last_candidate(scratch, state, n, n_codes, least):
    """Hypothesis and code of the last candidate of more than this weight."""
    for h in range(n - 1, -1, -1):
        for c in range(codes_of_group(scratch, h, n_codes) - 1, -1, -1):
            if candidate(scratch, state, h, c) > least:
                return h, c
    return 0, 0


@kernel
def _keep(scratch, k, h, c, weight):
    """Note hypothesis h with code c as kept hypothesis k."""
    scratch.parent[k], scratch.code[k], scratch.kept[k] = h, c, weight


@kernel
def record_event(task, scratch, state, event, n):
    """Note the weights before an unknown cell, without factors of what lies ahead."""
    scratch.event_size[event] = n
    for h in range(n):
        weight = state.weight[h]
        if task.looks_ahead == 1:
            for j in range(state.ahead.shape[1]):
                weight /= state.ahead[h, j]
        scratch.event_weight[event, h] = weight


@kernel
def note_kept(scratch, event, k, code, value):
    """Note where the kept hypothesis k comes from, its code and value."""
    scratch.event_parent[event, k] = scratch.parent[k]
    scratch.event_code[event, k] = code
    scratch.event_value[event, k] = value


# ---- Head variables.


@kernel
def meet_head(conditionals, layout, scratch, state, n, v, code):
    """Weigh hypotheses by a known head variable; its probability given all before."""
    for h in range(n):
        distribution(conditionals, layout, v, state, h, 0, scratch.share[h])
        state.weight[h] *= max(scratch.share[h, code], FLOOR)
        state.head[h, v] = code
    return _rescale(state, n)


@kernel
def weigh_group(scratch, g, n_codes, weight, mode, marginal):
    """Take the code of missing cells out of the distribution of a group, if need be; add it to the marginal."""
    share = scratch.share[g]
    if mode == PRESENT:
        share[0] = 0.0
    scratch.mass[g] = total_of(share, n_codes)
    if weight > 0.0:
        for c in range(n_codes):
            marginal[c] += weight * share[c]


@kernel
def split_head(conditionals, layout, task, scratch, state, other, n, v, mode, event, marginal):
    """Split hypotheses by the codes of an unknown head variable but the length; how many, and if all are kept."""
    n_codes = conditionals.target_codes[v]
    record_event(task, scratch, state, event, n)
    for h in range(n):
        distribution(conditionals, layout, v, state, h, 0, scratch.share[h])
        scratch.group[0, h] = h
        weigh_group(scratch, h, n_codes, state.weight[h], mode, marginal)
    kept, is_all = keep_candidates(scratch, state, n, n_codes, task.cap, False)
    for k in range(kept):
        copy_hypothesis(layout, state, scratch.parent[k], other, k, 0)
        other.weight[k] = scratch.kept[k]
        other.head[k, v] = scratch.code[k]
        note_kept(scratch, event, k, scratch.code[k], math.nan)
    scratch.common[0] = PAST
    return kept, is_all


@kernel
def split_length(conditionals, layout, task, scratch, state, other, n, i, n_rows, event, marginal):
    """Split hypotheses by the number of rows: that of the known ones, or more; how many, and if all are kept."""
    v, n_lengths = layout.n_head - 1, task.length_number.shape[0]
    record_event(task, scratch, state, event, n)
    for h in range(n):
        # the distribution over codes becomes one over numbers of rows
        share, of_code = scratch.share[h], scratch.of_code
        distribution(conditionals, layout, v, state, h, 0, of_code)
        share[0] = of_code[task.own_code[i]] * task.own_share[i]
        scratch.mass[h], scratch.group[0, h] = share[0], h
        for c in range(n_lengths):
            is_more = task.length_number[c] > n_rows
            share[c + 1] = of_code[task.length_code[c]] * task.length_share[c] if is_more else 0.0
            scratch.mass[h] += share[c + 1]
    kept, is_all = keep_candidates(scratch, state, n, n_lengths + 1, task.cap, False)
    for k in range(kept):
        copy_hypothesis(layout, state, scratch.parent[k], other, k, 0)
        other.weight[k] = scratch.kept[k]
        c = scratch.code[k] - 1
        other.length[k] = task.length_number[c] if c >= 0 else n_rows
        code = task.length_code[c] if c >= 0 else task.own_code[i]
        other.head[k, v] = code
        marginal[code] += scratch.kept[k]
        note_kept(scratch, event, k, code, math.nan)
    return kept, is_all


# ---- Cells of rows.


@kernel
def _place_of(layout, k, code, is_change):
    """Place of a code of column of changes k in the lists of codes of the layout."""
    return (layout.change_start[k] if is_change else layout.edge_start[k]) + code - 1


@kernel
def drawn_value(layout, state, h, j, code, is_change, u):
    """Value at share u of a code of column j after hypothesis h; NaN if it is missing, or no changes are predicted."""
    k = layout.change[j]
    if k < 0 or code == 0:
        return math.nan
    before = state.value[state.past[h], j] if is_change else 0.0
    return value_inside(layout, k, _place_of(layout, k, code, is_change), before, u)


@kernel
def take_code(layout, state, h, j, code, is_change, x):
    """Set column j of the row under hypothesis h to a code, and to the value x if changes of it are predicted."""
    k = layout.change[j]
    state.now[h, j], state.change[h, j] = code, 0
    if k < 0 or code == 0:
        return
    if is_change:
        state.change[h, j], state.now[h, j] = code, bin_of(layout, k, x)
    state.next_value[h, j] = x


@kernel
def repeat_of(layout, state, h, j, code):
    """Probability that a cell of column j with this code has the value of the row before, under hypothesis h."""
    q = layout.repeat_at[j]
    return layout.repeat[q, code] if q >= 0 and code == state.memory[state.past[h], j, M_PREVIOUS] else 0.0


@kernel
def find_next_known(layout, histories, task, scratch, i, row, j):
    """Note the next known value of a column of changes after a row, and how near to it values of the row lie."""
    k = layout.change[j]
    scratch.next_known[1] = 0.0
    if task.looks_ahead == 0 or k < 0:
        return
    first = histories.start[i] + row
    for r in range(first + 1, histories.start[i + 1]):
        if histories.code[r, j] > 0:
            scratch.next_known[0] = histories.value[r, k]
            scratch.next_known[1] = 1.0 / (layout.spread[k] * math.sqrt(r - first))
            return


@kernel
def look_ahead(layout, scratch, state, n, j, row):
    """Fill the factors of all hypotheses: a Cauchy density of the distance from the next known value."""
    # It has heavy tails, so no hypothesis gets a large weight when its factor is taken out.
    d, k = layout.n_codes.shape[0], layout.change[j]
    for h in range(n):
        if scratch.group[0, h] < 0:
            continue
        is_change = cell_target(layout, state, h, j, row) >= layout.n_head + d
        n_codes = layout.change_start[k + 1] - layout.change_start[k] + 1 if is_change else layout.n_codes[j]
        before = state.value[state.past[h], j] if is_change else 0.0
        scratch.factor[h, 0] = 1.0
        for c in range(1, n_codes):
            x = before + layout.middle[_place_of(layout, k, c, is_change)]
            z = (x - scratch.next_known[0]) * scratch.next_known[1]
            scratch.factor[h, c] = 1.0 / (1.0 + z * z)


@kernel
def forget_ahead(layout, state, n, j):
    """Take the factors of an earlier cell of column j out of the weights."""
    if layout.change[j] < 0:
        return
    for h in range(n):
        state.weight[h] /= state.ahead[h, j]
        state.ahead[h, j] = 1.0


@kernel
def keep_values(layout, scratch, state, n, j, row, n_codes, cap):
    """Choose among the candidates (hypothesis, code, value) of a column of changes; how many, and if all are kept."""
    # On a grid all of them are kept if they are no more than ``cap``; else ``cap`` are drawn.
    if layout.step[layout.change[j]] > 0.0:
        kept = keep_cells(layout, scratch, state, n, j, row, n_codes, cap)
        if kept > 0:
            return kept, True
    kept, _ = keep_candidates(scratch, state, n, n_codes, cap, True)
    for i in range(kept):
        h = scratch.parent[i]
        is_change = cell_target(layout, state, h, j, row) >= layout.n_head + layout.n_codes.shape[0]
        u = uniform(scratch.random)
        scratch.kept_value[i] = drawn_value(layout, state, h, j, scratch.code[i], is_change, u)
    return kept, False


@kernel
def keep_cells(layout, scratch, state, n, j, row, n_codes, cap):
    """Keep every hypothesis with every value of a column on a grid; how many, 0 if they are more than ``cap``."""
    k, d, kept, total = layout.change[j], layout.n_codes.shape[0], 0, 0.0
    for h in range(n):
        total += state.weight[h] * mass_of(scratch, h, n_codes)
    for h in range(n):
        is_change = cell_target(layout, state, h, j, row) >= layout.n_head + d
        before = state.value[state.past[h], j] if is_change else 0.0
        for c in range(codes_of_group(scratch, h, n_codes)):
            weight = candidate(scratch, state, h, c)
            if weight <= _LEAST * total:
                continue
            if c == 0:
                if kept == cap:
                    return 0
                scratch.kept_value[kept] = math.nan
                _keep(scratch, kept, h, c, weight)
                kept += 1
                continue
            g = _place_of(layout, k, c, is_change)
            inside = share_in_range(layout, k, g, before)
            for s in range(layout.seg_start[g], layout.seg_start[g + 1]):
                first, last = cells_within(layout, k, g, s, before)
                if inside <= 0.0 or last < first:
                    continue
                if kept + (last - first + 1) > cap:
                    return 0
                for i in range(int(last - first) + 1):
                    share = cell_share(layout, k, g, s, first + i) / inside
                    if weight * share > _LEAST * total:
                        centre = origin_of(layout, k, g) + (first + i) * layout.step[k]
                        scratch.kept_value[kept] = before + centre
                        _keep(scratch, kept, h, c, weight * share)
                        kept += 1
    return kept


@kernel
def split_cell(conditionals, layout, task, scratch, state, other, n, j, row, mode, event, marginal):
    """Split hypotheses by the codes of an unknown cell; how many, and if all are kept."""
    # Hypotheses that have ended before the row keep a single code, 0.
    d = layout.n_codes.shape[0]
    widest = max(layout.n_codes[j], conditionals.target_codes[layout.n_head + d + j])
    is_value = layout.change[j] < 0
    forget_ahead(layout, state, n, j)
    record_event(task, scratch, state, event, n)
    n_groups = find_groups(conditionals, layout, scratch, state, n, j, row)
    for g in range(n_groups):
        scratch.kept[g] = 0.0
    for h in range(n):
        if scratch.group[0, h] >= 0:
            scratch.kept[scratch.group[0, h]] += state.weight[h]
    for g in range(n_groups):
        n_codes = conditionals.target_codes[cell_target(layout, state, scratch.group[1, g], j, row)]
        for c in range(n_codes, widest):
            scratch.share[g, c] = 0.0
        weigh_group(scratch, g, widest, scratch.kept[g] if is_value else 0.0, mode, marginal)
    if scratch.next_known[1] > 0.0:
        look_ahead(layout, scratch, state, n, j, row)
    if is_value:
        kept, is_all = keep_candidates(scratch, state, n, widest, task.cap, False)
    else:
        kept, is_all = keep_values(layout, scratch, state, n, j, row, widest, task.cap)
    for k in range(kept):
        h, x = scratch.parent[k], math.nan if is_value else scratch.kept_value[k]
        copy_hypothesis(layout, state, h, other, k, j + 1)
        other.weight[k] = scratch.kept[k]
        if scratch.next_known[1] > 0.0 and scratch.group[0, h] >= 0:
            other.ahead[k, j] = scratch.factor[h, scratch.code[k]]
        is_change = cell_target(layout, state, h, j, row) >= layout.n_head + d
        take_code(layout, other, k, j, scratch.code[k], is_change, x)
        other.stay[k, j] *= repeat_of(layout, state, h, j, scratch.code[k])
        note_kept(scratch, event, k, other.now[k, j], x)
        if not is_value and not has_ended(layout, state, h, row):
            marginal[other.now[k, j]] += scratch.kept[k]
    scratch.common[0], scratch.next_known[1] = min(scratch.common[0], PAST), 0.0
    scratch.differs[j] = 1
    return kept, is_all


@kernel
def meet_cell(conditionals, layout, histories, scratch, state, n, r, j, row):
    """Weigh hypotheses by a known cell; its probability given all before."""
    # Where an earlier cell of a column of changes was unknown, hypotheses differ in the change that leads to the value.
    d, k = layout.n_codes.shape[0], layout.change[j]
    forget_ahead(layout, state, n, j)
    find_groups(conditionals, layout, scratch, state, n, j, row)
    for h in range(n):
        code, density = histories.code[r, j], 1.0
        state.now[h, j], state.change[h, j] = code, 0
        if k >= 0 and code > 0:
            x, before = histories.value[r, k], 0.0
            state.next_value[h, j] = x
            is_change = cell_target(layout, state, h, j, row) >= layout.n_head + d
            if is_change:
                before, code = state.value[state.past[h], j], histories.change[r, k]
                if scratch.differs[j]:
                    code, density = change_of(layout, k, x - before)
                    density /= math.exp(histories.base[r, k])
                state.change[h, j] = code
            density *= range_factor(layout, k, _place_of(layout, k, code, is_change), before, x)
        elif layout.repeat_at[j] >= 0:
            q, stays = layout.repeat_at[j], state.stay[h, j] * repeat_of(layout, state, h, j, code)
            density = (1.0 - stays) * histories.fresh[r, q] + stays * histories.again[r, q]
            state.stay[h, j] = 1.0 if code > 0 else 0.0
        state.weight[h] *= max(scratch.share[scratch.group[0, h], code] * density, FLOOR)
    return _rescale(state, n)


@kernel
def expects_differ(layout, state, n):
    """Whether hypotheses differ in an expected code of the row."""
    for j in range(layout.expect_root.shape[0]):
        if layout.expect_root[j] >= 0:
            for h in range(1, n):
                if state.expected[h, j] != state.expected[0, j]:
                    return True
    return False


@kernel
def remember_row(layout, scratch, state, n, row, is_split, base, room):
    """Add the row to the pasts of all hypotheses; returns the position of the first past."""
    # Hypotheses that differ in the row get pasts of their own, in the free half of the room.
    if not (is_split or (scratch.common[0] == PAST and expects_differ(layout, state, n))):
        for h in range(n if scratch.common[0] == NOTHING else 1):
            remember(state, h, row)
        return base
    base = room - base
    for h in range(n):
        move_past(state, h, base + h)
        remember(state, h, row)
    scratch.common[0] = NOTHING
    return base


# ---- What is known at the end.


@kernel
def note_ends(layout, state, n, n_rows, ends):
    """Probabilities that the history ends after its known rows, after one more, ..."""
    last = ends.shape[0] - 1
    for s in range(last + 1):
        ends[s] = 0.0
    for h in range(n):
        after = state.length[h] - n_rows if layout.has_length == 1 else last
        ends[min(max(after, 0), last)] += state.weight[h]


@kernel
def go_on(layout, state, n, n_rows):
    """Given that there is a row after the known ones, drop hypotheses under which there is none."""
    if layout.has_length == 0:
        return
    left = 0.0
    for h in range(n):
        left += state.weight[h] if state.length[h] > n_rows else 0.0
    for h in range(n):
        if left == 0.0:
            state.length[h] = n_rows + ENDLESS
        elif state.length[h] <= n_rows:
            state.weight[h] = 0.0
    _rescale(state, n)


@kernel
def look_back(scratch, n_events, n_smoothed, first, marginal, mean):
    """Distributions and mean values of unknown cells given later known cells, by the paths of the hypotheses."""
    # ``n_smoothed`` unknown cells are followed by known ones; ``first`` is the row of the first one in ``marginal``.
    block = 0
    while block < n_events:
        end = min(block + LAG, n_events)
        anchor = min(end + LAG, n_events)
        for e in range(block, end):
            mean[first + e] = 0.0
            if e < n_smoothed:
                for c in range(marginal.shape[1]):
                    marginal[first + e, c] = 0.0
        for h in range(scratch.event_size[anchor]):
            at, weight = h, scratch.event_weight[anchor, h]
            for e in range(anchor - 1, block - 1, -1):
                if e < end:
                    mean[first + e] += weight * scratch.event_value[e, at]
                    if e < n_smoothed:
                        marginal[first + e, scratch.event_code[e, at]] += weight
                at = scratch.event_parent[e, at]
        block = end


@kernel
def normalise(marginal):
    """Make a distribution of weights."""
    total = 0.0
    for c in range(marginal.shape[0]):
        total += marginal[c]
    if total > 0.0:
        for c in range(marginal.shape[0]):
            marginal[c] /= total


@kernel
def draw_paths(scratch, state, n, n_events, n_draws, i, found):
    """Draw hypotheses by their weights, systematically, and note their codes; neighbouring draws are far apart."""
    first = found.cell_start[i]
    point, up_to, h = uniform(scratch.random), 0.0, -1
    stride = coprime_near(int(GOLDEN * n_draws), n_draws)
    for number in range(n_draws):
        draw = (number * stride) % n_draws
        while h < n - 1 and (h < 0 or up_to * n_draws <= point):
            h += 1
            up_to += state.weight[h]
        found.draw_length[i, draw] = state.length[h]
        at = h
        for e in range(n_events - 1, -1, -1):
            found.draw_code[first + e, draw] = scratch.event_code[e, at]
            if found.draw_value.shape[1] > 0:
                found.draw_value[first + e, draw] = scratch.event_value[e, at]
            at = scratch.event_parent[e, at]
        point += 1.0


@kernel
def coprime_near(k, n):
    """Least number from k on that has no factor in common with n."""
    k = max(k, 1)
    while True:
        a, b = n, k
        while b:
            a, b = b, a % b
        if a == 1:
            return k
        k += 1


@entry
def walk(conditionals, layout, histories, task, scratch, state, other, found):
    """Answer questions about subjects with unknown cells, with ``cap`` hypotheses, into ``found``."""
    d = layout.n_codes.shape[0]
    for i in range(histories.start.shape[0] - 1):
        start_stream(scratch.random, task.seed, task.number[i])
        n_rows = histories.start[i + 1] - histories.start[i]
        n, event, smoothed, log_likelihood, exact = 1, 0, 0, 0.0, 1
        first, base, scratch.common[0] = found.cell_start[i], 0, ALL_BUT_LENGTH
        forget(state, 0)
        state.weight[0], state.length[0] = 1.0, max(histories.length[i], 0)
        for j in range(d):
            scratch.differs[j], state.ahead[0, j] = 0, 1.0
        for v in range(layout.n_head):
            code = histories.head[i, v]
            if code >= 0:
                total = meet_head(conditionals, layout, scratch, state, n, v, code)
                found.of_head[i, v] = math.log(total)
                log_likelihood += math.log(total)
                smoothed = event
                continue
            marginal = found.marginal[(first + event) * task.marginals]
            if layout.has_length == 1 and v == layout.n_head - 1:
                n, is_all = split_length(
                    conditionals, layout, task, scratch, state, other, n, i, n_rows, event, marginal
                )
            else:
                n, is_all = split_head(conditionals, layout, task, scratch, state, other, n, v, code, event, marginal)
            state, other = other, state
            found.cell[first + event] = v
            event += 1
            exact = exact if is_all else 0
            total = _rescale(state, n)
            if layout.has_length == 1 and v == layout.n_head - 1:
                found.of_head[i, v] = math.log(total)  # there are as many rows as are known
            log_likelihood += math.log(total)
        for row in range(n_rows + task.steps[i]):
            so_far, scratch.context[:] = event, -1
            if row == n_rows:
                note_ends(layout, state, n, n_rows, found.ends[i])
                go_on(layout, state, n, n_rows)
            if row >= n_rows and all_ended(layout, state, n, row):
                break
            for j in range(d):
                code = histories.code[histories.start[i] + row, j] if row < n_rows else -1
                if code >= 0:
                    r = histories.start[i] + row
                    total = meet_cell(conditionals, layout, histories, scratch, state, n, r, j, row)
                    found.of_cell[r, j] = math.log(total)
                    log_likelihood += math.log(total)
                    smoothed = event
                    continue
                find_next_known(layout, histories, task, scratch, i, row, j)
                n, is_all = split_cell(
                    conditionals, layout, task, scratch, state, other, n, j, row, code, event,
                    found.marginal[(first + event) * task.marginals],
                )  # fmt: skip
                state, other = other, state
                found.cell[first + event] = layout.n_head + row * d + j
                event += 1
                exact = exact if is_all else 0
                log_likelihood += math.log(_rescale(state, n))
            if row < n_rows + task.steps[i] - 1:
                base = remember_row(layout, scratch, state, n, row, event > so_far, base, task.cap + 1)
        if task.steps[i] == 0:
            note_ends(layout, state, n, n_rows, found.ends[i])
        record_event(task, scratch, state, event, n)
        if task.marginals == 1:
            look_back(scratch, event, smoothed, first, found.marginal, found.mean)
            for e in range(event):
                normalise(found.marginal[first + e])
        draw_paths(scratch, state, n, event, task.n_draws, i, found)
        found.log_likelihood[i], found.exact[i] = log_likelihood, exact


@kernel
def all_ended(layout, state, n, row):
    """Whether no hypothesis has such a row."""
    left = 0
    for h in range(n):
        left += 0 if has_ended(layout, state, h, row) else 1
    return left == 0
