"""`jf.fidelity` as users call it: any frame, joints and rows, bad inputs, the page and the table."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointforest as jf

from .tables import table

REAL, NEW = table(200, 0), table(100, 1)
JOINT = jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(REAL).joint_


@pytest.fixture(scope="module")
def whole() -> jf.Fidelity:
    return jf.fidelity(JOINT, REAL, NEW, random_state=0)


def test_everything_of_a_joint(whole: jf.Fidelity) -> None:
    assert (whole.of, whole.n_table, whole.n_rows, whole.n_held_out) == ("joint", 200, 200, 100)
    assert whole.notes == ()
    drawn = jf.fidelity(JOINT.sample(200, 0, missing=True), REAL, NEW, random_state=0)
    assert drawn.marginals == whole.marginals and drawn.pairs == whole.pairs
    assert drawn.told_apart == whole.told_apart and drawn.told_apart_held_out == whole.told_apart_held_out
    assert drawn.copies == whole.copies
    assert drawn.membership.advantage == whole.membership.advantage and drawn.membership.density_advantage is None
    new = jf.fidelity(NEW, REAL, only=["marginals", "pairs"], random_state=0)
    assert new.marginals == whole.marginals_held_out and new.pairs == whole.pairs_held_out
    assert drawn.held_out is None and drawn.coverage is None
    assert drawn.notes == ("log-density and intervals: rows have none, give the joint",)
    assert whole.held_out is not None and whole.held_out.log_density == pytest.approx(JOINT.log_density(NEW).mean())


def test_fewer_held_out_rows_stand_beside_as_many_of_the_table(whole: jf.Fidelity) -> None:
    assert whole.told_apart.n_rows == 200
    assert whole.told_apart_held_out.n_rows == whole.told_apart_as_many.n_rows == 100
    assert "with 100 held-out rows" in str(whole)
    more = jf.fidelity(REAL, NEW, REAL, only=["told_apart"], random_state=0)
    assert more.told_apart_as_many == more.told_apart and more.told_apart_held_out.n_rows == 200


def test_rows_that_were_remembered_are_told_from_held_out_ones_alone() -> None:
    remembered = REAL.assign(x=np.round(REAL["x"], 6))
    shifted = NEW.assign(x=NEW["x"] + 1.0)
    found = jf.fidelity(remembered, REAL, shifted, only=["told_apart"], random_state=0)
    assert found.told_apart_as_many.score > 0.8 > 0.5 > found.told_apart_held_out.score


def test_a_figure_alone_is_that_of_all(whole: jf.Fidelity) -> None:
    figures = ("marginals", "pairs", "told_apart", "held_out", "coverage", "copies", "membership")
    for name in figures:
        one = jf.fidelity(JOINT, REAL, NEW, only=[name], random_state=0, n_jobs=1)
        assert getattr(one, name) == getattr(whole, name)
        others = set(figures) - {name}
        assert all(getattr(one, other) is None for other in others)
        assert str(one)


def test_two_columns_are_a_pair() -> None:
    two, one = ([REAL.iloc[:, :k], NEW.iloc[:, :k]] for k in (2, 1))
    assert jf.fidelity(*two, only=["pairs"], random_state=0).pairs is not None
    assert jf.fidelity(*one, only=["pairs"], random_state=0).pairs is None


def test_the_seed_decides() -> None:
    found = [jf.fidelity(JOINT, REAL, only=["marginals"], random_state=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def as_library(frame: pd.DataFrame, library: str) -> Any:
    if library == "polars":
        return pl.from_pandas(frame)
    if library == "pyarrow":
        return pa.Table.from_pandas(frame, preserve_index=False)
    return frame


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_any_frame_gives_the_same_figures(library: str) -> None:
    rows = JOINT.sample(150, 3, missing=True)
    found = jf.fidelity(as_library(rows, library), as_library(REAL, library), as_library(NEW, library), random_state=0)
    same = jf.fidelity(rows[rows.columns[::-1]], REAL, NEW, random_state=0)
    assert found.marginals == same.marginals and found.told_apart == same.told_apart and found.copies == same.copies
    frame = found.to_frame()
    assert type(frame).__module__.split(".")[0] == library
    plain = frame.to_pylist() if library == "pyarrow" else pl.DataFrame(frame).to_dicts()
    assert {row["figure"] for row in plain} >= {"told_apart", "shape", "distance", "trend", "similarity", "copies"}
    distance = {row["column"]: row["value"] for row in plain if row["figure"] == "distance"}
    assert found.marginals is not None and distance == found.marginals.distance


def test_numpy_arrays() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    found = jf.fidelity(X[:30], X[30:], random_state=0)
    assert found.pairs is not None and found.pairs.n_pairs == 3
    assert found.to_frame().shape[1] == 4


def test_bad_inputs_are_named() -> None:
    with pytest.raises(ValueError, match="columns that the model does not have: 'z'"):
        jf.fidelity(REAL.assign(z=1), REAL)
    with pytest.raises(ValueError, match="rows: there is no column 'count'; did you mean 'counts'"):
        jf.fidelity(REAL.drop(columns="count").assign(counts=1), REAL)
    with pytest.raises(ValueError, match="holdout: there is no column 'x'"):
        jf.fidelity(REAL, REAL, NEW.drop(columns="x"))
    with pytest.raises(ValueError, match="rows: the table has no rows"):
        jf.fidelity(REAL.iloc[:0], REAL)
    with pytest.raises(ValueError, match="no rows"):
        jf.fidelity(REAL, REAL.iloc[:0])
    with pytest.raises(ValueError, match=r"only must be one of 'marginals'.*got 'shape'"):
        jf.fidelity(REAL, REAL, only=["shape"])
    with pytest.raises(ValueError, match="column 'x'"):
        jf.fidelity(REAL.assign(x=np.inf), REAL)
    with pytest.raises(TypeError, match="give its joint_"):
        jf.fidelity(jf.JointTree(), REAL)
    with pytest.raises(TypeError, match="pandas, polars or pyarrow"):
        jf.fidelity([1, 2], REAL)
    with pytest.raises(ValueError, match="random_state"):
        jf.fidelity(REAL, REAL, random_state=-1)


def test_a_column_may_have_any_name() -> None:
    frame = REAL[["x", "y"]].rename(columns={"x": "joint_", "y": "fit"})
    assert jf.fidelity(frame, frame, only=["marginals"]).marginals.shape == 1.0


def test_what_cannot_be_computed_is_left_out_and_said() -> None:
    one = REAL[["kind"]]
    found = jf.fidelity(one.iloc[:5], one, NEW[["kind"]].iloc[:5])
    assert found.pairs is None and found.told_apart is None and found.marginals is not None
    assert "pairs: the table has one column" in found.notes
    assert "told apart: needs 10 rows of each, there are 5" in found.notes
    assert "kind" in str(found) and str(found).startswith("Shape")
    assert "no held-out rows" in str(jf.fidelity(REAL, REAL, only=["copies"]))
    row = jf.fidelity(REAL.iloc[:1], REAL.iloc[:1].dropna(axis=1))
    assert row.marginals is not None and row.marginals.shape == 1.0 and row.copies is not None


def test_all_missing_constant_and_extreme_columns() -> None:
    frame = pd.DataFrame({"one": np.ones(40), "huge": np.linspace(-1e300, 1e300, 40), "tiny": np.arange(40) * 1e-300})
    rows = frame.assign(huge=np.nan)
    found = jf.fidelity(rows, frame, random_state=0)
    assert found.marginals is not None and found.marginals.distance["huge"] == 1.0
    assert found.pairs is not None and found.pairs.correlation == {("huge", "tiny"): (pytest.approx(1.0), 0.0)}
    assert found.copies is not None and found.copies.share == 0.0 and np.isfinite(found.copies.distance).all()


def test_the_page_says_the_worst(whole: jf.Fidelity) -> None:
    page = str(whole)
    assert page == repr(whole)
    assert page.startswith(
        f"Two-sample test of the joint's rows and the table's (XGBoost): score {whole.told_apart.score:.2f}"
    )
    assert whole.headline == page.split("\n")[0]
    for title in ("Columns that differ most", "Pairs that differ most", "What the classifier used", "Copies"):
        assert title in page
    assert next(iter(whole.marginals.distance)) in page and ", ".join(next(iter(whole.pairs.similarity))) in page


class Tags(HTMLParser):
    """Sees that every tag is closed, and gathers the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_well_formed_small_and_escaped() -> None:
    frame = REAL.rename(columns={"x": "<script>x", "y": "a & b"})
    page = jf.fidelity(frame, frame, random_state=0)._repr_html_()
    tags = Tags()
    tags.feed(page)
    assert not tags.open and "<script" not in page and "<script>x" in tags.text and "a & b" in tags.text
    assert len(page) < 20_000 and "http" not in page and "color" not in page


def test_marginals_alone_need_no_classifier() -> None:
    code = (
        "import sys, numpy as np, jointforest as jf\n"
        "X = np.random.default_rng(0).normal(size=(30, 2))\n"
        "jf.fidelity(X, X, only=['marginals', 'pairs', 'copies'])\n"
        "print(sorted({'xgboost', 'sklearn', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_censored_times_are_not_compared() -> None:
    rng = np.random.default_rng(0)
    months, until = rng.exponential(9.0, 200).round(1), rng.uniform(0.0, 20.0, 200).round(1)
    frame = pd.DataFrame(
        {"months": np.minimum(months, until), "died": months <= until, "plan": rng.integers(0, 2, 200)}
    )
    joint = (
        jf.HiddenTreeForest(n_states=4, kinds={"months": jf.censored(event="died")}, random_state=0).fit(frame).joint_
    )
    with pytest.raises(ValueError, match=r"rows: column 'died' has no known cell, .* jf.censored"):
        jf.fidelity(joint.sample(200, random_state=0), frame)
    found = jf.fidelity(joint, frame, only=["marginals"], random_state=0)
    assert found.notes[0].startswith("'months' is not compared: it has ")
    assert set(found.marginals.distance) == {"plan"}
