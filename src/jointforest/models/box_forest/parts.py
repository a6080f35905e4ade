"""What the answers about a column are mixed from: leaves, and a column's distributions in a leaf with a circuit."""

from __future__ import annotations

import numpy as np

from ...data.evidence import Evidence, build
from ..base import Parts
from .leaves.circuit_structure_kernels import parents
from .leaves.table import SUM, Leaves
from .posterior import LeafPosterior, OneRow
from .posterior_kernels import level_rows, mean_variance_rows
from .structure import Forest


def parts(forest: Forest, evidence: Evidence, j: int, known: OneRow) -> Parts:
    """The parts of one row of evidence.

    A SUM node that holds the column alone, such as the bins of a quantile leaf, is one part: all rows of the leaf tell
    of it.
    """
    part = part_of_rows(forest.leaves, j)
    n_parts = int(part.max()) + 1
    prior = _shares(part, n_parts, OneRow(forest, build(forest.schema)).posterior(j))
    found = known.posterior(j)
    weight = _shares(part, n_parts, found)
    share = np.exp(found.log_weight - found.log_evidence[0]) / np.maximum(weight, 1e-300)[part[found.leaf]]
    mean, variance = _said(forest, evidence, j, found.leaf)

    def mixed(said: np.ndarray) -> np.ndarray:
        out = np.zeros((n_parts, said.shape[1]))
        np.add.at(out, part[found.leaf], share[:, None] * said)
        return out

    of_part = mixed(mean)
    return Parts(prior, weight, of_part, mixed(variance + (mean - of_part[part[found.leaf]]) ** 2))


def _shares(part: np.ndarray, n_parts: int, found: LeafPosterior) -> np.ndarray:
    """p(part | evidence), (n_parts,)."""
    return np.bincount(part[found.leaf], np.exp(found.log_weight - found.log_evidence[0]), minlength=n_parts)


def _said(forest: Forest, evidence: Evidence, j: int, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances in n parameter rows, of a column or of the indicators of its levels, each (n, L)."""
    n = len(of)
    each = LeafPosterior(np.arange(n + 1, dtype=np.int64), of, np.zeros(n), np.zeros(n))
    rows = evidence.repeat(n)
    if forest.columns.is_categorical[j]:
        share = level_rows(forest.columns, forest.leaves, rows, j, each, 0)
        return share, share * (1.0 - share)
    both = mean_variance_rows(forest.columns, forest.leaves, rows, j, each, 0, np.empty((0, 2)))
    return both[:, :1], both[:, 1:]


def part_of_rows(leaves: Leaves, j: int) -> np.ndarray:
    """The part that each parameter row belongs to, as it describes column j, int64 (R,)."""
    part = np.arange(len(leaves.tree))
    if not len(leaves.node_kind):
        return part
    parent = parents(leaves.node_end)
    nodes = np.flatnonzero(leaves.node_scope >= 0)
    scope = leaves.scope[leaves.node_scope[nodes]]
    nodes, is_alone = nodes[scope[:, j] == 1], scope[scope[:, j] == 1].sum(axis=1) == 1
    top = nodes.copy()
    while True:
        above = parent[top]
        is_only = (above + 1 == top) & (leaves.node_end[above] == leaves.node_end[top])  # child of a PRODUCT
        climbs = is_alone & (above >= 0) & ((leaves.node_kind[above] == SUM) | is_only)
        if not climbs.any():
            break
        top[climbs] = above[climbs]
    part[leaves.node_row[nodes]] = len(part) + top
    return np.unique(part, return_inverse=True)[1].ravel()
