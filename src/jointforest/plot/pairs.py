"""Two columns together, beside a table; and which columns depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..api.joint import Joint
from ..api.posterior import Posterior
from ..data.conditions import AnyOf, PerRow
from ..data.evidence import intersect
from ..data.frames import encode
from ..data.schema import Column
from ..explorer.subject import Subject
from ..inference.explanation.rules import side_condition
from ..models.base import PosteriorState
from ..report.dependence import dependence as dependence_of
from .distributions import (
    BINS,
    bin_edges,
    check_joint,
    draw_ridges,
    format_dates,
    one_posterior,
    places,
    span,
    title_of,
)
from .style import SHADES, clean, in_percent, new_axes, short

MOST_LEVELS = 10
"""Levels of a column that are drawn: the most probable."""
MOST_COLUMNS = 30
_TAILS = np.array([0.05, 0.95])
_BRIGHT = 0.995
"""Share of the cells that the scale of shades covers; what is above has the darkest shade."""


def pair(distribution: Joint | Posterior, a: str, b: str, frame: Any = None, ax: Axes | None = None) -> Axes:
    """The joint distribution of two columns; with a table, the same of its rows beside it.

    Parameters
    ----------
    distribution : Joint, or Posterior of one row of evidence
    a, b : str
        Two columns of numbers or dates: shades of the probability of cells, a across and b upwards. A column of levels
        and one of numbers: the distribution of the number given each level. Two columns of levels: the probability of
        each level of b given each level of a; lines sum to 100 % if all levels are drawn.
    frame : frame, optional
        Rows to compare with. Of a posterior, give the rows that meet its evidence.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        That of the joint. With a frame of two columns of one kind a second axes of the same figure shows the table, on
        the same scale; of a number given levels the table is an outline. Of many levels the 10 most probable.

    Raises
    ------
    ValueError
        If a column is unknown, both are the same, or the evidence has probability 0.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import jointforest as jf
    >>> from jointforest import plot
    >>> penguins = jf.datasets.load_penguins()
    >>> joint = jf.JointTree(random_state=0).fit(penguins).joint_
    >>> ax = plot.pair(joint, "flipper_length_mm", "body_mass_g", penguins)
    >>> [ax.get_title() for ax in ax.figure.axes][:2]
    ['joint', 'table']
    """
    known = one_posterior(distribution.given() if isinstance(distribution, Joint) else distribution)
    state, schema = known.state, known.state.distribution.schema
    j, k = schema.index(a), schema.index(b)
    if j == k:
        raise ValueError(f"pair: column {a!r} twice; name two columns, or use plot.marginal")
    rows = None if frame is None else encode(schema, frame)[0]
    first, second = schema.columns[j], schema.columns[k]
    if first.is_categorical and second.is_categorical:
        return _levels(state, j, k, rows, ax, title_of(known))
    if first.is_categorical or second.is_categorical:
        level, number = (j, k) if first.is_categorical else (k, j)
        return _numbers_of_levels(state, level, number, rows, ax, title_of(known))
    return _numbers(state, j, k, rows, ax, title_of(known))


def _beside(ax: Axes | None, rows: np.ndarray | None, wide: float, high: float) -> tuple[Axes, Axes | None]:
    """Axes of the joint, and of the table if there is one."""
    if rows is None:
        return (new_axes(wide, high) if ax is None else ax), None
    if ax is not None:
        return ax, ax.inset_axes((1.08, 0.0, 1.0, 1.0), sharex=ax, sharey=ax)
    _, (first, second) = plt.subplots(1, 2, figsize=(1.8 * wide, high), sharex=True, sharey=True, layout="constrained")
    return first, second


def _numbers(state: PosteriorState, j: int, k: int, rows: np.ndarray | None, ax: Axes | None, title: str) -> Axes:
    """Shades of cells."""
    schema = state.distribution.schema
    edges = [bin_edges(schema.columns[i], *span(state.distribution, state.evidence, i), _bins(rows)) for i in (j, k)]
    mass = np.maximum(_cells(state, j, k, *edges), 0.0)
    top = float(np.quantile(mass[mass > 0.0], _BRIGHT)) if (mass > 0.0).any() else 1.0
    ax, beside = _beside(ax, rows, 4.6, 3.9)
    across, upwards = (places(schema.columns[i], one) for i, one in zip((j, k), edges, strict=True))
    image = ax.pcolormesh(across, upwards, mass.T, cmap=SHADES, vmin=0.0, vmax=top, rasterized=True)
    axes = [ax]
    if beside is not None and rows is not None:
        x = rows[~np.isnan(rows[:, [j, k]]).any(axis=1)]
        share = np.histogram2d(x[:, j], x[:, k], edges)[0] / max(len(x), 1)
        beside.pcolormesh(across, upwards, share.T, cmap=SHADES, vmin=0.0, vmax=top, rasterized=True)
        axes.append(beside)
        ax.set_title("joint")
        beside.set_title("table")
        beside.tick_params(labelleft=False)
    for one in axes:
        one.set_xlabel(short(schema.names[j]))
        clean(one)
    ax.set_ylabel(short(schema.names[k]))
    for column, axis in ((schema.columns[j], "x"), (schema.columns[k], "y")):
        if column.kind == "datetime":
            format_dates(ax, axis)
    scale = ax.figure.colorbar(image, ax=axes[-1], extend="max", shrink=0.9)
    scale.set_label("probability of a cell")
    in_percent(scale.ax.yaxis, top)
    _write_title(ax, beside, title)
    return ax


def _bins(rows: np.ndarray | None) -> int:
    """Most bins of a column: few of a table with few rows, so that its cells are not all chance."""
    return BINS if rows is None else int(np.clip(np.sqrt(len(rows)), 12, BINS))


def _write_title(ax: Axes, beside: Axes | None, title: str) -> None:
    """The evidence above the axes; above both where there is a table."""
    if title:
        ax.set_title(title if beside is None else f"joint {title}", fontsize=10)


def _cells(state: PosteriorState, j: int, k: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Probability of the cells between edges, (bins of a, bins of b)."""
    schema = state.distribution.schema
    column = schema.columns[j]
    said = [AnyOf(side_condition(column, lo, hi)) for lo, hi in zip(a[:-1].tolist(), a[1:].tolist(), strict=True)]
    rows = intersect(schema, state.evidence, {schema.names[j]: PerRow(tuple(said))})
    return _weights(state, rows)[:, None] * np.nan_to_num(np.diff(state.distribution.observe(rows).cdf(k, b), axis=1))


