"""What a page asks on demand: rows drawn, the most probable row, why, and a pair of columns; plain dicts of JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data.conditions import column_text
from ..data.evidence import Evidence, build
from ..data.frames import encode_ranges, labels_at, read, take_rows
from ..data.reading import cell_in_words
from ..data.schema import Column
from ..data.table_files import plain
from ..inference.explanation import explain
from ..inference.information.divergence import (
    CLASS_BINS,
    all_informations,
    class_cuts,
    column_map,
    expected_changes,
    information_of_rows,
)
from ..inference.modes import model_modes
from ..inference.sampling import sample
from ..models.base import Distribution, PosteriorState
from ..query_language.parser import parse_conditions
from ..query_language.render import condition_text
from .answers import Known
from .shown import NO_TABLE, ShownJoint, all_shown, cell_text, suspicious, to_shown
from .state import place_of, whole_number

MOST_ROWS, MOST_CSV_ROWS = 1_000, 100_000
"""Most rows drawn to look at, and to download."""
PANEL_BUDGET = 2_000
"""Boxes that the search for the most probable row may cut."""
ENTRIES = 500_000
"""With more numbers between hidden states than this, it may cut fewer boxes: the panel is to answer in two seconds."""
MOST_SUSPICIOUS = 200
"""Suspicious cells that are listed."""
MOST_MAPPED = 60
"""Columns of a map."""
CHANGE_BINS = 8
"""Classes of a column of numbers that becomes known."""
MOST_CHANGES = 15
"""Columns that are listed as those that would change a prediction."""
LISTED = 8
"""Leaves, or states, that an explanation lists."""
_MOST_BINS = 60
LN2 = math.log(2.0)
_LIKELIHOOD = (
    "the evidence contains a likelihood, or is about a column with ranges, so that rows neither meet nor fail it: ask "
    "for drawn rows instead"
)
DIGITS = 6
"""Digits of numbers without a grid where they are examined."""


def rows(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """``n`` rows as texts, null where a cell is missing: see `_rows_of`; with ``table`` also numbers and total."""
    found = _rows_of(shown, body, MOST_ROWS, DIGITS)
    return {"columns": [c.name for c in shown.columns]} | found._asdict()


def csv_text(shown: ShownJoint, body: Mapping[str, Any]) -> str:
    """The same as a CSV file, with all digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([c.name for c in shown.columns])
    found = _rows_of(shown, body, MOST_CSV_ROWS)
    writer.writerows([["" if cell is None else cell for cell in row] for row in found.rows])
    return file.getvalue()


