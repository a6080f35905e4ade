"""Mixtures of hidden trees and a forest: every mixed answer from the two oracles' own, weighed by Bayes' rule."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from jointforest.api.exchange import mix
from jointforest.api.joint import Joint
from jointforest.data.discretization.learn import learn_scale
from jointforest.data.evidence import Evidence
from jointforest.models.base import Distribution
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.box_forest.structure import Forest
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees
from jointforest.models.mixture import Mixture

from ... import oracle
from ...oracle import hidden as hidden_oracle
from ...random_cases.evidence import random_evidence
from ...random_cases.hidden_trees import random_tree
from ...random_cases.models import random_model, random_number

KINDS = ("continuous", "mixed", "rounded", "categorical")
SEEDS = range(8)
N = 5
NEAR = {"rtol": 1e-7, "atol": 1e-9}


class Case:
    """A forest and hidden trees of one schema, rows of evidence, and what the oracles say of them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.forest: Forest = random_model(seed, kinds=KINDS, n_trees=2, max_depth=2)
        columns = self.forest.schema.columns
        rows = [
            rng.integers(len(c.levels), size=30).astype(float)
            if c.is_categorical
            else np.array([random_number(rng, c) for _ in range(30)])
            for c in columns
        ]
        scales = tuple(learn_scale(column, x, None, 4) for column, x in zip(columns, rows, strict=True))
        trees = tuple(random_tree(rng, scales, np.float64, 0.0) for _ in range(2))
        self.hidden = HiddenTrees(self.forest.schema, scales, trees, np.log([0.25, 0.75]))
        joints = [
            Joint(BoxForest(self.forest)),
            Joint(HiddenTree(self.hidden)),
        ]
        self.model: Distribution = mix(joints, [3, 1]).distribution
        self.evidence: Evidence = random_evidence(self.forest, seed, N)
        self.given = [
            hidden_oracle.Given(self.hidden, hidden_oracle.row_of(self.hidden, self.evidence, i)) for i in range(N)
        ]
        of_hidden = np.array([hidden_oracle.log_density(given) for given in self.given])
        each = np.column_stack([oracle.log_density(self.forest, self.evidence), of_hidden]) + np.log([0.75, 0.25])
        self.log_density = np.logaddexp.reduce(each, axis=1)
        with np.errstate(invalid="ignore"):
            self.share = np.exp(each - self.log_density[:, None])

    def mixed(self, i: int, of_forest, of_hidden):
        """The answers of two parts, weighed; that of a part which rules the evidence out is never asked."""
        answers = [ask() for share, ask in zip(self.share[i], (of_forest, of_hidden), strict=True) if share > 0.0]
        weights = [share for share in self.share[i] if share > 0.0]
        return sum(w * np.asarray(a) for w, a in zip(weights, answers, strict=True))


@cache
def case(seed: int) -> Case:
    return Case(seed)


