"""The report in five sentences, how faithful the joint is, in words, and its columns and their dependence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..cards import Span, histogram_svg, percent
from ..data.discretization.dependence import spanning_tree
from ..data.frames import encode_ranges
from ..data.reading import ColumnReading, axis_ticks, interval_in_words, number_text
from ..data.schema import Column, Schema
from ..evaluation.result import CLOSE, TOLD, Fidelity, verdict
from ..explorer import answers
from ..explorer.shown import ShownBins, ShownJoint, from_shown, shares_of_rows
from ..inference.histogram import are_few_cells, is_beyond
from ..inference.information.divergence import all_informations, column_map, information_of_rows

NAMED = 3
"""Columns that a sentence names."""
TWINS = 0.97
"""Two columns that depend more than this are named as nearly equal."""


def summary(
    schema: Schema,
    n_rows: float,
    depends: Dependence | None,
    target: str | None,
    fidelity: Fidelity | None,
    unusual: list[dict[str, Any]] | None,
    reading: Sequence[ColumnReading],
) -> list[str]:
    """How faithful the joint is, what the table is, what depends on what, what is unusual, what to look at."""
    return [
        _faithful(fidelity),
        _table_in_words(schema, n_rows),
        _dependence_in_words(depends, target),
        _unusual(unusual),
        _notes_in_words(reading),
    ]


def _table_in_words(schema: Schema, n_rows: float) -> str:
    n_levels = sum(column.is_categorical for column in schema.columns)
    n_dates = sum(column.kind == "datetime" for column in schema.columns)
    n_numbers = len(schema.columns) - n_levels - n_dates
    kinds = [(n_numbers, "numbers"), (n_levels, "levels"), (n_dates, "dates")]
    said = _listed([f"{n} with {what}" for n, what in kinds if n])
    of = f"a table of {n_rows:,.0f} rows" if n_rows else "a table"
    return f"This report describes {of} with {_count_in_words(len(schema.columns), 'column')}: {said}."


def _dependence_in_words(depends: Dependence | None, target: str | None) -> str:
    if depends is None:
        return "The table has a single column, so nothing depends on anything."
    if target is not None:
        found = [one["name"] for one in predictors(depends, target)][:NAMED]
        if found:
            return f"Taken alone, the columns that say most about {target} are {_listed(found)}."
        return f"Taken alone, no column says much about {target}."
    strength = np.triu(depends.strength, 1)
    i, j = (int(k) for k in np.unravel_index(int(strength.argmax()), strength.shape))
    names = depends.names
    if strength[i, j] < TWINS:
        return f"The two columns that depend most on each other are {names[i]} and {names[j]}."
    strength = np.where(strength >= TWINS, 0.0, strength)
    k, m = (int(k) for k in np.unravel_index(int(strength.argmax()), strength.shape))
    more = f"; of the others {names[k]} and {names[m]} depend most on each other" if strength[k, m] > 0.0 else ""
    return f"The columns {names[i]} and {names[j]} say nearly the same{more}."


def _faithful(fidelity: Fidelity | None) -> str:
    if fidelity is None:
        return "How faithful the joint is was not measured, because the report was given no rows of the table."
    found = judged(fidelity)
    if not found:
        return "How faithful the joint is could not be measured with these rows."
    said = f"as a picture of the table the joint is {found[0]['verdict'].split(':')[0]}: {found[0]['meaning']}."
    counted = fidelity.statements
    if counted is None or not counted.wrong:
        return said[0].upper() + said[1:]
    worst = (counted.broken or counted.wrong)[0]
    return f"The weakest point that was found is {worst}; {said}"


def _unusual(unusual: list[dict[str, Any]] | None) -> str:
    if not unusual:
        return "No unusual rows were looked for; the option examples asks for some."
    row = unusual[0]
    cell = row["cells"][0] if row["cells"] else None
    if cell is None:
        return f"The most unusual row is number {row['number']}."
    return (
        f"The most unusual row is number {row['number']}: its {cell['name']} is {cell['text']}, where "
        f"{cell['expected']} was expected."
    )


def _notes_in_words(reading: Sequence[ColumnReading]) -> str:
    notes = [(column.name, note) for column in reading for note in column.notes]
    if not notes:
        return "All columns were taken as they are."
    name, note = notes[0]
    many = f"{len(notes):,} notes say how the table was read; the first is on" if len(notes) > 1 else "Please note on"
    return f"{many} {name}: {note}."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _count_in_words(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


# ---- Fidelity: what was measured, how it is to be judged, and what that means.


def judged(f: Fidelity) -> list[dict[str, str]]:
    """Each measure with its value, its verdict in words, and what it means; the most important one first."""
    found = []
    if f.told_apart is not None:
        score = f.told_apart.score
        found.append(
            _judgement(
                "Rows drawn from the joint, beside rows of the table", score, TOLD,
                "score {:.2f}; 1 is best", f"a classifier ({f.told_apart.classifier}) {_tells(score)}",
            )
        )  # fmt: skip
    for name, part, value, what in (
        ("Single columns", f.marginals, None if f.marginals is None else f.marginals.shape, "column by column"),
        ("Pairs of columns", f.pairs, None if f.pairs is None else f.pairs.trend, "pair by pair"),
    ):
        if part is not None and value is not None and not math.isnan(value):
            meaning = f"{what}, drawn rows agree with the table to {value:.0%} on average"
            found.append(_judgement(name, value, CLOSE, "similarity {:.3f}; 1 is best", meaning))
    if f.statements is not None:
        name, value = "Statements that can be counted", 1.0 - f.statements.off
        form = f"difference of the worst: {f.statements.off:.3f}"
        found.append(_judgement(name, value, CLOSE, form, f.statements.in_words))
    return found


def _judgement(name: str, value: float, steps: tuple[float, float, float], form: str, meaning: str) -> dict[str, str]:
    words = verdict(value, steps)
    return {"name": name, "value": form.format(value), "verdict": words, "meaning": meaning, "tone": words[0]}


def _tells(score: float) -> str:
    if score >= TOLD[0]:
        return "cannot tell drawn rows from rows of the table"
    if score >= TOLD[1]:
        return "hardly tells drawn rows from rows of the table"
    if score >= TOLD[2]:
        return "tells some of the drawn rows from rows of the table"
    return "tells most of the drawn rows from rows of the table"


# ---- Every column of a joint in words and pictures, beside the same of rows where there are some.


_MOST_LEVELS = 8
"""Levels of a column that have a bar."""


class ShownRows(NamedTuple):
    """Rows of a table, which are shown beside the joint.

    X : float64 array (n, d). Their cells.
    has_ranges : bool array (d,). Which columns have cells that are ranges.
    """

    # Cells that are ranges have no exact value, so these columns are not counted.
    X: np.ndarray
    has_ranges: np.ndarray


def columns(shown: ShownJoint, table: ShownRows | None) -> list[dict[str, Any]]:
    """The template's data on each column."""
    answer = answers.posterior(shown, {"exact": True})["columns"]
    found = []
    for j, (column, bins, one) in enumerate(zip(shown.columns, shown.bins, answer, strict=True)):
        cells = None if table is None or table.has_ranges[j] else table.X[:, j]
        rows = None if cells is None else shares_of_rows(cells, column, bins.edges)
        about = {"name": column.name, "kind": column.kind, "missing": _missing_in_words(one["missing"], cells)}
        mass = np.array(one["mass"])
        found.append(about | (_level_bars if column.is_categorical else _of_num)(column, bins, one, mass, rows))
    return found


