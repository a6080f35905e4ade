"""Ensembles read from scikit-learn against its own predictions and leaves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from threadpoolctl import threadpool_limits

from jointforest.ensembles.read import read_ensemble

from .test_table import LETTERS, answers, assert_same_leaves, check, make_table, make_target, numbers_only

N = 200


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tables are answered faster by one thread."""
    with threadpool_limits(1):
        yield


def named(model: object) -> str:
    return str(model).replace("\n", "").replace(" ", "")


def classes_of(y: np.ndarray, n_classes: int) -> np.ndarray:
    labels = np.array(["no", "yes", "perhaps"])[:n_classes]
    return labels[np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))]


def without_missing(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.fillna(frame.median())


TREES = [
    DecisionTreeRegressor(max_depth=6),
    DecisionTreeRegressor(criterion="absolute_error", max_leaf_nodes=20),
    DecisionTreeClassifier(max_depth=6),
    DecisionTreeClassifier(class_weight="balanced", min_samples_leaf=5, ccp_alpha=0.001),
    ExtraTreeRegressor(),
    ExtraTreeClassifier(max_features=None),
    RandomForestRegressor(5, min_samples_leaf=3),
    RandomForestRegressor(3, criterion="poisson", max_depth=4),
    RandomForestClassifier(5, max_leaf_nodes=15),
    RandomForestClassifier(5, class_weight="balanced_subsample", max_depth=4),
    ExtraTreesRegressor(5, min_samples_leaf=2),
    ExtraTreesClassifier(5, bootstrap=True, min_samples_leaf=2),
]


@pytest.mark.parametrize("model", TREES, ids=named)
@pytest.mark.parametrize(("missing", "n_classes"), [(0.0, 2), (0.15, 3)])
def test_trees_and_forests(model, missing: float, n_classes: int) -> None:
    seed = n_classes + int(100 * missing)
    frame = numbers_only(make_table(N, seed, missing))
    y = make_target(make_table(N, seed, missing), 0)
    new = numbers_only(make_table(N, seed + 50, 0.15))  # missing cells that no split has seen
    of_classes = hasattr(model, "predict_proba")
    model.set_params(random_state=0).fit(frame, classes_of(y, n_classes) if of_classes else y - y.min())
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.names == tuple(frame.columns)
    for rows in (frame, new) if missing else (frame, without_missing(new)):
        expected = model.predict_proba(rows) if of_classes else model.predict(rows)[:, None]
        np.testing.assert_allclose(answers(ensemble, rows), expected, rtol=1e-14, atol=1e-15)
        assert_same_leaves(ensemble, rows, model.apply(rows))
    assert ensemble.classes == (tuple(model.classes_) if of_classes else None)


BOOSTED = [
    GradientBoostingRegressor(),
    GradientBoostingRegressor(loss="absolute_error", max_leaf_nodes=6),
    GradientBoostingRegressor(loss="huber", learning_rate=0.3),
    GradientBoostingRegressor(loss="quantile", alpha=0.2, init="zero"),
    GradientBoostingRegressor(n_iter_no_change=2, subsample=0.7),
    GradientBoostingClassifier(),
    GradientBoostingClassifier(loss="exponential"),
    GradientBoostingClassifier(init="zero", learning_rate=0.5),
]


@pytest.mark.filterwarnings("ignore:X has feature names")  # scikit-learn's, of its own trees
@pytest.mark.parametrize("model", BOOSTED, ids=named)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradient_boosting(model, n_classes: int) -> None:
    of_classes = hasattr(model, "predict_proba")
    if model.loss == "exponential" and n_classes == 3:
        n_classes = 2
    frame, new = (without_missing(numbers_only(make_table(N, k))) for k in (n_classes, 50))
    y = make_target(make_table(N, n_classes), 0)
    model.set_params(random_state=0, n_estimators=15).fit(frame, classes_of(y, n_classes) if of_classes else y)
    ensemble = read_ensemble(model)
    check(ensemble)
    for rows in (frame, new):
        expected = model.predict_proba(rows) if of_classes else model.predict(rows)[:, None]
        np.testing.assert_allclose(answers(ensemble, rows), expected, rtol=1e-12, atol=1e-14)
        assert_same_leaves(ensemble, rows, model.apply(rows))


HISTOGRAMS = [
    HistGradientBoostingRegressor(),
    HistGradientBoostingRegressor(loss="absolute_error", max_leaf_nodes=8),
    HistGradientBoostingRegressor(loss="quantile", quantile=0.3),
    HistGradientBoostingRegressor(loss="poisson"),
    HistGradientBoostingRegressor(loss="gamma", max_depth=3),
    HistGradientBoostingRegressor(early_stopping=True, n_iter_no_change=2),
    HistGradientBoostingClassifier(),
    HistGradientBoostingClassifier(class_weight="balanced", interaction_cst="pairwise"),
]


@pytest.mark.parametrize("model", HISTOGRAMS, ids=named)
@pytest.mark.parametrize(("missing", "n_classes"), [(0.0, 2), (0.15, 3)])
def test_histogram_boosting(model, n_classes: int, missing: float) -> None:
    of_classes = hasattr(model, "predict_proba")
    seed = n_classes + int(100 * missing)
    frame = make_table(N, seed, missing, letters=LETTERS[:5])
    new = make_table(N, 50, 0.15)  # levels and missing cells never seen
    y = make_target(frame, 0)
    model.set_params(random_state=0, max_iter=15, min_samples_leaf=5)
    model.fit(frame, classes_of(y, n_classes) if of_classes else y - y.min() + 0.1)
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.categories == (None,) * 7 + (tuple("abcde"), (2, 3, 5, 7, 11))
    for rows in (frame, new, new[new.columns[::-1]]):
        given = rows[frame.columns]
        expected = model.predict_proba(given) if of_classes else model.predict(given)[:, None]
        np.testing.assert_allclose(answers(ensemble, rows), expected, rtol=1e-14, atol=0)


def test_histogram_boosting_on_an_array_with_levels_in_the_middle() -> None:
    frame = make_table(N, 1)
    X = numbers_only(frame)[["plain", "letter", "ties", "number"]].to_numpy() * 1.5
    model = HistGradientBoostingRegressor(categorical_features=[1, 3], max_iter=10).fit(X, make_target(frame, 0))
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.categories[1] == tuple(np.arange(8) * 1.5) and ensemble.names == ("0", "1", "2", "3")
    X[::5, 1] = 2.25  # never seen
    assert np.array_equal(answers(ensemble, X)[:, 0], model.predict(X))


def test_histogram_boosting_on_columns_of_text_and_of_booleans() -> None:
    frame = make_table(N, 1)
    y = make_target(frame, 0)
    text = frame["letter"].astype(object).where(frame["letter"].notna(), None)
    flags = pd.DataFrame({"text": text, "plain": frame["plain"], "flag": frame["ties"] > 0})
    model = HistGradientBoostingRegressor(categorical_features=["text", "flag"], max_iter=10).fit(flags, y)
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.categories == (tuple(LETTERS), None, (False, True))
    assert np.array_equal(answers(ensemble, flags)[:, 0], model.predict(flags))


def test_a_single_leaf() -> None:
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["only", "only"])
    assert answers(read_ensemble(model), np.array([[5.0]])).tolist() == [[1.0]]


@pytest.mark.parametrize("model", [TREES[0], RandomForestClassifier(), BOOSTED[0], HISTOGRAMS[0]], ids=named)
def test_a_model_that_is_not_fitted_is_refused(model) -> None:
    with pytest.raises(NotFittedError, match=type(model).__name__):
        read_ensemble(type(model)())


def test_several_targets_are_refused() -> None:
    model = RandomForestRegressor(2).fit([[0.0], [1.0]], [[0.0, 1.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match="sklearn RandomForestRegressor has 2 targets"):
        read_ensemble(model)


def test_an_init_of_its_own_is_refused() -> None:
    model = GradientBoostingRegressor(init=DummyRegressor(), n_estimators=2).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="init=DummyRegressor"):
        read_ensemble(model)