def possible(of: Case) -> list[int]:
    return np.flatnonzero(np.isfinite(of.log_density)).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_log_density_and_background(seed: int) -> None:
    of = case(seed)
    assert [part.kind for part in of.model.components] == ["forest", "hidden trees"]
    np.testing.assert_allclose(of.model.log_density(of.evidence), of.log_density, **NEAR)
    found = of.model.observe(of.evidence).background_weight()
    for i in possible(of):
        expected = of.mixed(i, lambda i=i: oracle.background_weight(of.forest, of.evidence, i), lambda: 0.0)
        assert found[i] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_columns(seed: int) -> None:
    of = case(seed)
    for j, column in enumerate(of.model.schema.columns):
        in_forest = [oracle.given(of.forest, of.evidence, i, j) for i in range(N)]
        if column.is_categorical:
            found = of.model.observe(of.evidence).level_probabilities(j)
            for i in possible(of):
                expected = of.mixed(
                    i,
                    lambda i=i, f=in_forest: oracle.level_probability(f[i]),
                    lambda i=i, j=j: hidden_oracle.level_probability(of.given[i], j),
                )
                np.testing.assert_allclose(found[i], expected, **NEAR)
            continue
        rng = np.random.default_rng(seed)
        x = np.array([random_number(rng, column) for _ in range(4)])
        below, density = (
            of.model.observe(of.evidence).cdf(j, x),
            of.model.observe(of.evidence).pdf(j, x),
        )
        mean, _ = of.model.observe(of.evidence).moments(j)
        for i in possible(of):
            expected = of.mixed(
                i,
                lambda i=i, x=x, f=in_forest: [oracle.cdf(f[i], at) for at in x.tolist()],
                lambda i=i, j=j, x=x: hidden_oracle.cdf(of.given[i], j, x.tolist()),
            )
            np.testing.assert_allclose(below[i], expected, **NEAR)
            if np.isnan(of.evidence.value[i, j]):
                expected = of.mixed(
                    i,
                    lambda i=i, x=x, f=in_forest: [oracle.pdf(f[i], at) for at in x.tolist()],
                    lambda i=i, j=j, x=x: [hidden_oracle.pdf(of.given[i], j, at) for at in x.tolist()],
                )
                np.testing.assert_allclose(density[i], expected, **NEAR)
            expected = of.mixed(
                i,
                lambda i=i, f=in_forest: oracle.mean_variance(f[i])[0],
                lambda i=i, j=j: hidden_oracle.mean_variance(of.given[i], j)[0],
            )
            assert mean[i] == pytest.approx(float(expected), rel=1e-5, abs=1e-5)
        q = np.array([0.02, 0.5, 0.9])
        found = of.model.observe(of.evidence).quantile(j, q)
        for i in possible(of):
            one = of.evidence.take(np.array([i]))
            just = column.step or 1e-6 * (1.0 + np.abs(found[i]))
            assert (of.model.observe(one).cdf(j, found[i] + 0.01 * just)[0] >= q - 1e-7).all()
            assert (of.model.observe(one).cdf(j, found[i] - just)[0] <= q + 1e-7).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_conditioned_and_marginal_mixtures(seed: int) -> None:
    of = case(seed)
    half = np.arange(len(of.model.schema.columns)) % 2 == 0
    first = replace_cells(of.evidence, half)
    second = replace_cells(of.evidence, ~half)
    alone = of.model.log_density(first)
    for i in possible(of):
        one = np.array([i])
        found = of.model.condition(first.take(one)).log_density(second.take(one))
        np.testing.assert_allclose(found[0], of.log_density[i] - alone[i], **NEAR)
    kept = of.model.marginalize(np.flatnonzero(half).tolist())
    inside = of.evidence._replace(
        value=np.ascontiguousarray(of.evidence.value[:, half]),
        region=np.ascontiguousarray(of.evidence.region[:, half]) if of.evidence.has_regions else of.evidence.region,
    )
    np.testing.assert_allclose(kept.log_density(inside), alone, **NEAR)


def replace_cells(evidence: Evidence, stays: np.ndarray) -> Evidence:
    """The evidence with nothing known of some columns."""
    value = np.where(stays, evidence.value, np.nan)
    region = np.where(stays, evidence.region, -1).astype(np.int32) if evidence.has_regions else evidence.region
    return evidence._replace(value=value, region=region)


def test_a_part_that_rules_the_evidence_out_has_no_say() -> None:
    of = case(0)
    j = next(j for j, column in enumerate(of.model.schema.columns) if column.kind == "categorical")
    level = 0
    tree = of.hidden.trees[0]
    emission = []
    for k, table in enumerate(tree.emission):
        if int(tree.column[k]) == j:
            code = of.hidden.scales[j].code[level]
            table = table.copy()
            table[:, code] = 0.0
            table[:, (code + 1) % table.shape[1]] += 1e-3
            table /= table.sum(axis=1, keepdims=True)
        emission.append(table)
    hidden = replace(of.hidden, trees=(replace(tree, emission=tuple(emission)),), log_weight=np.zeros(1))
    model = Mixture((*BoxForest(of.forest).components, HiddenTree(hidden)), np.log([0.5, 0.5]))
    value = np.full((1, len(of.model.schema.columns)), np.nan)
    value[0, j] = level
    evidence = Evidence.of_values(value)
    assert np.isneginf(model.components[1].log_density(evidence))[0]
    other = next(i for i, column in enumerate(model.schema.columns) if not column.is_categorical)
    alone = BoxForest(of.forest)
    np.testing.assert_array_equal(model.observe(evidence).moments(other), alone.observe(evidence).moments(other))
    assert len(model.condition(evidence).components) == 1
