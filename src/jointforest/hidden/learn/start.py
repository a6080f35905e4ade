"""First states of the rows: the leaves of decision trees grown on all columns, or on a column and its nearest."""

from __future__ import annotations

import numpy as np

from .columns import CodeColumn

_LEVELS = 24  # most indicators of one column
_RARE = 0.002  # a level that fewer rows have gets no indicator


def features(codes: np.ndarray, columns: tuple[CodeColumn, ...]) -> list[np.ndarray]:
    """What decision trees see of each column: normal scores, or an indicator a level, all of unit variance.

    Missing cells are at the mean.

    Returns
    -------
    list of d float32 arrays (n, f_j)
    """
    return [_features(codes[:, j], column) for j, column in enumerate(columns)]


def _features(code: np.ndarray, column: CodeColumn) -> np.ndarray:
    K = column.n_codes
    if column.is_ordered:
        table = column.score[:, None]
    else:
        common = np.argsort(-column.marginal, kind="stable")[:_LEVELS]
        common = common[column.marginal[common] >= _RARE]
        if len(common) == 2 and K == 2:
            common = common[:1]
        table = np.zeros((K, len(common)))
        table[common, np.arange(len(common))] = 1.0
    mean = column.marginal @ table
    spread = np.sqrt(column.marginal @ (table - mean) ** 2)
    table = (table - mean) / np.where(spread > 0, spread, 1.0)
    return np.vstack([table, np.zeros(table.shape[1])]).astype(np.float32)[code]


def shared_states(seen: list[np.ndarray], n_states: int, seed: int, weight: np.ndarray | None) -> np.ndarray:
    """State of each row, the same in every column: the leaf of one tree over all columns, (n, d)."""
    leaf = _leaves(np.hstack(seen), n_states, seed, weight)
    return np.repeat(leaf[:, None], len(seen), axis=1)


def local_states(
    seen: list[np.ndarray], near: np.ndarray, n_states: int, seed: int, weight: np.ndarray | None
) -> np.ndarray:
    """State of each row in each column: the leaf of a tree over the column and those in ``near[j]``, (n, d)."""
    found = [_leaves(np.hstack([seen[i] for i in near[j]]), n_states, seed + j, weight) for j in range(len(seen))]
    return np.column_stack(found)


def _leaves(X: np.ndarray, n_states: int, seed: int, weight: np.ndarray | None) -> np.ndarray:
    """Number of each row's leaf in a variance tree of at most ``n_states`` leaves, best first, (n,)."""
    from sklearn.tree import DecisionTreeRegressor

    if n_states < 2 or X.shape[1] == 0 or len(X) < 4:
        return np.zeros(len(X), dtype=np.int64)
    tree = DecisionTreeRegressor(max_leaf_nodes=n_states, min_samples_leaf=2, random_state=seed % 2**31)
    tree.fit(X, X, sample_weight=weight)
    return np.unique(tree.apply(X), return_inverse=True)[1]
