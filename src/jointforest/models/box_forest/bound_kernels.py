"""Kernels of branch and bound over boxes: a bound of the mixture's density in a box, and where to cut the box."""

from __future__ import annotations

import math

import numpy as np

from ...runtime.compile import array_kernel, entry, kernel
from .leaves.grid_kernels import cell_centre
from .leaves.level_kernels import log_level
from .leaves.piece_kernels import piece, piece_at
from .leaves.slot_kernels import find_atom
from .mode_kernels import cell_density, cell_mode, leaf_mode


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
    """A bound of the whole mixture from those of leaves: layers add up, each with at least exp(floor)."""
    layer_bounds(problem, leaf, bound)
    return log_total(problem.best_bound, floor)


@entry
def bound_halves(problem, box, left, right, j, leaf, bound, floor):
    """The leaves whose bound in the left half is above the floor, these bounds, and the same of the right half.

    ``bound`` is that of the leaves in the box, of which the halves differ in column j.
    """
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
    """A threshold that parts the values u and v of a slot, both in (lo, hi]; NaN if floats cannot.

    At the end of the support of v's leaf if that leaves u out, beside an atom, else half-way.
    """
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
    """Add what share of the bound a leaf loses in each column with ``point`` in place of its own best value.

    ``culprit`` notes which leaf loses most, ``worst`` how much.
    """
    columns, leaves = problem.columns, problem.leaves
    for j in range(problem.point.shape[0]):
        most = cell_mode(columns, leaves, problem.evidence, box, j, leaf)[1]
        lost = share * -math.expm1(cell_density(columns, leaves, j, leaf, problem.point[j]) - most)
        problem.loss[j] += lost
        if lost > problem.worst[j]:
            problem.worst[j], problem.culprit[j] = lost, leaf


@entry
def choose_cut(problem, box, leaf, bound):
    """Where to cut the box: column (-1: nothing to gain), threshold, levels; a likely point is left in ``point``.

    The point is the mode of the heaviest leaf. The column is the one in which the layers' best leaves would lose the
    greatest part of the bound at that point; the cut is between the point and the best value of the leaf that loses
    most.
    """
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


@array_kernel
def levels_with(columns, leaves, j, likely, row, x, y):
    """Which levels k go with x, (K,): p(k) / p(x) in leaf ``likely`` is at least p(k) / p(y) in leaf ``row``."""
    slot = columns.slot[j]
    goes = np.empty(columns.level_start[slot + 1] - columns.level_start[slot], np.uint8)
    for k in range(goes.shape[0]):
        gain = log_level(leaves, likely, slot, k) - log_level(leaves, likely, slot, int(x))
        goes[k] = gain >= log_level(leaves, row, slot, k) - log_level(leaves, row, slot, int(y))
    goes[int(x)], goes[int(y)] = 1, 0
    return goes
