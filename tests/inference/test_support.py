"""What answers rest on: counts of rows, densities as neighbourhoods, and the standard errors of shares and means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.schema import Column, Schema
from jointforest.inference.support import support_in_words

from ..random_cases.table_part import TableDistribution


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
    known = ", ".join(f"{name} is not missing" for name in penguins if name in text)
    share = joint.probability(known) * joint.probability(text, given=known)
    assert joint.given(text).n_rows == pytest.approx(len(penguins) * share, rel=1e-9)


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


def independent(n: int) -> pd.DataFrame:
    """Columns a and b that have nothing to do with each other, and a number."""
    frame = pd.DataFrame({"a": ["x", "y"] * (n // 2), "b": ["u", "u", "v", "v"] * (n // 4)})
    return frame.assign(c=np.random.default_rng(0).normal(size=n))


def test_all_rows_of_a_leaf_count_for_what_is_independent_in_it() -> None:
    joint = jf.JointTree(min_samples_leaf=400, epsilon=0.0, random_state=0).fit(independent(400)).joint_
    known = joint.given(a="x")
    assert known.n_rows == pytest.approx(200, rel=0.01)
    assert known.standard_error("b = u") == pytest.approx(np.sqrt(0.25 / 400), rel=0.01)
    assert known.standard_error("b")["u"] == pytest.approx(np.sqrt(0.25 / 400), rel=0.01)
    assert known.standard_error("c") == pytest.approx(known.std("c") / np.sqrt(400), rel=0.01)


def test_only_the_rows_of_the_evidence_count_where_leaves_differ() -> None:
    frame = independent(400).assign(b=["u", "v"] * 200)  # b says a
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    known = joint.given("a in {x, y}, c > 0")
    n = known.n_rows
    assert known.standard_error("b = u") == pytest.approx(np.sqrt(0.25 / n), rel=0.1)


def test_a_kind_without_parts_counts_the_rows_of_the_evidence() -> None:
    rows = np.array([[0.0, 3.0], [1.0, 4.0], [1.0, 6.0]])
    columns = (
        Column("a", "categorical", "str", levels=("x", "y"), n_observed=80),
        Column("b", "integer", "int64", step=1.0, minimum=3.0, maximum=6.0, n_observed=80),
    )
    joint = jf.Joint(TableDistribution(Schema(columns, "pandas", n_rows=80.0), rows, np.array([0.5, 0.25, 0.25])))
    known = joint.given(a="y")
    assert known.n_rows == pytest.approx(40)
    assert known.standard_error("b") == pytest.approx(1.0 / np.sqrt(40))
    assert known.standard_error("b > 5") == pytest.approx(np.sqrt(0.25 / 40))
    # of a share of 1 as if half a row more had been seen of either outcome
    assert known.standard_error("a")["y"] == pytest.approx(np.sqrt((40.5 / 41) * (0.5 / 41) / 40))
    assert joint.given(b=4).standard_error("a = x") == pytest.approx(np.sqrt((0.5 / 21) * (20.5 / 21) / 20))


def test_cells_that_were_missing_at_learning_do_not_count() -> None:
    frame = independent(400)
    half = frame.assign(b=frame["b"].where(np.arange(400) % 8 < 4))
    learner = jf.JointTree(min_samples_leaf=400, epsilon=0.0, random_state=0)
    errors = [learner.fit(table).joint_.given(a="x").standard_error("b = u") for table in (frame, half)]
    assert errors[1] == pytest.approx(errors[0] * np.sqrt(2), rel=0.02)


def test_errors_of_frames_are_those_of_their_rows(joint: jf.Joint) -> None:
    frame = pd.DataFrame({"species": ["Gentoo", "Adelie"], "body_mass_g": [np.nan, 4000.0]})
    many, first = joint.given(frame), joint.given(species="Gentoo")
    for of in ("sex", "bill_length_mm", "sex = MALE, island = Biscoe", "sex is missing"):
        found, alone = many.standard_error(of), first.standard_error(of)
        expected = list(alone.values()) if isinstance(alone, dict) else alone
        assert len(found) == 2 and np.isfinite(found).all() and (found > 0).all()
        np.testing.assert_allclose(found[0], expected)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_kind_has_errors(learner: Any, penguins: pd.DataFrame, joint: jf.Joint) -> None:
    learned = learner.fit(penguins).joint_
    for asked in (learned, jf.mix([learned, joint], [0.5, 0.5])):
        known = asked.given("body_mass_g > 4500")
        n, share = known.n_rows, known.probability("sex = MALE")
        assert 0.3 < known.standard_error("sex = MALE") / np.sqrt(share * (1 - share) / n) < 1.2
        assert known.standard_error("sex")["MALE"] == pytest.approx(known.standard_error("sex = MALE"), rel=1e-6)
        assert 0.3 < known.standard_error("bill_length_mm") / (known.std("bill_length_mm") / np.sqrt(n)) < 1.2


def test_errors_of_a_date_and_of_impossible_evidence(joint: jf.Joint) -> None:
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=60), "a": ["x", "y"] * 30})
    dated = jf.JointTree(random_state=0).fit(frame).joint_
    with pytest.raises(ValueError, match="standard error of a date is not defined"):
        dated.given(a="x").standard_error("day")
    assert dated.given(a="x").standard_error("day > '2020-01-20'") > 0.0
    with pytest.raises(ValueError, match="probability 0"):
        joint.given("body_mass_g > 4000, body_mass_g < 3000").standard_error("sex")


def test_joints_that_do_not_know_their_rows_say_so(joint: jf.Joint) -> None:
    unknown = jf.Joint(joint.distribution.with_schema(replace(joint.schema, n_rows=0.0)))
    assert np.isnan(unknown.given(species="Gentoo").n_rows)
    with pytest.raises(ValueError, match="does not know how many rows"):
        unknown.given(species="Gentoo").standard_error("sex")
    assert support_in_words(float("nan"), 0.0) == ""


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
    assert support_in_words(n_rows, 32561.0) == words
