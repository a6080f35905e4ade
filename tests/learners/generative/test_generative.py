"""Generative forests against the maths: Theorem 1, marginals by enumeration and quadrature, Theorem 2, tuning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import KNNImputer
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from jointforest.api.joint import Joint
from jointforest.data.evidence import build
from jointforest.learners.base import draw_bootstrap
from jointforest.learners.generative.classifier import GenerativeForestClassifier
from jointforest.learners.generative.constants import FIXED
from jointforest.learners.generative.regressor import GenerativeForestRegressor
from jointforest.learners.generative.supervised import own_average
from jointforest.models.box_forest.posterior import tree_answers
from jointforest.models.box_forest.structure_kernels import MIXED

from ... import oracle
from ...box_answers import level_probability

pytestmark = pytest.mark.smoke  # runs on wheels

SEED = int(np.random.RandomState(0).randint(2**31 - 1))  # what an estimator with random_state=0 draws its rows by
LEAVES = ("normal", "normal_moments", "normal_mle", "uniform", "spn")


def numbers(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Complete rows: two numbers that go together, one on a grid, and noise; three classes; weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    x[:, 1] += x[:, 0]
    x[:, 2] = rng.integers(0, 5, size=n)
    y = (x[:, 1] + 0.5 * rng.normal(size=n) > 0) + (x[:, 2] > 2).astype(int)
    return x, y, rng.uniform(0.2, 3.0, size=n)


# ----------------------------------------------------------------------- Theorem 1: on complete rows, the forest itself


CLASSIFIERS = (
    RandomForestClassifier(8, random_state=0),
    RandomForestClassifier(8, criterion="entropy", max_samples=0.5, class_weight="balanced", random_state=1),
    ExtraTreesClassifier(8, bootstrap=True, random_state=2),
    ExtraTreesClassifier(8, random_state=3),
    DecisionTreeClassifier(max_depth=5, random_state=4),
)
REGRESSORS = (
    RandomForestRegressor(8, max_features=0.5, random_state=0),
    ExtraTreesRegressor(8, bootstrap=True, min_samples_leaf=3, random_state=1),
    DecisionTreeRegressor(max_depth=5, random_state=2),
)


@pytest.mark.parametrize("forest", CLASSIFIERS, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_an_adopted_classifier_gives_the_probabilities_of_its_forest(forest: Any, is_weighted: bool) -> None:
    x, y, weight = numbers(200, 0)
    weight = weight if is_weighted else np.ones(200)
    forest.fit(x, y, sample_weight=weight)
    ours = GenerativeForestClassifier.from_forest(forest, x, y, weight, combine="trees", smoothing=1.0)
    for rows in (x, numbers(300, 1)[0]):
        np.testing.assert_allclose(ours.predict_proba(rows), forest.predict_proba(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("smoothing", [0.0, 3.0])
def test_whatever_the_leaves_the_probabilities_are_those_of_the_forest(leaf: str, smoothing: float) -> None:
    """Uniform leaves give most rows that were not seen probability 0: the routed leaves answer."""
    x, y, _ = numbers(200, 2)
    forest = RandomForestClassifier(6, min_samples_leaf=20, random_state=0).fit(x, y)
    for bounds in ("no", "local"):
        ours = GenerativeForestClassifier.from_forest(
            forest, x, y, combine="trees", leaf=leaf, smoothing=smoothing, bounds=bounds, min_spread=0.01
        )
        assert bool((ours.joint_.distribution.forest.trees.feature == MIXED).any()) == (leaf == "spn")
        for rows in (x, 5 * numbers(100, 3)[0]):
            np.testing.assert_allclose(ours.predict_proba(rows), forest.predict_proba(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.35, 1.0])
def test_one_tree_is_itself_whatever_the_exponent(beta: float) -> None:
    x, y, _ = numbers(150, 4)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(x, y)
    ours = GenerativeForestClassifier.from_forest(tree, x, y, epsilon=0, beta=beta)
    rows = numbers(150, 5)[0]
    np.testing.assert_allclose(ours.predict_proba(rows), tree.predict_proba(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("forest", REGRESSORS, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_an_adopted_regressor_gives_the_means_of_its_forest(forest: Any, is_weighted: bool) -> None:
    x, _, weight = numbers(200, 6)
    y = 50 + x[:, 0] * x[:, 1] + x[:, 2]
    weight = weight if is_weighted else np.ones(200)
    forest.fit(x, y, sample_weight=weight)
    ours = GenerativeForestRegressor.from_forest(forest, x, y, weight, combine="trees")
    for rows in (x, numbers(300, 7)[0]):
        np.testing.assert_allclose(ours.predict(rows), forest.predict(rows), rtol=1e-9)


@pytest.mark.parametrize("leaf", LEAVES)
def test_whatever_the_leaves_of_features_the_target_is_normal_in_each(leaf: str) -> None:
    x, _, _ = numbers(200, 12)
    y = 50 + x[:, 0] * x[:, 1] + x[:, 2]
    forest = RandomForestRegressor(6, min_samples_leaf=20, random_state=0).fit(x, y)
    ours = GenerativeForestRegressor.from_forest(forest, x, y, combine="trees", leaf=leaf, min_spread=0.05)
    rows = 3 * numbers(20, 13)[0]
    np.testing.assert_allclose(ours.predict(rows), forest.predict(rows), rtol=1e-9)
    low, high = ours.predict_interval(rows, 0.8)
    evidence = build(ours.joint_.schema, np.column_stack([rows, np.full(20, np.nan)]))
    for i in range(20):
        this = oracle.combined(ours.joint_.distribution.forest, evidence, i, 4, 0.0)
        assert oracle.cdf(this, low[i]) == pytest.approx(0.1, abs=1e-8)
        assert oracle.cdf(this, high[i]) == pytest.approx(0.9, abs=1e-8)


def by_boxes(joint: Joint, x: np.ndarray, y: np.ndarray, weights: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Average over trees of the weighted mean of y (n, K) over the training rows in the box that a row is in."""
    model, boxes = joint.distribution.forest, oracle.leaf_boxes(joint.distribution.forest)
    inside = {}
    for leaf, (bounds, levels) in boxes.items():
        for name, table in (("x", x), ("rows", rows)):
            is_in = np.ones(len(table), dtype=bool)
            for j, (lo, hi) in bounds.items():
                is_in &= (table[:, j] > lo) & (table[:, j] <= hi)
            for j, allowed in levels.items():
                is_in &= np.isin(table[:, j], sorted(allowed))
            inside[leaf, name] = is_in
    total = np.zeros((len(rows), y.shape[1]))
    for leaf in boxes:
        t = model.leaves.tree[leaf]
        if t < len(weights):
            held = np.where(inside[leaf, "x"], weights[t], 0.0)
            total[inside[leaf, "rows"]] += held @ y / held.sum()
    return total / len(weights)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_grown_classifier_averages_the_shares_of_classes_in_its_boxes(criterion: str, bootstrap: bool) -> None:
    x, y, weight = numbers(200, 8)
    ours = GenerativeForestClassifier(
        6, criterion=criterion, bootstrap=bootstrap, min_samples_leaf=4, combine="trees", random_state=0,
        kinds={"x2": "categorical"},
    ).fit(x, y, weight)  # fmt: skip
    assert ours.joint_.distribution.forest.trees.left_levels.any()
    drawn = [weight * (draw_bootstrap(200, 200, True, SEED, t) if bootstrap else 1.0) for t in range(6)]
    rows = np.vstack([x, numbers(100, 9)[0]])
    want = by_boxes(ours.joint_, x, np.eye(3)[y], drawn, rows)
    np.testing.assert_allclose(ours.predict_proba(rows), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_grown_regressor_averages_the_means_in_its_boxes(bootstrap: bool) -> None:
    x, _, weight = numbers(200, 10)
    y = 50 + x[:, 0] * x[:, 1] + x[:, 2]
    ours = GenerativeForestRegressor(6, bootstrap=bootstrap, min_samples_leaf=2, combine="trees", random_state=0)
    ours.fit(x, y, weight)
    drawn = [weight * (draw_bootstrap(200, 200, True, SEED, t) if bootstrap else 1.0) for t in range(6)]
    rows = np.vstack([x, numbers(100, 11)[0]])
    want = by_boxes(ours.joint_, x, y[:, None], drawn, rows)[:, 0]
    np.testing.assert_allclose(ours.predict(rows), want, rtol=1e-9)


# ---------------------------------------------------------------------- sums and integrals of the density are marginals


def small_table(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Two numbers, a count and a category, with gaps; three classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, size=n)
    frame = pd.DataFrame({"a": rng.normal(size=n) + y, "b": rng.exponential(size=n)})
    frame["b"] += 0.5 * frame["a"].abs()
    frame["count"] = rng.poisson(1.5, size=n)
    frame["colour"] = np.array(["red", "green", "blue"])[(y + (rng.random(n) < 0.3)) % 3]
    return frame.mask(rng.random(frame.shape) < 0.05), pd.Series(np.array(["x", "y", "z"])[y], name="kind")


def integral(joint: Joint, row: pd.DataFrame, column: str) -> float:
    """Integral over a numeric column of the density of one row, by Gauss's rule between points where it may jump."""
    model, j = joint.distribution.forest, joint.columns.index(column)
    s = model.columns.slot[j]
    of_column = model.trees.feature == j
    cuts = np.concatenate([model.trees.threshold[of_column], model.leaves.lo[:, s], model.leaves.hi[:, s]])
    cuts = np.unique(cuts[np.isfinite(cuts)])
    unit = model.schema[column].maximum - model.schema[column].minimum
    lo, hi = min(cuts[0], model.schema[column].minimum) - unit, max(cuts[-1], model.schema[column].maximum) + unit
    edges = np.unique(np.concatenate([cuts, np.linspace(lo, hi, 400)]))
    z, w = np.polynomial.legendre.leggauss(12)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    x = [middle[:, None] + half[:, None] * z]
    weight = [half[:, None] * w]
    u, v = np.polynomial.legendre.leggauss(100)  # beyond, x = edge +- unit * t / (1 - t): the background's tails
    t, v = (u + 1) / 2, v / 2
    x += [lo - unit * t / (1 - t), hi + unit * t / (1 - t)]
    weight += [unit * v / (1 - t) ** 2] * 2
    points = np.concatenate([p.ravel() for p in x])
    rows = pd.concat([row] * len(points), ignore_index=True).assign(**{column: points})
    return float(np.exp(joint.log_density(rows)) @ np.concatenate([p.ravel() for p in weight]))


def models() -> list[tuple[str, str, str]]:
    """Leaf kind, whether the class is in it, and bounds."""
    kinds = [(leaf, "factorised", "no") for leaf in LEAVES]
    return [*kinds, ("normal", "full", "auto"), ("spn", "full", "local"), ("normal_mle", "full", "no")]


@pytest.mark.parametrize(("leaf", "target_in_leaf", "bounds"), models())
def test_densities_sum_and_integrate_to_their_marginals(leaf: str, target_in_leaf: str, bounds: str) -> None:
    X, y = small_table(150, 0)
    ours = GenerativeForestClassifier(
        3, min_samples_leaf=40, leaf=leaf, target_in_leaf=target_in_leaf, bounds=bounds, min_spn_samples=25,
        kinds={"a": "continuous", "b": "continuous", "count": "integer"}, epsilon=0.01, random_state=4,
    ).fit(X, y)  # fmt: skip
    joint = ours.joint_
    assert bool((joint.distribution.forest.trees.feature == MIXED).any()) == (leaf == "spn" or target_in_leaf == "full")
    rows = X.iloc[:12]
    marginal = np.exp(ours.score_samples(rows))
    by_class = [np.exp(joint.log_density(rows.assign(kind=k))) for k in "xyz"]
    np.testing.assert_allclose(np.sum(by_class, axis=0), marginal, rtol=1e-10)
    np.testing.assert_allclose(np.transpose(by_class) / marginal[:, None], joint.predict_proba(rows, "kind"), rtol=1e-9)
    by_colour = [np.exp(joint.log_density(rows.assign(colour=c))) for c in ("red", "green", "blue")]
    np.testing.assert_allclose(np.sum(by_colour, axis=0), np.exp(joint.log_density(rows.drop(columns="colour"))))
    counts = [np.exp(joint.log_density(rows.assign(count=float(k)))) for k in range(-60, 61)]
    np.testing.assert_allclose(np.sum(counts, axis=0), np.exp(joint.log_density(rows.drop(columns="count"))), rtol=1e-5)
    for column in ("a", "b"):
        for i in (1, 4):
            row = rows.iloc[[i]].assign(kind=y[i])
            want = np.exp(joint.log_density(row.drop(columns=column)))[0]
            assert integral(joint, row, column) == pytest.approx(want, rel=1e-6)
            assert integral(joint, row[[]].assign(**{column: math.nan}), column) == pytest.approx(1.0, rel=1e-6)


# ------------------------------------------------------------------------ Theorem 2: p(y | x_o) is found, with any gaps


SHOWN = ((0, 1, 2), (0, 1), (1, 2), (2,), ())
MEAN = np.array([[0.0, 0.0, 0.0], [1.5, 1.0, -0.5]])
COVARIANCE = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.3], [0.0, 0.3, 1.0]])


