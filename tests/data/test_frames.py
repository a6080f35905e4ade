"""Frames to arrays and back, in every library: the same values, dtypes, levels, decimals, dates."""

import datetime as dt
import decimal
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal as assert_polars_equal

import jointforest as jf
from jointforest.data.datasets import load_penguins
from jointforest.data.frames import decode, encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema_check import schema_from_dict

N = 60
RNG = np.random.default_rng(0)
TEXT = RNG.choice(["b", "a", "c"], N).tolist()
WHOLE = RNG.integers(0, 50, N).tolist()
REAL = RNG.normal(size=N).tolist()
FLAGS = [True, False] * (N // 2)
TIMES = pd.date_range("2024-01-01", periods=N, freq="7h")
DAYS = [moment.date() for moment in TIMES]
CENTS = [decimal.Decimal(k).scaleb(-2) for k in range(N)]


def gap(values, missing=None):
    """The values with the fourth one missing."""
    values = list(values)
    values[3] = missing
    return values


def arrow_dtype(kind):
    return pd.ArrowDtype(kind)


PANDAS = {
    "int64": pd.Series(WHOLE),
    "uint8": pd.Series(np.array(WHOLE) + 200, dtype="uint8"),
    "float64": pd.Series(gap(REAL, np.nan)),
    "decimals": pd.Series(gap(np.round(REAL, 1), np.nan)),
    "float32": pd.Series(np.round(REAL, 1).astype("float32")),
    "whole floats": pd.Series(gap(WHOLE, np.nan)),
    "huge": pd.Series(np.array(REAL) * 1e300),
    "tiny": pd.Series(np.array(REAL) * 1e-300),
    "bool": pd.Series(FLAGS),
    "Int64": pd.Series(gap(WHOLE), dtype="Int64"),
    "Float64": pd.Series(gap(REAL), dtype="Float64"),
    "boolean": pd.Series(gap(FLAGS), dtype="boolean"),
    "object None": pd.Series(gap(TEXT), dtype=object),
    "object NaN": pd.Series(gap(TEXT, np.nan), dtype=object),
    "object bool": pd.Series(gap(FLAGS), dtype=object),
    "object int": pd.Series(gap(WHOLE), dtype=object),
    "object date": pd.Series(gap(DAYS), dtype=object),
    "object decimal": pd.Series(gap(CENTS), dtype=object),
    "str": pd.Series(gap(TEXT), dtype="str"),
    "string": pd.Series(gap(TEXT), dtype="string"),
    "string python": pd.Series(gap(TEXT), dtype="string[python]"),
    "category": pd.Series(pd.Categorical(gap(TEXT), categories=["z", "c", "b", "a"])),
    "ordered": pd.Series(pd.Categorical(gap(TEXT), categories=["c", "b", "a"], ordered=True)),
    "category int": pd.Series(pd.Categorical(np.array(WHOLE) % 3)),
    "times": pd.Series(TIMES),
    "times ns": pd.Series(gap(TIMES.as_unit("ns"), pd.NaT)),
    "times zone": pd.Series(TIMES.tz_localize("Europe/Berlin")),
    "times days": pd.Series(pd.date_range("1900-01-01", periods=N, freq="D").as_unit("s")),
    "times us": pd.Series(pd.date_range("1900-01-01", periods=N, freq="1000000007us").as_unit("us")),
    "arrow int": pd.Series(gap(WHOLE), dtype="int64[pyarrow]"),
    "arrow float": pd.Series(gap(REAL), dtype="double[pyarrow]"),
    "arrow bool": pd.Series(gap(FLAGS), dtype="bool[pyarrow]"),
    "arrow text": pd.Series(gap(TEXT), dtype=arrow_dtype(pa.string())),
    "arrow dictionary": pd.Series(gap(TEXT), dtype=arrow_dtype(pa.dictionary(pa.int32(), pa.string()))),
    "arrow time": pd.Series(TIMES).astype(arrow_dtype(pa.timestamp("us"))),
    "arrow zone": pd.Series(TIMES.tz_localize("UTC")).astype(arrow_dtype(pa.timestamp("us", "UTC"))),
    "arrow date": pd.Series(gap(DAYS), dtype=arrow_dtype(pa.date32())),
    "arrow decimal": pd.Series(CENTS, dtype=arrow_dtype(pa.decimal128(6, 2))),
}
POLARS = pl.DataFrame(
    {
        "s": gap(TEXT),
        "i": gap(WHOLE),
        "f": gap(REAL),
        "r": gap(np.round(REAL, 2).tolist()),
        "b": gap(FLAGS),
        "t": gap(TIMES.to_pydatetime().tolist()),
        "d": gap(DAYS),
        "dec": gap(CENTS),
    }
).with_columns(
    cat=pl.col("s").cast(pl.Categorical),
    enum=pl.col("s").cast(pl.Enum(["z", "c", "b", "a"])),
    i8=pl.col("i").cast(pl.Int8),
    u64=pl.col("i").cast(pl.UInt64),
    f32=pl.col("f").cast(pl.Float32),
    zone=pl.col("t").dt.replace_time_zone("Europe/Berlin"),
    ms=pl.col("t").cast(pl.Datetime("ms")),
    ns=pl.col("t").cast(pl.Datetime("ns")),
)
ARROW = pa.table(
    {
        "i": pa.array(gap(WHOLE), pa.int16()),
        "f": pa.array(gap(REAL), pa.float32()),
        "b": pa.array(gap(FLAGS)),
        "s": pa.array(gap(TEXT)),
        "large": pa.array(gap(TEXT), pa.large_string()),
        "view": pa.array(gap(TEXT), pa.string_view()),
        "dict": pa.array(gap(TEXT)).dictionary_encode(),
        "d32": pa.array(gap(DAYS), pa.date32()),
        "d64": pa.array(gap(DAYS), pa.date64()),
        "t": pa.array(gap(TIMES.to_pydatetime().tolist()), pa.timestamp("ms")),
        "z": pa.array(gap(TIMES.to_pydatetime().tolist()), pa.timestamp("ns", "America/New_York")),
        "dec": pa.array(gap(CENTS), pa.decimal128(8, 3)),
    }
)


def there_and_back(frame, **options):
    schema = infer_schema(frame, **options)
    schema = schema_from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False)))
    X, unseen = encode(schema, frame)
    assert X.flags.c_contiguous
    assert X.dtype == np.float64
    assert not unseen.any()
    return decode(schema, X)


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_round_trip(name):
    frame = PANDAS[name].to_frame(name)
    pd.testing.assert_frame_equal(there_and_back(frame), frame, check_exact=True)


