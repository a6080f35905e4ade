"""Refitting leaf values from the definition: least squares and log-loss over all weighted completions of all rows."""

from __future__ import annotations

import numpy as np

from .expectation import completions, goes_left


def leaves_of(ensemble, row):
    """The leaf of a complete row in each tree."""
    found = []
    for root in ensemble.root:
        node = int(root)
        while ensemble.leaf[node] < 0:
            left = goes_left(ensemble, node, row[ensemble.names[ensemble.feature[node]]])
            node = int(ensemble.left[node] if left else ensemble.right[node])
        found.append(int(ensemble.leaf[node]))
    return found


def completed(model, ensemble, rows, cells, weight):
    """All completions of all rows: the row of each (N,), its weight (N,), and its leaves (N, T)."""
    of, shares, leaves = [], [], []
    for i, (row, known) in enumerate(zip(rows, cells, strict=True)):
        for whole, p in zip(*completions(model, known), strict=True):
            labels = {c.name: c.levels[int(x)] for c, x in zip(model.schema.columns, whole, strict=True)}
            of.append(i)
            shares.append(weight[i] * p)
            leaves.append(leaves_of(ensemble, {**labels, **row}))
    return np.array(of), np.array(shares), np.array(leaves)


def design(leaves, n_leaves):
    """Whether each completion is in each leaf, (N, L)."""
    out = np.zeros((len(leaves), n_leaves))
    for tree in leaves.T:
        out[np.arange(len(leaves)), tree] = 1.0
    return out


def least_squares(design, y, weight, decay):
    """The theta (L, K) that minimises sum of weight (y - design theta)^2 / sum of weight + decay theta^2."""
    root = np.sqrt(weight / weight.sum())[:, None]
    n = design.shape[1]
    rows = np.vstack([root * design, np.sqrt(decay) * np.eye(n)])
    return np.linalg.lstsq(rows, np.vstack([root * y, np.zeros((n, y.shape[1]))]), rcond=1e-12)[0]


def squared_loss(design, y, weight, theta):
    """The mean loss over all completions."""
    return float((weight[:, None] * (y - design @ theta) ** 2).sum() / weight.sum())


def tree_of_leaves(ensemble):
    """The leaves of each tree."""

    def below(node):
        if ensemble.leaf[node] >= 0:
            return [int(ensemble.leaf[node])]
        return below(ensemble.left[node]) + below(ensemble.right[node])

    return [below(int(root)) for root in ensemble.root]
