"""Special functions of the normal distribution against 60-digit arithmetic."""

import math

import mpmath as mp
import numpy as np

from jointforest.models.box_forest.leaves import normal_kernels

from ....compiled import compiled
from ....oracle.leaf import mills, normal_log_mass

erfcx = compiled(normal_kernels.erfcx)
upper_tail = compiled(normal_kernels.upper_tail)

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
