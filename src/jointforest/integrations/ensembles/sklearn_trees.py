"""Trees, forests and extra trees of scikit-learn: float32 values, <=, averages of leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .adopt import float64_thresholds
from .table import Ensemble, Tree, join, labels_of, library_of


def read(model: Any) -> Ensemble:
    """What a fitted tree, forest, or forest of extra trees computes: shares of classes, or numbers, averaged.

    Parameters
    ----------
    model : fitted DecisionTree*, ExtraTree*, RandomForest* or ExtraTrees* of scikit-learn

    Returns
    -------
    Ensemble

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ValueError
        If it has several targets.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> len(read(RandomForestRegressor(3).fit([[0.0], [1.0]], [1.0, 2.0])).root)
    3
    """
    check_is_fitted(model)
    if model.n_outputs_ != 1:
        raise ValueError(f"{library_of(model)} has {model.n_outputs_} targets; train one model for each")
    trees = [tree.tree_ for tree in getattr(model, "estimators_", [model])]
    return join(
        [tree_of(tree, tree.value[:, 0, :] / len(trees)) for tree in trees],
        base=np.zeros(trees[0].value.shape[2]),
        link="identity",
        names=getattr(model, "feature_names_in_", None),
        categories=[None] * model.n_features_in_,
        classes=labels_of(model.classes_) if is_classifier(model) else None,
        library=library_of(model),
    )


def tree_of(tree: Any, value: np.ndarray) -> Tree:
    """A ``sklearn.tree._tree.Tree`` with ``value`` (N, K) in its nodes."""
    return Tree(
        feature=tree.feature,
        threshold=float64_thresholds(tree.threshold),
        left=tree.children_left,
        right=tree.children_right,
        missing_left=tree.missing_go_to_left.astype(bool),
        other_left=np.zeros(tree.node_count, dtype=bool),
        left_levels={},
        value=value,
    )
