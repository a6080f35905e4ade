"""Boxes of trees with Chow-Liu leaves: against the codes that leaves hold, and against the joint's own answers."""

from __future__ import annotations

import warnings
from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest import plot
from jointforest.data.discretization.discretizer import code_table
from jointforest.data.evidence import build
from jointforest.models.box_forest.box_trees import BoxTrees
from jointforest.models.hidden_tree.files import check_hidden
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees
from jointforest.models.hidden_tree.posterior import log_density

matplotlib.use("Agg")


def table(seed: int, n: int = 400) -> pd.DataFrame:
    """Columns of all kinds: atoms between numbers, a grid, dates, many levels, ordered ones, cells missing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    x = np.where(rng.random(n) < 0.3, 0.0, z + 0.3 * rng.normal(size=n))
    level = np.clip(np.round(30 * z + 40 + 3 * rng.normal(size=n)), 0, 99).astype(int)
    frame = pd.DataFrame(
        {
            "x": x,
            "count": rng.poisson(np.exp(0.5 * z + 1)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(50 * z + 200), "D"),
            "many": [f"m{v:02d}" for v in level],
            "size": pd.Categorical(np.digitize(z + 0.5 * rng.normal(size=n), [-0.5, 0.5]).astype(str), ordered=True),
            "flag": z + 0.5 * rng.normal(size=n) > 0,
        }
    )
    frame.loc[rng.random(n) < 0.1, "x"] = np.nan
    return frame


def learned(seed: int, n_trees: int = 1, **settings: object) -> jf.Joint:
    learner = jf.JointTree(n_trees, leaf="chow_liu", min_samples_leaf=20, min_impurity_decrease=0, random_state=seed)
    return learner.set_params(**settings).fit(table(seed)).joint_


def hidden_of(joint: jf.Joint) -> HiddenTrees:
    return joint.distribution.components[0].hidden  # type: ignore[attr-defined]


def inside(trees: BoxTrees, X: np.ndarray) -> np.ndarray:
    """Whether complete rows X (n, d) are in each leaf's box, (n, L)."""
    lo, hi, allowed = trees.boxes
    found = np.ones((len(X), len(lo)), bool)
    for j, column in enumerate(trees.schema.columns):
        slot = trees.columns.slot[j]
        if column.is_categorical:
            found &= allowed[:, trees.columns.level_start[slot] + X[:, j].astype(int)].T
        else:
            found &= (lo[:, slot] < X[:, [j]]) & (X[:, [j]] <= hi[:, slot])
    return found


@pytest.mark.parametrize("seed", range(3))
def test_a_row_is_in_the_boxes_of_the_leaves_that_hold_its_codes(seed: int) -> None:
    joint = learned(seed, n_trees=4, max_features=1)
    hidden, trees = hidden_of(joint), joint.distribution.box_trees_for("this")
    rng = np.random.default_rng(seed)
    drawn = build(joint.schema, joint._evidence(joint.sample(300, random_state=seed)).value).value
    odd = drawn[rng.integers(300, size=(300, drawn.shape[1])), np.arange(drawn.shape[1])]  # each cell of another row
    odd[:60, 0] = np.repeat(
        [0.0, np.nextafter(0.0, -1.0), np.nextafter(0.0, 1.0), -9.0, 9.0], 12
    )  # at an atom, and out
    X = np.concatenate([drawn, odd])
    codes = code_table(hidden.scales, X)
    assert hidden.support is not None and hidden.grown is not None
    by_codes = np.logical_and.reduce([held[codes[:, j]] for j, held in enumerate(hidden.support)])
    by_box = inside(trees, X)[:, hidden.grown.leaf]
    np.testing.assert_array_equal(by_box, by_codes)
    assert (by_codes.sum(axis=1) == 5).all()  # one leaf a tree, and the background
    assert {int(j) for j in trees.trees.feature} >= {0, 1, 2, 3, 4}


@pytest.mark.parametrize("seed", range(2))
def test_one_tree_given_a_leafs_rule_is_the_leaf(seed: int) -> None:
    joint = learned(seed, epsilon=0.0)
    known = joint.given(count=[1, 2, 3])
    rules = known.explain(100).rules
    assert len(rules) > 3 and sum(rule["weight"] for rule in rules) == pytest.approx(1.0, abs=1e-5)
    for rule in rules:
        assert rule["kind"] == "Chow-Liu leaf"
        assert rule["weight"] == pytest.approx(known.probability(rule["rule"]), abs=1e-5)
        leaf = joint.given(f"({rule['rule']}) and count in {{1, 2, 3}}")
        for name, says in rule["says"].items():
            if "levels" in says:
                share = leaf.proba(name)
                most = sorted((p for p in share.values() if p > 0.0), reverse=True)[:3]
                assert list(says["levels"].values()) == pytest.approx(most, abs=1e-5)
                assert all(share[level] == pytest.approx(p, abs=1e-5) for level, p in says["levels"].items())
            elif name != "day":
                assert says["mean"] == pytest.approx(leaf.mean(name), rel=1e-3, abs=1e-4)
                np.testing.assert_allclose([says["low"], says["high"]], leaf.interval(name, 0.9), rtol=1e-3, atol=1e-3)


def test_rules_show_every_leaf_and_its_share() -> None:
    joint = learned(0, n_trees=2, epsilon=0.01)
    trees = joint.distribution.box_trees_for("this")
    assert joint.n_trees == 2 and joint.n_leaves == len(trees.log_weight) - 1 and joint.n_states == 0
    assert joint.epsilon == pytest.approx(0.01) and repr(joint).endswith(f"2 trees, {joint.n_leaves} Chow-Liu leaves)")
    ends = [line for tree in (0, 1) for line in joint.tree_text(tree).splitlines() if "[Chow-Liu leaf" in line]
    assert len(ends) == joint.n_leaves
    share = np.exp(trees.log_weight[:-1]) * 2 / 0.99
    for line in ends:
        number = int(line.rsplit(" ", 1)[1][:-1])
        assert float(line.split("  ")[-2].split("%")[0]) == pytest.approx(100 * share[number], abs=0.051)
    with pytest.raises(ValueError, match="the number of a tree, 0 to 1"):
        joint.tree_text(2)


