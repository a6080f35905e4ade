"""Distributions of single columns: the CDF beside the data's, posteriors over what was known before, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator

from ..api.joint import Joint
from ..api.posterior import Posterior
from ..cards import number_writer, percent
from ..data.evidence import Evidence, build
from ..data.frames import encode
from ..data.schema import Column, Schema
from ..inference.histogram import INNER, are_few_cells, even_edges
from ..models.base import Distribution
from ..models.box_forest.box_trees import BoxTrees
from .style import LEVEL_COLORS, POSTERIOR, PRIOR, TABLE, clean, in_percent, new_axes, short

# ---- Distributions as shares of bins and levels, and how they are drawn: what the pictures of joints have in common.

BINS = 40
FEW_BINS = 24
"""Bins of a small panel."""
MOST_LEVELS = 8
_FIRST_DATE, _LAST_DATE = -62135596800.0, 253402214400.0
"""Days that matplotlib can draw, in seconds since 1970."""


def span(model: Distribution, evidence: Evidence, j: int) -> tuple[float, float]:
    """Numbers between which 99 % of a numeric column lie, given one row of evidence."""
    low, high = model.observe(evidence).quantile(j, INNER)[0]
    return float(low), float(high)


def places(column: Column, numbers: np.ndarray) -> Any:
    """Numbers as matplotlib draws them: dates as dates; raises ValueError for dates that it cannot draw."""
    if column.kind != "datetime":
        return numbers
    low, high = float(numbers.min()), float(numbers.max())
    margin = 0.1 * (high - low)  # of the axis
    if low - margin + column.origin < _FIRST_DATE or high + margin + column.origin > _LAST_DATE:
        raise ValueError(
            f"column {column.name!r}: dates from {column.scalar(low)} to {column.scalar(high)}, and "
            "matplotlib draws the years 1 to 9999; narrow the evidence, or leave the column out"
        )
    return column.moments(numbers)


def draw_bins(ax: Axes, column: Column, edges: np.ndarray, share: np.ndarray, **look: Any) -> None:
    """Shares of bins as steps."""
    ax.stairs(share, places(column, edges), **look)
    if column.kind == "datetime":
        format_dates(ax)


def format_dates(ax: Axes, axis: str = "x") -> None:
    """Few ticks, without what they have in common."""
    line = ax.xaxis if axis == "x" else ax.yaxis
    locator = AutoDateLocator(minticks=2, maxticks=5)  # fewer, and some spans have no interval, with a warning
    line.set_major_locator(locator)
    line.set_major_formatter(ConciseDateFormatter(locator))


def trees_of(joint: Any, what: str) -> BoxTrees:
    """The trees of a joint, of the heaviest forest in a mixture; raises ValueError if no component has boxes."""
    check_joint(joint)
    model = joint.distribution
    for k in np.argsort(-model.log_weight, kind="stable").tolist():
        found = model.components[k].box_trees()
        if found is not None:
            return found
    kinds = ", ".join(dict.fromkeys(component.kind for component in model.components))
    raise ValueError(
        f"plot.{what} draws the trees of a forest, and this joint has only the components: {kinds}; plot.pair and "
        "plot.posterior draw any joint, plot.dependence shows which columns hang together, and "
        "joint.given(...).explain() lists the hidden states as rules"
    )


def check_joint(joint: Any) -> None:
    """A TypeError for anything but a joint."""
    if not isinstance(joint, Joint):
        raise TypeError(f"expected a Joint (of a fitted learner its joint_), got {type(joint).__name__}")


def chosen(schema: Schema, columns: Sequence[str] | None, most: int) -> list[int]:
    """Numbers of the columns that are asked for; by default the first ones."""
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
        Rows to compare with; its missing cells are left out. Of a posterior, give the rows that satisfy its evidence.
    ax : Axes, optional

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
    >>> ax = plot.cdf(joint, "body_mass_g", penguins)
    >>> [line.get_label() for line in ax.lines]
    ['model', 'data']
    """
    posterior = one_posterior(distribution.given() if isinstance(distribution, Joint) else distribution)
    model, evidence = posterior.state.distribution, posterior.state.evidence
    j, found = model.schema.index(column), model.schema[column]
    if found.is_categorical:
        raise ValueError(f"column {column!r} is {found.kind}: it has no CDF; plot.posterior shows levels")
    data = np.empty(0)
    if frame is not None:
        cells = encode(model.schema, frame)[0][:, j]
        data = np.sort(cells[~np.isnan(cells)])
        if not len(data):
            raise ValueError(f"column {column!r}: the frame has no value of it")
    ax = new_axes(5.4, 3.4) if ax is None else ax
    low, high = span(model, evidence, j)
    if len(data):
        low, high = min(low, data[0]), max(high, data[-1])
    x, is_step = _cdf_points(found.step, found.center, np.array(found.atoms), low, high)
    state = model.observe(evidence)
    if not is_step:  # of heavy tails all but a few points would lie in the tail
        x = np.unique(np.concatenate([x, state.quantile(j, np.linspace(0.0, 1.0, _POINTS + 1)[1:-1])[0]]))
    up_to = state.cdf(j, x)[0]
    ax.plot(places(found, x), up_to, drawstyle="steps-post" if is_step else "default", color=POSTERIOR, label="model")
    if len(data):
        ends, share = np.append(data, x[-1]), np.append(np.arange(1, len(data) + 1) / len(data), 1.0)
        ends, share = np.append(x[0], ends), np.append(0.0, share)
        ax.plot(places(found, ends), share, drawstyle="steps-post", color=TABLE, linewidth=0.8, label="data")
    ax.set(xlabel=short(column), ylabel="CDF", ylim=(-0.02, 1.02), title=title_of(posterior))
    in_percent(ax.yaxis)
    clean(ax)
    ax.legend(frameon=False)
    return ax


