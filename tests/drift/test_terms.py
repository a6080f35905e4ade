"""Tests of terms beside an oracle, and the distribution of their p-values."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.drift.compare import CellTest, deviance, fitted
from tests.oracle.drift import log_odds


def _design(shape: tuple[int, int]) -> np.ndarray:
    a, b = shape
    return np.hstack([np.repeat(np.eye(a), b, 0), np.tile(np.eye(b), (a, 1))])


@pytest.mark.parametrize("seed", range(5))
def test_fitted_shares_are_those_of_logistic_regression(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.poisson(20, (3, 4)).astype(float) + 1.0
    rows[0, 0] = 0.0
    odds = random.normal(0, 1, (3, 1)) + random.normal(0, 1, (1, 4)) + random.normal(0, 0.5, (3, 4))
    new = random.binomial(rows.astype(int), 1 / (1 + np.exp(-odds))).astype(float)
    p = fitted(rows, new, [(0,), (1,)])
    used = rows.ravel() > 0
    expected = log_odds(rows.ravel()[used], new.ravel()[used], _design((3, 4))[used])
    assert np.allclose(p.ravel()[used], expected, atol=2e-3)


def test_margins_of_three_columns_are_fitted() -> None:
    random = np.random.default_rng(0)
    rows = random.poisson(30, (2, 3, 2)).astype(float) + 1.0
    new = random.binomial(rows.astype(int), 0.4).astype(float)
    p = fitted(rows, new, [(0, 1), (2,)])
    assert np.allclose((rows * p).sum(2), new.sum(2), atol=0.01)
    assert np.allclose((rows * p).sum((0, 1)), new.sum((0, 1)), atol=0.01)
    assert np.allclose(fitted(rows, new, [(0, 1, 2)]), new / rows)


def test_deviance_is_the_gain_in_log_likelihood() -> None:
    found = deviance(np.array([10.0, 4.0, 0.0]), np.array([0.5, 0.25, 0.3]), np.array([7.0, 0.0, 0.0]))
    first = 7 * np.log(0.7 / 0.5) + 3 * np.log(0.3 / 0.5)
    assert found == pytest.approx([first, 4 * np.log(1 / 0.75), 0.0])


@pytest.mark.parametrize("mean", [3.0, 40.0])
@pytest.mark.parametrize("share", [0.5, 0.15])
def test_p_values_of_cells_are_hardly_too_small(mean: float, share: float) -> None:
    random = np.random.default_rng(1)
    rows = random.poisson(mean, 30).astype(float)
    trend = np.repeat(np.arange(5.0), 6)[:, None] * np.tile(np.arange(6.0), 5)[:, None]
    term = CellTest(rows, np.full(30, share), _design((5, 6)), trend)
    new = random.binomial(rows.astype(int), share, (4_000, 30)).astype(float)
    p = term.p_values(new)
    for level in (0.1, 0.01):
        for one in (*p, term.p_value(new)):
            assert np.mean(one <= level) <= 1.35 * level + 3 * np.sqrt(level / 4_000)
    assert np.mean(p[0] <= 0.1) > 0.07 and np.mean(p[2] <= 0.1) > 0.07


def test_no_freedom_gives_no_evidence() -> None:
    rows = np.array([5.0, 0.0, 0.0])
    term = CellTest(rows, np.full(3, 0.5), np.ones((3, 1)))
    assert term.p_value(np.array([[2.0, 0.0, 0.0]]))[0] == 1.0
