"""What each tree alone says of a column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...table.evidence import Evidence
from ..forest import Forest
from ..posterior.combine_kernels import with_routed
from ..posterior.posterior import LeafPosterior, by_chunks
from ..posterior.weight_kernels import row_scratch
from .level_kernels import level_sums
from .moments import moments_table, numeric_slot

Sums = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]
"""Leaves (m,), their weights and the places (m,) among n they are summed up in, to sums of what they say, (n, K)."""


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
        sums = _level_sums(forest, j)
    else:
        sums = _moment_sums(forest, evidence, j, n_jobs, centre)

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
        answer = sums(leaf, weight, cell, n * n_trees) / total[:, None]
        log_tree = top + np.log(total)
        log_tree[cell[fallen[kept]]] = -np.inf
        return np.column_stack([log_tree, answer]).reshape(n, n_trees, -1)

    both = by_chunks(forest, evidence, read, n_jobs, j)
    return both[:, :, 0] - np.log(weight_of_tree), both[:, :, 1:]


def _level_sums(forest: Forest, j: int) -> Sums:
    """Of the probabilities of column j's K levels."""
    slot = int(forest.columns.slot[j])
    size = int(forest.columns.level_start[slot + 1] - forest.columns.level_start[slot])

    def sums(leaf: np.ndarray, weight: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
        out = np.zeros((n, size))
        level_sums(forest.leaves, slot, size, leaf, weight, place, out)
        return out

    return sums


def _moment_sums(forest: Forest, evidence: Evidence, j: int, n_jobs: int | None, centre: float | None) -> Sums:
    """Of column j's means, and with a centre of its mean squared distances from there."""
    moments = moments_table(forest, evidence, numeric_slot(forest, j), n_jobs, few=0)
    of_leaf = [moments[:, 0]]
    if centre is not None:
        of_leaf.append(moments[:, 1] + (moments[:, 0] - centre) ** 2)

    def sums(leaf: np.ndarray, weight: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
        return np.column_stack([np.bincount(place, weight * values[leaf], minlength=n) for values in of_leaf])

    return sums
