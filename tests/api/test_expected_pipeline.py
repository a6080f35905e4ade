"""Expected predictions of whole pipelines: against the pipeline itself asked about every completion, by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler

import jointforest as jf

CELLS = {
    "size": [float(k) for k in range(-60, 80)],  # all that matters of its grid
    "colour": ["red", "green", "blue"],
    "grade": [1, 2, 3, 4],
}


def make_table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    colour, grade = rng.integers(0, 3, n), rng.integers(0, 4, n)
    size = np.round(3 * colour + 2 * grade + rng.normal(0, 2, n))
    y = np.sin(size / 3) + (colour == 1) + 0.3 * grade + rng.normal(0, 0.1, n)
    names = np.array(CELLS["colour"])
    return pd.DataFrame({"size": size, "colour": names[colour], "grade": np.array(CELLS["grade"])[grade], "y": y})


TABLE = make_table(300, 0)
X = TABLE[["size", "colour", "grade"]]
JOINT = jf.AdversarialForest(n_estimators=3, epsilon=0.0, kinds={"grade": "categorical"}, random_state=0).fit(X).joint_
STEPS = [
    make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["size"]), (OneHotEncoder(), ["colour", "grade"])
    ),
    make_column_transformer(
        (KBinsDiscretizer(5, encode="ordinal", strategy="uniform"), ["size"]),
        (make_pipeline(OrdinalEncoder(), StandardScaler()), ["grade", "colour"]),
    ),
]


def expected(answer, row: pd.Series) -> np.ndarray:
    """The mean of a pipeline's answers over all completions of a row, weighed by the joint's densities."""
    known = [[row[name]] if not pd.isna(row[name]) else CELLS[name] for name in CELLS]
    whole = pd.DataFrame(list(itertools.product(*known)), columns=list(CELLS))
    weight = np.exp(JOINT.log_density(whole))
    weight /= weight.sum()
    return weight @ np.asarray(answer(whole)).reshape(len(whole), -1)


def holes() -> pd.DataFrame:
    rows = X.head(12).astype(object)
    rows.iloc[::2, 0] = np.nan
    rows.iloc[::3, 1] = None
    rows.iloc[1::4, 2] = np.nan
    return rows.astype({"size": float, "grade": float})


@pytest.mark.parametrize("steps", STEPS)
def test_expected_predictions_are_means_over_completions(steps) -> None:
    rows = holes()
    number = make_pipeline(steps, RandomForestRegressor(5, random_state=0)).fit(X, TABLE["y"])
    predictor = jf.ExpectedPredictor(number, JOINT, tolerance=0)
    np.testing.assert_allclose(predictor.predict(X), number.predict(X), rtol=1e-12)
    oracle = [expected(number.predict, row) for _, row in rows.iterrows()]
    np.testing.assert_allclose(predictor.predict(rows), np.ravel(oracle), rtol=1e-6)
    labels = np.where(TABLE["y"] > 1.5, "high", np.where(TABLE["y"] > 0.5, "middle", "low"))
    for model in (RandomForestClassifier(5, random_state=0), GradientBoostingClassifier(n_estimators=4)):
        classes = make_pipeline(steps, model).fit(X, labels)
        predictor = jf.ExpectedPredictor(classes, JOINT, tolerance=0)
        np.testing.assert_allclose(predictor.predict_proba(X), classes.predict_proba(X), atol=1e-12)
        np.testing.assert_array_equal(predictor.predict(X), classes.predict(X))
        oracle = [expected(classes.predict_proba, row) for _, row in rows.iterrows()]
        np.testing.assert_allclose(predictor.predict_proba(rows, "exact"), oracle, atol=1e-6)


def test_levels_that_only_the_joint_knows_are_refused() -> None:
    some = X[X["colour"] != "blue"]
    model = make_pipeline(STEPS[0], RandomForestRegressor(3)).fit(some, TABLE["y"][some.index])
    with pytest.raises(ValueError, match=r"column 'colour': the model's encoder refuses the level 'blue'"):
        jf.ExpectedPredictor(model, JOINT)


def test_numbers_that_are_levels_to_the_pipeline() -> None:
    model = make_pipeline(STEPS[0], RandomForestRegressor(3)).fit(X, TABLE["y"])
    numbers = jf.AdversarialForest(n_estimators=2, kinds={"grade": "integer"}, random_state=0).fit(X).joint_
    with pytest.raises(ValueError, match=r"fit the joint with kinds=\{'grade': 'categorical'\}"):
        jf.ExpectedPredictor(model, numbers)


def test_shapley_values_of_a_pipeline_sum_to_its_prediction() -> None:
    model = make_pipeline(STEPS[0], RandomForestRegressor(5, random_state=0)).fit(X, TABLE["y"])
    found = jf.ExpectedPredictor(model, JOINT).shap(X.head(3))
    assert found.values.shape == (3, 3)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(X.head(3)), atol=1e-6)