def title_of(posterior: Posterior) -> str:
    """The evidence of a posterior, as a title."""
    said = posterior.evidence_text
    if said == "1 rows of evidence":
        return "given one row of a table"
    return f"given {short(said, 90)}" if said else ""


def posterior(posterior: Posterior, columns: Sequence[str] | None = None) -> Figure:
    """The posterior of every column, a small panel each, over what was known before the evidence.

    Parameters
    ----------
    posterior : Posterior of one row of evidence
    columns : sequence of str, optional
        Default: all.

    Returns
    -------
    Figure
        One axes a column, a title with the evidence, and a legend. Titles of numbers show the mean without and with
        the evidence. Numbers: shares of bins, below them the mean as
        a dot and the interval of equal tails that holds 90 % as a line. Levels: bars on an axis of 0 to 100 %; of many
        the 8 most probable, before or after.

    Raises
    ------
    ValueError
        If there are several rows of evidence, their probability is 0, or a column is unknown.

    Examples
    --------
    >>> figure = plot.posterior(joint.given("body_mass_g > 5000"))
    >>> [ax.get_title() for ax in figure.axes][:2]
    ['species', 'island']
    """
    model = one_posterior(posterior).state.distribution
    numbers = chosen(model.schema, columns, len(model.schema.columns))
    wide = min(len(numbers), 4)
    high = math.ceil(len(numbers) / wide)
    figure = plt.figure(figsize=(2.8 * wide, 2.1 * high + 0.6), layout="constrained")
    for place, j in enumerate(numbers):
        ax = figure.add_subplot(high, wide, place + 1)
        ax.tick_params(labelsize=7)
        means = _draw_posterior(ax, posterior, j, FEW_BINS)
        ax.set_title(f"{short(model.schema.names[j])}{means}", fontsize=9)
    said = title_of(posterior)
    if said:
        figure.suptitle(said[0].upper() + said[1:], fontsize=10)
    figure.legend(
        handles=_legend(posterior, [model.schema.columns[j] for j in numbers]),
        loc="outside lower center",
        ncols=4,
        fontsize=8,
        frameon=False,
    )
    return figure


