"""Answers about date-time columns with a time zone: all of them name the moment, alone and in arrays."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

ZONES = ("America/New_York", "Asia/Kathmandu", "UTC", "+02:00")
LEVELS = [0.1, 0.5, 0.9]


@pytest.fixture(scope="module", params=ZONES)
def learned(request: pytest.FixtureRequest) -> tuple[pd.DataFrame, jf.Joint, jf.Joint]:
    """A table, its joint, and the joint of the same table with the moments in UTC, without a zone."""
    rng = np.random.default_rng(0)
    minutes = rng.integers(0, 40 * 1_440, 300)
    utc = pd.Series(pd.Timestamp("2024-03-01") + pd.to_timedelta(minutes, unit="min"), dtype="datetime64[us]")
    frame = pd.DataFrame({"ts": utc, "k": rng.choice(["a", "b"], 300), "x": minutes + rng.normal(0, 3_000, 300)})
    zoned = frame.assign(ts=frame["ts"].dt.tz_localize("UTC").dt.tz_convert(request.param))
    learner = jf.HiddenTreeForest(n_states=4, max_iter=3, max_leaf_nodes=1, rules="off", random_state=0)
    return zoned, learner.fit(zoned).joint_, learner.fit(frame).joint_


def _same_moments(found: Any, naive: Any) -> None:
    """Whether datetimes with a zone are the naive ones of UTC, in any shape."""
    if isinstance(found, tuple):
        for one, other in zip(found, naive, strict=True):
            _same_moments(one, other)
        return
    found, naive = np.asarray(found, dtype=object), np.asarray(naive)
    assert found.shape == naive.shape
    expected = naive.astype("datetime64[us]").astype(object).ravel().tolist()
    for one, other in zip(found.ravel().tolist(), expected, strict=True):
        assert one.tzinfo is not None
        assert one.astimezone(dt.UTC).replace(tzinfo=None) == other


QUESTIONS: dict[str, Callable[[jf.Joint, pd.DataFrame], Any]] = {
    "quantile": lambda j, f: j.given().quantile("ts", 0.5),
    "quantiles": lambda j, f: j.given().quantile("ts", LEVELS),
    "quantiles of rows": lambda j, f: j.given(f).quantile("ts", LEVELS),
    "quantile of rows": lambda j, f: j.given(f).quantile("ts", 0.5),
    "interval": lambda j, f: j.given().interval("ts"),
    "interval of rows": lambda j, f: j.given(f).interval("ts"),
    "mean": lambda j, f: j.given().mean("ts"),
    "mean of rows": lambda j, f: j.given(f).mean("ts"),
    "predict": lambda j, f: j.predict(f, "ts"),
    "likeliest": lambda j, f: j.given().marginal("ts").likeliest(),
    "likeliest of rows": lambda j, f: j.given(f).marginal("ts").likeliest(),
    "draws": lambda j, f: j.given().marginal("ts").sample(5, random_state=0),
    "draws of rows": lambda j, f: j.given(f).marginal("ts").sample(5, random_state=0),
    "edges": lambda j, f: j.given().marginal("ts").histogram().edges,
    "pair": lambda j, f: j.given().pair("ts", "x")[0],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_arrays_have_the_zone_too(learned: tuple[pd.DataFrame, jf.Joint, jf.Joint], name: str) -> None:
    frame, zoned, naive = learned
    rows = frame[["k", "x"]].head(4)
    _same_moments(QUESTIONS[name](zoned, rows), QUESTIONS[name](naive, rows))


def test_frames_keep_the_zone(learned: tuple[pd.DataFrame, jf.Joint, jf.Joint]) -> None:
    frame, joint, _ = learned
    holes = frame.head(6).copy()
    holes.loc[:3, "ts"] = pd.NaT
    for rows in (joint.impute(holes), joint.sample(3, random_state=0), joint.given().mode().rows):
        assert rows["ts"].dtype.tz is not None
        assert str(rows["ts"].dt.tz) == str(frame["ts"].dt.tz)


def test_answers_are_evidence_again(learned: tuple[pd.DataFrame, jf.Joint, jf.Joint]) -> None:
    frame, joint, _ = learned
    known = joint.given()
    for level, end in zip(LEVELS, known.quantile("ts", LEVELS), strict=True):
        assert known.marginal("ts").cdf(end) == pytest.approx(level, abs=0.02)
        assert known.probability({"ts": jf.between(None, end)}) == pytest.approx(level, abs=0.02)
    found = known.marginal("ts").cdf(known.quantile("ts", LEVELS))
    np.testing.assert_allclose(found, LEVELS, atol=0.02)
    assert (frame["ts"] <= known.quantile("ts", LEVELS)[1]).mean() == pytest.approx(0.5, abs=0.05)
