"""What answers are mixed from: leaves."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from scipy.special import logsumexp

from jointforest.models.box_forest.box_forest import BoxForest

from ... import oracle
from ...random_cases.evidence import random_evidence
from ...random_cases.models import random_model, seeds


@given(seeds)
@settings(max_examples=30)
def test_parts_mix_to_the_answer(seed: int) -> None:
    forest = random_model(seed, n_trees=2, max_depth=2)
    evidence = random_evidence(forest, seed, 3)
    for i in range(3):
        state = BoxForest(forest).observe(evidence.take(np.array([i])))
        if np.isnan(state.background_weight()[0]):
            continue
        for j, column in enumerate(forest.schema.columns):
            parts = state.parts(j)
            assert np.isclose(parts.weight.sum(), 1.0) and np.isclose(parts.prior.sum(), 1.0)
            mean = parts.weight @ parts.mean
            total = parts.weight @ (parts.variance + (parts.mean - mean) ** 2)
            if column.is_categorical:
                np.testing.assert_allclose(mean, state.level_probabilities(j)[0], atol=1e-12)
                np.testing.assert_allclose(total, mean * (1.0 - mean), atol=1e-12)
            else:
                np.testing.assert_allclose([mean[0], total[0]], np.ravel(state.moments(j)), rtol=1e-7, atol=1e-9)


@given(seeds)
@settings(max_examples=20)
def test_parts_are_the_leaves(seed: int) -> None:
    forest = random_model(seed, n_trees=2, max_depth=3)
    evidence = random_evidence(forest, seed, 2)
    for i in range(2):
        joint = oracle.log_joint(forest, evidence, i)
        if joint.max() == -np.inf:
            continue
        parts = BoxForest(forest).observe(evidence.take(np.array([i]))).parts(0)
        np.testing.assert_allclose(parts.weight, np.exp(joint - logsumexp(joint)), atol=1e-12)
        np.testing.assert_allclose(parts.prior, np.exp(forest.leaves.log_weight), atol=1e-12)
