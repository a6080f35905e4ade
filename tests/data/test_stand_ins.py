"""Values that may stand for missing cells are named, once for all columns, and other piles are not."""

from __future__ import annotations

import datetime as dt
import json
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import jointforest as jf
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema_check import schema_from_dict

N = 500
RNG = np.random.default_rng(0)
SOME = np.arange(N) % 20 == 0
DAYS = pd.Timestamp("2015-01-01") + pd.to_timedelta(RNG.integers(0, 2000, N), "D")


def said_of(frame: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schema = infer_schema(frame)
    assert schema_from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    return [str(one.message) for one in caught]


def with_some(value: Any, others: Any) -> np.ndarray:
    return np.where(SOME, value, others)


NUMBERS = {
    "only value below zero": (with_some(-200, RNG.integers(650, 2040, N)), "-200"),
    "below a range that has it nearly": (with_some(-200, np.round(RNG.normal(18, 9, N), 1)), "-200"),
    "decimals": (with_some(-99.99, np.round(RNG.normal(15, 8, N), 1)), "-99.99"),
    "nines above": (with_some(999.9, np.round(RNG.gamma(2, 8, N), 1)), "999.9"),
    "minus one": (np.where(RNG.random(N) < 0.8, -1, RNG.integers(1, 800, N)), "-1"),
    "minus nine": (with_some(-9, RNG.integers(0, 30, N)), "-9"),
    "answers": (RNG.choice([1, 2, 3, 4, 9], N), "9"),
    "far zero": (with_some(0, np.round(RNG.normal(47, 0.5, N), 5)), "0"),
    "year": (with_some(0, RNG.integers(1900, 2020, N)), "0"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_stand_for_nothing_are_named(name: str) -> None:
    values, text = NUMBERS[name]
    n = int(np.sum(values == float(text)))
    (said,) = said_of(pd.DataFrame({"x": values}))
    assert said.startswith(f"column 'x': {n} cells are {text}, ") and f"--na={text}, which is for all columns" in said
    hint = re.search(r"in pandas by (.*), on the command line", said)
    assert hint is not None
    mended = pd.DataFrame({"x": eval(hint[1], {"frame": pd.DataFrame({"x": values})})})
    assert mended["x"].isna().sum() == n and said_of(mended) == []


@pytest.mark.parametrize(
    "values",
    [
        RNG.poisson(2, N),
        np.where(RNG.random(N) < 0.5, 0, np.round(RNG.lognormal(5, 1, N), 2)),
        np.round(RNG.normal(10, 8, N)),
        RNG.choice([-1, 0, 1], N),
        RNG.choice([-2, -1, 0, 1, 2], N),
        np.round(RNG.normal(0, 1000, N), 2),
        RNG.choice([5, 10, 15, 20, 50, 100], N),
        RNG.integers(1950, 2020, N),
        np.minimum(RNG.geometric(0.3, N) - 1, 9),
        with_some(-0.278, RNG.uniform(0, 5, N)),
        RNG.integers(0, 100, N),
        RNG.choice([-5.0, -2.4, -2.3, -2.2, 0.0], N),  # settings of an experiment
    ],
    ids=str,
)
def test_usual_numbers_are_taken_without_a_word(values: np.ndarray) -> None:
    assert said_of(pd.DataFrame({"x": values})) == []


def test_one_warning_names_all_columns_of_a_value() -> None:
    frame = pd.DataFrame({f"c{k}": with_some(-200, RNG.integers(10, 99 + 50 * k, N)) for k in range(7)})
    (said,) = said_of(frame.assign(fine=RNG.normal(size=N)))
    assert said.startswith("columns 'c0', 'c1', 'c2', 'c3', 'c4' and 2 more: 175 cells are -200, ")
    (of_batches,) = said_in_batches(frame)
    assert of_batches == said


def said_in_batches(frame: pd.DataFrame) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jf.HiddenTreeForest(1, n_states=2, random_state=0).fit_batches(lambda: [frame[:200], frame[200:]])
    return [str(one.message) for one in caught if "cells" in str(one.message)]


def test_groups_of_answers_are_named_one_by_one() -> None:
    said = said_of(pd.DataFrame({"q": RNG.choice([1, 2, 3, 4, 5, 97, 98, 99], N)}))
    assert [text.partition(", far from all other values (1 to 5)")[0][-2:] for text in said] == ["97", "98", "99"]


@pytest.mark.parametrize("names", [("lat", "lon"), ("pickup_latitude", "pickupLongitude"), ("GPS Lat", "GPS Lng")])
def test_zeros_among_coordinates(names: tuple[str, str]) -> None:
    of_world = [np.round(RNG.uniform(-high, high, N), 5) for high in (60, 179)]
    frame = pd.DataFrame({name: with_some(0.0, x) for name, x in zip(names, of_world, strict=True)})
    (said,) = said_of(frame)
    assert said.startswith(f"columns {names[0]!r}, {names[1]!r}: ") and "no coordinate" in said and "--na=0," in said
    assert said_of(pd.DataFrame({"plate": frame[names[0]], "long_term": RNG.integers(0, 3, N)})) == []


@pytest.mark.parametrize(
    ("day", "why"),
    [
        (dt.date(9999, 12, 31), "far from all other dates"),
        (dt.date(1900, 1, 1), "far from all other dates"),
        (dt.date(1970, 1, 1), "far from all other dates"),
    ],
)
def test_dates_that_stand_for_nothing(day: dt.date, why: str) -> None:
    known = [day if gone else moment.date() for gone, moment in zip(SOME, DAYS, strict=True)]
    (said,) = said_of(pa.table({"d": known}))
    assert said.startswith(f"column 'd': 25 cells are {day}, {why}; ") and f"--na={day}" in said
    texts = [f"{day.month}/{day.day}/{day.year}" for day in known]
    (said,) = said_of(pd.DataFrame({"d": texts}))
    assert said.startswith(f"column 'd': 25 cells are {texts[0]}, {why}; ") and f"--na={texts[0]}" in said


def test_an_end_of_calendars_is_named_even_once() -> None:
    (said,) = said_of(pa.table({"until": [dt.date(9999, 12, 31), *(day.date() for day in DAYS)]}))
    assert said.startswith("column 'until': 1 cell is 9999-12-31, at an end of calendars; ")
    assert said_of(pa.table({"born": [dt.date(1930, 1, 1) + dt.timedelta(60 * k) for k in range(N)]})) == []


def test_zeros_and_nines_of_coordinates_are_both_named() -> None:
    lat = np.round(RNG.uniform(40, 41, N), 4)
    lat[::20], lat[1::40] = 0.0, -999.0
    said = said_of(pd.DataFrame({"lat": lat, "x": RNG.normal(size=N)}))
    assert len(said) == 2 and any("are 0, " in one for one in said) and any("-999" in one for one in said)
