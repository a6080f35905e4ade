"""What each tree alone says of a column."""

from __future__ import annotations

import numpy as np

from ..model import Model
from ..table.regions import Evidence
from .moments import moments_table, numeric_slot
from .posterior import LeafPosterior, by_chunks


def tree_answers(model: Model, evidence: Evidence, j: int, n_jobs: int | None = -1) -> tuple[np.ndarray, np.ndarray]:
    """What each tree alone says: how probable the evidence is, and what to expect of column j.

    Returns
    -------
    log_evidence : float64 array (n, T)
        log of the tree's p_t(evidence), background left out; -inf where it is 0.
    answer : float64 array (n, T, K)
        Probabilities of column j's K levels, or its mean (K = 1), given the evidence in tree t; 0 where that has
        probability 0.
    """
    n_trees = len(model.trees.root) - model.has_background
    if model.columns.is_categorical[j]:
        slot = model.columns.slot[j]
        of_leaf = model.leaves.level_mass[:, model.columns.level_start[slot] : model.columns.level_start[slot + 1]]
    else:
        of_leaf = moments_table(model, evidence, numeric_slot(model, j), n_jobs, few=0)[:, :1]

    def read(rows: Evidence, post: LeafPosterior, first: int) -> np.ndarray:
        n = len(post.log_evidence)
        row = np.repeat(np.arange(n), np.diff(post.start))
        tree = model.leaves.tree[post.leaf]
        kept = tree < n_trees
        row, tree, leaf, log_weight = row[kept], tree[kept], post.leaf[kept], post.log_weight[kept]
        cell = row * n_trees + tree
        top = np.full(n * n_trees, -np.inf)
        np.maximum.at(top, cell, log_weight)
        weight = np.exp(log_weight - top[cell])
        total = np.bincount(cell, weight, minlength=n * n_trees)
        sums = [np.bincount(cell, weight * of_leaf[leaf, k], minlength=n * n_trees) for k in range(of_leaf.shape[1])]
        met = total > 0
        answer = np.stack([np.divide(s, total, out=np.zeros_like(s), where=met) for s in sums], axis=-1)
        log_tree = np.where(met, top + np.log(np.where(met, total, 1.0)), -np.inf)
        return np.concatenate([log_tree[:, None], answer], axis=1).reshape(n, n_trees, -1)

    both = by_chunks(model, evidence, read, n_jobs, j)
    return both[:, :, 0] + np.log(n_trees), both[:, :, 1:]
