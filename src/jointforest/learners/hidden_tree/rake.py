"""Iterative proportional fitting: the marginals of a hidden tree's codes become those of the rows.

Every code c of a column j is multiplied by a number r_j(c) (Deming and Stephan 1940). That is exact: the product of the
joint with functions of single columns is a hidden tree of the same structure.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...models.hidden_tree.tables import TreeTables
from . import rake_kernels
from .constants import FIXED
from .em import Nodes, Tables, from_tree, split_tables


def raked(tree: TreeTables, nodes: Nodes, counts: Tables) -> TreeTables:
    """The tree, which has a column at each node, with the marginals of expected counts of the rows.

    A missing cell counts for the codes that its states give.
    """
    target = []
    for emission, cells in zip(tree.emission, split_tables(nodes, counts)[1], strict=True):
        rows = cells[:-1].sum(axis=1, dtype=np.float64) + cells[-1].astype(np.float64) @ emission
        share = np.where(emission.any(axis=0), np.maximum(rows / rows.sum(), FIXED.least_share), 0.0)
        target.append(share / share.sum())
    first = np.cumsum([0, *map(len, target)])
    factor, here = np.ones(first[-1]), np.ones(nodes.first_state[-1])
    rake_kernels.fit_factors(
        nodes, from_tree(tree)[1], np.concatenate(target), first, *_walk(tree.children), FIXED.sweeps, FIXED.raked,
        factor, here,
    )  # fmt: skip
    of_states = zip(tree.transition, np.split(here, nodes.first_state[1:-1]), strict=True)
    of_codes = zip(tree.emission, np.split(factor, first[1:-1]), strict=True)
    return replace(
        tree,
        transition=tuple(_shares(table * factors, tree.dtype) for table, factors in of_states),
        emission=tuple(_shares(table * factors, tree.dtype) for table, factors in of_codes),
    )


def _shares(table: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The table with rows that sum to 1."""
    return (table / table.sum(axis=1, keepdims=True)).astype(dtype)


def with_marginal(table: np.ndarray, share: np.ndarray, marginal: np.ndarray) -> np.ndarray:
    """Shares of the columns in each row, (K, H), of the table nearest to ``table`` in Kullback-Leibler divergence.

    Its rows have the shares ``share`` (K,) and its columns the shares ``marginal`` (H,). Odds ratios stay.
    """
    of_column = np.ones(table.shape[1])
    for _ in range(FIXED.rakings_by_turns):
        of_row = share / np.maximum(table @ of_column, 1e-300)
        of_column = marginal / np.maximum(of_row @ table, 1e-300)
    fitted = table * of_column
    return np.asarray(fitted / np.maximum(fitted.sum(axis=1, keepdims=True), 1e-300))


def _walk(children: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Nodes depth first from the root, each on the way down (False) and on the way back (True), (2m,) both."""
    steps, waiting = [], [(0, False)]
    while waiting:
        k, is_back = waiting.pop()
        steps.append((k, is_back))
        if not is_back:
            waiting.append((k, True))
            waiting += [(child, False) for child in children[k]]
    nodes, is_back_of = zip(*steps, strict=True)
    return np.array(nodes), np.array(is_back_of)
