"""What is known of the next rows of histories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import cards
from ..cards import percent, signed
from ..data.conditions import check_hard, without_missing
from ..data.discretization.base_density import cdf, levels, quantiles
from ..data.evidence import Evidence, build, is_met, is_met_by, region_runs
from ..data.history_rows import HistoryRows
from ..models.history.columns import GAP, CodedCells, Coding, frame_of
from ..models.history.history_model import HistoryModel, draw_values
from ..models.history.records import Histories, SubjectAnswers
from ..runtime.parameters import check_number
from .posterior import conditions_of

SHOWN = 8
"""Subjects that a notebook shows."""
LEAST_CAP = 64
"""Fewest hypotheses of a forecast: each code of a number can then be one."""
_MOST_BYTES = 2_000_000_000
"""Most memory of the answers of one forecast."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """What is known of the next rows of n subjects, made by `HistoryJoint.forecast`.

    Answers about step s are conditional on the history having that row. They come from the distribution of each cell,
    mixed over hypotheses about the unknown cells before it: all their combinations, or weighted draws of them. For
    columns that repeat values or whose changes are predicted, they come from draws.

    Attributes
    ----------
    subjects : list
        What the frame calls the subjects, in the order of answers.
    steps : int
    end_probability : float64 array (n, steps)
        Probability that the history ends before step 1, 2, ...; NaN if the number of rows is not modelled.
    exact : bool array (n,)
        Whether sums over unknown cells were exact.
    """

    subjects: list[Any]
    steps: int
    end_probability: np.ndarray
    exact: np.ndarray
    _model: HistoryModel
    _marginal: np.ndarray
    _code: np.ndarray
    _value: np.ndarray
    _length: np.ndarray
    _last: _Last
    _seed: int

    def __repr__(self) -> str:
        return f"Forecast({len(self.subjects)} subjects, {self.steps} steps)"

    def _repr_html_(self) -> str:
        shown = self.subjects[:SHOWN]
        share = [percent(float(p)) for p in self.end_probability[: len(shown), 0]]
        cells = [[_cell_text(x) for x in self.mean(name)[: len(shown), 0].tolist()] for name in self.columns]
        rows = list(zip(map(str, shown), share, *cells, strict=True))
        left = f"and {len(self.subjects) - len(shown):,} subjects more" if len(self.subjects) > len(shown) else ""
        said = "The next row of each subject: means of numbers and dates, the most probable levels."
        header = ("subject", "no row follows", *self.columns)
        return cards.view_html(repr(self), [said], [cards.table_html(rows, header)], left)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that a forecast answers about, in the order of the table: varying ones, and the time."""
        columns = self._model.columns
        known = {columns.schema.names[v.source] for v in columns.rows if v.source >= 0}
        known |= set() if columns.time is None else {columns.time.name}
        return tuple(name for name in columns.names if name in known)

    def _is_time(self, column: str) -> bool:
        """Whether it is the column of times."""
        time = self._model.columns.time
        return time is not None and time.name == column

    def mean(self, column: str) -> np.ndarray:
        """Means of a number or date: array (n, steps); of levels, the most probable one.

        Examples
        --------
        >>> visits = jf.datasets.make_visits(300, random_state=0)
        >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
        >>> joint.forecast(visits, random_state=0).mean("status")[0, 0] in ("well", "ill", "severe")
        True
        """
        if self._is_time(column):
            return self._as_times(_mean(self._times()))
        j, coding = self._find(column)
        if coding.column.is_categorical:
            share = self._level_shares(j, coding)
            best = np.where(np.isnan(share[..., 0]), np.nan, np.argmax(share, axis=-1))
            return coding.column.values(best)
        if self._needs_draws(coding):
            return coding.column.values(_mean(self._values(j)))
        weights = self._marginal[:, :, j, 1 : coding.n_codes].astype(np.float64)
        _, center, _ = coding.scale.moments
        with np.errstate(invalid="ignore", divide="ignore"):
            return coding.column.values(weights @ center / weights.sum(axis=-1))

    def proba(self, column: str) -> np.ndarray:
        """Probabilities of the levels of a cell that is not missing, (n, steps, levels), in the order of the levels."""
        j, coding = self._find(column)
        if not coding.column.is_categorical:
            raise ValueError(f"column {column!r} holds numbers; ask mean, interval, quantile or probability")
        return self._level_shares(j, coding)

    def missing_probability(self, column: str) -> np.ndarray:
        """Probability that a cell is missing, (n, steps)."""
        j, _ = self._find(column)
        return self._marginal[:, :, j, 0].astype(np.float64)

    def probability(self, event: str | Mapping[str, Any]) -> np.ndarray:
        """Probability of an event in the next rows: array (n, steps).

        It is conditional on the history having that row. For an event about one varying column it comes from the
        distribution of the cell. It is a proportion of draws if the event is about several columns, or a constant one.
        The same holds for a column with point masses, repeated values or predicted changes. With m draws that have the
        row, of ``n_draws``, the standard error is about 0.5 / sqrt(m) at most. A missing cell satisfies no condition.

        Parameters
        ----------
        event : str or dict
            ``"status = 'ill' and pressure > 140"``, or conditions by column.

        Raises
        ------
        ValueError
            If the event is about whether a cell is missing (`missing_probability` answers that), or its evidence is
            soft.

        Examples
        --------
        >>> visits = jf.datasets.make_visits(300, random_state=0)
        >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
        >>> joint.forecast(visits, random_state=0).probability("status = 'ill' and pressure > 140").shape
        (300, 1)
        """
        schema = self._model.columns.schema
        conditions = conditions_of(schema, event)
        check_hard(conditions)
        conditions, missing = without_missing(conditions, schema.tick_boxes)
        if missing:
            raise ValueError(f"column {next(iter(missing))!r}: whether a cell is missing is for missing_probability")
        said = build(schema, conditions=conditions)
        if len(conditions) == 1:
            place = schema.index(next(iter(conditions)))
            for j, variable in enumerate(self._model.columns.rows):
                coding = variable.coding
                if variable.source == place and not (self._needs_draws(coding) or coding.column.atoms):
                    share = _code_shares(coding, said, place)
                    return self._marginal[:, :, j, 1 : coding.n_codes].astype(np.float64) @ share
        X, alive = self._drawn_cells(self._code.shape[1])
        return _mean(np.where(alive, is_met(schema, said, X), np.nan))

    def quantile(self, column: str, q: Any) -> np.ndarray:
        """Quantiles of a number or date: array (n, steps), or (n, steps, k) for k levels ``q``."""
        wanted = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if not ((wanted >= 0.0) & (wanted <= 1.0)).all():
            raise ValueError(f"q: expected numbers from 0 to 1, got {q!r}")
        found = self._quantiles(column, wanted)
        return found if np.ndim(q) else found[..., 0]

    def _quantiles(self, column: str, q: np.ndarray) -> np.ndarray:
        """Quantiles of a number or date, (n, steps, k)."""
        if self._is_time(column):
            return self._as_times(_draw_quantiles(self._times(), q))
        j, coding = self._find(column)
        if coding.column.is_categorical:
            raise ValueError(f"column {column!r} has levels and no quantiles; ask proba")
        n = len(self.subjects)
        if self._needs_draws(coding):
            return coding.column.values(_draw_quantiles(self._values(j), q))
        weights = self._marginal[:, :, j, 1 : coding.n_codes].reshape(n * self.steps, -1)
        return coding.column.values(quantiles(coding.scale, weights, q).reshape(n, self.steps, -1))

    def interval(self, column: str, level: float = 0.9) -> np.ndarray:
        """Ends of the interval of equal tails that holds a number with this probability: array (n, steps, 2)."""
        check_number("level", level, 0, 1)
        return self.quantile(column, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])

    def sample(self, m: int = 1) -> Any:
        """Draws of the next rows: a frame with the columns ``draw`` and ``step`` before those of the table.

        Parameters
        ----------
        m : int
            Draws of each subject, at most ``n_draws`` of the forecast.

        Returns
        -------
        frame
            A drawn history may end before the last step. If the table has a column ``draw`` or ``step``, the new
            column is ``draw_2`` or ``step_2``.
        """
        most = self._code.shape[1]
        check_number("m", m, 1, most, whole=True, text=f"a whole number from 1 to {most}, the draws of the forecast")
        model, shape = self._model, (len(self.subjects), m, self.steps)
        X, alive = self._drawn_cells(m)
        number = np.broadcast_to(np.arange(shape[0])[:, None, None], shape)[alive]
        draw, step = (np.broadcast_to(axis, shape)[alive] for axis in np.ogrid[:m, : self.steps])
        time = None if self._last.time is None else self._times()[:, :m][alive]
        group = model.columns.group
        if group.kind == "categorical":
            group = replace(group, levels=tuple(dict.fromkeys(self.subjects)))
            subject = number.astype(np.float64)
        else:
            subject = np.array(self.subjects, dtype=np.float64)[number]
        return frame_of(model.columns, group, subject, time, X[alive], {"draw": draw + 1, "step": step + 1})

    # -- from codes

    def _drawn_cells(self, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Cells of drawn rows, (n, m, steps, number of schema columns), and which of the rows there are."""
        columns, shape = self._model.columns, (len(self.subjects), m, self.steps)
        alive = self._last.n_rows[:, None, None] + 1 + np.arange(self.steps) <= self._length[:, :m, None]
        X = np.full((*shape, len(columns.schema.columns)), np.nan)
        for v, variable in enumerate(columns.head):
            if variable.source >= 0:
                X[..., variable.source] = self._last.head[:, v, None, None]
        for j, variable in enumerate(columns.rows):
            if variable.source >= 0:
                X[..., variable.source] = self._values(j)[:, :m]
        return X, alive

    def _find(self, column: str) -> tuple[int, Coding]:
        """Number and codes of a varying column."""
        columns = self._model.columns
        if self._is_time(column):
            raise ValueError(f"column {column!r} holds the times of rows; ask mean, interval or quantile")
        place = columns.schema.index(column)
        for j, variable in enumerate(columns.rows):
            if variable.source == place:
                return j, variable.coding
        raise ValueError(f"column {column!r} is constant within subjects: its next value is the one it has")

    def _needs_draws(self, coding: Coding) -> bool:
        return coding.change is not None or bool(coding.repeat.any())

    def _level_shares(self, j: int, coding: Coding) -> np.ndarray:
        n_levels = len(coding.column.levels)
        if coding.repeat.any():
            x = self._values(j)
            return np.stack([_mean(np.where(np.isnan(x), np.nan, x == k)) for k in range(n_levels)], -1)
        weights = self._marginal[:, :, j, 1 : coding.n_codes].astype(np.float64)
        found = levels(coding.scale, weights.reshape(-1, weights.shape[-1]), n_levels)
        with np.errstate(invalid="ignore", divide="ignore"):
            return (found / found.sum(axis=1, keepdims=True)).reshape(*weights.shape[:2], n_levels)

    def _times(self) -> np.ndarray:
        """Drawn times, (n, draws, steps); NaN beyond the end."""
        assert self._last.time is not None
        columns = self._model.columns
        gap = np.full((len(self.subjects), self._code.shape[1], self.steps), columns.step)
        for j, variable in enumerate(columns.rows):
            if variable.source == GAP:
                gap = self._values(j)
        return np.asarray(self._last.time[:, None, None] + np.cumsum(np.maximum(gap, columns.least_gap), axis=2))

    def _as_times(self, numbers: np.ndarray) -> np.ndarray:
        """What the column of times calls numbers."""
        assert self._model.columns.time is not None
        return self._model.columns.time.values(numbers)

    def _values(self, j: int) -> np.ndarray:
        """Drawn values of a column, (n, draws, steps); NaN where missing or beyond the end."""
        steps, model = self.steps, self._model
        coding = model.columns.rows[j].coding
        alive = self._last.n_rows[:, None, None] + 1 + np.arange(steps) <= self._length[:, :, None]
        if coding.change is not None:
            x = self._value[..., model.columns.changes.index(j)]
        else:
            code = np.insert(self._code[..., j], 0, 0, axis=2)
            before = np.full(code.shape, np.nan)
            if j in model.columns.repeats:
                q = model.columns.repeats.index(j)
                code[:, :, 0], before[:, :, 0] = self._last.code[..., q], self._last.value[..., q]
            is_first = np.zeros(code.shape, dtype=bool)
            is_first[:, :, 0] = True
            flat = np.maximum(code, 0).astype(np.int64).ravel()
            rng = np.random.default_rng([self._seed, 2, j])
            x = draw_values(coding, flat, is_first.ravel(), rng, before.ravel()).reshape(code.shape)[:, :, 1:]
        return np.where(alive & (self._code[..., j] > 0), x, np.nan)


@dataclass(frozen=True, eq=False)
class _Last:
    """The last row of n subjects with known rows, in each of m draws.

    n_rows : int64 array (n,). Number of known rows.
    time : float64 array (n,) or None
    code : int16 array (n, m, q). Codes of the q columns that repeat values, those of unknown cells drawn.
    value : float64 array (n, m, q). Their values; NaN of missing cells, and unknown ones that do not repeat a value.
    head : float64 array (n, h). Values of constant columns.
    """

    n_rows: np.ndarray
    time: np.ndarray | None
    code: np.ndarray
    value: np.ndarray
    head: np.ndarray


def make_forecast(
    model: HistoryModel, rows: HistoryRows, X: np.ndarray, coded: CodedCells, steps: int, n_draws: int, seed: int
) -> Forecast:
    """The forecast of the next rows of subjects: see `HistoryJoint.forecast`."""
    histories, d = coded.histories, len(model.columns.rows)
    n, changes = len(histories.length), list(model.columns.changes)
    widest = max(variable.coding.n_codes for variable in model.columns.rows)
    of_last = 10 * len(model.columns.repeats) * n_draws
    _check_size(n, steps, n_draws, 4 * widest * d + (2 * d + 4 * len(changes)) * n_draws, of_last)

    def each(a: int, b: int, found: SubjectAnswers) -> tuple[np.ndarray, ...]:
        last = found.cell_start[1:, None] - steps * d + np.arange(steps * d)
        marginal = found.marginal[last, :widest].reshape(b - a, steps, d, widest)
        code = found.draw_code[last].reshape(b - a, steps, d, n_draws).transpose(0, 3, 1, 2)
        value = found.draw_value[last].reshape(b - a, steps, d, found.draw_value.shape[1])[:, :, changes]
        ends = np.cumsum(found.ends, axis=1)[:, :steps]
        last_code, last_value = _last_cells(model, histories, coded, (a, b), found, n_draws, seed)
        return (
            marginal,
            code.copy(),
            value.transpose(0, 3, 1, 2).astype(np.float32),
            found.draw_length,
            ends,
            found.exact > 0,
            last_code,
            last_value,
        )

    parts = model.walk(histories, np.full(n, steps), cap=max(LEAST_CAP, n_draws), seed=seed, n_draws=n_draws, each=each)
    marginal, code, value, length, ends, exact, last_code, last_value = (
        np.concatenate(one) for one in zip(*parts, strict=True)
    )
    time = None if rows.time is None else rows.time[histories.start[1:] - 1]
    last = _Last(rows.length, time, last_code, last_value, coded.head_value)
    if not model.columns.has_length:
        length = np.full(length.shape, np.iinfo(np.int64).max)
        ends = np.full(ends.shape, np.nan)
    return Forecast(rows.labels, steps, ends, exact, model, marginal, code, value, length, last, seed)


def _last_cells(
    model: HistoryModel,
    histories: Histories,
    coded: CodedCells,
    subjects: tuple[int, int],
    found: SubjectAnswers,
    n_draws: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """``code`` and ``value`` of `_Last`, of subjects a to b - 1."""
    a, b = subjects
    h, d, repeats = histories.head.shape[1], histories.code.shape[1], list(model.columns.repeats)
    at = histories.start[a + 1 : b + 1] - 1
    code = np.repeat(histories.code[at][:, None, repeats], n_draws, axis=1)
    value = np.repeat(coded.row_value[at][:, None, repeats], n_draws, axis=1)
    for q, j in enumerate(repeats):
        repeat = np.append(0.0, model.columns.rows[j].coding.repeat)
        for i in np.flatnonzero(histories.code[at, j] < 0).tolist():
            first, row = int(histories.start[a + i]), int(at[i])
            while row >= first and histories.code[row, j] < 0:
                row -= 1
            cell = found.cell[found.cell_start[i] : found.cell_start[i + 1]]
            unknown = h + np.arange(row + 1 - first, at[i] + 1 - first) * d + j
            drawn = found.draw_code[found.cell_start[i] + np.flatnonzero(np.isin(cell, unknown))]
            before = int(histories.code[row, j]) if row >= first else 0
            rng = np.random.default_rng([seed, 4, j, a + i])
            stays = (drawn == before).all(axis=0) & (rng.random(n_draws) < repeat[before] ** len(drawn))
            code[i, :, q] = drawn[-1]
            value[i, :, q] = np.where(stays, coded.row_value[row, j], np.nan)
    return code, value


def _code_shares(coding: Coding, said: Evidence, j: int) -> np.ndarray:
    """Of each code the share that satisfies the evidence about column j, (K,); the column has no atoms."""
    scale, x = coding.scale, float(said.value[0, j])
    if coding.column.is_categorical:
        met = is_met_by(coding.column, said, j, np.arange(len(coding.column.levels), dtype=np.float64))
        return levels(scale, np.eye(scale.n_codes), len(met)) @ met
    runs = region_runs(said, j)
    if not np.isnan(x):
        half = coding.column.step / 2.0
        runs = np.array([[x - half, x + half] if half > 0.0 else [np.nextafter(x, -np.inf), x]])
    return (cdf(scale, runs[:, 1]) - cdf(scale, runs[:, 0])).sum(axis=0)


def _check_size(n: int, steps: int, n_draws: int, of_step: int, of_last: int) -> None:
    """Raise ValueError if the answers need too much memory: bytes of each step, and of the last row, of a subject."""
    needed = n * (steps * of_step + of_last)
    if needed > _MOST_BYTES:
        fewer = max(1, n * _MOST_BYTES // needed)
        raise ValueError(
            f"a forecast of {steps} steps of {n} subjects with n_draws={n_draws} needs {needed / 1e9:.1f} GB, and "
            f"{_MOST_BYTES / 1e9:.0f} GB are allowed; ask about {fewer} subjects at a time, or for fewer steps or draws"
        )


def _mean(x: np.ndarray) -> np.ndarray:
    """Means over draws, (n, steps); NaN where all are missing."""
    known = ~np.isnan(x)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(known, x, 0.0).sum(axis=1) / known.sum(axis=1))


def _draw_quantiles(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Quantiles over draws, (n, steps, k); NaN where all are missing."""
    ordered = np.sort(x, axis=1)
    known = (~np.isnan(x)).sum(axis=1)
    at = np.clip(q * known[..., None] - 0.5, 0.0, np.maximum(known[..., None] - 1, 0))
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(known[..., None] - 1, 0))
    turned = np.moveaxis(ordered, 1, 2)
    a, b = np.take_along_axis(turned, low, 2), np.take_along_axis(turned, high, 2)
    return np.asarray(a + (at - low) * (b - a))


def _cell_text(value: Any) -> str:
    """A mean with four digits; a date as its day; a level as it is."""
    if isinstance(value, float):
        return "–" if np.isnan(value) else signed(f"{value:.4g}")
    return str(value.date()) if hasattr(value, "date") else str(value)
