"""Explanations: rules read back as the boxes they stand for, and numbers are those of the slow and obvious way."""

from __future__ import annotations

import datetime as dt
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jointforest as jf
from jointforest.data.evidence import Evidence, build
from jointforest.data.meaning import Region, contains, meaning_of
from jointforest.data.schema import Column, Schema, kernel_columns
from jointforest.inference.explanation import (
    box_conditions,
    explain,
    leaf_summaries,
    levels_condition,
    rule_text,
    side_condition,
    split_conditions,
    summary_text,
)
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.box_forest.box_trees import box_trees as of_trees
from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.table import ParameterTables
from jointforest.models.box_forest.structure import Forest, Trees, leaf_boxes
from jointforest.query_language.parser import parse_conditions

from ... import oracle
from ...random_cases.cells import make_evidence
from ...random_cases.evidence import random_cells, random_point
from ...random_cases.models import random_model, seeds
from ...wrapped import joint_of

COLUMNS = {
    "age": Column("age", "integer", "int64", step=1.0),
    "size": Column("size", "rounded", "float64", step=0.25),
    "h w": Column("h w", "continuous", "float64"),
    "day": Column("day", "datetime", "date32[day]", step=86400.0, origin=0.0),
    "date": Column("date", "datetime", "datetime64[ns]", step=86400.0, origin=86400.0),
    "at": Column("at", "datetime", "datetime64[us, Europe/Berlin]", step=60.0, origin=1.7e9),
    "sex": Column("sex", "categorical", "str", levels=("a", "it's", "c d", "e")),
    "grade": Column("grade", "ordered", "str", levels=("A", "B", "C", "D")),
    "smoker": Column("smoker", "boolean", "bool", levels=(False, True)),
}


def read_back(column: Column, text: str) -> object:
    """What a rule on one column means, by the parser."""
    ((name, condition),) = parse_conditions(text, {column.name: column.kind})
    assert name == column.name
    return meaning_of(column, jf.AnyOf(condition))


@pytest.mark.parametrize(
    ("name", "lo", "hi", "text"),
    [
        ("age", 41.5, math.inf, "age >= 42"),
        ("age", -math.inf, 41.5, "age <= 41"),
        ("age", 41.0, 50.0, "42 <= age <= 50"),  # trees of others cut anywhere within a cell
        ("age", 41.5, 42.5, "age = 42"),
        ("size", 0.125, 1.875, "0.25 <= size <= 1.75"),
        ("h w", 41.5, math.inf, "`h w` > 41.5"),
        ("h w", -math.inf, 0.1 + 0.2, "`h w` <= 0.30000000000000004"),
        ("h w", -1.5, 2e-7, "-1.5 < `h w` <= 2e-07"),
        ("day", 86400 * 1.5, math.inf, "day >= '1970-01-03'"),
        ("day", 86400 * 1.5, 86400 * 4.5, "'1970-01-03' <= day <= '1970-01-05'"),
        ("date", 86400 * 1.5, math.inf, "date >= '1970-01-04'"),
        ("at", -math.inf, 90.0, "at <= '2023-11-14 23:14:20+01:00'"),
    ],
)
def test_sides_are_written_as_people_say_them(name: str, lo: float, hi: float, text: str) -> None:
    column = COLUMNS[name]
    assert rule_text({name: side_condition(column, lo, hi)}) == text
    meant = read_back(column, text)
    assert isinstance(meant, Region) and len(meant.runs) == 1
    for x in np.linspace(-60, 60, 241) * (column.step or 1.0):
        centre = math.ceil(x / column.step - 0.5) * column.step if column.step else x
        assert (meant.runs[0][0] < centre <= meant.runs[0][1]) == (lo < centre <= hi)


def test_open_sides_say_nothing() -> None:
    assert all(side_condition(column, -math.inf, math.inf) is None for column in COLUMNS.values())


@pytest.mark.parametrize(
    ("name", "allowed", "text"),
    [
        ("sex", "1111", ""),
        ("sex", "1000", "sex = 'a'"),
        ("sex", "0111", "sex != 'a'"),
        ("sex", "0110", "sex in {'it''s', 'c d'}"),
        ("grade", "1100", "grade <= 'B'"),
        ("grade", "0110", "'B' <= grade <= 'C'"),
        ("grade", "0111", "grade >= 'B'"),
        ("grade", "1010", "grade in {'A', 'C'}"),
        ("grade", "1101", "grade != 'C'"),
        ("smoker", "01", "smoker = true"),
        ("smoker", "10", "smoker = false"),
    ],
)
def test_levels_are_written_short(name: str, allowed: str, text: str) -> None:
    column, wanted = COLUMNS[name], np.array([bit == "1" for bit in allowed])
    condition = levels_condition(column, wanted)
    assert rule_text({} if condition is None else {name: condition}) == text
    if text:
        ((_, read),) = parse_conditions(text, {name: column.kind})
        assert [contains(column, read, k) for k in range(len(wanted))] == wanted.tolist()


