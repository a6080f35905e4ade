"""Draws of missing cells that keep slopes: each column is regressed on its mean under joints and on all other cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from ..api.joint import Joint
from ..data.evidence import build
from ..data.frames import encode_ranges
from ..data.schema import Column, Schema

_SWEEPS = 5
"""Times that each column is drawn."""
_DONORS = 5
"""Rows whose cells may be given to a row, the nearest by predicted mean; five as in the R package mice."""
_FEWEST = 10
"""Fewest rows that a regression learns from."""
_MOST = 64
"""Most regressors: those that are most correlated with the column."""
_RIDGE = 10.0 ** np.arange(-2.0, 3.5, 0.5)
"""Penalties among which leave-one-out validation chooses."""
_TIES = 1e-6
"""Share of the spread of predictions by which they are moved at random, so that chance chooses among equal donors."""


class RegressorCoding(NamedTuple):
    """How cells become regressors.

    center, spread : float64 array (d,). Of known numbers; 0 and 1 of levels.
    is_level : bool array (d,)
    levels : tuple of d int arrays. Codes that have an indicator; none of a number.
    first : int array (d + 1,). Column j has the regressors ``first[j]:first[j + 1]``.
    """

    center: np.ndarray
    spread: np.ndarray
    is_level: np.ndarray
    levels: tuple[np.ndarray, ...]
    first: np.ndarray


class Line(NamedTuple):
    """One column's regression, and who gives cells.

    chosen : int array (q,). Regressors.
    slopes : float64 array (K, q + K). Of these, and of the posterior means under the joints.
    constant : float64 array (K,)
    donors : cKDTree. Predictions of rows whose cell is known, (r, K).
    cells, weight : float64 array (r,). Their cells, and how often each counts.
    """

    chosen: np.ndarray
    slopes: np.ndarray
    constant: np.ndarray
    donors: cKDTree
    cells: np.ndarray
    weight: np.ndarray


Chain = dict[int, Line]
"""Regressions by column; a column of which too little is known has none, and keeps what the joint drew."""


def coding_of(schema: Schema, cells: np.ndarray) -> RegressorCoding:
    """From the cells (n, d) that are known; levels of fewer than ten rows have no indicator, nor has the commonest."""
    d = len(schema.columns)
    center, spread, levels = np.zeros(d), np.ones(d), []
    for j, column in enumerate(schema.columns):
        known = cells[~np.isnan(cells[:, j]), j]
        kept = np.zeros(0, dtype=np.int64)
        if column.is_categorical:
            count = np.bincount(known.astype(np.int64), minlength=len(column.levels))
            kept = np.flatnonzero((count >= _FEWEST) & (np.arange(len(count)) != count.argmax()))
        elif len(known):
            center[j], spread[j] = known.mean(), known.std() or 1.0
        levels.append(kept)
    is_level = np.array([column.is_categorical for column in schema.columns])
    width = np.where(is_level, [len(kept) for kept in levels], 1)
    return RegressorCoding(center, spread, is_level, tuple(levels), np.concatenate([[0], np.cumsum(width)]))


def average_means(coding: RegressorCoding, means: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """Posterior means of columns under joints on average, standardised, (n, K) each; NaN where none has an answer."""
    conditions = {}
    for j, each in means.items():
        use = ~np.isnan(each)
        n_use = use.sum(axis=0)
        mean = np.where(use, each, 0.0).sum(axis=0) / np.where(n_use, n_use, np.nan)
        if coding.is_level[j]:
            mean = mean[:, coding.levels[j]]
        conditions[j] = (mean - coding.center[j]) / coding.spread[j]
    return conditions


def learn_chain(
    coding: RegressorCoding,
    cells: np.ndarray,
    start: np.ndarray,
    posterior_means: dict[int, np.ndarray],
    weight: np.ndarray,
    rng: np.random.Generator,
) -> Chain:
    """Regress each column on the others as they are now, and draw its missing cells anew; the last sweep's Chain."""
    # S. van Buuren, K. Groothuis-Oudshoorn, "mice" (2011); donors: R. J. A. Little, "Missing-data adjustments in large
    # surveys" (1988), predictive mean matching. ``posterior_means`` (n, K) by column are those of `average_means`.
    hidden = np.isnan(cells)
    now = _without_holes(start, cells)
    regressors = _regressors(coding, now)
    chain: Chain = {}
    for sweep in range(_SWEEPS):
        for j, means in posterior_means.items():
            if hidden[:, j].any() or sweep == _SWEEPS - 1:
                line = _regress(coding, regressors, cells[:, j], means, weight, j, rng)
                if line is not None:
                    chain[j] = line
                    _draw_from_donors(coding, line, now, regressors, means, hidden[:, j], j, rng)
    return chain


