"""Quantile leaves: how close a piecewise-linear CDF is to the data's, and that every question agrees with its knots."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import kernel_columns, snap
from jointforest.learners.leaf_fitting.constants import FIXED
from jointforest.learners.leaf_fitting.densities import join_leaves
from jointforest.learners.leaf_fitting.fit import Settings as LeafSettings
from jointforest.learners.leaf_fitting.fit import fit_tree, leaf_sums, prepare_table
from jointforest.learners.leaf_fitting.quantile import cdfs, column_resolution, leaf_cdfs, values_of_rows, with_cdfs
from jointforest.learners.leaf_fitting.quantile_kernels import Samples
from jointforest.models.box_forest.files import check_forest
from jointforest.models.box_forest.leaves.table import PIECES, pieces_of_slot
from jointforest.models.box_forest.structure import Forest, Trees

from ...wrapped import joint_of

seeds = st.integers(0, 2**32 - 1)


def distance(x: np.ndarray, weight: np.ndarray, knot_x: np.ndarray, knot_p: np.ndarray, apart: float = 0.0) -> float:
    """Largest distance of a CDF from the empirical one, on both sides of every step.

    The CDF may be late, or early, by ``apart``: F(x - apart) - e <= CDF(x) <= F(x + apart) + e.
    """
    value = np.unique(x)
    behind = np.array([weight[x <= v].sum() for v in value]) / weight.sum()
    before = np.array([weight[x < v].sum() for v in value]) / weight.sum()
    late, early = np.interp(value + apart, knot_x, knot_p), np.interp(value - apart, knot_x, knot_p)
    return float(max(np.max(behind - late), np.max(early - before)))


def samples(rng: np.random.Generator, n: int) -> np.ndarray:
    """Values of some shape: smooth, skewed, of two humps, or rounded so that there are ties."""
    shape = rng.integers(4)
    x = [rng.normal(size=n), np.exp(rng.normal(size=n)), rng.choice([0.0, 9.0], n) + rng.random(n), rng.gamma(2, 5, n)]
    return np.round(x[shape], 1) if rng.random() < 0.3 else x[shape]


# -------------------------------------------------------------------------------------------------- the fitted function


def piecewise_cdf(
    x: np.ndarray, weight: np.ndarray, epsilon: float, resolution: float
) -> tuple[np.ndarray, np.ndarray]:
    """Knots of the CDF of one leaf without bounds, which is within ``epsilon`` of the empirical one."""
    order = np.argsort(x)
    x, share = x[order], weight[order] / weight.sum()
    mean = share @ x
    with np.errstate(over="ignore"):  # of the largest floats
        var = share @ (x - mean) ** 2
    of_leaf = (len(x), min(epsilon, 1.0), 0.0, resolution * resolution, mean, var, -np.inf, np.inf)
    one = (np.full(1, float(number)) for number in of_leaf)
    _, knot_x, knot_p = cdfs(Samples(x, share, np.array([0, len(x)]), *one, 0.0, 0.0, float(resolution)))
    return knot_x, knot_p


@given(seeds, st.sampled_from([0.01, 0.03, 0.1, 0.3]))
@settings(max_examples=60)
def test_distance_without_large_ties(seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 300))
    x, weight = samples(rng, n), rng.choice([1.0, 2.0, 3.0], n)
    epsilon = max(epsilon, 1 / n)
    knot_x, knot_p = piecewise_cdf(x, weight, epsilon, 1e-7)
    assert knot_p[0] == 0.0 and knot_p[-1] == 1.0
    assert np.all(np.diff(knot_x) > 0.4e-7) and np.all(np.diff(knot_p) >= 0)
    # the line is within epsilon, and moments may move it
    assert distance(x, weight, knot_x, knot_p, apart=0.51e-7) <= 3 * epsilon
    share = np.array([weight[x == v].sum() for v in np.unique(x)]) / weight.sum()
    if share.max() <= 2 * epsilon - 1e-9 and np.diff(np.unique(x)).min(initial=1.0) > 1e-7:
        assert distance(x, weight, knot_x, knot_p) <= 3 * epsilon  # nothing is too steep: no allowance


def moments_of(knot_x: np.ndarray, knot_p: np.ndarray) -> tuple[float, float]:
    """Mean and variance of a piecewise-linear CDF, by its pieces."""
    mass, left, right = np.diff(knot_p), knot_x[:-1], knot_x[1:]
    mean = float(mass @ (left + right)) / 2
    return mean, float(mass @ ((left - mean) ** 2 + (left - mean) * (right - mean) + (right - mean) ** 2)) / 3


def by_quadrature(knot_x: np.ndarray, knot_p: np.ndarray) -> tuple[float, float]:
    """The same, by a sum over many even quantiles."""
    q = (np.arange(400_000) + 0.5) / 400_000
    x = np.interp(q, knot_p, knot_x)
    return float(x.mean()), float(x.var())


@given(seeds, st.sampled_from([0.01, 0.03, 0.1]), st.sampled_from([1.0, 1e-6, 1e6]))
@settings(max_examples=60)
def test_moments_are_those_of_the_values(seed: int, epsilon: float, unit: float) -> None:
    """The mean exactly, the variance within 5 %: sums over the values, heavy tails and ties among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 300))
    x, weight = unit * samples(rng, n), rng.choice([1.0, 2.0, 3.0], n)
    mean = float(weight @ x / weight.sum())
    var = float(weight @ (x - mean) ** 2 / weight.sum())
    found_mean, found_var = moments_of(*piecewise_cdf(x, weight, epsilon, 1e-7 * unit))
    assert found_mean == pytest.approx(mean, abs=1e-9 * max(np.sqrt(var), 1e-6 * unit))
    assert 0.95 * var - 1e-9 * unit**2 <= found_var <= 1.0501 * var + 1e-9 * unit**2