def test_pandas_all_at_once_with_an_index():
    frame = pd.DataFrame(PANDAS)
    back = there_and_back(frame.set_axis(np.arange(N) * 3 + 7, axis=0))
    pd.testing.assert_frame_equal(back, frame, check_exact=True)


def test_whole_numbers_as_names():
    frame = pd.DataFrame({0: REAL, 17: TEXT, "y": WHOLE, "3": REAL})
    pd.testing.assert_frame_equal(there_and_back(frame), frame, check_exact=True)
    schema = infer_schema(frame, {0: "continuous"})
    assert schema.names == ("0", "17", "y", "3") and schema.index(17) == schema.index("17") == 1
    for name in (3, 1, True, 0.0, None):  # that name is the text '3'
        with pytest.raises(ValueError, match="no column"):
            schema.index(name)
    X = encode(schema, frame[["y", 17]])[0]
    assert np.isnan(X[:, [0, 3]]).all() and not np.isnan(X[:, [1, 2]]).any()
    np.testing.assert_array_equal(
        encode(schema, pl.from_pandas(frame.rename(columns=str)))[0], encode(schema, frame)[0]
    )
    with pytest.raises(ValueError, match="two columns have the name '3'"):
        infer_schema(frame.rename(columns={17: 3}))
    for wrong in ("", "x", "01", "-0", "1.0", "1_0", "1\u0663"):
        data = schema.to_dict()
        data["columns"][0]["name"] = wrong
        with pytest.raises(ValueError, match=r"columns\[0\].has_number_name"):
            schema_from_dict(data)
    for key, value in (("has_number_name", 1), ("number_name", True)):
        data = schema.to_dict()
        data["columns"][0][key] = value
        with pytest.raises(ValueError, match=key):
            schema_from_dict(data)
    with pytest.raises(ValueError, match=r"has_number_name: expected false"):
        schema_from_dict(infer_schema(frame[[0]]).to_dict() | {"frame": "numpy"})


