"""EM against enumeration of all states: counts, a likelihood that never falls, weights, missing cells."""

import numpy as np
import pytest

from jointforest.learners.hidden_tree.em import expected_counts, improve, mean_log_probability
from jointforest.learners.hidden_tree.smoothing import Counts, Smoothing, tree_of
from jointforest.learners.hidden_tree.structure import CodeTable, code_columns
from jointforest.models.hidden_tree.tables import TreeTables
from jointforest.runtime.threads import one_by_one

from ...oracle import hidden_learning as oracle

NOTHING = Smoothing(transition=0.0, normal=0.0, marginal=0.0)


def random_tree(rng, d, n_states=3, dtype=np.float64):
    """A random tree over d columns in random order, with other numbers of states and codes each."""
    column = rng.permutation(d).astype(np.int32)
    parent = np.array([-1] + [int(rng.integers(k)) for k in range(1, d)], dtype=np.int32)
    states = rng.integers(1, n_states + 1, d)
    n_codes = rng.integers(2, 5, d)
    wide = [1 if above < 0 else int(states[above]) for above in parent]
    transition = tuple(rng.dirichlet(np.ones(h), size=w).astype(dtype) for h, w in zip(states, wide, strict=True))
    emission = tuple(rng.dirichlet(np.ones(n_codes[j]), size=h).astype(dtype)
                     for j, h in zip(column, states, strict=True))  # fmt: skip
    return TreeTables(column, parent, transition, emission), n_codes


@pytest.mark.parametrize("n", [2, 4, 12])  # fewer rows than cells, and more
@pytest.mark.parametrize("seed", range(4))
def test_expected_counts_against_enumeration(seed, n):
    rng = np.random.default_rng(seed)
    tree, n_codes = random_tree(rng, d=5 if seed else 1)
    codes = rng.integers(0, n_codes + 1, (n, len(tree)))  # some cells are missing
    weight = rng.uniform(0.2, 3.0, n)
    found, total = expected_counts(tree, codes, weight)
    pairs, cells, log_p = oracle.expected_counts(
        tree.column, tree.parent, tree.transition, tree.emission, codes.tolist(), weight.tolist()
    )
    for a, b in zip(found.transition + found.emission, pairs + cells, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert total == pytest.approx(log_p, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_likelihood_never_falls_in_full_batches_without_smoothing(seed):
    rng = np.random.default_rng(seed)
    tree, n_codes = random_tree(rng, d=5)
    codes = rng.integers(0, n_codes, (60, 5))
    codes[:, 1] = np.minimum(codes[:, 0], n_codes[1] - 1)
    codes[::7, 2] = n_codes[2]
    columns = code_columns(CodeTable(codes, n_codes, np.zeros(5, dtype=bool)))
    counts = expected_counts(tree, codes, None)[0]
    tree, counts = improve(tree, counts, codes, None, columns, NOTHING, np.ones(1), rng, one_by_one)
    before = mean_log_probability(tree, codes, None)
    first = before
    for _ in range(15):
        tree, counts = improve(tree, counts, codes, None, columns, NOTHING, np.ones(1), rng, one_by_one)
        now = mean_log_probability(tree, codes, None)
        assert now >= before - 1e-6
        before = now
    assert now > first + 0.01


def test_weights_equal_repeated_rows():
    rng = np.random.default_rng(0)
    tree, n_codes = random_tree(rng, d=4)
    codes = rng.integers(0, n_codes + 1, (10, 4))
    times = rng.integers(1, 4, 10)
    weighted, a = expected_counts(tree, codes, times.astype(float))
    repeated, b = expected_counts(tree, np.repeat(codes, times, axis=0), None)
    for x, y in zip(weighted.transition + weighted.emission, repeated.transition + repeated.emission, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-9)
    assert a == pytest.approx(b)


def test_counts_are_rows():
    rng = np.random.default_rng(1)
    tree, n_codes = random_tree(rng, d=4, dtype=np.float32)
    codes = rng.integers(0, n_codes + 1, (30, 4))
    found, _ = expected_counts(tree, codes, None)
    for k, j in enumerate(tree.column):
        assert found.transition[k].sum() == pytest.approx(30, rel=1e-5)
        assert found.emission[k].sum() == pytest.approx((codes[:, j] < n_codes[j]).sum(), rel=1e-5)


def test_tables_are_distributions_even_of_states_without_rows():
    columns = code_columns(CodeTable(np.arange(20)[:, None] % 10, np.array([10]), np.array([True])))
    counts = Counts([np.zeros((1, 3), np.float32)], [np.zeros((3, 10), np.float32)], [np.zeros(3, np.float32)])
    tree = tree_of(counts, np.zeros(1, np.int32), np.full(1, -1, np.int32), columns, Smoothing())
    np.testing.assert_allclose(tree.emission[0].sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(tree.transition[0], 1 / 3, rtol=1e-6)
