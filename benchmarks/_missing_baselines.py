"""Classifiers for rows with missing cells, to be compared with.

Imputation before a random forest, descending a forest both ways, and gradient boosting that takes missing cells.

Each method is ``method(fold) -> predict``; ``predict(frame)`` gives class probabilities (n, C) in the order of
``fold.classes``. All but gradient boosting share the fold's random forest. Surrogate splits are not among them: no
Python package implements them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

Predict = Callable[[pd.DataFrame], np.ndarray]


class Fold:
    """Rows to learn from, and what the methods share: the columns as numbers, and a random forest.

    ``codes`` gives an array (n, d): numbers standardised, levels as codes, NaN where missing; ``n_levels[j]`` is 0 for
    numbers. Levels are the categories of the column, seen here or not.
    """

    def __init__(self, frame: pd.DataFrame, y: np.ndarray, n_trees: int, seed: int) -> None:
        self.frame, self.y, self.n_trees, self.seed = frame, y, n_trees, seed
        self.classes = np.unique(y)
        self.n_levels = np.array(
            [len(c.cat.categories) if isinstance(c.dtype, pd.CategoricalDtype) else 0 for _, c in frame.items()]
        )
        raw = self._raw(frame)
        numeric = self.n_levels == 0
        std = np.nanstd(raw, axis=0)
        self._mean = np.where(numeric, np.nanmean(raw, axis=0), 0.0)
        self._std = np.where(numeric & (std > 0), std, 1.0)
        self.X = (raw - self._mean) / self._std

    def _raw(self, frame: pd.DataFrame) -> np.ndarray:
        columns = [
            c.cat.codes.astype(float).where(c.notna()) if k else c.astype(float)
            for k, (_, c) in zip(self.n_levels, frame.items(), strict=True)
        ]
        return np.column_stack(columns)

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        return (self._raw(frame) - self._mean) / self._std

    def expand(self, X: np.ndarray) -> np.ndarray:
        """One 0/1 column a level for columns of more than two levels; a missing cell is missing in all of them."""
        blocks = []
        for j, k in enumerate(self.n_levels):
            column = X[:, j : j + 1]
            blocks.append(np.where(np.isnan(column), np.nan, column == np.arange(k)) if k > 2 else column)
        return np.hstack(blocks)

    @cached_property
    def centre(self) -> np.ndarray:
        """Mean or mode of each column (d,)."""
        return np.array([centre(self.X[:, j], k) for j, k in enumerate(self.n_levels)])

    @cached_property
    def forest(self) -> RandomForestClassifier:
        """A third of the columns tried at each split, as in the paper."""
        forest = RandomForestClassifier(self.n_trees, max_features=1 / 3, random_state=self.seed)
        return forest.fit(self.expand(self.X), self.y)

    def classify(self, X: np.ndarray) -> np.ndarray:
        return self.forest.predict_proba(self.expand(X))


def centre(values: np.ndarray, n_levels: int) -> float:
    """Mean, or mode if the values are level codes, of those that are not NaN."""
    values = values[~np.isnan(values)]
    return float(np.bincount(values.astype(int), minlength=n_levels).argmax() if n_levels else values.mean())


def mean_or_mode(fold: Fold) -> Predict:
    """Each missing cell is filled by the mean or mode of its column."""

    def predict(frame: pd.DataFrame) -> np.ndarray:
        X = fold.codes(frame)
        return fold.classify(np.where(np.isnan(X), fold.centre, X))

    return predict


def nearest_neighbours(fold: Fold, k: int = 7, chunk: int = 1_000) -> Predict:
    """Each missing cell is filled by the mean or mode of the ``k`` nearest rows that have it.

    Distance: mean over the columns that both rows have of the squared difference in standard deviations, or of 0/1 for
    equal or other levels.
    """
    donors, donors_have = _coordinates(fold, fold.X)

    def distances(X: np.ndarray) -> np.ndarray:
        rows, rows_have = _coordinates(fold, X)
        wide_rows, wide_donors = _spread(fold, rows_have), _spread(fold, donors_have)
        square = rows**2 @ wide_donors.T - 2 * rows @ donors.T + wide_rows @ (donors**2).T
        both = rows_have @ donors_have.T
        return np.where(both > 0, np.maximum(square, 0) / np.maximum(both, 1), np.inf)

    def fill(X: np.ndarray) -> np.ndarray:
        filled = X.copy()
        distance = distances(X)
        for j, n_levels in enumerate(fold.n_levels):
            rows = np.flatnonzero(np.isnan(X[:, j]))
            have = np.flatnonzero(donors_have[:, j])
            at = min(k, len(have))
            near = np.argpartition(distance[np.ix_(rows, have)], at - 1, axis=1)[:, :at]
            values = fold.X[have, j][near]
            if n_levels:
                filled[rows, j] = (values[:, :, None] == np.arange(n_levels)).sum(axis=1).argmax(axis=1)
            else:
                filled[rows, j] = values.mean(axis=1)
        alone = np.isnan(X).all(axis=1)
        filled[alone] = fold.centre
        return filled

    def predict(frame: pd.DataFrame) -> np.ndarray:
        X = fold.codes(frame)
        return np.vstack([fold.classify(fill(X[at : at + chunk])) for at in range(0, len(X), chunk)])

    return predict


def _coordinates(fold: Fold, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points whose squared distance adds up the columns' (0 where missing); and which cells are there (n, d)."""
    blocks = [
        (X[:, j : j + 1] == np.arange(k)) / np.sqrt(2) if k else np.nan_to_num(X[:, j : j + 1])
        for j, k in enumerate(fold.n_levels)
    ]
    return np.hstack(blocks), (~np.isnan(X)).astype(float)


