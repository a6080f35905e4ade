"""What each tree of boxes alone says of the evidence."""

from __future__ import annotations

import numpy as np

from ..forest.forest import Forest
from ..forest.posterior import tree_density
from ..hidden.posterior import leaf_sums
from ..table.evidence import Evidence
from .box_trees import BoxTrees


def tree_log_density(trees: BoxTrees, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Log of each tree's share of the evidence's density, the background's last, (n, T); -inf where it has none."""
    if isinstance(trees.within, Forest):
        return tree_density.tree_log_density(trees.within, evidence, n_jobs)
    assert trees.within.grown is not None
    first = np.searchsorted(trees.tree[trees.within.grown.leaf], np.arange(len(trees.trees.root)))
    return leaf_sums(trees.within, evidence, first, n_jobs) + evidence.log_penalty[:, None]
