"""One row of a table: how probable it is, which cells are unlikely given the others, what a model predicts of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..model.model import Model
from ..queries.column.distribution import cdf
from ..queries.column.levels import level_probability
from ..queries.column.moments import mean_variance
from ..queries.posterior.density import log_density
from ..table.build_evidence import build
from ..table.evidence import Evidence
from ..table.frames import encode
from ..table.schema import Column
from .numbers import cell_text
from .panels import DIGITS
from .state import place_of
from .subject import Subject

_TINY = 1e-300


def row(subject: Subject, body: Mapping[str, Any]) -> dict[str, Any]:
    """A row's log-density; of each cell what was to be expected given the others, and how unlikely it is.

    The row is ``cells``, texts by column, or the number ``row`` of the table beside the joint. Cells of the columns
    that ``without`` names are there, but not known: what is said of all others, and the density, are without them.
    ``unlikely`` is, in nats, -log of the probability of a cell that is at least as far out: of a level as improbable,
    of a number as far in its tail. ``prediction`` is of `Predictor.ask`, where there is a trained model.
    """
    x = _cells(subject, body["cells"]) if "cells" in body else _of_table(subject, body.get("row"))
    is_told = ~np.isnan(x) & ~_without(subject, body.get("without"))
    model, known = subject.joint.model, build(subject.joint.schema, np.where(is_told, x, np.nan)[None])
    whole = _weighed(model, known)
    cells = []
    for j, column in enumerate(subject.columns):
        others = known.without(j) if is_told[j] else known
        weighed = whole if others is known else _weighed(model, others)
        about = {"name": column.name, "known": bool(is_told[j])}
        cells.append(_cell(subject, others, weighed, j, float(x[j])) | about)
    density = float(log_density(model, known)[0])
    predictor = subject.predictor
    return {
        "log_density": density if math.isfinite(density) else None,
        "cells": cells,
        "prediction": None if predictor is None else predictor.ask(x, is_told),
    }


def _without(subject: Subject, said: Any) -> np.ndarray:
    """The columns that are named, bool (d,)."""
    if said is not None and not (isinstance(said, list) and all(isinstance(name, str) for name in said)):
        raise ValueError(f"without: expected a list of columns' names, got {str(said)[:40]}")
    named = np.zeros(len(subject.columns), dtype=bool)
    for name in said or ():
        named[subject.joint.schema.index(name)] = True
    return named


def _cells(subject: Subject, said: Any) -> np.ndarray:
    """Numbers and codes (d,) of texts by column name, NaN of those that are not said."""
    if not isinstance(said, Mapping):
        raise ValueError(f"cells: expected an object of texts by column name, got {type(said).__name__}")
    x = np.full(len(subject.columns), np.nan)
    for name, text in said.items():
        j = subject.joint.schema.index(name)
        if text is not None and text != "":
            x[j] = _number(subject.columns[j], text)
    return x


def _number(column: Column, text: Any) -> float:
    """A cell's number or code from its text.

    Raises
    ------
    ValueError
        If the column cannot have it.
    """
    if isinstance(text, str) and column.is_categorical:
        labels = {str(level).lower() if isinstance(level, bool) else str(level): level for level in column.levels}
        return column.to_number(labels.get(text, text))
    if isinstance(text, str) and column.kind != "datetime":
        try:
            return column.to_number(float(text))
        except ValueError as error:
            if "column" in str(error):
                raise
            raise ValueError(f"column {column.name!r} ({column.kind}): expected a number, got {text!r:.40}") from None
    return column.to_number(text)


def _of_table(subject: Subject, number: Any) -> np.ndarray:
    """Numbers and codes (d,) of a row of the table beside the joint."""
    if subject.rows is None:
        raise ValueError("no table was loaded beside the joint: give cells, or start with --table")
    i = place_of(number, len(subject.rows), "row")
    X, _ = encode(subject.joint.schema, _slice(subject.rows, i))
    return np.asarray(X[0])


def _slice(frame: Any, i: int) -> Any:
    """Row i as a frame of its kind."""
    if hasattr(frame, "iloc"):
        return frame.iloc[i : i + 1]
    return frame[i : i + 1]


def _weighed(model: Model, evidence: Evidence) -> tuple[Any, ...]:
    return tuple(part.weigh(evidence) for part in model.parts)


def _cell(subject: Subject, others: Evidence, weighed: tuple[Any, ...], j: int, x: float) -> dict[str, Any]:
    """What a cell is, what it was expected to be given the others, weighed, and how unlikely it is."""
    model, column = subject.joint.model, subject.columns[j]
    if column.is_categorical:
        share = level_probability(model, others, j, known=weighed)[0]
        expected = float(share.argmax())
        tail = math.nan if math.isnan(x) else float(share[share <= share[int(x)] * (1.0 + 1e-9)].sum())
    else:
        mean, _ = mean_variance(model, others, j, known=weighed)
        expected = float(mean[0])
        tail = math.nan if math.isnan(x) else _tail(cdf(model, others, j, _sides(column, x), known=weighed)[0])
    unlikely = abs(math.log(min(max(tail, _TINY), 1.0))) if tail == tail else None
    return {
        "text": cell_text(column, x, DIGITS),
        "unlikely": unlikely,
        "expected": None if math.isnan(expected) else cell_text(column, expected, DIGITS),
    }


def _sides(column: Column, x: float) -> np.ndarray:
    """Two points: what is up to the first is up to x, what is above the second is x or more."""
    if column.step > 0.0:
        return np.array([x, x - column.step])
    return np.array([x, np.nextafter(x, -np.inf)])


def _tail(below: np.ndarray) -> float:
    """Probability of a number as far out as this, on either side."""
    return 2.0 * min(float(below[0]), 1.0 - float(below[1]))
