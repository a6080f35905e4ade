"""The two estimators: scikit-learn's habits, frames of all libraries, wrong inputs, explanations, models of users."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from xgboost import XGBClassifier, XGBRegressor

import jointforest as jf
from jointforest.estimators.predictor import base, learn, members
from jointforest.estimators.predictor.additive import AdditiveLearner
from jointforest.estimators.predictor.boosting import HistBoosting, Labelled
from jointforest.estimators.predictor.learn import cut_folds
from jointforest.estimators.predictor.members import COMPLETED, EXPECTED, MASKED, NATIVE
from jointforest.learners import rows as learner_rows
from jointforest.learners.selection.choose import Chosen, Task
from jointforest.learners.selection.folds import Fold
from jointforest.runtime.warnings import UnseenLevelWarning

from ...quick_predictors import SMALL

pytestmark = pytest.mark.usefixtures("quick")
KINDS = pytest.mark.parametrize("kind", ["classifier", "regressor"])


def table(n: int = 240, seed: int = 0, missing: float = 0.1) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Features with missing cells, classes, and numbers."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": z + 0.3 * rng.normal(size=n),
            "k": np.round(3 * z + rng.normal(size=n)),
            "c": pd.Categorical(np.where(z + 0.5 * rng.normal(size=n) > 0, "up", "down")),
            "w": rng.normal(size=n),
        }
    )
    frame = frame.mask(rng.random(frame.shape) < missing)
    label = pd.Series(np.array(["high", "low", "mid"])[np.searchsorted([-0.5, 0.5], z)], name="label")
    return frame, label, pd.Series(z + 0.1 * rng.normal(size=n), name="score")


def new(kind: str, boosting: Any = None, **params: Any) -> Any:
    cls = jf.JointClassifier if kind == "classifier" else jf.JointRegressor
    return cls(boosting, **{"random_state": 0, "n_jobs": 1, **params})


def fitted(kind: str, frame: Any, label: Any, score: Any, **params: Any) -> Any:
    return new(kind, **params).fit(frame, label if kind == "classifier" else score)


def answers(predictor: Any, X: Any) -> np.ndarray:
    """All numbers that an estimator says of rows, (n, something)."""
    if hasattr(predictor, "classes_"):
        return predictor.predict_proba(X)
    return np.column_stack([predictor.predict(X), predictor.predict_quantile(X, [0.1, 0.9])])


@KINDS
def test_clones_and_pickles(kind: str) -> None:
    frame, label, score = table()
    one = fitted(kind, frame, label, score)
    twin = clone(one)
    assert twin.get_params() == one.get_params() and not hasattr(twin, "joint_")
    wanted = answers(one, frame[:40])
    np.testing.assert_array_equal(
        answers(twin.fit(frame, label if kind == "classifier" else score), frame[:40]), wanted
    )
    np.testing.assert_array_equal(answers(pickle.loads(pickle.dumps(one)), frame[:40]), wanted)


@KINDS
def test_threads_change_nothing(kind: str) -> None:
    frame, label, score = table()
    one, two = (fitted(kind, frame, label, score, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(answers(one, frame), answers(two, frame))


@KINDS
def test_the_answer_of_a_row_depends_on_no_other_row(kind: str) -> None:
    """Of rows with missing cells, which need draws: alone, in other orders, several times; with two threads."""
    frame, label, score = table(missing=0.4)
    one = fitted(kind, frame, label, score)
    wanted = answers(one, frame)
    rng = np.random.default_rng(0)
    for rows in (rng.permutation(240), rng.permutation(240)[:70], rng.integers(0, 240, 300), np.arange(239, -1, -3)):
        np.testing.assert_allclose(answers(one, frame.iloc[rows]), wanted[rows], rtol=1e-5, atol=1e-6)
    for i in range(40):
        np.testing.assert_allclose(answers(one, frame.iloc[[i]]), wanted[[i]], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(answers(one.set_params(n_jobs=2), frame), wanted)
    if kind == "classifier":
        np.testing.assert_array_equal(one.predict(frame[::-1]), one.predict(frame)[::-1])


@KINDS
def test_many_rows_are_answered_in_blocks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same answers."""
    frame, label, score = table(missing=0.2)
    one = fitted(kind, frame, label, score)
    wanted = answers(one, frame)
    monkeypatch.setattr(base, "FIXED", replace(base.FIXED, rows_at_once=50))
    monkeypatch.setattr(members, "FIXED", replace(members.FIXED, drawn_at_once=200))
    np.testing.assert_allclose(answers(one, frame), wanted, rtol=1e-5, atol=1e-6)


