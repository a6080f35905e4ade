"""Codes of levels: neighbours are alike, and levels keep their names."""

from __future__ import annotations

import numpy as np
import pandas as pd

import jointforest as jf

CENTER = {"a": 5, "b": 1, "c": 3, "d": 0, "e": 4, "f": 2}


def table(n: int = 400) -> pd.DataFrame:
    """Subjects of four rows: a level, and a number around the center of the level."""
    rng = np.random.default_rng(0)
    level = rng.choice(list(CENTER), 4 * n)
    number = np.array([CENTER[one] for one in level]) * 10 + rng.normal(0.0, 6.0, 4 * n)
    return pd.DataFrame({"id": np.repeat(np.arange(n), 4), "level": level, "number": number.round(1)})


def test_codes_of_levels_are_in_the_order_of_likeness() -> None:
    joint = jf.HistoryForest(random_state=0).fit(table(), group="id").joint_
    coding = next(v.coding for v in joint.model.columns.rows if v.coding.column.name == "level")
    centers = [CENTER[coding.column.levels[place]] for place in np.argsort(coding.scale.code)]
    assert centers in (sorted(centers), sorted(centers, reverse=True))
    drawn = joint.sample(400, random_state=0)
    means = drawn.groupby("level")["number"].mean()
    for level, center in CENTER.items():
        assert abs(means[level] - 10 * center) < 3.0


def test_ordered_levels_keep_their_order() -> None:
    kinds = {"level": "ordered"}
    ordered = table().assign(level=pd.Categorical(table()["level"], categories=list("abcdef"), ordered=True))
    joint = jf.HistoryForest(kinds=kinds, random_state=0).fit(ordered, group="id").joint_
    coding = next(v.coding for v in joint.model.columns.rows if v.coding.column.name == "level")
    np.testing.assert_array_equal(coding.scale.code, np.arange(6))
