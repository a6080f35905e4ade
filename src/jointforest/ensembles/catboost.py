"""Models of CatBoost: float32 values, > goes right, symmetric trees or others, levels tested one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ..runtime.parameters import need
from .evaluate import float64_thresholds
from .table import Ensemble, HashedLevels, Tree, as_json, join_ensemble, labels_of, model_library

_LINKS = {
    **dict.fromkeys(["RMSE", "MAE", "MAPE", "Quantile", "Expectile", "LogLinQuantile", "Lq", "Huber"], "identity"),
    **dict.fromkeys(["QueryRMSE", "QuerySoftMax", "PairLogit", "PairLogitPairwise"], "identity"),
    **dict.fromkeys(["YetiRank", "YetiRankPairwise", "StochasticRank", "StochasticFilter"], "identity"),
    **dict.fromkeys(["Logloss", "CrossEntropy", "Focal"], "logistic"),
    **dict.fromkeys(["Poisson", "Tweedie"], "exp"),
    "MultiClass": "softmax",
}


def read(model: Any) -> Ensemble:
    """A fitted CatBoost model. Refused: target-encoded levels, text, embeddings, several targets, other objectives."""
    # Values are compared as float32; missing ones follow ``nan_mode``. Levels are tested one at a time. The model keeps
    # hashes of levels, so CatBoost must be installed to know a label's hash.
    library = model_library(model)
    if not model.is_fitted():
        raise NotFittedError(f"{library} is not fitted: call fit first")
    names = list(model.feature_names_)
    for kind, places in (
        ("text", model.get_text_feature_indices()),
        ("embedding", model.get_embedding_feature_indices()),
    ):
        if places:
            shown = _three([names[j] for j in places])
            raise ValueError(f"{library} has {kind} features, which are not supported: {shown}")
    saved = as_json(model)
    features = saved["features_info"]
    _refuse_statistics(features, names, library)
    link = _link(saved["model_info"], library)
    scale, bias = saved["scale_and_bias"]
    columns = _Columns(features)
    if "oblivious_trees" in saved:
        trees = [_symmetric(tree, columns, scale, len(bias)) for tree in saved["oblivious_trees"]]
    else:
        trees = [_nested(tree, columns, scale, len(bias)) for tree in saved["trees"]]
    return join_ensemble(
        trees,
        base=np.array(bias),
        link=link,
        names=names,
        categories=columns.categories(len(names)),
        classes=labels_of(model.classes_) if link in ("logistic", "softmax") else None,
        library=library,
    )


def _refuse_statistics(features: dict, names: Sequence[str], library: str) -> None:
    categorical = {f["feature_index"]: names[f["flat_feature_index"]] for f in features.get("categorical_features", [])}
    encoded = sorted(
        {
            categorical[element["cat_feature_index"]]
            for ctr in features.get("ctrs") or []
            for element in ctr["elements"]
            if "cat_feature_index" in element
        }
    )
    if encoded:
        raise ValueError(
            f"{library} replaces levels by statistics of the target (CTR) in {_three(encoded)}, which splits on levels "
            "cannot say; train it with one_hot_max_size at least the number of levels"
        )


def _three(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} " + ", ".join(repr(name) for name in names)


def _link(info: dict, library: str) -> str:
    loss = info["params"]["loss_function"]["type"]
    if loss.startswith(("Multi", "RMSEWithUncertainty")) and loss != "MultiClass":
        raise ValueError(f"{library}: loss {loss!r} has several outputs; train one model for each")
    need(loss in _LINKS, f"{library}: loss {loss!r} is not supported; expected one of {sorted(_LINKS)}")
    return _LINKS[loss]


class _Columns:
    """Splits as CatBoost writes them, in terms of the table's columns."""

    def __init__(self, features: dict) -> None:
        self._numeric = {f["feature_index"]: f for f in features.get("float_features", [])}
        self._categorical = {f["feature_index"]: f for f in features.get("categorical_features", [])}

    def categories(self, n_features: int) -> list[tuple[Any, ...] | None]:
        """Hashes of the levels that splits name, None for numbers."""
        out: list[tuple[Any, ...] | None] = [None] * n_features
        for feature in self._categorical.values():
            out[feature["flat_feature_index"]] = HashedLevels(_hashes(feature))
        return out

    def split(self, split: dict) -> tuple[int, float, bool, np.ndarray | None]:
        """Column, threshold, whether missing values go left, and, if it is of levels, those that go left."""
        if split["split_type"] == "FloatFeature":
            feature = self._numeric[split["float_feature_index"]]
            missing_left = feature["nan_value_treatment"] != "AsTrue"
            return feature["flat_feature_index"], split["border"], missing_left, None
        if split["split_type"] != "OneHotFeature":
            raise ValueError(f"splits of CatBoost's type {split['split_type']!r} are not supported")
        feature = self._categorical[split["cat_feature_index"]]
        goes_left = np.array(_hashes(feature)) != split["value"] % 2**32
        return feature["flat_feature_index"], 0.0, True, goes_left


def _hashes(feature: dict) -> list[int]:
    """CatBoost writes its hashes, 32 bits, as signed numbers."""
    return [value % 2**32 for value in feature.get("values", [])]


def _symmetric(tree: dict, columns: _Columns, scale: float, n_outputs: int) -> Tree:
    """A tree that asks one question a level; bit i of a leaf's number is the answer to the i-th."""
    splits = [columns.split(split) for split in reversed(tree["splits"])]
    depth = len(splits)
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    n_inner = len(level)
    children = 2 * np.arange(n_inner) + 1
    is_leaf = np.full(2**depth, -1)
    value = np.zeros((n_inner + 2**depth, n_outputs))
    value[n_inner:] = scale * np.reshape(tree["leaf_values"], (2**depth, n_outputs))
    return _tree([splits[i] for i in level], np.append(children, is_leaf), np.append(children + 1, is_leaf), value)


def _nested(tree: dict, columns: _Columns, scale: float, n_outputs: int) -> Tree:
    """A tree of nodes in nodes."""
    nodes = [tree]
    left, right = [], []
    for node in nodes:  # grows as it goes
        if "split" in node:
            left.append(len(nodes))
            right.append(len(nodes) + 1)
            nodes += [node["left"], node["right"]]
        else:
            left.append(-1)
            right.append(-1)
    value = np.array([np.broadcast_to(scale * np.asarray(node.get("value", 0.0)), n_outputs) for node in nodes])
    splits = [columns.split(node["split"]) if "split" in node else None for node in nodes]
    return _tree(splits, np.array(left), np.array(right), value)


def _tree(
    splits: Sequence[tuple[int, float, bool, np.ndarray | None] | None],
    left: np.ndarray,
    right: np.ndarray,
    value: np.ndarray,
) -> Tree:
    """The tree of these splits, by node; those of leaves are None, or left out at the end."""
    n = len(left)
    feature, missing_left = np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool)
    border = np.zeros(n)
    sets = {}
    for i, split in enumerate(splits):
        if split is not None:
            feature[i], border[i], missing_left[i], goes_left = split
            if goes_left is not None:
                sets[i] = goes_left
    return Tree(
        feature=feature,
        threshold=float64_thresholds(border),
        left=left,
        right=right,
        missing_left=missing_left,
        other_left=np.ones(n, dtype=bool),
        left_levels=sets,
        value=value,
    )
