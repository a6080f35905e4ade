"""Models of scikit-learn as ensembles: trees and forests, both kinds of boosting, and transformed targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..data.cells import absent
from ..runtime.parameters import need
from .evaluate import float64_thresholds
from .read import read_ensemble
from .table import Ensemble, Tree, join_ensemble, labels_of, model_library

# ---- Trees, forests and extra trees: float32 values, compared by <=; averages of leaves.


def read_trees(model: Any) -> Ensemble:
    """A fitted tree, forest or forest of extra trees: shares of classes, or numbers, averaged."""
    # Several targets are refused.
    check_is_fitted(model)
    need(model.n_outputs_ == 1, f"{model_library(model)} has {model.n_outputs_} targets; train one model for each")
    trees = [tree.tree_ for tree in getattr(model, "estimators_", [model])]
    return join_ensemble(
        [_tree_of(tree, tree.value[:, 0, :] / len(trees)) for tree in trees],
        base=np.zeros(trees[0].value.shape[2]),
        link="identity",
        names=getattr(model, "feature_names_in_", None),
        categories=[None] * model.n_features_in_,
        classes=labels_of(model.classes_) if is_classifier(model) else None,
        library=model_library(model),
    )


def _tree_of(tree: Any, value: np.ndarray) -> Tree:
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


# ---- GradientBoosting*: trees of numbers, on float32 values, added to a constant.


def read_boosting(model: Any) -> Ensemble:
    """A fitted GradientBoostingClassifier or GradientBoostingRegressor. An ``init`` that is a model is refused."""
    # Of ``loss="exponential"`` the sums are twice the model's ``decision_function``, for a logistic link.
    check_is_fitted(model)
    if model.init is not None and model.init != "zero":
        raise ValueError(
            f"{model_library(model)} has init={type(model.init).__name__}: it starts from a model that is no constant; "
            "train it with init=None or 'zero'"
        )
    of_classes = is_classifier(model)
    n_outputs = model.estimators_.shape[1]
    scale = 2.0 if model.loss == "exponential" else 1.0  # P = 1 / (1 + exp(-2 F))
    trees = []
    for stage in model.estimators_:
        for k, tree in enumerate(tree.tree_ for tree in stage):
            value = np.zeros((tree.node_count, n_outputs))
            value[:, k] = scale * model.learning_rate * tree.value[:, 0, 0]
            trees.append(_tree_of(tree, value))
    link = "identity" if not of_classes else "logistic" if n_outputs == 1 else "softmax"
    return join_ensemble(
        trees,
        base=_start_of_boosting(model, link, n_outputs),
        link=link,
        names=getattr(model, "feature_names_in_", None),
        categories=[None] * model.n_features_in_,
        classes=labels_of(model.classes_) if of_classes else None,
        library=model_library(model),
    )


def _start_of_boosting(model: Any, link: str, n_outputs: int) -> np.ndarray:
    """The constant that it starts from: of classes their shares, through the inverse of the link."""
    if model.init == "zero":
        return np.zeros(n_outputs)
    any_row = np.zeros((1, model.n_features_in_))
    if link == "identity":
        return np.asarray(model.init_.predict(any_row), dtype=np.float64)
    eps = np.finfo(np.float64).eps
    share = np.clip(model.init_.predict_proba(any_row)[0], eps, 1 - eps)
    if link == "logistic":
        return np.log(share[1:] / (1 - share[1:]))
    return np.log(share) - np.log(share).mean()


# ---- HistGradientBoosting*: float64 values, compared by <=, sets of levels, sides of missing cells that were learned.

_LINKS_OF_LOSSES = {
    "squared_error": "identity",
    "absolute_error": "identity",
    "quantile": "identity",
    "poisson": "exp",
    "gamma": "exp",
}


def read_histogram_boosting(model: Any, n_iter: int | None = None) -> Ensemble:
    """A fitted HistGradientBoosting* with one of the documented losses; its first ``n_iter`` iterations, or all."""
    check_is_fitted(model)
    of_classes = is_classifier(model)
    n_outputs = model.n_trees_per_iteration_
    if of_classes:
        link = "logistic" if n_outputs == 1 else "softmax"
    elif isinstance(model.loss, str) and model.loss in _LINKS_OF_LOSSES:
        link = _LINKS_OF_LOSSES[model.loss]
    else:
        raise ValueError(
            f"{model_library(model)}: loss {model.loss!r} is not supported; expected one of {list(_LINKS_OF_LOSSES)}"
        )
    column, categories, none_level = _inner_features(model)
    trees = [
        _histogram_tree(tree, column, categories, none_level, k, n_outputs)
        for iteration in model._predictors[:n_iter]
        for k, tree in enumerate(iteration)
    ]
    return join_ensemble(
        trees,
        base=np.ravel(model._baseline_prediction),
        link=link,
        names=getattr(model, "feature_names_in_", None),
        categories=categories,
        classes=labels_of(model.classes_) if of_classes else None,
        library=model_library(model),
    )


def _inner_features(model: Any) -> tuple[np.ndarray, list[tuple[Any, ...] | None], dict[int, int]]:
    """The column of each of the model's inner features, for it puts categorical ones first; the levels of columns."""
    # A missing cell that was written None, not NaN, at training is a level of its own to the model: its code by column.
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


def _histogram_tree(
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


# ---- TransformedTargetRegressor: a model of the target's logarithm, or of its standardised values.


def read_transformed_target(model: Any) -> Ensemble:
    """A fitted TransformedTargetRegressor with ``inverse_func=np.exp``, with a StandardScaler, or with none."""
    # A logarithm of a target that the regressor predicts through a link of its own is refused.
    check_is_fitted(model)
    inner, how = read_ensemble(model.regressor_), model.transformer_
    inner = inner._replace(library=f"{model_library(model)} of {inner.library}")
    inverse = how.inverse_func if type(how) is FunctionTransformer else None
    if inner.link != "identity":
        raise ValueError(f"{inner.library}: the regressor has a link of its own ({inner.link}); train it on the target")
    if type(how) is FunctionTransformer and how.func is None and inverse is None:
        return inner
    if inverse is np.exp and not how.inv_kw_args:
        return inner._replace(link="exp")
    if type(how) is StandardScaler:
        scale = how.scale_ if how.with_std else 1.0
        return inner._replace(
            value=inner.value * scale, base=inner.base * scale + (how.mean_ if how.with_mean else 0.0)
        )
    raise ValueError(
        f"{inner.library}: this transformation of the target is not supported; expected func=np.log with "
        "inverse_func=np.exp, a StandardScaler, or none"
    )
