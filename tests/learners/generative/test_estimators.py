"""Generative forests as scikit-learn estimators: compliance, labels, weights, frames, what is refused, and how."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from sklearn.utils import get_tags

import jointforest as jf
from jointforest.data.evidence import build
from jointforest.data.frames import encode
from jointforest.models.box_forest.files import check_forest
from jointforest.models.box_forest.posterior import tree_answers

from ...box_answers import cdf

Classifier, Regressor = jf.GenerativeForestClassifier, jf.GenerativeForestRegressor
FIXED = {"min_samples_leaf": 1, "min_spread": 0.1, "beta": 0.5}
"""Nothing chosen out of bag: quick."""


def mixed(n: int, seed: int = 0, missing: float = 0.0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features of all sorts, a class "a", "b" or "c", and a number."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": z + 0.4 * rng.normal(size=n),
            "k": np.round(3 * z + rng.normal(size=n)).astype(int),
            "c": np.where(z + 0.5 * rng.normal(size=n) > 0, "up", "down"),
            "b": rng.random(n) < 0.4,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
        }
    )
    if missing:
        frame = frame.mask(rng.random(frame.shape) < missing)
    label = np.array(["a", "b", "c"])[np.digitize(z + 0.2 * rng.normal(size=n), [-0.5, 0.5])]
    return frame, label, 10 * z + rng.normal(size=n)


def forest_of(kind: str, **params: Any) -> Any:
    """An unfitted estimator, quick unless told otherwise."""
    cls = Classifier if kind == "classifier" else Regressor
    return cls(**{"n_estimators": 5, "random_state": 0, **FIXED, **params})


def fitted(kind: str, frame: Any, label: Any, score: Any, **params: Any) -> Any:
    return forest_of(kind, **params).fit(frame, label if kind == "classifier" else score)


def answers(forest: Any, X: Any) -> np.ndarray:
    """All numbers that an estimator says of rows, (n, something)."""
    if hasattr(forest, "classes_"):
        return np.column_stack([forest.predict_proba(X), forest.score_samples(X)])
    return np.column_stack([forest.predict(X), forest.predict_quantiles(X, [0.1, 0.9]), forest.score_samples(X)])


KINDS = pytest.mark.parametrize("kind", ["classifier", "regressor"])

# -- scikit-learn


@KINDS
def test_tags(kind: str) -> None:
    tags = get_tags(forest_of(kind))
    assert tags.input_tags.allow_nan and tags.input_tags.categorical and tags.input_tags.string
    assert not tags.input_tags.sparse and not tags.non_deterministic and tags.target_tags.required
    assert tags.estimator_type == kind


@KINDS
def test_clones_and_pickles(kind: str) -> None:
    frame, label, score = mixed(120, missing=0.1)
    forest = fitted(kind, frame, label, score, leaf="uniform", kinds={"k": "continuous"})
    twin = clone(forest)
    assert twin.get_params() == forest.get_params() and not hasattr(twin, "joint_")
    np.testing.assert_array_equal(answers(twin.fit(frame, label if kind == "classifier" else score), frame[:20]),
                                  answers(forest, frame[:20]))  # fmt: skip
    np.testing.assert_array_equal(answers(pickle.loads(pickle.dumps(forest)), frame[:20]), answers(forest, frame[:20]))


def test_score_is_accuracy_and_r2() -> None:
    frame, label, score = mixed(200, missing=0.1)
    clf, reg = fitted("classifier", frame, label, score), fitted("regressor", frame, label, score)
    weight = np.arange(200.0)
    assert clf.score(frame, label, weight) == accuracy_score(label, clf.predict(frame), sample_weight=weight)
    assert reg.score(frame, score, weight) == r2_score(score, reg.predict(frame), sample_weight=weight)


def test_grid_search_and_pipeline() -> None:
    frame, label, score = mixed(120)
    grid = {"min_samples_leaf": [1, 30], "leaf": ["normal", "uniform"]}
    search = GridSearchCV(forest_of("classifier"), grid, cv=2).fit(frame, label)
    assert search.best_params_["min_samples_leaf"] in (1, 30) and search.best_score_ > 0.6
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    numbers = frame[["x", "k"]]
    pipe = make_pipeline(StandardScaler(), forest_of("regressor")).fit(numbers, score)
    assert pipe.score(numbers, score) > 0.8
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), forest_of("regressor")).fit(numbers, score)
    assert pipe[-1].feature_names_in_.tolist() == ["x", "k"]


def test_metadata_routing_of_weights() -> None:
    frame, label, _ = mixed(90)
    weight = np.where(np.arange(90) % 2 == 0, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        forest = forest_of("classifier").set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        pipe = make_pipeline(scaler, forest).fit(frame[["x", "k"]], label, sample_weight=weight)
    assert pipe[-1].joint_.schema["x0"].n_observed == 45


@KINDS
def test_names_and_number_of_features(kind: str) -> None:
    frame, label, score = mixed(60)
    forest = fitted(kind, frame, label, score)
    assert forest.n_features_in_ == 5
    assert forest.feature_names_in_.dtype == object and forest.feature_names_in_.tolist() == list(frame)
    forest.fit(frame[["x", "k"]].to_numpy(), label if kind == "classifier" else score)
    assert forest.n_features_in_ == 2 and not hasattr(forest, "feature_names_in_")
    assert not hasattr(forest, "set_output") and not hasattr(forest, "transform")  # nothing comes out as a table


@KINDS
def test_before_fit(kind: str) -> None:
    forest = forest_of(kind)
    with pytest.raises(NotFittedError):
        forest.predict([[1.0]])
    with pytest.raises(NotFittedError):
        forest.score_samples([[1.0]])


# -- tables in


@KINDS
def test_lists_arrays_and_frames_without_names(kind: str) -> None:
    frame, label, score = mixed(60)
    cells = frame[["x", "k", "c"]].astype(object)
    forest = fitted(kind, cells.to_numpy(), label, score)
    lists = fitted(kind, cells.to_numpy().tolist(), label.tolist(), score.tolist())
    nameless = fitted(kind, cells.set_axis([0, 1, 2], axis=1), label, score)
    assert forest.joint_.columns == ("x0", "x1", "x2", "y") and forest.joint_.kinds["x2"] == "categorical"
    for other in (lists, nameless):
        assert other.joint_.kinds == forest.joint_.kinds and not hasattr(other, "feature_names_in_")
        np.testing.assert_array_equal(answers(other, cells.to_numpy()), answers(forest, cells.to_numpy()))
    np.testing.assert_array_equal(answers(forest, cells.to_numpy().tolist()), answers(forest, cells.to_numpy()))
    np.testing.assert_array_equal(
        answers(forest, [[0.3, None, "up"], [None, 2, None]]),
        answers(forest, np.array([[0.3, np.nan, "up"], [np.nan, 2, None]], dtype=object)),
    )


def categories(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"c": "category", "k": "Int64", "b": "boolean"})


LIBRARIES = {
    "categories": categories,
    "pandas nullable": lambda f: f.convert_dtypes(),
    "polars": pl.from_pandas,
    "polars categorical": lambda f: pl.from_pandas(categories(f)),
    "pyarrow": lambda f: pa.Table.from_pandas(f, preserve_index=False),
}


@KINDS
@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_all_libraries(kind: str, library: str) -> None:
    """The same table says the same, whatever library and type it is kept in."""
    (frame, label, score), (rows, *_) = mixed(120, missing=0.1), mixed(30, seed=1, missing=0.3)
    plain = fitted(kind, frame.assign(b=frame["b"].astype("boolean")), label, score)
    other = fitted(kind, LIBRARIES[library](frame.assign(b=frame["b"].astype("boolean"))), label, score)
    rows["b"] = rows["b"].astype("boolean")
    assert other.joint_.kinds == plain.joint_.kinds and other.feature_names_in_.tolist() == list(frame)
    np.testing.assert_array_equal(answers(other, LIBRARIES[library](rows)), answers(plain, rows))
    np.testing.assert_array_equal(answers(other, rows), answers(plain, rows))


def test_targets_of_all_libraries() -> None:
    frame, label, score = mixed(60)
    number = np.digitize(score, [0.0])
    series = {
        "str": [pd.Series(label), pd.Series(label, dtype="category"), pl.Series(label), pa.chunked_array([label])],
        "int": [pd.Series(number), pd.Series(number, dtype="Int64"), pl.Series(number), pa.array(number)],
    }
    for sort, plain in (("str", label), ("int", number)):
        wanted = forest_of("classifier").fit(frame, plain)
        for y in [*series[sort], plain.astype(object), plain.tolist()]:
            found = forest_of("classifier").fit(frame, y)
            assert found.classes_.tolist() == wanted.classes_.tolist()
            np.testing.assert_array_equal(found.predict_proba(frame), wanted.predict_proba(frame))
            assert found.predict(frame).tolist() == wanted.predict(frame).tolist()
    for y in (pd.Series(score, dtype="Float64"), pl.Series(score), pa.chunked_array([score]), score.tolist()):
        np.testing.assert_array_equal(
            forest_of("regressor").fit(frame, y).predict(frame), forest_of("regressor").fit(frame, score).predict(frame)
        )


def test_the_target_has_its_own_name() -> None:
    frame, label, _ = mixed(30)
    assert forest_of("classifier").fit(frame, pd.Series(label, name="who")).joint_.columns[-1] == "who"
    assert forest_of("classifier").fit(frame, pl.Series("x", label)).joint_.columns == (*frame, "x_")
    assert forest_of("classifier").fit(frame, label).joint_.columns[-1] == "y"


@KINDS
def test_columns_are_found_by_name(kind: str) -> None:
    (frame, label, score), (rows, *_) = mixed(120), mixed(30, seed=1, missing=0.2)
    forest = fitted(kind, frame, label, score)
    np.testing.assert_array_equal(answers(forest, rows[frame.columns[::-1]]), answers(forest, rows))
    absent = rows.assign(k=np.nan, day=pd.NaT)
    np.testing.assert_array_equal(answers(forest, rows[["c", "b", "x"]]), answers(forest, absent))
    nothing = answers(forest, rows[[]])
    np.testing.assert_array_equal(nothing, answers(forest, rows.mask(np.ones(rows.shape, dtype=bool))))
    for bad in (rows.assign(xx=1.0), pl.from_pandas(rows).with_columns(xx=1)):
        with pytest.raises(ValueError, match="columns that the model does not have: 'xx'"):
            forest.predict(bad)
    target = forest.joint_.columns[-1]
    np.testing.assert_array_equal(answers(forest, rows.assign(**{target: "no such level"})), answers(forest, rows))
    forest.set_params(extra="ignore")
    for more in (rows.assign(xx=1.0), rows.assign(**{target: 0, "xx": [[]] * 30})):
        np.testing.assert_array_equal(answers(forest, more), answers(forest, rows))


@KINDS
def test_features_of_which_nothing_is_known(kind: str) -> None:
    frame, label, score = mixed(120)
    with pytest.warns(UserWarning, match="columns 'gone', 'lost': all cells are missing"):
        forest = fitted(kind, frame.assign(gone=np.nan, lost=None), label, score)
    plain = fitted(kind, frame, label, score)
    for rows in (frame, frame.assign(gone=np.nan)):
        np.testing.assert_array_equal(answers(forest, rows), answers(plain, rows[frame.columns]))
    with pytest.warns(jf.UnseenLevelWarning, match="these say nothing: 'lost'"):
        np.testing.assert_array_equal(answers(forest, frame.assign(lost=1)), answers(plain, frame))
    assert list(forest.joint_.sample(1).columns) == [*frame.columns, "gone", "lost", forest.joint_.columns[-1]]


def test_dates_tell_classes_apart() -> None:
    day = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=100)})
    forest = forest_of("classifier", n_estimators=20).fit(day, np.arange(100) >= 50)
    assert forest.predict(pd.DataFrame({"day": pd.to_datetime(["2024-01-20", "2024-03-20"])})).tolist() == [False, True]


# -- answers


@KINDS
@pytest.mark.parametrize(
    "params",
    [{}, {"leaf": "spn", "min_spn_samples": 20}, {"leaf": "spn", "target_in_leaf": "full"}, {"leaf": "uniform"},
     {"min_samples_leaf": "auto", "min_spread": "auto", "beta": "auto"}],
)  # fmt: skip
def test_threads_and_seeds(kind: str, params: dict[str, Any]) -> None:
    """Bitwise the same with any number of threads, and with the same seed; another seed makes another forest."""
    frame, label, score = mixed(150, missing=0.1)
    one, many, again, other = (
        answers(fitted(kind, frame, label, score, **{**params, "n_jobs": jobs, "random_state": seed}), frame[:40])
        for jobs, seed in ((1, 7), (3, 7), (-1, np.random.RandomState(7)), (1, 8))
    )
    np.testing.assert_array_equal(one, many)
    np.testing.assert_array_equal(one, again)
    assert np.isfinite(one).all() and not np.array_equal(one, other)


@KINDS
@pytest.mark.parametrize("combine", ["trees", "weighted", "mixture"])
def test_rows_are_answered_one_by_one(kind: str, combine: str) -> None:
    """Bitwise the same alone, in another order, or twice."""
    (frame, label, score), (rows, *_) = mixed(120), mixed(40, seed=1, missing=0.3)
    forest = fitted(kind, frame, label, score, combine=combine)
    whole = answers(forest, rows)
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(answers(forest, rows.iloc[order]), whole[order])
    np.testing.assert_array_equal(answers(forest, pd.concat([rows, rows])), np.vstack([whole, whole]))
    for i in range(5):
        np.testing.assert_allclose(answers(forest, rows.iloc[[i]])[0], whole[i], rtol=1e-10)
    assert answers(forest, rows[:0]).shape == (0, whole.shape[1])


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_row_of_which_nothing_is_known_has_the_prior(bootstrap: bool) -> None:
    """The prior is what each tree's rows say; scikit-learn's forest keeps their classes and mean in its roots."""
    frame, label, score = mixed(150)
    numbers, none = frame[["x", "k"]], pd.DataFrame({"x": [np.nan], "k": [np.nan]})
    trees = RandomForestClassifier(5, bootstrap=bootstrap, random_state=0).fit(numbers, label)
    prior = np.mean([tree.tree_.value[0, 0] for tree in trees.estimators_], axis=0)
    for combine, close in (("trees", 1e-12), ("weighted", 1e-12), ("mixture", 1e-3)):  # the mixture has a background
        forest = Classifier.from_forest(trees, numbers, label, combine=combine, **FIXED)
        np.testing.assert_allclose(forest.predict_proba(none)[0], prior, atol=close)
        assert forest.score_samples(none)[0] == pytest.approx(0.0, abs=1e-9)
    means = RandomForestRegressor(5, bootstrap=bootstrap, random_state=0).fit(numbers, score)
    prior = np.mean([tree.tree_.value[0, 0, 0] for tree in means.estimators_])
    reg = Regressor.from_forest(means, numbers, score, combine="trees", **FIXED)
    assert reg.predict(none)[0] == pytest.approx(prior, abs=1e-9)


@KINDS
def test_far_from_all_rows_there_is_still_an_answer(kind: str) -> None:
    """Without background, and boxes that end at the data: every tree gives the row probability 0."""
    frame, label, score = mixed(100)
    far = pd.DataFrame({"x": [1e6, np.nan], "k": [-4000, 4000]})
    for leaf in ("uniform", "normal"):
        forest = fitted(kind, frame[["x", "k"]], label, score, leaf=leaf, epsilon=0.0, bounds="global")
        for forest.beta_ in (0.0, 0.5, 1.0):
            assert np.isfinite(forest.predict_proba(far) if kind == "classifier" else forest.predict(far)).all()
        near = frame[["x", "k"]]
        if leaf == "normal":  # all trees give the rows themselves a density: the mixture is the joint's own
            joint = forest.joint_.predict_proba if kind == "classifier" else forest.joint_.predict
            own = forest.predict_proba if kind == "classifier" else forest.predict
            np.testing.assert_allclose(own(near), joint(near, "y"), rtol=1e-9)


def test_levels_never_seen_count_as_missing() -> None:
    frame, label, score = mixed(100)
    for kind in ("classifier", "regressor"):
        forest = fitted(kind, frame, label, score)
        row = frame[:3].assign(c=["up", "sideways", "down"])
        with pytest.warns(jf.UnseenLevelWarning, match="'c': 'sideways'"):
            found = answers(forest, row)
        known = answers(forest, row.replace({"c": {"sideways": None}}))
        np.testing.assert_array_equal(found[:, :-1], known[:, :-1])
        np.testing.assert_allclose(found[:, -1] - known[:, -1], [0, -np.log(101), 0], atol=1e-12)  # the penalty


def test_quantiles_are_where_the_distribution_says() -> None:
    (frame, label, score), (rows, *_) = mixed(200), mixed(15, seed=1, missing=0.4)
    reg = fitted("regressor", frame, label, score, combine="mixture")
    q = np.array([0.05, 0.5, 0.95])
    found = reg.predict_quantiles(rows, q)
    evidence = reg._evidence(rows)
    for i in range(15):
        below = cdf(reg.joint_.distribution.forest, evidence, 5, found[i])[i]
        np.testing.assert_allclose(below, q, atol=1e-6)
    low, high = reg.predict_interval(rows, 0.9)
    np.testing.assert_allclose(np.column_stack([low, high]), found[:, [0, 2]])
    np.testing.assert_array_equal(reg.predict_quantiles(rows, 0.5), found[:, 1])


def test_intervals_cover_new_rows() -> None:
    (frame, _, score), (rows, _, new) = mixed(500), mixed(500, seed=1, missing=0.2)
    reg = Regressor(n_estimators=10, random_state=0).fit(frame, score)
    low, high = reg.predict_interval(rows, 0.8)
    assert 0.7 < np.mean((low < new) & (new < high)) < 0.95


# -- labels

LABELS = {
    "text": np.array(["b", "a", "c"]),
    "objects": np.array(["b", "a", "c"], dtype=object),
    "integers": np.array([7, -2, 30]),
    "small integers": np.array([7, 2, 30], dtype=np.uint8),
    "whole floats": np.array([2.0, -1.0, 0.0]),
    "booleans": np.array([True, False, True]),
}


@pytest.mark.parametrize("sort", LABELS)
def test_labels_come_back_as_they_were(sort: str) -> None:
    frame, label, _ = mixed(120)
    y = LABELS[sort][np.searchsorted(["a", "b", "c"], label)]
    forest = forest_of("classifier", n_estimators=10).fit(frame, y)
    assert forest.classes_.dtype == y.dtype and forest.classes_.tolist() == sorted(set(y.tolist()))
    found = forest.predict(frame)
    assert found.dtype == y.dtype and np.mean(found == y) > 0.8
    proba = forest.predict_proba(frame)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert found.tolist() == forest.classes_[proba.argmax(axis=1)].tolist()
    np.testing.assert_array_equal(np.exp(forest.predict_log_proba(frame)) > 0, proba > 0)


@pytest.mark.parametrize("y", [np.repeat("only", 30), np.ones(30, dtype=bool), np.full(30, 4)])
@pytest.mark.parametrize("params", [{}, {"beta": "auto", "min_samples_leaf": "auto", "min_spread": "auto"},
                                    {"leaf": "spn", "target_in_leaf": "full"}])  # fmt: skip
def test_a_single_class_is_predicted_everywhere(y: np.ndarray, params: dict[str, Any]) -> None:
    frame = mixed(30)[0]
    forest = forest_of("classifier", **params).fit(frame, y)
    assert forest.classes_.tolist() == [y[0].item()]
    assert forest.predict(frame).tolist() == y.tolist()
    np.testing.assert_allclose(forest.predict_proba(frame), np.ones((30, 1)), atol=1e-12)


def test_a_class_that_a_fold_lacks() -> None:
    """Rows sorted by class, folds not shuffled: every fold is asked for a class that it never saw."""
    frame, label, _ = mixed(90)
    order = np.argsort(label)
    scores = cross_val_score(forest_of("classifier"), frame.iloc[order], label[order], cv=KFold(3))
    assert np.isfinite(scores).all() and scores.max() < 0.9
    part = label != "b"
    forest = forest_of("classifier").fit(frame[part], label[part])
    assert forest.classes_.tolist() == ["a", "c"] and set(forest.predict(frame)) <= {"a", "c"}


def test_targets_that_are_refused() -> None:
    frame, label, score = mixed(5000)
    clf, reg = forest_of("classifier"), forest_of("regressor")
    small, y, z = frame[:20], label[:20], score[:20]
    refused: list[tuple[Any, Any, str]] = [
        (clf, np.random.default_rng(0).random(5000), "Unknown label type: continuous.*GenerativeForestRegressor"),
        (clf, np.where(y == "a", None, y), r"missing; leave those rows out"),
        (clf, pd.Series(y).where(y != "a"), r"Input y contains NaN: \d+ of 20 targets are missing"),
        (reg, pd.array(z, dtype="Float64").astype(object) * np.where(y == "a", np.nan, 1), "contains NaN"),
        (reg, pd.Series([pd.NA, *range(19)], dtype="Int64"), "1 of 20 targets are missing"),
        (reg, np.where(y == "a", np.nan, z), "contains NaN"),
        (reg, y, "column 'y': got 'b'|column 'y': got 'a'|column 'y': got 'c'"),
        (reg, np.append(z[:-1], np.inf), "column 'y': 1 infinite value"),
        (reg, pd.date_range("2024", periods=20), "y: expected text, or numbers"),
        (clf, pd.Series(pd.date_range("2024", periods=20)), "y: expected text, or numbers"),
        (clf, np.array([1, "a"] * 10, dtype=object), "y: expected text, or numbers, or booleans, got 1 .* among text"),
        (clf, z.astype(complex), "y: expected text, or numbers"),
        (clf, y[:19], "X has 20 rows and y has 19 entries"),
        (clf, np.column_stack([y, y]), "y should be a 1d array"),
        (clf, [2**60, 2**60 + 1] * 10, "2 labels make 1 levels"),
    ]
    for forest, target, message in refused:
        with pytest.raises(ValueError, match=message):
            forest.fit(frame if len(target) == 5000 else small, target)
    with pytest.raises(ValueError, match="kind 'integer', expected labels of classes"):
        forest_of("classifier", kinds={"y": "integer"}).fit(small, np.arange(20) % 2)
    with pytest.raises(ValueError, match="kind 'categorical', expected numbers"):
        forest_of("regressor", kinds={"y": "categorical"}).fit(small, np.arange(20) % 2)


# -- weights


@KINDS
@pytest.mark.parametrize("params", [{}, {"bootstrap": False}, {"leaf": "spn"}])
@pytest.mark.parametrize("library", ["pandas", "pyarrow", "numpy"])
def test_a_row_of_weight_0_is_as_if_absent(kind: str, params: dict[str, Any], library: str) -> None:
    """Though its cells are odd: levels of its own, and numbers far away."""
    frame, label, score = mixed(120, missing=0.1)
    odd = pd.DataFrame({"x": [1e5, -1e5], "k": [999, -999], "c": ["odd", "odder"]})
    both = pd.concat([frame[["x", "k", "c"]], odd], ignore_index=True)
    to_numpy = lambda f: f.to_numpy(dtype=object)  # noqa: E731
    make = {"pandas": lambda f: f, "pyarrow": LIBRARIES["pyarrow"], "numpy": to_numpy}[library]
    y = label if kind == "classifier" else score
    more = np.append(y, ["odd", "odd"] if kind == "classifier" else [1e6, 1e6])
    order = np.random.default_rng(0).permutation(122)
    kept = order[order < 120]
    weighed = forest_of(kind, **params).fit(make(both.iloc[order]), more[order], np.where(order < 120, 1.0, 0.0))
    without = forest_of(kind, **params).fit(make(both.iloc[kept]), y[kept])
    rows = make(both[:30])
    np.testing.assert_array_equal(answers(weighed, rows), answers(without, rows))


def test_weight_2_is_a_row_twice() -> None:
    """Without bootstrap: the trees, what they say of complete rows, and the prior."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(150, 4)), rng.integers(1, 4, 150)
    label = np.digitize(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=150), [-0.5, 0.5])
    rows = np.vstack([rng.normal(size=(200, 4)), np.full((1, 4), np.nan)])
    kinds = dict.fromkeys(["x0", "x1", "x2", "x3"], "continuous")
    for kind, y in (("classifier", label), ("regressor", X[:, 0] * X[:, 1] + rng.normal(size=150))):
        forest = forest_of(kind, bootstrap=False, max_features=None, max_leaf_nodes=8, combine="trees", kinds=kinds)
        weighed = clone(forest).fit(X, y, weight)
        twice = clone(forest).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        ask = "predict_proba" if kind == "classifier" else "predict"
        scaled = clone(forest).fit(X, y, 3.5 * weight)
        for other in (twice, scaled):
            np.testing.assert_allclose(getattr(other, ask)(rows), getattr(weighed, ask)(rows), atol=1e-10)


