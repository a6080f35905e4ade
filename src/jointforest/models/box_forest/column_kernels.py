"""A row's posterior as a mixture of leaves."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import array_kernel, entry, kernel
from .leaves.grid_kernels import cell_centre
from .leaves.level_kernels import add_levels, log_level
from .leaves.slot_kernels import (
    find_atom,
    level_region_log_mass,
    region_log_mass,
    run_levels,
    slot_cdf,
    slot_mean_variance,
    value_log_density,
)
from .region_kernels import cell_region, known_number, log_likelihood


class Mixture(NamedTuple):
    """Parameter rows that describe a column (leaves, where there are no circuits), and their weights.

    Attributes
    ----------
    leaf : int32 array (n,)
    weight : float64 array (n,)
        They sum to 1.
    """

    leaf: np.ndarray
    weight: np.ndarray


@array_kernel
def row_mixture(post, i):
    """The mixture that row i of the posterior is."""
    leaf = post.leaf[post.start[i] : post.start[i + 1]]
    weight = np.empty(leaf.shape[0], np.float64)
    for k in range(leaf.shape[0]):
        weight[k] = math.exp(post.log_weight[post.start[i] + k] - post.log_evidence[i])
    return Mixture(leaf, weight)


# ---- Kernels of level probabilities.


@array_kernel
def mixed_levels(columns, leaves, evidence, slot, region, mixture):
    """Level probabilities of a slot, given the region, in a mixture; (K,)."""
    leaf, weight = mixture
    out = np.zeros(columns.level_start[slot + 1] - columns.level_start[slot], np.float64)
    for i in range(leaf.shape[0]):
        if region < 0:
            add_levels(leaves, leaf[i], slot, out.shape[0], weight[i], out, 0)
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
        add_levels(leaves, leaf[i], slot, size, weight[i], out[place[i]], 0)


# ---- Kernels of means and variances.


@entry
def leaf_moments(columns, leaves, evidence, j, described, first, stop):
    """Mean and variance of column j in the parameter rows first..stop-1, nothing known of it; (stop - first, 2).

    NaN in parameter rows that are not ``described`` (bool (R,)): those of circuits that say nothing of the column.
    """
    out = np.full((stop - first, 2), math.nan)
    for row in range(first, stop):
        if described[row]:
            both = slot_mean_variance(columns, leaves, evidence, np.int32(row), columns.slot[j], np.int64(-1))
            out[row - first] = both
    return out


@array_kernel
def mixed_moments(columns, leaves, evidence, slot, region, mixture, table):
    """Mean and variance of a slot in a mixture of leaves, by the law of total variance around the mixture's mean.

    ``table`` holds the leaves' unconditional moments; if it is empty they are computed here.
    """
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


@array_kernel
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
