"""What a page asks of a joint of histories: one subject's rows and the next ones, and columns over row numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..data.frames import encode, labels_at, read, with_names
from ..data.history_rows import HistoryRows, check_history_names, group_rows, split_columns
from ..data.schema import Column, Schema
from ..models.history.columns import code_histories, frame_of
from ..models.history.history_model import IMPUTE_CAP, impute_codes
from .answers import Questions
from .panels import DIGITS, column_numbers, number_of_text
from .shown import all_shown, cell_text, described, fingerprint
from .state import place_of, whole_number

POPULATION = 2_000
"""Most drawn subjects behind the columns over row numbers."""
REFERENCE = 300
"""Most drawn subjects with whose cells those of a subject are compared."""
MOST_DRAWN = 200_000
"""Most rows of drawn subjects: of joints with long histories fewer subjects are drawn."""
HISTORY_DRAWS = 200
"""Draws of unknown cells and of the next rows."""
MOST_STEPS = 50
_MOST_ROWS = 2_000
"""Most rows of a history that a page asks about."""
POSITIONS = 60
"""Most row numbers of the columns over row numbers."""
_FEW = 20
"""Fewest subjects that must have a row number."""
_LISTED = 50
"""Most subjects that a search lists."""
NO_TABLE = "no table was loaded beside the joint: draw a subject, or start with a table"
BAND = (0.05, 0.25, 0.75, 0.95)
"""Ends of the intervals that hold 90 and 50 %."""


@dataclass(frozen=True)
class _Table:
    """Rows of many subjects, in the order of time.

    X : float64 array (N, d). Cells of columns other than subject and time; NaN where missing or an unseen level.
    unseen : dict of (row, column) to str. The texts of unseen levels, by their places in ``X``.
    """

    rows: HistoryRows
    X: np.ndarray
    unseen: dict[tuple[int, int], str]


@dataclass(frozen=True)
class ShownHistories:
    """What a page of histories shows.

    title : str. Name of its file.
    rows : frame, optional. A table of histories to look at beside the joint.
    """

    joint: Any
    title: str = "joint"
    rows: Any = None

    index: ClassVar[str] = "histories.html"
    widget: ClassVar[str] = "widget_histories.js"
    """The file of its page, and the script of its widget."""
    about: ClassVar[str] = "histories"

    @cached_property
    def version(self) -> str:
        """Fingerprint of the joint, the same wherever it is loaded."""
        return fingerprint(self.joint.model)

    @property
    def schema(self) -> Schema:
        return self.joint.schema

    @property
    def time(self) -> Column | None:
        return self.joint.model.columns.time

    @cached_property
    def table(self) -> _Table | None:
        """The table beside the joint; None without one."""
        return None if self.rows is None else self.read(self.rows)

    @cached_property
    def labels(self) -> list[str]:
        """What the table calls its subjects, as texts."""
        return [] if self.table is None else [str(name) for name in self.table.rows.labels]

    @cached_property
    def drawn(self) -> _Table:
        """Drawn histories."""
        return self.read(self._drawn(POPULATION, 0))

    @cached_property
    def reference(self) -> list[np.ndarray]:
        """For each column the ascending log-densities of its cells in drawn histories, given the cells before them."""
        logs = self.joint.attribution(self._drawn(REFERENCE, 1), random_state=0)
        return [np.sort(column[~np.isnan(column)]) for column in logs.T]

    def _drawn(self, n: int, seed: int) -> Any:
        """A frame of n drawn subjects, of fewer where histories are long."""
        info = self.joint.info()
        most = max(MOST_DRAWN * info["subjects"] // info["rows"], _FEW)
        return self.joint.sample(min(n, most), random_state=seed)

    def read(self, frame: Any) -> _Table:
        """The rows of a frame, subject after subject in the order of time."""
        frame = with_names(frame)
        reader = read(frame)
        check_history_names(reader, self.joint.group, self.joint.order)
        rows = group_rows(reader, self.joint.group, self.time)
        _, rest = split_columns(frame, [self.joint.group, *([] if self.time is None else [self.time.name])])
        X, unseen = encode(self.schema, rest)
        texts: dict[tuple[int, int], str] = {}
        for j in np.flatnonzero(unseen.any(axis=0)).tolist():
            at = np.flatnonzero(unseen[rows.place, j])
            labels = labels_at(reader.cells(self.schema.names[j]), rows.place[at])
            texts |= {(i, j): str(label) for i, label in zip(at.tolist(), labels, strict=True)}
        return _Table(rows, np.ascontiguousarray(X[rows.place]), texts)

    def frame(self, time: np.ndarray | None, X: np.ndarray) -> Any:
        """A frame with the rows of one subject."""
        columns = self.joint.model.columns
        group = columns.group
        if group.kind == "categorical":
            group = replace(group, levels=("1",))
        return frame_of(columns, group, np.zeros(len(X)), time, X)


def shown_histories(joint: Any, title: str, rows: Any) -> ShownHistories:
    """What a page shows; errors of the table are raised now, not on the page."""
    shown = ShownHistories(joint, title, rows)
    _ = shown.table
    return shown


# ---- What the joint is about, and which subjects the table beside it has.


def _history_table(shown: ShownHistories, body: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a joint of histories; ``body`` is not used."""
    joint = shown.joint
    return {
        "title": shown.title,
        "version": shown.version,
        "said": f"{joint.info()['subjects']:,} subjects, {joint.info()['rows']:,} rows, {joint.model.n_trees:,} trees",
        "group": joint.group,
        "time": None if shown.time is None else _about(shown.time),
        "ends": bool(joint.info()["ends"]),
        "subjects": None if shown.table is None else len(shown.labels),
        "columns": [_about(column) | {"constant": column.name in joint.constant} for column in shown.schema.columns],
    }


