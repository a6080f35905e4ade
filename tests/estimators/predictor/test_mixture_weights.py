"""Weights of a mixture: against a search without EM, and what impossible rows and useless members do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from jointforest.estimators.predictor.survival import mixture_weights
from jointforest.learners.selection.choose import members_log_density


def table(seed: int, n: int = 60, k: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(-20.0, 1.5, (n, k))


def mean(log_density: np.ndarray, weight: np.ndarray) -> float:
    """The slow, obvious mean log-density of a mixture."""
    return float(np.mean([np.log(sum(w * np.exp(v) for w, v in zip(weight, row, strict=True))) for row in log_density]))


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_those_a_search_finds(seed: int) -> None:
    log_density = table(seed)

    def loss(free: np.ndarray) -> float:
        weight = np.exp([0.0, *free])
        return -mean(log_density, weight / weight.sum())

    found = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 5000})
    weight = mixture_weights(log_density)
    assert weight.sum() == pytest.approx(1.0)
    assert mean(log_density, weight) == pytest.approx(-found.fun, abs=1e-7)


def test_mixed_is_the_log_of_the_weighted_sum() -> None:
    log_density, weight = table(7), np.array([0.2, 0.0, 0.8])
    expected = np.log(0.2 * np.exp(log_density[:, 0]) + 0.8 * np.exp(log_density[:, 2]))
    np.testing.assert_allclose(members_log_density(log_density, weight), expected, rtol=1e-12)


def test_rows_that_are_impossible_to_all_say_nothing() -> None:
    log_density = table(3)
    more = np.vstack([log_density, np.full((5, 3), -np.inf)])
    np.testing.assert_array_equal(mixture_weights(more), mixture_weights(log_density))
    assert np.isneginf(members_log_density(more, np.full(3, 1 / 3))[-5:]).all()
    np.testing.assert_array_equal(mixture_weights(np.full((4, 2), -np.inf)), [0.5, 0.5])


def test_a_member_that_alone_allows_a_row_has_weight() -> None:
    log_density = np.array([[0.0, -5.0]] * 9 + [[-np.inf, -5.0]])
    assert mixture_weights(log_density) == pytest.approx([0.9, 0.1], abs=0.01)
