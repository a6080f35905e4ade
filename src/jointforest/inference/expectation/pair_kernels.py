"""Kernels: second moments of an ensemble, over the pairs of leaves of its trees (Lemma 2).

Components given that a row is in a leaf are components again: weights times the leaf's masses, and the columns of the
leaf's box restricted to it. So for each leaf the other trees' leaves have their masses by the same descent.
"""

import math

from ...runtime.compile import entry, kernel
from .component_kernels import COMPONENTS_AT_ONCE
from .descent_kernels import descend, load_block, start_row
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
def arrive_later(arrays, tree, n, total, n_used, scratch, narrow, out):
    """Add the values of the leaves of the trees after ``tree``, times their probabilities within a leaf, to ``out``."""
    residual, value = scratch.residual, arrays.middle
    for u in range(n_used):
        scratch.root_mass[u] = math.nan
    for later in range(tree + 1, residual.start.shape[0] - 1):
        first, stop = residual.start[later], residual.start[later + 1]
        if residual.right[first] < 0:
            for o in range(out.shape[0]):
                out[o] += total * value[residual.node[first], o]
            continue
        for p in range(first, stop):
            residual.mass[p] = 0.0
        descend(arrays, later, narrow, n, total, 0.0, scratch)
        for p in range(first, stop):
            if residual.mass[p] > 0.0:
                for o in range(out.shape[0]):
                    out[o] += residual.mass[p] * value[residual.node[p], o]


@kernel
def add_moments(of_tree, others, total, mean, second):
    """Add a leaf's values (K,), and their products with those of later trees, to a row's moments."""
    for a in range(of_tree.shape[0]):
        mean[a] += total * of_tree[a]
        for b in range(of_tree.shape[0]):
            second[a, b] += total * of_tree[a] * of_tree[b]
            second[a, b] += of_tree[a] * others[b] + others[a] * of_tree[b]


@entry
def pair_rows(arrays, rows, first, post, most, scratch, narrow, others, out):
    """E[F] and E[F F'] of the sums over trees into ``out``; nothing for rows with a `pair_cost` above ``most``."""
    residual, active, vector = scratch.residual, scratch.active, scratch.vector
    for at in range(post.log_evidence.shape[0]):
        row = first + at
        out.is_exact[row], out.mean[row], out.second[row] = True, math.nan, math.nan
        if post.log_evidence[at] == -math.inf:
            continue
        _, n_used = start_row(arrays, rows, row, post, at, scratch)
        if pair_cost(residual, active.n[0]) > most:
            out.is_exact[row] = False
            continue
        out.mean[row], out.second[row] = 0.0, 0.0
        for block in range(0, active.n[0], COMPONENTS_AT_ONCE):
            end, _ = load_block(arrays, rows.evidence, n_used, block, scratch)
            copy_masses(arrays.regions, residual.used, n_used, -1, end, scratch.mass, narrow)
            for tree in range(residual.start.shape[0] - 1):
                for k in range(residual.start[tree], residual.start[tree + 1]):
                    if residual.right[k] >= 0:
                        continue
                    n_box = restrict_to_leaf(arrays, k, block, end, n_used, 1.0, scratch, narrow)
                    total = 0.0
                    for i in range(end):
                        total += vector[0, i]
                    if total > 0.0:
                        for o in range(others.shape[0]):
                            others[o] = 0.0
                        arrive_later(arrays, tree, end, total, n_used, scratch, narrow, others)
                        of_tree = arrays.middle[residual.node[k]]
                        add_moments(of_tree, others, total, out.mean[row], out.second[row])
                    lift_restriction(arrays, n_box, end, n_used, scratch, narrow)
