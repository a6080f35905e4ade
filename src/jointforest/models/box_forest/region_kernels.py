"""Kernels on regions and grid cells."""

from __future__ import annotations

import math

from ...runtime.compile import kernel
from .leaves.grid_kernels import cell_centre
from .leaves.level_kernels import has_level
from .leaves.slot_kernels import find_atom, run_levels
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


# ---- Which leaves a row of evidence can reach.


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
    """Write the numbers of the leaves whose box can meet the row's evidence into ``leaf``; return how many.

    Goes both ways where the split column has no value, and where there is no split. A box between two runs of a region
    may be listed too; its mass is then 0. ``stack`` is scratch with room for the path to the deepest leaf.
    """
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
                    if trees.levels_at[node] < 0:
                        left = x <= trees.threshold[node]
                    else:
                        left = has_level(trees.left_levels, trees.levels_at[node], int(x))
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
