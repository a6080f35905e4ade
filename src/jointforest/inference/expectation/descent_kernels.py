"""Kernels: the masses of a block of components on their way down a residual tree."""

# The vector of weights is multiplied, at a node, by each component's mass of the left part; the rest goes right.

from __future__ import annotations

import math

import numpy as np

from ...models.box_forest.descent_kernels import goes_left
from ...models.box_forest.posterior_kernels import widened
from ...runtime.compile import entry, kernel
from .component_kernels import COMPONENTS_AT_ONCE, find_active, gather_masses
from .match import ONE, ZERO


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


# ---- Kernels: second moments of an ensemble, over the pairs of leaves of its trees (Lemma 2).

# Given that a row is in a leaf, the joint is a mixture again, so the same descent gives the masses of other trees'
# leaves.


@kernel
def leaf_box(splits, residual, k, box, column):
    """Write the box of the leaf at place k: columns (d,), split regions (d, 2); return the number of columns."""
    n = 0
    below, parent = k, residual.parent[k]
    while parent >= 0:  # the nearest split of a column has its region
        node = residual.node[parent]
        j = splits.column[node]
        is_known = False
        for i in range(n):
            is_known = is_known or column[i] == j
        if not is_known:
            is_left = below == parent + 1
            box[j, 0] = residual.local[splits.lo[node] if is_left else splits.mid[node]]
            box[j, 1] = residual.local[splits.mid[node] if is_left else splits.hi[node]]
            column[n] = j
            n += 1
        below, parent = parent, residual.parent[parent]
    return n


@kernel
def _in_region(regions, m, level):
    """Whether a level is in a split region."""
    if m <= ONE:
        return m == ONE
    at, end = regions.level_start[m], regions.level_start[m + 1]
    while at < end and regions.level[at] != level:
        at += 1
    return at < end


@kernel
def restrict_column(arrays, j, n, n_used, scratch, narrow):
    """Multiply row 0 of the vector by the masses of the box in column j, and restrict the column's regions to it."""
    # Restricted masses go to ``narrow``.
    columns, regions, used, mass, vector = (
        arrays.columns, arrays.regions, scratch.residual.used, scratch.mass, scratch.vector
    )  # fmt: skip
    low, high, level_mass = scratch.box[j, 0], scratch.box[j, 1], scratch.level_mass
    for i in range(n):
        vector[0, i] *= max(mass[high, i] - mass[low, i], 0.0)
    first = columns.level_start[columns.slot[j]] if columns.is_categorical[j] else 0
    for u in range(2, n_used):
        if regions.column[used[u]] != j:
            continue
        if columns.is_categorical[j]:
            for i in range(n):
                narrow[u, i] = 0.0
            for at in range(regions.level_start[used[u]], regions.level_start[used[u] + 1]):
                level = regions.level[at]
                if _in_region(regions, used[high], level) and not _in_region(regions, used[low], level):
                    for i in range(n):
                        narrow[u, i] += level_mass[first + level, i]
        else:
            for i in range(n):
                narrow[u, i] = min(max(mass[u, i], mass[low, i]), mass[high, i]) - mass[low, i]
        for i in range(n):
            region_mass = mass[high, i] - mass[low, i]
            narrow[u, i] = min(narrow[u, i] / region_mass, 1.0) if region_mass > 0.0 else 0.0


@kernel
def restrict_to_leaf(arrays, k, block, n, n_used, factor, scratch, narrow):
    """Write ``factor`` times the weights of a block's components within the leaf at place k to row 0 of the vector."""
    # ``narrow`` gets the masses of the split regions within the leaf; returns the number of columns of its box.
    vector, weight = scratch.vector, scratch.active.weight
    n_box = leaf_box(arrays.splits, scratch.residual, k, scratch.box, scratch.box_column)
    size = min(COMPONENTS_AT_ONCE, scratch.active.n[0] - block)
    for i in range(n):
        vector[0, i] = factor * weight[block + i] if i < size else 0.0
    for c in range(n_box):
        restrict_column(arrays, scratch.box_column[c], n, n_used, scratch, narrow)
    return n_box


@kernel
def copy_masses(regions, used, n_used, j, n, mass, out):
    """Copy the masses of the used split regions of column j (of all columns if -1)."""
    for u in range(n_used):
        if j < 0 or regions.column[used[u]] == j:
            for i in range(n):
                out[u, i] = mass[u, i]


@kernel
def lift_restriction(arrays, n_box, n, n_used, scratch, narrow):
    """Give the columns of the box their own masses again."""
    for c in range(n_box):
        j = scratch.box_column[c]
        copy_masses(arrays.regions, scratch.residual.used, n_used, j, n, scratch.mass, narrow)


