"""Can a classifier tell two tables apart? The classifier two-sample test, scored as sdmetrics' detection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..runtime.threads import map_ordered
from .columns_and_pairs import TableCells, some

N_FOLDS = 3
"""Folds of the cross-validation: each classifier learns from two thirds of the rows, and no row is judged by one that
saw it."""
FEWEST_ROWS = 10
"""Rows of either table below which there is no score."""
MOST_TEST_ROWS = 100_000
"""Rows of either table; of more so many are drawn."""
QUICK_ROWS = 6_000
"""The same of a quick test, whose score has a standard error of about .01."""


@dataclass(frozen=True)
class ToldApart:
    """How well a classifier separates rows from those of a table, on unseen rows.

    score : float. 1 - mean over folds of (2 max(AUC, 1/2) - 1): 1 if the classifier cannot tell, 0 if it always can.
    auc : tuple of float. Area under the ROC curve in each of the three folds.
    classifier : str. "XGBoost", or "HistGradientBoosting" (scikit-learn's) where that is not installed.
    columns : dict of column to float. Share of each column in what the classifier used, the largest first: XGBoost's
        gain of all splits on it, else the loss of AUC when it is shuffled.
    n_rows : int. Rows compared, of either table.
    """

    score: float
    auc: tuple[float, ...]
    classifier: str
    columns: dict[str, float]
    n_rows: int


def quick_score(real: TableCells, rows: TableCells, seed: int) -> float:
    """The score of two tables by few rows, in two folds, by scikit-learn: soon known, and the same on every machine."""
    X, y, folds = _folds(real, rows, QUICK_ROWS, 2, seed)
    auc = map_ordered(_auc, [(X, y, real.n_levels, learn, test) for learn, test in folds])
    return _score([one for one, _, _ in auc])


def told_apart(real: TableCells, rows: TableCells, seed: int, may_xgboost: bool = True) -> ToldApart:
    """Score of two tables by gradient boosting in three stratified folds; raises ValueError below 10 rows."""
    X, y, folds = _folds(real, rows, MOST_TEST_ROWS, N_FOLDS, seed)
    is_xgboost = may_xgboost and find_spec("xgboost") is not None
    work = _xgboost if is_xgboost else _hist_boosting
    scored = list(map_ordered(work, [(X, y, real.n_levels, learn, test) for learn, test in folds]))
    auc = tuple(one[0] for one in scored)
    used = np.sum([one[1] for one in scored], axis=0)
    share = used / used.sum() if used.sum() > 0 else used
    return ToldApart(
        score=_score(auc),
        auc=auc,
        classifier="XGBoost" if is_xgboost else "HistGradientBoosting",
        columns={real.names[j]: float(share[j]) for j in np.argsort(-share, kind="stable").tolist()},
        n_rows=len(X) // 2,
    )


def _folds(
    real: TableCells, rows: TableCells, most: int, n_folds: int, seed: int
) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """As many rows of both tables, which table each is of, and folds of them: rows to learn from, and the others."""
    from sklearn.model_selection import StratifiedKFold

    n = min(len(real.X), len(rows.X), most)
    if n < FEWEST_ROWS:
        raise ValueError(f"telling tables apart needs at least {FEWEST_ROWS} rows of each, got {n}")
    random = np.random.default_rng(seed)
    tables = [table.take(some(len(table.X), n, random)).X for table in (real, rows)]
    X, y = _in_float32(np.concatenate(tables)), np.repeat([0, 1], n)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=int(random.integers(2**31)))
    return X, y, list(folds.split(X, y))


def _score(auc: Sequence[float]) -> float:
    """`ToldApart.score` from the area under the curve in each fold."""
    return float(1.0 - np.mean([2.0 * max(one, 0.5) - 1.0 for one in auc]))


def _in_float32(X: np.ndarray) -> np.ndarray:
    """Cells (n, d), columns with numbers beyond the range of float32, which XGBoost computes in, as ranks."""
    size = np.abs(X)
    beyond = ((size > 1e38) | ((size < 1e-37) & (size > 0.0))).any(axis=0)
    for j in np.flatnonzero(beyond).tolist():
        known = ~np.isnan(X[:, j])
        X[known, j] = np.unique(X[known, j], return_inverse=True)[1]
    return X


def _xgboost(
    X: np.ndarray, y: np.ndarray, n_levels: np.ndarray, learn: np.ndarray, test: np.ndarray
) -> tuple[float, np.ndarray]:
    """AUC of one fold, and the gain of each column (d,); one thread: folds run beside each other."""
    import xgboost
    from sklearn.metrics import roc_auc_score

    types = np.where(n_levels > 0, "c", "q").tolist()
    settings: dict[str, Any] = {"eval_metric": "logloss", "enable_categorical": True, "random_state": 0}
    model = xgboost.XGBClassifier(feature_types=types, n_jobs=1, **settings).fit(X[learn], y[learn])
    gain: dict[str, Any] = model.get_booster().get_score(importance_type="total_gain")
    used = np.array([gain.get(f"f{j}", 0.0) for j in range(X.shape[1])], dtype=np.float64)
    return float(roc_auc_score(y[test], model.predict_proba(X[test])[:, 1])), used


def _hist_boosting(
    X: np.ndarray, y: np.ndarray, n_levels: np.ndarray, learn: np.ndarray, test: np.ndarray
) -> tuple[float, np.ndarray]:
    """AUC of one fold, and the loss of it when a column is shuffled (d,); one thread, too."""
    from sklearn.inspection import permutation_importance
    from threadpoolctl import threadpool_limits

    auc, model, X = _auc(X, y, n_levels, learn, test)
    with threadpool_limits(1, "openmp"):
        few = test[:: max(1, len(test) // 1000)]
        loss = permutation_importance(model, X[few], y[few], scoring="roc_auc", n_repeats=1, random_state=0)
    return auc, np.maximum(loss.importances_mean, 0.0)


def _auc(
    X: np.ndarray, y: np.ndarray, n_levels: np.ndarray, learn: np.ndarray, test: np.ndarray
) -> tuple[float, Any, np.ndarray]:
    """AUC of scikit-learn's boosting in one fold, the fitted classifier, and the cells as it takes them."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    X = X.copy()
    for j in np.flatnonzero(n_levels > 255).tolist():  # it takes 255 levels: the rarest become one
        _, code, count = np.unique(X[:, j], return_inverse=True, return_counts=True)
        X[:, j] = np.minimum(np.argsort(np.argsort(-count, kind="stable"), kind="stable")[code], 254)
    with threadpool_limits(1, "openmp"):
        model = HistGradientBoostingClassifier(
            learning_rate=0.3, early_stopping=False, categorical_features=n_levels > 0, random_state=0
        ).fit(X[learn], y[learn])
        return float(roc_auc_score(y[test], model.predict_proba(X[test])[:, 1])), model, X
