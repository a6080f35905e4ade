"""Every question about a scale against clouds of points and masses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointforest.data.discretization.base_density import cdf, draw, levels, pdf, quantiles
from jointforest.data.discretization.discretizer import Scale, codes_of, whole
from jointforest.data.discretization.restrict import restrict

from ...oracle import scale as oracle
from .random_scales import atoms_of, scales

NUMERIC = ("continuous", "mixed", "grid")
seeds = st.integers(0, 2**32)


def some_points(scale: Scale, seed: int) -> np.ndarray:
    """Ends of segments, points in and between them, and far out."""
    random = np.random.default_rng(seed)
    ends = np.concatenate([scale.lo, scale.hi])
    ends = ends[np.isfinite(ends)]
    return np.concatenate([ends, random.uniform(ends.min() - 2, ends.max() + 2, 6), [ends.min() - 20, ends.max() + 20]])


def values_of(scale: Scale, seed: int) -> np.ndarray:
    """Values that the scale gives a density: points of its cloud."""
    x = oracle.cloud(scale)[1]
    return np.random.default_rng(seed).choice(x, 8)


def some_region(scale: Scale, seed: int) -> tuple[list[tuple[float, float]], set[float]]:
    """Runs on cell edges, and some atoms."""
    random = np.random.default_rng(seed)
    ends = np.concatenate([scale.lo, scale.hi])
    ends = ends[np.isfinite(ends)]
    if scale.step > 0:
        first, last = ((ends.min() - scale.origin) / scale.step, (ends.max() - scale.origin) / scale.step)
        cuts = scale.origin + (random.integers(round(first) - 4, round(last) + 4, 6) + 0.5) * scale.step
    elif (scale.lo == scale.hi).all():
        cuts = random.integers(-1, int(ends.max()) + 2, 6) + 0.5
    else:
        cuts = np.append(random.uniform(ends.min() - 2, ends.max() + 2, 5), random.choice(ends))
    cuts = np.unique(cuts)[: len(np.unique(cuts)) // 2 * 2]
    runs = [(float(a), float(b)) for a, b in zip(cuts[::2], cuts[1::2], strict=True)]
    if runs and random.random() < 0.3:
        runs[-1] = (runs[-1][0], math.inf)
    if runs and random.random() < 0.3:
        runs[0] = (-math.inf, runs[0][1])
    return runs, {atom for atom in atoms_of(scale) if random.random() < 0.5}


def cut(scale: Scale, runs: list[tuple[float, float]], kept: set[float]) -> Scale:
    """The region's part of a scale whose points, if it is mixed, are the column's atoms."""
    is_levels = bool((scale.lo == scale.hi).all())
    atoms = () if is_levels else atoms_of(scale)
    bits = sum(1 << k for k, atom in enumerate(atoms) if atom in kept)
    return restrict(scale, np.array([lo for lo, _ in runs]), np.array([hi for _, hi in runs]), np.uint64(bits), atoms)


@given(scales(), seeds)
def test_codes_and_base_density(scale: Scale, seed: int) -> None:
    x = values_of(scale, seed)
    code, log_base = codes_of(scale, np.append(x, np.nan))
    assert code.dtype == np.int32 and (code[-1], log_base[-1]) == (scale.n_codes, 0.0)
    for at, k, log_density in zip(x.tolist(), code.tolist(), log_base.tolist(), strict=False):
        expected_code, expected = oracle.base_density(scale, at)
        assert k == expected_code
        assert math.exp(log_density) == pytest.approx(expected, rel=1e-10)


@given(scales(NUMERIC), seeds)
def test_density(scale: Scale, seed: int) -> None:
    x = np.append(values_of(scale, seed), np.nan)
    density, (code, log_base) = pdf(scale, x), codes_of(scale, x)
    assert np.isnan(density[-1]).all()
    for i in range(len(x) - 1):
        assert density[i, code[i]] == pytest.approx(math.exp(log_base[i]), rel=1e-9)
        assert np.count_nonzero(density[i]) == 1


@given(scales(NUMERIC))
def test_moments(scale: Scale) -> None:
    mass, mean, var = scale.moments
    expected_mean, expected_var = oracle.mean_variance(scale)
    np.testing.assert_allclose(mass, 1.0, rtol=1e-12)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(var, expected_var, rtol=1e-8, atol=1e-9)


@given(scales(NUMERIC), seeds)
def test_cdf(scale: Scale, seed: int) -> None:
    x = some_points(scale, seed)
    found = cdf(scale, np.append(x, np.nan))
    assert np.isnan(found[-1]).all()
    for at, shares in zip(x.tolist(), found, strict=False):
        np.testing.assert_allclose(shares, oracle.up_to(scale, at), atol=1e-11)


@given(scales(), seeds)
def test_region(scale: Scale, seed: int) -> None:
    runs, kept = some_region(scale, seed)
    part = cut(scale, runs, kept)
    is_levels = bool((scale.lo == scale.hi).all())
    expected = oracle.inside(scale, runs, kept, () if is_levels else atoms_of(scale))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(part.log_code), expected, atol=1e-10)
    assert np.all(part.hi[:-1] <= part.lo[1:])
    kept_codes = np.exp(part.log_code) > 1e-9
    np.testing.assert_allclose(np.exp(whole(part).log_code)[kept_codes], 1.0, rtol=1e-12)


@given(scales(NUMERIC), seeds)
def test_questions_given_a_region(scale: Scale, seed: int) -> None:
    runs, kept = some_region(scale, seed)
    part = cut(scale, runs, kept)
    if len(part.lo) == 0:
        return
    total = np.exp(part.log_code)
    known = total > 1e-6
    mean, var = oracle.mean_variance(part)
    np.testing.assert_allclose(part.moments[1][known], mean[known], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(part.moments[2][known], var[known], rtol=1e-7, atol=1e-8)
    for at in some_points(part, seed)[:6].tolist():
        expected = oracle.up_to(part, at)[known] / total[known]
        np.testing.assert_allclose(cdf(part, np.array([at]))[0][known], expected, atol=1e-8)


@given(scales(NUMERIC), seeds)
def test_quantiles(scale: Scale, seed: int) -> None:
    random = np.random.default_rng(seed)
    weights = random.gamma(0.5, 1.0, (3, scale.n_codes)) * (random.random((3, scale.n_codes)) < 0.8)
    weights[:, int(random.integers(scale.n_codes))] += 0.1
    q = np.array([0.003, 0.2, 0.5, 0.77, 0.999])
    found = quantiles(scale, np.vstack([weights, np.zeros(scale.n_codes)]), q)
    assert np.isnan(found[-1]).all()
    _, x, _, is_mass = oracle.cloud(scale)
    for row, share in zip(found, weights / weights.sum(axis=1, keepdims=True), strict=False):
        for level, at in zip(q.tolist(), row.tolist(), strict=True):
            below = np.nextafter(at, -np.inf) if scale.step == 0 else at - 0.75 * scale.step
            assert oracle.up_to(scale, at) @ share >= level - 1e-9
            if scale.step > 0 or np.any((x == at) & is_mass):  # a mass: just below it the level is not reached
                assert oracle.up_to(scale, float(below)) @ share <= level + 1e-9
            else:
                assert oracle.up_to(scale, at) @ share <= level + 1e-9


@given(scales(), seeds)
def test_draws_follow_the_codes(scale: Scale, seed: int) -> None:
    n = 4000
    u = (np.arange(n) + 0.5) / n  # a draw is the quantile at u, so that even ones hold the distribution to 1/n
    for k in range(scale.n_codes):
        x = draw(scale, np.full(n, k), u)
        code, log_base = codes_of(scale, x)
        assert np.all(code == k) and np.isfinite(log_base).all() and np.isfinite(x).all()
        for at in some_points(scale, seed)[:8].tolist():
            assert np.mean(x <= at + 1e-9 * scale.step) == pytest.approx(oracle.up_to(scale, at)[k], abs=1.01 / n)


@given(scales(("levels",)), seeds)
def test_levels(scale: Scale, seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(scale.n_codes), 3)
    expected = np.zeros((3, len(scale.lo)))
    for s in range(len(scale.lo)):
        expected[:, s] = weights[:, scale.code[s]] * math.exp(scale.log_mass[s])
    np.testing.assert_allclose(levels(scale, weights, len(scale.lo)), expected, rtol=1e-12)


@pytest.mark.parametrize("step", [1.0, 0.1, 1e-6])
@pytest.mark.parametrize("rate", [0.0, 0.3, -0.3])
def test_quantiles_at_the_edges_of_cells(step: float, rate: float) -> None:
    cells = 24
    lo, hi = np.array([3.0 - 0.5 * step]), np.array([3.0 + (cells - 0.5) * step])
    scale = Scale(1, step, 3.0, lo, hi, np.array([rate / step]), np.zeros(1, dtype=np.int32), np.zeros(1))
    centres = 3.0 + np.arange(cells) * step
    q = cdf(scale, centres)[:, 0]
    np.testing.assert_allclose(quantiles(scale, np.ones((1, 1)), q)[0], centres, rtol=1e-12)
    above = quantiles(scale, np.ones((1, 1)), np.minimum(q + 1e-6, 1.0))[0]
    np.testing.assert_allclose(above[:-1], centres[1:], rtol=1e-12)
