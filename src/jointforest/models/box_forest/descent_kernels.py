"""Kernels: where rows end in trees, by known cells, by cells that may be missing, and by regions."""

from __future__ import annotations

import math

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.random_kernels import stream, uniform
from .leaves.family_kernels import log_mass
from .leaves.grid_kernels import cell_centre
from .leaves.level_kernels import has_level
from .leaves.slot_kernels import find_atom, piece, run_levels
from .structure_kernels import MIXED

_NEAR = 1e-6
"""A value this close to a centre, in steps, is given back as it was."""


@kernel
def cell_region(evidence, row, j):
    """Number of the cell's region, -1 if it has none."""
    if evidence.region.shape[0] == 0:
        return -1
    return evidence.region[row, j]


@kernel
def known_number(columns, slot, x):
    """The number that a known value counts as: on a grid the centre of its cell."""
    step = columns.step[slot]
    if step == 0.0:
        return x
    centre = cell_centre(step, columns.origin[slot], x)
    return x if abs(x - centre) <= _NEAR * step else centre


@kernel
def in_region(columns, evidence, slot, region, x):
    """Whether the region holds the value x (on a grid: its cell)."""
    return log_likelihood(columns, evidence, slot, region, x) > -math.inf


@kernel
def log_likelihood(columns, evidence, slot, region, x):
    """Log-likelihood that the region (-1: none) gives to the value x (on a grid: to its cell); -inf outside."""
    if region < 0:
        return 0.0
    if columns.step[slot] == 0.0:
        atom = find_atom(columns, slot, x)
        if atom >= 0:
            if (evidence.atoms[region] >> atom) & 1 == 0:
                return -math.inf
            return evidence.atom_log_weight[region, atom] if evidence.atom_log_weight.shape[0] > 0 else 0.0
    centre = x if columns.step[slot] == 0.0 else cell_centre(columns.step[slot], columns.origin[slot], x)
    for run in range(evidence.run_start[region], evidence.run_start[region + 1]):
        if evidence.run_lo[run] < centre <= evidence.run_hi[run]:
            return evidence.run_log_weight[run]
    return -math.inf


# ---- Kernel of conditioning: in which runs of a region pieces have mass.


@entry
def runs_inside(columns, leaves, evidence, leaf, slot, number, region):
    """The runs of a region with mass for each of n pieces (leaf, number) of a slot: start, run, log likelihood mass."""
    n_pieces, first_run, end_run = number.shape[0], evidence.run_start[region], evidence.run_start[region + 1]
    start = np.zeros(n_pieces + 1, np.int64)
    run, log_share = np.empty(n_pieces, np.int64), np.empty(n_pieces, np.float64)
    n = 0
    for i in range(n_pieces):
        d, log_weight = piece(leaves, leaf[i], slot, number[i])
        for q in range(first_run, end_run):
            u, v = max(evidence.run_lo[q], d.lo), min(evidence.run_hi[q], d.hi)
            if v - u > 0.5 * columns.step[slot]:  # less is rounding
                mass = log_weight + log_mass(d, u, v) + evidence.run_log_weight[q]
                if mass == -math.inf:
                    continue
                if n == run.shape[0]:
                    run = np.concatenate((run, np.empty_like(run)))
                    log_share = np.concatenate((log_share, np.empty_like(log_share)))
                run[n], log_share[n] = q, mass
                n += 1
        start[i + 1] = n
    return start, run[:n].copy(), log_share[:n].copy()


# ---- Kernels: where rows end in trees, by known cells, by cells that may be missing, and by regions.


@kernel
def goes_left(trees, node, x):
    """Whether a value, or a level's code, goes left at a node of `Trees` or of another table with its splits."""
    at = np.int64(trees.levels_at[node])
    if at < 0:
        return x <= trees.threshold[node]
    return has_level(trees.left_levels, at, np.int64(x))


# ---- Kernels: the leaf of each row, which knows all splits, or draws where it does not.


