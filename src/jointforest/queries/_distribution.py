"""Kernels of one numeric column's posterior distribution: CDF, density, quantiles."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ..leaves._grid import cell_centre
from ..leaves._slots import find_atom, region_log_mass, slot_cdf, value_log_density
from ._mixture import row_mixture
from ._moments import mixed_moments
from ._regions import cell_region, in_region


@njit(nogil=True, cache=True)
def mixed_cdf(columns, leaves, evidence, slot, region, leaf, weight, x):
    """P(X <= x) in a mixture of leaves."""
    total = 0.0
    for i in range(leaf.shape[0]):
        if weight[i] > 0.0:
            total += weight[i] * slot_cdf(columns, leaves, evidence, leaf[i], slot, region, x)
    return total


@njit(nogil=True, cache=True)
def mixed_pdf(columns, leaves, evidence, slot, region, leaf, weight, x):
    """Density (atoms of slots without grid: mass) of x in a mixture of leaves."""
    if math.isinf(x) or (region >= 0 and not in_region(columns, evidence, slot, region, x)):
        return 0.0
    atom = find_atom(columns, slot, x)
    total = 0.0
    for i in range(leaf.shape[0]):
        if weight[i] > 0.0:
            log_density = value_log_density(columns, leaves, leaf[i], slot, x, atom)
            log_density -= region_log_mass(columns, leaves, evidence, leaf[i], slot, region)
            total += weight[i] * math.exp(log_density)
    return total


@njit(nogil=True, cache=True)
def known_pdf(columns, slot, value, x):
    """Density of a known value: 1/step on its grid cell; 1 on an atom; otherwise infinite there; 0 elsewhere."""
    step, origin = columns.step[slot], columns.origin[slot]
    if step > 0.0:
        return 1.0 / step if cell_centre(step, origin, x) == cell_centre(step, origin, value) else 0.0
    if x != value:
        return 0.0
    return 1.0 if find_atom(columns, slot, x) >= 0 else math.inf


@njit(nogil=True, cache=True)
def bracket(columns, leaves, evidence, slot, region, leaf, weight, q, at, width):
    """Points with F(low) < q <= F(high), by steps of doubled width from ``at``."""
    if mixed_cdf(columns, leaves, evidence, slot, region, leaf, weight, at) >= q:
        high, low = at, at - width
        while mixed_cdf(columns, leaves, evidence, slot, region, leaf, weight, low) >= q:
            width *= 2.0
            high, low = low, low - width
    else:
        low, high = at, at + width
        while mixed_cdf(columns, leaves, evidence, slot, region, leaf, weight, high) < q:
            width *= 2.0
            low, high = high, high + width
    return low, high


@njit(nogil=True, cache=True)
def grid_quantile(columns, leaves, evidence, slot, region, leaf, weight, q, mean, spread):
    """Lowest cell centre with F >= q, by bisection on the cell's number."""
    step, origin = columns.step[slot], columns.origin[slot]
    at = origin + np.floor((mean - origin) / step) * step
    width = max(1.0, np.ceil(spread / step)) * step
    low, high = bracket(columns, leaves, evidence, slot, region, leaf, weight, q, at, width)
    first, last = np.floor((low - origin) / step + 0.5), np.floor((high - origin) / step + 0.5)
    while last - first > 1.0:
        middle = np.floor(0.5 * (first + last))
        if middle in (first, last):
            break  # beyond 2**53 cells
        if mixed_cdf(columns, leaves, evidence, slot, region, leaf, weight, origin + middle * step) >= q:
            last = middle
        else:
            first = middle
    return origin + last * step


