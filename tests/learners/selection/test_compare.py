"""Candidates judged by draws beside the rows that they learned from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from jointforest.data.evidence import build
from jointforest.data.infer_schema import infer_schema
from jointforest.evaluation import two_sample_test
from jointforest.learners import rows
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
from jointforest.learners.rows import read_training_rows
from jointforest.learners.rules import reduce_table, wanted_rules
from jointforest.learners.selection.budget import Candidate, budget_of
from jointforest.learners.selection.choose import Compared, Split, Task, _splits, choose, compare_candidate
from jointforest.learners.selection.folds import Fold

RNG = np.random.default_rng(0)
LEVEL = RNG.integers(0, 4, 2_500)
X = np.column_stack([LEVEL, np.where(RNG.random(2_500) < 0.9, LEVEL, RNG.integers(0, 4, 2_500))]).astype(np.float64)
SCHEMA = infer_schema(X)


def by_states(n_states: int, rows: int = 2_000, folds: int = 1, objective: str = "draws") -> Compared:
    learner = HiddenTreeForest(n_states=n_states, max_leaf_nodes=1, start="shared", smoothing=30.0, max_iter=2)
    splits = [Split(X[:rows], X[rows:])] * folds
    task = Task(SCHEMA, X, None, budget_of("default"), 0, 0.0, print, objective=objective)
    return compare_candidate(Candidate("", learner, 1.0), task, splits, task.pairs())


def test_draws_that_lose_dependence_are_told_apart() -> None:
    assert by_states(1).told_apart < 0.6
    assert by_states(8).told_apart > 0.85


def test_few_rows_and_folds_do_not_tell() -> None:
    assert np.isnan(by_states(2, rows=1_999).told_apart)
    assert np.isnan(by_states(2, folds=2).told_apart)
    assert np.isnan(by_states(2, objective="likelihood").told_apart)


def test_the_score_does_not_depend_on_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = by_states(2).told_apart
    monkeypatch.setattr(two_sample_test, "find_spec", lambda name: None)
    assert by_states(2).told_apart == found


def test_models_of_given_folds_are_those_of_the_chosen_learner() -> None:
    number, cells = np.arange(120), X[:120]
    folds = tuple(Fold(number[number % 2 != k], number[number % 2 == k]) for k in range(2))
    task = Task(SCHEMA, cells, None, budget_of("fast"), 0, 0.0, lambda text: None, folds=folds)
    chosen = choose(task)
    assert chosen.held_out == "120 rows, each held out once in 2 folds" and len(chosen.of_folds) == 2
    evidence = build(SCHEMA, cells)
    for fold, model in zip(folds, chosen.of_folds, strict=True):
        again = chosen.recipe.learn(SCHEMA, cells[fold.learn], task.seed_of_learners())
        np.testing.assert_array_equal(model.log_density(evidence), again.log_density(evidence))
    assert choose(task._replace(folds=())).of_folds == ()


@pytest.mark.parametrize(
    ("n", "budget", "held_out"),
    [
        (150, "fast", "150 rows, each held out once in 5 folds"),
        (500, "fast", "300 of 500 rows, each held out once in 3 folds"),
        (700, "fast", "140 held-out rows, learned from 560"),
        (700, "default", "700 rows, each held out once in 5 folds"),
    ],
)
def test_as_many_folds_are_held_out_as_a_budget_needs(n: int, budget: str, held_out: str) -> None:
    cells = np.random.default_rng(0).normal(size=(n, 2))
    task = Task(infer_schema(cells), cells, None, budget_of(budget), 0, 0.0, lambda text: None)
    splits, said = _splits(task)
    assert said == held_out
    held = np.concatenate([split.held for split in splits])
    assert len(np.unique(held, axis=0)) == len(held)
    for split in splits:
        both = np.concatenate([split.learn, split.held])
        np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(cells, axis=0))


def test_forests_are_no_candidates_where_they_are_not_wanted() -> None:
    task = Task(SCHEMA, X[:400], None, budget_of("fast"), 0, 0.0, lambda text: None)
    every, hidden = (one.candidates(one.budget) for one in (task, task._replace(with_forests=False)))
    assert [one.name for one in every if isinstance(one.learner, HiddenTreeForest)] == [one.name for one in hidden]
    assert len(every) > len(hidden)


def test_combinations_that_no_row_to_learn_from_has_are_not_asked_about() -> None:
    rng = np.random.default_rng(0)
    plan, seats = rng.choice(list("abc"), 200), rng.integers(0, 3, 200)
    price = 10 * (np.char.encode(plan).view(np.uint8).reshape(200, -1)[:, 0] - 96.0) + seats
    frame = pd.DataFrame({"plan": plan, "seats": seats, "price": price, "size": rng.normal(size=200).round(1)})
    table = read_training_rows(frame, None)
    wanted = wanted_rules("auto", table.schema, table.X)
    task = Task(wanted.schema, table.X, None, budget_of("fast"), 0, 0.0, print, reduce_table(wanted, table.X))
    assert task.reduced is not None and set(task.reduced.coordinates.compounds.values()) == {(0, 1, 2)}
    is_held = (plan == "a") & (seats == 0)
    found = task.known_cells(table.X[~is_held], table.X[is_held])
    assert np.isnan(found[:, :3]).all() and not np.isnan(found[:, 3]).any()
    np.testing.assert_array_equal(task.known_cells(table.X, table.X), table.X)
    holes = table.X.copy()
    holes[::2, 1] = np.nan  # what is known of a combination stays
    np.testing.assert_array_equal(task.known_cells(table.X, holes), holes)
    assert task.asked() == [0, 1, 2, 3]


def test_missing_cells_of_a_fold_are_drawn_once_for_all_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = X[:150].copy()
    cells[::9, 1] = np.nan
    task = Task(SCHEMA, cells, None, budget_of("fast"), 0, 0.0, lambda text: None)
    splits, known = _splits(task)[0], task.candidates(task.budget)
    assert sum(not isinstance(one.learner, HiddenTreeForest) for one in known) == 2
    alone = [compare_candidate(one, task, splits, task.pairs()).log_density for one in known]
    drawn, first_joint = [], rows.first_joint
    monkeypatch.setattr(rows, "first_joint", lambda *about: (drawn.append(1), first_joint(*about))[1])
    completed = [task.completed(split) for split in splits]
    together = [compare_candidate(one, task, completed, task.pairs()).log_density for one in known]
    assert len(drawn) == len(splits)
    np.testing.assert_array_equal(together, alone)
