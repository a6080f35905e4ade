"""How well a row of evidence fits each leaf: the kernels behind every query."""

# Columns are the outer loop and a block of leaves the inner one, so that a block's parameters stay in the cache.

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.records import record
from .descent_kernels import cell_region, known_number, log_likelihood, reachable
from .leaves.grid_kernels import cell_centre
from .leaves.level_kernels import add_levels, log_level
from .leaves.slot_kernels import (
    find_atom,
    level_region_log_mass,
    region_log_mass,
    rest_log_density,
    run_levels,
    slot_cdf,
    slot_mean_variance,
    value_log_density,
)
from .structure import Forest

_BLOCK = 256
"""Leaves a block."""
_CERTAIN = 5e-324
"""What stands for the log density 0 among those at atoms, where 0 is one not yet known."""


@kernel
def add_level(leaves, slot, level, leaf, first, end, total):
    """Add the log mass of a level to the totals of the leaves first..end-1 of the list."""
    place = leaves.wide.place[slot]
    if place >= 0:
        log_mass, at = leaves.log_level, place + level
        for i in range(first, end):
            total[i] += log_mass[leaf[i], at]
        return
    for i in range(first, end):
        if total[i] > -math.inf:
            total[i] += log_level(leaves, leaf[i], slot, level)


@kernel
def add_atom(columns, leaves, slot, atom, leaf, first, end, at_atoms, total):
    """Add the log density of an atom to the totals of the leaves first..end-1, from those known (`Forest.at_atoms`)."""
    at = columns.atom_start[slot] + atom
    for i in range(first, end):
        if total[i] == -math.inf:
            continue
        k = leaf[i]
        if at_atoms[k, at] == 0.0:
            log_density = value_log_density(columns, leaves, k, slot, columns.atom_value[at], atom)
            at_atoms[k, at] = log_density if log_density != 0.0 else _CERTAIN
        total[i] += at_atoms[k, at]


@kernel
def add_value(columns, leaves, slot, x, leaf, first, end, at_atoms, total):
    """Add the log density of a number (`slot_kernels.value_log_density`) to the totals of the leaves first..end-1."""
    atom = find_atom(columns, slot, x)
    if atom >= 0:
        add_atom(columns, leaves, slot, atom, leaf, first, end, at_atoms, total)
        return
    step, log_rest = columns.step[slot], leaves.log_rest
    centre = cell_centre(step, columns.origin[slot], x) if step > 0.0 else x
    for i in range(first, end):
        k = leaf[i]
        if total[i] == -math.inf:
            continue
        total[i] += log_rest[k, slot] + rest_log_density(leaves, k, slot, centre, step)


@kernel
def add_region(columns, leaves, evidence, j, region, leaf, first, end, total):
    """Add the log mass of a region of column j to the totals of the leaves first..end-1 of the list."""
    slot, is_categorical = columns.slot[j], columns.is_categorical[j]
    for i in range(first, end):
        if total[i] == -math.inf:
            continue
        if is_categorical:
            total[i] += level_region_log_mass(columns, leaves, evidence, leaf[i], slot, region)
        else:
            total[i] += region_log_mass(columns, leaves, evidence, leaf[i], slot, region)


@kernel
def knows_nothing(evidence, row):
    """Whether no cell of the row has a value or a region."""
    for j in range(evidence.value.shape[1]):
        if not math.isnan(evidence.value[row, j]) or cell_region(evidence, row, j) >= 0:
            return False
    return True


@kernel
def add_cells(columns, leaves, evidence, row, leaf, first, end, at_atoms, log_weight):
    """Add the log density of the row's cells to the totals of the leaves first..end-1 of the list."""
    for categorical in (1, 0):  # levels first: they are cheap, and may rule leaves out
        for j in range(evidence.value.shape[1]):
            if columns.is_categorical[j] != categorical:
                continue
            x, region, slot = evidence.value[row, j], cell_region(evidence, row, j), columns.slot[j]
            if x == x and categorical:
                add_level(leaves, slot, int(x), leaf, first, end, log_weight)
            elif x == x:
                add_value(columns, leaves, slot, x, leaf, first, end, at_atoms, log_weight)
            elif region >= 0:
                add_region(columns, leaves, evidence, j, region, leaf, first, end, log_weight)