def test_a_single_class_is_predicted() -> None:
    frame, _, _ = table(60)
    one = new("classifier").fit(frame, np.full(60, "all"))
    assert (one.predict(frame) == "all").all() and (one.predict_proba(frame) == 1.0).all()


def test_what_is_not_fitted_says_so() -> None:
    with pytest.raises(NotFittedError):
        jf.JointClassifier().predict(table()[0])


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"budget": "huge"}, "budget"),
        ({"budget": 0}, "budget"),
        ({"extra": "drop"}, "extra"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_parameters_out_of_range(params: dict[str, Any], match: str) -> None:
    frame, label, _ = table(50)
    with pytest.raises(ValueError, match=match):
        new("classifier", **params).fit(frame, label)


def test_boosting_is_an_estimator() -> None:
    frame, label, _ = table(50)
    with pytest.raises(TypeError, match="boosting: expected an estimator that is not fitted"):
        new("classifier", "xgboost").fit(frame, label)
    with pytest.raises(TypeError, match=r"boosting: expected an estimator .*, got the class XGBClassifier"):
        new("classifier", XGBClassifier).fit(frame, label)
    with pytest.raises(TypeError, match="JointClassifier needs a classifier, got XGBRegressor, a regressor"):
        new("classifier", XGBRegressor()).fit(frame, label)
    with pytest.raises(ValueError, match=r"XGBClassifier does not learn from this table.*'c', are given as they came"):
        new("classifier", XGBClassifier()).fit(frame, label)


# -- tables


def as_library(frame: pd.DataFrame, y: pd.Series, library: str) -> tuple[Any, Any]:
    if library == "pandas":
        return frame, y
    if library == "pandas nullable":
        return frame.assign(c=frame["c"].astype("string")).convert_dtypes(), y.convert_dtypes()
    text = frame.assign(c=frame["c"].astype(object))
    if library == "polars":
        return pl.from_pandas(text), pl.Series(y.name, y.tolist())
    return pa.Table.from_pandas(text, preserve_index=False), pa.chunked_array([y.tolist()])


@pytest.mark.parametrize("library", ["pandas nullable", "polars", "pyarrow"])
@KINDS
def test_frames_of_all_libraries_give_the_same_answers(kind: str, library: str) -> None:
    frame, label, score = table(seed=1)
    wanted = answers(fitted(kind, frame, label, score), frame[:30])
    X, y = as_library(frame, label if kind == "classifier" else score, library)
    rows, _ = as_library(frame[:30], label[:30], library)
    np.testing.assert_allclose(answers(new(kind).fit(X, y), rows), wanted, rtol=1e-9)


@KINDS
def test_columns_by_name_in_any_order_absent_and_extra(kind: str) -> None:
    frame, label, score = table(seed=2)
    one = fitted(kind, frame, label, score)
    some = frame[:20].copy()
    np.testing.assert_array_equal(answers(one, some[["w", "c", "x", "k"]]), answers(one, some))
    absent = answers(one, some.drop(columns="x"))
    np.testing.assert_array_equal(absent, answers(one, some.assign(x=np.nan)))
    with pytest.raises(ValueError, match="columns that the model does not have: 'z'"):
        answers(one, some.assign(z=1))
    np.testing.assert_array_equal(answers(one.set_params(extra="ignore"), some.assign(z=1)), answers(one, some))
    with pytest.warns(UnseenLevelWarning, match="'sideways'"):
        strange = answers(one, some.assign(c="sideways"))
    assert np.isfinite(strange).all()


@KINDS
def test_any_pattern_of_missing_cells(kind: str) -> None:
    """Also those never seen at learning, and nothing at all."""
    frame, label, score = table(seed=3, missing=0.0)
    one = fitted(kind, frame, label, score)
    patterns = np.array(np.meshgrid(*[[False, True]] * 4)).reshape(4, -1).T
    rows = frame.iloc[: len(patterns)].mask(patterns)
    found = answers(one, rows)
    assert np.isfinite(found).all()
    if kind == "classifier":
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        prior = label.value_counts(normalize=True).sort_index()
        np.testing.assert_allclose(found[-1], prior, atol=0.12)
    else:
        assert found[-1, 0] == pytest.approx(score.mean(), abs=0.4) and (found[:, 1] <= found[:, 2]).all()


@KINDS
def test_columns_that_tell_nothing(kind: str) -> None:
    """An all-missing column, a constant one, an identifier, a column of one known cell."""
    frame, label, score = table(seed=4)
    frame = frame.assign(none=np.nan, same=1.0, one=np.r_[2.0, np.full(len(frame) - 1, np.nan)], lost=None)
    one = fitted(kind, frame, label, score)
    assert np.isfinite(answers(one, frame)).all()
    np.testing.assert_array_equal(answers(one, frame.assign(none=5.0)[:9]), answers(one, frame[:9]))
    assert one.n_features_in_ == 8


def test_a_table_without_a_known_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="all cells are missing, and there is no other column"):
        new("classifier").fit(pd.DataFrame({"x": [np.nan] * 8, "c": [None] * 8}), ["a", "b"] * 4)


