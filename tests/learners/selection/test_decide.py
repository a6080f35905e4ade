"""What is decided from log-densities of held-out rows; budgets and what they allow."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.data.infer_schema import infer_schema
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
from jointforest.learners.selection.budget import budget_of, candidates, learn
from jointforest.learners.selection.choose import Compared, decide


def compared(log_density: np.ndarray, told_apart: tuple[float, ...] = (np.nan,) * 4) -> list[Compared]:
    names = candidates(budget_of("default"), 100, 2)
    assert len(names) >= log_density.shape[1]
    return [Compared(names[k], log_density[:, k], told_apart[k], 1.0, None) for k in range(log_density.shape[1])]


def test_the_most_probable_rows_win() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(-5, 1, 200)
    decision = decide(compared(np.column_stack([first, first + 1.0])), 4, 0)
    assert decision.weight.tolist() == [0.0, 1.0]
    assert "better by 0.250" in decision.why  # a nat in four columns


def test_a_mixture_wins_where_each_knows_other_rows() -> None:
    here = np.arange(200) % 2 == 0
    table = np.column_stack([np.where(here, -1.0, -9.0), np.where(here, -9.0, -1.0)])
    decision = decide(compared(table), 4, 0)
    assert decision.weight == pytest.approx([0.5, 0.5], abs=0.06)
    assert decision.mixture == pytest.approx(-1.0 - np.log(2), abs=0.02)
    assert "than that of the best alone" in decision.why


def test_a_mixture_that_gains_little_for_its_columns_is_not_worth_it() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal([-4.95, -5.0], 0.8, (4_000, 2))
    few, many = decide(compared(table), 4, 0), decide(compared(table), 40, 0)
    assert np.count_nonzero(few.weight) == 2
    assert many.weight.tolist() == [1.0, 0.0]
    assert few.mixture == many.mixture


def test_an_impossible_row_loses() -> None:
    table = np.full((10, 2), -3.0)
    table[4, 0] = -np.inf
    assert decide(compared(table), 2, 0).weight[1] > 0


def test_draws_that_are_told_apart_lose_whatever_their_log_density() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal([-4.0, -5.0, -5.5], 0.8, (400, 3))
    decision = decide(compared(table, (0.72, 0.98, 0.95)), 4, 0)
    assert decision.best == 1
    assert decision.weight[0] == 0.0
    assert "as hard to tell from the table's (score 0.98)" in decision.why
    decision = decide(compared(table, (0.72, 0.98, 0.30)), 4, 0)
    assert decision.weight.tolist() == [0.0, 1.0, 0.0]
    assert decision.why == "rows drawn are the hardest to tell from the table's (score 0.98; next 0.72)"


def test_of_draws_as_true_as_others_log_density_decides() -> None:
    table = np.tile([-4.0, -5.0], (400, 1))
    assert decide(compared(table, (0.94, 0.98)), 4, 0).weight.tolist() == [1.0, 0.0]
    assert decide(compared(table, (0.50, np.nan)), 4, 0).weight.tolist() == [1.0, 0.0]


def test_a_mixture_is_of_those_whose_draws_are_true() -> None:
    here = np.arange(200) % 2 == 0
    table = np.column_stack([np.full(200, -2.0), np.where(here, -1.0, -9.0), np.where(here, -9.0, -1.0)])
    decision = decide(compared(table, (0.5, 0.97, 0.98)), 4, 0)
    assert decision.weight == pytest.approx([0.0, 0.5, 0.5], abs=0.06)


def test_weights_are_not_found_where_few_rows_taught() -> None:
    here = np.arange(200) % 2 == 0
    table = np.column_stack([np.where(here, -1.0, -9.0), np.where(here, -9.0, -0.9)])
    decision = decide(compared(table), 4, 0, may_mix=False)
    assert decision.weight.tolist() == [0.0, 1.0]
    assert np.isnan(decision.mixture)


@pytest.mark.parametrize("n", [1, 3])
def test_few_rows_judge_without_a_mixture(n: int) -> None:
    table = np.tile([-2.0, -1.0], (n, 1))
    decision = decide(compared(table), 2, 0)
    assert decision.weight.tolist() == [0.0, 1.0]
    assert np.isnan(decision.mixture)


def test_one_candidate_is_chosen() -> None:
    assert decide(compared(np.zeros((5, 1))), 2, 0).weight.tolist() == [1.0]


def test_seconds_take_the_dearest_named_budget_within_them() -> None:
    assert [budget_of(s).n_states for s in (0.1, 5, 39, 40, 10_000)] == [128, 128, 128, 256, 256]
    assert [budget_of(s).n_members for s in (39, 40, 399, 400)] == [1, 1, 1, 4]
    assert budget_of(7).is_clock
    assert budget_of(7).seconds == 7.0
    assert not budget_of("best").is_clock


@pytest.mark.parametrize("wrong", ["slow", 0, -1, float("nan"), None, True, "5"])
def test_other_budgets_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="budget must be 'fast', 'default', 'best' or a number of seconds above 0"):
        budget_of(wrong)


def test_few_rows_have_fewer_states_and_a_clock_too() -> None:
    def states(budget: str, n: int, d: int) -> int:
        return int(candidates(budget_of(budget), n, d)[-1].learner.n_states)

    assert [states("default", n, 15) for n in (300, 4_096, 32_561, 10**6)] == [32, 256, 256, 256]
    assert states("fast", 32_561, 15) == 128
    assert int(candidates(budget_of(60), 10**7, 500)[-1].learner.n_states) == 16


def test_settings_are_chosen_once() -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    schema, learner = infer_schema(X), HiddenTreeForest(1, n_states=4)
    learn(learner, schema, X[:60], 0)
    chosen = learner.settings_
    assert chosen.n_states == 4
    learn(learner, schema, X[60:], 0)
    assert learner.settings_ is chosen
