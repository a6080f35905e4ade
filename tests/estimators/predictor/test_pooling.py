"""Pools against their formulas, and weights against a search that knows no gradients."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm

from jointforest.estimators.predictor import pooling
from jointforest.estimators.predictor.constants import FIXED
from jointforest.estimators.predictor.pooling import (
    LEVEL_WEIGHT,
    LEVELS,
    Answer,
    ClassGoal,
    ClassPool,
    NumberGoal,
    NumberPool,
    ValidationRows,
    crps,
    fit_class_pool,
    fit_number_pool,
    hats,
    stack,
)

from ...oracle import pooling as oracle

KNOTS = np.array(FIXED.knots)


def class_answers(n: int, M: int, K: int, seed: int) -> tuple[list[Answer], np.ndarray, np.ndarray]:
    """Members that know more and less of a class; classes (n,); shares (n,)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n).astype(float)
    share = rng.random(n)
    answers = []
    for m in range(M):
        score = rng.normal(size=(n, K)) + (m + 1.0) * (1.0 - share)[:, None] * np.eye(K)[y.astype(int)]
        odds = np.exp(score)
        answers.append(Answer(odds / odds.sum(axis=1, keepdims=True)))
    return answers, y, share


def number_answers(n: int, seed: int) -> tuple[list[Answer], np.ndarray, np.ndarray]:
    """Two members with normal distributions, one without; numbers (n,); shares (n,)."""
    rng = np.random.default_rng(seed)
    y, share = 3.0 + rng.normal(size=n), rng.random(n)
    spread = norm.ppf(LEVELS)
    answers = []
    for m in range(3):
        mean = y + (0.3 + 0.2 * m + share) * rng.normal(size=n)
        about = np.outer(0.2 + 0.2 * m + share, spread) if m < 2 else None
        answers.append(Answer(mean[:, None], about))
    return answers, y, share


def floored(answers: list[Answer], prior: np.ndarray) -> np.ndarray:
    return (1 - FIXED.floor) * stack(answers).value + FIXED.floor * prior


def test_hats_interpolate() -> None:
    share = np.linspace(0, 1, 41)
    values = np.array([3.0, -1.0, 0.5, 2.0, 7.0])
    wanted = [oracle.weight_at(KNOTS, values, s) for s in share]
    np.testing.assert_allclose(hats(share, KNOTS) @ values, wanted, atol=1e-12)


@pytest.mark.parametrize("K", [2, 4])
def test_classes_are_pooled_as_the_formula_says(K: int) -> None:
    answers, _, share = class_answers(30, 3, K, seed=1)
    rng = np.random.default_rng(2)
    prior = rng.dirichlet(np.ones(K))
    pool = ClassPool(KNOTS, prior, rng.random((5, 3)), rng.normal(size=(5, K)))
    p = floored(answers, prior)
    wanted = [oracle.pooled_classes(p[i], share[i], KNOTS, pool.weight, pool.bias) for i in range(30)]
    np.testing.assert_allclose(pool.combine(stack(answers), share), wanted, rtol=1e-9)


def test_weights_of_classes_have_the_least_loss() -> None:
    """A search without gradients, over the same penalised loss written out, ends where the fit does."""
    answers, y, share = class_answers(60, 2, 2, seed=3)
    prior = np.bincount(y.astype(int)) / 60
    pool = fit_class_pool(stack(answers), ValidationRows(y, share, 60), prior)
    p, penalties = floored(answers, prior), (FIXED.equal / 60, FIXED.smooth / 60, FIXED.unbiased / 60)

    def loss(x: np.ndarray) -> float:
        return oracle.class_loss(p, y, share, KNOTS, x[:10].reshape(5, 2), x[10:].reshape(5, 2), penalties)

    start = np.concatenate([np.full(10, 0.5), np.zeros(10)])
    bounds = [(0, None)] * 10 + [(None, None)] * 10
    found = minimize(loss, start, method="SLSQP", bounds=bounds, options={"maxiter": 500, "ftol": 1e-12})
    mine = loss(np.concatenate([pool.weight.ravel(), pool.bias.ravel()]))
    assert mine == pytest.approx(found.fun, abs=1e-7)
    np.testing.assert_allclose(pool.weight.ravel(), found.x[:10], atol=5e-3)


def test_weights_follow_what_is_known() -> None:
    """Who knows more has more weight, and less of it where both know little."""
    rng = np.random.default_rng(4)
    n = 6_000
    y, share = rng.integers(0, 2, n), rng.random(n)
    sure, dull = (0.95 * (1 - share) + 0.5 * share), np.full(n, 0.6)
    right = rng.random(n) < sure
    first = np.where((right == (y == 1))[:, None], np.column_stack([1 - sure, sure]), np.column_stack([sure, 1 - sure]))
    right = rng.random(n) < dull
    other = np.where((right == (y == 1))[:, None], np.column_stack([1 - dull, dull]), np.column_stack([dull, 1 - dull]))
    pool = fit_class_pool(stack([Answer(first), Answer(other)]), ValidationRows(y, share, n), np.array([0.5, 0.5]))
    np.testing.assert_allclose(pool.weight, 1.0, atol=0.25)  # independent evidence of the truth multiplies