def test_moments_by_quadrature() -> None:
    x = np.exp(np.random.default_rng(0).normal(size=500))
    knots = piecewise_cdf(x, np.ones(500), 0.03, 1e-6)
    mean, var = by_quadrature(*knots)
    assert moments_of(*knots) == (pytest.approx(mean, rel=1e-5), pytest.approx(var, rel=1e-4))
    assert mean == pytest.approx(x.mean(), rel=1e-5)
    assert var == pytest.approx(x.var(), rel=0.051)


def test_a_far_value_does_not_bend_the_spread() -> None:
    """One value in a thousand, far beyond all others."""
    x = np.append(np.linspace(-1.0, 1.0, 999), 600.0)
    mean, var = moments_of(*piecewise_cdf(x, np.ones(1000), 0.05, 1e-4))
    assert mean == pytest.approx(x.mean(), abs=1e-9)
    assert var == pytest.approx(x.var(), rel=0.0501)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_values_whose_squares_are_no_floats(unit: float) -> None:
    x = unit * np.linspace(1.0, 2.0, 50) ** 3
    knot_x, knot_p = piecewise_cdf(x, np.ones(50), 0.05, 1e-6 * unit)
    assert distance(x, np.ones(50), knot_x, knot_p, apart=1e-6 * unit) <= 0.05 + 1e-9


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.15])
def test_distance_with_ties(epsilon: float) -> None:
    """Half of the column at its minimum, and a third at a value inside: spread over the resolution, nothing else."""
    x = np.concatenate([np.zeros(300), np.full(200, 0.5), np.linspace(0.0, 1.0, 100)])
    knot_x, knot_p = piecewise_cdf(x, np.ones(600), epsilon, 1e-3)
    assert distance(x, np.ones(600), knot_x, knot_p, apart=0.5e-3) <= 3 * epsilon
    width = np.diff(knot_x)
    assert width.min() >= 0.5e-3 - 1e-12
    assert 1 <= np.sum(width < 0.01) <= 3  # narrow pieces at the ties alone (the first may take two)


def test_all_equal_values() -> None:
    knot_x, knot_p = piecewise_cdf(np.full(7, 3.0), np.ones(7), 0.05, 0.01)
    np.testing.assert_allclose(knot_x, [2.995, 3.005])
    assert knot_p.tolist() == [0.0, 1.0]


