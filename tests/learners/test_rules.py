"""Rules in learners: coordinates of a table, joints whose rows obey, and draws beside draws by rejection."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import jointforest as jf
from jointforest.data.meaning import contains
from jointforest.data.rules.contradictions import contradicted
from jointforest.data.rules.rule import Combinations, Equation
from jointforest.learners.rows import read_training_rows
from jointforest.learners.rules import WantedRules, reduce_table, wanted_rules
from jointforest.models.ruled import translate
from jointforest.query_language.parser import parse_conditions

from ..data.rules.tables import RULES, obedient


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return obedient(4_000, 0)


@pytest.fixture(scope="module")
def joint(frame: pd.DataFrame) -> jf.Joint:
    return jf.HiddenTreeForest(n_states=12, max_iter=2, max_leaf_nodes=1, start="shared", smoothing=30.0,
                               rules="all", random_state=0).fit(frame).joint_  # fmt: skip


@pytest.fixture(scope="module")
def draws(joint: jf.Joint) -> pd.DataFrame:
    """Rows without evidence, some of which obey any evidence by rejection."""
    return joint.sample(N_DRAWS, random_state=5)


N_DRAWS = 100_000


def _contradictions(joint: jf.Joint, rows: pd.DataFrame) -> dict[str, int]:
    X = joint._encode(rows)[0]
    return {str(rule): int(contradicted(rule, joint.schema, X).sum()) for rule in joint.rules}


def test_a_table_comes_back_from_its_coordinates(frame: pd.DataFrame) -> None:
    rows = read_training_rows(frame, None)
    reduced = reduce_table(wanted_rules("all", rows.schema, rows.X), rows.X)
    assert reduced is not None
    assert {str(rule) for rule in reduced.coordinates.enforced} == RULES
    assert len(reduced.coordinates.inner.columns) < rows.X.shape[1]
    back = reduced.coordinates.rows(reduced.X)
    assert np.array_equal(reduced.of_rows(rows.X), reduced.X, equal_nan=True)
    assert np.array_equal(np.isnan(back), np.isnan(rows.X))
    assert np.allclose(back, rows.X, rtol=1e-12, equal_nan=True)


def test_cells_that_rules_determine_are_no_loss(frame: pd.DataFrame) -> None:
    hidden = frame.copy()
    for name in ("town", "name", "total", "end"):
        hidden.loc[hidden.index[::9], name] = None
    rows, full = read_training_rows(hidden, None), read_training_rows(frame, None)
    reduced = reduce_table(wanted_rules("all", rows.schema, rows.X), rows.X)
    assert reduced is not None
    known = [at for at, c in enumerate(reduced.coordinates.inner.columns) if not c.name.endswith("missing")]
    made = reduced.coordinates.rows(reduced.X)
    some = [rows.schema.index(name) for name in ("shop", "number", "net", "fee", "start", "minutes")]
    assert np.allclose(made[:, some], full.X[:, [full.schema.index(rows.schema.names[j]) for j in some]])
    assert not np.isnan(reduced.X[:, known[0]]).any()


def test_draws_obey_and_look_like_the_table(joint: jf.Joint, frame: pd.DataFrame) -> None:
    for missing in (False, True):
        rows = joint.sample(6_000, random_state=1, missing=missing)
        assert _contradictions(joint, rows) == dict.fromkeys(RULES, 0)
        pairs = set(zip(frame["department"], frame["job"], strict=True))
        assert set(zip(rows["department"], rows["job"], strict=True)) <= pairs
        assert set(zip(rows["shop"], rows["town"], strict=True)) <= set(zip(frame["shop"], frame["town"], strict=True))
        assert abs(rows["delay"].isna().mean() - frame["delay"].isna().mean()) < 0.03
    assert np.isfinite(joint.log_density(rows)).all()


EVIDENCE = [
    "town = t1",
    "name in {n2, n5}, job = j3",
    "price = 2, size = 1",
    "total between 40 and 44",
    "total = 50, fee < 8",
    "end < '2024-05-01', minutes > 20",
    "closed = '2023-06-02'",
    "closed > '2024-01-01', opened < '2023-09-01'",
    "high = 41",
    "high between 35 and 38, middle > 30",
    "high = 40, low = 31",
    "delay > 12",
    "state = gone, total > 60",
]


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_conditional_draws_have_the_law_of_rejection(joint: jf.Joint, draws: pd.DataFrame, evidence: str) -> None:
    given = joint.given(evidence)
    drawn = given.sample(2_000, random_state=3)
    assert _contradictions(joint, drawn) == dict.fromkeys(RULES, 0)
    kept = draws[_holds(joint, draws, evidence)]
    share = len(kept) / N_DRAWS
    probability = joint.probability(evidence)
    error = np.sqrt(probability * (1 - probability) / N_DRAWS)
    assert abs(probability - share) < 5 * error + 1e-6
    if len(kept) < 200:
        return
    for name in joint.columns:
        a, b = (_codes(rows[name], kept[name]) for rows in (drawn, kept))
        table = np.array([np.bincount(a, minlength=12), np.bincount(b, minlength=12)])
        table = table[:, table.sum(axis=0) > 0]
        few = table.sum(axis=0) < 20
        table = np.column_stack([table[:, ~few], table[:, few].sum(axis=1)])
        table = table[:, table.sum(axis=0) > 0]
        if table.shape[1] > 1:
            assert stats.chi2_contingency(table).pvalue > 1e-5, name


def _holds(joint: jf.Joint, rows: pd.DataFrame, evidence: str) -> np.ndarray:
    X = joint._encode(rows)[0]
    fits = np.ones(len(rows), bool)
    for name, condition in parse_conditions(evidence, joint.schema.kinds):
        j = joint.schema.index(name)
        distinct, place = np.unique(X[:, j], return_inverse=True)
        fits &= np.array([not np.isnan(x) and contains(joint.schema[name], condition, x) for x in distinct])[place]
    return fits


def _codes(values: pd.Series, all_values: pd.Series) -> np.ndarray:
    """Levels, or one of twelve bins, of values; missing ones have the last."""
    if values.dtype.kind in "OU" or str(values.dtype).startswith(("str", "category")):
        levels = {level: k % 11 for k, level in enumerate(sorted(all_values.dropna().unique()))}
        return values.map(levels).fillna(11).astype(int).to_numpy()
    numbers, of_all = (v.astype("int64") if v.dtype.kind == "M" else v.astype(float) for v in (values, all_values))
    if of_all.isna().all():
        return np.full(len(values), 11)
    cuts = np.unique(np.nanquantile(of_all, np.linspace(0, 1, 12)[1:-1]))
    return np.where(np.isnan(numbers.astype(float)), 11, np.searchsorted(cuts, numbers)).astype(int)


def test_answers_agree_with_draws(joint: jf.Joint) -> None:
    for evidence in ("high = 41", "total between 40 and 44", "delay > 12, town = t2", "closed > '2024-01-01'"):
        given = joint.given(evidence)
        rows = given.sample(10_000, random_state=0)
        for name in ("net", "fee", "total", "low", "middle", "high", "a", "price", "minutes"):
            error = rows[name].std() / np.sqrt(len(rows))
            assert abs(given.mean(name) - rows[name].mean()) < 5 * error + 1e-6, (evidence, name)
            assert (
                abs(given.marginal(name).cdf(rows[name].median()) - (rows[name] <= rows[name].median()).mean()) < 0.02
            )
        assert abs(given.proba("town")["t1"] - (rows["town"] == "t1").mean()) < 0.02


def test_missing_parts_are_filled_exactly(joint: jf.Joint, frame: pd.DataFrame) -> None:
    holes = frame.iloc[:200].copy()
    holes["net"] = holes["net"].astype(float)
    holes.loc[holes.index[::2], "net"] = np.nan
    holes.loc[holes.index[1::3], "town"] = None
    holes.loc[holes.index[2::3], "end"] = pd.NaT
    filled = joint.impute(holes)
    for name in ("net", "town", "end"):
        assert (filled[name].to_numpy() == frame.iloc[:200][name].to_numpy()).all()
    assert filled["delay"].isna().equals(frame.iloc[:200]["delay"].isna())


@pytest.mark.parametrize(
    ("evidence", "rule"),
    [
        ("town = t1, shop = s2", "shop -> town"),
        ("total = 50, net = 30, fee = 3", "total = net + fee"),
        ("opened = '2023-06-02', closed = '2023-06-01'", "opened <= closed"),
        ("state = gone, delay = 3", "delay missing iff state = 'gone'"),
        ("low = 50, high = 40", "low <= middle"),
    ],
)
def test_errors_name_the_rule(joint: jf.Joint, evidence: str, rule: str) -> None:
    assert joint.probability(evidence) == 0.0
    with pytest.raises(ValueError, match="contradicts the rule") as error:
        joint.given(evidence).mean("a")
    assert rule in str(error.value)


def test_evidence_on_an_answer_says_that_the_question_was_asked() -> None:
    """A survey with questions that are skipped, and answers that are not given."""
    rng = np.random.default_rng(0)
    n = 1_200
    seen, mood = rng.random(n) < 0.8, rng.normal(size=n)
    skips = ~seen | (rng.random(n) < 0.12)
    survey = pd.DataFrame({"seen": np.where(seen, "yes", "no"), "age": rng.choice(["young", "old"], n)})
    survey["shot"] = np.where(skips, None, rng.choice(["Han", "Greedo", "neither"], n, p=[0.4, 0.25, 0.35]))
    survey["rank"] = np.where(~seen | (rng.random(n) < 0.1), np.nan, np.clip(np.rint(3 + mood), 1, 6))
    for joint in (
        jf.HiddenTreeForest(n_states=8, random_state=0).fit(survey).joint_,
        jf.fit(survey, budget="fast", random_state=0),
    ):
        assert all(
            joint.probability("seen = yes", evidence) == pytest.approx(1.0) for evidence in ("shot = Han", "rank >= 4")
        )
        for evidence, fits in (("shot = Han", survey["shot"] == "Han"), ("rank >= 4", survey["rank"] >= 4)):
            assert joint.given(evidence).n_rows == pytest.approx(fits.sum(), rel=0.06)
        for given, of in (({}, survey), ({"seen": "yes"}, survey[survey["seen"] == "yes"])):
            assert joint.given(given).probability("shot is missing") == pytest.approx(
                of["shot"].isna().mean(), abs=0.01
            )
        drawn = joint.sample(4_000, random_state=0, missing=True)
        assert drawn["shot"].isna().mean() == pytest.approx(survey["shot"].isna().mean(), abs=0.03)
        assert drawn.loc[drawn["seen"] == "no", ["shot", "rank"]].isna().all(axis=None)
        whole = joint.sample(500, random_state=0)
        assert (whole["shot"].isna() == (whole["seen"] == "no")).all()
        filled = joint.impute(survey)
        assert (filled["shot"].isna() == (survey["seen"] == "no")).all()


@pytest.mark.parametrize(("sign", "seed"), [(1, 0), (-1, 1)])
def test_questions_that_are_not_asked_up_to_a_number_or_from_it_on(sign: int, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    n = 1_200
    runs = rng.choice(["yes", "no"], n)
    km = np.where(runs == "yes", sign * np.round(rng.gamma(4.0, 6.0, n)), np.nan)
    is_asked = sign * km > 20.0
    race = np.where(is_asked, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(3.0 - sign * km / 12.0)), "y", "n"), None)
    shoes = np.where(is_asked & (rng.random(n) < 0.8), rng.choice(["road", "trail"], n), None)  # some give no answer
    frame = pd.DataFrame({"runs": runs, "km": km, "race": race, "shoes": shoes})
    joint = jf.HiddenTreeForest(n_states=16, random_state=0).fit(frame).joint_
    where = "km <= 20" if sign > 0 else "km >= -20"
    rules = {str(rule): rule.is_enforced for rule in joint.rules}
    assert rules == {"km missing iff runs = 'no'": True, f"race missing iff {where}": True,
                     f"shoes missing if {where}": True}  # fmt: skip
    joint.save(tmp_path / "a.joint")
    for asked in (joint, jf.load(tmp_path / "a.joint")):
        assert asked.probability(f"race is missing and {where}") == pytest.approx(asked.probability(where))
        assert asked.given(km=sign * 21).probability("race is missing") == 0.0
        assert asked.given(km=sign * 20).probability("race is missing") == pytest.approx(1.0)
        assert asked.given(km=sign * 20).probability("shoes is missing") == pytest.approx(1.0)
        assert asked.given(race="y").probability(where) < 1e-9  # far beyond the table
        assert asked.given(race="y").probability("runs = 'no'") < 0.01
        assert abs(asked.given(km=sign * 30).probability("shoes is missing") - 0.2) < 0.06
        assert abs(asked.probability("race is missing") - (~is_asked).mean()) < 0.02
        for answer in ("y", "n"):
            group = frame.loc[frame["race"] == answer, "km"]
            assert abs(asked.given(race=answer).mean("km") - group.mean()) < 4.0 * group.std() / np.sqrt(len(group))
            assert abs(asked.given(race=answer).std("km") / group.std() - 1.0) < 0.25
    drawn = joint.sample(4_000, random_state=0)
    known = drawn["km"].notna()
    assert (drawn["race"].isna() == (sign * drawn["km"] <= 20))[known].all()
    assert drawn["race"].isna()[~known].mean() > 0.99
    filled = joint.impute(frame.assign(km=frame["km"].mask(rng.random(n) < 0.2)))
    assert (filled["race"].isna() == frame["race"].isna()).mean() > 0.95
    assert (sign * filled["km"] > 20)[frame["race"].notna()].all()


def test_missing_cells_that_become_more_frequent_are_no_rule() -> None:
    rng = np.random.default_rng(2)
    for steep in (0.0, 3.0, 8.0, 15.0):
        age = rng.integers(0, 90, 1_000)
        income = np.where(
            rng.random(1_000) < 1.0 / (1.0 + np.exp(steep * (age / 90 - 0.4))), np.nan, rng.normal(size=1_000)
        )
        assert not read_training_rows(pd.DataFrame({"age": age, "income": income}), None).schema.rules


def test_each_question_of_a_chain_is_asked_after_the_one_before() -> None:
    rng = np.random.default_rng(500)
    n = 500
    a = rng.choice(["yes", "no"], n, p=[0.6, 0.4])
    b = np.where(a == "yes", rng.choice(["yes", "no"], n), None)
    c = np.where(b == "yes", rng.choice(["yes", "no"], n, p=[0.7, 0.3]), None)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": np.where(c == "yes", rng.integers(1, 9, n), np.nan)})
    joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(frame).joint_
    expected = ["b missing iff a = 'no'", "c missing iff b = 'no'", "d missing iff c = 'no'"]
    assert [str(rule) for rule in joint.rules if rule.is_enforced] == expected  # the last rests on 40 rows of c = 'no'
    assert joint.given("d >= 4").probability("a = 'yes'") > 0.99
    assert joint.given(b="yes").probability("d is missing") == pytest.approx((c[b == "yes"] == "no").mean(), abs=0.05)


def test_rules_are_declared_or_off(frame: pd.DataFrame) -> None:
    few = frame[["net", "fee", "total", "low", "middle"]]
    settings = {"n_states": 2, "max_iter": 1, "random_state": 0}
    for none in ("off", False, []):
        off = jf.HiddenTreeForest(rules=none, **settings).fit(few).joint_
        assert len(off.rules) == 2 and not any(rule.is_enforced for rule in off.rules)
    one = jf.HiddenTreeForest(rules=["low <= middle"], **settings).fit(few).joint_
    assert {str(rule): rule.is_enforced for rule in one.rules} == {
        "low <= middle": True, "total = net + fee": False,
    }  # fmt: skip
    both = jf.HiddenTreeForest(rules=[jf.rule("fee < total"), "all"], **settings).fit(few).joint_
    assert {str(rule) for rule in both.rules} == {"fee < total", "total = net + fee", "low <= middle"}


def test_functions_and_sums_on_grids_are_enforced_by_default(frame: pd.DataFrame) -> None:
    few = frame[["net", "fee", "total", "shop", "town", "delay", "state"]].assign(
        many=frame["a"] * 0 + frame.index % 97
    )
    few["side"] = few["many"] % 2
    joint = jf.HiddenTreeForest(n_states=2, max_iter=1, random_state=0).fit(few).joint_
    assert {str(rule): rule.is_enforced for rule in joint.rules} == {
        "shop -> town": True, "total = net + fee": True, "delay missing iff state = 'gone'": True,
        "many -> side": True,  # 97 combinations: a trial says that it is better
    }  # fmt: skip
    short = jf.HiddenTreeForest(n_states=2, max_iter=1, random_state=0).fit(few[:1_500]).joint_  # too few for a trial
    assert not next(rule for rule in short.rules if str(rule) == "many -> side").is_enforced


def test_only_sums_of_few_steps_are_enforced_by_default() -> None:
    """Others would be answered by estimates."""
    rng = np.random.default_rng(0)
    wide, small = rng.integers(0, 200_000, 1_000), rng.integers(0, 90, (2, 1_000))
    frame = pd.DataFrame({"wide": wide, "a": small[0], "b": small[1], "sum": small.sum(axis=0)})
    frame["half_wide"] = np.random.default_rng(2).integers(0, 20_000, 1_000)
    frame["much"] = frame["wide"] + frame["half_wide"]
    frame["other"] = np.random.default_rng(3).integers(0, 200_000, 1_000)
    frame["more"] = frame["wide"] + frame["other"]
    frame["dear"] = np.random.default_rng(1).integers(0, 1_000_000, 1_000)
    frame["price"] = frame["dear"] + frame["b"]
    frame["x"], frame["y"] = rng.normal(size=1_000), rng.normal(size=1_000)
    frame["z"], frame["half"] = frame["x"] + frame["y"], frame["x"] / 2
    joint = jf.HiddenTreeForest(n_states=2, max_iter=0, random_state=0).fit(frame).joint_
    assert {str(rule): rule.is_enforced for rule in joint.rules if isinstance(rule, Equation)} == {
        "much = wide + half_wide": True, "more = wide + other": False, "sum = a + b": True,
        "price = b + dear": True, "z = x + y": False, "half = 0.5 * x": True,
    }  # fmt: skip


def test_orders_of_two_close_columns_are_enforced_by_default() -> None:
    """Where columns are farther apart, or orders share columns, draws would be less like rows, or answers slow."""
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 700, 1_000), unit="D")
    low = rng.integers(0, 3_000, 1_000)
    frame = pd.DataFrame({"start": start, "end": start + pd.to_timedelta(rng.geometric(0.1, 1_000), unit="D")})
    frame["pick"] = pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 30 * 86_400, 1_000), unit="s")
    frame["drop"] = frame["pick"] + pd.to_timedelta(rng.geometric(0.002, 1_000), unit="s")
    frame["low"], frame["mid"] = low, low + rng.geometric(0.1, 1_000) - 1
    frame["high"] = frame["mid"] + rng.geometric(0.1, 1_000) - 1
    frame["few"] = rng.poisson(30, 1_000)
    frame["more"] = frame["few"] + rng.geometric(0.2, 1_000) - 1
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(frame).joint_
    orders = {str(rule): rule.is_enforced for rule in joint.rules}
    assert orders.pop("pick < drop") is False  # too many seconds
    assert orders == {"start < end": True, "low <= mid": False, "mid <= high": False, "few <= more": False}
    drawn = joint.sample(2_000, random_state=0)
    assert (drawn["start"] < drawn["end"]).all()
    off = jf.HiddenTreeForest(n_states=4, max_iter=1, rules="off", random_state=0).fit(frame).joint_
    assert (off.sample(2_000, random_state=0).eval("start >= end")).mean() > 0.2


def test_rules_that_make_one_compound_of_many_levels_are_not_enforced_by_default(frame: pd.DataFrame) -> None:
    rows = read_training_rows(frame[["product", "size", "number"]], None)
    rules = tuple(Combinations(of=of, rows=4_000) for of in (("product", "size"), ("size", "number")))
    schema = replace(rows.schema, rules=rules)
    for is_auto, expected in ((True, [True, False]), (False, [True, True])):
        reduced = reduce_table(WantedRules(schema, rules, 0, is_auto), rows.X)
        assert reduced is not None
        assert [rule.is_enforced for rule in reduced.coordinates.schema.rules] == expected


def whole_of(rows: pd.DataFrame) -> dict[str, str]:
    """Whole numbers of step 1, whatever steps they have."""
    return dict.fromkeys(rows, "integer")


def test_declared_rules_that_exclude_each_other_are_refused(frame: pd.DataFrame) -> None:
    few = frame[["net", "fee", "total"]].assign(twice=2 * frame["total"], more=frame["total"] + frame["fee"])
    rules = ["total = net + fee", "total -> twice", "total = 0.5 * twice"]
    forest = jf.HiddenTreeForest(n_states=2, max_iter=0, kinds=whole_of(few), rules=rules)
    drawn = forest.fit(few).joint_.sample(200, random_state=0)
    assert np.array_equal(drawn["total"], drawn["net"] + drawn["fee"])  # by the combinations that the table has
    assert np.array_equal(drawn["twice"], 2 * drawn["total"])
    six = few["net"].to_numpy() * 6
    made = pd.DataFrame({"c": six // 2, "e": six // 3, "b": few["fee"], "a": six, "sum": six + few["fee"]})
    made["less"] = made["c"] + made["b"]
    with pytest.raises(ValueError, match=r"because 'a = 2 \* c' already determines 'a'"):
        jf.HiddenTreeForest(
            n_states=2, max_iter=0, kinds=whole_of(made), rules=["sum = a + b", "a = 2 * c", "a = 3 * e"]
        ).fit(made)
    with pytest.raises(ValueError, match="because its columns are sums of others only after rounding"):
        jf.HiddenTreeForest(
            n_states=2, max_iter=0, kinds=whole_of(made), rules=["less = c + b", "a = 2 * c", "c = a - 1.5 * e"]
        ).fit(made)
    made["half"] = made["c"]
    with pytest.raises(ValueError, match=r"because with 'a = 2 \* c' it would make 'c' a sum of itself"):
        jf.HiddenTreeForest(
            n_states=2, max_iter=0, kinds=whole_of(made), rules=["less = c + b", "a = 2 * c", "c = a - half"]
        ).fit(made)
    with pytest.raises(ValueError, match="combinations of values in 4,000 rows, which are too many"):
        jf.HiddenTreeForest(n_states=2, max_iter=0, rules=["combinations(total, high)"]).fit(frame[["total", "high"]])


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ("none", TypeError, "expected 'auto', 'all', 'off', or a list"),
        (jf.rule("a <= b"), TypeError, "expected 'auto', 'all', 'off', or a list"),
        (True, TypeError, "expected 'auto', 'all', 'off', or a list"),
        ([3], TypeError, "expected rules"),
        (["low <= nowhere"], ValueError, "rules: low <= nowhere: no column 'nowhere'.*known: "),
        (["middle <= low"], ValueError, "rows contradict it. .*: middle = .*'low <= middle' holds in all rows"),
        (["town -> shop"], ValueError, "town = .*'shop -> town' holds in all rows"),
        (["shop <= town"], ValueError, "column 'shop' is categorical, expected numbers or dates in an order"),
        (["low = shop + 1"], ValueError, "column 'shop' is categorical, expected numbers or dates in an equation"),
        (["delay missing iff state = lost"], ValueError, "rules: delay missing .* 'lost' is not one of .* known: "),
        (["delay missing iff town <= 3"], ValueError, "column 'town' is categorical, expected numbers"),
        (["delay missing iff low <= 3"], ValueError, "rows contradict it. .* expected delay to"),
        (["low <= <="], ValueError, "expected"),
        (["auto", "off"], ValueError, "'off' stands alone"),
    ],
)
def test_wrong_rules_are_refused(frame: pd.DataFrame, rules: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        jf.HiddenTreeForest(n_states=2, max_iter=0, rules=rules).fit(frame.iloc[:300])


def test_sums_that_others_imply_are_enforced(frame: pd.DataFrame) -> None:
    few = frame[["net", "fee", "total"]].iloc[:300].assign(more=frame["total"] + 2)
    rules = ["total = net + fee", "more = total + 2", "net = more - fee - 2", "total = more - 2"]
    joint = jf.HiddenTreeForest(n_states=2, max_iter=0, rules=rules, random_state=0).fit(few).joint_
    assert [str(rule) for rule in joint.rules if rule.is_enforced][:4] == rules
    drawn = joint.sample(300, random_state=0)
    assert (drawn["net"] == drawn["more"] - drawn["fee"] - 2).all()


def test_few_rows_enforce_only_what_is_declared(frame: pd.DataFrame) -> None:
    few = frame.iloc[:200][["shop", "town"]]
    settings = {"n_states": 2, "max_iter": 1, "random_state": 0}
    assert not any(r.is_enforced for r in jf.HiddenTreeForest(**settings).fit(few).joint_.rules)
    declared = jf.HiddenTreeForest(rules=["shop -> town"], **settings).fit(few).joint_
    assert [rule.is_enforced for rule in declared.rules] == [True]
    assert (declared.sample(500, random_state=0).groupby("shop")["town"].nunique() == 1).all()


def test_functions_of_few_rows_leave_out_what_rows_do_not_have() -> None:
    """Amounts of 200 invoices: the net is a function of quantity and product, tax and total are multiples of it."""
    rng = np.random.default_rng(0)
    product, quantity = rng.choice(["a", "b", "c", "d"], 200), rng.integers(1, 10, 200)
    net = np.round(quantity * np.array([{"a": 2.5, "b": 4.0, "c": 9.99, "d": 19.0}[one] for one in product]), 2)
    frame = pd.DataFrame({"quantity": quantity, "product": product, "net": net, "total": np.round(1.2 * net, 2)})
    joint = jf.HiddenTreeForest(n_states=4, random_state=0).fit(frame).joint_
    assert "quantity, product -> net" in {str(rule) for rule in joint.rules}
    rows = joint.sample(1000, random_state=0)
    seen = set(map(tuple, frame[["quantity", "product", "net", "total"]].to_numpy().tolist()))
    assert set(map(tuple, rows[["quantity", "product", "net", "total"]].to_numpy().tolist())) <= seen
    few = frame["total"] <= 12
    for one in "abcd":
        expected = (frame.loc[few, "product"] == one).mean()
        assert joint.probability(f"product = '{one}'", given="total <= 12") == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("order", [["start", "end", "days"], ["days", "end", "start"]])
def test_days_between_two_dates_are_counted_whatever_the_order_of_the_columns(order: list[str]) -> None:
    rng = np.random.default_rng(0)
    start, days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, 200), "D"), rng.integers(1, 60, 200)
    frame = pd.DataFrame({"start": start, "end": start + pd.to_timedelta(days, "D"), "days": days})[order]
    joint = jf.HiddenTreeForest(n_states=4, max_iter=2, random_state=0).fit(frame).joint_
    (rule,) = (one for one in joint.rules if one.is_enforced)
    assert (
        isinstance(rule, Equation) and rule.column == "end" and set(rule.terms) == {(1.0, "start"), (86400.0, "days")}
    )
    rows = joint.sample(500, random_state=0)
    assert ((rows["end"] - rows["start"]).dt.days == rows["days"]).all()


def test_one_odd_row_hides_no_function_of_two_columns() -> None:
    for n in (150, 300, 600):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            item, quantity = rng.choice(["lamp", "pen", "book"], n), rng.integers(1, 4, n)
            amount = quantity * np.array([{"lamp": 30.0, "pen": 1.5, "book": 12.0}[one] for one in item])
            amount[rng.integers(n)] = 777.0
            frame = pd.DataFrame({"item": item, "quantity": quantity, "amount": amount})
            found = {str(one): one.exceptions for one in read_training_rows(frame, None).schema.rules}
            assert found["item, quantity -> amount"] == 1


@pytest.mark.parametrize("n", [150, 1200])
def test_one_odd_row_is_a_combination_like_the_others(n: int) -> None:
    rng = np.random.default_rng(0)
    plan = rng.choice(["free", "basic", "pro"], n, p=[0.5, 0.3, 0.2])
    price = np.array([{"free": 0.0, "basic": 10.99, "pro": 39.5}[one] for one in plan])
    price[np.flatnonzero(plan == "basic")[0]] = 39.5
    frame = pd.DataFrame({"plan": plan, "price": price, "x": rng.integers(0, 5, n)})
    joint = jf.HiddenTreeForest(n_states=4, random_state=0).fit(frame).joint_
    assert {str(rule): rule.exceptions for rule in joint.rules} == {"plan -> price": 1, "price -> plan": 1}
    assert not any(rule.is_enforced for rule in joint.rules)
    of_basic = frame["price"][frame["plan"] == "basic"]
    assert joint.probability("price = 39.5", given="plan = basic") == pytest.approx((of_basic == 39.5).mean(), rel=0.05)
    assert joint.probability("price = 10.99", given="plan = free") < 1e-6
    assert np.isfinite(joint.log_density(frame)).all()


@pytest.mark.filterwarnings("ignore::jointforest.LostDependenceWarning")
def test_found_rules_are_not_enforced_by_default_for_likelihood(frame: pd.DataFrame) -> None:
    """A rule may have exceptions in new rows, which then have a density above 0; declared rules are enforced."""
    few = frame[["shop", "town", "low", "middle"]].iloc[:600]
    learner = jf.HiddenTreeForest(n_states=2, max_iter=1, objective="likelihood", random_state=0)
    for rules, enforced in (
        ("auto", set()),
        (["low <= middle", "auto"], {"low <= middle"}),
        ("all", {"low <= middle", "shop -> town"}),
        (["low <= middle", "all"], {"low <= middle", "shop -> town"}),
    ):
        joint = learner.set_params(rules=rules).fit(few).joint_
        assert {str(rule) for rule in joint.rules} == {"low <= middle", "shop -> town"}
        assert {str(rule) for rule in joint.rules if rule.is_enforced} == enforced
        exception = few.head(1).assign(shop="s0", town="t1")
        assert np.isfinite(joint.log_density(exception)[0]) == ("shop -> town" not in enforced)
    both = [
        jf.fit(few, budget="fast", objective="likelihood", rules=rules, random_state=0) for rules in ("auto", "all")
    ]
    assert [{rule.is_enforced for rule in joint.rules} for joint in both] == [{False}, {True}]
    by_default = jf.fit(few, budget="fast", random_state=0)
    assert {str(rule): rule.is_enforced for rule in by_default.rules} == {
        "shop -> town": True, "low <= middle": False,
    }  # fmt: skip


def test_batches_enforce_rules_of_whole_tables(frame: pd.DataFrame) -> None:
    few = frame[["shop", "town", "total"]]
    forest = jf.HiddenTreeForest(n_states=2, max_iter=1, random_state=0)
    joint = forest.fit_batches(lambda: (few[k : k + 1_500] for k in (0, 1_500, 3_000))).joint_
    assert [rule.is_enforced for rule in joint.rules] == [True]


@pytest.mark.filterwarnings("ignore::jointforest.LostDependenceWarning")
def test_fit_enforces_rules_whatever_it_chooses(frame: pd.DataFrame) -> None:
    few = frame[["net", "fee", "total", "low", "middle", "shop", "town"]].iloc[:600]
    joint = jf.fit(few, budget="fast", rules="all", random_state=0, holdout=frame[few.columns].iloc[600:700])
    assert joint.fitted_by is not None and all(rule.is_enforced for rule in joint.rules)
    rows = joint.sample(2_000, random_state=0)
    assert all(n == 0 for n in _contradictions(joint, rows).values())
    off = jf.fit(few, budget="fast", random_state=0, rules="off")
    assert not any(rule.is_enforced for rule in off.rules)
    forest = jf.AdversarialForest(3, random_state=0).fit(few).joint_
    assert not any(rule.is_enforced for rule in forest.rules)


def test_explanations_speak_of_the_table(joint: jf.Joint) -> None:
    text = str(joint.given("total between 40 and 44, state = new").explain(2))
    assert "shop" in text and "closed - opened" not in text.replace("[hidden tree 0", "")


def test_frames_of_evidence_are_judged_row_by_row(joint: jf.Joint, frame: pd.DataFrame) -> None:
    rows = frame.head(4).copy()
    rows.loc[0, "total"] += 1
    log_density = joint.log_density(rows)
    assert log_density[0] == -np.inf and np.isfinite(log_density[1:]).all()
    known = joint.given(rows.drop(columns=["a"]))
    assert known.supported.tolist() == [False, True, True, True]
    assert np.isnan(known.mean("a")).tolist() == [True, False, False, False]
    assert joint.predict(rows, "state")[0] is None
    filled = joint.impute(rows.assign(a=np.nan))
    assert filled["a"].isna().tolist() == [True, False, False, False]


def test_conditioned_and_selected_joints_keep_the_rules(joint: jf.Joint, tmp_path: Path) -> None:
    town = joint.condition("town = t1, total between 40 and 42")
    rows = town.sample(500, random_state=0)
    assert _contradictions(joint, rows) == dict.fromkeys(RULES, 0)
    assert (rows["town"] == "t1").all() and rows["total"].between(40, 42).all()
    few = joint.select("net", "fee", "total", "town", "high", "low")
    rows = few.sample(500, random_state=0)
    assert (rows["total"] == rows["net"] + rows["fee"]).all() and (rows["low"] < rows["high"]).all()
    for name, one in (("town", town), ("few", few)):
        one.save(tmp_path / f"{name}.joint")
        loaded = jf.load(tmp_path / f"{name}.joint")
        assert loaded.rules == one.rules
        pd.testing.assert_frame_equal(loaded.sample(20, random_state=0), one.sample(20, random_state=0))
    assert {str(rule) for rule in few.rules if rule.is_enforced} == {"total = net + fee"}


def test_mixtures_enforce_what_all_components_do(joint: jf.Joint, frame: pd.DataFrame, tmp_path: Path) -> None:
    some = ["shop -> town", "total = net + fee"]
    other = jf.HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, start="shared", smoothing=30.0, rules=some,
                                random_state=0).fit(frame).joint_  # fmt: skip
    mixed = jf.mix([joint, other], [1, 3])
    assert {str(rule) for rule in mixed.rules if rule.is_enforced} == set(some)
    mixed.save(tmp_path / "mixed.joint")
    loaded = jf.load(tmp_path / "mixed.joint")
    rows = frame.head(50)
    assert np.allclose(loaded.log_density(rows), mixed.log_density(rows), atol=1e-3)
    expected = np.logaddexp(joint.log_density(rows) + np.log(0.25), other.log_density(rows) + np.log(0.75))
    assert np.allclose(mixed.log_density(rows), expected)
    broken = _contradictions(joint, loaded.sample(2_000, random_state=0))
    assert all(broken[rule] == 0 for rule in some) and broken["low <= middle"] > 0
    wrong = {"net": 30, "fee": 3, "total": 50}
    assert loaded.probability("net = 30, fee = 3, total = 50") == 0.0
    with pytest.raises(ValueError, match="total = net"):
        loaded.given(wrong).mean("a")


def test_reports_of_joints_whose_draws_miss_cells_by_a_rule(frame: pd.DataFrame, tmp_path: Path) -> None:
    few = frame[["state", "delay", "net"]]
    learner = jf.HiddenTreeForest(n_states=2, max_iter=0, max_leaf_nodes=1, rules="all", random_state=0)
    joint = learner.fit(few).joint_
    joint.report(tmp_path / "report.html", title="rows")
    assert "delay missing iff state" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_estimates_from_draws_say_so(joint: jf.Joint, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = joint.sample(3, random_state=0)
    row = drawn[["total", "end", "shop"]].reindex(columns=list(joint.columns))  # two sums with two unknown parts each
    monkeypatch.setattr(translate, "_MOST_ROWS", 8)
    for ask, what in (
        (joint.log_density, r"log-densities are estimated .* standard error of a log-density is about 0\.\d"),
        (
            joint.impute,
            r"imputed cells are estimated .* imputed mean is about 0\.\d+ standard deviations of its posterior",
        ),
        (
            lambda of: joint.impute(of, method="sample"),
            r"rows are drawn from weighted draws, worth .* repeat their values",
        ),
        (lambda of: joint.given(of).sample(2), r"rows are drawn from weighted draws, worth .* repeat their values"),
        (lambda of: joint.given(of).mean("net"), r"answers are estimated .* that of a mean about 0\.\d"),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ask(row)
        said = [str(one.message) for one in said if issubclass(one.category, jf.EstimatedAnswerWarning)]
        said = [text for text in said if "observed range" not in text]  # of orders
        assert len(said) == 1 and re.search(what, said[0]), said


def test_whether_a_row_is_estimated_depends_on_the_row_alone(joint: jf.Joint, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = joint.sample(12, random_state=1)
    rows = rows[["total", "end", "shop", "a"]].reindex(columns=list(joint.columns))
    rows.loc[::2, "end"] = pd.NaT  # what is left is exact
    monkeypatch.setattr(translate, "_MOST_ROWS", 8)
    monkeypatch.setattr(translate, "FEW_PLACES", 0)
    together = joint.given(rows).state
    assert np.isinf(together.effective_draws).tolist() == [True, False] * 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log_density = joint.log_density(rows)
        for i in range(len(rows)):
            alone = joint.given(rows.iloc[[i]]).state
            assert np.isclose(alone.effective_draws[0], together.effective_draws[i])
            assert np.isclose(joint.log_density(rows.iloc[[i]])[0], log_density[i])


def test_dates_of_many_values_keep_their_order_under_all_found_rules() -> None:
    """A compound of more combinations than codes loses what a date tells of other columns."""
    rng = np.random.default_rng(0)
    day = rng.integers(0, 1_500, 12_000)
    frame = pd.DataFrame({"day": day, "weekday": day % 7, "year": day // 365 + (rng.random(len(day)) < 0.02)})
    settings = {"n_states": 16, "max_iter": 1, "random_state": 0}
    joint = jf.HiddenTreeForest(rules="all", **settings).fit(frame).joint_
    assert {str(rule): rule.is_enforced for rule in joint.rules} == {"day -> weekday": False}
    drawn = joint.sample(2_000, random_state=0)
    assert drawn["day"].corr(drawn["year"]) > 0.9
    declared = jf.HiddenTreeForest(rules=["day -> weekday"], **settings).fit(frame).joint_.sample(500, random_state=0)
    assert (declared["day"] % 7 == declared["weekday"]).all()


def _rounded_sums(n: int) -> pd.DataFrame:
    """A mean and a difference of columns in ninths, all written with six significant digits."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 900, n) * rng.choice([1, 10], n) / 9 for _ in range(2))
    columns = {"a": a, "b": b, "mean": (a + b) / 2, "apart": a - b, "k": rng.integers(0, 3, n).astype(float)}
    return pd.DataFrame({name: [float(f"{v:.5e}") for v in x.tolist()] for name, x in columns.items()})


