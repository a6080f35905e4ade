"""Robustness against every combination of vertices of the credal sets, and against random points inside them."""

from __future__ import annotations

import dataclasses
import itertools
import math

import mpmath
import numpy as np
import pytest
import sklearn.datasets
from hypothesis import given, settings
from scipy.optimize import minimize_scalar

import jointforest
from jointforest.data.evidence import Evidence
from jointforest.models.box_forest.leaves.table import UNIFORM
from jointforest.models.box_forest.robustness import robustness
from jointforest.models.box_forest.robustness_kernels import best_mean, normal_density_bound, trend
from jointforest.models.box_forest.structure import Forest
from jointforest.runtime.threads import use_jobs

from ... import oracle
from ...box_answers import level_probability, mean_variance
from ...compiled import compiled
from ...densities import density
from ...random_cases.cells import Region, make_evidence
from ...random_cases.evidence import random_cells
from ...random_cases.models import random_model, seeds
from .margins import worst_margin

EPSILONS = (0.0, 0.02, 0.2, 0.45, 0.8, 1.0)


def values_only(model: Forest, seed: int, n: int) -> Evidence:
    """Random rows without regions: the first knows nothing, the second everything."""
    rows = random_cells(np.random.default_rng(seed), model, n)
    return make_evidence([[x if isinstance(x, float) else None for x in row] for row in rows])


def joint_masses(model: Forest, evidence: Evidence, i: int, j: int, choice, c: float, unit=None) -> list[list]:
    """p_t(class, evidence) of each tree and class, under every choice of parameters."""
    classes = range(oracle.n_levels(model, j))
    trees = range(len(model.trees.root))
    return [[oracle.contaminated(model, evidence, i, j, k, choice, t, c, unit) for k in classes] for t in trees]


def enumerated_mixture(model: Forest, evidence: Evidence, i: int, j: int, y: int, choice, c: float, unit=None):
    """The greatest p(class) - p(y) over all choices, for each class, trees' weights among them."""
    p = joint_masses(model, evidence, i, j, choice, c, unit)
    pi = choice.weights(("trees",), [oracle.leaf_sum(model, int(root)) for root in model.trees.root])
    total = [0.0] * len(p[0])
    for t in range(len(p)):
        for k in range(len(total)):
            total[k] = choice.combined(np.add, total[k], choice.combined(np.multiply, pi[t], p[t][k]))
    return [choice.combined(np.subtract, total[k], total[y]) for k in range(len(total))]


def target_of(model: Forest) -> int:
    """The last categorical column."""
    return int(np.flatnonzero(model.columns.is_categorical)[-1])


def small_model(seed: int, n_trees: int, kinds, mixed: float, background: bool = False) -> Forest:
    return random_model(seed, n_trees, max_depth=2, background=background, kinds=kinds, mixed=mixed)


