"""What learners are expected to take, and which there are for tables large and small."""

from __future__ import annotations

import pytest

from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
from jointforest.learners.selection.budget import budget_of, candidates


@pytest.mark.parametrize("budget", [5.0, "default"])
def test_a_forest_takes_as_long_as_its_trees_and_columns(budget: str | float) -> None:
    few, many = (candidates(budget_of(budget), 10**6, d)[0] for d in (4, 40))
    assert few.learner.n_estimators == many.learner.n_estimators
    assert many.seconds_per_row == pytest.approx(10 * few.seconds_per_row)
    assert few.seconds_per_row == pytest.approx(
        candidates(budget_of(5.0), 10**6, 4)[0].seconds_per_row / 10 * few.learner.n_estimators
    )


@pytest.mark.parametrize(("budget", "members"), [("default", 1), ("best", 4)])
@pytest.mark.parametrize("n", [12_000, 32_561, 10**6])
def test_hidden_trees_of_many_rows_are_what_the_learner_is_by_default(budget: str, members: int, n: int) -> None:
    learner = candidates(budget_of(budget), n, 15)[-1].learner
    assert learner.get_params() == HiddenTreeForest(members, n_states=256).get_params()


def test_many_cells_have_one_candidate_by_the_fast_budget() -> None:
    (only,) = candidates(budget_of("fast"), 5_000, 15)
    assert only.learner.get_params() == HiddenTreeForest(n_states=128, max_iter=3).get_params()
    assert candidates(budget_of("fast"), 10**6, 15)[0].learner.max_iter == 2
    assert len(candidates(budget_of("fast"), 2_600, 15)) == 3
    assert len(candidates(budget_of("fast"), 1_000, 21)) == 2  # no joint tree of so many columns
    assert len(candidates(budget_of("fast"), 3_000, 150)) == 1
    assert len(candidates(budget_of(5.0), 5_000, 15)) == 3


def test_more_trees_where_there_is_time() -> None:
    learners = [candidates(budget_of("default"), n, 12)[-1].learner for n in (1_999, 2_000, 5_000, 9_000, 20_000)]
    assert [one.n_estimators for one in learners] == [4, 8, 4, 2, 1]


def test_the_clock_takes_trees_away_before_states() -> None:
    learners = [candidates(budget_of(seconds), 32_561, 15)[-1].learner for seconds in (10_000, 401, 41)]
    assert [(one.n_estimators, one.n_states) for one in learners] == [(4, 256), (4, 256), (1, 128)]
    few = candidates(budget_of(401), 200_000, 30)[-1].learner
    assert (few.n_estimators, few.n_states) == (1, 256)


def test_hidden_trees_have_the_objective() -> None:
    few, many = (candidates(budget_of("default"), n, 15, "likelihood")[-1] for n in (1_000, 12_000))
    assert few.learner.objective == "likelihood"
    assert many.learner.get_params() == HiddenTreeForest(objective="likelihood").get_params()
    assert many.name == "1 hidden tree of up to 256 states"
    assert (
        many.seconds_per_row > 2 * candidates(budget_of("default"), 12_000, 15)[-1].seconds_per_row
    )  # each number is tried
    (fast,) = candidates(budget_of("fast"), 12_000, 15, "likelihood")
    assert (fast.learner.objective, fast.learner.n_states) == ("likelihood", 128)
    assert fast.seconds_per_row == candidates(budget_of("fast"), 12_000, 15)[0].seconds_per_row
