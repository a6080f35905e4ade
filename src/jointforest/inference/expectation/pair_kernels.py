"""Kernels: second moments of an ensemble, over the pairs of leaves of its trees (Lemma 2).

Given that a row is in a leaf, the joint is a mixture again, so the same descent gives the masses of other trees'
leaves.
"""

import math

import numpy as np

from ...runtime.compile import entry, kernel
from .component_kernels import COMPONENTS_AT_ONCE
from .descent_kernels import descend, load_block, row_sum, start_row
from .split_regions import ONE


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
