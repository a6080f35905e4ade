"""Kernels: statistics of every leaf of one tree, column by column, and the parameters made from them."""

import math

import numpy as np

from ...models.box_forest.leaves.family_kernels import log_mass, log_norm, mean_variance
from ...models.box_forest.leaves.slot_kernels import value_log_density
from ...models.box_forest.leaves.table import NORMAL, Density
from ...runtime.compile import entry, kernel

CENTRAL_95 = 3.92
"""Width of the central 95 % of a normal, in standard deviations: the paper's code gives a box that much of one."""


@entry
def rows_by_leaf(leaf_of, n_leaves):
    """Rows sorted by leaf: (rows (n,), start (n_leaves + 1,)); rows with leaf -1 are left out."""
    start = np.zeros(n_leaves + 1, np.int64)
    for leaf in leaf_of:
        if leaf >= 0:
            start[leaf + 1] += 1
    for leaf in range(n_leaves):
        start[leaf + 1] += start[leaf]
    rows = np.empty(start[n_leaves], np.int32)
    fill = start[:-1].copy()
    for i in range(leaf_of.shape[0]):
        leaf = leaf_of[i]
        if leaf >= 0:
            rows[fill[leaf]] = i
            fill[leaf] += 1
    return rows, start


@entry
def numeric_statistics(x, atom, rows, start, weight, unit, atoms, off_atoms, missing):
    """Add up, per leaf, a numeric column ``x`` (n,) on atoms ``atom`` (n,; -1: none); row i counts ``weight[i]``."""
    # unit : float. What deviations are measured in.
    # atoms : float64 array (n_leaves, n_atoms). Receives the weight of the rows on each atom.
    # off_atoms : float64 array (n_leaves, 5). Others: weight, mean, squared deviations in units, smallest, largest.
    # missing : float64 array (n_leaves,). Weight of the missing cells.
    # All three come as zeros.
    for leaf in range(start.shape[0] - 1):
        n = 0.0
        shift = 0.0
        smallest = math.inf
        largest = -math.inf
        for i in range(start[leaf], start[leaf + 1]):
            r = rows[i]
            v = x[r]
            if math.isnan(v):
                missing[leaf] += weight[r]
            elif atom[r] >= 0:
                atoms[leaf, atom[r]] += weight[r]
            else:
                n += weight[r]
                shift = v
                smallest = min(smallest, v)
                largest = max(largest, v)
        off_atoms[leaf, 0] = n
        if n > 0.0:
            total = 0.0  # about a value of the leaf, so that a narrow spread far from 0 is not lost
            for i in range(start[leaf], start[leaf + 1]):
                r = rows[i]
                if atom[r] < 0 and not math.isnan(x[r]):
                    total += weight[r] * ((x[r] - shift) / unit)
            mean = shift + unit * (total / n)
            squares = 0.0
            for i in range(start[leaf], start[leaf + 1]):
                r = rows[i]
                if atom[r] < 0 and not math.isnan(x[r]):
                    squares += weight[r] * ((x[r] - mean) / unit) ** 2
            off_atoms[leaf, 1] = mean
            off_atoms[leaf, 2] = squares
            off_atoms[leaf, 3] = smallest
            off_atoms[leaf, 4] = largest


@entry
def atom_masses(value, share, atoms, off_atoms, lo, hi, smoothing, mass):
    """Masses of a column's atoms into ``mass`` (n_leaves, n_atoms), smoothed by its shares; 0 outside the box."""
    rest_prior = 1.0
    for k in range(value.shape[0]):
        rest_prior -= share[k]
    rest_prior = max(rest_prior, 0.0)
    for leaf in range(lo.shape[0]):
        prior = rest_prior
        total = off_atoms[leaf, 0]
        for k in range(value.shape[0]):
            total += atoms[leaf, k]
            if lo[leaf] < value[k] <= hi[leaf]:
                prior += share[k]
        pseudo = smoothing if total > 0.0 or smoothing > 0.0 else 1.0
        scale = pseudo / prior if prior > 0.0 else 0.0
        total += scale * prior
        for k in range(value.shape[0]):
            inside = lo[leaf] < value[k] <= hi[leaf] and total > 0.0
            mass[leaf, k] = (atoms[leaf, k] + scale * share[k]) / total if inside else 0.0


@entry
def means_and_spreads(off_atoms, lo, hi, unit, centre, low, high, floor, pooled, spread_rows):
    """Mean and standard deviation (l,) of a column in each leaf; the variance is shrunk to the ``pooled`` one."""
    mean = np.empty(lo.shape[0])
    spread = np.empty(lo.shape[0])
    for leaf in range(lo.shape[0]):
        n, squares = off_atoms[leaf, 0], off_atoms[leaf, 2]
        left, right = max(lo[leaf], low), min(hi[leaf], high)
        default = max((right - left) / CENTRAL_95, floor)
        freedom = max(n - 1.0, 0.0)
        if spread_rows > 0.0:
            target = (default / unit) ** 2
            if pooled > 0.0:
                target = min(pooled, target)
            b = unit * math.sqrt((squares + spread_rows * target) / (freedom + spread_rows))
        elif n > 1.0:
            b = unit * math.sqrt(squares / max(freedom, 1.0))
        else:
            b = default
        mean[leaf] = off_atoms[leaf, 1] if n > 0.0 else min(max(centre, left), right)
        spread[leaf] = max(b, floor)
    return mean, spread


