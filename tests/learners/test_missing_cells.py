"""Tables with missing cells: forests keep the dependence that the known cells show."""

from __future__ import annotations

import warnings
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.schema import snap
from jointforest.learners import rows as learner_rows
from jointforest.learners.hidden_tree.first_joint import fill_in, first_joint, keys_of
from jointforest.learners.rows import TableRows, read_training_rows
from jointforest.runtime.threads import use_jobs

LEARNERS = {
    "adversarial": lambda **more: jf.AdversarialForest(10, random_state=0, **more),
    "adversarial, Chow-Liu leaves": lambda **more: jf.AdversarialForest(
        4, leaf="chow_liu", max_leaf_nodes=20, random_state=0, **more
    ),
    "joint tree": lambda **more: jf.JointTree(leaf="quantile", random_state=0, **more),
    "joint tree, Chow-Liu leaves": lambda **more: jf.JointTree(leaf="chow_liu", random_state=0, **more),
}


@pytest.fixture(autouse=True)
def _ignored() -> object:
    """The joints of these small tables may warn of lost dependence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ---- A known joint: x0, x1, x2 = 3 z + u with a shared coin z and u uniform on 0, 1, 2.

CORRELATION = 2.25 / (2.25 + 2.0 / 3.0)
"""Of each two of them: the variance of 3 z, over that with the variance of u."""
MEAN_GIVEN_5 = 4.0
"""Of one of them given that another is 5: z is then 1."""


def known_joint(n: int, rate: float, mechanism: str, seed: int) -> pd.DataFrame:
    """Rows of the known joint; x2 stays known where cells are missing at random, with odds that grow with it."""
    rng = np.random.default_rng(seed)
    x = 3.0 * rng.integers(0, 2, (n, 1)) + rng.integers(0, 3, (n, 3))
    odds = np.full((n, 3), rate)
    if mechanism == "at random":
        odds[:, :2] = rate * (0.4 + 0.24 * x[:, 2:])  # 1 on average
        odds[:, 2] = 0.0
    return pd.DataFrame(np.where(rng.random((n, 3)) < odds, np.nan, x), columns=["x0", "x1", "x2"])


@pytest.mark.parametrize(("rate", "bound", "of_mean"), [(0.3, 0.05, 0.15), (0.6, 0.08, 0.3)])
@pytest.mark.parametrize("mechanism", ["completely at random", "at random"])
@pytest.mark.parametrize("name", LEARNERS)
def test_dependence_is_that_of_complete_rows(
    name: str, mechanism: str, rate: float, bound: float, of_mean: float
) -> None:
    """If rows took sides by draws, correlations and means of adversarial forests would be off by .2 and .4."""
    joint = LEARNERS[name]().fit(known_joint(3_000, rate, mechanism, 1)).joint_
    found = np.corrcoef(joint.sample(20_000, random_state=2).to_numpy().T)
    np.testing.assert_allclose(found[np.triu_indices(3, 1)], CORRELATION, atol=bound)
    assert joint.given("x0 = 5").mean("x1") == pytest.approx(MEAN_GIVEN_5, abs=of_mean)


@pytest.mark.parametrize("rate", [0.3, 0.6])
def test_generative_forests_keep_it_too(rate: float) -> None:
    """The target tells little of the coin, so that the splits must."""
    frame = known_joint(3_000, rate, "completely at random", 5)
    y = np.array(["a", "b"])[np.random.default_rng(0).integers(0, 2, 3_000)]
    y = np.where((frame["x0"].to_numpy() > 2.5) & (np.random.default_rng(1).random(3_000) < 0.6), "b", y)
    forest = jf.GenerativeForestClassifier(10, random_state=0).fit(frame, y)
    found = np.corrcoef(forest.joint_.sample(20_000, random_state=2)[["x0", "x1", "x2"]].to_numpy().T)
    np.testing.assert_allclose(found[np.triu_indices(3, 1)], CORRELATION, atol=0.08)
    missing = forest.joint_.query("P(x0 is missing)")
    assert missing == pytest.approx(frame["x0"].isna().mean(), abs=0.02)


# ---- Completed rows.


def make_frame(n: int, missing: float, seed: int = 0) -> pd.DataFrame:
    """Columns of all kinds, some of which depend on each other."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "number": z + 0.3 * rng.normal(size=n),
            "atoms": np.where(rng.random(n) < 0.3, 0.0, np.exp(rng.normal(size=n))),
            "rounded": np.round(2.0 * z + rng.normal(size=n), 1),
            "whole": rng.poisson(3.0 + z),
            "date": pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
            "level": np.array(["a", "b", "c"])[np.where(rng.random(n) < 0.9, z, rng.integers(0, 3, n))],
            "many": [f"m{k}" for k in rng.integers(0, 300, n)],
            "truth": z == 1,
            "ordered": pd.Categorical(np.array(["lo", "mid", "hi"])[z], ["lo", "mid", "hi"], ordered=True),
            "constant": 7.0,
        }
    )
    return frame.mask(rng.random(frame.shape) < missing)


