"""Kernel that fills missing cells with means and most probable levels."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry, kernel
from ...leaves.one_slot.slot_kernels import slot_mean_variance
from ..column.level_kernels import mixed_levels
from ..column.mixture_kernels import Mixture, row_mixture
from ..posterior.circuit_kernels import circuit_log_density, column_mixture, find_atoms, has_circuit, share_out
from ..posterior.region_kernels import cell_region


@kernel
def nearest_centre(columns, slot, x):
    """Centre of the nearest grid cell; x itself if there is no grid."""
    step, origin = columns.step[slot], columns.origin[slot]
    return x if step == 0.0 else origin + np.floor((x - origin) / step + 0.5) * step


@kernel
def mixed_mean(columns, leaves, evidence, slot, region, mixture, means):
    """Mean of a numeric slot in a mixture; ``means`` as in `impute_rows`."""
    leaf, weight = mixture
    total = 0.0
    tabled = region < 0 and means.shape[0] > 0
    for i in range(leaf.shape[0]):
        if weight[i] > 0.0:
            if tabled:
                total += weight[i] * means[leaf[i], slot]
            else:
                total += weight[i] * slot_mean_variance(columns, leaves, evidence, leaf[i], slot, region)[0]
    return total


@kernel
def share_row(columns, leaves, evidence, row, post, i, atom, value, share):
    """Write log p(node takes part, evidence) of the circuits of the leaves of row i of the posterior into ``share``."""
    find_atoms(columns, evidence, row, atom)
    for k in range(post.start[i], post.start[i + 1]):
        if has_circuit(leaves, post.leaf[k]):
            circuit_log_density(columns, leaves, evidence, row, atom, post.leaf[k], value)
            share_out(leaves, post.leaf[k], post.log_weight[k], value, share)


@entry
def impute_rows(columns, leaves, evidence, post, first, means):
    """The rows first.. of the evidence with the cells without a value filled in; shape (rows, d).

    ``means`` (R, p) holds the unconditional means of the parameter rows; if it is empty they are computed here.
    """
    n, d = post.log_evidence.shape[0], evidence.value.shape[1]
    n_nodes = leaves.node_kind.shape[0]
    atom = np.empty(d, np.int32)
    value, node_share = np.empty(n_nodes, np.float64), np.empty(n_nodes, np.float64)
    out = evidence.value[first : first + n].copy()
    for i in range(n):
        if post.log_evidence[i] == -math.inf:
            continue
        mixture = row_mixture(post, i)
        leaf, log_weight = mixture.leaf, post.log_weight[post.start[i] : post.start[i + 1]]
        if n_nodes > 0:
            share_row(columns, leaves, evidence, first + i, post, i, atom, value, node_share)
        for j in range(d):
            if not math.isnan(out[i, j]):
                continue
            if n_nodes > 0:
                row, share = column_mixture(leaves, j, leaf, log_weight, post.log_evidence[i], node_share)
                mixture = Mixture(row, share)
            slot, region = columns.slot[j], cell_region(evidence, first + i, j)
            if columns.is_categorical[j]:
                out[i, j] = likeliest(mixed_levels(columns, leaves, evidence, slot, region, mixture))
            else:
                mean = mixed_mean(columns, leaves, evidence, slot, region, mixture, means)
                out[i, j] = nearest_centre(columns, slot, mean)
    return out


@kernel
def likeliest(share):
    """The first level of greatest probability."""
    best = 0
    for k in range(share.shape[0]):
        if share[k] > share[best]:
            best = k
    return best
