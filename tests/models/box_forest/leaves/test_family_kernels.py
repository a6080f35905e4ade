"""Truncated normal, uniform and Student t against many-digit arithmetic, through the kernels on one leaf and slot."""

import math
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest

from jointforest.models.box_forest.leaves import family_kernels

from ....compiled import compiled
from ....densities import density
from ....oracle.leaf import NORMAL, STUDENT, UNIFORM, intervals, log_mass, moments

cells = SimpleNamespace(
    **{name: compiled(getattr(family_kernels, name)) for name in ("log_pdf", "log_mass", "mean_variance", "quantile")}
)

FAMILIES = pytest.mark.parametrize("family", [NORMAL, STUDENT])


@FAMILIES
def test_log_mass_of_the_parent(family):
    for a, b, u, v in intervals(400, seed=1):
        true = log_mass(family, a, b, u, v)
        assert abs(density(family, a, b, u, v).log_norm - true) < 1e-12 * abs(true) + 1e-300, (a, b, u, v)


@FAMILIES
def test_log_mass_is_finite_wherever_the_truth_is(family):
    for z in (1e3, 1e8, 1e100, 1e150):
        for h in (1e-6, 1.0, z, math.inf):
            if z + z * 1e-15 + h > z:
                for u, v in ((z, z + h + z * 1e-12), (-z - h - z * 1e-12, -z)):
                    assert -math.inf < density(family, 0.0, 1.0, u, v).log_norm < 0.0
    assert density(family, 0.0, 1.0, -math.inf, math.inf).log_norm == 0.0


@FAMILIES
def test_quantile_inside_and_there_and_back(family):
    rng = np.random.default_rng(2)
    for a, b, u, v in intervals(250, seed=3):
        total, whole = log_mass(family, a, b, u, v), density(family, a, b, -math.inf, math.inf)
        if family == NORMAL and total < -100:  # draws are by rejection there
            continue
        for q in (rng.random(), 10 ** rng.uniform(-14, 0), 1 - 10 ** rng.uniform(-14, -1)):
            x = cells.quantile(whole, u, v, q)
            assert u <= x <= v
            # no float does better than its neighbours
            lo, hi = max(np.nextafter(x, -math.inf), u), min(np.nextafter(x, math.inf), v)
            rounding = mp.exp(log_mass(family, a, b, lo, hi) - total)
            back = mp.exp(log_mass(family, a, b, u, x) - total) if u < x < v else float(x > u)
            assert abs(back - q) < 1e-12 + rounding, (a, b, u, v, q)


@FAMILIES
def test_quantile_rises(family):
    q = np.linspace(1e-9, 1 - 1e-9, 501)
    far = (-20.0, -9.0) if family == NORMAL else (-2000.0, -1e3)
    for u, v in ((-1.0, 3.0), (5.0, 9.0), far, (0.2, 0.3), (-0.6, 1e9)):
        x = np.array([cells.quantile(density(family, 0.0, 1.0, -math.inf, math.inf), u, v, p) for p in q])
        assert np.all(np.diff(x) >= 0)


@FAMILIES
def test_mean_and_variance(family):
    for a, b, u, v in intervals(25, seed=4):
        mean, variance = moments(family, a, b, u, v)
        got_mean, got_variance = cells.mean_variance(density(family, a, b, u, v), u, v)
        assert abs(got_variance / (variance * b * b) - 1) < 1e-11, (a, b, u, v)
        error = abs(got_mean - (mean * b + a)) - np.spacing(abs(got_mean))
        assert error < 1e-11 * mp.sqrt(variance) * b, (a, b, u, v)
        assert u <= got_mean <= v


@FAMILIES
def test_moments_change_method_without_a_step(family):
    for start in (-3.0, -0.5, 0.5, 3.999, 4.001, 20.0):
        for width in np.geomspace(0.1, 60, 9):
            got = cells.mean_variance(density(family, 0.0, 1.0, start, start + width), -math.inf, math.inf)
            mean, variance = moments(family, 0.0, 1.0, start, start + width)
            assert abs(got[0] - mean) < 1e-11 * mp.sqrt(variance), (start, width)
            assert abs(got[1] / variance - 1) < 1e-11, (start, width)


@FAMILIES
@pytest.mark.parametrize("far", [30.0, 1e3, 1e6, 3e7])
def test_conditional_mass_and_density_far_from_the_parent(family, far):
    """A support far out in a tail: differences of the parent's log masses would lose every digit."""
    for sign in (1, -1):
        lo, hi = sorted((sign * far, sign * (far + 4 / far)))
        u, v = sorted((sign * (far + 0.5 / far), sign * (far + 2 / far)))
        whole = density(family, 0.0, 1.0, lo, hi)
        with mp.workdps(60):
            total = log_mass(family, 0.0, 1.0, lo, hi)
            part = float(log_mass(family, 0.0, 1.0, u, v) - total)
            z = mp.mpf(u)
            kernel = (
                -z * z / 2 - mp.log(2 * mp.pi) / 2 if family == NORMAL else mp.log(0.375) - 2.5 * mp.log1p(z * z / 4)
            )
            log_f = float(kernel - total)
        if v > u:
            assert cells.log_mass(whole, u, v) == pytest.approx(part, rel=1e-12, abs=1e-13)
            assert cells.log_pdf(whole, u) == pytest.approx(log_f, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("family", [NORMAL, UNIFORM, STUDENT])
def test_restrictions(family):
    whole = density(family, 0.5, 1.0, -1.0, 2.0)
    assert cells.log_mass(whole, -5.0, 7.0) == 0.0
    assert cells.log_mass(whole, 2.0, 7.0) == -math.inf
    assert cells.log_mass(whole, 1.0, 1.0) == -math.inf
    assert cells.log_pdf(whole, -1.0) == -math.inf
    assert cells.log_pdf(whole, 2.0) > -math.inf
    assert cells.log_pdf(whole, 2.1) == -math.inf
    parts = [cells.log_mass(whole, u, u + 0.5) for u in np.arange(-1, 2, 0.5)]
    assert sum(map(math.exp, parts)) == pytest.approx(1.0, rel=1e-14)
    assert math.isnan(cells.mean_variance(whole, 3.0, 4.0)[0])


def test_uniform():
    whole = density(UNIFORM, 0.0, 0.0, 2.0, 6.0)
    assert cells.log_pdf(whole, 3.0) == pytest.approx(-math.log(4))
    assert cells.log_mass(whole, 1.0, 3.0) == pytest.approx(-math.log(4))
    assert cells.mean_variance(whole, 4.0, 9.0) == pytest.approx((5.0, 1 / 3))


@pytest.mark.parametrize("family", [NORMAL, UNIFORM, STUDENT])
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6, 1e12])
def test_scales_tiny_and_huge_against_the_box(family, scale):
    """The parent may be a spike or flat within the box, and outside it by a million scales."""
    for centre in (0.5, -1e6 * scale, 1 + 1e6 * scale):
        whole = density(family, centre, scale, 0.0, 1.0)
        mean, variance = cells.mean_variance(whole, -math.inf, math.inf)
        assert math.isfinite(whole.log_norm)
        assert 0.0 <= mean <= 1.0
        assert 0.0 <= variance <= 1 / 3
        x = 1.0 if mean == 0.0 else mean
        assert cells.log_pdf(whole, x) > -1.0
