"""Kernels: the masses of a block of components on their way down a residual tree.

The vector of weights is multiplied, at a node, by each component's mass of the left part; the rest goes right. Below
the last column that is split it takes sums of products alone, as the masses of regions of one column are differences.
"""

from __future__ import annotations

from ...ground.compile import kernel
from .split_regions import ONE, ZERO


@kernel
def split(vector, mass, lo, mid, hi, n, source, left, right):
    """Divide the vector in row ``source`` between the rows ``left`` and ``right``; return the left one's sum."""
    if hi == ONE and lo == ZERO:
        for i in range(n):
            v = vector[source, i]
            part = v * mass[mid, i]
            vector[left, i] = part
            vector[right, i] = v - part
    elif lo == ZERO:
        for i in range(n):
            v, whole = vector[source, i], mass[hi, i]
            share = min(mass[mid, i] / whole, 1.0)
            part = v * share if whole > 0.0 else 0.0
            vector[left, i] = part
            vector[right, i] = v - part
    else:
        for i in range(n):
            v, low = vector[source, i], mass[lo, i]
            whole = mass[hi, i] - low
            share = min((mass[mid, i] - low) / whole, 1.0)
            part = v * share if whole > 0.0 else 0.0
            vector[left, i] = part
            vector[right, i] = v - part
    return row_sum(vector, left, n)


@kernel
def row_sum(vector, row, n):
    """Sum of the first n entries (a multiple of 8) of a row."""
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(n >> 3):  # eight sums, a short slice at a time: what compilers make vector instructions of
        x = vector[row, 8 * k : 8 * k + 8]
        a, b, c, d = a + x[0], b + x[1], c + x[2], d + x[3]
        e, f, g, h = e + x[4], f + x[5], g + x[6], h + x[7]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def dot(vector, row, mass, m, n):
    """Sum over the first n components (a multiple of 8) of a row's weight times the mass of a region."""
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(n >> 3):
        x, y = vector[row, 8 * k : 8 * k + 8], mass[m, 8 * k : 8 * k + 8]
        a, b, c, d = a + x[0] * y[0], b + x[1] * y[1], c + x[2] * y[2], d + x[3] * y[3]
        e, f, g, h = e + x[4] * y[4], f + x[5] * y[5], g + x[6] * y[6], h + x[7] * y[7]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def without_region(vector, mass, lo, hi, n, source, target):
    """Divide the weights in row ``source`` by the masses of the region between two others, into row ``target``."""
    for i in range(n):
        whole = mass[hi, i] - mass[lo, i]
        weight = vector[source, i] / whole
        vector[target, i] = weight if whole > 0.0 else 0.0


@kernel
def descend(arrays, tree, mass, n, total, budget, scratch):
    """Add the part of the weights in row 0 of ``scratch.vector`` that arrives at each leaf of a tree to its mass.

    Subtrees are not followed (their mass stays at their root) as long as the sum of mass times ``arrays.half_most``
    of these is at most ``budget``. ``mass`` are those of the used split regions, ``total`` is the sum of the weights.
    """
    splits, half_most, residual = arrays.splits, arrays.half_most, scratch.residual
    local, vector, stack, stack_mass = residual.local, scratch.vector, scratch.stack, scratch.stack_mass
    depth, row, here, spent = 0, 0, total, 0.0
    k = int(residual.start[tree])
    while True:
        node, right = residual.node[k], residual.right[k]
        cost = here * half_most[node]
        is_split = right >= 0 and here > 0.0 and spent + cost > budget
        if is_split and not residual.one_column[k]:
            lo, mid, hi = local[splits.lo[node]], local[splits.mid[node]], local[splits.hi[node]]
            keep = max(row, 1)
            part = split(vector, mass, lo, mid, hi, n, row, keep + 1, keep)
            stack[2 * depth], stack[2 * depth + 1] = right, keep
            stack_mass[depth] = max(here - part, 0.0)
            depth += 1
            k, row, here = k + 1, keep + 1, part
            continue
        if is_split:
            lo, hi = local[splits.lo[node]], local[splits.hi[node]]
            if lo != ZERO or hi != ONE:
                without_region(vector, mass, lo, hi, n, row, row + 1)
                row += 1
            spent = descend_one_column(arrays, k, row, here, mass, n, spent, budget, scratch)
        else:
            residual.mass[k] += here
            if right >= 0 and here > 0.0:
                spent += cost
        if depth == 0:
            break
        depth -= 1
        k, row, here = int(stack[2 * depth]), int(stack[2 * depth + 1]), stack_mass[depth]


@kernel
def descend_one_column(arrays, k, row, here, mass, n, spent, budget, scratch):
    """`descend` where all splits from node k on are of one column: masses of regions are differences of two others'.

    Row ``row`` of ``scratch.vector`` has the weights without the region of the column at node k. Returns what is spent.
    """
    splits, half_most, residual = arrays.splits, arrays.half_most, scratch.residual
    vector, root_mass, stack, stack_mass = scratch.vector, scratch.root_mass, scratch.one_stack, scratch.one_stack_mass
    lo = residual.local[splits.lo[residual.node[k]]]
    low = 0.0 if lo == ZERO else dot(vector, row, mass, lo, n)
    depth = 0
    while True:
        node, right = residual.node[k], residual.right[k]
        cost = here * half_most[node]
        if right >= 0 and here > 0.0 and spent + cost > budget:
            m = residual.local[splits.mid[node]]
            if row > 0:
                up_to = dot(vector, row, mass, m, n)
            else:
                if root_mass[m] != root_mass[m]:
                    root_mass[m] = dot(vector, row, mass, m, n)
                up_to = root_mass[m]
            part = min(max(up_to - low, 0.0), here)
            stack[depth] = right
            stack_mass[2 * depth] = here - part
            stack_mass[2 * depth + 1] = 0.0 if splits.is_set[node] else up_to
            depth += 1
            k, here = k + 1, part
            continue
        residual.mass[k] += here
        if right >= 0 and here > 0.0:
            spent += cost
        if depth == 0:
            return spent
        depth -= 1
        k, here, low = int(stack[depth]), stack_mass[2 * depth], stack_mass[2 * depth + 1]