@pytest.mark.parametrize("name", ["sex", "grade", "smoker"])
def test_no_level_and_splits_tell_levels_apart(name: str) -> None:
    column = COLUMNS[name]
    n = len(column.levels)
    nothing = levels_condition(column, np.zeros(n, dtype=bool))
    assert not any(contains(column, nothing, k) for k in range(n))
    for code in range(3**n):  # each level goes left, goes right, or does not come here
        side = np.array([code // 3**k % 3 for k in range(n)])
        left, right = np.flatnonzero(side == 1), np.flatnonzero(side == 2)
        if len(left) and len(right):
            conditions = split_conditions(column, left, right)
            for goes, condition in zip((left, right), conditions, strict=True):
                here = [k for k in range(n) if side[k] and contains(column, condition, k)]
                assert here == goes.tolist()


def rules_of(model: Forest) -> list[str]:
    """The rule of every leaf."""
    boxes = leaf_boxes(model.trees, model.columns)
    n = len(model.leaves.log_weight)
    return [
        rule_text(box_conditions(model.schema, model.columns, *(side[leaf] for side in boxes))) for leaf in range(n)
    ]


@given(seeds)
def test_the_rule_of_a_leaf_has_its_weight(seed: int) -> None:
    model = random_model(seed, n_trees=1, background=False, mixed=0.0)
    joint = joint_of(model)
    for rule, log_weight in zip(rules_of(model), model.leaves.log_weight, strict=True):
        share = joint.probability(rule) if rule else 1.0
        assert share == pytest.approx(math.exp(log_weight), rel=1e-9, abs=1e-9)
        if rule:
            assert joint.given(rule).explain(2).rules[0]["weight"] == pytest.approx(1.0, abs=1e-9)


@given(seeds)
def test_a_point_meets_the_rule_of_its_leaf_alone(seed: int) -> None:
    model = random_model(seed, n_trees=1, background=False, mixed=0.0)
    schema = model.schema
    point = random_point(np.random.default_rng(seed), model)
    in_box = [leaf for leaf, box in oracle.leaf_boxes(model).items() if is_inside(box, point)]
    met = []
    for leaf, rule in enumerate(rules_of(model)):
        said = dict(parse_conditions(rule, {c.name: c.kind for c in schema.columns})) if rule else {}
        if all(contains(schema[name], c, point[schema.index(name)]) for name, c in said.items()):
            met.append(leaf)
    assert met == in_box and len(met) == 1


def is_inside(box: tuple[dict[int, tuple[float, float]], dict[int, set[int]]], point: list[float]) -> bool:
    bounds, levels = box
    return all(lo < point[j] <= hi for j, (lo, hi) in bounds.items()) and all(point[j] in k for j, k in levels.items())


# ------------------------------------------------------------------------------------------------------ explanations


def mixed_evidence(model: Forest, seed: int) -> Evidence:
    """One row with values, regions and nothing."""
    return make_evidence(random_cells(np.random.default_rng(seed), model, 4)[3:])


@given(seeds)
def test_weights_are_bayes_rule(seed: int) -> None:
    model = random_model(seed)
    evidence = mixed_evidence(model, seed)
    weight, joint = oracle.posterior(model, evidence, 0), oracle.log_joint(model, evidence, 0)
    if np.isnan(weight).any():
        with pytest.raises(ValueError, match="probability 0"):
            explain(BoxForest(model), evidence, 3)
        return
    rules = explain(BoxForest(model), evidence, 1000).rules
    assert sorted(rule["leaf"] for rule in rules) == np.flatnonzero(np.isfinite(joint)).tolist()
    assert [rule["weight"] for rule in rules] == sorted((rule["weight"] for rule in rules), reverse=True)
    texts = rules_of(model)
    for rule in rules:
        leaf = rule["leaf"]
        assert rule["weight"] == pytest.approx(weight[leaf], rel=1e-6, abs=1e-12)
        assert rule["log_weight"] == pytest.approx(joint[leaf], rel=1e-6, abs=1e-6)
        assert rule["rule"] == texts[leaf] and rule["tree"] == model.leaves.tree[leaf]
        is_last = leaf == len(texts) - 1
        assert rule["kind"] == ("background" if is_last else "leaf")
    assert [rule["leaf"] for rule in explain(BoxForest(model), evidence, 2).rules] == [
        rule["leaf"] for rule in rules[:2]
    ]


@given(seeds)
def test_what_a_leaf_says_is_its_own_posterior(seed: int) -> None:
    model = random_model(seed, n_trees=2)
    evidence = mixed_evidence(model, seed)
    leaves = np.flatnonzero(oracle.log_joint(model, evidence, 0) > -600)
    for leaf, says in zip(leaves.tolist(), leaf_summaries(of_trees(model), evidence, leaves), strict=True):
        known = {c.name for c, x in zip(model.schema.columns, evidence.value[0], strict=True) if not np.isnan(x)}
        assert set(says) == set(model.schema.names) - known
        for name, answer in says.items():
            column, given_all = model.schema[name], oracle.given(model, evidence, 0, model.schema.index(name))
            own = given_all._replace(leaves=[entry for entry in given_all.leaves if entry[1] == leaf])
            if column.is_categorical:
                share = oracle.level_probability(own)
                assert len(answer["levels"]) == min(3, np.count_nonzero(share))
                assert list(answer["levels"].values()) == pytest.approx(np.sort(share)[::-1][: len(answer["levels"])])
                for level, probability in answer["levels"].items():
                    assert probability == pytest.approx(share[column.codes[level]], rel=1e-6)
                continue
            spread = column.maximum - column.minimum
            mean, low, high = (column.to_number(answer[key]) for key in ("mean", "low", "high"))
            assert mean == pytest.approx(oracle.mean_variance(own)[0], rel=1e-5, abs=1e-6 * spread)
            for q, end in ((0.05, low), (0.95, high)):
                at = 1e-6 * max(spread, abs(end))
                assert oracle.cdf(own, end + at) >= q - 1e-6
                assert oracle.cdf(own, end - at - column.step) <= q + 1e-6


def test_the_table_names_the_background() -> None:
    model = random_model(1)
    text = str(joint_of(model).given().explain(1000))
    assert "(background)" in text and ", leaf " in text
    assert "carry 100.0% of the answer" in text
    assert repr(joint_of(model).given().explain(1)) == str(joint_of(model).given().explain(1))


def test_what_leaves_say_is_short() -> None:
    schema = Schema(tuple(COLUMNS.values()), "pandas")
    says: dict[str, dict[str, object]] = {
        "age": {"mean": 41.234, "low": 20.0, "high": 60.0},
        "size": {"mean": 0.5061, "low": 0.25, "high": 0.75},
        "h w": {"mean": 1234.5678, "low": -0.04, "high": 3000.0},
        "day": {"mean": dt.date(2024, 2, 1), "low": dt.date(2024, 1, 1), "high": dt.date(2024, 3, 1)},
        "date": {name: dt.datetime(2024, 2, 1, 2, 30) for name in ("mean", "low", "high")},
        "sex": {"levels": {"a": 0.99, "e": 0.006, "c d": 0.004}},
        "smoker": {"levels": {True: 1.0}},
    }
    assert summary_text(schema, says) == (
        "age 41 (20 to 60); size 0.51 (0.25 to 0.75); h w 1235 (0 to 3000); day 2024-02-01 (2024-01-01 to 2024-03-01); "
        "date 2024-02-01; sex a 99%, e 1%; smoker True 100%"
    )


# ----------------------------------------------------------------------------------------------------- learned trees


def table(n: int = 300) -> pd.DataFrame:
    """Columns of all kinds that hang together."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "age": 4 * (5 * group + rng.integers(0, 6, n)),
            "price": np.round(group + rng.normal(0, 0.4, n), 1),
            "body height": 170.0 + 10 * group + rng.normal(0, 5, n),
            "town": pd.Categorical(np.array(["Ulm", "Bonn", "it's", "Köln"])[(group + rng.integers(0, 2, n)) % 4]),
            "smoker": (group + rng.integers(0, 2, n)) > 1,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(30 * group + rng.integers(0, 20, n), unit="D"),
            "hole": np.where(rng.random(n) < 0.2, np.nan, group + rng.normal(0, 0.3, n)),
        }
    )


TABLE = table()
LEARNERS = {
    "quantile": jf.JointTree(min_samples_leaf=0.05, min_impurity_decrease=0, epsilon=0, random_state=0),
    "normal": jf.JointTree(min_samples_leaf=0.05, min_impurity_decrease=0, leaf="normal", epsilon=0, random_state=0),
    "uniform": jf.JointTree(min_samples_leaf=0.05, min_impurity_decrease=0, leaf="uniform", epsilon=0, random_state=0),
    "adversarial": jf.AdversarialForest(n_estimators=1, epsilon=0, min_samples_leaf=10, random_state=0),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learned_leaves_hold_what_their_rules_say(name: str) -> None:
    joint = LEARNERS[name].fit(TABLE).joint_
    rules = joint.given().explain(1000).rules
    assert len(rules) == joint.n_leaves > 3
    assert sum(rule["weight"] for rule in rules) == pytest.approx(1.0, abs=1e-12)
    for rule in rules:
        assert joint.probability(rule["rule"]) == pytest.approx(rule["weight"], abs=1e-9)
        assert joint.given(rule["rule"]).explain(1).rules[0]["leaf"] == rule["leaf"]
    assert paths(joint.tree_text(max_leaves=None)) == pytest.approx(
        {rule["leaf"]: rule["weight"] for rule in rules}, abs=6e-4
    )
    for leaf, path in leaf_paths(joint.tree_text(max_leaves=None)).items():
        weight = next(rule["weight"] for rule in rules if rule["leaf"] == leaf)
        assert joint.probability(path) == pytest.approx(weight, abs=1e-9)


def leaf_paths(text: str) -> dict[int, str]:
    """By leaf the tests on the path to it, from a tree's text."""
    found, path = {}, []
    for line in text.splitlines()[1:]:
        match = re.fullmatch(r"((?:  )*)(\S.*?)  ([\d.]+)%(?:  \[(leaf) (\d+)\])?", line)
        if match:
            depth = len(match[1]) // 2
            path = [*path[:depth], match[2]]
            if match[5]:
                found[int(match[5])] = " and ".join(path[1:])
    return found


def paths(text: str) -> dict[int, float]:
    """By leaf the share printed beside it."""
    return {int(leaf): float(share) / 100 for share, leaf in re.findall(r"  ([\d.]+)%  \[\w+ (\d+)\]", text)}


@given(seeds)
def test_the_paths_of_the_whole_tree_are_its_boxes(seed: int) -> None:
    model = random_model(seed, n_trees=1, background=False, mixed=0.0)
    joint = joint_of(model)
    found = leaf_paths(joint.tree_text(max_leaves=None))
    assert sorted(found) == list(range(joint.n_leaves))
    for leaf, path in found.items():
        share = joint.probability(path) if path else 1.0
        assert share == pytest.approx(math.exp(model.leaves.log_weight[leaf]), abs=1e-9)


def test_the_whole_tree_as_text() -> None:
    schema = Schema((Column("x", "categorical", "str", levels=("a", "b", "c", "d"), n_observed=10),), "pandas")
    columns = kernel_columns(schema)
    trees = Trees(
        feature=np.array([0, -1, 0, -1, -1], np.int32),
        threshold=np.zeros(5),
        levels_at=np.array([0, -1, 1, -1, -1], np.int32),
        left_levels=np.array([0b0001, 0b0011], np.uint64),  # level a does not come to the second test
        left=np.array([1, -1, 3, -1, -1], np.int32),
        right=np.array([2, -1, 4, -1, -1], np.int32),
        leaf=np.array([-1, 0, -1, 1, 2], np.int32),
        weight=np.array([1.0, 0.5, 0.5, 0.3, 0.2]),
        root=np.zeros(1, np.int32),
    )
    leaves = make_leaves(
        columns,
        ParameterTables(
            tree=np.zeros(3, np.int32),
            log_weight=np.log([0.5, 0.3, 0.2]),
            **{name: np.empty((3, 0)) for name in ("family", "a", "b", "lo", "hi", "atom_mass")},
            level_mass=np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0.75, 0.25]]),
            missing_rate=np.zeros((3, 1)),
        ),
    )
    expected = """\
tree 0 of 1: 3 leaves; shares are of the tree's rows
(all rows)  100.0%
  x = 'a'  50.0%  [leaf 0]
      x a 100%
  x != 'a'  50.0%
    x = 'b'  30.0%  [leaf 1]
        x b 100%
    x != 'b'  20.0%  [leaf 2]
        x c 75%, d 25%"""
    assert joint_of(Forest(schema, columns, trees, leaves, has_background=False)).tree_text() == expected


