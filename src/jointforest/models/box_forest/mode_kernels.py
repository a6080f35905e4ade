"""Kernels of the search for modes: points of greatest density in leaves, and bounds of the density in boxes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.records import record
from .descent_kernels import cell_region, in_region, reachable
from .leaves.family_kernels import mode
from .leaves.grid_kernels import cell_centre, centres_inside
from .leaves.level_kernels import log_level
from .leaves.slot_kernels import find_atom, has_atom, piece, piece_at, piece_numbers, value_log_density


@kernel
def run_mode(columns, s, d, u, v):
    """Where a density is greatest within the run (u, v], which has a part of the support; next to its end."""
    step, x = columns.step[s], mode(d, u, v)
    if step > 0.0:
        first, last = centres_inside(u, v, step, columns.origin[s])
        return min(max(cell_centre(step, columns.origin[s], x), first), last)
    x = max(x, np.nextafter(u, math.inf))
    if find_atom(columns, s, x) >= 0:  # there the density of the rest does not count
        x = np.nextafter(x, math.inf) if x < v else np.nextafter(x, -math.inf)
    return x


@kernel
def slot_mode(columns, leaves, evidence, l, s, region, lo, hi):  # noqa: E741
    """The value of slot s of greatest log density in leaf l within the region and (lo, hi]; that density."""
    best, mode = -math.inf, math.nan
    first, end = (0, 1) if region < 0 else (evidence.run_start[region], evidence.run_start[region + 1])
    for run in range(first, end):
        u = lo if region < 0 else max(lo, evidence.run_lo[run])
        v = hi if region < 0 else min(hi, evidence.run_hi[run])
        _, stop = piece_numbers(leaves, l, s)
        for k in range(piece_at(leaves, l, s, u), stop):
            d, _ = piece(leaves, l, s, k)
            low, high = max(u, d.lo), min(v, d.hi)
            if not high - low > 0.5 * columns.step[s]:  # less is rounding
                if d.lo >= v:
                    break
                continue
            x = run_mode(columns, s, d, low, high)
            if columns.step[s] == 0.0 and not low < x <= high:  # nothing but an atom is there
                continue
            density = value_log_density(columns, leaves, l, s, x, find_atom(columns, s, x))
            if density > best:
                best, mode = density, x
    start = columns.atom_start[s]
    for k in range(columns.atom_start[s + 1] - start):
        x = columns.atom_value[start + k]
        if lo < x <= hi and has_atom(evidence, region, k):
            density = value_log_density(columns, leaves, l, s, x, np.int64(k))
            if density > best:
                best, mode = density, x
    return mode, best


@kernel
def cell_density(columns, leaves, j, l, x):  # noqa: E741
    """Log density of the value x of column j in parameter row l."""
    slot = columns.slot[j]
    if columns.is_categorical[j]:
        return log_level(leaves, l, slot, int(x))
    return value_log_density(columns, leaves, l, slot, x, find_atom(columns, slot, x))


@kernel
def cell_mode(columns, leaves, evidence, box, j, l):  # noqa: E741
    """The value of column j of greatest log density in parameter row l within evidence and box, and that density."""
    x, slot = evidence.value[0, j], columns.slot[j]
    if x == x:
        return x, cell_density(columns, leaves, j, l, x)
    if not columns.is_categorical[j]:
        region = cell_region(evidence, np.int64(0), j)
        return slot_mode(columns, leaves, evidence, l, slot, region, box.lo[slot], box.hi[slot])
    best, mode = -math.inf, math.nan
    first = columns.level_start[slot]
    for k in range(columns.level_start[slot + 1] - first):
        if box.allowed[first + k]:
            density = log_level(leaves, l, slot, k)
            if density > best:
                best, mode = density, float(k)
    return mode, best


@kernel
def leaf_mode(problem, box, leaf, x):
    """Write the point of greatest density of a leaf in the box into x; return its log density, weight included."""
    columns, leaves, evidence = problem.columns, problem.leaves, problem.evidence
    total = leaves.log_weight[leaf]
    for j in range(x.shape[0]):
        x[j], log_density = cell_mode(columns, leaves, evidence, box, j, leaf)
        total += log_density
    return total


@entry
def leaf_modes(problem, box):
    """Leaves with density, int32 (n,); a point of greatest density of each, (n, d); the log density there, (n,)."""
    leaf = problem.reached
    n = reachable(problem.columns, problem.trees, problem.evidence, np.int64(0), problem.stack, leaf)
    point, log_bound = np.empty((n, problem.point.shape[0]), np.float64), np.empty(n, np.float64)
    kept = 0
    for i in range(n):
        log_bound[kept] = leaf_mode(problem, box, leaf[i], point[kept])
        if log_bound[kept] > -math.inf:
            leaf[kept] = leaf[i]
            kept += 1
    return leaf[:kept].copy(), point[:kept].copy(), log_bound[:kept].copy()


@entry
def leaves_of_rows(columns, trees, evidence, stack, out):
    """The leaves that each complete row is in, into ``out``, int32 (n, T); it is in one of a layer at most."""
    # ``stack`` is scratch of `reachable`.
    for i in range(out.shape[0]):
        reachable(columns, trees, evidence, i, stack, out[i])
    return out


# ---- Kernels: the best value of one column in a mixture of parameter rows.

PEAKS = 64
"""Parameter rows whose peaks and ends of support are tried, those of the greatest peaks."""
_STEPS = 48
"""Golden sections: an interval shrinks to 1e-10 of itself."""
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@record
class _PeakScratch(NamedTuple):
    """Scratch of one column: the greatest peaks, their parameter rows, and the places that are tried.

    peak : float64 array (PEAKS,), descending
    of : int64 array (PEAKS,)
    place : float64 array (3 * PEAKS + 64,), ascending. Peaks and ends of support of each row, and atoms.
    """

    peak: np.ndarray
    of: np.ndarray
    place: np.ndarray


def tried_scratch() -> _PeakScratch:
    """Scratch for `best_number`."""
    return _PeakScratch(np.empty(PEAKS), np.empty(PEAKS, np.int64), np.empty(3 * PEAKS + 64))


@kernel
def mixture_log_density(columns, leaves, j, row, log_weight, x):
    """Log of the sum over parameter rows of exp(log_weight) times the density of the value x of column j."""
    top, total = -math.inf, 0.0
    for i in range(row.shape[0]):
        density = log_weight[i] + cell_density(columns, leaves, j, row[i], x)
        if density > top:
            total = total * math.exp(top - density) + 1.0 if top > -math.inf else 1.0
            top = density
        elif density > -math.inf:
            total += math.exp(density - top)
    return top + math.log(total) if top > -math.inf else top


@entry
def best_level(problem, box, j, row, log_weight, x):
    """The allowed level of greatest mass, and its log density; x if no other is better."""
    columns, leaves = problem.columns, problem.leaves
    start = columns.level_start[columns.slot[j]]
    best = mixture_log_density(columns, leaves, j, row, log_weight, x)
    for k in range(columns.level_start[columns.slot[j] + 1] - start):
        if box.allowed[start + k]:
            density = mixture_log_density(columns, leaves, j, row, log_weight, float(k))
            if density > best:
                best, x = density, float(k)
    return x, best


@kernel
def add_greatest(greatest, at, n, x, i):
    """Insert x, of place i, into the n greatest numbers (descending) if it is one of them; return their number."""
    k = n
    if n == greatest.shape[0]:
        if not x > greatest[n - 1]:
            return n
        k = n - 1
    last = k
    while k > 0 and x > greatest[k - 1]:
        greatest[k], at[k] = greatest[k - 1], at[k - 1]
        k -= 1
    greatest[k], at[k] = x, i
    return last + 1


@kernel
def add_place(place, n, x):
    """Put x among the n places, which ascend, unless it is there; return how many there are."""
    k = n
    while k > 0 and place[k - 1] > x:
        k -= 1
    if k > 0 and place[k - 1] == x:
        return n
    for i in range(n, k, -1):
        place[i] = place[i - 1]
    place[k] = x
    return n + 1


@kernel
def find_places(problem, box, j, row, log_weight, tried):
    """Write peaks, ends of support and atoms that agree with the evidence to ``tried.place``; return how many."""
    # They ascend, each once.
    columns, leaves, evidence, place = problem.columns, problem.leaves, problem.evidence, tried.place
    slot, region = columns.slot[j], cell_region(evidence, np.int64(0), j)
    n_peaks, n = np.int64(0), np.int64(0)
    for i in range(row.shape[0]):
        peak = log_weight[i] + cell_mode(columns, leaves, evidence, box, j, row[i])[1]
        if peak > -math.inf:
            n_peaks = add_greatest(tried.peak, tried.of, n_peaks, peak, i)
    for i in tried.of[:n_peaks]:
        peak = cell_mode(columns, leaves, evidence, box, j, row[i])[0]
        n = add_place(place, n, peak)
        d, _ = piece(leaves, row[i], slot, piece_at(leaves, row[i], slot, peak))
        u, v = d.lo, d.hi
        half = 0.5 * columns.step[slot]
        for x in (u + half if half > 0.0 else np.nextafter(u, math.inf), v - half):
            if abs(x) < math.inf and (region < 0 or in_region(columns, evidence, slot, region, x)):
                n = add_place(place, n, x)
    start = columns.atom_start[slot]
    for k in range(columns.atom_start[slot + 1] - start):
        if has_atom(evidence, region, k):
            n = add_place(place, n, columns.atom_value[start + k])
    return n


@kernel
def _centre_of_cell(columns, slot, x):
    """The centre of x's cell; x itself without grid."""
    return cell_centre(columns.step[slot], columns.origin[slot], x) if columns.step[slot] > 0.0 else x


