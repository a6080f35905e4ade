"""Explanations by hidden states: weights against sums over all combinations of states, answers by total probability."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.evidence import build
from jointforest.inference.explanation import shown_rule
from jointforest.models.mixture import Mixture

from ...oracle.hidden import by_code, combinations, row_of
from ...random_cases.hidden_parts import ALL, INSIDE, hidden_joint, mixed_joint, small_table
from ...random_cases.table_part import TableDistribution

EVIDENCE = [
    {},
    {"place": "there"},
    {"size": jf.between(1, 3), "flag": True},
    {"grade": 2, "place": ["here", "nowhere"]},
]


def state_weights(of: Joint, known: dict, t: int, node: int) -> np.ndarray:
    """p(tree t, state of the node, evidence), by enumeration of all states."""
    hidden = of.distribution.components[0].hidden
    tree, said = hidden.trees[t], row_of(hidden, build(of.schema, conditions=known), 0)
    weight = np.zeros(tree.transition[node].shape[1])
    share = [by_code(hidden, j, said[j]) for j in range(len(said))]
    for states, p in combinations(tree):
        inside = [tree.emission[k][z] @ share[tree.column[k]] for k, z in enumerate(states)]
        weight[states[node]] += math.exp(hidden.log_weight[t]) * p * math.prod(inside)
    return weight


@pytest.mark.parametrize("known", EVIDENCE, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_those_of_enumeration(seed: int, known: dict) -> None:
    of = hidden_joint(small_table(seed), seed, n_trees=1 + seed % 2, n_states=4)
    hidden = of.distribution.components[0].hidden
    rules = of.given(known).explain(1000).rules
    log_p = of.given(known).log_probability
    assert sum(rule["weight"] for rule in rules) == pytest.approx(1.0, abs=1e-9)
    for rule in rules:
        tree = hidden.trees[rule["tree"]]
        truth = state_weights(of, known, rule["tree"], tree.node[of.columns.index(rule["column"])])[rule["state"]]
        assert rule["log_weight"] == pytest.approx(math.log(truth), abs=1e-9)
        assert rule["weight"] == pytest.approx(truth / math.exp(log_p), abs=1e-9)
        assert rule["kind"] == "state" and not set(rule["says"]) & {"grade"} & set(known)


@pytest.mark.parametrize("known", EVIDENCE, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_what_states_say_adds_up_to_the_answer(seed: int, known: dict) -> None:
    of = hidden_joint(small_table(seed), seed, n_states=4)
    given = of.given(known)
    rules = given.explain(1000).rules
    for name in rules[0]["says"]:
        says = [(rule["weight"], rule["says"][name]) for rule in rules]
        if name in ("place", "flag"):
            for level, p in given.proba(name).items():
                assert sum(w * said["levels"].get(level, 0.0) for w, said in says) == pytest.approx(p, abs=1e-9)
        else:
            assert sum(w * said["mean"] for w, said in says) == pytest.approx(given.mean(name), abs=1e-9)
            assert all(said["low"] <= said["high"] for _, said in says)


def test_rules_hold_in_their_states_and_tell_them_apart() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=600)
    frame = pd.DataFrame(
        {
            "animal": np.array(["ant", "cat", "cow"])[kind],
            "legs": np.array([6, 4, 4])[kind],
            "weight": np.exp(np.array([-6.0, 1.0, 6.0])[kind] + 0.2 * rng.normal(size=600)),
            "noise": rng.normal(size=600),
        }
    )
    of = jf.HiddenTreeForest(n_states=4, random_state=0).fit(frame).joint_
    found = of.given(animal="cow").explain(1)
    (rule,) = found.rules
    assert rule["weight"] > 0.3 and "weight" in rule["rule"] and "noise" not in rule["rule"]
    assert of.probability("animal = cow", given=rule["rule"]) > 0.95
    assert of.probability(rule["rule"], given="animal = cow") > 0.3
    assert "animal" not in rule["says"] and rule["says"]["weight"]["low"] > 100
    assert f"state {rule['state']} of {rule['column']}" in str(found)
    assert shown_rule(rule["rule"]) in str(found)


def test_mixtures_have_leaves_and_states() -> None:
    of = mixed_joint(small_table(0), 4)
    found = of.given({**INSIDE, "place": "there"}).explain(2000)
    kinds = {rule["kind"] for rule in found.rules}
    assert "state" in kinds and "leaf" in kinds
    assert sum(rule["weight"] for rule in found.rules) == pytest.approx(1.0, abs=1e-9)
    log_p = of.given({**INSIDE, "place": "there"}).log_probability
    for rule in found.rules[:20]:
        assert rule["weight"] == pytest.approx(math.exp(rule["log_weight"] - log_p), rel=1e-9)
    weights = [rule["weight"] for rule in found.rules]
    assert weights == sorted(weights, reverse=True)
    assert len(of.given(place="there").explain(3).rules) == 3
    assert "leaves and" in str(found) and "states that meet the evidence" in str(found)


def test_what_cannot_be_explained_says_so() -> None:
    of = hidden_joint(small_table(0), 1)
    with pytest.raises(ValueError, match="probability 0"):
        of.condition(INSIDE).given(size=30).explain()
    part = of.distribution.components[0]
    toy = TableDistribution(of.schema, np.zeros((1, len(ALL.columns))), np.ones(1))
    both = Joint(Mixture((part, toy), np.log([0.5, 0.5])))
    with pytest.raises(
        ValueError, match="an explanation needs forests and hidden trees; this joint has the component: table"
    ):
        both.given(INSIDE).explain()
