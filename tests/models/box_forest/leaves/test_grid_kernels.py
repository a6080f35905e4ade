"""Grid cells: masses of single cells, and moments of the centres, against explicit sums in many digits."""

import math

import mpmath as mp
import numpy as np
import pytest

from jointforest.models.box_forest.leaves import grid_kernels

from ....compiled import compiled
from ....densities import density
from ....oracle.leaf import NORMAL, STUDENT, UNIFORM, log_mass, normal_log_mass, student_mass

cell_centre = compiled(grid_kernels.cell_centre)
grid_mean_variance = compiled(grid_kernels.grid_mean_variance)
log_cell_density = compiled(grid_kernels.log_cell_density)


def cell_masses(family, a, b, step, first, last):
    """Centres (in steps) of cells first..last, those that matter, and their masses over the largest one's."""
    if family == UNIFORM:
        k = np.arange(first, last + 1)
        return [mp.mpf(int(i)) for i in k], [mp.mpf(1)] * len(k)
    with mp.workdps(40):
        s = mp.mpf(step) / mp.mpf(b)
        z0 = mp.mpf(a) / mp.mpf(b)

        def log_cell(k):
            lo, hi = (k - mp.mpf("0.5")) * s - z0, (k + mp.mpf("0.5")) * s - z0
            return normal_log_mass(lo, hi) if family == NORMAL else mp.log(student_mass(lo, hi))

        mode = min(max(round(a / step), first), last)
        peak = log_cell(mode)
        found = {mode: mp.mpf(1)}
        for sign in (1, -1):
            k = mode + sign
            while first <= k <= last:
                mass = mp.exp(log_cell(k) - peak)
                if mass < mp.mpf(10) ** -30:
                    break
                found[k] = mass
                k += sign
        return [mp.mpf(k) for k in found], list(found.values())


def true_moments(family, a, b, step, first, last):
    """Mean and variance of the centres, cell by cell."""
    with mp.workdps(40):
        k, mass = cell_masses(family, a, b, step, first, last)
        total = mp.fsum(mass)
        mean = mp.fsum(m * x for m, x in zip(mass, k, strict=True)) / total
        variance = mp.fsum(m * (x - mean) ** 2 for m, x in zip(mass, k, strict=True)) / total
        return mean * mp.mpf(step), variance * mp.mpf(step) ** 2


CASES = [
    (a, b, first, last)
    for b in (0.05, 0.3, 0.9, 1.4, 1.5, 2.1, 5.0, 16.1, 40.0, 1e4)
    for a, first, last in (
        (0.0, 0, 0),
        (0.2, -3, 4),
        (10.3, 0, 31),
        (10.3, 0, 32),
        (0.4, -300, 700),
        (-200.0, 0, 150),
        (-30.0, -5, 500),
        (1e5, 3, 90),
    )
]


@pytest.mark.parametrize("family", [NORMAL, UNIFORM, STUDENT])
def test_moments_of_the_centres(family):
    for a, b, first, last in CASES:
        if family == NORMAL and abs(a) > 1e3 * b:
            continue
        lo, hi = first - 0.5, last + 0.5
        whole = density(family, a, b, lo, hi)
        mean, variance = grid_mean_variance(whole, -math.inf, math.inf, 1.0, 0.0)
        true_mean, true_variance = true_moments(family, a, b, 1.0, first, last)
        spread = max(mp.sqrt(true_variance), mp.mpf(1e-5))
        assert abs(mean - true_mean) < 1e-9 * spread + 1e-14 * abs(true_mean), (a, b, first, last)
        assert abs(variance - true_variance) < 2e-9 * true_variance + 1e-18, (a, b, first, last)


