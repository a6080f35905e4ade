"""JointRegressor of times to an event that are not over in some rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import minimize
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

import jointforest as jf
from jointforest.estimators.predictor import survival

NAMES = ["age", "dose", "arm"]


def trial(seed: int, n: int = 300) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Features, times, and the rate of events of each row: exponential times, half of them censored."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(60, 10, n), "dose": rng.integers(0, 4, n), "arm": rng.choice(["a", "b"], n)})
    rate = 0.05 * np.exp(0.05 * (X["age"] - 60) + 0.9 * (X["arm"] == "a")).to_numpy()
    time, until = rng.exponential(1 / rate), rng.exponential(20, n)
    return X, pd.DataFrame({"died": time <= until, "months": np.minimum(time, until)}), rate


@cache
def fitted(seed: int = 0, hide: float = 0.0) -> jf.JointRegressor:
    X, y, _ = trial(seed)
    X = X.mask(np.random.default_rng(seed).random(X.shape) < hide)
    return jf.JointRegressor(random_state=0, n_jobs=2).fit(X, y)


def known_curves(rate: np.ndarray, at: list[float]) -> np.ndarray:
    return np.exp(-np.outer(rate, at))


def test_curves_are_near_the_truth_and_better_than_one_curve_for_all() -> None:
    X, _, rate = trial(1)
    at = [3.0, 8.0, 15.0, 25.0]
    found = np.array([curve(at) for curve in fitted().predict_survival_function(X)])
    error = np.abs(found - known_curves(rate, at)).mean()
    alone = np.abs(known_curves(rate, at).mean(axis=0) - known_curves(rate, at)).mean()
    assert error < 0.05 < alone / 2


def test_missing_cells_at_learning_and_in_what_is_asked() -> None:
    """Given some features alone, the curve is the mean over the others."""
    X, _, rate = trial(2, 5_000)
    reg, at = fitted(0, 0.3), [5.0, 15.0]
    for arm in ("a", "b"):
        asked = pd.DataFrame({"arm": [arm]})
        found = reg.predict_survival_function(asked)[0](at)
        np.testing.assert_allclose(found, known_curves(rate[X["arm"] == arm], at).mean(axis=0), atol=0.08)
    assert np.isfinite(reg.predict_survival_function(X[:3].assign(age=np.nan), return_array=True)).all()


def test_answers_agree_with_each_other() -> None:
    _X, y, _ = trial(0)
    reg, rows = fitted(), trial(1)[0][:20]
    S, t = reg.predict_survival_function(rows, return_array=True), reg.unique_times_
    np.testing.assert_array_equal(t, np.unique(y["months"][y["died"]]))
    assert S.shape == (20, len(t)) and (np.diff(S, axis=1) <= 1e-12).all() and (S >= 0).all() and (S <= 1).all()
    curves = reg.predict_survival_function(rows)
    for i, curve in enumerate(curves):
        np.testing.assert_array_equal(curve(t), S[i])
        assert curve(0.0) == 1.0 and curve(t[3] + 1e-9) == S[i, 3] and curve(np.nextafter(t[0], 0)) == 1.0
        assert np.isnan(curve(y["months"].max() + 1)) and curve(float(y["months"].max())) == S[i, -1]
        fine = np.linspace(0, t[-1], 100_001)
        assert reg.predict(rows)[i] == pytest.approx(np.trapezoid(curve(fine), fine), abs=2e-3 * t[-1])
    q = np.array([0.1, 0.5, 0.97])
    found = reg.predict_quantile(rows, q)
    for i, curve in enumerate(curves):
        for k in range(3):
            if np.isinf(found[i, k]):
                assert S[i, -1] > 1 - q[k]
            else:
                assert curve(found[i, k]) <= 1 - q[k] + 1e-9 < curve(np.nextafter(found[i, k], 0)) + 1e-9
    assert np.isinf(found[:, 2]).any() and np.isfinite(found[:, 0]).all()
    low, high = reg.predict_interval(rows, 0.8)
    np.testing.assert_array_equal(np.stack([low, high], axis=1), reg.predict_quantile(rows, [0.1, 0.9]))


def test_the_form_of_scikit_survival_and_other_frames() -> None:
    X, y, _ = trial(0)
    rows = trial(1)[0][:5]
    expected = fitted().predict_survival_function(rows, return_array=True)
    structured = np.array(list(zip(y["died"], y["months"], strict=True)), dtype=[("died", "?"), ("months", "<f8")])
    found = jf.JointRegressor(random_state=0).fit(X, structured)
    np.testing.assert_allclose(found.predict_survival_function(rows, return_array=True), expected)
    polars = jf.JointRegressor(random_state=0).fit(pl.from_pandas(X), pl.from_pandas(y))
    got = polars.predict_survival_function(pl.from_pandas(rows), return_array=True)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert polars.joint_.given(arm="a").survival("months", 10) < polars.joint_.given(arm="b").survival("months", 10)
    cells = X.assign(arm=(X["arm"] == "a").astype(float)).to_numpy()
    array = jf.JointRegressor(random_state=0).fit(cells[:100], structured[:100])
    assert array.joint_.columns[-1] == "months" and array.predict(cells[:3]).shape == (3,)


def test_same_seed_same_answer_whatever_the_threads() -> None:
    X, y, _ = trial(0)
    one = jf.JointRegressor(random_state=0, n_jobs=1).fit(X, y).predict(X)
    assert fitted().n_jobs == 2
    np.testing.assert_array_equal(one, fitted().predict(X))


def test_without_features_that_tell_something_it_is_nelson_and_aalen() -> None:
    """The cumulative hazard by hand, of the clock and of a curve."""
    time, event = np.array([1.0, 2.0, 2.0, 3.0, 5.0, 7.0]), np.array([True, True, False, True, False, True])
    clock = survival.clock_of(time, event)
    np.testing.assert_array_equal(clock.time, [1, 2, 3, 7])
    np.testing.assert_allclose(clock.hazard, np.cumsum([1 / 6, 1 / 5, 1 / 3, 1 / 1]))
    np.testing.assert_allclose(clock.at(np.array([0.5, 1.0, 6.9, 9.0])), [0, 1 / 6, 0.7, 1.7])


def test_the_linear_hazard_maximises_the_likelihood_of_censored_times() -> None:
    """By another optimiser: events have density r h(t) exp(-r H(t)), others exp(-r H(t)), with the ridge penalty."""
    X, y, _ = trial(3)
    schema = fitted().joint_.schema
    cells = np.column_stack([X["age"], X["dose"], (X["arm"] == "b").astype(float)])
    time, event = y["months"].to_numpy(), y["died"].to_numpy()
    found = survival.learn_regressions(schema, cells, np.arange(len(X)), time, event, 0)
    Z, H = found.design.plain(cells), found.clock.at(time)

    def loss(w: np.ndarray) -> float:
        score = w[0] + Z @ w[1:]
        return float((H * np.exp(score) - event * score).sum() + 0.5 * 10.0 * (w[1:] ** 2).sum())

    best = minimize(loss, np.zeros(Z.shape[1] + 1), method="BFGS").x
    model = found.models[survival.LINEAR]
    np.testing.assert_allclose([model.intercept_, *model.coef_], best, atol=5e-3)


def test_weights_maximise_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    likelihood = rng.gamma(2.0, 0.2, (200, 2))
    weight = survival.mixture_weights(np.log(likelihood))
    grid = np.linspace(0, 1, 1001)
    best = grid[np.argmax([np.log(likelihood @ [w, 1 - w]).sum() for w in grid])]
    assert weight[0] == pytest.approx(best, abs=5e-3) and weight.sum() == pytest.approx(1.0)


WRONG: list[tuple[Any, str]] = [
    (pd.DataFrame({"months": [1.0, 2.0, 3.0], "died": [1, 0, 2]}), "one column of booleans"),
    (
        pd.DataFrame({"months": [1.0, -2.0, 3.0], "died": [True, False, True]}),
        "column 'months': expected times of 0 or more",
    ),
    (pd.DataFrame({"months": [1.0, np.nan, 3.0], "died": [True, False, True]}), "got nan in row 1"),
    (pd.DataFrame({"months": [1.0, 2.0, 3.0], "died": [False] * 3}), "'died' is false in all rows"),
    (pd.DataFrame({"months": [1.0, 2.0], "died": [True, False]}), "X has 3 rows and y has 2"),
    (np.zeros(3, dtype=[("died", "?"), ("months", "<f8"), ("more", "<f8")]), "one column of booleans"),
]


@pytest.mark.parametrize(("y", "message"), WRONG)
def test_targets_that_cannot_be_used(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jf.JointRegressor().fit(pd.DataFrame({"x": [1.0, 2.0, 3.0]}), y)


def c_index(y: pd.DataFrame, expected: np.ndarray, weight: np.ndarray) -> float:
    """By its definition, a pair of rows at a time."""
    rows, right, total = list(zip(y["months"], y["died"], strict=True)), 0.0, 0.0
    tau = np.quantile(y["months"], 0.95)

    def observed(t: float) -> float:
        """Kaplan-Meier of censoring before t; events at the same time come first."""
        share = 1.0
        for end in sorted({u for u, died in rows if not died and u < t}):
            lost = sum(u == end and not died for u, died in rows)
            share *= 1 - lost / sum(u > end or (u == end and not died) for u, died in rows)
        return share

    for i, (t, died) in enumerate(rows):
        for k, (u, died_too) in enumerate(rows):
            if died and t <= tau and (u > t or (u == t and not died_too)):
                share = weight[i] * weight[k] / observed(t) ** 2
                right += share * (1.0 if expected[k] > expected[i] else 0.5 if expected[k] == expected[i] else 0.0)
                total += share
    return right / total


@pytest.mark.parametrize("rounded", [False, True])
def test_the_score_is_the_c_index(rounded: bool) -> None:
    X, y, _ = trial(3, 80)
    y["months"] = y["months"].round() if rounded else y["months"]
    reg, weight = fitted(), np.random.default_rng(0).uniform(0, 2, 80)
    expected = reg.predict(X)
    assert reg.score(X, y) == pytest.approx(c_index(y, expected, np.ones(80)), abs=1e-12)
    assert reg.score(X, y, weight) == pytest.approx(c_index(y, expected, weight), abs=1e-12)
    ties = np.round(expected, -1)
    target = survival.target_of(y)
    assert target is not None
    assert survival.concordance(target, ties, weight) == pytest.approx(c_index(y, ties, weight), abs=1e-12)
    assert 0.6 < reg.score(X, y) < 0.95


def test_scores_of_folds_and_targets_of_another_type() -> None:
    X, y, _ = trial(0)
    found = cross_val_score(jf.JointRegressor(random_state=0), X[:120], y[:120], cv=2)
    assert ((found > 0.5) & (found < 1)).all()
    with pytest.raises(ValueError, match="y: expected times and whether the event has happened, as at learning"):
        fitted().score(X, y["months"])
    with pytest.raises(ValueError, match="in no row before the time of another"):
        fitted().score(X[:2], pd.DataFrame({"died": [False, True], "months": [1.0, 2.0]}))


@pytest.mark.parametrize("dtype", [np.int64, np.float64, bool])
def test_events_are_booleans_or_zero_and_one(dtype: Any) -> None:
    _, y, _ = trial(0)
    target = survival.target_of(y.astype({"died": dtype}))
    assert target is not None and (target.flag, target.name) == ("died", "months")
    np.testing.assert_array_equal(target.event, y["died"])
    assert target.event.dtype == bool


def test_plain_numbers_have_no_survival_functions() -> None:
    X, y, _ = trial(0)
    reg = jf.JointRegressor(random_state=0).fit(X[:60], y["months"][:60])
    with pytest.raises(ValueError, match="plain numbers"):
        reg.predict_survival_function(X)
    with pytest.raises(ValueError, match="y: expected plain numbers, as at learning"):
        reg.score(X, y)
    assert reg.score(X[:60], y["months"][:60]) == r2_score(y["months"][:60], reg.predict(X[:60]))
    with pytest.raises(ValueError, match="cannot be saved"):
        fitted().save("times.joint")