@record
class _RowScratch(NamedTuple):
    """What weighing a row of evidence writes to, used again from row to row; see `row_scratch`.

    stack : int32 array, as long as all trees have nodes. Nodes still to be visited.
    leaf : int32 array (L,), log_weight : float64 array (L,). Leaves of the row, and log p(leaf, evidence).
    at_atoms : float64 array (L, A). `Forest.at_atoms`: this is kept.
    """

    stack: np.ndarray
    leaf: np.ndarray
    log_weight: np.ndarray
    at_atoms: np.ndarray


def row_scratch(forest: Forest) -> _RowScratch:
    """Scratch for weighing rows under this forest."""
    leaves = forest.leaves
    n_leaves = len(leaves.log_weight)
    return _RowScratch(
        stack=np.empty(len(forest.trees.feature), np.int32),
        leaf=np.empty(n_leaves, np.int32),
        log_weight=np.empty(n_leaves),
        at_atoms=forest.at_atoms,
    )


@kernel
def weigh_row(columns, trees, leaves, evidence, row, scratch):
    """Write the leaves of positive p(leaf, evidence) in the row, and its logarithm, to the scratch; return how many."""
    leaf, log_weight = scratch.leaf, scratch.log_weight
    if knows_nothing(evidence, row):
        n = leaves.log_weight.shape[0]
        for i in range(n):
            leaf[i] = i
            log_weight[i] = leaves.log_weight[i]
        return n
    n = reachable(columns, trees, evidence, row, scratch.stack, leaf)
    for i in range(n):
        log_weight[i] = leaves.log_weight[leaf[i]]
    for first in range(0, n, _BLOCK):
        end = min(first + _BLOCK, n)
        add_cells(columns, leaves, evidence, row, leaf, first, end, scratch.at_atoms, log_weight)
    kept = 0
    for i in range(n):
        if log_weight[i] > -math.inf:
            leaf[kept], log_weight[kept] = leaf[i], log_weight[i]
            kept += 1
    return kept


@kernel
def log_sum(x, n):
    """log of the sum of exp of the first n entries, in their order."""
    top = -math.inf
    for i in range(n):
        top = max(top, x[i])
    if top == -math.inf:
        return top
    total = 0.0
    for i in range(n):
        total += math.exp(x[i] - top)
    return top + math.log(total)


@entry
def posterior_rows(columns, trees, leaves, evidence, first, stop, keeps_leaves, scratch):
    """Start, leaf, log_weight and log_evidence (see `posterior.LeafPosterior`) of the rows first..stop-1."""
    # Without ``keeps_leaves`` log_evidence alone. One kernel does both, because weighing rows takes long to compile.
    start = np.zeros(stop - first + 1, np.int64)
    all_leaf = np.empty(1024 if keeps_leaves else 0, np.int32)
    all_log_weight = np.empty(all_leaf.shape[0], np.float64)
    log_evidence = np.empty(stop - first, np.float64)
    end = np.int64(0)
    for row in range(first, stop):
        n = weigh_row(columns, trees, leaves, evidence, row, scratch)
        leaf, log_weight = scratch.leaf, scratch.log_weight
        log_evidence[row - first] = log_sum(log_weight, n)
        if not keeps_leaves:
            continue
        if end + n > all_leaf.shape[0]:
            size = max(2 * all_leaf.shape[0], end + n)
            all_leaf, all_log_weight = widened(all_leaf, end, size), widened(all_log_weight, end, size)
        for i in range(n):
            all_leaf[end + i], all_log_weight[end + i] = leaf[i], log_weight[i]
        end += n
        start[row - first + 1] = end
    return start, all_leaf[:end], all_log_weight[:end], log_evidence


@kernel
def widened(x, n, size):
    """An array of this size that starts with the first n entries of x."""
    wider = np.empty(size, x.dtype)
    for i in range(n):
        wider[i] = x[i]
    return wider


# ---- One column given evidence: mixtures of its distributions in the leaves that the evidence reaches.


class RowMixture(NamedTuple):
    """Leaves and their weights.

    leaf : int32 array (n,)
    weight : float64 array (n,). They sum to 1.
    """

    leaf: np.ndarray
    weight: np.ndarray


@kernel
def row_mixture(post, i):
    """The mixture that row i of the posterior is."""
    leaf = post.leaf[post.start[i] : post.start[i + 1]]
    weight = np.empty(leaf.shape[0], np.float64)
    for k in range(leaf.shape[0]):
        weight[k] = math.exp(post.log_weight[post.start[i] + k] - post.log_evidence[i])
    return RowMixture(leaf, weight)


