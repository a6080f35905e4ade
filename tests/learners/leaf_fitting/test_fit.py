"""Leaf densities against plain numpy, leaf by leaf, and maximum likelihood against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from jointforest.data.schema import Columns
from jointforest.learners.leaf_fitting.densities import join_leaves
from jointforest.learners.leaf_fitting.fit import (
    Settings,
    Table,
    TreeLeaves,
    background,
    fit_tree,
    leaf_sums,
    prepare_table,
)
from jointforest.learners.leaf_fitting.statistics_kernels import (
    mass_beyond,
    rows_by_leaf,
    truncated_location,
    truncated_mle,
    wide_level_masses,
)
from jointforest.models.box_forest.leaves.table import NORMAL, STUDENT, UNIFORM

N, LEAVES = 400, 6
COLUMNS = Columns(
    is_categorical=np.array([0, 1, 0, 0, 0], dtype=np.uint8),
    slot=np.array([0, 0, 1, 2, 3], dtype=np.int32),
    step=np.array([0.0, 0.0, 1.0, 0.0]),
    origin=np.zeros(4),
    atom_start=np.array([0, 0, 2, 3, 4], dtype=np.int32),
    atom_value=np.array([-1.0, 0.0, 3.0, 7.0]),
    level_start=np.array([0, 4], dtype=np.int32),
)
"""A density; levels; a density with atoms -1 and 0; whole numbers with atom 3; a column of its atom 7 alone."""
NUMERIC = (0, 2, 3, 4)


def fit(
    columns: Columns, table: Table, leaf_of: np.ndarray, lo: np.ndarray, hi: np.ndarray, allowed: np.ndarray,
    settings: Settings, weight: np.ndarray | None = None,
) -> TreeLeaves:  # fmt: skip
    """`fit_tree`, rows given by their leaf, each counting once."""
    weight = np.ones(len(leaf_of)) if weight is None else weight
    rows = rows_by_leaf(leaf_of.astype(np.int32), len(lo))
    sums = leaf_sums(columns, (table.values, table.codes), table.spread, *rows, weight)
    return fit_tree(columns, table, sums, lo, hi, allowed, settings)


class Case:
    """A table in leaves whose boxes cut column 0 in six and forbid a level in leaf 0; leaf 5 has one row."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        X = np.empty((N, 5))
        X[:, 0] = rng.normal(size=N) * 3 + 100
        edges = np.r_[-np.inf, np.quantile(X[:, 0], [0.1, 0.3, 0.5, 0.8]), X[:, 0].max() - 1e-9, np.inf]
        self.leaf_of = (np.searchsorted(edges, X[:, 0], side="left") - 1).astype(np.int32)
        X[:, 1] = rng.integers(0, 3, N)  # level 3 never occurs
        X[self.leaf_of == 0, 1] = 1 + X[self.leaf_of == 0, 1] % 2
        X[:, 2] = rng.choice([-1.0, 0.0, 1.5], N) + np.where(rng.random(N) < 0.6, 0.0, rng.exponential(size=N))
        X[:, 3] = rng.poisson(3 + self.leaf_of)
        X[:, 4] = 7.0
        X[rng.random((N, 5)) < 0.15] = np.nan
        X[self.leaf_of == 2, 2] = np.nan
        self.X = X
        self.lo = np.full((LEAVES, 4), -np.inf)
        self.hi = np.full((LEAVES, 4), np.inf)
        self.lo[:, 0], self.hi[:, 0] = edges[:-1], edges[1:]
        self.lo[3, 3], self.hi[4, 3] = -0.5, 25.5
        self.allowed = np.ones((LEAVES, 4), dtype=bool)
        self.allowed[0, 0] = False
        self.table = prepare_table(COLUMNS, X)

    def fit(self, leaf_of: np.ndarray | None = None, **settings: object) -> TreeLeaves:
        leaf_of = self.leaf_of if leaf_of is None else leaf_of
        return fit(COLUMNS, self.table, leaf_of, self.lo, self.hi, self.allowed, Settings(**settings))

    def cells(self, leaf: int, j: int) -> np.ndarray:
        """Known cells of a column in a leaf."""
        x = self.X[self.leaf_of == leaf, j]
        return x[~np.isnan(x)]

    def rest(self, leaf: int | None, j: int) -> np.ndarray:
        """Numbers on no atom, of a leaf or of the column."""
        x = self.X[:, j] if leaf is None else self.X[self.leaf_of == leaf, j]
        return x[~np.isnan(x) & ~np.isin(x, atoms(j))]


