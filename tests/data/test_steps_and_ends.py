"""Steps, ends and calendars of columns: each kind with random scales, steps and families, against plain definitions."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointforest.data import times
from jointforest.data.frames import decode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import ends_of, snapped
from jointforest.data.schema_check import schema_from_dict


def column_of(values, kinds=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = infer_schema(pd.DataFrame({"x": values}), kinds)
    assert schema_from_dict(schema.to_dict()) == schema
    return schema.columns[0]


def valid_numbers(name, x):
    """Whether whole numbers are dates or times, by pandas."""
    form, width = {"yyyymmdd": ("%Y%m%d", 8), "yyyymm": ("%Y%m", 6), "hhmm": ("%H%M", 4)}[name]
    texts = pd.Series(np.asarray(x, np.int64)).astype(str).str.zfill(width)
    return pd.to_datetime(texts, format=form, errors="coerce").notna().to_numpy()


# ---- Steps of numbers.


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from(
        ["1", "2", "5", "7", "12", "25", "100", "500", "1000", "0.5", "0.25", "0.05", "0.01", "0.125", "0.0005"]
    ),
    st.integers(30, 400),
    st.sampled_from([10, 1000, 10**6]),
)
def test_steps_of_numbers_are_found_however_many_differ(seed, step, n, size):
    rng = np.random.default_rng(seed)
    cells = rng.integers(-size, size, n)
    cells[:2] = 1, 2  # no coarser step is theirs
    exact = Fraction(step)
    values = np.array([float(exact * int(cell)) for cell in cells])
    found = column_of(values)
    wanted = float(exact) if len(np.unique(cells)) > 12 else None
    assert wanted is None or found.step == wanted
    assert np.array_equal(snapped(found, values), values)
    noise = snapped(found, values + 0.3 * found.step * rng.uniform(-1, 1, n))
    assert np.array_equal(noise, values)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([5, 25, 100]), st.integers(1, 3))
def test_exceptions_keep_the_finer_step(seed, step, n_odd):
    rng = np.random.default_rng(seed)
    values = step * rng.integers(1, 300, 200)
    values[:n_odd] += 1
    assert column_of(values).step == 1.0


def test_chance_gives_no_step():
    rng = np.random.default_rng(0)
    for n in (2, 3, 4, 6, 10, 30):
        found = [column_of(rng.integers(0, 10_000, n)).step for _ in range(150)]
        assert np.mean(np.array(found) > 1.0) <= 0.02


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(0, 4), st.booleans())
def test_decimals_stay_decimals_of_columns_without_ties(seed, decimals, is_float32):
    rng = np.random.default_rng(seed)
    values = np.round(rng.lognormal(3, 1, 3000), decimals)
    found = column_of(values.astype(np.float32) if is_float32 and decimals < 3 else values)
    assert found.step == pytest.approx(10.0**-decimals, rel=1e-12)


# ---- Steps of date-times.


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 5, 45, 60, 300, 900, 1800, 3600, 6 * 3600, 86_400, 7 * 86_400]),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_steps_of_moments_are_found(seed, step, unit):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 2000, 120)
    cells[:2] = 0, 1
    start = np.datetime64("2021-03-01T09:00:00")
    values = (start + step * cells * np.timedelta64(1, "s")).astype(f"datetime64[{unit}]")
    found = column_of(values)
    assert found.step == step
    assert [found.to_number(found.from_number(x)) for x in (step * cells[:5]).tolist()] == (step * cells[:5]).tolist()


# ---- Ends.


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(-50, 50), st.integers(20, 120), st.integers(200, 2000))
def test_uniform_whole_numbers_end_sharply(seed, low, width, n):
    values = np.random.default_rng(seed).integers(low, low + width, n)
    found = column_of(values)
    ends = values.min(), values.max()
    # of uniform numbers a few seem to have a tail; that is no mistake
    assert found.lower in (ends[0], 0.0, -math.inf) and found.upper in (ends[1], 0.0, math.inf)


def test_ends_are_found_of_most_uniform_columns_and_of_few_with_tails():
    def share(make, side):
        found = [column_of(make(np.random.default_rng(seed))) for seed in range(60)]
        return np.mean([math.isfinite(getattr(column, side)) for column in found])

    for side in ("lower", "upper"):
        assert share(lambda rng: rng.integers(18, 91, 200), side) > (0.8 if side == "upper" else 0.99)
        assert share(lambda rng: rng.uniform(-3, 5, 1000), side) == 0.0  # a new row may lie beyond the last one
        assert share(lambda rng: rng.normal(size=500), side) < 0.1
    assert share(lambda rng: rng.exponential(size=500), "upper") < 0.1
    assert share(lambda rng: -rng.lognormal(size=500), "lower") < 0.1
    assert share(lambda rng: rng.poisson(20, 500) - 1000, "lower") < 0.1


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["lognormal", "exponential", "half", "gamma"]), st.integers(1, 300))
def test_numbers_of_one_sign_do_not_change_it(seed, family, n):
    rng = np.random.default_rng(seed)
    values = {
        "lognormal": rng.lognormal(size=n),
        "exponential": rng.exponential(size=n),
        "half": np.abs(rng.normal(size=n)),
        "gamma": rng.gamma(0.5, size=n),
    }[family]
    assert column_of(values).lower >= 0.0 and column_of(-values).upper <= 0.0
    cents = np.round(values, 2) + 0.01
    assert column_of(cents).lower > 0.0


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(0, 3))
def test_columns_of_few_whole_numbers_have_no_others(seed, k, low):
    values = np.random.default_rng(seed).integers(low, low + k + 1, 200)
    found = column_of(values)
    assert (found.lower, found.upper) == (values.min(), values.max())


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 0.25]))
def test_ends_of_the_negative_are_mirrored(seed, step):
    rng = np.random.default_rng(seed)
    values = rng.normal(3, 2, 150) if step == 0.0 else step * np.rint(rng.normal(8, 6, 150))
    distinct, counts = np.unique(values, return_counts=True)
    ends = float(distinct[0]), float(distinct[-1])
    lower, upper = ends_of(distinct, counts, 150, step, ends)
    mirrored = ends_of(-distinct[::-1] + 0.0, counts[::-1], 150, step, (-ends[1], -ends[0]))
    assert mirrored == (-upper, -lower)


# ---- Calendars.


@pytest.mark.parametrize("name", times.OF_NUMBERS)
def test_moved_numbers_exist_and_are_spread_evenly(name):
    whole = np.arange(20_210_000, 20_249_999) if name == "yyyymmdd" else np.arange(0, 2400)
    whole = np.arange(200_000, 202_000) if name == "yyyymm" else whole
    found = times.moved(name, whole)
    assert valid_numbers(name, found).all()
    is_valid = valid_numbers(name, whole)
    assert np.array_equal(found[is_valid], whole[is_valid])
    _, counts = np.unique(found, return_counts=True)
    assert counts.max() <= 1.6 * counts.mean()  # days of short months get a bit more


def test_moved_days_exist_and_weekends_are_spread_over_their_weeks():
    day = np.arange(-20_000, 30_000)
    moment = pd.to_datetime(times.moved("weekdays", day), unit="D")
    assert (moment.dayofweek < 5).all()
    assert np.bincount(moment.dayofweek).min() > 0.99 * len(day) / 5
    assert (np.abs(times.moved("weekdays", day) - day) < 7).all()
    starts = times.moved("month starts", day)
    assert (pd.to_datetime(starts, unit="D").day == 1).all()
    assert (np.abs(starts - day) <= 16).all()


def made(name, rng, n):
    day = rng.integers(15_000, 19_700, n).astype("datetime64[D]")
    if name == "month starts":
        return day.astype("datetime64[M]").astype("datetime64[s]")
    if name == "weekdays":
        return times.moved("weekdays", day.astype(np.int64)).astype("datetime64[D]").astype("datetime64[s]")
    if name == "hhmm":
        minute = rng.integers(0, 1440, n)
        return minute // 60 * 100 + minute % 60
    return pd.Series(day.astype("datetime64[s]")).dt.strftime("%Y%m%d" if name == "yyyymmdd" else "%Y%m").astype(int)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(times.CALENDARS), st.integers(100, 400))
def test_calendars_are_found(seed, name, n):
    rng = np.random.default_rng(seed)
    found = column_of(made(name, rng, n))
    assert found.only == name
    low, high = found.minimum - 3 * found.step, found.maximum + 3 * found.step
    noise = decode(infer_schema_quietly(found, name, rng, n), rng.uniform(low, high, (500, 1)))["x"]
    if name in times.OF_NUMBERS:
        assert valid_numbers(name, noise).all()
        assert all(isinstance(found.from_number(x), int) for x in (low, high))
    else:
        assert (noise.dt.day == 1).all() if name == "month starts" else (noise.dt.dayofweek < 5).all()


def infer_schema_quietly(found, name, rng, n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return infer_schema(pd.DataFrame({"x": made(name, rng, n)}))


@pytest.mark.parametrize(
    "values",
    [
        lambda rng: rng.integers(18, 60, 500),
        lambda rng: rng.integers(0, 2360, 500),
        lambda rng: 50 * rng.integers(1, 48, 500),
        lambda rng: rng.integers(0, 24, 500) * 100,
        lambda rng: rng.integers(190_001, 210_012, 500),
        lambda rng: rng.integers(19_000_101, 21_001_231, 500),
        lambda rng: rng.poisson(3, 500),
        lambda rng: np.datetime64("2020-01-01") + rng.integers(0, 900, 500),
        lambda rng: np.array([20_200_101, 20_200_102]),
    ],
)
def test_other_columns_have_no_calendar(values):
    for seed in range(10):
        assert column_of(values(np.random.default_rng(seed))).only == ""


def test_numbers_that_are_dates_are_told_and_can_be_refused():
    frame = pd.DataFrame({"day": made("yyyymmdd", np.random.default_rng(0), 200)})
    with pytest.warns(
        UserWarning, match=r"'day': its whole numbers are read as dates .yyyymmdd.*kinds=.'day': 'integer'"
    ):
        infer_schema(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = infer_schema(frame, {"day": "integer"}).columns[0]
    assert (found.only, found.step) == ("", 1.0)


@settings(max_examples=25)
@given(
    st.integers(0, 10**6), st.sampled_from(["9999-12-31", "1900-01-01", "2262-04-01", "1000-01-01"]), st.integers(2, 40)
)
def test_dates_far_from_all_others_are_atoms(seed, far, n_far):
    rng = np.random.default_rng(seed)
    values = np.datetime64("2019-01-01", "s") + 86_400 * rng.integers(0, 700, 200)
    values[:n_far] = np.datetime64(far, "s")
    with pytest.warns(UserWarning, match=f"{n_far} cells are {far}.*far from all other dates"):
        schema = infer_schema(pd.DataFrame({"t": values}))
    column = schema.columns[0]
    assert [str(column.from_number(atom))[:10] for atom in column.atoms] == [far]
    assert schema_from_dict(schema.to_dict()) == schema
    assert column_of(values[n_far:]).atoms == ()
