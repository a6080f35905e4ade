"""Pools of the members' answers, whose weights vary smoothly with the share of a row that is missing. s is that share.

All weights are piecewise linear in s, with a value at each knot: w_m(s) = sum_b hat_b(s) w_bm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, nnls

from ...runtime.threads import one_blas_thread
from .constants import FIXED

_TAIL = np.array([0.0005, 0.001, 0.0025, 0.005])
LEVELS = np.concatenate([_TAIL, (np.arange(FIXED.levels) + 0.5) / FIXED.levels, 1.0 - _TAIL[::-1]])
"""Levels of the quantiles that stand for the distribution of a number."""
LEVEL_WEIGHT = np.diff(np.concatenate([[0.0], (LEVELS[1:] + LEVELS[:-1]) / 2.0, [1.0]]))
"""How much of the distribution each of these quantiles stands for."""


class Answer(NamedTuple):
    """Answers of a member for n rows.

    value : float64 array (n, A). Probabilities of the A classes; of a number its mean (n, 1).
    quantiles : float64 array (n, q) or None. Of a number, those at `LEVELS`, if the member has a distribution.
    """

    value: np.ndarray
    quantiles: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Answer:
        """Of the rows of these numbers."""
        return Answer(self.value[rows], None if self.quantiles is None else self.quantiles[rows])


def joined_stacks(parts: Sequence[Answer]) -> Answer:
    """The answers for several sets of rows, one after the other."""
    known = [part.quantiles for part in parts if part.quantiles is not None]
    return Answer(np.concatenate([part.value for part in parts]), np.concatenate(known) if known else None)


class Stack(NamedTuple):
    """Answers of M members, of which S have quantiles.

    value : float64 array (n, M, A)
    quantiles : float64 array (n, S, q)
    """

    value: np.ndarray
    quantiles: np.ndarray


def stack(answers: Sequence[Answer]) -> Stack:
    """The answers of members in their order."""
    known = [one.quantiles for one in answers if one.quantiles is not None]
    nothing = np.empty((len(answers[0].value), 0, len(LEVELS)))
    return Stack(np.stack([one.value for one in answers], axis=1), np.stack(known, axis=1) if known else nothing)


class ValidationRows(NamedTuple):
    """Validation rows, each there several times with other cells hidden.

    y : float64 array (n,). Codes of classes, or numbers.
    share : float64 array (n,). Share of each row that is missing.
    n_rows : int. Distinct rows: a repeated row is less informative than several rows.
    """

    y: np.ndarray
    share: np.ndarray
    n_rows: int


def hats(share: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Weights (n, B) of the B ascending knots in a piecewise linear function of ``share`` (n,); rows sum to 1."""
    return np.column_stack([np.interp(share, knots, row) for row in np.eye(len(knots))])


def _penalty(weight: np.ndarray, n_rows: int) -> tuple[float, np.ndarray]:
    """The penalty of weights (B, M), per row, and its gradient."""
    # Independent normals: weights lie around equal ones, and neighbouring knots have similar weights.
    to_equal, to_neighbour = FIXED.equal / n_rows, FIXED.smooth / n_rows
    off, step = weight - 1.0 / weight.shape[1], np.diff(weight, axis=0)
    gradient = 2.0 * to_equal * off
    gradient[1:] += 2.0 * to_neighbour * step
    gradient[:-1] -= 2.0 * to_neighbour * step
    return float(to_equal * (off**2).sum() + to_neighbour * (step**2).sum()), gradient


# ---- Classes: a log-linear pool.


