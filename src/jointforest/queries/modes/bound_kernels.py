"""Kernels of branch and bound over boxes: a bound of the mixture's density in a box, and where to cut the box."""

from __future__ import annotations

import math

import numpy as np

from ...forest.posterior.circuit_kernels import has_circuit, share_out
from ...ground.compile import array_kernel, entry, kernel
from ...leaves.one_slot.grid_kernels import cell_centre
from ...leaves.one_slot.slot_kernels import find_atom
from ...leaves.table import FACTORS
from .mode_kernels import Box, cell_density, cell_mode, circuit_mode


@entry
def tree_bounds(leaves, n_trees, leaf, bound):
    """Greatest bound of each tree's leaves, (T,), -inf for none; where it is in the list, -1 for nowhere."""
    best, at = np.full(n_trees, -np.inf), np.full(n_trees, -1)
    for i in range(leaf.shape[0]):
        t = leaves.tree[leaf[i]]
        if bound[i] > best[t]:
            best[t], at[t] = bound[i], i
    return best, at


@entry
def log_total(best, floor):
    """Log of the sum over trees, each with at least exp(floor)."""
    top = max(best.max(), floor)
    return top + math.log(np.sum(np.exp(np.maximum(best, floor) - top))) if top > -math.inf else top


@entry
def halves(columns, box, j, cut, goes_left):
    """The two parts of a box: column j up to ``cut`` and above, or the levels that go left and the others."""
    left = Box(box.lo.copy(), box.hi.copy(), box.allowed.copy())
    right = Box(box.lo.copy(), box.hi.copy(), box.allowed.copy())
    slot = columns.slot[j]
    if columns.is_categorical[j]:
        first = columns.level_start[slot]
        for k in range(goes_left.shape[0]):
            left.allowed[first + k] &= goes_left[k]
            right.allowed[first + k] &= 1 - goes_left[k]
    else:
        left.hi[slot] = cut
        right.lo[slot] = cut
    return left, right


@entry
def bound_halves(columns, leaves, evidence, box, left, right, j, leaf, bound, floor):
    """The leaves whose bound in the left half is above the floor, these bounds, and the same of the right half.

    ``bound`` is that of the leaves in the box, of which the halves differ in column j.
    """
    d, n_nodes = columns.slot.shape[0], leaves.node_kind.shape[0]
    greatest, value = np.empty(n_nodes, np.float64), np.empty(n_nodes, np.float64)
    active, x = np.zeros(n_nodes, np.uint8), np.empty(d, np.float64)
    kept, new = np.empty((2, leaf.shape[0]), leaf.dtype), np.empty((2, leaf.shape[0]), np.float64)
    n = np.zeros(2, np.int64)
    for i in range(leaf.shape[0]):
        if bound[i] <= floor:
            continue
        is_circuit = has_circuit(leaves, leaf[i])
        others = 0.0 if is_circuit else bound[i] - cell_mode(columns, leaves, evidence, box, j, leaf[i])[1]
        for side in (0, 1):
            half = left if side == 0 else right
            if is_circuit:
                total = leaves.log_weight[leaf[i]]
                total += circuit_mode(columns, leaves, evidence, half, leaf[i], greatest, value, active, x)
            else:
                total = others + cell_mode(columns, leaves, evidence, half, j, leaf[i])[1]
            if total > floor:
                kept[side, n[side]], new[side, n[side]] = leaf[i], min(total, bound[i])
                n[side] += 1
    return kept[0, : n[0]].copy(), new[0, : n[0]].copy(), kept[1, : n[1]].copy(), new[1, : n[1]].copy()


@kernel
def add_loss(columns, leaves, evidence, box, j, row, share, x, loss, worst, culprit):
    """Add what share of the bound a row loses with x[j] instead of its own best value; note which row loses most."""
    most = cell_mode(columns, leaves, evidence, box, j, row)[1]
    lost = share * -math.expm1(cell_density(columns, leaves, j, row, x[j]) - most)
    loss[j] += lost
    if lost > worst[j]:
        worst[j], culprit[j] = lost, row


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


