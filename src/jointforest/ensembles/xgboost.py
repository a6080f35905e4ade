"""Models of XGBoost: float32 values, <, sets of categories, a default direction at every split."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .evaluate import float64_thresholds
from .table import Ensemble, Tree, join_ensemble, labels_of, model_library

_LINKS = {
    "reg:squarederror": "identity",
    "reg:squaredlogerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:absoluteerror": "identity",
    "reg:quantileerror": "identity",
    "rank:pairwise": "identity",
    "rank:ndcg": "identity",
    "rank:map": "identity",
    "reg:logistic": "logistic",
    "binary:logistic": "logistic",
    "count:poisson": "exp",
    "reg:gamma": "exp",
    "reg:tweedie": "exp",
    "survival:cox": "exp",
    "survival:aft": "exp",
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
}


def read(model: Any) -> Ensemble:
    """An XGBoost Booster or fitted estimator. Refused: linear boosters, vector leaves, several targets."""
    # Values are compared as float32. With early stopping the ``XGB*`` classes use the best iteration, a Booster all
    # trees.
    library = model_library(model)
    booster = model.get_booster() if hasattr(model, "get_booster") else model  # raises NotFittedError
    try:
        saved = booster.save_raw("json")
    except ValueError as error:  # an XGBoostError: it has not seen a feature yet
        raise NotFittedError(f"{library} is not fitted: train it first") from error
    learner = json.loads(saved.decode())["learner"]
    link = _checked_link(model, learner, library)
    gradient_booster = learner["gradient_booster"]
    is_dart = gradient_booster["name"] == "dart"
    forest = (gradient_booster["gbtree"] if is_dart else gradient_booster)["model"]
    n_trees = _trees_used(model, forest)
    parameters = learner["learner_model_param"]
    n_features, n_classes = int(parameters["num_feature"]), int(parameters["num_class"])
    categories = _categories(learner, forest, n_features, library)
    weight = gradient_booster["weight_drop"] if is_dart else np.ones(n_trees)
    trees = [
        _xgboost_tree(tree, categories, output, float(scale), max(n_classes, 1), library)
        for tree, output, scale in zip(forest["trees"][:n_trees], forest["tree_info"], weight, strict=False)
    ]
    return join_ensemble(
        trees,
        base=_base(parameters["base_score"], learner["objective"]["name"], max(n_classes, 1)),
        link=link,
        names=learner["feature_names"] or None,
        categories=categories,
        classes=_xgboost_classes(model, learner["objective"]["name"], n_classes),
        library=library,
    )


def _checked_link(model: Any, learner: dict, library: str) -> str:
    """The link, or an error that names what is not supported."""
    if learner["gradient_booster"]["name"] == "gblinear":
        raise ValueError(f"{library} has booster='gblinear', which has no trees; train it with 'gbtree' or 'dart'")
    if callable(getattr(model, "objective", None)):
        raise ValueError(
            f"{library} has an objective of its own ({model.objective.__name__}), whose link is not known; "
            "give its get_booster() if what you want are the sums"
        )
    if int(learner["learner_model_param"].get("num_target", "1")) > 1:
        raise ValueError(f"{library} has several targets (multi-output); train one model for each")
    missing = getattr(model, "missing", math.nan)
    if missing is not None and not math.isnan(missing):
        raise ValueError(f"{library} has missing={missing}: turn these cells into NaN, and train it with missing=nan")
    objective = learner["objective"]["name"]
    if objective not in _LINKS:
        raise ValueError(f"{library}: objective {objective!r} is not supported; expected one of {sorted(_LINKS)}")
    if hasattr(model, "classes_") and _LINKS[objective] not in ("logistic", "softmax"):
        raise ValueError(f"{library}: a classifier's objective {objective!r} gives no probabilities")
    return _LINKS[objective]


def _trees_used(model: Any, forest: dict) -> int:
    """How many of the trees the model itself predicts with."""
    n_trees = len(forest["trees"])
    if not hasattr(model, "get_booster"):
        return n_trees
    best = model.get_booster().attributes().get("best_iteration")
    per_iteration = int(forest["gbtree_model_param"]["num_parallel_tree"]) * (max(forest["tree_info"], default=0) + 1)
    return n_trees if best is None else min(n_trees, (int(best) + 1) * per_iteration)


def _xgboost_classes(model: Any, objective: str, n_classes: int) -> tuple[Any, ...] | None:
    if hasattr(model, "classes_"):
        return labels_of(model.classes_)
    if objective == "binary:logistic":
        return (0, 1)
    return tuple(range(n_classes)) if n_classes else None


def _base(base_score: str, objective: str, n_outputs: int) -> np.ndarray:
    """The sums before any tree; models store them as predictions, since version 3 one for each output."""
    score = np.array(json.loads(base_score), dtype=np.float32)
    if _LINKS[objective] == "exp":
        score = np.log(score)
    elif _LINKS[objective] == "logistic":
        score = -np.log(1 / score - 1)
    return np.broadcast_to(score.astype(np.float64), (n_outputs,)).copy()


def _categories(learner: dict, forest: dict, n_features: int, library: str) -> list[tuple[Any, ...] | None]:
    """Levels of the categorical features: labels if the model holds them (since version 3.1), else its codes."""
    types = learner["feature_types"] or ["float"] * n_features
    labels = forest.get("cats", {}).get("enc", [])
    out: list[tuple[Any, ...] | None] = []
    for j, kind in enumerate(types):
        if kind != "c":
            out.append(None)
            continue
        held = labels[j]["values"] if j < len(labels) else []
        if not held:
            out.append(tuple(range(_n_codes(forest, j))))
        elif "type" in labels[j]:  # whole numbers
            out.append(tuple(held))
        else:
            text = np.array(held, dtype=np.int8).tobytes()
            if not text.isascii():  # versions 3.1 and 3.2 cut such labels at the wrong places (xgboost pull 12371)
                name = learner["feature_names"][j] if learner["feature_names"] else str(j)
                raise ValueError(
                    f"{library}: levels of column {name!r} are not ASCII text, and XGBoost does not store these "
                    "reliably; train it on levels in ASCII, or on their codes"
                )
            out.append(tuple(text[a:b].decode() for a, b in pairwise(labels[j]["offsets"])))
    return out


def _n_codes(forest: dict, j: int) -> int:
    """One more than the highest code of feature j that some split names; all others are alike."""
    highest = -1
    for tree in forest["trees"]:
        for node, at, size in zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        ):
            if tree["split_indices"][node] == j:
                highest = max(highest, *tree["categories"][at : at + size])
    return highest + 1


def _xgboost_tree(
    tree: dict, categories: list[tuple[Any, ...] | None], output: int, scale: float, n_outputs: int, library: str
) -> Tree:
    if int(tree["tree_param"]["size_leaf_vector"]) > 1:
        raise ValueError(
            f"{library} has vectors in its leaves (multi_strategy='multi_output_tree'); train it with "
            "'one_output_per_tree'"
        )
    condition = np.array(tree["split_conditions"], dtype=np.float32)
    left = np.array(tree["left_children"])
    feature = np.array(tree["split_indices"])
    value = np.zeros((len(left), n_outputs))
    value[:, output] = scale * condition.astype(np.float64)  # in leaves the condition is the value
    sets = {}
    for node, at, size in zip(
        tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
    ):
        levels = categories[feature[node]]
        assert levels is not None
        goes_left = np.ones(len(levels), dtype=bool)
        goes_left[tree["categories"][at : at + size]] = False
        sets[int(node)] = goes_left
    return Tree(
        feature=feature,
        # x < c is x <= the float32 before c
        threshold=float64_thresholds(np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)),
        left=left,
        right=np.array(tree["right_children"]),
        missing_left=np.array(tree["default_left"]).astype(bool),
        other_left=np.ones(len(left), dtype=bool),  # a category that is in no set goes left
        left_levels=sets,
        value=value,
    )
