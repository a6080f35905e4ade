"""Two columns of any joint: covariances and comparisons against sums over the values of one of them, and draws."""

from __future__ import annotations

import datetime as dt
from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.api.joint import Joint

NAMES = ("tree", "forest", "chow-liu", "hidden", "mixture")
EVIDENCE = ({}, {"d": jf.between(2, 9)}, {"b": jf.between(2, 8), "s": "x"}, {"a": jf.likely({3: 1, 4: 0.5, 6: 2})})


def table(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.binomial(9, 0.5, n)
    b = np.clip(a + rng.integers(-2, 3, n), 0, 12)
    d = a * 1.5 + rng.normal(size=n)
    s = np.where(rng.random(n) < b / 12, "x", "y")
    t = np.where(rng.random(n) < 0.7, s, "z")
    day = pd.Timestamp("2024-03-01") + pd.to_timedelta(a, "D")
    frame = pd.DataFrame({"a": a, "b": b, "c": rng.random(n) < a / 10, "d": d, "e": d + rng.normal(size=n)})
    frame = frame.assign(s=s, t=t, start=day, end=day + pd.to_timedelta(rng.integers(0, 4, n), "D"))
    return frame.assign(b=frame["b"].astype("Float64").mask(rng.random(n) < a / 12))


@cache
def joint(name: str) -> Joint:
    if name == "mixture":
        return jf.mix([joint("forest"), joint("hidden")], [0.3, 0.7])
    learners = {
        "tree": jf.JointTree(min_samples_leaf=30, random_state=0),
        "forest": jf.AdversarialForest(n_estimators=2, random_state=0),
        "chow-liu": jf.AdversarialForest(n_estimators=2, min_samples_leaf=30, leaf="chow_liu", random_state=0),
        "hidden": jf.HiddenTreeForest(n_estimators=2, n_states=6, random_state=0),
    }
    return learners[name].fit(table()).joint_


def by_value(name: str, evidence: dict, answer: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of column a, their probabilities, and ``answer(posterior given each value, values)``."""
    values = np.arange(-15, 30)
    rows = joint(name).given(pd.DataFrame({"a": values}), **evidence)
    share = np.exp(rows.log_probability - joint(name).given(evidence).log_probability)
    return values, share, np.nan_to_num(answer(rows, values))


@pytest.mark.filterwarnings("ignore::jointforest.UnsupportedEvidenceWarning")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("evidence", EVIDENCE, ids=str)
def test_covariance_is_that_of_the_conditional_means(name: str, evidence: dict) -> None:
    given = joint(name).given(evidence)
    for a, b in (("a", "b"), ("a", "c"), ("a", "d"), ("a", "e")):
        values, share, means = by_value(name, evidence, lambda posterior, v, b=b: posterior.mean(b))
        expected = (share * (values - share @ values)) @ means
        assert given.cov(a, b) == pytest.approx(expected, rel=2e-3, abs=2e-3)
        assert given.cov(b, a) == pytest.approx(given.cov(a, b), rel=1e-5, abs=1e-5)
        deviations = given.std(a) * np.sqrt(given.var(b))
        assert given.corr(a, b) == pytest.approx(given.cov(a, b) / deviations, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_sums_follow_from_means_and_covariances_and_draws(name: str) -> None:
    given = joint(name).given("c")
    drawn = given.sample(8_000, random_state=0)
    total = (2 * drawn["a"] - drawn["d"] / 2 + drawn["c"] + 3).astype(float)
    mean, sd = (joint(name).query(f"{f}(2 * a - d / 2 + c + 3 | c)") for f in ("E", "Sd"))
    assert mean == pytest.approx(2 * given.mean("a") - given.mean("d") / 2 + 4, rel=1e-12)
    assert mean == pytest.approx(total.mean(), abs=5 * total.std() / np.sqrt(len(total)))
    assert sd == pytest.approx(total.std(), rel=0.05)
    assert joint(name).query("Var(a - a + b)") == pytest.approx(joint(name).query("Var(b)"))
    assert joint(name).query("Corr(a, a)") == 1.0
    frame = table().head(3)[["s", "d"]]
    each = [joint(name).given(frame.iloc[[i]]).cov("a", "b")[0] for i in range(3)]
    np.testing.assert_allclose(joint(name).given(frame).cov("a", "b"), each, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::jointforest.UnsupportedEvidenceWarning")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("evidence", EVIDENCE, ids=str)
def test_comparisons_are_sums_over_the_values_of_one_column(name: str, evidence: dict) -> None:
    given = joint(name).given(evidence)
    asked = {
        "a > b": lambda p, v: p.probability({"b": jf.between(None, v, "neither")}),
        "b >= a": lambda p, v: p.probability({"b": jf.between(v, None, "both")}),
        "a = b": lambda p, v: p.probability({"b": jf.between(v, v)}),
        "b != a": lambda p, v: 1.0 - p.probability({"b": jf.between(v, v)}),
        "d < a": lambda p, v: p.probability({"d": jf.between(None, v, "neither")}),
        "2 * a - d > 1": lambda p, v: p.probability({"d": jf.between(None, 2 * v - 1, "neither")}),
        "a / 2 <= b - 1": lambda p, v: p.probability({"b": jf.between(v / 2 + 1, None)}),
    }
    for text, answer in asked.items():
        _, share, inside = by_value(name, evidence, answer)
        found = given.compare(text)
        assert found.method == "exact" and found.standard_error == 0.0
        assert found.value == pytest.approx(share @ inside, abs=1e-6), text


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_exact_has_an_honest_standard_error(name: str) -> None:
    given = joint(name).given("c")
    drawn = given.sample(10_000, random_state=5)
    for text, truth in (
        ("d > e", (drawn["d"] > drawn["e"]).mean()),
        ("d - e > 1", (drawn["d"] - drawn["e"] > 1).mean()),
        ("a + b > 2 * d", (drawn["a"] + drawn["b"] > 2 * drawn["d"]).mean()),
    ):
        found = [given.compare(text, n_samples=256, random_state=k) for k in range(6)]
        assert all(one.method == "sampling" and one.standard_error > 0.0 for one in found)
        off = np.array([one.value - truth for one in found])
        noise = np.sqrt(np.mean([one.standard_error**2 for one in found]) + truth * (1 - truth) / len(drawn))
        assert np.abs(off).mean() < 3.0 * noise
        spread = np.std([given.compare(text, n_samples=256, random_state=k).value for k in range(6, 18)], ddof=1)
        assert np.mean([one.standard_error for one in found]) < 3.0 * spread
    assert joint(name).query("P(d > e)") == joint(name).query("P(d > e)")
    assert given.compare("d = e").value == 0.0


@pytest.mark.parametrize("learner", [jf.JointTree(leaf="quantile", random_state=0), jf.HiddenTreeForest(n_states=32)])
def test_moments_in_minutes_are_equal_as_often_as_they_are(learner: object) -> None:
    """Two columns on grids of more cells than are summed over: against the sum over the times that rows have."""
    rng = np.random.default_rng(3)
    times = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.sort(rng.choice(40_000, 24, replace=False)), "min")
    start = rng.integers(24, size=500)
    frame = pd.DataFrame({"start": times[start], "end": times[np.where(rng.random(500) < 0.6, start, 23 - start)]})
    frame["far"] = start > 11
    given = learner.fit(frame).joint_.given("far")
    each = [given.probability({"start": [t], "end": [t]}) for t in times]
    left_out = 1.0 - sum(given.probability({"start": [t]}) for t in times)
    equal, other = (given.compare(f"start {op} end", random_state=0) for op in ("=", "!="))
    assert equal.method == "sampling" and sum(each) > 0.02
    assert sum(each) - 4 * equal.standard_error <= equal.value <= sum(each) + left_out + 4 * equal.standard_error
    assert other.value == pytest.approx(1.0 - equal.value, abs=1e-9)


def test_events_given_impossible_evidence_are_nan() -> None:
    """Events that cannot be, too: nothing is known of what follows from what cannot be."""
    known = joint("tree").condition(s="x").given(pd.DataFrame({"s": ["x", "y"]}))
    for event in ("t = x", "s is missing"):
        assert np.isnan(known.probability(event)).tolist() == [False, True]


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_levels_and_dates(name: str) -> None:
    given = joint(name).given("c")
    share = given.proba("s")
    equal = sum(share[v] * joint(name).given("c", s=v).probability(f"t = {v}") for v in ("x", "y"))
    assert given.compare("s = `t`").value == pytest.approx(equal, abs=1e-7)
    assert given.compare("s != `t`").value == pytest.approx(1 - equal, abs=1e-7)
    apart = joint(name).query("E(end - start | c)")
    assert type(apart) is dt.timedelta
    assert abs(pd.Timedelta(apart) - (given.mean("end") - given.mean("start"))) < pd.Timedelta("1ms")
    assert joint(name).query("Sd(end - start | c)") > np.timedelta64(1, "h")
    later = joint(name).query("P(end > start | c)")
    drawn = given.sample(8_000, random_state=1)
    assert later.method == "exact" and later.value == pytest.approx((drawn["end"] > drawn["start"]).mean(), abs=0.02)
    both = joint(name).query("P(end > start, s = x | c)").value
    assert both == pytest.approx(
        given.probability("s = x") * joint(name).query("P(end > start | c, s = x)").value, rel=1e-9
    )


@pytest.mark.parametrize("name", NAMES)
def test_missing_cells_are_events_and_evidence(name: str) -> None:
    j = joint(name)
    drawn = j.sample(40_000, random_state=2, missing=True)
    blank = drawn["b"].isna()
    assert j.query("P(b is missing)") == pytest.approx(blank.mean(), abs=0.01)
    assert j.query("P(b is missing | a > 5)") == pytest.approx(blank[drawn["a"] > 5].mean(), abs=0.03)
    assert j.query("P(b is not missing | a > 5)") == pytest.approx(1 - j.query("P(b is missing | a > 5)"))
    assert j.query("E(a | b is missing)") == pytest.approx(drawn["a"][blank].mean(), abs=0.06)
    bayes = j.query("P(b is missing | s = x)") * j.query("P(s = x)") / j.query("P(b is missing)")
    assert j.query("P(s = x | b is missing)") == pytest.approx(bayes, rel=1e-5)
    assert j.query("P(s = x, b is missing)") == pytest.approx(bayes * j.query("P(b is missing)"), rel=1e-5)
    given = j.given("b is missing", d=jf.between(3, 9))
    assert given.log_probability == pytest.approx(np.log(j.probability("b is missing and 3 <= d <= 9")), abs=1e-5)
    conditioned = j.condition("b is missing")
    assert conditioned.probability("b is missing") == pytest.approx(1.0, abs=1e-6)
    assert conditioned.sample(50, random_state=0, missing=True)["b"].isna().all()
    assert j.query("P(a is missing)") == 0.0
    with pytest.raises(ValueError, match="probability 0: a is missing"):
        j.given("a is missing")
    for text in ("b is missing or b > 3", "b is missing and b is not missing"):
        with pytest.raises(ValueError, match="'b'"):
            j.given(text)
    both = given.mean("a")
    assert j.given("b is missing and 3 <= d <= 9").mean("a") == pytest.approx(both, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_modes_of_numbers_and_medians_of_levels(name: str) -> None:
    j = joint(name)
    share = [j.probability({"a": k}, "c") for k in range(-3, 15)]
    assert j.query("Mode(a | c)") == np.argmax(share) - 3
    mode, around = j.query("Mode(d | c)"), np.linspace(-5, 20, 3001)
    density = j.given("c").marginal("d")
    assert density.pdf(mode) >= 0.999 * density.pdf(around).max()
    assert j.query("Mode(d | d = 3.25)") == 3.25 and j.query("Mode(start)").year == 2024
    assert j.query("Median(c)") is bool(j.probability("c") > 0.5)
    assert j.query("Median(c | c)") is True
    frame = pd.DataFrame({"a": [1, 9]})
    medians = j.given(frame).quantile("c", 0.5)
    assert medians.tolist() == (j.given(frame).mean("c") > 0.5).tolist()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("E(a - s)", "'s' is categorical"),
        ("Corr(a, s)", "'s' is categorical"),
        ("P(a > `s`)", "'s' is categorical"),
        ("P(s < `t`)", "order"),
        ("E(start + end)", "dates are taken from dates"),
        ("E(start - a)", "dates are taken from dates"),
        ("Q(a - b, 0.5)", "sums of columns have E, Var and Sd"),
        ("Median(a - b)", "sums of columns have E, Var and Sd"),
        ("E(a | a > b)", "in the event of P alone"),
        ("logp(a > b)", "in the event of P alone"),
        ("P(not (a > b))", "'not'"),
        ("P(a > b or c)", "'or'"),
        ("P(a > a)", "two or more"),
        ("P(a > b, b > d)", "one comparison"),
        ("P(a < b < d)", "chain"),
        ("E(3)", "without a column"),
        ("Corr(a)", "two columns"),
        ("Corr(a, b | a = 3)", "one value"),
        ("P(a is 3)", "expected 'missing'"),
    ],
)
def test_what_cannot_be_asked_says_so(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        joint("tree").query(text)
