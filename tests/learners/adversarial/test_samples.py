"""Adversarial forests grown on a part of the rows, whose leaves all rows fill."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.schema import Schema
from jointforest.learners.adversarial import adversarial_forest
from jointforest.learners.adversarial.adversarial_forest import take_samples
from jointforest.learners.growing.grow import Ranks

from .test_adversarial import assert_same_joint, make_frame

# -- which rows


def test_all_rows_grow_and_fill_unless_told_otherwise() -> None:
    for max_samples in (None, 50, 51, 10**9, np.int64(50), 1.0):
        sample = take_samples(50, None, False, max_samples, 0)
        assert sample.growing.tolist() == list(range(50))
        assert sample.filling.all()
        assert not sample.is_part


@pytest.mark.parametrize(("max_samples", "expected"), [(20, 20), (0.4, 20), (1, 1), (1e-9, 1), (np.float32(0.5), 25)])
def test_a_part_is_drawn_without_replacement_and_all_rows_fill(max_samples: float, expected: int) -> None:
    sample = take_samples(50, None, False, max_samples, 0)
    assert len(np.unique(sample.growing)) == len(sample.growing) == expected
    assert (np.diff(sample.growing) > 0).all()
    assert sample.is_part
    assert sample.filling.all()


def test_every_row_is_as_likely_to_grow_trees() -> None:
    drawn = np.zeros(10)
    for seed in range(1000):
        drawn[take_samples(10, None, False, 3, seed).growing] += 1
    assert np.abs(drawn - 300).max() < 5 * np.sqrt(1000 * 0.3 * 0.7)


@pytest.mark.parametrize("max_samples", [5, 100, None])
def test_weights_say_how_often_a_row_grows_trees(max_samples: int | None) -> None:
    weight = np.array([0.1, 3.0, 0.4, 2.0, 1.0, 0.5, 1.0, 0.8, 0.2, 1.0])
    m = min(max_samples or 10, 10)
    drawn = np.zeros(10)
    for seed in range(2000):
        growing = take_samples(10, weight, False, max_samples, seed).growing
        assert len(growing) == m
        assert (np.diff(growing) >= 0).all()
        count = np.bincount(growing, minlength=10)
        expected = weight * m / weight.sum()
        assert (np.abs(count - expected) < 1 + 1e-9).all()  # evenly: each row as often as its weight, but for one
        drawn += count
    assert drawn / 2000 == pytest.approx(weight * m / weight.sum(), abs=0.06)


def test_honest_rows_that_grow_fill_no_leaves() -> None:
    whole = take_samples(40, None, True, None, 3)
    part = take_samples(40, None, True, 15, 3)
    assert not whole.is_part
    assert part.is_part
    assert len(whole.growing) == 20
    assert len(part.growing) == 15
    assert set(part.growing) < set(whole.growing)
    for sample in (whole, part):
        assert (sample.filling == ~np.isin(np.arange(40), sample.growing)).all()
    weighted = take_samples(40, np.arange(1.0, 41.0), True, 15, 3)
    assert not weighted.filling[weighted.growing].any()


# -- the forest


@pytest.mark.parametrize("settings", [{}, {"leaf_rows": "honest"}, {"leaf_rows": "oob"}, {"leaf": "quantile"}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_enough_samples_change_nothing(settings: dict, weighted: bool) -> None:
    frame = make_frame(missing=0.1)
    weight = np.random.default_rng(0).exponential(size=120) if weighted else None
    joints = [
        jf.AdversarialForest(3, max_samples=m, random_state=0, **settings).fit(frame, sample_weight=weight).joint_
        for m in (None, 120, 10**6, 1.0)
    ]
    for joint in joints[1:]:
        assert_same_joint(joints[0], joint)


def seen(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, **settings: object) -> dict:
    """What the rounds were given, and the forest that came of it."""
    found: dict = {}
    run = adversarial_forest.run

    def spy(schema: Schema, ranks: Ranks, *rest: object) -> tuple:
        found["ranks"] = ranks
        return run(schema, ranks, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(adversarial_forest, "run", spy)
        found["forest"] = jf.AdversarialForest(4, random_state=0, **settings).fit(frame)
    return found


def leaf_of(forest: jf.AdversarialForest, tree: int, row: list[float]) -> int:
    """Leaf in which a row of known cells ends, by walking down."""
    trees = forest.joint_.distribution.forest.trees
    node = trees.root[tree]
    while trees.left[node] >= 0:
        cell, at = row[trees.feature[node]], trees.levels_at[node]
        is_left = cell <= trees.threshold[node] if at < 0 else bool(int(trees.left_levels[at]) >> int(cell) & 1)
        node = trees.left[node] if is_left else trees.right[node]
    return int(trees.leaf[node])


def test_trees_grow_on_the_sample_and_all_rows_fill_their_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = make_frame(400)
    found = seen(frame, monkeypatch, max_samples=100, min_samples_leaf=3)
    assert found["ranks"].codes.shape == (3, 100)
    forest, leaves = found["forest"], found["forest"].joint_.distribution.forest.leaves
    levels = forest.joint_.schema.columns[2].levels
    cells = [[x, k, levels.index(c)] for x, k, c in frame.itertuples(index=False)]
    for t in range(4):
        ends = np.array([leaf_of(forest, t, row) for row in cells])
        rows = np.bincount(ends, minlength=len(leaves.log_weight))
        own = np.flatnonzero(leaves.tree == t)
        assert len(own) > 3
        assert rows[own].min() >= 3  # of all rows
        assert np.exp(leaves.log_weight[own]) * 4 / 0.999 * 400 == pytest.approx(rows[own])
        shrunk = np.bincount([row[2] for row in cells], minlength=3) + 1 / 3
        for leaf in own:
            box = np.exp(leaves.log_level[leaf]) > 0
            count = np.bincount([row[2] for row, end in zip(cells, ends, strict=True) if end == leaf], minlength=3)
            mass = np.where(box, count + 0.2 * shrunk / shrunk.sum(), 0.0)
            assert np.exp(leaves.log_level[leaf]) == pytest.approx(mass / mass.sum())
    assert forest.joint_.given().mean("x") == pytest.approx(frame["x"].mean(), abs=0.02)


def test_thresholds_lie_between_values_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    found = seen(make_frame(400), monkeypatch, max_samples=50)
    ranks, trees = found["ranks"], found["forest"].joint_.distribution.forest.trees
    x = ranks.values[: ranks.value_start[1]]
    assert len(x) == 50
    split = trees.threshold[(trees.feature == 0) & (trees.left >= 0)]
    assert len(split)
    assert np.isin(split, x[:-1] / 2 + x[1:] / 2).all()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"leaf_rows": "honest"},
        {"leaf_rows": "oob", "oob_score": False},
        {"oob_score": True},
        {"bootstrap": False},
        {"leaf": "chow_liu", "min_samples_leaf": 20},
        {"leaf": "quantile"},
        {"max_samples": 1},
        {"max_samples": 0.05},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_of_the_rows_with_missing_cells(settings: dict, weighted: bool) -> None:
    frame = make_frame(300, missing=0.2)
    weight = np.random.default_rng(0).exponential(size=300) if weighted else None
    forests = [
        jf.AdversarialForest(
            **({"n_estimators": 3, "max_samples": 60, "random_state": 0} | settings), n_jobs=n_jobs
        ).fit(frame, sample_weight=weight)
        for n_jobs in (1, 3)
    ]
    density = [forest.joint_.log_density(frame) for forest in forests]
    assert (density[0] == density[1]).all()
    assert np.isfinite(density[0]).all()
    if settings.get("leaf") != "chow_liu":
        assert_same_joint(forests[0].joint_, forests[1].joint_)
        weights = np.exp(forests[0].joint_.distribution.forest.leaves.log_weight)
        assert weights.sum() == pytest.approx(1.0)
    if settings.get("oob_score"):
        scores = forests[0].oob_log_density_
        assert np.isfinite(scores).sum() >= 300 - 60  # the rows out of the sample were drawn by no tree
        assert np.nanmean(scores) < density[0].mean()


def test_a_column_that_the_sample_misses_is_filled_from_the_others() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "c": ["u", "v"] * 100})
    sample = take_samples(200, None, False, 10, int(np.random.RandomState(0).randint(2**31 - 1))).growing
    frame.loc[sample, "b"] = np.nan
    joint = jf.AdversarialForest(3, max_samples=10, random_state=0).fit(frame).joint_
    assert joint.given().mean("b") == pytest.approx(frame["b"].mean(), abs=1e-2)


def test_half_the_rows_describe_the_table_nearly_as_well() -> None:
    learn, test = make_frame(4_000, seed=1), make_frame(1_000, seed=2)
    whole, half, few = (
        jf.AdversarialForest(10, max_samples=m, random_state=0).fit(learn).joint_.log_density(test).mean()
        for m in (None, 2_000, 10)
    )
    assert half > whole - 0.05
    assert half > few + 0.1
