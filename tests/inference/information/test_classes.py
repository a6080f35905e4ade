"""Mutual information of classes: the same on every surface, and the definition summed over all classes."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest import plot
from jointforest.explorer import panels
from jointforest.explorer.shown import ShownJoint
from jointforest.report.summary import ShownRows, find_dependence

from ...explorer import tables


@cache
def ruled() -> tuple[jf.Joint, pd.DataFrame]:
    """A joint with a rule that makes cells missing, and its table."""
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame({"state": rng.choice(["run", "stop"], n, p=[0.7, 0.3]), "x": rng.normal(size=n)})
    frame["delay"] = np.where(frame["state"] == "stop", np.nan, np.round(3.0 * frame["x"] + 50.0))
    frame["zeros"] = np.where(rng.random(n) < 0.6, 0.0, frame["x"] ** 2)
    rules = ["delay missing iff state = stop"]
    return jf.HiddenTreeForest(n_states=8, max_iter=4, rules=rules, random_state=0).fit(frame).joint_, frame


def shown_joints() -> list[ShownJoint]:
    joint, frame = ruled()
    return [ShownJoint(make(), rows=tables.frame()) for make in tables.JOINTS.values()] + [
        ShownJoint(joint, rows=frame)
    ]


def test_dependence_is_the_same_on_every_surface() -> None:
    for shown in shown_joints():
        joint, d = shown.joint, len(shown.columns)
        assert shown.encoded is not None
        found = find_dependence(shown, ShownRows(shown.encoded, np.zeros(d, bool)))
        assert found is not None and found.rows is not None
        drawn = plot.dependence(joint)
        names = [label.get_text() for label in drawn.get_yticklabels()]
        for i, j in itertools.combinations(range(d), 2):
            a, b = joint.columns[i], joint.columns[j]
            asked = joint.mutual_information(a, b, bins=16)
            panel = panels.two_columns(shown, {"columns": [j, i]})
            assert asked.method == "exact" and asked.value / math.log(2.0) == pytest.approx(
                panel["information"], abs=1e-6
            )
            assert found.bits[i, j] == pytest.approx(panel["information"], abs=1e-6)
            assert found.rows[i, j] == pytest.approx(panel["in_table"], abs=1e-6)
        assert len(names) == d


def test_it_is_the_sum_over_all_classes() -> None:
    for shown in shown_joints():
        joint = shown.joint
        for a, b in list(itertools.combinations(range(len(shown.columns)), 2))[::3]:
            names = [joint.columns[j] for j in (a, b)]
            frame = joint.sample(20_000, random_state=3, missing=True)[names].dropna()
            codes = []
            for j, name in zip((a, b), names, strict=True):
                column = shown.columns[j]
                x = np.array([column.to_number(value) for value in frame[name]])
                codes.append(x.astype(int) if column.is_categorical else np.searchsorted(shown.class_cuts[j], x))
            expected, error = by_counts(*codes)
            value = joint.mutual_information(*names, bins=16).value
            assert abs(value - expected) < 5.0 * error + 1e-3, names


def by_counts(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Mutual information of counts without what chance gives, and about its standard error."""
    n = len(a)
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1.0 / n)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    some = table > 0.0
    log_ratio = np.log(table[some] / np.outer(rows, columns)[some])
    plain = float(table[some] @ log_ratio)
    ways = (np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1)
    deviation = math.sqrt(max(float(table[some] @ log_ratio**2) - plain**2, 0.0) / n)
    return max(plain - ways / (2.0 * n), 0.0), deviation + math.sqrt(ways / 2.0) / n


def test_the_tables_own_is_counted_without_what_chance_gives() -> None:
    rng = np.random.default_rng(1)
    n = 3_000
    plane, carrier = rng.integers(0, 400, n), rng.integers(0, 16, n)
    frame = pd.DataFrame({"plane": plane.astype(str), "carrier": carrier.astype(str)})
    frame.loc[: n // 2, "carrier"] = (frame.loc[: n // 2, "plane"].astype(int) % 16).astype(str)
    frame.loc[rng.random(n) < 0.2, "carrier"] = None
    joint = jf.HiddenTreeForest(n_states=16, max_iter=3, random_state=0).fit(frame).joint_
    found = panels.two_columns(ShownJoint(joint, rows=frame), {"columns": [0, 1]})
    known = frame.dropna()
    expected, _ = by_counts(*(known[name].astype("category").cat.codes.to_numpy() for name in frame))
    assert found["in_table"] == pytest.approx(expected / math.log(2.0), abs=1e-9)
    probability = np.array(joint.given().pair("plane", "carrier").probability)
    some = probability > 0.0
    independent = np.outer(probability.sum(axis=1), probability.sum(axis=0))[some]
    bits = float(probability[some] @ np.log2(probability[some] / independent))
    assert found["information"] == pytest.approx(bits, abs=1e-6)


def test_a_value_that_fills_a_bin_is_alone_in_it() -> None:
    joint, _ = ruled()
    shown = ShownJoint(joint)
    j = joint.schema.index("zeros")
    cuts = shown.class_cuts[j]
    assert 0.0 in cuts and np.nextafter(0.0, -np.inf) in cuts
    assert len(cuts) == len(np.unique(cuts)) <= 17


def test_what_cannot_be_asked_is_named() -> None:
    joint = tables.forest()
    for sides, words in [((["x", "age"], "spend"), "two columns"), (("x", "x"), "two sides"), (("x", "nix"), "nix")]:
        with pytest.raises(ValueError, match=words):
            joint.mutual_information(*sides, bins=16)
    with pytest.raises(ValueError, match="none given"):
        joint.mutual_information("x", "spend", "age", bins=16)
    with pytest.raises(ValueError, match="bins"):
        joint.mutual_information("x", "spend", bins=1)
