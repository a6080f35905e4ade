"""Kernels: the leaves that rows reach in an ensemble, and the sums of what these leaves add."""

from __future__ import annotations

import numpy as np

from ..ground.compile import entry, kernel
from ..trees.level_bits_kernels import has_level


@kernel
def goes_left(ensemble, node, X, other, i):
    """Whether row i of X and other (n, n_features) goes left at an inner node."""
    j = ensemble.feature[node]
    at = ensemble.levels_at[node]
    x = X[i, j]
    if x != x:
        return ensemble.other_left[node] if other[i, j] else ensemble.missing_left[node]
    if at < 0:
        return x <= ensemble.threshold[node]
    return has_level(ensemble.left_levels, at, np.int64(x))


@kernel
def find_leaf(ensemble, node, X, other, i):
    """Leaf that row i of X and other (n, n_features) reaches from a node."""
    while ensemble.leaf[node] < 0:
        node = ensemble.left[node] if goes_left(ensemble, node, X, other, i) else ensemble.right[node]
    return ensemble.leaf[node]


@entry
def leaf_rows(ensemble, X, other, start, stop, out):
    """Leaf of rows start..stop-1 in each tree, into ``out`` (int32, (n, T))."""
    for tree in range(len(ensemble.root)):
        for i in range(start, stop):
            out[i, tree] = find_leaf(ensemble, ensemble.root[tree], X, other, i)


@entry
def raw_rows(ensemble, X, other, start, stop, out):
    """Sums of rows start..stop-1, into ``out`` (float64, (n, K)); tree by tree, which the processor's cache likes."""
    for i in range(start, stop):
        for k in range(out.shape[1]):
            out[i, k] = ensemble.base[k]
    for tree in range(len(ensemble.root)):
        for i in range(start, stop):
            leaf = find_leaf(ensemble, ensemble.root[tree], X, other, i)
            for k in range(out.shape[1]):
                out[i, k] += ensemble.value[leaf, k]
