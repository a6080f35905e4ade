"""Ensembles read from LightGBM against its own predictions and leaves."""

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from jointforest.ensembles.evaluate import encode_features, leaves
from jointforest.ensembles.lightgbm import LARGEST_ZERO, _Test, with_zeros
from jointforest.ensembles.read import read_ensemble

from .test_table import LETTERS, answers, assert_same_leaves, check, make_table, make_target, numbers_only

N = 300
SMALL: dict[str, Any] = {
    "n_estimators": 10,
    "num_leaves": 12,
    "min_child_samples": 5,
    "min_data_per_group": 2,
    "cat_smooth": 1,
    "n_jobs": 1,
    "random_state": 0,
    "verbose": -1,
}
RF = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, np.reshape(expected, found.shape), rtol=1e-13, atol=1e-14)


def classes_of(y: np.ndarray, n_classes: int) -> np.ndarray:
    labels = np.array(["no", "yes", "perhaps"])[:n_classes]
    return labels[np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))]


BOOSTERS: list[dict[str, Any]] = [
    {},
    {"boosting_type": "dart", "drop_rate": 0.5},
    RF,
    {"extra_trees": True, "max_depth": 3},
    {"max_cat_to_onehot": 100},
    {"use_missing": False},
    {"num_leaves": 2},
]


@pytest.mark.parametrize("params", BOOSTERS, ids=str)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_levels_and_numbers_of_a_frame(params: dict, missing: float) -> None:
    frame, new = make_table(N, 1, missing, letters=LETTERS[:6]), make_table(N, 2)  # letters never seen
    y = make_target(frame, 0)
    regressor = lgb.LGBMRegressor(**{**SMALL, **params}).fit(frame, y)
    ensemble = read_ensemble(regressor)
    check(ensemble)
    assert ensemble.names == tuple(frame.columns) and ensemble.link == "identity"
    assert ensemble.categories == (None,) * 7 + (tuple(LETTERS[:6]), (2, 3, 5, 7, 11))
    for rows in (frame, new):
        close(answers(ensemble, rows), regressor.predict(rows))
        assert_same_leaves(ensemble, rows, regressor.predict(rows, pred_leaf=True))
    for n_classes in (2, 3):
        classifier = lgb.LGBMClassifier(**{**SMALL, **params}).fit(frame, classes_of(y, n_classes))
        of_classes = read_ensemble(classifier)
        check(of_classes)
        assert of_classes.classes == tuple(sorted(["no", "yes", "perhaps"][:n_classes]))
        for rows in (frame, new):
            close(answers(of_classes, rows), classifier.predict_proba(rows))
            assert_same_leaves(of_classes, rows, classifier.predict(rows, pred_leaf=True))


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_levels_as_whole_numbers_of_an_array(missing: float) -> None:
    frame, new = make_table(N, 5, missing, letters=LETTERS[:6]), make_table(N, 6)
    frame, new = (numbers_only(rows).assign(number=rows["number"].astype(float)) for rows in (frame, new))
    X, X_new = frame.to_numpy(), new.to_numpy()
    X_new[::9, 8] = 4  # between the levels, beyond them, below
    X_new[1::9, 8] = 1000
    X_new[2::9, 8] = -1
    y = make_target(make_table(N, 5, missing, letters=LETTERS[:6]), 0)
    model = lgb.LGBMRegressor(**SMALL).fit(X, y, categorical_feature=[7, 8])
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.names == tuple("012345678") and ensemble.categories[8] == (2, 3, 5, 7, 11)
    for rows in (X, X_new):
        close(answers(ensemble, rows), model.predict(rows))
        assert_same_leaves(ensemble, rows, model.predict(rows, pred_leaf=True))


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_zeros_that_count_as_missing(missing: float) -> None:
    frame, new = make_table(N, 7, missing), make_table(N, 8)
    model = lgb.LGBMRegressor(**SMALL, zero_as_missing=True).fit(frame, make_target(frame, 0))
    ensemble = read_ensemble(model)
    check(ensemble)
    assert len(ensemble.value) > model.booster_.num_trees() * SMALL["num_leaves"]  # some leaves are there twice
    edges = new.assign(zeros=np.resize([0.0, -0.0, 1e-35, -1e-35, LARGEST_ZERO, -LARGEST_ZERO, 2e-35, -2e-35], N))
    for rows in (frame, new, edges):
        close(answers(ensemble, rows), model.predict(rows))
        found = leaves(ensemble, *encode_features(ensemble, rows))
        for ours, theirs in zip(found.T, model.predict(rows, pred_leaf=True).T, strict=True):
            pairs = np.unique(np.column_stack([ours, theirs]), axis=0)
            assert len(pairs) == len(np.unique(ours))


def test_small_numbers_are_zeros() -> None:
    threshold = np.array([0.0, LARGEST_ZERO, -LARGEST_ZERO, 2e-35, -2e-35, 1.0, np.inf])
    edge = [LARGEST_ZERO, np.nextafter(LARGEST_ZERO, 1), 1e-300, 0.0, 2e-35, 1.0]
    for t, exact in zip(threshold, with_zeros(threshold), strict=True):
        for x in [*edge, *(-v for v in edge)]:
            assert ((0.0 if abs(x) <= LARGEST_ZERO else x) <= t) == (x <= exact)
    assert isinstance(_Test(0.0, False, 1, 2), tuple)


