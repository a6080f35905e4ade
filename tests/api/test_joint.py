"""The face: answers of a model small enough to be worked out by hand, in every form they are given in."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import norm

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import kernel_columns
from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.table import NORMAL, STUDENT, UNIFORM, ParameterTables
from jointforest.models.box_forest.structure import Forest, Trees

from ..wrapped import joint_of

DAYS = pd.date_range("2024-01-01", periods=40, freq="D")
TABLE = pd.DataFrame(
    {
        "age": np.arange(20, 60),
        "height": np.linspace(150.03, 195.17, 40) + 1e-3 * np.sin(np.arange(40)),
        "sex": pd.Categorical(["Female", "Male"] * 20),
        "smoker": [False, True] * 20,
        "day": DAYS,
    }
)
KINDS = {"age": "integer", "height": "continuous", "sex": "categorical", "smoker": "boolean", "day": "datetime"}


def make(frame: object = TABLE, epsilon: float = 0.0) -> Joint:
    """Two leaves, age up to 39 (weight 0.6) and from 40 on (0.4); with epsilon > 0 also the background.

    Young: height N(170, 10), 70 % female, 10 % smokers, first 20 days. Old: N(180, 5), 20 %, 50 %, last 20 days.
    """
    schema = infer_schema(frame, KINDS)
    schema = replace(schema, columns=tuple(replace(column, atoms=()) for column in schema.columns))
    columns = kernel_columns(schema)
    day = 86400.0
    first = schema["day"].to_number("2024-01-01")
    n = 3 if epsilon else 2
    trees = Trees(
        feature=np.array([0, -1, -1, -1][: n + 1], np.int32),
        threshold=np.array([39.5, 0, 0, 0][: n + 1]),
        levels_at=np.full(n + 1, -1, np.int32),
        left_levels=np.empty(0, np.uint64),
        left=np.array([1, -1, -1, -1][: n + 1], np.int32),
        right=np.array([2, -1, -1, -1][: n + 1], np.int32),
        leaf=np.array([-1, 0, 1, 2][: n + 1], np.int32),
        weight=np.array([1.0, 0.6, 0.4, 1.0][: n + 1]),
        root=np.array([0, 3][: n - 1], np.int32),
    )
    inf = np.inf
    cut = first + 19.5 * day
    leaves = make_leaves(
        columns,
        ParameterTables(
            tree=np.array([0, 0, 1][:n], np.int32),
            log_weight=np.log(np.array([0.6 * (1 - epsilon), 0.4 * (1 - epsilon), epsilon][:n])),
            family=np.array([[UNIFORM, NORMAL, UNIFORM]] * 2 + [[STUDENT] * 3], np.uint8)[:n],
            a=np.array([[0, 170.0, 0], [0, 180.0, 0], [40.0, 174.0, first + 20 * day]])[:n],
            b=np.array([[0, 10.0, 0], [0, 5.0, 0], [15.0, 10.0, 10 * day]])[:n],
            lo=np.array([[19.5, -inf, first - 0.5 * day], [39.5, -inf, cut], [-inf] * 3])[:n],
            hi=np.array([[39.5, inf, cut], [59.5, inf, first + 39.5 * day], [inf] * 3])[:n],
            atom_mass=np.empty((n, 0)),
            level_mass=np.array([[0.7, 0.3, 0.9, 0.1], [0.2, 0.8, 0.5, 0.5], [0.5] * 4])[:n],
            missing_rate=np.full((n, 5), 0.25),
        ),
    )
    return joint_of(Forest(schema, columns, trees, leaves, has_background=bool(epsilon)))


JOINT = make()
NEAR = pytest.approx


# ---------------------------- what it is


def test_numbers_too_far_out_are_an_error() -> None:
    joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
    with pytest.warns(jf.UnsupportedEvidenceWarning):
        far = joint.given("body_mass_g > 1e200")
        for ask in (far.mean, far.var, far.std, far.interval, lambda name: far.quantile(name, [0.1, 0.5])):
            with pytest.raises(ValueError, match="column 'body_mass_g': given this evidence it lies too far out"):
                ask("body_mass_g")
        assert far.mean("bill_length_mm") < 100


def test_what_it_is() -> None:
    assert JOINT.columns == ("age", "height", "sex", "smoker", "day")
    assert JOINT.kinds == KINDS
    assert JOINT.levels("sex") == ("Female", "Male") and JOINT.levels("smoker") == (False, True)
    for joint, epsilon in ((JOINT, 0.0), (make(epsilon=0.01), 0.01)):
        assert (joint.n_trees, joint.n_leaves) == (1, 2)
        assert joint.epsilon == NEAR(epsilon)
        about = joint.info()
        assert (about["trees"], about["leaves"]) == (1, 2)
        assert about["columns"][4]["minimum"] == dt.datetime(2024, 1, 1)
    assert "5 columns" in repr(JOINT) and "sex" in repr(JOINT.given(sex="Male"))


def test_survives_pickle_and_copy() -> None:
    for again in (pickle.loads(pickle.dumps(JOINT)), copy.deepcopy(JOINT)):
        assert again.probability("age < 30") == JOINT.probability("age < 30")


# ---------------------------- one row of evidence


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("P(sex = Female)", 0.6 * 0.7 + 0.4 * 0.2),
        ("P(sex)", {"Female": 0.5, "Male": 0.5}),
        ("P(age = 25)", 0.03),
        ("P(age = 25, sex = Female)", 0.03 * 0.7),
        ("P(age = 25 | sex = Female)", 0.03 * 0.7 / 0.5),
        ("P(age in {25, 45})", 0.05),
        ("P(30 <= age < 50 | sex = Female)", (0.3 * 0.7 + 0.2 * 0.2) / 0.5),
        ("P(age < 30 | age < 40)", 0.5),
        ("P(age < 30 | age = 25)", 1.0),
        ("P(age < 30 | age = 45)", 0.0),
        ("P(sex = Male | sex = Male)", 1.0),
        ("P(not (age < 30))", 0.7),
        ("P(age < 30 or age >= 50)", 0.5),
        ("P(smoker)", {False: 0.6 * 0.9 + 0.4 * 0.5, True: 0.26}),
        ("P(smoker, age < 40)", 0.06),
        ("P(not smoker | age = 20)", 0.9),
        ("E(smoker)", 0.26),
        ("Var(smoker)", 0.26 * 0.74),
        ("E(height)", 174.0),
        ("E(height | sex = Female)", 0.84 * 170 + 0.16 * 180),
        ("Var(height)", 0.6 * (100 + 170**2) + 0.4 * (25 + 180**2) - 174**2),
        ("Sd(height | age = 50)", 5.0),
        ("P(height > 180 | age = 25)", norm.sf(1.0)),
        ("P(height > 180)", 0.6 * norm.sf(1.0) + 0.4 * 0.5),
        ("E(age)", 0.6 * 29.5 + 0.4 * 49.5),
        ("Median(age)", 36.0),
        ("Q(age, 0.25, 0.8)", {0.25: 28.0, 0.8: 49.0}),
        ("Median(height | age = 50)", 180.0),
        ("Mode(sex | age = 50)", "Male"),
        ("logp(age = 25)", np.log(0.03)),
        ("logp(height = 180, age = 50)", np.log(0.02) + norm.logpdf(0) - np.log(5)),
        ("logp(sex = Male | age = 50)", np.log(0.8)),
        ("Median(day)", dt.datetime(2024, 1, 17)),
        ("E(day | age = 20)", dt.datetime(2024, 1, 10, 12)),
        ("P(day >= '2024-01-21')", 0.4),
        ("P(age = 20 | day = '2024-01-01')", 0.05),
    ],
)
def test_queries(query: str, expected: object) -> None:
    answer = JOINT.query(query)
    if isinstance(expected, str | dt.datetime):
        assert answer == expected
    else:
        assert answer == NEAR(expected, rel=1e-9)


def test_scalars_are_plain_python() -> None:
    who = JOINT.given(sex="Female")
    for answer in (who.mean("age"), who.std("age"), who.var("age"), who.quantile("age", 0.5), who.log_probability):
        assert type(answer) is float
    assert type(who.probability("age < 30")) is float
    assert type(who.supported) is bool and type(who.background_weight) is float
    assert [type(key) for key in JOINT.given().proba("smoker")] == [bool, bool]
    assert isinstance(who.std("day"), dt.timedelta)
    assert who.interval("age", 0.5) == (who.quantile("age", 0.25), who.quantile("age", 0.75))
    lo, hi = who.interval("day")
    assert type(lo) is dt.datetime and lo < hi
    assert who.quantile("age", [0.1, 0.9]).shape == (2,)


def test_forms_of_evidence_agree() -> None:
    expected = JOINT.given("30 <= age <= 50, sex = 'Female'").mean("height")
    assert JOINT.given(age=jf.between(30, 50), sex="Female").mean("height") == expected
    assert JOINT.given({"age": jf.between(30, 50)}, sex=["Female"]).mean("height") == NEAR(expected)
    assert JOINT.given({"age": jf.between(30, None)}, age=jf.between(None, 50), sex="Female").mean("height") == expected
    assert JOINT.given(pd.DataFrame({"sex": ["Female"]}), age=jf.between(30, 50)).mean("height") == [NEAR(expected)]
    assert JOINT.probability("age < 30", given="sex = Female") == JOINT.probability(
        {"age": jf.between(None, 30, closed="left")}, given={"sex": "Female"}
    )


def test_evidence_as_a_series_or_a_list_of_dicts() -> None:
    columns = ["height", "sex", "day"]
    row = TABLE[columns].astype(object).iloc[3].where([True, True, False], np.nan)
    assert JOINT.given(row).mean("age") == JOINT.given(height=row["height"], sex=row["sex"]).mean("age")
    assert JOINT.given(row, smoker=True).log_probability == JOINT.given({**row[:2]}, smoker=True).log_probability
    rows = TABLE[columns].to_dict("records")
    np.testing.assert_array_equal(JOINT.given(rows).mean("age"), JOINT.given(TABLE[columns]).mean("age"))
    mixed = JOINT.given([{"age": jf.between(20, 30)}, {"sex": "Male", "age": None}, {}], smoker=False)
    each = [JOINT.given(age=jf.between(20, 30), smoker=False), JOINT.given(sex="Male", smoker=False)]
    expected = [one.mean("height") for one in (*each, JOINT.given(smoker=False))]
    np.testing.assert_allclose(mixed.mean("height"), expected, rtol=1e-12)
    assert JOINT.given([]).mean("height").shape == (0,) and JOINT.given([{}]).mean("height").shape == (1,)
    assert JOINT.given(sex=("Male", "Female")).mean("age") == JOINT.given(sex=["Male", "Female"]).mean("age")
    with pytest.raises(TypeError, match=r"list of rows.*pandas.DataFrame"):
        JOINT.given([1, 2])


def test_columns_named_by_whole_numbers() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)))
    frame["y"] = np.where(frame[0] > 0, "a", "b")
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(frame).joint_
    assert joint.columns == (0, 1, 2, "y") and list(joint.given().marginals()) == list(joint.kinds) == [0, 1, 2, "y"]
    assert joint.sample(2, random_state=0).columns.equals(frame.columns)
    assert (
        joint.given({0: 1.0}).mean(1) == joint.query("E(`1` | `0` = 1.0)") == joint.given(pd.Series({0: 1.0})).mean(1)
    )
    gaps = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.3)
    gaps.loc[0, "y"] = "never seen"
    with pytest.warns(jf.UnseenLevelWarning):
        filled = joint.impute(gaps)
    assert filled.columns.equals(frame.columns) and not filled.isna().any().any()
    assert (filled[gaps.notna()] == gaps)[gaps.notna()].all().all()
    assert filled.loc[0, "y"] == "never seen"


@pytest.mark.filterwarnings("ignore:column.*all cells are missing")
def test_columns_of_which_nothing_is_known(tmp_path: object) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"gone": np.nan, "x": rng.normal(size=60), "lost": None, "y": ["a", "b", "c"] * 20})
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(frame).joint_
    assert joint.columns == ("x", "y")
    joint.save(tmp_path / "m.joint")
    for one in (joint, jf.load(tmp_path / "m.joint"), joint.condition(y="a")):
        drawn = one.sample(3, random_state=0)
        assert drawn.columns.equals(frame.columns) and drawn[["gone", "lost"]].isna().all(axis=None)
    gaps = frame.assign(x=frame["x"].mask(rng.random(60) < 0.3))
    gaps.loc[3, "gone"], gaps.loc[4, "lost"] = 2.0, "found"
    with pytest.warns(jf.UnseenLevelWarning, match="missing at learning, so that these say nothing: 'gone', 'lost'"):
        filled = joint.impute(gaps)
    assert filled["x"].notna().all() and filled.columns.equals(frame.columns)
    assert filled["gone"].equals(gaps["gone"]) and filled.loc[4, "lost"] == "found"
    with pytest.warns(jf.UnseenLevelWarning):
        assert (joint.log_density(gaps) == joint.log_density(gaps[["y", "x"]])).all()
    array = np.column_stack([np.full(60, np.nan), frame["x"], rng.normal(size=60)])
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(array).joint_
    array[5] = 7.0, np.nan, 1e-7
    with pytest.warns(jf.UnseenLevelWarning, match="these say nothing: 'x0'"):
        filled = joint.impute(array)
    assert np.isfinite(filled[:, 1]).all() and filled[5, [0, 2]].tolist() == [7.0, 1e-7]


def test_conditions_with_one_entry_a_row() -> None:
    who = JOINT.given(age=jf.between(np.array([20, 40]), np.array([39, 59])))
    assert who.mean("height") == NEAR([170.0, 180.0])
    both = JOINT.given().probability({"age": jf.between(np.array([20, 40]), np.array([39, 59]))})
    assert both == NEAR([0.6, 0.4])


def test_evidence_of_probability_zero() -> None:
    with pytest.raises(ValueError, match=r"probability 0: age = 80"):
        JOINT.given("age = 80").mean("height")
    with pytest.raises(ValueError, match="probability 0"):
        JOINT.query("P(sex | age < 30, age > 40)")
    assert JOINT.given("age = 80").log_probability == -np.inf
    frame = pd.DataFrame({"age": [80, 25]})
    with pytest.warns(jf.UnsupportedEvidenceWarning, match="1 of 2 rows of evidence have probability 0"):
        mean = JOINT.given(frame).mean("height")
    assert np.isnan(mean[0]) and mean[1] == NEAR(170)
    with pytest.warns(jf.UnsupportedEvidenceWarning):
        assert JOINT.predict(frame, "sex").tolist() == [None, "Female"]


def test_evidence_without_support() -> None:
    joint = make(epsilon=0.01)
    frame = pd.DataFrame({"age": [25, 400, 500]})
    who = joint.given(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert who.supported.tolist() == [True, False, False]
        joint.given(age=25).mean("height")
    with pytest.warns(jf.UnsupportedEvidenceWarning, match="2 of 3 rows") as caught:
        who.quantile("height", [0.1, 0.5])
    assert len(caught) == 1 and caught[0].filename == __file__
    for call in (
        lambda: joint.impute(frame),
        lambda: joint.impute(frame, method="sample", random_state=0),
        lambda: joint.given(frame).sample(1, random_state=0),
        lambda: joint.predict(frame, "sex"),
        lambda: joint.given(age=400).proba("sex"),
    ):
        with pytest.warns(jf.UnsupportedEvidenceWarning):
            call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: JOINT.given(weight=3), "weight"),
        (lambda: JOINT.given(sex="Femal"), "did you mean 'Female'"),
        (lambda: JOINT.given().mean("sex"), r"use proba\('sex'\)"),
        (lambda: JOINT.given().quantile("sex", 0.5), "has no quantiles"),
        (lambda: JOINT.given().proba("age"), r"has no levels.*kinds={'age': 'categorical'} .*--kinds age=categorical"),
        (lambda: JOINT.given().quantile("age", 1.0), "between 0 and 1"),
        (lambda: JOINT.given().quantile("age", "x"), "q must be a number.*got 'x'"),
        (lambda: JOINT.given().quantile("age", [0.1, [0.2]]), "q must be a number"),
        (lambda: JOINT.given().interval("age", 90), "between 0 and 1"),
        (lambda: JOINT.given().interval("age", "0.9"), "level must be a number between 0 and 1, got '0.9'"),
        (lambda: JOINT.given().interval("age", 1 - 1e-16), "level must be a number between 0 and 1"),
        (lambda: JOINT.sample(-1), "non-negative"),
        (lambda: JOINT.sample(1, random_state="x"), "random_state"),
        (lambda: JOINT.sample(1, random_state=-1), "random_state"),
        (lambda: JOINT.impute(TABLE, "median"), "method"),
        (lambda: JOINT.impute(TABLE, m=3), "method='sample'"),
        (lambda: JOINT.predict(TABLE, "weight"), "weight"),
        (lambda: JOINT.query("E(agee)"), "did you mean 'age'"),
        (lambda: JOINT.log_density(TABLE.assign(extra=1)), "extra"),
        (lambda: JOINT.query("P(height = 170)"), "interval"),
        (lambda: JOINT.given(age=(30, 40)), r"'age'.*between\(30, 40\) or \[30, 40\]\?"),
        (lambda: JOINT.given({"age": 35}, height=(160.0, 170.0)), r"'height'.*between\(160.0, 170.0\)"),
        (lambda: JOINT.given({"age": 35}, age=(30, 40)), r"'age'.*between\(30, 40\)"),
        (lambda: JOINT.given(TABLE, day=("2024-01-01", "2024-01-02")), "'day'.*or .'2024-01-01', '2024-01-02'."),
        (lambda: JOINT.given([{"age": (30, 40)}]), r"'age'.*between\(30, 40\)"),
        (lambda: JOINT.probability({"age": (30, 40)}), r"'age'.*between\(30, 40\)"),
        (lambda: JOINT.given([{"sex": "Male"}, {"agee": 3}]), "did you mean 'age'"),
        (lambda: JOINT.given(pd.Series([1, 2])), "no column 0"),
    ],
)
def test_errors(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_an_event_must_be_words_or_a_dict() -> None:
    with pytest.raises(TypeError, match="a text such as"):
        JOINT.probability(3)


def test_a_query_must_be_words() -> None:
    with pytest.raises(TypeError, match=r"expected a query as text.*NoneType"):
        JOINT.query(None)


# ---------------------------- frames


def log_density(age: float, height: float, female: bool) -> float:
    """By hand, of age, height and sex."""
    young = age < 40
    share = (0.6 if young else 0.4) / 20
    sex = {True: (0.7, 0.2), False: (0.3, 0.8)}[female][0 if young else 1]
    return float(np.log(share * sex) + norm.logpdf(height, *((170, 10) if young else (180, 5))))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_kind(kind: str) -> None:
    make_frame = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[kind]
    joint = make(make_frame(TABLE))
    some = TABLE[["sex", "height", "age"]]
    expected = [log_density(row.age, row.height, row.sex == "Female") for row in some.itertuples()]
    for form in (lambda f: f, pl.from_pandas, pa.Table.from_pandas):
        assert joint.log_density(form(some)) == NEAR(np.array(expected))
    drawn = joint.sample(5, random_state=0)
    assert type(drawn) is type(make_frame(TABLE))
    assert type(joint.impute(some)) is type(make_frame(TABLE))
    holes = make_frame(TABLE.assign(sex=TABLE["sex"].where(TABLE["age"] > 25)))
    filled = joint.impute(holes)
    assert list(filled["sex"].to_pylist() if kind == "pyarrow" else filled["sex"])[:6] == ["Female"] * 6
    assert joint.log_density(filled) == NEAR(joint.log_density(filled))


def test_answers_for_frames_have_a_row_each() -> None:
    frame = TABLE[["age"]]
    who = JOINT.given(frame)
    n = len(frame)
    assert len(who) == n and who.log_probability.shape == (n,)
    assert who.mean("height") == NEAR(np.repeat([170.0, 180.0], 20))
    assert who.proba("sex") == NEAR(np.repeat([[0.7, 0.3], [0.2, 0.8]], 20, axis=0))
    assert who.quantile("height", [0.1, 0.5]).shape == (n, 2) and who.quantile("height", 0.5).shape == (n,)
    assert who.interval("height", 0.5)[0] == NEAR(np.repeat(norm.ppf(0.25, [170, 180], [10, 5]), 20))
    assert who.mean("day").dtype == "datetime64[us]" and who.std("day").dtype == "timedelta64[us]"
    assert who.probability("sex = Female, smoker") == NEAR(np.repeat([0.07, 0.1], 20))
    assert who.probability("age >= 50").tolist() == [0.0] * 30 + [1.0] * 10
    assert len(who.sample(2, random_state=0)) == 2 * n
    assert who.sample(2, random_state=0)["age"].tolist() == np.repeat(TABLE["age"], 2).tolist()
    assert JOINT.predict(frame, "sex").tolist() == ["Female"] * 20 + ["Male"] * 20
    assert JOINT.predict_proba(frame, "smoker") == NEAR(np.repeat([[0.9, 0.1], [0.5, 0.5]], 20, axis=0))
    assert JOINT.predict(frame, "height") == NEAR(np.repeat([170.0, 180.0], 20))
    assert JOINT.predict(TABLE, "day").dtype.kind == "M"


def test_the_target_is_not_looked_at() -> None:
    frame = TABLE[["age", "sex"]]
    other = frame.assign(sex=["Nobody"] * len(frame))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(JOINT.predict_proba(frame, "sex"), JOINT.predict_proba(other, "sex"))
        assert np.array_equal(JOINT.predict_proba(frame, "sex"), JOINT.predict_proba(frame[["age"]], "sex"))


def test_no_rows_and_one_row() -> None:
    none, one = TABLE.head(0), TABLE.head(1)
    assert JOINT.log_density(none).shape == (0,) and JOINT.log_density(one).shape == (1,)
    assert JOINT.given(none[["age"]]).mean("height").shape == (0,)
    assert JOINT.given(none[["age"]]).proba("sex").shape == (0, 2)
    assert JOINT.given(none[["age"]]).quantile("height", [0.1, 0.2, 0.3]).shape == (0, 3)
    assert JOINT.given(none[["age"]]).probability("sex = Male").shape == (0,)
    assert JOINT.given(one[["age"]]).mean("height").shape == (1,)
    assert JOINT.given(one[["age"]]).probability("sex = Male") == NEAR([0.3])
    assert JOINT.predict(none, "sex").shape == (0,)
    assert JOINT.impute(none).shape == (0, 5) and JOINT.impute(one).shape == (1, 5)
    assert JOINT.sample(0).shape == (0, 5)


def test_levels_never_seen() -> None:
    frame = pd.DataFrame({"age": [25, 25, 25], "sex": ["Other", "Female", "Other"]})
    with pytest.warns(jf.UnseenLevelWarning, match=r"'sex': 'Other' \(2 cells\)") as caught:
        found = JOINT.log_density(frame)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert found == NEAR([np.log(0.03) - np.log(41), np.log(0.03 * 0.7), np.log(0.03) - np.log(41)])
    with pytest.warns(jf.UnseenLevelWarning):
        assert JOINT.given(frame).mean("height") == NEAR([170.0] * 3)


def test_numbers_never_seen_are_named_as_numbers() -> None:
    table = pd.DataFrame({"code": pd.Categorical([1, 2] * 10)})
    joint = jf.AdversarialForest(n_estimators=1, random_state=0).fit(table).joint_
    with pytest.warns(jf.UnseenLevelWarning, match=r"'code': 7\.0 \(1 cells\)"):
        joint.log_density(pd.DataFrame({"code": [1, 7]}))


# ---------------------------- imputation, draws


def test_imputation_keeps_what_is_known() -> None:
    frame = pd.DataFrame(
        {
            "sex": ["Other", None, "Male"],
            "age": [25.5, 50, np.nan],
            "height": [np.nan, 181.25, 170.0],
            "day": pd.to_datetime(["2024-01-03 07:30", None, "2024-01-31"], format="mixed"),
        },
        index=[7, 8, 9],
    )
    with pytest.warns(jf.UnseenLevelWarning):
        filled = JOINT.impute(frame)
    assert list(filled.columns) == list(TABLE.columns) and list(filled.index) == [7, 8, 9]
    assert filled["sex"].tolist() == ["Other", "Male", "Male"]
    assert filled["age"].tolist()[:2] == [25.5, 50.0] and 40 <= filled["age"].tolist()[2] <= 59
    assert filled["height"].tolist() == [NEAR(170.0), 181.25, 170.0]
    assert filled["day"].tolist()[::2] == [pd.Timestamp("2024-01-03 07:30"), pd.Timestamp("2024-01-31")]
    assert filled["smoker"].tolist()[0] is False or not filled["smoker"].tolist()[0]


@pytest.mark.parametrize("form", [pl.from_pandas, pa.Table.from_pandas])
def test_imputation_keeps_what_is_known_elsewhere(form: object) -> None:
    frame = form(pd.DataFrame({"sex": ["Other", None], "age": [25.5, np.nan]}))
    with pytest.warns(jf.UnseenLevelWarning):
        filled = make(form(TABLE)).impute(frame)
    columns = {
        name: filled[name].to_pylist() if form is not pl.from_pandas else filled[name].to_list() for name in KINDS
    }
    assert columns["sex"][0] == "Other" and columns["sex"][1] in ("Female", "Male")
    assert columns["age"][0] == 25.5 and columns["age"][1] == NEAR(38, abs=1)


def test_imputed_types_are_those_of_the_table_learned() -> None:
    holes = TABLE.assign(age=TABLE["age"].where(TABLE["age"] > 22), sex=TABLE["sex"].where(TABLE["age"] > 25))
    filled = JOINT.impute(holes)
    assert filled.dtypes.equals(TABLE.dtypes)
    assert filled["height"].equals(TABLE["height"]) and filled["day"].equals(TABLE["day"])


def test_draws_of_imputations() -> None:
    frame = pd.DataFrame({"age": [25] * 4000, "sex": [None] * 4000})
    drawn = JOINT.impute(frame, method="sample", random_state=0)
    assert (drawn["sex"] == "Female").mean() == NEAR(0.7, abs=0.03)
    assert drawn["height"].std() == NEAR(10, rel=0.05)
    several = JOINT.impute(frame.head(3), method="sample", m=2, random_state=0)
    assert len(several) == 2 and not several[0].equals(several[1])
    assert [len(one) for one in several] == [3, 3]


def test_samples() -> None:
    drawn = JOINT.sample(4000, random_state=0)
    assert drawn.dtypes.equals(TABLE.dtypes)
    assert (drawn["age"] < 40).mean() == NEAR(0.6, abs=0.03)
    assert drawn.loc[drawn["age"] < 40, "height"].mean() == NEAR(170, abs=1)
    assert drawn.equals(JOINT.sample(4000, random_state=0)) and not drawn.equals(JOINT.sample(4000, random_state=1))
    assert drawn.equals(JOINT.sample(4000, random_state=0, n_jobs=1))
    for state in (np.random.default_rng(3), np.random.RandomState(3)):
        again = copy.deepcopy(state)
        first = JOINT.sample(5, random_state=state)
        assert first.equals(JOINT.sample(5, random_state=again)) and not first.equals(
            JOINT.sample(5, random_state=state)
        )
    assert not JOINT.sample(5).equals(JOINT.sample(5))
    assert JOINT.sample(4000, random_state=0, missing=True)["height"].isna().mean() == NEAR(0.25, abs=0.03)
    old = JOINT.given("age >= 50, sex = Female").sample(200, random_state=0)
    assert set(old["sex"]) == {"Female"} and old["age"].between(50, 59).all()


# ---------------------------- marginals


def test_marginal_of_numbers() -> None:
    x = np.array([[160.0, 175.0], [180.0, 190.0]])
    height = JOINT.marginal("height")
    assert height.pdf(x) == NEAR(0.6 * norm.pdf(x, 170, 10) + 0.4 * norm.pdf(x, 180, 5))
    assert height.cdf(x) == NEAR(0.6 * norm.cdf(x, 170, 10) + 0.4 * norm.cdf(x, 180, 5))
    assert type(height.cdf(170)) is float
    assert height.cdf(height.ppf(0.3)) == NEAR(0.3)
    assert (height.mean(), height.std() ** 2) == (NEAR(174.0), NEAR(height.var()))
    assert height.sample(7, random_state=0).shape == (7,)
    rows = JOINT.given(TABLE[["age"]]).marginal("height")
    assert rows.cdf([170.0, 180.0]).shape == (40, 2) and rows.cdf(170.0).shape == (40,)
    assert rows.cdf(170.0)[[0, 39]] == NEAR(norm.cdf([0, -2]))
    assert rows.sample(3, random_state=0).shape == (40, 3)
    assert JOINT.marginal("age").pdf([25, 50, 70]) == NEAR([0.03, 0.02, 0.0])


def test_marginal_of_levels_and_dates() -> None:
    sex = JOINT.given(age=25).marginal("sex")
    assert sex.pmf("Male") == NEAR(0.3) and sex.pmf(["Male", "Female"]) == NEAR([0.3, 0.7])
    assert set(sex.sample(50, random_state=0)) == {"Female", "Male"}
    assert JOINT.given(TABLE[["age"]]).marginal("sex").pmf("Male").shape == (40,)
    with pytest.raises(ValueError, match="categorical"):
        sex.cdf(0)
    day = JOINT.marginal("day")
    assert day.cdf("2024-01-20") == NEAR(0.6) and day.cdf(dt.datetime(2024, 1, 20)) == NEAR(0.6)
    assert day.ppf([0.3, 0.6]).dtype == "datetime64[us]"
    assert day.ppf(0.6) == dt.datetime(2024, 1, 20)
    assert day.sample(3, random_state=0).dtype == "datetime64[us]"


def test_leaves_of_the_evidence() -> None:
    leaves = JOINT.given(sex="Female").leaves
    assert dict(zip(leaves.leaf.tolist(), np.exp(leaves.log_weight), strict=True)) == NEAR({0: 0.42, 1: 0.08})


def test_save_and_load(tmp_path: object) -> None:
    JOINT.save(tmp_path / "small.joint")
    again = jf.load(tmp_path / "small.joint")
    assert again.query("E(height | sex = Female)") == JOINT.query("E(height | sex = Female)")
    assert again.sample(9, random_state=1).equals(JOINT.sample(9, random_state=1))


def test_a_column_meant_as_a_level_is_refused_with_backticks() -> None:
    levels = ["a", "b", "c"]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: pd.Categorical(rng.choice(levels, 200), levels, ordered=True) for name in "pq"})
    joint = jf.JointTree(min_samples_leaf=0.1).fit(frame).joint_
    for text in ("P(q > p)", "P(q = p)", "P(q != p)"):
        with pytest.raises(ValueError, match="write it in backticks: `p`"):
            joint.query(text)
    assert 0.0 < joint.query("P(q > `p`)").value < 1.0