def encoded(shown: ShownJoint, frame: Any) -> ShownRows:
    """Rows of a frame as the joint has them; levels never seen are missing."""
    X, _, ranges = encode_ranges(shown.joint.schema, frame)
    none = np.zeros(X.shape[1], bool)
    return ShownRows(X, none if ranges is None else np.any(ranges.number >= 0, axis=0))


def _level_bars(column: Column, bins: ShownBins, one: Any, mass: np.ndarray, rows: np.ndarray | None) -> dict[str, Any]:
    order = np.argsort(-mass, kind="stable") if len(mass) > _MOST_LEVELS else np.arange(len(mass))
    some = order[:_MOST_LEVELS].tolist()
    bars = [_bar(str(column.levels[k]), mass[k], None if rows is None else rows[k]) for k in some]
    rest = len(mass) - len(some)
    if rest:
        others = order[_MOST_LEVELS:]
        bars.append(_bar(f"{rest:,} others", mass[others].sum(), None if rows is None else rows[others].sum()))
    return {"bars": bars}


def _bar(label: str, share: float, rows: float | None) -> dict[str, Any]:
    return {
        "label": label,
        "share": percent(share),
        "width": f"{100 * share:.2f}",
        "rows": None if rows is None else f"{100 * rows:.2f}",
        "rows_share": None if rows is None else percent(rows),
    }


def _of_num(column: Column, bins: ShownBins, one: Any, mass: np.ndarray, rows: np.ndarray | None) -> dict[str, Any]:
    first, last = float(bins.edges[0]), float(bins.edges[-1])
    mean, low, high = (
        math.nan if one[key] is None else from_shown(column, one[key]) for key in ("mean", "low", "high")
    )
    at = [(x - first) / (last - first) for x in (low, high, mean)]
    marks = None if math.isnan(sum(at)) else Span(max(at[0], 0.0), min(at[1], 1.0), at[2])
    said = {key: number_text(column, x, first, last) for key, x in (("low", low), ("high", high))}
    ticks = axis_ticks(column, first, last)
    return {
        "bars": None,
        "picture": histogram_svg(
            column.name,
            mass,
            None,
            ticks,
            marks,
            None,
            rows,
            is_beyond(column, bins.edges),
            are_few_cells(column, bins.edges),
        ),
        "mean": number_text(column, mean, first, last, of_means=True),
        "interval": interval_in_words(said["low"], said["high"]),
    }