ALL_MISSING = {
    "pandas": pd.DataFrame(
        {
            "number": [np.nan] * 4,
            "x": [0.5, 0.25, 0.125, 1.0],
            "object": [None] * 4,
            "text": pd.Series([None] * 4, dtype="str"),
            "levels": pd.Categorical([None] * 4, ["u", "v"], ordered=True),
            "numbers": pd.Categorical([None] * 4, [3, 4]),
            "time": pd.to_datetime([None] * 4),
            "zone": pd.to_datetime(pd.Series([None] * 4)).dt.tz_localize("Europe/Berlin"),
            7: pd.Series([None] * 4, dtype="Int64"),
            "boolean": pd.Series([None] * 4, dtype="boolean"),
            "y": ["a", "b"] * 2,
            "arrow": pd.Series([None] * 4, dtype=arrow_dtype(pa.string())),
            "null": pd.Series([None] * 4, dtype=arrow_dtype(pa.null())),
        }
    ),
    "polars": pl.DataFrame({"null": [None] * 4, "x": [1, 2, 3, 4]}).with_columns(
        *(
            pl.lit(None, dtype=kind).alias(str(kind))
            for kind in (pl.String, pl.Categorical, pl.Enum(["a"]), pl.Boolean, pl.Int8, pl.Date)
        ),
        pl.lit(None, dtype=pl.Datetime("us", "UTC")).alias("t"),
        pl.lit(None, dtype=pl.Decimal(10, 2)).alias("d"),
    ),
    "pyarrow": pa.table(
        {"x": [1, 2, 3, 4]}
        | {
            str(kind): pa.nulls(4, kind)
            for kind in (pa.null(), pa.string(), pa.bool_(), pa.date32(), pa.timestamp("ms"), pa.decimal128(5, 2))
        }
    ),
    "numpy": np.array([[np.nan, 1.0, np.nan, 2.0], [np.nan, 2.0, np.nan, 5.0]]),
}


@pytest.mark.parametrize("library", ALL_MISSING)
def test_columns_without_any_known_cell_come_back_as_they_were(library):
    frame = ALL_MISSING[library]
    with pytest.warns(UserWarning, match="columns .*: all cells are missing, so that nothing is known of them") as told:
        back = there_and_back(frame)
    assert len(told) == 1
    if library == "pandas":
        pd.testing.assert_frame_equal(back, frame, check_exact=True)
    elif library == "polars":
        assert_polars_equal(back, frame, check_exact=True, categorical_as_str=True)
    elif library == "pyarrow":
        assert back.equals(frame)
    else:
        np.testing.assert_array_equal(back, frame)


@pytest.mark.filterwarnings("ignore:column.*all cells are missing")
def test_columns_without_any_known_cell_say_nothing():
    schema = infer_schema(ALL_MISSING["pandas"])
    assert schema.names == ("x", "y") and schema.places.tolist() == [1, 10]
    with pytest.raises(ValueError, match="column 'number': all its cells were missing at learning"):
        schema.index("number")
    X, _ = encode(schema, pd.DataFrame({"number": [1.0], "y": ["b"], 7: ["anything"]}))
    np.testing.assert_array_equal(X, [[np.nan, 1.0]])
    X, _ = encode(infer_schema(ALL_MISSING["numpy"]), np.array([[1.0, 2.0, 3.0, 4.0]]))
    np.testing.assert_array_equal(X, [[2.0, 4.0]])
    rest = schema.without(0)
    assert rest.names == ("y",) and rest.all_columns.names == tuple(n for n in schema.all_columns.names if n != "x")
    for key, value in (
        ("place", 12.0),
        ("place", 99),
        ("place", 0),
        ("n_observed", 3),
        ("name", "x"),
        ("dtype", "Null"),
    ):
        data = schema.to_dict()
        data["unknown"][-1][key] = value
        with pytest.raises(ValueError, match=r"schema\.(unknown|columns)"):
            schema_from_dict(data)


