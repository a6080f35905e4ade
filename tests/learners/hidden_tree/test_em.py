"""EM against enumeration of all states: counts, a likelihood that never falls, weights, missing cells."""

import numpy as np
import pytest

from jointforest.learners.hidden_tree.em import (
    Maximisation,
    Smoothing,
    Tables,
    expected_counts,
    from_tree,
    log_probabilities,
    nodes_of,
    split_tables,
    to_tree,
)
from jointforest.learners.hidden_tree.structure import CodeTable, code_columns
from jointforest.models.hidden_tree.hidden_trees import TreeTables
from jointforest.runtime.threads import one_blas_thread, use_jobs, workers

from ...oracle import hidden_learning as oracle

NOTHING = Smoothing(transition=0.0, normal=0.0, marginal=0.0)


def random_tree(rng, d, n_states=3, dtype=np.float32):
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


def counted(tree, codes, weight=None):
    """Views of the expected counts of pairs of states, and of cells and states; and log-probabilities of the rows."""
    nodes, tables = from_tree(tree)
    weight = np.ones(len(codes), np.float32) if weight is None else weight.astype(np.float32)
    by_column = np.ascontiguousarray(codes.T, dtype=np.int32)
    counts = expected_counts(nodes, tables, by_column, np.arange(len(codes)), weight)
    return *split_tables(nodes, counts), log_probabilities(nodes, tables, by_column)