def test_equations_of_cells_with_few_digits_are_enforced_within_their_rounding(tmp_path: Path) -> None:
    frame = _rounded_sums(2_000)
    fit = jf.HiddenTreeForest(n_states=6, max_iter=1, max_leaf_nodes=1, rules="all", random_state=0).fit
    joint = fit(frame).joint_
    rules = [rule for rule in joint.rules if isinstance(rule, Equation)]
    assert len(rules) == 2 and all(rule.is_enforced and 0.0 < rule.tolerance < 0.01 for rule in rules)
    drawn = joint.sample(20_000, random_state=0)
    assert not any(_contradictions(joint, drawn).values())
    for name in ("a", "b", "mean", "apart"):  # as many digits as the cells have
        within = drawn[name].abs() < 1_000
        assert within.mean() > 0.95 and all(float(f"{v:.5e}") == v for v in drawn[name][within].tolist())
    off = (drawn["mean"] - (drawn["a"] + drawn["b"]) / 2).abs()
    assert off.max() < 0.01 and off.max() > 0.0
    density = joint.log_density(frame)
    assert np.isfinite(density).all()
    # what is left out is known within the tolerance
    filled = joint.impute(frame.head(50).assign(b=np.nan))
    assert np.abs(filled["b"] - frame["b"].head(50)).max() < 0.01
    filled = joint.impute(frame.head(50).assign(mean=np.nan, a=np.nan))
    assert np.abs(filled["mean"] - frame["mean"].head(50)).max() < 0.01
    assert np.all(joint.log_density(frame.head(20).assign(mean=frame["mean"] + 0.1)) == -np.inf)
    joint.save(tmp_path / "j.joint")
    again = jf.load(tmp_path / "j.joint")
    assert list(map(str, again.rules)) == list(map(str, joint.rules))
    assert np.array_equal(again.log_density(frame), density)


