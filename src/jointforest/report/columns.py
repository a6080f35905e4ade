"""Every column of a joint in words and pictures, beside the same of rows where there are some."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cards.format import number_writer, percent
from ..data.frames import encode
from ..data.schema import Column
from ..explorer import answers
from ..explorer.subject import Bins, Subject, cell_text, from_shown, to_shown

# ---- Pictures of columns as SVG paths and shares, drawn in boxes of 100 by 40.

HEIGHT = 40


def steps(edges: np.ndarray, mass: np.ndarray, top: float) -> str:
    """A histogram as a filled path."""
    x = _places(edges)
    y = _heights(mass, top)
    return "M0 40" + "".join(f"V{b}H{right}" for b, right in zip(y, x[1:], strict=True)) + "V40Z"


def _places(edges: np.ndarray) -> list[str]:
    span = edges[-1] - edges[0]
    return [_short(100 * (edge - edges[0]) / span) for edge in edges]


def _heights(mass: np.ndarray, top: float) -> list[str]:
    return [_short(HEIGHT * (1 - min(share / top, 1.0))) for share in mass]


def _short(x: float) -> str:
    return f"{x:.2f}".rstrip("0").rstrip(".")


MOST_LEVELS = 8
"""Levels of a column that have a bar."""


def columns(subject: Subject, X: np.ndarray | None) -> list[dict[str, Any]]:
    """What the template says of each column; ``X`` (n, d) are rows to stand beside the joint."""
    answer = answers.posterior(subject, {"exact": True})["columns"]
    found = []
    for j, (column, bins, one) in enumerate(zip(subject.columns, subject.bins, answer, strict=True)):
        rows = None if X is None else _of_rows(X[:, j], column, bins)
        about = {"name": column.name, "kind": column.kind, "missing": _shares(one["missing"], X, j)}
        mass = np.array(one["mass"])
        found.append(about | (_levels if column.is_categorical else _numbers)(column, bins, one, mass, rows))
    return found


def encoded(subject: Subject, frame: Any) -> np.ndarray:
    """Rows of a frame as the joint has them, (n, d); levels never seen are missing."""
    return encode(subject.joint.schema, frame)[0]


def number(column: Column, shown: float | None, low: float, high: float, of_means: bool = False) -> str:
    """A number of a column that ranges from low to high as people read it, a date as a date."""
    if shown is None:
        return "–"
    if column.kind == "datetime":
        step = max(column.step, 1.0)
        x = from_shown(column, shown)
        return cell_text(column, column.center + round((x - column.center) / step) * step) or "–"
    return number_writer(low, high, column.step, of_means)(shown)


def interval(low: str, high: str) -> str:
    """Where the middle 90 % of values lie, in words."""
    return f"are {low}" if low == high else f"lie between {low} and {high}"


def _levels(column: Column, bins: Bins, one: Any, mass: np.ndarray, rows: np.ndarray | None) -> dict[str, Any]:
    order = np.argsort(-mass, kind="stable") if len(mass) > MOST_LEVELS else np.arange(len(mass))
    some = order[:MOST_LEVELS].tolist()
    bars = [_bar(str(column.levels[k]), mass[k], None if rows is None else rows[k]) for k in some]
    rest = len(mass) - len(some)
    if rest:
        others = order[MOST_LEVELS:]
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


def _numbers(column: Column, bins: Bins, one: Any, mass: np.ndarray, rows: np.ndarray | None) -> dict[str, Any]:
    top = max(mass.max(), 0.0 if rows is None else rows.max(), 1e-12)
    half = 0.5 * column.step  # of a grid the ends are values, not edges of cells
    ends = [to_shown(column, float(x)) for x in bins.edges[[0, -1]] + [half, -half]]
    around = float(bins.edges[0]), float(bins.edges[-1])
    return {
        "bars": None,
        "path": steps(bins.edges, mass, top),
        "rows_path": None if rows is None else steps(bins.edges, rows, top),
        "ends": [number(column, end, *around) for end in ends],
        "mean": number(column, one["mean"], *around, of_means=True),
        "interval": interval(number(column, one["low"], *around), number(column, one["high"], *around)),
    }


def _of_rows(x: np.ndarray, column: Column, bins: Bins) -> np.ndarray:
    """Share of the rows' values in each bin, or of each level; zeros where there are none."""
    x = x[~np.isnan(x)]
    if column.is_categorical:
        count = np.bincount(x.astype(np.int64), minlength=len(column.levels))
    else:
        place = np.clip(np.searchsorted(bins.edges, x) - 1, 0, len(bins.edges) - 2)
        count = np.bincount(place, minlength=len(bins.edges) - 1)
    return np.asarray(count / max(len(x), 1))


def _shares(missing: float | None, X: np.ndarray | None, j: int) -> str | None:
    """How often the cell is missing, in words."""
    rows = 0.0 if X is None else float(np.isnan(X[:, j]).mean())
    if not missing and not rows:
        return None
    said = f"missing {percent(missing or 0.0)}"
    return said if X is None else f"{said} (rows {percent(rows)})"
