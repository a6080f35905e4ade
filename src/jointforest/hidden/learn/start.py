"""First states of the rows: the leaves of decision trees grown on all columns, or on a column and its nearest."""

from __future__ import annotations

import numpy as np

from .columns import CodeColumn

_LEVELS = 24  # most indicators of one column
_RARE = 0.002  # a level that fewer rows have gets no indicator
_WIDTH = 2_048  # most indicators of all columns together
_SIGHT = 96  # most features that a decision tree looks at, and most sums of them that it is to explain
_NEAREST = 4  # columns of a local tree


def start_states(
    codes: np.ndarray,
    columns: tuple[CodeColumn, ...],
    information: np.ndarray,
    order: np.ndarray,
    parent: np.ndarray,
    kind: str,
    n_states: int,
    seed: int,
    weight: np.ndarray | None,
) -> np.ndarray:
    """State of each row in each column, (n, d); ``kind`` is "shared" (one tree) or "local" (one a column)."""
    seen = features(codes, columns)
    if kind == "shared":
        leaf = _leaves(np.hstack(seen), n_states, seed, weight)
        return np.repeat(leaf[:, None], len(seen), axis=1)
    near = nearest(information, order, parent)
    found = [_leaves(np.hstack([seen[i] for i in near[j]]), n_states, seed + j, weight) for j in range(len(seen))]
    return np.column_stack(found)


def nearest(information: np.ndarray, order: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Each column, its parent in the tree, and those of most mutual information: four in all, (d, <= 4)."""
    closeness = information.copy()
    np.fill_diagonal(closeness, np.inf)
    for k, above in enumerate(parent.tolist()):
        if above >= 0:
            closeness[order[k], order[above]] = 1e300
    return np.argsort(-closeness, axis=1, kind="stable")[:, :_NEAREST]


def features(codes: np.ndarray, columns: tuple[CodeColumn, ...]) -> list[np.ndarray]:
    """What decision trees see of each column: normal scores, or an indicator a level, all of unit variance.

    Missing cells are at the mean.

    Returns
    -------
    list of d float32 arrays (n, f_j)
    """
    levels = int(np.clip(_WIDTH // max(len(columns), 1), 1, _LEVELS))
    return [_features(codes[:, j], column, levels) for j, column in enumerate(columns)]


def _features(code: np.ndarray, column: CodeColumn, levels: int) -> np.ndarray:
    K = column.n_codes
    if column.is_ordered:
        table = column.score[:, None]
    else:
        common = np.argsort(-column.marginal, kind="stable")[:levels]
        common = common[column.marginal[common] >= _RARE]
        if len(common) == 2 and K == 2:
            common = common[:1]
        table = np.zeros((K, len(common)))
        table[common, np.arange(len(common))] = 1.0
    mean = column.marginal @ table
    spread = np.sqrt(column.marginal @ (table - mean) ** 2)
    table = (table - mean) / np.where(spread > 0, spread, 1.0)
    return np.vstack([table, np.zeros(table.shape[1])]).astype(np.float32)[code]


def _leaves(X: np.ndarray, n_states: int, seed: int, weight: np.ndarray | None) -> np.ndarray:
    """Number of each row's leaf in a variance tree of at most ``n_states`` leaves, best first, (n,)."""
    from sklearn.tree import DecisionTreeRegressor

    if n_states < 2 or X.shape[1] == 0 or len(X) < 4:
        return np.zeros(len(X), dtype=np.int64)
    y, wide = X, X.shape[1] > _SIGHT
    if wide:  # random sums keep the distances of rows, nearly
        rng = np.random.default_rng(seed)
        y = X @ rng.standard_normal((X.shape[1], _SIGHT), dtype=np.float32)
    tree = DecisionTreeRegressor(max_leaf_nodes=n_states, min_samples_leaf=2, random_state=seed % 2**31,
                                 max_features=_SIGHT if wide else None)  # fmt: skip
    tree.fit(X, y, sample_weight=weight)
    return np.unique(tree.apply(X), return_inverse=True)[1]