@kernel
def _count_levels(codes, rows, first, end, weight, count):
    """Add the rows first..end-1 to the counts of their levels (K,); the weight of those without one."""
    absent = 0.0
    for i in range(first, end):
        r = rows[i]
        if codes[r] < 0:
            absent += weight[r]
        else:
            count[codes[r]] += weight[r]
    return absent


@entry
def level_counts(codes, rows, start, weight, count, missing):
    """Add the weights of rows with each level to ``count`` (n_leaves, K), and of those without one to ``missing``."""
    for leaf in range(start.shape[0] - 1):
        missing[leaf] = _count_levels(codes, rows, start[leaf], start[leaf + 1], weight, count[leaf])


@entry
def wide_level_counts(codes, rows, start, weight, count, listed, missing):
    """Write leaves, levels and weights that occur in a column of many levels; how many. ``count`` (K,) is zeros."""
    n_listed = 0
    leaf_of, level_of, total = listed
    for leaf in range(start.shape[0] - 1):
        missing[leaf] = _count_levels(codes, rows, start[leaf], start[leaf + 1], weight, count)
        for k in range(count.shape[0]):
            if count[k] > 0.0:
                leaf_of[n_listed], level_of[n_listed], total[n_listed] = leaf, k, count[k]
                n_listed += 1
            count[k] = 0.0
    return n_listed


@entry
def level_masses(count, pseudo, prior, allowed, mass):
    """Smoothed level masses of one column into ``mass`` (n_leaves, K); pseudo-rows have the shares ``prior`` (K,)."""
    # Watson et al. 2023, Algorithm 2: (rows with the level + pseudo-rows) / total over the levels that the box allows.
    n_leaves, n_levels = count.shape
    for leaf in range(n_leaves):
        total = 0.0
        for k in range(n_levels):
            mass[leaf, k] = count[leaf, k] + pseudo * prior[k] if allowed[leaf, k] else 0.0
            total += mass[leaf, k]
        if total <= 0.0:
            for k in range(n_levels):
                mass[leaf, k] = prior[k] if allowed[leaf, k] else 0.0
                total += mass[leaf, k]
        for k in range(n_levels):
            mass[leaf, k] /= total


@entry
def wide_level_masses(leaf_of, level_of, count, pseudo, prior, allowed, scale, mass):
    """`level_masses` of a column of many levels, into ``mass`` (n,): what is beyond ``scale`` times the prior."""
    at = 0
    for leaf in range(scale.shape[0]):
        first, shared, total = at, 0.0, 0.0
        for k in range(prior.shape[0]):
            counted = 0.0
            if at < leaf_of.shape[0] and leaf_of[at] == leaf and level_of[at] == k:
                counted = count[at] if allowed[leaf, k] else 0.0
                mass[at] = counted
                at += 1
            if allowed[leaf, k]:
                shared += prior[k]
                total += counted + pseudo * prior[k]
        for i in range(first, at):
            mass[i] /= total
        if total > 0.0:
            scale[leaf] = pseudo / total
        else:
            scale[leaf] = 1.0 / shared if shared > 0.0 else 0.0


# ---- Kernels: parents of truncated normals with given moments, and the mass that leaves put beyond the data.

_ROUNDS = 60
"""Most rounds; leaves without a finite solution would go on for ever."""
_TOLERANCE = 1e-8
"""Change of location and scale, in scales, at which the rounds end: far below the error of a leaf's moments."""
_LAST_STEP = 1e-5
"""Newton step, in scales, after which no other is taken. The error is about its square: the curvature is at most 2."""


