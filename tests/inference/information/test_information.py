"""Entropies, mutual information and divergences: against enumeration, quadrature, scipy and mpmath, and by sampling."""

from __future__ import annotations

import math
from itertools import product

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy import stats

import jointforest as jf
from jointforest.data.evidence import build
from jointforest.inference.information import divergence, entropy, integral
from jointforest.inference.information.divergence import AREA, SUP
from jointforest.inference.information.entropy_kernels import density_entropy as density_entropy_kernel
from jointforest.inference.information.integral import Estimate, ModelView, views
from jointforest.models.box_forest.leaves import grid_kernels
from jointforest.models.box_forest.leaves.table import NORMAL, STUDENT, UNIFORM, ParameterTables
from jointforest.models.box_forest.posterior import log_density
from jointforest.models.box_forest.structure import Forest

from ... import oracle
from ...box_answers import cdf
from ...compiled import compiled
from ...densities import density
from ...oracle.quadrature import complete, rule
from ...random_cases.models import random_model, seeds
from ...wrapped import joint_of

LEVELS = ("boolean", "ordered", "categorical")
INF = math.inf

density_entropy = compiled(density_entropy_kernel)
log_cell_density = compiled(grid_kernels.log_cell_density)


# ----------------------------------------------------------------------------------------------------------- families


@pytest.mark.parametrize("lo, hi", [(-30, 30), (-30, -3), (0, 1), (-1, 1e-3), (-3, 20), (2, 40), (5, 6)])
def test_truncated_normal_against_scipy(lo: float, hi: float) -> None:
    want = stats.truncnorm(lo, hi, 0.3, 1.7).entropy()
    whole = density(NORMAL, 0.3, 1.7, 0.3 + 1.7 * lo, 0.3 + 1.7 * hi)
    assert density_entropy(whole, 0.0, 0.0) == pytest.approx(want, abs=1e-8)


@pytest.mark.parametrize("lo, hi", [(-INF, INF), (-INF, -3), (0, 1), (5, 6), (30, INF), (-40, -20), (1000, 1000.01)])
@pytest.mark.parametrize("family", [NORMAL, STUDENT])
def test_families_against_mpmath(family: int, lo: float, hi: float) -> None:
    b = 1.7
    with mp.workdps(40):
        # relative to the end nearest to 0, where densities far out do not underflow
        flip = lo + hi < 0
        low, high = (mp.mpf(-hi), mp.mpf(-lo)) if flip else (mp.mpf(lo), mp.mpf(hi))
        at = low if low > 0 else mp.mpf(0)

        def log_f(z: mp.mpf) -> mp.mpf:
            if family == NORMAL:
                return -(z - at) * (z + at) / 2
            return -mp.mpf(5) / 2 * mp.log((4 + z * z) / (4 + at * at))

        steps = sorted({low, high, *(at + s * mp.mpf(10) ** k for s in (-1, 1) for k in range(-3, 4))})
        points = [z for z in steps if low <= z <= high]
        mass = mp.quad(lambda z: mp.exp(log_f(z)), points)
        mean = mp.quad(lambda z: mp.exp(log_f(z)) * log_f(z) if mp.isfinite(z) else 0, points) / mass
        want = float(mp.log(b) + mp.log(mass) - mean)
    assert density_entropy(density(family, 0.0, b, b * lo, b * hi), 0.0, 0.0) == pytest.approx(want, abs=1e-10)


