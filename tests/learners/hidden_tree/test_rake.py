"""Marginals of hidden trees fitted to those of the rows, beside the same on the table of all rows of codes."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.learners.hidden_tree.em import Tables, from_tree, split_tables
from jointforest.learners.hidden_tree.rake import raked
from jointforest.models.hidden_tree.hidden_trees import TreeTables
from jointforest.models.hidden_tree.messages import log_probability

N_CODES = (3, 4, 2, 3)
ROWS = np.stack(np.meshgrid(*map(np.arange, N_CODES), indexing="ij"), -1).reshape(-1, 4)


def tree_of(rng: np.random.Generator, impossible: bool) -> TreeTables:
    """A random tree, whose nodes are not in the order of the columns; the first code of column 1 may be impossible."""
    states, parent, column = (2, 3, 2, 4), (-1, 0, 0, 2), (1, 0, 3, 2)
    emission = [rng.dirichlet(np.ones(N_CODES[j]), size=h) for h, j in zip(states, column, strict=True)]
    if impossible:
        emission[0][:, 0] = 0.0
        emission[0] /= emission[0].sum(axis=1, keepdims=True)
    return TreeTables(
        np.array(column, np.int32),
        np.array(parent, np.int32),
        tuple(rng.dirichlet(np.ones(h), size=states[p] if p >= 0 else 1) for h, p in zip(states, parent, strict=True)),
        tuple(emission),
    )


def probabilities(tree: TreeTables) -> np.ndarray:
    """Of all rows of codes, an array of a dimension a column."""
    messages = [tree.by_code[k][ROWS[:, j]] for k, j in enumerate(tree.column.tolist())]
    return np.exp(log_probability(tree, messages, len(ROWS))).reshape(N_CODES)


def fitted(table: np.ndarray, target: list[np.ndarray]) -> np.ndarray:
    """Iterative proportional fitting of the whole table (Deming and Stephan 1940)."""
    for _ in range(500):
        for j, wanted in enumerate(target):
            shape = [-1 if i == j else 1 for i in range(4)]
            now = table.sum(axis=tuple(i for i in range(4) if i != j))
            table = table * np.divide(wanted, now, out=np.ones_like(now), where=now > 0).reshape(shape)
    return table


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("missing", [0.0, 20.0])
def test_marginals_are_those_of_the_rows_and_the_rest_is_that_of_iterative_proportional_fitting(seed, missing):
    rng = np.random.default_rng(seed)
    tree = tree_of(rng, impossible=seed % 2 == 1)
    nodes, tables = from_tree(tree)
    counts = Tables(tables.transition, np.zeros_like(tables.cell))
    target: list[np.ndarray] = [np.empty(0)] * 4
    for j, emission, cells in zip(tree.column.tolist(), tree.emission, split_tables(nodes, counts)[1], strict=True):
        cells[:-1] = 50.0 * rng.dirichlet(np.ones(cells[:-1].size)).reshape(cells[:-1].shape)
        cells[:-1][~emission.any(axis=0)] = 0.0
        cells[-1] = missing * rng.dirichlet(np.ones(cells.shape[1]))
        rows = cells[:-1].sum(axis=1) + cells[-1] @ emission
        target[j] = rows / rows.sum()
    found, expected = probabilities(raked(tree, nodes, counts)), fitted(probabilities(tree), target)
    for j in range(4):
        others = tuple(i for i in range(4) if i != j)
        np.testing.assert_allclose(found.sum(axis=others), target[j], atol=1e-4)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert found.sum() == pytest.approx(1.0, abs=1e-6)
