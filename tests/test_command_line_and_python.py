"""The command line and Python learn the same joint of the same file, and it answers in the frames of the user."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import jointforest as jf
from jointforest.cli import app
from jointforest.models.file import contents


def _orders(n: int, seed: int) -> pd.DataFrame:
    """Text as a file has it: amounts, percentages, dates, levels, a code with zeros, missing cells."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    frame = pd.DataFrame(
        {
            "order_id": [f"O-{k:05d}" for k in range(n)],
            "amount": [f"${x:,.2f}" for x in rng.gamma(2.0, 900.0, n)],
            "rate": [f"{x}%" for x in rng.integers(0, 40, n)],
            "day": days.strftime("%d/%m/%Y"),
            "zip": [f"{k:05d}" for k in rng.integers(1, 60, n)],
            "region": rng.choice(["North", "South", "East"], n),
            "pieces": rng.integers(1, 9, n).astype(str),
            "weight": rng.normal(5.0, 1.0, n).round(4).astype(str),
            "empty": "",
        }
    )
    frame.loc[::11, "region"] = ""
    frame.loc[::13, "pieces"] = ""
    return frame


def _command(*words: str) -> None:
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output


def _fit_both(folder: Path, frame: Any, *, learner: str = "") -> tuple[jf.Joint, jf.Joint]:
    """The joint of a file, learned by the command line and in Python."""
    path = folder / "orders.csv"
    frame.to_csv(path, index=False)
    which = ("--learner", learner) if learner else ("--budget", "fast")
    _command("fit", str(path), "-o", str(folder / "m.joint"), "--seed", "3", *which)
    table = pd.read_csv(path, dtype={"zip": str, "pieces": "float"})
    learned = {
        "": lambda: jf.fit(table, budget="fast", random_state=3),
        "adversarial": lambda: jf.AdversarialForest(random_state=3).fit(table).joint_,
        "hidden": lambda: jf.HiddenTreeForest(random_state=3).fit(table).joint_,
    }[learner]()
    return jf.load(folder / "m.joint"), learned


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("learner", ["", "adversarial", "hidden"])
def test_both_learn_the_same_joint(tmp_path: Path, learner: str) -> None:
    by_command, by_python = _fit_both(tmp_path, _orders(400, 0), learner=learner)
    (about, arrays), (other, expected) = contents(by_command.distribution), contents(by_python.distribution)
    assert about["components"] == other["components"] and arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name])
    for mine, its in zip(by_command.schema.columns, by_python.schema.columns, strict=True):
        for field in ("name", "kind", "step", "origin", "atoms", "levels", "n_observed"):
            assert getattr(mine, field) == getattr(its, field), field
    assert by_command.reading == by_python.reading
    drawn, theirs = (joint.sample(50, random_state=1) for joint in (by_command, by_python))
    assert type(drawn) is pd.DataFrame
    assert drawn.pop("empty").isna().all() and theirs.pop("empty").isna().all()
    pd.testing.assert_frame_equal(drawn, theirs, check_dtype=False)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_answers_come_in_the_library_that_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4] * 30, "b": ["x", "y", "z"] * 40, "c": np.linspace(0, 1, 120)})
    frame["d"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(120) % 9, unit="D")
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    _command("fit", str(tmp_path / "t.parquet"), "-o", str(tmp_path / "m.joint"), "--learner", "hidden", "--seed", "0")
    joint = jf.load(tmp_path / "m.joint")
    by_pandas = joint.sample(30, random_state=0)
    assert {name: kind.kind for name, kind in by_pandas.dtypes.items()} == {"a": "i", "b": "O", "c": "f", "d": "M"} or (
        str(by_pandas["b"].dtype) == "str"
    )
    assert type(joint.given(by_pandas[["a"]].head(2)).sample(1, random_state=0)) is pd.DataFrame
    filled = joint.impute(by_pandas.mask(np.eye(30, 4).astype(bool)))
    assert type(filled) is pd.DataFrame and not filled.isna().any().any()
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else find(name))
    by_polars = joint.sample(30, random_state=0)
    assert type(by_polars) is pl.DataFrame
    assert by_polars["b"].to_list() == by_pandas["b"].tolist() and by_polars["a"].to_list() == by_pandas["a"].tolist()
    joint.save(tmp_path / "again.joint")
    assert (tmp_path / "again.joint").read_bytes() == (tmp_path / "m.joint").read_bytes()
