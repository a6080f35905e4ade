"""Members against sums over all completions of a row, and boosted trees against scikit-learn's own answers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import jointforest as jf
from jointforest.data.evidence import build
from jointforest.data.frames import encode
from jointforest.estimators.predictor import boosting
from jointforest.estimators.predictor.boosting import (
    BoostingTable,
    HistBoosting,
    Labelled,
    adopted,
    boosted,
    boosting_table,
    grow_boosting,
    try_shape,
    weights_towards_complete,
)
from jointforest.estimators.predictor.constants import FIXED, Shape
from jointforest.estimators.predictor.learn import hidden_copies, hide_at_random, hide_blocks, validation_rows
from jointforest.estimators.predictor.members import (
    Conditional,
    ExpectedBoosting,
    ask_members,
    grid_of,
    quantiles_of,
)
from jointforest.estimators.predictor.pooling import LEVELS
from jointforest.learners.generative.targets import read_training

SHAPE = Shape(leaf_nodes=4, leaf_rows=5, l2=1.0, features=1.0)
LEVELS_OF = {"a": ["p", "q"], "b": ["r", "s", "t"], "c": ["u", "v"], "y": ["no", "yes"]}


def levels(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Four dependent columns of levels, the target y last."""
    rng = np.random.default_rng(seed)
    z = rng.random(n)
    code = {name: np.minimum((0.7 * z + 0.3 * rng.random(n)) * len(of), len(of) - 1) for name, of in LEVELS_OF.items()}
    return pd.DataFrame({name: np.array(of)[code[name].astype(int)] for name, of in LEVELS_OF.items()})


@pytest.fixture(scope="module")
def joint() -> jf.Joint:
    return (
        jf.HiddenTreeForest(n_states=4, max_iter=2, smoothing=1.0, max_leaf_nodes=1, random_state=0)
        .fit(levels())
        .joint_
    )


@pytest.fixture(scope="module")
def every(joint: jf.Joint) -> tuple[np.ndarray, np.ndarray]:
    """All complete rows as codes (24, 4), and their probabilities."""
    rows = list(product(*LEVELS_OF.values()))
    frame = pd.DataFrame(rows, columns=list(LEVELS_OF))
    return encode(joint.schema, frame)[0], np.exp(joint.log_density(frame))