def test_weights_that_are_refused() -> None:
    frame, label, _ = mixed(10)
    for weight, message in (
        (np.ones(9), r"expected shape \(10,\)"),
        (np.ones((10, 1)), r"expected shape \(10,\)"),
        (np.append(np.ones(9), -1), "at least 0, got -1"),
        (np.append(np.ones(9), np.nan), "got nan"),
        (np.append(np.ones(9), np.inf), "got inf"),
        (np.zeros(10), "every weight is zero"),
        (["heavy"] * 10, "expected 10 numbers.*'heavy'"),
    ):
        with pytest.raises(ValueError, match=f"sample_weight: .*{message}"):
            forest_of("classifier").fit(frame, label, weight)


# -- odd tables


@KINDS
@pytest.mark.parametrize("leaf", ["normal", "normal_mle", "uniform", "spn"])
def test_odd_tables(kind: str, leaf: str) -> None:
    """Constant columns, more columns than rows, one row, few known cells: finite answers, and a sound model."""
    rng = np.random.default_rng(0)
    holes = np.where(rng.random((40, 4)) < 0.8, np.nan, rng.normal(size=(40, 4)))
    tables: dict[str, Any] = {
        "constant": pd.DataFrame({"one": np.ones(40), "same": ["s"] * 40, "x": rng.normal(size=40)}),
        "only constant": pd.DataFrame({"one": np.ones(40), "same": ["s"] * 40, "no": [False] * 40}),
        "wide": rng.normal(size=(8, 40)),
        "one row": pd.DataFrame({"x": [1.5], "c": ["up"], "b": [True]}),
        "two rows": rng.normal(size=(2, 2)),
        "holes": holes[:, ~np.isnan(holes).all(axis=0)],
    }
    for name, X in tables.items():
        n = len(X)
        y = (np.array(["p", "q"])[np.arange(n) % 2]) if kind == "classifier" else np.arange(n) % 7 + 0.25
        for params in (FIXED, {"min_samples_leaf": "auto", "min_spread": "auto", "beta": "auto"}):
            forest = forest_of(kind, **{**params, "leaf": leaf, "min_spn_samples": 5}).fit(X, y)
            model = forest.joint_.distribution.forest
            check_forest(model.schema, model.columns, model.trees, model.leaves, model.has_background)
            assert np.isfinite(answers(forest, X)).all(), name
            if kind == "regressor":
                assert forest.predict(X).min() >= y.min() - 1e-9 and forest.predict(X).max() <= y.max() + 1e-9


