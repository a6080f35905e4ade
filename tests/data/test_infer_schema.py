"""Kinds inferred: each rule on columns where the right answer is known, overrides, and clear errors."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from jointforest.data.infer_schema import infer_schema
from jointforest.data.observe_table import find_atoms, grid_step, on_grids
from jointforest.data.schema_check import schema_from_dict

RNG = np.random.default_rng(1)


def column(values, kind=None):
    frame = pd.DataFrame({"x": values})
    return infer_schema(frame, None if kind is None else {"x": kind})["x"]


@pytest.mark.parametrize(
    ("values", "kind", "step"),
    [
        (RNG.normal(size=500), "continuous", 0.0),
        (RNG.normal(size=500) * 1e300, "continuous", 0.0),
        (RNG.normal(size=500) * 1e-300, "continuous", 0.0),
        (RNG.random(500).astype("float32"), "continuous", 0.0),
        (np.round(RNG.normal(size=500), 1), "rounded", 0.1),
        (np.round(RNG.normal(size=500), 2), "rounded", 0.01),
        (np.round(RNG.normal(size=500), 2).astype("float32"), "rounded", 0.01),
        (np.round(RNG.normal(size=500) * 4) / 4, "rounded", 0.25),
        (np.round(RNG.normal(size=500) * 2) / 2, "rounded", 0.5),
        (np.round(RNG.normal(size=500) * 20) / 20, "rounded", 0.05),
        (np.round(RNG.normal(size=500), 6), "rounded", 1e-6),
        (RNG.integers(0, 100, 500), "integer", 1.0),
        (RNG.integers(0, 100, 500).astype(float), "integer", 1.0),
        (np.r_[np.nan, RNG.integers(0, 100, 500)], "integer", 1.0),
        (np.where(RNG.random(500) < 0.3, 0.0, RNG.normal(size=500)), "mixed", 0.0),
        (RNG.random(500) < 0.5, "boolean", 0.0),
        (["a", "b", None], "categorical", 0.0),
        (pd.Categorical(["a", "b"], ordered=True), "ordered", 0.0),
        (pd.date_range("2024-01-01", periods=9), "datetime", 86400.0),
        (pd.date_range("2024-01-01 05:00", periods=9, freq="3h"), "datetime", 10_800.0),
        (pd.date_range("2024-01-01 05:07", periods=9, freq="13min"), "datetime", 780.0),
        (pd.date_range("2024-01-01 05:07:01", periods=9, freq="13s"), "datetime", 13.0),
        (pd.date_range("2024-01-01 05:07:01", periods=9, freq="13ms"), "datetime", 0.013),
        (pd.date_range("2024-01-01 05:07:01", periods=9, freq="13us"), "datetime", 13e-6),
        ([3.7] * 9, "rounded", 0.1),
        ([np.pi] * 9, "mixed", 0.0),
        ([np.pi], "continuous", 0.0),
        ([5], "integer", 1.0),
    ],
)
def test_kinds(values, kind, step):
    found = column(values)
    assert (found.kind, found.step) == (kind, step)


def atoms(values, counts, step):
    return find_atoms(values, counts, step, int(counts.sum()), len(values))


def test_atoms():
    assert column(np.where(RNG.random(500) < 0.3, 0.0, RNG.normal(size=500))).atoms == (0.0,)
    heaps = np.where(RNG.random(2000) < 0.3, 40, RNG.integers(1, 99, 2000))
    assert column(heaps).atoms == (40.0,)
    # a narrow bell on a grid is smooth, whatever the share of its middle cells
    assert column(np.round(RNG.normal(size=5000) * 6)).atoms == ()
    assert column(RNG.integers(0, 4, 500)).atoms == (0.0, 1.0, 2.0, 3.0)
    assert column([np.pi] * 9).atoms == (np.pi,)
    # without a grid: 0.2 % of the cells, and 20 of them, where a density would repeat no value
    assert atoms(np.arange(64.0), np.full(64, 19), 0.0) == ()
    assert atoms(np.arange(64.0), np.full(64, 20), 0.0) == tuple(np.arange(64.0))
    assert atoms(np.arange(64.0), np.full(64, 20), 1.0) == ()
    counts = np.where(np.arange(20_000) < 3, [30, 42, 50] + [0] * 19_997, 1)
    assert atoms(np.arange(20_000.0), counts, 0.0) == (1.0, 2.0)
    # a small heap where nothing else is near, and not the thinning ends of a bell
    gains = np.where(RNG.random(20_000) < 0.01, 7298, np.round(RNG.exponential(size=20_000) * 3000))
    assert column(gains.astype(int)).atoms == (7298.0,)
    # the most common of too many
    counts = np.arange(10, 110)
    assert atoms(np.arange(0.0, 1000.0, 10.0), counts, 1.0) == tuple(np.arange(360.0, 1000.0, 10.0))
    # 12 rows: a value seen once is no atom although it holds more than 5 %
    assert column(RNG.normal(size=12)).atoms == ()


def decimal_step(values):
    return grid_step(on_grids(values, 2.3e-16), len(values), float(np.abs(values).max()), 2.3e-16)


def test_decimal_step():
    assert decimal_step(np.arange(10) / 2) == 0.5 and decimal_step(np.array([np.pi])) == 0.0
    assert decimal_step(np.array([0.1 + 0.2, 0.7, 1.1])) == 0.1
    assert decimal_step(np.array([-0.5, 2.0])) == 0.1  # too few values to tell 0.5 from 0.1
    assert decimal_step(np.array([1e15 + 0.5])) == 0.0
    assert decimal_step(np.array([1e300])) == 0.0


@pytest.mark.parametrize(
    "noise", [lambda x: x.astype(np.float32), lambda x: np.where(RNG.random(len(x)) < 0.5, x, x * 3 / 3)]
)
def test_atoms_are_cell_centres(noise):
    values = np.where(RNG.random(900) < 0.2, 0.3, np.round(RNG.normal(size=900), 1))
    frame = pd.DataFrame({"x": noise(values)})
    schema = infer_schema(frame)
    assert schema["x"].step == 0.1 and 0.3 in schema["x"].atoms
    assert all(round(atom, 1) == atom for atom in schema["x"].atoms)
    assert schema_from_dict(schema.to_dict()).to_dict() == schema.to_dict()


def test_levels():
    assert column(["b", "a", None, "b"]).levels == ("a", "b")
    assert column(pd.Categorical(["b"], categories=["z", "b", "a"])).levels == ("z", "b", "a")
    assert infer_schema(pl.DataFrame({"x": ["b", "a"]}, schema={"x": pl.Enum(["z", "b", "a"])}))["x"].levels == (
        "z",
        "b",
        "a",
    )
    enum = pl.DataFrame({"x": ["b", "a"]}, schema={"x": pl.Enum(["z", "b", "a"])})
    assert infer_schema(enum)["x"].kind == infer_schema(enum.to_arrow())["x"].kind == "ordered"
    assert infer_schema(enum, {"x": "categorical"})["x"].kind == "categorical"
    assert infer_schema(pl.DataFrame({"x": ["b", "a"]}, schema={"x": pl.Categorical}))["x"].levels == ("a", "b")
    assert infer_schema(pa.table({"x": pa.array(["b", "a"]).dictionary_encode()}))["x"].levels == ("b", "a")
    found = column(["b", "a", None, "b"])
    assert found.n_observed == 3
    assert np.isnan(found.minimum)


@pytest.mark.parametrize(("value", "text"), [(-999, "-999"), (9999, "9999"), (-99, None), (98765, None)])
def test_a_far_value_of_nines_may_mean_missing(value, text):
    frame = pd.DataFrame({"age": [*range(20, 60), value, value]})
    if text is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            infer_schema(frame)
        return
    with pytest.warns(
        UserWarning, match=f"'age': 2 cells are {text}, far from all other values .20 to 59.*--na={text}"
    ):
        infer_schema(frame)


def test_range():
    found = column([3, 9, None, 4])
    assert (found.minimum, found.maximum, found.n_observed) == (3.0, 9.0, 3)
    when = column(pd.to_datetime(["2024-01-02", "2024-01-01", "2024-01-04"]))
    assert (when.origin, when.minimum, when.maximum) == (
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC).timestamp(),
        0.0,
        3 * 86400,
    )


@pytest.mark.parametrize(
    ("values", "asked", "step", "atoms", "levels"),
    [
        ([0, 0, 0, 0, 0, 1, 2], "continuous", 0.0, (), ()),
        ([0.1, 0.1, 0.2], "continuous", 0.0, (), ()),
        ([0, 0, 0, 0, 0, 1, 2], "mixed", 0.0, (0.0,), ()),
        ([1.0, 2.0], "integer", 1.0, (), ()),
        ([0.11, 0.52], "rounded", 0.01, (), ()),
        ([3, 1, 1], "categorical", 0.0, (), (1, 3)),
        ([2.5, 1.0], "ordered", 0.0, (), (1, 2.5)),
        ([0, 1, 1], "boolean", 0.0, (), (False, True)),
        ([True, True], "categorical", 0.0, (), (True,)),
        (["b", "a"], "ordered", 0.0, (), ("a", "b")),
        (pd.Categorical([3, 1]), "integer", 1.0, (), ()),
        ([True, False, True], "integer", 1.0, (), ()),
    ],
)
def test_overrides(values, asked, step, atoms, levels):
    found = column(values, asked)
    assert (found.kind, found.step, found.atoms, found.levels) == (asked, step, atoms, levels)


@pytest.mark.parametrize(
    ("values", "asked", "message"),
    [
        ([1.5, 2.0], "integer", "column 'x': an integer column holds whole numbers.*got.*1.5"),
        ([np.pi, 2.0], "rounded", "column 'x'.*not on a grid"),
        ([1.1, 2.0], "mixed", "column 'x': no value is common"),
        (["a"], "continuous", "column 'x': got 'a'"),
        (["soon"], "datetime", "column 'x': got 'soon'.*dates first"),
        ([1.0], "datetime", "column 'x': got numbers"),
        ([0, 2], "boolean", "column 'x'.*0 and 1 only, got 2"),
        (["yes"], "boolean", "column 'x'.*True and False, got 'yes'"),
        (pd.date_range("2024", periods=2), "categorical", "column 'x': dates and times"),
        ([1.0, np.inf], None, "column 'x': 1 infinite value;"),
        ([-np.inf, np.inf], "continuous", "column 'x': 2 infinite values"),
        ([np.inf, 1.0], "categorical", "column 'x': 1 infinite"),
        ([None, None], None, "column 'x': all cells are missing.*no other"),
        ([np.nan, np.nan], None, "column 'x': all cells are missing"),
        (pd.Categorical([None], categories=["a"]), None, "column 'x': all cells are missing"),
        ([], None, "no rows"),
        ([f"id{k}" for k in range(10_001)], None, "column 'x' names the rows .*no other column"),
        (pd.Categorical([f"id{k}" for k in range(10_001)]), None, "column 'x' has 10,001 levels, too many.*no other"),
        (np.arange(10_001), "categorical", "column 'x': 10001 levels, at most 10000 are supported"),
        ([1.0], "number", "kinds: column 'x': 'number' is no kind"),
    ],
)
def test_bad_columns(values, asked, message):
    with pytest.raises(ValueError, match=message):
        column(values, asked)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            pd.Series([1, True, 2.5, "a"], dtype=object),
            "column 'x': an object column that holds 1 int, 1 bool, 1 float",
        ),
        (
            pd.Series([[1], [2]], dtype=object),
            "column 'x'.*list.*leave the column out, drop it from the table; .* kinds={'x': 'ignored'}",
        ),
        (pd.Series([b"a"], dtype=object), "column 'x'.*1 bytes"),
        (pd.Series([1 + 2j]), "column 'x': complex128.*real and its imaginary"),
        (pd.Categorical([pd.Timestamp("2024-01-01")]), "column 'x': levels must be text.*take the category away"),
        (pd.Series([0.0, 1.0], dtype="Sparse[float]"), "column 'x': Sparse.*to_dense"),
    ],
)
def test_unsupported_types(values, message):
    with pytest.raises(TypeError, match=message):
        column(values)


@pytest.mark.parametrize(
    ("frame", "error", "message"),
    [
        (pd.DataFrame(), ValueError, "no columns"),
        (pl.DataFrame({"x": [[1], [2]]}), TypeError, r"column 'x': List\(Int64\)"),
        (pl.LazyFrame({"x": [1]}), TypeError, r"\.collect\(\)"),
        (pa.table({"x": pa.array([{"a": 1}])}), TypeError, "column 'x': struct"),
        (
            pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
            ValueError,
            "must be text",
        ),
        (
            pa.table({"x": pa.DictionaryArray.from_arrays([0, 1], ["a", "a"])}),
            ValueError,
            "'x': two of its levels equal 'a'",
        ),
        (np.zeros(3), TypeError, r"2-D array, got shape \(3,\)"),
        (np.zeros(3, dtype=[("a", float)]), TypeError, "structured"),
        (np.ma.masked_array(np.zeros((2, 2))), TypeError, "masked"),
        (np.array([[1, "a"], [[], "c"]], dtype=object), TypeError, "column 'x0'.*1 int, 1 list"),
        ({"x": [1]}, TypeError, r"got dict.*pandas.DataFrame"),
        ([[1]], TypeError, "got list"),
        (None, TypeError, "NoneType"),
    ],
)
def test_bad_frames(frame, error, message):
    with pytest.raises(error, match=message):
        infer_schema(frame)


def test_unknown_name_in_kinds():
    with pytest.raises(TypeError, match="kinds: expected a dict"):
        infer_schema(pd.DataFrame({"age": [1]}), kinds=["age"])
    with pytest.raises(ValueError, match="kinds: there is no column 'agee'; did you mean 'age'"):
        infer_schema(pd.DataFrame({"age": [1]}), {"agee": "integer"})


def test_warnings():
    with pytest.warns(UserWarning, match="column 'x': 185 different texts in 200 rows") as texts:
        column([f"id{min(k, 184)}" for k in range(200)])
    with pytest.warns(UserWarning, match=r"column 'x': integers beyond 2\*\*51") as integers:
        assert column([2**60, 1]).kind == "continuous"
    assert texts[0].filename == integers[0].filename == __file__  # the caller's line, not the library's
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        column(["a", "b"] * 100)
        column([f"id{k}" for k in range(50)])
        column(
            pd.Categorical(["a", "b"] * 100, [f"id{k}" for k in range(500)] + ["a", "b"])
        )  # unused ones do not count


def test_row_order_changes_nothing():
    frame = pd.DataFrame(
        {
            "s": RNG.choice(list("abc"), 300),
            "r": np.round(RNG.normal(size=300), 1),
            "t": pd.date_range("2024", periods=300),
        }
    )
    assert infer_schema(frame.sample(frac=1, random_state=0)).to_dict() == infer_schema(frame).to_dict()
    polars = pl.from_pandas(frame).with_columns(pl.col("s").cast(pl.Categorical))
    assert infer_schema(polars.reverse()).to_dict() == infer_schema(polars).to_dict()


@pytest.mark.parametrize("digits", [3, 4, 6, 9, 10])
def test_significant_digits(digits):
    rng = np.random.default_rng(digits)
    x = np.array([float(f"{v:.{digits - 1}e}") for v in rng.lognormal(0.0, 3.0, 500).tolist()])
    assert infer_schema(pd.DataFrame({"x": x})).columns[0].digits == (digits if 4 <= digits <= 9 else 0)
    x[7] = np.pi
    assert infer_schema(pd.DataFrame({"x": x})).columns[0].digits == 0


def test_digits_that_a_grid_explains_are_not_told():
    rng = np.random.default_rng(0)
    prices = rng.choice(rng.integers(100, 99_999, 100), 500) / 100
    frame = pd.DataFrame({"a": prices, "b": rng.integers(0, 10**6, 500), "c": np.append(prices[1:], 1_234.5)})
    assert [column.digits for column in infer_schema(frame).columns] == [0, 0, 0]
