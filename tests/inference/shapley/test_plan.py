"""Plans of coalitions and what follows from them, against the mean over all orders of the players."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.inference.shapley import least_coalitions, make_plan, solve

from ...oracle.shapley import shapley


def random_game(p: int, seed: int, terms: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """A game as a sum of products of few players: sets (terms, p), and their weights."""
    rng = np.random.default_rng(seed)
    sets = rng.random((terms, p)) < rng.choice([0.15, 0.4], (terms, 1))
    return sets, rng.normal(size=terms)


def values(game: tuple[np.ndarray, np.ndarray], member: np.ndarray) -> np.ndarray:
    sets, weight = game
    return (sets[None] <= member[:, None]).all(axis=2) @ weight


def truth(game: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Each product's weight is shared by its players alike."""
    sets, weight = game
    size = sets.sum(axis=1)
    return (sets * np.where(size > 0, weight / np.maximum(size, 1), 0.0)[:, None]).sum(axis=0)


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_all_coalitions_are_the_definition(p: int) -> None:
    rng = np.random.default_rng(p)
    table = rng.normal(size=2**p)
    plan = make_plan(p, 2**p, 0)
    assert plan.is_exact and len(plan.member) == 2**p == len(np.unique(plan.member, axis=0))
    place = plan.member @ (1 << np.arange(p))
    direct = shapley(p, lambda S: table[sum(1 << j for j in S)])
    phi, variance = solve(plan, table[place][None, :, None], np.zeros((1, 2**p, 1)))
    np.testing.assert_allclose(phi[0, :, 0], direct, atol=1e-13)
    assert (variance == 0.0).all()


def test_products_are_shared_alike() -> None:
    game = random_game(6, 0)
    sets, weight = game
    direct = shapley(6, lambda S: sum(w for s, w in zip(sets, weight, strict=True) if set(np.flatnonzero(s)) <= S))
    np.testing.assert_allclose(truth(game), direct, atol=1e-12)


@pytest.mark.parametrize(("p", "m"), [(5, 20), (6, 40), (9, 28), (13, 300), (14, 2000), (30, 70), (40, 1000)])
def test_sampled_coalitions_keep_efficiency_and_come_in_pairs(p: int, m: int) -> None:
    plan = make_plan(p, m, 3)
    assert m - 1 <= len(plan.member) <= m and not plan.is_exact
    assert not plan.member[0].any() and plan.member[1].all()
    k = plan.score.shape[1]
    drawn = plan.member[plan.first_sampled :]
    assert k >= 4 and len(drawn) == 2 * k and (drawn[:k] == ~drawn[k:]).all()
    listed = plan.member[2 : plan.first_sampled]
    assert len(listed) >= 2 * p and len(np.unique(listed, axis=0)) == len(listed)
    assert plan.member[2:].sum(axis=1).min() > 0 and plan.member[2:].sum(axis=1).max() < p
    np.testing.assert_allclose(plan.weight.sum(axis=0)[:2], [-1.0, 1.0], atol=1e-10)
    np.testing.assert_allclose(plan.weight.sum(axis=0)[2:], 0.0, atol=1e-10)
    np.testing.assert_allclose(plan.weight.sum(axis=1), 0.0, atol=1e-10)
    phi = np.random.default_rng(0).normal(size=p)
    additive = (plan.member @ phi)[None, :, None]
    found, variance = solve(plan, additive + 5.0, np.zeros_like(additive))
    np.testing.assert_allclose(found[0, :, 0], phi, atol=1e-10)  # whatever was drawn
    assert variance.max() < 1e-18
    np.testing.assert_array_equal(make_plan(p, m, 3).member, plan.member)
    assert (make_plan(p, m, 4).member != plan.member).any()


@pytest.mark.parametrize(("p", "m"), [(6, 50), (8, 100), (9, 100), (14, 600)])
def test_sizes_are_drawn_as_often_as_the_kernel_weighs_them(p: int, m: int) -> None:
    """All coalitions of s players together weigh (p - 1) / (s (p - s)): Lundberg and Lee (2017), Theorem 2."""
    plan = make_plan(p, m, 0)
    listed, drawn = (part.sum(axis=1) for part in np.split(plan.member[2:], [plan.first_sampled - 2]))
    sizes = np.setdiff1d(np.arange(1, p), listed)
    mass = (p - 1) / (sizes * (p - sizes))
    count = (drawn[:, None] == sizes).sum(axis=0)
    assert (np.abs(count - len(drawn) * mass / mass.sum()) <= 2.0).all()


@pytest.mark.parametrize(("p", "m"), [(9, 60), (14, 150), (14, 600)])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_standard_errors_of_sampled_coalitions_are_true(p: int, m: int, noise: float) -> None:
    z = []
    for seed in range(60):
        game, rng = random_game(p, seed % 5), np.random.default_rng(seed)
        plan = make_plan(p, m, seed)
        value = values(game, plan.member) + noise * rng.normal(size=len(plan.member))
        variance = np.full((1, len(value), 1), noise**2)
        phi, spread = solve(plan, value[None, :, None], variance)
        z.append((phi[0, :, 0] - truth(game)) / np.sqrt(spread[0, :, 0]))
    rms = np.sqrt(np.mean(np.square(z)))
    assert 0.8 < rms < 1.15 and abs(np.mean(z)) < 0.2, rms


def test_more_coalitions_come_closer() -> None:
    errors = []
    for m in (100, 400, 1600, 6400):
        off = [solve_one(random_game(14, s), m, s) for s in range(8)]
        errors.append(np.sqrt(np.mean(np.square(off))))
    assert errors[0] > 1.5 * errors[1] > 2 * errors[2] > 3 * errors[3] > 0.0


def solve_one(game: tuple[np.ndarray, np.ndarray], m: int, seed: int) -> np.ndarray:
    plan = make_plan(14, m, seed)
    value = values(game, plan.member)[None, :, None]
    return solve(plan, value, np.zeros_like(value))[0][0, :, 0] - truth(game)


@pytest.mark.parametrize("p", [5, 9, 20])
def test_fewest_coalitions_suffice(p: int) -> None:
    plan = make_plan(p, least_coalitions(p), 0)
    assert np.isfinite(plan.weight).all() and np.isfinite(plan.score).all()