@njit(nogil=True, cache=True)
def density_quantile(columns, leaves, evidence, slot, region, leaf, weight, q, mean, spread):
    """Lowest x with F >= q where there is no grid: an atom exactly, otherwise to 1e-10 of the spread."""
    low, high = -math.inf, math.inf
    first, last = columns.atom_start[slot], columns.atom_start[slot + 1]
    while first < last:  # the lowest atom with F >= q, and the one below it
        middle = (first + last) // 2
        atom = columns.atom_value[middle]
        if mixed_cdf(columns, leaves, evidence, slot, region, leaf, weight, atom) >= q:
            high, last = atom, middle
        else:
            low, first = atom, middle + 1
    if high < math.inf:
        before = np.nextafter(high, -math.inf)
        if mixed_cdf(columns, leaves, evidence, slot, region, leaf, weight, before) < q:
            return high
        high = before
    if low == -math.inf or high == math.inf:
        outer = bracket(columns, leaves, evidence, slot, region, leaf, weight, q, min(max(mean, low), high), spread)
        low, high = max(low, outer[0]), min(high, outer[1])
    while high - low > 1e-10 * spread:
        middle = low + 0.5 * (high - low)
        if middle <= low or middle >= high:
            break
        if mixed_cdf(columns, leaves, evidence, slot, region, leaf, weight, middle) >= q:
            high = middle
        else:
            low = middle
    return high


@njit(nogil=True, cache=True)
def cdf_rows(columns, leaves, evidence, j, post, first, x):
    """P(column j <= x) in each row of the posterior (of the rows first..); shape (rows, len(x))."""
    n = post.log_evidence.shape[0]
    out = np.empty((n, x.shape[0]), np.float64)
    for i in range(n):
        value = evidence.value[first + i, j]
        region = cell_region(evidence, first + i, j)
        leaf, weight = row_mixture(post, i)
        for k in range(x.shape[0]):
            if post.log_evidence[i] == -math.inf or math.isnan(x[k]):
                out[i, k] = math.nan
            elif value == value:
                out[i, k] = 1.0 if x[k] >= value else 0.0
            else:
                out[i, k] = mixed_cdf(columns, leaves, evidence, columns.slot[j], region, leaf, weight, x[k])
    return out


@njit(nogil=True, cache=True)
def pdf_rows(columns, leaves, evidence, j, post, first, x):
    """Density of column j at x in each row of the posterior (of the rows first..); shape (rows, len(x))."""
    n = post.log_evidence.shape[0]
    out = np.empty((n, x.shape[0]), np.float64)
    for i in range(n):
        value = evidence.value[first + i, j]
        region = cell_region(evidence, first + i, j)
        leaf, weight = row_mixture(post, i)
        for k in range(x.shape[0]):
            if post.log_evidence[i] == -math.inf or math.isnan(x[k]):
                out[i, k] = math.nan
            elif value == value:
                out[i, k] = known_pdf(columns, columns.slot[j], value, x[k])
            else:
                out[i, k] = mixed_pdf(columns, leaves, evidence, columns.slot[j], region, leaf, weight, x[k])
    return out


@njit(nogil=True, cache=True)
def quantile_rows(columns, leaves, evidence, j, post, first, q):
    """Quantiles of column j in each row of the posterior (of the rows first..); shape (rows, len(q))."""
    n = post.log_evidence.shape[0]
    slot = columns.slot[j]
    out = np.empty((n, q.shape[0]), np.float64)
    nothing = np.empty((0, 2), np.float64)
    for i in range(n):
        value = evidence.value[first + i, j]
        if post.log_evidence[i] == -math.inf:
            out[i] = math.nan
        elif value == value:
            out[i] = value
        else:
            region = cell_region(evidence, first + i, j)
            leaf, weight = row_mixture(post, i)
            mean, variance = mixed_moments(columns, leaves, evidence, slot, region, leaf, weight, nothing)
            spread = max(math.sqrt(variance), 1e-12 * abs(mean), 1e-300)
            most = mixed_cdf(columns, leaves, evidence, slot, region, leaf, weight, math.inf)  # 1, up to rounding
            for k in range(q.shape[0]):
                p = min(q[k], most)
                if columns.step[slot] > 0.0:
                    out[i, k] = grid_quantile(columns, leaves, evidence, slot, region, leaf, weight, p, mean, spread)
                else:
                    out[i, k] = density_quantile(columns, leaves, evidence, slot, region, leaf, weight, p, mean, spread)
    return out
