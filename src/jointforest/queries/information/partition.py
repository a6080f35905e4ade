"""Leaves as products over some columns, and trees whose leaves are apart in them: then there are closed forms."""

from __future__ import annotations

import numpy as np

from ...forest.forest import Forest
from ...forest.posterior.posterior import chunk_posterior
from ...leaves.circuits.soundness import leaf_of_rows
from ...leaves.table import FACTORS, SUM
from ...table.build_evidence import build


def is_partition(model: Forest, columns: list[int]) -> bool:
    """Whether the leaves are apart in these columns for sure: one tree, no background, no split on another column."""
    feature = model.trees.feature
    return len(model.trees.root) == 1 and set(feature[feature >= 0].tolist()) <= set(columns)


def mixes_columns(model: Forest, columns: list[int]) -> bool:
    """Whether a sum of a circuit mixes distributions of several of these columns, so that its leaf is no product."""
    leaves = model.leaves
    is_sum = np.flatnonzero(leaves.node_kind == SUM)
    described = np.zeros((len(leaves.node_kind) + 1, len(columns)), np.int64)
    described[1:][leaves.node_kind == FACTORS] = leaves.scope[:, columns]
    described = np.cumsum(described, axis=0)
    inside = described[leaves.node_end[is_sum]] > described[is_sum]
    return bool((inside.sum(axis=1) > 1).any())


def column_of_leaves(model: Forest, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Column j of every leaf as a mixture of parameter rows.

    Returns
    -------
    start : int64 array (L + 1,)
        Leaf l mixes the entries ``start[l]:start[l + 1]``; none if its weight is 0.
    row : int32 array (M,)
    share : float64 array (M,)
        Sums to 1 over a leaf's entries.
    """
    leaves = model.leaves
    parts = chunk_posterior(model, build(model.schema), 0, 1, j)
    some = parts.log_weight > -np.inf
    row, log_weight = parts.leaf[some], parts.log_weight[some]
    leaf = leaf_of_rows(leaves.node_start, leaves.node_row)[row]
    order = np.argsort(leaf, kind="stable")
    start = np.searchsorted(leaf[order], np.arange(len(leaves.log_weight) + 1))
    return start.astype(np.int64), row[order], np.exp(log_weight - leaves.log_weight[leaf])[order]
