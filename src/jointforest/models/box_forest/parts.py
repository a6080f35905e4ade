"""What the answers about a column are mixed from: leaves."""

from __future__ import annotations

import numpy as np

from ...data.evidence import Evidence
from ..base import Parts
from .posterior import LeafPosterior, OneRow
from .posterior_kernels import level_rows, mean_variance_rows
from .structure import Forest


def parts(forest: Forest, evidence: Evidence, j: int, known: OneRow) -> Parts:
    """The parts of one row of evidence."""
    leaf, share = known.mixture
    prior, weight = np.exp(forest.leaves.log_weight), np.zeros(len(forest.leaves.log_weight))
    weight[leaf] = share
    said = []
    for of_met in moments_in_leaves(forest, evidence, j, leaf):
        out = np.zeros((len(weight), of_met.shape[1]))
        out[leaf] = of_met
        said.append(out)
    return Parts(prior, weight, *said)


def moments_in_leaves(forest: Forest, evidence: Evidence, j: int, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances in n leaves, of a column or of the indicators of its levels, each (n, L)."""
    n = len(of)
    each = LeafPosterior(np.arange(n + 1, dtype=np.int64), of, np.zeros(n), np.zeros(n))
    rows = evidence.repeat(n)
    if forest.columns.is_categorical[j]:
        share = level_rows(forest.columns, forest.leaves, rows, j, each, 0)
        return share, share * (1.0 - share)
    both = mean_variance_rows(forest.columns, forest.leaves, rows, j, each, 0, np.empty((0, 2)))
    return both[:, :1], both[:, 1:]
