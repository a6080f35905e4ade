"""Forests grown to predict a target column from the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...models.box_forest.structure import Trees, leaf_nodes
from ...runtime.threads import map_ordered
from ..base import draw_bootstrap
from ..growing.criterion_kernels import ENTROPY, VARIANCE
from ..growing.grow import GrowthSettings, RankTree, grow, rank
from ..leaf_fitting.densities import AssignedRows, assign_rows
from .targets import Training


class GrowSettings(NamedTuple):
    """How a forest is grown, as of `GenerativeForestClassifier`. A bootstrap draws ``n_draws`` rows."""

    n_estimators: int
    tree: GrowthSettings
    bootstrap: bool
    n_draws: int


def grow_forest(training: Training, weight: np.ndarray, settings: GrowSettings, seed: int) -> AssignedRows:
    """Grow trees that predict the target from the features; a bootstrap draws rows by their weights."""
    n, d = len(training.X), training.X.shape[1] - 1
    features = training.schema.columns[:-1]
    ranks = rank(training.columns, training.filled)
    of_features = ranks._replace(codes=np.ascontiguousarray(ranks.codes[:d]), n_codes=ranks.n_codes[:d])
    is_categorical = np.array([c.is_categorical for c in features], dtype=np.uint8)
    is_ordered = np.array([c.kind == "ordered" for c in features], dtype=np.uint8)
    target = training.schema.columns[-1]
    y = training.X[:, -1].astype(np.int32) if target.is_categorical else training.X[:, -1].copy()
    n_classes = max(len(target.levels), 2)

    def one(t: int) -> tuple[RankTree, np.ndarray, np.ndarray]:
        drawn = weight * draw_bootstrap(n, settings.n_draws, True, seed, t) if settings.bootstrap else weight.copy()
        how = {"seed": seed, "number": t}
        tree, node = grow(of_features, is_categorical, is_ordered, y, n_classes, drawn, settings.tree, **how)
        return tree, node, drawn

    grown = list(map_ordered(one, [(t,) for t in range(settings.n_estimators)], "growing trees"))
    return assign_rows(training.columns, ranks, *zip(*grown, strict=True))


# ---- Importance of each feature for the target.


def feature_importances(training: Training, assigned: AssignedRows, criterion: int) -> np.ndarray:
    """Share of each feature in the decrease of the target's impurity, (d,): the mean over trees."""
    # As in scikit-learn, of the rows that the trees count: what a split takes off the impurity, times the weight of its
    # node. Trees without a split do not count; all 0 if none has one.
    trees, d = assigned.trees, training.X.shape[1] - 1
    y = training.X[:, -1]
    target = training.schema.columns[-1]
    n_classes = len(target.levels) if target.is_categorical else 0
    levels = _nodes_by_depth(trees)
    ends = np.append(trees.root, len(trees.feature))
    node_of_leaf = leaf_nodes(trees.leaf)
    total = np.zeros(d)
    for t in range(len(trees.root)):
        first, end = int(ends[t]), int(ends[t + 1])
        rows = np.flatnonzero((assigned.weight[t] > 0.0) & (assigned.leaf_of[t] >= 0))
        node = node_of_leaf[assigned.leaf_of[t, rows]] - first
        sums = _node_sums(node, y[rows], assigned.weight[t, rows], end - first, n_classes)
        for level in levels[::-1]:
            inner = level[(level >= first) & (level < end)]
            inner = inner[trees.feature[inner] >= 0]
            sums[inner - first] = sums[trees.left[inner] - first] + sums[trees.right[inner] - first]
        impurity = _impurity(sums, criterion)
        inner = first + np.flatnonzero(trees.feature[first:end] >= 0)
        fall = impurity[inner - first] - impurity[trees.left[inner] - first] - impurity[trees.right[inner] - first]
        decrease = np.bincount(trees.feature[inner], np.maximum(fall, 0.0), d)
        total += decrease / decrease.sum() if decrease.sum() > 0.0 else 0.0
    return np.asarray(total / total.sum() if total.sum() > 0.0 else total)


def _nodes_by_depth(trees: Trees) -> list[np.ndarray]:
    """Nodes by their depth."""
    levels = [trees.root.astype(np.int64)]
    while len(levels[-1]):
        inner = levels[-1][trees.feature[levels[-1]] >= 0]
        levels.append(np.concatenate([trees.left[inner], trees.right[inner]]).astype(np.int64))
    return levels[:-1]


def _node_sums(node: np.ndarray, y: np.ndarray, weight: np.ndarray, n_nodes: int, n_classes: int) -> np.ndarray:
    """By node the weight of each class, or weight, sum and sum of squares of numbers, which are centred before."""
    if n_classes:
        flat = np.bincount(node * n_classes + y.astype(np.int64), weight, n_nodes * n_classes)
        return np.asarray(flat.reshape(n_nodes, n_classes))
    centred = y - np.average(y, weights=weight)
    return np.column_stack([np.bincount(node, weight * centred**k, n_nodes) for k in range(3)])


def _impurity(sums: np.ndarray, criterion: int) -> np.ndarray:
    """Impurity of each node times its weight."""
    if criterion == VARIANCE:
        return np.asarray(sums[:, 2] - sums[:, 1] ** 2 / np.maximum(sums[:, 0], 1e-300))
    weight = sums.sum(axis=1, keepdims=True)
    p = sums / np.maximum(weight, 1e-300)
    if criterion == ENTROPY:
        return np.asarray(-weight[:, 0] * (p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=1))
    return np.asarray(weight[:, 0] * (1.0 - (p * p).sum(axis=1)))