# ---- Kernels of level probabilities.


@kernel
def mixed_levels(columns, leaves, evidence, slot, region, mixture):
    """Level probabilities of a slot, given the region, in a mixture; (K,)."""
    leaf, weight = mixture
    out = np.zeros(columns.level_start[slot + 1] - columns.level_start[slot], np.float64)
    for i in range(leaf.shape[0]):
        if region < 0:
            add_levels(leaves, leaf[i], slot, out.shape[0], weight[i], out)
            continue
        log_mass = level_region_log_mass(columns, leaves, evidence, leaf[i], slot, region)
        for run in range(evidence.run_start[region], evidence.run_start[region + 1]):
            first, end = run_levels(evidence, run, out.shape[0])
            scale = evidence.run_log_weight[run] - log_mass
            for k in range(first, end):
                out[k] += weight[i] * math.exp(log_level(leaves, leaf[i], slot, k) + scale)
    return out


@entry
def level_rows(columns, leaves, evidence, j, post, first):
    """Level probabilities of column j in each row of the posterior (of the rows first..); shape (rows, K)."""
    n = post.log_evidence.shape[0]
    slot = columns.slot[j]
    out = np.zeros((n, columns.level_start[slot + 1] - columns.level_start[slot]), np.float64)
    for i in range(n):
        x = evidence.value[first + i, j]
        if post.log_evidence[i] == -math.inf:
            out[i] = math.nan
        elif x == x:
            out[i, int(x)] = 1.0
        else:
            region = cell_region(evidence, first + i, j)
            out[i] = mixed_levels(columns, leaves, evidence, slot, region, row_mixture(post, i))
    return out


@entry
def level_sums(leaves, slot, size, leaf, weight, place, out):
    """Add the weight (m,) times the level masses of leaves (m,) to rows ``place`` (m,) of ``out`` (., K)."""
    for i in range(leaf.shape[0]):
        add_levels(leaves, leaf[i], slot, size, weight[i], out[place[i]])


# ---- Kernels of means and variances.


@entry
def leaf_moments(columns, leaves, evidence, j, first, stop):
    """Mean and variance of column j in the leaves first..stop-1, nothing known of it; (stop - first, 2)."""
    out = np.empty((stop - first, 2), np.float64)
    for leaf in range(first, stop):
        out[leaf - first] = slot_mean_variance(columns, leaves, evidence, np.int32(leaf), columns.slot[j], np.int64(-1))
    return out


@kernel
def mixed_moments(columns, leaves, evidence, slot, region, mixture, table):
    """Mean and variance of a slot in a mixture of leaves, by the law of total variance around the mixture's mean."""
    # ``table`` holds the leaves' unconditional moments; if it is empty they are computed here.
    leaf, weight = mixture
    moments = np.zeros((leaf.shape[0], 2), np.float64)
    mean, variance = 0.0, 0.0
    for i in range(leaf.shape[0]):
        if weight[i] > 0.0:
            if region < 0 and table.shape[0] > 0:
                moments[i] = table[leaf[i]]
            else:
                moments[i] = slot_mean_variance(columns, leaves, evidence, leaf[i], slot, region)
            mean += weight[i] * moments[i, 0]
    for i in range(leaf.shape[0]):
        variance += weight[i] * (moments[i, 1] + (moments[i, 0] - mean) ** 2)
    return mean, variance


@entry
def mean_variance_rows(columns, leaves, evidence, j, post, first, table):
    """Mean and variance of column j in each row of the posterior (of the rows first..); shape (rows, 2)."""
    n = post.log_evidence.shape[0]
    out = np.empty((n, 2), np.float64)
    for i in range(n):
        x = evidence.value[first + i, j]
        if post.log_evidence[i] == -math.inf:
            out[i] = math.nan
        elif x == x:
            out[i, 0], out[i, 1] = known_number(columns, columns.slot[j], x), 0.0
        else:
            region = cell_region(evidence, first + i, j)
            out[i] = mixed_moments(columns, leaves, evidence, columns.slot[j], region, row_mixture(post, i), table)
    return out


# ---- Kernels of one numeric column's posterior distribution: CDF and density.