OBJECTIVES = [
    "regression",
    "regression_l1",
    "huber",
    "fair",
    "poisson",
    "quantile",
    "mape",
    "gamma",
    "tweedie",
    "cross_entropy",
    "binary",
]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("boosting", [{}, RF], ids=["gbdt", "rf"])
def test_objectives(objective: str, boosting: dict) -> None:
    frame = make_table(N, 9)
    y = make_target(frame, 0)
    y = (y - y.min() + 0.1) / (np.ptp(y) + 0.2)
    if objective == "binary":
        y = np.round(y)
    params = {**SMALL, **boosting, "objective": objective, "sigmoid": 1.7, "alpha": 0.3}
    rounds = params.pop("n_estimators")
    booster = lgb.train(params, lgb.Dataset(frame, y), rounds)
    ensemble = read_ensemble(booster)
    check(ensemble)
    close(answers(ensemble, frame)[:, -1], booster.predict(frame))


def test_early_stopping_as_the_model_itself_predicts() -> None:
    frame, new = make_table(N, 9), make_table(N, 10)
    data, later = (lgb.Dataset(rows, np.digitize(make_target(rows, 0), [-1, 1])) for rows in (frame, new))
    params = {**SMALL, "objective": "multiclass", "num_class": 3, "learning_rate": 0.3}
    rounds = params.pop("n_estimators")
    stop = lgb.early_stopping(3, verbose=False)
    booster = lgb.train(params, data, 10 * rounds, valid_sets=[later], callbacks=[stop], keep_training_booster=True)
    ensemble = read_ensemble(booster)
    assert len(ensemble.root) == 3 * booster.best_iteration < booster.num_trees()
    close(answers(ensemble, new), booster.predict(new))


def test_a_ranker_and_a_booster_from_a_file(tmp_path) -> None:
    frame = make_table(N, 8)
    y = np.digitize(make_target(frame, 0), [-1, 1])
    model = lgb.LGBMRanker(**SMALL).fit(frame, y, group=[30] * 10)
    close(answers(read_ensemble(model), frame), model.predict(frame))
    model.booster_.save_model(tmp_path / "m.txt")
    loaded = lgb.Booster(model_file=tmp_path / "m.txt")
    ensemble = read_ensemble(loaded)
    assert ensemble.categories[7] == tuple(LETTERS)
    close(answers(ensemble, frame), model.predict(frame))


def test_a_model_without_its_parameters() -> None:
    frame = make_table(N, 8)
    booster = lgb.LGBMRegressor(**SMALL).fit(frame, make_target(frame, 0)).booster_
    head, _, rest = booster.model_to_string().partition("\nparameters:")
    text = head + "\n" + rest[rest.index("\npandas_categorical") :]
    ensemble = read_ensemble(lgb.Booster(model_str=text))
    assert ensemble.categories[7] == tuple(LETTERS)
    close(answers(ensemble, frame), booster.predict(frame))


def test_trees_of_a_single_leaf() -> None:
    X = np.arange(40.0)[:, None]
    model = lgb.LGBMRegressor(**{**SMALL, "min_child_samples": 30}).fit(X, X[:, 0])
    assert answers(read_ensemble(model), X[:2]).tolist() == [[19.5], [19.5]]


def test_levels_of_other_types() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "flag": pd.Categorical(rng.random(N) < 0.5),
            "half": pd.Categorical(rng.choice([0.5, 1.5, 2.0], N)),
            "place": pd.Categorical(rng.choice(["Köln", "日本", ""], N)),
            "constant": pd.Categorical(["same"] * N),
        }
    )
    y = frame["flag"].cat.codes + frame["half"].cat.codes * 3 + frame["place"].cat.codes * 10
    model = lgb.LGBMRegressor(**SMALL).fit(frame, y)
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.categories == ((False, True), (0.5, 1.5, 2.0), ("", "Köln", "日本"), ("same",))
    close(answers(ensemble, frame), model.predict(frame))
    close(answers(ensemble, frame.astype({"flag": bool, "half": float})), model.predict(frame))


# -- what is refused


X, Y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lgb.LGBMRegressor(linear_tree=True, **SMALL), r"LGBMRegressor has linear models in its leaves"),
        (lgb.LGBMRegressor(objective="cross_entropy_lambda", **SMALL), "objective 'cross_entropy_lambda' is not"),
        (lgb.LGBMClassifier(objective="multiclassova", num_class=2, **SMALL), "objective 'multiclassova' is not"),
        (lgb.LGBMRegressor(reg_sqrt=True, **SMALL), "reg_sqrt=True"),
        (lgb.LGBMClassifier(objective="poisson", **SMALL), "'poisson' gives no probabilities"),
        (lgb.LGBMRegressor(objective=lambda y, p: (p - y, np.ones_like(y)), **SMALL), "objective of its own"),
    ],
)
def test_unsupported_models_are_refused_by_name(model, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_ensemble(model.fit(X, Y))


def test_categories_whose_columns_are_not_known_are_refused() -> None:
    frame = make_table(N, 1)
    ordered = frame.assign(number=frame["number"].cat.as_ordered())
    model = lgb.LGBMRegressor(**SMALL).fit(ordered, make_target(frame, 0))
    with pytest.raises(ValueError, match="trained on 2 columns of pandas categories and splits 1 columns as levels"):
        read_ensemble(model)


def test_a_model_that_is_not_fitted_is_refused() -> None:
    with pytest.raises(NotFittedError):
        read_ensemble(lgb.LGBMRegressor())
