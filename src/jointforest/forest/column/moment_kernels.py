"""Kernels of means and variances."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel, entry
from ...leaves.one_slot.slot_kernels import slot_mean_variance
from ..posterior.region_kernels import cell_region, known_number
from .mixture_kernels import row_mixture


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