@pytest.mark.parametrize("n", [2, 3, 6, 11])
@KINDS
def test_very_few_rows(kind: str, n: int) -> None:
    frame, _, score = table(n, seed=5, missing=0.0)
    y = np.array(["a", "b"])[np.arange(n) % 2] if kind == "classifier" else score
    one = new(kind).fit(frame, y)
    assert np.isfinite(answers(one, frame)).all()
    assert one.fitted_by.n_held or "too few rows" in one.fitted_by.in_words


def test_rare_classes_stay_among_the_rows_to_learn_from() -> None:
    frame, label, _ = table(seed=6)
    label[:1] = "once"
    one = new("classifier").fit(frame, label)
    assert one.predict_proba(frame[:5]).shape == (5, 4) and "once" in one.classes_


def test_folds_hold_each_row_out_once_but_those_that_are_needed() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(200, 2)), rng.integers(0, 2, 200)])
    X[:199, 0] = np.nan
    folds = cut_folds(X, 2, 0)
    held = np.concatenate([fold.held for fold in folds])
    assert len(np.unique(held)) == len(held) >= 194 and 199 not in held
    for fold in folds:
        assert not np.intersect1d(fold.learn, fold.held).size and len(fold.learn) + len(fold.held) == 200
        assert X[fold.held, 2].mean() == pytest.approx(X[:, 2].mean(), abs=0.05)
    large = cut_folds(np.zeros((20_000, 2)), 0, 0)
    assert len(large) == 1 and len(large[0].held) == 1_500


