"""Unusual files and frames through all steps: what commands write, what they say and how often, and what is drawn."""

from __future__ import annotations

import codecs
import datetime as dt
import io
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import jointforest as jf
from jointforest import cli

from .data.odd_files import workbook


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> tuple[int, bytes, str]:
    """The exit code of a command, and what it writes to standard output and standard error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    monkeypatch.setattr(sys, "argv", ["jointforest", *map(str, words)])
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with warnings.catch_warnings(), pytest.raises(SystemExit) as stop:
        cli.main()
    return int(str(stop.value.code)), out.buffer.getvalue(), err.buffer.getvalue().decode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of semicolons, lines that end in CRLF and a mark of UTF-8, with a hole; and its joint."""
    rows = [f"{'NSE'[k % 3]};{k % 7}.50;{k % 2};{k % 28 + 1:02d}/11/2022;{k % 3 == 0}" for k in range(120)]
    rows[5] = ";".join(["", *rows[5].split(";")[1:]])
    text = "\r\n".join(["region;x;has_x;day;ok", *rows]) + "\r\n"
    (tmp_path / "t.csv").write_bytes(codecs.BOM_UTF8 + text.encode())
    model = tmp_path / "m.joint"
    words = ("fit", tmp_path / "t.csv", "-o", model, "--learner", "adversarial", "--trees", 2, "--seed", 0)
    assert run(monkeypatch, *words)[0] == 0
    return tmp_path


