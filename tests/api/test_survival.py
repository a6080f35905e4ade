"""Answers about time to an event, beside sums over all rows and numerical integration."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.api.joint import Joint

from ..random_cases.hidden_parts import ALL, INSIDE, hidden_joint, mixed_joint, small_table
from .test_histogram import EVIDENCE, likelihood

TIMES = [0, 1, 2.5, 4, 6]


@cache
def joints() -> dict[str, Joint]:
    frame = small_table(0)
    forest = jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame).joint_
    found = {"forest": forest, "hidden": hidden_joint(frame, 3), "mixed": mixed_joint(frame, 3)}
    return {name: joint.condition(INSIDE) for name, joint in found.items()}


def shares(joint: Joint, known: dict, conditions: np.ndarray | bool = True) -> np.ndarray:
    """P(size = 0, ..., 6 | evidence), by sums over all rows."""
    p = np.exp(joint.log_density(ALL)) * np.prod([[likelihood(s, x) for x in ALL[c]] for c, s in known.items()], axis=0)
    p = np.bincount(ALL["size"], p * conditions, 7)
    return p / p.sum()


@pytest.mark.parametrize("name", ["forest", "hidden", "mixed"])
@pytest.mark.parametrize("known", EVIDENCE, ids=str)
def test_answers_are_sums_over_rows(name: str, known: dict) -> None:
    joint, size = joints()[name], np.arange(7)
    p, given = shares(joint, known), joint.given(known)
    for t in TIMES:
        assert given.survival("size", t) == pytest.approx(p[size > t].sum(), abs=1e-9)
        assert given.restricted_mean("size", t) == pytest.approx((np.minimum(size, t) * p).sum(), abs=1e-8)
    means = [given.restricted_mean("size", t) for t in TIMES]
    np.testing.assert_array_equal(given.restricted_mean("size", TIMES), means)
    np.testing.assert_allclose(given.survival("size", TIMES), [p[size > t].sum() for t in TIMES], atol=1e-9)
    at_risk = p[::-1].cumsum()[::-1]
    at = np.flatnonzero(at_risk > 1e-6)
    np.testing.assert_allclose(given.hazard("size", at), (p / np.where(at_risk > 0, at_risk, 1))[at], atol=1e-7)
    assert np.isnan(given.hazard("size", 20))


def test_restricted_means_of_rows_up_to_several_times() -> None:
    joint = joints()["hidden"]
    rows = joint.given(pd.DataFrame({"place": ["there", None, "there"]}))
    found = rows.restricted_mean("size", TIMES)
    assert found.shape == (3, len(TIMES))
    for k, t in enumerate(TIMES):
        np.testing.assert_array_equal(found[:, k], rows.restricted_mean("size", t))
    assert rows.restricted_mean("size", []).shape == (3, 0)
    with pytest.raises(ValueError, match="until: expected a value or a sequence"):
        rows.restricted_mean("size", [[1, 2]])


@pytest.mark.parametrize("name", ["forest", "hidden", "mixed"])
def test_rows_without_an_event_so_far(name: str) -> None:
    joint, size = joints()[name], np.arange(7)
    p = shares(joint, {}, (ALL["size"] > 2).to_numpy() & (ALL["place"] == "there").to_numpy())
    later = joint.given("size > 2, place = there")
    np.testing.assert_allclose(
        later.survival("size", [1, 2, 3, 4]), [p[size > t].sum() for t in (1, 2, 3, 4)], atol=1e-9
    )
    assert later.restricted_mean("size", 4) == pytest.approx((np.minimum(size, 4) * p).sum(), abs=1e-8)
    assert later.restricted_mean("size", 1) == pytest.approx(1.0)
    assert later.hazard("size", 1) == 0.0


@pytest.mark.parametrize("name", ["forest", "hidden", "mixed"])
def test_a_cause_is_one_more_column(name: str) -> None:
    """The cumulative incidence of a cause is the probability of an event; those of all causes add up."""
    joint = joints()[name]
    rows = np.exp(joint.log_density(ALL)) * (ALL["flag"] == True)  # noqa: E712
    for t in (1, 3):
        by_cause = [
            joint.given(flag=True).probability(f"size <= {t}, place = {c}") for c in ("here", "there", "nowhere")
        ]
        truth = [
            rows[(ALL["size"] <= t) & (ALL["place"] == c)].sum() / rows.sum() for c in ("here", "there", "nowhere")
        ]
        np.testing.assert_allclose(by_cause, truth, atol=1e-9)
        assert sum(by_cause) == pytest.approx(1.0 - joint.given(flag=True).survival("size", t), abs=1e-9)


@pytest.mark.parametrize("learner", [jf.HiddenTreeForest, jf.JointTree])
def test_times_without_a_grid_by_integration(learner: type) -> None:
    """A tenth has the same time, which is a point mass; the others have a density."""
    rng = np.random.default_rng(0)
    plan = rng.choice(["a", "b"], 600)
    time = np.where(rng.random(600) < 0.1, 2.0, rng.exponential(np.where(plan == "a", 1.0, 3.0)))
    joint = learner(random_state=0).fit(pd.DataFrame({"plan": plan, "time": time})).joint_
    assert joint.schema["time"].atoms == (2.0,)
    given = joint.given("plan = a, time > 0.5")
    t = np.linspace(0.0, 3.0, 30_001)
    S = given.survival("time", t)
    assert given.restricted_mean("time", 3.0) == pytest.approx(np.trapezoid(S, t), abs=1e-3)
    mass = given.probability("time = 2")
    assert given.hazard("time", 2.0) == pytest.approx(mass / given.probability("time >= 2"), rel=1e-6)
    steps = -np.diff(S) / np.diff(t) / S[:-1]  # of the density, from step to step
    middle = (t[1:] + t[:-1]) / 2
    h = given.hazard("time", middle)
    away = np.abs(middle - 2.0) > 1e-3
    assert np.mean(np.isclose(h[away], steps[away], rtol=5e-3, atol=1e-5)) > 0.99


def test_frames_and_dates() -> None:
    rng = np.random.default_rng(0)
    days = rng.integers(0, 200, 300)
    frame = pd.DataFrame({"plan": np.where(days > 90, "pro", "basic"), "days": days})
    frame["end"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["days"], unit="D")
    joint = jf.HiddenTreeForest(random_state=0, rules="off").fit(frame).joint_
    both = joint.given(pd.DataFrame({"plan": ["pro", "basic"]}))
    at = [30, 120]
    for name, points in (("days", at), ("end", ["2024-01-31", "2024-04-30"])):
        curves = both.survival(name, points)
        assert curves.shape == (2, 2) and both.survival(name, points[0]).shape == (2,)
        for i, plan in enumerate(("pro", "basic")):
            np.testing.assert_allclose(joint.given(plan=plan).survival(name, points), curves[i])
            alone = joint.given(plan=plan).restricted_mean(name, points[1])
            apart = both.restricted_mean(name, points[1])[i] - (np.datetime64(alone) if name == "end" else alone)
            assert abs(apart) < (np.timedelta64(1, "s") if name == "end" else 1e-5)
    means = frame["days"].clip(upper=120).groupby(frame["plan"]).mean()
    assert both.restricted_mean("days", 120) == pytest.approx([means["pro"], means["basic"]], abs=1.5)
    with pytest.raises(ValueError, match="column 'plan' is categorical"):
        joint.given().survival("plan", 1)
    with pytest.raises(ValueError, match="column 'days'"):
        joint.given().restricted_mean("days", "soon")


# ---- Times that are not over in some rows.


def contracts(seed: int, n: int = 800) -> pd.DataFrame:
    """Customers with plans and months; of running contracts only a least number of months is known."""
    rng = np.random.default_rng(seed)
    plan = rng.choice(["basic", "pro"], n)
    months = np.ceil(rng.weibull(1.3, n) * np.where(plan == "pro", 40, 12))
    so_far = rng.integers(1, 37, n)
    return pd.DataFrame({"plan": plan, "months": np.minimum(months, so_far), "ended": months <= so_far})


def kaplan_meier(frame: pd.DataFrame, t: float) -> float:
    """The share without an event by t, by the product over months."""
    share = 1.0
    for month in range(1, int(t) + 1):
        at_risk = (frame["months"] >= month).sum()
        ended = ((frame["months"] == month) & frame["ended"]).sum()
        share *= 1.0 - ended / at_risk
    return share


@cache
def censored_joint(seed: int) -> Joint:
    return jf.HiddenTreeForest(kinds={"months": jf.censored(event="ended")}, random_state=0).fit(contracts(seed)).joint_


def test_no_dependence_is_called_lost_that_ranges_hide(recwarn: pytest.WarningsRecorder) -> None:
    frame = contracts(0).assign(twin=lambda x: x["plan"] + "?", size=lambda x: np.arange(len(x)) % 7)
    jf.HiddenTreeForest(kinds={"months": jf.censored(event="ended")}, random_state=0).fit(frame)
    assert not [one for one in recwarn if one.category is jf.LostDependenceWarning]


@pytest.mark.parametrize("seed", range(3))
def test_curves_of_censored_rows_are_those_of_kaplan_and_meier(seed: int) -> None:
    frame, joint = contracts(seed), censored_joint(seed)
    at = [3, 6, 12, 18, 24, 30]
    found = joint.given().survival("months", at)
    np.testing.assert_allclose(found, [kaplan_meier(frame, t) for t in at], atol=0.03)
    for plan in ("basic", "pro"):
        rows = frame[frame["plan"] == plan]
        some = [t for t in at if (rows["months"] >= t).sum() >= 30]
        np.testing.assert_allclose(
            joint.given(plan=plan).survival("months", some), [kaplan_meier(rows, t) for t in some], atol=0.052
        )
        area = sum(kaplan_meier(rows, t) for t in range(18))
        assert joint.given(plan=plan).restricted_mean("months", 18) == pytest.approx(area, abs=0.5)


def test_nothing_is_learned_beyond_the_last_event() -> None:
    frame, joint = contracts(0), censored_joint(0)
    last = float(frame.loc[frame["ended"], "months"].max())
    column = joint.schema["months"]
    assert column.learned_until == last == column.maximum
    pro = joint.given(plan="pro")
    share = pro.survival("months", last)
    assert 0.2 < share < 0.6
    with pytest.warns(jf.NotLearnedWarning, match=f"column 'months': not learned beyond {last:g}"):
        assert pro.quantile("months", 1.0 - share + 0.01) == np.inf
    assert pro.quantile("months", 1.0 - share - 0.02) <= last
    with pytest.warns(jf.NotLearnedWarning):
        low, high = joint.given(pd.DataFrame({"plan": ["pro", "basic"]})).interval("months", 0.8)
    assert (low <= last).all() and high[0] == np.inf and high[1] <= last
    for ask in (pro.survival, pro.hazard):
        with pytest.warns(jf.NotLearnedWarning, match="ask up to"):
            found = ask("months", [last, last + 1])
        assert found[0] > 0 and np.isnan(found[1])
    with pytest.warns(jf.NotLearnedWarning):
        assert np.isnan(pro.restricted_mean("months", 2 * last))
    with pytest.warns(jf.NotLearnedWarning, match="restricted_mean up to"):
        pro.mean("months")


@pytest.mark.parametrize("event", ["months > {}", "months <= {}", "not months > {}", "months >= {}, plan = pro"])
def test_an_event_that_ends_beyond_the_last_one_is_not_learned(event: str, recwarn: pytest.WarningsRecorder) -> None:
    pro = censored_joint(0).given(plan="pro")
    last = censored_joint(0).schema["months"].learned_until
    pro.probability(event.format(last))
    pro.probability("plan = pro")
    assert not [one for one in recwarn if one.category is jf.NotLearnedWarning]
    with pytest.warns(jf.NotLearnedWarning, match="its probability rests on what is assumed"):
        assert 0 < pro.probability(event.format(last + 2)) < 1


def test_statements_about_imputed_times_are_not_checked(recwarn: pytest.WarningsRecorder) -> None:
    """Values that are imputed in ranges are no counts, so that a joint cannot be wrong about them."""
    kinds = {"months": jf.censored(event="ended")}
    found = jf.fit(contracts(0), kinds=kinds, budget="fast", random_state=0)
    assert not [one for one in recwarn if one.category is jf.LostDependenceWarning]
    assert "months" not in found.schema.checked


def test_files_keep_what_is_learned(tmp_path: Path) -> None:
    joint = censored_joint(0)
    joint.save(tmp_path / "contracts.joint")
    again = jf.load(tmp_path / "contracts.joint")
    assert again.schema["months"].learned_until == joint.schema["months"].learned_until
    np.testing.assert_allclose(again.given().survival("months", [6, 12]), joint.given().survival("months", [6, 12]))


def test_columns_of_exact_numbers_answer_everywhere(recwarn: pytest.WarningsRecorder) -> None:
    joint = jf.HiddenTreeForest(random_state=0).fit(contracts(0)[["plan", "months"]]).joint_
    assert joint.given().survival("months", 1e6) < 1e-12 and np.isfinite(joint.given().quantile("months", 0.999))
    below = jf.HiddenTreeForest(random_state=0).fit(pd.DataFrame({"x": ["<2", "3", "4.5", "7", "9", "5"] * 20})).joint_
    assert below.schema["x"].learned_until == np.inf and below.given().quantile("x", 0.99) < np.inf
    assert not [one for one in recwarn if one.category is jf.NotLearnedWarning]


def test_what_is_known_so_far_is_evidence() -> None:
    """Rows of a frame whose contracts run on are rows that have lasted at least as long."""
    joint = censored_joint(0)
    rows = pd.DataFrame({"plan": ["pro", "basic"], "months": [12, 6], "ended": [False, False]})
    found = joint.given(rows).survival("months", [12, 24])
    for i, text in enumerate(("plan = pro, months > 12", "plan = basic, months > 6")):
        np.testing.assert_allclose(found[i], joint.given(text).survival("months", [12, 24]), atol=1e-6)


@pytest.mark.parametrize("zone", [None, "Europe/Vienna"])
def test_restricted_means_up_to_several_dates(zone: str | None) -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=60, tz=zone))
    joint = jf.JointTree(random_state=0).fit(pd.DataFrame({"day": days, "x": np.arange(60.0)})).joint_
    until = [days[10], days[40]]
    found = joint.given().restricted_mean("day", until)
    alone = [pd.Timestamp(joint.given().restricted_mean("day", t)) for t in until]
    for one, several, t in zip(alone, found, until, strict=True):
        several = pd.Timestamp(several)
        assert str(several.tz) == str(one.tz) == str(zone)
        assert abs(several - one) <= pd.Timedelta("1D") and one <= t
