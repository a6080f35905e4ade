"""The rounds of the adversarial forest, and its estimator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import jointforest as jf
from jointforest.data.evidence import Evidence
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import Schema, kernel_columns, snap
from jointforest.learners.adversarial import adversarial_forest
from jointforest.learners.adversarial.adversarial_forest import RoundSettings, prune_forest, run
from jointforest.learners.adversarial.rounds_kernels import from_leaves, from_marginals
from jointforest.learners.base import count_features, draw_bootstrap
from jointforest.learners.growing.grow import GrowthSettings, Ranks, find_leaves, grow, rank
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.box_forest.structure import Forest
from jointforest.runtime.threads import use_jobs

SETTINGS = RoundSettings(
    n_estimators=12, tree=GrowthSettings(2, keep_looking=False, min_samples_split=7), bootstrap=True, n_draws=0,
    delta=0.0, max_iters=10, early_stop=True,
)  # fmt: skip


def make_frame(n: int = 120, dependent: bool = True, missing: float = 0.0, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) if dependent else rng.normal(size=(3, n))
    z = np.broadcast_to(z, (3, n))
    frame = pd.DataFrame(
        {
            "x": z[0] + 0.1 * rng.normal(size=n),
            "k": np.round(4 * z[1] + rng.normal(size=n)).astype(int),
            "c": np.where(z[2] > 0.5, "high", np.where(z[2] < -0.5, "low", "middle")),
        }
    )
    for name in frame.columns if missing else ():
        frame[name] = frame[name].astype("Int64" if name == "k" else frame[name].dtype).mask(rng.random(n) < missing)
    return frame


def ranked(frame: pd.DataFrame) -> tuple[Schema, Ranks]:
    schema = infer_schema(frame)
    columns = kernel_columns(schema)
    return schema, rank(columns, snap(columns, encode(schema, frame)[0]))


def run_rounds(
    frame: pd.DataFrame, seed: int = 0, **settings: object
) -> tuple[adversarial_forest.Discriminator, list[float]]:
    schema, ranks = ranked(frame)
    return run(schema, ranks, SETTINGS._replace(n_draws=2 * len(frame), **settings), seed, lambda turn, accuracy: None)


def assert_same_joint(one: jf.Joint, two: jf.Joint) -> None:
    """Every array equal, bit by bit."""
    first, second = one.distribution.forest, two.distribution.forest
    for part in ("columns", "trees", "leaves"):
        for a, b in zip(getattr(first, part), getattr(second, part), strict=True):
            for u, v in zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]:
                assert u.dtype == v.dtype
                assert u.tobytes() == v.tobytes()


# -- synthetic rows


def test_marginal_rows_are_drawn_from_each_column_alone() -> None:
    _, ranks = ranked(make_frame(300, missing=0.2))
    many = np.concatenate([draw_marginals(ranks.codes, seed) for seed in range(60)], axis=1)
    for j in range(3):
        codes, count = np.unique(ranks.codes[j], return_counts=True)
        drawn, times = np.unique(many[j], return_counts=True)
        assert np.isin(drawn, codes).all()
        share = count / count.sum()
        found = np.zeros(len(codes))
        found[np.searchsorted(codes, drawn)] = times / times.sum()
        assert np.abs(found - share).max() < 5 * np.sqrt(0.25 / many.shape[1])
    assert abs(np.corrcoef(many[0], many[1])[0, 1]) < 0.05
    assert np.corrcoef(ranks.codes[0], ranks.codes[1])[0, 1] > 0.3


def draw_marginals(codes: np.ndarray, seed: int) -> np.ndarray:
    out = np.empty_like(codes)
    from_marginals(codes, seed, out)
    return out


def test_leaf_rows_have_the_leaf_marginals() -> None:
    """Trees alike, leaves in proportion to their rows, each column on its own: against a chi-square bound."""
    rng = np.random.default_rng(0)
    n, n_trees, n_leaves = 60, 2, 3
    leaf_of = np.array([rng.choice(n_leaves, n, p=[0.6, 0.3, 0.1]), rng.choice(n_leaves, n, p=[0.2, 0.4, 0.4])])
    codes = np.empty((3, n), np.int32)
    codes[0] = leaf_of[0] + 3 * leaf_of[1]  # says which leaf a row is from, in both trees
    codes[1:] = rng.integers(-1, 4, (2, n))
    rows = np.array([np.argsort(leaf, kind="stable") for leaf in leaf_of]).astype(np.int32)
    start = np.array([np.r_[0, np.cumsum(np.bincount(leaf, minlength=n_leaves))] for leaf in leaf_of])
    m = 3000
    many = []
    for seed in range(m // n):
        out = np.empty_like(codes)
        from_leaves(codes, leaf_of.astype(np.int32), rows, start, seed, out)
        many.append(out)
    found = np.concatenate(many, axis=1)
    expected = np.zeros((9, 5, 5))
    for t in range(n_trees):
        for leaf in range(n_leaves):
            here = codes[:, leaf_of[t] == leaf]
            marginals = [
                np.bincount(row + shift, minlength=k) / here.shape[1]
                for row, shift, k in zip(here, (0, 1, 1), (9, 5, 5), strict=True)
            ]
            expected += here.shape[1] / n / n_trees * np.einsum("i,j,k->ijk", *marginals)
    count = np.zeros_like(expected)
    np.add.at(count, (found[0], found[1] + 1, found[2] + 1), 1)
    assert (count[expected == 0] == 0).all()
    e = expected[expected > 0] * found.shape[1]
    chi2 = ((count[expected > 0] - e) ** 2 / e).sum()
    freedom = len(e) - 1
    assert chi2 < freedom + 6 * np.sqrt(2 * freedom)


def test_rows_drawn_for_a_tree() -> None:
    with_replacement = draw_bootstrap(50, 70, True, 1, 2)
    assert with_replacement.sum() == 70
    assert with_replacement.max() > 1
    without = draw_bootstrap(50, 20, False, 1, 2)
    assert sorted(without) == [0.0] * 30 + [1.0] * 20
    assert (draw_bootstrap(50, 20, False, 1, 3) != without).any()


# -- rounds


def test_first_round_tells_dependent_columns_apart_only() -> None:
    _, dependent = run_rounds(make_frame(300), max_iters=0)
    _, independent = run_rounds(make_frame(300, dependent=False), max_iters=0)
    assert dependent[0] > 0.75
    assert independent[0] == pytest.approx(0.5, abs=0.08)


def test_accuracy_counts_rows_that_some_tree_did_not_draw() -> None:
    frame = make_frame(200)
    schema, ranks = ranked(frame)
    n = len(frame)
    synthetic = draw_marginals(ranks.codes, 2)
    settings = SETTINGS._replace(n_estimators=2, n_draws=2 * n)
    forest, accuracy = adversarial_forest._discriminate(schema, ranks, synthetic, settings, 0, 0)
    both = np.concatenate([ranks.codes, synthetic], axis=1)
    y = np.r_[np.ones(n), np.zeros(n)]
    vote, judged = np.zeros(2 * n), np.zeros(2 * n, bool)
    for t, tree in enumerate(forest.trees):
        weight = draw_bootstrap(2 * n, 2 * n, True, 0, t)
        node = find_leaves(tree, both)
        for i in np.flatnonzero(weight == 0):
            mates = node == node[i]
            vote[i] += (weight * y)[mates].sum() / weight[mates].sum() - 0.5
            judged[i] = True
    assert 0.4 < judged.mean() < 0.8
    right = np.where(vote == 0, 0.5, (vote > 0) == (y == 1))
    assert accuracy == pytest.approx(right[judged].mean())


def test_rounds_end_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator is the last forest that could still tell real rows from synthetic ones."""
    frame = make_frame(40)
    schema, ranks = ranked(frame)
    for accuracies, settings, used, winner in [
        ([0.5], {}, 1, 0),
        ([0.9, 0.4], {}, 2, 0),
        ([0.9, 0.7, 0.5], {}, 3, 1),
        ([0.9, 0.7, 0.55, 0.4], {"delta": 0.1}, 3, 1),
        ([0.9, 0.7, 0.7, 0.4], {}, 3, 1),
        ([0.9, 0.7, 0.8, 0.4], {"early_stop": False}, 4, 2),
        ([0.9, 0.8, 0.7, 0.6], {"max_iters": 2}, 3, 2),
        ([0.9, 0.8], {"max_iters": 0}, 1, 0),
    ]:
        forests = iter(range(10))
        told = iter(accuracies)
        monkeypatch.setattr(adversarial_forest, "_discriminate", lambda *a, f=forests, c=told: (next(f), next(c)))
        monkeypatch.setattr(adversarial_forest, "_generate", lambda *a: None)
        said: list[tuple[int, float]] = []
        forest, found = run(
            schema, ranks, SETTINGS._replace(**settings), 0, lambda turn, accuracy, s=said: s.append((turn, accuracy))
        )
        assert found == accuracies[:used]
        assert forest == winner
        assert said == list(enumerate(found))


