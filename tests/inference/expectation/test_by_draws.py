"""Expected predictions under hidden trees and mixtures, against sums over all rows of a small table."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor

import jointforest as jf
from jointforest.api.joint import Joint

from ...random_cases.hidden_parts import ALL, INSIDE, hidden_joint, mixed_joint, small_table

INPUTS = ["size", "grade", "flag"]


@cache
def joint(kind: str) -> Joint:
    make = hidden_joint if kind == "hidden trees" else mixed_joint
    return make(small_table(0), 3).condition(INSIDE)


@cache
def regressor() -> RandomForestRegressor:
    table = small_table(1)
    y = table["size"] * (1 + table["grade"]) + 3 * table["flag"]
    return RandomForestRegressor(5, max_depth=4, random_state=0).fit(table[INPUTS], y)


@cache
def classifier() -> GradientBoostingClassifier:
    table = small_table(2)
    return GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0).fit(table[INPUTS], table["place"])


def rows() -> pd.DataFrame:
    frame = small_table(4, 40).astype({"size": "Float64", "grade": "Float64", "flag": "boolean"})
    return frame.mask(np.random.default_rng(0).random(frame.shape) < 0.5)


def expected(of: Joint, row: pd.Series, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of ``answers`` to all rows, given the known cells of one row, by enumeration."""
    agrees = np.ones(len(ALL), bool)
    for name, value in row.items():
        if not pd.isna(value):
            agrees &= (ALL[name] == value).to_numpy()
    p = np.exp(of.log_density(ALL)) * agrees
    p /= p.sum()
    mean = p @ answers
    return mean, np.sqrt(p @ (answers - mean) ** 2)


@pytest.mark.parametrize("kind", ["hidden trees", "mixture"])
def test_expected_predictions_are_within_their_standard_errors(kind: str) -> None:
    frame, model, of = rows(), regressor(), joint(kind)
    predictor = jf.ExpectedPredictor(model, of, n_draws=400)
    found, error, spread = predictor.predict(frame), predictor.standard_error(frame), predictor.predict_std(frame)
    truth = np.array([expected(of, row, model.predict(ALL[INPUTS])) for _, row in frame.iterrows()])
    lacks = frame[INPUTS].isna().sum(axis=1).to_numpy()
    np.testing.assert_allclose(found[lacks <= 1], truth[lacks <= 1, 0], atol=1e-9)  # summed over cells
    np.testing.assert_allclose(spread[lacks <= 1], truth[lacks <= 1, 1], atol=1e-7)
    assert (error[lacks <= 1] == 0.0).all() and (error[lacks > 1] > 0.0).all() and (lacks > 1).sum() > 8
    z = (found - truth[:, 0])[lacks > 1] / error[lacks > 1]
    assert abs(z).max() < 4.5 and 0.4 < np.sqrt(np.mean(z**2)) < 1.7
    np.testing.assert_allclose(error[lacks > 1], truth[lacks > 1, 1] / 20.0, rtol=0.2)
    np.testing.assert_array_equal(predictor.decision_function(frame), found)
    drawn = predictor.predict(frame, method="sample")
    assert 0.0 < abs(drawn - truth[:, 0])[lacks == 1].max() < 2.0


@pytest.mark.parametrize("kind", ["hidden trees", "mixture"])
def test_expected_probabilities_of_classes(kind: str) -> None:
    frame, model, of = rows(), classifier(), joint(kind)
    predictor = jf.ExpectedPredictor(model, of, n_draws=400)
    found, error = predictor.predict_proba(frame), predictor.standard_error(frame)
    answers = model.predict_proba(ALL[INPUTS])
    truth = np.array([expected(of, row, answers)[0] for _, row in frame.iterrows()])
    exact = error[:, 0] == 0.0
    np.testing.assert_allclose(found[exact], truth[exact], atol=1e-9)
    assert (abs(found - truth)[~exact] <= 4.5 * error[~exact]).all() and (~exact).sum() > 2
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(predictor.predict(frame), model.classes_[found.argmax(axis=1)])