@pytest.mark.parametrize("b", [0.05, 0.4, 2.0, 30.0, 63.0, 65.0, 90.0, 110.0])
@pytest.mark.parametrize("lo, hi", [(-INF, INF), (0.5, INF), (-5.5, 17.5), (100.5, 300.5), (-0.5, 0.5)])
@pytest.mark.parametrize("family", [NORMAL, STUDENT])
def test_grids_cell_by_cell(family: int, b: float, lo: float, hi: float) -> None:
    whole = density(family, 1.3, b, lo, hi)
    cells = np.arange(-60_000, 60_000)
    cells = cells[(cells > lo) & (cells <= hi)]
    log_p = np.array([log_cell_density(whole, float(x), 1.0) for x in cells])
    want = -np.sum(np.exp(log_p) * np.where(log_p > -INF, log_p, 0.0))
    assert density_entropy(whole, 1.0, 0.0) == pytest.approx(want, abs=3e-8)
    # another unit of length moves the entropy by its logarithm
    scaled = density_entropy(density(family, 13.0, 10 * b, 10 * lo, 10 * hi), 10.0, 0.0)
    assert scaled - math.log(10) == pytest.approx(want, abs=3e-8)


def test_uniform() -> None:
    assert density_entropy(density(UNIFORM, 0.0, 0.0, -1.5, 4.5), 1.0, 0.0) == pytest.approx(math.log(6.0))


# ------------------------------------------------------------------------------------------------------- enumeration


def table(model: Forest) -> np.ndarray:
    """Probabilities of every combination of levels, one axis a column, by the definition."""
    sizes = [len(column.levels) for column in model.schema.columns]
    rows = complete(np.array(list(product(*map(range, sizes))), dtype=float))
    return np.exp(oracle.log_density(model, rows)).reshape(sizes)


def shannon(p: np.ndarray, axes: tuple[int, ...]) -> float:
    """Entropy of the marginal over some axes."""
    p = p.sum(axis=tuple(k for k in range(p.ndim) if k not in axes)).ravel()
    return float(-np.sum(p[p > 0] * np.log(p[p > 0])))


def small_levels(seed: int, **options: object) -> Forest:
    """A random model of levels that can be enumerated: one with few levels, found from the seed on."""
    for k in range(seed, seed + 1000):
        model = random_model(k, kinds=LEVELS, **options)
        if max(len(c.levels) for c in model.schema.columns) <= 5:
            return model
    raise AssertionError


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_levels_by_enumeration(seed: int) -> None:
    model = small_levels(seed, n_trees=1 + seed % 3, background=seed % 2 > 0)
    joint, p = joint_of(model), table(model)
    for names, axes in ((["c0"], (0,)), (["c2", "c0"], (0, 2)), ([], (0, 1, 2))):
        found = joint.entropy(*names)
        assert found == (pytest.approx(shannon(p, axes), abs=1e-10), 0.0, "exact")
    want = shannon(p, (0, 1, 2)) - shannon(p, (1,))
    assert joint.entropy("c0", "c2", given="c1").value == pytest.approx(want, abs=1e-10)
    want = shannon(p, (0,)) + shannon(p, (1, 2)) - shannon(p, (0, 1, 2))
    assert joint.mutual_information("c0", ["c1", "c2"]).value == pytest.approx(want, abs=1e-10)
    want = shannon(p, (0, 1)) + shannon(p, (1, 2)) - shannon(p, (0, 1, 2)) - shannon(p, (1,))
    found = joint.mutual_information("c0", "c2", given="c1")
    assert found == (pytest.approx(want, abs=1e-10), 0.0, "exact")


def divergences(p: np.ndarray, q: np.ndarray, w: np.ndarray | float = 1.0) -> dict[str, float]:
    """All four from densities at points of measure w."""
    m = (p + q) / 2

    def kl(a: np.ndarray, b: np.ndarray) -> float:
        some = a > 0
        if np.any(b[some] == 0):
            return INF
        return float(np.sum((w * a)[some] * (np.log(a[some]) - np.log(b[some]))))

    return {
        "kl": kl(p, q),
        "jensen-shannon": (kl(p, m) + kl(q, m)) / 2,
        "total-variation": float(np.sum(w * np.abs(p - q)) / 2),
        "hellinger": math.sqrt(float(np.sum(w * (np.sqrt(p) - np.sqrt(q)) ** 2)) / 2),
    }