@entry
def routed_rows(trees, value, first, stop, n_trees):
    """The leaf of each of the first ``n_trees`` trees in which each of the rows first..stop-1 of ``value`` ends."""
    # The rows know the values of all splits. Trees are the outer loop: one tree's nodes stay in the processor's cache.
    out = np.empty((stop - first, n_trees), np.int32)
    for t in range(n_trees):
        for row in range(first, stop):
            node = trees.root[t]
            while trees.feature[node] >= 0:
                left = goes_left(trees, node, value[row, trees.feature[node]])
                node = trees.left[node] if left else trees.right[node]
            out[row - first, t] = trees.leaf[node]
    return out.ravel()


@entry
def route_by_key(trees, values, keys, t, first_leaf, out):
    """Leaf of each row of ``values`` (d, n) in tree t, counted from ``first_leaf``, into ``out``."""
    # A row without the split's value draws a side by its key, uint64 (n,), alone: equal rows end in one leaf.
    tree_key = stream(1, t)[0]
    state = stream(0, 0)
    for i in range(values.shape[1]):
        node = trees.root[t]
        drawn = False
        while trees.left[node] >= 0:
            x = values[trees.feature[node], i]
            if np.isnan(x):
                if not drawn:
                    state[0] = keys[i] ^ tree_key
                    drawn = True
                share = trees.weight[trees.left[node]] / trees.weight[node] if trees.weight[node] > 0.0 else 0.5
                is_left = uniform(state) < share
            else:
                is_left = goes_left(trees, node, x)
            node = trees.left[node] if is_left else trees.right[node]
        out[i] = trees.leaf[node] - first_leaf


# ---- Kernels: the leaves that a row of evidence can reach, whose cells may be missing or have a region.


@kernel
def numeric_sides(columns, evidence, slot, region, threshold):
    """Whether the region has something at or below the threshold, and something above it."""
    left, right = False, False
    first, end = evidence.run_start[region], evidence.run_start[region + 1]
    if end > first:  # runs ascend: the first one reaches lowest, the last one highest
        left = evidence.run_lo[first] < threshold
        right = evidence.run_hi[end - 1] > threshold
    held = evidence.atoms[region]
    if held != 0:
        start = columns.atom_start[slot]
        for k in range(columns.atom_start[slot + 1] - start):
            if (held >> k) & 1 != 0:
                if columns.atom_value[start + k] <= threshold:
                    left = True
                else:
                    right = True
    return left, right


@kernel
def level_sides(trees, evidence, node, region, n_levels):
    """Whether the region has a level that goes left, and one that goes right."""
    left, right = False, False
    for run in range(evidence.run_start[region], evidence.run_start[region + 1]):
        first, end = run_levels(evidence, run, n_levels)
        for level in range(first, end):
            if has_level(trees.left_levels, trees.levels_at[node], level):
                left = True
            else:
                right = True
            if left and right:
                return left, right
    return left, right


@kernel
def reachable(columns, trees, evidence, row, stack, leaf):
    """Write the numbers of the leaves whose box agrees with the row's evidence into ``leaf``; return how many."""
    # A box between two runs of a region may be listed; its mass is then 0. ``stack`` has room for the deepest path.
    n = 0
    for tree in range(trees.root.shape[0]):
        node = trees.root[tree]
        depth = 0
        while True:
            j = trees.feature[node]
            left, right = False, False
            if j == MIXED:
                left, right = True, True
            elif j < 0:
                leaf[n] = trees.leaf[node]
                n += 1
            else:
                x = evidence.value[row, j]
                if x == x:
                    left = goes_left(trees, node, x)
                    right = not left
                else:
                    region, s = cell_region(evidence, row, j), columns.slot[j]
                    if region < 0:
                        left, right = True, True
                    elif trees.levels_at[node] < 0:
                        left, right = numeric_sides(columns, evidence, s, region, trees.threshold[node])
                    else:
                        n_levels = columns.level_start[s + 1] - columns.level_start[s]
                        left, right = level_sides(trees, evidence, node, region, n_levels)
            if left:
                if right:
                    stack[depth] = trees.right[node]
                    depth += 1
                node = trees.left[node]
            elif right:
                node = trees.right[node]
            elif depth > 0:
                depth -= 1
                node = stack[depth]
            else:
                break
    return n
