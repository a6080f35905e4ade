"""What answers are mixed from: leaves, and the distributions of one column in a circuit."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from scipy.special import logsumexp

from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.box_forest.parts import part_of_rows
from jointforest.models.box_forest.structure import Forest

from ... import oracle
from ...oracle.density import FACTORS, children, circuit_root
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
def test_parts_of_leaves_without_circuits_are_the_leaves(seed: int) -> None:
    forest = random_model(seed, n_trees=2, max_depth=3, mixed=0.0)
    evidence = random_evidence(forest, seed, 2)
    for i in range(2):
        joint = oracle.log_joint(forest, evidence, i)
        if joint.max() == -np.inf:
            continue
        parts = BoxForest(forest).observe(evidence.take(np.array([i]))).parts(0)
        np.testing.assert_allclose(parts.weight, np.exp(joint - logsumexp(joint)), atol=1e-12)
        np.testing.assert_allclose(parts.prior, np.exp(forest.leaves.log_weight), atol=1e-12)


@given(seeds)
@settings(max_examples=20)
def test_mixtures_over_one_column_are_one_part(seed: int) -> None:
    forest = random_model(seed, n_trees=2, max_depth=2, mixed=0.7)
    for j in range(len(forest.schema.columns)):
        roots = [circuit_root(forest, leaf) for leaf in range(len(forest.leaves.log_weight))]
        nodes = [q for q, kind in enumerate(forest.leaves.node_kind) if kind == FACTORS and j in _scope(forest, q)]
        rows = [leaf for leaf, root in enumerate(roots) if root is None] + forest.leaves.node_row[nodes].tolist()
        expected = sum(_n_parts(forest, root, j) for root in roots)
        assert len(set(part_of_rows(forest.leaves, j)[rows].tolist())) == expected


def _n_parts(forest: Forest, node: Any, j: int) -> int:
    """Parts of column j in a circuit: nodes that hold it alone, and FACTORS nodes that hold others, too."""
    if node is None:
        return 1
    columns = _scope(forest, node)
    if j not in columns:
        return 0
    if columns == {j} or forest.leaves.node_kind[node] == FACTORS:
        return 1
    return sum(_n_parts(forest, child, j) for child in children(forest, node))


def _scope(forest: Forest, node: int) -> set[int]:
    if forest.leaves.node_kind[node] == FACTORS:
        return set(np.flatnonzero(forest.leaves.scope[forest.leaves.node_scope[node]]).tolist())
    return set().union(*(_scope(forest, child) for child in children(forest, node)))
