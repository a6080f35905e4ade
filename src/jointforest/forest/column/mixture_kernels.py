"""A row's posterior as a mixture of leaves."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import array_kernel


@array_kernel
def row_mixture(post, i):
    """Leaves of row i of the posterior and their weights, which sum to 1."""
    leaf = post.leaf[post.start[i] : post.start[i + 1]]
    weight = np.empty(leaf.shape[0], np.float64)
    for k in range(leaf.shape[0]):
        weight[k] = math.exp(post.log_weight[post.start[i] + k] - post.log_evidence[i])
    return leaf, weight