@kernel
def golden_section(problem, j, row, log_weight, lo, hi, x, best):
    """The best of x, of log density ``best``, and the points of a golden section of lo..hi; its log density."""
    columns, leaves, evidence = problem.columns, problem.leaves, problem.evidence
    slot, region = columns.slot[j], cell_region(evidence, np.int64(0), j)
    for _ in range(_STEPS):
        width = _GOLDEN * (hi - lo)
        u, v = _centre_of_cell(columns, slot, hi - width), _centre_of_cell(columns, slot, lo + width)
        at_u = mixture_log_density(columns, leaves, j, row, log_weight, u)
        at_v = mixture_log_density(columns, leaves, j, row, log_weight, v)
        for y, density in ((u, at_u), (v, at_v)):
            held = region < 0 or in_region(columns, evidence, slot, region, y)
            if density > best and held:
                best, x = density, y
        if at_u > at_v:
            hi = lo + width
        else:
            lo = hi - width
        if hi - lo < 0.5 * columns.step[slot]:
            break
    return x, best


@entry
def best_number(problem, box, j, row, log_weight, tried, x):
    """A number that agrees with the evidence and is at least as good as x, and its log density."""
    # The best of the places, then golden sections between it and its neighbours. ``tried`` is scratch.
    columns, leaves = problem.columns, problem.leaves
    n = find_places(problem, box, j, row, log_weight, tried)
    best = mixture_log_density(columns, leaves, j, row, log_weight, x)
    for y in tried.place[:n]:
        density = mixture_log_density(columns, leaves, j, row, log_weight, y)
        if density > best:
            best, x = density, y
    below, above = math.nan, math.nan
    for y in tried.place[:n]:
        if y < x:
            below = y
        elif y > x and above != above:
            above = y
    if below == below:
        x, best = golden_section(problem, j, row, log_weight, below, x, x, best)
    if above == above:
        x, best = golden_section(problem, j, row, log_weight, x, above, x, best)
    return x, best


