"""Formulas of one segment against arithmetic of fifty digits, for products of rate and length from nothing to huge."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from jointforest.data.discretization.discretizer import (
    _excess,
    from_anchor,
    log_density,
    log_part,
    mean_variance,
    part_below,
)

DECAYS = [0.0, 1e-300, 1e-15, 1e-8, 0.01, 0.3, 0.4999, 0.5001, 1.0, 5.0, 40.0, 700.0, 1e4]
SIDES = [1.0, -1.0]


def one(*numbers: float) -> list[np.ndarray]:
    return [np.array([number]) for number in numbers]


@pytest.mark.parametrize("t", [0.01, 0.2, 0.4, 0.499])
def test_the_series_of_short_segments(t: float) -> None:
    """Against its closed form, which cancels in floats."""
    with mpmath.workdps(50):
        want = float(1 / mpmath.expm1(mpmath.mpf(t)) - 1 / mpmath.mpf(t) + mpmath.mpf(1) / 2)
    assert float(_excess(np.array(t))) == pytest.approx(want, rel=0, abs=2e-15)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("side", SIDES)
def test_moments(decay: float, side: float) -> None:
    length = 2.5
    mean, var = mean_variance(*one(1.0, 1.0 + length, side * decay / length), step=0.0)
    with mpmath.workdps(1000):
        a, ends = mpmath.mpf(decay) / length, mpmath.mpf(length)
        if a:
            mass = -mpmath.expm1(-a * ends)
            first = (1 - mpmath.exp(-a * ends) * (1 + a * ends)) / a / mass
            second = (2 - mpmath.exp(-a * ends) * (2 + 2 * a * ends + (a * ends) ** 2)) / a**2 / mass
        else:
            first, second = ends / 2, ends**2 / 3
        expected = (float(1 + first if side > 0 else 1 + ends - first), float(second - first**2))
    assert (mean[0], var[0]) == pytest.approx(expected, rel=2e-13)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("cells", [1, 2, 7, 1000])
def test_moments_of_cells(decay: float, side: float, cells: int) -> None:
    step = 0.5
    mean, var = mean_variance(*one(-0.25, cells * step - 0.25, side * decay / (cells * step)), step=step)
    with mpmath.workdps(60):
        mass = [mpmath.exp(-mpmath.mpf(decay) / cells * k) for k in range(cells)]
        first = mpmath.fsum(k * m for k, m in enumerate(mass)) / mpmath.fsum(mass)
        second = mpmath.fsum((k - first) ** 2 * m for k, m in enumerate(mass)) / mpmath.fsum(mass)
        first = first if side > 0 else cells - 1 - first
        expected = (float(first * step), float(second * step**2))
    assert (mean[0], var[0]) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("side", SIDES)
def test_open_tails(side: float) -> None:
    lo, hi = (3.0, np.inf) if side > 0 else (-np.inf, 3.0)
    mean, var = mean_variance(*one(lo, hi, side * 0.5), step=0.0)
    assert (mean[0], var[0]) == pytest.approx((3.0 + side * 2.0, 4.0), rel=1e-15)
    mean, var = mean_variance(*one(lo, hi, side * 0.5), step=1.0)
    p = -np.expm1(-0.5)  # a geometric number of cells, whose first centre is half a cell from the end
    assert (mean[0], var[0]) == pytest.approx((3.0 + side * (0.5 + (1 - p) / p), (1 - p) / p**2), rel=1e-14)
    x = 3.0 + side * 2000.0
    assert log_density(*one(lo, hi, side * 0.5, x))[0] == pytest.approx(np.log(0.5) - 1000.0, rel=1e-15)
    a, b = sorted((x, x + side))
    share = log_part(*one(lo, hi, side * 0.5, a, b))[0]
    assert share == pytest.approx(-1000.0 + np.log(-np.expm1(-0.5)), rel=1e-15)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("side", SIDES)
def test_shares_and_their_inverse(decay: float, side: float) -> None:
    length = 2.0
    rate = side * decay / length
    x = np.linspace(1.0, 3.0, 9)
    with mpmath.workdps(400):
        a = mpmath.mpf(rate)

        def below(at: float) -> mpmath.mpf:
            return mpmath.expm1(-a * (mpmath.mpf(at) - 1)) / mpmath.expm1(-a * 2) if a else (mpmath.mpf(at) - 1) / 2

        expected = [float(below(at)) for at in x.tolist()]
        half = (mpmath.exp(-a / 2) - mpmath.exp(-3 * a / 2)) / (1 - mpmath.exp(-2 * a)) if a else mpmath.mpf(1) / 2
        log_half = float(mpmath.log(half))
    lo, hi, rates = np.ones(9), np.full(9, 3.0), np.full(9, rate)
    share = part_below(lo, hi, rates, x)
    np.testing.assert_allclose(share, expected, rtol=1e-13, atol=1e-15)
    assert log_part(*one(1.0, 3.0, rate, 1.5, 2.5))[0] == pytest.approx(log_half, rel=1e-12, abs=1e-13)
    distance = from_anchor(rates, np.full(9, length), share)
    at = 1.0 + distance if rate >= 0 else 3.0 - distance
    np.testing.assert_allclose(part_below(lo, hi, rates, at), share, atol=1e-13)


def test_huge_and_tiny_segments() -> None:
    big = np.finfo(float).max
    assert np.isfinite(log_density(*one(0.0, big, 0.0, big))).all()
    assert log_density(*one(0.0, 5e-324, 0.0, 5e-324))[0] == pytest.approx(-np.log(5e-324))
    assert log_density(*one(0.0, np.inf, 1e300, big))[0] == -1e300
    mean, var = mean_variance(*one(-big, 0.0, 0.0), step=0.0)
    assert mean[0] == -big / 2 and var[0] > 0