def _about(column: Column) -> dict[str, Any]:
    return described(column, np.array([column.minimum, column.maximum]))


def subjects(shown: ShownHistories, body: Mapping[str, Any]) -> dict[str, Any]:
    """Subjects of the table whose name contains ``word``: their places, names and numbers of rows."""
    word = body.get("word", "")
    if not isinstance(word, str):
        raise ValueError(f"word: expected a text, got {type(word).__name__}")
    if shown.table is None:
        raise ValueError(NO_TABLE)
    length = shown.table.rows.length
    places = [k for k, label in enumerate(shown.labels) if word.lower() in label.lower()]
    listed = sorted(places, key=lambda k: shown.labels[k].lower() != word.lower())[:_LISTED]
    return {
        "found": len(places),
        "subjects": [{"place": k, "label": shown.labels[k], "rows": int(length[k])} for k in listed],
    }


def history(shown: ShownHistories, body: Mapping[str, Any]) -> dict[str, Any]:
    """The rows, as texts, of the subject of the table with the number ``place``, or of a drawn one (``seed``)."""
    # ``unseen`` marks cells with a level that learning did not see: the page counts them as empty.
    if "seed" in body:
        seed, k = whole_number(body, "seed", 0, 0, 2**32 - 1), 0
        chosen, label = shown.read(shown.joint.sample(1, random_state=seed)), f"drawn subject {seed + 1}"
    else:
        if shown.table is None:
            raise ValueError(NO_TABLE)
        chosen = shown.table
        k = place_of(body.get("place"), len(shown.labels), "place")
        label = shown.labels[k]
    begin, end = chosen.rows.start[k : k + 2].tolist()
    if end - begin > _MOST_ROWS:
        begin, label = end - _MOST_ROWS, f"{label}, its last {_MOST_ROWS:,} rows"
    part = slice(begin, end)
    time = None if chosen.rows.time is None else chosen.rows.time[part]
    unseen = [
        f"{shown.schema.names[j]} {text!r} in row {i - begin + 1}"
        for (i, j), text in chosen.unseen.items()
        if begin <= i < end
    ]
    return {"label": label, "unseen": unseen} | _row_texts(shown, time, chosen.X[part])


def _row_texts(shown: ShownHistories, time: np.ndarray | None, X: np.ndarray) -> dict[str, Any]:
    """Rows as texts: cells of constant columns once, those of the others row by row."""
    columns, joint = shown.schema.columns, shown.joint
    first = {c.name: cell_text(c, _first_known(X[:, j])) for j, c in enumerate(columns) if c.name in joint.constant}
    varying = [(j, c) for j, c in enumerate(columns) if c.name in joint.varying]
    rows = [{c.name: cell_text(c, float(x[j])) for j, c in varying} for x in X]
    if time is not None and shown.time is not None:
        for row, at in zip(rows, time.tolist(), strict=True):
            row[shown.time.name] = cell_text(shown.time, at)
    return {"constant": first, "rows": rows}


def _first_known(x: np.ndarray) -> float:
    """The first value that is known; NaN if none is."""
    known = x[~np.isnan(x)]
    return float(known[0]) if len(known) else math.nan


# ---- One history: what its cells are, how unlikely they are, what the unknown ones may be, and what comes next.