def test_densities_within_a_tolerance_are_those_of_sums_with_uniform_errors() -> None:
    """Summed over a fine grid of its values, the density of a sum is that of its parts."""
    frame = _rounded_sums(2_000)
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, rules=["mean = a / 2 + b / 2"],
                                random_state=0).fit(frame).joint_  # fmt: skip
    (rule,) = (one for one in joint.rules if one.is_enforced)
    assert isinstance(rule, Equation) and rule.tolerance > 0.0
    parts, width = {"a": 44.4444, "b": 55.5556}, 2.0 * rule.tolerance
    points = 50.0 + rule.tolerance * np.linspace(-1.5, 1.5, 301)
    rows = pd.DataFrame({**{name: np.full(301, x) for name, x in parts.items()}, "mean": points})
    density = np.exp(joint.log_density(rows) - joint.log_density(pd.DataFrame({k: [x] for k, x in parts.items()})))
    assert set(np.round(density * width, 6)) == {0.0, 1.0}
    assert np.isclose(density.mean() * 1.5 * width, 1.0, atol=0.01)


def test_declared_sums_of_few_digits_say_what_they_allow() -> None:
    frame = _rounded_sums(2_000)
    fit = jf.HiddenTreeForest(n_states=2, max_iter=1, max_leaf_nodes=1, rules=["apart = a - b", "auto"]).fit
    texts = [str(rule) for rule in fit(frame).joint_.rules if rule.is_enforced]
    assert len(texts) == 1 and texts[0].startswith("apart = a - b within 0.00")
    frame.loc[3, "apart"] += 1.0
    with pytest.raises(ValueError, match="1 of 2,000 rows contradict it"):
        fit(frame)
    loose = jf.HiddenTreeForest(n_states=2, max_iter=1, max_leaf_nodes=1, rules=["apart = a - b within 2"]).fit(frame)
    assert np.isfinite(loose.joint_.log_density(frame)).all()