def atoms(j: int) -> np.ndarray:
    s = COLUMNS.slot[j]
    return COLUMNS.atom_value[COLUMNS.atom_start[s] : COLUMNS.atom_start[s + 1]]


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


def test_prepared_table(case: Case) -> None:
    table = case.table
    for j in NUMERIC:
        s = COLUMNS.slot[j]
        rest = case.rest(None, j)
        known = case.X[~np.isnan(case.X[:, j]), j]
        at = slice(COLUMNS.atom_start[s], COLUMNS.atom_start[s + 1])
        assert table.atom_share[at] == pytest.approx([np.mean(known == a) for a in atoms(j)])
        if j == 4:
            assert (table.centre[s], table.low[s], table.high[s]) == (7.0, 7.0, 7.0)
            assert table.spread[s] > 0
            continue
        assert (table.low[s], table.high[s]) == (rest.min(), rest.max())
        assert (table.centre[s], table.spread[s]) == pytest.approx((rest.mean(), rest.std()))
    count = np.array([np.sum(case.X[:, 1] == k) for k in range(4)])
    assert table.level_share == pytest.approx((count + 0.25) / (count.sum() + 1))
    assert table.missing == pytest.approx(np.isnan(case.X).mean(axis=0))


def test_atoms_on_a_grid_match_whatever_noise_the_values_carry() -> None:
    columns = Columns(
        np.zeros(1, np.uint8), np.zeros(1, np.int32), np.array([0.1]), np.zeros(1), np.array([0, 1], np.int32),
        np.array([0.3]), np.zeros(1, np.int32),
    )  # fmt: skip
    table = prepare_table(columns, np.array([[0.1 * 3], [0.3], [0.30000000000000004], [0.4], [np.nan]]))
    assert table.codes.tolist() == [[0, 0, 0, -1, -1]]
    assert table.atom_share[0] == 0.75


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("prior", ["marginal", "uniform"])
def test_level_masses(case: Case, prior: str, smoothing: float) -> None:
    leaves = case.fit(smoothing=smoothing, prior=prior)
    share = case.table.level_share if prior == "marginal" else np.full(4, 0.25)
    pseudo = smoothing if prior == "marginal" else smoothing * 4  # in all, or for each of the 4 levels
    for leaf in range(LEAVES):
        count = np.array([np.sum(case.cells(leaf, 1) == k) for k in range(4)]) + pseudo * share
        count = np.where(case.allowed[leaf], count, 0.0)
        if count.sum() == 0:
            count = np.where(case.allowed[leaf], share, 0.0)
        assert leaves.level_mass[leaf] == pytest.approx(count / count.sum())
    assert (leaves.level_mass[~case.allowed] == 0).all()


@pytest.mark.parametrize("pseudo", [0.0, 0.3, 2.0])
def test_level_masses_of_many_levels(pseudo: float) -> None:
    """A factor of the shares, and what a leaf's own rows add: together the masses of the definition."""
    rng = np.random.default_rng(0)
    count, prior, allowed = (
        rng.integers(0, 3, (6, 5)).astype(float),
        rng.dirichlet(np.ones(5)),
        rng.random((6, 5)) < 0.7,
    )
    count[2], allowed[:, 0] = 0.0, True
    leaf, level = map(np.ascontiguousarray, np.nonzero(count))
    scale, mass = np.empty(6), np.empty(len(leaf))
    wide_level_masses(leaf, level, count[leaf, level], pseudo, prior, allowed, scale, mass)
    found = scale[:, None] * np.where(allowed, prior, 0.0)
    found[leaf, level] += mass
    expected = np.where(allowed, count + pseudo * prior, 0.0)
    expected = np.where(expected.sum(axis=1, keepdims=True) > 0, expected, np.where(allowed, prior, 0.0))
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)


