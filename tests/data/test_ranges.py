"""Cells that are ranges: what a person reads in a column, what stays text, errors, and imputed values."""

import io
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointforest as jf
from jointforest.data.frames import decode, encode, encode_ranges
from jointforest.data.infer_schema import infer_schema
from jointforest.data.meaning import meaning_of
from jointforest.data.range_texts import range_text
from jointforest.data.ranges import complete_column, complete_table
from jointforest.data.reading import reading_of
from jointforest.data.schema import Column, Schema
from jointforest.data.schema_check import schema_from_dict

INF = math.inf


def read(cells, kinds=None, dtype=None):
    """Numbers of a column beside another one, and the intervals of the cells that are ranges, by row."""
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=dtype), "y": np.linspace(0.0, 1.0, len(cells)) ** 2})
    schema = infer_schema(frame, kinds)
    X, _, ranges = encode_ranges(schema, frame)
    found = {}
    if ranges is not None:
        found = {int(i): ranges.intervals[ranges.number[i, 0]] for i in np.flatnonzero(ranges.number[:, 0] >= 0)}
    return schema.columns[0], X[:, 0], found


NUMBERS = ["3", "5", "8", "11", "14", "17", "21", "25", "28", "31", "40", "52"]


@pytest.mark.parametrize(
    ("text", "lo", "hi", "closed"),
    [
        ("<5", None, 5, "neither"),
        ("< 5", None, 5, "neither"),
        ("under 5", None, 5, "neither"),
        ("less than 5", None, 5, "neither"),
        ("<=5", None, 5, "right"),
        ("≤ 5", None, 5, "right"),
        ("up to 5", None, 5, "right"),
        ("5 or less", None, 5, "right"),
        (">100", 100, None, "neither"),
        ("over 100", 100, None, "neither"),
        (">=100", 100, None, "left"),
        ("≥100", 100, None, "left"),
        ("100+", 100, None, "left"),
        ("65 and over", 65, None, "left"),
        ("65 or older", 65, None, "left"),
        ("at least 65", 65, None, "left"),
        ("10-20", 10, 20, "both"),
        ("10 - 20", 10, 20, "both"),
        ("10–20", 10, 20, "both"),
        ("10 to 20", 10, 20, "both"),
        ("[10, 20)", 10, 20, "left"),
        ("(10, 20]", 10, 20, "right"),
        ("[10; 20]", 10, 20, "both"),
        ("(10, inf)", 10, None, "neither"),
        ("-5 to 5", -5, 5, "both"),
        ("<-5", None, -5, "neither"),
    ],
)
def test_a_text_among_numbers_is_a_range(text, lo, hi, closed):
    column, x, found = read([*NUMBERS, text])
    assert found == {len(NUMBERS): jf.Interval(lo, hi, closed)} and column.n_ranges == 1
    np.testing.assert_array_equal(x[:-1], np.array(NUMBERS, float))
    assert np.isnan(x[-1]) and column.n_observed == len(NUMBERS) + 1
    assert "1 of 13 known cells are ranges" in str(reading_of(Schema((column,), "pandas")))


@pytest.mark.parametrize(
    ("cells", "text", "ends"),
    [
        (["0.31 mg/l", "0.5 mg/l", "1.25 mg/l"], "<0.25 mg/l", (None, 0.25)),
        (["$1,200", "$900", "$15,000", "$300"], "$1,000-$2,000", (1000, 2000)),
        (["$1,200", "$900", "$15,000", "$300"], "> $50,000", (50000, None)),
        (["1,5", "2,75", "3,1"], "<0,5", (None, 0.5)),
        (["1,5", "2,75", "3,1"], "[0,5; 1,5]", (0.5, 1.5)),
        (["12 %", "15 %", "3 %"], "<2 %", (None, 2)),
    ],
)
def test_units_and_signs_stand_in_ranges(cells, text, ends):
    found = read([*cells * 4, text])[2]
    assert [(one.lo, one.hi) for one in found.values()] == [ends]


