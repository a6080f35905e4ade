"""Schema: written as JSON and read again, every field checked; layout for the kernels; values and numbers."""

import copy
import datetime as dt
import json
import math
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from jointforest.data.schema import Column, Schema, kernel_columns, near, snapped
from jointforest.data.schema_check import schema_from_dict

SCHEMA = Schema(
    (
        Column("age", "integer", "int64", step=1.0, atoms=(0.0, 40.0), minimum=0.0, maximum=90.0, n_observed=9),
        Column("sex", "categorical", "str:pyarrow", levels=("F", "M"), n_observed=9),
        Column("x", "mixed", "float64", atoms=(0.5,), minimum=-1.0, maximum=2.0, n_observed=5),
        Column("price", "rounded", "float64", step=0.05, minimum=0.05, maximum=9.95, n_observed=9),
        Column("when", "datetime", "datetime64[us]", step=60.0, origin=1.7e9, minimum=0.0, maximum=120.0, n_observed=3),
        Column("ok", "boolean", "bool", levels=(False, True), n_observed=9),
        Column("size", "ordered", "category[int64, ordered]", levels=(1, 2, 5), n_observed=9),
    ),
    "pandas",
)


def test_json_round_trip():
    text = json.dumps(SCHEMA.to_dict(), allow_nan=False)
    assert schema_from_dict(json.loads(text)).to_dict() == SCHEMA.to_dict()


@pytest.mark.parametrize(
    "change",
    [
        ("frame", "dask"),
        ("spelling", ["-999"]),
        ("spelling", {"na": "-999", "decimal": "."}),
        ("spelling", {"na": [-999], "decimal": "."}),
        ("spelling", {"na": [], "decimal": "x"}),
        ("spelling", {"separator": ";;"}),
        ("spelling", {"line_end": "\r"}),
        ("spelling", {"has_names": "yes"}),
        ("spelling", {"comment": 3}),
        ("spelling", {"skip": -1}),
        ("spelling", {"patterns": {"a": "+"}}),
        ("columns", []),
        ("columns", "abc"),
        (0, "name", 3),
        (0, "kind", "number"),
        (0, "kind", ["integer"]),
        (0, "dtype", ""),
        (0, "step", 0.0),
        (0, "step", -1.0),
        (0, "step", math.nan),
        (0, "step", True),
        (0, "step", 10**400),
        (0, "origin", 0.5),
        (0, "atoms", [1.0, 0.0]),
        (0, "atoms", [0.5]),
        (0, "atoms", [math.inf]),
        (0, "atoms", [float(k) for k in range(65)]),
        (0, "levels", ["a"]),
        (0, "minimum", 91.0),
        (0, "minimum", None),
        (0, "n_observed", -1),
        (0, "n_observed", 1.0),
        (0, "maximum", 1e300),
        (1, "name", "age"),
        (1, "levels", []),
        (1, "levels", ["a", "a"]),
        (1, "levels", [1, True]),
        (1, "levels", [None]),
        (1, "levels", [math.nan]),
        (1, "minimum", 0.0),
        (1, "step", 1.0),
        (1, "atoms", [1.0]),
        (2, "atoms", []),
        (2, "origin", 1.0),
        (3, "atoms", [0.05, 0.05000001]),
        (4, "origin", 0.5),
        (4, "step", 1.5e-7),
        (0, "lower", 0.5),
        (0, "lower", 1.0),
        (0, "lower", None),
        (0, "upper", math.inf),
        (0, "upper", 89.0),
        (1, "lower", 0.0),
        (4, "only", "weekdays"),
        (0, "only", "month starts"),
        (3, "only", "noon"),
        (4, "dtype", "datetime64[us, Nowhere/City]"),
        (4, "dtype", "int64"),
        (3, "step", 1e-300),
        (3, "dtype", "str:pyarrow"),
        (3, "dtype", "float65"),
        (0, "dtype", "datetime64[us]"),
        (1, "levels", ["a", 1]),
        (5, "levels", [True, False]),
        (5, "levels", [0, 1]),
    ],
)
def test_from_dict_refuses(change):
    data = copy.deepcopy(SCHEMA.to_dict())
    if len(change) == 2:
        data[change[0]] = change[1]
    else:
        data["columns"][change[0]][change[1]] = change[2]
    with pytest.raises(ValueError, match=r"^schema"):
        schema_from_dict(data)


def test_from_dict_refuses_missing_and_unknown_fields():
    for spoil in (lambda c: c.pop("step"), lambda c: c.update(more=1)):
        data = SCHEMA.to_dict()
        spoil(data["columns"][0])
        with pytest.raises(ValueError, match=r"schema.columns\[0\]"):
            schema_from_dict(data)
    for data in (None, [], 3, {"frame": "pandas"}, {"frame": "pandas", "columns": [None]}):
        with pytest.raises(ValueError, match="schema"):
            schema_from_dict(data)