@kernel
def mixed_cdf(columns, leaves, evidence, slot, region, mixture, x):
    """P(X <= x) in a mixture of leaves."""
    leaf, weight = mixture
    total = 0.0
    for i in range(leaf.shape[0]):
        if weight[i] > 0.0:
            total += weight[i] * slot_cdf(columns, leaves, evidence, leaf[i], slot, region, x)
    return total


@kernel
def mixed_pdf(columns, leaves, evidence, slot, region, mixture, x):
    """Density (atoms of slots without grid: mass) of x in a mixture of leaves."""
    log_weight = -math.inf if math.isinf(x) else log_likelihood(columns, evidence, slot, region, x)
    if log_weight == -math.inf:
        return 0.0
    atom = find_atom(columns, slot, x)
    leaf, weight = mixture
    total = 0.0
    for i in range(leaf.shape[0]):
        if weight[i] > 0.0:
            log_density = value_log_density(columns, leaves, leaf[i], slot, x, atom)
            log_density += log_weight - region_log_mass(columns, leaves, evidence, leaf[i], slot, region)
            total += weight[i] * math.exp(log_density)
    return total


@kernel
def known_cdf(columns, slot, value, x):
    """P(X <= x) of a known value: 1 from it, on a grid from the centre of its cell."""
    return 1.0 if x >= known_number(columns, slot, value) - 1e-6 * columns.step[slot] else 0.0


@kernel
def known_pdf(columns, slot, value, x):
    """Density of a known value: 1/step on its grid cell; 1 on an atom; otherwise infinite there; 0 elsewhere."""
    step, origin = columns.step[slot], columns.origin[slot]
    if step > 0.0:
        return 1.0 / step if cell_centre(step, origin, x) == cell_centre(step, origin, value) else 0.0
    if x != value:
        return 0.0
    return 1.0 if find_atom(columns, slot, x) >= 0 else math.inf


@kernel
def rows_at_points(columns, leaves, evidence, j, post, first, x, is_density):
    """CDF or density of column j at the points x in each row of the posterior (of the rows first..)."""
    n, slot = post.log_evidence.shape[0], columns.slot[j]
    out = np.empty((n, x.shape[0]), np.float64)
    for i in range(n):
        value = evidence.value[first + i, j]
        region = cell_region(evidence, first + i, j)
        mixture = row_mixture(post, i)
        for k in range(x.shape[0]):
            if post.log_evidence[i] == -math.inf or math.isnan(x[k]):
                out[i, k] = math.nan
            elif value == value:
                at = known_pdf(columns, slot, value, x[k]) if is_density else known_cdf(columns, slot, value, x[k])
                out[i, k] = at
            elif is_density:
                out[i, k] = mixed_pdf(columns, leaves, evidence, slot, region, mixture, x[k])
            else:
                out[i, k] = mixed_cdf(columns, leaves, evidence, slot, region, mixture, x[k])
    return out


@entry
def cdf_rows(columns, leaves, evidence, j, post, first, x):
    """P(column j <= x) in each row of the posterior (of the rows first..); shape (rows, len(x))."""
    return rows_at_points(columns, leaves, evidence, j, post, first, x, False)


@entry
def pdf_rows(columns, leaves, evidence, j, post, first, x):
    """Density of column j at x in each row of the posterior (of the rows first..); shape (rows, len(x))."""
    return rows_at_points(columns, leaves, evidence, j, post, first, x, True)


# ---- Kernels: the posterior over leaves, with trees weighed anew.