def test_rules_of_a_forest_are_a_tree_s_own() -> None:
    model = random_model(4, n_trees=3)
    joint = joint_of(model)
    mine = [sorted(leaf_paths(joint.tree_text(tree))) for tree in range(3)]
    assert [leaf for leaves in mine for leaf in leaves] == list(range(joint.n_leaves))
    for tree in (3, -1, True, "a"):
        with pytest.raises(ValueError, match="tree must be the number of a tree, 0 to 2"):
            joint.tree_text(tree)


# ----------------------------------------------------------------------------------------------------------- reverse


@given(seeds, st.sampled_from([0.0, 0.2]))
def test_reverse_ranks_the_regions_by_the_event(seed: int, min_share: float) -> None:
    model = random_model(seed, n_trees=2)
    schema, joint = model.schema, joint_of(model)
    j = schema.names.index(next(c.name for c in schema.columns if c.kind == "boolean"))
    name = schema.names[j]
    kinds = {c.name: c.kind for c in schema.columns}
    found = joint.reverse({name: True}, k=1000, min_share=min_share).rules
    weight = np.exp(model.leaves.log_weight)
    held: dict[object, dict[int, float]] = {}
    for leaf, (bounds, levels) in oracle.leaf_boxes(model).items():
        finite = {i: side for i, side in bounds.items() if i != j}
        some = {i: tuple(sorted(k)) for i, k in levels.items() if i != j and len(k) < len(schema.columns[i].levels)}
        tree = int(model.leaves.tree[leaf])
        per_tree = held.setdefault((tuple(sorted(finite.items())), tuple(sorted(some.items()))), {})
        if tree < 2:
            per_tree[tree] = per_tree.get(tree, 0.0) + weight[leaf] / weight[model.leaves.tree == tree].sum()
    wanted = [box for box, shares in held.items() if box != ((), ()) and max(shares.values(), default=-1) >= min_share]
    assert len(found) == len(wanted)
    assert found == sorted(found, key=lambda rule: -rule["event_probability"])
    for rule in found:
        said = {column: jf.AnyOf(c) for column, c in parse_conditions(rule["rule"], kinds)}
        assert name not in said
        region = np.exp(oracle.log_density(model, build(schema, conditions=said))[0])
        both = np.exp(oracle.log_density(model, build(schema, conditions={**said, name: True}))[0])
        overall = np.exp(oracle.log_density(model, build(schema, conditions={name: True}))[0])
        assert rule["probability"] == pytest.approx(region, rel=1e-6)
        assert rule["event_probability"] == pytest.approx(both / region, rel=1e-6)
        assert rule["lift"] == pytest.approx(both / region / overall, rel=1e-6)


