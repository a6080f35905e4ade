"""Kernels: the masses of a block of components on their way down a residual tree.

The vector of weights is multiplied, at a node, by each component's mass of the left part; the rest goes right.
"""

import math

import numpy as np

from ...models.box_forest.descent_kernels import goes_left
from ...models.box_forest.posterior_kernels import widened
from ...runtime.compile import entry, kernel
from .component_kernels import COMPONENTS_AT_ONCE, find_active, gather_masses
from .split_regions import ONE, ZERO


@kernel
def _split_vector(vector, mass, lo, mid, hi, n, source, left, right):
    """Divide the vector in row ``source`` between the rows ``left`` and ``right``; return the left one's sum."""
    if hi == ONE and lo == ZERO:
        for i in range(n):
            v = vector[source, i]
            part = v * mass[mid, i]
            vector[left, i] = part
            vector[right, i] = v - part
    elif lo == ZERO:
        for i in range(n):
            v, below = vector[source, i], mass[hi, i]
            share = min(mass[mid, i] / below, 1.0)
            part = v * share if below > 0.0 else 0.0
            vector[left, i] = part
            vector[right, i] = v - part
    else:
        for i in range(n):
            v, low = vector[source, i], mass[lo, i]
            below = mass[hi, i] - low
            share = min((mass[mid, i] - low) / below, 1.0)
            part = v * share if below > 0.0 else 0.0
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
        region_mass = mass[hi, i] - mass[lo, i]
        weight = vector[source, i] / region_mass
        vector[target, i] = weight if region_mass > 0.0 else 0.0


@kernel
def descend(arrays, tree, mass, n, total, budget, scratch):
    """Add the part of the weights in row 0 of ``scratch.vector`` that reaches each leaf of a tree to its mass."""
    # Subtrees are not followed as long as the sum of their mass times ``arrays.half_most`` is at most ``budget``.
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
            part = _split_vector(vector, mass, lo, mid, hi, n, row, keep + 1, keep)
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
    """`descend` where all splits from node k on are of one column: masses of regions are differences of two others'."""
    # Row ``row`` of ``scratch.vector`` has the weights without the region of the column at node k. Returns what is
    # spent.
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


# ---- Kernels: the residual trees of a row, those that its known cells leave of an ensemble's.


@kernel
def next_open(splits, rows, row, node):
    """The first node from ``node`` on that the row cannot pass, because it is a leaf or its column is missing."""
    while splits.leaf[node] < 0:
        x, is_other = rows.X[row, splits.feature[node]], rows.other[row, splits.feature[node]]
        if x != x and not is_other:
            return node
        left = splits.other_left[node] if is_other else goes_left(splits, node, x)
        node = splits.left[node] if left else splits.right[node]
    return node


@kernel
def splits_only(splits, residual, k, j):
    """Whether no split from place k on is of another column than j."""
    return residual.right[k] < 0 or (residual.one_column[k] != 0 and splits.column[residual.node[k]] == j)


@kernel
def find_residual(splits, rows, row, stack, residual):
    """Write the residual trees of a row; return their numbers of nodes and of split regions. ``stack`` is scratch."""
    n = 0
    for m in range(residual.is_used.shape[0]):
        residual.is_used[m] = 0
    for tree in range(splits.root.shape[0]):
        residual.start[tree] = n
        node, parent, depth = splits.root[tree], -1, 0
        while True:
            node = next_open(splits, rows, row, node)
            residual.node[n], residual.parent[n], residual.right[n] = node, parent, -1
            if splits.leaf[node] < 0:
                residual.is_used[splits.lo[node]] = 1
                residual.is_used[splits.mid[node]] = 1
                residual.is_used[splits.hi[node]] = 1
                stack[depth] = n
                depth += 1
                node, parent = splits.left[node], n
                n += 1
                continue
            n += 1
            if depth == 0:
                break
            depth -= 1
            parent = int(stack[depth])
            residual.right[parent] = n
            node = splits.right[residual.node[parent]]
    residual.start[splits.root.shape[0]] = n
    for k in range(n - 1, -1, -1):  # children come after their parent
        residual.one_column[k] = 1
        right = int(residual.right[k])
        if right >= 0:
            j = splits.column[residual.node[k]]
            is_one = splits_only(splits, residual, k + 1, j) and splits_only(splits, residual, right, j)
            residual.one_column[k] = is_one
    return n, number_regions(residual)


@kernel
def number_regions(residual):
    """Number the split regions that the residual trees refer to, ZERO and ONE first; return how many there are."""
    residual.is_used[ZERO], residual.is_used[ONE] = 1, 1
    n = 0
    for m in range(residual.is_used.shape[0]):
        if residual.is_used[m]:
            residual.used[n], residual.local[m] = m, n
            n += 1
    return n


# ---- Kernels: how probable each leaf of an ensemble is, given a row's known cells, under a joint.