def test_paper_alpha() -> None:
    """Watson et al. 2023: (n_k + alpha) / (n + alpha K)."""
    case = Case()
    leaves = case.fit(smoothing=0.7, prior="uniform")
    x = case.cells(3, 1)
    assert leaves.level_mass[3] == pytest.approx([(np.sum(x == k) + 0.7) / (len(x) + 4 * 0.7) for k in range(4)])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 2.0])
def test_atom_masses(case: Case, smoothing: float) -> None:
    leaves = case.fit(smoothing=smoothing)
    for j in NUMERIC[1:]:
        s = COLUMNS.slot[j]
        at = slice(COLUMNS.atom_start[s], COLUMNS.atom_start[s + 1])
        share = case.table.atom_share[at]
        shares = np.r_[share, max(1 - share.sum(), 0.0)]
        for leaf in range(LEAVES):
            count = np.array([np.sum(case.cells(leaf, j) == a) for a in atoms(j)] + [len(case.rest(leaf, j))])
            pseudo = smoothing * shares  # no atom of this case is outside a box
            total = count.sum() + pseudo.sum()
            expected = (count + pseudo) / total if total > 0 else shares
            assert leaves.atom_mass[leaf, at] == pytest.approx(expected[:-1])


def test_atoms_outside_the_box_have_no_mass(case: Case) -> None:
    lo, hi = case.lo.copy(), case.hi.copy()
    lo[:, 1] = -0.5  # cuts off the atom -1
    hi[:, 2] = 2.5  # and 3
    rows = (case.X[:, 2] > -0.5) & (case.X[:, 3] < 2.5)
    leaf_of = np.where(rows, case.leaf_of, -1).astype(np.int32)
    leaves = fit(COLUMNS, case.table, leaf_of, lo, hi, case.allowed, Settings(smoothing=0.5))
    assert (leaves.atom_mass[:, [0, 2]] == 0).all()
    share = case.table.atom_share
    x = case.X[leaf_of == 4, 2]
    left = 1 - share[0] - share[1]
    pseudo = 0.5 * np.array([share[1], left]) / (share[1] + left)
    expected = (np.sum(x == 0) + pseudo[0]) / (len(x) + pseudo.sum())
    assert leaves.atom_mass[4, 1] == pytest.approx(expected)


def test_missing_rates_and_rows(case: Case) -> None:
    leaves = case.fit()
    for leaf in range(LEAVES):
        at = case.leaf_of == leaf
        assert leaves.rows[leaf] == at.sum()
        assert leaves.missing_rate[leaf] == pytest.approx(np.isnan(case.X[at]).mean(axis=0))