def two_normals(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two classes with the same covariance; class 1 has 40 %."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    return MEAN[y] + rng.multivariate_normal(np.zeros(3), COVARIANCE, size=n), y


def class_1_of_normals(x: np.ndarray, shown: tuple[int, ...]) -> np.ndarray:
    """The true p(y = 1 | the columns shown)."""
    if not shown:
        return np.full(len(x), 0.4)
    at = list(shown)
    p = [
        share * multivariate_normal(MEAN[k, at], COVARIANCE[np.ix_(at, at)]).pdf(x[:, at])
        for k, share in ((0, 0.6), (1, 0.4))
    ]
    return np.asarray(p[1] / (p[0] + p[1]))


def hidden(x: np.ndarray, shown: tuple[int, ...]) -> np.ndarray:
    """NaN in the columns that are not shown."""
    return np.where(np.isin(np.arange(x.shape[1]), shown), x, np.nan)


@pytest.mark.parametrize("target_in_leaf", ["factorised", "full"])
@pytest.mark.parametrize("combine", ["trees", "mixture"])
def test_two_normals_are_told_apart_ever_better_with_any_columns_missing(combine: str, target_in_leaf: str) -> None:
    test, errors = two_normals(300, 99)[0], []
    for n in (200, 2000, 20000):
        x, y = two_normals(n, 1)
        ours = GenerativeForestClassifier(
            20, min_samples_leaf=int(math.sqrt(n) / 2), max_features=1, min_spread=0.1, combine=combine,
            target_in_leaf=target_in_leaf, random_state=0,
        ).fit(x, y)  # fmt: skip
        p = [ours.predict_proba(hidden(test, shown))[:, 1] - class_1_of_normals(test, shown) for shown in SHOWN]
        errors.append(np.abs(p).mean(axis=1))
    assert np.all(errors[1][:4] < 0.85 * errors[0][:4])
    assert np.all(errors[2][:4] < 0.7 * errors[1][:4])
    assert np.all(errors[2] < 0.05)


@pytest.mark.parametrize("combine", ["trees", "mixture"])
def test_a_table_of_levels_is_learned_with_any_columns_missing(combine: str) -> None:
    p = np.random.default_rng(5).dirichlet(np.full(48, 0.7)).reshape(3, 2, 4, 2)
    every = np.argwhere(np.ones(p.shape[:3])).astype(float)
    errors = []
    for n in (100, 1000, 10000, 100000):
        cell = np.random.default_rng(2).choice(p.size, size=n, p=p.ravel())
        rows = np.transpose(np.unravel_index(cell, p.shape)).astype(float)
        ours = GenerativeForestClassifier(
            10, min_samples_leaf=max(1, int(math.sqrt(n) / 4)), combine=combine, random_state=0,
            kinds=dict.fromkeys(("x0", "x1", "x2"), "categorical"),
        ).fit(rows[:, :3], rows[:, 3].astype(int))  # fmt: skip
        error = []
        for shown in SHOWN:
            total = p.sum(axis=tuple(set(range(3)) - set(shown)), keepdims=True)
            true = np.broadcast_to(total[..., 1] / total.sum(axis=-1), p.shape[:3]).ravel()
            error.append(np.abs(ours.predict_proba(hidden(every, shown))[:, 1] - true).mean())
        errors.append(error)
    assert np.all(np.array(errors[1])[:4] < 0.8 * np.array(errors[0])[:4])
    assert np.all(np.array(errors[2]) < 0.5 * np.array(errors[1]))
    assert np.all(np.array(errors[3]) < np.minimum(0.5 * np.array(errors[2]), 0.015))


def rims_and_centre(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Class 1, 90 % of the rows, has x2 near -1 or 1; class 0 has x2 near 0; x1 says nothing."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.9).astype(int)
    x2 = np.where(y == 1, rng.choice([-1.0, 1.0], size=n), 0.0) + 0.1 * rng.normal(size=n)
    return np.column_stack([rng.normal(size=n), x2]), y


@pytest.mark.parametrize("combine", ["trees", "mixture", "weighted"])
def test_averaging_neighbours_fails_where_summing_out_does_not(combine: str) -> None:
    """The mean of some -1 and some 1 lies in between, where the other class is; more rows do not help."""
    test, truth = rims_and_centre(500, 1)
    test[:, 1] = np.nan
    for n in (300, 3000):
        x, y = rims_and_centre(n, 0)
        forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(x, y)
        filled = KNNImputer(n_neighbors=7).fit(x).transform(test)
        ours = GenerativeForestClassifier.from_forest(forest, x, y, combine=combine)
        assert (forest.predict(filled) == truth).mean() < 0.35
        assert (ours.predict(test) == truth).mean() > 0.88
    assert np.abs(ours.predict_proba(test)[:, 1] - 0.9).mean() < 0.02


# ---------------------------------------------------------------------------------------------------- chosen out of bag


def clusters(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """60 classes of 10 rows, each close together."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(60), 10)
    return 3 * rng.normal(size=(60, 6))[y] + 0.3 * rng.normal(size=(600, 6)), y


def fitted(x: np.ndarray, y: np.ndarray, n_jobs: int = 1, **params: Any) -> GenerativeForestClassifier:
    return GenerativeForestClassifier(20, min_samples_leaf=1, random_state=0, n_jobs=n_jobs, **params).fit(x, y)


def test_the_exponent_is_high_where_trees_know_different_things() -> None:
    """Each tree is grown on one row in ten, so that many classes are strange to it: those it must not speak of."""
    assert fitted(*clusters(0), max_samples=0.1).beta_ >= 0.75


def test_the_exponent_is_low_where_densities_say_more_than_they_know() -> None:
    """Twenty copies of a column: taken as independent within a leaf, they make p_t(x) far too sure."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    y = (x[:, 0] + rng.normal(size=400) > 0).astype(int)
    assert fitted(x + 0.02 * rng.normal(size=(400, 20)), y).beta_ <= 0.1


@pytest.mark.parametrize("spread_rows", [0.0, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_smallest_spreads_are_about_those_within_the_leaves(seed: int, spread_rows: float) -> None:
    """150 groups of 4 rows: a leaf of two or three rows cannot know how far a group reaches, all together can."""
    rng = np.random.default_rng(seed)
    y, within = np.repeat(np.arange(150), 4), np.repeat([0.05, 0.2, 0.6], 2)
    x = 3 * rng.normal(size=(150, 6))[y] + within * rng.normal(size=(600, 6))
    ratio = fitted(x, y, spread_rows=spread_rows, combine="trees").min_spread_[:6] / (within / x.std(axis=0))
    assert np.all((ratio > 0.5) & (ratio < 2.0))


@pytest.mark.parametrize("seed", [0, 1])
def test_leaves_are_large_where_classes_are_noisy_and_small_where_they_are_many(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(800, 1))
    noisy = x, ((x[:, 0] > 0) ^ (rng.random(800) < 0.35)).astype(int)
    chosen = [
        [GenerativeForestClassifier(20, random_state=0, n_jobs=k).fit(*table).min_samples_leaf_ for k in (1, 2)]
        for table in (noisy, clusters(seed))
    ]
    assert chosen[0] == [12, 12]
    assert chosen[1][0] == chosen[1][1] <= 4


def test_the_spread_of_a_target_is_that_of_all_rows_of_a_sorted_table() -> None:
    """The first rows are all but free of noise, the other half is not: the floor suits the half that costs most."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=4000))[:, None]
    y = x[:, 0] + np.where(x[:, 0] < 0.5, 0.001, 0.3) * rng.normal(size=4000)
    floors = []
    for order in (np.arange(4000), rng.permutation(4000)):
        ours = GenerativeForestRegressor(5, min_samples_leaf=1, random_state=0, combine="trees").fit(x[order], y[order])
        leaves = ours.joint_.distribution.forest.leaves
        floors.append(leaves.b[leaves.tree < 5, 1].min() / y.std())
    assert floors[0] == pytest.approx(floors[1], rel=1e-6)
    assert floors[0] > 0.05


def test_what_is_chosen_does_not_depend_on_threads_and_is_fixed_without_rows_out_of_bag() -> None:
    x, y = clusters(1)
    one, other = fitted(x, y, n_jobs=1), fitted(x, y, n_jobs=2)
    assert np.array_equal(one.min_spread_, other.min_spread_) and one.beta_ == other.beta_
    assert np.array_equal(one.predict_proba(x), other.predict_proba(x))
    none = fitted(x, y, bootstrap=False)
    assert none.beta_ == 0.0 and np.all(none.min_spread_ == 0.1)


@pytest.mark.parametrize("leaf", ["normal", "uniform"])
def test_what_is_judged_is_what_is_predicted(leaf: str) -> None:
    """Trees of probability 0 included: uniform leaves have many."""
    x, y = clusters(2)
    ours = fitted(x, y, leaf=leaf, bounds="no" if leaf == "normal" else "local", max_samples=0.3)
    rng, (rows, _) = np.random.default_rng(0), clusters(2)
    rows = rows[:100] + 0.05 * rng.normal(size=(100, 6))
    rows[rng.random(rows.shape) < FIXED.beta_missing] = np.nan
    model = ours.joint_.distribution.forest
    evidence = build(model.schema, np.column_stack([rows, np.full(100, np.nan)]))
    log_tree, answer = tree_answers(model, evidence, 6)
    assert bool(np.isinf(log_tree).any()) == (leaf == "uniform")
    for beta in FIXED.betas[:-1]:
        want = level_probability(model, evidence, 6, beta=beta)
        got = own_average(beta * np.maximum(log_tree, -1e300), answer, np.ones(log_tree.shape, bool))
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
