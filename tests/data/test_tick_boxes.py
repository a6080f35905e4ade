"""Columns with one value and missing cells: ticked, or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointforest as jf
from jointforest.cli import app
from jointforest.data.frames import decode, encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema_check import schema_from_dict

N = 400
RNG = np.random.default_rng(0)
SEEN = RNG.random(N) < 0.7
X = np.round(RNG.normal(size=N) + 2.0 * SEEN, 2)
FRAME = pd.DataFrame(
    {
        "film": np.where(SEEN, "The Empire  ", None),
        "one": np.where(SEEN, 1.0, np.nan),
        "true": pd.Series(np.where(SEEN, True, None), dtype=object),
        "x": X,
    }
)
FRAME["category"], FRAME["Int"], FRAME["boolean"] = (
    FRAME["film"].astype("category"),
    FRAME["one"].astype("Int64"),
    FRAME["true"].astype("boolean"),
)
TICKS = [name for name in FRAME if name != "x"]


def as_library(frame: pd.DataFrame, library: str) -> Any:
    if library == "numpy":
        return frame[["film", "x"]].to_numpy(dtype=object)
    make = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
    return make[library](frame)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_ticks_are_counted_and_come_back(library: str) -> None:
    frame = as_library(FRAME, library)
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    names, x = (["x0"], "x1") if library == "numpy" else (TICKS, "x")
    for name in names:
        assert joint.kinds[name] == "boolean" and joint.schema[name].n_observed == N
        assert joint.given().proba(name)[True] == pytest.approx(SEEN.mean(), abs=0.01)
        assert joint.query(f"P({name} is missing)") == pytest.approx(1.0 - SEEN.mean(), abs=0.01)
        for said, rows in ((True, SEEN), (False, ~SEEN), (jf.Missing(), ~SEEN), (jf.Not(jf.Missing()), SEEN)):
            assert joint.given({name: said}).mean(x) == pytest.approx(X[rows].mean(), abs=0.05)
    for said in ("The Empire", "The Empire  "):
        assert joint.query(f"P({names[0]} = '{said}')") == pytest.approx(SEEN.mean(), abs=0.01)
    cells, unseen = encode(joint.schema, frame)
    np.testing.assert_array_equal(cells[:, joint.schema.index(names[0])], SEEN)
    assert not unseen.any()
    again = decode(joint.schema, cells)
    filled, drawn = joint.impute(frame), joint.sample(300, random_state=0)
    if library == "pandas":
        for one in (again, filled):
            pd.testing.assert_frame_equal(one, FRAME)
        assert drawn.dtypes.tolist() == FRAME.dtypes.tolist()
        assert drawn["film"].notna().mean() == pytest.approx(SEEN.mean(), abs=0.1)
        assert set(drawn["film"].dropna()) == {"The Empire  "}
    elif library == "polars":
        assert again.equals(frame) and filled.equals(frame) and drawn.schema == frame.schema
    elif library == "pyarrow":
        assert again.equals(frame) and filled.equals(frame) and drawn.schema.equals(frame.schema)
    else:
        assert [row[0] for row in filled.tolist()] == FRAME["film"].tolist()
    assert schema_from_dict(json.loads(json.dumps(joint.schema.to_dict()))) == joint.schema


def test_batches_read_ticks_alike() -> None:
    one = jf.HiddenTreeForest(1, n_states=4, random_state=0)
    joint = one.fit_batches(lambda: [FRAME[:150], FRAME[150:]]).joint_
    assert joint.schema["film"] == infer_schema(FRAME)["film"]
    assert joint.query("P(film = 'The Empire')") == pytest.approx(SEEN.mean(), abs=0.01)


def column_of(cells: Any, **kinds: str) -> Any:
    return infer_schema(pd.DataFrame({"c": cells, "y": range(len(cells))}), kinds).columns[0]


def test_what_is_no_tick_box() -> None:
    assert column_of(["a"] * 100).kind == "categorical"  # no cell is missing
    assert column_of(["a"] * 4 + [None] * 96).kind == "categorical"  # few cells are known
    assert column_of(["USD"] * 98 + [None] * 2).kind == "categorical"  # hardly one is missing
    assert column_of(["x"] * 98 + [None] * 2).kind == "boolean"  # as ticks are written
    assert column_of([2.5] * 50 + [None] * 50).kind == "rounded"
    assert column_of(["a"] * 50 + ["b"] + [None] * 49).kind == "categorical"
    assert column_of(["a"] * 50 + [" a"] + [None] * 49).kind == "boolean"
    assert column_of(["a"] * 50 + [None] * 50, c="categorical").levels == ("a",)
    assert infer_schema(np.column_stack([np.r_[np.ones(50), np.full(50, np.nan)], np.arange(100)]))["x0"].step == 1.0


def test_another_text_is_an_error() -> None:
    joint = jf.JointTree(random_state=0).fit(FRAME).joint_
    for name, cell in (("film", "no"), ("one", 2.0)):
        with pytest.raises(ValueError, match=f"'{name}': expected .* or a missing cell, got .*kinds=.*'categorical'"):
            joint.log_density(FRAME.assign(**{name: cell}))
    assert joint.log_density(FRAME.assign(true=SEEN)) == pytest.approx(joint.log_density(FRAME))


def test_histories_have_ticks() -> None:
    visits = pd.DataFrame({"who": np.repeat(np.arange(80), 5), "tick": FRAME["film"], "x": X})
    joint = jf.HistoryForest(random_state=0).fit(visits, group="who").joint_
    assert joint.impute(visits)["tick"].equals(visits["tick"])
    assert joint.sample(300, random_state=0)["tick"].notna().mean() == pytest.approx(SEEN.mean(), abs=0.06)


def test_files_keep_ticks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    FRAME[["film", "one", "x"]].to_csv("t.csv", index=False)
    holes = FRAME[["film", "one", "x"]].astype({"x": object})
    holes.loc[3, "x"] = ""
    holes.to_csv("holes.csv", index=False)
    call = CliRunner().invoke
    learn = ["fit", "t.csv", "-o", "t.joint", "--learner", "hidden", "--trees", "1", "--seed", "0", "--jobs", "1"]
    said = call(app, learn)
    assert said.exit_code == 0 and "'film': a tick box: 'The Empire  ' is True, and a missing cell" in said.output
    assert call(app, ["impute", "t.joint", "holes.csv", "-o", "filled.csv", "--jobs", "1"]).exit_code == 0
    filled, given = (Path(name).read_text().splitlines() for name in ("filled.csv", "holes.csv"))
    assert filled[:4] + filled[5:] == given[:4] + given[5:] and filled[4].startswith(given[4]) and filled[4] != given[4]
