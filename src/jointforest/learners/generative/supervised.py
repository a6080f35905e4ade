"""Forests grown to tell a target column from the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...runtime.threads import map_ordered
from ..base import draw_rows
from ..growing.grow import GrowthSettings, grow
from ..growing.rank_tree import RankTree
from ..growing.ranks import rank
from ..leaf_fitting.assign_rows import Arrival, arrive, settle
from .targets import Training


class GrowSettings(NamedTuple):
    """Parameters of the trees; `GenerativeForestClassifier` says what they mean. A bootstrap draws ``n_draws``."""

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


def grow_forest(training: Training, weight: np.ndarray, settings: GrowSettings, seed: int) -> Arrival:
    """Grow trees that tell the target, whose column is never split, from the features.

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
    n_classes = max(len(target.levels), 2)
    growth = GrowthSettings(
        max_features=settings.max_features,
        criterion=settings.criterion,
        min_samples_split=settings.min_samples_split,
        min_samples_leaf=settings.min_samples_leaf,
        max_depth=settings.max_depth,
        max_leaf_nodes=settings.max_leaf_nodes,
    )

    def one(t: int) -> tuple[RankTree, np.ndarray, np.ndarray]:
        drawn = weight * draw_rows(n, settings.n_draws, True, seed, t) if settings.bootstrap else weight.copy()
        how = {"seed": seed, "number": t}
        tree, node = grow(of_features, is_categorical, is_ordered, y, n_classes, drawn, growth, **how)
        # rows missing a split value may take other sides than they did in growing, and leave a leaf empty
        return *settle(tree, of_features.codes, drawn > 0, 1, seed, t, node), drawn

    grown = list(map_ordered(one, [(t,) for t in range(settings.n_estimators)], settings.n_jobs, "trees"))
    return arrive(training.columns, ranks, *zip(*grown, strict=True))
