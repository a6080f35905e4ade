"""Kernels of branch and bound over boxes: a bound of the mixture's density in a box, and where to cut the box."""

from __future__ import annotations

import math

import numpy as np

from ...runtime.compile import array_kernel, entry, kernel
from .circuit_kernels import has_circuit, share_out
from .leaves.grid_kernels import cell_centre
from .leaves.level_kernels import log_level
from .leaves.slot_kernels import find_atom
from .leaves.table import FACTORS
from .mode_kernels import cell_density, cell_mode, circuit_mode, leaf_mode


@kernel
def tree_bounds(problem, leaf, bound):
    """Write the greatest bound of each tree's leaves to ``best_bound``, and its place in the list to ``best_leaf``."""
    tree, best, at = problem.leaves.tree, problem.best_bound, problem.best_leaf
    for t in range(best.shape[0]):
        best[t], at[t] = -math.inf, -1
    for i in range(leaf.shape[0]):
        t = tree[leaf[i]]
        if bound[i] > best[t]:
            best[t], at[t] = bound[i], i


@kernel
def log_total(best, floor):
    """Log of the sum over trees, each with at least exp(floor)."""
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
    """A bound of the whole mixture from those of leaves: trees add up, each with at least exp(floor)."""
    tree_bounds(problem, leaf, bound)
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
        if has_circuit(leaves, leaf[i]):
            total_left = leaves.log_weight[leaf[i]] + circuit_mode(problem, left, leaf[i], problem.other)
            total_right = leaves.log_weight[leaf[i]] + circuit_mode(problem, right, leaf[i], problem.other)
        else:
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
def add_loss(problem, box, j, row, share):
    """Add what share of the bound a parameter row loses with ``point[j]`` in place of its own best value.

    ``culprit`` notes which row loses most, ``worst`` how much.
    """
    columns, leaves = problem.columns, problem.leaves
    most = cell_mode(columns, leaves, problem.evidence, box, j, row)[1]
    lost = share * -math.expm1(cell_density(columns, leaves, j, row, problem.point[j]) - most)
    problem.loss[j] += lost
    if lost > problem.worst[j]:
        problem.worst[j], problem.culprit[j] = lost, row


@kernel
def likely_point(problem, box, leaf):
    """Write a likely point of a leaf in the box to ``point``, the parameter rows of the columns to
    ``row_of_column``."""
    leaves, row_of_column = problem.leaves, problem.row_of_column
    leaf_mode(problem, box, leaf, problem.point)
    for j in range(row_of_column.shape[0]):
        row_of_column[j] = leaf
    for q in range(leaves.node_start[leaf], leaves.node_start[leaf + 1]):
        if problem.active[q] and leaves.node_kind[q] == FACTORS:
            k = leaves.node_scope[q]
            for i in range(leaves.scope_start[k], leaves.scope_start[k + 1]):
                row_of_column[leaves.scope_column[i]] = leaves.node_row[q]


@kernel
def lose(problem, box, leaf, log_share):
    """Add what a tree loses whose best leaf this is, with exp(log_share) of the bound, at ``point``; see `add_loss`."""
    leaves = problem.leaves
    if not has_circuit(leaves, leaf):
        share = math.exp(log_share)
        for j in range(problem.point.shape[0]):
            add_loss(problem, box, j, leaf, share)
        return
    circuit_mode(problem, box, leaf, problem.other)
    share_out(leaves, leaf, log_share, problem.bound, problem.share)
    for q in range(leaves.node_start[leaf], leaves.node_start[leaf + 1]):
        if leaves.node_kind[q] == FACTORS and problem.share[q] > -math.inf:
            of, k = leaves.node_row[q], leaves.node_scope[q]
            for i in range(leaves.scope_start[k], leaves.scope_start[k + 1]):
                add_loss(problem, box, np.int64(leaves.scope_column[i]), of, math.exp(problem.share[q]))


@entry
def choose_cut(problem, box, leaf, bound):
    """Where to cut the box: column (-1: nothing to gain), threshold, levels; a likely point is left in ``point``.

    The point is the mode of the heaviest leaf. The column is the one in which the trees' best leaves, and the parts of
    circuits, would lose the greatest part of the bound at that point; the cut is between the point and the best value
    of the part that loses most.
    """
    columns, leaves, x, loss = problem.columns, problem.leaves, problem.point, problem.loss
    tree_bounds(problem, leaf, bound)
    best, at = problem.best_bound, problem.best_leaf
    total = log_total(best, -math.inf)
    likely_point(problem, box, leaf[at[largest(best)]])
    loss[:], problem.worst[:], problem.culprit[:] = 0.0, 0.0, -1
    for t in range(at.shape[0]):
        if at[t] >= 0:
            lose(problem, box, leaf[at[t]], best[t] - total)
    while True:
        j = largest(loss)
        if not loss[j] > 0.0:
            return -1, 0.0, np.empty(0, np.uint8)
        row, slot = problem.culprit[j], columns.slot[j]
        y = cell_mode(columns, leaves, problem.evidence, box, j, row)[0]
        if columns.is_categorical[j]:
            return j, 0.0, levels_with(columns, leaves, j, problem.row_of_column[j], row, x[j], y)
        cut = number_cut(columns, slot, box.lo[slot], box.hi[slot], x[j], y, leaves.lo[row, slot], leaves.hi[row, slot])
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
def levels_with(columns, leaves, j, row_of_column, row, x, y):
    """Which levels k go with x, (K,): p(k) / p(x) in row ``row_of_column`` is at least p(k) / p(y) in row ``row``."""
    slot = columns.slot[j]
    goes = np.empty(columns.level_start[slot + 1] - columns.level_start[slot], np.uint8)
    for k in range(goes.shape[0]):
        gain = log_level(leaves, row_of_column, slot, k) - log_level(leaves, row_of_column, slot, int(x))
        goes[k] = gain >= log_level(leaves, row, slot, k) - log_level(leaves, row, slot, int(y))
    goes[int(x)], goes[int(y)] = 1, 0
    return goes
