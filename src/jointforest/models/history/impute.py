"""Unknown cells of histories filled in, given all rows of the history."""

from __future__ import annotations

import numpy as np

from ...data.discretization.base_density import levels
from .columns import PRESENT, UNKNOWN, CodedCells, Coding, HistoryColumns
from .history_model import HistoryModel, draw_values
from .records import Histories, SubjectAnswers

IMPUTE_CAP = 1024
"""Hypotheses when cells are imputed: of the first row of a history there must be some that fit the rows after it."""

BETWEEN, AFTER, BEFORE = range(3)
"""Where an unknown cell lies: between known cells of its column, after the last one, before the first one."""


def impute_codes(
    model: HistoryModel,
    X: np.ndarray,
    coded: CodedCells,
    time: np.ndarray | None,
    method: str,
    m: int,
    cap: int,
    seed: int,
) -> list[np.ndarray]:
    """Cells (N, columns) with the unknown ones filled in, one array for each of ``m`` draws."""
    # Means of numbers are moved towards the line between known neighbours: `HistoryModel.line_share`.
    columns, histories = model.columns, present(coded.histories)
    n_draws = m if method == "sample" else 0
    filled = [X.copy() for _ in range(m)]
    h, d = histories.head.shape[1], histories.code.shape[1]
    rng = np.random.default_rng([seed, 1])

    def each(a: int, b: int, found: SubjectAnswers) -> tuple[np.ndarray, ...]:
        subject = np.repeat(np.arange(a, b), np.diff(found.cell_start))
        number = np.where(found.cell < h, found.cell, h + (found.cell - h) % d)
        answer = _mean_answers if method == "mean" else _drawn_answers
        return subject, found.cell, answer(columns, number, found)

    steps = np.zeros(len(histories.length), dtype=np.int64)
    parts = model.walk(
        histories, steps, cap=cap, seed=seed, n_draws=n_draws, marginals=method == "mean", looks_ahead=True, each=each,
    )  # fmt: skip
    subject, cell, answer = (np.concatenate(one) for one in zip(*parts, strict=True))
    for v, variable in enumerate(columns.head):
        if variable.source < 0:
            continue
        at = np.flatnonzero(cell == v)
        rows = [np.arange(histories.start[i], histories.start[i + 1]) for i in subject[at]]
        for k in range(m):
            x = answer[at, k] if method == "mean" else _drawn_values(variable.coding, answer[at, k], rng)
            for where, number in zip(rows, x.tolist(), strict=True):
                empty = np.isnan(X[where, variable.source])
                filled[k][where[empty], variable.source] = number
    _spread_constants(columns, X, coded, filled)
    for j, variable in enumerate(columns.rows):
        at = np.flatnonzero((cell >= h) & ((cell - h) % d == j))
        row = histories.start[subject[at]] + (cell[at] - h) // d
        for k in range(m):
            x = answer[at, k]
            if method == "sample" and variable.coding.change is None:
                x = _draws_in_rows(variable.coding, histories, j, row, x, X[:, variable.source], rng)
            if method == "mean" and variable.source >= 0 and model.line_share[j].any():
                line, sides = (one[row] for one in line_of(histories.start, time, X[:, variable.source]))
                x = np.where(np.isnan(line), x, x + model.line_share[j][sides] * (line - x))
            if variable.source >= 0:
                filled[k][row, variable.source] = x
    return filled


