"""Durations, times of day and periods as texts: read and shown as pandas does."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.infer_schema import infer_schema
from jointforest.data.reading import reading_of
from jointforest.data.times import period_start, period_text, span_of, span_text

SPANS = (
    "1 days 02:00:00",
    "1 days",
    "-1 days +22:00:00",
    "-2 days",
    "-1 days 02:00:00",
    "0 days 00:00:01.500000",
    "1 day",
    "90 min",
    "90min",
    "1h 30min",
    "2 hours",
    "1.5 h",
    "36 hours 5 minutes",
    "45s",
    "250 ms",
    "-1 days 5 hours",
    "02:00:00",
    "-00:30:00",
    "2w",
    "1 days 5 hours",
)


@pytest.mark.parametrize("text", SPANS)
def test_spans_are_read_as_pandas_reads_them(text: str) -> None:
    assert span_of(text) == pytest.approx(pd.Timedelta(text).total_seconds(), abs=1e-9)


@pytest.mark.parametrize("days", [0, 1, -1, 400])
@pytest.mark.parametrize("seconds", [0, 59, 3600, 80_000, 1.25])
def test_spans_are_shown_as_pandas_and_read_as_python_shows_them(days: int, seconds: float) -> None:
    span = dt.timedelta(days=days, seconds=seconds)
    shown = span_text(span.total_seconds(), "timedelta64[us]")
    assert pd.Timedelta(shown) == span and shown.startswith(str(pd.Timedelta(span)).rstrip("0"))
    assert span_of(shown) == span_of(str(span)) == span.total_seconds()


@pytest.mark.parametrize("text", ["26:30", " 26:30 ", "1 day, 2:30"])
def test_hours_and_minutes(text: str) -> None:
    assert span_of(text) == 95_400.0


@pytest.mark.parametrize("text", ["", "-", "x", "5", "1:75", "5 apples", "x 02:00", "1h30", "days"])
def test_other_texts_are_no_spans(text: str) -> None:
    assert span_of(text) == text


def test_times_of_day() -> None:
    assert span_of("9:30") == span_of(dt.time(9, 30)) == 34_200.0
    assert span_text(34_200.0, "object[time]") == "09:30:00"


@pytest.mark.parametrize("unit", ["Y", "Y-JAN", "Y-JUN", "Q", "Q-JAN", "Q-SEP", "M", "W", "W-WED", "D"])
def test_periods_are_read_and_shown_as_pandas_does(unit: str) -> None:
    dtype = str(pd.PeriodDtype(unit))
    for one in pd.period_range("2019-11-05", periods=30, freq=unit):
        shown = period_text(one.start_time.to_pydatetime(), dtype)
        assert shown == period_text((one.start_time + (one.end_time - one.start_time) / 2).to_pydatetime(), dtype)
        assert shown == str(one)
        if unit[0] in "YQM":
            assert period_start(shown, dtype) == one.start_time
            assert period_start(f" {shown.lower()} ", dtype) == one.start_time


@pytest.mark.parametrize(
    ("text", "unit"), [("2024", "M"), ("2024", "Q-DEC"), ("2024-05", "Q-DEC"), ("2024Q5", "Q-DEC")]
)
def test_periods_of_another_length_are_none_of_the_column(text: str, unit: str) -> None:
    assert period_start(text, f"period[{unit}]") is None


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    k = rng.integers(0, 8, 300)
    return pd.DataFrame(
        {
            "quarter": pd.period_range("2023Q1", periods=8, freq="Q")[k],
            "month": pd.period_range("2024-01", periods=8, freq="M")[rng.permutation(k)],
            "year": pd.period_range("2010", periods=8, freq="Y")[rng.permutation(k)],
            "week": pd.period_range("2024-01-01", periods=8, freq="W")[rng.permutation(k)],
            "wait": pd.to_timedelta(17 * k + rng.integers(0, 60, 300), unit="min"),
            "opens": pd.Series([dt.time(6 + int(h)) for h in k], dtype=object),
        }
    ).mask(rng.random((300, 6)) < 0.1)


def test_questions_take_what_the_columns_show() -> None:
    table = frame()
    joint = jf.JointTree(random_state=0).fit(table).joint_
    for name, text, value in (
        ("quarter", "2024Q3", pd.Period("2024Q3")),
        ("month", "2024-05", pd.Period("2024-05")),
        ("year", "2012", pd.Period("2012")),
        ("year", 2012, pd.Period("2012")),
        ("week", "2024-01-08/2024-01-14", pd.Period("2024-01-08", freq="W")),
        ("wait", "0 days 01:30", pd.Timedelta("90min")),
        ("wait", "90 min", dt.timedelta(minutes=90)),
        ("opens", "9:00", dt.time(9)),
    ):
        assert joint.probability({name: text}) == joint.probability({name: value}) > 0.0
        written = f"P({name} <= {text})" if isinstance(text, int) else f"P({name} <= '{text}')"
        share = (table[name].dropna() <= value).mean()
        assert joint.query(written) == pytest.approx(share, abs=0.02)
        assert joint.given({name: text}).mean("wait") == joint.given({name: value}).mean("wait")
    with pytest.raises(ValueError, match=r"'quarter': expected a date or time such as '2023Q1', got '2024-07'"):
        joint.query("P(quarter = '2024-07')")
    with pytest.raises(ValueError, match=r"'wait'.*expected a number of seconds, or a text such as '0 days 0.*got 'x'"):
        joint.query("P(wait = 'x')")


def test_readings_show_them() -> None:
    about = {column.name: column.about for column in reading_of(infer_schema(frame())).columns}
    assert about["quarter"] == "2023Q1 to 2024Q4" and about["month"] == "2024-01 to 2024-08"
    assert about["year"] == "2010 to 2017" and about["week"].startswith("2024-01-01/2024-01-07 to ")
    assert about["wait"].startswith("0 days 00:") and about["opens"] == "06:00:00 to 13:00:00"
