"""Trees weighed by what they say of the evidence, against the oracle: GeF, GeF+ and the exponents between them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from jointforest.data.evidence import Evidence, build
from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.table import NORMAL, UNIFORM, ParameterTables
from jointforest.models.box_forest.posterior import chunk_posterior, tree_answers
from jointforest.models.box_forest.structure import Forest

from ... import oracle
from ...box_answers import level_probability, mean_variance, quantile
from ...random_cases.evidence import random_evidence
from ...random_cases.models import random_model, seeds

N = 6
BETAS = (0.0, 0.3, 0.7, 1.0)


def setting(seed: int) -> tuple[Forest, Evidence]:
    """A small random model, in two of three some nodes without a split, and evidence: values, regions, nothing."""
    model = random_model(seed, n_trees=1 + seed % 4, max_depth=1 + seed % 3, background=seed % 5 > 0)
    return model, random_evidence(model, seed, N)


def expected(model: Forest, evidence: Evidence, i: int, j: int, beta: float) -> oracle.Given:
    """For beta = 1 the background takes part."""
    return oracle.given(model, evidence, i, j) if beta == 1.0 else oracle.combined(model, evidence, i, j, beta)


@pytest.mark.parametrize("beta", BETAS)
@given(seeds)
@settings(max_examples=12)
def test_levels(beta: float, seed: int) -> None:
    model, evidence = setting(seed)
    for j in np.flatnonzero(model.columns.is_categorical):
        asked = without_values(evidence, j)
        got = level_probability(model, asked, j, beta=beta)
        want = [oracle.level_probability(expected(model, asked, i, j, beta)) for i in range(N)]
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("beta", BETAS)
@given(seeds)
@settings(max_examples=5)
def test_means_and_variances(beta: float, seed: int) -> None:
    model, evidence = setting(seed)
    for j in np.flatnonzero(model.columns.is_categorical == 0)[seed % 2 :: 2]:
        asked = without_values(evidence, j)
        got = np.column_stack(mean_variance(model, asked, j, beta=beta))
        want = np.array([oracle.mean_variance(expected(model, asked, i, j, beta)) for i in range(N)])
        np.testing.assert_allclose(got[:, 0], want[:, 0], rtol=1e-8, atol=1e-8 * spread(model, j))
        np.testing.assert_allclose(got[:, 1], want[:, 1], rtol=1e-6, atol=1e-8 * spread(model, j) ** 2)


@pytest.mark.parametrize("beta", BETAS)
@given(seeds)
@settings(max_examples=5)
def test_quantiles(beta: float, seed: int) -> None:
    model, evidence = setting(seed)
    q = np.array([0.05, 0.5, 0.8])
    for j in np.flatnonzero(model.columns.is_categorical == 0)[seed % 2 :: 2]:
        asked = without_values(evidence, j)
        got = quantile(model, asked, j, q, beta=beta)
        for i in range(N):
            this = expected(model, asked, i, j, beta)
            for k in range(len(q)):
                check_quantile(this, got[i, k], q[k], spread(model, j))


def spread(model: Forest, j: int) -> float:
    return (model.schema.columns[j].maximum - model.schema.columns[j].minimum) / 6


def without_values(evidence: Evidence, j: int) -> Evidence:
    """Column j's values taken out, its regions left in."""
    value = evidence.value.copy()
    value[:, j] = math.nan
    return evidence._replace(value=value)


def check_quantile(this: oracle.Given, got: float, q: float, unit: float) -> None:
    """The distribution reaches q at the quantile, and not before it, to within rounding."""
    if oracle.probability_of(this, this.known) == 0.0:
        assert math.isnan(got)
        return
    step = oracle.piece(this.model, 0, this.j).step
    assert oracle.cdf(this, got + 1e-9 * unit) >= q - 1e-9
    assert oracle.cdf(this, got - (step if step > 0.0 else 1e-8 * unit)) <= q + 1e-7


@given(seeds)
@settings(max_examples=12)
def test_what_each_tree_says(seed: int) -> None:
    model, evidence = setting(seed)
    evidence = evidence._replace(region=np.empty((0, 0), dtype=np.int32))
    leaves, n_trees = model.leaves, len(model.trees.root) - model.has_background
    tree = leaves.tree
    for j in range(len(model.schema.columns)):
        asked = without_values(evidence, j)
        log_evidence, answer = tree_answers(model, asked, j)
        for i in range(N):
            log_joint, whole = oracle.log_joint(model, asked, i), oracle.given(model, asked, i, j)
            for t in range(n_trees):
                log_p = oracle.log_sum(log_joint[tree == t]) - oracle.log_sum(leaves.log_weight[tree == t])
                assert log_evidence[i, t] == pytest.approx(log_p, rel=1e-9, abs=1e-9)
                its = [x for x in whole.leaves if leaves.tree[x[1]] == t]
                if not its or log_p == -math.inf:
                    its = oracle.without_densities(model, asked, i, j, t)
                this = whole._replace(leaves=its)
                if model.columns.is_categorical[j]:
                    np.testing.assert_allclose(answer[i, t], oracle.level_probability(this), rtol=1e-9, atol=1e-13)
                elif i == seed % N:  # integrals take their time
                    assert answer[i, t, 0] == pytest.approx(oracle.mean_variance(this)[0], abs=1e-8 * spread(model, j))