@KINDS
def test_members_of_large_tables_learn_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forest and the boosted trees of the fold are kept, where few rows are held out, and learned anew if not."""
    frame, label, score = table(seed=16)
    learned: list[int] = []
    honest = members.learn_forest

    def counted(training: Any, *others: Any) -> Any:
        learned.append(len(training.X))
        return honest(training, *others)

    monkeypatch.setattr(learn, "learn_forest", counted)
    for most_held, wanted in ((20, [220]), (40, [240, 200])):
        monkeypatch.setattr(learn, "FIXED", replace(learn.FIXED, few_rows=100, most_held=most_held))
        one = fitted(kind, frame, label, score)
        assert learned == wanted and one.fitted_by.n_held == most_held
        assert np.isfinite(answers(one, frame)).all()
        learned.clear()


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (["a", None] * 120, "targets are missing"),
        (np.linspace(0, 1, 240), "Unknown label type"),
        (["a"] * 239, "expected as many"),
    ],
)
def test_wrong_targets(y: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        new("classifier").fit(table()[0], y)


def test_infinite_numbers_are_refused_by_column() -> None:
    frame, label, score = table(seed=7)
    with pytest.raises(ValueError, match="'x'"):
        new("classifier").fit(frame.assign(x=np.inf), label)
    one = new("regressor").fit(frame, score)
    with pytest.raises(ValueError, match="'x'"):
        one.predict(frame[:3].assign(x=np.inf))


# -- what is predicted


@KINDS
def test_predictions_are_good(kind: str) -> None:
    frame, label, score = table(1_200, seed=8)
    one = fitted(kind, frame[:600], label[:600], score[:600])
    rows, truth = frame[600:], label[600:] if kind == "classifier" else score[600:]
    assert one.score(rows, truth) > 0.7
    assert one.score(rows[["c"]], truth) > (0.5 if kind == "classifier" else 0.3)
    assert set(one.members_) <= {member.name for member in one.fitted_by.members if member.is_kept}


def test_intervals_hold_their_share() -> None:
    inside: dict[float, list[float]] = {0.0: [], 0.5: []}
    for seed in (22, 23, 24):
        frame, _, score = table(2_000, seed=seed)
        one = new("regressor").fit(frame[:1_000], score[:1_000])
        for hidden, shares in inside.items():
            rows = frame[1_000:].mask(np.random.default_rng(0).random((1_000, 4)) < hidden)
            low, high = one.predict_interval(rows, 0.9)
            shares.append(float(((low <= score[1_000:]) & (score[1_000:] <= high)).mean()))
    assert [np.mean(shares) for shares in inside.values()] == pytest.approx([0.9, 0.9], abs=0.05)
    with pytest.raises(ValueError, match="level"):
        one.predict_interval(frame, 1.0)
    with pytest.raises(ValueError, match="q"):
        one.predict_quantile(frame, [0.5, 1.5])


def test_whole_numbers_have_whole_quantiles_within_their_range() -> None:
    frame, _, score = table(400, seed=10)
    count = np.clip(np.round(2 * score + 3), 0, None).astype(int)
    one = new("regressor").fit(frame, count)
    found = one.predict_quantile(frame, [0.01, 0.3, 0.99])
    np.testing.assert_array_equal(found, np.round(found))
    assert found.min() >= count.min() and found.max() <= count.max()
    assert one.joint_.kinds["score"] == "integer"


def by_group(step: float, n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Three groups, and targets on a grid of this step whose distribution the group tells."""
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 3, n)
    return pd.DataFrame({"g": np.array(["a", "b", "c"])[g]}), np.rint(9.0 * g + 3.0 * rng.normal(size=n)) * step


def worst_of_groups(one: Any, frame: pd.DataFrame, y: np.ndarray) -> float:
    """How far P(Y < Q(u) | group) lies above u, or P(Y <= Q(u) | group) below it, at most."""
    q, off = np.array([0.05, 0.25, 0.5, 0.75, 0.95]), 0.0
    for group, own in pd.Series(y).groupby(frame["g"].to_numpy()):
        found = one.predict_quantile(pd.DataFrame({"g": [group]}), q)[0]
        near = 1e-9 * np.abs(y).max()
        below = (own.to_numpy()[:, None] < found - near).mean(axis=0)
        up_to = (own.to_numpy()[:, None] <= found + near).mean(axis=0)
        off = max(off, (below - q).max(), (q - up_to).max())
    return off


@pytest.mark.parametrize("step", [0.001, 0.01, 0.1, 0.25, 1.0, 5.0, 1000.0])
@pytest.mark.parametrize("is_written", [True, False])
def test_quantiles_of_targets_of_any_step(step: float, is_written: bool) -> None:
    """Of decimals as they are written, and of whole numbers times the step, which are not the nearest floats."""
    frame, y = by_group(step, 900, seed=15)
    y = np.round(y, 3) if is_written else y
    one = new("regressor").fit(frame, y)
    new_frame, new_y = by_group(step, 6_000, seed=16)
    assert worst_of_groups(one, new_frame, new_y) < 0.08
    low, high = one.predict_interval(new_frame, 0.9)
    near = 1e-9 * np.abs(y).max()
    assert 0.86 < ((low - near <= new_y) & (new_y <= high + near)).mean() < 0.98
    assert np.isin(np.round(low, 3), np.round(y, 3)).all()


