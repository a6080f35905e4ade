"""Compounds of functions with exceptions or many values: exact answers, beside all rows that the joint knows."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.rules.rule import Function
from jointforest.learners.hidden_tree import hidden_tree_forest
from jointforest.learners.rows import read_training_rows
from jointforest.learners.rules import reduce_table, wanted_rules
from jointforest.learners.selection.budget import learn
from jointforest.models.mixture import mixture_of
from jointforest.runtime.threads import use_jobs

from ..random_cases.ruled_joints import LEARNERS, all_rows


def flights(n: int, seed: int, exceptions: int, missing: bool = False) -> pd.DataFrame:
    """Two columns that determine a third, but for some rows, and columns that depend on them."""
    rng = np.random.default_rng(seed)
    start, end = rng.integers(0, 4, n), rng.integers(0, 20, n)
    far = np.random.default_rng(0).permutation(2_000)[:80].reshape(4, 20)[start, end] + 100
    far[rng.permutation(n)[:exceptions]] += 7
    frame = pd.DataFrame(
        {
            "start": np.array(list("pqrs"))[start],
            "late": rng.random(n) < 0.2 + 0.1 * start,
            "end": np.char.add("e", end.astype(str)),
            "far": far,
            "seats": rng.integers(1, 4, n) + (far > 1_000),
        }
    )
    if missing:
        frame["late"] = frame["late"].astype("boolean").mask(rng.random(n) < 0.1)
        gone = rng.random(n) < 0.1
        frame.loc[gone, ["start", "end"]] = None
        frame["far"] = frame["far"].mask(gone)
    return frame


def joint_of(frame: pd.DataFrame, seed: int, parts: int) -> jf.Joint:
    rows = read_training_rows(frame, None)
    reduced = reduce_table(wanted_rules("auto", rows.schema, rows.X), rows.X, lambda before, after: True)
    assert reduced is not None
    X = reduced.of_rows(rows.X)
    models = [learn(LEARNERS[(seed + k) % len(LEARNERS)](), reduced.schema, X, seed) for k in range(parts)]
    return jf.Joint(reduced.ruled(mixture_of(models, np.full(parts, 1.0 / parts))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("seed", "parts", "missing"), list(itertools.product(range(3), (1, 2), (False, True))))
def test_answers_are_sums_over_all_combinations_that_were_seen(seed: int, parts: int, missing: bool) -> None:
    frame = flights(4_000, seed, 3, missing)
    joint = joint_of(frame, seed, parts)
    rule = next(one for one in joint.rules if isinstance(one, Function) and one.of == ("start", "end"))
    assert 0 < rule.exceptions <= 3 and not rule.is_enforced
    seen = frame[["start", "end", "far"]].dropna().drop_duplicates()
    rows = all_rows(joint)
    assert rows is not None
    index = joint.schema.index
    triples = {tuple(x) for x in rows.X[:, [index("start"), index("end"), index("far")]]}
    assert len(triples) == len(seen) > 80

    def code(column: str, value: object) -> float:
        return joint.schema[column].to_number(value)

    rng = np.random.default_rng(seed)
    for start, end, far in seen.sample(12, random_state=seed).itertuples(index=False):
        given = {index("start"): code("start", start), index("end"): code("end", end)}
        event = {index("far"): float(far)}
        assert joint.probability({"far": far}, {"start": start, "end": end}) == pytest.approx(
            rows.probability(event, given), rel=1e-6, abs=1e-12
        )
        late = bool(rng.integers(2))
        assert joint.probability({"late": late}, {"far": far}) == pytest.approx(
            rows.probability({index("late"): float(late)}, event), rel=1e-6
        )
        assert joint.given(end=end).mean("far") == pytest.approx(
            rows.mean(index("far"), {index("end"): code("end", end)}), rel=1e-6
        )
        cells = pd.DataFrame({name: [None] for name in frame.columns}).astype(object)
        cells.loc[0, ["start", "end", "far"]] = [start, end, far]
        assert joint.log_density(cells)[0] == pytest.approx(rows.log_density({**given, **event}), rel=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_exceptions_have_their_frequency_and_other_combinations_some_mass(tmp_path: Path) -> None:
    frame = flights(6_000, 5, 6)
    joint = jf.HiddenTreeForest(n_states=16, max_iter=3, random_state=0).fit(frame).joint_
    assert any("far" in column.name and "," in column.name for column in joint.distribution.coordinates.inner.columns)
    joint.save(tmp_path / "a.joint")
    count = frame.groupby(["start", "end", "far"]).size()
    expected = frame.groupby(["start", "end"]).size()
    for one in (joint, jf.load(tmp_path / "a.joint")):
        share = {key: one.probability(dict(zip(("start", "end", "far"), key, strict=True))) for key in count.index}
        assert sum(share.values()) == pytest.approx(1.0, abs=1e-6)  # tables are in float32
        rare = [key for key, n in count.items() if n == 1]
        assert len(rare) >= 4
        assert np.mean([share[key] for key in rare]) == pytest.approx(1.0 / len(frame), rel=0.5)
        drawn = one.sample(5_000, 0)
        assert set(drawn[["start", "end", "far"]].itertuples(index=False, name=None)) <= set(count.index)
    new = frame.iloc[[0]].assign(far=int(frame["far"].max()) + 3)
    usual = float(joint.log_density(frame.iloc[[0]])[0])
    assert -np.inf < float(joint.log_density(new)[0]) < usual
    assert len(expected) == 80


@pytest.mark.filterwarnings("ignore")
def test_trials_decide() -> None:
    """Columns that say what each other's values are become one; those whose combinations are too many do not."""
    rows = read_training_rows(flights(4_000, 6, 2), None)
    wanted = wanted_rules("auto", rows.schema, rows.X)
    assert [str(rule) for rule in wanted.tried][-1:] == ["start, end -> far"]
    assert wanted_rules("auto", rows.schema, rows.X, "likelihood").tried == ()
    assert wanted_rules("off", rows.schema, rows.X).tried == ()
    trial = hidden_tree_forest.compound_trial(wanted.schema, rows.X, 0)
    assert trial is not None
    found = reduce_table(wanted, rows.X, trial)
    assert found is not None and len(found.coordinates.inner.columns) == 3
    refused = reduce_table(wanted, rows.X, lambda before, after: False)
    assert refused is None or len(refused.coordinates.inner.columns) == 5
    assert hidden_tree_forest.compound_trial(wanted.schema, rows.X[:500], 0) is None