def two_stumps(family: list[int]) -> Forest:
    """Two trees of a single leaf: a number in 0..1 or about 0, and a class of which each is all but sure."""
    model = random_model(0, n_trees=2, max_depth=0, background=False, kinds=("continuous", "boolean"), mixed=0.0)
    leaves = make_leaves(
        model.columns,
        ParameterTables(
            np.array([0, 1]),
            np.log([0.5, 0.5]),
            np.array(family, dtype=np.uint8)[:, None],
            a=np.zeros((2, 1)),
            b=np.ones((2, 1)),
            lo=np.where(np.array(family) == UNIFORM, 0.0, -math.inf)[:, None],
            hi=np.where(np.array(family) == UNIFORM, 1.0, math.inf)[:, None],
            atom_mass=np.zeros((2, 0)),
            level_mass=np.array([[0.9, 0.1], [0.2, 0.8]]),
            missing_rate=np.zeros((2, 2)),
        ),
    )
    return Forest(model.schema, model.columns, model.trees, leaves, has_background=False)


@pytest.mark.parametrize("x", [2.0, 1e3, 1e8])
def test_a_tree_of_probability_0_has_no_say_beside_one_that_is_ever_so_small(x: float) -> None:
    model = two_stumps([NORMAL, UNIFORM])
    evidence = build(model.schema, np.array([[x, math.nan]]))
    np.testing.assert_allclose(level_probability(model, evidence, 1, beta=0.5), [[0.9, 0.1]], rtol=1e-12)
    np.testing.assert_allclose(level_probability(model, evidence, 1, beta=0.0), [[0.55, 0.45]], rtol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_trees_count_the_same_where_all_give_probability_0(beta: float) -> None:
    model = two_stumps([UNIFORM, UNIFORM])
    evidence = build(model.schema, np.array([[7.0, math.nan]]))
    np.testing.assert_allclose(level_probability(model, evidence, 1, beta=beta), [[0.55, 0.45]], rtol=1e-12)
    assert np.isnan(level_probability(model, evidence, 1, beta=1.0)).all()


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_what_no_tree_allows_of_the_column_itself_has_no_answer(beta: float) -> None:
    model = random_model(3, kinds=("categorical", "continuous"), mixed=0.0)  # with a background, which allows all
    in_trees = model.leaves.tree < len(model.trees.root) - 1
    model.leaves.level_mass[in_trees, 0], model.leaves.log_level[in_trees, 0] = 0.0, -math.inf
    evidence = build(model.schema, conditions={"c0": [model.schema.columns[0].levels[0]]})
    assert np.isnan(level_probability(model, evidence, 0, beta=beta)).all()
    assert level_probability(model, evidence, 0, beta=1.0)[0, 0] == 1.0


@given(seeds)
@settings(max_examples=20)
def test_weights_of_trees(seed: int) -> None:
    """The average gives each tree 1 / T; an exponent just below 1 gives what the mixture without background does."""
    model, evidence = setting(seed)
    n_trees = len(model.trees.root) - model.has_background
    post = chunk_posterior(model, evidence, 0, N, beta=0.0)
    mixture, near = chunk_posterior(model, evidence, 0, N), chunk_posterior(model, evidence, 0, N, beta=1 - 1e-12)
    for i in range(N):
        own = slice(post.start[i], post.start[i + 1])
        share = np.bincount(model.leaves.tree[post.leaf[own]], np.exp(post.log_weight[own]), minlength=n_trees + 1)
        if post.log_evidence[i] == 0.0:
            met = share > 0
            np.testing.assert_allclose(share[met], 1 / met.sum(), rtol=1e-9)
            assert not met[n_trees]
        weight = np.zeros((2, len(model.leaves.log_weight)))
        for k, p in enumerate((mixture, near)):
            weight[k, p.leaf[p.start[i] : p.start[i + 1]]] = np.exp(p.log_weight[p.start[i] : p.start[i + 1]])
        weight[0, model.leaves.tree == n_trees] = 0.0
        if weight[0].sum() > 0:
            np.testing.assert_allclose(weight[1], weight[0] / weight[0].sum(), rtol=1e-8, atol=1e-14)