@pytest.mark.parametrize("values", [(0.0, 1000.0, 2000.0, 3000.0), (0.1, 0.3), (-1.5, 0.0, 2.25)])
def test_quantiles_of_few_values(values: tuple[float, ...]) -> None:
    rng = np.random.default_rng(17)
    g = rng.integers(0, 3, 3_600)
    frame = pd.DataFrame({"g": np.array(["a", "b", "c"])[g]})
    y = np.array(values)[np.minimum(rng.binomial(3, 0.2 + 0.3 * g), len(values) - 1)]
    one = new("regressor").fit(frame[:600], y[:600])
    assert worst_of_groups(one, frame[600:], y[600:]) < 0.08
    assert np.isin(one.predict_quantile(frame, [0.1, 0.5, 0.9]), values).all()


@pytest.mark.parametrize("decimals", [1, 12])
def test_quantiles_keep_a_point_mass(decimals: int) -> None:
    """Zeros beside decimals or a density: each group has another share of them."""
    rng = np.random.default_rng(18)
    g = rng.integers(0, 3, 6_900)
    frame = pd.DataFrame({"g": np.array(["a", "b", "c"])[g]})
    y = np.where(rng.random(6_900) < 0.3 * g + 0.1, 0.0, rng.gamma(2.0, 2.0, 6_900).round(decimals))
    one = new("regressor").fit(frame[:900], y[:900])
    assert worst_of_groups(one, frame[900:], y[900:]) < 0.08
    assert one.predict_quantile(pd.DataFrame({"g": ["c"]}), [0.1, 0.5]).tolist() == [[0.0, 0.0]]


def test_dates_are_no_targets() -> None:
    frame, y = by_group(1.0, 60, seed=19)
    with pytest.raises(ValueError, match="y: expected text, or numbers, or booleans, got datetime"):
        new("regressor").fit(frame, pd.Timestamp("2024-01-01") + pd.to_timedelta(y, unit="D"))


def test_a_target_named_like_a_feature_leaves_the_feature_as_it_is() -> None:
    frame, _, score = table(80, seed=10, missing=0.0)
    one = new("regressor").fit(frame, np.round(score).rename("x"))
    assert one.joint_.kinds["x"] == "continuous" and one.joint_.kinds["x_"] == "integer"


def test_numbers_too_large_for_a_grid() -> None:
    frame, _, score = table(80, seed=10)
    one = new("regressor").fit(frame, score * 1e120)
    assert one.score(frame, score * 1e120) > 0.5 and one.joint_.kinds["score"] == "continuous"


def test_a_constant_number() -> None:
    frame, _, _ = table(60, seed=11)
    one = new("regressor").fit(frame, np.full(60, 2.5))
    np.testing.assert_allclose(one.predict(frame), 2.5, atol=1e-6)
    low, high = one.predict_interval(frame)
    np.testing.assert_allclose([low, high], 2.5, atol=1e-6)


# -- explanations and reports


@KINDS
def test_explanations_sum_to_the_prediction(kind: str) -> None:
    """Of complete rows, whose predictions need no draws; a missing cell moves nothing."""
    frame, label, score = table(seed=12, missing=0.0)
    one = fitted(kind, frame, label, score)
    rows = frame[:3].copy()
    found = one.explain(rows)
    wanted = one.predict_proba(rows) if kind == "classifier" else one.predict(rows)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, wanted, atol=1e-9)
    assert found.feature_names == ("x", "k", "c", "w")
    rows["x"] = np.nan
    assert not one.explain(rows).values[:, 0].any()
    grouped = one.explain(frame[:2], groups=[["x", "k"]])
    assert grouped.values.shape[1] == 3


