"""Forests grown to tell a target column from the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.threads import map_ordered
from ...trees.grow.grow import RankTree, find_leaves, grow, join, prune
from ...trees.nodes import Trees
from ...trees.ranks import rank
from ..adversarial.rounds import draw_rows
from .targets import Training


class GrowSettings(NamedTuple):
    """Parameters of the trees; see `generative.GenerativeForestClassifier` for their meaning."""

    n_estimators: int
    criterion: int
    max_features: int
    min_samples_split: int
    min_samples_leaf: int
    max_depth: int | None
    max_leaf_nodes: int | None
    bootstrap: bool
    n_draws: int
    n_jobs: int | None


class Arrival(NamedTuple):
    """A forest, and where the training rows end in it.

    Attributes
    ----------
    trees : Trees
        T trees with L leaves, without background; the target's column is never split.
    leaf_of : int32 array (T, n)
        Leaf (0..L-1) in which each row ends, in each tree.
    drawn : float64 array (T, n)
        How much each row counted in growing each tree; 0 is out of bag.
    """

    trees: Trees
    leaf_of: np.ndarray
    drawn: np.ndarray


def grow_forest(training: Training, weight: np.ndarray, settings: GrowSettings, seed: int) -> Arrival:
    """Grow trees that tell the target from the features.

    Rows count ``weight`` (n,), in a bootstrap as often as they are drawn.
    """
    n, d = len(training.X), training.X.shape[1] - 1
    features = training.schema.columns[:-1]
    ranks = rank(training.columns, training.X)
    of_features = ranks._replace(codes=np.ascontiguousarray(ranks.codes[:d]), n_codes=ranks.n_codes[:d])
    is_categorical = np.array([c.is_categorical for c in features], dtype=np.uint8)
    is_ordered = np.array([c.kind == "ordered" for c in features], dtype=np.uint8)
    target = training.schema.columns[-1]
    y = training.X[:, -1].astype(np.int32) if target.is_categorical else training.X[:, -1].copy()

    def one(t: int) -> tuple[RankTree, np.ndarray, np.ndarray]:
        drawn = weight * draw_rows(n, settings.n_draws, True, seed, t) if settings.bootstrap else weight.copy()
        tree = grow(
            of_features,
            is_categorical,
            is_ordered,
            y,
            max(len(target.levels), 2),
            drawn,
            criterion=settings.criterion,
            max_features=settings.max_features,
            min_samples_split=settings.min_samples_split,
            min_samples_leaf=settings.min_samples_leaf,
            max_depth=settings.max_depth,
            max_leaf_nodes=settings.max_leaf_nodes,
            seed=seed,
            number=t,
        )
        node = find_leaves(tree, of_features.codes, seed, t)
        while True:  # rows missing a split value may take other sides than they did in growing, and leave a leaf empty
            count = np.bincount(node[drawn > 0], minlength=len(tree.feature))
            pruned = prune(tree, count, 1)
            if len(pruned.feature) == len(tree.feature):
                return tree, node, drawn
            tree = pruned
            node = find_leaves(tree, of_features.codes, seed, t)

    grown = list(map_ordered(one, [(t,) for t in range(settings.n_estimators)], settings.n_jobs))
    rows_at = [np.bincount(node, drawn, minlength=len(tree.feature)) for tree, node, drawn in grown]
    trees = join(training.columns, ranks, [tree for tree, _, _ in grown], rows_at)
    first_node = np.cumsum([0] + [len(tree.feature) for tree, _, _ in grown[:-1]])
    leaf_of = [trees.leaf[node + first] for (_, node, _), first in zip(grown, first_node, strict=True)]
    return Arrival(trees, np.array(leaf_of, dtype=np.int32), np.array([drawn for _, _, drawn in grown]))
