"""Short texts about one column mean what people mean by them, or are refused with the forms that are understood."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointforest.data.conditions import AnyOf, Interval, Missing, Not
from jointforest.data.meaning import contains
from jointforest.data.schema import Column
from jointforest.query_language.short_forms import FORMS, read_short

AGE = Column("age", "integer", "int64", step=1.0, minimum=17, maximum=90)
REAL = Column("my real", "continuous", "float64", minimum=-10.0, maximum=250.0)
DAY = Column("day", "datetime", "datetime64[us]", step=86400.0, minimum=1.5e9, maximum=1.6e9)
AT = Column("at", "datetime", "datetime64[us, Europe/Berlin]", step=1.0, minimum=1.5e9, maximum=1.6e9)
STATUS = Column(
    "status",
    "categorical",
    "str",
    levels=("Never-married", "Married-civ-spouse", "Married-AF-spouse", "Divorced", "Not in family"),
)
NAMES = Column("name", "categorical", "str", levels=("Smith, John", "a, b", "a", "b", "x or y", "Female"))
INCOME = Column("income", "categorical", "str", levels=("<=50K", ">50K"))
SIZE = Column("size", "ordered", "category", levels=("low", "medium", "high", "very high"))
CODE = Column("code", "categorical", "int64", levels=(-5, 5, 10, 100))
FLAG = Column("flag", "boolean", "bool", levels=(False, True))
TODAY = dt.date(2026, 11, 24)


def both(low: Any, high: Any) -> Interval:
    return Interval(low, high, "both")


CASES: list[tuple[Column, str, Any]] = [
    (AGE, "40", 40),
    (AGE, "20-30", both(20, 30)),
    (AGE, "20 – 30", both(20, 30)),
    (AGE, "between 20 and 30", both(20, 30)),
    (AGE, "[20, 30)", Interval(20, 30, "left")),
    (AGE, "-5--3", both(-5, -3)),
    (AGE, "-5 - -3", both(-5, -3)),
    (AGE, "−5 to −3", both(-5, -3)),
    (AGE, "-5-3", both(-5, 3)),
    (AGE, "-5", -5),
    (AGE, "40+", Interval(40, None, "left")),
    (AGE, "40 or more", Interval(40, None, "left")),
    (AGE, "<5", Interval(None, 5, "neither")),
    (AGE, ">= 3", Interval(3, None, "left")),
    (AGE, "≥ 12,500", Interval(12500, None, "left")),
    (AGE, "> 20 to < 60", Interval(20, 60, "neither")),
    (AGE, "> 20, < 60", Interval(20, 60, "neither")),
    (AGE, "< 20, > 60", AnyOf(Interval(None, 20, "neither"), Interval(60, None, "neither"))),
    (AGE, "20, 30", AnyOf(20, 30)),
    (AGE, "20,30", AnyOf(20, 30)),
    (AGE, "20-30, 40+", AnyOf(both(20, 30), Interval(40, None, "left"))),
    (AGE, "not 20-30", Not(both(20, 30))),
    (AGE, "missing", Missing()),
    (AGE, "is not missing", Not(Missing())),
    (AGE, "anything", None),
    (AGE, "20 <= age < 30", Interval(20, 30, "left")),
    (REAL, "1e-3-1e-2", both(0.001, 0.01)),
    (REAL, "50K", 50_000),
    (DAY, "2023", Interval("2023-01-01", "2024-01-01", "left")),
    (DAY, "2020-2023", Interval("2020-01-01", "2024-01-01", "left")),
    (DAY, "2023-05", Interval("2023-05-01", "2023-06-01", "left")),
    (DAY, "March 2023", Interval("2023-03-01", "2023-04-01", "left")),
    (DAY, "March to May 2023", Interval("2023-03-01", "2023-06-01", "left")),
    (DAY, "1-5 March 2023", Interval("2023-03-01", "2023-03-06", "left")),
    (DAY, "1 Mar 2024 to 3 Sept 2024", Interval("2024-03-01", "2024-09-04", "left")),
    (DAY, "March 1st, 2023, March 5, 2023", AnyOf("2023-03-01", "2023-03-05")),
    (DAY, "13/04/2023", "2023-04-13"),
    (DAY, "> 2023", Interval("2024-01-01", None, "left")),
    (DAY, "before 2020", Interval(None, "2020-01-01", "neither")),
    (DAY, "until 2020", Interval(None, "2021-01-01", "neither")),
    (DAY, "9999", Interval("9999-01-01", None, "left")),
    (DAY, "last year", Interval("2025-01-01", "2026-01-01", "left")),
    (DAY, "last week", Interval("2026-11-16", "2026-11-23", "left")),
    (DAY, "last 30 days", Interval("2026-10-26", "2026-11-25", "left")),
    (DAY, "yesterday", "2026-11-23"),
    (AT, "2024-03-01", Interval("2024-03-01", "2024-03-02", "left")),
    (AT, "2024-03-01T00:00:30Z", "2024-03-01 00:00:30+00:00"),
    (STATUS, "never", "Never-married"),
    (STATUS, "Never-married", "Never-married"),
    (STATUS, "af", "Married-AF-spouse"),
    (STATUS, "Married*", AnyOf("Married-civ-spouse", "Married-AF-spouse")),
    (STATUS, "divorced, never", AnyOf("Divorced", "Never-married")),
    (STATUS, "not never, not divorced", Not(AnyOf("Never-married", "Divorced"))),
    (STATUS, "not in family", "Not in family"),
    (NAMES, "smith, john", "Smith, John"),
    (NAMES, "a, b", "a, b"),
    (NAMES, "a or b", AnyOf("a", "b")),
    (NAMES, "x or y", "x or y"),
    (NAMES, "'a, b', x or y", AnyOf("a, b", "x or y")),
    (INCOME, ">50", ">50K"),
    (INCOME, "> 50K", ">50K"),
    (SIZE, ">= medium", Interval("medium", None, "left")),
    (SIZE, "low-high", both("low", "high")),
    (SIZE, "high", "high"),
    (CODE, "5", 5),
    (CODE, "-5, 10", AnyOf(-5, 10)),
    (FLAG, "yes", True),
]


@pytest.mark.parametrize(("column", "text", "condition"), CASES)
def test_what_a_text_means(column: Column, text: str, condition: Any) -> None:
    assert read_short(column, text, TODAY).condition == condition


@pytest.mark.parametrize(
    ("column", "text", "said"),
    [
        (AGE, "abc", FORMS["number"]),
        (AGE, "20 30", FORMS["number"]),
        (AGE, "about 40", "sd"),
        (AGE, "sex = 3", FORMS["number"]),
        (REAL, "1,5", "may be the number 1.5 or the values 1 and 5"),
        (REAL, "100,200", "may be the number 100200 or the values 100 and 200"),
        (DAY, "20-30", FORMS["date"]),
        (DAY, "2024-02-30", FORMS["date"]),
        (DAY, "03/04/2023", "may be 3 April or 4 March"),
        (AT, "2024-10-27 02:30", "comes twice"),
        (STATUS, "married", "'married*' is all of them"),
        (STATUS, "spouse", "'*spouse*' is all of them"),
        (STATUS, "not in family, divorced", "put levels in quotes"),
        (STATUS, "zebra", FORMS["levels"]),
        (NAMES, "a, b, Smith", "put levels in quotes"),
        (NAMES, "male", "begins with"),
        (CODE, "1", "begins with"),
        (INCOME, "50K", "may be '<=50K', '>50K'"),
    ],
)
def test_what_is_not_clear_is_refused(column: Column, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^column '{column.name}'") as error:
        read_short(column, text, TODAY)
    assert said in str(error.value)
    assert "^" not in str(error.value)


def test_relative_dates_say_what_they_are_counted_from() -> None:
    note = read_short(DAY, "last year", TODAY).note
    assert "2025-01-01 to 2025-12-31, counted from today (2026-11-24)" in note
    assert "The dates of the table are 2017-07-14 to 2020-09-13." in note
    assert read_short(DAY, "2023", TODAY).note == ""


whole = st.integers(-(10**9), 10**9)


@given(low=whole, high=whole, sign=st.sampled_from(["-", " - ", "–", " to ", "..", " – "]))
def test_a_range_is_read_whatever_its_signs(low: int, high: int, sign: str) -> None:
    assert read_short(AGE, f"{low}{sign}{high}").condition == both(low, high)


@given(low=st.floats(allow_nan=False, allow_infinity=False), high=st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_in_any_notation(low: float, high: float) -> None:
    assert read_short(REAL, f"{low!r}-{high!r}").condition == both(low, high)
    assert read_short(REAL, f"> {low!r}").condition == Interval(low, None, "neither")


@given(
    levels=st.lists(st.text("ab1 ,-+<>=.'no trx", min_size=1, max_size=8).map(str.strip), min_size=1, max_size=6),
    data=st.data(),
)
def test_a_level_as_it_is_written_is_that_level(levels: list[str], data: st.DataObject) -> None:
    kept = tuple(dict.fromkeys(" ".join(level.split()) for level in levels if level)) or ("a",)
    column = Column("c", data.draw(st.sampled_from(["categorical", "ordered"])), "str", levels=kept)
    level = data.draw(st.sampled_from(kept))
    assert read_short(column, level).condition == level


@given(
    moment=st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)),
    other=st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)),
    form=st.sampled_from(["Y", "M", "D"]),
)
def test_a_date_is_in_its_period(moment: dt.datetime, other: dt.datetime, form: str) -> None:
    text = str(pd.Period(moment, form))
    condition = read_short(DAY, text).condition
    inside = contains(DAY, condition, DAY.to_number(other.date()))
    assert inside == (pd.Period(other, form) == pd.Period(moment, form))
    later = contains(DAY, read_short(DAY, f"> {text}").condition, DAY.to_number(other.date()))
    assert later == (pd.Period(other, form) > pd.Period(moment, form))


@given(text=st.text(max_size=30), column=st.sampled_from([AGE, REAL, DAY, AT, STATUS, NAMES, SIZE, CODE, FLAG]))
def test_any_text_is_read_or_refused_with_the_columns_name(text: str, column: Column) -> None:
    try:
        read_short(column, text, TODAY)
    except ValueError as error:
        assert repr(column.name) in str(error)