@kernel
def start_row(arrays, rows, row, post, at, scratch):
    """Find the residual trees and the components of a row; return the numbers of nodes and of used split regions."""
    n, n_used = find_residual(arrays.splits, rows, row, scratch.stack, scratch.residual)
    find_active(post, at, 0.0, scratch)
    return n, n_used


@kernel
def load_block(arrays, evidence, n_used, first, scratch):
    """Gather a block of components, from the first on; return their number, rounded up to 8, and their weight."""
    vector, root_mass, weight = scratch.vector, scratch.root_mass, scratch.active.weight
    size = min(COMPONENTS_AT_ONCE, scratch.active.n[0] - first)
    gather_masses(arrays, evidence, n_used, first, size, scratch)
    for u in range(n_used):
        root_mass[u] = math.nan
    end, total = (size + 7) // 8 * 8, 0.0
    for i in range(end):
        vector[0, i] = weight[first + i] if i < size else 0.0
        total += vector[0, i]
    return end, total


@kernel
def fill_node_probabilities(arrays, evidence, tolerance, n, n_used, scratch):
    """Write the probability of each of the n nodes of the residual trees of a row (see `ResidualTrees.mass`)."""
    residual, active, splits, half_most = scratch.residual, scratch.active, arrays.splits, arrays.half_most
    for k in range(n):
        residual.mass[k] = 0.0
    blocks = (active.n[0] + COMPONENTS_AT_ONCE - 1) // COMPONENTS_AT_ONCE
    for b in range(blocks):
        end, total = load_block(arrays, evidence, n_used, b * COMPONENTS_AT_ONCE, scratch)
        for tree in range(splits.root.shape[0]):
            budget = 0.5 * tolerance * half_most[splits.root[tree]] / blocks
            descend(arrays, tree, scratch.mass, end, total, budget, scratch)


@kernel
def weight_to_drop(half, splits, residual, tolerance):
    """Posterior weight to leave out such that errors are at most half the tolerance of each output's range."""
    least = 1.0
    for k in range(half.shape[1]):
        total, here = 0.0, 0.0
        for tree in range(splits.root.shape[0]):
            total += half[splits.root[tree], k]
            here += half[residual.node[residual.start[tree]], k]
        if here > 0.0:
            least = min(least, 0.25 * tolerance * total / here)
    return least


@entry
def expected_rows(arrays, rows, first, post, tolerance, scratch, out, error):
    """Expected sums over trees of rows first.. (those of the posterior), and bounds of their errors; both (n, K)."""
    residual, middle, half = scratch.residual, arrays.middle, arrays.half
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        if post.log_evidence[at] == -math.inf:
            out[row], error[row] = math.nan, math.nan
            continue
        n, n_used = find_residual(arrays.splits, rows, row, scratch.stack, residual)
        most = weight_to_drop(half, arrays.splits, residual, tolerance) if tolerance > 0.0 else 0.0
        find_active(post, at, most, scratch)
        fill_node_probabilities(arrays, rows.evidence, tolerance, n, n_used, scratch)
        dropped = scratch.active.dropped[0]
        for k in range(middle.shape[1]):
            total, wrong, low, high = 0.0, 0.0, 0.0, 0.0
            for p in range(n):
                total += residual.mass[p] * middle[residual.node[p], k]
                wrong += residual.mass[p] * half[residual.node[p], k]
            for tree in range(residual.start.shape[0] - 1):
                root = residual.node[residual.start[tree]]
                low += middle[root, k] - half[root, k]
                high += middle[root, k] + half[root, k]
            if dropped > 0.0:
                wrong += dropped * max(total - low, high - total)
            out[row, k], error[row, k] = total, wrong


@entry
def leaf_probabilities(arrays, rows, first, post, scratch):
    """Start, leaf and probability of the ensemble's leaves that rows first.. can reach."""
    residual, leaf_of = scratch.residual, arrays.splits.leaf
    start = np.zeros(post.log_evidence.shape[0] + 1, np.int64)
    leaf, probability = np.empty(1024, np.int32), np.empty(1024, np.float64)
    end = 0
    for at in range(post.log_evidence.shape[0]):
        if post.log_evidence[at] > -math.inf:
            n, n_used = start_row(arrays, rows, first + at, post, at, scratch)
            fill_node_probabilities(arrays, rows.evidence, 0.0, n, n_used, scratch)
            if end + n > leaf.shape[0]:
                wider = max(2 * leaf.shape[0], end + n)
                leaf, probability = widened(leaf, end, wider), widened(probability, end, wider)
            for p in range(n):
                if residual.mass[p] > 0.0 and residual.right[p] < 0:
                    leaf[end], probability[end] = leaf_of[residual.node[p]], residual.mass[p]
                    end += 1
        start[at + 1] = end
    return start, leaf[:end].copy(), probability[:end].copy()