def completed(frame: pd.DataFrame, seed: int = 0, n_jobs: int = 1) -> TableRows:
    return use_jobs(n_jobs)(read_training_rows(frame, None).completed)(None, seed)


@pytest.mark.parametrize(("n", "missing"), [(2, 0.5), (9, 0.5), (60, 0.3), (700, 0.1), (700, 0.8)])
def test_only_missing_cells_are_drawn(n: int, missing: float) -> None:
    """They are values that the column may have: on its grid, within its span, levels that occur."""
    frame = make_frame(n, missing)
    rows = completed(frame.loc[:, frame.notna().any()])
    known = ~np.isnan(rows.X)
    assert not known.all() and (rows.drawn == ~known).all()
    assert (rows.filled[known] == rows.X[known]).all()
    assert not np.isnan(rows.filled).any()
    assert (snap(rows.columns, rows.filled) == rows.filled).all()
    assert (rows.filled >= np.nanmin(rows.X, axis=0)).all() and (rows.filled <= np.nanmax(rows.X, axis=0)).all()
    for j in np.flatnonzero(rows.columns.is_categorical):
        assert np.isin(rows.filled[:, j], rows.X[:, j]).all()


def test_draws_have_the_probabilities_that_the_known_cells_give() -> None:
    """Of two levels and a number of two values; the tree knows the joint, but for its smoothing."""
    rng = np.random.default_rng(0)
    p = np.array([0.28, 0.02, 0.05, 0.15, 0.02, 0.28, 0.15, 0.05]).reshape(2, 2, 2)
    n = 20_000
    cells = np.column_stack(np.unravel_index(rng.choice(8, n, p=p.ravel()), p.shape))
    frame = pd.DataFrame(cells, columns=list("abc")).astype({"a": float, "b": str, "c": str})
    blank = rng.random((n, 3)) < 0.4
    rows = completed(frame.mask(blank))
    whole = read_training_rows(frame, None).X
    for j, k in permutations(range(3), 2):
        at = blank[:, j] & ~blank[:, k]
        for value in (0.0, 1.0):
            here = at & (whole[:, k] == value)
            want, found = whole[here, j].mean(), rows.filled[here, j].mean()
            assert found == pytest.approx(want, abs=0.03 + 5 * np.sqrt(0.5 / here.sum()))
    alike = (blank == [True, False, False]).all(axis=1)
    for b, c in product((0, 1), repeat=2):
        here = alike & (cells[:, 1] == b) & (cells[:, 2] == c)
        want = p[1, b, c] / p[:, b, c].sum()
        assert rows.filled[here, 0].mean() == pytest.approx(want, abs=0.05 + 5 * np.sqrt(0.25 / here.sum()))


def test_draws_depend_on_the_seed_and_on_keys_alone() -> None:
    frame = make_frame(900, 0.3)
    one = completed(frame)
    assert (completed(frame, n_jobs=3).filled == one.filled).all()
    assert (completed(frame, seed=1).filled != one.filled).any()
    hidden, keys = first_joint(one.schema, one.X, None, 0), keys_of(900, 5)
    assert len(np.unique(keys)) == 900
    order = np.random.default_rng(0).permutation(900)
    again = fill_in(hidden, one.X[order], keys[order])
    same = np.isclose(again, fill_in(hidden, one.X, keys)[order], rtol=1e-9)
    assert same.mean() > 0.999  # a draw may lie within rounding of a border


@pytest.mark.parametrize("n", [2_000, 12_000])  # of the latter only some are learned from
def test_heavy_rows_count_in_the_draws(n: int) -> None:
    rng = np.random.default_rng(0)
    x = np.repeat([0.0, 1.0], n // 2)
    y = np.where(rng.random(n) < 0.5, x, 1.0 - x)
    frame = pd.DataFrame({"x": x, "y": y, "z": rng.normal(size=n)})
    weight = np.where(x == y, 9.0, 1.0)
    blank = rng.random(n) < 0.3
    rows = read_training_rows(frame.assign(y=frame["y"].mask(blank)), None).completed(weight / weight.mean(), 0)
    assert (rows.filled[blank, 1] == x[blank]).mean() == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize("name", LEARNERS)
def test_complete_tables_are_learned_as_they_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_rows, "first_joint", lambda *a: pytest.fail("no cell is missing"))
    frame = make_frame(150, 0.0)
    rows = completed(frame)
    assert rows.filled is rows.X and rows.first is None and not rows.drawn.any()
    LEARNERS[name]().fit(frame)


