"""Clusters of dependent columns, by the mutual information that the joint gives each two of them."""

from __future__ import annotations

import numpy as np

from ...data.discretization.dependence import CLASSES, mutual_information
from ...data.evidence import Evidence
from ...models.base import Distribution
from ..sampling import sample

_TOGETHER = 0.5
"""Columns as dependent as normals of this correlation are put together."""
_DRAWS = 8192
"""Rows that are drawn to compare columns: the standard error of a correlation is about .01."""


def dependent_groups(model: Distribution, columns: list[int], most: int, seed: int) -> list[list[int]]:
    """Columns in at most ``most`` groups of dependent ones."""
    # Mutual information I, of 8,192 draws in at most 16 classes a column, becomes r = sqrt(1 - exp(-2 I)). Groups are
    # joined by average linkage while r is at least .5 or there are more than ``most``.
    if len(columns) < 2:
        return [[j] for j in columns]
    from scipy.cluster.hierarchy import fcluster, linkage

    nothing = Evidence.nothing(len(model.schema.columns))
    drawn = sample(model, nothing, _DRAWS, seed, False)[:, columns]
    is_categorical = [model.schema.columns[j].is_categorical for j in columns]
    classes = np.column_stack([_classes(x, levels) for x, levels in zip(drawn.T, is_categorical, strict=True)])
    information = mutual_information(classes.astype(np.int16), classes.max(axis=0) + 1)
    apart = 1.0 - np.sqrt(-np.expm1(-2.0 * np.maximum(information, 0.0)))
    tree = linkage(apart[np.triu_indices(len(columns), 1)], "average")
    height = tree[:, 2]
    cut = max(1.0 - _TOGETHER, height[len(columns) - most - 1] if len(columns) > most else 0.0)
    label = fcluster(tree, cut * (1 + 1e-12), "distance")
    members: dict[int, list[int]] = {}
    for j, one in zip(columns, label.tolist(), strict=True):
        members.setdefault(one, []).append(j)
    return sorted(members.values(), key=lambda group: columns.index(group[0]))


def _classes(x: np.ndarray, is_categorical: bool) -> np.ndarray:
    """At most 16 classes (n,) of one column's draws: runs of about equal mass, or the commonest levels and the rest."""
    value, code, count = np.unique(x, return_inverse=True, return_counts=True)
    if len(value) <= CLASSES:
        return code
    if not is_categorical:
        middle = (np.cumsum(count) - 0.5 * count) / len(x)
        return np.unique((middle * CLASSES).astype(np.int64), return_inverse=True)[1][code]
    to = np.full(len(value), CLASSES - 1)
    to[np.argsort(-count, kind="stable")[: CLASSES - 1]] = np.arange(CLASSES - 1)
    return to[code]