def marginal(distribution: Joint | Posterior, column: str, ax: Axes | None = None) -> Axes:
    """The distribution of one column, over what was known before the evidence.

    Parameters
    ----------
    distribution : Joint, or Posterior of one row of evidence
    column : str
    ax : Axes, optional

    Returns
    -------
    Axes
        As one panel of `posterior`, with a title with the evidence, and a legend.

    Raises
    ------
    ValueError
        As of `posterior`.

    Examples
    --------
    >>> ax = plot.marginal(joint.given(species="Gentoo"), "body_mass_g")
    >>> ax.get_title()
    "given species = 'Gentoo'"
    """
    known = one_posterior(distribution.given() if isinstance(distribution, Joint) else distribution)
    j = known.state.distribution.schema.index(column)
    ax = new_axes(5.4, 3.2) if ax is None else ax
    _draw_posterior(ax, known, j)
    column_of = known.state.distribution.schema.columns[j]
    ax.set(title=title_of(known), xlabel="probability" if column_of.is_categorical else short(column))
    ax.set_ylabel(short(column) if column_of.is_categorical else "share of a bin")
    ax.legend(handles=_legend(known, [column_of]), frameon=False, fontsize=8)
    return ax


def evidence_sequence(joint: Joint, column: str, evidence: Sequence[str], ax: Axes | None = None) -> Axes:
    """The posterior of one column as pieces of evidence are added one by one.

    Parameters
    ----------
    joint : Joint
    column : str
    evidence : sequence of str
        Texts of conditions, such as ``["sex = Female", "age >= 40"]``; each is added to all before it.
    ax : Axes, optional

    Returns
    -------
    Axes
        A line for each step, the first without evidence. Levels: their probabilities side by side; of more than six
        the five most probable and the others together. Numbers: shares of bins, on one scale, with the mean and the
        interval of equal tails that holds 90 %.

    Raises
    ------
    ValueError
        If there is no evidence, it cannot be read, or all of it together has probability 0.

    Examples
    --------
    >>> ax = plot.evidence_sequence(joint, "species", ["island = Biscoe", "body_mass_g > 4500"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['no evidence', "+ island = 'Biscoe'", '+ body_mass_g > 4500']
    """
    check_joint(joint)
    if isinstance(evidence, str) or not len(evidence):
        raise ValueError(f"evidence must be a list of texts such as ['age >= 40'], at least one, got {evidence!r}")
    steps = [joint.given(), *(joint.given(" and ".join(evidence[: k + 1])) for k in range(len(evidence)))]
    states = [one_posterior(step).state for step in steps]
    labels = ["no evidence", *(f"+ {short(joint.given(piece).evidence_text, 40)}" for piece in evidence)]
    j, found = joint.schema.index(column), joint.schema[column]
    ax = new_axes(7.0, 0.9 + 0.62 * len(steps)) if ax is None else ax
    if found.is_categorical:
        _draw_stacks(ax, found, np.array([state.level_probabilities(j)[0] for state in states]))
    else:
        spans = [span(step.state.distribution, step.state.evidence, j) for step in steps]
        edges = even_edges(found, min(low for low, _ in spans), max(high for _, high in spans), BINS)
        mass = np.array([np.diff(state.cdf(j, edges)[0]) for state in states])
        mean = np.array([state.moments(j)[0][0] for state in states])
        draw_ridges(ax, found, edges, mass, mean, np.array([state.quantile(j, _TAILS)[0] for state in states]))
        ax.set_xlabel(short(column))
    ax.set_yticks(np.arange(len(steps)), labels)
    ax.set_ylim(len(steps) - 0.45, -1.0 if not found.is_categorical else -0.6)
    title = f"{short(column)} as evidence is added"
    ax.set_title(title, loc="left", fontsize=11, pad=6 if found.is_categorical else 22)
    clean(ax)
    return ax


