"""Rows drawn and filled under orders: the order holds, and columns stay in their observed range."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointforest as jf


def _frame(decimals: int) -> pd.DataFrame:
    """Numbers that crowd at the upper bound 100, below another one and above a third."""
    rng = np.random.default_rng(decimals)
    low = np.clip(np.round(rng.normal(60.0, 25.0, 1_500), decimals), 0.0, 100.0)
    high = np.minimum(np.round(low + rng.exponential(15.0, 1_500), decimals), 100.0)
    top = np.minimum(high + np.round(1.0 + rng.exponential(8.0, 1_500), decimals), 110.0)
    frame = pd.DataFrame({"low": low, "high": high, "top": np.maximum(top, high + 10.0**-decimals)})
    frame["side"] = np.where(low > 50.0, "a", "b")
    return frame if decimals else frame.astype({"low": int, "high": int, "top": int})


@pytest.fixture(scope="module", params=[0, 1, 6])
def learned(request: pytest.FixtureRequest) -> tuple[pd.DataFrame, jf.Joint]:
    frame = _frame(request.param)
    learner = jf.HiddenTreeForest(
        n_states=6, max_iter=2, max_leaf_nodes=1, rules=["low <= high", "high < top"], random_state=0
    )
    return frame, learner.fit(frame).joint_


@pytest.mark.filterwarnings("ignore::jointforest.EstimatedAnswerWarning")
@settings(max_examples=25, deadline=None)
@given(row=st.integers(0, 1_499), hidden=st.lists(st.booleans(), min_size=4, max_size=4), seed=st.integers(0, 9))
def test_rows_stay_in_range(learned: tuple[pd.DataFrame, jf.Joint], row: int, hidden: list[bool], seed: int) -> None:
    frame, joint = learned
    known = frame.iloc[[row]].astype({"low": float, "high": float, "top": float})
    for name, is_hidden in zip(frame.columns, hidden, strict=True):
        if is_hidden:
            known[name] = np.nan if name != "side" else None
    drawn = joint.given(known).sample(30, random_state=seed)
    for rows in (joint.impute(known), drawn):
        assert (rows["low"] <= rows["high"]).all() and (rows["high"] < rows["top"]).all()
        for name in ("low", "high", "top"):
            if not np.isnan(known[name].iloc[0]):
                assert np.allclose(rows[name], known[name].iloc[0])
    made = [joint.columns[j] for j in joint.distribution.coordinates.gaps]
    assert len(made) == 2
    for name in made:
        assert drawn[name].between(frame[name].min() - 1e-9, frame[name].max() + 1e-9).all()
        filled = joint.impute(known)[name].iloc[0]
        assert frame[name].min() - 1e-9 <= filled <= frame[name].max() + 1e-9


def test_rows_without_evidence_stay_in_range(learned: tuple[pd.DataFrame, jf.Joint]) -> None:
    frame, joint = learned
    drawn = joint.sample(20_000, random_state=0)
    for name in (joint.columns[j] for j in joint.distribution.coordinates.gaps):
        assert drawn[name].between(frame[name].min() - 1e-9, frame[name].max() + 1e-9).all()
    assert (drawn["low"] <= drawn["high"]).all() and (drawn["high"] < drawn["top"]).all()


def test_answers_that_count_rows_beyond_a_range_say_so(learned: tuple[pd.DataFrame, jf.Joint]) -> None:
    frame, joint = learned
    distribution = joint.distribution
    made = {joint.columns[j]: share for j, share in distribution.share_beyond.items()}
    assert len(made) == 2 and max(made.values()) > 0.001
    distribution.coordinates.warned.clear()
    with pytest.warns(jf.EstimatedAnswerWarning, match="values that lie beyond those of the table"):
        answers = {60.0: joint.given().marginal("high").cdf(60.0)}
    with warnings.catch_warnings():  # it is said once, also of what is made of the joint
        warnings.filterwarnings("error", "some rows of the joint have values", jf.EstimatedAnswerWarning)
        answers[90.0] = joint.given().marginal("high").cdf(90.0)
        joint.select("low", "high").given(low=jf.between(20, 80)).mean("high")
        joint.condition(side="a").probability("high > 50")
    drawn = joint.sample(20_000, random_state=1)
    for t, answer in answers.items():
        assert abs(answer - (drawn["high"] <= t).mean()) <= sum(made.values()) + 0.015
    with warnings.catch_warnings():  # where the values are known, nothing is estimated
        warnings.simplefilter("error", jf.EstimatedAnswerWarning)
        joint.log_density(frame.head(50))
        joint.predict(frame.head(5).drop(columns="side"), "side")


def test_probabilities_agree_with_draws_where_values_crowd_at_the_end_of_a_range() -> None:
    rng = np.random.default_rng(1)
    low = np.clip(rng.normal(60.0, 25.0, 3_000), 0.0, 100.0).round(1)
    high = np.minimum(low + rng.exponential(15.0, 3_000), 100.0).round(1)
    frame = pd.DataFrame({"low": low, "high": high})
    learner = jf.HiddenTreeForest(n_states=8, max_iter=2, max_leaf_nodes=1, rules=["low <= high"], random_state=0)
    joint = learner.fit(frame).joint_
    assert max(joint.distribution.share_beyond.values()) > 0.005
    with pytest.warns(jf.EstimatedAnswerWarning):
        drawn = joint.sample(40_000, random_state=0)
    assert (drawn["low"] <= drawn["high"]).all() and drawn["low"].min() == 0.0 and drawn["high"].max() == 100.0
    given = joint.given()
    for name in ("low", "high"):
        for t in (20.0, 50.0, 80.0, 95.0, 99.9):
            assert abs(given.marginal(name).cdf(t) - (drawn[name] <= t).mean()) < 4.0 * 0.5 / 200.0
    given = joint.given("high >= 90 and low >= 70")
    conditional = given.sample(20_000, random_state=0)
    assert conditional["high"].between(90.0, 100.0).all() and (conditional["high"] == 100.0).mean() > 0.2
    assert abs(given.marginal("high").cdf(95.0) - (conditional["high"] <= 95.0).mean()) < 4.0 * 0.5 / 141.0