ORDERS = [
    (["a <= b", "b <= c", "a <= c"], 3),
    (["b = 2 * a", "a <= b"], 2),
    (["total = a + d", "d <= total", "a < total"], 3),
    (["end = start + 86400 * d", "start < end"], 2),
    (["rounded = 0.7 * b", "rounded <= b"], 2),
    (["a <= b", "a <= b", "b >= a"], 1),
]


def _with_orders(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    a, d = rng.integers(0, 9, n), rng.integers(1, 6, n)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    frame = pd.DataFrame({"a": a, "b": 2 * a, "c": 2 * a + rng.integers(0, 4, n), "d": d, "total": a + d})
    frame["rounded"] = np.floor(1.4 * a + 0.5).astype(int)
    return frame.assign(start=start, end=start + pd.to_timedelta(d, unit="D"))


@pytest.mark.parametrize(("rules", "n_enforced"), ORDERS)
def test_orders_that_other_rules_imply_are_enforced(rules: list[str], n_enforced: int) -> None:
    frame = _with_orders(1_500)
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, rules=rules, random_state=0).fit(frame).joint_
    assert sum(rule.is_enforced for rule in joint.rules) == n_enforced
    drawn = joint.sample(20_000, random_state=0)
    wrong = _contradictions(joint, drawn)
    assert not any(wrong[str(rule)] for rule in joint.rules if rule.is_enforced)
    assert np.isfinite(joint.log_density(frame)).all()