def test_answers_have_the_form_of_the_table(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, table = home / "m.joint", home / "t.csv"
    start = codecs.BOM_UTF8 + b"region;x;has_x;day;ok\r\n"
    _, drawn, _ = run(monkeypatch, "sample", model, "-n", 30, "--seed", 0)
    assert drawn.startswith(start) and drawn.count(b"\r\n") == drawn.count(b"\n") == 31
    frame = pd.read_csv(io.BytesIO(drawn), sep=";", dtype=str, encoding="utf-8-sig")
    assert frame["x"].str.fullmatch(r"-?\d+\.50").all() and set(frame["ok"]) == {"True", "False"}
    assert frame["day"].str.fullmatch(r"\d\d/11/2022").all()
    known, filled = table.read_bytes().split(b"\r\n"), run(monkeypatch, "impute", model, table)[1].split(b"\r\n")
    assert [a == b for a, b in zip(known, filled, strict=True)] == [k != 6 for k in range(122)]
    _, predicted, _ = run(monkeypatch, "predict", model, table, "--target", "region", "--proba")
    assert predicted.startswith(codecs.BOM_UTF8 + b"region=E;region=N;region=S\r\n")
    _, scores, _ = run(monkeypatch, "score", model, table)
    assert scores.startswith(codecs.BOM_UTF8 + b"log_density\r\n")
    assert run(monkeypatch, "sample", model, "-n", 9, "-o", home / "s.tsv")[0] == 0
    assert (home / "s.tsv").read_bytes().startswith(start.replace(b";", b"\t"))
    monkeypatch.setattr("jointforest.data.batches.BATCH", 10)  # and in batches
    assert run(monkeypatch, "sample", model, "-n", 30, "--seed", 0, "-o", home / "s.csv")[0] == 0
    assert (home / "s.csv").read_bytes() == drawn


def test_answers_about_a_file_of_another_form_have_that_form(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "u.csv").write_text("region,x\nN,1.5\n,2.5\n")
    filled = run(monkeypatch, "impute", home / "m.joint", home / "u.csv")[1].decode()
    assert filled.startswith("region,x,has_x,day,ok\nN,1.5,")
    parquet = home / "u.parquet"
    pa.parquet.write_table(pa.table({"region": ["N", None]}), parquet)
    assert run(monkeypatch, "impute", home / "m.joint", parquet)[1].startswith(codecs.BOM_UTF8 + b"region;x;")


def test_a_file_is_doubted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{'NSE'[k % 3]},{k % 7},caf\xe9" for k in range(60)]
    (tmp_path / "t.csv").write_bytes("\n".join(["N,5,kind", *rows]).encode("cp1252"))
    words = ("-o", tmp_path / "m.joint", "--learner", "adversarial", "--trees", 2)
    _, _, told = run(monkeypatch, "fit", tmp_path / "t.csv", *words)
    assert told.count("looks like cells") == told.count("read as Windows-1252") == 1
    for words in (("score",), ("impute",), ("predict", "--target", "N")):
        code, _, told = run(monkeypatch, words[0], tmp_path / "m.joint", tmp_path / "t.csv", *words[1:])
        assert code == 0 and "warning" not in told


def test_a_query_warns_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, told = run(monkeypatch, "query", home / "m.joint", "P(region | x > 1e6)")
    assert code == 0 and told.count("warning") == 1


def test_forms_that_are_said_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{'NSE'[k % 3]} {k % 7}.5" for k in range(60)]
    (tmp_path / "t.txt").write_text("\n".join(["% by hand", "by shop", *rows]) + "\n")
    model, said = tmp_path / "m.joint", ("--header", "none", "--comment", "%", "--skip", 1, "--sep", "space")
    words = ("fit", tmp_path / "t.txt", "-o", model, "--learner", "adversarial", "--trees", 2, *said)
    assert run(monkeypatch, *words)[0] == 0
    assert jf.load(model).columns == ("x0", "x1")
    _, drawn, _ = run(monkeypatch, "sample", model, "-n", 5)
    assert all(line.split(" ")[0] in ("N", "S", "E") for line in drawn.decode().splitlines())
    (tmp_path / "u.txt").write_text("% more\nN 1.5\nS 2.5\n")
    assert len(run(monkeypatch, "score", model, tmp_path / "u.txt")[1].splitlines()) == 2
    (tmp_path / "v.txt").write_text("x1 x0\n1.5 N\n")
    assert len(run(monkeypatch, "score", model, tmp_path / "v.txt", "--header", "first")[1].splitlines()) == 2


def test_workbooks_and_json_are_learned_and_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("python_calamine")
    rows: list[list[Any]] = [
        ["region", "n", "day"],
        *([["N", "S"][k % 2], k % 5, dt.datetime(2024, 1, 1 + k % 9)] for k in range(40)),
    ]
    rows[3][0] = None
    (tmp_path / "t.xlsx").write_bytes(workbook(rows))
    names = rows[0]
    pd.DataFrame(rows[1:], columns=names).to_json(tmp_path / "t.jsonl", orient="records", lines=True, date_format="iso")
    for table in (tmp_path / "t.xlsx", tmp_path / "t.jsonl"):
        model = tmp_path / "m.joint"
        code, _, told = run(monkeypatch, "fit", table, "-o", model, "--learner", "adversarial", "--trees", 2)
        assert code == 0 and "40 rows, 3 columns" in told
        lines = run(monkeypatch, "impute", model, table)[1].decode().splitlines()
        assert (
            lines[0] == "region,n,day" and lines[1].startswith("N,0,2024-01-01") and lines[3].startswith(("N,2", "S,2"))
        )
    refused = run(monkeypatch, "sample", model, "-n", 3, "-o", tmp_path / "s.xlsx")
    assert refused[0] == 1 and "answers are written as .csv or .parquet" in refused[2]


def test_a_workbook_says_what_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.xlsx").write_bytes(workbook([["a"], [1]]))
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    code, _, told = run(monkeypatch, "inspect", tmp_path / "t.xlsx")
    assert code == 1 and "pip install 'jointforest[excel]'" in told


def test_inspect_shows_columns_beside_one_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": ["x", "y"] * 9, "tags": [[1]] * 18, "id": [f"k{k}" for k in range(18)]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    code, out, told = run(monkeypatch, "inspect", tmp_path / "t.parquet")
    lines = out.decode().splitlines()
    assert code == 1 and told.startswith("error: column 'tags': list<") and "--drop tags" in told
    assert lines[0] == "18 rows, as far as they can be read" and lines[1] == "a     categorical  2 levels: x, y"
    assert lines[2].split() == ["tags", "not", "read"] and "list<" in lines[3]
    assert run(monkeypatch, "inspect", tmp_path / "t.parquet", "--drop", "tags")[0] == 0


def test_an_index_of_pandas_is_no_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(40) % 7, "y": np.arange(40) % 5})
    frame[frame["x"] > 1].to_parquet(tmp_path / "t.parquet", engine="pyarrow")
    table = pa.parquet.read_table(tmp_path / "t.parquet")
    assert "__index_level_0__" in table.column_names
    joint = jf.JointTree(random_state=0).fit(table).joint_
    assert joint.columns == ("x", "y")
    assert joint.impute(table)["__index_level_0__"].equals(table["__index_level_0__"])
    drawn = joint.sample(3, random_state=0)["__index_level_0__"].to_pylist()
    assert drawn == [40, 41, 42]