def test_explanations_are_shapley_values_of_the_predictor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two known columns: each moves the answer by the mean of its two marginal contributions, but for draws."""
    monkeypatch.setattr(members, "FIXED", replace(SMALL, draws=2_000))
    frame, _, score = table(seed=13, missing=0.0)
    one = new("regressor").fit(frame[["x", "c"]], score)
    row = frame[["x", "c"]].head(1)
    v = {known: one.predict(row.mask(~np.isin([["x", "c"]], list(known))))[0] for known in ("", "x", "c", "xc")}
    wanted = [(v["x"] - v[""] + v["xc"] - v["c"]) / 2, (v["c"] - v[""] + v["xc"] - v["x"]) / 2]
    np.testing.assert_allclose(one.explain(row).values[0], wanted, atol=0.01 * score.std())


@KINDS
def test_many_missing_cells_add_trees_that_learned_from_completed_rows(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few missing cells do not, and a column of which nothing is known does not; known cells stay as they are."""
    learned: list[Labelled] = []
    learn_trees = HistBoosting.learn

    def watched(self: HistBoosting, rows: Labelled, settings: Any) -> Any:
        learned.append(rows)
        return learn_trees(self, rows, settings)

    monkeypatch.setattr(HistBoosting, "learn", watched)
    for missing, wanted in ((0.0, set()), (0.02, {NATIVE}), (0.3, {NATIVE, COMPLETED})):
        learned.clear()
        frame, label, score = table(seed=23, missing=missing)
        one = fitted(kind, frame.assign(none=np.nan), label, score)
        assert {NATIVE, COMPLETED} & {member.name for member in one.fitted_by.members} == wanted
        completed = [rows for rows in learned if len(rows.X) < len(frame)]  # of the folds
        assert len(completed) == (one.fitted_by.n_folds if COMPLETED in wanted else 0)
        for rows in completed:
            assert not np.isnan(rows.X[:, :4]).any()
            assert np.isin(rows.X[:, 0], frame["x"]).mean() == pytest.approx(1.0 - missing, abs=0.1)