def moved(model: Forest, seed: int) -> Forest:
    """A model of the same columns with other weights of leaves, and other levels' and atoms' masses."""
    rng = np.random.default_rng(seed)
    leaves = model.leaves
    tree = leaves.tree
    weight = np.exp(leaves.log_weight) * rng.gamma(2.0, size=len(leaves.log_weight))
    share = np.bincount(tree, np.exp(leaves.log_weight)) / np.bincount(tree, weight)
    level = leaves.level_mass * rng.gamma(2.0, size=leaves.level_mass.shape)
    for slot, first in enumerate(leaves.wide.place.tolist()):
        if first < 0:  # a column of many levels keeps its masses
            continue
        last = first + int(model.columns.level_start[slot + 1] - model.columns.level_start[slot])
        level[:, first:last] /= np.maximum(level[:, first:last].sum(axis=1, keepdims=True), 1e-300)
    with np.errstate(divide="ignore"):
        new = leaves._replace(log_weight=np.log(weight * share[tree]), level_mass=level, log_level=np.log(level))
    return Forest(model.schema, model.columns, model.trees, new, model.has_background)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_divergences_of_levels_by_enumeration(seed: int) -> None:
    model = small_levels(seed, background=seed % 3 > 0)
    other = moved(model, seed)
    p, q = table(model), table(other)
    for measure, want in divergences(p, q).items():
        found = joint_of(model).divergence(joint_of(other), measure)
        assert found.method == "exact" and found.value == pytest.approx(want, abs=1e-7)
    want = divergences(p.sum(axis=(1, 2)), q.sum(axis=(1, 2)))
    compared = joint_of(model).compare(joint_of(other))
    assert compared["c0"] == (pytest.approx(want["total-variation"], abs=1e-10), None)
    assert [x.distance for x in compared.values()] == sorted((x.distance for x in compared.values()), reverse=True)


# --------------------------------------------------------------------------------------------------------- quadrature