def test_densities_of_implied_orders_sum_to_one() -> None:
    frame = _with_orders(1_500)[["a", "d", "total"]]
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, random_state=0,
                                rules=["total = a + d", "d <= total", "a < total"]).fit(frame).joint_  # fmt: skip
    grid = pd.DataFrame([(a, d) for a in range(-40, 80) for d in range(-40, 80)], columns=["a", "d"])
    p = np.exp(joint.log_density(grid))
    assert np.isclose(p.sum(), 1.0, atol=1e-3)
    assert not p[(grid["a"] < 0) | (grid["d"] < 1)].any()


def test_dates_count_in_seconds_is_what_an_error_says() -> None:
    frame = _with_orders(300)
    for text, meant in (("end = start + d", "end = start + 86400 * d"), ("d = end - start", "d = end / 86400 - start")):
        with pytest.raises(ValueError, match=re.escape(meant)):
            jf.HiddenTreeForest(n_states=2, max_iter=0, rules=[text]).fit(frame)


def test_an_error_proposes_a_tolerance_for_rounded_sums() -> None:
    gross = np.random.default_rng(0).integers(100, 99_999, 400) / 100
    frame = pd.DataFrame({"gross": gross, "net": np.round(gross / 1.19, 2)})
    with pytest.raises(
        ValueError, match=r"which it misses by 0.005\d* where 0.005 is allowed. The rule .* within 0.006"
    ):
        jf.HiddenTreeForest(
            n_states=2, max_iter=0, rules=["gross = 1.19 * net"], kinds={"gross": "rounded", "net": "rounded"}
        ).fit(frame)


