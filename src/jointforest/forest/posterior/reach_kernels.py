"""Which leaves a row of evidence can reach."""

from __future__ import annotations

from ...ground.compile import kernel
from ...leaves.one_slot.slot_kernels import run_levels
from ...trees.level_bits_kernels import has_level
from .region_kernels import cell_region


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

    Goes both ways where the split column has no value. A box between two runs of a region may be listed too; its
    mass is then 0. ``stack`` is scratch with room for the path to the deepest leaf.
    """
    n = 0
    for tree in range(trees.root.shape[0]):
        node = trees.root[tree]
        depth = 0
        while True:
            j = trees.feature[node]
            left, right = False, False
            if j < 0:
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