def test_an_overconfident_member_is_calibrated() -> None:
    """Log-odds three times as large as they should be get the weight 1/3."""
    rng = np.random.default_rng(5)
    n = 20_000
    log_odds = rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    p = 1 / (1 + np.exp(-3 * log_odds))
    pool = fit_class_pool(
        stack([Answer(np.column_stack([1 - p, p]))]), ValidationRows(y, rng.random(n), n), np.full(2, 0.5)
    )
    np.testing.assert_allclose(pool.weight, 1 / 3, atol=0.08)
    answer = pool.combine(stack([Answer(np.column_stack([1 - p, p]))]), np.full(n, 0.5))[:, 1]
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (answer >= low) & (answer < low + 0.2)
        assert y[inside].mean() == pytest.approx(answer[inside].mean(), abs=0.03)


def test_an_anchor_answers_alone_where_nothing_is_missing() -> None:
    answers, y, share = class_answers(200, 3, 2, seed=6)
    prior = np.full(2, 0.5)
    pool = fit_class_pool(stack(answers), ValidationRows(y, share, 200), prior, anchor=1)
    assert pool.weight[0].tolist() == [0.0, 1.0, 0.0] and not pool.bias[0].any()
    assert pool.weight[1:].min() >= 0 and pool.weight[1, 0] > 0
    np.testing.assert_allclose(pool.combine(stack(answers), np.zeros(200)), answers[1].value, atol=FIXED.floor)
    numbers, y, share = number_answers(200, seed=7)
    both = fit_number_pool(stack(numbers), ValidationRows(y, share, 200), y, 0.0, anchor=2)
    np.testing.assert_allclose(both.mean(stack(numbers), np.zeros(200)), numbers[2].value[:, 0])


def test_a_member_without_an_answer_counts_as_the_prior() -> None:
    answers, y, share = class_answers(50, 2, 3, seed=8)
    prior = np.array([0.2, 0.3, 0.5])
    pool = fit_class_pool(stack(answers), ValidationRows(y, share, 50), prior)
    lost = answers[0].value.copy()
    lost[:5] = np.nan
    as_prior = answers[0].value.copy()
    as_prior[:5] = prior
    got, wanted = (pool.combine(stack([Answer(p), answers[1]]), share) for p in (lost, as_prior))
    np.testing.assert_allclose(got, wanted)


def test_means_are_pooled_by_least_squares() -> None:
    numbers, y, share = number_answers(80, seed=9)
    validation = ValidationRows(y, share, 80)
    pool = fit_number_pool(stack(numbers), validation, y, 0.0)
    wanted = [
        oracle.pooled_mean(stack(numbers).value[i, :, 0], share[i], KNOTS, pool.weight, y.mean()) for i in range(80)
    ]
    mean = pool.mean(stack(numbers), share)
    np.testing.assert_allclose(mean, wanted)
    basis = hats(share, KNOTS)
    usual = pooling._usual((y - stack(numbers).value[:, :, 0].mean(axis=1)) ** 2, basis)

    def loss(x: np.ndarray) -> float:
        weight = x.reshape(5, 3)
        own = np.array([oracle.pooled_mean(stack(numbers).value[i, :, 0], share[i], KNOTS, weight, y.mean())
                        for i in range(80)])  # fmt: skip
        penalty = oracle.roughness(weight, 2 * FIXED.equal / 80, 2 * FIXED.smooth / 80)
        return float(((own - y) ** 2 / usual).mean()) + penalty

    found = minimize(loss, np.full(15, 1 / 3), method="SLSQP", bounds=[(0, None)] * 15, options={"ftol": 1e-14})
    assert loss(pool.weight.ravel()) == pytest.approx(found.fun, abs=1e-7)


def test_spreads_are_stretched_to_the_least_crps() -> None:
    """One member whose spreads are half as wide as they should be: they are doubled."""
    rng = np.random.default_rng(10)
    n = 8_000
    y = rng.normal(size=n)
    answer = Answer(np.zeros((n, 1)), np.tile(0.5 * norm.ppf(LEVELS), (n, 1)))
    pool = fit_number_pool(stack([answer]), ValidationRows(y, rng.random(n), n), y, 0.0)
    np.testing.assert_allclose(pool.stretch, 2.0, atol=0.15)
    share = np.full(n, 0.5)
    low, high = pool.quantiles(stack([answer]), share)[:, [np.searchsorted(LEVELS, q) for q in (0.05, 0.95)]].T
    assert ((low <= y) & (y <= high)).mean() == pytest.approx(0.9, abs=0.02)

    def loss(factor: float) -> float:
        return float(crps(factor * answer.quantiles, y).mean())

    best = minimize_scalar(loss, bounds=(0.1, 5), method="bounded").x
    assert best == pytest.approx(pool.stretch.mean(), abs=0.1)


