"""Kernels of one numeric column's posterior distribution: CDF and density."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel, entry, kernel
from ...leaves.one_slot.grid_kernels import cell_centre
from ...leaves.one_slot.slot_kernels import find_atom, region_log_mass, slot_cdf, value_log_density
from ..posterior.region_kernels import cell_region, known_number, log_likelihood
from .mixture_kernels import row_mixture


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