# ---- Kernels of branch and bound over boxes: a bound of the mixture's density in a box, and where to cut the box.


@kernel
def layer_bounds(problem, leaf, bound):
    """Write the greatest bound of each layer's leaves to ``best_bound``, and its place in the list to ``best_leaf``."""
    layer, best, at = problem.layer, problem.best_bound, problem.best_leaf
    for t in range(best.shape[0]):
        best[t], at[t] = -math.inf, -1
    for i in range(leaf.shape[0]):
        t = layer[leaf[i]]
        if bound[i] > best[t]:
            best[t], at[t] = bound[i], i


@kernel
def log_total(best, floor):
    """Log of the sum over layers, each with at least exp(floor)."""
    top = floor
    for t in range(best.shape[0]):
        top = max(top, best[t])
    if top == -math.inf:
        return top
    total = 0.0
    for t in range(best.shape[0]):
        total += math.exp(max(best[t], floor) - top)
    return top + math.log(total)


@entry
def mixture_bound(problem, leaf, bound, floor):
    """A bound of the mixture from those of leaves: layers add up, each with at least exp(floor)."""
    layer_bounds(problem, leaf, bound)
    return log_total(problem.best_bound, floor)


@entry
def bound_halves(problem, box, left, right, j, leaf, bound, floor):
    """The leaves whose bound in the left half is above the floor, these bounds, and the same of the right half."""
    # ``bound`` is that of the leaves in the box, of which the halves differ in column j.
    columns, leaves, evidence = problem.columns, problem.leaves, problem.evidence
    kept, new = np.empty((2, leaf.shape[0]), np.int32), np.empty((2, leaf.shape[0]), np.float64)
    n_left, n_right = 0, 0
    for i in range(leaf.shape[0]):
        if bound[i] <= floor:
            continue
        others = bound[i] - cell_mode(columns, leaves, evidence, box, j, leaf[i])[1]
        total_left = others + cell_mode(columns, leaves, evidence, left, j, leaf[i])[1]
        total_right = others + cell_mode(columns, leaves, evidence, right, j, leaf[i])[1]
        if total_left > floor:
            kept[0, n_left], new[0, n_left] = leaf[i], min(total_left, bound[i])
            n_left += 1
        if total_right > floor:
            kept[1, n_right], new[1, n_right] = leaf[i], min(total_right, bound[i])
            n_right += 1
    return kept[0, :n_left].copy(), new[0, :n_left].copy(), kept[1, :n_right].copy(), new[1, :n_right].copy()


