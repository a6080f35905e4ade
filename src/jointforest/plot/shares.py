"""Distributions as shares of bins and levels, and how they are drawn: what the pictures of joints have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

from ..face.joint import Joint
from ..forest.column.distribution_kernels import cdf_rows
from ..forest.column.level_kernels import level_rows
from ..forest.column.moment_kernels import mean_variance_rows
from ..forest.forest import Forest
from ..forest.posterior.posterior import LeafPosterior, chunk_posterior
from ..leaves.circuits.soundness import leaf_of_rows
from ..model.model import Model
from ..queries.column.distribution import quantile
from ..table import values as answers
from ..table.evidence import build
from ..table.regions import Evidence
from ..table.schema import Column, Schema

BINS = 40
MOST_LEVELS = 8
TAIL = 0.005
"""Share of a column left out of the picture at either end."""
_LAST_CELL = 2**52
_FIRST_DATE, _LAST_DATE = -62135596800.0, 253402214400.0
"""Days that matplotlib can draw, in seconds since 1970."""


class Groups:
    """Groups of leaves, each as the mixture of its leaves.

    Parameters
    ----------
    model : Forest
    groups : k integer arrays
        Numbers of leaves.
    """

    def __init__(self, model: Forest, groups: Sequence[np.ndarray] | np.ndarray) -> None:
        self._model = model
        self._n = len(groups)
        self._group = np.full(len(model.leaves.log_weight), -1)
        for number, leaves in enumerate(groups):
            self._group[leaves] = number

    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        """CDF of numeric column j in each group at q points, float64 (k, q)."""
        rows, post = self._mixtures(j)
        return np.asarray(cdf_rows(self._model.columns, self._model.leaves, rows, j, post, 0, x))

    def mean(self, j: int) -> np.ndarray:
        """Mean of numeric column j in each group, float64 (k,)."""
        rows, post = self._mixtures(j)
        none = np.empty((0, 2))
        both = mean_variance_rows(self._model.columns, self._model.leaves, rows, j, post, 0, none)
        return np.asarray(both[:, 0])

    def proba(self, j: int) -> np.ndarray:
        """Probabilities of the levels of column j in each group, float64 (k, K)."""
        rows, post = self._mixtures(j)
        return np.asarray(level_rows(self._model.columns, self._model.leaves, rows, j, post, 0))

    def _mixtures(self, j: int) -> tuple[Evidence, LeafPosterior]:
        """Evidence that says nothing, and a posterior with a row for each group, of what describes column j."""
        model = self._model
        post = chunk_posterior(model, build(model.schema), 0, 1, j)
        group = self._group[leaf_of_rows(model.leaves.node_start, model.leaves.node_row)[post.leaf]]
        order = np.argsort(group, kind="stable")
        order = order[group[order] >= 0]
        start = np.searchsorted(group[order], np.arange(self._n + 1)).astype(np.int64)
        log_weight = post.log_weight[order]
        total = np.array([np.logaddexp.reduce(log_weight[a:b]) for a, b in pairwise(start)])
        return build(model.schema, n=self._n), LeafPosterior(start, post.leaf[order], log_weight, total)


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
    room = 0.1 * (high - low)  # of the axis
    if low - room + column.origin < _FIRST_DATE or high + room + column.origin > _LAST_DATE:
        raise ValueError(
            f"column {column.name!r}: dates from {answers.scalar(column, low)} to {answers.scalar(column, high)}, and "
            "matplotlib draws the years 1 to 9999; narrow the evidence, or leave the column out"
        )
    return answers.values(column, numbers)


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


def forest_of(joint: Any) -> Forest:
    """The forest of a joint; a TypeError for anything else, above all its learner."""
    if not isinstance(joint, Joint):
        raise TypeError(f"expected a Joint (of a fitted learner its joint_), got {type(joint).__name__}")
    return joint.model.forest_for("this picture")


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