@entry
def truncated_mle(mean, spread, lo, hi, floor, ceiling):
    """Parameters a, b (l,) of the parents whose parts on (lo, hi] have these means and standard deviations (l,)."""
    # The truncated normal is an exponential family, so matching the first two moments is maximum likelihood (Cohen
    # 1959). The two equations are solved in turn: a Newton step for the location (d mean / d mu = variance / sigma^2),
    # a fixed-point step for the scale. Where no finite solution exists (flat or U-shaped leaves) the scale stops at
    # the ceiling, nearly uniform.
    a = mean.copy()
    b = spread.copy()
    for leaf in range(mean.shape[0]):
        if lo[leaf] == -math.inf and hi[leaf] == math.inf:
            continue
        ceiling_here = max(ceiling, spread[leaf])
        mu = mean[leaf]
        sigma = spread[leaf]
        for _ in range(_ROUNDS):
            m, v = mean_variance(Density(NORMAL, mu, sigma, lo[leaf], hi[leaf], 0.0), lo[leaf], hi[leaf])
            if not v > 0.0:
                break
            step = (mean[leaf] - m) * sigma * sigma / v
            step = min(max(step, -2.0 * sigma), 2.0 * sigma)
            scale = min(max(spread[leaf] / math.sqrt(v), 0.5), 2.0)
            new = min(max(sigma * scale, floor), ceiling_here)
            done = abs(step) < _TOLERANCE * sigma and abs(new - sigma) < _TOLERANCE * sigma
            mu = min(max(mu + step, mean[leaf] - 20.0 * ceiling_here), mean[leaf] + 20.0 * ceiling_here)
            sigma = new
            if done:
                break
        a[leaf] = mu
        b[leaf] = sigma
    return a, b


@entry
def truncated_location(mean, spread, lo, hi):
    """Locations of the parents of these scales whose parts on (lo, hi] have these means; Newton's method."""
    # The mean of the part grows with the location at the rate variance / scale^2, always positive. Where the mean is so
    # close to an end that the location runs off, it stops 20 scales away.
    a = mean.copy()
    for leaf in range(mean.shape[0]):
        if lo[leaf] == -math.inf and hi[leaf] == math.inf:
            continue
        sigma = spread[leaf]
        width = (hi[leaf] - lo[leaf]) / sigma
        if 1e-9 < width < 2.0:  # nearly a line: its mean is off the middle by (a - middle) * width^2 / 12
            middle = lo[leaf] / 2 + hi[leaf] / 2
            start = middle + (mean[leaf] - middle) / width * 12.0 / width
            a[leaf] = min(max(start, mean[leaf] - 20.0 * sigma), mean[leaf] + 20.0 * sigma)
        end = 0.0
        for _ in range(_ROUNDS):
            m, v = mean_variance(Density(NORMAL, a[leaf], sigma, lo[leaf], hi[leaf], 0.0), lo[leaf], hi[leaf])
            if not v > 0.0:
                break
            step = (mean[leaf] - m) * sigma * sigma / v
            if end == 0.0 and abs(step) > 2.0 * sigma:  # look at the end once, instead of going there in small steps
                end = math.copysign(20.0 * sigma, step)
                last = Density(NORMAL, mean[leaf] + end, sigma, lo[leaf], hi[leaf], 0.0)
                m, _ = mean_variance(last, lo[leaf], hi[leaf])
                if (mean[leaf] - m) * step >= 0.0:
                    a[leaf] = mean[leaf] + end
                    break
            a[leaf] += min(max(step, -2.0 * sigma), 2.0 * sigma)
            if abs(step) < _LAST_STEP * sigma or abs(a[leaf] - mean[leaf]) > 20.0 * sigma:
                break
        a[leaf] = min(max(a[leaf], mean[leaf] - 20.0 * sigma), mean[leaf] + 20.0 * sigma)
    return a


@entry
def standard_spread(family):
    """Standard deviation of a family's parent of scale 1."""
    _, variance = mean_variance(Density(family, 0.0, 1.0, -math.inf, math.inf, 0.0), -math.inf, math.inf)
    return math.sqrt(variance)


@entry
def mass_beyond(family, weight, a, b, lo, hi, low, high):
    """Mass below ``low`` and above ``high`` of the mixture of these truncated densities with these weights."""
    below = 0.0
    above = 0.0
    for leaf in range(weight.shape[0]):
        d = Density(family, a[leaf], b[leaf], lo[leaf], hi[leaf], 0.0)
        d = Density(family, a[leaf], b[leaf], lo[leaf], hi[leaf], log_norm(d))
        if lo[leaf] < low:
            below += weight[leaf] * math.exp(log_mass(d, lo[leaf], low))
        if hi[leaf] > high:
            above += weight[leaf] * math.exp(log_mass(d, high, hi[leaf]))
    return below, above


@entry
def log_density_by_slot(columns, leaves, marginal, values, codes, leaf, rows, numeric):
    """Of each numeric column, the sum over the rows of the log of the mean of two densities: leaf's and marginal."""
    out = np.zeros(numeric.shape[0])
    for k in range(numeric.shape[0]):
        j = numeric[k]
        s = columns.slot[j]
        for i in rows:
            x = values[j, i]
            if x == x:
                in_leaf = value_log_density(columns, leaves, leaf[i], s, x, codes[j, i])
                in_all = value_log_density(columns, marginal, 0, s, x, codes[j, i])
                top = max(in_leaf, in_all)
                out[k] += top + math.log(0.5 * math.exp(in_leaf - top) + 0.5 * math.exp(in_all - top))
    return out