def on_rule(model: Forest, other: Forest) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Densities of two models with the same supports, and the measure, at points that integrate all columns out."""
    rules = [rule(model, j) for j in range(len(model.schema.columns))]
    points = np.stack([x.ravel() for x in np.meshgrid(*(x for x, _ in rules), indexing="ij")], axis=1)
    weight = np.prod([w.ravel() for w in np.meshgrid(*(w for _, w in rules), indexing="ij")], axis=0)
    p, q = (np.exp(log_density(m, complete(points))) for m in (model, other))
    return p, q, weight


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kinds", [("continuous",), ("mixed", "boolean"), ("integer",), ("rounded", "boolean")])
def test_numbers_by_quadrature(seed: int, kinds: tuple[str, ...]) -> None:
    model = random_model(seed, n_trees=2, max_depth=2, kinds=kinds)
    other = moved(model, seed)
    p, q, w = on_rule(model, other)
    joint = joint_of(model)
    want = float(-np.sum(w * p * np.log(np.where(p > 0, p, 1.0))))
    assert joint.entropy() == (pytest.approx(want, abs=2e-6), 0.0, "exact")
    for measure, value in divergences(p, q, w).items():
        found = joint.divergence(joint_of(other), measure)
        # of the roots of what the rule misses, Hellinger's is the largest
        assert found == (pytest.approx(value, abs=1e-4 if measure == "hellinger" else 5e-6), 0.0, "exact")


def test_a_narrow_peak_is_not_missed() -> None:
    model = random_model(2, n_trees=2, max_depth=0, background=False, kinds=("continuous",), mixed=0.0)
    leaves = model.leaves
    leaves.family[:], leaves.lo[:], leaves.hi[:] = NORMAL, -INF, INF
    leaves.a[:], leaves.b[:, 0], leaves.log_norm[:] = 0.123, (1.0, 1e-6), 0.0
    leaves.log_weight[:] = np.log([1 - 1e-3, 1e-3])
    # the peak is so high that the other leaf hardly counts there, and so narrow that it hardly counts elsewhere
    wide, narrow = stats.norm(0.123, 1.0), stats.norm(0.123, 1e-6)
    points = np.concatenate([np.linspace(-9, 9, 100_001), 0.123 + 1e-6 * np.linspace(-9, 9, 20_001)])
    x = np.unique(points)
    p = (1 - 1e-3) * wide.pdf(x) + 1e-3 * narrow.pdf(x)
    want = -np.trapezoid(p * np.log(p), x)
    assert joint_of(model).entropy() == (pytest.approx(want, abs=1e-6), 0.0, "exact")


# ---------------------------------------------------------------------------------------------------------- one tree


@pytest.mark.parametrize("seed", range(6))
def test_one_tree_by_quadrature(seed: int) -> None:
    kinds = (("integer", "boolean"), ("mixed", "boolean"), ("rounded", "ordered"))[seed % 3]
    model = random_model(seed, n_trees=1, max_depth=3, background=False, kinds=kinds, mixed=0.0)
    p, _, w = on_rule(model, model)
    want = float(-np.sum(w * p * np.log(np.where(p > 0, p, 1.0))))
    assert entropy.tree_entropy(model, [0, 1]) == pytest.approx(want, abs=2e-6)


@pytest.mark.parametrize("leaf", ["normal", "quantile"])
def test_one_learned_tree(leaf: str) -> None:
    penguins = jf.datasets.load_penguins()
    joint = jf.JointTree(leaf=leaf, epsilon=0.0, random_state=0).fit(penguins).joint_
    found = joint.entropy()
    assert found.method == "exact"
    draws = -joint.log_density(joint.sample(20_000, random_state=1))
    assert abs(found.value - draws.mean()) < 5 * draws.std() / math.sqrt(len(draws))
    # the column of a quantile leaf, in closed form and as a sum over its cells
    one = jf.JointTree(leaf=leaf, epsilon=0.0, min_samples_leaf=0.6).fit(penguins).joint_
    for name in ("bill_length_mm", "body_mass_g", "species"):
        j = one.schema.index(name)
        v = ModelView(one.distribution, (j,), (None,), (0.0,), (np.empty(0),))
        by_sum = integral.integral((v,), (0,), entropy.minus_p_log_p)
        assert entropy.tree_entropy(one.distribution.forest, [j]) == pytest.approx(by_sum, abs=1e-7)


def test_a_tree_that_splits_on_other_columns_is_not_one_of_disjoint_leaves() -> None:
    model = random_model(1, n_trees=1, max_depth=3, background=False, kinds=("boolean", "integer"), mixed=0.0)
    split = set(model.trees.feature[model.trees.feature >= 0].tolist())
    assert split == {0, 1}
    assert entropy.tree_entropy(model, [0]) is None and entropy.tree_entropy(model, [0, 1]) is not None
    assert entropy.tree_entropy(random_model(1, n_trees=2, background=False), list(range(8))) is None


@pytest.mark.parametrize("seed", range(12))
def test_divergence_of_trees_by_quadrature(seed: int) -> None:
    kinds = (("integer", "boolean"), ("mixed", "boolean"), ("rounded", "ordered"), ("continuous",))[seed % 4]
    model = random_model(seed, n_trees=1, max_depth=3, background=False, kinds=kinds, mixed=0.0)
    model.leaves.family[model.leaves.family == STUDENT] = NORMAL
    model = remade(model)
    other = moved(model, seed)
    p, q, w = on_rule(model, other)
    want = divergences(p, q, w)["kl"]
    v, u = information_views(joint_of(model), joint_of(other))
    assert divergence.tree_divergence(v, u, tuple(range(len(kinds)))) == pytest.approx(want, abs=5e-6)


def remade(model: Forest) -> Forest:
    """A model with its derived fields computed anew."""
    from jointforest.models.box_forest.leaves.derived import make_leaves

    x = model.leaves
    args = (x.tree, x.log_weight, x.family, x.a, x.b, x.lo, x.hi, x.atom_mass, x.level_mass, x.missing_rate, x.wide)
    return Forest(
        model.schema,
        model.columns,
        model.trees,
        make_leaves(model.columns, ParameterTables(*args)),
        model.has_background,
    )


@pytest.mark.parametrize("leaf", ["normal", "quantile"])
@pytest.mark.parametrize("kinds", [None, {"bill_length_mm": "continuous", "body_mass_g": "continuous"}])
def test_divergence_of_learned_trees(leaf: str, kinds: dict[str, str] | None) -> None:
    penguins = jf.datasets.load_penguins()
    settings = {"leaf": leaf, "epsilon": 0.0, "kinds": kinds, "min_samples_leaf": 40}
    # trees that split at other places; of half of the rows the other has wider leaves
    p, q = (jf.JointTree(**settings).fit(rows).joint_ for rows in (penguins, penguins.iloc[::2]))
    columns = [c for c in p.columns if p.levels(c) == q.levels(c) and p.schema[c].step == q.schema[c].step]
    assert len(columns) == len(p.columns)
    found = p.divergence(q)
    rows = p.sample(20_000, random_state=0)
    draws = p.log_density(rows) - q.log_density(rows)
    if not np.isfinite(found.value):
        assert not np.isfinite(draws).all() or leaf == "quantile"  # the other's leaves end where its rows do
        return
    assert found.method == "exact" and found.value > 0.01
    assert abs(draws.mean() - found.value) < 5 * draws.std() / math.sqrt(len(draws))


# ----------------------------------------------------------------------------------------------------------- sampling


def chi(found: list[Estimate], wanted: list[float]) -> float:
    """P-value of the squares of the deviations, in standard errors; those without noise are exact."""
    z = []
    for f, w in zip(found, wanted, strict=True):
        if f.standard_error < 1e-9:
            assert f.value == pytest.approx(w, abs=1e-7)
        else:
            z.append((f.value - w) / f.standard_error)
    assert max(map(abs, z)) < 5
    square = float(np.sum(np.square(z)))
    return float(2 * min(stats.chi2.cdf(square, len(z)), stats.chi2.sf(square, len(z))))


def test_sampling_is_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = {
        "entropy": lambda p, q, seed: p.entropy(random_state=seed, n_samples=2000),
        "given": lambda p, q, seed: p.entropy("c0", given="c1", random_state=seed, n_samples=2000),
        "mutual": lambda p, q, seed: p.mutual_information("c0", "c1", random_state=seed, n_samples=2000),
        **{
            m: lambda p, q, seed, m=m: p.divergence(q, m, random_state=seed, n_samples=2000)
            for m in divergence.MEASURES
        },
    }
    models = [random_model(seed, 3, 3, kinds=("mixed", "ordered", "boolean"), epsilon=0.05) for seed in range(30)]
    pairs = [(joint_of(model), joint_of(moved(model, seed))) for seed, model in enumerate(models)]
    for name, ask in questions.items():
        wanted = [ask(p, q, 0) for p, q in pairs]
        assert all(w.method == "exact" for w in wanted)
        with monkeypatch.context() as patched:
            patched.setattr(integral, "WORK", 0.0)
            found = [ask(p, q, seed) for seed, (p, q) in enumerate(pairs)]
        assert all(f.method == "sampling" for f in found)
        assert chi(found, [w.value for w in wanted]) > 1e-3, name


def test_sampling_of_many_columns() -> None:
    joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    found = joint.entropy(random_state=0, n_samples=3000)
    draws = -joint.log_density(joint.sample(20_000, random_state=1))
    assert found.method == "sampling" and found.standard_error < draws.std() / math.sqrt(3000)
    error = math.hypot(found.standard_error, draws.std() / math.sqrt(len(draws)))
    assert abs(found.value - draws.mean()) < 5 * error
    assert found == joint.entropy(random_state=0, n_samples=3000, n_jobs=1)
    assert found != joint.entropy(random_state=1, n_samples=3000)
    # the chain rule
    parts = joint.entropy("bill_length_mm", "bill_depth_mm", n_samples=3000, random_state=2)
    rest = joint.entropy(given=["bill_depth_mm", "bill_length_mm"], n_samples=3000, random_state=3)
    error = math.hypot(found.standard_error, parts.standard_error, rest.standard_error)
    assert abs(found.value - parts.value - rest.value) < 5 * error


def test_a_joint_is_no_distance_from_itself() -> None:
    joint = joint_of(random_model(5, mixed=0.4))
    for measure in divergence.MEASURES:
        found = joint.divergence(joint, measure, n_samples=50, random_state=0)
        assert found.value == pytest.approx(0.0, abs=1e-7) and found.standard_error < 1e-7
    assert all(x.distance == 0.0 for x in joint.compare(joint).values())


def test_what_the_other_rules_out_is_infinitely_far() -> None:
    joint = joint_of(random_model(4, kinds=("continuous", "mixed", "integer", "boolean")))
    low = joint.condition(c0=jf.between(None, joint.schema["c0"].minimum))
    share = joint.probability({"c0": jf.between(None, joint.schema["c0"].minimum)})
    found = joint.divergence(low, random_state=0)
    assert found.value == INF and math.isnan(found.standard_error)
    assert low.divergence(joint, random_state=0).value == pytest.approx(-math.log(share), rel=1e-9)
    assert joint.divergence(low, columns="c0") == (INF, pytest.approx(math.nan, nan_ok=True), "exact")
    assert joint.divergence(low, "total-variation", "c0").value == pytest.approx(1 - share, abs=1e-6)


def test_exact_answers_stay_in_their_range() -> None:
    joint = jf.JointTree(leaf="uniform", epsilon=0, random_state=0).fit(jf.datasets.load_penguins()).joint_
    one, other = joint.condition("bill_length_mm < 40"), joint.condition("bill_length_mm > 50")
    for columns in (["species"], ["bill_length_mm"], ["bill_length_mm", "species"]):
        for measure, most in (("jensen-shannon", math.log(2)), ("total-variation", 1.0), ("hellinger", 1.0)):
            found = one.divergence(other, measure, columns)
            assert found.method == "exact" and 0 <= found.value <= most
            assert one.divergence(one, measure, columns).value >= 0
    kept = joint.condition(bill_length_mm=jf.between(40, 40.1), species="Adelie")
    assert kept.mutual_information("species", ["island", "sex"]).value >= 0


def test_atoms_that_one_model_has() -> None:
    joint = joint_of(random_model(4, kinds=("continuous", "boolean")))
    x = 0.5 * (joint.schema["c0"].minimum + joint.schema["c0"].maximum)
    at = joint.condition(c0=x)
    assert at.schema["c0"].atoms == (x,)
    for p, q in ((joint, at), (at, joint)):
        assert p.divergence(q).value == INF
        for measure, want in (("total-variation", 1.0), ("hellinger", 1.0), ("jensen-shannon", math.log(2))):
            assert p.divergence(q, measure).value == pytest.approx(want, abs=1e-6)
    below = joint.marginal("c0").cdf(x)
    assert joint.compare(at)["c0"].distance == pytest.approx(max(below, 1 - below), abs=SUP)


# ------------------------------------------------------------------------------------------------- columns, one by one


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["continuous", "mixed", "integer", "rounded", "datetime"])
def test_distances_of_numbers(seed: int, kind: str) -> None:
    model = random_model(seed, n_trees=2, max_depth=3, kinds=(kind, "boolean"))
    other = moved(model, seed)
    found = joint_of(model).compare(joint_of(other))["c0"]
    column = model.schema.columns[0]
    far = 40 * (column.maximum - column.minimum)
    if column.step > 0.0:
        first, last = (round((x - column.center) / column.step) for x in (column.minimum - far, column.maximum + far))
        x = column.center + np.arange(first, last + 1) * column.step
    else:
        x = np.unique(np.concatenate([np.linspace(column.minimum - far, column.maximum + far, 200_001), column.atoms]))
        inside = np.linspace(column.minimum, column.maximum, 20_001)
        x = np.unique(np.concatenate([x, inside, np.nextafter(column.atoms, -INF)]))
    gap = np.abs(np.subtract(*(cdf(m, build(m.schema), 0, x)[0] for m in (model, other))))
    assert gap.max() - SUP <= found.distance <= gap.max() + 1e-6
    mean = gap[:-1] if column.step > 0.0 else 0.5 * (gap[1:] + gap[:-1])
    assert found.wasserstein == pytest.approx(np.diff(x) @ mean, abs=AREA * (column.maximum - column.minimum))


def frame(rng: np.random.Generator, n: int, shift: float, reverse: bool) -> object:
    """A table of a date, a level and a number; columns, levels and the first date in another order."""
    import pandas as pd

    levels = ["a", "b", "c"]
    level = rng.choice(levels, n, p=[0.5, 0.3, 0.2])
    data = {
        "x": rng.normal(shift + (level == "a"), 1.0),
        "level": pd.Categorical(level, categories=levels[::-1] if reverse else levels),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100, n) + 40 * reverse, unit="D"),
    }
    return pd.DataFrame(dict(reversed(data.items())) if reverse else data)


def test_names_in_an_array() -> None:
    joint = joint_of(random_model(4, kinds=("ordered", "ordered", "boolean")))
    assert joint.entropy("c0", given=np.array(["c1", "c2"])) == joint.entropy("c0", given=["c1", "c2"])


def test_heavy_tails_are_measured_by_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    z = stats.norm.ppf((np.arange(500) + 0.5) / 500)
    p, q = (
        jf.JointTree(kinds={"x": "continuous"}).fit(pd.DataFrame({"x": np.exp(s * z)})).joint_ for s in (10.0, 11.0)
    )
    points, cdfs = [], divergence._cdfs
    monkeypatch.setattr(divergence, "_cdfs", lambda v, k, x: points.append(len(x)) or cdfs(v, k, x))
    assert p.compare(p)["x"] == (0.0, 0.0)
    found = p.compare(q)["x"]
    assert sum(points) < 30_000
    x = np.concatenate([-np.geomspace(1e25, 1e-9, 40_001), np.geomspace(1e-9, 1e25, 40_001)])
    gap = np.abs(p.marginal("x").cdf(x) - q.marginal("x").cdf(x))
    assert found.distance == pytest.approx(gap.max(), abs=SUP)
    assert found.wasserstein == pytest.approx(np.trapezoid(gap, x), rel=4 * AREA)


def test_models_whose_columns_are_written_differently() -> None:
    rng = np.random.default_rng(0)
    a, b = (
        jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame(rng, 400, s, r)).joint_
        for s, r in ((0.0, False), (1.0, True))
    )
    assert a.columns == b.columns[::-1] and a.levels("level") == b.levels("level")[::-1]
    assert a.schema["day"].origin != b.schema["day"].origin
    pa, pb = a.given().proba("level"), b.given().proba("level")
    want = divergences(np.array(list(pa.values())), np.array([pb[level] for level in pa]))
    for measure, value in want.items():
        assert a.divergence(b, measure, "level").value == pytest.approx(value, abs=1e-9)
    days = np.datetime64("2023-06-01") + np.arange(600)
    cdfs = [joint.marginal("day").cdf(days) for joint in (a, b)]
    apart = a.compare(b)["day"]
    assert apart.distance == pytest.approx(np.abs(cdfs[0] - cdfs[1]).max(), abs=2 * SUP)
    assert apart.wasserstein == pytest.approx(86400 * np.abs(cdfs[0] - cdfs[1]).sum(), rel=0.02)
    # densities of the other model at rows of this one
    rows = a.sample(500, random_state=0)
    v, w = information_views(a, b)
    X = v.draw(500, 0)
    np.testing.assert_allclose(v.log_density(X, (0, 1, 2)), a.log_density(rows), rtol=1e-12)
    np.testing.assert_allclose(w.log_density(X, (0, 1, 2)), b.log_density(rows), rtol=1e-12)
    Y = w.draw(500, 1)
    there = b.sample(500, random_state=1)
    np.testing.assert_allclose(w.log_density(Y, (0, 1, 2)), b.log_density(there), rtol=1e-12)
    np.testing.assert_allclose(v.log_density(Y, (0, 1, 2)), a.log_density(there), rtol=1e-12)


def information_views(a: jf.Joint, b: jf.Joint) -> tuple[ModelView, ModelView]:
    return views(a.distribution, b.distribution, tuple(range(len(a.columns))))


# ------------------------------------------------------------------------------------------------------------- errors


def test_errors_name_what_is_wrong() -> None:
    joint = joint_of(random_model(4, kinds=("continuous", "ordered", "boolean")))
    others = {
        kinds: joint_of(random_model(7, kinds=kinds))
        for kinds in (("continuous",), ("rounded",), ("boolean",), ("datetime",), ("continuous", "ordered"))
    }
    for ask, message in (
        (lambda: joint.entropy("c9"), "no column 'c9'"),
        (lambda: joint.entropy("c0", "c0"), "columns: column 'c0' is named twice"),
        (lambda: joint.entropy("c0", given="c0"), "column 'c0' is on two sides"),
        (lambda: joint.entropy(given=["c0", "c1", "c2"]), "every column is given"),
        (lambda: joint.entropy("c0", given=3), "given must be the name of a column, or a list of names, got 3"),
        (lambda: joint.mutual_information(None, "c1"), "a must be the name of a column, or a list"),
        (lambda: joint.compare(joint, math.nan), "columns must be the name of a column, or a list"),
        (lambda: joint.entropy(n_samples=1), "n_samples must be"),
        (lambda: joint.entropy(random_state=-1), "random_state must be"),
        (lambda: joint.mutual_information("c0", []), "at least one column on either side"),
        (lambda: joint.mutual_information("c0", ["c1", "c0"]), "column 'c0' is on two sides"),
        (lambda: joint.divergence(joint, "l2"), "measure must be one of 'kl'"),
        (lambda: joint.divergence(joint, ["kl"]), "measure must be one of 'kl'"),
        (lambda: joint.divergence(joint, columns=[]), "name at least one"),
        (lambda: joint.divergence(others["continuous",]), "the other model has no column 'c1'"),
        (lambda: others["continuous",].divergence(joint), "this model has no column 'c1', the other has"),
        (lambda: joint.compare(others["boolean",], "c0"), "'c0': continuous in one model, boolean in the other"),
        (lambda: joint.compare(others["datetime",], "c0"), "'c0': continuous in one model, datetime in the other"),
        (lambda: joint.compare(others["rounded",], "c0"), "'c0': without grid .* on a grid"),
        (lambda: joint.compare(others["continuous", "ordered"], "c1"), "'c1': levels of one model that the other"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
    day = pd.date_range("2020-01-01", periods=30)
    noon, night = (jf.JointTree().fit(pd.DataFrame({"d": day + pd.Timedelta(h, "h")})).joint_ for h in (12, 0))
    with pytest.raises(ValueError, match=r"column 'd': on grids of 86400 .* lie between"):
        noon.compare(night)


@pytest.mark.filterwarnings("error")
def test_entropy_of_many_columns_does_not_overflow() -> None:
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, (120, 1))
    X = np.where(rng.random((120, 320)) < 0.7, hidden * 8, 0) + rng.integers(0, 9, (120, 320))
    frame = pd.DataFrame({f"c{j}": X[:, j].astype(str) for j in range(320)})
    with pytest.warns(jf.LostDependenceWarning):  # three states and one pass are too few
        joint = jf.HiddenTreeForest(n_states=3, max_iter=1, random_state=0).fit(frame).joint_
    found = joint.entropy(n_samples=64, random_state=0)
    assert np.isfinite(found.value) and found.method != "exact"
