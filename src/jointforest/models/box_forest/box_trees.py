"""Trees of boxes, whatever stands in their leaves: what rules and pictures of trees are read from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from ...data.evidence import Evidence
from ...data.schema import Columns, Schema
from .posterior import LeafPosterior, chunk_posterior, posterior, tree_log_density
from .posterior_kernels import cdf_rows, level_rows, mean_variance_rows
from .quantile_kernels import quantile_rows
from .structure import Forest, Trees, leaf_boxes


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


@dataclass(frozen=True, eq=False)
class BoxTrees(ABC):
    """Trees with L leaves in all, and the distributions of the columns in them.

    tree : int array (L,). Tree of each leaf.
    log_weight : float64 array (L,). Weight of each leaf; -inf of leaves that have none.
    has_background : bool. Whether the last tree is the background.
    """

    schema: Schema
    columns: Columns
    trees: Trees
    tree: np.ndarray
    log_weight: np.ndarray
    has_background: bool

    @cached_property
    def boxes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `models.box_forest.structure.leaf_boxes`."""
        return leaf_boxes(self.trees, self.columns)

    @abstractmethod
    def tree_log_density(self, evidence: Evidence) -> np.ndarray:
        """Log of what each tree adds to the evidence's density, the background's last, (n, T); -inf for nothing."""

    @abstractmethod
    def met_leaves(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        """Leaves that one row of evidence reaches, and log p(leaf, evidence) of each."""

    @abstractmethod
    def column_in_groups(self, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int) -> ColumnInGroups:
        """Column j in k groups of leaves that one row of evidence reaches; no leaf is in two groups."""
        # The evidence gives the column no value.

    @abstractmethod
    def leaf_kind(self, leaf: int) -> str:
        """``"leaf"`` (a product), ``"Chow-Liu leaf"`` or ``"background"``."""

    def is_background(self, leaf: np.ndarray | int) -> np.ndarray:
        return self.has_background & (self.tree[leaf] == len(self.trees.root) - 1)


@dataclass(frozen=True, eq=False)
class ForestTrees(BoxTrees):
    """The trees of a forest whose leaves hold independent columns."""

    forest: Forest

    def tree_log_density(self, evidence: Evidence) -> np.ndarray:
        return tree_log_density(self.forest, evidence)

    def met_leaves(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        post = posterior(self.forest, evidence)
        return post.leaf, post.log_weight

    def column_in_groups(self, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int) -> ForestColumn:
        forest = self.forest
        group_of = np.full(len(forest.leaves.log_weight), -1)
        for number, leaves in enumerate(groups):
            group_of[leaves] = number
        post = chunk_posterior(forest, evidence, 0, 1, j)
        group = group_of[post.leaf]
        order = np.argsort(group, kind="stable")
        order = order[group[order] >= 0]
        start = np.searchsorted(group[order], np.arange(len(groups) + 1)).astype(np.int64)
        log_weight = post.log_weight[order]
        total = np.array([np.logaddexp.reduce(log_weight[a:b]) for a, b in pairwise(start)])
        return ForestColumn(
            forest, j, evidence.repeat(len(groups)), LeafPosterior(start, post.leaf[order], log_weight, total)
        )

    def leaf_kind(self, leaf: int) -> str:
        return "background" if self.is_background(leaf) else "leaf"


def box_trees(forest: Forest) -> ForestTrees:
    """The trees of a forest."""
    leaves = forest.leaves
    return ForestTrees(
        forest.schema, forest.columns, forest.trees, leaves.tree, leaves.log_weight, forest.has_background, forest
    )


@dataclass(frozen=True)
class ForestColumn:
    """A column in groups of leaves of independent columns.

    j : int. Number of the column.
    evidence : Evidence. One row of evidence, k times.
    post : LeafPosterior. Its row i holds what describes the column in group i.
    """

    forest: Forest
    j: int
    evidence: Evidence
    post: LeafPosterior

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(cdf_rows(self.forest.columns, self.forest.leaves, self.evidence, self.j, self.post, 0, x))

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        columns, leaves = self.forest.columns, self.forest.leaves
        return np.asarray(quantile_rows(columns, leaves, self.evidence, self.j, self.post, 0, levels))

    def mean(self) -> np.ndarray:
        columns, leaves = self.forest.columns, self.forest.leaves
        both = mean_variance_rows(columns, leaves, self.evidence, self.j, self.post, 0, np.empty((0, 2)))
        return np.asarray(both[:, 0])

    def level_probability(self) -> np.ndarray:
        return np.asarray(level_rows(self.forest.columns, self.forest.leaves, self.evidence, self.j, self.post, 0))