def expected_normal(case: Case, j: int, spread_rows: float, min_spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and shrunk standard deviation of each leaf, from the definitions in `Settings`."""
    s = COLUMNS.slot[j]
    step = COLUMNS.step[s]
    unit = case.table.spread[s]
    rests = [case.rest(leaf, j) for leaf in range(LEAVES)]
    pooled = sum(((x - x.mean()) ** 2).sum() for x in rests if len(x)) / sum(max(len(x) - 1, 0) for x in rests)
    mean, spread = np.empty(LEAVES), np.empty(LEAVES)
    floor = max(min_spread * unit, 0.3 * step)
    for leaf, x in enumerate(rests):
        low = max(case.lo[leaf, s], case.table.low[s])
        high = min(case.hi[leaf, s], case.table.high[s])
        width = max((high - low) / 3.92, floor)
        mean[leaf] = x.mean() if len(x) else min(max(case.table.centre[s], low), high)
        if spread_rows > 0:
            squares = ((x - x.mean()) ** 2).sum() if len(x) else 0.0
            freedom = max(len(x) - 1, 0)
            spread[leaf] = np.sqrt((squares + spread_rows * min(pooled, width**2)) / (freedom + spread_rows))
        else:
            spread[leaf] = x.std(ddof=1) if len(x) > 1 else width
        spread[leaf] = max(spread[leaf], floor)
    return mean, spread


@pytest.mark.parametrize("min_spread", [0.01, 0.5])
@pytest.mark.parametrize("spread_rows", [0.0, 2.0, 50.0])
@pytest.mark.parametrize("j", [0, 2, 3])
def test_moments_and_shrunk_spread(case: Case, j: int, spread_rows: float, min_spread: float) -> None:
    leaves = case.fit(leaf="normal_moments", bounds="no", spread_rows=spread_rows, min_spread=min_spread)
    mean, spread = expected_normal(case, j, spread_rows, min_spread)
    s = COLUMNS.slot[j]
    assert leaves.a[:, s] == pytest.approx(mean)
    assert leaves.b[:, s] == pytest.approx(spread)
    assert (leaves.lo[:, s] == case.lo[:, s]).all()
    assert (leaves.hi[:, s] == case.hi[:, s]).all()


def truncated(a: float, b: float, lo: float, hi: float) -> stats.rv_continuous:
    """scipy's truncated normal."""
    return stats.truncnorm((lo - a) / b, (hi - a) / b, loc=a, scale=b)


@pytest.mark.parametrize("bounds", ["no", "global"])
def test_the_mean_of_a_leaf_is_the_mean_of_its_values(case: Case, bounds: str) -> None:
    leaves = case.fit(bounds=bounds)
    checked = 0
    for j in (0, 2):
        s = COLUMNS.slot[j]
        for leaf in range(LEAVES):
            rest = case.rest(leaf, j)
            if len(rest) < 5:
                continue
            part = truncated(leaves.a[leaf, s], leaves.b[leaf, s], leaves.lo[leaf, s], leaves.hi[leaf, s])
            assert part.mean() == pytest.approx(rest.mean(), abs=1e-6 * case.table.spread[s])
            checked += 1
    assert checked >= 8


def test_location_against_scipy() -> None:
    rng = np.random.default_rng(0)
    lo = rng.normal(size=50) - 1
    hi = np.where(rng.random(50) < 0.3, np.inf, lo + rng.uniform(0.5, 4, 50))
    mean = np.where(np.isinf(hi), lo + rng.uniform(0.3, 3, 50), lo + (hi - lo) * rng.uniform(0.2, 0.8, 50))
    spread = rng.uniform(0.5, 2, 50)
    location = truncated_location(mean, spread, lo, hi)
    near = np.abs(location - mean) < 19 * spread
    assert near.sum() > 40
    for a, b, low, high, m in zip(*(v[near] for v in (location, spread, lo, hi, mean)), strict=True):
        assert truncated(a, b, low, high).mean() == pytest.approx(m, abs=1e-5)


def test_mass_beyond_the_data_against_scipy() -> None:
    rng = np.random.default_rng(1)
    weight = rng.dirichlet(np.ones(6))
    a, b = rng.normal(size=6), rng.uniform(0.5, 2, 6)
    lo = np.array([-np.inf, -np.inf, -3.0, 0.0, -1.5, -np.inf])
    hi = np.array([np.inf, 2.0, np.inf, 3.0, 1.5, 0.5])
    parts = [truncated(*p) for p in zip(a, b, lo, hi, strict=True)]
    below = sum(w * part.cdf(-1.0) for w, part in zip(weight, parts, strict=True))
    above = sum(w * part.sf(1.2) for w, part in zip(weight, parts, strict=True))
    assert mass_beyond(NORMAL, weight, a, b, lo, hi, -1.0, 1.2) == pytest.approx((below, above))


def test_auto_bounds_cut_hard_edges_only() -> None:
    rng = np.random.default_rng(2)
    columns = Columns(
        np.zeros(2, np.uint8), np.arange(2, dtype=np.int32), np.zeros(2), np.zeros(2), np.zeros(3, np.int32),
        np.empty(0), np.zeros(1, np.int32),
    )  # fmt: skip
    X = np.column_stack([rng.exponential(size=1000), rng.normal(size=1000)])
    box = np.full((1, 2), np.inf)
    leaves = fit(
        columns, prepare_table(columns, X), np.zeros(1000, np.int32), -box, box, np.ones((1, 0), dtype=bool), Settings()
    )
    assert leaves.lo[0, 0] == pytest.approx(X[:, 0].min(), abs=1e-6) and leaves.lo[0, 0] < X[:, 0].min()
    assert leaves.hi[0, 0] == np.inf
    assert (leaves.lo[0, 1], leaves.hi[0, 1]) == (-np.inf, np.inf)


def test_column_of_one_atom_alone(case: Case) -> None:
    leaves = case.fit(smoothing=0.0)
    assert leaves.atom_mass[:, 3] == pytest.approx(np.ones(LEAVES))
    assert np.isfinite(leaves.a[:, 3]).all()
    assert (leaves.b[:, 3] > 0).all()


@pytest.mark.parametrize("leaf", ["normal", "uniform"])
def test_bounds(case: Case, leaf: str) -> None:
    for bounds in ("local", "global"):
        leaves = case.fit(leaf=leaf, bounds=bounds)
        for j in NUMERIC:
            s = COLUMNS.slot[j]
            step = COLUMNS.step[s]
            low, high = case.table.low[s], case.table.high[s]
            pad = step / 2 if step > 0 else 0.01 * case.table.spread[s] + 1e-9 * (high - low)
            for k in range(LEAVES):
                box = case.lo[k, s], case.hi[k, s]
                rest = case.rest(k, j)
                span = (rest.min(), rest.max()) if bounds == "local" and len(rest) else (low, high)
                if bounds == "local":
                    expected = max(box[0], span[0] - pad), min(box[1], span[1] + pad)
                else:
                    expected = tuple(
                        x if np.isfinite(x) else e for x, e in zip(box, (low - pad, high + pad), strict=True)
                    )
                assert (leaves.lo[k, s], leaves.hi[k, s]) == pytest.approx(expected)
                assert ((leaves.lo[k, s] < rest) & (rest <= leaves.hi[k, s])).all()
    if leaf == "uniform":
        no = case.fit(leaf="uniform", bounds="no")
        assert (no.lo == leaves.lo).all()
        assert (no.hi == leaves.hi).all()
        assert (no.a == 0).all()


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("bounds", ["local", "global"])
def test_boxes_beyond_the_span_keep_a_width(case: Case, bounds: str, side: int) -> None:
    lo, hi = case.lo.copy(), case.hi.copy()
    (hi if side < 0 else lo)[:, 1] = side * 1e17  # one step of floats is far wider than the pad
    leaf_of = np.full(N, -1, np.int32)
    leaf_of[0] = 0
    leaves = fit(COLUMNS, case.table, leaf_of, lo, hi, case.allowed, Settings(leaf="uniform", bounds=bounds))
    assert (leaves.lo < leaves.hi).all()
    assert np.isfinite(leaves.lo).all() and np.isfinite(leaves.hi).all()
    assert (leaves.lo[:, 1] >= lo[:, 1]).all() and (leaves.hi[:, 1] <= hi[:, 1]).all()


@pytest.mark.parametrize("leaf", ["normal", "normal_mle", "uniform"])
@pytest.mark.parametrize("bounds", ["no", "local", "global"])
@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-130, 1e140, 1e304])
def test_any_scale(scale: float, bounds: str, leaf: str) -> None:
    """Parameters scale with the column, up to rounding; the smallest scales only stay finite."""
    columns = Columns(
        np.zeros(1, np.uint8), np.zeros(1, np.int32), np.zeros(1), np.zeros(1), np.zeros(2, np.int32), np.empty(0),
        np.zeros(1, np.int32),
    )  # fmt: skip
    x = np.random.default_rng(0).normal(size=50)
    x[:2] = -9.9, 9.9
    leaf_of = (x > 0.2).astype(np.int32)
    fits = []
    for c in (1.0, scale):
        table = prepare_table(columns, (x * c)[:, None])
        lo, hi = np.array([[-np.inf], [0.2 * c]]), np.array([[0.2 * c], [np.inf]])
        fits.append(fit(columns, table, leaf_of, lo, hi, np.ones((2, 0), bool), Settings(leaf, bounds)))
    one, scaled = fits
    assert (scaled.lo < scaled.hi).all()
    for field in ("a", "b", "lo", "hi"):
        expected, found = getattr(one, field), getattr(scaled, field)
        if scale < 1e-140:
            assert not np.isnan(found).any()
        else:
            assert found == pytest.approx(expected * scale, rel=1e-6)
    if leaf != "uniform":
        assert (scaled.b > 0).all()