@kernel
def pair_cost(residual, n_components):
    """About how many numbers the pairs of a row take: its leaves times the other trees' splits times components."""
    cost, later = 0.0, 0
    for tree in range(residual.start.shape[0] - 2, -1, -1):
        n = residual.start[tree + 1] - residual.start[tree]
        cost += float((n + 1) // 2) * later
        later += n // 2
    return cost * n_components


@kernel
def add_pair(a, b, mass, is_mutual, sums):
    """Add what is in both leaves to the matrix; to the product if that is empty."""
    value, matrix, product = sums.value, sums.matrix, sums.product
    if matrix.shape[0] > 0:
        matrix[a, b] += mass
        return
    for k in range(value.shape[1]):
        product[a, k] += mass * value[b, k]
        if is_mutual:
            product[b, k] += mass * value[a, k]


@kernel
def add_leaf(arrays, n_used, t, k, n, total, sums, scratch, narrow):
    """Add the leaf at place k of tree t, of probability ``total``, with itself and with the leaves of other trees."""
    residual, leaf_of, is_mutual = scratch.residual, arrays.splits.leaf, sums.tree < 0
    a = leaf_of[residual.node[k]]
    if is_mutual:
        sums.mass[a] += total
        add_pair(a, a, total, False, sums)
    for u in range(n_used):
        scratch.root_mass[u] = math.nan
    for s in range(t + 1 if is_mutual else 0, residual.start.shape[0] - 1 if is_mutual else sums.stop):
        first, end = residual.start[s], residual.start[s + 1]
        if s == t:
            continue
        if residual.right[first] < 0:
            add_pair(a, leaf_of[residual.node[first]], total, is_mutual, sums)
            continue
        for p in range(first, end):
            residual.mass[p] = 0.0
        descend(arrays, s, narrow, n, total, 0.0, scratch)
        for p in range(first, end):
            if residual.right[p] < 0 and residual.mass[p] > 0.0:
                add_pair(a, leaf_of[residual.node[p]], residual.mass[p], is_mutual, sums)


@kernel
def add_row_pairs(arrays, rows, row, n_used, weight, sums, scratch, narrow):
    """Add weight times P(in leaf a and in leaf b | known cells) of a row, begun by `start_row`, as `leaf_pair_rows`."""
    residual, active = scratch.residual, scratch.active
    begin, end = (0, residual.start.shape[0] - 1) if sums.tree < 0 else (sums.tree, sums.tree + 1)
    for block in range(0, active.n[0], COMPONENTS_AT_ONCE):
        n, _ = load_block(arrays, rows.evidence, n_used, block, scratch)
        copy_masses(arrays.regions, residual.used, n_used, -1, n, scratch.mass, narrow)
        for t in range(begin, end):
            for k in range(residual.start[t], residual.start[t + 1]):
                if residual.right[k] >= 0:
                    continue
                n_box = restrict_to_leaf(arrays, k, block, n, n_used, weight, scratch, narrow)
                total = row_sum(scratch.vector, 0, n)
                if total > 0.0:
                    add_leaf(arrays, n_used, t, k, n, total, sums, scratch, narrow)
                lift_restriction(arrays, n_box, n, n_used, scratch, narrow)


@entry
def leaf_pair_rows(arrays, rows, first, post, weight, sums, scratch, narrow):
    """Add weight times P(in leaf a and in leaf b | known cells) of rows to ``sums.matrix`` (L, L), or its product."""
    # Without a matrix, times ``sums.value`` (L, K) of one leaf to ``sums.product`` (L, K) of the other. ``sums.tree``
    # and ``sums.stop`` restrict the pairs to leaves a of one tree and b of earlier trees; -1 means all trees.
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        if post.log_evidence[at] > -math.inf and weight[row] != 0.0:
            _, n_used = start_row(arrays, rows, row, post, at, scratch)
            add_row_pairs(arrays, rows, row, n_used, weight[row], sums, scratch, narrow)


@entry
def pair_moments(arrays, rows, first, post, most, sums, scratch, narrow, mean, second):
    """E[F], E[F F'] of the sums over trees into ``mean``, ``second``; whether rows have a `pair_cost` of ``most``."""
    value, product = sums.value, sums.product
    is_exact = np.ones(post.log_evidence.shape[0], np.bool_)
    for at in range(is_exact.shape[0]):
        row = first + at
        mean[row] = second[row] = math.nan
        if post.log_evidence[at] == -math.inf:
            continue
        _, n_used = start_row(arrays, rows, row, post, at, scratch)
        is_exact[at] = pair_cost(scratch.residual, scratch.active.n[0]) <= most
        if is_exact[at]:
            product[:] = sums.mass[:] = 0.0
            add_row_pairs(arrays, rows, row, n_used, 1.0, sums, scratch, narrow)
            for a in range(value.shape[1]):
                mean[row, a] = (value[:, a] * sums.mass).sum()
                for b in range(value.shape[1]):
                    second[row, a, b] = (value[:, a] * product[:, b]).sum()
    return is_exact
