"""Two columns together, beside a table or the boxes of leaves; and which columns depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..api.joint import Joint
from ..api.posterior import Posterior
from ..data.conditions import AnyOf, PerRow
from ..data.evidence import Evidence, build, intersect
from ..data.frames import encode
from ..data.schema import Column, Schema
from ..explorer.shown import ShownJoint
from ..inference.explanation import side_condition, tree_leaves
from ..inference.histogram import even_edges
from ..models.base import PosteriorState
from ..report.summary import find_dependence as dependence_of
from . import distributions
from .style import LEVEL_COLORS, SHADES, TABLE, clean, in_percent, new_axes, short

_MOST_LEVELS = 10
"""Levels of a column that are drawn: the most probable."""
_MOST_COLUMNS = 30
_TAILS = np.array([0.05, 0.95])
_RARE, _FEWEST = 1e-3, 5
"""Bins with a smaller probability, or fewer rows, have no mean."""
_BRIGHT = 0.995
"""Share of the cells that the scale of shades covers; what is above has the darkest shade."""


def pair(distribution: Joint | Posterior, a: str, b: str, frame: Any = None, ax: Axes | None = None) -> Axes:
    """The joint distribution of two columns; with a table, the same of its rows beside it.

    Parameters
    ----------
    distribution : Joint, or Posterior of one row of evidence
    a, b : str
        Two columns of numbers or dates: shades of the probability of cells, a across and b upwards, and lines for the
        mean and the 90 % interval of b given a. A column of levels and one of numbers: the distribution of the number
        given each level. Two columns of levels: the probability of each level of b given each level of a; lines sum to
        100 % if all levels are drawn. Levels of a that have no order are sorted by the mean of the number, or by the
        probability of the second of two levels of b.
    frame : frame, optional
        Rows to compare with. Of a posterior, give the rows that satisfy its evidence.
    ax : Axes, optional

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
    >>> ax = plot.pair(joint, "flipper_length_mm", "body_mass_g", penguins)
    >>> [ax.get_title() for ax in ax.figure.axes][:2]
    ['joint', 'table']
    """
    known = distributions.one_posterior(distribution.given() if isinstance(distribution, Joint) else distribution)
    state, schema = known.state, known.state.distribution.schema
    j, k = schema.index(a), schema.index(b)
    if j == k:
        raise ValueError(f"pair: column {a!r} twice; name two columns, or use plot.marginal")
    rows = None if frame is None else encode(schema, frame)[0]
    first, second = schema.columns[j], schema.columns[k]
    if first.is_categorical and second.is_categorical:
        return _p_given(state, j, k, rows, ax, distributions.title_of(known))
    if first.is_categorical or second.is_categorical:
        level, number = (j, k) if first.is_categorical else (k, j)
        return _numbers_of_levels(state, level, number, rows, ax, distributions.title_of(known))
    return _cell_shades(state, j, k, rows, ax, distributions.title_of(known))


def _axes_beside(ax: Axes | None, rows: np.ndarray | None, wide: float, high: float) -> tuple[Axes, Axes | None]:
    """Axes of the joint, and of the table if there is one."""
    if rows is None:
        return (new_axes(wide, high) if ax is None else ax), None
    if ax is not None:
        return ax, ax.inset_axes((1.08, 0.0, 1.0, 1.0), sharex=ax, sharey=ax)
    _, (first, second) = plt.subplots(1, 2, figsize=(1.8 * wide, high), sharex=True, sharey=True, layout="constrained")
    return first, second


def _cell_shades(state: PosteriorState, j: int, k: int, rows: np.ndarray | None, ax: Axes | None, title: str) -> Axes:
    """Shades of cells."""
    schema = state.distribution.schema
    edges = [
        even_edges(schema.columns[i], *distributions.span(state.distribution, state.evidence, i), _most_bins(rows))
        for i in (j, k)
    ]
    mass = np.maximum(_cell_probabilities(state, j, k, *edges), 0.0)
    top = float(np.quantile(mass[mass > 0.0], _BRIGHT)) if (mass > 0.0).any() else 1.0
    ax, beside = _axes_beside(ax, rows, 4.6, 3.9)
    across, upwards = (distributions.places(schema.columns[i], one) for i, one in zip((j, k), edges, strict=True))
    image = ax.pcolormesh(across, upwards, mass.T, cmap=SHADES, vmin=0.0, vmax=top, rasterized=True)
    _draw_curves(ax, schema, (j, k), edges, *_curves(state, j, k, edges[0]))
    axes = [ax]
    if beside is not None and rows is not None:
        x = rows[~np.isnan(rows[:, [j, k]]).any(axis=1)]
        share = np.histogram2d(x[:, j], x[:, k], edges)[0] / max(len(x), 1)
        beside.pcolormesh(across, upwards, share.T, cmap=SHADES, vmin=0.0, vmax=top, rasterized=True)
        _draw_curves(beside, schema, (j, k), edges, *_curves_of_rows(x[:, j], x[:, k], edges[0]))
        axes.append(beside)
    for one in axes:
        one.set_xlabel(short(schema.names[j]))
        clean(one)
    ax.set_ylabel(short(schema.names[k]))
    for column, axis in ((schema.columns[j], "x"), (schema.columns[k], "y")):
        if column.kind == "datetime":
            distributions.format_dates(ax, axis)
    scale = ax.figure.colorbar(image, ax=axes[-1], extend="max", shrink=0.9)
    scale.set_label("probability of a cell")
    in_percent(scale.ax.yaxis, top)
    ax.legend(loc="upper left", frameon=False, fontsize=8)
    both = f"{short(schema.names[j])} and {short(schema.names[k])}"
    _write_titles(ax, beside, f"{both} {title}".strip())
    return ax


def _curves(state: PosteriorState, j: int, k: int, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (B,) and 90 % interval (B, 2) of column k given each bin of column j; NaN where it has next to no mass."""
    rows = _in_bins(state, j, cuts)
    in_bins = state.distribution.observe(rows)
    weight, mean, ends = _weights(state, rows), in_bins.moments(k)[0], in_bins.quantile(k, _TAILS)
    is_rare = weight < _RARE
    return np.where(is_rare, np.nan, mean), np.where(is_rare[:, None], np.nan, ends)


