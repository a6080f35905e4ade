"""Ensembles read from CatBoost against its own predictions and leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoost, CatBoostClassifier, CatBoostRanker, CatBoostRegressor, Pool
from sklearn.exceptions import NotFittedError

from jointforest.ensembles.evaluate import encode_features, level_codes
from jointforest.ensembles.read import read_ensemble
from jointforest.ensembles.table import HashedLevels

from .test_table import LETTERS, answers, assert_same_leaves, check, make_table, make_target, numbers_only

N = 300
LEVELS = ["letter", "number"]
SMALL: dict[str, Any] = {
    "iterations": 10,
    "depth": 4,
    "learning_rate": 0.4,
    "one_hot_max_size": 20,
    "thread_count": 1,
    "random_seed": 0,
    "verbose": 0,
    "allow_writing_files": False,
}


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, np.reshape(expected, found.shape), rtol=1e-12, atol=1e-13)


def classes_of(y: np.ndarray, n_classes: int) -> np.ndarray:
    labels = np.array(["no", "yes", "perhaps"])[:n_classes]
    return labels[np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))]


def as_catboost_wants(frame: pd.DataFrame) -> pd.DataFrame:
    """Levels without missing cells: those are a level of their own, and so is a number 0."""
    letters = frame["letter"].astype(object).where(frame["letter"].notna(), "none").astype(str)
    return frame.assign(letter=letters, number=frame["number"].cat.add_categories(0).fillna(0).astype(int))


BOOSTERS: list[dict[str, Any]] = [
    {},
    {"grow_policy": "Depthwise"},
    {"grow_policy": "Lossguide", "max_leaves": 9},
    {"nan_mode": "Max", "border_count": 8},
    {"boosting_type": "Ordered", "rsm": 0.5},
    {"depth": 1, "feature_border_type": "Uniform"},
]


@pytest.mark.parametrize("params", BOOSTERS, ids=str)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_levels_and_numbers_of_a_frame(params: dict, missing: float) -> None:
    frame = as_catboost_wants(make_table(N, 1, missing, letters=LETTERS[:6]))
    new = as_catboost_wants(make_table(N, 2, missing))  # letters never seen
    y = make_target(make_table(N, 1, missing, letters=LETTERS[:6]), 0)
    regressor = CatBoostRegressor(**{**SMALL, **params}, cat_features=LEVELS).fit(frame, y)
    ensemble = read_ensemble(regressor)
    check(ensemble)
    assert ensemble.names == tuple(frame.columns) and ensemble.link == "identity"
    for rows in (frame, new):
        close(answers(ensemble, rows), regressor.predict(rows))
        assert_same_leaves(ensemble, rows, regressor.calc_leaf_indexes(rows))
    for n_classes in (2, 3):
        classifier = CatBoostClassifier(**{**SMALL, **params}, cat_features=LEVELS)
        of_classes = read_ensemble(classifier.fit(frame, classes_of(y, n_classes)))
        check(of_classes)
        assert of_classes.classes == tuple(sorted(["no", "yes", "perhaps"][:n_classes]))
        for rows in (frame, new):
            close(answers(of_classes, rows), classifier.predict_proba(rows))
            assert_same_leaves(of_classes, rows, classifier.calc_leaf_indexes(rows))


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_numbers_of_an_array(nan_mode: str) -> None:
    X, new = numbers_only(make_table(N, 5)).to_numpy(), numbers_only(make_table(N, 6)).to_numpy()
    model = CatBoostRegressor(**SMALL, nan_mode=nan_mode).fit(X, make_target(make_table(N, 5), 0))
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.names == tuple("012345678")
    for rows in (X, new):
        close(answers(ensemble, rows), model.predict(rows))


def test_missing_cells_that_were_not_there_at_training() -> None:
    X, new = numbers_only(make_table(N, 5, 0.0)).to_numpy(), numbers_only(make_table(N, 6)).to_numpy()
    model = CatBoostRegressor(**SMALL).fit(X, make_target(make_table(N, 5, 0.0), 0))
    close(answers(read_ensemble(model), new), model.predict(new))


def test_borders_are_float32() -> None:
    x = 1 + np.arange(40) * 2.0**-23
    model = CatBoostRegressor(**SMALL).fit(x[:, None], np.arange(40) % 7)
    near = np.concatenate([x + e for e in (0, 2.0**-24, -(2.0**-24), 2.0**-25, 2.0**-24 + 2.0**-40)])[:, None]
    close(answers(read_ensemble(model), near), model.predict(near))


def test_levels_are_known_by_what_catboost_makes_of_them() -> None:
    rng = np.random.default_rng(0)
    long = "a label of more than sixty-four bytes, so that each of the ways of hashing is used " * 2
    frame = pd.DataFrame(
        {
            "text": rng.choice(["", "Köln", "日本", long, "7", 'a "b"\n'], N),
            "mixed": pd.Series(rng.choice(np.array(["7", "x", "0"], dtype=object), N)),
            "flag": rng.random(N) < 0.5,
            "whole": rng.integers(-2, 3, N),
        }
    )
    y = sum(frame[name].map({v: i for i, v in enumerate(frame[name].unique())}) * 3**k for k, name in enumerate(frame))
    model = CatBoostRegressor(**{**SMALL, "iterations": 60}, cat_features=list(frame)).fit(frame, y)
    ensemble = read_ensemble(model)
    check(ensemble)
    for rows in (frame, frame.astype({"flag": "boolean", "whole": "Int64", "text": "category"}).convert_dtypes()):
        close(answers(ensemble, rows), model.predict(frame))
    codes = level_codes(ensemble.categories[0], ["", "Köln", "日本", long, "7", 'a "b"\n', "new"], "text")
    assert codes[-1] == -1 and len(set(codes[:-1].tolist())) >= 5
    assert level_codes(ensemble.categories[2], [True, 1, "1"], "flag").tolist() in ([0] * 3, [1] * 3, [-1] * 3)


def test_missing_levels_are_none_of_those_tested() -> None:
    frame = as_catboost_wants(make_table(N, 1, 0.0))
    model = CatBoostRegressor(**SMALL, cat_features=LEVELS).fit(frame, make_target(make_table(N, 1, 0.0), 0))
    ensemble = read_ensemble(model)
    close(answers(ensemble, frame.assign(letter=None)), model.predict(frame.assign(letter="never seen")))


def test_a_fraction_among_levels_is_refused() -> None:
    assert level_codes(HashedLevels(), ["a", 2], "c").tolist() == [-1, -1]
    with pytest.raises(ValueError, match=r"'c': expected one of the model's levels, got the number 2.5"):
        level_codes(HashedLevels([1]), [2.5], "c")


OBJECTIVES = [
    "RMSE",
    "MAE",
    "Quantile:alpha=0.3",
    "MAPE",
    "Lq:q=1.5",
    "Huber:delta=1",
    "Expectile:alpha=0.3",
    "Poisson",
]
OBJECTIVES += ["Tweedie:variance_power=1.5", "LogLinQuantile:alpha=0.5"]


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_losses_of_regressors(loss: str) -> None:
    frame = as_catboost_wants(make_table(N, 9))
    y = make_target(make_table(N, 9), 0)
    model = CatBoostRegressor(**SMALL, loss_function=loss, cat_features=LEVELS).fit(frame, y - y.min() + 0.1)
    ensemble = read_ensemble(model)
    check(ensemble)
    close(answers(ensemble, frame), model.predict(frame))


@pytest.mark.parametrize("loss", ["Logloss", "CrossEntropy", "Focal:focal_alpha=0.3;focal_gamma=2"])
@pytest.mark.parametrize("labels", [[False, True], [3, 8], ["yes", "no"]], ids=str)
def test_losses_and_labels_of_classifiers(loss: str, labels: list) -> None:
    frame = numbers_only(make_table(N, 9))
    y = np.array(labels)[np.digitize(make_target(make_table(N, 9), 0), [0.0])]
    if loss != "Logloss":
        y = np.digitize(make_target(make_table(N, 9), 0), [0.0])
    model = CatBoostClassifier(**SMALL, loss_function=loss).fit(frame, y)
    ensemble = read_ensemble(model)
    check(ensemble)
    assert ensemble.classes == tuple(model.classes_.tolist())
    close(answers(ensemble, frame), model.predict_proba(frame))


def test_the_best_iteration_and_a_model_from_a_file(tmp_path) -> None:
    tables = make_table(N, 9), make_table(N, 10)
    frame, new = map(as_catboost_wants, tables)
    y, y_new = (classes_of(make_target(rows, seed), 3) for seed, rows in enumerate(tables))
    model = CatBoostClassifier(**{**SMALL, "iterations": 80}, cat_features=LEVELS)
    model.fit(frame, y, eval_set=Pool(new, y_new, cat_features=LEVELS), early_stopping_rounds=5)
    ensemble = read_ensemble(model)
    assert len(ensemble.root) == model.best_iteration_ + 1
    close(answers(ensemble, new), model.predict_proba(new))
    model.save_model(tmp_path / "m.cbm")
    loaded = CatBoost().load_model(tmp_path / "m.cbm")
    ensemble = read_ensemble(loaded)
    assert ensemble.classes == ("no", "perhaps", "yes") and ensemble.library == "catboost CatBoost"
    close(answers(ensemble, new), loaded.predict(new, prediction_type="Probability"))


def test_a_ranker_and_a_scaled_model() -> None:
    frame = numbers_only(make_table(N, 8))
    y = np.digitize(make_target(make_table(N, 8), 0), [-1, 1])
    model = CatBoostRanker(**SMALL, loss_function="QueryRMSE").fit(frame, y, group_id=np.repeat(np.arange(10), 30))
    close(answers(read_ensemble(model), frame), model.predict(frame))
    model.set_scale_and_bias(2.5, -1.0)
    close(answers(read_ensemble(model), frame), model.predict(frame))


# -- what is refused


def test_target_encoded_levels_are_refused_by_name() -> None:
    frame = as_catboost_wants(make_table(N, 1))
    params = {**SMALL, "one_hot_max_size": 2}
    model = CatBoostClassifier(**params, cat_features=LEVELS).fit(
        frame, classes_of(make_target(make_table(N, 1), 0), 2)
    )
    with pytest.raises(ValueError, match=r"CTR\) in column 'number', .*one_hot_max_size"):
        read_ensemble(model)


def test_text_and_embeddings_are_refused_by_name() -> None:
    rng = np.random.default_rng(0)
    words = np.array(["sun", "rain", "wind", "snow"])
    said = [" ".join(row) for row in words[rng.integers(0, 4, (N, 5))]]
    frame = pd.DataFrame({"x": rng.normal(size=N), "said": said})
    y = np.array(["sun" in text for text in said]).astype(int)
    model = CatBoostClassifier(**SMALL, text_features=["said"]).fit(frame, y)
    with pytest.raises(
        ValueError, match="CatBoostClassifier has text features, which are not supported: column 'said'"
    ):
        read_ensemble(model)
    vectors = frame.assign(said=list(rng.normal(size=(N, 3)) + y[:, None]))
    model = CatBoostClassifier(**SMALL, embedding_features=["said"]).fit(vectors, y)
    with pytest.raises(ValueError, match=r"embedding features.*column 'said'"):
        read_ensemble(model)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("MultiRMSE", "'MultiRMSE' has several outputs"),
        ("RMSEWithUncertainty", "'RMSEWithUncertainty' has several outputs"),
        ("MultiQuantile:alpha=0.1,0.9", "'MultiQuantile' has several outputs"),
        ("LogCosh", "loss 'LogCosh' is not supported"),
    ],
)
def test_other_losses_are_refused_by_name(loss: str, words: str) -> None:
    X = np.arange(80.0).reshape(40, 2)
    model = CatBoostRegressor(**SMALL, loss_function=loss).fit(X, X if loss == "MultiRMSE" else X[:, 0])
    with pytest.raises(ValueError, match=words):
        read_ensemble(model)


def test_several_labels_and_one_against_the_rest_are_refused() -> None:
    X = np.arange(80.0).reshape(40, 2)
    model = CatBoostClassifier(**SMALL, loss_function="MultiClassOneVsAll").fit(X, np.arange(40) % 3)
    with pytest.raises(ValueError, match="'MultiClassOneVsAll' has several outputs"):
        read_ensemble(model)


def test_a_model_that_is_not_fitted_is_refused() -> None:
    with pytest.raises(NotFittedError, match="catboost CatBoostRegressor is not fitted"):
        read_ensemble(CatBoostRegressor())


def test_columns_that_no_split_asks_for() -> None:
    frame = as_catboost_wants(make_table(N, 1))
    params = {**SMALL, "depth": 1, "iterations": 2, "random_strength": 0}
    model = CatBoostRegressor(**params, cat_features=LEVELS).fit(frame, frame["plain"].fillna(0))
    ensemble = read_ensemble(model)
    assert ensemble.categories[7] == () and not np.isnan(encode_features(ensemble, frame)[0][:, 0]).all()
    close(answers(ensemble, frame), model.predict(frame))
