"""Strong pairs that a joint loses: their dependence the slow way, who is named, when nothing is said, odd tables."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.evaluation.columns_and_pairs import _ends_of_classes, lost_pairs
from jointforest.learners.joint_tree import joint_tree
from jointforest.learners.rows import read_training_rows
from jointforest.runtime.threads import use_jobs

from ..evaluation.tables import table as mixed_table
from .chow_liu_leaves.test_chow_liu_leaves import ODD


def blocks(n: int = 2_000, seed: int = 0) -> pd.DataFrame:
    """A pair of correlation 0.9, and three blocks of dependent columns to which a tree's splits go."""
    rng = np.random.default_rng(seed)
    a, noise = rng.normal(size=(2, n))
    made = {"a": a, "b": 0.9 * a + math.sqrt(0.19) * noise}
    for k in range(3):
        level = rng.integers(40, size=n)
        made |= {f"level{k}": [f"l{v}" for v in level], f"group{k}": [f"g{v // 8}" for v in level]}
        made |= {f"number{k}": level // 8 + 0.3 * rng.normal(size=n)}
    return pd.DataFrame(made)


def slow_dependence(a: np.ndarray, b: np.ndarray, cuts: tuple[list[float], list[float]]) -> float:
    """Correlation of normal columns of the same mutual information in cells between cuts, by counting."""
    n, count = len(a), dict[tuple[int, int], int]()
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        cell = (sum(x > c for c in cuts[0]), sum(y > c for c in cuts[1]))
        count[cell] = count.get(cell, 0) + 1
    rows, columns = {i for i, _ in count}, {j for _, j in count}
    of_row = {i: sum(m for (r, _), m in count.items() if r == i) for i in rows}
    of_column = {j: sum(m for (_, c), m in count.items() if c == j) for j in columns}
    information = sum(m / n * math.log(m * n / (of_row[i] * of_column[j])) for (i, j), m in count.items())
    information -= (len(rows) - 1) * (len(columns) - 1) / (2 * n)
    return math.sqrt(1 - math.exp(-2 * max(information, 0.0)))


def lost_of(frame: pd.DataFrame, joint: jf.Joint, weight: np.ndarray | None = None, n_jobs: int = -1) -> list:
    return use_jobs(n_jobs)(lost_pairs)(joint.distribution, read_training_rows(frame, None).X, weight)


def test_dependence_is_that_of_counts() -> None:
    frame = blocks()
    with pytest.warns(jf.LostDependenceWarning):
        joint = jf.JointTree(leaf="quantile", random_state=0).fit(frame).joint_
    (pair,) = [pair for pair in lost_of(frame, joint) if (pair.a, pair.b) == ("a", "b")]
    cuts = tuple(np.quantile(frame[name], np.arange(1, 8) / 8, method="inverted_cdf").tolist() for name in "ab")
    assert pair.table == pytest.approx(slow_dependence(frame["a"].to_numpy(), frame["b"].to_numpy(), cuts), abs=1e-6)
    drawn = joint.sample(20_000, random_state=1)
    assert pair.joint == pytest.approx(slow_dependence(drawn["a"].to_numpy(), drawn["b"].to_numpy(), cuts), abs=0.1)
    assert abs(pair.table - 0.9) < 0.06 and pair.table - pair.joint > 0.1


def test_the_pair_is_named_and_the_default_keeps_it() -> None:
    frame = blocks()
    with pytest.warns(
        jf.LostDependenceWarning, match=r"'a' and 'b' .*in the table, .*leaf='chow_liu', jf.HiddenTreeForest"
    ):
        jf.JointTree(leaf="quantile", random_state=0).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error", jf.LostDependenceWarning)
        kept = [jf.JointTree(k, random_state=0).fit(frame).joint_ for k in (1, 2)]
    for joint in kept:
        drawn = joint.sample(20_000, random_state=0)
        assert abs(drawn["a"].corr(drawn["b"]) - frame["a"].corr(frame["b"])) < 0.1
        near = drawn["b"][drawn["a"] > 1.0].mean()
        assert near == pytest.approx(frame["b"][frame["a"] > 1.0].mean(), rel=0.1)


def rare_level() -> pd.DataFrame:
    """A rare level that shifts a count, beside two numbers that depend on each other."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c", "rare"], 5_000, p=[0.4, 0.35, 0.22, 0.03])
    count, z = rng.poisson(np.where(kind == "rare", 3.0, 1.0)), rng.normal(size=5_000)
    y = 0.8 * z + 0.6 * rng.normal(size=5_000)
    return pd.DataFrame({"kind": kind, "count": count, "x": np.round(z, 2), "y": np.round(y, 2)})


def test_a_rare_level_that_shifts_a_count_is_named() -> None:
    """The statement of the warning is that of a group-by; a learner that keeps the shift says nothing."""
    frame = rare_level()
    rare = frame["count"][frame["kind"] == "rare"]
    text = rf"P\(count <= 1 given kind = 'rare'\): joint .*, rows {(rare <= 1).mean():.2f} \({len(rare)} rows\)"
    with pytest.warns(jf.LostDependenceWarning, match=text):
        jf.JointTree(random_state=0).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error", jf.LostDependenceWarning)
        joint = jf.fit(frame, budget="fast", random_state=0)
    assert joint.given(kind="rare").mean("count") == pytest.approx(rare.mean(), rel=0.1)


def test_hidden_trees_name_what_they_lose() -> None:
    frame = rare_level()[["kind", "count"]]
    with pytest.warns(jf.LostDependenceWarning, match="count <= .* given kind = 'rare'|kind = 'rare' given count"):
        jf.HiddenTreeForest(n_states=1, max_iter=1, max_leaf_nodes=1, random_state=0).fit(frame)


def test_batches_ask_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more rows than are sampled quantile leaves lose the pair, and say so; the default keeps it."""
    monkeypatch.setattr(joint_tree, "MOST_ROWS", 1_500)
    frame = blocks()
    with pytest.warns(jf.LostDependenceWarning, match=r"'a' and 'b' .*leaf='chow_liu', jf.HiddenTreeForest"):
        jf.JointTree(leaf="quantile", random_state=0).fit_batches(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error", jf.LostDependenceWarning)
        joint = jf.JointTree(random_state=0).fit_batches(frame).joint_
    drawn = joint.sample(20_000, random_state=0)
    assert abs(drawn["a"].corr(drawn["b"]) - frame["a"].corr(frame["b"])) < 0.1


def test_held_out_rows_may_keep_quantile_leaves() -> None:
    """A few rows of six columns, of which the pairs of codes say more than others bear out."""
    frame, new = mixed_table(150, 0), mixed_table(300, 10)
    with pytest.warns(jf.LostDependenceWarning):
        joint = jf.JointTree(min_samples_leaf=0.4, random_state=0).fit(frame).joint_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jf.LostDependenceWarning)
        same, other = (
            jf.JointTree(min_samples_leaf=0.4, leaf=leaf, random_state=0).fit(frame).joint_
            for leaf in ("quantile", "chow_liu")
        )
    np.testing.assert_array_equal(joint.log_density(new), same.log_density(new))
    assert joint.log_density(new).mean() > other.log_density(new).mean()


@pytest.mark.parametrize("sign", [1, -1])
def test_what_only_correlations_show_is_named(sign: int) -> None:
    """Pairs beside others, of which a tree keeps the eighths but not what is inside them."""
    rng = np.random.default_rng(0)
    made = {}
    for k in range(3):
        a, noise = rng.normal(size=(2, 8_000))
        made |= {f"a{k}": 1e140 * a, f"b{k}": sign * (0.9 * a + math.sqrt(0.19) * noise)}
    frame = pd.DataFrame(made)
    with pytest.warns(jf.LostDependenceWarning):
        joint = jf.JointTree(leaf="quantile", max_leaf_nodes=90, random_state=0).fit(frame).joint_
    drawn = joint.sample(50_000, random_state=1)
    lost = lost_of(frame, joint)
    assert lost
    for pair in lost:
        a, b = ([rows[name].to_numpy() for rows in (frame, drawn)] for name in (pair.a, pair.b))
        table, kept = (sign * float(np.corrcoef(x / 1e140, y)[0, 1]) for x, y in zip(a, b, strict=True))
        assert pair.table == pytest.approx(table, abs=0.02)
        assert pair.joint == pytest.approx(kept, abs=0.05)
        cuts = tuple(np.quantile(x[0], np.arange(1, 8) / 8, method="inverted_cdf").tolist() for x in (a, b))
        in_eighths = [slow_dependence(x, y, cuts) for x, y in zip(a, b, strict=True)]
        assert in_eighths[0] - in_eighths[1] < 0.08  # chance aside less than is lost


def test_an_adversarial_forest_says_so_too() -> None:
    with pytest.warns(jf.LostDependenceWarning, match="'a' and 'b'"):
        jf.AdversarialForest(3, max_leaf_nodes=8, max_iters=0, random_state=0).fit(blocks(1_000))


@pytest.mark.parametrize("k", [1, 3])
def test_auto_has_boxes_where_nothing_is_lost(k: int) -> None:
    penguins = jf.datasets.load_penguins()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        auto, boxes = (jf.JointTree(k, leaf=leaf, random_state=0).fit(penguins).joint_ for leaf in ("auto", "quantile"))
    np.testing.assert_array_equal(auto.log_density(penguins), boxes.log_density(penguins))


@pytest.mark.parametrize("n", [5, 30, 100, 400, 3_000])
def test_independent_columns_lose_nothing(n: int) -> None:
    rng = np.random.default_rng(n)
    frame = pd.DataFrame({f"x{k}": rng.normal(size=n) for k in range(6)})
    frame["many"] = [f"l{v}" for v in rng.integers(max(n // 4, 2), size=n)]
    frame["few"] = [f"l{v}" for v in rng.integers(15, size=n)]
    frame["other"] = [f"l{v}" for v in rng.integers(15, size=n)]
    joint = jf.JointTree(max_depth=1, random_state=0).fit(frame).joint_
    assert lost_of(frame, joint) == []


def test_correlations_of_few_known_cells_are_chance() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 12))).add_prefix("x")
    frame.iloc[5:, 1:] = np.nan
    assert np.abs(np.corrcoef(frame[:5].T) - np.eye(12)).max() > 0.95
    assert lost_of(frame, jf.JointTree(max_depth=1, random_state=0).fit(frame).joint_) == []


def test_rows_count_by_their_weights() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2_000))
    frame = pd.DataFrame({"a": a, "b": np.where(np.arange(2_000) < 1_000, a, b)})
    independent = jf.JointTree(max_depth=1, min_samples_leaf=0.4, random_state=0).fit(frame.iloc[1_000:]).joint_
    weight = np.where(np.arange(2_000) < 1_000, 1e-3, 2.0)
    assert len(lost_of(frame, independent)) == 1
    assert lost_of(frame, independent, weight) == []