@entry
def choose_cut(columns, leaves, evidence, box, leaf, bound, n_trees):
    """A likely point of the box (d,), and the column, threshold and levels to cut it by; column -1: nothing to gain.

    The point is the mode of the heaviest leaf. The column is the one in which the trees' best leaves, and the parts of
    circuits, would lose the greatest part of the bound at that point; the cut is between the point and the best value
    of the part that loses most.
    """
    d, n_nodes = columns.slot.shape[0], leaves.node_kind.shape[0]
    greatest, value = np.empty(n_nodes, np.float64), np.empty(n_nodes, np.float64)
    weight, active = np.empty(n_nodes, np.float64), np.zeros(n_nodes, np.uint8)
    best, at = tree_bounds(leaves, n_trees, leaf, bound)
    total = log_total(best, -math.inf)
    x, other = np.empty(d, np.float64), np.empty(d, np.float64)
    l = leaf[at[np.argmax(best)]]  # noqa: E741
    own = np.full(d, l)
    if has_circuit(leaves, l):
        circuit_mode(columns, leaves, evidence, box, l, greatest, value, active, x)
        for q in range(leaves.node_start[l], leaves.node_start[l + 1]):
            if active[q] and leaves.node_kind[q] == FACTORS:
                scope = leaves.node_scope[q]
                own[leaves.scope_column[leaves.scope_start[scope] : leaves.scope_start[scope + 1]]] = leaves.node_row[q]
    else:
        for j in range(d):
            x[j] = cell_mode(columns, leaves, evidence, box, j, l)[0]
    loss, worst, culprit = np.zeros(d), np.zeros(d), np.full(d, -1)
    for t in range(n_trees):
        if at[t] < 0:
            continue
        k = leaf[at[t]]
        if not has_circuit(leaves, k):
            for j in range(d):
                add_loss(columns, leaves, evidence, box, j, k, math.exp(best[t] - total), x, loss, worst, culprit)
            continue
        circuit_mode(columns, leaves, evidence, box, k, greatest, value, active, other)
        share_out(leaves, k, best[t] - total, value, weight)
        for q in range(leaves.node_start[k], leaves.node_start[k + 1]):
            if leaves.node_kind[q] == FACTORS and weight[q] > -math.inf:
                of, scope = leaves.node_row[q], leaves.node_scope[q]
                for i in range(leaves.scope_start[scope], leaves.scope_start[scope + 1]):
                    j, share = leaves.scope_column[i], math.exp(weight[q])
                    add_loss(columns, leaves, evidence, box, j, of, share, x, loss, worst, culprit)
    while True:
        j = int(np.argmax(loss))
        if not loss[j] > 0.0:
            return x, -1, 0.0, np.empty(0, np.uint8)
        row, slot = culprit[j], columns.slot[j]
        y = cell_mode(columns, leaves, evidence, box, j, row)[0]
        if columns.is_categorical[j]:
            return x, j, 0.0, levels_with(columns, leaves, j, own[j], row, x[j], y)
        cut = number_cut(columns, slot, box.lo[slot], box.hi[slot], x[j], y, leaves.lo[row, slot], leaves.hi[row, slot])
        if cut == cut:
            return x, j, cut, np.empty(0, np.uint8)
        loss[j] = 0.0


@array_kernel
def levels_with(columns, leaves, j, l, row, x, y):  # noqa: E741
    """Which levels go with x, (K,): those that, next to x, row l likes as well as ``row`` does, next to its y."""
    first, end = columns.level_start[columns.slot[j]], columns.level_start[columns.slot[j] + 1]
    goes = np.empty(end - first, np.uint8)
    for k in range(end - first):
        own = leaves.log_level[l, first + k] - leaves.log_level[l, first + int(x)]
        goes[k] = own >= leaves.log_level[row, first + k] - leaves.log_level[row, first + int(y)]
    goes[int(x)], goes[int(y)] = 1, 0
    return goes