# ---- Leaves.


def leaves_of(forest: object, filled: np.ndarray) -> np.ndarray:
    """Leaf of each completed row of numbers in each tree, (T, n), by the definition."""
    trees, found = forest.trees, []
    for root in trees.root[:-1]:  # the last one is the background
        for x in filled:
            node = root
            while trees.left[node] >= 0:
                is_left = x[trees.feature[node]] <= trees.threshold[node]
                node = trees.left[node] if is_left else trees.right[node]
            found.append(trees.leaf[node])
    return np.reshape(found, (-1, len(filled)))


@pytest.mark.parametrize("name", ["adversarial", "joint tree"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_missing_probabilities_of_leaves_are_those_of_the_cells(name: str, is_weighted: bool) -> None:
    frame = known_joint(400, 0.4, "at random", 3) + np.random.default_rng(0).normal(size=(400, 3))
    weight = np.random.default_rng(1).integers(1, 4, 400).astype(float)
    learner = LEARNERS[name](epsilon=0.01)
    joint = learner.fit(frame, sample_weight=weight if is_weighted else None).joint_
    weight = weight / weight.mean() if is_weighted else np.ones(400)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    rows = read_training_rows(frame, None).completed(weight if is_weighted else None, seed)
    forest = joint.distribution.forest
    blank = np.isnan(rows.X)
    for tree in leaves_of(forest, rows.filled):
        for leaf in np.unique(tree):
            here = tree == leaf
            want = (weight[here, None] * blank[here]).sum(axis=0) / weight[here].sum()
            np.testing.assert_allclose(forest.leaves.missing_rate[leaf], want, atol=1e-9)
    np.testing.assert_allclose(forest.leaves.missing_rate[-1], blank.mean(axis=0), atol=1e-9)  # of the background
    p = float(joint.query("P(x0 is missing)"))
    share = (weight * blank[:, 0]).sum() / weight.sum()
    assert p == pytest.approx(0.99 * share + 0.01 * blank[:, 0].mean(), abs=1e-6)


@pytest.mark.parametrize("name", LEARNERS)
def test_cells_are_missing_as_often_as_in_the_table(name: str) -> None:
    frame = make_frame(600, 0.3)
    joint = LEARNERS[name]().fit(frame).joint_
    for column in ("number", "level", "many"):
        assert joint.query(f"P({column} is missing)") == pytest.approx(frame[column].isna().mean(), abs=0.02)


# ---- Tables in batches: rows end where the first joint of the sample completes them.


def test_batches_keep_dependence() -> None:
    frame = known_joint(4_000, 0.5, "completely at random", 4)
    frame += 0.2 * np.random.default_rng(0).normal(size=frame.shape)
    truth = CORRELATION / (1.0 + 0.04 / (2.25 + 2.0 / 3.0))
    for cut in (500, 1_300):
        forest = jf.AdversarialForest(10, max_samples=1_500, random_state=0)
        joint = forest.fit_batches(lambda cut=cut: (frame[k : k + cut] for k in range(0, 4_000, cut))).joint_
        found = np.corrcoef(joint.sample(20_000, random_state=2).to_numpy().T)
        np.testing.assert_allclose(found[np.triu_indices(3, 1)], truth, atol=0.1)
        p = float(joint.query("P(x0 is missing)"))
        assert p == pytest.approx(frame["x0"].isna().mean(), abs=1e-6)


# ---- Tables that have hardly any known cell, or many levels.


@pytest.mark.parametrize("name", LEARNERS)
def test_odd_tables(name: str) -> None:
    rng = np.random.default_rng(0)
    halves = np.where(np.arange(80)[:, None] < 40, [np.nan, 1.0], [1.0, np.nan]) * rng.normal(size=(80, 2))
    tables = [
        pd.DataFrame({"x": [1.5, np.nan], "y": [np.nan, 2.0], "g": ["a", None]}),
        pd.DataFrame({"x": [1.0] + [np.nan] * 39, "y": np.arange(40.0)}),
        pd.DataFrame(halves, columns=["x", "y"]),  # no row has both
        pd.DataFrame({"g": [f"l{k}" for k in range(10_000)], "x": rng.normal(size=10_000)}).mask(
            rng.random((10_000, 2)) < 0.2
        ),
    ]
    for frame in tables:
        learner = LEARNERS[name]().set_params(n_estimators=1)
        joint = learner.fit(frame, sample_weight=np.r_[0.5, np.ones(len(frame) - 1)]).joint_
        assert np.isfinite(joint.log_density(frame)).all()
