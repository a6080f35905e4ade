"""An additive model as a member: the score of each class, or a number, is a sum of functions of single columns.

    F_k(x) = base_k + sum_j f_jk(x_j)        p(k | x) ~ exp(F_k(x))

f_jk is piecewise linear in a number, with knots at its quantiles; of levels it is a table. The coefficients have the
least penalised log-loss, or squared error (Hastie, Tibshirani, "Generalized Additive Models", 1990).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from ...runtime.threads import one_blas_thread
from .boosting import BoostingTable, Labelled, LabelledPair
from .constants import FIXED


class Additive(NamedTuple):
    """An additive model of d columns with A outputs.

    base : float64 array (A,). The outputs where each column has its mean effect; a class has one output each.
    start : int64 array (d + 1,). Where the points of each column begin, and where the last ones end.
    point : float64 array (P,). Knots of each number, which do not fall; all codes of each column of levels.
    effect : float64 array (P, A). f at each point. A missing cell has no effect.
    """

    base: np.ndarray
    start: np.ndarray
    point: np.ndarray
    effect: np.ndarray

    def total(self, X: np.ndarray, is_level: np.ndarray) -> np.ndarray:
        """F (n, A) of rows (n, d) of numbers and codes."""
        out = np.tile(self.base, (len(X), 1))
        for j, (first, stop) in enumerate(zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True)):
            out += _effects_at(self.point[first:stop], self.effect[first:stop], X[:, j], bool(is_level[j]))
        return out

    def answer(self, X: np.ndarray, is_level: np.ndarray) -> np.ndarray:
        """Probabilities of the classes (n, A), or numbers (n, 1)."""
        total = self.total(X, is_level)
        if total.shape[1] < 2:
            return total
        odds = np.exp(total - total.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def expected(self, X: np.ndarray, is_level: np.ndarray, completed: np.ndarray) -> np.ndarray:
        """Mean answers (n, A) over draws ``completed`` (n, m, d); a cell that is missing in a draw has no effect."""
        answer, holed = self.answer(X, is_level), np.flatnonzero(np.isnan(X).any(axis=1))
        if len(holed):
            n, m, _ = completed[holed].shape
            drawn = completed[holed, :, : X.shape[1]].reshape(n * m, -1)
            filled = np.where(np.isnan(drawn), np.repeat(X[holed], m, axis=0), drawn)
            answer[holed] = self.answer(filled, is_level).reshape(n, m, -1).mean(axis=1)
        return answer


def _effects_at(point: np.ndarray, effect: np.ndarray, x: np.ndarray, is_level: bool) -> np.ndarray:
    """The effects (n, A) of cells (n,), between points (m,) with these effects (m, A); 0 of missing cells."""
    known = ~np.isnan(x)
    if is_level:
        return np.where(known[:, None], effect[np.where(known, x, 0.0).astype(np.int64)], 0.0)
    if len(point) < 2:
        return np.where(known[:, None], effect[0], 0.0)
    cell = np.clip(np.where(known, x, point[0]), point[0], point[-1])
    right = np.clip(np.searchsorted(point, cell, side="right"), 1, len(point) - 1)
    low, high = point[right - 1], point[right]
    part = np.divide(cell - low, high - low, out=np.zeros(len(x)), where=high > low)[:, None]
    return np.where(known[:, None], (1.0 - part) * effect[right - 1] + part * effect[right], 0.0)


# ---- Learning.


class AdditiveLearner(NamedTuple):
    """Learns additive models, whose penalty is chosen by validation rows.

    n_classes : int. 0 if the target is a number.
    """

    table: BoostingTable
    n_classes: int
    seed: int

    def cross_fit(self, pairs: list[LabelledPair]) -> tuple[list[Additive], float | None]:
        """Models of each fold, and the penalty with the least validation loss of the first ones; None without folds."""
        if not pairs:
            return [], None
        trials = [self._fit(rows, FIXED.penalties) for rows, _ in pairs[: FIXED.shape_folds]]
        losses = [
            [_sum_of_losses(model.answer(held.X, self.table.is_level), held.y, self.n_classes) for model in models]
            for models, (_, held) in zip(trials, pairs, strict=False)
        ]
        best = int(np.sum(losses, axis=0).argmin())
        penalty = FIXED.penalties[best]
        rest = [self.learn(rows, penalty) for rows, _ in pairs[FIXED.shape_folds :]]
        return [models[best] for models in trials] + rest, penalty

    def learn(self, rows: Labelled, penalty: float | None) -> Additive:
        """The model of all rows, or of as many as it needs; None: without folds that choose the penalty."""
        return self._fit(rows, (FIXED.usual_penalty if penalty is None else penalty,))[0]

    def _fit(self, rows: Labelled, penalties: tuple[float, ...]) -> list[Additive]:
        """Models with these penalties, the largest first."""
        order = np.random.default_rng(self.seed).permutation(len(rows.y))
        if self.n_classes:  # a row of each class is always among the rows
            first = np.unique(rows.y[order], return_index=True)[1]
            order = np.concatenate([order[first], np.delete(order, first)])
        rows = rows.take(order[: FIXED.additive_rows])
        bases = [_spline_basis(self.table, rows.X[:, j], j) for j in range(rows.X.shape[1])]
        rows = rows.take(np.arange(min(len(rows.y), FIXED.additive_cells // sum(part.shape[1] for _, part in bases))))
        design = np.hstack([_effects_at(point, part, rows.X[:, j], bool(self.table.is_level[j]))
                            for j, (point, part) in enumerate(bases)])  # fmt: skip
        start = np.concatenate([[0], np.cumsum([len(point) for point, _ in bases])])
        ends = np.cumsum([part.shape[1] for _, part in bases])[:-1]
        point, models = np.concatenate([point for point, _ in bases]), []
        for base, weight in (_of_odds if self.n_classes else _of_mean)(design, rows.y, penalties):
            effects = [part @ own for (_, part), own in zip(bases, np.split(weight, ends), strict=True)]
            models.append(Additive(base, start, point, np.concatenate(effects)))
        return models


def _spline_basis(table: BoostingTable, x: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (m,) of a column, and functions (m, c) of mean 0 at them whose weighted sum is its effect."""
    # Of numbers: the number itself, its rank, and a hat at each knot. Of levels: one of each that is frequent, and the
    # rank of ordered ones. Hats are not scaled, so the penalty favours straight lines.
    known, is_level = x[~np.isnan(x)], bool(table.is_level[j])
    if not len(known):
        point = np.arange(max(1.0, float(table.n_levels[j])))
        return point, np.zeros((len(point), 1))
    if is_level:
        point = np.arange(float(table.n_levels[j]))
        count = np.bincount(known.astype(np.int64), minlength=len(point))
        frequent = np.argsort(-count, kind="stable")[: FIXED.levels_alone]
        hats = np.zeros((len(point), len(frequent)))
        hats[frequent, np.arange(len(frequent))] = 1.0
        hats = hats[:, count[frequent] >= FIXED.level_rows]
        lines = [point] if table.is_ordered[j] else []
    else:
        n_knots = int(np.clip(FIXED.design_columns // len(table.n_levels), 2, FIXED.knots_of_number))
        inner = np.unique(np.quantile(known, np.linspace(0.0, 1.0, n_knots), method="closest_observation"))
        width, rank = inner[-1] - inner[0], np.arange(float(len(inner)))
        point = np.concatenate([[inner[0] - width], inner, [inner[-1] + width]])
        hats = np.pad(np.eye(len(inner)), ((1, 1), (0, 0)), mode="edge")
        lines = [point - inner[0], np.pad(rank, 1, mode="edge")]
        if len(inner) < 3:  # there is one line through two points
            hats, lines = hats[:, :0], lines[:1]
    functions = hats if hats.shape[1] else np.zeros((len(point), 1))
    for line in lines:
        spread = float(_effects_at(point, line[:, None], known, is_level).std())
        if spread > 0.0:
            functions = np.column_stack([functions, line / spread])
    return point, functions - _effects_at(point, functions, known, is_level).mean(axis=0)


def _of_mean(design: np.ndarray, y: np.ndarray, penalties: tuple[float, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each penalty, the base (1,) and the coefficients (c, 1) of least penalised squared error."""
    spread, found = float(y.std()) or 1.0, []
    for penalty in penalties:
        ridge = _quiet(Ridge(alpha=penalty), design, (y - y.mean()) / spread)
        found.append((np.array([y.mean() + spread * float(ridge.intercept_)]), spread * ridge.coef_[:, None]))
    return found


def _of_odds(design: np.ndarray, y: np.ndarray, penalties: tuple[float, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each penalty, the base (K,) and the coefficients (c, K) of least penalised log-loss."""
    if len(np.unique(y)) < 2:
        return [(np.zeros(1), np.zeros((design.shape[1], 1)))] * len(penalties)
    logistic, found = LogisticRegression(max_iter=FIXED.additive_steps, warm_start=True), []
    for penalty in penalties:
        _quiet(logistic.set_params(C=1.0 / penalty), design, y.astype(np.int64))
        base, weight = logistic.intercept_, logistic.coef_.T
        if len(base) == 1:  # the score of the second of two classes alone
            base, weight = np.append(0.0, base), np.hstack([np.zeros_like(weight), weight])
        found.append((base.copy(), weight.copy()))
    return found


def _quiet(model: Any, design: np.ndarray, y: np.ndarray) -> Any:
    """The model, fitted on one thread of BLAS; a search that is cut off is good enough."""
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(design, y)


def _sum_of_losses(answer: np.ndarray, y: np.ndarray, n_classes: int) -> float:
    """Sum of log-losses, or of squared errors."""
    if not n_classes:
        return float(((answer[:, 0] - y) ** 2).sum())
    return float(-np.log(np.maximum(answer[np.arange(len(y)), y.astype(np.int64)], FIXED.floor)).sum())