def test_reverse_asks_the_joint_itself() -> None:
    joint = learned(1, n_trees=2)
    found = joint.reverse("flag = true", k=5)
    assert len(found.rules) == 5
    event = joint.probability("flag = true")
    for rule in found.rules:
        assert "flag" not in rule["rule"]
        region = joint.probability(rule["rule"])
        assert rule["probability"] == pytest.approx(region, rel=1e-4)
        both = joint.probability(f"({rule['rule']}) and flag = true")
        assert rule["event_probability"] == pytest.approx(both / region, rel=1e-4)
        assert rule["lift"] == pytest.approx(both / region / event, rel=1e-4)


def test_densities_of_trees_are_those_of_their_leaves() -> None:
    joint = learned(0, n_trees=2)
    rows = table(0).head(50)
    found = joint.tree_log_density(rows)
    assert found.shape == (50, 3)
    hidden, trees = hidden_of(joint), joint.distribution.box_trees_for("this")
    assert hidden.grown is not None
    for t in range(3):
        mine = np.flatnonzero(trees.tree[hidden.grown.leaf] == t)
        alone = replace(hidden, trees=tuple(hidden.trees[i] for i in mine), log_weight=hidden.log_weight[mine])
        np.testing.assert_allclose(found[:, t], log_density(alone, joint._evidence(rows)), rtol=1e-5)
    np.testing.assert_allclose(np.logaddexp.reduce(found, axis=1), joint.log_density(rows), rtol=1e-6)


def test_pictures_are_of_the_boxes() -> None:
    joint = learned(0, max_leaf_nodes=5, epsilon=0.001)
    assert len(plot.tree(joint, columns=["x", "many"]).axes) == 1 + 2 * joint.n_leaves
    assert len(plot.regions(joint, "x", "count", "flag").patches) == joint.n_leaves
    plt.close("all")


def test_what_is_no_forest_any_more_says_so() -> None:
    joint = learned(0)
    for other in (
        joint.condition(flag=True),
        joint.select("x", "count"),
        jf.mix([joint, joint.select(*joint.columns)]),
    ):
        with pytest.raises(ValueError, match="tree_text needs a joint that is one forest of boxes"):
            other.tree_text()
    with pytest.raises(ValueError, match=r"robustness needs .*Chow-Liu leaves; learn with leaf='quantile'"):
        joint.robustness(table(0), "flag")
    hidden = jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(table(0)).joint_
    for other in (hidden, jf.mix([hidden, jf.AdversarialForest(n_estimators=2, random_state=0).fit(table(0)).joint_])):
        with pytest.raises(ValueError, match=r"reverse needs .*; learn with AdversarialForest or JointTree"):
            other.reverse({"flag": True})


def test_a_mixture_explains_leaves_of_both_kinds() -> None:
    frame = table(0)
    boxes = jf.JointTree(leaf="quantile", min_samples_leaf=20, random_state=0).fit(frame).joint_
    rules = jf.mix([boxes, learned(0)]).given(count=2).explain(1000).rules
    assert {rule["kind"] for rule in rules} >= {"leaf", "Chow-Liu leaf", "background"}
    assert sum(rule["weight"] for rule in rules) == pytest.approx(1.0, abs=1e-5)


def test_files_keep_the_boxes(tmp_path: object) -> None:
    joint = learned(2, n_trees=2)
    joint.save(f"{tmp_path}/a.joint")
    again = jf.load(f"{tmp_path}/a.joint")
    assert again.tree_text(1) == joint.tree_text(1) and repr(again) == repr(joint)
    assert jf.from_arrow(joint.to_arrow()).tree_text(0) == joint.tree_text(0)


def test_broken_boxes_are_named() -> None:
    hidden = hidden_of(learned(0))
    grown = hidden.grown
    assert grown is not None
    check_hidden(hidden)
    wrong = [
        (grown._replace(leaf=grown.leaf.astype(np.int64)), "stands_in: expected int32"),
        (grown._replace(leaf=grown.leaf[:-1]), "stands_in: expected shape"),
        (grown._replace(leaf=grown.leaf[::-1].copy()), "must rise"),
        (grown._replace(leaf=grown.leaf + np.int32(1)), "must rise"),
        (grown._replace(trees=grown.trees._replace(threshold=grown.trees.threshold * np.nan)), "trees.threshold"),
        (grown._replace(trees=grown.trees._replace(root=np.array([0], np.int32))), "trees"),
    ]
    for other, message in wrong:
        with pytest.raises(ValueError, match=message):
            check_hidden(replace(hidden, grown=other))


def test_the_default_keeps_a_pair_and_has_rules() -> None:
    rng = np.random.default_rng(0)
    made = {}
    for k in range(4):
        a, noise = rng.normal(size=(2, 2_000))
        made |= {f"a{k}": a, f"b{k}": 0.95 * a + 0.3 * noise}
    frame = pd.DataFrame(made)
    with warnings.catch_warnings():
        warnings.simplefilter("error", jf.LostDependenceWarning)
        joint = jf.JointTree(random_state=0).fit(frame).joint_
    drawn = joint.sample(20_000, random_state=0)
    assert all(abs(drawn[f"a{k}"].corr(drawn[f"b{k}"]) - 0.95) < 0.1 for k in range(4))
    assert "Chow-Liu leaf" in joint.tree_text()