def _missing_in_words(missing: float | None, cells: np.ndarray | None) -> str | None:
    """How often the cell is missing, in words; ``cells`` (n,) are those of the table."""
    rows = 0.0 if cells is None else float(np.isnan(cells).mean())
    if not missing and not rows:
        return None
    said = f"missing {percent(missing or 0.0)}"
    return said if cells is None else f"{said} (table {percent(rows)})"


# ---- Which columns depend on each other in the joint: a matrix or a map, and what predicts a column.


MOST_IN_MATRIX = 25
"""With more columns, a map takes the place of the matrix."""
MOST_IN_MAP = 60
"""Columns of the map."""
STRONGEST = 12
"""Columns that are named for a target."""
_LEAST = 0.1
"""Weaker dependences are not named: chance is not far."""


class Dependence(NamedTuple):
    """Mutual information of each two of d columns, of their classes: see `Joint.mutual_information`.

    names : tuple of str
    bits : float64 array (d, d)
    rows : float64 array (d, d), or None. The bits of rows of the table; NaN of columns with ranges.
    strength : float64 array (d, d). sqrt(1 - exp(-2 I)), I in nats: of normal columns the size of their correlation.
    order : int32 array (d,). Columns, each after the one on which it depends most: see `spanning_tree`.
    """

    names: tuple[str, ...]
    bits: np.ndarray
    rows: np.ndarray | None
    strength: np.ndarray
    order: np.ndarray


def find_dependence(shown: ShownJoint, table: ShownRows | None = None) -> Dependence | None:
    """The dependences of a joint, and of rows of its table; None of a single column."""
    columns = shown.columns
    if len(columns) < 2:
        return None
    cuts = shown.class_cuts
    information = all_informations(shown.nothing, range(len(columns)), dict(enumerate(cuts)))
    rows = None
    if table is not None:
        rows = information_of_rows(table.X, columns, cuts) / np.log(2.0)
        rows[table.has_ranges] = rows[:, table.has_ranges] = np.nan
    names = tuple(column.name for column in columns)
    strength = np.sqrt(-np.expm1(-2.0 * information))
    return Dependence(names, information / np.log(2.0), rows, strength, spanning_tree(information)[0])


def matrix(found: Dependence) -> list[dict[str, Any]] | None:
    """The rows of a matrix, columns that depend on each other side by side; None of too many columns."""
    columns = found.order.tolist()
    if len(columns) > MOST_IN_MATRIX:
        return None
    return [
        {"name": found.names[i], "cells": [None if i == j else _tile(found, i, j) for j in columns]} for i in columns
    ]


_ROW, _WIDE, _THICK = 30, 110, 7
"""Pixels: height of a line of the map, width of its arcs, of the thickest one."""


def arcs(found: Dependence) -> dict[str, Any]:
    """The map of the columns that depend most on others, as `map_panel.js` draws it."""
    some = np.argsort(-found.strength.max(axis=1), kind="stable")[:MOST_IN_MAP].tolist()
    drawn = column_map(found.bits[np.ix_(some, some)])
    at = {k: _ROW * (line + 0.5) for line, k in enumerate(drawn.order)}
    most = max((bits for *_, bits in drawn.edges), default=1.0)
    paths = []
    for i, j, bits in drawn.edges:
        a, b = some[i], some[j]
        reach = max(_THICK, _WIDE - 14 - 0.32 * abs(at[i] - at[j]))
        paths.append(
            {
                "d": f"M{_WIDE} {at[i]:g}C{reach:g} {at[i]:g} {reach:g} {at[j]:g} {_WIDE} {at[j]:g}",
                "width": f"{max(1.0, _THICK * bits / most):.2f}",
                "title": f"{found.names[a]} and {found.names[b]}: {_in_bits(found, a, b)}",
            }
        )
    names = [found.names[some[k]] for k in drawn.order]
    return {"names": names, "paths": paths, "wide": _WIDE, "row": _ROW, "left_out": len(found.names) - len(some)}


def predictors(found: Dependence, target: str) -> list[dict[str, str]]:
    """The best predictors of a target, each alone, the strongest first."""
    j = found.names.index(target)
    best = np.argsort(-found.strength[j], kind="stable")[:STRONGEST].tolist()
    return [
        {
            "name": found.names[i],
            "bits": _in_bits(found, i, j),
            "strength": f"{found.strength[i, j]:.2f}",
            "width": f"{100 * found.strength[i, j]:.1f}",
        }
        for i in best
        if i != j and found.strength[i, j] >= _LEAST
    ]


def _in_bits(found: Dependence, i: int, j: int) -> str:
    beside = "" if found.rows is None or np.isnan(found.rows[i, j]) else f" (table {found.rows[i, j]:.2f})"
    return f"{found.bits[i, j]:.2f} bits{beside}"


def _tile(found: Dependence, i: int, j: int) -> dict[str, str]:
    strength = float(found.strength[i, j])
    return {"text": f"{strength:.2f}".lstrip("0"), "tone": f"q{round(10 * strength)}", "title": _in_bits(found, i, j)}