def holed(every: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Rows of features with each pattern of missing cells, the target never known."""
    masks = np.array(list(product([False, True], repeat=3)))
    cells = np.repeat(every[0][[0, 9, 22]], len(masks), axis=0)
    cells[:, :3][np.tile(masks, (3, 1))] = np.nan
    cells[:, 3] = np.nan
    return cells


def fits(row: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Which complete rows agree with what is known of a row."""
    return np.all(np.isnan(row) | (cells == row), axis=1)


def test_the_joint_answers_by_the_sum_over_completions(joint: jf.Joint, every: tuple[np.ndarray, np.ndarray]) -> None:
    cells, p = every
    rows = holed(every)
    known = joint.distribution.observe(build(joint.schema, rows))
    answer = Conditional(joint.distribution, 1.0, np.empty(0)).answer(known, np.empty((0, 0, 0)))
    for row, found in zip(rows, answer.value, strict=True):
        share = p * fits(row, cells)
        wanted = [share[cells[:, 3] == k].sum() / share.sum() for k in range(2)]
        np.testing.assert_allclose(found, wanted, rtol=1e-4)  # tables of hidden trees are in float32


def test_expected_boosting_is_the_mean_over_completions(joint: jf.Joint, every: tuple[np.ndarray, np.ndarray]) -> None:
    cells, p = every
    table, seen = boosting_table(joint.schema), encode(joint.schema, levels(seed=1))[0]
    model, ranks = grow_boosting(table, SHAPE, Labelled(seen[:, :3], seen[:, 3]), 2, 10, 0)
    trees, rows = boosted(table, model, ranks), holed(every)
    own = model.predict_proba(cells[:, :3])
    evidence = build(joint.schema, rows)
    member = {"it": ExpectedBoosting(trees, joint.distribution)}
    answers = np.stack([ask_members(member, joint.distribution, evidence, seed)["it"].value for seed in range(40)])
    for i, row in enumerate(rows):
        share = p * fits(row, cells)
        wanted = share @ own / share.sum()
        n_missing = int(np.isnan(row[:3]).sum())
        if n_missing <= 1:  # summed, not drawn
            np.testing.assert_allclose(answers[:, i], np.tile(wanted, (40, 1)), rtol=1e-4)
        else:
            error = own.std() / np.sqrt(40 * FIXED.draws)
            np.testing.assert_allclose(answers[:, i].mean(axis=0), wanted, atol=5 * error)


def wide(n: int, n_levels: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    level = rng.integers(0, n_levels, n)
    frame = pd.DataFrame({"c": [f"l{k}" for k in level], "x": rng.normal(size=n), "o": rng.integers(0, 3, n)})
    frame["o"] = pd.Categorical(frame["o"].map({0: "low", 1: "mid", 2: "top"}), ["low", "mid", "top"], ordered=True)
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    return frame, np.sin(level / 20) + frame["x"].fillna(0.5).to_numpy() + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize(("n_levels", "in_order"), [(10, False), (10, True), (300, False)])
def test_boosted_trees_answer_as_scikit_learn(n_levels: int, in_order: bool) -> None:
    """Missing cells, columns of many levels, levels that no row to learn from has."""
    frame, y = wide(1_500, n_levels, seed=2)
    training = read_training(frame, y, "continuous")
    table, X = boosting_table(training.schema), training.X
    rows = Labelled(X[:1_000, :-1], X[:1_000, -1])
    model, ranks = grow_boosting(table, replace(SHAPE, in_order=in_order), rows, 0, 20, 0)
    assert (model.is_categorical_ is None) == (in_order or n_levels > FIXED.most_levels)
    assert (0 in ranks) == (n_levels > FIXED.most_levels)
    numbers = X[:, :-1].copy()
    if ranks:
        known = ~np.isnan(numbers[:, 0])
        numbers[known, 0] = ranks[0][numbers[known, 0].astype(int)]
    evidence = build(training.schema, np.column_stack([X[:, :-1], np.full(len(X), np.nan)]))
    answer = boosted(table, model, ranks).native(evidence)
    np.testing.assert_allclose(answer[:, 0], model.predict(numbers))
    first = boosted(table, model, ranks, n_iter=7).native(evidence)[:, 0]
    np.testing.assert_allclose(first, list(model.staged_predict(numbers))[6])


def test_mean_target_orders_many_levels() -> None:
    frame, y = wide(6_000, 300, seed=3)
    training = read_training(frame, y, "continuous")
    _, ranks = grow_boosting(
        boosting_table(training.schema), SHAPE, Labelled(training.X[:, :-1], training.X[:, -1]), 0, 1, 0
    )
    own = np.array([np.sin(int(level[1:]) / 20) for level in training.schema.columns[0].levels])
    assert np.corrcoef(ranks[0], own)[0, 1] > 0.9


def test_several_classes_come_in_the_order_of_the_target(joint: jf.Joint) -> None:
    frame = levels(seed=4)
    training = read_training(frame.drop(columns="b"), frame["b"], "categorical")
    table = boosting_table(training.schema)
    model, ranks = grow_boosting(table, SHAPE, Labelled(training.X[:, :-1], training.X[:, -1]), 3, 5, 0)
    evidence = build(training.schema, np.column_stack([training.X[:, :-1], np.full(len(frame), np.nan)]))
    np.testing.assert_allclose(boosted(table, model, ranks).native(evidence), model.predict_proba(training.X[:, :-1]))


def test_a_model_with_other_classes_is_refused() -> None:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    frame = levels(seed=5)
    X, y = pd.DataFrame({"x": np.arange(400.0)}), frame["y"]
    schema = read_training(X, y, "categorical").schema
    adopted(DecisionTreeClassifier(max_depth=1).fit(X, y), schema)
    with pytest.raises(ValueError, match=r"has the classes False, True, y has 'no', 'yes'; give y with the labels"):
        adopted(DecisionTreeClassifier(max_depth=1).fit(X, y == "yes"), schema)
    with pytest.raises(ValueError, match="predicts numbers, column 'y' is"):
        adopted(DecisionTreeRegressor(max_depth=1).fit(X, y == "yes"), schema)


def test_expected_boosting_without_support_is_native(joint: jf.Joint) -> None:
    """Where the joint gives a row probability 0, the trees answer themselves."""

    class Nowhere:
        schema = joint.schema

        def observe(self, evidence):
            nowhere = np.full((len(evidence.value) * FIXED.draws, 4), np.nan)
            return SimpleNamespace(evidence=evidence, completions=lambda count, seed: nowhere)

    table, seen = boosting_table(joint.schema), encode(joint.schema, levels(seed=6))[0]
    model, ranks = grow_boosting(table, SHAPE, Labelled(seen[:, :3], seen[:, 3]), 2, 3, 0)
    trees = boosted(table, model, ranks)
    evidence = build(joint.schema, np.full((1, 4), np.nan))
    answer = ask_members({"it": ExpectedBoosting(trees, Nowhere())}, Nowhere(), evidence, 0)["it"]
    np.testing.assert_array_equal(answer.value, trees.native(evidence))


def test_quantiles_of_a_cdf() -> None:
    grid = np.linspace(-5, 5, 401)
    found = quantiles_of(norm.cdf(grid[1:-1], [[0.0], [1.0]], [[1.0], [0.5]]), grid)
    np.testing.assert_allclose(found[0], norm.ppf(LEVELS), atol=0.02)
    np.testing.assert_allclose(found[1], 1 + 0.5 * norm.ppf(LEVELS), atol=0.02)


@pytest.mark.parametrize("y", [np.array([2.0, 2.0, 2.0]), np.arange(1_000.0), np.r_[np.zeros(900), np.arange(100)]])
@pytest.mark.parametrize("step", [0.0, 1.0])
def test_grids_rise_and_hold_all_values(y: np.ndarray, step: float) -> None:
    grid = grid_of(y, step)
    assert (np.diff(grid) > 0).all() and grid[0] < y.min() and grid[-1] > y.max()


def test_shares_are_hidden() -> None:
    rng = np.random.default_rng(0)
    for hide in (hide_at_random, hide_blocks):
        for rate in (0.0, 0.25, 0.9, 1.0):
            mask = hide(4_000, 7, rate, rng)
            assert mask.mean() == pytest.approx(rate, abs=0.02)
        mask = hide(1_000, 5, np.linspace(0, 1, 1_000), rng)
        assert mask[:100].mean() < 0.1 and mask[-100:].mean() > 0.9
    block = hide_blocks(500, 6, 0.5, rng)
    changes = (block != np.roll(block, 1, axis=1)).sum(axis=1)
    assert set(changes.tolist()) <= {0, 2}


def test_validation_rows_are_there_at_every_rate() -> None:
    """All of them without hidden cells, and no more than wanted at the other rates."""
    rows, rates = np.array([4, 7, 9]), np.array(FIXED.rates)
    for most, n in ((3, 3), (5, 3), (2, 2)):
        hidden = validation_rows(rows, 50, np.random.default_rng(0), most)
        assert hidden.row[:3].tolist() == rows.tolist() and not hidden.mask[:3].any()
        assert hidden.rate.tolist() == np.repeat(rates, [3, *[n] * (len(rates) - 1)]).tolist()
        others = hidden.row[3:].reshape(-1, n)
        assert all(len(set(own)) == n and set(own) <= set(rows.tolist()) for own in others.tolist())
        np.testing.assert_allclose(hidden.mask.mean(axis=1), hidden.rate, atol=0.2)


def test_copies_hide_any_share() -> None:
    rows = np.array([4, 7, 9])
    learn = hidden_copies(rows, 50, np.random.default_rng(0))
    assert learn.row.tolist() == rows.tolist() * (FIXED.copies + 1) and not learn.mask[:3].any()
    np.testing.assert_allclose(learn.mask.mean(axis=1), learn.rate, atol=0.25)


def test_levels_are_in_order_where_that_validates_better() -> None:
    """The target rises with the levels in one table; in the other their order tells nothing."""
    rng = np.random.default_rng(5)
    level = rng.integers(0, 26, 3_000)
    frame = pd.DataFrame({"c": [f"l{k:02d}" for k in level]})
    for target, wanted in ((level / 26, True), (rng.permutation(26)[level] % 2.0, False)):
        y = target + rng.normal(size=3_000)
        training = read_training(frame, y, "continuous")
        third = [Labelled(training.X[rows, :-1], training.X[rows, -1]) for rows in np.split(np.arange(3_000), 3)]
        boosting = HistBoosting(boosting_table(training.schema), 0, 0)
        trees, settings = boosting.cross_fit([(third[0], third[1]), (third[1], third[2])])
        assert len(trees) == 2 and settings is not None and settings[0].in_order == wanted
        again = boosting.cross_fit([(third[2], third[0])], settings)[1]
        assert again is not None and again[0] == settings[0]


def test_losses_are_read_at_fewer_missing_cells() -> None:
    """Of losses that are a line in the share of missing cells, exactly; not too far from the rows that are there."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 6)) < 0.3, np.nan, 0.0)
    share = np.isnan(X).mean(axis=1)
    weight = weights_towards_complete(X)
    assert weight.mean() == pytest.approx(1.0)
    assert (weight * (2.0 + 3.0 * share)).mean() == pytest.approx(2.0 + 3.0 * share.mean() / 2)
    wide = np.where(rng.random((400, 900)) < 0.3, np.nan, 0.0)
    share = np.isnan(wide).mean(axis=1)
    there = (weights_towards_complete(wide) * share).mean()
    assert there == pytest.approx(share.mean() - 2.0 * share.std()) and (weights_towards_complete(wide) < 0).any()
    np.testing.assert_array_equal(weights_towards_complete(np.zeros((5, 2))), 1.0)


def test_trees_in_expectation_are_chosen_by_the_loss_of_more_complete_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the value of a least squares line through the losses of validation rows, at half the mean missing share."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(900, 3)), columns=list("abc"))
    y = np.where(np.sin(2 * frame["a"]) + frame["c"] > 0.5, "yes", "no")
    training = read_training(frame.mask(rng.random(frame.shape) < 0.3), y, "categorical")
    rows, table = Labelled(training.X[:, :-1], training.X[:, -1]), boosting_table(training.schema)
    held = rows.take(np.arange(600, 900))
    pairs = [(rows.take(np.arange(0, 600)), held)]
    trial = try_shape(table, SHAPE, pairs, 2, 0, True)[0]
    share, own = np.isnan(held.X).mean(axis=1), (np.arange(300), held.y.astype(int))
    wanted = []
    for p in trial.model.staged_predict_proba(held.X):
        slope, at_zero = np.polyfit(share, -np.log(p[own]), 1)
        wanted.append(300 * (at_zero + slope * share.mean() / 2))
    np.testing.assert_allclose(trial.loss, wanted, rtol=1e-6)
    monkeypatch.setattr(boosting, "FIXED", replace(FIXED, shapes=(SHAPE,)))
    (_, for_complete), (trees, as_they_are) = HistBoosting(table, 2, 0).cross_fit_twice(pairs)
    assert for_complete == (SHAPE, 1 + int(np.argmin(wanted)))
    assert as_they_are == (SHAPE, 1 + int(trial.plain.argmin()))
    evidence = build(training.schema, np.column_stack([held.X, np.full(300, np.nan)]))
    staged = list(trial.model.staged_predict_proba(held.X))
    np.testing.assert_allclose(trees[0].native(evidence), staged[int(trial.plain.argmin())])


@pytest.mark.parametrize(("n", "n_tried"), [(200, 1), (400, 3)])
def test_some_rows_choose_the_shape(n: int, n_tried: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As few as wanted; then all rows learn, with that shape. Of few rows a single shape is tried."""
    frame, y = wide(600, 8, seed=8)
    training = read_training(frame, y, "continuous")
    parts = [Labelled(training.X[rows, :-1], training.X[rows, -1]) for rows in np.split(np.arange(600), [450])]
    seen: list[tuple[int, Shape]] = []

    def counted(table: BoostingTable, shape: Shape, rows: Labelled, *others: Any) -> Any:
        seen.append((len(rows.y), shape))
        return grow_boosting(table, shape, rows, *others)

    monkeypatch.setattr(boosting, "grow_boosting", counted)
    monkeypatch.setattr(boosting, "FIXED", replace(FIXED, shape_rows=n, most_iterations=50))
    trees, settings = HistBoosting(boosting_table(training.schema), 0, 0).cross_fit([(parts[0], parts[1])])
    assert [rows for rows, _ in seen] == [n] * n_tried + [450] and settings is not None
    assert seen[-1][1] == settings[0] and seen[-1][1] in [shape for _, shape in seen[:-1]] and len(trees) == 1


def test_an_ordered_column_is_a_number_to_boosted_trees() -> None:
    frame, y = wide(300, 5, seed=7)
    table: BoostingTable = boosting_table(read_training(frame, y, "continuous").schema)
    assert table.is_ordered.tolist() == [False, True, True] and table.n_levels.tolist() == [5, 0, 3]