def forecast(shown: ShownHistories, body: Mapping[str, Any]) -> dict[str, Any]:
    """The next ``steps`` rows of a history whose cells are texts, the rarity of known cells, and unknown cells."""
    steps = whole_number(body, "steps", 1, 0, MOST_STEPS)
    time, X = _times_and_cells(shown, body)
    order = np.arange(len(X)) if time is None else np.argsort(time, kind="stable")
    time, X = None if time is None else time[order], X[order]
    frame = shown.frame(time, X)
    next_rows = shown.joint.forecast(frame, max(steps, 1), n_draws=HISTORY_DRAWS, random_state=0, n_jobs=1)
    filled, spread = _unknown(shown, time, X)
    less = _less_probable(shown, frame)
    columns = []
    for j, column in enumerate(shown.schema.columns):
        is_varying = column.name in shown.joint.varying
        columns.append(
            {
                "x": all_shown(column, X[:, j]),
                "less": _or_null(less[:, j]),
                "unknown": {} if filled is None else _spread_of_unknown(column, X[:, j], filled[:, j], spread[:, :, j]),
                "next": _next(column, next_rows, steps) if is_varying else None,
            }
        )
    return {
        "order": order.tolist(),
        "time": None if time is None or shown.time is None else _times_shown(shown.time, time, next_rows, steps),
        "columns": columns,
        "ends": _or_null(next_rows.end_probability[0, :steps]),
        "exact": bool(next_rows.exact[0]),
    }


def _times_and_cells(shown: ShownHistories, body: Mapping[str, Any]) -> tuple[np.ndarray | None, np.ndarray]:
    """Times and cells of a history from its texts."""
    said, constant = body.get("rows"), body.get("constant", {})
    if not isinstance(said, list) or not said or not all(isinstance(row, Mapping) for row in [*said, constant]):
        raise ValueError("rows: expected a list of rows, at least one, each an object of texts by column name")
    if len(said) > _MOST_ROWS:
        raise ValueError(f"rows: expected at most {_MOST_ROWS:,}, got {len(said):,}")
    X = np.full((len(said), len(shown.schema.columns)), np.nan)
    time = None if shown.time is None else np.full(len(said), np.nan)
    for i, row in enumerate(said):
        for name, text in {**row, **constant}.items():
            if text is None or text == "":
                continue
            if time is not None and shown.time is not None and name == shown.time.name:
                time[i] = number_of_text(shown.time, text)
            else:
                j = shown.schema.index(name)
                X[i, j] = number_of_text(shown.schema.columns[j], text)
    if time is not None and shown.time is not None and np.isnan(time).any():
        row = int(np.flatnonzero(np.isnan(time))[0])
        raise ValueError(f"row {row + 1}: its {shown.time.name} is missing; give each row its own")
    return time, X