@KINDS
def test_a_constant_target(kind: str) -> None:
    frame = mixed(30)[0]
    forest = forest_of(kind, min_spread="auto", beta="auto").fit(frame, np.full(30, 3))
    np.testing.assert_allclose(forest.predict(frame), 3.0, atol=1e-9)


def test_tables_that_are_refused() -> None:
    frame, label, _ = mixed(20)
    numbers = frame[["x", "k"]].to_numpy()
    clf = forest_of("classifier")
    refused: list[tuple[Any, type[Exception], str]] = [
        (sparse.csr_array(numbers), TypeError, "[Ss]parse"),
        (sparse.csr_matrix(numbers), TypeError, "[Ss]parse"),
        (numbers.astype(complex), ValueError, "Complex data not supported"),
        (numbers[:, 0], ValueError, "Expected 2D array, got 1D array"),
        (frame["x"], TypeError, r"a series becomes a table of one column by \.to_frame\(\)"),
        (numbers[:, 0].tolist(), ValueError, "Expected 2D array, got 1D array"),
        (numbers[:, :0], ValueError, r"0 feature\(s\)"),
        (np.ma.masked_greater(numbers, 1), TypeError, r"masked arrays .* use array.filled"),
        (pl.from_pandas(frame).lazy(), TypeError, r"\.collect\(\)"),
        (np.where(numbers > 1, np.inf, numbers), ValueError, "column 'x0': .* infinite value"),
        (frame.assign(x=np.inf), ValueError, "column 'x': 20 infinite values"),
        (frame[["x"]].assign(x=np.nan), ValueError, "column 'x': all cells are missing"),
        (frame.rename(columns={"x": 1.5}), ValueError, "column names must be text, got 1.5"),
        (np.array([[{}, 1.0]] * 20, dtype=object), TypeError, "column 'x0': .*20 dict"),
    ]
    for X, error, message in refused:
        with pytest.raises(error, match=message):
            clf.fit(X, label)
    with pytest.raises(ValueError, match="no rows"):
        clf.fit(frame[:0], label[:0])
    clf.fit(numbers, label)
    with pytest.raises(ValueError, match="X has 3 features, but GenerativeForestClassifier is expecting 2"):
        clf.predict(np.ones((4, 3)))
    with pytest.raises(ValueError, match="X has 1 features"):
        clf.predict([[1.0]])
    with pytest.raises(ValueError, match="1D array"):
        clf.predict(numbers[0])
    with pytest.raises(ValueError, match=r"column 'x0' .*got the text 'high'"):
        clf.predict([["high", 1]])


