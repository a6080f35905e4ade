"""One column in groups of leaves: each group answers as the mixture of its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..forest.column.distribution_kernels import cdf_rows
from ..forest.column.level_kernels import level_rows
from ..forest.column.moment_kernels import mean_variance_rows
from ..forest.column.quantile_kernels import quantile_rows
from ..forest.forest import Forest
from ..forest.posterior.posterior import LeafPosterior, chunk_posterior
from ..leaves.circuits.soundness import leaf_of_rows
from ..table.evidence import Evidence


@dataclass(frozen=True)
class ColumnInGroups:
    """A column in each of k groups of leaves.

    Attributes
    ----------
    forest : Forest
    j : int
        Number of the column.
    evidence : Evidence
        One row of evidence, k times.
    post : LeafPosterior
        Its row i holds what describes the column in group i.
    """

    forest: Forest
    j: int
    evidence: Evidence
    post: LeafPosterior

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """CDF of a column of numbers at q points, float64 (k, q)."""
        return np.asarray(cdf_rows(self.forest.columns, self.forest.leaves, self.evidence, self.j, self.post, 0, x))

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """Quantiles of a column of numbers at q levels, float64 (k, q)."""
        columns, leaves = self.forest.columns, self.forest.leaves
        return np.asarray(quantile_rows(columns, leaves, self.evidence, self.j, self.post, 0, levels))

    def mean(self) -> np.ndarray:
        """Means of a column of numbers, float64 (k,)."""
        columns, leaves = self.forest.columns, self.forest.leaves
        both = mean_variance_rows(columns, leaves, self.evidence, self.j, self.post, 0, np.empty((0, 2)))
        return np.asarray(both[:, 0])

    def level_probability(self) -> np.ndarray:
        """Probabilities of the levels of a categorical column, float64 (k, K)."""
        return np.asarray(level_rows(self.forest.columns, self.forest.leaves, self.evidence, self.j, self.post, 0))


def column_in_groups(
    forest: Forest, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int
) -> ColumnInGroups:
    """Column j in k groups of leaves, given one row of evidence that all of them meet; no leaf is in two groups."""
    group_of = np.full(len(forest.leaves.log_weight), -1)
    for number, leaves in enumerate(groups):
        group_of[leaves] = number
    post = chunk_posterior(forest, evidence, 0, 1, j)
    group = group_of[leaf_of_rows(forest.leaves.node_start, forest.leaves.node_row)[post.leaf]]
    order = np.argsort(group, kind="stable")
    order = order[group[order] >= 0]
    start = np.searchsorted(group[order], np.arange(len(groups) + 1)).astype(np.int64)
    log_weight = post.log_weight[order]
    total = np.array([np.logaddexp.reduce(log_weight[a:b]) for a, b in pairwise(start)])
    return ColumnInGroups(
        forest, j, evidence.repeat(len(groups)), LeafPosterior(start, post.leaf[order], log_weight, total)
    )
