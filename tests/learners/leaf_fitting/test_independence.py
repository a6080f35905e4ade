"""Tests of independence against scipy, and their level when columns are independent, by simulation."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

from jointforest.learners.leaf_fitting.independence import fisher, p_values, rank_scores, table_p_value

RNG = np.random.default_rng(3)


def scores(x: np.ndarray, known: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, int]:
    known = ~np.isnan(x) if known is None else known & ~np.isnan(x)
    both, n_scores = rank_scores(x, known[None])
    return *both[0], int(n_scores[0])


def numeric(x: np.ndarray, y: np.ndarray) -> float:
    both = p_values(np.array([x, y]), np.empty((0, len(x)), int))
    assert both[0, 1] == both[1, 0]
    return float(both[0, 1])


def mixed(x: np.ndarray, level: np.ndarray) -> float:
    return float(p_values(x[None].astype(float), level[None])[0, 1])


def table(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    counts = np.zeros((x.max() + 1, y.max() + 1))
    np.add.at(counts, (x, y), 1.0)
    return counts


def either(p: float, q: float) -> float:
    return 1 - (1 - min(p, q)) ** 2


def test_fisher() -> None:
    for a, b, c, d in RNG.integers(0, 12, (200, 4)):
        expected = stats.fisher_exact([[a, b], [c, d]]).pvalue
        assert fisher(a, b, c, d) == pytest.approx(expected, rel=1e-10)


def test_table_is_the_chi_square_test() -> None:
    for size in [(2, 2), (2, 5), (4, 3), (6, 6)]:
        counts = RNG.integers(20, 60, size).astype(float)
        n = counts.sum()
        pearson = stats.chi2_contingency(counts, correction=False)
        expected = stats.chi2.sf(pearson.statistic * (n - 1) / n, pearson.dof)
        assert table_p_value(counts.copy()) == pytest.approx(expected, rel=1e-9)


def test_rare_levels_are_merged() -> None:
    counts = np.array([[30, 12, 0, 1], [14, 22, 0, 2], [0, 0, 0, 0], [1, 1, 0, 1]], dtype=float)
    merged = np.array([[30, 13], [15, 26]])  # rows of 43, 38, 3; columns of 45, 35, 4: expected counts >= 5
    pearson = stats.chi2_contingency(merged, correction=False)
    assert table_p_value(counts) == pytest.approx(stats.chi2.sf(pearson.statistic * 83 / 84, 1), rel=1e-9)


def test_small_table_is_fisher_test() -> None:
    counts = np.array([[3, 1], [1, 25]], dtype=float)
    assert table_p_value(counts.copy()) == pytest.approx(stats.fisher_exact(counts).pvalue, rel=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_scores(ties: bool) -> None:
    x = RNG.normal(size=80)
    x = np.round(2 * x) if ties else x
    x[::7] = np.nan
    known = RNG.random(80) < 0.8
    use = known & ~np.isnan(x)
    linear, bent, n_scores = scores(x, known)
    n = use.sum()
    assert n_scores == 2
    rank = stats.rankdata(x[use])
    basis = np.linalg.qr(np.column_stack([np.ones(n), rank, rank**2]))[0]
    np.testing.assert_allclose(np.abs(linear[use]), np.abs(basis[:, 1]), atol=1e-12)
    np.testing.assert_allclose(np.abs(bent[use]), np.abs(basis[:, 2]), atol=1e-12)
    assert not linear[~use].any() and not bent[~use].any()


def test_scores_of_few_values() -> None:
    assert scores(np.full(20, 3.0))[2] == 0
    _, bent, n_scores = scores(np.repeat([0.0, 1.0], 10))
    assert n_scores == 1 and not bent.any()
    assert scores(np.repeat([0.0, 1.0, 2.0], [50, 45, 5]))[2] == 1  # the bent score would hang on the five


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_numeric_is_spearman_and_a_complement(ties: bool, missing: bool) -> None:
    for slope in (0.0, 0.3, 1.0):
        x = RNG.normal(size=60)
        y = slope * x + RNG.normal(size=60)
        if ties:
            x, y = np.round(x), np.round(2 * y)
        if missing:
            x[RNG.random(60) < 0.2] = np.nan
            y[RNG.random(60) < 0.2] = np.nan
        use = ~np.isnan(x) & ~np.isnan(y)
        n = use.sum()
        spearman = stats.chi2.sf((n - 1) * stats.spearmanr(x[use], y[use]).statistic ** 2, 1)
        bases = [np.linalg.qr(np.vander(stats.rankdata(v[use]), 3, increasing=True))[0][:, 1:] for v in (x, y)]
        n_x, n_y = (scores(v, use)[2] for v in (x, y))  # in few of the rounded columns the quadratic score is left out
        squares = ((bases[0].T @ bases[1]) ** 2)[:n_x, :n_y]
        rest = stats.chi2.sf((n - 1) * (squares.sum() - squares[0, 0]), squares.size - 1)
        expected = either(spearman, rest) if squares.size > 1 else spearman
        assert numeric(x, y) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_mixed_is_kruskal_and_a_complement(ties: bool, missing: bool) -> None:
    for shift in (0.0, 0.5, 2.0):
        level = RNG.integers(0, 3, 70)
        x = RNG.normal(size=70) + shift * level
        x = np.round(x) if ties else x
        if missing:
            x[RNG.random(70) < 0.2] = np.nan
            level[RNG.random(70) < 0.2] = -1
        use = ~np.isnan(x) & (level >= 0)
        n, (_, bent, _) = use.sum(), scores(x, use)
        kruskal = stats.kruskal(*(x[use & (level == k)] for k in range(3))).pvalue
        rest = (n - 1) * sum(bent[use & (level == k)].sum() ** 2 / np.sum(use & (level == k)) for k in range(3))
        assert mixed(x, level) == pytest.approx(either(kruskal, stats.chi2.sf(rest, 2)), rel=1e-8)


def test_mixed_merges_rare_levels() -> None:
    x = RNG.normal(size=60)
    level = np.repeat([0, 1, 2, 3], [30, 24, 3, 3])  # 2 and 3 become one of six rows
    assert mixed(x, level) == pytest.approx(mixed(x, np.minimum(level, 2)), rel=1e-12)
    level = np.repeat([0, 1, 2], [30, 28, 2])  # 2 joins 1, the smaller one
    assert mixed(x, level) == pytest.approx(mixed(x, np.minimum(level, 1)), rel=1e-12)
    assert mixed(x, np.repeat([0, 1], [57, 3])) == 1.0


def test_no_verdict_on_few_rows() -> None:
    x = np.arange(9.0)
    assert numeric(x, x) == 1.0
    assert mixed(x, (x > 4).astype(int)) == 1.0
    assert table_p_value(np.diag([4.0, 5.0])) == 1.0


def test_what_spearman_and_kruskal_miss_is_found() -> None:
    x = RNG.normal(size=200)
    assert numeric(x, x**2) < 1e-6
    level = RNG.integers(0, 2, 200)
    assert mixed(x * (1 + 3 * level), level) < 1e-4


N_SIMULATED = 1500


def draw(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    z = rng.normal(size=n)
    return {
        "continuous": z,
        "rounded": np.round(z),
        "three values": rng.choice(3, n, p=[0.5, 0.4, 0.1]).astype(float),
        "half zeros": np.where(rng.random(n) < 0.5, 0.0, np.abs(z)),
        "holes": np.where(rng.random(n) < 0.3, np.nan, z),
        "even levels": rng.choice(4, n),
        "rare levels": rng.choice(5, n, p=[0.7, 0.2, 0.05, 0.03, 0.02]),
        "rare binary": rng.choice(2, n, p=[0.9, 0.1]),
    }[kind]


NUMBERS = ["continuous", "rounded", "three values", "half zeros", "holes"]
LEVELS = ["even levels", "rare levels", "rare binary"]


@pytest.mark.parametrize("n", [30, 120])
@pytest.mark.parametrize(("a", "b"), list(combinations_with_replacement(NUMBERS + LEVELS, 2)))
def test_level_under_independence(a: str, b: str, n: int) -> None:
    """No test rejects more often than it says, within four standard errors."""
    rng = np.random.default_rng(n)
    p = np.empty(N_SIMULATED)
    for i in range(N_SIMULATED):
        x, y = draw(a, n, rng), draw(b, n, rng)
        if b in NUMBERS:
            p[i] = numeric(x, y)
        elif a in LEVELS:
            p[i] = table_p_value(table(x, y))
        else:
            p[i] = mixed(x, y)
    for level in (0.1, 0.05, 0.01):
        assert np.mean(p <= level) < level + 4 * math.sqrt(level * (1 - level) / N_SIMULATED)


def test_uniform_under_independence() -> None:
    """With many rows the tests that do not have to be careful are exact."""
    rng = np.random.default_rng(5)
    draws = [[draw(k, 400, rng) for k in ("continuous", "half zeros", "even levels")] for _ in range(3000)]
    for p in (
        [numeric(x, y) for x, y, _ in draws],
        [mixed(y, level) for _, y, level in draws],
        [table_p_value(table(a[2], b[2])) for a, b in zip(draws[1:], draws[:-1], strict=True)],
    ):
        assert stats.kstest(p, "uniform").pvalue > 1e-3