@pytest.mark.filterwarnings("ignore")
def test_no_trial_where_draws_or_likelihood_are_worse() -> None:
    """A random label of each combination of two independent columns: the compound would lose what each of them says."""
    rng = np.random.default_rng(7)
    n = 2_400
    a, b = rng.integers(0, 20, n), rng.integers(0, 20, n)
    more = {
        f"x{k}": np.round(np.sin(a / 3.0 + k) + np.cos(b / 3.0 - k) + rng.normal(size=n) * 0.2, 2) for k in range(4)
    }
    frame = pd.DataFrame({"a": a, "b": b, "label": np.random.default_rng(0).permutation(400)[a * 20 + b], **more})
    rows = read_training_rows(frame, None)
    wanted = wanted_rules("auto", rows.schema, rows.X)
    if not wanted.tried:
        pytest.skip("no function was found")
    measured = []
    trial = hidden_tree_forest.compound_trial(wanted.schema, rows.X, 0)
    assert trial is not None
    reduce_table(wanted, rows.X, lambda before, after: measured.append(trial(before, after)) or measured[-1])
    same = use_jobs(2)(hidden_tree_forest.compound_trial)(wanted.schema, rows.X, 0)
    assert same is not None
    again = []
    reduce_table(wanted, rows.X, lambda before, after: again.append(same(before, after)) or again[-1])
    assert measured == again  # whatever the threads


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(("n", "seed"), [(100, 0), (200, 1), (280, 2)])
def test_functions_that_few_rows_support_hold_in_answers_but_are_not_enforced(
    n: int, seed: int, missing: float
) -> None:
    rng = np.random.default_rng(seed)
    plan = rng.choice(["basic", "plus", "pro"], n, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame(
        {
            "plan": plan,
            "age": rng.integers(18, 80, n),
            "price": pd.Series(plan).map({"basic": 9.9, "plus": 20.0, "pro": 41.5}),
            "tier": pd.Series(plan).map({"basic": "B", "plus": "P", "pro": "Q"}),
        }
    )
    table = frame.mask(rng.random(frame.shape) < missing)
    with warnings.catch_warnings():  # equal numbers that differ by rounding are no lost dependence
        warnings.simplefilter("error", jf.LostDependenceWarning)
        joint = jf.HiddenTreeForest(n_states=4, random_state=0).fit(table).joint_
    assert not any(rule.is_enforced for rule in joint.rules)
    for name, part in frame.groupby("plan"):
        given = joint.given(plan=name)
        assert given.mean("price") == pytest.approx(part["price"].iloc[0]), name
        assert given.probability({"tier": part["tier"].iloc[0]}) == pytest.approx(1.0)
        cost = joint.given(price=part["price"].iloc[0])
        assert cost.probability({"plan": name}) == pytest.approx(1.0)
        # one cell of the three makes the others known, so each row counts unless it misses all three
        some = table[["plan", "price", "tier"]].notna().any(axis=1)
        assert joint.probability({"plan": name}) == pytest.approx((plan == name)[some].mean(), abs=0.01)
    filled = joint.impute(table)
    some = table[["plan", "price", "tier"]].notna().any(axis=1)
    pd.testing.assert_frame_equal(
        filled.loc[some, ["plan", "price", "tier"]], frame.loc[some, ["plan", "price", "tier"]]
    )
    other = frame.head(1).assign(tier="Q" if plan[0] != "pro" else "B")
    assert np.isfinite(joint.log_density(other)).all()


def test_a_compound_needs_rows_whose_known_cells_determine_it() -> None:
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 6, 400)
    frame = pd.DataFrame({"shop": np.char.add("s", shop.astype(str)), "town": np.array(list("abc"))[shop // 2]})
    frame["people"] = rng.integers(0, 9, 400) + shop
    frame["town"] = frame["town"].mask(rng.random(400) < 0.2)
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(frame).joint_
    assert [str(rule) for rule in joint.rules if rule.is_enforced] == ["shop -> town"]
    frame["shop"] = frame["shop"].mask(rng.random(400) < 0.2)  # two shops fit a town whose shop is missing
    joint = jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(frame).joint_
    assert not any(rule.is_enforced for rule in joint.rules)


def test_a_new_combination_is_as_the_seen_ones_that_have_most_of_its_values() -> None:
    rng = np.random.default_rng(0)
    plan = rng.choice(["basic", "pro"], 250)
    churn = np.where(plan == "basic", rng.random(250) < 0.1, rng.random(250) < 0.8)
    frame = pd.DataFrame({"plan": plan, "price": np.where(plan == "basic", 9.99, 19.99), "churn": churn})
    joint = jf.HiddenTreeForest(n_states=4, random_state=0).fit(frame).joint_
    new = pd.DataFrame({"plan": ["basic", "pro", None, "basic"], "price": [10.99, 10.99, 10.99, 19.99]})
    found = joint.given(new).proba("churn")[:, 1]
    basic, pro, anything = (joint.given(one).proba("churn")[True] for one in ("plan = basic", "plan = pro", None))
    np.testing.assert_allclose(found, [basic, pro, anything, anything])  # both plans have one value of the last row
    seen = joint.log_density(pd.DataFrame({"plan": ["basic", "pro"]}))
    assert joint.sample(0).shape == (0, 3)
    cents = -np.log(0.01)  # the density of a price in cents
    np.testing.assert_allclose(joint.log_density(new.head(2)), seen - np.log(len(frame) + 1) + cents, rtol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_several_rules_of_few_rows_hold_together(missing: float) -> None:
    rng = np.random.default_rng(5)
    shop = rng.choice(list("abcd"), 220, p=[0.4, 0.3, 0.2, 0.1])
    net, tax = rng.integers(5, 60, 220), rng.integers(1, 6, 220)
    region = pd.Series(shop).map({"a": "north", "b": "north", "c": "south", "d": "west"})
    code = pd.Series(shop).map({"a": 11, "b": 12, "c": 21, "d": 31})
    frame = pd.DataFrame({"shop": shop, "region": region, "net": net, "tax": tax, "total": net + tax, "code": code})
    table = frame.mask(rng.random(frame.shape) < missing)
    joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(table).joint_
    assert [str(rule) for rule in joint.rules if rule.is_enforced] == ["total = net + tax"]
    drawn = joint.sample(1_000, random_state=0)
    assert (drawn["total"] == drawn["net"] + drawn["tax"]).all()
    assert set(zip(drawn["shop"], drawn["region"], drawn["code"], strict=True)) == set(
        zip(shop, region, code, strict=True)
    )
    for name, part in table.groupby("shop"):
        given = joint.given(shop=name)
        assert given.mean("code") == pytest.approx(frame["code"][shop == name].iloc[0])
        assert given.proba("region")[frame["region"][shop == name].iloc[0]] == pytest.approx(1.0)
        error = part["total"].std() / np.sqrt(len(part))
        assert abs(given.mean("total") - part["total"].mean()) < 2.5 * error, name


def test_values_of_a_compound_that_no_row_has_are_not_supported() -> None:
    frame = flights(1_500, 0, 0)
    joint = joint_of(frame, 0, 1)
    far = int(frame["far"].iloc[0])
    assert joint.given(far=far).supported
    other = int(np.setdiff1d(np.arange(frame["far"].min(), frame["far"].max()), frame["far"])[0])
    with pytest.warns(jf.UnsupportedEvidenceWarning, match="unlike anything learned"):
        posterior = joint.given(far=other)
        posterior.mean("seats")
    assert not posterior.supported
    both = joint.given(pd.DataFrame({"far": [far, other]}))
    assert both.supported.tolist() == [True, False]
