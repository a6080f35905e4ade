"""What answers rest on: counts of rows, densities as neighbourhoods, and the standard errors of shares and means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.inference.support import in_words, share_error


@pytest.fixture(scope="module")
def penguins() -> pd.DataFrame:
    return pd.DataFrame(jf.datasets.load_penguins())


@pytest.fixture(scope="module")
def joint(penguins: pd.DataFrame) -> jf.Joint:
    return jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(penguins).joint_


def test_rows_of_a_level_are_counted(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    assert joint.given().n_rows == pytest.approx(len(penguins))
    for level, count in penguins["species"].value_counts().items():
        assert joint.given(species=level).n_rows == pytest.approx(count, abs=0.1)


@pytest.mark.parametrize("text", ["body_mass_g = 4000", "bill_length_mm > 45, sex = FEMALE", "flipper_length_mm = 190"])
def test_rows_are_the_probability_times_the_number_of_rows(joint: jf.Joint, penguins: pd.DataFrame, text: str) -> None:
    assert joint.given(text).n_rows == pytest.approx(len(penguins) * joint.probability(text), rel=1e-9)


def test_a_value_with_a_density_counts_as_an_event_of_its_column() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400), "y": rng.choice(["a", "b"], 400)})
    frame.loc[frame["y"] == "b", "x"] += 1
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    assert joint.given(x=0.3).n_rows == pytest.approx(0.05 * 400)
    both = joint.given(x=0.3, y="a").n_rows
    assert both == pytest.approx(0.05 * 400 * joint.given(x=0.3).probability("y = a"), rel=1e-9)
    rows = joint.given(pd.DataFrame({"x": [0.3, np.nan], "y": ["a", "b"]})).n_rows
    assert rows[0] == pytest.approx(both) and rows[1] == pytest.approx(400 * joint.probability("y = b"))


def test_missing_cells_and_conditioned_joints_are_counted(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    n_missing = int(penguins["sex"].isna().sum())
    assert joint.given("sex is missing").n_rows == pytest.approx(n_missing, rel=0.3)
    gentoo = joint.condition(species="Gentoo")
    assert gentoo.given().n_rows == pytest.approx(joint.given(species="Gentoo").n_rows)
    assert gentoo.given(sex="MALE").n_rows == pytest.approx(joint.given(species="Gentoo", sex="MALE").n_rows, rel=1e-6)


LEARNERS = [jf.HiddenTreeForest(n_states=4, random_state=0), jf.AdversarialForest(n_estimators=3, random_state=0)]


@pytest.mark.parametrize("learner", LEARNERS)
def test_files_and_mixtures_keep_the_rows(learner: Any, penguins: pd.DataFrame, joint: jf.Joint, tmp_path: Any) -> None:
    learned = learner.fit(penguins).joint_
    learned.save(tmp_path / "a.joint")
    assert jf.load(tmp_path / "a.joint").given().n_rows == len(penguins)
    assert jf.mix([learned, joint], [0.5, 0.5]).given(species="Gentoo").n_rows == pytest.approx(124, rel=0.1)


def test_a_mixture_of_joints_of_different_tables_does_not_know_its_rows(joint: jf.Joint) -> None:
    other = jf.Joint(joint.distribution.with_schema(replace(joint.schema, n_rows=12.0)))
    assert np.isnan(jf.mix([joint, other], [0.5, 0.5]).given(species="Gentoo").n_rows)


def test_the_standard_errors_are_those_of_shares_and_means(joint: jf.Joint) -> None:
    known = joint.given(species="Gentoo")
    n, share = known.n_rows, known.probability("sex = MALE")
    shrunk = (share * n + 0.5) / (n + 1)
    assert known.standard_error("sex = MALE") == pytest.approx(np.sqrt(shrunk * (1 - shrunk) / n))
    assert known.standard_error("sex")["MALE"] == pytest.approx(np.sqrt(shrunk * (1 - shrunk) / n), rel=0.05)
    assert known.standard_error("body_mass_g") == pytest.approx(known.std("body_mass_g") / np.sqrt(n))
    many = joint.given(pd.DataFrame({"species": ["Gentoo", "Adelie"]}))
    assert many.standard_error("body_mass_g").shape == (2,) and many.standard_error("sex").shape == (2, 2)
    assert share_error(np.array([0.0, 1.0]), np.array([10.0, 1e-9])).tolist() == pytest.approx([0.0659, 0.5], abs=0.001)


def test_joints_that_do_not_know_their_rows_say_so(joint: jf.Joint) -> None:
    unknown = jf.Joint(joint.distribution.with_schema(replace(joint.schema, n_rows=0.0)))
    assert np.isnan(unknown.given(species="Gentoo").n_rows)
    with pytest.raises(ValueError, match="does not know how many rows"):
        unknown.given(species="Gentoo").standard_error("sex")
    assert in_words(float("nan"), 0.0) == ""


@pytest.mark.parametrize(
    ("n_rows", "words"),
    [
        (1243.2, "about 1,240 of 32,561 rows"),
        (32561.0, "about 32,600 of 32,561 rows"),
        (12.4, "about 12 of 32,561 rows"),
        (4.9, "extrapolated: fewer than 5 of 32,561 rows are like this"),
    ],
)
def test_words(n_rows: float, words: str) -> None:
    assert in_words(n_rows, 32561.0) == words