def test_orders_with_sums_of_few_digits_are_not_enforced() -> None:
    """Rows in which both columns are equal may have a sum that is larger than the other column."""
    frame = _rounded_sums(2_000)
    frame["most"] = frame[["mean", "a"]].max(axis=1)  # often equal to the mean
    rules = ["mean = a / 2 + b / 2", "mean <= most"]
    learner = jf.HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, rules=rules, random_state=0)
    with pytest.raises(
        ValueError, match=r"mean <= most: it cannot be enforced, because 'mean = .*' already determines"
    ):
        learner.fit(frame)
    joint = learner.set_params(rules="all").fit(frame.iloc[:1_000]).joint_
    assert np.isfinite(joint.log_density(frame)).all()


def test_a_column_that_an_order_needs_is_not_made_of_others() -> None:
    """``start <= end`` holds as long as minutes are not negative, so minutes must stay a coordinate."""
    rng = np.random.default_rng(0)
    start, minutes = rng.integers(0, 500, 600), rng.integers(0, 90, 600)
    frame = pd.DataFrame(
        {"start": start, "minutes": minutes, "end": start + 60 * minutes, "limit": minutes + rng.integers(0, 40, 600)}
    )
    rules = ["end = start + 60 * minutes", "start <= end", "minutes <= limit"]
    joint = jf.HiddenTreeForest(n_states=8, max_iter=2, rules=rules, random_state=0).fit(frame).joint_
    drawn = joint.sample(2_000, random_state=0)
    assert (drawn["end"] == drawn["start"] + 60 * drawn["minutes"]).all()
    assert (drawn["start"] <= drawn["end"]).all() and (drawn["minutes"] <= drawn["limit"]).all()


