"""Kernels: where rows end in trees, by known cells, by cells that may be missing, and by regions."""

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.random_kernels import stream, uniform
from .leaves.level_kernels import has_level
from .leaves.slot_kernels import run_levels
from .region_kernels import cell_region
from .structure_kernels import MIXED


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