def line_of(start: np.ndarray, time: np.ndarray | None, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The line in time between the known neighbours of each cell (N,), NaN if there are none; which of them exist."""
    # Without times, rows are one apart. With one known neighbour, its value is the line.
    row = np.arange(len(x))
    t = row.astype(np.float64) if time is None else time
    length = np.diff(start)
    first, last = np.repeat(start[:-1], length), np.repeat(start[1:] - 1, length)
    known = ~np.isnan(x)
    before = np.maximum.accumulate(np.where(known, row, -1))
    after = np.minimum.accumulate(np.where(known, row, len(x))[::-1])[::-1]
    has_before, has_after = before >= first, after <= last
    a = np.where(has_before, before, after)
    b = np.where(has_after, after, before)
    found = np.full(len(x), np.nan)
    at = np.flatnonzero(~known & (has_before | has_after))
    a, b = a[at], b[at]
    span = t[b] - t[a]
    # neighbours of one time leave the cell halfway
    share = np.where(a == b, 0.0, np.where(span > 0.0, (t[at] - t[a]) / np.where(span > 0.0, span, 1.0), 0.5))
    found[at] = x[a] + (x[b] - x[a]) * share
    return found, np.where(has_before == has_after, BETWEEN, np.where(has_before, AFTER, BEFORE))


def _mean_answers(columns: HistoryColumns, number: np.ndarray, found: SubjectAnswers) -> np.ndarray:
    """Means or most probable levels of unknown cells, (U, 1); ``number`` is the variable of each cell."""
    answer = np.full((len(number), 1), np.nan)
    for v, variable in enumerate((*columns.head, *columns.rows)):
        at = np.flatnonzero(number == v)
        if variable.coding.change is not None:
            answer[at, 0] = found.mean[at]
        elif variable.source >= 0:
            answer[at, 0] = _expected_cells(variable.coding, found.marginal[at])
    return answer


def _drawn_answers(columns: HistoryColumns, number: np.ndarray, found: SubjectAnswers) -> np.ndarray:
    """Draws of unknown cells, (U, m): values where changes are predicted, codes elsewhere."""
    if not columns.changes:
        return found.draw_code
    by_change = np.array([v.coding.change is not None for v in (*columns.head, *columns.rows)])
    return np.where(by_change[number][:, None], found.draw_value, found.draw_code)


def present(histories: Histories) -> Histories:
    """The same, with unknown cells that are not missing."""
    code = np.where(histories.code == UNKNOWN, PRESENT, histories.code).astype(np.int16)
    head = np.where(histories.head == UNKNOWN, PRESENT, histories.head).astype(np.int16)
    return histories._replace(code=code, head=head)


def _expected_cells(coding: Coding, marginal: np.ndarray) -> np.ndarray:
    """Means of numbers, most probable levels, of distributions over codes."""
    weights = marginal[:, 1 : coding.n_codes].astype(np.float64)
    if coding.column.is_categorical:
        return np.argmax(levels(coding.scale, weights, len(coding.column.levels)), axis=1).astype(np.float64)
    _, center, _ = coding.scale.moments
    return weights @ center / np.maximum(weights.sum(axis=1), 1e-300)


def _drawn_values(coding: Coding, code: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return draw_values(coding, code.astype(np.int64), np.ones(len(code), dtype=bool), rng)


def _draws_in_rows(
    coding: Coding,
    histories: Histories,
    j: int,
    row: np.ndarray,
    code: np.ndarray,
    x: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Values drawn for some rows of a column, which may repeat those of the row before."""
    codes = np.maximum(histories.code[:, j].astype(np.int64), 0)
    codes[row] = code
    is_first = np.zeros(len(codes), dtype=bool)
    is_first[histories.start[:-1][np.diff(histories.start) > 0]] = True
    before = x.copy()
    before[row] = np.nan
    return draw_values(coding, codes, is_first, rng, before)[row]


def _spread_constants(columns: HistoryColumns, X: np.ndarray, coded: CodedCells, filled: list[np.ndarray]) -> None:
    """A constant column that is known in some rows of a subject has the same value in the others."""
    subject = np.repeat(np.arange(len(coded.histories.length)), np.diff(coded.histories.start))
    for v, variable in enumerate(columns.head):
        if variable.source < 0:
            continue
        value = coded.head_value[subject, v]
        empty = np.isnan(X[:, variable.source]) & ~np.isnan(value)
        for one in filled:
            one[empty, variable.source] = value[empty]