def _skipped(n: int, seed: int, kind: str) -> pd.DataFrame:
    """A chain of questions: each is asked where the one before has a certain answer."""
    rng = np.random.default_rng(seed)
    a = rng.choice(["yes", "no"], n, p=[0.4, 0.6])
    b = np.where(a == "yes", rng.choice(["p", "q", "r"], n, p=[0.5, 0.3, 0.2]), None)
    if kind == "numbers":
        c = np.where(b == "p", rng.integers(1, 5, n), np.nan)
        d = np.where(c == 2, rng.normal(50, 10, n).round(1), np.nan)
    else:
        c = np.where(b == "p", rng.choice(["u", "v"], n), None)
        d = np.where(c == "u", rng.integers(0, 100, n), np.nan).astype(float)
    return pd.DataFrame({"d": d, "c": c, "a": a, "b": b, "x": rng.normal(size=n).round(2)})


@pytest.mark.parametrize("kind", ["levels", "numbers"])
@pytest.mark.parametrize("learner", ["fit", "hidden trees"])
def test_questions_that_others_skip(kind: str, learner: str) -> None:
    """A question that is not asked because another one was not asked: shares of missing cells are the table's."""
    frame = _skipped(1_500, 0, kind)
    if learner == "fit":
        joint = jf.fit(frame, budget="fast", random_state=0)
    else:
        joint = jf.HiddenTreeForest(random_state=0).fit(frame).joint_
    assert sum(rule.is_enforced for rule in joint.rules) >= 3
    names = ["b", "c", "d"]
    is_missing = frame[names].isna()
    drawn = joint.sample(3_000, random_state=0, missing=True)
    for k, name in enumerate(names):
        share = is_missing[name].mean()
        assert joint.query(f"P({name} is missing)") == pytest.approx(share, abs=0.01)
        assert joint.query(f"P({name} is missing | a = 'no')") == pytest.approx(1.0, abs=0.01)
        assert drawn[name].isna().mean() == pytest.approx(share, abs=0.04)
        for before in names[:k]:  # what is asked later is missing wherever an earlier question was not asked
            assert joint.query(f"P({name} is missing | {before} is missing)") == pytest.approx(1.0, abs=0.01)
            # learned from the rows, and not exact: no rule says it of answers that are not seen
            assert joint.query(f"P({before} is missing and {name} is not missing)") < 0.015
            assert (drawn[before].isna() & drawn[name].notna()).mean() < 0.01
    for level in ("p", "q", "r"):
        share = is_missing.loc[frame["b"] == level, "c"].mean()
        assert joint.query(f"P(c is missing | b = '{level}')") == pytest.approx(share, abs=1e-6)
        share = (frame.loc[frame["a"] == "yes", "b"] == level).mean()
        assert joint.query(f"P(b = '{level}' | a = 'yes')") == pytest.approx(share, abs=0.02)