def _curves_of_rows(x: np.ndarray, y: np.ndarray, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same of the rows of a table; NaN of bins with few rows."""
    place = np.searchsorted(cuts, x) - 1
    mean, ends = np.full(len(cuts) - 1, np.nan), np.full((len(cuts) - 1, 2), np.nan)
    for b in range(len(cuts) - 1):
        mine = y[place == b]
        if len(mine) >= max(_FEWEST, _RARE * len(x)):
            mean[b], ends[b] = mine.mean(), np.quantile(mine, _TAILS)
    return mean, ends


def _draw_curves(
    ax: Axes, schema: Schema, pair: tuple[int, int], edges: list[np.ndarray], mean: np.ndarray, ends: np.ndarray
) -> None:
    """Mean and interval of the second column over the middle of the first column's bins, within the second's edges."""
    across = distributions.places(schema.columns[pair[0]], 0.5 * (edges[0][:-1] + edges[0][1:]))
    lines = [(mean, 1.4, "-", f"mean of {short(schema.names[pair[1]])}"), (ends[:, 0], 0.8, ":", "90% interval")]
    for values, width, style, label in [*lines, (ends[:, 1], 0.8, ":", None)]:
        shown = (values >= edges[1][0]) & (values <= edges[1][-1])
        if shown.any():
            upwards = distributions.places(schema.columns[pair[1]], values[shown])
            ax.plot(across[shown], upwards, color=TABLE, linewidth=width, linestyle=style, label=label)


def _most_bins(rows: np.ndarray | None) -> int:
    """Most bins of a column: few of a table with few rows, so that its cells are not all chance."""
    return distributions.BINS if rows is None else int(np.clip(np.sqrt(len(rows)), 12, distributions.BINS))


def _what(schema: Schema, of: int, by: int, title: str) -> str:
    """What is shown: one column given the other one, and the evidence."""
    evidence = f" and{title.removeprefix('given')}" if title else ""
    return f"{short(schema.names[of])} given {short(schema.names[by])}{evidence}"


def _sorted(column: Column, by: np.ndarray) -> np.ndarray:
    """The order of a column's levels, shown from top to bottom: their own, or by what is shown of them."""
    return np.arange(len(by)) if column.is_ordered or column.kind == "boolean" else np.argsort(by, kind="stable")


def _write_titles(ax: Axes, beside: Axes | None, what: str) -> None:
    """What is shown, above the axes; above the figure where there is a table beside it."""
    if beside is None:
        ax.set_title(what, fontsize=11, loc="left")
        return
    ax.set_title("joint", fontsize=10)
    beside.set_title("table", fontsize=10)
    beside.tick_params(labelleft=False)
    if len(ax.figure.axes) <= 3:  # the two, and a scale of colours: a figure of our own
        ax.figure.suptitle(what, fontsize=11)


def _cell_probabilities(state: PosteriorState, j: int, k: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Probability of the cells between edges, (bins of a, bins of b)."""
    rows = _in_bins(state, j, a)
    return _weights(state, rows)[:, None] * np.nan_to_num(np.diff(state.distribution.observe(rows).cdf(k, b), axis=1))


def _in_bins(state: PosteriorState, j: int, cuts: np.ndarray) -> Evidence:
    """The evidence, and a row for each bin of column j that its value lies there."""
    schema = state.distribution.schema
    column = schema.columns[j]
    said = [AnyOf(side_condition(column, lo, hi)) for lo, hi in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]
    return intersect(schema, state.evidence, {schema.names[j]: PerRow(tuple(said))})


def _weights(state: PosteriorState, rows: Evidence) -> np.ndarray:
    """Probability of each row of narrower evidence given the evidence."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(
            np.exp(state.distribution.log_density(rows) - state.distribution.log_density(state.evidence))
        )


def _likeliest_levels(state: PosteriorState, j: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """The most probable levels in their order, their probabilities, and evidence that each is the case."""
    schema = state.distribution.schema
    share = state.level_probabilities(j)[0]
    some = np.sort(np.argsort(-share, kind="stable")[:_MOST_LEVELS])
    some = some[share[some] > 0.0]
    said = tuple(AnyOf(schema.columns[j].levels[code]) for code in some.tolist())
    return some, share[some], intersect(schema, state.evidence, {schema.names[j]: PerRow(said)})


def _level_names(column: Column, codes: np.ndarray, share: np.ndarray | None = None) -> list[str]:
    names = [short(column.levels[code], 20) for code in codes.tolist()]
    return names if share is None else [f"{name} ({_rate(p)})" for name, p in zip(names, share.tolist(), strict=True)]


def _rate(share: float) -> str:
    """A share in whole per cent."""
    return f"{share:.0%}" if share >= 0.005 else "<1%"


def _numbers_of_levels(
    state: PosteriorState, level: int, number: int, rows: np.ndarray | None, ax: Axes | None, title: str
) -> Axes:
    """The distribution of a number given each level, one above the other."""
    schema = state.distribution.schema
    codes, share, given = _likeliest_levels(state, level)
    column, of_levels = schema.columns[number], state.distribution.observe(given)
    edges = even_edges(column, *distributions.span(state.distribution, state.evidence, number), _most_bins(rows))
    mass, mean, ends = (
        np.diff(of_levels.cdf(number, edges), axis=1),
        of_levels.moments(number)[0],
        of_levels.quantile(number, _TAILS),
    )
    order = _sorted(schema.columns[level], mean)
    codes, share = codes[order], share[order]
    data = None
    if rows is not None:
        known = [rows[rows[:, level] == code, number] for code in codes.tolist()]
        known = [x[~np.isnan(x)] for x in known]
        data = np.array([np.histogram(x, edges)[0] / max(len(x), 1) for x in known])
    ax = new_axes(6.6, 1.0 + 0.55 * len(codes)) if ax is None else ax
    distributions.draw_ridges(ax, column, edges, mass[order], mean[order], ends[order], data)
    ax.set_yticks(np.arange(len(codes)), _level_names(schema.columns[level], codes, share))
    ax.set_ylim(len(codes) - 0.6, -1.0)
    ax.set(xlabel=short(column.name), ylabel=short(schema.names[level]))
    ax.set_title(_what(schema, number, level, title), fontsize=11, loc="left", pad=22)
    clean(ax)
    return ax


def _p_given(state: PosteriorState, j: int, k: int, rows: np.ndarray | None, ax: Axes | None, title: str) -> Axes:
    """Probabilities of the levels of column k given those of column j, written into their cells."""
    schema = state.distribution.schema
    codes, share, given = _likeliest_levels(state, j)
    others = _likeliest_levels(state, k)[0]
    found = state.distribution.observe(given).level_probabilities(k)[:, others]
    order = _sorted(schema.columns[j], -found[:, -1] if len(others) == 2 else np.arange(len(codes)))
    codes, share, found = codes[order], share[order], found[order]
    wide, high = 1.9 + 0.55 * len(others), 1.3 + 0.36 * len(codes)
    ax, beside = _axes_beside(ax, rows, wide, high)
    panels = [(ax, found)]
    if beside is not None and rows is not None:
        count = np.array([[np.sum((rows[:, j] == a) & (rows[:, k] == b)) for b in others] for a in codes], float)
        n = np.array([np.sum((rows[:, j] == a) & ~np.isnan(rows[:, k])) for a in codes], float)
        panels.append((beside, count / np.maximum(n, 1.0)[:, None]))
    for one, p in panels:
        one.imshow(p, cmap=SHADES, vmin=0.0, vmax=1.0, aspect="auto")
        for (line, place), value in np.ndenumerate(p):
            colour = "white" if value > 0.6 else "black"
            text = f"{100 * value:.0f}" if value >= 0.005 else "<1" if value > 0.0 else "0"
            one.text(place, line, text, ha="center", va="center", fontsize=8, color=colour)
        one.set_xticks(np.arange(len(others)), _level_names(schema.columns[k], others), rotation=45, ha="right")
        one.set_xlabel(f"{short(schema.names[k])}, % of the line")
        one.spines[:].set_visible(False)
        one.tick_params(length=0)
    ax.set_yticks(np.arange(len(codes)), _level_names(schema.columns[j], codes, share))
    ax.set_ylabel(short(schema.names[j]))
    _write_titles(ax, beside, _what(schema, k, j, title))
    return ax


def dependence(joint: Joint, columns: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """How strongly each two columns depend on each other; columns that depend on each other stand side by side.

    Parameters
    ----------
    joint : Joint
    columns : sequence of str, optional
        Default: the 30 columns that depend most on others.
    ax : Axes, optional

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
    >>> ax = plot.dependence(joint)
    >>> len(ax.get_xticklabels())
    7
    """
    distributions.check_joint(joint)
    if columns is not None:
        joint = joint.select(*columns)
    found = dependence_of(ShownJoint(joint))
    if found is None:
        raise ValueError("dependence: there is one column only; name at least two")
    strength = found.strength.copy()
    np.fill_diagonal(strength, 0.0)
    keep = np.sort(np.argsort(-strength.max(axis=1), kind="stable")[:_MOST_COLUMNS])
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


# ---- Two numeric columns and a class: the leaves' boxes over the density.


_PIXELS = 150


def regions(joint: Joint, x: str, y: str, target: str | None = None, frame: Any = None, ax: Axes | None = None) -> Axes:
    """The boxes of a tree's leaves over the density of two columns, the rows of a table coloured by class.

    Parameters
    ----------
    joint : Joint
        Of several trees the boxes are the first one's; the density is always that of all trees.
    x, y : str
        Two numeric columns. All other columns are summed over: the boxes of leaves that differ in other
        columns overlap.
    target : str, optional
        A column with levels: boxes are tinted in the colour of their most probable level, rows drawn in that of their
        own.
    frame : frame, optional
        Rows to draw.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        With an image (the density, darker where it is higher, on a scale of square roots), one rectangle a leaf, and
        one scatter a level that occurs (one for all rows without a target).

    Raises
    ------
    ValueError
        If a column is unknown, x or y has levels or dates, both are the same, or target has no levels.

    References
    ----------
    D. Nyga, M. Picklum, T. Schierenbeck, M. Beetz, "Joint Probability Trees", 2023, Figure 1.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> penguins = jf.datasets.load_penguins()[["species", "flipper_length_mm", "bill_length_mm"]]
    >>> joint = jf.JointTree(random_state=0).fit(penguins).joint_
    >>> ax = plot.regions(joint, "flipper_length_mm", "bill_length_mm", "species", penguins)
    >>> len(ax.patches) == joint.n_leaves, [dots.get_label() for dots in ax.collections]
    (True, ['Adelie', 'Chinstrap', 'Gentoo'])
    """
    trees, schema = distributions.trees_of(joint, "regions"), joint.schema
    axes = [schema.index(x), schema.index(y)]
    if x == y:
        raise ValueError(f"x and y are both column {x!r}: regions are of two columns; plot.cdf shows one")
    for j in axes:
        column = schema.columns[j]
        if column.is_categorical or column.kind == "datetime":
            raise ValueError(f"column {column.name!r} is {column.kind}: regions are of two columns of numbers")
    if target is not None and not schema[target].is_categorical:
        raise ValueError(f"column {target!r} is {schema[target].kind}: the target must have levels")
    rows = np.empty((0, len(schema.columns))) if frame is None else encode(schema, frame)[0]
    (left, right), (low, high) = (_view(joint, j, rows[:, j]) for j in axes)
    ax = new_axes(5.4, 4.2) if ax is None else ax
    ax.imshow(
        np.sqrt(_pixel_density(joint, axes, (left, right), (low, high))),
        extent=(left, right, low, high), origin="lower", aspect="auto", cmap="Greys", alpha=0.7,
    )  # fmt: skip
    leaves = tree_leaves(trees, 0)
    tint: list[Any] = ["none"] * len(leaves)
    if target is not None:
        classes = trees.column_in_groups(build(schema), leaves[:, None], schema.index(target))
        best = classes.level_probability().argmax(axis=1)
        tint = [to_rgba(_colour(code), 0.15) for code in best.tolist()]
    lo, hi, _ = trees.boxes
    slots = [trees.columns.slot[j] for j in axes]
    corner = np.clip(lo[leaves][:, slots], (left, low), (right, high))
    end = np.clip(hi[leaves][:, slots], (left, low), (right, high))
    for (a, b), (width, height), face in zip(corner, end - corner, tint, strict=True):
        ax.add_patch(Rectangle((a, b), width, height, facecolor=face, edgecolor=TABLE, linewidth=1))
    _draw_rows(ax, joint, axes, target, rows)
    ax.set(xlim=(left, right), ylim=(low, high), xlabel=short(x), ylabel=short(y))
    if target is not None and ax.get_legend_handles_labels()[0]:
        ax.legend(title=short(target), markerscale=2)
    clean(ax)
    return ax


def _view(joint: Joint, j: int, numbers: np.ndarray) -> tuple[float, float]:
    """Ends of an axis: the rows, or 99 % of the column, with a margin."""
    known = numbers[~np.isnan(numbers)]
    low, high = (
        (known.min(), known.max()) if len(known) else distributions.span(joint.distribution, build(joint.schema), j)
    )
    margin = 0.04 * (high - low) or max(0.5, 1e-3 * abs(low))
    return float(low - margin), float(high + margin)


def _pixel_density(joint: Joint, axes: list[int], *ends: tuple[float, float]) -> np.ndarray:
    """Density of the two columns at the pixels' centres, (pixels of y, pixels of x)."""
    at = [low + (high - low) * (np.arange(_PIXELS) + 0.5) / _PIXELS for low, high in ends]
    X = np.full((_PIXELS * _PIXELS, len(joint.columns)), np.nan)
    X[:, axes[0]], X[:, axes[1]] = (numbers.ravel() for numbers in np.meshgrid(*at))
    return np.exp(joint.distribution.log_density(build(joint.schema, X))).reshape(_PIXELS, _PIXELS)


def _draw_rows(ax: Axes, joint: Joint, axes: list[int], target: str | None, rows: np.ndarray) -> None:
    rows = rows[~np.isnan(rows[:, axes]).any(axis=1)]
    if target is None:
        if len(rows):
            ax.scatter(rows[:, axes[0]], rows[:, axes[1]], s=5, color=TABLE)
        return
    code = rows[:, joint.schema.index(target)]
    for number, level in enumerate(joint.levels(target)):
        mine = rows[code == number]
        if len(mine):
            ax.scatter(mine[:, axes[0]], mine[:, axes[1]], s=5, color=_colour(number), label=short(level))


def _colour(code: int) -> str:
    return LEVEL_COLORS[code % len(LEVEL_COLORS)]
