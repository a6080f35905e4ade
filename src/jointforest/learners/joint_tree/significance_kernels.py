"""Kernels: could a split be noise? A bound on the chance of what it separates, whatever the sample's size and kind.

docs/concepts/joint-tree.md derives the bound.
"""

from __future__ import annotations

import math

import numpy as np

from ...runtime.compile import entry, kernel

_STEPS = 30
"""Most Newton steps of a logistic regression. Its likelihood is concave, so that few are enough."""


@entry
def log_chance_of_tables(data, rows, j, below_rank, goes_left, targets, count):
    """The bound of `grow.log_chance`.

    Parameters
    ----------
    data : JointRows
    rows : int32 array (m,)
    below_rank : int
        Largest rank that goes left; -1 if the split is categorical.
    goes_left : uint8 array (K,)
        Whether a level goes left.
    targets : int64 array (k,)
    count : float64 array (bins of all columns, 2)
        Zeros: the table of target k is ``count[bin_start[k]:bin_start[k + 1]]``, a row a bin or level.
    """
    ranks, at = data.ranks[j], data.bin_start
    for i in rows:
        code = ranks[i]
        if code >= 0:
            is_left = code <= below_rank if below_rank >= 0 else goes_left[code] == 1
            for k in targets:
                b = data.bins[i, k]
                if b >= 0:
                    count[at[k] + b, 1 if is_left else 0] += 1.0
    lowest = 0.0
    for k in targets:
        lowest = min(lowest, _log_chance_of(count[at[k] : at[k + 1]], data.is_categorical[k] == 1))
    return min(lowest + math.log(targets.shape[0]), 0.0)


@kernel
def _log_chance_of(count, is_categorical):
    """Bound for one target, from its table ``count`` (bins or levels, 2): rows that went right, and left."""
    right, left, present = 0.0, 0.0, 0
    for b in range(count.shape[0]):
        right += count[b, 0]
        left += count[b, 1]
        if count[b, 0] + count[b, 1] > 0.0:
            present += 1
    n = left + right
    if left == 0.0 or right == 0.0:
        return 0.0
    log_given = (  # chance that a draw row by row puts as many rows left as there are
        math.lgamma(n + 1.0) - math.lgamma(left + 1.0) - math.lgamma(right + 1.0)
        + left * math.log(left / n) + right * math.log(right / n)
    )  # fmt: skip
    if is_categorical and present > 2:
        t = _divergence(count, left, right)
        if t <= present:
            return 0.0
        return -t + present * (1.0 + math.log(t / present)) - log_given
    return math.log(2.0) - _logistic(count, left, right) - log_given


@kernel
def _divergence(count, left, right):
    """Half the likelihood ratio statistic of independence of level and side."""
    total = 0.0
    for b in range(count.shape[0]):
        both_sides = count[b, 0] + count[b, 1]
        if count[b, 0] > 0.0:
            total += count[b, 0] * math.log(count[b, 0] * (left + right) / (both_sides * right))
        if count[b, 1] > 0.0:
            total += count[b, 1] * math.log(count[b, 1] * (left + right) / (both_sides * left))
    return total


@kernel
def _logistic(count, left, right):
    """Half the likelihood ratio statistic of a logistic regression of the side on the number of the bin."""
    n_bins = count.shape[0]
    n = left + right
    share = left / n
    mean = 0.0
    square = 0.0
    for b in range(n_bins):
        mean += (count[b, 0] + count[b, 1]) * b / n
    for b in range(n_bins):
        square += (count[b, 0] + count[b, 1]) * (b - mean) ** 2 / n
    if square <= 0.0:
        return 0.0
    unit = math.sqrt(square)
    a, c, best = 0.0, 0.0, -np.inf
    step_a, step_c, scale = 0.0, 0.0, 1.0
    for _ in range(_STEPS):
        likelihood = 0.0
        g0 = g1 = h00 = h01 = h11 = 0.0
        for b in range(n_bins):
            m = count[b, 0] + count[b, 1]
            if m > 0.0:
                x = (b - mean) / unit
                eta = a + scale * step_a + (c + scale * step_c) * x
                # log(1 - share + share * exp(eta)), without overflow
                high = max(eta, 0.0)
                log_sum = high + math.log((1.0 - share) * math.exp(-high) + share * math.exp(eta - high))
                p = share * math.exp(eta - log_sum)
                likelihood += count[b, 1] * eta - m * log_sum
                g0 += count[b, 1] - m * p
                g1 += (count[b, 1] - m * p) * x
                h00 += m * p * (1.0 - p)
                h01 += m * p * (1.0 - p) * x
                h11 += m * p * (1.0 - p) * x * x
        if likelihood < best:  # too far: half the step
            scale *= 0.5
            continue
        a += scale * step_a
        c += scale * step_c
        gained, best = likelihood - best, likelihood
        determinant = h00 * h11 - h01 * h01
        if determinant <= 1e-12 * h00 * h11 or (step_c != 0.0 and gained < 1e-4):
            break
        step_a = (h11 * g0 - h01 * g1) / determinant
        step_c = (h00 * g1 - h01 * g0) / determinant
        scale = 1.0
    return max(best, 0.0)