def test_kernel_columns():
    layout = kernel_columns(SCHEMA)
    assert layout.is_categorical.tolist() == [0, 1, 0, 0, 0, 1, 1]
    assert layout.slot.tolist() == [0, 0, 1, 2, 3, 1, 2]
    assert layout.step.tolist() == [1.0, 0.0, 0.05, 60.0]
    assert layout.origin.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert layout.atom_start.tolist() == [0, 2, 3, 3, 3]
    assert layout.atom_value.tolist() == [0.0, 40.0, 0.5]
    assert layout.level_start.tolist() == [0, 2, 4, 7]
    dtypes = [array.dtype for array in layout]
    assert dtypes == [np.uint8, np.int32, np.float64, np.float64, np.int32, np.float64, np.int32]


def test_names():
    assert SCHEMA.index("x") == 2
    with pytest.raises(ValueError, match="no column 'agee' in the model; did you mean 'age'"):
        SCHEMA.index("agee")
    with pytest.raises(ValueError, match="known: 'age', 'sex'"):
        SCHEMA.index("qqqq")
    assert near("f", ["F", "M"]) == "did you mean 'F'?"
    assert near("quantity", ["unit", "price"]) == "known: 'unit', 'price'"  # 'unit' is in it, but in pieces
    assert near("Length", ["width", "bill_length"]) == "did you mean 'bill_length'?"


def test_values_to_numbers_and_back():
    price, when, size = SCHEMA["price"], SCHEMA["when"], SCHEMA["size"]
    assert [price.from_number(k * 0.05) for k in (3, 6, 7)] == [0.15, 0.3, 0.35]
    assert SCHEMA["age"].from_number(39.7) == 40
    assert isinstance(SCHEMA["age"].from_number(3.0), int)
    moment = dt.datetime(2024, 3, 1, 12, 30, 20)
    expected = (moment - dt.datetime(1970, 1, 1)).total_seconds() - 1.7e9
    for value in ("2024-03-01 12:30:20", moment, np.datetime64("2024-03-01T12:30:20")):
        assert when.to_number(value) == expected
    assert when.from_number(when.to_number(moment)) == moment
    assert size.to_number(5) == 2.0
    assert size.from_number(2.0) == 5
    assert SCHEMA["ok"].to_number(np.True_) == 1.0
    assert SCHEMA["age"].from_number(math.nan) is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sex", "Female", "not one of its 2 levels"),
        ("sex", "f", "did you mean 'F'"),
        ("sex", 1, "not one of"),
        ("age", "40", "expected a number, got '40'"),
        ("age", math.inf, "finite"),
        ("age", True, "expected a number"),
        ("when", 12, "expected a date or time"),
        ("when", "soon", "'soon'"),
        ("when", "2024-03-01T00:00+01:00", "no time zone"),
    ],
)
def test_values_that_do_not_fit(name, value, message):
    with pytest.raises(ValueError, match=message) as error:
        SCHEMA[name].to_number(value)
    assert repr(name) in str(error.value)


def test_zones():
    column = Column("t", "datetime", "datetime64[us, Europe/Berlin]", step=1.0, origin=1704067200.0)
    # 2024-07-01 12:00 in Berlin is 10:00 UTC
    utc = dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)
    assert column.to_number("2024-07-01 12:00") == utc.timestamp() - 1704067200
    assert column.to_number(utc) == column.to_number("2024-07-01 12:00")
    assert column.from_number(column.to_number(utc)) == utc
    assert str(column.from_number(column.to_number(utc))) == "2024-07-01 12:00:00+02:00"


@pytest.mark.parametrize(
    ("text", "zone", "words"),
    [
        (
            "2024-03-31 02:30",
            "Europe/Berlin",
            "does not exist in Europe/Berlin.*'2024-03-31 02:30:00.01:00', which is 2024-03-31 03:30:00 there, "
            "or '2024-03-31 02:30:00.02:00', which is 2024-03-31 01:30:00",
        ),
        ("2024-03-31 01:30", "Europe/London", "does not exist.*01:30:00.00:00.*01:30:00.01:00"),
        (
            "2024-10-27 02:30",
            "Europe/Berlin",
            "comes twice in Europe/Berlin.*write '2024-10-27 02:30:00.02:00' or '2024-10-27 02:30:00.01:00'",
        ),
    ],
)
def test_times_that_clocks_skip_or_show_twice(text, zone, words):
    column = Column("t", "datetime", f"datetime64[us, {zone}]", step=60.0)
    for value in (text, dt.datetime.fromisoformat(text), np.datetime64(text), pd.Timestamp(text)):
        with pytest.raises(ValueError, match=f"column 't': {text}:00 {words}") as error:
            column.to_number(value)
    for reading in [word for word in str(error.value).split("'") if word.startswith("20")]:  # each can be taken
        assert column.to_number(reading) == dt.datetime.fromisoformat(reading).timestamp()
    later = dt.datetime.fromisoformat(text).replace(fold=1)
    assert column.to_number(later) == later.replace(tzinfo=ZoneInfo(zone)).timestamp()


