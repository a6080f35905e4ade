"""Joints of random small tables under overlapping rules, beside sums over all their rows; and cases of each kind."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

from ...oracle import ruled as oracle
from ...random_cases.ruled_joints import Tally, all_rows, cases, compare_given, learned, numbers_of

N_JOINTS = 4
"""Joints from each seed on; `benchmarks/ruled_comparisons.py` asks as many as wanted."""


@pytest.mark.parametrize("first", [0, 100, 200, 300])
def test_all_answers(first: int) -> None:
    made, wrong = 0, []
    for _, tally in cases(first, N_JOINTS):
        made += tally.made
        wrong += tally.wrong
    assert made > 100 * N_JOINTS
    assert wrong == []


# ---- The kinds of case that were once wrong, each of its own.

N = 1_500


@cache
def _joint(kind: str) -> jf.Joint:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, N), rng.integers(0, 4, N)
    c = rng.choice(["p", "q", "r"], N, p=[0.3, 0.4, 0.3])
    tables = {
        "sum and combinations": ({"b": b, "t": 2 * a - b, "a": a}, ["a = 0.5 * b + 0.5 * t", "combinations(b, t)"]),
        "combinations and sum": ({"b": b, "t": 2 * a - b, "a": a}, ["combinations(b, t)", "a = 0.5 * b + 0.5 * t"]),
        "sum of a member": ({"a": a, "g": np.array([3, 5, 5, 9])[a], "b": b}, ["a -> g", "s = g + b"]),
        "rounded": ({"days": 7 * a + b, "weeks": np.rint(a + b / 7)}, ["weeks = days / 7"]),
        "equal": ({"a": a, "same": a, "b": b}, ["same = a"]),
        "missing": ({"c": c, "n": a, "m": np.where(c == "p", np.nan, b + a)}, ["m missing iff c = p"]),
        "missing in other rows": (
            {"c": c, "n": a, "m": np.where((c == "p") | (rng.random(N) < 0.2), np.nan, b + a)}, ["m missing if c = p"],
        ),
        "missing by number": ({"n": a, "m": np.where(a == 2, np.nan, a + b)}, ["m missing iff n = 2"]),
        "sum of missing": (
            {"c": c, "n": a, "m": np.where(c == "p", np.nan, b), "mn": np.where(c == "p", np.nan, b + a)},
            ["m missing iff c = p", "mn = m + n"],
        ),
    }  # fmt: skip
    columns, rules = tables[kind]
    if kind == "sum of a member":
        columns = columns | {"s": columns["g"] + b}
    frame = pd.DataFrame(columns)
    return jf.HiddenTreeForest(n_states=4, max_iter=5, max_leaf_nodes=2, rules=rules, random_state=0).fit(frame).joint_


KINDS = (
    "sum and combinations", "combinations and sum", "sum of a member", "rounded", "equal", "missing",
    "missing in other rows", "missing by number", "sum of missing",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_known_cases(kind: str) -> None:
    joint = _joint(kind)
    rows = all_rows(joint)
    assert rows is not None
    rng, tally = np.random.default_rng(1), Tally()
    likeliest, middle = float(rows.X[rows.p.argmax(), 0]), np.nanquantile(rows.X[:, 1], [0.2, 0.7])
    for said in ({}, {0: likeliest}, {1: ("interval", *middle)}):
        compare_given(joint, rows, said, rng, tally, f"{kind}, given {said}")
    for j, column in enumerate(joint.schema.columns):
        values = np.unique(rows.X[~np.isnan(rows.X[:, j]), j])
        frame = pd.DataFrame({column.name: [column.from_number(float(x)) for x in values]})
        expected = rows.p[~np.isnan(rows.X[:, j])].sum()
        tally.compare(f"{kind}: {column.name}", lambda f=frame: np.exp(joint.log_density(f)).sum(), expected)
    assert tally.made > 30
    assert tally.wrong == []


def test_a_rounded_sum_has_no_value_in_a_component_that_excludes_the_evidence() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, N), rng.integers(0, 4, N)
    frame = pd.DataFrame({"a": a, "b": b, "w": np.rint((a + b) / 2), "k": np.minimum(b, rng.integers(0, 3, N))})
    learner = jf.HiddenTreeForest(n_states=4, max_iter=3, max_leaf_nodes=2, rules=["w = a / 2 + b / 2"], random_state=0)
    of_all = learner.fit(frame).joint_
    joint = jf.mix([of_all.condition(a=jf.between(0, 1)), of_all.condition(a=jf.between(2, 3))], [0.4, 0.6])
    rows, rng, tally = all_rows(joint), np.random.default_rng(1), Tally()
    assert rows is not None
    for said in ({0: 0.0}, {0: ("interval", 0.0, 1.0)}, {0: ("interval", 2.0, 3.0)}):
        compare_given(joint, rows, said, rng, tally, f"given {said}")
        for name, j in (("b", 1), ("k", 3)):
            given = joint.given(a=0.0 if said[0] == 0.0 else jf.between(*said[0][1:]))
            tally.compare(
                f"cov(w, {name}) given {said}", lambda g=given, n=name: g.cov("w", n), rows.covariance(2, j, said)
            )
    assert tally.made > 90
    assert tally.wrong == []


@pytest.fixture(scope="module")
def missing() -> tuple[jf.Joint, oracle.Rows]:
    joint = _joint("missing")
    rows = all_rows(joint)
    assert rows is not None
    return joint, rows


def test_information_is_that_of_rows_in_which_the_columns_have_values(missing: tuple[jf.Joint, oracle.Rows]) -> None:
    joint, rows = missing
    c, n, m = (joint.schema.index(name) for name in "cnm")
    for of in ((m,), (c, m), (n, m), (c, n, m)):
        found = joint.entropy(*(joint.schema.names[j] for j in of))
        assert found.method == "exact"
        assert np.isclose(found.value, rows.entropy(of), atol=1e-3)
    found = joint.mutual_information("c", "m").value
    assert np.isclose(found, rows.mutual_information([c], [m]), atol=1e-3)
    found = joint.mutual_information("c", "n", given="m").value
    assert np.isclose(found, rows.mutual_information([c], [n], (m,)), atol=1e-3)
    assert joint.divergence(joint, columns=["c", "m"]).value == 0.0


def test_modes_have_values_in_all_columns(missing: tuple[jf.Joint, oracle.Rows]) -> None:
    joint, rows = missing
    best = joint.given().mode()
    assert not best.rows.isna().any(axis=None)
    assert np.isclose(best.log_density[0], rows.mode(), atol=1e-4)
    assert best.log_bound >= rows.mode() - 1e-4
    with pytest.raises(ValueError, match="no row that agrees with the evidence has a value in every column"):
        joint.given(c="p").mode()


def test_modes_are_refused_where_columns_left_out_tell_rows_apart() -> None:
    """A row of the columns is then several levels of a compound, and the best level may be in another row."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, N), rng.choice(4, N, p=[0.22, 0.22, 0.22, 0.34])
    frame = pd.DataFrame({"a": a, "b": b, "few": b // 3, "key": np.char.add("k", (4 * a + b).astype(str))})
    rules = ["a, b -> key", "a, b -> few"]
    joint = jf.HiddenTreeForest(n_states=4, max_iter=3, max_leaf_nodes=1, rules=rules, random_state=0).fit(frame).joint_
    assert joint.given().mode().rows["few"].tolist() == [1]
    with pytest.raises(ValueError, match="no certified mode"):
        joint.select("a", "few").given().mode()


def test_a_column_without_values_is_named(missing: tuple[jf.Joint, oracle.Rows]) -> None:
    joint, _ = missing
    gone = joint.given(c="p")
    asked = [gone.mean, gone.std, lambda name: gone.quantile(name, 0.5), lambda name: gone.marginal(name).likeliest()]
    for ask in (*asked, lambda name: gone.marginal(name).histogram()):
        with pytest.raises(ValueError, match="'m' is missing in all rows"):
            ask("m")
    for both in (lambda: gone.compare("m > n"), lambda: gone.pair("m", "n")):
        with pytest.raises(ValueError, match="rules make one of the columns 'm', 'n' missing"):
            both()
    assert joint.given(c="p").probability({"m": jf.Missing()}) == pytest.approx(1.0)


def test_what_a_rule_makes_missing_is_an_event_of_values() -> None:
    """P(m is missing, ...) is that of the value at which the rule makes m missing, also beside cells missing by chance.

    That a cell of w is known says something of other cells that are missing by chance, but nothing of values.
    """
    rng = np.random.default_rng(3)
    o = rng.random(N) < 0.4
    w = np.where(rng.random(N) < np.where(o, 0.05, 0.5), np.nan, rng.integers(0, 3, N) + o)
    frame = pd.DataFrame(
        {"o": o, "w": w, "b": rng.integers(0, 3, N) + o, "m": np.where(o, np.nan, rng.integers(0, 3, N))}
    )
    learner = jf.HiddenTreeForest(
        n_states=4, max_iter=5, max_leaf_nodes=2, rules=["m missing iff o = true"], random_state=0
    )
    given = learner.fit(frame).joint_.given(w=jf.likely({1.0: 0.7, 2.0: 0.3}, others=0.1))
    for event in ({}, {"b": 1}):
        by_rule, by_value = (given.probability(event | more) for more in ({"m": jf.Missing()}, {"o": True}))
        assert by_rule == pytest.approx(by_value, abs=1e-6)


def test_columns_that_are_missing_together_are_known_together() -> None:
    rng = np.random.default_rng(0)
    delay = rng.integers(0, 90, N).astype(float)
    delay[rng.random(N) < 0.1] = np.nan
    frame = pd.DataFrame({"dep_delay": delay, "dep_time": delay + rng.integers(0, 30, N), "x": rng.integers(0, 3, N)})
    for rules in (["dep_delay, dep_time missing together"], "off"):
        learner = jf.HiddenTreeForest(n_states=4, max_iter=3, max_leaf_nodes=2, rules=rules, random_state=0)
        joint = learner.fit(frame).joint_
        late = joint.given("dep_delay >= 60")
        assert late.probability("dep_delay is missing") == 0.0
        assert joint.probability("x = 1 and dep_delay >= 60") > 0.0
        share = late.probability("dep_time is missing")
        assert share == 0.0  # without the rule, both columns share a node of missing cells
    with pytest.raises(ValueError, match="probability 0"):
        joint.given("dep_delay >= 60 and dep_delay is missing")


def test_a_rule_that_is_rounded_otherwise_is_not_enforced() -> None:
    a = np.random.default_rng(0).integers(0, 8, N)
    frame = pd.DataFrame({"a": a, "half": np.floor(a / 2 + 0.5), "even": np.rint(a / 2)})
    learner = jf.HiddenTreeForest(n_states=2, max_iter=2, max_leaf_nodes=2, random_state=0)
    even = learner.set_params(rules=["even = a / 2"]).fit(frame).joint_
    assert "even = 0.5 * a" in [str(rule) for rule in even.rules if rule.is_enforced]
    drawn = even.sample(500, random_state=0)
    assert np.array_equal(drawn["even"], np.rint(drawn["a"] / 2))
    with pytest.raises(ValueError, match="not always rounded to the even one"):
        learner.set_params(rules=["half = a / 2"]).fit(frame)


def test_draws_of_sums_of_missing_cells_are_missing() -> None:
    joint = _joint("sum of missing")
    drawn = numbers_of(joint, joint.sample(400, random_state=0))
    c, n, m, mn = (joint.schema.index(name) for name in ("c", "n", "m", "mn"))
    gone = drawn[:, c] == joint.schema["c"].codes["p"]
    assert np.isnan(drawn[gone][:, [m, mn]]).all()
    assert np.array_equal(drawn[~gone, mn], drawn[~gone, m] + drawn[~gone, n])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [42, 20042])
def test_rows_of_a_frame_have_the_answers_of_single_rows(seed: int) -> None:
    joint, rng = learned(seed), np.random.default_rng(seed)
    assert joint is not None
    drawn = joint.sample(30, random_state=seed, missing=True)
    for name in joint.schema.names:
        column = joint.schema[name]
        rows = drawn.drop(columns=name).mask(rng.random((30, drawn.shape[1] - 1)) < 0.3)
        together, singles = joint.given(rows), [joint.given(rows.iloc[[i]]) for i in range(30)]
        if column.is_categorical:
            found = together.proba(name)
            expected = np.concatenate([np.reshape(one.proba(name), (1, -1)) for one in singles])
        else:
            at = drawn[name].dropna().unique()[:6]
            found = together.marginal(name).cdf(at)
            expected = np.concatenate([one.marginal(name).cdf(at) for one in singles])
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=name)