CASES = {
    "levels": (("boolean", "ordered", "boolean"), 0.0),
    "numbers": (("continuous", "boolean"), 0.0),
    "grids": (("integer", "categorical"), 0.0),
    "atoms": (("mixed", "boolean"), 0.0),
    "mixed": (("continuous", "boolean", "boolean"), 1.0),
    "mixed levels": (("boolean", "boolean", "boolean"), 1.0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_trees", [1, 2])
def test_mixture_by_enumeration_of_all_vertices(case: str, n_trees: int) -> None:
    kinds, mixed = CASES[case]
    n_done = 0
    for seed in range(60):
        model = small_model(seed, n_trees, kinds, mixed, background=n_trees == 1 and seed % 2 > 0)
        j = target_of(model)
        if oracle.n_levels(model, j) == 1 or oracle.n_levels(model, j) > 5:
            continue
        evidence = values_only(model, seed, 4).without(j)
        epsilon = EPSILONS[seed % len(EPSILONS)]
        p = level_probability(model, evidence, j)
        got = worst_margin(model, evidence, j, epsilon, c=1.5)
        for i in range(4):
            choice = oracle.Vertices(epsilon)
            y = int(np.argmax(p[i]))
            try:
                want = enumerated_mixture(model, evidence, i, j, y, choice, 1.5)
            except oracle.TooMany:
                continue
            total = math.exp(oracle.log_sum(oracle.log_joint(model, evidence, i)))
            if total == 0.0:
                assert np.all(np.isnan(got[i]))
                continue
            np.testing.assert_allclose(got[i], [np.max(v) / total for v in want], rtol=1e-10, atol=1e-12)
            n_done += 1
    assert n_done > 5


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_average_by_enumeration_of_all_vertices(case: str, beta: float) -> None:
    """A tree's conditional is a quotient of multilinear functions, so that its extremes are at vertices, too."""
    kinds, mixed = CASES[case]
    n_done = 0
    for seed in range(60):
        model = small_model(seed, 2, kinds, mixed)
        j = target_of(model)
        if not 1 < oracle.n_levels(model, j) <= 5:
            continue
        evidence = values_only(model, seed, 4).without(j)
        epsilon = EPSILONS[1 + seed % 4]
        p = level_probability(model, evidence, j, beta=beta)
        got = worst_margin(model, evidence, j, epsilon, beta=beta)
        trees = model.leaves.tree
        for i in range(4):
            y = int(np.argmax(p[i]))
            log_joint = oracle.log_joint(model, evidence, i)
            log_tree = np.array([oracle.log_sum(log_joint[trees == t]) for t in range(2)])
            if not np.all(log_tree > -40):
                continue
            share = np.exp(beta * log_tree) / np.sum(np.exp(beta * log_tree))
            want = np.zeros(len(p[i]))
            try:
                for t in range(2):
                    choice = oracle.Vertices(epsilon)
                    each = [oracle.contaminated(model, evidence, i, j, k, choice, t, 1.0) for k in range(len(want))]
                    total = 0.0
                    for mass in each:
                        total = choice.combined(np.add, total, mass)
                    for k in range(len(want)):
                        gap = choice.combined(np.subtract, each[k], each[y])
                        size = np.broadcast_shapes(np.shape(gap), np.shape(total))
                        gap, total = np.broadcast_to(gap, size), np.broadcast_to(total, size)
                        want[k] += share[t] * np.max(gap[total > 0] / total[total > 0])
            except oracle.TooMany:
                continue
            np.testing.assert_allclose(got[i], want, rtol=1e-9, atol=1e-11)
            n_done += 1
    assert n_done > 5


@pytest.mark.parametrize("case", CASES)
def test_epsilon_by_enumeration(case: str) -> None:
    """Just below epsilon no combination of vertices changes the class, just above it one does."""
    kinds, mixed = CASES[case]
    n_done = 0
    for seed in range(40):
        model = small_model(seed, 1, kinds, mixed)
        j = target_of(model)
        if not 1 < oracle.n_levels(model, j) <= 5:
            continue
        evidence = values_only(model, seed, 4).without(j)
        found, predicted = robustness(model, evidence, j, tol=1e-7)
        for i in np.flatnonzero((found > 1e-5) & (found < 1 - 1e-5)).tolist():
            y = predicted[i]
            for epsilon, robust in ((found[i] - 1e-6, True), (found[i] + 1e-6, False)):
                try:
                    each = enumerated_mixture(model, evidence, i, j, y, oracle.Vertices(epsilon, 50_000), 1.0)
                except oracle.TooMany:
                    break
                assert all(np.max(v) < 0 for k, v in enumerate(each) if k != y) == robust
                n_done += 1
    assert n_done > 5


@pytest.mark.parametrize("seed", range(8))
def test_no_point_inside_exceeds_the_bound(seed: int) -> None:
    model = random_model(
        seed, 3, max_depth=3, kinds=("continuous", "mixed", "integer", "rounded", "boolean", "boolean")
    )
    j = target_of(model)
    evidence = values_only(model, seed, 6).without(j)
    p = level_probability(model, evidence, j)
    units = {"leaf": None, "column": {}}
    nothing = make_evidence([[None] * len(model.columns.slot)])
    for k in np.flatnonzero(model.columns.is_categorical == 0).tolist():
        units["column"][k] = 0.5 * math.sqrt(mean_variance(model, nothing, k)[1][0])
    for shift, unit in units.items():
        bound = worst_margin(model, evidence, j, 0.3, shift=shift)
        for i in np.flatnonzero(~np.isnan(p[:, 0])).tolist():
            choice, y = oracle.Interior(0.3, 10_000, seed), int(np.argmax(p[i]))
            each = enumerated_mixture(model, evidence, i, j, y, choice, 1.0, unit)
            total = math.exp(oracle.log_sum(oracle.log_joint(model, evidence, i)))
            for k, v in enumerate(each):
                assert np.max(v) / total <= bound[i, k] + 1e-9 * max(1.0, abs(bound[i, k]))


@given(seeds)
@settings(max_examples=25)
def test_sets_are_nested(seed: int) -> None:
    """Margins rise with epsilon; epsilon falls with the reach of the means; at its value the sign changes."""
    model = random_model(seed % 500, 3, max_depth=4)
    j = target_of(model)
    evidence = values_only(model, seed, 6)
    for beta in (0.0, 0.7, 1.0):
        margins = [worst_margin(model, evidence, j, e, beta=beta) for e in (0.0, 0.1, 0.3, 0.6)]
        for less, more in itertools.pairwise(margins):
            assert np.all((more >= less - 1e-9 * np.maximum(1.0, np.abs(less))) | np.isnan(less))
        found, predicted = robustness(model, evidence, j, beta=beta)
        p = level_probability(model, evidence.without(j), j, beta=beta)
        known = ~np.isnan(p[:, 0])
        assert np.array_equal(predicted, np.where(known, p.argmax(axis=1), -1))
        assert np.array_equal(np.isnan(found), ~known)
        assert np.all((found[known] >= 0) & (found[known] <= 1))
        stays, _ = robustness(model, evidence, j, beta=beta, c=0.0)
        assert np.all((stays >= found - 2e-6) | ~known)


def test_generative_forest_identity() -> None:
    """Complete rows, factorised leaves, precise trees' weights: epsilon is m / (1 + m), m the margin."""
    penguins = jointforest.datasets.load_penguins().dropna()
    X, y = penguins.drop(columns="species"), penguins["species"]
    clf = jointforest.GenerativeForestClassifier(10, random_state=0, min_samples_leaf=8, combine="trees").fit(X, y)
    evidence = clf._evidence(X)
    for beta in (0.0, 0.4):
        p = np.sort(level_probability(clf.joint_.distribution.forest, evidence, 6, beta=beta), axis=1)
        margin = p[:, -1] - p[:, -2]
        found, _ = robustness(clf.joint_.distribution.forest, evidence, 6, beta=beta, tol=1e-9)
        np.testing.assert_allclose(found, margin / (1 + margin), atol=2e-9)


def class_model(q: list[float], kinds=("boolean", "continuous")) -> Forest:
    """One leaf: classes with these probabilities, and a normal."""
    model = random_model(0, 1, max_depth=0, background=False, kinds=kinds, mixed=0.0)
    level_mass = np.array([q])
    with np.errstate(divide="ignore"):
        leaves = model.leaves._replace(level_mass=level_mass, log_level=np.log(level_mass))
    return dataclasses.replace(model, leaves=leaves)


@pytest.mark.parametrize(("q", "want"), [([1.0, 0.0], 0.5), ([0.5, 0.5], 0.0), ([0.25, 0.75], 1 / 3)])
def test_extremes(q: list[float], want: float) -> None:
    """A pure leaf gives 1/2, equal classes 0, in between m / (1 + m); whatever the number, and without it."""
    model = class_model(q)
    for beta in (0.0, 0.5, 1.0):
        found, predicted = robustness(model, make_evidence([[None, 0.1], [None, None], [1.0, None]]), 0, beta=beta)
        np.testing.assert_allclose(found, want, atol=1e-6)
        assert predicted.tolist() == [int(np.argmax(q))] * 3


def test_a_class_alone_is_never_beaten() -> None:
    seed = next(s for s in range(99) if len(random_model(s, kinds=("categorical",)).schema.columns[0].levels) == 1)
    model = random_model(seed, kinds=("categorical",))
    assert robustness(model, make_evidence([[None]]), 0)[0].tolist() == [1.0]


def test_impossible_evidence_has_no_class() -> None:
    model = class_model([0.9, 0.1])
    leaves = model.leaves._replace(family=np.full_like(model.leaves.family, UNIFORM), lo=np.zeros((1, 1)))
    leaves = leaves._replace(hi=np.ones((1, 1)), log_norm=np.zeros((1, 1)))
    model = dataclasses.replace(model, leaves=leaves)
    found, predicted = robustness(model, make_evidence([[None, 5.0], [None, 0.5]]), 0)
    assert np.isnan(found[0]) and predicted.tolist() == [-1, 0]
    # an average of trees goes by the box alone
    assert robustness(model, make_evidence([[None, 5.0]]), 0, beta=0.5)[0][0] == pytest.approx(0.8 / 1.8, abs=1e-6)


def test_threads_change_nothing() -> None:
    model = random_model(3, 3, max_depth=4)
    evidence = values_only(model, 3, 600)
    for one, two in zip(*(use_jobs(n)(robustness)(model, evidence, target_of(model)) for n in (1, 2)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_errors() -> None:
    model = random_model(1)
    nothing, j = make_evidence([[None] * len(model.columns.slot)]), target_of(model)
    number = int(np.flatnonzero(model.columns.is_categorical == 0)[0])
    with pytest.raises(ValueError, match=r"robustness is that of a predicted class.*interval"):
        robustness(model, nothing, number)
    with pytest.raises(ValueError, match="shift must be one of"):
        robustness(model, nothing, j, shift="both")
    with pytest.raises(ValueError, match="c must be a number of at least 0"):
        robustness(model, nothing, j, c=-1.0)
    with pytest.raises(ValueError, match="tol must be more than 0"):
        robustness(model, nothing, j, tol=0.0)
    cells: list = [None] * len(model.columns.slot)
    cells[number] = Region(((0.0, 1.0),))
    with pytest.raises(ValueError, match="has a range or a set as evidence"):
        robustness(model, make_evidence([cells]), j)


# ------------------------------------------------------------------------------------------- a normal whose mean moves

NORMALS = [
    # a, b, lo, hi, step, x
    (0.0, 1.0, -math.inf, math.inf, 0.0, 0.3),
    (0.0, 1.0, -math.inf, math.inf, 0.5, 2.0),
    (0.0, 1.0, 0.0, math.inf, 0.0, 0.4),
    (0.0, 1.0, 0.0, math.inf, 0.0, 1.1),
    (0.0, 1.0, -math.inf, 0.5, 0.0, -0.6),
    (3.0, 0.5, 2.0, 4.0, 0.0, 2.9),
    (3.0, 0.5, 2.0, 4.0, 0.0, 3.0),
    (-8.0, 1.0, 0.0, math.inf, 0.0, 0.1),
    (20.0, 1.0, -math.inf, 3.0, 0.0, 2.95),
    (0.2, 0.7, -0.5, 3.5, 1.0, 1.0),
    (0.2, 0.7, -0.5, 3.5, 1.0, 3.0),
    (5.0, 3.0, 0.5, 1.5, 0.5, 0.75),
]


def exact_log_density(mean: float, b: float, lo: float, hi: float, step: float, x: float) -> mpmath.mpf:
    with mpmath.workdps(50):
        z = [mpmath.ncdf((mpmath.mpf(v) - mean) / b) for v in (lo, hi, x - step / 2, x + step / 2)]
        value = (z[3] - z[2]) / step if step else mpmath.npdf(x, mean, b)
        return mpmath.log(value / (z[1] - z[0]))


@pytest.mark.parametrize("reach", [0.05, 0.6, 2.0])
@pytest.mark.parametrize("normal", NORMALS)
def test_extremes_over_the_mean(normal, reach: float) -> None:
    """Against 50 digits at the ends, on a fine grid, and at the best mean that scipy finds."""
    a, b, lo, hi, step, x = normal
    reach *= b
    whole = density(oracle.NORMAL, a, b, lo, hi)
    rises, best = compiled(trend)(whole, step, x, reach), compiled(best_mean)(whole, step, x, reach)
    bounds = (compiled(normal_density_bound)(whole, step, x, reach, rises, best, upper) for upper in (False, True))
    low, high = (log + math.log(factor) for log, factor in bounds)
    means = np.linspace(a - reach, a + reach, 101)
    values = [float(exact_log_density(m, b, lo, hi, step, x)) for m in means]
    assert low == pytest.approx(min(values), rel=1e-11, abs=1e-11)
    found = minimize_scalar(
        lambda m: -float(exact_log_density(m, b, lo, hi, step, x)),
        bounds=(a - reach, a + reach),
        method="bounded",
        options={"xatol": 1e-9 * b},
    )
    assert high == pytest.approx(max(*values, -found.fun), rel=1e-11, abs=1e-11)
    if rises:
        assert (values[-1] > values[0]) == (rises > 0) and high == pytest.approx(max(values[0], values[-1]))


# ------------------------------------------------------------------------------------------------------- the face


@pytest.fixture(scope="module")
def penguins():
    frame = jointforest.datasets.load_penguins()
    X, y = frame.drop(columns="species"), frame["species"]
    return X, y, jointforest.GenerativeForestClassifier(10, random_state=0, min_samples_leaf=4).fit(X, y)


def test_methods_say_what_the_query_says(penguins) -> None:
    X, _, clf = penguins
    model, j = clf.joint_.distribution.forest, 6
    for beta in (None, 1.0, 0.0):
        want = robustness(model, clf._evidence(X), j, beta=clf.beta_ if beta is None else beta)[0]
        np.testing.assert_array_equal(clf.robustness(X, beta=beta), want)
    np.testing.assert_array_equal(clf.joint_.robustness(X, "species"), clf.robustness(X, beta=1))
    half = clf.joint_.robustness(X, "species", c=0.5, shift="column")
    np.testing.assert_array_equal(half, clf.robustness(X, beta=1, c=0.5, shift="column"))


def test_a_number_as_target_is_refused(penguins) -> None:
    X, _, clf = penguins
    with pytest.raises(ValueError, match=r"'body_mass_g' is .*predict_interval"):
        clf.joint_.robustness(X, "body_mass_g")
    known = X["body_mass_g"].notna()
    regressor = jointforest.GenerativeForestRegressor(3, random_state=0, min_samples_leaf=4)
    regressor.fit(X[known].drop(columns="body_mass_g"), X[known]["body_mass_g"])
    with pytest.raises(ValueError, match=r"'body_mass_g' is .*predict_interval"):
        regressor.robustness(X.drop(columns="body_mass_g"))


def test_ten_classes() -> None:
    digits = sklearn.datasets.load_digits()
    X, y = digits.data[:500, 16:32], digits.target[:500]
    clf = jointforest.GenerativeForestClassifier(5, random_state=0, min_samples_leaf=4, beta=1.0).fit(X[:400], y[:400])
    found = clf.robustness(X[400:])
    right = clf.predict(X[400:]) == y[400:]
    assert np.all((found >= 0) & (found <= 0.5)) and found[right].mean() > found[~right].mean()


def test_uncertainty(penguins) -> None:
    X, _, clf = penguins
    rows = X.iloc[[0, 100, 300, 3]].reset_index(drop=True)
    rows.loc[1, "body_mass_g"] = 12_000
    found = clf.uncertainty(rows, X, fragile=0.2)
    p = level_probability(clf.joint_.distribution.forest, clf._evidence(rows), 6)
    assert found.predicted.tolist() == clf.classes_[p.argmax(axis=1)].tolist()
    np.testing.assert_array_equal(found.probability, p.max(axis=1))
    np.testing.assert_array_equal(found.epsilon, clf.robustness(rows, beta=1))
    np.testing.assert_array_equal(found.log_density, clf.score_samples(rows))
    for i in range(len(rows)):
        known = rows.columns[rows.iloc[i].notna()]
        np.testing.assert_allclose(
            found.percentile[i], 100 * np.mean(clf.score_samples(X[known]) < found.log_density[i])
        )
    kinds = {(False, False): "ordinary", (False, True): "ambiguous", (True, False): "unfamiliar", (True, True): "both"}
    want = [kinds[p < 5, e < 0.2] for p, e in zip(found.percentile, found.epsilon, strict=True)]
    assert found.reading.tolist() == want and want[1] in ("unfamiliar", "both")


def test_uncertainty_remembers_rows_of_learning(penguins) -> None:
    X, y, clf = penguins
    rows = X.iloc[[0, 3]]
    assert clf.reference_.shape == (len(X), 6)  # all, as there are so few
    for got, want in zip(clf.uncertainty(rows), clf.uncertainty(rows, X), strict=True):
        np.testing.assert_array_equal(got, want)
    twice, weight = X.iloc[np.tile(np.arange(len(X)), 2)], np.repeat([1.0, 0.0], len(X))
    fits = [
        jointforest.GenerativeForestClassifier(2, random_state=seed, min_samples_leaf=4, beta=1.0) for seed in (0, 0, 1)
    ]
    kept = [clf.fit(twice, np.tile(y, 2)).reference_ for clf in fits]
    assert kept[0].shape == (500, 6)
    np.testing.assert_array_equal(kept[0], kept[1])
    assert not np.array_equal(kept[0], kept[2], equal_nan=True)
    fits[0].fit(twice.assign(body_mass_g=weight), np.tile(y, 2), weight)
    assert np.all(fits[0].reference_[:, list(X.columns).index("body_mass_g")] == 1)


def test_impossible_rows_are_not_predicted(penguins) -> None:
    X, y, _ = penguins
    forest = jointforest.GenerativeForestClassifier(
        3, random_state=0, min_samples_leaf=4, beta=1.0, leaf="uniform", bounds="global", epsilon=0.0
    )
    found = forest.fit(X, y).uncertainty(X.iloc[[0, 0]].assign(body_mass_g=[3750, 1e6]))
    assert found.predicted.tolist() == ["Adelie", None]
    assert np.isnan(found.epsilon).tolist() == np.isnan(found.probability).tolist() == [False, True]
    assert found.reading[1] == "both"


def test_uncertainty_of_a_joint(penguins) -> None:
    X, y, clf = penguins
    rows = X.iloc[[0, 100, 300, 3]]
    got, want = clf.joint_.uncertainty(rows, "species", X, fragile=0.2), clf.uncertainty(rows, X, fragile=0.2)
    assert got.predicted.tolist() == want.predicted.tolist()
    for name in ("probability", "epsilon", "log_density", "percentile", "reading"):
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name))
    known = clf.joint_.uncertainty(rows.assign(species="Gentoo"), "species", X.assign(species=y))
    np.testing.assert_array_equal(known.epsilon, want.epsilon)  # the target's own cells are not looked at
    with pytest.raises(ValueError, match=r"'body_mass_g' is .*quantile"):
        clf.joint_.uncertainty(rows, "body_mass_g", X)