def test_remarks_on_numbers_of_rows_and_subjects() -> None:
    frame = pd.DataFrame({"count": range(1, 61), "patient_id": np.arange(60) // 2 + 500, "store_id": np.arange(60) % 4})
    notes = {column.name: column.notes for column in jf.JointTree(random_state=0).fit(frame).joint_.reading.columns}
    assert "--kinds count=identifier" in notes["count"][0] and "each whole number once" in notes["count"][0]
    assert (
        notes["patient_id"][0].startswith("30 distinct values in 60 rows")
        and "--group patient_id" in notes["patient_id"][0]
    )
    assert notes["store_id"] == ()
    said = jf.JointTree(random_state=0, kinds={"count": "integer", "patient_id": "categorical"}).fit(frame).joint_
    assert not said.reading.notice.count("identifier")


@pytest.mark.parametrize("kind", ["integer", "categorical", "boolean"])
def test_a_column_of_0_and_1_is_a_condition(kind: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"has_x": rng.integers(0, 2, 300), "n": rng.integers(0, 9, 300)})
    joint = jf.JointTree(random_state=0, kinds={"has_x": kind}).fit(frame).joint_
    share = frame["has_x"].mean()
    assert joint.query("P(has_x)") == pytest.approx({0: 1 - share, 1: share}, abs=1e-4)
    assert joint.query("P(has_x, n >= 0)") == pytest.approx(share, abs=1e-4)
    assert joint.query("P(not has_x)") == pytest.approx(1 - share, abs=1e-4)
    assert joint.query("P(n < 4 | has_x)") == pytest.approx(joint.probability("n < 4", {"has_x": True}))
    with pytest.raises(
        ValueError, match="only a column of true and false, or of 0 and 1, stands alone; write n = value"
    ):
        joint.query("P(n = 1 and n)")


def test_columns_of_too_many_levels_are_not_left_empty_in_silence() -> None:
    rng = np.random.default_rng(0)
    name = np.array([f"n{k}" for k in rng.permutation(12_000)])[np.concatenate([np.arange(12_000), np.arange(3_000)])]
    for cells in (name, pd.Categorical(name)):
        frame = pd.DataFrame({"name": cells, "x": rng.integers(0, 5, 15_000)})
        joint = jf.JointTree(random_state=0).fit(frame).joint_
        assert "has 12,000 levels, too many to learn" in joint.reading.notice
        with pytest.warns(UserWarning, match="drawn rows have no value in columns .*'name' has 12,000 levels"):
            drawn = joint.sample(3, random_state=0)
        assert drawn["name"].isna().all()
        pd.testing.assert_series_equal(
            joint.impute(frame.head())["name"].astype(object), frame["name"].head().astype(object)
        )
        with pytest.raises(ValueError, match="12000 levels, at most 10000"):
            jf.JointTree(kinds={"name": "categorical"}).fit(frame)


def test_objects_of_texts_and_numbers_are_learned() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    title = np.array(["Up", 300, "Alien", 9.5], dtype=object)[np.where(kind == 1, 0, rng.integers(0, 4, 400))]
    price = np.array([1.5, 2, "n/a", "4.5"], dtype=object)[rng.integers(0, 4, 400)]
    frame = pd.DataFrame({"kind": kind, "title": title, "price": price, "tags": [[1], []] * 200})
    with pytest.raises(TypeError, match=r"'tags'.*400 list.*kinds=\{'tags': 'ignored'\}"):
        jf.JointTree().fit(frame)
    joint = jf.JointTree(random_state=0, kinds={"tags": "ignored"}).fit(frame).joint_
    assert joint.kinds == {"kind": "integer", "title": "categorical", "price": "rounded"}
    assert joint.query("P(title = 'Up' | kind = 1)") > 0.99
    assert joint.query("P(title = 300 | kind = 0)") == pytest.approx((title[kind == 0] == 300).mean(), abs=0.01)
    drawn = joint.sample(300, random_state=0)
    assert set(drawn["title"]) == {"Up", 300, "Alien", 9.5} and set(drawn["price"]) <= {1.5, 2, 4.5, 3, 2.5, 3.5, 4}
    filled = joint.impute(frame)
    is_known = frame["price"] != "n/a"
    assert filled["price"][is_known].tolist() == frame["price"][is_known].tolist()
    assert filled["tags"].tolist() == frame["tags"].tolist()
    in_batches = jf.AdversarialForest(2, random_state=0, kinds={"tags": "ignored"}).fit_batches(
        lambda: iter([frame[["kind", "title", "tags"]].iloc[:200], frame[["kind", "title", "tags"]].iloc[200:]])
    )
    assert set(in_batches.joint_.levels("title")) == {"Up", 300, "Alien", 9.5}


def test_spans_and_periods_are_evidence_and_answers() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 300)
    frame = pd.DataFrame(
        {
            "group": group,
            "wait": pd.to_timedelta(5 * (rng.integers(0, 10, 300) + 20 * group), unit="min"),
            "start": [dt.time(8 + 6 * g, int(m)) for g, m in zip(group, rng.integers(0, 60, 300), strict=True)],
            "month": pd.period_range("2020-01", periods=24, freq="M")[rng.integers(0, 12, 300) + 12 * group],
        }
    )
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    for evidence in (
        {"wait": pd.Timedelta(minutes=105)},
        {"wait": np.timedelta64(105, "m")},
        {"wait": 6300},
        {"start": dt.time(14, 30)},
        {"start": "14:30"},
        {"month": pd.Period("2021-03", "M")},
        {"month": "2021-03-01"},
    ):
        assert joint.probability("group = 1", evidence) > 0.99, evidence
    assert joint.query("P(group = 1 | start >= '13:00')") > 0.99
    assert joint.query("E(wait | group = 0)") == pytest.approx(
        frame["wait"][group == 0].dt.total_seconds().mean(), rel=0.02
    )
    notes = {column.name: column.notes for column in joint.reading.columns}
    assert {column.name: column.about for column in joint.reading.columns}[
        "wait"
    ] == "0 days 00:00:00 to 0 days 02:25:00"
    assert "durations, counted in seconds" in notes["wait"] and "times of day, counted in seconds" in notes["start"]
    drawn = joint.sample(500, random_state=0)
    pd.testing.assert_series_equal(drawn.dtypes, frame.dtypes)
    assert drawn["month"].between(frame["month"].min(), frame["month"].max()).all()
    assert all(cell.second == 0 for cell in drawn["start"])
    # The ends of the column are open: about one draw in n + 1 lies beyond each of them.
    assert np.mean([8 <= cell.hour < 15 for cell in drawn["start"]]) >= 1.0 - 4.0 / (len(frame) + 1)
    beyond = pd.DataFrame({"wait": [pd.Timedelta("1h 7s"), pd.NaT], "start": [None, dt.time(23, 59, 59)]})
    filled = joint.impute(beyond)
    assert filled["wait"][0] == pd.Timedelta("1h 7s") and filled["start"][1] == dt.time(23, 59, 59)
    assert not filled.isna().any(axis=None)