def _unknown(shown: ShownHistories, time: np.ndarray | None, X: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """What unknown cells are expected to be, (N, d), and draws of them, (draws, N, d); None if all are known."""
    if not np.isnan(X).any():
        return None, np.empty((0, *X.shape))
    model, n = shown.joint.model, len(X)
    length = np.array([-1 if model.columns.has_length else n])  # the history may go on
    coded = code_histories(model.columns, np.array([0, n]), X, time, length, empty_is_unknown=True)
    filled = impute_codes(model, X, coded, time, "mean", 1, IMPUTE_CAP, 0)[0]
    return filled, np.stack(impute_codes(model, X, coded, time, "sample", HISTORY_DRAWS, IMPUTE_CAP, 0))


def _spread_of_unknown(column: Column, x: np.ndarray, filled: np.ndarray, drawn: np.ndarray) -> dict[str, Any]:
    """Of each row in which a column is unknown: what is expected, and its spread or the shares of its levels."""
    found = {}
    for i in np.flatnonzero(np.isnan(x)).tolist():
        cell = drawn[:, i][~np.isnan(drawn[:, i])]
        if np.isnan(filled[i]) or not len(cell):
            continue
        if column.is_categorical:
            shares = np.bincount(cell.astype(np.int64), minlength=len(column.levels)) / len(cell)
            found[str(i)] = {"proba": shares.tolist(), "mean": float(filled[i])}
        else:
            mean, *band = all_shown(column, np.array([filled[i], *np.quantile(cell, BAND)]))
            found[str(i)] = {"mean": mean, "band": band}
    return found


def _less_probable(shown: ShownHistories, frame: Any) -> np.ndarray:
    """Share of the drawn cells of a column that are less probable than a cell, (N, d); NaN of unknown cells."""
    logs = shown.joint.attribution(frame, random_state=0, n_jobs=1)
    shares = np.full(logs.shape, np.nan)
    for j, reference in enumerate(shown.reference):
        known = ~np.isnan(logs[:, j])
        if len(reference):
            shares[known, j] = np.searchsorted(reference, logs[known, j]) / len(reference)
    return shares


def _next(column: Column, found: Any, steps: int) -> dict[str, Any]:
    """What a column may be in the next rows: shares of levels, or mean and the ends of two intervals."""
    # ``expected`` is the text of what the first of them is expected to hold, null if the cell is probably missing.
    missing = found.missing_probability(column.name)[0]
    if column.is_categorical:
        proba = found.proba(column.name)[0]
        best = float(np.argmax(proba[0]))
        out: dict[str, Any] = {"proba": [_or_null(row) for row in proba[:steps]]}
    else:
        mean = column_numbers(column, found.mean(column.name)[0])
        band = column_numbers(column, found.quantile(column.name, BAND)[0, :steps])
        best = float(mean[0])
        out = {"mean": all_shown(column, mean[:steps]), "band": [all_shown(column, row) for row in band]}
    expected = None if missing[0] > 0.5 else _nearest_text(column, best)
    return {"missing": _or_null(missing[:steps]), "expected": expected} | out


def _nearest_text(column: Column, number: float) -> str | None:
    """The text of the cell that is nearest to a number; None for NaN."""
    if math.isnan(number):
        return None
    return cell_text(column, column.to_number(column.from_number(number)), DIGITS)


def _times_shown(column: Column, time: np.ndarray, found: Any, steps: int) -> dict[str, Any]:
    """Times of the rows and of the next ones; the text of the time that a row after them is expected to have."""
    mean = column_numbers(column, found.mean(column.name)[0])
    band = column_numbers(column, found.quantile(column.name, BAND)[0, :steps])
    return {
        "x": all_shown(column, time),
        "expected": _nearest_text(column, float(mean[0])),
        "next": {"mean": all_shown(column, mean[:steps]), "band": [all_shown(column, row) for row in band]},
    }


def _or_null(numbers: np.ndarray) -> list[float | None]:
    """Numbers as JSON has them: null for NaN."""
    return [None if math.isnan(x) else x for x in numbers.tolist()]


# ---- All subjects: each column by row number, among drawn histories and in the table.


def population(shown: ShownHistories, body: Mapping[str, Any]) -> dict[str, Any]:
    """Each varying column by row number, of drawn histories and of those of the table; ``body`` is not used."""
    sources = {"drawn": shown.drawn} | ({} if shown.table is None else {"table": shown.table})
    out: dict[str, Any] = {"subjects": {name: len(one.rows.labels) for name, one in sources.items()}}
    longest = max(_positions(one.rows.length) for one in sources.values())
    out["having"] = {
        name: [float((one.rows.length > p).mean()) for p in range(longest)] for name, one in sources.items()
    }
    out["columns"] = [
        {name: _by_position(column, one, j, longest) for name, one in sources.items()}
        if column.name in shown.joint.varying
        else None
        for j, column in enumerate(shown.schema.columns)
    ]
    return out


def _positions(length: np.ndarray) -> int:
    """Row numbers that enough subjects have."""
    ordered = np.sort(length)[::-1]
    return int(np.clip(ordered[min(_FEW, len(ordered)) - 1], 1, POSITIONS))


def _by_position(column: Column, table: _Table, j: int, longest: int) -> dict[str, Any]:
    """Mean and intervals, or shares of levels, of a column in the first, second, ... row of subjects."""
    start, length = table.rows.start[:-1], table.rows.length
    means, bands, shares = [], [], []
    for p in range(longest):
        x = table.X[start[length > p] + p, j]
        x = x[~np.isnan(x)]
        if column.is_categorical:
            counts = np.bincount(x.astype(np.int64), minlength=len(column.levels))
            shares.append((counts / len(x)).tolist() if len(x) else [None] * len(column.levels))
        else:
            found = np.array([x.mean(), *np.quantile(x, BAND)]) if len(x) else np.full(5, np.nan)
            mean, *band = all_shown(column, found)
            means.append(mean)
            bands.append(band)
    return {"proba": shares} if column.is_categorical else {"mean": means, "band": bands}


HISTORY_ASKS: dict[str, Callable[..., Any]] = {
    "table": _history_table,
    "subjects": subjects,
    "history": history,
    "forecast": forecast,
    "population": population,
}


def prepare(shown: ShownHistories) -> None:
    """Work out what the questions need, so that the first of a page finds it."""
    _ = shown.table, shown.reference, shown.drawn


QUESTIONS = Questions(HISTORY_ASKS, prepare=prepare, waits=False, compile_ahead=None)  # the first forecast compiles all
