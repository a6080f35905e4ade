"""Fitted trees and forests of scikit-learn, read with their bootstrap and taken over as they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from ...data.schema import Column, Schema, near
from ...ensembles.evaluate import SplitTree, find_leaf, to_trees
from ...models.box_forest.structure import Trees, keep_leaves, with_weights
from ..leaf_fitting.densities import AssignedRows, first_leaves
from .targets import Training

_TREES = (DecisionTreeClassifier, DecisionTreeRegressor)  # ExtraTree* are subclasses
_FORESTS = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)
_TOLERANCE = 1e-6
"""How far sums may differ, relatively: scikit-learn added them up in another order."""


class AdoptedForest(NamedTuple):
    """What is read from a fitted forest of T trees.

    trees : list of T `SplitTree`
    value : list of T float64 arrays (N, K). Share of each class in each node; of a regressor (K = 1) its prediction.
    rows : list of T float64 arrays (N,). Weight of the training rows in each node.
    samples : list of T int arrays, or None. Numbers of the rows that each tree's bootstrap drew; None: all rows.
    classes : array (K,), or None. None for a regressor.
    feature_names : array of str (n_features,), or None. None if it was fitted on an array.
    predicts_means : bool. Whether what a regressor's leaf predicts is the mean of its rows.
    """

    trees: list[SplitTree]
    value: list[np.ndarray]
    rows: list[np.ndarray]
    samples: list[np.ndarray] | None
    classes: np.ndarray | None
    feature_names: np.ndarray | None
    n_features: int
    has_class_weight: bool
    predicts_means: bool


def read_forest(forest: Any) -> AdoptedForest:
    """Read a fitted tree or forest of scikit-learn; TypeError, NotFittedError or ValueError if this is not possible."""
    name = type(forest).__name__
    if not isinstance(forest, _TREES + _FORESTS):
        raise TypeError(
            f"{name} cannot be adopted: expected a fitted DecisionTree*, ExtraTree*, RandomForest* or ExtraTrees* of "
            f"scikit-learn{_hint(forest)}"
        )
    check_is_fitted(forest)
    if forest.n_outputs_ != 1:
        raise ValueError(f"{name} has {forest.n_outputs_} targets: fit it on one; the others may be features")
    if forest.monotonic_cst is not None:
        raise ValueError(f"{name} has monotonic_cst: its leaves do not hold the means of their rows; fit it without")
    is_forest = isinstance(forest, _FORESTS)
    trees = [tree.tree_ for tree in forest.estimators_] if is_forest else [forest.tree_]
    of_classes = is_classifier(forest)
    return AdoptedForest(
        trees=[SplitTree(t.feature, t.threshold, t.children_left, t.children_right) for t in trees],
        value=[t.value[:, 0, :] for t in trees],
        rows=[t.weighted_n_node_samples for t in trees],
        samples=forest.estimators_samples_ if is_forest and forest.bootstrap else None,
        classes=forest.classes_ if of_classes else None,
        feature_names=getattr(forest, "feature_names_in_", None),
        n_features=forest.n_features_in_,
        has_class_weight=of_classes and forest.class_weight is not None,
        predicts_means=not of_classes and forest.criterion != "absolute_error",
    )


def _hint(forest: Any) -> str:
    if isinstance(forest, type):
        return "; got the class itself"
    if isinstance(forest, Pipeline):
        return "; give the pipeline's last step, and the rows as the steps before it leave them"
    if hasattr(forest, "best_estimator_"):
        return "; give its best_estimator_"
    return ""


def adopt(forest: Any, training: Training, sample_weight: np.ndarray, seed: int) -> AssignedRows:
    """The node table of a fitted forest, and the leaves of the rows it was fitted on (Correia et al. 2020, Alg. 1)."""
    # Complete rows end in the same leaves as in scikit-learn. How scikit-learn sends rows with missing cells is not
    # taken over: at learning they take sides by draws, as often as the others; a query marginalises them. Leaves that
    # only missing cells led to are then without rows, and left out.
    read = read_forest(forest)
    n = len(training.X)
    target = training.schema.columns[-1]
    columns_of = match_columns(read, training.schema)
    levels = _level_numbers(training.schema)
    trees, node = to_trees(training.columns, read.trees, columns_of, levels)
    if (read.classes is None) == target.is_categorical:
        wanted = "a classifier" if target.is_categorical else "a regressor"
        raise TypeError(f"expected {wanted} for the target {target.name!r}, got {type(forest).__name__}")
    counts = _bootstrap_counts(read, n) * (sample_weight > 0)
    leaf_of = find_leaf(trees, training.X, counts, seed)
    y = training.X[:, -1]
    if read.classes is not None:
        y = _class_numbers(read.classes, target)[y.astype(np.int64)]
    is_complete = not np.isnan(training.X[:, :-1]).any()
    of_tree = first_leaves(trees)
    drawn = np.empty_like(counts)
    for t, leaf in enumerate(leaf_of):
        at = node[leaf] if is_complete else np.zeros(n, dtype=np.int64)
        ends = node[of_tree[t] : of_tree[t + 1]] if is_complete else np.zeros(1, dtype=np.int64)
        drawn[t] = _row_weights(read, t, at, ends, y, counts[t], sample_weight)
    trees = with_weights(trees, rows := _rows_in_leaves(leaf_of, drawn, trees))
    while not (rows > 0).all():
        trees, _, _ = keep_leaves(trees, rows > 0)
        leaf_of = find_leaf(trees, training.X, drawn, seed)
        trees = with_weights(trees, rows := _rows_in_leaves(leaf_of, drawn, trees))
    return AssignedRows(trees, leaf_of, drawn)


def _rows_in_leaves(leaf_of: np.ndarray, weight: np.ndarray, trees: Trees) -> np.ndarray:
    """Weight of the rows in each leaf; float64 (L,)."""
    total = np.zeros(int(trees.leaf.max()) + 1)
    for leaf, of_row in zip(leaf_of, weight, strict=True):
        total += np.bincount(leaf, of_row, minlength=len(total))
    return total


def match_columns(read: AdoptedForest, schema: Schema) -> np.ndarray:
    """Column number (int64, n_features) of each feature: by name where both have names, else by position."""
    names = schema.names[:-1]
    if read.n_features != len(names):
        raise ValueError(
            f"the forest was fitted on other columns: on {read.n_features} features, and the table has {len(names)}"
        )
    if read.feature_names is None or schema.frame == "numpy":
        return np.arange(len(names))
    for name in read.feature_names:
        if name not in names:
            raise ValueError(
                f"the forest was fitted on other columns: the table lacks its feature {name!r}; {near(name, names)}"
            )
    return np.array([names.index(name) for name in read.feature_names])


def _level_numbers(schema: Schema) -> np.ndarray:
    """The number that stands for each level of all categorical columns; NaN for those of the target."""
    numbers = [np.empty(0)]
    for column in schema.columns[:-1]:
        if column.kind == "datetime":
            raise ValueError(
                f"column {column.name!r} holds dates, and the forest was fitted on numbers; "
                "give the same numbers that it was fitted on"
            )
        text = [level for level in column.levels if isinstance(level, str)]
        if text:
            raise ValueError(
                f"column {column.name!r} holds text such as {text[0]!r}, and the forest was fitted on numbers; give "
                f"the codes that it was fitted on, and kinds={{{column.name!r}: 'categorical'}}"
            )
        numbers.append(np.array(column.levels, dtype=np.float64))
    target = schema.columns[-1]
    return np.concatenate([*numbers, np.full(len(target.levels), np.nan)])


def _class_numbers(classes: np.ndarray, target: Column) -> np.ndarray:
    """Number in ``classes`` (int64, n_levels) of each level of the target; one more class for levels that are none."""
    out = np.full(len(target.levels), len(classes))
    for number, label in enumerate(classes.tolist()):
        if label not in target.codes:
            raise ValueError(
                f"the forest was fitted on other classes: {label!r} is none of the target {target.name!r}; "
                f"{near(label, target.levels)}"
            )
        out[target.codes[label]] = number
    return out


def _bootstrap_counts(read: AdoptedForest, n: int) -> np.ndarray:
    """How often each tree drew each row; float64 (T, n)."""
    if read.samples is None:
        return np.ones((len(read.trees), n))
    last = max(int(rows.max()) for rows in read.samples)
    if last >= n:
        raise ValueError(
            f"the forest was fitted on other rows: it drew row {last}, and the table has {n}; "
            "give the table that it was fitted on"
        )
    return np.array([np.bincount(rows, minlength=n) for rows in read.samples], dtype=np.float64)


def _row_weights(
    read: AdoptedForest,
    t: int,
    node: np.ndarray,
    ends: np.ndarray,
    y: np.ndarray,
    count: np.ndarray,
    sample_weight: np.ndarray,
) -> np.ndarray:
    """Weights of the rows with which tree t was grown, from those of its nodes; each row is at ``node`` (n,)."""
    # a bootstrap draws rows by their weight since scikit-learn 1.9; before, it counted rows by their weight
    for weight in (count * sample_weight, *([] if read.samples is None else [count])):
        if read.has_class_weight:
            weight = weight * _class_factors(read, t, y, weight)[y]
        if _agrees(read, t, node, ends, y, weight):
            return weight
    raise ValueError(
        f"the forest was fitted on other rows: tree {t} does not hold in its leaves what the rows given make of it; "
        "give X, y and sample_weight as they were when it was fitted"
    )


def _class_factors(read: AdoptedForest, t: int, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Factor (n_classes + 1,) by which rows of each class counted, from the root's weight of each class."""
    n_classes = read.value[t].shape[1]
    held = read.value[t][0] * read.rows[t][0]
    total = np.bincount(y, weight, minlength=n_classes + 1)[:n_classes]
    return np.append(np.divide(held, total, out=np.ones(n_classes), where=total > 0), 1.0)


def _agrees(read: AdoptedForest, t: int, node: np.ndarray, ends: np.ndarray, y: np.ndarray, weight: np.ndarray) -> bool:
    """Whether the nodes ``ends`` hold the weight of the rows there, and predict what the rows do."""
    value, rows = read.value[t], read.rows[t]
    n_nodes, width = value.shape
    total = np.bincount(node, weight, minlength=n_nodes)
    if not np.allclose(total[ends], rows[ends], rtol=_TOLERANCE, atol=0):
        return False
    if read.classes is None:
        if not read.predicts_means:
            return True
        predicted = np.bincount(node, weight * y, minlength=n_nodes)[:, None]
    else:
        cells = np.bincount(node * (width + 1) + y, weight, minlength=n_nodes * (width + 1))
        predicted = cells.reshape(n_nodes, width + 1)[:, :width]
    scale = np.abs(value[ends]).max()
    return np.allclose(predicted[ends] / rows[ends, None], value[ends], rtol=_TOLERANCE, atol=_TOLERANCE * scale)