def test_a_day_starts_with_its_first_moment():
    column = Column("t", "datetime", "datetime64[us, America/Sao_Paulo]", step=60.0)
    for day in ("2018-11-04", dt.date(2018, 11, 4), np.datetime64("2018-11-04")):  # there was no midnight
        assert str(column.from_number(column.to_number(day))) == "2018-11-04 01:00:00-02:00"


def test_numbers_cannot_claim_to_be_categories():
    for frame, dtype in (
        ("pandas", "category[int64]"),
        ("pandas", "category[str, ordered]"),
        ("pandas", "category[object]"),
        ("pandas", "dictionary<values=int64, indices=int8, ordered=0>[pyarrow]"),
        ("pyarrow", "dictionary<values=double, indices=int8, ordered=0>"),
        ("polars", "Categorical"),
    ):
        column = Column("a", "integer", dtype, step=1.0, minimum=0.0, maximum=9.0, n_observed=5)
        data = Schema((column,), frame).to_dict()
        with pytest.raises(ValueError, match=r"columns\[0\].dtype: a integer column cannot have the type"):
            schema_from_dict(data)


def test_unseen_penalty():
    assert SCHEMA["sex"].log_unseen == -math.log(10)


def test_columns_of_which_nothing_is_known_have_places_of_their_own():
    data = Schema((Column("a", "continuous", "float64", n_observed=3),), "pandas").to_dict()
    blank = {**data["columns"][0], "n_observed": 0}
    data["unknown"] = [{**blank, "name": "b", "place": 1}, {**blank, "name": "c", "place": 2}]
    assert schema_from_dict(data).all_columns.names == ("a", "b", "c")
    assert schema_from_dict(data).to_dict() == data
    data["unknown"][1]["place"] = 1
    with pytest.raises(ValueError, match=r"unknown\[1\].place: expected a whole number from 2 to 2, got 1"):
        schema_from_dict(data)


@pytest.mark.parametrize("digits", [4, 6, 9])
def test_numbers_are_rounded_to_the_digits_of_a_column(digits):
    rng = np.random.default_rng(digits)
    x = np.concatenate([rng.normal(size=2_000) * 10.0 ** rng.integers(-9, 10, 2_000), [0.0, 99_999.96, -1.0, np.nan]])
    column = Column("x", "continuous", "float64", digits=digits, minimum=-1.0, maximum=99_999.0)
    x = np.where(np.abs(x) < 1e5, x, 1.0)  # beyond their range numbers have the decimals of the largest
    expected = [float(f"{v:.{digits - 1}e}") for v in x.tolist()]  # ties are too rare to matter
    assert np.array_equal(snapped(column, x), expected, equal_nan=True)
    assert column.from_number(x[0]) == expected[0]
    assert np.isclose(column.last_digit, 10.0 ** (5 - digits))


def test_digits_are_rounded_once_beside_a_grid():
    column = Column("x", "rounded", "float64", step=1e-4, digits=4, minimum=0.0, maximum=999.0)
    assert snapped(column, np.array([123.449999, 0.123449999, 2.00049])).tolist() == [123.4, 0.1234, 2.0]


def test_numbers_beyond_the_range_have_the_decimals_of_the_largest():
    column = Column("x", "continuous", "float64", digits=5, minimum=0.0, maximum=987.65)
    assert snapped(column, np.array([987.6543, 123_456.7891])).tolist() == [987.65, 123_456.79]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2024-02-01+23:00", "an offset follows a time: write '2024-02-01 00:00.23:00'"),
        ("2024-02-01-05:00", "an offset follows a time"),
        ("20240201+01:00", "an offset follows a time"),
        ("2024-02-01Z", "an offset follows a time"),
        ("2024-02-01_10:00", "a space or T, and the time, follow a date"),
        ("2024", "the year 2024 is: between '2024-01-01' and '2024-12-31'"),
        ("soon", "write year-month-day"),
    ],
)
@pytest.mark.parametrize("zone", ["", ", UTC"])
def test_texts_that_are_no_dates_say_what_to_write(text, words, zone):
    column = Column("t", "datetime", f"datetime64[us{zone}]", step=60.0)
    with pytest.raises(ValueError, match=words):
        column.to_number(text)


@pytest.mark.parametrize("text", ["2024-02-01", "20240201", "2024-02-01 00:00", "2024-02-01T00:00", "2024-W05-4"])
def test_dates_are_read_in_each_form_of_the_standard(text):
    column = Column("t", "datetime", "datetime64[us]", step=60.0)
    assert column.to_number(text) == dt.datetime(2024, 2, 1, tzinfo=dt.UTC).timestamp()


def test_a_quoted_number_says_so():
    with pytest.raises(ValueError, match="got '2024'; write the number without quotes"):
        Column("x", "rounded", "float64", step=0.5).to_number("2024")
