"""Kernels of level probabilities."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel, entry
from ...leaves.levels.level_kernels import add_levels, log_level
from ...leaves.one_slot.slot_kernels import level_region_log_mass, run_levels
from ..posterior.region_kernels import cell_region
from .mixture_kernels import row_mixture


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