def _draw_stacks(ax: Axes, column: Column, share: np.ndarray) -> None:
    """Probabilities of levels (steps, K) side by side, with what is worth reading written in."""
    most = np.argsort(-share.max(axis=0), kind="stable")
    some = most if len(most) <= len(LEVEL_COLORS) else most[: len(LEVEL_COLORS) - 1]
    names = [short(column.levels[k], 20) for k in np.sort(some)]
    parts = share[:, np.sort(some)]
    if len(some) < len(most):
        names, parts = [*names, f"{len(most) - len(some)} others"], np.column_stack([parts, 1.0 - parts.sum(axis=1)])
    left = np.zeros(len(share))
    colours = [*LEVEL_COLORS[: len(some)], LEVEL_COLORS[-1]] if len(some) < len(most) else LEVEL_COLORS
    for name, part, colour in zip(names, parts.T, colours, strict=False):
        ax.barh(np.arange(len(share)), part, left=left, height=0.66, color=colour, label=name, edgecolor="white")
        for line, (start, width) in enumerate(zip(left.tolist(), part.tolist(), strict=True)):
            if width >= 0.07:
                ax.text(start + width / 2, line, f"{width:.0%}", ha="center", va="center", color="white", fontsize=8)
        left = left + part
    ax.set_xlim(0, 1)
    ax.set_xlabel("probability")
    in_percent(ax.xaxis)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8, title=short(column.name))


def draw_ridges(
    ax: Axes,
    column: Column,
    edges: np.ndarray,
    mass: np.ndarray,
    mean: np.ndarray,
    ends: np.ndarray,
    rows: np.ndarray | None = None,
) -> None:
    """Shares of bins (lines, B) on one scale, intervals and means; ``rows`` (lines, B) are outlines of a table."""
    both = mass if rows is None else np.concatenate([mass, rows])
    top = max(float(np.nanmax(both)), 1e-12)
    for line, share in enumerate(mass):
        ax.stairs(line - 0.85 * share / top, places(column, edges), baseline=line, fill=True, color=POSTERIOR,
                  alpha=0.9, label="joint" if line == 0 else None)  # fmt: skip
        if rows is not None:
            ax.stairs(line - 0.85 * rows[line] / top, places(column, edges), baseline=line, color=TABLE, linewidth=0.9,
                      label="table" if line == 0 else None)  # fmt: skip
        low, high, middle = places(column, np.clip([*ends[line], mean[line]], edges[0], edges[-1]))
        ax.plot([low, high], [line + 0.1] * 2, color=TABLE, linewidth=1.4, label="90% interval" if line == 0 else None)
        ax.plot([middle], [line + 0.1], "o", color=TABLE, markersize=4, label="mean" if line == 0 else None)
        ax.text(1.01, line, f"mean {_mean_text(column, float(mean[line]), edges)}", transform=ax.get_yaxis_transform(),
                va="center", fontsize=8)  # fmt: skip
    if column.kind == "datetime":
        format_dates(ax)
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, frameon=False, fontsize=8)


def _mean_text(column: Column, mean: float, edges: np.ndarray) -> str:
    """The mean of a column as people write it, a date as its day."""
    if column.kind == "datetime":
        return str(column.scalar(mean))[:10]
    return number_writer(float(edges[0]), float(edges[-1]), column.step, of_means=True)(mean)


def _legend(posterior: Posterior, columns: Sequence[Column]) -> list[Any]:
    """What the colours of a posterior mean, as far as the columns have them."""
    known = bool(posterior.evidence_text)
    found: list[Any] = [Patch(color=POSTERIOR, label="given the evidence" if known else "probability")]
    found = [Patch(color=PRIOR, label="without evidence"), *found] if known else found
    if any(not column.is_categorical for column in columns):
        found.append(
            Line2D([], [], color=TABLE, marker="o", markersize=4, linewidth=1.4, label="mean and 90% interval")
        )
    return found


def _draw_posterior(ax: Axes, posterior: Posterior, j: int, bins: int = BINS) -> str:
    """Draw one column of a posterior over its prior; of numbers both means as text, to be added to a title."""
    model, evidence = posterior.state.distribution, posterior.state.evidence
    nothing = build(model.schema)
    clean(ax)
    if model.schema.columns[j].is_categorical:
        _draw_bars(ax, model, posterior.before, j, nothing, evidence)
        return ""
    before, after = _draw_numbers(ax, model, posterior.before, j, nothing, evidence, bins)
    return f": mean {before} → {after}" if posterior.evidence_text else f": mean {after}"