def test_narrow_spread_far_from_zero(case: Case) -> None:
    columns = COLUMNS._replace(is_categorical=np.zeros(1, np.uint8), slot=np.zeros(1, np.int32), step=np.zeros(1),
        origin=np.zeros(1), atom_start=np.zeros(2, np.int32), atom_value=np.empty(0), level_start=np.zeros(1, np.int32),
    )  # fmt: skip
    x = 1e9 + np.arange(20) * 1e-6
    table = prepare_table(columns, x[:, None])
    box = np.full((1, 1), np.inf)
    settings = Settings(spread_rows=0.0)
    leaves = fit(columns, table, np.zeros(20, np.int32), -box, box, np.ones((1, 0), bool), settings)
    assert leaves.a[0, 0] == pytest.approx(x[0] + (x - x[0]).mean(), abs=1e-7)
    assert leaves.b[0, 0] == pytest.approx((x - x[0]).std(ddof=1), rel=1e-3)


def test_rows_left_out_and_leaves_without_rows(case: Case) -> None:
    leaf_of = np.where(case.leaf_of == 4, -1, case.leaf_of).astype(np.int32)
    leaves, all_rows = case.fit(leaf_of), case.fit()
    assert leaves.rows[4] == 0
    for field in ("level_mass", "missing_rate"):
        assert getattr(leaves, field)[[0, 1, 3]] == pytest.approx(getattr(all_rows, field)[[0, 1, 3]])
    assert leaves.level_mass[4] == pytest.approx(case.table.level_share)
    assert np.isfinite(leaves.a).all()
    assert (leaves.b > 0).all()