def test_near_equal_values_make_no_spike() -> None:
    """Two values that differ by rounding are one: the density is that of the column without the second."""
    x = np.append(np.linspace(0.0, 1.0, 100), 0.5 + 1e-13)
    knot_x, knot_p = piecewise_cdf(x, np.ones(101), 0.02, 1e-4)
    assert np.max(np.diff(knot_p) / np.diff(knot_x)) < 1.5
    clump = np.concatenate([np.linspace(0.0, 1.0, 80), 0.5 + 1e-9 * np.arange(20)])
    knot_x, knot_p = piecewise_cdf(clump, np.ones(100), 0.02, 1e-4)
    assert np.diff(knot_x).min() >= 0.5e-4


def least_pieces(x: np.ndarray, epsilon: float) -> int:
    """No continuous function has fewer pieces: as many lines as it takes when they need not meet."""
    value = np.unique(x)
    behind, before = [np.array([np.mean(f(x, v)) for v in value]) for f in (np.less_equal, np.less)]
    n_lines, first, i = 0, 0, 1
    while first < len(value):
        n_lines += 1
        i = first + 1
        while i < len(value):
            rows = np.column_stack([np.ones(i + 1 - first), value[first : i + 1]])
            bounds = np.concatenate([before[first : i + 1] + epsilon, epsilon - behind[first : i + 1]])
            if not linprog([0, 0], np.vstack([rows, -rows]), bounds, bounds=[(None, None), (0, None)]).success:
                break
            i += 1
        first = i
    return n_lines


@pytest.mark.parametrize("seed", range(6))
def test_few_pieces(seed: int) -> None:
    """At most two pieces for each line that is needed, and two at the ends, where the function has to be 0 and 1."""
    rng = np.random.default_rng(seed)
    x = [rng.normal(size=60), rng.exponential(size=60), rng.random(60)][seed % 3]
    knot_x, _ = piecewise_cdf(x, np.ones(60), 0.04, 1e-9)
    assert len(knot_x) - 1 <= 2 * least_pieces(x, 0.04) + 2


def test_a_uniform_column_is_one_piece() -> None:
    assert len(piecewise_cdf(np.linspace(-5, 5, 1000), np.ones(1000), 0.01, 1e-6)[0]) == 2


def test_resolution_of_a_column() -> None:
    assert column_resolution(np.array([0.0, 1.0, 1.0, 2.0, np.nan, 9.0]), 1.0) == pytest.approx(0.1)
    assert column_resolution(np.full(5, 1e6), 1e-9) > np.spacing(1e6)


# ----------------------------------------------------------------------------------------- one leaf, and every question


def one_leaf(frame: pd.DataFrame, epsilon: float = 0.01, kinds: dict[str, str] | None = None) -> Joint:
    """A model of one leaf that has all rows, without background."""
    schema = infer_schema(frame, kinds)
    columns = kernel_columns(schema)
    table = prepare_table(columns, snap(columns, encode(schema, frame)[0]))
    n, p = len(frame), len(columns.step)
    rows, start, weight = np.arange(n, dtype=np.int32), np.array([0, n]), np.ones(n)
    lo, hi = np.full((1, p), -np.inf), np.full((1, p), np.inf)
    allowed = np.ones((1, int(columns.level_start[-1])), bool)
    sums = leaf_sums(columns, (table.values, table.codes), table.spread, rows, start, weight)
    fitted = fit_tree(columns, table, sums, lo, hi, allowed, LeafSettings("quantile"))
    numbers = np.flatnonzero(columns.is_categorical == 0)
    cdfs_of = {}
    for slot, j in zip(columns.slot[numbers].tolist(), numbers, strict=True):
        values = values_of_rows(table.values[j], table.codes[j], rows, start, weight)
        cdfs_of[slot] = leaf_cdfs(columns, table, slot, values, (lo, hi), epsilon)
    fitted = with_cdfs(fitted, cdfs_of)
    none, one = np.array([-1], np.int32), np.zeros(1)
    trees = Trees(none, one, none, np.empty(0, np.uint64), none, none, none + 1, one + 1.0, none + 1)
    leaves = join_leaves(columns, [fitted])
    check_forest(schema, columns, trees, leaves, has_background=False)
    return joint_of(Forest(schema, columns, trees, leaves, has_background=False))


