"""`ChowLiuForest`: a forest with a Chow-Liu tree in each leaf, and the view of its trees for rules and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...data.discretization import base_density
from ...data.discretization.discretizer import Scale
from ...data.evidence import Evidence
from ...data.schema import kernel_columns
from ..box_forest.box_trees import BoxTrees
from .evidence import code_evidence
from .hidden_tree import HiddenTree
from .hidden_trees import Grown, HiddenTrees
from .posterior import codes_by_tree, leaf_sums, tree_log_density


@dataclass(frozen=True, eq=False)
class ChowLiuTrees(BoxTrees):
    """The view of the trees of a forest whose leaves contain hidden trees; see `BoxTrees`."""

    hidden: HiddenTrees
    grown: Grown

    def tree_log_density(self, evidence: Evidence) -> np.ndarray:
        first = np.searchsorted(self.tree[self.grown.leaf], np.arange(len(self.trees.root)))
        return leaf_sums(self.hidden, evidence, first) + evidence.log_penalty[:, None]

    def met_leaves(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        log_weight = tree_log_density(self.hidden, evidence)[0]
        met = log_weight > -np.inf
        return self.grown.leaf[met], log_weight[met]

    def column_in_groups(self, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int) -> _CodeColumn:
        hidden = self.hidden
        group_of = np.full(int(self.grown.leaf.max()) + 1, -1)
        for number, leaves in enumerate(groups):
            group_of[leaves] = number
        group = group_of[self.grown.leaf]
        mine = np.flatnonzero(group >= 0)
        few = replace(
            hidden, trees=tuple(hidden.trees[t] for t in mine), log_weight=hidden.log_weight[mine], grown=None
        )
        log_weight = tree_log_density(few, evidence)[0]
        codes = codes_by_tree(few, evidence, [j])[j]
        p = np.zeros((len(groups), codes.shape[1]))
        for number in range(len(groups)):
            own = np.flatnonzero(group[mine] == number)
            p[number] = np.exp(log_weight[own] - np.logaddexp.reduce(log_weight[own])) @ codes[own]
        known, scale = code_evidence(hidden, evidence)[j], hidden.scales[j]
        region = int(known.code[0]) - scale.n_codes - 1
        return _CodeColumn(known.regions[region] if region >= 0 else scale, len(hidden.schema.columns[j].levels), p)

    def leaf_kind(self, leaf: int) -> str:
        return "background" if self.is_background(leaf) else "Chow-Liu leaf"


@dataclass(frozen=True)
class ChowLiuForest(HiddenTree):
    """A forest with a Chow-Liu tree in each leaf, which is a hidden tree whose states are codes."""

    kind = "forest with Chow-Liu leaves"

    @property
    def forest_hint(self) -> str:
        return "; learn with leaf='quantile' to have one"

    @property
    def grown(self) -> Grown:
        """The forest of the leaves, which is present in every object of this class."""
        assert self.hidden.grown is not None
        return self.hidden.grown

    def box_trees(self) -> ChowLiuTrees:
        trees, hidden = self.grown.trees, self.hidden
        node = np.flatnonzero(trees.leaf >= 0)
        tree = np.empty(len(node), np.int64)
        tree[trees.leaf[node]] = np.searchsorted(trees.root, node, side="right") - 1
        log_weight = np.full(len(node), -np.inf)
        log_weight[self.grown.leaf] = hidden.log_weight
        columns, has_background = kernel_columns(hidden.schema), self.grown.has_background
        return ChowLiuTrees(hidden.schema, columns, trees, tree, log_weight, has_background, hidden, self.grown)

    def size(self) -> dict[str, int]:
        n_background = int(self.grown.has_background)
        leaves = int((self.grown.trees.leaf >= 0).sum())
        return {"trees": len(self.grown.trees.root) - n_background, "leaves": leaves - n_background}


@dataclass(frozen=True)
class _CodeColumn:
    """A column in k groups of leaves with Chow-Liu trees; ``p`` (k, n_codes) is p(code) in each group."""

    scale: Scale
    n_levels: int
    p: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(self.p @ base_density.cdf(self.scale, x).T, 1.0)

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        return base_density.quantiles(self.scale, self.p, levels)

    def mean(self) -> np.ndarray:
        return np.asarray(self.p @ self.scale.moments[1])

    def level_probability(self) -> np.ndarray:
        return base_density.levels(self.scale, self.p, self.n_levels)
