"""Expected predictions of models that do not list all levels of their columns."""

from __future__ import annotations

import catboost
import numpy as np
import pandas as pd
import pytest

import jointforest as jf


def table(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], n)
    return pd.DataFrame({"x": rng.normal(size=n) + (colour == "red"), "colour": colour, "noise": ["a", "b"] * (n // 2)})


@pytest.mark.parametrize("target", ["x", "colour"])
def test_a_level_column_that_no_split_uses(target: str) -> None:
    frame = table()
    y = 3.0 * (frame[target] > 0.5) if target == "x" else 3.0 * (frame["colour"] == "red")
    model = catboost.CatBoostRegressor(
        iterations=5, depth=2, one_hot_max_size=10, cat_features=["colour", "noise"], verbose=False, thread_count=1,
        allow_writing_files=False, random_seed=0,
    ).fit(frame, y)  # fmt: skip
    joint = jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame).joint_
    predictor = jf.ExpectedPredictor(model, joint, tolerance=0.0)
    np.testing.assert_allclose(predictor.predict(frame), model.predict(frame), rtol=1e-9, atol=1e-9)
    hidden = frame.assign(colour=None)
    answer = predictor.predict(hidden)
    parts = [predictor.predict(frame.assign(colour=level)) for level in ("blue", "green", "red")]
    proba = joint.given(frame[["x", "noise"]]).proba("colour")
    np.testing.assert_allclose(answer, np.sum(proba * np.column_stack(parts), axis=1), rtol=1e-9)


def test_levels_of_a_model_against_numbers_of_the_joint() -> None:
    frame = table()
    model = catboost.CatBoostRegressor(
        iterations=2, one_hot_max_size=10, cat_features=["colour"], verbose=False, thread_count=1,
        allow_writing_files=False,
    ).fit(frame[["x", "colour"]], frame["x"])  # fmt: skip
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(frame.assign(colour=frame["x"])).joint_
    with pytest.raises(ValueError, match=r"'colour'.*takes levels.*categorical"):
        jf.ExpectedPredictor(model, joint)
