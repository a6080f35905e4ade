"""What is written is what was read: random tables, as files of random forms and as frames of every library."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from jointforest.data.csv_files import CsvForm, keep_texts
from jointforest.data.frames import decode, encode, fill
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema_check import schema_from_dict
from jointforest.data.table_files import find_form, read_table, read_with_texts, write_table, write_texts

N = 40


def texts(choices: list[str]) -> Callable[[np.random.Generator], list[str]]:
    return lambda rng: [choices[k] for k in rng.integers(0, len(choices), N)]


def numbers(form: str, low: float, high: float) -> Callable[[np.random.Generator], list[str]]:
    def cells(rng: np.random.Generator) -> list[str]:
        return [form.format(x) for x in rng.uniform(low, high, N)]

    return cells


def days(pattern: str) -> Callable[[np.random.Generator], list[str]]:
    start = dt.datetime(2021, 1, 13, 9, 30)  # a day that is no month, so that the order of both is sure
    return lambda rng: [
        (start + dt.timedelta(days=int(k), minutes=int(k))).strftime(pattern) for k in [0, *rng.integers(0, 700, N - 1)]
    ]


def money(rng: np.random.Generator) -> list[str]:
    return [f"${x:,.2f}" for x in rng.uniform(900, 90_000, N)]


def european(rng: np.random.Generator) -> list[str]:
    return [f"{x:,.2f} €".translate(str.maketrans(",.", ".,")) for x in rng.uniform(900, 90_000, N)]


COLUMNS: dict[str, Callable[[np.random.Generator], list[str]]] = {
    "whole": lambda rng: [str(k) for k in rng.integers(-50, 1000, N)],
    "code": lambda rng: [f"{k:05d}" for k in rng.integers(0, 900, N)],
    "two decimals": numbers("{:.2f}", -50, 90),
    "six decimals": numbers("{:.6f}", 35, 36),
    "any decimals": lambda rng: [repr(float(x)) for x in rng.normal(size=N)],
    "signed": lambda rng: [f"{k:+d}" if k else "0" for k in rng.integers(-9, 9, N)],
    "signed decimals": lambda rng: [f"{k / 100:+.2f}" if k else "0.00" for k in rng.integers(-900, 900, N)],
    "signed percent": lambda rng: [f"{k / 10:+.1f}%" if k else "0.0%" for k in rng.integers(-90, 90, N)],
    "powers": lambda rng: [f"{x:.2e}" for x in 10.0 ** rng.uniform(4, 9, N)],
    "small powers": lambda rng: [f"{x:.3E}" for x in rng.normal(size=N) * 1e-6],
    "millions": numbers("{:.1f}M", 0, 30),
    "money": money,
    "european": european,
    "percent": numbers("{:.0f}%", 0, 100),
    "unit": numbers("{:.1f} kg", 0, 100),
    "accounting": lambda rng: [f"({-x:.2f})" if x < 0 else f"{x:.2f}" for x in rng.uniform(-9, 9, N)],
    "iso": days("%Y-%m-%d"),
    "moment": days("%Y-%m-%d %H:%M:%S"),
    "moment of a machine": days("%Y-%m-%dT%H:%M:%S"),
    "moment of UTC": days("%Y-%m-%dT%H:%M:%SZ"),
    "moment with an offset": days("%Y-%m-%dT%H:%M:%S+02:00"),
    "moment in minutes": days("%Y-%m-%d %H:%M"),
    "day first": days("%d/%m/%Y"),
    "points": days("%d.%m.%Y %H:%M"),
    "named month": days("%d %b %Y"),
    "clock": days("%H:%M"),
    "duration": lambda rng: [f"{k // 60}:{k % 60:02d}:00" for k in rng.integers(0, 6000, N)],
    "truth of pandas": texts(["True", "False"]),
    "truth of R": texts(["TRUE", "FALSE"]),
    "truth": texts(["true", "false"]),
    "levels": texts(["Köln", "Zürich", "a, b", 'say "so"', "c;d", "e\tf", "g|h", "two words"]),
    "plain levels": texts(["N", "S", "E"]),
    "survey": texts(["20-30", "<5", "40+"]),
}
LOOKS = [
    {"separator": separator, "line_end": line_end, "encoding": encoding}
    for separator in (",", ";", "\t", "|")
    for line_end in ("\n", "\r\n")
    for encoding in ("utf-8", "utf-8-sig")
]


def written(names: list[str], cells: list[list[str]], look: dict[str, str]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=look["separator"], lineterminator=look["line_end"])
    writer.writerow(names)
    writer.writerows(zip(*cells, strict=True))
    return out.getvalue().encode(look["encoding"])


@pytest.mark.parametrize("seed", range(52))
def test_files_are_written_as_they_were_read(tmp_path: Path, seed: int) -> None:
    """Cells that were learned come back letter by letter, known ones and those that are made from numbers."""
    rng = np.random.default_rng(seed)
    names = [list(COLUMNS)[seed % len(COLUMNS)], *rng.choice(list(COLUMNS), 3, replace=False).tolist()]
    names = list(dict.fromkeys(names))
    cells = [COLUMNS[name](rng) for name in names]
    for column in cells[1:]:
        for row in rng.choice(N, 3, replace=False):
            column[row] = ""
    look = LOOKS[seed % len(LOOKS)]
    path, again = tmp_path / "t.csv", tmp_path / "again.csv"
    path.write_bytes(written(names, cells, look))
    form = find_form(str(path), CsvForm(separator=""))
    assert (form.separator, form.line_end) == (look["separator"], look["line_end"])
    table, known = read_with_texts(str(path), None, form, ())
    assert known is not None
    write_texts(keep_texts(table, known, form), str(again), form)
    assert again.read_bytes() == path.read_bytes()
    schema = infer_schema(table)
    X, unseen = encode(schema, table)
    assert not unseen.any()
    write_table(decode(schema, X), str(again), None, form)
    assert again.read_bytes() == path.read_bytes()
    assert find_form(str(again), CsvForm(separator="")) == form
    np.testing.assert_array_equal(encode(schema, read_table(str(again), None, form, doubt=False))[0], X)


def test_the_form_is_remembered_in_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = list(COLUMNS)
    (tmp_path / "t.csv").write_bytes(written(names, [COLUMNS[name](rng) for name in names], LOOKS[7]))
    form = find_form(str(tmp_path / "t.csv"), CsvForm(separator=""))
    assert form.patterns == {
        "two decimals": ".2f",
        "six decimals": ".6f",
        "signed": "+d",
        "signed decimals": "+.2f",
        "powers": ".2e",
        "small powers": ".3E",
        "moment": "%Y-%m-%d %H:%M:%S",
        "moment of a machine": "%Y-%m-%dT%H:%M:%S",
        "moment of UTC": "%Y-%m-%dT%H:%M:%SZ",
        "moment with an offset": "%Y-%m-%dT%H:%M:%S+02:00",
        "moment in minutes": "%Y-%m-%d %H:%M",
        "truth of pandas": "True",
        "truth of R": "TRUE",
    }
    schema = infer_schema(pd.DataFrame({"a": [1, 2]}))
    data = {**schema.to_dict(), "spelling": form.to_dict()}
    assert schema_from_dict(data).spelling == form


def test_values_that_do_not_fit_a_pattern_are_written_whole(tmp_path: Path) -> None:
    patterns = {"x": ".1f", "when": "%Y-%m-%d %H:%M", "ok": "TRUE"}
    when = pa.array([dt.datetime(2024, 1, 2, 3, 4, 5)] * 2, pa.timestamp("s"))
    table = pa.table({"x": [1.25, 3.0], "when": when, "ok": ["yes", None]})
    write_table(table, str(tmp_path / "t.csv"), None, CsvForm(patterns=patterns))
    assert (tmp_path / "t.csv").read_text() == "x,when,ok\n1.25,2024-01-02 03:04:05,yes\n3,2024-01-02 03:04:05,\n"


@pytest.mark.parametrize("ending", ["tsv", "tab"])
def test_the_name_of_a_file_asks_for_tabs(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    write_table(pa.table({"a": ["x,y", None], "b": [1, 2]}), str(path), None, CsvForm(separator=";"))
    assert path.read_text() == "a\tb\nx,y\t1\n\t2\n"


@pytest.mark.parametrize(
    ("table", "form", "text"),
    [
        (pa.table({"a": pa.array([90_500, None], pa.duration("ms")), "b": [1, 2]}), CsvForm(), "a,b\n90.5,1\n,2\n"),
        (pa.table({"a": [[1, 2], None], "b": [1, 2]}), CsvForm(separator=";"), "a;b\n[1, 2];1\n;2\n"),
        (pa.table({"a": ["x", None]}), CsvForm(), 'a\nx\n""\n'),  # a blank line would be no row
        (pa.table({"a": ["x y", None], "b": [1, 2]}), CsvForm(separator=" "), 'a b\n"x y" 1\nNA 2\n'),
        (pa.table({"a": ["x", "y"], "b": [1, 2]}), CsvForm(has_names=False), "x,1\ny,2\n"),
        (pa.table({"a": ["x\ny", "z"], "b": [1.5, 2]}), CsvForm(decimal=",", separator=";"), 'a;b\n"x\ny";1,5\nz;2\n'),
    ],
)
def test_forms_of_csv(tmp_path: Path, table: pa.Table, form: CsvForm, text: str) -> None:
    write_table(table, str(tmp_path / "t.csv"), None, form)
    assert (tmp_path / "t.csv").read_text() == text
    if pa.types.is_nested(table["a"].type) or pa.types.is_duration(table["a"].type):
        return
    names = table.column_names if form.has_names else ["x0", "x1"]
    assert read_table(str(tmp_path / "t.csv"), None, form) == table.rename_columns(names)


# ---- Frames.

SPANS = [dt.timedelta(minutes=3), dt.timedelta(hours=30), dt.timedelta(seconds=7), dt.timedelta(days=-2)]
CLOCKS = [dt.time(9, 30), dt.time(0, 0), dt.time(23, 59, 59), dt.time(12, 0, 0, 250_000)]
PANDAS: dict[str, Callable[[np.ndarray], pd.Series]] = {
    "spans": lambda k: pd.Series(pd.to_timedelta([SPANS[i] for i in k])),
    "fine spans": lambda k: pd.Series(pd.to_timedelta(k * 1_000_000_007 + 1, unit="ns")).astype("timedelta64[ns]"),
    "coarse spans": lambda k: pd.Series(pd.to_timedelta(k * 60, unit="s")).astype("timedelta64[s]"),
    "arrow spans": lambda k: pd.Series([SPANS[i] for i in k], dtype=pd.ArrowDtype(pa.duration("us"))),
    "clocks": lambda k: pd.Series([CLOCKS[i] for i in k], dtype=object),
    "arrow clocks": lambda k: pd.Series([CLOCKS[i] for i in k], dtype=pd.ArrowDtype(pa.time64("us"))),
    "months": lambda k: pd.Series(pd.period_range("2020-01", periods=4, freq="M")[k]),
    "quarters": lambda k: pd.Series(pd.period_range("2020Q1", periods=4, freq="Q")[k]),
    "days": lambda k: pd.Series(pd.period_range("2020-02-27", periods=4, freq="D")[k]),
    "hours": lambda k: pd.Series(pd.period_range("2020-02-27", periods=4, freq="h")[k]),
    "texts and numbers": lambda k: pd.Series([["Up", 300, 9.5, "Alien"][i] for i in k], dtype=object),
    "texts and truths": lambda k: pd.Series([["maybe", True, False, "no"][i] for i in k], dtype=object),
    "numbers and texts of numbers": lambda k: pd.Series([[1.5, "2.25", 7, 4][i] for i in k], dtype=object),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PANDAS)
def test_frames_come_back_as_they_are(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=N), name: PANDAS[name](rng.integers(0, 4, N))})
    if seed:
        frame.loc[rng.random(N) < 0.2, name] = None
    schema = infer_schema(frame)
    assert schema_from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    X, unseen = encode(schema, frame)
    assert not unseen.any() and (np.isnan(X[:, 1]) == frame[name].isna()).all()
    back = decode(schema, X)
    if name != "numbers and texts of numbers":  # numbers are drawn as numbers
        pd.testing.assert_frame_equal(back, frame)
    pd.testing.assert_frame_equal(fill(schema, frame, X, unseen, X), frame)
    np.testing.assert_array_equal(encode(schema, back)[0], X)


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
@pytest.mark.parametrize(
    "kind",
    [*(pa.duration(unit) for unit in ("s", "ms", "us", "ns")), *map(pa.time64, ("us", "ns")), pa.time32("s")],
    ids=str,
)
def test_spans_of_arrow_and_polars(library: str, kind: pa.DataType) -> None:
    rng = np.random.default_rng(0)
    ticks = rng.integers(0, 80_000, N)
    whole = pa.array(ticks, pa.int32() if kind == pa.time32("s") else pa.int64(), mask=rng.random(N) < 0.2)
    frame: Any = pa.table({"x": rng.normal(size=N), "t": whole.cast(kind)})
    frame = pl.from_arrow(frame) if library == "polars" else frame
    schema = infer_schema(frame)
    assert schema_from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert decode(schema, encode(schema, frame)[0]).equals(frame)


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
def test_spans_of_numpy(unit: str) -> None:
    spans = np.random.default_rng(0).integers(-900, 900, (N, 2)).astype(f"timedelta64[{unit}]")
    schema = infer_schema(spans)
    assert schema_from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    back = decode(schema, encode(schema, spans)[0])
    np.testing.assert_array_equal(back, spans)
    assert back.dtype == spans.dtype


def test_objects_of_numpy() -> None:
    rows = np.array([["Up", CLOCKS[0]], [300, CLOCKS[1]], [None, None], [9.5, CLOCKS[3]]] * 3, dtype=object)
    schema = infer_schema(rows)
    assert [column.dtype for column in schema.columns] == ["object[mixed]", "object[time]"]
    np.testing.assert_array_equal(decode(schema, encode(schema, rows)[0]), rows)