def test_first_trees_may_end_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator is what it is without, and where few trees do not show the end all are grown."""
    frame, grown = make_frame(400), []
    monkeypatch.setattr(adversarial_forest, "grow", lambda *a, **k: grown.append(k["number"]) or grow(*a, **k))
    some, none = {"delta": 0.2}, {"delta": 0.0, "max_iters": 1, "tree": SETTINGS.tree._replace(min_samples_split=201)}
    for settings, numbers, first in ((some, (1, 4), 1), (some, (4,), 4), (none, (1, 4), 12)):
        monkeypatch.setattr(adversarial_forest, "FIXED", replace(adversarial_forest.FIXED, early_trees=()))
        forest, accuracies = use_jobs(1)(run_rounds)(frame, **settings)
        assert len(grown) == 24
        monkeypatch.setattr(adversarial_forest, "FIXED", replace(adversarial_forest.FIXED, early_trees=numbers))
        grown.clear()
        early, by_first = use_jobs(1)(run_rounds)(frame, **settings)
        assert grown == list(range(12 + first))
        assert by_first[0] == accuracies[0] and (by_first[1] == accuracies[1]) == (first == 12)
        assert (by_first[1] <= 0.5 + settings["delta"] * np.sqrt(first / 12)) == (first < 12)
        assert (early.leaf_node == forest.leaf_node).all()
        grown.clear()


def test_pruned_leaves_have_enough_kept_rows() -> None:
    frame = make_frame(150)
    _, ranks = ranked(frame)
    forest, _ = run_rounds(frame, max_iters=1)
    keep = ~forest.drawn
    pruned = prune_forest(forest, ranks.codes, keep, 5)
    for t, tree in enumerate(pruned.trees):
        count = np.bincount(pruned.leaf_node[t][keep[t]], minlength=len(tree.left))
        assert (count[tree.left < 0] >= 5).all()
        assert (tree.left[pruned.leaf_node[t]] < 0).all()
        assert (pruned.leaf_node[t] == find_leaves(tree, ranks.codes)).all()
        assert len(tree.left) <= len(forest.trees[t].left)
    assert max(len(t.left) for t in pruned.trees) > 1
    again = prune_forest(forest, ranks.codes, keep, 5, has_these=True)
    np.testing.assert_array_equal(again.leaf_node, pruned.leaf_node)


# -- the estimator


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_frame(missing=0.1)


@pytest.fixture(scope="module")
def forest(frame: pd.DataFrame) -> jf.AdversarialForest:
    return jf.AdversarialForest(n_estimators=6, random_state=3, n_jobs=1, oob_score=True).fit(frame)


def test_threads_change_nothing(frame: pd.DataFrame, forest: jf.AdversarialForest) -> None:
    again = clone(forest).set_params(n_jobs=2).fit(frame)
    assert_same_joint(forest.joint_, again.joint_)
    assert forest.oob_accuracy_ == again.oob_accuracy_
    assert np.array_equal(forest.oob_log_density_, again.oob_log_density_, equal_nan=True)


def test_random_state(frame: pd.DataFrame, forest: jf.AdversarialForest) -> None:
    other = clone(forest).set_params(random_state=4).fit(frame)
    assert (
        other.joint_.distribution.forest.trees.feature.tolist()
        != forest.joint_.distribution.forest.trees.feature.tolist()
    )
    legacy = [jf.AdversarialForest(2, random_state=np.random.RandomState(7)).fit(frame).joint_ for _ in range(2)]
    assert_same_joint(*legacy)
    free = [jf.AdversarialForest(2).fit(frame).joint_ for _ in range(2)]
    assert free[0].distribution.forest.leaves.a.tobytes() != free[1].distribution.forest.leaves.a.tobytes()


def test_sklearn_plumbing(forest: jf.AdversarialForest, frame: pd.DataFrame) -> None:
    copy = clone(forest)
    assert copy.get_params() == forest.get_params()
    assert not hasattr(copy, "joint_")
    assert copy.set_params(n_estimators=2).fit(frame, None) is copy
    assert "n_estimators=2" in repr(copy)
    assert forest.n_features_in_ == 3
    assert forest.feature_names_in_.tolist() == ["x", "k", "c"]


def test_frames_give_the_same_model(frame: pd.DataFrame) -> None:
    frame = frame.astype({"k": "Int64", "c": "str"})
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    joints = [jf.AdversarialForest(3, random_state=0).fit(x).joint_ for x in (frame, pl.from_arrow(arrow), arrow)]
    for joint in joints[1:]:
        assert_same_joint(joints[0], joint)
    numbers = make_frame()[["x", "k"]]
    joints = [jf.AdversarialForest(3, random_state=0).fit(x).joint_ for x in (numbers, numbers.to_numpy(dtype=float))]
    assert_same_joint(*joints)


def test_weights_and_rows_of_leaves(frame: pd.DataFrame, forest: jf.AdversarialForest) -> None:
    model = forest.joint_.distribution.forest
    weight = np.exp(model.leaves.log_weight)
    assert weight.sum() == pytest.approx(1.0)
    assert weight[-1] == pytest.approx(1e-3)
    rows = weight[:-1] * 6 / 0.999 * len(frame)
    assert rows == pytest.approx(np.rint(rows))
    assert rows.min() >= forest.min_samples_leaf - 0.001
    leaf = model.trees.left < 0
    share = model.trees.weight[leaf][np.argsort(model.trees.leaf[leaf])]
    assert share[:-1] == pytest.approx(weight[:-1] * 6 / 0.999)


def test_verbose_prints_a_line_a_round(frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    forest = jf.AdversarialForest(3, random_state=0, verbose=1).fit(frame)
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = [f"round {turn}: out-of-bag accuracy {a:.4f}" for turn, a in enumerate(forest.oob_accuracy_)]
    assert printed.err.splitlines() == lines
    jf.AdversarialForest(3, random_state=0).fit(frame)
    assert capsys.readouterr().err == ""


def test_out_of_bag_density_against_a_slow_computation(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, np.ndarray] = {}

    def spy(model: Forest, evidence: Evidence, drawn: np.ndarray) -> np.ndarray:
        seen["drawn"], seen["joint"] = drawn, jf.Joint(BoxForest(model))
        return slow(model, evidence, drawn)

    slow = adversarial_forest.oob_log_density
    monkeypatch.setattr(adversarial_forest, "oob_log_density", spy)
    forest = jf.AdversarialForest(4, random_state=1, oob_score=True).fit(frame)
    drawn, joint = seen["drawn"], seen["joint"]
    seed = int(np.random.RandomState(1).randint(2**31 - 1))
    n = len(frame)
    turns = len(forest.oob_accuracy_)
    draws = [
        np.array([draw_bootstrap(2 * n, 2 * n, True, seed, 4 * turn + t)[:n] > 0 for t in range(4)])
        for turn in range(turns)
    ]
    assert any((drawn == d).all() for d in draws)
    # leaf weights of the in-bag model are shares of the rows drawn
    model = joint.distribution.forest
    for t in range(4):
        tree = model.leaves.tree
        rows = np.exp(model.leaves.log_weight[tree == t]) * 4 / 0.999 * drawn[t].sum()
        assert rows == pytest.approx(np.rint(rows), abs=1e-6)
    background = np.exp(joint.tree_log_density(frame)[:, 4])
    for i in range(n):
        ours = forest.oob_log_density_[i]
        free = np.flatnonzero(~drawn[:, i])
        if len(free) == 0:
            assert np.isnan(ours)
            continue
        each = [np.exp(joint.tree_log_density(frame.iloc[[i]])[0, t]) * 4 for t in free]
        assert ours == pytest.approx(np.log(np.mean(each) + background[i]))
    assert np.nanmean(forest.oob_log_density_) < joint.log_density(frame).mean()


def test_out_of_bag_density_is_near_that_of_new_rows() -> None:
    train, test = make_frame(300, seed=1), make_frame(600, seed=2)
    forest = jf.AdversarialForest(30, random_state=0, oob_score=True).fit(train)
    assert not np.isnan(forest.oob_log_density_).any()
    inside, outside = forest.joint_.log_density(train).mean(), forest.joint_.log_density(test).mean()
    assert inside > outside + 0.2
    assert forest.oob_log_density_.mean() == pytest.approx(outside, abs=0.35)


def fitted_rows(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, **settings: object) -> dict:
    """The rows that each tree was grown on and that estimated its leaves."""
    seen: dict = {}

    def spy(
        forest: adversarial_forest.Discriminator, codes: np.ndarray, used: np.ndarray, *rest: object
    ) -> adversarial_forest.Discriminator:
        seen["used"] = np.array(used)
        return prune_forest(forest, codes, used, *rest)

    def spy_run(schema: Schema, ranks: Ranks, *rest: object) -> tuple:
        seen["codes"] = ranks.codes
        forest, accuracies = run(schema, ranks, *rest)
        seen["drawn"] = forest.drawn
        return forest, accuracies

    monkeypatch.setattr(adversarial_forest, "prune_forest", spy)
    monkeypatch.setattr(adversarial_forest, "run", spy_run)
    seen["joint"] = jf.AdversarialForest(4, random_state=0, **settings).fit(frame).joint_
    return seen


def test_honest_rows_are_disjoint(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=101)})
    seen = fitted_rows(frame, monkeypatch, leaf_rows="honest")
    used = seen["used"]
    assert used.shape == (4, 101)
    assert (used == used[0]).all()
    order = np.argsort(np.argsort(frame["x"].to_numpy()))  # values differ, so that ranks name the rows
    grown_on = np.isin(order, seen["codes"][0])
    assert grown_on.sum() == 50
    assert (grown_on != used[0]).all()
    rows = np.exp(seen["joint"].distribution.forest.leaves.log_weight[:-1]) * 4 / 0.999 * 51
    assert rows == pytest.approx(np.rint(rows))


def test_oob_rows_were_not_drawn(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = fitted_rows(frame, monkeypatch, leaf_rows="oob")
    assert (seen["used"] == ~seen["drawn"]).all()
    assert 0.2 < seen["used"].mean() < 0.8


@pytest.mark.parametrize(
    "settings",
    [
        {"n_estimators": 1},
        {"n_estimators": 1, "max_iters": 0, "epsilon": 0},
        {"min_samples_leaf": 1},
        {"min_samples_leaf": 10_000},
        {"max_depth": 2, "max_features": None},
        {"max_leaf_nodes": 4, "max_features": "log2"},
        {"bootstrap": False, "max_samples": 0.5, "max_features": 1},
        {"max_samples": 40, "max_features": 0.5},
        {"delta": 0.5},
        {"leaf": "normal_mle", "bounds": "local"},
        {"leaf": "uniform", "bounds": "global", "smoothing": 0},
        {"leaf": "uniform", "spread_rows": 0, "prior": "uniform"},
        {"leaf_rows": "honest", "leaf": "normal_mle"},
        {"leaf_rows": "oob", "smoothing": 0},
        {"kinds": {"k": "continuous", "x": "continuous"}, "min_spread": 0.1},
        {"kinds": {"k": "ordered"}, "early_stop": False, "max_iters": 3},
    ],
    ids=str,
)
def test_settings_give_models_that_pass_their_checks(frame: pd.DataFrame, settings: dict) -> None:
    from jointforest.models.box_forest.files import check_forest

    forest = jf.AdversarialForest(**({"n_estimators": 3, "random_state": 0} | settings)).fit(frame)
    model = forest.joint_.distribution.forest
    check_forest(model.schema, model.columns, model.trees, model.leaves, model.has_background)
    density = forest.joint_.log_density(frame)
    assert np.isfinite(density).all() or (settings.get("epsilon") == 0 and not np.isnan(density).any())
    if settings.get("min_samples_leaf") == 10_000:
        assert forest.joint_.n_leaves == 3
    if "max_depth" in settings:
        assert forest.joint_.n_leaves <= 3 * 4
    if settings.get("delta") == 0.5 or settings.get("max_iters") == 0:
        assert len(forest.oob_accuracy_) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be a whole number at least 1, got 0"),
        ({"n_estimators": 2.5}, "n_estimators must be a whole number"),
        ({"n_estimators": True}, "n_estimators must be a whole number"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be a whole number at least 1"),
        ({"max_depth": 0}, "max_depth must be a whole number at least 1 or None, got 0"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes must be 'auto', a whole number at least 2 or None, got 1"),
        ({"max_features": "all"}, "max_features must be 'sqrt', 'log2', None, .* got 'all'"),
        ({"max_features": 0}, "max_features must be"),
        ({"max_features": 1.5}, "max_features must be"),
        ({"max_features": True}, "max_features must be"),
        ({"max_samples": 0}, r"max_samples must be a whole number >= 1, a share in \(0, 1\] or None, got 0"),
        ({"max_samples": 0.0}, "max_samples must be a whole number >= 1"),
        ({"max_samples": 1.1}, "max_samples must be a whole number >= 1"),
        ({"max_samples": "half"}, "max_samples must be a whole number >= 1"),
        ({"max_samples": -1}, "max_samples must be a whole number >= 1"),
        ({"max_samples": True}, "max_samples must be a whole number >= 1"),
        ({"delta": -0.1}, "delta must be a number between 0 and 0.5"),
        ({"delta": 0.6}, "delta must be a number between 0 and 0.5"),
        ({"max_iters": -1}, "max_iters must be 'auto' or a whole number at least 0"),
        (
            {"leaf": "gamma"},
            "leaf must be one of 'auto', 'normal', 'uniform', 'normal_moments', 'normal_mle', 'quantile', 'chow_liu'",
        ),
        ({"bounds": "box"}, "bounds must be one of 'auto', 'no', 'local', 'global', got 'box'"),
        ({"smoothing": -1}, "smoothing must be a number at least 0"),
        ({"smoothing": float("nan")}, "smoothing must be a number at least 0, got nan"),
        ({"prior": "flat"}, "prior must be one of 'marginal', 'uniform'"),
        ({"spread_rows": -1}, "spread_rows must be a number at least 0"),
        ({"min_spread": 0}, "min_spread must be a number at least"),
        ({"epsilon": 1}, "epsilon must be a number between 0 and 0.5, got 1"),
        ({"leaf_rows": "some"}, "leaf_rows must be one of 'all', 'oob', 'honest'"),
        ({"oob_score": True, "leaf_rows": "oob"}, "oob_score=True needs leaf_rows='all'"),
        ({"n_jobs": 0}, "n_jobs must be None or a non-zero integer"),
        ({"kinds": {"z": "integer"}}, "kinds: there is no column 'z'"),
        ({"kinds": {"x": "number"}}, "kinds: column 'x': 'number' is no kind of column"),
        ({"random_state": "seed"}, "'seed' cannot be used to seed"),
    ],
)
def test_parameters_out_of_range(frame: pd.DataFrame, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jf.AdversarialForest(**settings).fit(frame)


@pytest.mark.parametrize(
    ("max_features", "expected"),
    [(None, 17), ("sqrt", 4), ("log2", 4), (3, 3), (99, 17), (1.0, 17), (0.5, 8), (0.01, 1), (np.int64(2), 2)],
)
def test_number_of_features(max_features: object, expected: int) -> None:
    assert count_features(max_features, 17) == expected
    assert count_features("log2", 1) == 1


def test_the_forest_beats_independent_columns() -> None:
    """On dependent columns, held out; one leaf for all rows has independent columns."""
    train, test = make_frame(300, seed=1), make_frame(300, seed=2)
    forest = jf.AdversarialForest(10, random_state=0).fit(train)
    independent = jf.AdversarialForest(1, min_samples_leaf=10_000, random_state=0).fit(train)
    assert forest.joint_.log_density(test).mean() > independent.joint_.log_density(test).mean() + 1.0