def follow_chain(
    coding: RegressorCoding,
    chain: Chain,
    cells: np.ndarray,
    unseen: np.ndarray,
    start: np.ndarray,
    posterior_means: dict[int, np.ndarray],
    rng: np.random.Generator,
) -> np.ndarray:
    """The missing cells of a table (n, d) drawn by a chain, sweep by sweep; ``unseen`` cells (n, d) are known."""
    hidden = np.isnan(cells) & ~unseen
    now = np.where(hidden, start, cells)
    if not hidden.any():
        return now
    regressors = _regressors(coding, now)
    for _ in range(_SWEEPS):
        for j in np.flatnonzero(hidden.any(axis=0)).tolist():
            if j in chain:
                _draw_from_donors(coding, chain[j], now, regressors, posterior_means[j], hidden[:, j], j, rng)
    return now


def _without_holes(start: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Cells that a joint could not fill are those of the first row that has one."""
    now = start.copy()
    for j in np.flatnonzero(np.isnan(now).any(axis=0)):
        known = cells[~np.isnan(cells[:, j]), j]
        now[np.isnan(now[:, j]), j] = known[0] if len(known) else np.nan
    return now


def _block(coding: RegressorCoding, x: np.ndarray, j: int) -> np.ndarray:
    """Regressors (n, .) of the cells of column j."""
    if coding.is_level[j]:
        return (x[:, None] == coding.levels[j]).astype(np.float64)
    return np.nan_to_num((x[:, None] - coding.center[j]) / coding.spread[j])


def _regressors(coding: RegressorCoding, now: np.ndarray) -> np.ndarray:
    """All columns' regressors, (n, p)."""
    return np.hstack([_block(coding, now[:, j], j) for j in range(now.shape[1])])


def _regress(
    coding: RegressorCoding,
    regressors: np.ndarray,
    x: np.ndarray,
    posterior_means: np.ndarray,
    weight: np.ndarray,
    j: int,
    rng: np.random.Generator,
) -> Line | None:
    """Ridge regression of column j, of rows that know it and of which a joint counts."""
    use = np.flatnonzero(~np.isnan(x) & (weight > 0.0) & ~np.isnan(posterior_means).any(axis=1))
    if len(use) < _FEWEST or posterior_means.shape[1] == 0:
        return None
    y, weight_of_row = _block(coding, x[use], j), weight[use]
    others = np.delete(np.arange(regressors.shape[1]), np.arange(coding.first[j], coding.first[j + 1]))
    Z = regressors[np.ix_(use, others)]
    if len(others) > _MOST:
        apart = Z - Z.mean(axis=0)
        size = np.sqrt((apart**2).sum(axis=0))
        alike = np.abs(apart.T @ (y - y.mean(axis=0))).max(axis=1) / np.where(size > 0.0, size, np.inf)
        best = np.sort(np.argsort(-alike, kind="stable")[:_MOST])
        others, Z = others[best], Z[:, best]
    D = np.hstack([Z, posterior_means[use]])
    slopes, constant = ridge(D, y, weight_of_row)
    predicted = D @ slopes.T + constant
    return Line(others, slopes, constant, cKDTree(_jittered(predicted, rng)), x[use], weight_of_row)


def ridge(D: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (K, p) and constants (K,) of y (n, K) on D (n, p), of the penalty with the least leave-one-out error."""
    share, root = weight / weight.sum(), np.sqrt(weight)[:, None]
    center, level = share @ D, share @ y
    A, b = (D - center) * root, (y - level) * root
    value, turned = np.linalg.eigh(A.T @ A)
    U = A @ turned
    along = U.T @ b
    shrink = 1.0 / (np.maximum(value, 0.0)[:, None] + _RIDGE)
    leverage = share[:, None] + U**2 @ shrink
    errors = [(((b - U @ (s[:, None] * along)) / (1.0 - h)[:, None]) ** 2).sum()
              for s, h in zip(shrink.T, leverage.T, strict=True)]  # fmt: skip
    slopes = (turned @ (shrink[:, [int(np.argmin(errors))]] * along)).T
    return slopes, level - slopes @ center


def _draw_from_donors(
    coding: RegressorCoding,
    line: Line,
    now: np.ndarray,
    regressors: np.ndarray,
    posterior_means: np.ndarray,
    hidden: np.ndarray,
    j: int,
    rng: np.random.Generator,
) -> None:
    """Missing cells of column j, each that of one of the five donors whose predictions are nearest."""
    rows = np.flatnonzero(hidden)
    if not len(rows):
        return
    D = np.hstack([regressors[np.ix_(rows, line.chosen)], np.nan_to_num(posterior_means[rows])])
    predicted = _jittered(D @ line.slopes.T + line.constant, rng)
    near = line.donors.query(predicted, k=min(_DONORS, len(line.cells)))[1].reshape(len(rows), -1)
    share = np.cumsum(line.weight[near], axis=1)
    pick = (rng.random(len(rows))[:, None] * share[:, -1:] >= share).sum(axis=1)
    now[rows, j] = line.cells[near[np.arange(len(rows)), np.minimum(pick, near.shape[1] - 1)]]
    regressors[rows, coding.first[j] : coding.first[j + 1]] = _block(coding, now[rows, j], j)


def _jittered(predicted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Predictions (n, K) a little apart, so that of many equal ones none is always the nearest."""
    return predicted + _TIES * rng.standard_normal(predicted.shape)


# ---- Posterior means and level probabilities of each cell given the row's other known cells, by several joints.


def cell_means(
    joints: list[Joint], schema: Schema, frame: Any, asked: dict[int, np.ndarray], counted: np.ndarray | None = None
) -> dict[int, np.ndarray]:
    """Means or level probabilities (m, n, K) by column of m joints about the cells in ``asked``, given the others."""
    # A joint counts for the rows in ``counted`` (m, n), all by default. NaN where a joint has no answer.
    found: dict[int, list[np.ndarray]] = {j: [] for j in asked}
    for m, joint in enumerate(joints):
        learned = joint.schema
        values, unseen, ranges = encode_ranges(learned, frame, schema.all_columns.names)
        rows = {j: of if counted is None else of[counted[m, of]] for j, of in asked.items()}
        known = {(column.name, column.is_categorical): k for k, column in enumerate(learned.columns)}
        names = {j: (schema.columns[j].name, schema.columns[j].is_categorical) for j in asked}
        place = {j: known[name] for j, name in names.items() if name in known}
        evidence = build(learned, values, unseen, ranges=ranges)
        means = joint.distribution.means_without_each(evidence, {k: rows[j] for j, k in place.items()})
        for j, of in rows.items():
            answer = np.full((len(values), len(schema.columns[j].levels) or 1), np.nan)
            if j in place:
                answer[of] = _as_column(means[place[j]], learned.columns[place[j]], schema.columns[j])
            found[j].append(answer)
    return {j: np.stack(answers) for j, answers in found.items()}


def _as_column(means: np.ndarray, learned: Column, column: Column) -> np.ndarray:
    """Means of numbers, or probabilities of levels, of the column that a joint learned, in the terms of another."""
    if not column.is_categorical:
        return means + (learned.origin - column.origin if column.kind == "datetime" else 0.0)
    answer = np.zeros((len(means), len(column.levels)))
    for code, level in enumerate(learned.levels):
        if level in column.codes:
            answer[:, column.codes[level]] = means[:, code]
    answer[np.isnan(means).any(axis=1)] = np.nan
    return answer
