"""Large questions and long answers stay fast, readable, or say what is too much."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.conditions import AllOf, AnyOf, Not
from jointforest.data.evidence import build
from jointforest.data.meaning import contains, meaning_of, region_contains
from jointforest.data.schema import Column, Schema
from jointforest.inference.explanation import shown_rule
from jointforest.query_language.parser import parse_conditions

COLUMNS = {
    "integer": Column("a", "integer", "int64", step=1.0, origin=3.0, atoms=(5.0, 9.0)),
    "rounded": Column("a", "rounded", "float64", step=0.05, origin=0.1),
    "mixed": Column("a", "mixed", "float64", atoms=(0.0, 2.5, 7.0)),
    "text": Column("a", "categorical", "str", levels=tuple("abcdefgh")),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_set_of_values_is_each_of_them(kind: str) -> None:
    rng, column = np.random.default_rng(0), COLUMNS[kind]
    pool = {
        "integer": range(-5, 20),
        "rounded": np.arange(-20, 40) * 0.05,
        "mixed": [0.0, 2.5, 7.0],
        "text": "abcdefgh",
    }
    for _ in range(30):
        values = rng.choice(np.array(list(pool[kind]), dtype=object), int(rng.integers(1, 9))).tolist()
        for condition in (AnyOf(*values), Not(AnyOf(*values)), AllOf(AnyOf(*values), Not(values[0]))):
            region = meaning_of(column, condition)
            for x in pool[kind]:
                number = column.to_number(x)
                expected = x in values
                if isinstance(condition, Not):
                    expected = not expected
                elif isinstance(condition, AllOf):
                    expected = expected and x != values[0]
                assert region_contains(column, region, number) == expected == contains(column, condition, number)


def test_sets_of_many_values() -> None:
    schema = Schema((Column("a", "integer", "int64", step=1.0),), "pandas")
    evidence = build(schema, conditions={"a": list(range(0, 400_000, 2))})
    assert len(evidence.run_lo) == 200_000
    text = "a in {" + ",".join(map(str, range(0, 100_000, 2))) + "}"
    assert len(dict(parse_conditions(text))["a"].conditions) == 50_000


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 300, 2_000)
    x = np.where(level % 2 == 0, 5.0, -5.0) + rng.normal(size=2_000)
    return pd.DataFrame({"s": [f"level {k}" for k in level], "x": x, "y": x + rng.normal(size=2_000)})


def test_rules_and_explanations_stay_readable() -> None:
    joint = jf.JointTree(min_samples_leaf=5, min_impurity_decrease=0, random_state=0).fit(table()).joint_
    text, whole = joint.tree_text(max_leaves=10), joint.tree_text(max_leaves=None)
    assert joint.n_leaves > 20 and len(whole) > 2 * len(text)
    folded = [int(line.split("[... ")[1].split()[0]) for line in text.splitlines() if "[... " in line]
    shown = sum("[leaf" in line for line in text.splitlines())
    assert shown + len(folded) <= 10 and shown + sum(folded) == joint.n_leaves
    assert max(map(len, text.splitlines())) < 400
    said = joint.given("x > 0").explain()
    assert max(map(len, str(said).splitlines())) < 600
    for rule in said.rules:
        if rule["rule"]:
            assert joint.probability(rule["rule"]) > 0.0
    assert shown_rule("s not in {'a, b', 'c''}', d, e}", 2) == "s not in {'a, b', 'c''}', ... 2 others}"
    assert shown_rule("s in {'a', 'b', 'c'}", 2) == "s in {'a', 'b', 'c'}"
    with pytest.raises(ValueError, match="max_leaves"):
        joint.tree_text(max_leaves=0)


def test_what_is_too_much_says_so() -> None:
    joint = jf.JointTree(min_samples_leaf=200, random_state=0).fit(table()).joint_
    for draw in (joint.sample, joint.given("x > 0").sample, joint.marginal("x").sample):
        with pytest.raises(ValueError, match=r"2,000,000,000 cells"):
            draw(10**11)
    with pytest.raises(ValueError, match="is not one of its") as caught:
        joint.given(s="long " * 50_000)
    assert len(str(caught.value)) < 500 and "250000 characters" in str(caught.value)
    with pytest.raises(ValueError, match="expected a number") as caught:
        joint.given(x="long " * 50_000)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "learner",
    [
        jf.JointTree(min_samples_leaf=50, random_state=0),
        jf.AdversarialForest(n_estimators=2, min_samples_leaf=50, random_state=0),
        jf.GenerativeForestRegressor(2, min_samples_leaf=50, min_spread=0.1, beta=0, random_state=0),
    ],
)
def test_leaves_larger_than_the_table_are_warned_of(learner: object) -> None:
    frame = table().head(30)[["x", "y"]]
    target = (frame.pop("y"),) if isinstance(learner, jf.GenerativeForestRegressor) else ()
    with pytest.warns(UserWarning, match="min_samples_leaf=50 is more than the table's 30 rows"):
        learner.fit(frame, *target)
