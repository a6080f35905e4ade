"""The node table of a trained ensemble: what it computes, one array per field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ..models.box_forest.files import check_links
from ..models.box_forest.leaves.levels import bits
from ..runtime.arrays import FINITE, Field, check_arrays
from ..runtime.parameters import need


class Ensemble(NamedTuple):
    """What a trained ensemble of trees computes, whichever library trained it.

    T trees with N nodes and L leaves in all answer K outputs: output k of a row is the link of
    ``base[k] + sum over trees of value[leaf of the row, k]``.

    A number x goes left at a numeric node if ``x <= threshold``, as float64 numbers: thresholds are exact, whatever
    type and comparison the library routes by. A level goes left at a categorical node if its bit is set in the node's
    words of ``left_levels``. A missing value goes left if ``missing_left``, a level that the model does not know if
    ``other_left``.

    Attributes
    ----------
    feature : int32 array (N,)
        Feature of the split, in the model's own numbering; -1 at leaves.
    threshold : float64 array (N,)
        Threshold of numeric splits, never NaN; 0 elsewhere.
    levels_at : int32 array (N,)
        First word of the node's set in ``left_levels``; -1 unless the split is categorical. The set has
        ``(n_levels + 63) // 64`` words; level k is bit ``k % 64`` of word ``k // 64``.
    left_levels : uint64 array (W,)
        Sets of levels that go left; a level's number is its place in ``categories[feature]``.
    missing_left : bool array (N,)
        Whether the library sends a missing value left (its default direction).
    other_left : bool array (N,)
        Whether the library sends a level left that it never saw; False at numeric splits.
    left, right : int32 array (N,)
        Children, always greater than the parent; -1 at leaves.
    leaf : int32 array (N,)
        Leaf number of leaves, each of 0..L-1 once; -1 at inner nodes. Leaves of one tree are contiguous.
    root : int32 array (T,)
        Root of each tree.
    value : float64 array (L, K)
        What each leaf adds: learning rates, weights of trees and the 1/T of averages are folded in.
    base : float64 array (K,)
        What is there before any tree.
    link : str
        ``"identity"`` (a number, or probabilities of the K classes), ``"logistic"`` (K = 1: probability of the second
        of two classes), ``"softmax"`` (K classes), or ``"exp"`` (a positive number).
    names : tuple of str
        Names of the features; "0", "1", ... if the model has none, then features go by position.
    categories : tuple
        For each feature None if it is a number, else the tuple of its levels, labels as in the user's table, in the
        order of the codes.
    classes : tuple or None
        Labels of a classifier in the order of outputs; of a logistic one (negative, positive). None if it predicts a
        number.
    library : str
        Library and class of the model, for messages: ``"xgboost XGBClassifier"``.
    """

    feature: np.ndarray
    threshold: np.ndarray
    levels_at: np.ndarray
    left_levels: np.ndarray
    missing_left: np.ndarray
    other_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    leaf: np.ndarray
    root: np.ndarray
    value: np.ndarray
    base: np.ndarray
    link: str
    names: tuple[str, ...]
    categories: tuple[tuple[Any, ...] | None, ...]
    classes: tuple[Any, ...] | None
    library: str


# ---- Trees as adapters read them, joined to one node table: reachable nodes alone, children after their parents.


class Tree(NamedTuple):
    """One binary tree, in the numbering of the library; its root is node 0.

    feature : int array (N,). Not read at leaves.
    threshold : float64 array (N,). Exact for float64 numbers; read at numeric splits alone.
    left, right : int array (N,). Children; negative at leaves.
    missing_left : bool array (N,)
    other_left : bool array (N,). Read at categorical splits alone.
    left_levels : dict of int to bool array (n_levels,). By node with a categorical split, the levels that go left.
    value : float64 array (N, K). Read at leaves alone.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    other_left: np.ndarray
    left_levels: dict[int, np.ndarray]
    value: np.ndarray


def join_ensemble(
    trees: Sequence[Tree],
    *,
    base: np.ndarray,
    link: str,
    names: Sequence[str] | None,
    categories: Sequence[tuple[Any, ...] | None],
    classes: tuple[Any, ...] | None,
    library: str,
) -> Ensemble:
    """The ensemble of these trees; ``names`` None: features go by position. Raises ValueError if there is no tree."""
    if not trees:
        raise ValueError(f"{library}: the model has no trees")
    orders = [_breadth_first(tree) for tree in trees]
    starts = np.cumsum([0] + [len(order) for order in orders])
    n = int(starts[-1])
    feature = np.full(n, -1, dtype=np.int32)
    threshold = np.zeros(n)
    levels_at = np.full(n, -1, dtype=np.int32)
    missing_left, other_left = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    left, right = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    words: list[np.ndarray] = []
    n_words = 0
    for tree, order, start, stop in zip(trees, orders, starts[:-1], starts[1:], strict=True):
        place = np.full(len(tree.left), -1)
        place[order] = np.arange(start, stop)
        is_inner = tree.left[order] >= 0
        nodes, at = order[is_inner], np.arange(start, stop)[is_inner]
        feature[at] = tree.feature[nodes]
        threshold[at] = tree.threshold[nodes]
        missing_left[at] = tree.missing_left[nodes]
        left[at], right[at] = place[tree.left[nodes]], place[tree.right[nodes]]
        for node, goes_left in tree.left_levels.items():
            if place[node] >= 0:
                levels_at[place[node]] = n_words
                other_left[place[node]] = tree.other_left[node]
                threshold[place[node]] = 0.0
                words.append(bits(goes_left))
                n_words += len(words[-1])
    is_leaf = feature < 0
    return Ensemble(
        feature=feature,
        threshold=threshold,
        levels_at=levels_at,
        left_levels=np.concatenate([*words, np.empty(0, dtype=np.uint64)]),
        missing_left=missing_left,
        other_left=other_left,
        left=left,
        right=right,
        leaf=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        root=starts[:-1].astype(np.int32),
        value=np.concatenate([tree.value[o[tree.left[o] < 0]] for tree, o in zip(trees, orders, strict=True)]).astype(
            np.float64
        ),
        base=np.asarray(base, dtype=np.float64),
        link=link,
        names=tuple(names) if names is not None else tuple(str(j) for j in range(len(categories))),
        categories=tuple(categories),
        classes=classes,
        library=library,
    )