def test_parameters_that_are_refused() -> None:
    frame, label, score = mixed(20)
    for params, message in (
        ({"target_in_leaf": "full"}, "target_in_leaf='full' of a regressor needs leaf='spn'"),
        ({"criterion": "gini"}, "criterion must be one of 'squared_error'"),
        ({"max_samples": 0.5, "bootstrap": False}, "max_samples=0.5 needs bootstrap=True"),
        ({"max_samples": 21}, "expected 1 to 20"),
        ({"max_features": 0}, "max_features"),
        ({"kinds": {"z": "integer"}}, "kinds: there is no column 'z'"),
    ):
        with pytest.raises(ValueError, match=message):
            forest_of("regressor", **params).fit(frame, score)
    for name, value in (
        ("n_estimators", 0), ("n_estimators", True), ("criterion", "squared_error"), ("max_depth", 0),
        ("max_leaf_nodes", 1), ("min_samples_split", 1), ("min_samples_leaf", 0), ("leaf", "circuit"),
        ("target_in_leaf", "half"), ("min_spn_samples", 1), ("bounds", "box"), ("smoothing", -1.0), ("prior", "flat"),
        ("spread_rows", -1), ("min_spread", 0.0), ("epsilon", 0.6), ("combine", "vote"), ("beta", 1.5), ("n_jobs", 0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=name):
            forest_of("classifier", **{name: value}).fit(frame, label)
    reg = forest_of("regressor").fit(frame, score)
    for q in (0.0, 1.0, [0.5, np.nan], [[0.5]]):
        with pytest.raises(ValueError, match="q must be"):
            reg.predict_quantiles(frame, q)
    with pytest.raises(ValueError, match="level must be"):
        reg.predict_interval(frame, 1.0)


# -- adopted forests


@pytest.mark.parametrize(
    "trees",
    [DecisionTreeClassifier(max_leaf_nodes=8, random_state=0), ExtraTreeClassifier(random_state=0),
     RandomForestClassifier(5, random_state=0), RandomForestClassifier(5, class_weight="balanced", random_state=0),
     ExtraTreesClassifier(5, random_state=0),
     DecisionTreeRegressor(random_state=0), RandomForestRegressor(5, random_state=0),
     ExtraTreesRegressor(5, min_samples_leaf=3, random_state=0)],
    ids=lambda forest: type(forest).__name__,
)  # fmt: skip
def test_adopted_forests_answer_complete_rows_as_they_did(trees: Any) -> None:
    frame, label, score = mixed(150)
    X, rows = frame[["x", "k", "b"]].astype(float), mixed(60, seed=1)[0][["x", "k", "b"]].astype(float)
    is_classifier = hasattr(trees, "predict_proba")
    cls, y = (Classifier, label) if is_classifier else (Regressor, score)
    trees = clone(trees).fit(X, y)
    for params in ({}, {"leaf": "uniform", "bounds": "no"}):
        forest = cls.from_forest(trees, X, y, combine="trees", random_state=0, **params)
        assert forest.joint_.n_trees == getattr(trees, "n_estimators", 1) and forest.beta_ == 0.0
        assert forest.feature_names_in_.tolist() == ["x", "k", "b"]
        if is_classifier:
            assert forest.classes_.tolist() == trees.classes_.tolist()
            np.testing.assert_allclose(forest.predict_proba(rows), trees.predict_proba(rows), atol=1e-12)
        else:
            np.testing.assert_allclose(forest.predict(rows), trees.predict(rows), rtol=1e-9)
    assert np.isfinite(answers(cls.from_forest(trees, X, y), rows[["k"]])).all()
    np.testing.assert_array_equal(
        answers(cls.from_forest(trees, X, y, random_state=0, n_jobs=1), rows),
        answers(cls.from_forest(trees, X, y, random_state=0, n_jobs=3), rows),
    )


def test_what_cannot_be_chosen_without_a_bootstrap() -> None:
    frame, label, score = mixed(80)
    X = frame[["x", "k"]]
    for forest in (
        Classifier.from_forest(DecisionTreeClassifier().fit(X, label), X, label),
        Classifier.from_forest(ExtraTreesClassifier(4).fit(X, label), X, label),
        Regressor.from_forest(DecisionTreeRegressor().fit(X, score), X, score),
        Classifier(n_estimators=4, bootstrap=False).fit(X, label),
    ):
        assert forest.beta_ == 0.0
        np.testing.assert_array_equal(forest.min_spread_[:2], 0.1)
    assert Classifier(n_estimators=4, bootstrap=False).fit(X, label).min_samples_leaf_ == 1


def test_adopted_with_weights() -> None:
    frame, label, _ = mixed(150)
    X, weight = frame[["x", "k"]], np.random.default_rng(0).integers(0, 4, 150).astype(float)
    trees = DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, label, weight)
    forest = Classifier.from_forest(trees, X, label, weight, combine="trees")
    np.testing.assert_allclose(forest.predict_proba(X), trees.predict_proba(X), atol=1e-12)