def _spread(fold: Fold, have: np.ndarray) -> np.ndarray:
    """Cells (n, d) repeated to the width of the coordinates."""
    return np.repeat(have, np.maximum(fold.n_levels, 1), axis=1)


def miss_forest(fold: Fold, n_trees: int = 30, max_rounds: int = 10) -> Predict:
    """MissForest (Stekhoven and Bühlmann 2012), learned on the training rows alone, as in the paper.

    One forest a column predicts it from the others; missing cells start at mean or mode and are predicted anew until
    the change grows. Smaller forests than the original's 100 trees, leaves of at least 3 rows, and a third of the
    columns at each split, to be affordable. Training cells that are missing stay at mean or mode as predictors.
    """
    whole = np.where(np.isnan(fold.X), fold.centre, fold.X)
    settings = dict(n_estimators=n_trees, max_features=1 / 3, min_samples_leaf=3, random_state=fold.seed)
    models = []
    for j, n_levels in enumerate(fold.n_levels):
        rows = ~np.isnan(fold.X[:, j])
        model = RandomForestClassifier(**settings) if n_levels else RandomForestRegressor(**settings)
        models.append(model.fit(np.delete(fold.expand(whole), _block(fold, j), axis=1)[rows], fold.X[rows, j]))

    def fill(X: np.ndarray) -> np.ndarray:
        missing = np.isnan(X)
        filled, last = np.where(missing, fold.centre, X), np.full(2, np.inf)
        for _ in range(max_rounds):
            before = filled.copy()
            for j in np.argsort(missing.sum(axis=0), kind="stable"):
                rows = missing[:, j]
                if rows.any():
                    others = np.delete(fold.expand(filled[rows]), _block(fold, j), axis=1)
                    filled[rows, j] = models[j].predict(others)
            categorical = fold.n_levels > 0
            change = np.array(
                [
                    np.sum((filled - before)[:, ~categorical] ** 2),
                    np.sum((filled != before)[:, categorical]),
                ]
            )
            if not np.any(change < last):
                return before
            last = change
        return filled

    def predict(frame: pd.DataFrame) -> np.ndarray:
        return fold.classify(fill(fold.codes(frame)))

    return predict


def _block(fold: Fold, j: int) -> np.ndarray:
    """Numbers of the expanded columns of column j."""
    widths = np.where(fold.n_levels > 2, fold.n_levels, 1)
    start = widths[:j].sum()
    return np.arange(start, start + widths[j])


def friedman(fold: Fold) -> Predict:
    """Friedman (1977), as published: the classes of all training rows in all leaves that the known cells allow."""
    return _both_ways(fold, pooled=True)


def shares(fold: Fold) -> Predict:
    """C4.5 (Quinlan 1993): where the split's cell is missing, go both ways, weighted by the shares of training rows."""
    return _both_ways(fold, pooled=False)


def _both_ways(fold: Fold, pooled: bool) -> Predict:
    def predict(frame: pd.DataFrame) -> np.ndarray:
        # scikit-learn compares single precision values with its thresholds
        X = fold.expand(fold.codes(frame)).astype(np.float32)
        return np.mean([_descend(tree.tree_, X, pooled) for tree in fold.forest.estimators_], axis=0)

    return predict


def _descend(tree: Any, X: np.ndarray, pooled: bool) -> np.ndarray:
    """Class probabilities (n, C) of one scikit-learn tree."""
    left, right, n_rows = tree.children_left, tree.children_right, tree.weighted_n_node_samples
    votes = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True)
    if pooled:
        votes = votes * n_rows[:, None]
    result = np.zeros((len(X), votes.shape[1]))
    stack = [(0, np.arange(len(X)), np.ones(len(X)))]
    while stack:
        node, rows, weight = stack.pop()
        if left[node] < 0:
            result[rows] += weight[:, None] * votes[node]
            continue
        x = X[rows, tree.feature[node]]
        missing, below = np.isnan(x), x <= tree.threshold[node]
        for child, here in ((left[node], below), (right[node], ~below)):
            part = np.where(missing, 1.0 if pooled else n_rows[child] / n_rows[node], here)
            go = part > 0
            if go.any():
                stack.append((child, rows[go], (weight * part)[go]))
    return result / result.sum(axis=1, keepdims=True)


def gradient_boosting(fold: Fold) -> Predict:
    """Histogram gradient boosting as it is: cells missing in no row learned from go where more rows went."""
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=fold.seed)
    return model.fit(fold.frame, fold.y).predict_proba


BASELINES: dict[str, Callable[[Fold], Predict]] = {
    "mean": mean_or_mode,
    "knn": nearest_neighbours,
    "missforest": miss_forest,
    "friedman": friedman,
    "shares": shares,
    "boosting": gradient_boosting,
}
