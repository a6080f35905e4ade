"""Slots of leaves, with grids, atoms, levels and regions: densities, masses, moments, CDF and draws agree."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import chisquare, kstest, norm, t, uniform

from jointforest.data.evidence import Evidence
from jointforest.data.schema import Columns
from jointforest.models.box_forest.leaves import slot_kernels
from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.table import ParameterTables
from jointforest.runtime.random_kernels import stream_state

from ....compiled import compiled

slots = SimpleNamespace(
    **{
        name: compiled(getattr(slot_kernels, name))
        for name in (
            "find_atom", "value_log_density", "region_log_mass", "slot_cdf", "slot_mean_variance", "slot_draw",
            "level_region_log_mass", "level_draw",
        )
    }
)  # fmt: skip

INF = math.inf
PLAIN, MIXED, GRID, GRID_ATOMS, BACK = range(5)

COLUMNS = Columns(
    is_categorical=np.array([0, 0, 0, 0, 0, 1], np.uint8),
    slot=np.array([0, 1, 2, 3, 4, 0], np.int32),
    step=np.array([0.0, 0.0, 1.0, 0.5, 1.0]),
    origin=np.array([0.0, 0.0, 0.0, 0.25, 0.0]),
    atom_start=np.array([0, 0, 2, 2, 4, 4], np.int32),
    atom_value=np.array([-1.0, 0.5, 0.25, 1.75]),
    level_start=np.array([0, 4], np.int32),
)
LEAVES = make_leaves(
    COLUMNS,
    ParameterTables(
        tree=[0, 0],
        log_weight=np.log([0.5, 0.5]),
        family=[[0, 0, 0, 0, 2], [1, 2, 1, 2, 0]],
        a=[[0, 1, 4, 1, 5], [0, 0.3, 0, 2, 1e3]],
        b=[[1, 2, 2.5, 0.4, 1], [0, 1, 0, 1, 300]],
        lo=[[-1, -INF, -0.5, -1, -INF], [-2, -3, -0.5, -1, -INF]],
        hi=[[INF, INF, 9.5, 4, INF], [3, 3, 9.5, 4, INF]],
        atom_mass=[[0.2, 0.3, 0.1, 0.4], [0.0, 1.0, 0.0, 0.25]],
        level_mass=[[0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.0, 0.5]],
        missing_rate=np.zeros((2, 6)),
    ),
)


def evidence(runs, atoms=()):
    """Evidence with one region, number 0."""
    lo, hi = np.array(runs, float).reshape(-1, 2).T
    bits = np.array([sum(1 << k for k in atoms)], np.uint64)
    start = np.array([0, len(lo)], np.int32)
    lo, hi = np.ascontiguousarray(lo), np.ascontiguousarray(hi)
    hard = np.zeros(len(lo)), np.empty((0, 0))
    return Evidence(np.full((1, 6), np.nan), np.zeros((1, 6), np.int32), start, lo, hi, bits, *hard, np.zeros(1))


WHOLE = evidence([(-INF, INF)], range(64))


def density(leaf, slot, x):
    """exp of the kernel at each x."""
    return np.array(
        [
            math.exp(slots.value_log_density(COLUMNS, LEAVES, leaf, slot, v, slots.find_atom(COLUMNS, slot, v)))
            for v in x
        ]
    )


def test_derived_fields():
    assert LEAVES.family.dtype == np.uint8
    assert LEAVES.tree.dtype == np.int32
    arrays = [*LEAVES._replace(wide=LEAVES.a, pieces=LEAVES.a), *LEAVES.pieces]
    assert all(array.flags.c_contiguous for array in arrays)
    np.testing.assert_allclose(np.exp(LEAVES.log_rest[0]), [1, 0.5, 1, 0.5, 1])
    assert LEAVES.log_rest[1, MIXED] == -INF
    np.testing.assert_array_equal(np.exp(LEAVES.log_level[1]), [0, 0.5, 0, 0.5])
    assert np.all(np.isfinite(LEAVES.log_norm))


def test_derived_fields_of_many_leaves():
    n = 10_000
    columns = Columns(*(x[:1] for x in COLUMNS[:4]), np.zeros(2, np.int32), np.empty(0), np.zeros(1, np.int32))
    one, none = np.ones((n, 1)), np.zeros((n, 0))
    lo = np.linspace(-5, 5, n)[:, None]
    leaves = make_leaves(
        columns, ParameterTables(np.zeros(n), np.zeros(n), 0 * one, 0 * one, one, lo, INF * one, none, none, one)
    )

    np.testing.assert_allclose(leaves.log_norm, log_ndtr(-lo), rtol=1e-12)


def test_atoms_are_found_by_value_or_cell():
    assert [slots.find_atom(COLUMNS, MIXED, x) for x in (-1.0, 0.5, 0.5000001, 7.0)] == [0, 1, -1, -1]
    assert [slots.find_atom(COLUMNS, GRID_ATOMS, x) for x in (0.25, 0.5, 0.51, 1.9, 1.5)] == [0, 0, -1, 1, -1]
    assert slots.find_atom(COLUMNS, GRID, 3.0) == -1


def test_atom_without_grid_has_its_mass():
    np.testing.assert_allclose(density(0, MIXED, [-1.0, 0.5]), [0.2, 0.3], rtol=1e-14)
    np.testing.assert_array_equal(density(1, MIXED, [-1.0, 0.5, 0.7]), [0.0, 1.0, 0.0])


@pytest.mark.parametrize("leaf", [0, 1])
@pytest.mark.parametrize("slot", [GRID, GRID_ATOMS])
def test_grid_answers_follow_from_the_masses_of_the_cells(leaf, slot):
    step, origin = COLUMNS.step[slot], COLUMNS.origin[slot]
    centre = origin + step * np.arange(-10, 30)
    mass = density(leaf, slot, centre) * step
    assert mass.sum() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(density(leaf, slot, centre + 0.3 * step) * step, mass, rtol=1e-14)  # anywhere in a cell

    runs = [(origin + (k - 0.5) * step, origin + (m + 0.5) * step) for k, m in ((-30, 1), (3, 3), (6, 8))]
    for region, given in ((-1, WHOLE), (0, WHOLE), (0, evidence(runs, [0, 1])), (0, evidence(runs[1:], [1]))):
        inside = np.any(
            [(lo < centre) & (centre <= hi) for lo, hi in zip(given.run_lo, given.run_hi, strict=True)], axis=0
        )
        part = mass * (inside | (region < 0))
        kernel = (COLUMNS, LEAVES, given, leaf, slot, region)
        atoms_outside = [k for k in (0, 1) if slot == GRID_ATOMS and part[np.isclose(centre, (0.25, 1.75)[k])][0] == 0]
        assert all(not int(given.atoms[0]) >> k & 1 for k in atoms_outside)  # the case is a proper region
        if region == 0:
            assert slots.region_log_mass(*kernel) == pytest.approx(math.log(part.sum()), abs=1e-12)
        part = part / part.sum()
        mean = part @ centre
        assert slots.slot_mean_variance(*kernel) == pytest.approx((mean, part @ (centre - mean) ** 2), rel=1e-9)
        cdf = [slots.slot_cdf(*kernel, x) for x in centre]
        np.testing.assert_allclose(cdf, np.cumsum(part), atol=1e-13)
        np.testing.assert_allclose([slots.slot_cdf(*kernel, x + 0.99 * step) for x in centre], cdf, atol=0)
        draws = draw(*kernel)
        assert set(draws) <= set(centre[part > 0])
        seen = np.array([np.sum(draws == c) for c in centre[part > 1e-3]])
        expected = part[part > 1e-3] / part[part > 1e-3].sum() * seen.sum()
        assert len(seen) == 1 or chisquare(seen, expected).pvalue > 1e-4


def draw(columns, leaves, given, leaf, slot, region, n=4000):
    """Draws of one stream."""
    state = stream_state(5, 0)
    return np.array([slots.slot_draw(columns, leaves, given, leaf, slot, region, state) for _ in range(n)])


@pytest.mark.parametrize("leaf", [0, 1])
@pytest.mark.parametrize("slot", [PLAIN, MIXED])
@pytest.mark.parametrize(
    ("runs", "atoms"),
    [(None, ()), ([(-INF, INF)], (0, 1)), ([(0.0, 2.0)], (1,)), ([(-1.5, -0.5), (0.1, 0.4), (1.0, INF)], (0,))],
)
def test_answers_without_grid_follow_from_the_density(leaf, slot, runs, atoms):
    given, region = (WHOLE, -1) if runs is None else (evidence(runs, atoms), 0)
    kernel = (COLUMNS, LEAVES, given, leaf, slot, region)
    at = [0, 0, 2, 2, 4][slot]
    value = COLUMNS.atom_value[at : COLUMNS.atom_start[slot + 1]]
    mass = [LEAVES.atom_mass[leaf, at + k] if region < 0 or k in atoms else 0.0 for k in range(len(value))]
    # a very fine Riemann sum of the density over the runs
    edges = np.linspace(-60, 60, 2_400_001)
    x = 0.5 * (edges[1:] + edges[:-1])
    rest = parent_density(leaf, slot, x) * np.diff(edges)
    rest *= np.any([(lo < x) & (x <= hi) for lo, hi in zip(given.run_lo, given.run_hi, strict=True)], axis=0)
    total = rest.sum() + sum(mass)
    if total == 0:
        assert slots.region_log_mass(*kernel) == -INF
        assert all(map(math.isnan, slots.slot_mean_variance(*kernel)))
        assert math.isnan(slots.slot_cdf(*kernel, 0.0))
        assert math.isnan(slots.slot_draw(*kernel, stream_state(0, 0)))
        return
    if region == 0:
        assert slots.region_log_mass(*kernel) == pytest.approx(math.log(total), abs=1e-4)
    mean = (rest @ x + mass @ value) / total
    second = (rest @ (x - mean) ** 2 + mass @ (value - mean) ** 2) / total
    assert slots.slot_mean_variance(*kernel) == pytest.approx((mean, second), abs=1e-3)
    for y in (-1.0, 0.2, 0.5, 1.5):
        below = (rest @ (x <= y) + mass @ (value <= y)) / total
        assert slots.slot_cdf(*kernel, y) == pytest.approx(below, abs=1e-4)
    draws = draw(*kernel)
    for v, m in zip(value, mass, strict=True):
        assert np.mean(draws == v) == pytest.approx(m / total, abs=0.03)
    free = draws[~np.isin(draws, value)]
    if len(free) > 100:
        distribution = np.cumsum(rest) / rest.sum()
        assert kstest(free, lambda y: np.interp(y, x, distribution)).pvalue > 1e-4


def parent_density(leaf, slot, x):
    """The density without atoms on an array, by scipy."""

    a, b, lo, hi = (array[leaf, slot] for array in (LEAVES.a, LEAVES.b, LEAVES.lo, LEAVES.hi))
    kind = {0: norm(a, b), 1: uniform(lo, hi - lo), 2: t(4, a, b)}[int(LEAVES.family[leaf, slot])]
    inside = (lo < x) & (x <= hi)
    return kind.pdf(x) * inside / (kind.cdf(hi) - kind.cdf(lo)) * math.exp(LEAVES.log_rest[leaf, slot])


def test_density_agrees_with_scipy():
    x = np.array([-1.99, -0.7, 0.0, 0.8, 2.9])
    for leaf, slot in ((0, PLAIN), (1, PLAIN), (0, MIXED)):
        np.testing.assert_allclose(density(leaf, slot, x), parent_density(leaf, slot, x), rtol=1e-13)


def test_far_regions_keep_their_proportions():
    """A region whose mass underflows still has a CDF, moments and draws."""
    given = evidence([(60.0, 60.01), (60.02, 70.0)])
    kernel = (COLUMNS, LEAVES, given, 0, PLAIN, 0)
    assert slots.region_log_mass(*kernel) < -1800
    assert slots.slot_cdf(*kernel, 60.0) == 0.0
    assert slots.slot_cdf(*kernel, 70.0) == 1.0
    split = slots.slot_cdf(*kernel, 60.015)
    first, second = -math.expm1(-0.6), math.exp(-1.2)
    assert split == pytest.approx(first / (first + second), abs=1e-3)
    x = draw(*kernel)
    assert np.mean(x < 60.015) == pytest.approx(split, abs=0.03)
    mean, variance = slots.slot_mean_variance(*kernel)
    assert x.mean() == pytest.approx(mean, abs=5 * math.sqrt(variance / len(x)))


def test_runs_that_touch_the_support_by_rounding_are_empty():
    edge = np.nextafter(-0.5, 1)
    assert slots.region_log_mass(COLUMNS, LEAVES, evidence([(-5.5, edge)]), 0, GRID, 0) == -INF
    assert math.isnan(slots.slot_draw(COLUMNS, LEAVES, evidence([(-5.5, edge)]), 0, GRID, 0, stream_state(0, 0)))


def test_levels():
    for leaf, runs, codes in (
        (0, [(-0.5, 0.5), (1.5, 3.5)], [0, 2, 3]),
        (1, [(-INF, 1.5)], [0, 1]),
        (1, [(1.5, 2.5)], [2]),
    ):
        given = evidence(runs)
        mass = np.where(np.isin(np.arange(4), codes), LEAVES.level_mass[leaf], 0)
        got = slots.level_region_log_mass(COLUMNS, LEAVES, given, leaf, 0, 0)
        u = np.random.default_rng(1).random(3000)
        drawn = np.array([slots.level_draw(COLUMNS, LEAVES, given, leaf, 0, 0, x) for x in u])
        if mass.sum() == 0:
            assert got == -INF
            assert set(drawn) == {-1}
        else:
            assert math.exp(got) == pytest.approx(mass.sum(), rel=1e-14)
            np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 3000, mass / mass.sum(), atol=0.04)
    free = [slots.level_draw(COLUMNS, LEAVES, WHOLE, 0, 0, -1, x) for x in (0.05, 0.2, 0.5, 0.9999999)]
    assert free == [0, 1, 2, 3]


def test_background_on_a_grid_has_no_end():
    draws = np.sort(draw(COLUMNS, LEAVES, WHOLE, 0, BACK, -1, n=100_000))
    assert draws[0] < -8 < draws[50_000] == 5.0 < 18 < draws[-1]
    assert -200 < slots.value_log_density(COLUMNS, LEAVES, 0, BACK, 1e15, -1) < -100
