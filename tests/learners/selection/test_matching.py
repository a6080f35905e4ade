"""The distance of draws to held-out rows, and the weight that it gives a candidate for draws."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from jointforest.data.schema import Column, Schema
from jointforest.learners.selection.budget import budget_of, candidates
from jointforest.learners.selection.choose import Compared, decide
from jointforest.learners.selection.matching import is_nearer, matched_distances, matching_costs, spreads

SCHEMA = Schema(
    (Column("x", "continuous", "float64"), Column("y", "categorical", "object", levels=("a", "b"))), "pandas"
)


def test_costs_are_sums_over_known_cells() -> None:
    drawn = np.array([[0.0, 1.0], [2.0, 0.0], [np.nan, 0.0]])  # a rule may make a drawn cell missing
    held = np.array([[4.0, 1.0], [np.nan, 1.0], [1.0, np.nan], [np.nan, np.nan]])
    wanted = [[2.0, 0.0, 0.5, 0.0], [2.0, 1.0, 0.5, 0.0], [2.0, 1.0, 1.0, 0.0]]
    np.testing.assert_allclose(matching_costs(SCHEMA, drawn, held, np.array([2.0, 1.0])), wanted)


def test_spreads_are_standard_deviations_of_known_numbers() -> None:
    cells = np.array([[0.0, 1.0], [4.0, 0.0], [np.nan, 0.0]])
    np.testing.assert_allclose(spreads(SCHEMA, cells), [2.0, 1.0])
    np.testing.assert_allclose(spreads(SCHEMA, np.ones((3, 2))), 1.0)


def test_distance_is_that_of_the_best_matching() -> None:
    cost = np.random.default_rng(0).random((5, 5))
    wanted = min(np.mean([cost[i, k] for i, k in enumerate(order)]) for order in permutations(range(5)))
    assert matched_distances([cost], np.ones(1), 0).mean() == pytest.approx(wanted)
    assert matched_distances([cost, cost + 9.0], np.array([1.0, 0.0]), 0).mean() == pytest.approx(wanted)
    assert matched_distances([np.vstack([cost, cost])], np.ones(1), 0).mean() == pytest.approx(wanted)
    assert matched_distances([cost[:3]], np.ones(1), 0).min() >= 0.0  # fewer draws than held-out rows


def test_a_mixture_lies_between_its_components() -> None:
    near, far = np.full((100, 20), 1.0), np.full((100, 20), 3.0)
    assert matched_distances([near, far], np.array([0.25, 0.75]), 0).mean() == pytest.approx(2.5, abs=0.2)


def test_gains_must_exceed_their_standard_error() -> None:
    assert is_nearer(np.array([0.9, 0.8, 0.9]), np.ones(3))
    assert not is_nearer(np.array([0.5, 1.4, 1.0]), np.ones(3))
    assert not is_nearer(np.ones(3), np.ones(3))


def chosen_weight(density: np.ndarray, gain: float) -> float:
    """The weight of a candidate for draws, whose draws are nearer by a gain, with log-densities (200, 4)."""
    listed = candidates(budget_of("fast"), 200, 4, numbers=1.0)
    assert [one.is_for_draws for one in listed] == [False, False, False, True]
    near = np.stack([np.full((40, 40), 1.0)] * 3 + [np.full((40, 40), 1.0 - gain)])
    compared = [Compared(one, density[:, k], np.nan, 1.0, (), (near[k],) * 5) for k, one in enumerate(listed)]
    decision = decide(compared, 4, 0)
    assert decision.weight.sum() == pytest.approx(1.0)
    return float(decision.weight[-1])


def log_densities(loss: float) -> np.ndarray:
    """Log-densities (200, 4), which the last candidate loses in a tenth of the rows."""
    density = np.random.default_rng(0).standard_normal((200, 1)) + np.zeros((200, 4))
    density[::10, 3] -= loss
    return density


def test_a_candidate_for_draws_has_weight_where_draws_are_nearer_and_the_score_does_not_fall() -> None:
    assert chosen_weight(log_densities(-0.5), 0.1) > 0.0
    assert chosen_weight(log_densities(0.5), 0.1) == chosen_weight(log_densities(50.0), 0.1) == 0.0
    assert chosen_weight(log_densities(-0.5), 0.0) == 0.0
    assert chosen_weight(log_densities(-0.5), -0.1) == 0.0


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_weight_is_the_one_of_the_highest_score(share: float) -> None:
    density = log_densities(0.0)
    is_better = np.random.default_rng(1).random(200) < share
    density[:, 3] += np.where(is_better, 2.0, -2.0)
    tried = np.array([0.9, 0.75, 0.6, 0.45, 0.3, 0.15, 0.0])  # 0 if the score falls with all others
    scores = [np.log((1.0 - w) * np.exp(density[:, 0]) + w * np.exp(density[:, 3])).mean() for w in tried]
    assert chosen_weight(density, 0.1) == pytest.approx(tried[np.argmax(scores)])


def test_only_tables_of_few_rows_and_mostly_numbers_have_the_candidate() -> None:
    def names(n: int, numbers: float, objective: str = "draws") -> list[str]:
        return [one.name for one in candidates(budget_of("default"), n, 4, objective, numbers=numbers)]

    assert "2 hidden trees of factors" in names(200, 0.5)
    assert not any("factors" in name for name in names(200, 0.4) + names(3_000, 1.0) + names(200, 1.0, "likelihood"))