def test_datetimes_as_objects_are_datetimes():
    zoned = TIMES.tz_localize("Europe/Berlin")
    for moments in (TIMES, zoned):
        frame = pd.DataFrame({"t": pd.Series(gap(moments.to_pydatetime().tolist()), dtype=object)})
        expected = pd.DataFrame(
            {"t": pd.Series(gap(moments, pd.NaT)).astype(frame["t"].dropna().infer_objects().dtype)}
        )
        pd.testing.assert_frame_equal(there_and_back(frame), expected, check_exact=True)
    mixed = pd.DataFrame({"t": pd.Series([TIMES[0], zoned[0]], dtype=object)})
    with pytest.raises(TypeError, match=r"'t'.*time zones.*pandas.to_datetime.*utc=True"):
        infer_schema(mixed)


@pytest.mark.parametrize("labels", [None, ["low", "mid", "high"]])
def test_intervals_of_cut_are_ordered_levels(labels):
    cut = pd.cut(pd.Series(gap(WHOLE, np.nan)), [-1, 10, 20, 60], labels=labels)
    frame = pd.DataFrame({"cut": cut})
    column = infer_schema(frame).columns[0]
    assert column.kind == "ordered" and column.levels == tuple(str(label) for label in cut.cat.categories)
    back = there_and_back(frame)["cut"]
    assert back.cat.ordered
    assert back.cat.codes.tolist() == cut.cat.codes.tolist()
    assert back.cat.categories.tolist() == cut.cat.categories.tolist()


def test_polars_round_trip():
    assert_polars_equal(there_and_back(POLARS), POLARS, check_exact=True)


def test_arrow_round_trip():
    back = there_and_back(ARROW)
    assert back.schema.types == ARROW.schema.types
    assert back.to_pydict() == ARROW.to_pydict()


def test_arrow_chunks_with_other_dictionaries():
    one, two = pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", None, "c"]).dictionary_encode()
    table = pa.table({"s": pa.chunked_array([one, two])})
    assert there_and_back(table).to_pydict() == {"s": ["a", "b", "b", None, "c"]}


@pytest.mark.parametrize(
    "array",
    [
        np.array(REAL).reshape(-1, 2),
        np.round(REAL, 2).reshape(-1, 2).astype(np.float32),
        np.array(WHOLE).reshape(-1, 2),
        np.array(FLAGS).reshape(-1, 3),
        np.array(TEXT).reshape(-1, 2),
        np.column_stack([np.array(gap(TEXT), dtype=object), np.array(gap(WHOLE), dtype=object)]),
        TIMES.to_numpy().reshape(-1, 2),
    ],
)
def test_numpy_round_trip(array):
    back = there_and_back(array)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_numpy_missing():
    array = np.array([[1.5, np.nan], [np.nan, 2.5], [3.0, 4.0]])
    np.testing.assert_array_equal(there_and_back(array), array)


def test_missing_in_types_without_a_missing_cell():
    frame = pd.DataFrame({"i": [1, 2], "b": [True, False], "c": ["x", "y"]})
    back = decode(infer_schema(frame), np.full((2, 3), np.nan))
    assert back.dtypes.astype(str).tolist() == ["float64", "object", str(frame["c"].dtype)]
    assert back.isna().all(axis=None)
    assert decode(infer_schema(np.array([[1, 2]])), np.array([[np.nan, 2.0]])).dtype == np.float64


def test_columns_by_name_in_any_order_and_library():
    frame = pd.DataFrame(
        {"i": WHOLE, "s": gap(TEXT), "f": gap(REAL, np.nan), "t": TIMES, "b": FLAGS, "c": pd.Categorical(TEXT)}
    )
    schema = infer_schema(frame)
    X, _ = encode(schema, frame)
    shuffled = frame[["c", "f", "t", "b", "i", "s"]]
    others = [shuffled, pl.from_pandas(shuffled), pa.Table.from_pandas(shuffled), shuffled.astype({"s": "category"})]
    for other in others:
        again, unseen = encode(schema, other)
        np.testing.assert_array_equal(again, X)
        assert not unseen.any()
    for other in (frame[["f"]], pl.from_pandas(frame[["f"]])):
        part, _ = encode(schema, other)
        np.testing.assert_array_equal(part[:, 2], X[:, 2])
        assert np.isnan(np.delete(part, 2, axis=1)).all()


