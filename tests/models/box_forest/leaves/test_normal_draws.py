"""Draws of normals and truncated normals against scipy and many-digit arithmetic, in the middle, narrow and far out."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chisquare, kstest, norm, truncnorm

from jointforest.models.box_forest.leaves import family_kernels, normal_kernels
from jointforest.runtime.compile import entry
from jointforest.runtime.random_kernels import stream_state

from ....compiled import compiled
from ....densities import density
from ....oracle.leaf import NORMAL, STUDENT, UNIFORM, normal_log_mass

_normal, _draw = normal_kernels.draw_normal, normal_kernels.standard_draw
draw_of_family = compiled(family_kernels.draw)
INF = math.inf


@entry
def normals(state, out):
    for i in range(out.shape[0]):
        out[i] = _normal(state)


@entry
def truncated(za, zb, h, state, anchor, t):
    for i in range(t.shape[0]):
        anchor[i], t[i] = _draw(za, zb, h, state)


def drawn(za, zb, n, seed, h=None):
    """Anchors and distances of n draws from (za, zb]."""
    anchor, t = np.empty(n, np.int64), np.empty(n)
    truncated(float(za), float(zb), float(zb - za) if h is None else h, stream_state(seed, 0), anchor, t)
    return anchor, t


def place(za, zb, anchor, t):
    return np.select([anchor == 1, anchor == 2], [za + t, zb - t], t)


def test_normals_are_normal_in_every_layer_and_tail():
    x = np.empty(4_000_000)
    normals(stream_state(1, 2), x)
    assert kstest(x, norm.cdf).pvalue > 1e-3
    cuts = norm.ppf(np.linspace(0, 1, 2001))
    assert chisquare(np.histogram(x, cuts)[0]).pvalue > 1e-3
    far = np.array(
        [3.3, 3.6, 3.6541528853610088, 3.7, 3.9, 4.2, INF]
    )  # the tail, beyond the lowest layer, is drawn apart
    for side in (x, -x):
        seen = np.histogram(side, far)[0]
        assert chisquare(seen, seen.sum() * np.diff(ndtr(far)) / (1 - ndtr(3.3)), sum_check=False).pvalue > 1e-3
    for k in (1, 2, 3):  # of neighbours in the stream, nothing of the one tells the other
        assert abs(np.corrcoef(x[k:], x[:-k])[0, 1]) < 4.5 / math.sqrt(len(x))
        assert abs(np.corrcoef(x[k:] ** 2, x[:-k] ** 2)[0, 1]) < 4.5 / math.sqrt(len(x))


MIDDLE = [
    *[(-INF, INF), (-INF, 0.0), (0.0, INF), (-1.0, INF), (-INF, 2.0), (0.3, INF), (0.999, INF), (1.0, INF)],
    *[(2.5, INF), (-INF, -3.0), (-1.0, 1.0), (-0.49, 0.5), (-0.5, 0.5), (-0.1, 0.2), (-0.001, 0.002), (0.0, 0.999)],
    *[(0.0, 1.0), (0.0, 1.001), (-0.2, 2.0), (0.5, 1.49), (0.5, 1.51), (0.99, 1.98), (0.99, 2.0), (1.0, 2.0)],
    *[(1.01, 1.99), (2.0, 2.4), (2.0, 2.6), (3.0, 9.0), (-2.6, -2.0), (-1.51, -0.5), (4.0, 4.2), (-30.0, 0.1)],
]


@pytest.mark.parametrize(("za", "zb"), MIDDLE)
def test_draws_on_an_interval(za, zb):
    x = place(za, zb, *drawn(za, zb, 200_000, 3))
    assert ((za < x) & (x <= zb)).all()
    cuts = truncnorm.ppf(np.linspace(0, 1, 101), za, zb)
    assert chisquare(np.histogram(x, np.r_[-INF, cuts[1:-1], INF])[0]).pvalue > 1e-4
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 4.5 / math.sqrt(len(x))


FAR = [
    *[(8.0, INF), (38.0, INF), (1e3, INF), (1e8, INF), (-INF, -1e6), (1e120, INF), (20.0, 0.04), (20.0, 0.06)],
    *[(1e3, 1e-3), (1e3, 1.1e-3), (1e8, 1e-12), (1e8, 1e-8), (1e8, 5e-8), (0.0, 1e-12), (3.0, 1e-9), (1e120, 1e-121)],
    (-1e4 - 1e-5, 1e-5),
]


@pytest.mark.parametrize(("za", "width"), FAR)
def test_draws_far_out_and_on_narrow_intervals(za, width):
    """The masses on either side of draws, in many digits, are uniform."""
    with mp.workdps(300):
        h = mp.mpf(width) if za > -INF else mp.inf
        low = mp.mpf(za) if za > -INF else -mp.inf
        high = low + h if za > -INF else mp.mpf(width)
        at = {1: lambda t: low + t, 2: lambda t: high - t, 0: lambda t: t}
        below = []
        for anchor, t in zip(*drawn(za, float(high), 400, 4, float(h)), strict=True):
            x = at[anchor](mp.mpf(float(t)))
            assert low <= x <= high
            below.append(float(upper_share(low, high, x)))
    assert kstest(below, "uniform").pvalue > 1e-4


def upper_share(low, high, x):
    """P(Z > x | low < Z <= high) of an interval on one side of 0."""
    if low < 0:
        return 1 - upper_share(-high, -low, -x)
    if low > 1e20:  # exp(-low t), the rest is nothing
        t, h = (x - low) * low, (high - low) * low
        return (mp.exp(-t) - mp.exp(-h)) / (1 - mp.exp(-h))
    if x <= low or x >= high:
        return mp.mpf(x <= low)
    return mp.exp(normal_log_mass(x, high) - normal_log_mass(low, high))


@pytest.mark.parametrize("family", [NORMAL, UNIFORM, STUDENT])
@pytest.mark.parametrize("scale", [1e-140, 1e-12, 1e-3, 1.0, 1e6, 1e12, 1e140])
@pytest.mark.parametrize("centre", [0.5, -1e6, 1e6, -1e140, 1e140])
def test_draws_keep_to_the_box_whatever_the_parent(family, scale, centre):
    state = stream_state(5, 0)
    for lo, hi in ((0.0, 1.0), (0.0, 5e-324), (1.0, np.nextafter(1.0, 2.0)), (-1e150, 1e150)):
        x = [draw_of_family(density(family, centre, scale, lo, hi), -INF, INF, state) for _ in range(50)]
        assert lo < min(x) <= max(x) <= hi
    assert math.isnan(draw_of_family(density(family, centre, scale, 0.0, 1.0), 1.0, 2.0, state))
    if family != UNIFORM:
        x = [draw_of_family(density(family, 0.0, 1.0, -INF, INF), 1e200, INF, state) for _ in range(50)]
        assert 1e200 < min(x) < INF


@pytest.mark.parametrize("family", [NORMAL, UNIFORM, STUDENT])
def test_draws_are_cut_to_box_and_run(family):
    state = stream_state(6, 0)
    x = [draw_of_family(density(family, 0.5, 1.0, -1.0, 2.0), 1.5, 9.0, state) for _ in range(2000)]
    assert 1.5 < min(x) < 1.51 < 1.99 < max(x) <= 2.0
