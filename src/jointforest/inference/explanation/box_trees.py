"""Trees of boxes, whatever stands in their leaves: what rules and pictures are read from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...data.evidence import Evidence
from ...data.schema import Columns, Schema, kernel_columns
from ...models.base import Distribution
from ...models.box_forest import posterior
from ...models.box_forest.box_forest import BoxForest
from ...models.box_forest.forest import Forest
from ...models.box_forest.structure import Trees, leaf_boxes
from ...models.hidden_tree.hidden_tree import HiddenTree
from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...models.hidden_tree.posterior import leaf_sums


@dataclass(frozen=True, eq=False)
class BoxTrees:
    """Trees with L leaves in all, and the part of a model that they are of.

    Attributes
    ----------
    schema : Schema
    columns : Columns
    trees : Trees
    tree : int array (L,)
        Tree of each leaf.
    log_weight : float64 array (L,)
        Weight of each leaf in the part; -inf of leaves that have none.
    has_background : bool
        Whether the last tree is the background, a single leaf.
    within : Forest or HiddenTrees
        What knows the columns in the leaves.
    """

    schema: Schema
    columns: Columns
    trees: Trees
    tree: np.ndarray
    log_weight: np.ndarray
    has_background: bool
    within: Forest | HiddenTrees

    @cached_property
    def boxes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `models.box_forest.structure.leaf_boxes`."""
        return leaf_boxes(self.trees, self.columns)


def of_forest(forest: Forest) -> BoxTrees:
    """The trees of a forest."""
    n = len(forest.leaves.log_weight)
    return BoxTrees(
        forest.schema,
        forest.columns,
        forest.trees,
        forest.leaves.tree[:n],
        forest.leaves.log_weight,
        forest.has_background,
        forest,
    )


def of_part(part: Distribution) -> BoxTrees | None:
    """The trees of a part; None of one that has none, such as hidden trees that stand in no leaves."""
    if isinstance(part, BoxForest):
        return of_forest(part.forest)
    if not isinstance(part, HiddenTree) or part.hidden.grown is None:
        return None
    hidden, grown = part.hidden, part.hidden.grown
    node = np.flatnonzero(grown.trees.leaf >= 0)
    tree = np.empty(len(node), np.int64)
    tree[grown.trees.leaf[node]] = np.searchsorted(grown.trees.root, node, side="right") - 1
    log_weight = np.full(len(node), -np.inf)
    log_weight[grown.leaf] = hidden.log_weight
    columns = kernel_columns(hidden.schema)
    return BoxTrees(hidden.schema, columns, grown.trees, tree, log_weight, grown.has_background, hidden)


def box_trees(model: Distribution, question: str) -> BoxTrees:
    """The trees of the only part; a ValueError that names the question where there are several, or none with boxes."""
    found = of_part(model.components[0]) if len(model.components) == 1 else None
    return of_forest(model.forest_for(question)) if found is None else found


# ---- What each tree of boxes alone says of the evidence.


def tree_log_density(trees: BoxTrees, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Log of each tree's share of the evidence's density, the background's last, (n, T); -inf where it has none."""
    if isinstance(trees.within, Forest):
        return posterior.tree_log_density(trees.within, evidence, n_jobs)
    assert trees.within.grown is not None
    first = np.searchsorted(trees.tree[trees.within.grown.leaf], np.arange(len(trees.trees.root)))
    return leaf_sums(trees.within, evidence, first, n_jobs) + evidence.log_penalty[:, None]
