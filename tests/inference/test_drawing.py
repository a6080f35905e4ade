"""Draws in which columns stand in a relation, against enumeration of a table of weights, and against plain draws."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.schema import Column, Schema
from jointforest.runtime.warnings import UnsupportedEvidenceWarning

from ..random_cases.table_part import TableDistribution
from .test_pairs import joint

GRADES = ("low", "mid", "high")
SCHEMA = Schema(
    (
        Column("a", "integer", "int64", step=1.0, minimum=0.0, maximum=4.0, n_observed=9),
        Column("b", "integer", "int64", step=1.0, minimum=0.0, maximum=4.0, n_observed=9),
        Column("g", "ordered", "str", levels=GRADES, n_observed=9),
        Column("h", "ordered", "str", levels=GRADES, n_observed=9),
    ),
    "pandas",
)
RNG = np.random.default_rng(5)
ROWS = np.unique(np.column_stack([RNG.integers(0, 5, (70, 2)), RNG.integers(0, 3, (70, 2))]), axis=0).astype(float)
WEIGHT = RNG.dirichlet(np.ones(len(ROWS)))
TOY = Joint(TableDistribution(SCHEMA, ROWS, WEIGHT))


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("a > b", lambda x: x[:, 0] > x[:, 1]),
        ("2 * a - b <= 3", lambda x: 2 * x[:, 0] - x[:, 1] <= 3),
        ("b = a", lambda x: x[:, 0] == x[:, 1]),
        ("a != b", lambda x: x[:, 0] != x[:, 1]),
        ("g < `h`", lambda x: x[:, 2] < x[:, 3]),
        ("g = `h`", lambda x: x[:, 2] == x[:, 3]),
        ("a > b, g >= `h`", lambda x: (x[:, 0] > x[:, 1]) & (x[:, 2] >= x[:, 3])),
    ],
)
@pytest.mark.parametrize("evidence", [{}, {"b": jf.between(1, 3)}, {"g": ["low", "mid"], "a": jf.likely({2: 1, 3: 3})}])
def test_draws_are_those_of_the_rows_that_fit(where: str, holds, evidence: dict) -> None:  # type: ignore[no-untyped-def]
    weight = WEIGHT * holds(ROWS)
    if "b" in evidence:
        weight = weight * ((ROWS[:, 1] >= 1) & (ROWS[:, 1] <= 3))
    if "g" in evidence:
        weight = weight * (ROWS[:, 2] < 2) * np.select([ROWS[:, 0] == 2, ROWS[:, 0] == 3], [1.0, 3.0])
    share = weight / weight.sum()
    n = 4_000
    drawn = TOY.given(evidence).sample(n, random_state=1, where=where)
    codes = np.column_stack([drawn["a"], drawn["b"], *(drawn[c].map(GRADES.index) for c in ("g", "h"))])
    number = {tuple(row): k for k, row in enumerate(ROWS.tolist())}
    count = np.bincount([number[tuple(map(float, row))] for row in codes.tolist()], minlength=len(ROWS))
    assert count[share == 0].sum() == 0
    some = share > 0
    statistic = ((count[some] - n * share[some]) ** 2 / (n * share[some])).sum()
    assert statistic < chi2.ppf(1 - 1e-5, max(some.sum() - 1, 1))


@pytest.mark.filterwarnings("ignore::jointforest.UnsupportedEvidenceWarning")
@pytest.mark.parametrize("name", ["forest", "chow-liu", "hidden", "mixture"])
@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("b > a", lambda f: f["b"].astype(float) > f["a"]),
        ("d > a", lambda f: f["d"] > f["a"]),
        ("e > d", lambda f: f["e"] > f["d"]),
        ("a + b > d", lambda f: f["a"] + f["b"].astype(float) > f["d"]),
        ("s = `t`", lambda f: f["s"].astype(str) == f["t"].astype(str)),
        ("end - start >= 86400", lambda f: f["end"] - f["start"] >= pd.Timedelta(days=1)),
    ],
)
def test_draws_are_like_plain_ones_that_fit(name: str, where: str, holds) -> None:  # type: ignore[no-untyped-def]
    given = joint(name).given("d between -2 and 12")
    plain = given.sample(6_000, random_state=0)
    plain = plain[holds(plain).to_numpy(bool)]
    drawn = given.sample(1_500, random_state=1, where=where)
    assert holds(drawn).all() and drawn["d"].between(-2, 12).all()
    for column in ("a", "b", "c", "d", "e"):
        x, y = plain[column].astype(float), drawn[column].astype(float)
        assert abs(x.mean() - y.mean()) < 5 * np.sqrt(x.var() / len(x) + y.var() / len(y) + 1e-12)
    share = [(rows["s"] == "x").mean() for rows in (plain, drawn)]
    assert abs(share[0] - share[1]) < 5 * np.sqrt(0.25 / len(plain) + 0.25 / len(drawn))
    again = given.sample(1_500, random_state=1, where=where, n_jobs=1)
    pd.testing.assert_frame_equal(drawn, again)


def test_a_rare_relation_needs_no_rejection_where_one_column_has_a_grid() -> None:
    given = joint("hidden").given()
    rare = given.compare("b - a > 8")
    assert 0.0 < rare.value < 1e-3
    drawn = given.sample(50, random_state=0, where="b - a > 8")
    assert (drawn["b"].astype(float) - drawn["a"] > 8).all()


def test_known_columns_and_no_rows() -> None:
    drawn = joint("forest").given(a=4).sample(60, random_state=0, where="b < a")
    assert (drawn["a"] == 4).all() and (drawn["b"].astype(float) < 4).all()
    assert len(joint("forest").given().sample(0, where="b < a")) == 0
    assert len(joint("forest").given().sample(0, where="e < d")) == 0
    assert list(TOY.given(g="mid").sample(9, random_state=0, where="g < `h`")["h"].unique()) == ["high"]


def test_conditions_on_columns_are_evidence() -> None:
    where = "a in {1, 3}, c >= 0 and s = x"
    drawn = joint("forest").sample(80, random_state=3, where=where)
    pd.testing.assert_frame_equal(drawn, joint("forest").given(where).sample(80, random_state=3))
    with_more = joint("forest").given("d > 0").sample(80, random_state=3, where=where)
    pd.testing.assert_frame_equal(with_more, joint("forest").given(where + ", d > 0").sample(80, random_state=3))
    both = joint("forest").sample(80, random_state=3, where="b > a, " + where)
    pd.testing.assert_frame_equal(both, joint("forest").given(where).sample(80, random_state=3, where="b > a"))
    assert set(both["a"]) <= {1, 3} and (both["b"].astype(float) > both["a"]).all()


def test_conditions_add_to_each_row_of_a_frame_and_go_with_missing_cells() -> None:
    rows = joint("forest").given(pd.DataFrame({"a": [1, 2]})).sample(5, random_state=0, missing=True, where="s = y")
    assert list(rows["a"]) == [1] * 5 + [2] * 5 and (rows["s"].astype(str) == "y").all()


@pytest.mark.parametrize("where", ["bill_length_mm < 1.1 * bill_depth_mm", "bill_length_mm - 2 * bill_depth_mm > 40"])
def test_rows_that_only_a_background_has_warn(where: str) -> None:
    penguins = jf.AdversarialForest(3, random_state=0).fit(jf.datasets.load_penguins()).joint_
    with pytest.warns(UnsupportedEvidenceWarning, match=re.escape(f"rows in which '{where}' holds")):
        drawn = penguins.sample(40, random_state=0, where=where)
    assert np.median(penguins.distribution.observe(penguins._evidence(drawn)).background_weight()) > 0.5


def test_rows_that_trees_have_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint("forest").given().sample(40, random_state=0, where="b > a")


def test_where_is_text() -> None:
    with pytest.raises(TypeError, match="where: expected text"):
        TOY.given().sample(3, where=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: TOY.given(a=0).sample(3, where="b < a"), "probability 0.*too rare"),
        (lambda: TOY.given(g="low").sample(3, where="`h` < g"), "probability 0|levels|comparison"),
        (lambda: joint("tree").given().sample(3, where="e > d + 500"), "draws were kept"),
        (lambda: TOY.given(a=0).sample(3, where="a > 2"), "probability 0"),
        (lambda: TOY.given().sample(3, where="a > b or a > 2"), "not joined by 'or'"),
        (lambda: TOY.given().sample(3, where="a about 2 sd 1"), "soft evidence goes into given"),
        (lambda: TOY.given().sample(3, missing=True, where="a > b"), "missing=True"),
        (lambda: TOY.given(pd.DataFrame({"a": [1, 2]})).sample(3, where="a > b"), "one row"),
        (lambda: TOY.given().sample(-1, where="a > b"), "n must be"),
        (lambda: TOY.given().sample(3, where="a > g"), "levels"),
        (lambda: TOY.given().sample(3, where="a > q"), "column 'a'.*got 'q'"),
    ],
)
def test_what_cannot_be_drawn_says_so(call, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=says):
        call()
