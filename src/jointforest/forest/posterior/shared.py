"""The posterior of rows that have most cells in common, as the coalitions of one row have."""

from __future__ import annotations

import numpy as np

from ...table.evidence import Evidence
from ..forest import Forest
from .posterior import LeafPosterior, chunk_posterior
from .shared_kernels import shared_rows
from .weight_kernels import LEAVES, posterior_rows, row_scratch

_ENTRIES = 8_000_000
_EACH = 2  # times that a cell is met, on average, from which on it is worth weighing alone


def shared_posterior(forest: Forest, evidence: Evidence) -> LeafPosterior:
    """`posterior.chunk_posterior` of all rows, to rounding; each distinct cell is weighed by all leaves once.

    A box is a product of intervals, a leaf without circuit a product of densities: so log p(leaf, evidence) is the sum
    of what the cells say one by one. Rows with regions, leaves with circuits and cells that are hardly shared go the
    usual way.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        n rows.

    Returns
    -------
    LeafPosterior
    """
    value, leaves = evidence.value, forest.leaves
    n, d = value.shape
    if evidence.has_regions or len(leaves.node_kind) or not n:
        return chunk_posterior(forest, evidence, 0, n)
    number, cells, columns, count = np.full((n, d), -1, dtype=np.int64), [], [], 0
    for j in range(d):
        known = np.flatnonzero(~np.isnan(value[:, j]))
        distinct, place = np.unique(value[known, j], return_inverse=True)
        number[known, j] = count + place
        cells.append(distinct)
        columns.append(np.full(len(distinct), j))
        count += len(distinct)
    n_leaves = len(leaves.log_weight)
    if count * n_leaves > _ENTRIES or _EACH * count > (number >= 0).sum():
        return chunk_posterior(forest, evidence, 0, n)
    alone = np.full((count, d), np.nan)
    alone[np.arange(count), np.concatenate(columns)] = np.concatenate(cells)
    scratch = row_scratch(forest)
    start, leaf, log_weight, _ = posterior_rows(
        forest.columns, forest.trees, leaves, Evidence.of_values(alone), 0, count, LEAVES, scratch
    )
    says = np.full((count, n_leaves), -np.inf)
    says[np.repeat(np.arange(count), np.diff(start)), leaf] = log_weight - leaves.log_weight[leaf]
    prior = np.ascontiguousarray(leaves.log_weight)
    return LeafPosterior(*shared_rows(prior, number, start, leaf, says, scratch.leaf, scratch.log_weight))
