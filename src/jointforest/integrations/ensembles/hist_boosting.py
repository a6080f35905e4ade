"""HistGradientBoosting* of scikit-learn: float64 values, <=, sets of levels, missing values learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ...data.cells import absent
from .table import Ensemble, Tree, join, labels_of, library_of

_LINKS = {
    "squared_error": "identity",
    "absolute_error": "identity",
    "quantile": "identity",
    "poisson": "exp",
    "gamma": "exp",
}


def read(model: Any) -> Ensemble:
    """What a fitted HistGradientBoostingClassifier or HistGradientBoostingRegressor computes.

    Parameters
    ----------
    model : fitted HistGradientBoosting* of scikit-learn

    Returns
    -------
    Ensemble

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ValueError
        If its loss is none of the documented ones.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> read(HistGradientBoostingRegressor(max_iter=2, loss="poisson").fit([[0.0], [1.0]], [1.0, 2.0])).link
    'exp'
    """
    check_is_fitted(model)
    of_classes = is_classifier(model)
    n_outputs = model.n_trees_per_iteration_
    if of_classes:
        link = "logistic" if n_outputs == 1 else "softmax"
    elif isinstance(model.loss, str) and model.loss in _LINKS:
        link = _LINKS[model.loss]
    else:
        raise ValueError(f"{library_of(model)}: loss {model.loss!r} is not supported; expected one of {list(_LINKS)}")
    column, categories, none_level = _columns(model)
    trees = [
        _tree(tree, column, categories, none_level, k, n_outputs)
        for iteration in model._predictors
        for k, tree in enumerate(iteration)
    ]
    return join(
        trees,
        base=np.ravel(model._baseline_prediction),
        link=link,
        names=getattr(model, "feature_names_in_", None),
        categories=categories,
        classes=labels_of(model.classes_) if of_classes else None,
        library=library_of(model),
    )


def _columns(model: Any) -> tuple[np.ndarray, list[tuple[Any, ...] | None], dict[int, int]]:
    """The column of each of the model's inner features, for it puts categorical ones first; the levels of columns.

    A missing cell that was written None, not NaN, at training is a level of its own to the model: its code by column.
    """
    n = model.n_features_in_
    categories: list[tuple[Any, ...] | None] = [None] * n
    if model.is_categorical_ is None:
        return np.arange(n), categories, {}
    categorical, numeric = np.flatnonzero(model.is_categorical_), np.flatnonzero(~model.is_categorical_)
    encoder = model._preprocessor.named_transformers_["encoder"]
    none_level = {}
    for j, array in zip(categorical, encoder.categories_, strict=True):
        levels = array.tolist()
        categories[j] = tuple(level for level in levels if not absent(level))  # None and NaN come last
        if any(level is None for level in levels):
            none_level[int(j)] = levels.index(None)
    return np.concatenate([categorical, numeric]), categories, none_level


def _tree(
    tree: Any,
    column: np.ndarray,
    categories: list[tuple[Any, ...] | None],
    none_level: dict[int, int],
    k: int,
    n_outputs: int,
) -> Tree:
    nodes = tree.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    feature = column[nodes["feature_idx"]]
    other_left = nodes["missing_go_to_left"].astype(bool)  # a level never seen is a missing value
    missing_left = other_left.copy()
    value = np.zeros((len(nodes), n_outputs))
    value[:, k] = nodes["value"]
    bits = np.unpackbits(
        np.ascontiguousarray(tree.raw_left_cat_bitsets).astype("<u4").view(np.uint8), bitorder="little"
    ).reshape(-1, 256)
    sets = {}
    for i in np.flatnonzero(~is_leaf & nodes["is_categorical"].astype(bool)):
        goes_left = bits[nodes["bitset_idx"][i]].astype(bool)
        sets[int(i)] = goes_left[: len(categories[feature[i]] or ())]
        if feature[i] in none_level:
            missing_left[i] = goes_left[none_level[feature[i]]]
    return Tree(
        feature=feature,
        threshold=nodes["num_threshold"],
        left=np.where(is_leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(is_leaf, -1, nodes["right"].astype(np.int64)),
        missing_left=missing_left,
        other_left=other_left,
        left_levels=sets,
        value=value,
    )
