"""The report in five sentences, and how faithful the joint is, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.reading import ColumnReading
from ..data.schema import Schema
from ..evaluation.result import CLOSE, TOLD, Fidelity, verdict
from .dependence import Dependence, predictors

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
        _table(schema, n_rows),
        _dependence(depends, target),
        _unusual(unusual),
        _notes(reading),
    ]


def _table(schema: Schema, n_rows: float) -> str:
    n_levels = sum(column.is_categorical for column in schema.columns)
    n_dates = sum(column.kind == "datetime" for column in schema.columns)
    n_numbers = len(schema.columns) - n_levels - n_dates
    kinds = [(n_numbers, "numbers"), (n_levels, "levels"), (n_dates, "dates")]
    said = _listed([f"{n} with {what}" for n, what in kinds if n])
    of = f"a table of {n_rows:,.0f} rows" if n_rows else "a table"
    return f"This report describes {of} with {_count(len(schema.columns), 'column')}: {said}."


def _dependence(depends: Dependence | None, target: str | None) -> str:
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


def _notes(reading: Sequence[ColumnReading]) -> str:
    notes = [(column.name, note) for column in reading for note in column.notes]
    if not notes:
        return "All columns were taken as they are."
    name, note = notes[0]
    many = f"{len(notes):,} notes say how the table was read; the first is on" if len(notes) > 1 else "Please note on"
    return f"{many} {name}: {note}."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _count(n: int, what: str) -> str:
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
