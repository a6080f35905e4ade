"""Ensembles read from XGBoost against its own predictions and leaves; it adds up float32 numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb
from sklearn.exceptions import NotFittedError

from jointforest.ensembles.evaluate import encode_features, leaves, raw
from jointforest.ensembles.read import read_ensemble

from .test_table import LETTERS, answers, assert_same_leaves, check, make_table, make_target, numbers_only

N = 300
SMALL: dict[str, Any] = {"n_estimators": 8, "max_depth": 4, "n_jobs": 1, "random_state": 0}


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, np.reshape(expected, found.shape), rtol=1e-5, atol=1e-6)


def classes_of(y: np.ndarray, n_classes: int) -> np.ndarray:
    return np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


BOOSTERS: list[dict[str, Any]] = [
    {},
    {"tree_method": "exact"},
    {"grow_policy": "lossguide", "max_leaves": 7, "max_depth": 0},
    {"booster": "dart", "rate_drop": 0.5, "normalize_type": "forest"},
    {"num_parallel_tree": 3, "subsample": 0.6, "colsample_bynode": 0.5},
    {"gamma": 2.0, "tree_method": "exact"},  # pruning leaves holes in the node table
    {"max_depth": 1, "base_score": 0.3},
]


@pytest.mark.parametrize("params", BOOSTERS, ids=str)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_numbers(params: dict, missing: float) -> None:
    frame, new = numbers_only(make_table(N, 1, missing)), numbers_only(make_table(N, 2))
    y = make_target(make_table(N, 1, missing), 0)
    regressor = xgb.XGBRegressor(**{**SMALL, **params}).fit(frame, y)
    ensemble = read_ensemble(regressor)
    check(ensemble)
    assert ensemble.names == tuple(frame.columns) and ensemble.link == "identity"
    for n_classes in (2, 3):
        classifier = xgb.XGBClassifier(**{**SMALL, **params}).fit(frame, classes_of(y, n_classes))
        of_classes = read_ensemble(classifier)
        check(of_classes)
        assert of_classes.classes == tuple(range(n_classes))
        for rows in (frame, new):
            close(answers(of_classes, rows), classifier.predict_proba(rows))
            assert_same_leaves(of_classes, rows, classifier.apply(rows).reshape(N, -1))
    for rows in (frame, new):
        close(answers(ensemble, rows)[:, 0], regressor.predict(rows))
        assert_same_leaves(ensemble, rows, regressor.apply(rows))


@pytest.mark.parametrize("n_classes", [0, 3])
def test_sums_differ_by_nothing_but_float32(n_classes: int) -> None:
    table = make_table(N, 2)
    frame, y = numbers_only(table), make_target(table, 0)
    params = {**SMALL, "learning_rate": 1.0, "reg_lambda": 0.0, "num_parallel_tree": 2}
    if n_classes:
        model = xgb.XGBClassifier(**params).fit(frame, classes_of(y, n_classes))
    else:
        model = xgb.XGBRegressor(**params).fit(frame, y)
    ensemble = read_ensemble(model)
    value = ensemble.value.astype(np.float32)
    total = np.tile(ensemble.base.astype(np.float32), (N, 1))
    for leaf in leaves(ensemble, *encode_features(ensemble, frame)).T:
        total += value[leaf]
    assert np.array_equal(total, model.predict(frame, output_margin=True).reshape(total.shape))


@pytest.mark.parametrize("one_hot_up_to", [1, 100])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_levels_of_a_frame(one_hot_up_to: int, n_classes: int) -> None:
    frame, new = make_table(N, 3), make_table(N, 4)
    y = make_target(frame, 0)
    params = {**SMALL, "enable_categorical": True, "max_cat_to_onehot": one_hot_up_to}
    if n_classes:
        model = xgb.XGBClassifier(**params).fit(frame, classes_of(y, n_classes))
    else:
        model = xgb.XGBRegressor(**params).fit(frame, y)
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.categories == (None,) * 7 + (tuple(LETTERS), (2, 3, 5, 7, 11))
    other_order = new.assign(letter=new["letter"].cat.reorder_categories(LETTERS[::-1]))
    for rows in (frame, new, other_order):
        close(answers(ensemble, rows), model.predict_proba(rows) if n_classes else model.predict(rows))
        assert_same_leaves(ensemble, rows, model.apply(rows))


@pytest.mark.parametrize("one_hot_up_to", [1, 100])
def test_levels_as_codes_and_codes_never_seen(one_hot_up_to: int) -> None:
    frame, new = make_table(N, 5, letters=LETTERS[:6]), make_table(N, 6)
    codes, new_codes = (numbers_only(rows).to_numpy() for rows in (frame, new))
    types = ["q"] * 7 + ["c"] * 2
    data = xgb.DMatrix(codes, make_target(frame, 0), feature_types=types)
    booster = xgb.train({"max_depth": 4, "max_cat_to_onehot": one_hot_up_to, "nthread": 1}, data, 8)
    ensemble = read_ensemble(booster)
    check(ensemble)
    assert ensemble.names == tuple("012345678")
    for rows in (codes, new_codes):
        asked = xgb.DMatrix(rows, feature_types=types)
        close(answers(ensemble, rows), booster.predict(asked))
        assert_same_leaves(ensemble, rows, booster.predict(asked, pred_leaf=True))


def test_levels_of_polars() -> None:
    frame = make_table(N, 3)[["plain", "ties", "letter"]]
    letters = frame["letter"].astype(object).where(frame["letter"].notna(), None).tolist()
    table = pl.DataFrame(
        {"plain": frame["plain"].to_numpy(), "letter": pl.Series(letters, dtype=pl.Enum(LETTERS[::-1]))}
    )
    model = xgb.XGBRegressor(**SMALL, enable_categorical=True).fit(table, make_target(frame, 0))
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.categories == (None, tuple(LETTERS[::-1]))
    close(answers(ensemble, table), model.predict(table))


OBJECTIVES = [
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:logistic",
    "binary:logistic",
    "count:poisson",
    "reg:gamma",
    "reg:tweedie",
    "survival:cox",
    "survival:aft",
    "reg:quantileerror",
    "rank:pairwise",
    "rank:ndcg",
    "rank:map",
    "multi:softprob",
]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objectives_and_their_base_scores(objective: str) -> None:
    table = make_table(N, 7)
    frame, y = numbers_only(table), make_target(table, 0)
    y = (y - y.min() + 0.1) / (np.ptp(y) + 0.2)
    if objective in ("binary:logistic", "rank:pairwise", "rank:ndcg", "rank:map"):
        y = classes_of(y, 2)
    params: dict[str, Any] = {"objective": objective, "max_depth": 3, "nthread": 1}
    if objective == "reg:quantileerror":
        params["quantile_alpha"] = 0.3
    if objective.startswith("multi"):
        y, params["num_class"] = classes_of(y, 4), 4
    data = xgb.DMatrix(frame, y)
    if objective == "survival:aft":
        data = xgb.DMatrix(frame, label_lower_bound=y, label_upper_bound=y * 2)
    if objective.startswith("rank"):
        data.set_group([30] * 10)
    booster = xgb.train(params, data, 5)
    ensemble = read_ensemble(booster)
    check(ensemble)
    close(answers(ensemble, frame)[:, -1 if objective == "binary:logistic" else slice(None)], booster.predict(data))
    close(raw(ensemble, *encode_features(ensemble, frame)), booster.predict(data, output_margin=True))


@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softmax", "reg:gamma"])
def test_a_base_score_that_is_given(objective: str) -> None:
    table = make_table(N, 7)
    frame, y = numbers_only(table), classes_of(make_target(table, 0), 2) + 0.0
    params = {"objective": objective, "base_score": 0.2, "nthread": 1}
    if objective == "multi:softmax":
        params["num_class"] = 2
    data = xgb.DMatrix(frame, y + (objective == "reg:gamma"))
    booster = xgb.train(params, data, 2)
    ensemble = read_ensemble(booster)
    close(raw(ensemble, *encode_features(ensemble, frame)), booster.predict(data, output_margin=True))


def test_random_forests() -> None:
    table = make_table(N, 8)
    frame, y = numbers_only(table), make_target(table, 0)
    params = {"n_estimators": 7, "max_depth": 4, "n_jobs": 1, "random_state": 0}
    regressor = xgb.XGBRFRegressor(**params).fit(frame, y)
    close(answers(read_ensemble(regressor), frame), regressor.predict(frame))
    classifier = xgb.XGBRFClassifier(**params).fit(frame, classes_of(y, 3))
    ensemble = read_ensemble(classifier)
    assert len(ensemble.root) == 21
    close(answers(ensemble, frame), classifier.predict_proba(frame))


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_early_stopping_as_the_model_itself_predicts(booster: str) -> None:
    table, later = make_table(N, 9), make_table(N, 10)
    frame, new = numbers_only(table), numbers_only(later)
    y, y_new = classes_of(make_target(table, 0), 3), classes_of(make_target(later, 1), 3)
    params = {**SMALL, "n_estimators": 60, "early_stopping_rounds": 3, "booster": booster, "num_parallel_tree": 2}
    model = xgb.XGBClassifier(**params).fit(frame, y, eval_set=[(new, y_new)], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    ensemble = read_ensemble(model)
    assert len(ensemble.root) == (model.best_iteration + 1) * 6
    close(answers(ensemble, new), model.predict_proba(new))
    alone = model.get_booster()
    close(answers(read_ensemble(alone), new), alone.predict(xgb.DMatrix(new)))  # all trees


def test_a_ranker_and_a_booster_from_a_file(tmp_path) -> None:
    table = make_table(N, 8)
    frame, y = numbers_only(table), classes_of(make_target(table, 0), 3)
    model = xgb.XGBRanker(**SMALL).fit(frame, y, qid=np.repeat(np.arange(10), 30))
    close(answers(read_ensemble(model), frame), model.predict(frame))
    model.save_model(tmp_path / "m.ubj")
    loaded = xgb.Booster(model_file=tmp_path / "m.ubj")
    close(answers(read_ensemble(loaded), frame), model.predict(frame))


# -- what is refused


X, Y = np.arange(12.0).reshape(6, 2), np.array([0.0, 1, 0, 1, 1, 0])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (xgb.XGBRegressor(n_estimators=2, booster="gblinear"), "XGBRegressor has booster='gblinear'"),
        (xgb.XGBRegressor(n_estimators=2, missing=0.0), "missing=0.0"),
        (xgb.XGBClassifier(n_estimators=2, objective="binary:hinge"), "objective 'binary:hinge' is not supported"),
        (xgb.XGBRegressor(n_estimators=2, objective="binary:logitraw"), "objective 'binary:logitraw'"),
        (xgb.XGBClassifier(n_estimators=2, objective="count:poisson"), "'count:poisson' gives no probabilities"),
    ],
)
def test_unsupported_models_are_refused_by_name(model, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_ensemble(model.fit(X, Y))


def squared(y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return p - y, np.ones_like(y)


def test_an_objective_of_one_s_own_is_refused() -> None:
    model = xgb.XGBRegressor(n_estimators=2, objective=squared).fit(X, Y)
    with pytest.raises(ValueError, match=r"objective of its own \(squared\)"):
        read_ensemble(model)
    close(answers(read_ensemble(model.get_booster()), X), model.predict(X))


@pytest.mark.parametrize(
    "params", [{}, {"multi_strategy": "multi_output_tree"}, {"objective": "reg:quantileerror"}], ids=str
)
def test_several_outputs_are_refused(params: dict) -> None:
    if "objective" in params:
        model = xgb.XGBRegressor(n_estimators=2, quantile_alpha=[0.1, 0.9], **params).fit(X, Y)
    else:
        model = xgb.XGBRegressor(n_estimators=2, **params).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="several targets"):
        read_ensemble(model)


def test_vectors_in_leaves_are_refused() -> None:
    model = xgb.XGBClassifier(n_estimators=2, multi_strategy="multi_output_tree").fit(X, [0, 1, 2, 0, 1, 2])
    with pytest.raises(ValueError, match="vectors in its leaves"):
        read_ensemble(model)


def test_a_model_that_is_not_fitted_is_refused() -> None:
    with pytest.raises(NotFittedError):
        read_ensemble(xgb.XGBRegressor())
    with pytest.raises(NotFittedError, match="xgboost Booster is not fitted"):
        read_ensemble(xgb.Booster())


def test_labels_that_xgboost_does_not_keep_are_refused() -> None:
    frame = pd.DataFrame({"place": pd.Categorical(["Köln", "Bonn", "Köln", "Bonn", "Bonn", "Köln"])})
    model = xgb.XGBRegressor(n_estimators=2, enable_categorical=True).fit(frame, Y)
    with pytest.raises(ValueError, match="levels of column 'place' are not ASCII"):
        read_ensemble(model)
