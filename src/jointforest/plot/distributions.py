"""Distributions of single columns: the CDF beside the data's, and the posteriors of all columns beside the prior's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from ..api.joint import Joint
from ..api.posterior import Posterior
from ..data.build_evidence import build
from ..data.evidence import Evidence
from ..data.frames import encode
from ..data.schema import Column, Schema
from ..data.values import scalar, values
from ..models.base import Distribution
from ..models.box_forest.box_trees import BoxTrees

# ---- Distributions as shares of bins and levels, and how they are drawn: what the pictures of joints have in common.

BINS = 40
MOST_LEVELS = 8
TAIL = 0.005
"""Share of a column left out of the picture at either end."""
_LAST_CELL = 2**52
_FIRST_DATE, _LAST_DATE = -62135596800.0, 253402214400.0
"""Days that matplotlib can draw, in seconds since 1970."""


def span(model: Distribution, evidence: Evidence, j: int) -> tuple[float, float]:
    """Numbers between which 99 % of a numeric column lie, given one row of evidence."""
    low, high = model.observe(evidence).quantile(j, np.array([TAIL, 1 - TAIL]))[0]
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
    return joint.distribution.box_trees_for("this picture")


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


_POINTS = 400
_MOST_CELLS = 2000
_TAILS = np.array([0.05, 0.95])


def cdf(distribution: Joint | Posterior, column: str, frame: Any = None, ax: Axes | None = None) -> Axes:
    """The model's cumulative distribution of a column, and the empirical one of a table.

    Parameters
    ----------
    distribution : Joint, or Posterior of one row of evidence
    column : str
        A column of numbers or dates.
    frame : frame, optional
        Rows to compare with; its missing cells are left out. Of a posterior, give the rows that meet its evidence.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        Its first line is the model's CDF; values that hold mass (atoms, the cells of a grid) are steps. The second,
        with a frame, is the data's.

    Raises
    ------
    ValueError
        If the column has levels, there are several rows of evidence or their probability is 0, or the frame has no
        value of the column.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import jointforest as jf
    >>> from jointforest import plot
    >>> penguins = jf.datasets.load_penguins()
    >>> joint = jf.JointTree(random_state=0).fit(penguins).joint_
    >>> ax = plot.cdf(joint, "body_mass_g", penguins)
    >>> [line.get_label() for line in ax.lines]
    ['model', 'data']
    """
    posterior = _one(distribution.given() if isinstance(distribution, Joint) else distribution)
    model, evidence = posterior.weighed.model, posterior.weighed.evidence
    j, found = model.schema.index(column), model.schema[column]
    if found.is_categorical:
        raise ValueError(f"column {column!r} is {found.kind}: it has no CDF; plot.posterior shows levels")
    data = np.empty(0)
    if frame is not None:
        cells = encode(model.schema, frame)[0][:, j]
        data = np.sort(cells[~np.isnan(cells)])
        if not len(data):
            raise ValueError(f"column {column!r}: the frame has no value of it")
    ax = plt.subplots()[1] if ax is None else ax
    low, high = span(model, evidence, j)
    if len(data):
        low, high = min(low, data[0]), max(high, data[-1])
    x, is_step = _points(found.step, found.center, np.array(found.atoms), low, high)
    up_to = model.observe(evidence).cdf(j, x)[0]
    ax.plot(places(found, x), up_to, drawstyle="steps-post" if is_step else "default", label="model")
    if len(data):
        ends, share = np.append(data, x[-1]), np.append(np.arange(1, len(data) + 1) / len(data), 1.0)
        ends, share = np.append(x[0], ends), np.append(0.0, share)
        ax.plot(places(found, ends), share, drawstyle="steps-post", color="black", linewidth=0.8, label="data")
    ax.set(xlabel=short(column), ylabel="CDF", ylim=(-0.02, 1.02))
    ax.legend()
    return ax


def posterior(posterior: Posterior, columns: Sequence[str] | None = None) -> Figure:
    """The posterior of every column, a small panel each, with what was known before in grey.

    Parameters
    ----------
    posterior : Posterior of one row of evidence
    columns : sequence of str, optional
        Default: all.

    Returns
    -------
    Figure
        One axes a column. Numbers: shares of bins, the mean as a line, the interval of equal tails that holds 90 % as
        a bar below. Levels: bars; of many the 8 most probable, before or after.

    Raises
    ------
    ValueError
        If there are several rows of evidence, their probability is 0, or a column is unknown.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import jointforest as jf
    >>> from jointforest import plot
    >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> figure = plot.posterior(joint.given("body_mass_g > 5000"))
    >>> [ax.get_title() for ax in figure.axes][:2]
    ['species', 'island']
    """
    model, evidence = _one(posterior).weighed.model, posterior.weighed.evidence
    numbers = chosen(model.schema, columns, len(model.schema.columns))
    wide = min(len(numbers), 4)
    high = math.ceil(len(numbers) / wide)
    figure = plt.figure(figsize=(2.6 * wide, 2.0 * high), layout="constrained")
    before = build(model.schema)
    for place, j in enumerate(numbers):
        ax = figure.add_subplot(high, wide, place + 1)
        ax.set_title(short(model.schema.names[j]), fontsize=9)
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
        if model.schema.columns[j].is_categorical:
            _draw_levels(ax, model, j, before, evidence)
        else:
            _draw_numbers(ax, model, j, before, evidence)
    return figure


def _one(posterior: Posterior) -> Posterior:
    """The posterior, if it can be drawn."""
    if not isinstance(posterior, Posterior):
        raise TypeError(f"expected a Posterior, such as joint.given(...), got {type(posterior).__name__}")
    if len(posterior) != 1:
        raise ValueError(
            f"a picture is of one row of evidence, got {len(posterior)}; pick one: given(frame[i : i + 1])"
        )
    posterior.weighed.check()
    if np.isnan(posterior.weighed.background_share[0]):  # of a frame that is no error
        raise ValueError("the evidence has probability 0: there is nothing to draw; drop or widen one of its values")
    return posterior


def _points(step: float, center: float, atoms: np.ndarray, low: float, high: float) -> tuple[np.ndarray, bool]:
    """Points at which a CDF is drawn, and whether it is flat between them."""
    if step > 0.0 and (high - low) / step <= _MOST_CELLS:
        first, last = round((low - center) / step), round((high - center) / step)
        return center + np.arange(first - 1, last + 2) * step, True
    margin = 0.02 * (high - low) or max(abs(low), 1.0) * 1e-3
    atoms = atoms[(atoms >= low) & (atoms <= high)]
    below = atoms - 0.5 * step if step > 0.0 else np.nextafter(atoms, -np.inf)
    return np.unique(np.concatenate([np.linspace(low - margin, high + margin, _POINTS), below, atoms])), False


def _draw_numbers(ax: Axes, model: Distribution, j: int, before: Evidence, after: Evidence) -> None:
    column = model.schema.columns[j]
    lows, highs = zip(span(model, before, j), span(model, after, j), strict=True)
    edges = bin_edges(column, min(lows), max(highs))
    for evidence, look in ((before, {"color": "0.8", "fill": True}), (after, {"color": "tab:blue", "linewidth": 1.3})):
        draw_bins(ax, column, edges, np.diff(model.observe(evidence).cdf(j, edges)[0]), **look)
    mean, tails = model.observe(after).moments(j)[0], model.observe(after).quantile(j, _TAILS)[0]
    middle, low, high = places(column, np.concatenate([mean, tails]))
    ax.axvline(middle, color="tab:blue", linewidth=0.8, linestyle="--")
    ax.plot([low, high], [0, 0], color="tab:orange", linewidth=3, solid_capstyle="butt", clip_on=False)
    ax.set_yticks([])


def _draw_levels(ax: Axes, model: Distribution, j: int, before: Evidence, after: Evidence) -> None:
    prior, share = (model.observe(evidence).level_probabilities(j)[0] for evidence in (before, after))
    most = np.argsort(-np.maximum(prior, share), kind="stable")[:MOST_LEVELS]
    order = np.sort(most)[::-1]  # the first level on top
    at = np.arange(len(order))
    ax.barh(at, prior[order], height=0.8, color="0.8")
    ax.barh(at, share[order], height=0.4, color="tab:blue")
    ax.set_yticks(at, [short(model.schema.columns[j].levels[code], 14) for code in order])
    ax.set_xlim(0, 1)