@entry
def weigh_trees(start, log_weight, fallen, tree, n_trees, beta):
    """Log-weights of the entries when tree t counts (pi_t p_t(evidence))^beta, and the log of their sum by row."""
    # ``tree`` (M,) ascends within a row; trees from ``n_trees`` on (the background) do not count. ``fallen`` (M,) marks
    # trees with p_t(evidence) = 0, which count only where all trees of the row are such, or if beta is 0.
    out = np.full(log_weight.shape[0], -math.inf)
    log_sum = np.full(start.shape[0] - 1, -math.inf)
    log_tree, power = np.empty(n_trees + 1), np.empty(n_trees)
    for i in range(start.shape[0] - 1):
        first, end = start[i], start[i + 1]
        log_tree[:] = -math.inf
        power[:] = -math.inf
        a = first
        while a < end:
            b = a
            top = -math.inf
            while b < end and tree[b] == tree[a]:
                top = max(top, log_weight[b])
                b += 1
            total = 0.0
            for k in range(a, b):
                total += math.exp(log_weight[k] - top)
            log_tree[tree[a]] = top + math.log(total)
            if tree[a] < n_trees and not fallen[a]:
                power[tree[a]] = beta * log_tree[tree[a]]
            a = b
        if beta == 0.0 or power.max() == -math.inf:
            power[:] = np.where(log_tree[:n_trees] > -math.inf, 0.0, -math.inf)
        top = power.max()
        if top == -math.inf:
            continue
        log_total = top + math.log(np.exp(power - top).sum())
        log_sum[i] = 0.0
        for k in range(first, end):
            if tree[k] < n_trees and power[tree[k]] > -math.inf:
                out[k] = log_weight[k] - log_tree[tree[k]] + power[tree[k]] - log_total
    return out, log_sum


@entry
def with_routed(columns, trees, leaves, evidence, first, post, wanted, n_trees, scratch):
    """The posterior's entries and, of trees with p_t(evidence) = 0, the leaves that the evidence can reach."""
    # Their boxes are still informative. Each weighs as its share of rows. Returns start, leaf, log weight, and whether
    # an entry is one of these.
    n = post.log_evidence.shape[0]
    met = np.empty(n_trees, np.bool_)
    start = np.zeros(n + 1, np.int64)
    leaf, log_weight = np.empty(post.leaf.shape[0], np.int32), np.empty(post.leaf.shape[0], np.float64)
    is_fallen = np.empty(post.leaf.shape[0], np.bool_)
    end = np.int64(0)
    for i in range(n):
        met[:] = False
        for k in range(post.start[i], post.start[i + 1]):
            if leaves.tree[post.leaf[k]] < n_trees:
                met[leaves.tree[post.leaf[k]]] = True
        fallen = np.int64(0)
        if not met.all():
            fallen = entries_of_others(columns, trees, leaves, evidence, first + i, wanted, met, scratch)
        size = fallen + post.start[i + 1] - post.start[i]
        if end + size > leaf.shape[0]:
            longer = max(2 * leaf.shape[0], end + size)
            leaf, log_weight = widened(leaf, end, longer), widened(log_weight, end, longer)
            is_fallen = widened(is_fallen, end, longer)
        a, b = post.start[i], 0
        for k in range(end, end + size):  # both are in the order of trees
            if b == fallen or (a < post.start[i + 1] and leaves.tree[post.leaf[a]] < leaves.tree[scratch.leaf[b]]):
                leaf[k], log_weight[k], is_fallen[k] = post.leaf[a], post.log_weight[a], False
                a += 1
            else:
                leaf[k], log_weight[k], is_fallen[k] = scratch.leaf[b], scratch.log_weight[b], True
                b += 1
        end += size
        start[i + 1] = end
    return start, leaf[:end], log_weight[:end], is_fallen[:end]


@kernel
def entries_of_others(columns, trees, leaves, evidence, row, wanted, met, scratch):
    """Write the leaves that a row can reach in trees that are not in ``met``, with their share of rows; how many."""
    leaf, log_weight = scratch.leaf, scratch.log_weight
    kept = 0
    for k in range(reachable(columns, trees, evidence, row, scratch.stack, leaf)):
        at = leaf[k]
        if leaves.tree[at] < met.shape[0] and not met[leaves.tree[at]]:
            leaf[kept], log_weight[kept] = at, leaves.log_weight[at]
            kept += 1
    region = cell_region(evidence, row, wanted) if wanted >= 0 else -1
    return leaves_that_meet(columns, leaves, evidence, wanted, region, leaf, log_weight, kept) if region >= 0 else kept


@kernel
def leaves_that_meet(columns, leaves, evidence, column, region, leaf, log_weight, n):
    """Keep those of the n leaves that give the column's region some mass, in place; return how many."""
    kept, slot = 0, columns.slot[column]
    for k in range(n):
        if columns.is_categorical[column]:
            log_mass = level_region_log_mass(columns, leaves, evidence, leaf[k], slot, region)
        else:
            log_mass = region_log_mass(columns, leaves, evidence, leaf[k], slot, region)
        if log_mass > -math.inf:
            leaf[kept], log_weight[kept] = leaf[k], log_weight[k]
            kept += 1
    return kept