def test_quantiles_are_calibrated_by_the_share_that_is_missing() -> None:
    """A member whose quantiles have the wrong shape: as many rows as there should be lie below each, at every share."""
    rng = np.random.default_rng(13)
    n = 12_000
    share = rng.random(n)
    y = rng.exponential(size=n) * (1.0 + share) - (1.0 + share)
    answer = stack([Answer(np.zeros((n, 1)), np.tile(norm.ppf(LEVELS), (n, 1)))])
    pool = fit_number_pool(answer, ValidationRows(y, share, n), y, 0.0)
    assert (np.diff(pool.level) >= 0).all() and pool.level.min() >= 0 and pool.level.max() <= 1
    quantiles = pool.quantiles(answer, share)
    for low in (0.0, 0.3, 0.6):
        here = (share >= low) & (share < low + 0.3)
        for q in (0.05, 0.5, 0.95):
            assert (y[here] <= quantiles[here][:, np.searchsorted(LEVELS, q)]).mean() == pytest.approx(q, abs=0.03)


def test_cells_of_a_grid_are_spread_evenly() -> None:
    """Whole numbers whose quantiles are right: calibration leaves the levels as they are."""
    rng = np.random.default_rng(14)
    n = 6_000
    z = rng.normal(size=n) * 2
    answer = stack([Answer(np.zeros((n, 1)), np.tile(2 * norm.ppf(LEVELS), (n, 1)))])
    pool = fit_number_pool(answer, ValidationRows(np.round(z), np.full(n, 0.35), n), np.round(z), 1.0)
    np.testing.assert_allclose(pool.level[2], LEVELS, atol=0.04)
    few = fit_number_pool(answer, ValidationRows(np.round(z), np.zeros(n), n), np.round(z), 1.0)
    np.testing.assert_allclose(few.level[-1], LEVELS)  # no row is near that knot


def test_point_masses_keep_their_place() -> None:
    """Two members that give a value shares of their own, and a mean that lies elsewhere; by a loop over levels."""
    rng = np.random.default_rng(15)
    a, n = 2.0, 60
    shares = rng.random((n, 2, 2)) * 0.5  # of what is below the value, and of the value
    below, up_to = shares[..., :1], shares.sum(axis=2, keepdims=True)
    known = np.where(below > LEVELS, a - 1.0 + LEVELS, np.where(up_to >= LEVELS, a, a + LEVELS))
    answers = [Answer(rng.normal(3.0, 1.0, (n, 1)), known[:, m]) for m in range(2)]
    y = np.where(rng.random(n) < 0.4, a, rng.normal(3.0, 1.0, n))
    pool = NumberGoal(y, 0.0).equal(2, 2, None)
    assert pool.point.tolist() == [a]
    found = pool.quantiles(stack(answers), np.zeros(n))
    assert (np.diff(found, axis=1) >= 0).all()
    for i in range(n):
        low, high = shares[i, :, 0].mean(), shares[i].sum(axis=1).mean()
        for u, x in zip(LEVELS, found[i], strict=True):
            if low + 0.02 < u < high - 0.02:
                assert x == a
            elif u < low - 0.02:
                assert x <= a
            elif u > high + 0.02:
                assert x >= a


def test_crps_is_that_of_the_distribution() -> None:
    """Of evenly spaced quantiles, against the definition by expected distances, and of a normal in closed form."""
    rng = np.random.default_rng(11)
    draws = np.sort(rng.normal(size=400))
    quantiles = np.quantile(draws, LEVELS, method="inverted_cdf")
    for y in (-1.0, 0.2, 3.0):
        assert crps(quantiles[None], np.array([y]))[0] == pytest.approx(oracle.crps_of_sample(draws, y), abs=0.01)
        exact = y * (2 * norm.cdf(y) - 1) + 2 * norm.pdf(y) - 1 / np.sqrt(np.pi)
        assert crps(norm.ppf(LEVELS)[None], np.array([y]))[0] == pytest.approx(exact, abs=0.005)
    assert LEVEL_WEIGHT.sum() == pytest.approx(1.0)


def test_equal_weights_where_no_row_judges() -> None:
    answers, y, share = class_answers(20, 2, 2, seed=12)
    pool = ClassGoal(y, 2).equal(2, 0, None)
    p = np.sqrt(np.prod(floored(answers, pool.prior), axis=1))
    np.testing.assert_allclose(pool.combine(stack(answers), share), p / p.sum(axis=1, keepdims=True))
    number = NumberGoal(np.arange(5.0), 1.0).equal(3, 2, None)
    assert isinstance(number, NumberPool) and number.weight.sum(axis=1) == pytest.approx(1.0)
    assert number.stretch.sum(axis=1) == pytest.approx(1.0) and number.values.tolist() == [0, 1, 2, 3, 4]