def knots_of(joint: Joint, slot: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Knots of a column's CDF, read off the parameters."""
    leaves = joint.distribution.forest.leaves
    if leaves.family[0, slot] != PIECES:
        return np.array([leaves.lo[0, slot], leaves.hi[0, slot]]), np.array([0.0, 1.0])
    _, own = pieces_of_slot(leaves, slot, np.array([0]))
    lo, hi, mass = leaves.pieces.lo[own, 0], leaves.pieces.hi[own, 0], np.exp(leaves.pieces.log_weight[own])
    np.testing.assert_array_equal(hi[:-1], lo[1:])
    return np.append(lo, hi[-1]), np.append(0.0, np.cumsum(mass))


@given(seeds)
@settings(max_examples=15)
def test_questions_agree_with_the_knots(seed: int) -> None:
    """Density, mass, crop, quantiles and moments of a column against its piecewise-linear CDF, by hand."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": samples(rng, 120) + 1e-9 * rng.random(120), "y": rng.normal(size=120)})
    joint = one_leaf(frame, kinds={"x": "continuous", "y": "continuous"})
    knot_x, knot_p = knots_of(joint)
    marginal = joint.marginal("x")
    at = rng.uniform(knot_x[0], knot_x[-1], 20)
    np.testing.assert_allclose(marginal.cdf(at), np.interp(at, knot_x, knot_p), atol=1e-10)
    piece = np.searchsorted(knot_x, at) - 1
    np.testing.assert_allclose(marginal.pdf(at), (np.diff(knot_p) / np.diff(knot_x))[piece], rtol=1e-7)
    q = rng.uniform(0.001, 0.999, 20)
    np.testing.assert_allclose(marginal.ppf(q), np.interp(q, knot_p, knot_x), atol=1e-8 * (knot_x[-1] - knot_x[0]))
    mass, middle, width = np.diff(knot_p), 0.5 * (knot_x[1:] + knot_x[:-1]), np.diff(knot_x)
    mean = mass @ middle
    assert marginal.mean() == pytest.approx(mean, abs=1e-9)
    assert marginal.var() == pytest.approx(mass @ (width**2 / 12 + (middle - mean) ** 2), rel=1e-9)
    # cropped to an interval: the same function, shifted and stretched to go from 0 to 1; the other column is as before
    a, b = np.sort(rng.uniform(knot_x[0], knot_x[-1], 2))
    low, high = np.interp([a, b], knot_x, knot_p)
    cropped = joint.given(x=jf.between(a, b))
    assert np.exp(cropped.log_probability) == pytest.approx(high - low, rel=1e-9)
    inside = rng.uniform(a, b, 10)
    want = (np.interp(inside, knot_x, knot_p) - low) / (high - low)
    np.testing.assert_allclose(cropped.marginal("x").cdf(inside), want, atol=1e-9)
    assert cropped.mean("y") == pytest.approx(joint.given().mean("y"), rel=1e-9)
    # the two sides of a cut, weighted by their masses, are the whole again
    sides = [joint.given(x=jf.between(-np.inf, a)), joint.given(x=jf.between(np.nextafter(a, np.inf), np.inf))]
    share = [float(np.exp(side.log_probability)) for side in sides]
    assert sum(share) == pytest.approx(1.0, abs=1e-10)
    merged = sum(w * side.marginal("x").cdf(at) for w, side in zip(share, sides, strict=True) if w > 0)
    np.testing.assert_allclose(merged, np.interp(at, knot_x, knot_p), atol=1e-8)


def test_a_single_row_is_uniform() -> None:
    joint = one_leaf(pd.DataFrame({"x": [0.25]}), kinds={"x": "continuous"})
    knot_x, knot_p = knots_of(joint)
    np.testing.assert_allclose(knot_p, (knot_x - knot_x[0]) / (knot_x[-1] - knot_x[0]), atol=1e-9)


@given(seeds)
@settings(max_examples=15)
def test_leaves_of_a_tree_keep_their_moments(seed: int) -> None:
    """On a grid and off it: exact means, and variances within 5 % and the stated share of the column's own."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 150))
    frame = pd.DataFrame({"x": samples(rng, n) + 1e-9 * rng.random(n), "k": rng.integers(0, 500, n)})
    joint = one_leaf(frame, kinds={"x": "continuous", "k": "integer"})
    for name in frame:
        x = frame[name].to_numpy(float)
        assert joint.marginal(name).mean() == pytest.approx(x.mean(), abs=1e-8 * x.std())
        assert 0.949 <= joint.marginal(name).var() / x.var() <= 1.051 + 1.02 * FIXED.quantile_extra_rows / (n + 1)


def test_unions_of_intervals_and_the_same_column_in_query_and_evidence() -> None:
    rng = np.random.default_rng(0)
    joint = one_leaf(pd.DataFrame({"x": rng.normal(size=300)}), kinds={"x": "continuous"})
    knot_x, knot_p = knots_of(joint)

    def mass(a: float, b: float) -> float:
        low, high = np.interp([a, b], knot_x, knot_p)
        return float(high - low)

    union = joint.given("x between -1 and 0 or x between 1 and 1.5")
    whole = mass(-1, 0) + mass(1, 1.5)
    assert np.exp(union.log_probability) == pytest.approx(whole, rel=1e-9)
    assert union.probability("x > -0.5") == pytest.approx((mass(-0.5, 0) + mass(1, 1.5)) / whole, rel=1e-9)
    draws = union.sample(4000, random_state=0)["x"].to_numpy()
    assert np.all(((draws >= -1) & (draws <= 0)) | ((draws >= 1) & (draws <= 1.5)))
    assert np.mean(draws < 0.5) == pytest.approx(mass(-1, 0) / whole, abs=0.03)


def columns_like_measurements() -> pd.DataFrame:
    """Like petals and pixels: rounded lengths of two kinds, grey levels most of which are 0, halves tied, constants."""
    rng = np.random.default_rng(3)
    kind = rng.random(400) < 0.4
    return pd.DataFrame(
        {
            "petal": np.round(np.where(kind, rng.normal(1.5, 0.2, 400), rng.normal(4.9, 0.8, 400)).clip(0.1), 1),
            "pixel": np.where(rng.random(400) < 0.6, 0.0, rng.integers(0, 17, 400)).astype(float),
            "half": np.where(rng.random(400) < 0.5, 0.0, rng.exponential(1.0, 400)),
            "inner": np.where(rng.random(400) < 0.3, 0.25, rng.random(400)),
            "same": np.full(400, 7.5),
            "real": rng.normal(1e6, 1.0, 400),
        }
    )


@pytest.mark.parametrize("name", ["petal", "pixel", "half", "inner", "same", "real"])
@pytest.mark.parametrize("kind", ["inferred", "continuous"])
def test_densities_integrate_to_one(name: str, kind: str) -> None:
    """Masses of atoms, cells and pieces; and the CDF is that of the data."""
    frame = columns_like_measurements()[[name]]
    joint = one_leaf(frame, kinds=None if kind == "inferred" else {name: "continuous"})
    column, leaves, columns = (
        joint.schema.columns[0],
        joint.distribution.forest.leaves,
        joint.distribution.forest.columns,
    )
    x = frame[name].to_numpy()
    lo, hi = float(leaves.lo.min()), float(leaves.hi.max())
    if column.step > 0:
        cells = np.arange(np.rint((lo - column.center) / column.step), np.rint((hi - column.center) / column.step) + 1)
        density = np.exp(joint.log_density(pd.DataFrame({name: column.center + cells * column.step})))
        assert density.sum() * column.step == pytest.approx(1.0, rel=1e-9)
    else:
        edges = knots_of(joint)[0]
        middle = 0.5 * (edges[1:] + edges[:-1])
        atoms = np.array(columns.atom_value)
        masses = np.exp(joint.log_density(pd.DataFrame({name: atoms}))) if len(atoms) else np.zeros(0)
        on_line = np.exp(joint.log_density(pd.DataFrame({name: middle}))) @ np.diff(edges)
        assert masses.sum() + on_line == pytest.approx(1.0, rel=1e-9)
    value = np.unique(x)
    width = 0.0 if column.step > 0 else column_resolution(x, 1.0)
    got = joint.marginal(name).cdf(value + width)
    want = np.array([np.mean(x <= v + width) for v in value])
    assert np.abs(got - want).max() <= 0.25 / np.sqrt(100) + 0.01  # noise of the smallest number of rows on no atom
    assert joint.log_density(frame).min() > -25


def test_pieces_of_a_grid_end_on_cell_edges() -> None:
    frame = columns_like_measurements()[["petal", "half", "real"]]
    joint = one_leaf(frame)
    petal = joint.schema.columns[0]
    assert petal.step == pytest.approx(0.1)
    cells = (knots_of(joint)[0] - petal.center) / petal.step - 0.5
    np.testing.assert_allclose(cells, np.rint(cells), atol=1e-6)


# ------------------------------------------------------------------------------------------------------------- learners


def mixed_table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    frame = pd.DataFrame(
        {
            "x": rng.normal(3.0 * group, 1.0),
            "k": rng.poisson(2 + 3 * group),
            "tied": np.where(rng.random(n) < 0.5, 0.0, rng.exponential(1.0 + group)),
            "group": np.array(["a", "b", "c"])[group],
        }
    )
    for name in ("x", "tied", "group"):
        frame.loc[rng.random(n) < 0.05, name] = None
    return frame


def test_no_row_in_the_span_has_probability_zero() -> None:
    """Without background, over new rows of the same kind: those between the extremes of the column all count."""
    train, test = mixed_table(400, 0), mixed_table(2000, 1)
    forest = jf.AdversarialForest(5, min_samples_leaf=5, leaf="quantile", epsilon=0.0, random_state=0).fit(train)
    model = forest.joint_.distribution.forest
    check_forest(model.schema, model.columns, model.trees, model.leaves, model.has_background)
    for name in ("x", "k", "tied"):
        test[name] = test[name].clip(train[name].min(), train[name].max())
    assert np.isfinite(forest.joint_.log_density(test)).all()


def test_adversarial_forest_with_quantile_leaves() -> None:
    """Few large leaves of two humps, which no normal describes; equal for every number of threads."""
    train, test = mixed_table(1500, 2), mixed_table(500, 3)
    settings_ = {"n_estimators": 3, "min_samples_leaf": 400, "max_iters": 0, "random_state": 0}
    by_leaf = {leaf: jf.AdversarialForest(**settings_, leaf=leaf).fit(train).joint_ for leaf in ("normal", "quantile")}
    score = {leaf: joint.log_density(test).mean() for leaf, joint in by_leaf.items()}
    assert score["quantile"] > score["normal"]
    again = jf.AdversarialForest(**settings_, leaf="quantile", n_jobs=1).fit(train).joint_
    np.testing.assert_array_equal(again.log_density(test), by_leaf["quantile"].log_density(test))


def test_quantile_epsilon_bounds_the_pieces() -> None:
    train = mixed_table(800, 4)
    n_pieces = [
        len(
            jf.AdversarialForest(2, min_samples_leaf=200, leaf="quantile", quantile_epsilon=e, random_state=0)
            .fit(train)
            .joint_.distribution.forest.leaves.pieces.log_weight
        )
        for e in (0.01, 0.2)
    ]
    assert n_pieces[1] < n_pieces[0]
    with pytest.raises(ValueError, match="quantile_epsilon"):
        jf.AdversarialForest(leaf="quantile", quantile_epsilon=0.0).fit(train)


def test_generative_forests_keep_the_trees_predictions() -> None:
    """The target has its own distribution, whatever the features' (Correia et al. 2020, Theorem 1)."""
    frame = mixed_table(400, 5).dropna()
    X, y = frame.drop(columns="group"), frame["group"]
    settings_ = {"n_estimators": 5, "min_samples_leaf": 5, "combine": "trees", "random_state": 0}
    plain, quantile = (
        jf.GenerativeForestClassifier(**settings_, leaf=leaf).fit(X, y).predict_proba(X)
        for leaf in ("normal", "quantile")
    )
    np.testing.assert_allclose(quantile, plain, atol=1e-12)
    X, y = frame.drop(columns="x"), frame["x"]
    plain, quantile = (
        jf.GenerativeForestRegressor(**settings_, leaf=leaf).fit(X, y).predict(X) for leaf in ("normal", "quantile")
    )
    np.testing.assert_allclose(quantile, plain, rtol=1e-9)
    with pytest.raises(ValueError, match="target_in_leaf='full' needs another leaf"):
        jf.GenerativeForestRegressor(leaf="quantile", target_in_leaf="full").fit(X, y)