@KINDS
@pytest.mark.parametrize("has_joints_of_folds", [False, True])
def test_validation_rows_have_no_part_in_completed_rows(
    kind: str, has_joints_of_folds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the values of the rows held out first are exchanged, the trees of their fold learn from the same rows."""
    folds: list[Fold] = []
    of_trees: list[Labelled] = []
    of_additive: list[Labelled] = []
    cut, learn_trees, cross_fit, choose = learn.cut_folds, HistBoosting.learn, AdditiveLearner.cross_fit, learn.choose

    def watched_folds(*given: Any) -> list[Fold]:
        folds[:] = cut(*given)
        return folds

    def watched_trees(self: HistBoosting, rows: Labelled, settings: Any) -> Any:
        of_trees.append(rows)
        return learn_trees(self, rows, settings)

    def watched_additive(self: AdditiveLearner, pairs: Any) -> Any:
        of_additive.append(pairs[0][0])
        return cross_fit(self, pairs)

    def choose_with_joints(task: Task) -> Chosen:
        chosen = choose(task)
        joints = [chosen.recipe.learn(task.schema, task.cells[fold.learn], task.seed) for fold in folds]
        return chosen._replace(of_folds=tuple(joints))

    monkeypatch.setattr(learn, "cut_folds", watched_folds)
    monkeypatch.setattr(HistBoosting, "learn", watched_trees)
    monkeypatch.setattr(AdditiveLearner, "cross_fit", watched_additive)
    if has_joints_of_folds:
        monkeypatch.setattr(learn, "choose", choose_with_joints)
    frame, label, score = table(seed=23, missing=0.3)
    fitted(kind, frame, label, score)
    exchanged = frame.copy()
    for j in range(frame.shape[1]):
        known = folds[0].held[frame.iloc[folds[0].held, j].notna()]
        exchanged.iloc[known, j] = frame.iloc[known[::-1], j].to_numpy()
    n = len(of_trees)
    fitted(kind, exchanged, label, score)
    rows, others = of_trees[0], of_trees[1]  # of the first and of the second fold
    assert len(rows.X) == len(folds[0].learn) and not np.isnan(rows.X).any()
    np.testing.assert_array_equal(rows.X, of_trees[n].X)
    assert (others.X != of_trees[n + 1].X).any()
    np.testing.assert_array_equal(rows.X, of_additive[0].X)
    np.testing.assert_array_equal(rows.X, of_additive[1].X)


@KINDS
def test_report_says_what_was_compared(kind: str) -> None:
    frame, label, score = table(seed=14)
    one = fitted(kind, frame, label, score)
    report = one.fitted_by
    assert len(report.members) == 7 and all(len(member.loss) == 5 for member in report.members)
    assert report.measure == ("log-loss" if kind == "classifier" else "root mean squared error")
    assert "240 validation rows" in report.in_words or "validation rows" in report.in_words
    for name in one.members_:
        assert name in report.in_words and name in str(report)
    best = min(np.mean(member.loss) for member in report.members)
    assert np.mean(report.together) < 1.02 * best
    assert "<table" in report._repr_html_() and repr(report) == str(report)


# -- models of users


def numeric(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="c")


@pytest.mark.parametrize(
    "model", [XGBClassifier(n_estimators=5, max_depth=2), LGBMClassifier(n_estimators=5, verbose=-1)]
)
def test_given_boosting_is_cloned(model: Any) -> None:
    frame, label, _ = table(seed=15)
    one = new("classifier", model).fit(numeric(frame), label)
    assert not hasattr(model, "n_features_in_") and np.isfinite(one.predict_proba(numeric(frame))).all()
    assert one.score(numeric(frame), label) > 0.7


def test_an_estimator_that_refuses_missing_cells_learns_from_completed_rows() -> None:
    frame, label, _ = table(seed=16)
    one = new("classifier", GradientBoostingClassifier(n_estimators=5, max_depth=2)).fit(numeric(frame), label)
    assert MASKED not in [member.name for member in one.fitted_by.members]
    assert EXPECTED in [member.name for member in one.fitted_by.members]
    assert one.score(numeric(frame), label) > 0.7


def test_catboost_with_categories() -> None:
    """scikit-learn does not clone it, and it refuses missing categories: it learns from completed rows."""
    frame, label, _ = table(120, seed=16)
    text = frame.assign(c=frame["c"].astype(object))
    model = CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False, cat_features=["c"])
    one = new("classifier", model).fit(text, label)
    assert MASKED not in [member.name for member in one.fitted_by.members] and one.score(text, label) > 0.6
    whole = text.fillna({"x": 0.0, "k": 0.0, "w": 0.0, "c": "up"})
    fitted_model = CatBoostClassifier(**model.get_params()).fit(whole, label)
    again = jf.JointClassifier.from_model(fitted_model, whole, label, random_state=0, n_jobs=1)
    np.testing.assert_allclose(again.predict_proba(whole), fitted_model.predict_proba(whole), atol=1e-9)


def test_other_errors_of_an_estimator_are_told() -> None:
    frame, label, _ = table(seed=17)
    with pytest.raises(ValueError, match="n_estimators"):
        new("classifier", RandomForestClassifier(n_estimators=-1)).fit(numeric(frame), label)


def test_a_model_answers_complete_rows_itself() -> None:
    frame, label, score = table(seed=18, missing=0.0)
    X = numeric(frame)
    forest = RandomForestClassifier(5, min_samples_leaf=5, random_state=0).fit(X, label)
    one = jf.JointClassifier.from_model(forest, X, label, random_state=0, n_jobs=1)
    np.testing.assert_allclose(one.predict_proba(X), forest.predict_proba(X))
    holed = X.mask(np.random.default_rng(0).random(X.shape) < 0.5)
    assert np.isfinite(one.predict_proba(holed)).all() and one.score(holed, label) > 0.6
    trees = XGBRegressor(n_estimators=10, max_depth=2).fit(X, score)
    number = jf.JointRegressor.from_model(trees, X, score, random_state=0, n_jobs=1)
    np.testing.assert_allclose(number.predict(X), trees.predict(X), rtol=1e-5)
    np.testing.assert_allclose(
        jf.JointRegressor.from_model(trees.get_booster(), X, score, random_state=0, n_jobs=1).predict(X),
        trees.predict(X),
        rtol=1e-5,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_booster_answers_complete_rows_itself(n_classes: int, tmp_path: Path) -> None:
    """It has no labels, so y has codes; it is not trained on copies, and can be saved."""
    frame, _, score = table(seed=21, missing=0.0)
    X, y = numeric(frame), np.searchsorted([-0.5, 0.5][: n_classes - 1], score)
    model = XGBClassifier(n_estimators=5, max_depth=2).fit(X, y)
    one = jf.JointClassifier.from_model(model.get_booster(), X, y, random_state=0, n_jobs=1)
    np.testing.assert_allclose(one.predict_proba(X), model.predict_proba(X), atol=1e-6)
    assert one.classes_.tolist() == list(range(n_classes)) and MASKED not in [m.name for m in one.fitted_by.members]
    assert NATIVE in [m.name for m in one.fitted_by.members]
    holed = X.mask(np.random.default_rng(0).random(X.shape) < 0.5)
    assert one.score(holed, y) > 0.6
    one.save(tmp_path / "booster.joint")
    again = jf.load_predictor(tmp_path / "booster.joint")
    np.testing.assert_allclose(again.predict_proba(holed), one.predict_proba(holed), rtol=1e-6)
    text = np.array(["low", "mid", "high"])[y]
    with pytest.raises(ValueError, match=r"the xgboost Booster has the classes 0, 1.*, y has 'high', 'low'"):
        jf.JointClassifier.from_model(model.get_booster(), X, np.where(y > 0, "high", "low"))
    with pytest.raises(ValueError, match="give y with the labels that the model was trained on"):
        jf.JointClassifier.from_model(model.get_booster(), X, text)


def test_a_booster_of_another_kind_is_refused() -> None:
    frame, _, score = table(60, seed=22, missing=0.0)
    X, data = numeric(frame), xgboost.DMatrix(numeric(frame), score > 0)
    number = xgboost.train({"objective": "reg:squarederror", "max_depth": 2}, xgboost.DMatrix(X, score), 2)
    with pytest.raises(ValueError, match="the xgboost Booster predicts numbers, column 'y' is categorical"):
        jf.JointClassifier.from_model(number, X, score.to_numpy() > 0)
    with pytest.raises(ValueError, match="the xgboost Booster predicts classes, column 'score' is continuous"):
        jf.JointRegressor.from_model(xgboost.train({"objective": "binary:logistic"}, data, 2), X, score)
    with pytest.raises(ValueError, match="booster='gblinear', which has no trees"):
        linear = xgboost.train({"objective": "binary:logistic", "booster": "gblinear"}, data, 2)
        jf.JointClassifier.from_model(linear, X, score.to_numpy() > 0)


def test_a_pipeline_answers_complete_rows_itself() -> None:
    frame, _, score = table(seed=19, missing=0.0)
    X = frame.assign(c=frame["c"].astype(object))[["c"]].assign(x=frame["x"])
    from sklearn.compose import make_column_transformer

    encode = make_column_transformer((OrdinalEncoder(), ["c"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestRegressor(5, min_samples_leaf=5, random_state=0)).fit(X, score)
    one = jf.JointRegressor.from_model(model, X, score, random_state=0, n_jobs=1)
    np.testing.assert_allclose(one.predict(X), model.predict(X))
    assert np.isfinite(one.predict(X[["x"]])).all()


def test_a_model_of_other_columns_is_refused() -> None:
    frame, label, _ = table(seed=20, missing=0.0)
    model = RandomForestClassifier(3, random_state=0).fit(numeric(frame).rename(columns={"x": "z"}), label)
    with pytest.raises(ValueError, match="takes columns that the joint does not have: 'z'"):
        jf.JointClassifier.from_model(model, numeric(frame), label)


def test_large_errors_are_shown_in_columns() -> None:
    """As whole numbers, so that columns do not touch each other."""
    frame, label, score = table(seed=24)
    report = fitted("regressor", frame, label, 1e5 * score).fitted_by
    line = next(line for line in str(report).splitlines() if line.strip().startswith("all together"))
    assert len(line.split()) == 7 and "," in line and "e+" not in line


@pytest.mark.parametrize(("missing", "n_drawn"), [(0.02, 0), (0.2, 3)])
def test_few_missing_cells_are_drawn_by_the_joint_for_forests_too(
    missing: float, n_drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, _ = table(missing=missing)
    drawn, first_joint = [], learner_rows.first_joint
    monkeypatch.setattr(learner_rows, "first_joint", lambda *about: (drawn.append(1), first_joint(*about))[1])
    found = new("classifier").fit(X, y)
    assert len(drawn) == n_drawn  # of the table, and of two folds
    assert np.isfinite(found.predict_proba(X)).all()
