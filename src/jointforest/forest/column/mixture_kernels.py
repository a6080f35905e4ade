"""A row's posterior as a mixture of leaves."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...ground.compile import array_kernel


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