def test_unseen_levels():
    schema = infer_schema(pd.DataFrame({"s": ["a", "b"], "n": [1.5, 2.5]}))
    X, unseen = encode(schema, pd.DataFrame({"s": ["b", "zzz", None], "n": [1.0, np.nan, 2.0]}))
    np.testing.assert_array_equal(X, [[1.0, 1.0], [np.nan, np.nan], [np.nan, 2.0]])
    np.testing.assert_array_equal(unseen, [[False, False], [True, False], [False, False]])


def test_unused_unseen_labels_are_no_matter():
    schema = infer_schema(pd.DataFrame({"s": ["a", "b"]}))
    query = pd.DataFrame({"s": pd.Categorical(["b"], categories=["q", "b", "a"])})
    X, unseen = encode(schema, query)
    assert X.tolist() == [[1.0]]
    assert not unseen.any()


def test_numbers_as_levels():
    frame = pd.DataFrame({"k": [3, 1, 2, 3], "b": [1, 0, 1, 0]})
    kinds = {"k": "categorical", "b": "boolean"}
    schema = infer_schema(frame, kinds)
    assert schema["k"].levels == (1, 2, 3)
    pd.testing.assert_frame_equal(there_and_back(frame, kinds=kinds), frame)
    X, unseen = encode(schema, pd.DataFrame({"k": [2.0, np.nan, 7.0]}))
    np.testing.assert_array_equal(X[:, 0], [1.0, np.nan, np.nan])
    assert unseen[:, 0].tolist() == [False, False, True]


@pytest.mark.parametrize("categories", [[1, 5, 7], [0.5, 1.0, 2.25], pd.Index([1, 2.5, 7], dtype=object)])
@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_categories_learned_as_numbers_are_numbers(categories, library):
    frame = pd.DataFrame({"a": pd.Categorical([categories[k] for k in (0, 2, 1, 1)], categories, ordered=True)})
    if library == "pyarrow":
        frame = pa.table({"a": pa.array(frame["a"].astype(float)).dictionary_encode()})
    schema = infer_schema(frame, {"a": "continuous"})
    again = schema_from_dict(schema.to_dict())
    X, _ = encode(again, frame)
    assert X[:, 0].tolist() == [categories[k] for k in (0, 2, 1, 1)]
    back = decode(again, X)
    numbers = back["a"].to_list() if library == "pandas" else back["a"].to_pylist()
    assert numbers == X[:, 0].tolist() and (library == "pyarrow" or back["a"].dtype.kind in "if")


def test_decimals_come_back_as_written():
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.3] * 10, "b": [0.05, 0.15, 1.35] * 10, "c": [0.25, 0.5, 1.75] * 10})
    schema = infer_schema(frame)
    drawn = np.array([[0.1 + 0.2, 0.1 * 3, 0.7500001], [0.7 - 1e-9, 1.15 - 1e-12, -0.26]])
    assert decode(schema, drawn).to_numpy().tolist() == [[0.3, 0.3, 0.75], [0.7, 1.15, -0.25]]


@pytest.mark.parametrize(("scale", "written"), [(4, "12.3457"), (0, "12"), (18, "12.3456789")])
def test_decimals_without_a_grid_have_the_decimals_of_the_cells(scale, written):
    rng = np.random.default_rng(0)
    cells = [decimal.Decimal(f"{x:.{scale}f}") for x in rng.normal(0.0, 1e6, 300).tolist()]
    cells[3] = decimal.Decimal(5)  # with fewer decimals than the others
    schema = infer_schema(pd.DataFrame({"x": [*cells, None]}))
    back = decode(schema, np.array([[12.3456789], [np.nan]]))["x"].tolist()
    assert str(back[0]) == written and back[1] is None
    again = schema_from_dict(schema.to_dict())
    assert again == schema and decode(again, np.array([[12.3456789]]))["x"].tolist() == back[:1]


