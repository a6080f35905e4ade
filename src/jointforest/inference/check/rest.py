"""What a hidden tree expects of each cell of a row, given all other cells when each of them may be wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...models.hidden_tree.messages import down, up
from ...models.hidden_tree.posterior import in_batches
from ...models.hidden_tree.tables import TreeTables

Read = Callable[[slice, int, np.ndarray], np.ndarray]
"""What is kept of a batch of rows and a column, (b, A), of the probabilities of its codes, (b, K)."""


def ask_each(
    hidden: HiddenTrees, likelihood: Sequence[np.ndarray], item: np.ndarray, read: Read, n_jobs: int | None = -1
) -> np.ndarray:
    """``read`` of p(code of cell j | all other cells of the row), for each column, side by side.

    ``likelihood[j]`` (U_j + 1, K_j) is p(what is seen | code), up to a factor, for each value that is seen; the last
    row, of item -1, is that of missing cells. ``item`` is (n, d). One pass up and one down for all columns of a row.
    """
    by_state = [_by_state(tree, likelihood) for tree in hidden.trees]

    def work(a: int, b: int) -> np.ndarray:
        rows, d = slice(a, b), item.shape[1]
        total = np.full((b - a, d), -np.inf)
        found: list[np.ndarray | None] = [None] * d
        for tree, tables, log_weight in zip(hidden.trees, by_state, hidden.log_weight, strict=True):
            own = [None if j < 0 else tables[j][item[rows, j]] for j in tree.column.tolist()]
            upward = up(tree, own, b - a)
            downward = down(tree, upward)
            for j in range(d):
                k = tree.node[j]
                below, mine = upward.below[k], own[k]
                rest = np.broadcast_to(downward.outside[k], mine.shape) if below is None else downward.outside[k] * below
                codes = _codes(rest, tree, k)
                with np.errstate(divide="ignore", invalid="ignore"):
                    seen = (rest * mine).sum(axis=1, dtype=np.float64) / rest.sum(axis=1, dtype=np.float64)
                    log_rest = log_weight + upward.log_probability - np.log(seen)
                log_rest = np.where(np.isnan(log_rest), -np.inf, log_rest)
                found[j], total[:, j] = _mixed(found[j], total[:, j], codes, log_rest)
        return np.column_stack([read(rows, j, codes) for j, codes in enumerate(found) if codes is not None])

    return in_batches(hidden, work, len(item), n_jobs)


def _codes(rest: np.ndarray, tree: TreeTables, k: int) -> np.ndarray:
    """p(code of node k | what the other cells say of its state), (n, K)."""
    codes, picked = np.zeros((len(rest), tree.emission[k].shape[1])), tree.picked[k]
    codes[:, slice(None) if picked is None else picked] = rest @ tree.emission[k] if picked is None else rest
    return codes / np.maximum(codes.sum(axis=1, keepdims=True), 1e-300)


def _by_state(tree: TreeTables, likelihood: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """p(what is seen | state) of each value of each column, (U + 1, H), scaled to a greatest entry of 1."""
    tables = {}
    for j, k in tree.node.items():
        picked = tree.picked[k]
        table = likelihood[j] @ tree.emission[k].T if picked is None else likelihood[j][:, picked]
        top = table.max(axis=1, keepdims=True)
        tables[j] = (table / np.where(top > 0.0, top, 1.0)).astype(tree.dtype)
    return tables


def _mixed(
    before: np.ndarray | None, total: np.ndarray, codes: np.ndarray, log_weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of codes after one tree more, and the log of all weights."""
    if before is None:
        return codes, log_weight
    both = np.logaddexp(total, log_weight)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(log_weight - both))[:, None]
    return before * (1.0 - share) + codes * share, both
