"""Special functions of the normal distribution against 60-digit arithmetic."""

import math

import mpmath as mp
import numpy as np

from jointforest.leaves.families import special_kernels
from tests.compiled import compiled
from tests.oracle.leaf import mills, normal_log_mass

erfcx = compiled(special_kernels.erfcx)
upper_tail = compiled(special_kernels.upper_tail)
tail_step = compiled(special_kernels.tail_step)
upper_quantile = compiled(special_kernels.upper_quantile)
central_quantile = compiled(special_kernels.central_quantile)

RNG = np.random.default_rng(20)
TAILS = np.concatenate([RNG.uniform(0, 40, 100), 10 ** RNG.uniform(-10, 8, 100)])


def test_erfcx():
    with mp.workdps(40):
        for x in [*TAILS, 0.0, 1e150]:
            true = mills(mp.mpf(x) * mp.sqrt(2)) / mp.sqrt(mp.pi / 2)
            assert abs(erfcx(x) / true - 1) < 2e-15, x
    assert erfcx(math.inf) == 0.0


def test_upper_tail():
    for z in [*RNG.uniform(0, 37, 100), 0.0]:
        true = mp.exp(normal_log_mass(mp.mpf(z), mp.inf))
        assert abs(upper_tail(z) / true - 1) < 4e-15 + 4e-16 * z * z, z
    assert upper_tail(math.inf) == 0.0


def quantile(log_p, start):
    """The z with log Phi(z) = log_p: Newton's method in many digits."""
    with mp.workdps(40):
        z = mp.mpf(start)
        for _ in range(3):
            now = normal_log_mass(-mp.inf, z)
            z -= (now - log_p) * mp.exp(now + z * z / 2) * mp.sqrt(2 * mp.pi)
        return z


def test_central_and_upper_quantile():
    p = np.concatenate([RNG.uniform(0, 1, 60), 10 ** RNG.uniform(-300, 0, 60), 0.5 + 10 ** RNG.uniform(-12, -1, 30)])
    for x in [*p, 0.25, 0.75, 0.2499999, 0.7500001]:
        if abs(x - 0.5) <= 0.25:
            z = central_quantile(x - 0.5)
        else:
            z = -upper_quantile(-math.log(2 * x)) if x < 0.5 else upper_quantile(-math.log(2 * (1 - x)))
        with mp.workdps(40):
            assert abs(z / quantile(mp.log(mp.mpf(float(x))), z) - 1) < 2e-15, x
    assert (central_quantile(0.0), upper_quantile(math.inf)) == (0.0, math.inf)


def test_upper_quantile_far_out():
    for e in 10 ** RNG.uniform(math.log10(0.61), 16, 150):
        z = -upper_quantile(e)
        with mp.workdps(40):
            true = quantile(-mp.mpf(float(e)) - mp.log(2), z)
        assert abs(z - true) < 2e-15 * abs(true), e


def test_tail_step_far_out():
    with mp.workdps(40):
        for z0 in (0.0, 0.3, 3.0, 40.0, 1e4, 1e8):
            for e in (1e-12, 1e-3, 0.7, 30.0):
                t = mp.mpf(tail_step(z0, e))
                got = -mp.log(mills(z0 + t) / mills(mp.mpf(z0))) + t * (z0 + t / 2)
                assert abs(got - e) < 1e-14 * max(1, e), (z0, e)