def test_forests_that_are_refused() -> None:
    frame, label, score = mixed(60)
    X = frame[["x", "k"]]
    trees = RandomForestClassifier(3, random_state=0).fit(X, label)
    for call, error, message in (
        (lambda: Classifier.from_forest(trees, frame, label), ValueError, "fitted on other columns"),
        (lambda: Classifier.from_forest(trees, X.rename(columns={"k": "kk"}), label), ValueError, "its feature 'k'"),
        (lambda: Classifier.from_forest(trees, X[::-1], label), ValueError, "fitted on other rows"),
        (lambda: Classifier.from_forest(trees, X[:40], label[:40]), ValueError, "fitted on other rows"),
        (lambda: Classifier.from_forest(RandomForestClassifier(), X, label), NotFittedError, "not fitted"),
        (lambda: Classifier.from_forest(StandardScaler(), X, label), TypeError, "StandardScaler cannot be adopted"),
        (lambda: Regressor.from_forest(trees, X, score), TypeError, "a regressor"),
    ):
        with pytest.raises(error, match=message):
            call()


# -- every joint is a classifier


@pytest.mark.parametrize("leaf", ["normal", "spn"])
def test_joints_predict_any_column_with_any_beta(leaf: str) -> None:
    (frame, label, score), (rows, *_) = mixed(150), mixed(40, seed=1, missing=0.3)
    clf = fitted("classifier", frame, label, score, leaf=leaf)
    reg = fitted("regressor", frame, label, score, leaf=leaf)
    for beta in (0.0, 0.3, 1.0):
        clf.beta_ = reg.beta_ = beta
        np.testing.assert_array_equal(clf.joint_.predict_proba(rows, "y", beta=beta), clf.predict_proba(rows))
        assert clf.joint_.predict(rows, "y", beta=beta).tolist() == clf.predict(rows).tolist()
        np.testing.assert_array_equal(reg.joint_.predict(rows, "y", beta=beta), reg.predict(rows))
    clf.beta_ = 1.0
    np.testing.assert_array_equal(clf.joint_.predict_proba(rows, "y"), clf.predict_proba(rows))