def test_a_rule_about_missing_cells_that_rows_without_its_column_contradict() -> None:
    """Where b is missing at random and c with it, c is missing more often than by the values of b."""
    rng = np.random.default_rng(0)
    b = rng.choice(["p", "q"], 1_500)
    c = np.where(b == "p", rng.choice(["u", "v"], 1_500), None)
    gone = rng.random(1_500) < 0.4
    frame = pd.DataFrame({"b": np.where(gone, None, b), "c": np.where(gone, None, c), "x": rng.normal(size=1_500)})
    joint = jf.HiddenTreeForest(random_state=0).fit(frame).joint_
    assert not any(rule.is_enforced for rule in joint.rules)
    assert joint.query("P(c is missing)") == pytest.approx(frame["c"].isna().mean(), abs=0.01)
    assert joint.query("P(c is missing | b is missing)") == pytest.approx(1.0, abs=0.01)


def test_an_order_that_would_make_impossible_values_is_not_enforced_but_named() -> None:
    """The total is a sum of others already, so that only the refund could be made: the total less a gap."""
    rng = np.random.default_rng(0)
    net, fee = rng.integers(1, 90, 1_000), rng.integers(0, 9, 1_000)
    total, is_back = net + fee, rng.random(1_000) < 0.5
    refund = np.where(is_back, np.where(rng.random(1_000) < 0.5, total, rng.integers(0, total + 1)), np.nan)
    frame = pd.DataFrame(
        {"net": net, "fee": fee, "total": total, "back": np.where(is_back, "yes", "no"), "refund": refund}
    )
    with pytest.warns(jf.LostDependenceWarning, match="are not enforced: .*refund <= total"):
        joint = jf.fit(frame, budget="fast", rules="all", random_state=0)
    assert not next(rule.is_enforced for rule in joint.rules if str(rule) == "refund <= total")
    assert joint.probability("refund < 0") < 1e-3
    frame = frame.drop(columns=["net", "fee"])
    joint = jf.fit(frame, budget="fast", rules="all", random_state=0)
    assert next(rule.is_enforced for rule in joint.rules if str(rule) == "refund <= total")
    assert joint.probability("refund < 0") < 1e-6
    assert joint.query("P(refund > total)").value < 1e-6


@pytest.mark.filterwarnings("ignore::jointforest.LostDependenceWarning")
@pytest.mark.parametrize("kind", ["rides and their seconds", "bills"])
def test_answers_about_long_sums_are_exact_and_as_counted(kind: str) -> None:
    """Rides in seconds, and bills in cents: no draw has a negative part, and no answer is an estimate."""
    rng = np.random.default_rng(0)
    n, side = 600, rng.choice(["a", "b"], 600)
    if kind != "bills":
        low = pd.Series(pd.Timestamp("2024-03-25") + pd.to_timedelta(rng.integers(0, 14 * 86_400, n), unit="s"))
        part = pd.Series(rng.geometric(np.where(side == "a", 0.002, 0.006)))
        high = low + pd.to_timedelta(part, unit="s")
    else:
        low = pd.Series(np.round(np.exp(rng.normal(np.where(side == "a", 6.0, 7.0), 0.6)), 2))
        part = pd.Series(np.round(rng.gamma(2.0, 3.0, n), 2))
        high = (low + part).round(2)
    frame = pd.DataFrame({"side": side, "low": low, "high": high})
    frame = frame.assign(part=part)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "answers are estimated", jf.EstimatedAnswerWarning)
        joint = jf.fit(frame, budget="fast", random_state=0)
        assert any(rule.is_enforced for rule in joint.rules)
        for k in ("a", "b"):
            rows = frame[frame["side"] == k]
            for q in (0.2, 0.5, 0.8):
                end = rows["high"].quantile(q)
                found = joint.given(side=k).probability({"high": jf.between(None, end)})
                assert found == pytest.approx(q, abs=4.0 * np.sqrt(q * (1.0 - q) / len(rows)))
    drawn = joint.sample(2_000, random_state=0)
    assert (drawn["low"] <= drawn["high"]).all()
    of_table, of_draws = (f["high"] - f["low"] for f in (frame, drawn))
    of_table, of_draws = (x.dt.total_seconds() if x.dtype.kind == "m" else x for x in (of_table, of_draws))
    assert of_draws.std() == pytest.approx(of_table.std(), rel=0.25)