def test_complete_rows_are_the_models_own_whatever_the_joint_knows_of_them() -> None:
    complete = ALL.iloc[::11]
    predictor = jf.ExpectedPredictor(regressor(), joint("mixture"))
    np.testing.assert_allclose(predictor.predict(complete), regressor().predict(complete[INPUTS]), rtol=1e-12)
    assert (predictor.standard_error(complete) == 0.0).all() and (predictor.predict_std(complete) == 0.0).all()


def test_the_seed_alone_decides() -> None:
    frame = rows()
    once, again, other = (
        jf.ExpectedPredictor(regressor(), joint("mixture"), random_state=seed, n_jobs=jobs).predict(frame)
        for seed, jobs in ((5, 1), (5, 2), (6, 1))
    )
    np.testing.assert_array_equal(once, again)
    assert (once != other).any()


def test_rows_of_probability_zero_have_no_prediction() -> None:
    frame = pd.DataFrame({"size": [40, 3], "grade": [2, 2]})
    predictor = jf.ExpectedPredictor(regressor(), hidden_joint(small_table(0), 3).condition(INSIDE))
    with pytest.warns(jf.UnsupportedEvidenceWarning, match="1 of 2 rows have probability 0"):
        found = predictor.predict(frame)
    assert np.isnan(found[0]) and np.isfinite(found[1])


def test_what_only_one_forest_can_do_is_refused_by_name() -> None:
    frame = rows()
    predictor = jf.ExpectedPredictor(regressor(), joint("hidden trees"))
    with pytest.raises(ValueError, match=r"refit needs a joint that is one forest.*: hidden trees"):
        predictor.refit(frame, np.zeros(len(frame)))
    with pytest.raises(ValueError, match=r"bound of the error \(see standard_error\) needs a joint that is one forest"):
        predictor.error_bound(frame)
    with pytest.raises(ValueError, match="lacks several of the columns"):
        predictor.predict(frame, method="exact")
    with pytest.raises(ValueError, match="method"):
        predictor.predict(frame, method="probit")


def test_standard_errors_of_one_forest() -> None:
    table = small_table(0)
    forest = jf.AdversarialForest(n_estimators=2, random_state=0).fit(table).joint_
    frame = rows()
    assert (jf.ExpectedPredictor(regressor(), forest).standard_error(frame) == 0.0).all()
    predictor = jf.ExpectedPredictor(classifier(), forest, n_draws=64, tolerance=0)
    assert (predictor.standard_error(frame) == 0.0).all()
    error = predictor.standard_error(frame, method="sample")
    gap = abs(predictor.predict_proba(frame, method="sample") - predictor.predict_proba(frame))
    complete = frame[INPUTS].notna().all(axis=1).to_numpy()
    assert (error[complete] == 0.0).all() and error[~complete].max() > 0.0
    assert (gap <= 6.0 * error + 1e-9).all()


@pytest.mark.parametrize("kind", ["hidden trees", "mixture"])
def test_cells_of_numbers_with_densities_and_atoms(kind: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, 2.0, 400)
    table = pd.DataFrame({"x": x, "z": np.where(x > 4, 0.0, rng.normal(size=400)), "tenth": np.round(x, 1)})
    of = (hidden_joint if kind == "hidden trees" else mixed_joint)(table, 1)
    model = RandomForestRegressor(3, max_depth=5, random_state=0).fit(table, np.sin(x) + table["z"])
    whole = of.sample(20_000, random_state=1)
    for name in table.columns:
        known = table.drop(columns=name).head(4)
        found = jf.ExpectedPredictor(model, of).predict(known)
        for i in range(4):
            rows = of.given(known.iloc[[i]]).sample(20_000, random_state=2)
            answers = model.predict(rows)
            assert abs(found[i] - answers.mean()) < 4.5 * answers.std() / np.sqrt(20_000) + 1e-9
        assert (jf.ExpectedPredictor(model, of).standard_error(known) == 0.0).all()
    both = jf.ExpectedPredictor(model, of, n_draws=20_000).predict(pd.DataFrame({"z": [np.nan]}))
    truth = model.predict(whole)
    assert abs(both[0] - truth.mean()) < 6.0 * truth.std() / np.sqrt(20_000)
