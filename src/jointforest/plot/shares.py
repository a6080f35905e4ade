"""Distributions as shares of bins and levels, and how they are drawn: what the pictures of joints have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

from ..explain.box_trees import BoxTrees, box_trees
from ..face.joint import Joint
from ..model.model import Model
from ..queries.column.distribution import quantile
from ..table.evidence import Evidence
from ..table.schema import Column, Schema
from ..table.values import scalar, values

BINS = 40
MOST_LEVELS = 8
TAIL = 0.005
"""Share of a column left out of the picture at either end."""
_LAST_CELL = 2**52
_FIRST_DATE, _LAST_DATE = -62135596800.0, 253402214400.0
"""Days that matplotlib can draw, in seconds since 1970."""


def span(model: Model, evidence: Evidence, j: int) -> tuple[float, float]:
    """Numbers between which 99 % of a numeric column lie, given one row of evidence."""
    low, high = quantile(model, evidence, j, np.array([TAIL, 1 - TAIL]))[0]
    return float(low), float(high)


def bin_edges(column: Column, low: float, high: float) -> np.ndarray:
    """Edges of at most 40 bins that hold the numbers from low to high; on a grid, of whole cells.

    Far out, where cells are narrower than the numbers' own steps, a grid is as none.
    """
    if column.step == 0.0 or max(abs(low - column.center), abs(high - column.center)) > _LAST_CELL * column.step:
        width = high - low or max(abs(low), 1.0) * 1e-3
        return np.linspace(low - 0.02 * width, high + 0.02 * width, BINS + 1)
    first, last = (round((end - column.center) / column.step) for end in (low, high))
    cells = -(-(last - first + 1) // BINS)
    n = -(-(last - first + 1) // cells)
    return column.center + (first - 0.5 + cells * np.arange(n + 1)) * column.step


def places(column: Column, numbers: np.ndarray) -> Any:
    """Numbers as matplotlib is to draw them: dates as dates.

    Raises
    ------
    ValueError
        For dates that it cannot draw.
    """
    if column.kind != "datetime":
        return numbers
    low, high = float(numbers.min()), float(numbers.max())
    margin = 0.1 * (high - low)  # of the axis
    if low - margin + column.origin < _FIRST_DATE or high + margin + column.origin > _LAST_DATE:
        raise ValueError(
            f"column {column.name!r}: dates from {scalar(column, low)} to {scalar(column, high)}, and "
            "matplotlib draws the years 1 to 9999; narrow the evidence, or leave the column out"
        )
    return values(column, numbers)


def draw_bins(ax: Axes, column: Column, edges: np.ndarray, share: np.ndarray, **look: Any) -> None:
    """Shares of bins as steps."""
    ax.stairs(share, places(column, edges), **look)
    if column.kind == "datetime":
        locator = AutoDateLocator(minticks=2, maxticks=5)  # fewer, and some spans have no interval, with a warning
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def short(text: Any, most: int = 24) -> str:
    """Text cut to a length, in one line, that matplotlib takes for no formula."""
    text = " ".join(str(text).split())
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.replace("$", r"\$")


def trees_of(joint: Any) -> BoxTrees:
    """The trees of a joint; a TypeError for anything else, above all its learner."""
    if not isinstance(joint, Joint):
        raise TypeError(f"expected a Joint (of a fitted learner its joint_), got {type(joint).__name__}")
    return box_trees(joint.model, "this picture")


def chosen(schema: Schema, columns: Sequence[str] | None, most: int) -> list[int]:
    """Numbers of the columns asked for; by default the first ones.

    Raises
    ------
    ValueError
        If one is unknown, or none is named.
    """
    if columns is None:
        return list(range(min(most, len(schema.columns))))
    if isinstance(columns, str) or not isinstance(columns, Iterable) or not len(list(columns)):
        raise ValueError(f"columns must be a list of names, at least one, got {columns!r}")
    return [schema.index(name) for name in columns]
