"""What learners are expected to take."""

from __future__ import annotations

import pytest

from jointforest.learn.choose.budget import budget_of
from jointforest.learn.choose.candidates import candidates


@pytest.mark.parametrize("budget", ["fast", "default"])
def test_a_forest_takes_as_long_as_its_trees_and_columns(budget: str) -> None:
    few, many = (candidates(budget_of(budget), 10**6, d, None)[0] for d in (4, 40))
    assert few.learner.n_estimators == many.learner.n_estimators
    assert many.seconds == pytest.approx(10 * few.seconds)
    assert few.seconds == pytest.approx(
        candidates(budget_of("fast"), 10**6, 4, None)[0].seconds / 10 * few.learner.n_estimators
    )
