"""`jf.fit(errors=True)` learns the table without its wrong cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jointforest as jf


def clean() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = rng.choice(["north", "south", "west"], 900)
    x = np.round(rng.normal(50 + 10 * (group == "west"), 5))
    return pd.DataFrame({"group": group, "x": x.astype(int), "y": np.round(2 * x + rng.normal(0, 4, 900), 1)})


def dirty() -> pd.DataFrame:
    """3 % of the numbers in x are ten times as large, and three labels have typing errors."""
    frame = clean()
    frame.loc[frame.index[::33], "x"] *= 10
    frame.loc[[5, 6, 7], "group"] = ["nroth", "soutth", "wesst"]
    return frame


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_the_joint_is_that_of_the_clean_table(make: Callable[[pd.DataFrame], Any]) -> None:
    frame = clean()
    joint = jf.fit(make(dirty()), errors=True, budget="fast", random_state=0)
    assert set(joint.schema["group"].levels) == {"north", "south", "west"}
    assert joint.given().mean("x") == pytest.approx(frame["x"].mean(), abs=0.1 * frame["x"].std())
    assert joint.probability("x > 200") < 1e-3
    of_west = frame["x"][frame["group"] == "west"]
    assert joint.given(group="west").mean("x") == pytest.approx(of_west.mean(), abs=0.2 * of_west.std())
    assert str(joint.sample(5, random_state=0)["x"].dtype).lower() == "int64"


def test_arrays() -> None:
    X = dirty()[["x", "y"]].to_numpy(float)
    with_errors = jf.fit(X, budget="fast", random_state=0)
    assert with_errors.given().mean("x0") > clean()["x"].mean() + clean()["x"].std()
    joint = jf.fit(X, errors=True, budget="fast", random_state=0)
    assert joint.given().mean("x0") == pytest.approx(clean()["x"].mean(), abs=0.1 * clean()["x"].std())


def test_a_clean_table_gives_the_same_joint() -> None:
    frame = clean()
    both = [jf.fit(frame, errors=errors, budget="fast", random_state=0) for errors in (False, True)]
    np.testing.assert_array_equal(*(joint.log_density(frame.head(50)) for joint in both))


def test_what_counts_as_missing_is_reported_whatever_the_seed() -> None:
    frame = dirty()
    frame["y"] = frame["y"].astype(object)
    frame.loc[50, "y"] = "11O.2"  # a letter in a column of numbers
    joint = jf.fit(frame, errors=True, budget="fast")
    assert joint.schema["y"].kind in ("rounded", "continuous")
    report = joint.fitted_by
    assert report is not None and report.wrong["group"] == 3 and 20 <= report.wrong["x"] <= 28
    assert f"x {report.wrong['x']}" in report.in_words
    assert not any(rule.exceptions for rule in joint.rules)
    with pytest.raises(TypeError, match="errors: expected True or False"):
        jf.fit(frame, errors="yes")  # type: ignore[call-overload]


def test_missing_cells_are_no_errors() -> None:
    """A function predicts the missing ones, so that a check proposes their values."""
    frame = dirty().assign(code=lambda one: one["group"].map({"north": 1.0, "south": 2.0, "west": 5.0}))
    frame.loc[frame.index[::9], "code"] = np.nan
    joint = jf.fit(frame, errors=True, budget="fast", random_state=0)
    assert joint.fitted_by is not None and set(joint.fitted_by.wrong) <= {"x", "group"}


def test_histories_are_refused() -> None:
    frame = clean().assign(id=np.arange(900) // 3)
    with pytest.raises(ValueError, match="errors=True does not go with group"):
        jf.fit(frame, group="id", errors=True)