def _weights(state: PosteriorState, rows: Any) -> np.ndarray:
    """Probability of each row of narrower evidence given the evidence."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(
            np.exp(state.distribution.log_density(rows) - state.distribution.log_density(state.evidence))
        )


def _of_levels(state: PosteriorState, j: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """The most probable levels in their order, their probabilities, and evidence that each is the case."""
    schema = state.distribution.schema
    share = state.level_probabilities(j)[0]
    some = np.sort(np.argsort(-share, kind="stable")[:MOST_LEVELS])
    some = some[share[some] > 0.0]
    said = tuple(AnyOf(schema.columns[j].levels[code]) for code in some.tolist())
    return some, share[some], intersect(schema, state.evidence, {schema.names[j]: PerRow(said)})


def _names(column: Column, codes: np.ndarray, share: np.ndarray | None = None) -> list[str]:
    names = [short(column.levels[code], 20) for code in codes.tolist()]
    return names if share is None else [f"{name} ({_about(p)})" for name, p in zip(names, share.tolist(), strict=True)]


def _about(share: float) -> str:
    """A share in whole per cent."""
    return f"{share:.0%}" if share >= 0.005 else "<1%"


def _numbers_of_levels(
    state: PosteriorState, level: int, number: int, rows: np.ndarray | None, ax: Axes | None, title: str
) -> Axes:
    """The distribution of a number given each level, one above the other."""
    schema = state.distribution.schema
    codes, share, given = _of_levels(state, level)
    column, state = schema.columns[number], state.distribution.observe(given)
    edges = bin_edges(column, *span(state.distribution, state.evidence, number), _bins(rows))
    mass = np.diff(state.cdf(number, edges), axis=1)
    data = None
    if rows is not None:
        known = [rows[rows[:, level] == code, number] for code in codes.tolist()]
        known = [x[~np.isnan(x)] for x in known]
        data = np.array([np.histogram(x, edges)[0] / max(len(x), 1) for x in known])
    ax = new_axes(6.6, 1.0 + 0.55 * len(codes)) if ax is None else ax
    draw_ridges(ax, column, edges, mass, state.moments(number)[0], state.quantile(number, _TAILS), data)
    ax.set_yticks(np.arange(len(codes)), _names(schema.columns[level], codes, share))
    ax.set_ylim(len(codes) - 0.6, -1.0)
    ax.set(xlabel=short(column.name), ylabel=short(schema.names[level]), title=title)
    clean(ax)
    return ax


def _levels(state: PosteriorState, j: int, k: int, rows: np.ndarray | None, ax: Axes | None, title: str) -> Axes:
    """Probabilities of the levels of column k given those of column j, written into their cells."""
    schema = state.distribution.schema
    codes, share, given = _of_levels(state, j)
    others = _of_levels(state, k)[0]
    found = state.distribution.observe(given).level_probabilities(k)[:, others]
    wide, high = 1.9 + 0.55 * len(others), 1.3 + 0.36 * len(codes)
    ax, beside = _beside(ax, rows, wide, high)
    panels = [(ax, found)]
    if beside is not None and rows is not None:
        count = np.array([[np.sum((rows[:, j] == a) & (rows[:, k] == b)) for b in others] for a in codes], float)
        n = np.array([np.sum((rows[:, j] == a) & ~np.isnan(rows[:, k])) for a in codes], float)
        panels.append((beside, count / np.maximum(n, 1.0)[:, None]))
        ax.set_title("joint")
        beside.set_title("table")
        beside.tick_params(labelleft=False)
    for one, p in panels:
        one.imshow(p, cmap=SHADES, vmin=0.0, vmax=1.0, aspect="auto")
        for (line, place), value in np.ndenumerate(p):
            colour = "white" if value > 0.6 else "black"
            text = f"{100 * value:.0f}" if value >= 0.005 else "<1" if value > 0.0 else "0"
            one.text(place, line, text, ha="center", va="center", fontsize=8, color=colour)
        one.set_xticks(np.arange(len(others)), _names(schema.columns[k], others), rotation=45, ha="right")
        one.set_xlabel(f"{short(schema.names[k])}, in % of the line")
        one.spines[:].set_visible(False)
        one.tick_params(length=0)
    ax.set_yticks(np.arange(len(codes)), _names(schema.columns[j], codes, share))
    ax.set_ylabel(short(schema.names[j]))
    _write_title(ax, beside, title)
    return ax


def dependence(joint: Joint, columns: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """How strongly each two columns depend on each other; columns that hang together stand side by side.

    Parameters
    ----------
    joint : Joint
    columns : sequence of str, optional
        Default: the 30 columns that depend most on others.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        With an image. A strength is sqrt(1 - exp(-2 I)) of the mutual information I in nats: 0 if the columns are
        independent, and of normal columns the size of their correlation. It is estimated from 10,000 rows drawn from
        the joint, with numbers in 16 bins.

    Raises
    ------
    ValueError
        If there are fewer than two columns, or one is unknown.

    Notes
    -----
    Columns are ordered by average linkage of one minus the strength, with the optimal order of leaves (Bar-Joseph,
    Gifford, Jaakkola, "Fast optimal leaf ordering for hierarchical clustering", 2001).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import jointforest as jf
    >>> from jointforest import plot
    >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> ax = plot.dependence(joint)
    >>> len(ax.get_xticklabels())
    7
    """
    check_joint(joint)
    if columns is not None:
        joint = joint.select(*columns)
    found = dependence_of(Subject(joint))
    if found is None:
        raise ValueError("dependence: there is one column only; name at least two")
    strength = found.strength.copy()
    np.fill_diagonal(strength, 0.0)
    keep = np.sort(np.argsort(-strength.max(axis=1), kind="stable")[:MOST_COLUMNS])
    strength = strength[np.ix_(keep, keep)]
    strength = np.clip((strength + strength.T) / 2.0, 0.0, 1.0)
    far = 1.0 - strength
    np.fill_diagonal(far, 0.0)
    order = leaves_list(linkage(squareform(far, checks=False), "average", optimal_ordering=True))
    names = [short(found.names[keep[i]], 22) for i in order.tolist()]
    shown = strength[np.ix_(order, order)]
    np.fill_diagonal(shown, np.nan)
    n = len(names)
    ax = new_axes(2.6 + 0.36 * n, 1.9 + 0.32 * n) if ax is None else ax
    image = ax.imshow(shown, cmap=SHADES, vmin=0.0, vmax=1.0, aspect="auto")
    if n <= 24:
        for (line, place), value in np.ndenumerate(shown):
            if value >= 0.095:
                colour = "white" if value > 0.6 else "black"
                ax.text(place, line, f"{value:.1f}".lstrip("0"), ha="center", va="center", fontsize=7, color=colour)
    ax.set_xticks(np.arange(n), names, rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(np.arange(n), names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    scale = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    scale.set_label("strength of dependence")
    ax.set_title("Strength of dependence\n0: independent, 1: one determines the other", loc="left", fontsize=10)
    return ax