@pytest.mark.parametrize(
    "cells",
    [
        ["12-345", "77-120", "30-441", "56-002"],  # codes with zeros in front
        ["555-1234", "555-8832", "554-0101", "212-9000"],  # telephone numbers
        ["555-1234", "5550012", "554-7101", "2129000"],
        ["3-1", "0-0", "2-2", "1-4"],  # scores
        ["2020-01", "2020-02", "2021-11", "2019-05"],  # months
        ["2020-01-05", "2021-02-07", "2019-12-31", "2020-03-03"],
        ["1-2-3", "4-5-6", "7-8-9", "1-1-1"],
        ["A<5", "B<6", "C<7", "D"],
        ["low (<5)", "high", "5", "7"],
        ["<5", "high", "5", "7"],
        ["5±1", "6±2", "7±1", "9±1"],
    ],
)
def test_a_dash_or_sign_in_codes_dates_and_scores_is_no_range(cells):
    column, _, found = read(cells * 5)
    assert not found and column.n_ranges == 0
    assert column.kind in ("categorical", "datetime")


def test_codes_among_numbers_stay_text():
    assert read(["1001", "1002", "1002-2", "1005", "1004-1"] * 3)[0].kind == "categorical"
    assert read(["12", "013-14", "15", "16-18"] * 3)[0].kind == "categorical"


def test_words_for_missing_cells_stand_beside_ranges():
    column, x, found = read(["<5", "7", "n/a", "9", "11", "unknown"] * 3)
    assert column.n_ranges == 3 and len(found) == 3 and np.isnan(x).sum() == 9


def test_brackets_alone_are_ordered_levels_and_a_notice_says_how_to_change_it():
    cells = ["18-24", "25-34", "65+", "35-64", "<18"] * 6
    with pytest.warns(UserWarning, match="kinds={'x': 'ranges'}, or --kinds x=ranges"):
        column, _, found = read(cells)
    assert column.kind == "ordered" and column.levels == ("<18", "18-24", "25-34", "35-64", "65+") and not found
    column, _, found = read(cells, {"x": "ranges"})
    assert column.kind == "integer" and column.n_ranges == 30 and found[2] == jf.Interval(65, None, "left")
    schema = Schema((column,), "pandas")
    assert schema_from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert column.lower <= 18 and read(cells, {"x": "continuous"})[0].n_ranges == 30
    assert read(cells, {"x": "categorical"})[0].levels == ("18-24", "25-34", "35-64", "65+", "<18")


def test_two_sides_of_one_limit():
    column, _, found = read(["<5", ">=5"] * 10, {"x": "ranges"})
    assert column.n_ranges == 20 and found[1] == jf.Interval(5, None, "left")


def test_brackets_with_other_levels_or_overlaps_have_no_order():
    assert read(["18-24", "25-34", "65+", "retired"] * 6)[0].kind == "categorical"
    assert read(["1-3", "2-5", "4-6", "1-2"] * 6)[0].kind == "categorical"


def test_objects_and_intervals_of_pandas():
    column, x, found = read([1.5, jf.between(2, 3), None, 4.25, jf.between(None, 1), pd.Interval(2, 5)], dtype=object)
    assert column.dtype == "float64" and column.n_observed == 5 and column.n_ranges == 3
    assert found[5] == jf.Interval(2, 5, "right") and np.isnan(x[[1, 2, 4, 5]]).all()
    intervals = pd.arrays.IntervalArray.from_tuples([(0, 5), (5, 10), (2, 7), (0, 5)] * 3, closed="left")
    column, _, found = read(intervals)
    assert column.n_ranges == 12 and found[2] == jf.Interval(2, 7, "left")
    assert column.dtype == "float64"


