"""What each tree alone says of a column."""

from __future__ import annotations

import numpy as np

from ...leaves.levels.masses import dense_levels
from ...table.evidence import Evidence
from ..forest import Forest
from ..posterior.combine_kernels import with_routed
from ..posterior.posterior import LeafPosterior, by_chunks
from ..posterior.weight_kernels import row_scratch
from .moments import moments_table, numeric_slot


def tree_answers(
    forest: Forest, evidence: Evidence, j: int, n_jobs: int | None = -1, centre: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What each tree alone says: how probable the evidence is, and what to expect of column j.

    Parameters
    ----------
    forest : Forest
    evidence : Evidence
        n rows, in which column j is missing.
    j : int
        Number of a column.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    centre : float, optional
        Of a numeric column: ask for its mean squared distance from here, too.

    Returns
    -------
    log_evidence : float64 array (n, T)
        log of the tree's p_t(evidence), background left out; -inf where it is 0.
    answer : float64 array (n, T, K)
        Probabilities of column j's K levels, or its mean (K = 1; with a centre K = 2), given the evidence in tree t;
        where that has probability 0, by the leaves that it can reach, see `posterior.chunk_posterior`.
    """
    leaves, n_trees = forest.leaves, len(forest.trees.root) - forest.has_background
    weight_of_tree = np.bincount(leaves.tree[: len(leaves.log_weight)], np.exp(leaves.log_weight))[:n_trees]
    if forest.columns.is_categorical[j]:
        slot = forest.columns.slot[j]
        of_leaf = dense_levels(forest.columns, forest.leaves, int(slot))
    else:
        moments = moments_table(forest, evidence, numeric_slot(forest, j), n_jobs, few=0)
        of_leaf = moments[:, :1]
        if centre is not None:
            of_leaf = np.column_stack([of_leaf, moments[:, 1] + (moments[:, 0] - centre) ** 2])

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        n = len(post.log_evidence)
        scratch = row_scratch(forest)
        start, leaf, log_weight, fallen = with_routed(
            forest.columns, forest.trees, leaves, rows, first, post, int(j), n_trees, scratch
        )
        row, tree = np.repeat(np.arange(n), np.diff(start)), leaves.tree[leaf]
        kept = tree < n_trees
        cell = row[kept] * n_trees + tree[kept]
        leaf, log_weight = leaf[kept], log_weight[kept]
        top = np.full(n * n_trees, -np.inf)
        np.maximum.at(top, cell, log_weight)
        weight = np.exp(log_weight - top[cell])
        total = np.bincount(cell, weight, minlength=n * n_trees)
        sums = [np.bincount(cell, weight * of_leaf[leaf, k], minlength=n * n_trees) for k in range(of_leaf.shape[1])]
        log_tree = top + np.log(total)
        log_tree[cell[fallen[kept]]] = -np.inf
        return np.stack([log_tree, *(s / total for s in sums)], axis=-1).reshape(n, n_trees, -1)

    both = by_chunks(forest, evidence, read, n_jobs, j)
    return both[:, :, 0] - np.log(weight_of_tree), both[:, :, 1:]