@pytest.mark.parametrize("b", [0.2, 0.8, 1.2, 1.43, 1.5, 3.0, 30.0])
def test_whole_line(b):
    """Without ends: a normal in full, a Student t as the limit of wide supports."""
    whole = density(NORMAL, 0.3, b, -math.inf, math.inf)
    got = grid_mean_variance(whole, -math.inf, math.inf, 1.0, 0.0)
    mean, variance = true_moments(NORMAL, 0.3, b, 1.0, -10000, 10000)
    assert abs(got[0] - mean) < 1e-9 * mp.sqrt(variance)
    assert abs(got[1] / variance - 1) < 2e-9

    whole = density(STUDENT, 0.3, b, -math.inf, math.inf)
    got = grid_mean_variance(whole, -math.inf, math.inf, 1.0, 0.0)
    mean, variance = student_line(0.3, b)
    assert got[0] == pytest.approx(mean, abs=1e-9 * math.sqrt(variance))
    assert got[1] == pytest.approx(variance, rel=2e-9)


def student_line(a, b, n=200_000):
    """Moments on the whole line: n cells on either side one by one, the tail beyond as a power law."""
    edge = (np.arange(-n, n + 2, dtype=np.longdouble) - np.longdouble(0.5) - np.longdouble(a)) / np.longdouble(b)
    s = np.abs(edge) / np.sqrt(4 + edge * edge)
    cosine2 = 4 / (4 + edge * edge)
    upper = cosine2**2 * (2 + s) / (4 * (1 + s) ** 2)
    mass = np.where(edge[:-1] >= 0, upper[:-1] - upper[1:], upper[1:] - upper[:-1])
    middle = np.flatnonzero((edge[:-1] < 0) & (edge[1:] >= 0))[0]
    mass[middle] = 1 - upper[middle] - upper[middle + 1]
    k = np.arange(-n, n + 1, dtype=np.longdouble)
    mean = np.sum(mass * k)
    # density 12 b^4 / x^5 on either side: the second moment beyond n is 12 b^4 / n^2
    second = np.sum(mass * k * k) + 12 * np.longdouble(b) ** 4 / (np.longdouble(n) + np.longdouble(0.5)) ** 2
    return float(mean), float(second - mean * mean)


@pytest.mark.parametrize("family", [NORMAL, STUDENT])
def test_mass_of_a_cell(family):
    rng = np.random.default_rng(8)
    for _ in range(400):
        b = 10 ** rng.uniform(-2, 3)
        a = rng.normal() * 10 ** rng.uniform(0, 2)
        k = float(round(a + b * rng.normal() * rng.choice([1, 5, 20])))
        lo, hi = k - 0.5 - 3 * rng.integers(100), k + 0.5 + rng.integers(100)
        whole = density(family, a, b, lo, hi)
        got = log_cell_density(whole, k, 1.0)
        with mp.workdps(40):
            true = log_mass(family, a, b, k - 0.5, k + 0.5) - log_mass(family, a, b, lo, hi)
        assert abs(got - true) < 2e-13 + 1e-12 * abs(true), (a, b, k, lo, hi)


@pytest.mark.parametrize("family", [NORMAL, UNIFORM, STUDENT])
@pytest.mark.parametrize("b", [1e-3, 0.7, 2.1, 9.0, 1e3])
def test_cells_sum_to_one(family, b):
    step, origin = 0.1, 7.03
    lo, hi = origin - 30.5 * step, origin + 300.5 * step
    whole = density(family, 10.0, b, lo, hi)
    logs = [log_cell_density(whole, origin + k * step, step) for k in range(-32, 303)]
    assert logs[:2] == [-math.inf, -math.inf]
    assert logs[-2:] == [-math.inf, -math.inf]
    assert step * math.fsum(map(math.exp, logs)) == pytest.approx(1.0, abs=2e-12)


def test_cell_centre():
    assert cell_centre(1.0, 0.0, 2.5) == 2.0
    assert cell_centre(1.0, 0.0, np.nextafter(2.5, 3)) == 3.0
    assert cell_centre(0.1, 0.0, 0.3) == pytest.approx(0.3, abs=1e-16)
    assert cell_centre(3600.0, 1.6e9, 1.6e9 + 7201) == 1.6e9 + 7200