def test_reverse_finds_what_goes_with_the_event() -> None:
    joint = jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(TABLE).joint_
    best = joint.reverse("smoker = true", k=1)
    assert best.rules[0]["lift"] > 1.5
    assert joint.probability("smoker = true", given=best.rules[0]["rule"]) == pytest.approx(
        best.rules[0]["event_probability"]
    )
    assert str(best).startswith("P(smoker = true) = ") and best.rules[0]["rule"] in str(best)
    assert joint.reverse("smoker", min_share=1.0).rules == []


# ------------------------------------------------------------------------------------------------------------ errors


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    joint = jf.JointTree(max_leaf_nodes=4, epsilon=0, random_state=0).fit(TABLE).joint_
    one = joint.given(TABLE.head(1))
    assert one.explain(1).rules[0]["weight"] > 0
    with pytest.raises(ValueError, match="one row of evidence, got 2"):
        joint.given(TABLE.head(2)).explain()
    with pytest.raises(ValueError, match="probability 0"):
        joint.given("`body height` > 1e6").explain()
    for k in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="k must be a positive integer"):
            joint.given().explain(k)
        with pytest.raises(ValueError, match="k must be a positive integer"):
            joint.reverse("smoker", k=k)
    for share in (-0.1, 2, "a", math.nan):
        with pytest.raises(ValueError, match="min_share must be a number between 0 and 1"):
            joint.reverse("smoker", min_share=share)
    with pytest.raises(ValueError, match="says nothing"):
        joint.reverse({"smoker": None})
    with pytest.raises(ValueError, match="probability 0"):
        joint.reverse("`body height` > 1e6")
    with pytest.raises(ValueError, match="speak of one row"):
        joint.reverse({"smoker": jf.PerRow([True, False])})
    with pytest.raises(jf.QuerySyntaxError, match="no column is called"):
        joint.reverse("smoke")
    joint.save(tmp_path / "tree.joint")
    assert jf.load(tmp_path / "tree.joint").tree_text() == joint.tree_text()