def test_integers_are_clipped_not_wrapped():
    frame = pd.DataFrame({"u": np.arange(250, 256, dtype=np.uint8), "i": np.arange(6, dtype=np.int64)})
    back = decode(infer_schema(frame), np.array([[300.0, 1e19], [-3.0, -1e19], [254.6, 0.4]]))
    assert back["u"].tolist() == [255, 0, 255]
    assert back["i"].iloc[0] > 9.2e18
    assert back["i"].iloc[1] < -9.2e18
    assert back["i"].iloc[2] == 0


def test_far_values():
    frame = pd.DataFrame(
        {
            "r": [0.1, 0.2] * 20,
            "f": np.float32([0.5, np.pi] * 20),
            "t": TIMES[:40].as_unit("us"),
            "n": TIMES[:40].as_unit("ns"),
        }
    )
    schema = infer_schema(frame)
    X, _ = encode(schema, frame)
    X[:2] = [[1e308, 1e300, 1e30, 1e30], [-1e300, -1e300, -1e30, -1e30]]
    back = decode(schema, X)
    assert back["r"].iloc[:3].tolist() == [1e308, -1e300, 0.1]
    assert np.isfinite(back["f"]).all()
    assert back["t"].dt.year.iloc[:2].tolist() == [9999, 1]
    assert back["n"].dt.year.iloc[:2].tolist() == [2261, 1678]
    assert schema["t"].from_number(1e30).year == 9999
    assert schema["r"].from_number(1e308) == 1e308


def test_fixed_offsets():
    zone = dt.timezone(dt.timedelta(hours=2))
    frame = pd.DataFrame({"t": TIMES.tz_localize(zone)})
    assert_polars = pl.from_pandas(pd.DataFrame({"t": TIMES.tz_localize("UTC")}))
    pd.testing.assert_frame_equal(there_and_back(frame), frame)
    np.testing.assert_allclose(np.diff(encode(infer_schema(frame), assert_polars)[0][:, 0]), 7 * 3600.0)


def test_dates_of_a_frame_in_another_unit_or_zone():
    frame = pd.DataFrame({"t": TIMES.tz_localize("UTC")})
    schema = infer_schema(frame)
    X, _ = encode(schema, frame)
    for other in (
        TIMES.tz_localize("UTC").tz_convert("Asia/Tokyo").as_unit("ns"),
        TIMES.tz_localize("UTC").as_unit("s"),
    ):
        np.testing.assert_array_equal(encode(schema, pd.DataFrame({"t": other}))[0], X)
    with pytest.raises(ValueError, match=r"'t'.*time zone"):
        encode(schema, pd.DataFrame({"t": TIMES}))
    days = infer_schema(pd.DataFrame({"t": TIMES}))
    np.testing.assert_array_equal(encode(days, pl.DataFrame({"t": [dt.date(2024, 1, 3)]}))[0], [[2 * 86400.0]])


