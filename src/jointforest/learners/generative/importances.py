"""How much the splits on each feature tell of the target."""

from __future__ import annotations

import numpy as np

from ...models.box_forest.structure import Trees
from ..growing.criterion_kernels import ENTROPY, VARIANCE
from ..leaf_fitting.assign_rows import Arrival
from .targets import Training


def feature_importances(training: Training, arrival: Arrival, criterion: int) -> np.ndarray:
    """Share of each feature in the decrease of the target's impurity, (d,): the mean over trees, which sum to 1 each.

    As in scikit-learn, of the rows that the trees count: what a split takes off the impurity, times the weight of its
    node. Trees without a split do not count; all 0 if none has one.
    """
    trees, d = arrival.trees, training.X.shape[1] - 1
    y = training.X[:, -1]
    target = training.schema.columns[-1]
    n_classes = len(target.levels) if target.is_categorical else 0
    levels = _levels(trees)
    ends = np.append(trees.root, len(trees.feature))
    node_of_leaf = np.empty(int(trees.leaf.max()) + 1, np.int64)
    node_of_leaf[trees.leaf[trees.leaf >= 0]] = np.flatnonzero(trees.leaf >= 0)
    total = np.zeros(d)
    for t in range(len(trees.root)):
        first, end = int(ends[t]), int(ends[t + 1])
        rows = np.flatnonzero((arrival.weight[t] > 0.0) & (arrival.leaf_of[t] >= 0))
        node = node_of_leaf[arrival.leaf_of[t, rows]] - first
        sums = _sums(node, y[rows], arrival.weight[t, rows], end - first, n_classes)
        for level in levels[::-1]:
            inner = level[(level >= first) & (level < end)]
            inner = inner[trees.feature[inner] >= 0]
            sums[inner - first] = sums[trees.left[inner] - first] + sums[trees.right[inner] - first]
        impurity = _impurity(sums, criterion)
        inner = first + np.flatnonzero(trees.feature[first:end] >= 0)
        fall = impurity[inner - first] - impurity[trees.left[inner] - first] - impurity[trees.right[inner] - first]
        own = np.bincount(trees.feature[inner], np.maximum(fall, 0.0), d)
        total += own / own.sum() if own.sum() > 0.0 else 0.0
    return np.asarray(total / total.sum() if total.sum() > 0.0 else total)


def _levels(trees: Trees) -> list[np.ndarray]:
    """Nodes by their depth."""
    found = [trees.root.astype(np.int64)]
    while len(found[-1]):
        inner = found[-1][trees.feature[found[-1]] >= 0]
        found.append(np.concatenate([trees.left[inner], trees.right[inner]]).astype(np.int64))
    return found[:-1]


def _sums(node: np.ndarray, y: np.ndarray, weight: np.ndarray, n_nodes: int, n_classes: int) -> np.ndarray:
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