@pytest.mark.parametrize("n", [2, 4, 12])  # fewer rows than cells, and more
@pytest.mark.parametrize("seed", range(4))
def test_expected_counts_against_enumeration(seed, n):
    rng = np.random.default_rng(seed)
    tree, n_codes = random_tree(rng, d=5 if seed else 1)
    codes = rng.integers(0, n_codes + 1, (n, len(tree)))  # some cells are missing
    weight = rng.uniform(0.2, 3.0, n)
    found_pairs, found_cells, log_p = counted(tree, codes, weight)
    pairs, cells, total = oracle.expected_counts(
        tree.column, tree.parent, tree.transition, tree.emission, codes.tolist(), weight.tolist()
    )
    for a, b in zip(found_pairs + [cell[:-1].T for cell in found_cells], pairs + cells, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    assert log_p @ weight == pytest.approx(total, abs=1e-5)
    for j, cell in zip(tree.column, found_cells, strict=True):
        assert cell[-1].sum() == pytest.approx(weight[codes[:, j] == n_codes[j]].sum(), abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_missing_cells_are_summed_out(seed):
    """The probability of a row with a missing cell is the sum over what the cell may be."""
    rng = np.random.default_rng(seed)
    tree, n_codes = random_tree(rng, d=4)
    row = rng.integers(0, n_codes, (1, 4)).repeat(n_codes[0] + 1, axis=0)
    row[:, 0] = np.arange(n_codes[0] + 1)
    log_p = counted(tree, row)[2]
    assert log_p[-1] == pytest.approx(np.logaddexp.reduce(log_p[:-1]), abs=1e-5)


def test_the_counts_of_many_rows_are_the_sum_of_those_of_few():
    rng = np.random.default_rng(3)
    tree, n_codes = random_tree(rng, d=6, n_states=70)
    codes = rng.integers(0, n_codes + 1, (3_000, 6))
    pairs, cells, log_p = counted(tree, codes)
    parts = [counted(tree, part) for part in np.array_split(codes, 7)]
    for k in range(6):
        np.testing.assert_allclose(pairs[k], sum(part[0][k] for part in parts), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(cells[k], sum(part[1][k] for part in parts), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(log_p, np.concatenate([part[2] for part in parts]), atol=1e-4)


def test_evidence_that_no_state_has_is_improbable_but_finite():
    transition = (np.array([[0.5, 0.5]], np.float32), np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))
    emission = (np.full((2, 2), 0.5, np.float32), np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))
    tree = TreeTables(np.arange(3, dtype=np.int32), np.array([-1, 0, 1], np.int32), transition, emission)
    pairs, cells, log_p = counted(tree, np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0]]))
    assert all(np.isfinite(table).all() for table in pairs + cells)
    assert log_p[0] < -15.0
    np.testing.assert_allclose(log_p[1:], np.log(0.25), rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_likelihood_never_falls_in_full_batches_without_smoothing(seed):
    rng = np.random.default_rng(seed)
    tree, n_codes = random_tree(rng, d=5)
    codes = rng.integers(0, n_codes, (60, 5))
    codes[:, 1] = np.minimum(codes[:, 0], n_codes[1] - 1)
    codes[::7, 2] = n_codes[2]
    columns = code_columns(CodeTable(codes, n_codes, np.zeros(5, dtype=bool)))
    nodes, tables = from_tree(tree)
    rows, weight = np.ascontiguousarray(codes.T, dtype=np.int32), np.ones(60, np.float32)
    step = Maximisation(nodes, columns, NOTHING)
    seen = []
    for _ in range(17):
        tables = step.tables(expected_counts(nodes, tables, rows, np.arange(60), weight), NOTHING)
        seen.append(log_probabilities(nodes, tables, rows).mean())
    assert (np.diff(seen) >= -1e-5).all()
    assert seen[-1] > seen[0] + 0.01


def test_weights_equal_repeated_rows():
    rng = np.random.default_rng(0)
    tree, n_codes = random_tree(rng, d=4)
    codes = rng.integers(0, n_codes + 1, (10, 4))
    times = rng.integers(1, 4, 10)
    weighted = counted(tree, codes, times)
    repeated = counted(tree, np.repeat(codes, times, axis=0))
    for x, y in zip(weighted[0] + weighted[1], repeated[0] + repeated[1], strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
    np.testing.assert_allclose(np.repeat(weighted[2], times), repeated[2], atol=1e-6)


def test_counts_are_rows():
    rng = np.random.default_rng(1)
    tree, n_codes = random_tree(rng, d=4)
    codes = rng.integers(0, n_codes + 1, (30, 4))
    pairs, cells, _ = counted(tree, codes)
    for k, j in enumerate(tree.column):
        assert pairs[k].sum() == pytest.approx(30, rel=1e-5)
        assert cells[k][:-1].sum() == pytest.approx((codes[:, j] < n_codes[j]).sum(), rel=1e-5)


def test_tables_do_not_depend_on_threads():
    rng = np.random.default_rng(2)
    tree, n_codes = random_tree(rng, d=6, n_states=120)
    codes = np.ascontiguousarray(rng.integers(0, n_codes + 1, (2_500, 6)).T, dtype=np.int32)
    nodes, tables = from_tree(tree)
    found = []
    for jobs in (1, 2):
        with one_blas_thread(in_kernels=True), use_jobs(jobs), workers() as run:
            weight = np.ones(2_500, np.float32)
            found.append(expected_counts(nodes, tables, codes, np.arange(2_500), weight, run))
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)


def test_flat_tables_and_back():
    rng = np.random.default_rng(4)
    tree, n_codes = random_tree(rng, d=5)
    nodes, tables = from_tree(tree)
    columns = code_columns(CodeTable(rng.integers(0, n_codes, (30, 5)), n_codes, np.zeros(5, bool)))
    again = to_tree(nodes, tables, columns)
    assert np.array_equal(again.column, tree.column) and np.array_equal(again.parent, tree.parent)
    for x, y in zip(again.transition + again.emission, tree.transition + tree.emission, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


def test_tables_are_distributions_even_of_states_without_rows():
    columns = code_columns(CodeTable(np.arange(20)[:, None] % 10, np.array([10]), np.array([True])))
    nodes = nodes_of(np.zeros(1, np.int32), np.full(1, -1, np.int32), np.array([3]), np.array([10]))
    counts = Tables(np.zeros(3, np.float32), np.zeros(33, np.float32))
    step = Maximisation(nodes, columns, Smoothing())
    step.fit_normals(counts, Smoothing())
    tree = to_tree(nodes, step.tables(counts, Smoothing()), columns)
    np.testing.assert_allclose(tree.emission[0].sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(tree.transition[0], 1 / 3, rtol=1e-6)