def test_beta_0_is_the_average_of_single_trees() -> None:
    """A column that is no target, and an unsupervised forest: each tree alone, by hand."""
    frame, *_ = mixed(200)
    rows = mixed(25, seed=1, missing=0.3)[0]
    joint = jf.AdversarialForest(n_estimators=3, epsilon=0.0, random_state=0).fit(frame).joint_
    for target in ("c", "k"):
        X, unseen = encode(joint.schema, rows)
        j = joint.schema.index(target)
        X[:, j] = np.nan
        log_tree, each = tree_answers(joint.distribution.forest, build(joint.schema, X, unseen), j)
        for beta in (0.0, 0.4, 1.0):
            weight = np.exp(beta * (log_tree - log_tree.max(axis=1, keepdims=True)))
            wanted = np.einsum("nt,ntk->nk", weight / weight.sum(axis=1, keepdims=True), each)
            reads = joint.predict_proba if target == "c" else joint.predict
            found = reads(rows, target, beta=beta).reshape(25, -1)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_beta_out_of_range_is_refused() -> None:
    frame, label, _ = mixed(30)
    joint = forest_of("classifier").fit(frame, label).joint_
    for beta in (-0.1, 1.1, np.nan, "auto", True):
        for target, ask in (("y", joint.predict_proba), ("y", joint.predict), ("x", joint.predict)):
            with pytest.raises(ValueError, match="beta must be"):
                ask(frame, target, beta=beta)


def test_no_warnings_in_plain_use() -> None:
    frame, label, score = mixed(60, missing=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Classifier(n_estimators=3, random_state=0).fit(frame, label).predict(frame)
        Regressor(n_estimators=3, random_state=0).fit(frame, score).predict_interval(frame)
