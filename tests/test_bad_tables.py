"""Tables that are hard or wrong, end to end: a sane answer, or an error that names the column and gives a hint."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointforest as jf
from jointforest.models.box_forest.files import check_forest
from jointforest.runtime.warnings import UnseenLevelWarning


def learn(frame: object, **settings: object) -> jf.Joint:
    settings = {"n_estimators": 4, "random_state": 0} | settings
    return jf.AdversarialForest(**settings).fit(frame).joint_


def assert_sane(joint: jf.Joint, frame: pd.DataFrame) -> None:
    """A sound forest, and sane answers."""
    model = joint.distribution.forest
    check_forest(model.schema, model.columns, model.trees, model.leaves, model.has_background)
    assert_answers(joint, frame)


def assert_answers(joint: jf.Joint, frame: pd.DataFrame) -> None:
    """Every question on the table has a finite answer of the right shape; known cells stay as they are."""
    assert np.isfinite(joint.log_density(frame)).all()
    drawn = joint.sample(20, random_state=0)
    assert list(drawn.columns) == list(frame.columns)
    assert not drawn.isna().any().any()
    assert np.isfinite(joint.log_density(drawn)).all()
    assert drawn.dtypes.tolist() == frame.dtypes.tolist()
    filled = joint.impute(frame)
    assert len(filled) == len(frame)
    assert not filled.isna().any().any()
    known = frame.notna()
    for name in frame:
        assert filled[name][known[name]].tolist() == frame[name][known[name]].tolist()
    name = frame.columns[0]
    posterior = joint.given(frame.drop(columns=name).iloc[:3]) if frame.shape[1] > 1 else joint.given()
    assert np.isfinite(posterior.log_probability).all()
    if joint.levels(name):
        probability = posterior.proba(name)
        total = sum(probability.values()) if isinstance(probability, dict) else probability.sum(axis=1)
        assert total == pytest.approx(1.0)
    elif joint.kinds[name] != "datetime":
        quantiles = np.atleast_2d(posterior.quantile(name, [0.05, 0.5, 0.95]))
        assert np.isfinite(quantiles).all()
        assert (np.diff(quantiles, axis=1) >= 0).all()
        assert np.isfinite(posterior.mean(name)).all()


RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=N)
TEXT = np.where(X > 0, "a", "b").astype(object)

GOOD = {
    "one row": pd.DataFrame({"x": [1.5], "c": ["a"]}),
    "one row of one number": pd.DataFrame({"x": [1.5]}),
    "two rows": pd.DataFrame({"x": [1.5, 2.5], "c": ["a", "b"]}),
    "one column of numbers": pd.DataFrame({"x": X}),
    "one column of levels": pd.DataFrame({"c": TEXT}),
    "constant numbers": pd.DataFrame({"x": np.full(N, 0.1), "y": X}),
    "constant integers": pd.DataFrame({"x": np.full(N, 7), "y": X}),
    "constant zero": pd.DataFrame({"x": np.zeros(N), "y": X}),
    "constant text": pd.DataFrame({"c": np.full(N, "a", dtype=object), "y": X}),
    "all columns constant": pd.DataFrame({"x": np.full(N, 0.1), "k": np.full(N, 3), "c": np.full(N, "a")}),
    "one known number": pd.DataFrame({"x": np.r_[2.5, np.full(N - 1, np.nan)], "y": X}),
    "one known level": pd.DataFrame({"c": ["a"] + [None] * (N - 1), "y": X}),
    "rows without any cell": pd.DataFrame(
        {"x": np.where(np.arange(N) < 9, np.nan, X), "c": [None] * 9 + ["a", "b", "b"] * 17}
    ),
    "half missing": pd.DataFrame({"x": np.where(RNG.random(N) < 0.5, np.nan, X), "c": TEXT, "y": X}),
    "never known together": pd.DataFrame({"x": np.where(X > 0, X, np.nan), "y": np.where(X > 0, np.nan, X)}),
    "huge": pd.DataFrame({"x": X * 1e149, "y": X}),
    "huge and tiny": pd.DataFrame({"x": np.exp(X * 100), "y": -np.exp(-X * 100)}),
    "tiny": pd.DataFrame({"x": X * 1e-139, "y": X}),
    "tiny beside one": pd.DataFrame({"x": np.where(X > 0, X * 1e-300, np.round(X)), "y": X}),
    "constant tiny": pd.DataFrame({"x": np.full(N, 5e-324), "y": X}),
    "neighbouring floats": pd.DataFrame({"x": np.where(X > 0, 1.0, np.nextafter(1.0, 2.0)), "y": X}),
    "neighbouring huge floats": pd.DataFrame({"x": np.where(X > 0, 1e150, np.nextafter(1e150, 0.0)), "y": X}),
    "far from zero": pd.DataFrame({"x": 1e15 + RNG.integers(0, 9, N), "y": X}),
    "minus zero": pd.DataFrame({"x": np.where(X > 0, -0.0, 0.0), "y": X}),
    "one far value": pd.DataFrame({"x": np.r_[1e12, X[1:]], "y": X}),
    "booleans": pd.DataFrame({"b": X > 0, "y": X}),
    "constant boolean": pd.DataFrame({"b": np.ones(N, bool), "y": X}),
    "copies of a column": pd.DataFrame({"x": X, "y": X, "z": X}),
    "one row many times": pd.DataFrame({"x": [1.25] * N, "c": ["a"] * N}),
    "odd names": pd.DataFrame({"a b": X, "": X + 1, "P(x|y)": TEXT, "'": X}),
    "declared levels without rows": pd.DataFrame({"c": pd.Categorical(TEXT, ["z", "a", "b"]), "y": X}),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", GOOD)
def test_hard_tables(name: str) -> None:
    frame = GOOD[name]
    assert_sane(learn(frame), frame)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("leaf", ["normal", "normal_mle", "uniform"])
@pytest.mark.parametrize("bounds", ["no", "local", "global"])
@pytest.mark.parametrize("name", [name for name in GOOD if any(w in name for w in ("huge", "tiny", "float", "known"))])
def test_hard_numbers_in_every_leaf_density(name: str, bounds: str, leaf: str) -> None:
    frame = GOOD[name]
    numbers = {c: "continuous" for c in frame if frame[c].dtype == float}
    joint = learn(frame, leaf=leaf, bounds=bounds, kinds=numbers, min_samples_leaf=2)
    model = joint.distribution.forest
    check_forest(model.schema, model.columns, model.trees, model.leaves, model.has_background)
    assert np.isfinite(joint.log_density(frame)).all()
    assert np.isfinite(joint.sample(20, random_state=0)[list(numbers)].to_numpy()).all()


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"x": [1.0, np.inf], "y": [1.0, 2.0]}), ["'x'", "infinite", "make them missing"]),
        (pd.DataFrame({"x": [1.0, 2.0], "y": [-np.inf, np.inf]}), ["'y'", "2 infinite values"]),
        (pd.DataFrame({"a": [None, None], "gone": [np.nan, np.nan]}), ["'a', 'gone'", "all cells are missing"]),
        (pd.DataFrame({"x": [1e306, -1e308]}), ["'x'", "1e+306", "too large", "divide the column"]),
        (pd.DataFrame({"x": [5e-324, 1e-200]}), ["'x'", "span 1e-200", "multiply the column"]),
        (pd.DataFrame({"x": np.empty(0)}), ["no rows", "at least one"]),
        (pd.DataFrame(index=range(3)), ["no columns"]),
        (pd.DataFrame({"x": [1j, 2j]}), ["'x'", "complex"]),
        (pd.DataFrame({"x": [[1], [2]]}), ["'x'", "list"]),
        (np.zeros(3), ["2-D|2D|two dimensions|dimension"]),
        (np.zeros((0, 2)), ["no rows"]),
        ("table.csv", ["str", "read the file first"]),
        (pd.Series([1.0, 2.0]), ["Series", "to_frame"]),
        (None, ["NoneType|None"]),
        (pl.DataFrame({"x": [1.0, float("inf")]}), ["'x'", "infinite"]),
        (pa.table({"x": pa.array([None, None], pa.float64())}), ["'x'", "all cells are missing"]),
    ],
    ids=str,
)
def test_tables_that_cannot_be_learned(frame: object, words: list[str]) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        learn(frame)
    for word in words:
        assert error.match(word.replace("+", r"\+"))


# -- a good model, bad questions


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.normal(size=100)
    return pd.DataFrame(
        {"x": x, "k": rng.integers(0, 50, 100), "c": np.where(x > 0, "a", "b"), "d": pd.date_range("2020", periods=100)}
    )


@pytest.fixture(scope="module")
def joint(frame: pd.DataFrame) -> jf.Joint:
    return learn(frame)


def test_order_of_columns_and_rows(joint: jf.Joint, frame: pd.DataFrame) -> None:
    density = joint.log_density(frame)
    assert (joint.log_density(frame[["d", "c", "x", "k"]]) == density).all()
    assert (joint.log_density(frame[::-1]) == density[::-1]).all()
    assert (joint.log_density(frame.iloc[[5, 5, 7]]) == density[[5, 5, 7]]).all()


def test_absent_columns_count_as_missing(joint: jf.Joint, frame: pd.DataFrame) -> None:
    missing = frame.assign(x=np.nan, c=None)
    assert (joint.log_density(frame[["k", "d"]]) == joint.log_density(missing)).all()
    assert joint.impute(frame[["k", "d"]]).notna().all().all()
    assert joint.log_density(pd.DataFrame(index=range(3))) == pytest.approx(np.zeros(3))


def test_unknown_columns(joint: jf.Joint, frame: pd.DataFrame) -> None:
    extra = frame.assign(colour=1.0)
    for ask in (joint.log_density, joint.impute, joint.given):
        with pytest.raises(ValueError, match="'colour'"):
            ask(extra)
    with pytest.raises(ValueError, match="'colour'"):
        joint.given(colour=1)
    with pytest.raises(ValueError, match="'colour'"):
        joint.given("colour = 1")
    with pytest.raises((ValueError, KeyError), match="'colour'"):
        joint.predict(frame, "colour")
    twice = pd.concat([frame, frame[["x"]]], axis=1)
    with pytest.raises(ValueError, match="'x'"):
        joint.log_density(twice)


def test_infinite_cells(joint: jf.Joint, frame: pd.DataFrame) -> None:
    for bad in (np.inf, -np.inf):
        with pytest.raises(ValueError, match="'x'"):
            joint.log_density(frame.assign(x=bad))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [1e5, -1e15, 1e100, 1e300, -1e305, 5e-324, np.nextafter(0.0, -1.0)])
def test_far_values(joint: jf.Joint, frame: pd.DataFrame, value: float) -> None:
    for name in ("x", "k"):
        rows = frame.iloc[:3].astype({"k": float})
        rows[name] = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # nothing like the table that was learned
            warnings.simplefilter("error", RuntimeWarning)
            assert np.isfinite(joint.log_density(rows)).all()
            posterior = joint.given(rows.drop(columns="c"))
            assert np.isfinite(posterior.log_probability).all()
            assert posterior.proba("c").sum(axis=1) == pytest.approx(np.ones(3))
            if abs(value) > 1e5:
                assert not posterior.supported.any()


def test_unseen_levels(joint: jf.Joint, frame: pd.DataFrame) -> None:
    rows = frame.iloc[:4].assign(c=["a", "new", "b", "newer"])
    with pytest.warns(UnseenLevelWarning, match="'c': 'new', 'newer'"):
        density = joint.log_density(rows)
    missing = joint.log_density(rows.assign(c=None))
    assert np.isfinite(density).all()
    assert density[[1, 3]] == pytest.approx(missing[[1, 3]] - np.log(101))
    with pytest.warns(UnseenLevelWarning):
        filled = joint.impute(rows)
    assert filled["c"].tolist() == ["a", "new", "b", "newer"]


def test_wrong_types(joint: jf.Joint, frame: pd.DataFrame) -> None:
    with pytest.raises((ValueError, TypeError), match="'x'"):
        joint.log_density(frame.assign(x="many"))
    with pytest.raises((ValueError, TypeError), match="'d'"):
        joint.log_density(frame.assign(d=1.5))
    with pytest.raises((ValueError, TypeError), match="'x'"):
        joint.given(x="many")
    with pytest.raises((ValueError, TypeError), match="'x'"):
        joint.given(x=float("inf"))


def test_empty_frames(joint: jf.Joint, frame: pd.DataFrame) -> None:
    none = frame.iloc[:0]
    assert joint.log_density(none).shape == (0,)
    assert joint.impute(none).shape == (0, 4)
    assert joint.given(none).proba("c").shape == (0, 2)
    assert np.shape(joint.given(none).mean("x")) == (0,)
    assert joint.predict(none, "c").shape == (0,)
    assert joint.sample(0, random_state=0).shape == (0, 4)


def test_frames_of_another_library(joint: jf.Joint, frame: pd.DataFrame) -> None:
    density = joint.log_density(frame)
    assert joint.log_density(pl.from_pandas(frame)) == pytest.approx(density, rel=1e-12)
    assert joint.log_density(pa.Table.from_pandas(frame)) == pytest.approx(density, rel=1e-12)


# -- wide tables


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_thousand_columns() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 1))
    x = z + rng.normal(size=(50, 1000))
    x[rng.random(x.shape) < 0.05] = np.nan
    frame = pd.DataFrame(x, columns=[f"v{j}" for j in range(1000)])
    frame["v7"] = np.where(z[:, 0] > 0, "a", "b")
    joint = learn(frame, n_estimators=2)
    density = joint.log_density(frame)
    assert np.isfinite(density).all()
    assert density.max() < 0
    assert joint.log_density(frame[frame.columns[::-1]]) == pytest.approx(density, rel=1e-12)
    assert joint.sample(5, random_state=0).shape == (5, 1000)
    assert joint.impute(frame).notna().all().all()
    assert joint.given(frame.drop(columns="v7")).proba("v7").sum(axis=1) == pytest.approx(np.ones(50))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_thousand_levels() -> None:
    rng = np.random.default_rng(0)
    k = np.r_[np.arange(1000), rng.integers(0, 1000, 2000)]
    frame = pd.DataFrame(
        {"c": np.array([f"level {i}" for i in range(1000)])[k], "x": k % 7 + 0.1 * rng.normal(size=3000)}
    )
    joint = learn(frame, n_estimators=3)
    assert len(joint.levels("c")) == 1000
    assert np.isfinite(joint.log_density(frame)).all()
    assert set(joint.sample(100, random_state=0)["c"]) <= set(frame["c"])
    given = joint.given(x=3.0)
    probability = given.proba("c")
    assert sum(probability.values()) == pytest.approx(1.0)
    right = sum(p for level, p in probability.items() if int(level.split()[1]) % 7 == 3)
    assert right > 0.5  # a seventh of the levels, if the splits told nothing
