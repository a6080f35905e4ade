"""Iterative proportional fitting: the marginals of a hidden tree's codes become those of the rows."""

# Every code c of a column j is multiplied by a number r_j(c) (Deming and Stephan 1940). That is exact: the product of
# the joint with functions of single columns is a hidden tree of the same structure.

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...models.hidden_tree.hidden_trees import TreeTables
from ...runtime.threads import of_finite
from .constants import FIXED
from .em import Nodes, Tables, split_tables
from .structure import CodeTable


def raked(tree: TreeTables, nodes: Nodes, counts: Tables, table: CodeTable | None = None) -> TreeTables:
    """The tree, which has a column at each node, with the marginals of expected counts of the rows."""
    # A missing cell counts for the codes that its states give. Codes that lie in the same ranges of the ``table`` share
    # what they have in all as its imputed values do: no row tells them apart.
    target = []
    for j, emission, cells in zip(tree.column.tolist(), tree.emission, split_tables(nodes, counts)[1], strict=True):
        rows = cells[:-1].sum(axis=1, dtype=np.float64) + cells[-1].astype(np.float64) @ emission
        if table is not None and table.covers and len(cover := table.covers[j]):
            imputed = np.bincount(table.codes[:, j], table.weight, len(rows) + 1)[:-1]
            alike = np.unique(cover.round(6), axis=1, return_inverse=True)[1].reshape(-1)
            of_rows, of_imputed = (np.bincount(alike, of)[alike] for of in (rows, imputed))
            spread = imputed * of_rows / np.maximum(of_imputed, 1e-300)
            rows = np.where(cover.any(axis=0) & (of_imputed > 0.0), spread, rows)
        share = np.where(emission.any(axis=0), np.maximum(rows / rows.sum(), FIXED.least_share), 0.0)
        target.append(share / share.sum())
    of_codes, of_states = _factors(tree, target)
    return replace(
        tree,
        transition=tuple(_shares(table * x, tree.dtype) for table, x in zip(tree.transition, of_states, strict=True)),
        emission=tuple(_shares(table * x, tree.dtype) for table, x in zip(tree.emission, of_codes, strict=True)),
    )


@of_finite
def _factors(tree: TreeTables, target: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Factors of the codes of each node's column, and what these at and below a node say of its states."""
    # Nodes are fitted depth first, each with those fitted before: only messages of neighbours have to be renewed.
    transition, emission = ([of.astype(np.float64) for of in tables] for tables in (tree.transition, tree.emission))
    factor, inside = ([np.ones(of.shape[1]) for of in tables] for tables in (emission, transition))
    message, outside = [np.ones(len(table)) for table in transition], list(inside)
    walk = _walk(tree.children)
    for _ in range(FIXED.sweeps):
        worst = 0.0
        for k, is_back in walk:
            above = tree.parent[k]
            if is_back:
                before, message[k] = message[k], transition[k] @ inside[k]
                if k:
                    inside[above] = inside[above] * message[k] / before
                continue
            others = outside[above] * inside[above] / message[k] if k else np.ones(1)
            outside[k] = others @ transition[k]
            below = inside[k] / (emission[k] @ factor[k])
            now = factor[k] * ((outside[k] * below) @ emission[k])
            now /= now.sum()
            worst = max(worst, np.abs(now - target[k]).max())
            factor[k] *= np.divide(target[k], now, out=np.ones(len(now)), where=now > 0.0)
            inside[k] = below * (emission[k] @ factor[k])
        if worst < FIXED.raked:
            break
    return factor, inside


def _shares(table: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The table with rows that sum to 1."""
    return (table / table.sum(axis=1, keepdims=True)).astype(dtype)


def with_marginal(table: np.ndarray, share: np.ndarray, marginal: np.ndarray) -> np.ndarray:
    """Shares of the columns in each row, (K, H), of the table nearest to ``table`` in Kullback-Leibler divergence."""
    # Its rows have the shares ``share`` (K,) and its columns the shares ``marginal`` (H,). Odds ratios stay.
    of_column = np.ones(table.shape[1])
    for _ in range(FIXED.most_turns):
        of_row = share / np.maximum(table @ of_column, 1e-300)
        total = of_row @ table
        error = np.abs(of_column * total - marginal).max()
        of_column = marginal / np.maximum(total, 1e-300)
        if error < FIXED.raked:
            break
    fitted = table * of_column
    return np.asarray(fitted / np.maximum(fitted.sum(axis=1, keepdims=True), 1e-300))


def _walk(children: list[list[int]]) -> list[tuple[int, bool]]:
    """Nodes depth first from the root, each on the way down (False) and on the way back (True)."""
    steps, waiting = [], [(0, False)]
    while waiting:
        k, is_back = waiting.pop()
        steps.append((k, is_back))
        if not is_back:
            waiting.append((k, True))
            waiting += [(child, False) for child in children[k]]
    return steps