def test_empty_and_all_missing_queries():
    schema = infer_schema(pd.DataFrame({"s": ["a", "b"], "n": [1.5, 2.5], "t": TIMES[:2], "b": [True, False]}))
    assert encode(schema, pd.DataFrame({"s": []}))[0].shape == (0, 4)
    nothing = [
        pd.DataFrame({name: [None, None] for name in schema.names}),
        pl.DataFrame({"t": [None, None], "s": [None, None]}),
    ]
    for frame in nothing:
        X, unseen = encode(schema, frame)
        assert np.isnan(X).all()
        assert not unseen.any()
    assert decode(schema, np.empty((0, 4))).shape == (0, 4)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"n": ["1", "x"]}), "column 'n' .rounded.: expected numbers, got the text 'x'; .*--na x"),
        (pd.DataFrame({"n": ["1", "n d", "x y", "2"]}), "got the text 'n d' and 1 more; .*--na 'n d'"),
        (pd.DataFrame({"n": ["1", "2"]}), "got the text '1'; turn the column into numbers"),
        (pd.DataFrame({"n": [1.0, np.inf, -np.inf]}), "column 'n': 2 infinite values"),
        (pd.DataFrame({"n": TIMES[:2]}), "column 'n'.*got dates"),
        (pd.DataFrame({"s": [1, 2]}), "column 's': expected one of its levels such as 'a', got 1"),
        (pd.DataFrame({"t": ["2024-01-01"]}), "column 't': expected dates or times, got '2024-01-01'"),
        (pd.DataFrame({"t": ["2024-01-01", "nonsense", None]}), "column 't': expected dates or times, got 'nonsense'"),
        (pd.DataFrame({"t": [1.0]}), "column 't': expected dates or times, got numbers"),
        (pd.DataFrame({"b": [0, 2]}), "column 'b': expected True or False, got 2"),
        (pd.DataFrame({"b": ["yes"]}), "column 'b': expected one of its levels such as False, got 'yes'"),
        (pd.DataFrame({"N": [1.0]}), "does not have: 'N' .did you mean 'n'"),
        (pd.DataFrame([[1, 2]], columns=["n", "n"]), "does not have: 'n_2'"),
        (pd.DataFrame({0.5: [1]}), "column names must be text"),
        (pd.DataFrame({0: [1]}), "does not have: '0'"),
        (np.zeros((2, 3)), "the array has 3 columns, the model 4"),
    ],
)
def test_bad_queries(frame, message):
    schema = infer_schema(pd.DataFrame({"s": ["a", "b"], "n": [1.51, 2.52], "t": TIMES[:2], "b": [True, False]}))
    with pytest.raises(ValueError, match=message):
        encode(schema, frame)


def test_penguins_are_the_same_in_every_library():
    schema = infer_schema(load_penguins())
    arrays = [encode(schema, load_penguins(frame))[0] for frame in ("pandas", "polars", "pyarrow")]
    assert arrays[0].shape == (344, 7)
    assert np.isnan(arrays[0]).sum() == 19
    np.testing.assert_array_equal(arrays[1], arrays[0])
    np.testing.assert_array_equal(arrays[2], arrays[0])
    pd.testing.assert_frame_equal(decode(schema, arrays[0]), load_penguins())
    with pytest.raises(ValueError, match="frame: expected"):
        load_penguins("R")


def test_no_frame_library_is_imported_for_an_array():
    code = (
        "import sys, numpy as np; from jointforest.data.infer_schema import infer_schema; "
        "from jointforest.data.frames import encode, decode; from jointforest.data.evidence import build; "
        "a = np.random.rand(9, 2); s = infer_schema(a); decode(s, encode(s, a)[0]); "
        "assert not {'pandas', 'polars', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("values", "bins"),
    [
        (pd.Series([1.5, 7.25, 9.0, 2.5] * 10), 3),
        (pd.Series([1, 7, 9, 2] * 10), [0, 5, 10]),
        (pd.Series(pd.to_datetime(["2024-01-01", "2024-03-01", "2024-06-02", "2024-02-01"] * 10)), 3),
        (pd.Series(pd.to_timedelta(["1 day", "3 days", "6 days 12:00:00", "2 days"] * 10)), 3),
        (pd.Series(pd.to_datetime(["2024-01-01", "2024-03-01", "2024-06-01", "2024-02-01"] * 10, utc=True)), 3),
    ],
)
def test_categories_of_pandas_cut_come_back_as_intervals(values: pd.Series, bins: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": pd.cut(values, bins), "y": range(len(values))})
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    joint.save(tmp_path / "m.joint")
    for one in (joint, jf.load(tmp_path / "m.joint")):
        assert one.sample(20, 0)["x"].dtype == frame["x"].dtype
        holes = frame.copy()
        holes.loc[3, "x"] = np.nan
        filled = one.impute(holes)
        assert filled["x"].dtype == frame["x"].dtype and filled["x"].notna().all()
        assert (filled["x"].drop(3) == frame["x"].drop(3)).all()
        # an interval of pandas is evidence as its text is
        interval = frame["x"].iloc[0]
        mean = one.given(x=str(interval)).mean("y")
        assert one.given(x=interval).mean("y") == one.given(frame[["x"]].iloc[0]).mean("y") == mean
        assert one.given(x=[interval]).mean("y") == mean