def _breadth_first(tree: Tree) -> np.ndarray:
    """Numbers of the nodes below the root, level by level."""
    level = np.zeros(1, dtype=np.int64)
    nodes = []
    while len(level):
        nodes.append(level)
        inner = level[tree.left[level] >= 0]
        level = np.column_stack([tree.left[inner], tree.right[inner]]).ravel().astype(np.int64)
    return np.concatenate(nodes)


def labels_of(classes: np.ndarray) -> tuple[Any, ...]:
    """A classifier's labels as plain Python values."""
    return tuple(np.asarray(classes).tolist())


def model_library(model: Any) -> str:
    """Library and class of a model, for messages."""
    return f"{type(model).__module__.partition('.')[0]} {type(model).__name__}"


# ---- The conditions on a node table that comes from a file: kernels check no bounds.


LINKS = ("identity", "logistic", "softmax", "exp")
ENSEMBLE_FIELDS = {
    "feature": Field("i4", "N"),
    "threshold": Field("f8", "N", -np.inf),  # an infinite one separates missing cells from others
    "levels_at": Field("i4", "N", -1),
    "left_levels": Field("u8", "W"),
    "missing_left": Field("b1 u1", "N", 0, 1),  # truth values are bytes in files
    "other_left": Field("b1 u1", "N", 0, 1),
    "left": Field("i4", "N"),
    "right": Field("i4", "N"),
    "leaf": Field("i4", "N"),
    "root": Field("i4", "T", 0),
    "value": Field("f8", "L K", *FINITE),
    "base": Field("f8", "K", *FINITE),
}
"""The arrays of an ensemble."""


def check_ensemble(ensemble: Ensemble, n_levels: np.ndarray) -> None:
    """Raise ValueError unless a node table is valid; ``n_levels`` (n_features,) is 0 for numbers."""
    try:
        sizes = check_arrays("", ensemble._asdict(), ENSEMBLE_FIELDS)
        need(ensemble.link in LINKS, f"link: expected one of {LINKS}")
        is_leaf = ensemble.feature < 0
        need(int(is_leaf.sum()) == sizes["L"] > 0 and sizes["K"] > 0, "feature: expected as many leaves as values")
        check_links(ensemble, is_leaf)
        need((ensemble.feature < len(n_levels)).all(), "feature: out of range")
        feature, at = ensemble.feature[~is_leaf], ensemble.levels_at[~is_leaf].astype(np.int64)
        by_level = at >= 0
        need((n_levels[feature][by_level] > 0).all(), "levels_at: a set of levels of a number")
        ends = at + (n_levels[feature] + 63) // 64
        need((ends[by_level] <= sizes["W"]).all(), "levels_at: out of range")
        need((ensemble.levels_at[is_leaf] == -1).all(), "levels_at: -1 without a set")
    except ValueError as error:
        raise ValueError(f"an ensemble of trees is broken: {error}") from None


# ---- Levels of a model that takes no others.


class ClosedLevels(tuple[Any, ...]):
    """The levels of a feature of a model that refuses others, such as one behind an encoder that raises an error."""


# ---- Levels of which a model keeps no labels but their hashes, as CatBoost's models do.


class HashedLevels(tuple[int, ...]):
    """CatBoost's hashes of the levels of a feature that some split names; all other levels are alike to the model."""

    def codes(self, labels: Sequence[Any]) -> np.ndarray:
        """Place of each label (text, whole numbers, booleans), -1 for those that no split names; int64 array."""
        place = {level: code for code, level in enumerate(self)}
        text = [as_text(label) for label in labels]
        number = hashes(text) if place else {}
        return np.array([place.get(number.get(t, -1), -1) for t in text], dtype=np.int64)


def as_text(label: Any) -> str:
    """What CatBoost makes of a label before it hashes it: True is 1."""
    return label if isinstance(label, str) else str(int(label))


def hashes(labels: Sequence[str]) -> dict[str, int]:
    """CatBoost's hash of each label."""
    if not labels:
        return {}
    pool = import_module("catboost").Pool([[label] for label in labels], cat_features=[0])
    # models written as JSON list the hashes of a pool's labels, and it need not be the pool they were trained on
    saved = as_json(_any_model(), pool=pool)
    return {entry["value"]: entry["hash"] for entry in saved["features_info"]["cat_features_hash"]}


def as_json(model: Any, **parameters: Any) -> dict:
    """What CatBoost writes of a model as JSON."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", **parameters)
        return json.loads(path.read_text(encoding="utf-8"))


@cache
def _any_model() -> Any:
    """A model of one categorical feature."""
    catboost = import_module("catboost")
    model = catboost.CatBoost(
        {"iterations": 1, "depth": 1, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    )
    return model.fit(catboost.Pool([["a"], ["b"]], [0.0, 1.0], cat_features=[0]))