def test_threads_change_nothing() -> None:
    frame = blocks(1_000)
    joint = jf.JointTree(leaf="quantile", max_leaf_nodes=4, random_state=0).fit(frame).joint_
    assert lost_of(frame, joint, n_jobs=1) == lost_of(frame, joint, n_jobs=2) != []


def test_cuts() -> None:
    common = np.r_[np.arange(10.0), np.full(90, 10.0)]
    assert [int((np.searchsorted(_ends_of_classes(common, 8), common) == k).sum()) for k in range(2)] == [10, 90]
    assert np.bincount(np.searchsorted(_ends_of_classes(np.arange(80.0), 8), np.arange(80.0))).tolist() == [10] * 8
    assert len(_ends_of_classes(np.full(5, np.nan), 8)) == 0
    assert len(np.unique(np.searchsorted(_ends_of_classes(np.full(5, 3.0), 8), np.full(5, 3.0)))) == 1


WIDE = pd.DataFrame({f"x{k}": np.arange(20.0) * k for k in range(520)})  # of two classes each


@pytest.mark.parametrize("frame", [*ODD.values(), WIDE], ids=[*ODD, "wide"])
def test_odd_tables(frame: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        joint = jf.JointTree(leaf="auto", max_depth=2, random_state=0).fit(frame).joint_
        for pair in lost_of(frame, joint):
            assert 0.5 <= pair.table <= 1.0 and 0.0 <= pair.joint < pair.table


def test_the_outlier_detector_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", jf.LostDependenceWarning)
        jf.ForestOutlierDetector(random_state=0).fit(blocks(300)[["a", "b"]])
