"""Labels with white space at their ends: matched without it, and written as the table writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointforest as jf
from jointforest.cli import app

PADS = ["{}  ", "  {}", "\t{}", "{}\n", "\u00a0{}\u2009", "{}"]
RNG = np.random.default_rng(0)
BARE = RNG.choice(["GOLD", "SILVER", "BRONZE"], 200, p=[0.5, 0.3, 0.2])
NUMBERS = np.round(3.0 * (BARE == "GOLD") + RNG.normal(size=200), 2)


def table(labels: Any, library: str = "pandas") -> Any:
    frame = pd.DataFrame({"tier": np.array(labels, dtype=object), "x": NUMBERS})
    if library == "category":
        return frame.astype({"tier": "category"})
    if library == "numpy":
        return frame.to_numpy(dtype=object)
    return frame if library == "pandas" else {"polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[library](frame)


def joint_of(frame: Any) -> jf.Joint:
    return jf.JointTree(random_state=0).fit(frame).joint_


@pytest.mark.parametrize("library", ["pandas", "category", "polars", "pyarrow", "numpy"])
@pytest.mark.parametrize("pad", PADS)
def test_answers_are_those_of_bare_labels_and_rows_keep_their_spelling(pad: str, library: str) -> None:
    labels = [pad.format(label) for label in BARE]
    frame, bare = table(labels, library), table(BARE, library)
    joint, expected = joint_of(frame), joint_of(bare)
    name = "x0" if library == "numpy" else "tier"
    x = "x1" if library == "numpy" else "x"
    assert joint.levels(name) == tuple(sorted(set(labels)))
    np.testing.assert_allclose(joint.log_density(frame), expected.log_density(bare))
    np.testing.assert_allclose(joint.log_density(bare), expected.log_density(bare))
    for asked in ("GOLD", "GOLD  ", "\tGOLD", pad.format("GOLD")):
        assert joint.given({name: asked}).mean(x) == pytest.approx(expected.given({name: "GOLD"}).mean(x))
        assert joint.query(f"P({name} = '{asked}')") == pytest.approx(np.mean(BARE == "GOLD"), abs=0.02)
        assert joint.given({name: [asked, "SILVER"]}).probability({x: jf.between(0, 9)}) > 0.0
    drawn = joint.sample(50, random_state=0)
    cells = drawn[:, 0] if library == "numpy" else drawn["tier"].to_pylist() if library == "pyarrow" else drawn["tier"]
    assert set(cells) <= set(labels)


@pytest.mark.parametrize("pad", PADS)
def test_targets_keep_their_labels(pad: str) -> None:
    X, y = pd.DataFrame({"x": NUMBERS}), pd.Series([pad.format(label) for label in BARE], name="tier")
    forest = jf.GenerativeForestClassifier(10, random_state=0).fit(X, y)
    assert forest.classes_.tolist() == sorted(set(y))
    assert forest.score(X, y) == jf.GenerativeForestClassifier(10, random_state=0).fit(X, BARE).score(X, BARE) > 0.5


def test_the_most_frequent_spelling_is_the_level_and_no_known_cell_is_rewritten() -> None:
    labels = np.where(np.arange(200) % 3 == 0, np.char.add(BARE, "  "), BARE).astype(object)
    frame = table(labels)
    joint = joint_of(frame)
    assert joint.levels("tier") == ("BRONZE", "GOLD", "SILVER")
    np.testing.assert_array_equal(joint.log_density(frame), joint_of(table(BARE)).log_density(table(BARE)))
    holes = frame.copy()
    holes.loc[:9, "tier"] = None
    for filled in (joint.impute(holes), *joint.impute(holes, "sample", 2, random_state=0)):
        assert filled["tier"][10:].tolist() == labels[10:].tolist()
        assert set(filled["tier"][:10]) <= {"BRONZE", "GOLD", "SILVER"}
    rarely = table(np.where(np.arange(200) % 3 > 0, np.char.add(BARE, "  "), BARE))
    assert joint_of(rarely).levels("tier") == ("BRONZE  ", "GOLD  ", "SILVER  ")


def test_declared_categories_that_differ_by_spaces_stay_apart() -> None:
    frame = table(np.where(np.arange(200) % 2, " GOLD", BARE), "category")
    joint = joint_of(frame)
    assert joint.levels("tier") == (" GOLD", "BRONZE", "GOLD", "SILVER")
    shares = joint.given().proba("tier")
    assert shares[" GOLD"] == pytest.approx(0.5, abs=0.02) and joint.query("P(tier = ' GOLD')") == pytest.approx(
        shares[" GOLD"]
    )
    assert joint.query("P(tier = GOLD)") == pytest.approx(shares["GOLD"])
    with pytest.raises(ValueError, match="'GOLD\\\\t' is not one of"):
        joint_of(table(np.where(np.arange(200) % 2, " GOLD", "GOLD "), "category")).given(tier="GOLD\t")


def test_files_are_filled_in_their_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    rows = [f"{label:<8},{x}" for label, x in zip(BARE, NUMBERS, strict=True)]
    Path("t.csv").write_text("\n".join(["tier,x", *rows, ",3.0", ""]))
    call = CliRunner().invoke
    assert (
        call(
            app, ["fit", "t.csv", "-o", "t.joint", "--learner", "hidden", "--trees", "1", "--seed", "0", "--jobs", "1"]
        ).exit_code
        == 0
    )
    assert call(app, ["impute", "t.joint", "t.csv", "-o", "filled.csv", "--jobs", "1"]).exit_code == 0
    assert Path("filled.csv").read_text().splitlines() == ["tier,x", *rows, "GOLD    ,3.0"]


@pytest.mark.parametrize("as_array", [False, True])
def test_errors_of_targets_name_the_labels(as_array: bool) -> None:
    X = pd.DataFrame({"x": NUMBERS[:30]})
    for labels, words in (
        (["#N/A", "ok", "bad"], "Input y contains NaN: 10 of 30 targets are missing, such as '#N/A'; leave those rows"),
        (["a", " a", "b"], "the labels ' a' and 'a' differ by white space only; write them alike, such as y.str.strip"),
    ):
        y = np.array(labels * 10) if as_array else labels * 10
        for estimator in (jf.GenerativeForestClassifier(), jf.JointClassifier()):
            with pytest.raises(ValueError, match=words):
                estimator.fit(X, y)