def most_probable_row(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """The most probable row that agrees with the evidence, and a bound on how much more probable another may be."""
    known = Known(shown, body.get("evidence"))
    found = model_modes(known.model, known.evidence, 1, mode_budget(known.model))
    density, bound = float(found.log_density[0]), float(found.log_bound)
    cells = [cell_text(column, x, DIGITS) for column, x in zip(shown.columns, found.X[0].tolist(), strict=True)]
    return {
        "row": dict(zip((c.name for c in shown.columns), cells, strict=True)),
        "log_density": density,
        "bound": bound,
        "certified": bound - density <= 1e-9 * max(1.0, abs(density)),
    }


def mode_budget(model: Distribution) -> int:
    """Boxes that the search for a model's most probable row may cut, fewer the longer each takes."""
    entries = model.mode_cost()
    return PANEL_BUDGET if entries <= ENTRIES else PANEL_BUDGET * ENTRIES // entries


def compile_ahead(shown: ShownJoint) -> None:
    """Ask of forests, as briefly as can be, what buttons ask later, so that its kernels are compiled by then."""
    known = Known(shown, None)
    if any(component.mode_cost() == 0 for component in known.model.components):
        model_modes(known.model, known.evidence, 1, 1)
        explain(known.model, known.evidence, LISTED)


def carriers(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """The leaves, or hidden states, that carry the answers, the heaviest first."""
    known = Known(shown, body.get("evidence"))
    found = explain(known.model, known.evidence, LISTED)
    items = [
        {
            "weight": float(rule["weight"]),
            "rules": _conditions_of_rule(rule["rule"]),
            "kind": rule["kind"],
            "says": plain(rule["says"]),
        }
        for rule in found.rules
    ]
    return {"text": found.text, "items": items}


def suspicious_cells(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """The suspicious cells of the table; or those of ``row`` alone, given the true values ``right``."""
    found, notes = shown.checked
    row, right = body.get("row"), body.get("right") or {}
    if not isinstance(right, dict) or not all(text is None or isinstance(text, str) for text in right.values()):
        raise ValueError(f"right: expected an object of texts by column name, got {str(right)[:40]}")
    cells = found.cells if row is None else found.cells_of(row, right)
    listed = [cell for cell in suspicious(cells, MOST_SUSPICIOUS) if row is None or cell["column"] not in right]
    return {"cells": listed, "notes": notes, "left_out": found.left_out}


def two_columns(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """The joint distribution of two columns given evidence, and how much one is informative about the other."""
    known = Known(shown, body.get("evidence"))
    said, bins = body.get("columns"), whole_number(body, "bins", 20, 2, _MOST_BINS)
    if not isinstance(said, list) or len(said) != 2:
        raise ValueError("columns: expected the places of two columns")
    places = [place_of(j, len(shown.columns), "columns") for j in said]
    columns = [shown.columns[j] for j in places]
    given = shown.joint.given(known.conditions)
    found = given.pair(columns[0].name, columns[1].name, bins)
    return {
        "a": _axis(columns[0], found.a),
        "b": _axis(columns[1], found.b),
        "mass": [[float(f"{x:.6g}") for x in row] for row in found.probability.tolist()],
        "correlation": _correlation(given, columns),
    } | _dependence_given(shown, known, places)


class _TextRows(NamedTuple):
    """Rows as texts; of rows of the table also their numbers, and how many satisfy the evidence."""

    rows: list[list[str | None]]
    numbers: list[int] | None = None
    total: int | None = None


def _rows_of(shown: ShownJoint, body: Mapping[str, Any], most: int, digits: int | None = None) -> _TextRows:
    """``n`` rows drawn given evidence by ``seed``; or, with ``table``, rows of it that satisfy the evidence."""
    # They are sorted by the column number ``sort``, ``descending`` or not; missing cells come last.
    known = Known(shown, body.get("evidence"))
    n, seed = whole_number(body, "n", 20, 0, most), whole_number(body, "seed", 0, 0, 2**32 - 1)
    by = None if body.get("sort") is None else place_of(body["sort"], len(shown.columns), "sort")

    def order(X: np.ndarray) -> np.ndarray:
        sign = -1.0 if body.get("descending") is True else 1.0
        return np.arange(len(X)) if by is None else np.argsort(sign * X[:, by], kind="stable")

    if body.get("table") is not True:
        ((_, given, _),) = known.model.given_evidence_present(known.evidence)
        X = sample(known.model if given is None else given, known.evidence, n, seed, missing=True)
        return _TextRows(_transposed(_texts(shown.columns, X[order(X)], digits)))
    if known.rows is None or known.numbers is None:
        raise ValueError(NO_TABLE if shown.rows is None else _LIKELIHOOD)
    numbers = known.numbers[order(known.rows)][:n]
    found = _table_rows(shown, numbers)
    texts = _transposed(_texts(shown.columns, found.X, digits))
    for (i, j), text in (found.unseen | found.ranges).items():
        texts[i][j] = text
    return _TextRows(texts, numbers.tolist(), len(known.numbers))


def _texts(columns: Sequence[Column], X: np.ndarray, digits: int | None = None) -> list[list[str | None]]:
    """Texts of the cells, a list a column; each different number is written once."""
    found = []
    for j, column in enumerate(columns):
        different, place = np.unique(X[:, j], return_inverse=True)
        texts = [cell_text(column, x, digits) for x in different.tolist()]
        found.append([texts[k] for k in place.ravel().tolist()])
    return found


def _transposed(by_column: list[list[str | None]]) -> list[list[str | None]]:
    return [list(row) for row in zip(*by_column, strict=True)]


def _conditions_of_rule(rule: str) -> list[str]:
    """A rule's conditions one by one."""
    return [condition_text(column_text(name), said) for name, said in parse_conditions(rule)] if rule else []


def _axis(column: Column, cuts: Any) -> dict[str, Any]:
    """Labels of levels; of numbers the ends of the bins, of which the outermost stand for all beyond."""
    if column.is_categorical:
        return {"labels": [str(level) for level in column.levels], "edges": None}
    at = column_numbers(column, cuts)
    if not len(at):
        low, high = column.minimum, column.maximum
        edges = np.array([low, high if high > low else low + 1.0])
    else:
        width = float(at[1] - at[0]) if len(at) > 1 else max(column.step, abs(float(at[0])) * 0.1, 1e-9)
        edges = np.concatenate([[at[0] - width], at, [at[-1] + width]])
    return {"labels": None, "edges": all_shown(column, edges)}


def column_numbers(column: Column, cuts: np.ndarray) -> np.ndarray:
    """The column's numbers of its values, NaN of missing ones."""
    return column.numbers_of_moments(cuts) if column.kind == "datetime" else np.asarray(cuts, np.float64)


def _dependence_given(shown: ShownJoint, known: Known, pair: list[int]) -> dict[str, float | None]:
    """Mutual information in bits of two columns in bins given the evidence, and that of the rows that satisfy it."""
    cuts = {j: class_cuts(known.state, j, CLASS_BINS) for j in pair}
    of_rows = None
    if known.rows is not None:
        of_rows = information_of_rows(known.rows[:, pair], [shown.columns[j] for j in pair], [cuts[j] for j in pair])
    information = all_informations(known.state, pair, cuts)
    bits = [None if each is None else float(each[0, 1]) / LN2 for each in (information, of_rows)]
    return {"information": bits[0], "in_table": bits[1]}


def depends(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """The map of the strongest dependences, given the evidence, between the columns whose places ``columns`` lists."""
    known, said = Known(shown, body.get("evidence")), body.get("columns")
    if not isinstance(said, list) or not 2 <= len(said) <= MOST_MAPPED:
        raise ValueError(f"columns: expected the places of 2 to {MOST_MAPPED} columns")
    places = [place_of(j, len(shown.columns), "columns") for j in dict.fromkeys(said)]
    cuts = {j: class_cuts(known.state, j, CLASS_BINS) for j in places}
    found = column_map(all_informations(known.state, places, cuts) / LN2)
    return {
        "order": [places[i] for i in found.order],
        "edges": [[places[i], places[j], bits] for i, j, bits in found.edges],
    }


def moves(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """By how much the prediction of ``column`` would change if each other column were known, the most first."""
    # It is the mean of a column of numbers, or the probability of a ``level``, by default the most probable one.
    known = Known(shown, body.get("evidence"))
    j = place_of(body.get("column"), len(shown.columns), "column")
    column, level = shown.columns[j], None
    if column.is_categorical:
        shares = known.state.level_probabilities(j)[0]
        level = int(shares.argmax()) if body.get("level") is None else place_of(body["level"], len(shares), "level")
        value: float | None = float(shares[level])
    else:
        value = to_shown(column, float(known.state.moments(j)[0][0]))
    free = [a for a, other in enumerate(shown.columns) if a != j and other.name not in known.conditions]
    cuts = {a: class_cuts(known.state, a, CHANGE_BINS) for a in free}
    found = sorted(expected_changes(known.state, j, level, cuts).items(), key=lambda one: -one[1].by)
    unit = 1e3 if column.kind == "datetime" else 1.0  # a difference of dates is one of milliseconds
    ends = (lambda x: x) if column.is_categorical else (lambda x: to_shown(column, x))
    return {
        "level": level,
        "value": value,
        "columns": [
            {"column": a, "by": change.by * unit, "low": ends(change.low), "high": ends(change.high)}
            for a, change in found[:MOST_CHANGES]
        ],
    }


def _correlation(given: Any, columns: list[Column]) -> float | None:
    """Correlation of two columns of numbers; None of others, and where one is known."""
    if any(c.is_categorical and c.kind != "boolean" for c in columns):
        return None
    try:
        found = float(given.corr(columns[0].name, columns[1].name))
    except ValueError:
        return None
    return found if math.isfinite(found) else None


# ---- One row of a table: how probable it is, which cells are unlikely given the others, what a model predicts of it.

_TINY = 1e-300


def row(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """A row's log-density; for each cell its prediction given the others, and how unlikely it is, in nats."""
    # The row is ``cells``, texts by column, or the number of a row of the table; ``without`` lists columns that count
    # as unknown. ``unseen`` is the text of a level that learning did not see.
    x, unseen = (_cells_of_texts(shown, body["cells"]), {}) if "cells" in body else _of_table(shown, body.get("row"))
    left_out = _columns_left_out(shown, body.get("without"))
    is_told = ~np.isnan(x) & ~left_out
    is_unseen = np.array([column.name in unseen for column in shown.columns]) & ~left_out
    model = shown.joint.distribution
    known = build(shown.joint.schema, np.where(is_told, x, np.nan)[None], is_unseen[None])
    whole = model.observe(known)
    cells = []
    for j, column in enumerate(shown.columns):
        others = known.without(j) if is_told[j] else known
        weighed = whole if others is known else model.observe(others)
        about = {"name": column.name, "known": bool(is_told[j]), "unseen": unseen.get(column.name)}
        cells.append(_cell_answer(shown, others, weighed, j, float(x[j])) | about)
    density = float(model.log_density(known)[0])
    predictor = shown.predictor
    return {
        "log_density": density if math.isfinite(density) else None,
        "cells": cells,
        "prediction": None if predictor is None else predictor.ask(x, is_told),
    }


def _columns_left_out(shown: ShownJoint, said: Any) -> np.ndarray:
    """The columns that are named, bool (d,)."""
    if said is not None and not (isinstance(said, list) and all(isinstance(name, str) for name in said)):
        raise ValueError(f"without: expected a list of columns' names, got {str(said)[:40]}")
    named = np.zeros(len(shown.columns), dtype=bool)
    for name in said or ():
        named[shown.joint.schema.index(name)] = True
    return named


def _cells_of_texts(shown: ShownJoint, said: Any) -> np.ndarray:
    """Numbers and codes (d,) of texts by column name, NaN of those that are not given."""
    if not isinstance(said, Mapping):
        raise ValueError(f"cells: expected an object of texts by column name, got {type(said).__name__}")
    x = np.full(len(shown.columns), np.nan)
    for name, text in said.items():
        j = shown.joint.schema.index(name)
        if text is not None and text != "":
            x[j] = number_of_text(shown.columns[j], text)
    return x


def number_of_text(column: Column, text: Any) -> float:
    """A cell's number or code from its text."""
    if isinstance(text, str) and column.is_categorical:
        labels = {str(level): level for level in column.levels}
        if column.kind == "boolean":
            labels |= {text.lower(): level for text, level in labels.items()}
        return column.to_number(labels.get(text, text))
    if isinstance(text, str) and column.kind != "datetime":
        try:
            return column.to_number(float(text))
        except ValueError as error:
            if "column" in str(error):
                raise
            raise ValueError(f"column {column.name!r} ({column.kind}): expected a number, got {text!r:.40}") from None
    return column.to_number(text)


def _of_table(shown: ShownJoint, number: Any) -> tuple[np.ndarray, dict[str, str]]:
    """Numbers and codes (d,) of a row of the table beside the joint; and its levels never seen, by column name."""
    if shown.rows is None:
        raise ValueError(NO_TABLE)
    X, unseen, _ = _table_rows(shown, np.array([place_of(number, len(shown.rows), "row")]))
    return X[0], {shown.columns[j].name: text for (_, j), text in unseen.items()}


class _TableRows(NamedTuple):
    """Rows of the table, (m, d), and texts by place among these rows and column: of levels never seen, and of ranges.
    Both are missing in X."""

    X: np.ndarray
    unseen: dict[tuple[int, int], str]
    ranges: dict[tuple[int, int], str]


def _table_rows(shown: ShownJoint, numbers: np.ndarray) -> _TableRows:
    """Rows of the table, by their numbers."""
    frame = take_rows(shown.rows, numbers)
    X, unseen, ranges = encode_ranges(shown.joint.schema, frame)
    texts: dict[tuple[int, int], str] = {}
    for j in np.flatnonzero(unseen.any(axis=0)).tolist():
        at = np.flatnonzero(unseen[:, j])
        labels = labels_at(read(frame).cells(shown.columns[j].name), at)
        texts |= {(i, j): str(label) for i, label in zip(at.tolist(), labels, strict=True)}
    if ranges is None:
        return _TableRows(X, texts, {})
    cells = np.argwhere(ranges.number >= 0).tolist()
    return _TableRows(X, texts, {(i, j): condition_text("…", ranges.intervals[ranges.number[i, j]]) for i, j in cells})


def _cell_answer(shown: ShownJoint, others: Evidence, state: PosteriorState, j: int, x: float) -> dict[str, Any]:
    """What a cell is, what it was expected to be given the others, weighed, and how unlikely it is."""
    column = shown.columns[j]
    if column.is_categorical:
        share = state.level_probabilities(j)[0]
        expected = float(share.argmax())
        tail = math.nan if math.isnan(x) else float(share[share <= share[int(x)] * (1.0 + 1e-9)].sum())
    else:
        mean, _ = state.moments(j)
        expected = float(mean[0])
        tail = math.nan if math.isnan(x) else _two_sided_tail(state.cdf(j, _two_sides(column, x))[0])
    unlikely = abs(math.log(min(max(tail, _TINY), 1.0))) if tail == tail else None
    return {
        "text": cell_text(column, x, DIGITS),
        "shown": cell_in_words(column, x),
        "unlikely": unlikely,
        "expected": cell_in_words(column, expected),
    }


def _two_sides(column: Column, x: float) -> np.ndarray:
    """Two points: what is up to the first is up to x, what is above the second is x or more."""
    if column.step > 0.0:
        return np.array([x, x - column.step])
    return np.array([x, np.nextafter(x, -np.inf)])


def _two_sided_tail(below: np.ndarray) -> float:
    """Probability of a number as far out as this, on either side."""
    return 2.0 * min(float(below[0]), 1.0 - float(below[1]))