class ClassPool(NamedTuple):
    """A log-linear pool of M members that give probabilities of K classes (Genest, Zidek 1986).

        q(k | row) ~ exp( sum_m w_m(s) log p_m(k | row) + b_k(s) )

    Weights need not sum to 1, and so calibrate members that are too sure.

    knots : float64 array (B,). Shares of missing cells, ascending.
    prior : float64 array (K,). Frequencies of the classes, of which a little is mixed into each answer.
    weight : float64 array (B, M). w at the knots, not negative.
    bias : float64 array (B, K). b at the knots.
    """

    knots: np.ndarray
    prior: np.ndarray
    weight: np.ndarray
    bias: np.ndarray

    def combine(self, answers: Stack, share: np.ndarray) -> np.ndarray:
        """Probabilities (n, K) of rows of which these shares (n,) are missing."""
        basis = hats(share, self.knots)
        score = _scores(_logs(answers, self.prior), basis, self.weight, self.bias)
        odds = np.exp(score - score.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def losses(self, answers: Stack, validation: ValidationRows) -> np.ndarray:
        """Log-losses (n,)."""
        return _log_losses(self.combine(answers, validation.share), validation.y)

    def criterion(self, answers: Stack, validation: ValidationRows) -> np.ndarray:
        """What decides which members are kept: the log-losses (n,)."""
        return self.losses(answers, validation)


def fit_class_pool(
    answers: Stack, validation: ValidationRows, prior: np.ndarray, anchor: int | None = None
) -> ClassPool:
    """The pool of least penalised log-loss, which is convex; ``anchor`` alone answers rows without missing cells."""
    n, M, K = answers.value.shape
    knots = np.array(FIXED.knots)
    B, y, rows = len(knots), validation.y.astype(np.int64), np.arange(n)
    log_p, basis = _logs(answers, prior), hats(validation.share, knots)
    to_zero = FIXED.unbiased / validation.n_rows

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        weight, bias = x[: B * M].reshape(B, M), x[B * M :].reshape(B, K)
        score = _scores(log_p, basis, weight, bias)
        top = score.max(axis=1)
        log_total = top + np.log(np.exp(score - top[:, None]).sum(axis=1))
        slope = np.exp(score - log_total[:, None])
        slope[rows, y] -= 1.0
        slope /= n
        penalty, of_weight = _penalty(weight, validation.n_rows)
        of_weight += basis.T @ np.einsum("nk,nmk->nm", slope, log_p)
        of_bias = basis.T @ slope + 2.0 * to_zero * bias
        value = float((log_total - score[rows, y]).mean()) + penalty + to_zero * float((bias**2).sum())
        return value, np.concatenate([of_weight.ravel(), of_bias.ravel()])

    weight_bounds = _bounds(B, M, anchor)
    bias_bounds = [(None, None)] * (B * K) if anchor is None else [(0.0, 0.0)] * K + [(None, None)] * (K * (B - 1))
    start = np.concatenate([_start(B, M, anchor), np.zeros(B * K)])
    x = _minimum(loss, start, weight_bounds + bias_bounds)
    return ClassPool(knots, prior, x[: B * M].reshape(B, M), x[B * M :].reshape(B, K))


def _log_losses(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Log-losses (n,) of probabilities (n, K) and codes of classes (n,)."""
    return np.asarray(-np.log(p[np.arange(len(p)), y.astype(np.int64)]))


def _logs(answers: Stack, prior: np.ndarray) -> np.ndarray:
    """Logarithms (n, M, K) of the probabilities, with a little of the prior; of the prior where there are none."""
    p = np.where(np.isnan(answers.value), prior, answers.value)
    return np.log((1.0 - FIXED.floor) * p + FIXED.floor * prior)


def _scores(log_p: np.ndarray, basis: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Logarithms (n, K) of the pool's probabilities, up to a constant of each row."""
    return np.einsum("nm,nmk->nk", basis @ weight, log_p) + basis @ bias


def _start(B: int, M: int, anchor: int | None) -> np.ndarray:
    """Equal weights (B * M,), but at the first knot those of the anchor."""
    weight = np.full((B, M), 1.0 / M)
    if anchor is not None:
        weight[0] = np.eye(M)[anchor]
    return weight.ravel()


def _bounds(B: int, M: int, anchor: int | None) -> list[tuple[float | None, float | None]]:
    """Bounds of weights: not negative, and those of an anchor fixed at the first knot."""
    free: list[tuple[float | None, float | None]] = [(0.0, None)] * (B * M)
    if anchor is not None:
        free[:M] = [(x, x) for x in np.eye(M)[anchor].tolist()]
    return free


def _minimum(loss: object, start: np.ndarray, bounds: list) -> np.ndarray:
    """Where a convex function with a gradient is smallest."""
    with one_blas_thread():
        options = {"maxiter": FIXED.steps}
        return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x)


# ---- Numbers: means are pooled by least squares, and quantiles about them by the CRPS.


class NumberPool(NamedTuple):
    """A pool of M members that give means of a number, of which S also give quantiles.

        mu = c + sum_m w_m(s) (mu_m - c)        Q(u) = mu + sum_m v_m(s) (Q_m(r) - mu_m),  r = r_s(u)

    Averages of quantiles stay as sharp as the members are, which averages of CDFs do not (Lichtendahl,
    Grushka-Cockayne, Winkler, "Is It Better to Average Probabilities or Quantiles?", 2013). But averages move point
    masses. So Q(u) is a point mass a where r lies between the averages of the members' P(Y < a) and P(Y <= a).

    knots : float64 array (B,). Shares of missing cells, ascending.
    centre : float. c, the mean of the validation rows.
    half : float. Half the step of the target's grid; without a grid, the width of rounding errors.
    values : float64 array (v,). All targets at learning if they have a grid, else the smallest and the largest.
    point : float64 array (p,). Its point masses.
    spread : float64 array (q,). Quantiles of all rows about their mean, for members that have none of a row.
    weight : float64 array (B, M). w at the knots, not negative.
    stretch : float64 array (B, S). v at the knots, not negative.
    level : float64 array (B, q). r of `LEVELS` at the knots, not falling: a share u of validation rows lies below Q.
    """

    knots: np.ndarray
    centre: float
    half: float
    values: np.ndarray
    point: np.ndarray
    spread: np.ndarray
    weight: np.ndarray
    stretch: np.ndarray
    level: np.ndarray

    def mean(self, answers: Stack, share: np.ndarray) -> np.ndarray:
        """Means (n,) of rows of which these shares (n,) are missing."""
        off = _off(answers, self.centre)
        return np.asarray(self.centre + (hats(share, self.knots) @ self.weight * off).sum(axis=1))

    def quantiles(self, answers: Stack, share: np.ndarray) -> np.ndarray:
        """Quantiles (n, q) at `LEVELS`."""
        level = hats(share, self.knots) @ self.level
        return np.array([np.interp(r, LEVELS, row) for r, row in zip(level, self._raw(answers, share), strict=True)])

    def _raw(self, answers: Stack, share: np.ndarray) -> np.ndarray:
        """Quantiles (n, q) at `LEVELS` that are not calibrated."""
        stretch, known = hats(share, self.knots) @ self.stretch, self._quantiles(answers)
        raw = self.mean(answers, share)[:, None] + np.einsum("ns,nsq->nq", stretch, _spreads(known))
        for a in self.point:
            below, up_to = (((known < end) @ LEVEL_WEIGHT).mean(axis=1) for end in (a - self.half, a + self.half))
            left, right = below[:, None] > LEVELS, up_to[:, None] < LEVELS
            with_mass = np.where(left, np.minimum(raw, a), np.where(right, np.maximum(raw, a), a))
            raw = np.where((left | right).all(axis=1, keepdims=True), raw, with_mass)
        return np.asarray(raw)

    def _quantiles(self, answers: Stack) -> np.ndarray:
        """The members' quantiles (n, S, q); those of all rows where a member has none."""
        return np.where(np.isnan(answers.quantiles), self.centre + self.spread, answers.quantiles)

    def calibrated(self, answers: Stack, validation: ValidationRows) -> NumberPool:
        """The pool whose quantiles have their shares of the validation rows below them."""
        # At each knot, r is the quantile function of the probability integral transforms of nearby rows. A uniform
        # distribution with the weight of a few rows is added, so that few rows change little.
        raw, basis = self._raw(answers, validation.share), hats(validation.share, self.knots)
        rank = _integral_transforms(raw, validation, self.half)
        order = np.argsort(rank)
        level = np.empty((len(self.knots), len(LEVELS)))
        for b, weight in enumerate(basis.T):
            total = weight.sum()
            share_below = (np.cumsum(weight[order]) - weight[order] / 2) / max(total, 1e-12)
            own = np.interp(LEVELS, share_below, rank[order]) if total > 0 else LEVELS
            level[b] = (total * own + FIXED.even_rows * LEVELS) / (total + FIXED.even_rows)
        return self._replace(level=level)

    def losses(self, answers: Stack, validation: ValidationRows) -> np.ndarray:
        """Squared errors (n,) of the mean."""
        return np.asarray((self.mean(answers, validation.share) - validation.y) ** 2)

    def criterion(self, answers: Stack, validation: ValidationRows) -> np.ndarray:
        """What decides which members are kept: the CRPS (n,), which depends on the spread, too."""
        return crps(self.quantiles(answers, validation.share), validation.y)


def fit_number_pool(
    answers: Stack, validation: ValidationRows, y: np.ndarray, step: float, anchor: int | None = None
) -> NumberPool:
    """The pool of least penalised squared error, then of least penalised CRPS; y (m,) are the targets at learning."""
    # Each row counts by the inverse of the error that is usual for its share of missing cells; otherwise rows with many
    # missing cells would decide all weights. ``anchor`` is the only member for rows without missing cells.
    knots, centre = np.array(FIXED.knots), float(y.mean())
    basis, off = hats(validation.share, knots), _off(answers, centre)
    scale = np.sqrt(_usual((validation.y - centre - off.mean(axis=1)) ** 2, basis))
    weight = _nnls(off / scale[:, None], (validation.y - centre) / scale, basis, validation.n_rows, anchor)
    pool = _number_pool(y, step, weight, np.zeros((len(knots), answers.quantiles.shape[1])))
    spreads = _spreads(pool._quantiles(answers))
    stretch = _fit_stretch(pool.mean(answers, validation.share), spreads, validation, basis)
    return pool._replace(stretch=stretch).calibrated(answers, validation)


def _integral_transforms(quantiles: np.ndarray, validation: ValidationRows, half: float) -> np.ndarray:
    """Probability integral transforms (n,) by quantiles (n, q) at `LEVELS`; evenly within cells and point masses."""
    n = len(validation.y)
    ends = []
    for off in (-half, half):
        pairs = zip(validation.y + off, quantiles, strict=True)
        ends.append(np.array([np.interp(y, row, LEVELS, 0.0, 1.0) for y, row in pairs]))
    within = np.random.default_rng(0).random(n)
    return np.asarray(ends[0] + within * (ends[1] - ends[0]))


def _number_pool(y: np.ndarray, step: float, weight: np.ndarray, stretch: np.ndarray) -> NumberPool:
    """A pool with these weights, for learning rows with the targets y (m,) on a grid of this step."""
    centre = float(y.mean())
    values = np.unique(y) if step > 0.0 else np.array([y.min(), y.max()])
    spread = np.quantile(y, LEVELS) - centre
    level = np.tile(LEVELS, (len(weight), 1))
    return NumberPool(
        np.array(FIXED.knots), centre, half_cell(y, step), values, point_masses(y), spread, weight, stretch, level
    )


def half_cell(y: np.ndarray, step: float) -> float:
    """Half the width of a cell of the grid of targets y (m,); without a grid, the width of rounding errors."""
    return step / 2.0 if step > 0.0 else 4.0 * float(np.spacing(np.abs(y).max()))


def point_masses(y: np.ndarray) -> np.ndarray:
    """Targets (p,) that a good share of the rows have, ascending."""
    values, count = np.unique(y, return_counts=True)
    return np.asarray(values[count >= FIXED.point_share * len(y)])


def _off(answers: Stack, centre: float) -> np.ndarray:
    """How far the members' means are from the centre (n, M); 0 of members that have none of a row."""
    off = answers.value[:, :, 0] - centre
    return np.where(np.isnan(off), 0.0, off)


def _spreads(quantiles: np.ndarray) -> np.ndarray:
    """How far quantiles (n, S, q) at `LEVELS` are from their means."""
    return np.asarray(quantiles - (quantiles @ LEVEL_WEIGHT)[:, :, None])


def _usual(error: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """What errors (n,) are about as large as at each row's share; above 0."""
    at_knots = (basis * error[:, None]).sum(axis=0) / np.maximum(basis.sum(axis=0), 1e-12)
    usual = basis @ at_knots
    return np.asarray(np.maximum(usual, 1e-12 * (usual.max() or 1.0)))


def _nnls(means: np.ndarray, y: np.ndarray, basis: np.ndarray, n_rows: int, anchor: int | None) -> np.ndarray:
    """Weights (B, M), not negative, of least mean squared error, with the penalty of `_penalty`."""
    (n, M), B = means.shape, basis.shape[1]
    design = (basis[:, :, None] * means[:, None, :]).reshape(n, B * M)
    unit = np.eye(B * M)
    to_equal, to_neighbour = np.sqrt(2.0 * FIXED.equal / n_rows), np.sqrt(2.0 * FIXED.smooth / n_rows)
    rows = np.vstack([design / np.sqrt(n), to_neighbour * (unit[M:] - unit[:-M]), to_equal * unit])
    wanted = np.concatenate([y / np.sqrt(n), np.zeros(B * M - M), np.full(B * M, to_equal / M)])
    weight = _start(B, M, anchor)
    free = np.arange(B * M) >= (0 if anchor is None else M)
    weight[free] = nnls(rows[:, free], wanted - rows[:, ~free] @ weight[~free])[0]
    return np.asarray(weight.reshape(B, M))


def _fit_stretch(mean: np.ndarray, spreads: np.ndarray, validation: ValidationRows, basis: np.ndarray) -> np.ndarray:
    """Factors (B, S) of spreads, not negative, of least CRPS, which is convex in them."""
    (n, S), B = spreads.shape[:2], basis.shape[1]
    if not S:
        return np.zeros((B, 0))
    first = crps(mean[:, None] + spreads.mean(axis=1), validation.y)
    row_weight = 2.0 * LEVEL_WEIGHT / (n * _usual(first, basis))[:, None]

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        stretch = x.reshape(B, S)
        error = (validation.y - mean)[:, None] - np.einsum("ns,nsq->nq", basis @ stretch, spreads)
        slope = row_weight * np.where(error > 0.0, -LEVELS, 1.0 - LEVELS)
        penalty, gradient = _penalty(stretch, validation.n_rows)
        gradient += basis.T @ np.einsum("nq,nsq->ns", slope, spreads)
        pinball = np.maximum(LEVELS * error, (LEVELS - 1.0) * error)
        return float((row_weight * pinball).sum()) + penalty, gradient.ravel()

    return _minimum(loss, _start(B, S, None), _bounds(B, S, None)).reshape(B, S)


def crps(quantiles: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Continuous ranked probability score (n,) of quantiles (n, q) at `LEVELS`: twice the mean pinball loss."""
    error = y[:, None] - quantiles
    return np.asarray(2.0 * np.maximum(LEVELS * error, (LEVELS - 1.0) * error) @ LEVEL_WEIGHT)


# ---- What is predicted: classes or a number.

Pool = ClassPool | NumberPool


class ClassGoal(NamedTuple):
    """Classes as the target.

    y : float64 array (n,). Codes of the learning rows.
    """

    y: np.ndarray
    n_classes: int

    @property
    def prior(self) -> np.ndarray:
        """The classes' frequencies, (K,)."""
        return np.bincount(self.y.astype(np.int64), minlength=self.n_classes) / len(self.y)

    def fit(self, answers: Stack, validation: ValidationRows, anchor: int | None) -> ClassPool:
        """The pool of these answers."""
        return fit_class_pool(answers, validation, self.prior, anchor)

    def equal(self, n_members: int, n_spreads: int, anchor: int | None) -> ClassPool:
        """The pool with equal weights, without validation rows; members that give probabilities have no quantiles."""
        knots = np.array(FIXED.knots)
        weight = _start(len(knots), n_members, anchor).reshape(-1, n_members)
        return ClassPool(knots, self.prior, weight, np.zeros((len(knots), self.n_classes)))

    def losses(self, answers: Stack, validation: ValidationRows) -> np.ndarray:
        """Log-losses (n,) of a single member."""
        return _log_losses(np.exp(_logs(answers, self.prior)[:, 0]), validation.y)

    def total(self, at_rates: np.ndarray) -> float:
        """One criterion of its means at each rate of hidden cells."""
        return float(at_rates.mean())

    def shown(self, at_rates: np.ndarray) -> np.ndarray:
        """Losses as reports show them: log-losses."""
        return at_rates


class NumberGoal(NamedTuple):
    """A number as the target.

    y : float64 array (n,). Of the learning rows.
    step : float. Step of their grid; 0 without a grid.
    """

    y: np.ndarray
    step: float

    def fit(self, answers: Stack, validation: ValidationRows, anchor: int | None) -> NumberPool:
        """The pool of these answers."""
        return fit_number_pool(answers, validation, self.y, self.step, anchor)

    def equal(self, n_members: int, n_spreads: int, anchor: int | None) -> NumberPool:
        """The pool with equal weights, without validation rows."""
        n_knots = len(FIXED.knots)
        weight = _start(n_knots, n_members, anchor).reshape(-1, n_members)
        return _number_pool(self.y, self.step, weight, np.full((n_knots, n_spreads), 1.0 / n_spreads))

    def losses(self, answers: Stack, validation: ValidationRows) -> np.ndarray:
        """Squared errors (n,) of a single member."""
        centre = self.y.mean()
        return np.asarray((_off(answers, centre)[:, 0] + centre - validation.y) ** 2)

    def total(self, at_rates: np.ndarray) -> float:
        """One criterion of its means at each rate of hidden cells: rates with large errors count no more."""
        return float(np.log(np.maximum(at_rates, 1e-300)).mean())

    def shown(self, at_rates: np.ndarray) -> np.ndarray:
        """Losses as reports show them: roots of mean squared errors."""
        return np.asarray(np.sqrt(at_rates))


Goal = ClassGoal | NumberGoal