@kernel
def number_cut(columns, s, lo, hi, u, v, support_lo, support_hi):
    """A threshold that parts the values u and v of a slot, both in (lo, hi]; NaN if floats cannot."""
    # At the end of the support of v's leaf if that leaves u out, beside an atom, else half-way.
    least, most = min(u, v), max(u, v)
    step = columns.step[s]
    cut = least + 0.5 * (most - least)
    if step == 0.0 and (find_atom(columns, s, u) >= 0 or find_atom(columns, s, v) >= 0):
        at = u if find_atom(columns, s, u) >= 0 else v
        cut = at if at == least else np.nextafter(at, -math.inf)
    elif least <= support_lo < most and u <= support_lo:
        cut = support_lo
    elif least <= support_hi < most and u > support_hi:
        cut = support_hi
    elif step > 0.0:
        cut = cell_centre(step, columns.origin[s], cut - 0.5 * step) + 0.5 * step
    if not least <= cut < most:
        cut = least if step == 0.0 else least + 0.5 * step
    return cut if least <= cut < most and lo < cut < hi else math.nan


@kernel
def add_losses(problem, box, leaf, share):
    """Add what share of the bound a leaf loses in each column with ``point`` in place of its own best value."""
    # ``culprit`` notes which leaf loses most, ``worst`` how much.
    columns, leaves = problem.columns, problem.leaves
    for j in range(problem.point.shape[0]):
        most = cell_mode(columns, leaves, problem.evidence, box, j, leaf)[1]
        lost = share * -math.expm1(cell_density(columns, leaves, j, leaf, problem.point[j]) - most)
        problem.loss[j] += lost
        if lost > problem.worst[j]:
            problem.worst[j], problem.culprit[j] = lost, leaf


@entry
def choose_cut(problem, box, leaf, bound):
    """Where to cut the box: column (-1: nothing to gain), threshold, levels; writes a likely point to ``point``."""
    # The point is the mode of the heaviest leaf. The column is the one in which the layers' best leaves lose most of
    # the bound there; the cut is between the point and the best value of the leaf that loses most.
    columns, leaves, x, loss = problem.columns, problem.leaves, problem.point, problem.loss
    layer_bounds(problem, leaf, bound)
    best, at = problem.best_bound, problem.best_leaf
    total = log_total(best, -math.inf)
    heaviest = leaf[at[largest(best)]]
    leaf_mode(problem, box, heaviest, x)
    loss[:], problem.worst[:], problem.culprit[:] = 0.0, 0.0, -1
    for t in range(at.shape[0]):
        if at[t] >= 0:
            add_losses(problem, box, leaf[at[t]], math.exp(best[t] - total))
    while True:
        j = largest(loss)
        if not loss[j] > 0.0:
            return -1, 0.0, np.empty(0, np.uint8)
        row, slot = problem.culprit[j], columns.slot[j]
        y = cell_mode(columns, leaves, problem.evidence, box, j, row)[0]
        if columns.is_categorical[j]:
            return j, 0.0, levels_with(columns, leaves, j, heaviest, row, x[j], y)
        d, _ = piece(leaves, row, slot, piece_at(leaves, row, slot, y))
        cut = number_cut(columns, slot, box.lo[slot], box.hi[slot], x[j], y, d.lo, d.hi)
        if cut == cut:
            return j, cut, np.empty(0, np.uint8)
        loss[j] = 0.0


@kernel
def largest(x):
    """Where the first of the greatest numbers is."""
    best = np.int64(0)
    for i in range(1, x.shape[0]):
        if x[i] > x[best]:
            best = np.int64(i)
    return best


@kernel
def levels_with(columns, leaves, j, likely, row, x, y):
    """Which levels k go with x, (K,): p(k) / p(x) in leaf ``likely`` is at least p(k) / p(y) in leaf ``row``."""
    slot = columns.slot[j]
    goes = np.empty(columns.level_start[slot + 1] - columns.level_start[slot], np.uint8)
    for k in range(goes.shape[0]):
        gain = log_level(leaves, likely, slot, k) - log_level(leaves, likely, slot, int(x))
        goes[k] = gain >= log_level(leaves, row, slot, k) - log_level(leaves, row, slot, int(y))
    goes[int(x)], goes[int(y)] = 1, 0
    return goes
