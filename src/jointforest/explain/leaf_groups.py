"""One column in groups of leaves: each group answers as the mixture of its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from ..forest.column.distribution_kernels import cdf_rows
from ..forest.column.level_kernels import level_rows
from ..forest.column.moment_kernels import mean_variance_rows
from ..forest.column.quantile_kernels import quantile_rows
from ..forest.forest import Forest
from ..forest.posterior.posterior import LeafPosterior, chunk_posterior
from ..hidden.evidence import code_evidence
from ..hidden.hidden_trees import HiddenTrees
from ..hidden.posterior import codes_by_tree, tree_log_density
from ..leaves.circuits.soundness import leaf_of_rows
from ..table.evidence import Evidence
from ..table.scale import distribution, draws
from ..table.scale.scale import Scale
from .box_trees import BoxTrees


class ColumnInGroups(Protocol):
    """A column in each of k groups of leaves."""

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """CDF of a column of numbers at q points, float64 (k, q)."""
        ...

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        """Quantiles of a column of numbers at q levels, float64 (k, q)."""
        ...

    def mean(self) -> np.ndarray:
        """Means of a column of numbers, float64 (k,)."""
        ...

    def level_probability(self) -> np.ndarray:
        """Probabilities of the levels of a categorical column, float64 (k, K)."""
        ...


@dataclass(frozen=True)
class _OfForest:
    """A column in groups of leaves of independent columns or circuits.

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


@dataclass(frozen=True)
class _OfCodes:
    """A column in groups of leaves that hold trees of codes: p(code) in each group, (k, n_codes)."""

    scale: Scale
    n_levels: int
    p: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(self.p @ distribution.cdf(self.scale, x).T, 1.0)

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        return draws.quantiles(self.scale, self.p, levels)

    def mean(self) -> np.ndarray:
        return np.asarray(self.p @ self.scale.moments[1])

    def level_probability(self) -> np.ndarray:
        return draws.levels(self.scale, self.p, self.n_levels)


def column_in_groups(
    trees: BoxTrees, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int
) -> ColumnInGroups:
    """Column j in k groups of leaves, given one row of evidence that all of them meet; no leaf is in two groups.

    The evidence gives the column no value.
    """
    if isinstance(trees.within, Forest):
        return _in_forest(trees.within, evidence, groups, j)
    return _in_codes(trees.within, evidence, groups, j)


def _in_codes(hidden: HiddenTrees, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int) -> _OfCodes:
    assert hidden.grown is not None
    group_of = np.full(int(hidden.grown.leaf.max()) + 1, -1)
    for number, leaves in enumerate(groups):
        group_of[leaves] = number
    group = group_of[hidden.grown.leaf]
    mine = np.flatnonzero(group >= 0)
    few = replace(hidden, trees=tuple(hidden.trees[t] for t in mine), log_weight=hidden.log_weight[mine], grown=None)
    log_weight = tree_log_density(few, evidence, 1)[0]
    codes = codes_by_tree(few, evidence, [j])[j]
    p = np.zeros((len(groups), codes.shape[1]))
    for number in range(len(groups)):
        own = np.flatnonzero(group[mine] == number)
        p[number] = np.exp(log_weight[own] - np.logaddexp.reduce(log_weight[own])) @ codes[own]
    known, scale = code_evidence(hidden, evidence)[j], hidden.scales[j]
    region = int(known.code[0]) - scale.n_codes - 1
    return _OfCodes(known.regions[region] if region >= 0 else scale, len(hidden.schema.columns[j].levels), p)


def _in_forest(forest: Forest, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int) -> _OfForest:
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
    return _OfForest(forest, j, evidence.repeat(len(groups)), LeafPosterior(start, post.leaf[order], log_weight, total))
