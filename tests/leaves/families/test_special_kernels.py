"""Special functions of the normal distribution against 60-digit arithmetic."""

import math

import mpmath as mp
import numpy as np
import pytest

from jointforest.leaves.families.special_kernels import erfcx, log_ndtr, log_ndtri, ndtri, tail_step
from tests.oracle.leaf import mills, normal_log_mass

RNG = np.random.default_rng(20)
TAILS = np.concatenate([RNG.uniform(0, 40, 100), 10 ** RNG.uniform(-10, 8, 100)])


def test_erfcx():
    with mp.workdps(40):
        for x in [*TAILS, 0.0, 1e150]:
            true = mills(mp.mpf(x) * mp.sqrt(2)) / mp.sqrt(mp.pi / 2)
            assert abs(erfcx(x) / true - 1) < 2e-15, x
    assert erfcx(math.inf) == 0.0


def test_log_ndtr():
    for z in [*-TAILS, *RNG.uniform(0, 8, 50)]:
        true = normal_log_mass(-mp.inf, mp.mpf(z))
        assert abs(log_ndtr(z) / true - 1) < 5e-15, z


@pytest.mark.parametrize("z", [-1e150, -1e154, -1e300])
def test_log_ndtr_never_gives_up(z):
    assert -math.inf < log_ndtr(z) <= -4.9e299
    assert log_ndtr(-z) == 0.0


def test_log_ndtr_at_infinity():
    assert log_ndtr(-math.inf) == -math.inf
    assert log_ndtr(math.inf) == 0.0


def quantile(log_p, start):
    """The z with log Phi(z) = log_p: Newton's method in many digits."""
    with mp.workdps(40):
        z = mp.mpf(start)
        for _ in range(3):
            now = normal_log_mass(-mp.inf, z)
            z -= (now - log_p) * mp.exp(now + z * z / 2) * mp.sqrt(2 * mp.pi)
        return z


def test_ndtri():
    p = np.concatenate([RNG.uniform(0, 1, 60), 10 ** RNG.uniform(-300, 0, 60), 0.5 + 10 ** RNG.uniform(-12, -1, 30)])
    for x in [*p, 0.25, 0.75, 0.2499999, 0.7500001]:
        z = ndtri(x)
        with mp.workdps(40):
            assert abs(z / quantile(mp.log(mp.mpf(float(x))), z) - 1) < 2e-15, x
    assert (ndtri(0.0), ndtri(0.5), ndtri(1.0)) == (-math.inf, 0.0, math.inf)


def test_log_ndtri():
    for y in [*-(10 ** RNG.uniform(-15, 16, 150)), -0.3, -1.3, -math.log(2)]:
        z = log_ndtri(y)
        true = quantile(mp.mpf(float(y)), z)
        assert abs(z - true) < 2e-15 * abs(true) + 1e-17, y


def test_tail_step_far_out():
    with mp.workdps(40):
        for z0 in (0.0, 0.3, 3.0, 40.0, 1e4, 1e8):
            for e in (1e-12, 1e-3, 0.7, 30.0):
                t = mp.mpf(tail_step(z0, e))
                got = -mp.log(mills(z0 + t) / mills(mp.mpf(z0))) + t * (z0 + t / 2)
                assert abs(got - e) < 1e-14 * max(1, e), (z0, e)