def one_posterior(posterior: Posterior) -> Posterior:
    """The posterior, if it can be drawn."""
    if not isinstance(posterior, Posterior):
        raise TypeError(f"expected a Posterior, such as joint.given(...), got {type(posterior).__name__}")
    if len(posterior) != 1:
        raise ValueError(
            f"a picture is of one row of evidence, got {len(posterior)}; pick one: given(frame[i : i + 1])"
        )
    posterior.check()
    if np.isnan(posterior.state.background_weight()[0]):  # of a frame that is no error
        raise ValueError("the evidence has probability 0: there is nothing to draw; drop or widen one of its values")
    return posterior


def _cdf_points(step: float, center: float, atoms: np.ndarray, low: float, high: float) -> tuple[np.ndarray, bool]:
    """Points at which a CDF is drawn, and whether it is flat between them."""
    if step > 0.0 and (high - low) / step <= _MOST_CELLS:
        first, last = round((low - center) / step), round((high - center) / step)
        return center + np.arange(first - 1, last + 2) * step, True
    margin = 0.02 * (high - low) or max(abs(low), 1.0) * 1e-3
    atoms = atoms[(atoms >= low) & (atoms <= high)]
    below = atoms - 0.5 * step if step > 0.0 else np.nextafter(atoms, -np.inf)
    return np.unique(np.concatenate([np.linspace(low - margin, high + margin, _POINTS), below, atoms])), False


def _draw_numbers(
    ax: Axes, model: Distribution, prior: Distribution, j: int, before: Evidence, after: Evidence, bins: int
) -> tuple[str, str]:
    """Draw shares of bins, before and after; both means as text."""
    column = model.schema.columns[j]
    lows, highs = zip(span(prior, before, j), span(model, after, j), strict=True)
    edges = even_edges(column, min(lows), max(highs), bins)
    unknown, known = prior.observe(before), model.observe(after)
    for state, look in (
        (unknown, {"color": PRIOR, "fill": True}),
        (known, {"color": POSTERIOR, "fill": True, "alpha": 0.75}),
    ):
        draw_bins(ax, column, edges, np.diff(state.cdf(j, edges)[0]), **look)
    mean, tails = known.moments(j)[0], known.quantile(j, _TAILS)[0]
    middle, low, high = places(column, np.concatenate([mean, tails]))
    below = -0.07 * ax.get_ylim()[1]
    ax.plot([low, high], [below] * 2, color=TABLE, linewidth=1.4)
    ax.plot([middle], [below], "o", color=TABLE, markersize=4)
    ax.set_ylim(bottom=2.2 * below)
    ax.set_yticks([])
    if are_few_cells(column, edges):
        share = np.diff(known.cdf(j, edges)[0])
        for x, height in zip((edges[1:] - 0.5 * column.step).tolist(), share.tolist(), strict=True):
            if height >= 0.0005:
                ax.text(x, height, percent(height), ha="center", va="bottom", fontsize=7)
        ax.xaxis.set_major_locator(FixedLocator((edges[1:] - 0.5 * column.step)[:: -(-(len(edges) - 1) // 6)].tolist()))
    elif column.kind != "datetime":
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=column.step == 1.0))
    first = float(unknown.moments(j)[0][0])
    return _mean_text(column, first, edges), _mean_text(column, float(mean[0]), edges)


def _draw_bars(ax: Axes, model: Distribution, before: Distribution, j: int, nothing: Evidence, after: Evidence) -> None:
    prior = before.observe(nothing).level_probabilities(j)[0]
    share = model.observe(after).level_probabilities(j)[0]
    most = np.argsort(-np.maximum(prior, share), kind="stable")[:MOST_LEVELS]
    order = np.sort(most)[::-1]  # the first level on top
    at = np.arange(len(order))
    ax.barh(at, prior[order], height=0.8, color=PRIOR)
    ax.barh(at, share[order], height=0.4, color=POSTERIOR)
    ax.set_yticks(at, [short(model.schema.columns[j].levels[code], 14) for code in order])
    ax.set_xlim(0, 1)
    in_percent(ax.xaxis)
