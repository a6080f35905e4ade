"""Rubin's rules beside sums written out by hand, published figures, and their meaning."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest
from scipy import stats

import jointforest as jf


def by_hand(q: list[float], u: list[float], level: float, df: float | None) -> tuple[float, ...]:
    """Rubin (1987), section 3.1, and Barnard and Rubin (1999), as they are written."""
    m = len(q)
    mean, within, between = statistics.mean(q), statistics.mean(u), statistics.variance(q)
    total = within + between + between / m
    if df is None:
        relative = (between + between / m) / within
        freedom = (m - 1) * (1 + 1 / relative) ** 2
    else:
        gamma = (1 + 1 / m) * between / total
        old = (m - 1) / gamma**2
        seen = (df + 1) / (df + 3) * df * (1 - gamma)
        freedom = old * seen / (old + seen)
    reach = stats.t.ppf((1 + level) / 2, freedom) * math.sqrt(total)
    return mean, math.sqrt(total), freedom, mean - reach, mean + reach, (1 + 1 / m) * between / total


@pytest.mark.parametrize("m", [2, 3, 20])
@pytest.mark.parametrize("df", [None, 12.0, 1000.0])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_beside_the_formulas(m: int, df: float | None, level: float) -> None:
    rng = np.random.default_rng(m)
    q, u = rng.normal(size=m), rng.random(m) + 0.1
    np.testing.assert_allclose(jf.pool(q, u, level=level, df=df), by_hand(q.tolist(), u.tolist(), level, df), rtol=1e-9)


def test_several_quantities_at_once() -> None:
    rng = np.random.default_rng(0)
    q, u = rng.normal(size=(5, 3)), rng.random((5, 3))
    both = jf.pool(q, u, df=30)
    for j in range(3):
        np.testing.assert_allclose([part[j] for part in both], jf.pool(q[:, j], u[:, j], df=30))


def test_tables_that_agree_give_the_usual_interval() -> None:
    found = jf.pool([2.0, 2.0], [4.0, 4.0])
    assert found.missing_information == 0 and found.standard_error == 2 and math.isinf(found.df)
    assert found.high == pytest.approx(2 + 2 * stats.norm.ppf(0.975), rel=1e-5)
    assert jf.pool([2.0, 2.0], [4.0, 4.0], df=9).df == pytest.approx(9 * 10 / 12)


def test_infinite_degrees_of_freedom_are_those_of_large_tables() -> None:
    assert jf.pool([1.0, 2.0, 4.0], [1.0, 1.0, 2.0], df=math.inf) == jf.pool([1.0, 2.0, 4.0], [1.0, 1.0, 2.0])


def test_covers_as_often_as_it_says() -> None:
    """Means of normal samples of which a part is missing, imputed by draws of the right (Bayesian) posterior."""
    rng, n, seen, m, inside, runs = np.random.default_rng(1), 30, 18, 10, 0, 1500
    for _ in range(runs):
        known = rng.normal(size=seen)
        q, u = [], []
        for _ in range(m):
            sigma = math.sqrt(known.var() * seen / rng.chisquare(seen - 1))
            mu = rng.normal(known.mean(), sigma / math.sqrt(seen))
            whole = np.concatenate([known, rng.normal(mu, sigma, n - seen)])
            q.append(whole.mean())
            u.append(whole.var(ddof=1) / n)
        found = jf.pool(q, u, df=n - 1)
        inside += found.low < 0 < found.high
    assert stats.binomtest(inside, runs, 0.95).pvalue > 0.001


@pytest.mark.parametrize(
    ("q", "u", "message"),
    [
        ([1.0], [1.0], "m >= 2 tables"),
        ([1.0, 2.0], [1.0], "m >= 2 tables"),
        ([1.0, np.nan], [1.0, 1.0], "estimates: nan of table 1; expected finite"),
        ([1.0, 2.0], [np.inf, 1.0], "variances: inf of table 0"),
        ([1.0, 2.0], [1.0, -1.0], "-1 of table 1 is negative"),
        (["a", "b"], [1.0, 1.0], "estimates: expected numbers"),
        ([[1.0, 2.0], [1.0]], [1.0, 1.0], "estimates: expected numbers, as many of each table"),
    ],
)
def test_what_is_refused(q: list[Any], u: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jf.pool(q, u)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        jf.pool([1, 2], [1, 1], level=1.0)
    with pytest.raises(ValueError, match="df must be"):
        jf.pool([1, 2], [1, 1], df=0)