# -- maximum likelihood


def negative_log_likelihood(p: np.ndarray, x: np.ndarray, lo: float, hi: float) -> float:
    mu, sigma = p[0], np.exp(p[1])
    return -float(stats.truncnorm.logpdf(x, (lo - mu) / sigma, (hi - mu) / sigma, mu, sigma).mean())


@pytest.mark.parametrize(
    ("lo", "hi"), [(-1.0, np.inf), (-np.inf, 0.5), (-1.5, 1.0), (0.0, np.inf), (-2.0, 2.5), (-np.inf, np.inf)]
)
def test_mle_against_scipy(lo: float, hi: float) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=4000)
    x = x[(x > lo) & (x <= hi)]
    mean, spread = np.array([x.mean()]), np.array([x.std()])
    a, b = truncated_mle(mean, spread, np.array([lo]), np.array([hi]), 1e-3, 10.0)
    found = optimize.minimize(
        negative_log_likelihood, [x.mean(), np.log(x.std())], (x, lo, hi), method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 4000},
    )  # fmt: skip
    ours = negative_log_likelihood(np.array([a[0], np.log(b[0])]), x, lo, hi)
    assert ours <= found.fun + 1e-7
    assert (a[0], b[0]) == pytest.approx((found.x[0], np.exp(found.x[1])), abs=1e-3)


