"""Every column of a joint in words and pictures, beside the same of rows where there are some."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..cards.format import percent
from ..cards.svg import Span, histogram_svg
from ..data.frames import encode
from ..data.schema import Column
from ..data.shown_values import axis_ticks, interval_in_words, number_text
from ..explorer import answers
from ..explorer.shown import ShownBins, ShownJoint, from_shown, shares_of_rows
from ..inference.histogram import are_few_cells, is_beyond

_MOST_LEVELS = 8
"""Levels of a column that have a bar."""


def columns(shown: ShownJoint, X: np.ndarray | None) -> list[dict[str, Any]]:
    """The template's data on each column; ``X`` (n, d) are rows to stand beside the joint."""
    answer = answers.posterior(shown, {"exact": True})["columns"]
    found = []
    for j, (column, bins, one) in enumerate(zip(shown.columns, shown.bins, answer, strict=True)):
        rows = None if X is None else shares_of_rows(X[:, j], column, bins.edges)
        about = {"name": column.name, "kind": column.kind, "missing": _shares(one["missing"], X, j)}
        mass = np.array(one["mass"])
        found.append(about | (_levels if column.is_categorical else _numbers)(column, bins, one, mass, rows))
    return found


def encoded(shown: ShownJoint, frame: Any) -> np.ndarray:
    """Rows of a frame as the joint has them, (n, d); levels never seen are missing."""
    return encode(shown.joint.schema, frame)[0]


def _levels(column: Column, bins: ShownBins, one: Any, mass: np.ndarray, rows: np.ndarray | None) -> dict[str, Any]:
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


def _numbers(column: Column, bins: ShownBins, one: Any, mass: np.ndarray, rows: np.ndarray | None) -> dict[str, Any]:
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


def _shares(missing: float | None, X: np.ndarray | None, j: int) -> str | None:
    """How often the cell is missing, in words."""
    rows = 0.0 if X is None else float(np.isnan(X[:, j]).mean())
    if not missing and not rows:
        return None
    said = f"missing {percent(missing or 0.0)}"
    return said if X is None else f"{said} (table {percent(rows)})"