def test_intervals_of_dates():
    days = pd.date_range("2024-01-01", periods=30)
    cells = pd.Series(days, dtype=object)
    cells[3] = jf.between(pd.Timestamp("2024-01-10"), None)
    cells[4] = pd.Interval(pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-05"))
    frame = pd.DataFrame({"d": cells, "y": np.arange(30.0) ** 2})
    joint = jf.HiddenTreeForest(n_states=4, random_state=0).fit(frame).joint_
    assert joint.schema["d"].kind == "datetime" and joint.schema["d"].n_ranges == 2
    filled = joint.impute(frame, ranges="fill")
    assert pd.Timestamp("2024-01-03") <= filled.d[4] <= pd.Timestamp("2024-01-05")


@pytest.mark.parametrize(("apart", "share"), [(9, 0.0), (7, 0.0), (9, 0.2)])
def test_columns_of_intervals_of_dates_alone(apart, share):
    rng = np.random.default_rng(0)
    day = rng.integers(0, 300, 400)
    low = pd.Timestamp("2024-01-01") + pd.to_timedelta(day // apart * apart, unit="D")
    when = pd.Series(pd.arrays.IntervalArray.from_arrays(low, low + pd.Timedelta(days=apart), "left"))
    when[rng.random(400) < share] = None
    frame = pd.DataFrame({"when": when, "y": day + rng.normal(size=400)})
    joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(frame).joint_
    column = joint.schema["when"]
    assert (column.kind, column.step, column.n_ranges, column.only) == ("datetime", 86400.0, when.notna().sum(), "")
    mean = pd.Timestamp(joint.given().mean("when"))
    assert abs((mean - pd.Timestamp("2024-01-01")) / pd.Timedelta(days=1) - day.mean()) < (3 if share else 1)
    filled = joint.impute(frame, "sample", ranges="fill", random_state=0).when
    is_range = when.notna().to_numpy()
    assert ((filled >= low) & (filled < low + pd.Timedelta(days=apart)))[is_range].all() and filled.notna().all()
    assert len(set(filled.dt.strftime("%a"))) == 7


def test_intervals_of_dates_with_a_time_zone_and_of_texts():
    low = pd.date_range("2024-01-01", periods=40, tz="Europe/Berlin")
    frame = pd.DataFrame({"d": pd.arrays.IntervalArray.from_arrays(low, low.shift(9)), "y": np.arange(40.0) ** 1.5})
    schema = infer_schema(frame)
    assert schema.columns[0].dtype == "datetime64[us, Europe/Berlin]" and schema.columns[0].n_ranges == 40
    with pytest.raises(ValueError, match=r"column 'd': expected ranges of numbers, or of dates .* got '2024-01-01'"):
        infer_schema(frame.assign(d=[jf.between("2024-01-01", "2024-02-01")] * 40))


@pytest.mark.parametrize("library", ["polars", "pyarrow", "numpy", "csv"])
def test_every_library(library, tmp_path):
    cells = ["<0.25", "0.5", "1.25", "3", "0.75", ">10", "2-3", "1.5", "2.25", "0.3", "7", "8"]
    y = [0.5 * k * k for k in range(12)]
    if library == "numpy":
        frame = np.array(list(zip(cells, y, strict=True)), dtype=object)
    elif library == "csv":
        frame = pd.read_csv(io.StringIO("x,y\n" + "\n".join(f"{a},{b}" for a, b in zip(cells, y, strict=True))))
    else:
        frame = {"polars": pl.DataFrame, "pyarrow": pa.table}[library]({"x": cells, "y": y})
    schema = infer_schema(frame)
    X, _, ranges = encode_ranges(schema, frame)
    assert np.flatnonzero(ranges.number[:, 0] >= 0).tolist() == [0, 5, 6] and schema.columns[0].n_ranges == 3
    out = decode(schema, complete_table(schema, X, ranges))
    assert encode(schema, out)[1].sum() == 0  # texts of numbers in the file's form


def test_evidence_is_read_alike_with_text_in_a_column_of_numbers():
    frame = pd.DataFrame({"x": np.arange(20.0) ** 1.5, "y": np.arange(20.0)})
    schema = infer_schema(frame)
    X, _, ranges = encode_ranges(schema, pd.DataFrame({"x": ["<5", "7", "10-20"]}))
    assert ranges.number[:, 0].tolist() == [0, -1, 1] and X[1, 0] == 7.0
    with pytest.raises(ValueError, match="got the text 'many'"):
        encode_ranges(schema, pd.DataFrame({"x": ["<5", "many"]}))


def test_two_columns_of_ends():
    ends = [1.0, 2.0, -INF, 3.0, 2.5], [1.0, 5.0, 2.0, INF, 2.5]
    column, x, found = read(pd.arrays.IntervalArray.from_arrays(*ends, closed="both"))
    assert (column.n_observed, column.n_ranges, column.maximum) == (5, 3, 2.5)
    assert x[[0, 4]].tolist() == [1.0, 2.5] and sorted(found) == [1, 2, 3]


def test_one_value_between_equal_ends_is_a_value_and_the_whole_line_says_nothing():
    _, x, found = read([1.0, jf.between(2, 2), 3.0, jf.between(None, None), jf.between(-INF, INF)], dtype=object)
    assert x[1] == 2.0 and np.isnan(x[3:]).all() and not found


@pytest.mark.parametrize("right", [True, False])
def test_ranges_that_touch_make_no_grid(right):
    """Their ends are where one range stops and the next begins, so that all values between them occur."""
    x = np.random.default_rng(0).uniform(0.0, 60.0, 400)
    cut = pd.arrays.IntervalArray(pd.cut(x, range(0, 61, 10), right=right))
    texts = [f"{10 * int(one // 10)}-{10 * int(one // 10) + 10}" for one in x]
    for cells in (cut, texts):
        frame = pd.DataFrame({"t": cells, "k": (x / 7).astype(int)})
        joint = jf.HiddenTreeForest(2, n_states=4, kinds={"t": "ranges"}, random_state=0).fit(frame).joint_
        assert joint.schema["t"].kind == "continuous"
        assert joint.given().mean("t") == pytest.approx(x.mean(), abs=0.5)
        assert joint.probability("t <= 25") == pytest.approx((x <= 25.0).mean(), abs=0.03)
    ages = infer_schema(pd.DataFrame({"t": ["25-34", "35-44", "45-54"] * 20, "k": range(60)}), {"t": "ranges"})
    assert ages["t"].kind == "integer"


def test_errors():
    with pytest.raises(ValueError, match="column 'x': the range '20 to 10' ends below its start"):
        read([*NUMBERS, "20 to 10"])
    with pytest.raises(ValueError, match="column 'x': the interval from 5 to 2 is reversed"):
        read([1.0, 2.5, jf.Interval(5, 2)], dtype=object)
    with pytest.raises(ValueError, match="column 'x' has 1 cell that is a range, which a column of categorical"):
        read([1, 2, jf.between(1, 2)], {"x": "categorical"}, dtype=object)
    schema = infer_schema(pd.DataFrame({"c": ["a", "b", "a"], "y": [1.0, 2.5, 3.0]}))
    with pytest.raises(ValueError, match="column 'c' has 1 cell that is a range, which a categorical column"):
        encode_ranges(schema, pd.DataFrame({"c": pd.Series([jf.between(1, 2)], dtype=object)}))
    numbers = infer_schema(pd.DataFrame({"x": [1.5, 2.0, 3.0], "y": [1.0, 2.5, 3.0]}))
    with pytest.raises(
        ValueError, match=r"column 'x' has 1 cell that is a range, which .*impute\(frame, \"sample\", ranges=\"fill\"\)"
    ):
        encode(numbers, pd.DataFrame({"x": pd.Series([jf.between(1, 2)], dtype=object)}))
    with pytest.raises(ValueError, match="kinds: column 'x': 'many' is no range and no number as the others"):
        read(["<5", "6-8", "many"] * 3, {"x": "ranges"})
    with pytest.raises(
        ValueError, match=r"kinds: column 'x': the ends of ranges such as '10-20 kg' are not .* one form"
    ):
        read(["10-20 kg", "20-30 lb", "30-40 kg"] * 3, {"x": "ranges"})
    for text, fault in (("34-25", "ends below its start; exchange its ends"), ("34-34", "has equal ends; write one")):
        with pytest.raises(ValueError, match=f"column 'x': the range '{text}' {fault}"):
            read(["10-20", "20-25", text] * 3, {"x": "ranges"})
    with pytest.raises(ValueError, match=r"'rangs' is no kind of column; one of .*, ranges, .* jf\.censored"):
        read(["<5", "6-8"], {"x": "rangs"})
    with pytest.warns(UserWarning, match="95% of its cells seem to be numbers, but 'ND' is not; .* --na ND"):
        read(["<5"] * 3 + ["ND"] * 2 + [str(k % 30) for k in range(35)])
    for text, fault in (("9-2", "'9-2' is not; write"), ("7 mg/l", "in different forms"), ("2-3 mg/l", "forms")):
        with pytest.warns(UserWarning, match=f"'x' stays text: .* seem to be numbers and ranges, but .*{fault}"):
            read(["<5"] * 20 + [text] + [str(k % 30) for k in range(35)])
    with pytest.raises(ValueError, match="column 'x': a range holds none of the values"):
        read([1, 2, 3, jf.between(1.2, 1.8)], dtype=object)


def frame_of_times(**more):
    return pd.DataFrame({"t": [1.5, 2.0, 3.25, 4.0, 5.5, 6.0], "died": [1, 0, 1, 1, 0, 1], **more})


def test_a_flag_says_which_numbers_are_exact():
    frame = frame_of_times(y=np.arange(6.0))
    schema = infer_schema(frame, {"t": jf.censored(event="died")})
    assert schema.names == ("t", "y") and schema.columns[0].censored == jf.censored(event="died")
    assert schema_from_dict(schema.to_dict()) == schema
    for flags in ([1, 0, 1, 1, 0, 1], ["1.0", "0.0", "1.0", "1.0", "0.0", "1.0"], [True, False] * 3, ["yes"] * 6):
        other = frame.assign(died=flags)
        if flags[0] == "yes":
            with pytest.raises(ValueError, match="column 'died': expected true and false, or 1 and 0"):
                encode_ranges(schema, other)
            continue
        X, _, ranges = encode_ranges(schema, other)
        is_range = ~np.array(flags).astype(float).astype(bool)
        np.testing.assert_array_equal(ranges.number[:, 0] >= 0, is_range)
        np.testing.assert_array_equal(np.isnan(X[:, 0]), is_range)
    assert encode_ranges(schema, frame.drop(columns="died"))[2] is None
    assert ranges.intervals[0] == jf.Interval(2.0, None, "neither")
    below = infer_schema(frame, {"t": jf.censored(below="died")})
    assert encode_ranges(below, frame)[2].intervals[0] == jf.Interval(None, 1.5, "neither")


def test_errors_of_flags():
    frame = frame_of_times(y=np.arange(6.0))
    of = jf.censored(event="died")
    with pytest.raises(ValueError, match="there is no column 'dead'"):
        infer_schema(frame, {"t": jf.censored(event="dead")})
    with pytest.raises(ValueError, match="column 'died' says which cells of another one are exact"):
        infer_schema(frame, {"t": of, "died": "boolean"})
    with pytest.raises(ValueError, match="column 'died': 1 missing cells beside numbers of 't'"):
        infer_schema(frame.assign(died=[1, None, 1, 1, 0, 1]), {"t": of})
    schema = infer_schema(frame, {"t": of})  # in evidence no less, but drawn rows have no flags and exact numbers
    with pytest.raises(ValueError, match="column 'died': 1 missing cells beside numbers of 't'"):
        encode_ranges(schema, frame.assign(died=[1, None, 1, 1, 0, 1]))
    X, _, ranges = encode_ranges(schema, frame.assign(died=None))
    assert ranges is None and X[:, 0].tolist() == frame.t.tolist()
    assert encode_ranges(schema, frame.assign(died=[1, None, 1, 1, 0, 1], t=[1.5, None, 3, 4, 5, 6]))[2] is not None
    assert schema.reasons_aside == {"died": "says which 't' are exact"}
    with pytest.raises(ValueError, match=r"column 'died' says which 't' are exact and takes no part in the model$"):
        schema.index("died")
    with pytest.raises(ValueError, match=r"column 't': jf\.censored expects numbers, got dates"):
        infer_schema(frame.assign(t=pd.date_range("2024-01-01", periods=6)), {"t": of})
    with pytest.raises(ValueError, match="expected event= or below="):
        jf.censored()


def test_flags_that_leave_no_exact_number_are_refused():
    frame = frame_of_times(y=np.arange(6.0))
    with pytest.raises(ValueError, match="column 'died': false beside every number of 't': no event has happened"):
        infer_schema(frame.assign(died=False), {"t": jf.censored(event="died")})
    with pytest.raises(ValueError, match="column 'died': true beside every number of 't': none is exact"):
        infer_schema(frame.assign(died=1), {"t": jf.censored(below="died")})


def test_words_about_a_column_of_ranges_alone():
    frame = pd.DataFrame({"x": ["18-24", "25-34", "35-64", "65+"] * 20, "y": np.arange(80) % 7})
    joint = jf.HiddenTreeForest(n_states=3, kinds={"x": "ranges"}, random_state=0).fit(frame).joint_
    assert "such as" not in str(joint.reading) and "text read as numbers\n" in str(joint.reading)
    for ask in (lambda: joint.given().mean("x"), lambda: joint.given().quantile("x", 0.99)):
        with pytest.warns(jf.NotLearnedWarning, match="not learned beyond 65, the largest lower end of its ranges"):
            ask()


def test_ranges_that_hold_nothing_are_refused_at_the_call():
    for lo, hi in ((2, 1), (2.5, -INF), (pd.Timestamp("2024-02-01"), pd.Timestamp("2024-01-01"))):
        with pytest.raises(ValueError, match=r"between: the interval from .* is reversed; exchange its ends"):
            jf.between(lo, hi)
    for ends in ((math.nan, 1), (1, np.float32("nan"))):
        with pytest.raises(ValueError, match=r"between: expected a value or None for no bound, got .*nan"):
            jf.between(*ends)
    jf.between("low", "high"), jf.between(np.array([2.0, np.nan]), 1), jf.between(1, 1), jf.between(None, 1)


@pytest.mark.parametrize("condition", ["<half", pd.Interval(1, 2)])
def test_a_range_as_a_condition_is_pointed_to_between(condition):
    schema = infer_schema(pd.DataFrame({"x": [1.5, 2.0, 3.0], "y": [1.0, 2.5, 3.0]}))
    with pytest.raises(ValueError, match=r"column 'x' \(rounded\): expected a number.*for a range say jf\.between\("):
        meaning_of(schema["x"], condition)


# ---- Imputed values of interval-censored cells.


def filled(x, intervals, kind="continuous", **more):
    """Values where x is NaN, in order, of a column of this kind."""
    column = Column("x", kind, "float64", **more)
    rows = np.flatnonzero(np.isnan(x))
    regions = [meaning_of(column, one) for one in dict.fromkeys(intervals)]
    place = np.array([list(dict.fromkeys(intervals)).index(one) for one in intervals])
    return complete_column(column, np.asarray(x, float), rows, place, regions)


def kaplan_meier(time, event, t):
    """Probability of an event after t, by going through the times."""
    alive = 1.0
    for u in sorted({a for a, b in zip(time, event, strict=True) if b and a <= t}):
        at_risk = sum(a >= u for a in time)
        alive *= 1 - sum(a == u and b for a, b in zip(time, event, strict=True)) / at_risk
    return alive


def test_masses_of_right_censored_times_are_those_of_kaplan_and_meier():
    rng = np.random.default_rng(0)
    true, end = rng.exponential(10.0, 800), rng.exponential(12.0, 800)
    event = true <= end
    time = np.minimum(true, end)
    whole = filled(np.where(event, time, np.nan), [jf.between(c, None, "neither") for c in time[~event]])
    for t in np.quantile(time, [0.1, 0.3, 0.5, 0.7, 0.9]):
        assert (whole > t).mean() == pytest.approx(kaplan_meier(time, event, t), abs=0.01)
    assert (whole[~event] > time[~event]).all()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("name", ["lognormal", "normal", "gamma", "uniform"])
def test_values_below_a_limit_of_detection_keep_mean_and_spread(name, share):
    rng = np.random.default_rng(1)
    x = {
        "lognormal": lambda: rng.lognormal(0.0, 0.8, 5_000),
        "normal": lambda: rng.normal(-3.0, 2.0, 5_000),
        "gamma": lambda: rng.gamma(2.0, 1.0, 5_000),
        "uniform": lambda: rng.uniform(0.0, 5.0, 5_000),
    }[name]()
    limit = np.quantile(x, share)
    is_low = x < limit
    whole = filled(np.where(is_low, np.nan, x), [jf.between(None, limit, "neither")] * int(is_low.sum()))
    bound = 0.01 if share < 0.6 else 0.05
    assert abs(whole.mean() - x.mean()) < bound * x.std()
    assert abs(whole.std() - x.std()) < 2 * bound * x.std()
    assert (whole[is_low] <= limit).all() and (name == "normal" or (whole > 0.0).all())


def test_both_ends_of_a_range_are_ends():
    rng = np.random.default_rng(1)
    x = rng.uniform(18.0, 65.0, 3_000)
    is_low = x < 30.0
    whole = filled(np.where(is_low, np.nan, x), [jf.between(18.0, 30.0)] * int(is_low.sum()))
    assert abs(whole[is_low].mean() - 24.0) < 0.2 and abs(whole[is_low].std() - 12.0 / math.sqrt(12.0)) < 0.2


def test_brackets_keep_mean_and_spread():
    rng = np.random.default_rng(2)
    x = rng.normal(50.0, 15.0, 5_000)
    edges = [-INF, 20, 30, 40, 50, 60, 70, 80, INF]
    at = np.searchsorted(edges, x) - 1
    whole = filled(np.full(5_000, np.nan), [jf.between(edges[k], edges[k + 1], "right") for k in at])
    assert abs(whole.mean() - x.mean()) < 0.01 * x.std() and abs(whole.std() - x.std()) < 0.02 * x.std()


def test_values_are_on_the_grid_and_inside_their_ranges():
    rng = np.random.default_rng(0)
    x = rng.poisson(8.0, 500).astype(float)
    intervals = [jf.between(None, 5, "neither") if v < 5 else jf.between(v - 2, v + 2) for v in x]
    whole = filled(np.full(500, np.nan), intervals, "integer", step=1.0)
    assert (whole == np.rint(whole)).all()
    for v, one in zip(whole, intervals, strict=True):
        assert (one.lo is None or v >= one.lo) and (v <= one.hi if one.closed == "both" else v < one.hi)


def test_a_point_mass_at_the_closed_end_of_a_range_is_in_it():
    x = np.array([0.0] * 60 + list(np.linspace(1.0, 9.0, 40)) + [np.nan] * 20)
    column = {"kind": "mixed", "atoms": (0.0,)}
    assert (filled(x, [jf.between(0, 5, "left")] * 20, **column)[-20:] == 0.0).mean() > 0.5
    assert (filled(x, [jf.between(0, 5, "neither")] * 20, **column)[-20:] > 0.0).all()


def test_texts_that_are_no_ranges():
    for text in ("", "abc", "5", "-5", "5-", "1.5e-3", "10:30-11:00", "3-D", "COVID-19", "+49-30-123"):
        assert range_text(text) is None, text