@pytest.mark.parametrize("shape", ["flat", "heaped at both ends", "falling"])
def test_mle_without_a_finite_solution_stops_at_the_ceiling(shape: str) -> None:
    x = np.linspace(0, 1, 101)
    if shape == "heaped at both ends":
        x = np.where(x < 0.5, x**2, 1 - (1 - x) ** 2)
    if shape == "falling":
        x = x**2
    lo, hi = np.array([-1e-3]), np.array([1.001])
    a, b = truncated_mle(np.array([x.mean()]), np.array([x.std()]), lo, hi, 1e-3, 4 * x.std())
    assert np.isfinite(a).all()
    assert 1e-3 <= b[0] <= 4 * x.std()
    moments = negative_log_likelihood(np.array([x.mean(), np.log(x.std())]), x, lo[0], hi[0])
    assert negative_log_likelihood(np.array([a[0], np.log(b[0])]), x, lo[0], hi[0]) <= moments + 1e-9


def test_mle_leaves_are_likelier(case: Case) -> None:
    plain, mle = case.fit(spread_rows=0.0), case.fit(leaf="normal_mle", spread_rows=0.0)
    for leaf in range(LEAVES - 1):
        x = case.cells(leaf, 0)
        lo, hi = case.lo[leaf, 0], case.hi[leaf, 0]
        score = [
            negative_log_likelihood(np.array([f.a[leaf, 0], np.log(f.b[leaf, 0])]), x, lo, hi) for f in (plain, mle)
        ]
        assert score[1] <= score[0] + 1e-3


# -- the forest


def test_weights_of_a_forest_sum_to_one(case: Case) -> None:
    trees = [case.fit(), case.fit(np.where(case.leaf_of < 3, case.leaf_of, -1).astype(np.int32))]
    for back, epsilon in ((None, 0.0), (background(COLUMNS, case.table), 0.01)):
        leaves = join_leaves(COLUMNS, trees, back, epsilon)
        weight = np.exp(leaves.log_weight)
        assert weight.sum() == pytest.approx(1.0)
        share = (1 - epsilon) / 2
        assert weight[:LEAVES] == pytest.approx(share * trees[0].rows / N)
        assert weight[LEAVES : 2 * LEAVES] == pytest.approx(share * trees[1].rows / trees[1].rows.sum())
        assert (leaves.family[: 2 * LEAVES] == NORMAL).all()
        assert leaves.tree.tolist() == [0] * LEAVES + [1] * LEAVES + [2] * (back is not None)
    assert weight[-1] == pytest.approx(0.01)
    assert (leaves.family[-1] == STUDENT).all()
    assert (join_leaves(COLUMNS, [case.fit(leaf="uniform")]).family == UNIFORM).all()


def test_background(case: Case) -> None:
    table: Table = case.table
    back = background(COLUMNS, table)
    assert back.a[0] == pytest.approx(table.centre)
    assert back.b[0] == pytest.approx(table.spread)
    assert np.isneginf(back.lo).all() and np.isposinf(back.hi).all()
    assert back.level_mass[0] == pytest.approx(table.level_share)
    assert back.missing_rate[0] == pytest.approx(table.missing)
    assert back.atom_mass[0, 3] == pytest.approx(0.999)  # the rest of a column of atoms alone keeps a thousandth
    assert back.atom_mass[0, :3] == pytest.approx(table.atom_share[:3])


@pytest.mark.parametrize("leaf", ["normal", "normal_moments", "normal_mle", "uniform"])
def test_a_weight_of_two_is_a_row_twice(case: Case, leaf: str) -> None:
    weight = np.random.default_rng(1).integers(1, 4, N).astype(np.float64)
    twice = np.repeat(np.arange(N), weight.astype(int))
    table = case.table._replace(
        values=np.ascontiguousarray(case.table.values[:, twice]), codes=np.ascontiguousarray(case.table.codes[:, twice])
    )
    settings = Settings(leaf)
    weighted = fit(COLUMNS, case.table, case.leaf_of, case.lo, case.hi, case.allowed, settings, weight)
    repeated = fit(COLUMNS, table, case.leaf_of[twice], case.lo, case.hi, case.allowed, settings)
    for field in set(TreeLeaves._fields) - {"wide", "pieces"}:  # no column is wide or in pieces
        assert getattr(weighted, field) == pytest.approx(getattr(repeated, field), rel=1e-9), field
