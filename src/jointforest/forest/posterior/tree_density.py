"""What each tree alone says of the evidence."""

from __future__ import annotations

import numpy as np

from ...table.evidence import Evidence
from ..forest import Forest
from .posterior import LeafPosterior, by_chunks


def tree_log_density(forest: Forest, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Log of each tree's share of the evidence's density: log(pi_t p_t(evidence)).

    Returns
    -------
    float64 array (n, T)
        The log-sum of a row is its `density.log_density`; -inf where a tree gives the evidence probability 0.
    """
    n_trees = len(forest.trees.root)

    def read(rows: Evidence, leaves: LeafPosterior, first: int) -> np.ndarray:
        n = len(leaves.log_evidence)
        row = np.repeat(np.arange(n), np.diff(leaves.start))
        cell = row * n_trees + forest.leaves.tree[leaves.leaf]
        highest = np.full(n * n_trees, -np.inf)
        np.maximum.at(highest, cell, leaves.log_weight)
        with np.errstate(divide="ignore"):
            total = np.log(np.bincount(cell, np.exp(leaves.log_weight - highest[cell]), minlength=n * n_trees))
        return np.where(highest > -np.inf, highest + total, -np.inf).reshape(n, n_trees)

    return by_chunks(forest, evidence, read, n_jobs) + evidence.log_penalty[:, None]
