"""Additive models against sums cell by cell, against the truth of generated tables, and against enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointforest as jf
from jointforest.data.evidence import build
from jointforest.data.frames import encode
from jointforest.estimators.predictor import additive
from jointforest.estimators.predictor.additive import Additive, AdditiveLearner
from jointforest.estimators.predictor.boosting import BoostingTable, Labelled, boosting_table
from jointforest.estimators.predictor.constants import FIXED
from jointforest.estimators.predictor.members import ExpectedAdditive, ask_members
from jointforest.learners.generative.targets import read_training

from ...oracle import additive as oracle


def learner(X: pd.DataFrame, y: np.ndarray, kind: str) -> tuple[AdditiveLearner, Labelled]:
    training = read_training(X, y, kind)
    n_classes = len(training.schema.columns[-1].levels) if kind == "categorical" else 0
    rows = Labelled(training.X[:, :-1], training.X[:, -1])
    return AdditiveLearner(boosting_table(training.schema), n_classes, 0), rows


def mixed(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=n), "w": rng.exponential(size=n), "c": rng.choice(list("pqr"), n)})


def columns_of(model: Additive) -> list[tuple[list[float], list[list[float]]]]:
    ends = zip(model.start[:-1], model.start[1:], strict=True)
    return [(model.point[a:b].tolist(), model.effect[a:b].tolist()) for a, b in ends]


@given(seed=st.integers(0, 1_000))
@settings(max_examples=20, deadline=None)
def test_totals_are_sums_over_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    knots = [np.unique(rng.integers(-5, 6, 4)).astype(float), np.arange(3.0), rng.normal(size=1)]
    start = np.concatenate([[0], np.cumsum([len(one) for one in knots])])
    A = int(rng.integers(1, 4))
    model = Additive(rng.normal(size=A), start, np.concatenate(knots), rng.normal(size=(int(start[-1]), A)))
    X = np.column_stack([rng.uniform(-8, 8, 50), rng.integers(0, 3, 50), rng.normal(size=50)])
    X = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    X[0, 0] = knots[0][-1]
    is_level = np.array([False, True, False])
    wanted = np.array([oracle.total_of(model.base.tolist(), columns_of(model), row) for row in X.tolist()])
    np.testing.assert_allclose(model.total(X, is_level), wanted, atol=1e-12)
    if A > 1:
        answers = np.array([oracle.probabilities(row) for row in wanted.tolist()])
        np.testing.assert_allclose(model.answer(X, is_level), answers, atol=1e-12)


def test_a_straight_line_is_found_and_goes_on_beyond_the_rows() -> None:
    frame = mixed(2_000, seed=1)
    effect = frame["c"].map({"p": 0.0, "q": 2.0, "r": -1.0}).to_numpy()
    noise = np.random.default_rng(2).normal(size=len(frame))
    y = 3.0 * frame["x"].to_numpy() - frame["w"].to_numpy() + effect + 0.1 * noise
    one, rows = learner(frame, y, "continuous")
    is_level = one.table.is_level
    model = one.learn(rows, 1.0)
    error = model.answer(rows.X, is_level)[:, 0] - y
    assert error.std() < 0.12
    farther = rows.X[:1].copy()
    farther[0, 0] = rows.X[:, 0].max() + 2.0
    at_end = farther.copy()
    at_end[0, 0] = rows.X[:, 0].max()
    step = model.answer(farther, is_level) - model.answer(at_end, is_level)
    assert step[0, 0] == pytest.approx(6.0, rel=0.15)
    farther[0, 0] = 1e300
    assert np.isfinite(model.answer(farther, is_level)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_odds_of_classes_are_found(n_classes: int) -> None:
    frame = mixed(20_000, seed=3)
    rng = np.random.default_rng(4)
    effect = frame["c"].map({"p": 0.0, "q": 2.0, "r": -1.0}).to_numpy()
    score = np.column_stack([np.zeros(len(frame)), np.abs(frame["x"]) + effect, -frame["w"]])[:, :n_classes]
    odds = np.exp(score)
    truth = odds / odds.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.random((len(frame), 1))).sum(axis=1)
    one, rows = learner(frame, np.array(["a", "b", "c"])[y], "categorical")
    models, penalty = one.cross_fit([(rows.take(np.arange(0, 15_000)), rows.take(np.arange(15_000, 20_000)))])
    assert penalty in FIXED.penalties
    found = models[0].answer(rows.X, one.table.is_level)
    assert np.abs(found - truth).mean() < 0.02


def test_a_larger_penalty_is_chosen_where_nothing_is_told() -> None:
    frame = pd.DataFrame(np.random.default_rng(5).normal(size=(120, 10)), columns=[f"x{j}" for j in range(10)])
    one, rows = learner(frame, np.resize(["a", "b"], 120), "categorical")
    pairs = [(rows.take(np.arange(0, 80)), rows.take(np.arange(80, 120)))]
    assert one.cross_fit(pairs)[1] == max(FIXED.penalties)


@pytest.mark.parametrize("kind", ["categorical", "continuous"])
def test_hard_columns(kind: str) -> None:
    """Constant, all missing, huge, tiny, two values, many levels: finite answers, also of cells never seen."""
    rng = np.random.default_rng(6)
    n = 200
    frame = pd.DataFrame(
        {
            "constant": np.ones(n),
            "huge": rng.choice([-1e150, 0.0, 1e150], n),
            "tiny": rng.normal(size=n) * 1e-138,
            "two": rng.choice([0.25, 0.5], n),
            "many": [f"l{k}" for k in rng.integers(0, 150, n)],
            "one": "only",
        }
    )
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    y = rng.choice(["a", "b"], n) if kind == "categorical" else rng.normal(size=n) * 1e6
    one, rows = learner(frame, y, kind)
    rows = Labelled(np.column_stack([rows.X, np.full(n, np.nan)]), rows.y)  # a column without a known cell
    table = BoostingTable(one.table.columns, np.append(one.table.n_levels, 0), np.append(one.table.is_ordered, False))
    model = one._replace(table=table).learn(rows, 1.0)
    X = np.vstack(
        [
            rows.X,
            np.full((1, 7), np.nan),
            np.where(table.is_level, 0.0, -1e150),
            np.where(table.is_level, 0.0, 1e150),
        ]
    )
    answer = model.answer(X, table.is_level)
    assert np.isfinite(answer).all()


def test_of_many_rows_each_class_and_frequent_level_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive, "FIXED", replace(FIXED, additive_rows=60, levels_alone=2))
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"x": rng.normal(size=3_000), "c": rng.choice(list("ppppqqqrs"), 3_000)})
    y = np.where(frame["x"] > 0, "a", "b").astype(object)
    y[[5, 6]] = "rare"
    one, rows = learner(frame, y, "categorical")
    model = one.learn(rows, 1.0)
    answer = model.answer(rows.X, one.table.is_level)
    assert answer.shape == (3_000, 3) and (answer[:, 2] < 0.2).all()
    assert (answer[:, :2].argmax(axis=1) == rows.y)[y != "rare"].mean() > 0.9
    effects = model.effect[model.start[1] :]
    assert (effects[2] == effects[3]).all() and (effects[0] != effects[1]).any()


def test_expected_answers_are_means_over_completions() -> None:
    names = {"a": ["p", "q"], "b": ["r", "s", "t"], "c": ["u", "v"], "y": ["no", "yes"]}
    rng = np.random.default_rng(7)
    z = rng.random(400)
    code = {name: np.minimum((0.7 * z + 0.3 * rng.random(400)) * len(of), len(of) - 1) for name, of in names.items()}
    frame = pd.DataFrame({name: np.array(of)[code[name].astype(int)] for name, of in names.items()})
    hidden = jf.HiddenTreeForest(n_states=4, max_iter=2, smoothing=1.0, max_leaf_nodes=1, random_state=0)
    joint = hidden.fit(frame).joint_
    complete = pd.DataFrame(list(product(*names.values())), columns=list(names))
    cells, p = encode(joint.schema, complete)[0], np.exp(joint.log_density(complete))
    one, rows = learner(frame[["a", "b", "c"]], frame["y"].to_numpy(), "categorical")
    model, is_level = one.learn(rows, 1.0), one.table.is_level
    answers_of_all = model.answer(cells[:, :3], is_level)
    for known in product([False, True], repeat=3):
        row = np.append(np.where(known, cells[9, :3], np.nan), np.nan)
        share = p * np.all(np.isnan(row) | (cells == row), axis=1)
        evidence = build(joint.schema, np.tile(row, (1, 1)))
        member = {"it": ExpectedAdditive(model, is_level)}
        found = [ask_members(member, joint.distribution, evidence, seed)["it"].value[0] for seed in range(40)]
        error = answers_of_all.std() / np.sqrt(40 * FIXED.draws)
        wanted = share @ answers_of_all / share.sum()
        np.testing.assert_allclose(np.mean(found, axis=0), wanted, atol=5 * error if not all(known) else 1e-9)
