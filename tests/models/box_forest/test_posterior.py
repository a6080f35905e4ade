"""The posterior over leaves against Bayes' rule over all leaves."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings

from jointforest.data.evidence import Evidence
from jointforest.data.schema import Columns
from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.table import ParameterTables
from jointforest.models.box_forest.posterior import (
    LeafPosterior,
    impute_and_weigh,
    log_density,
    posterior,
)
from jointforest.models.box_forest.posterior_kernels import add_atom
from jointforest.models.box_forest.structure import Forest

from ... import oracle
from ...box_answers import background_weight, level_probability, levels_and_log_density
from ...compiled import compiled
from ...random_cases.cells import Region, make_evidence
from ...random_cases.evidence import random_evidence
from ...random_cases.models import random_model, seeds


def same_as_oracle(post: LeafPosterior, model: Forest, evidence: Evidence, tolerance: float) -> None:
    """Each row of the posterior has the leaves and weights that plain loops find."""
    assert post.start[0] == 0 and post.start[-1] == len(post.leaf) == len(post.log_weight)
    for i in range(len(evidence.value)):
        joint = np.full(len(model.leaves.log_weight), -math.inf)
        mine = slice(post.start[i], post.start[i + 1])
        assert np.all(np.isfinite(post.log_weight[mine]))
        assert len(np.unique(post.leaf[mine])) == len(post.leaf[mine])
        joint[post.leaf[mine]] = post.log_weight[mine]
        want = oracle.log_joint(model, evidence, i)
        np.testing.assert_allclose(joint, want, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(post.log_evidence[i], oracle.log_sum(want), rtol=tolerance, atol=tolerance)


@given(seeds)
@settings(max_examples=40)
def test_posterior(seed: int) -> None:
    model = random_model(seed, n_trees=1 + seed % 3, max_depth=1 + seed % 5, background=seed % 3 > 0)
    n = 10
    evidence = random_evidence(model, seed, n)
    evidence = evidence._replace(log_penalty=np.full(n, -3.0))  # is no part of the posterior
    post = posterior(model, evidence)
    same_as_oracle(post, model, evidence, 1e-9)


@given(seeds)
@settings(max_examples=30)
def test_log_evidence_is_the_log_density_without_penalty(seed: int) -> None:
    model = random_model(seed, n_trees=2, max_depth=3, background=seed % 3 > 0)
    evidence = random_evidence(model, seed, 10)
    np.testing.assert_allclose(
        posterior(model, evidence).log_evidence, log_density(model, evidence), rtol=1e-12, atol=1e-12
    )


@given(seeds)
@settings(max_examples=30)
def test_levels_and_the_log_density_are_the_same_together(seed: int) -> None:
    model = random_model(seed, n_trees=2, max_depth=3, background=seed % 3 > 0)
    evidence = random_evidence(model, seed, 10)._replace(log_penalty=np.full(10, -3.0))
    for j in np.flatnonzero(model.columns.is_categorical).tolist():
        levels, log_p = levels_and_log_density(model, evidence, j)
        np.testing.assert_allclose(levels, level_probability(model, evidence, j), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(log_p, log_density(model, evidence), rtol=1e-12, atol=1e-12)


@given(seeds)
@settings(max_examples=20)
def test_what_is_known_at_atoms_by_then_changes_no_answer(seed: int) -> None:
    model = random_model(seed, n_trees=2, max_depth=3, background=seed % 3 > 0)
    evidence, others = random_evidence(model, seed, 10), random_evidence(model, seed + 1, 30)
    want = log_density(dataclasses.replace(model), evidence)
    log_density(model, others)
    for _ in range(2):
        np.testing.assert_array_equal(log_density(model, evidence), want)
    copy = pickle.loads(pickle.dumps(model))
    assert "at_atoms" not in vars(copy)
    np.testing.assert_array_equal(log_density(copy, evidence), want)


def test_log_densities_at_atoms() -> None:
    start = np.zeros(1, np.int32)
    columns = Columns(
        np.zeros(1, np.uint8), start, np.zeros(1), np.zeros(1), np.array([0, 2], np.int32), np.array([3.0, 5.0]), start
    )
    one = np.ones((3, 1))
    atoms, table = [[0.5, 0.5], [0.0, 1.0], [0.75, 0.0]], np.zeros((3, 0))
    tables = ParameterTables([0] * 3, np.log([1 / 3] * 3), 0 * one, one, one, -one, one, atoms, table, 0 * one)
    leaves = make_leaves(columns, tables)
    at_atoms, leaf = np.zeros((3, 2)), np.array([2, 1, 0], np.int32)
    for _ in range(2):  # once found, once known
        total = np.array([0.0, 0.0, -1.0])
        compiled(add_atom)(columns, leaves, 0, 1, leaf, 0, 3, at_atoms, total)
        assert total.tolist() == [-math.inf, pytest.approx(0.0, abs=1e-300), -1.0 + math.log(0.5)]
        assert (at_atoms[:, 0] == 0.0).all() and (at_atoms[:, 1] != 0.0).all()  # of the other atom nothing was asked


@given(seeds)
@settings(max_examples=30)
def test_background_weight(seed: int) -> None:
    model = random_model(seed, n_trees=2, max_depth=3, background=seed % 3 > 0)
    evidence = random_evidence(model, seed, 10)
    got = background_weight(model, evidence)
    want = [oracle.background_weight(model, evidence, i) for i in range(10)]
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    assert np.all((got >= 0.0) & (got <= 1.0) | np.isnan(got))


def test_background_answers_far_away() -> None:
    model = random_model(1, kinds=("continuous", "integer", "boolean"), n_trees=3, mixed=0.0)
    far = make_evidence([[1e300, None, None], [None, 1e15, None], [Region(((1e9, math.inf),)), None, None]])
    unconditional = background_weight(model, make_evidence([[None, None, None]]))[0]
    weight = background_weight(model, far)
    want = [oracle.background_weight(model, far, i) for i in (0,)]
    np.testing.assert_allclose(weight[:1], want, rtol=1e-9)
    assert unconditional < 0.5
    assert np.all(weight > unconditional)


def test_impossible_evidence() -> None:
    model = random_model(2, kinds=("continuous", "mixed", "categorical"))
    evidence = make_evidence([[Region(), None, None], [None, None, None], [None, 0.3, Region()]])
    post = posterior(model, evidence)
    assert post.start.tolist() == [0, 0, len(model.leaves.log_weight), len(model.leaves.log_weight)]
    assert post.log_evidence[[0, 2]].tolist() == [-math.inf, -math.inf]
    assert np.isnan(background_weight(model, evidence)).tolist() == [True, False, True]


def test_no_rows() -> None:
    model = random_model(2, kinds=("continuous", "categorical"))
    empty = make_evidence([[None, None]])
    empty = empty._replace(value=empty.value[:0], log_penalty=empty.log_penalty[:0])
    assert log_density(model, empty).shape == (0,)
    assert posterior(model, empty).start.tolist() == [0]
    assert background_weight(model, empty).shape == (0,)


@pytest.mark.parametrize("background", [True, False])
def test_imputation_weighs_the_background_on_the_way(background: bool) -> None:
    for seed in range(4):
        model = random_model(seed, n_trees=2, background=background)
        evidence = random_evidence(model, seed, 10)
        want = [oracle.background_weight(model, evidence, i) for i in range(10)]
        np.testing.assert_allclose(impute_and_weigh(model, evidence)[1], want, rtol=1e-9, atol=1e-12)
