"""Why a prediction is what it is, which cells are unusual, how far predictions can be trusted, and survival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..api.joint import Joint
from ..api.shapley import ShapleyValues
from ..data.conditions import Interval
from ..data.evidence import Evidence, build
from ..data.frames import encode
from ..data.schema import snapped
from ..evaluation.result import Fidelity
from ..inference.support import READINGS, Uncertainty
from ..runtime.parameters import check_number
from . import style
from .distributions import check_joint, format_dates, one_posterior, places
from .style import LEVEL_COLORS, LOWER, POSTERIOR, clean, in_percent, new_axes, short

_FEWEST_ROWS = 3
"""A level of fewer rows is not named."""
_MOST_ROWS = 1_000
"""Rows of a table that are compared with, at most: every so-manyth."""


def why(values: ShapleyValues, row: int = 0, output: Any = None, most: int = 10, ax: Axes | None = None) -> Axes:
    """Why one prediction is what it is: what each known cell added to it or took away, as a waterfall.

    Parameters
    ----------
    values : ShapleyValues
        Of `jointforest.shapley` or `ExpectedPredictor.shap`; they are conditional, unless asked otherwise.
    row : int
    output : str or int, optional
        Which of several outputs. Default: the row's largest.
    most : int
        Most steps; columns that matter less are one step together.
    ax : Axes, optional

    Returns
    -------
    Axes
        One bar a step, the largest first, from the answer without evidence (top) to the prediction (bottom).

    Raises
    ------
    ValueError
        If there is no such row or output, or the row has no values.

    Examples
    --------
    >>> values = jf.shapley("species", joint, penguins.head(1))
    >>> plot.why(values, output="Adelie").get_title(loc="left").split(":")[0]
    'Adelie'
    """
    _check_values(values)
    steps = values.waterfall(row, output, most)
    is_share = steps.is_share
    shown = (lambda x: f"{x:.1%}") if is_share else (lambda x: f"{x:,.4g}")
    n = len(steps.values)
    ax = style.new_axes(7.0, 1.4 + 0.34 * (n + 2)) if ax is None else ax
    lines = np.arange(1, n + 1)
    width = np.array(steps.values)
    colours = [style.POSTERIOR if x >= 0.0 else style.LOWER for x in steps.values]
    ax.barh(lines, width, left=steps.starts, height=0.62, color=colours)
    marks = [steps.base, *steps.ends]
    for line, x in enumerate(marks[:-1] if n else []):
        ax.plot([x, x], [line, line + 1], color=style.SOFT, linewidth=0.8)
    ax.plot([marks[-1]] * 2, [n, n + 1], color=style.SOFT, linewidth=0.8)
    ax.plot([steps.base], [0], "o", color=style.TABLE, markersize=5)
    ax.plot([marks[-1]], [n + 1], "o", color=style.TABLE, markersize=5)
    room = (max(marks) - min(marks)) or 1.0
    for line, (value, end) in enumerate(zip(steps.values, steps.ends, strict=True), 1):
        text = f"{100 * value:+.1f}" if is_share else f"{value:+,.3g}"
        side = 1 if value >= 0.0 else -1
        ax.text(end + side * 0.012 * room, line, text, va="center", ha="left" if side > 0 else "right", fontsize=8)
    for line, x in ((0, steps.base), (n + 1, marks[-1])):
        ax.text(x + 0.02 * room, line, shown(x), va="center", fontsize=9, fontweight="bold")
    ax.set_yticks(
        np.arange(n + 2), ["without evidence", *(style.short(name, 40) for name in steps.names), "prediction"]
    )
    ax.set_ylim(n + 1.6, -0.6)
    ax.set_xlim(min(marks) - 0.14 * room, max(marks) + 0.16 * room)
    what = f"{style.short(steps.output, 30)}: " if steps.output else ""
    ax.set_title(f"{what}{shown(steps.base)} without evidence, {shown(marks[-1])} for this row", loc="left",
                 fontsize=11)  # fmt: skip
    ax.set_xlabel("predicted probability (steps in percentage points)" if is_share else "prediction")
    if is_share:
        style.in_percent(ax.xaxis, room)
    style.clean(ax)
    return ax


def shapley_summary(values: ShapleyValues, output: Any = None, most: int = 12, ax: Axes | None = None) -> Axes:
    """What columns do to the predictions of many rows: a dot for each row and column.

    Parameters
    ----------
    values : ShapleyValues
    output : str or int, optional
        Which of several outputs. Default: the last.
    most : int
        Most columns: those whose mean absolute value is largest.
    ax : Axes, optional

    Returns
    -------
    Axes
        Dots to the right raise the prediction. Of columns of numbers the shade shows whether the cell is low or high in
        its column; dots of levels are grey. The text on the right names what lowers and what raises the prediction.

    Raises
    ------
    ValueError
        If there is no such output, or no row has values.

    Examples
    --------
    >>> ax = plot.shapley_summary(jf.shapley("body_mass_g", joint, penguins.head(20)))
    >>> len(ax.get_yticklabels())
    6
    """
    _check_values(values)
    check_number("most", most, 1, whole=True, text="a positive integer")
    found, label = values.values, ""
    if found.ndim == 3:
        k = values.output_number(output)
        found, label = found[:, :, k], values.output_names[k] if values.output_names else str(k)
    keep = ~np.isnan(found).any(axis=1)
    if not keep.any():
        raise ValueError("no row has Shapley values: all have probability 0 under the joint")
    found, data, numbers = found[keep], values.data[keep], values.numbers[keep]
    order = np.argsort(-np.abs(found).mean(axis=0), kind="stable")[:most]
    ax = style.new_axes(8.8, 1.9 + 0.4 * len(order)) if ax is None else ax
    shades = None
    for line, k in enumerate(order.tolist()):
        known = np.array([cell is not None for cell in data[:, k]])
        x, at = found[known, k], line + _swarm(found[known, k], float(np.ptp(found)) or 1.0)
        if any(isinstance(cell, str | bool) for cell in data[known, k]):
            ax.scatter(x, at, s=9, color=style.PRIOR_LINE, alpha=0.8, linewidths=0)
            _write_extremes(ax, line, *_extreme_levels(data[known, k], x))
            continue
        rank = numbers[known, k].argsort(kind="stable").argsort(kind="stable") / max(known.sum() - 1, 1)
        shades = ax.scatter(x, at, s=9, c=0.15 + 0.85 * rank, cmap=style.SHADES, vmin=0.0, vmax=1.0, linewidths=0)
        rises = float(np.mean((rank - 0.5) * (x - x.mean()))) >= 0.0
        _write_extremes(ax, line, *(("low", "high") if rises else ("high", "low")))
    ax.axvline(0.0, color=style.SOFT, linewidth=0.8)
    size = np.abs(found).mean(axis=0)
    names = [f"{style.short(values.feature_names[k])}  (mean {_size_text(size[k])})" for k in order.tolist()]
    ax.set_yticks(np.arange(len(order)), names)
    ax.set_ylim(len(order) - 0.4, -0.6)
    what = f"the probability of {style.short(label)}" if label else "the prediction"
    ax.set_xlabel(f"what the cell adds to {what} (Shapley value)")
    _write_extremes(ax, -0.75, "lowered by", "raised by", "bold")
    if shades is not None:
        scale = ax.figure.colorbar(
            shades, ax=ax, ticks=[0.15, 1.0], orientation="horizontal", location="bottom", shrink=0.35, aspect=30
        )
        scale.ax.set_xticklabels(["low", "high"])
        scale.set_label("number in the cell (levels are grey)", fontsize=8)
    ax.set_title(f"What raises and lowers {what}: {len(found):,} rows", loc="left", fontsize=11, pad=18)
    style.clean(ax)
    return ax


def _extreme_levels(cells: np.ndarray, x: np.ndarray) -> tuple[str, str]:
    """The levels with the lowest and the highest mean of x; levels of very few rows are left out."""
    names, place, n = np.unique(cells.astype(str), return_inverse=True, return_counts=True)
    mean = np.bincount(place, x) / n
    some = np.flatnonzero(n >= max(_FEWEST_ROWS, 0.02 * len(x)))
    if len(some) < 2:
        return "", ""
    return str(names[some[mean[some].argmin()]]), str(names[some[mean[some].argmax()]])


def _write_extremes(ax: Axes, line: float, low: str, high: str, weight: str = "normal") -> None:
    """What lowers and what raises the prediction, on the right of the axes."""
    for at, text in ((8, low), (112, high)):
        ax.annotate(
            style.short(text, 20), (1.0, line), (at, 0), ax.get_yaxis_transform(), "offset points",
            va="center", fontsize=8, fontweight=weight, annotation_clip=False,
        )  # fmt: skip


def _size_text(size: float) -> str:
    return f"{size:,.0f}" if size >= 100.0 else f"{size:.2g}"


def _swarm(x: np.ndarray, width: float) -> np.ndarray:
    """Offsets that keep dots of nearly the same x apart, within 0.38 of 0."""
    bins = np.floor(x / (width / 120.0)).astype(np.int64)
    offset = np.zeros(len(x))
    counts = np.unique(bins, return_counts=True)[1]
    gap = min(0.09, 0.76 / max(int(counts.max(initial=1)), 1))
    for one in np.unique(bins):
        mine = np.flatnonzero(bins == one)
        offset[mine] = (np.arange(len(mine)) - (len(mine) - 1) / 2.0) * gap
    return offset


def attribution(joint: Joint, frame: Any, row: int = 0, most: int = 20, ax: Axes | None = None) -> Axes:
    """Which cells of one row are unusual given the others, beside the same cells of other rows.

    Parameters
    ----------
    joint : Joint
    frame : frame
        The row, and the rows to compare it with, of which at most 1,000 are asked.
    row : int
        Its number in the frame.
    most : int
        Most cells: the most unusual ones.
    ax : Axes, optional

    Returns
    -------
    Axes
        A line for each known cell, the most unusual first. The dot is log p(cell | the other cells of its row), in
        nats; the bar holds the middle 90 % of the rows, and the text shows in how many of the others the cell is as
        improbable, or more.

    Raises
    ------
    ValueError
        If there is no such row, or it has no known cell.

    Examples
    --------
    >>> penguins = jf.datasets.load_penguins()
    >>> joint = jf.JointTree(random_state=0).fit(penguins).joint_
    >>> penguins.loc[0, "species"] = "Gentoo"  # an Adelie with another name
    >>> plot.attribution(joint, penguins).get_yticklabels()[0].get_text()
    'species = Gentoo'
    """
    check_joint(joint)
    X, unseen = encode(joint.schema, frame)
    check_number("row", row, 0, len(X) - 1, whole=True, text=f"the number of a row, 0 to {len(X) - 1}")
    some = np.unique(np.append(np.linspace(0, len(X) - 1, min(len(X), _MOST_ROWS)).astype(np.int64), row))
    cells = joint.distribution.attribution(build(joint.schema, X[some], unseen[some]))
    log_unseen = np.array([column.log_unseen for column in joint.schema.columns])
    cells = np.where(unseen[some], log_unseen, cells)
    mine = cells[int(np.searchsorted(some, row))]
    if np.isnan(mine).all():
        raise ValueError(f"row {row} has no known cell")
    with np.errstate(invalid="ignore"):
        as_rare = [np.sum(one <= x + 1e-9) - 1 for one, x in zip(cells.T, mine, strict=True)]  # all but the row itself
    others = np.maximum((~np.isnan(cells)).sum(axis=0) - 1, 1)
    rarer = np.where(np.isnan(mine), 2.0, np.array(as_rare) / others)
    middle = np.nanmedian(np.where(np.isnan(mine), 0.0, cells), axis=0)
    order = np.lexsort((mine - middle, rarer))[: min(most, int((~np.isnan(mine)).sum()))]
    ax = style.new_axes(7.2, 1.3 + 0.34 * len(order)) if ax is None else ax
    for line, j in enumerate(order.tolist()):
        low, high = np.nanquantile(cells[:, j], [0.05, 0.95])
        name = "middle 90% of the rows" if line == 0 else None
        ax.barh(line, high - low, left=low, height=0.5, color=style.PRIOR, label=name)
        colour = style.LOWER if rarer[j] < 0.05 else style.POSTERIOR
        ax.plot([mine[j]], [line], "o", color=colour, markersize=6)
    ax.plot([], [], "o", color=style.LOWER, label="this row: among the rarest 5%")
    ax.plot([], [], "o", color=style.POSTERIOR, label="this row: usual")
    labels = [_cell_name(joint, X, unseen, row, j) for j in order.tolist()]
    ax.set_yticks(np.arange(len(order)), labels)
    for line, j in enumerate(order.tolist()):
        ax.text(1.01, line, f"{rarer[j]:.0%} of rows as rare", transform=ax.get_yaxis_transform(), va="center",
                fontsize=8, color=style.SOFT)  # fmt: skip
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlabel("log p(cell | the other cells of its row), in nats")
    below = 0.55 / (0.34 * (len(order) + 0.5))  # half an inch, as a share of the axes
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -below), ncols=3, frameon=False, fontsize=8)  # fmt: skip
    ax.set_title(f"What is unusual in row {row}", loc="left", fontsize=11)
    style.clean(ax)
    return ax


def _cell_name(joint: Joint, X: np.ndarray, unseen: np.ndarray, row: int, j: int) -> str:
    column = joint.schema.columns[j]
    if unseen[row, j]:
        return f"{style.short(column.name)}: a new level"
    cell = column.from_number(float(X[row, j]))
    return style.short(f"{column.name} = {f'{cell:.6g}' if isinstance(cell, float) else cell}", 40)


_INTERVALS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


def calibration(joint: Joint, frame: Any, target: str, bins: int = 10, ax: Axes | None = None) -> Axes:
    """Whether predicted probabilities of a column come true, on rows that were not learned from.

    Parameters
    ----------
    joint : Joint
    frame : frame
        Held-out rows with the target, of which at most 1,000 are asked.
    target : str
        A column of levels: the share of rows with a level, of the rows to which it is given about the same probability;
        of more than two levels the three most probable. A column of numbers: the share of rows within the interval
        of equal tails that should hold 10 to 95 % of them.
    bins : int
        Groups of rows of about the same probability, each of as many rows.
    ax : Axes, optional

    Returns
    -------
    Axes
        Points with bars of two standard errors; those on the diagonal are calibrated.

    Raises
    ------
    ValueError
        If the column is unknown, or no row knows it.

    Examples
    --------
    >>> penguins = jf.datasets.load_penguins().sample(frac=1, random_state=0)
    >>> joint = jf.JointTree(random_state=0).fit(penguins.head(250)).joint_
    >>> plot.calibration(joint, penguins.tail(94), "body_mass_g").get_xlabel()
    'the interval should hold'
    """
    check_joint(joint)
    check_number("bins", bins, 1, whole=True, text="a positive integer")
    j = joint.schema.index(target)
    column = joint.schema.columns[j]
    X, unseen = encode(joint.schema, frame)
    known = np.flatnonzero(~np.isnan(X[:, j]))
    if not len(known):
        raise ValueError(f"column {target!r}: no row of the frame knows it")
    known = known[np.unique(np.linspace(0, len(known) - 1, min(len(known), _MOST_ROWS)).astype(np.int64))]
    X, unseen = X[known], unseen[known]
    state = joint.distribution.observe(build(joint.schema, X, unseen).without(j))
    ax = style.new_axes(4.6, 4.3) if ax is None else ax
    ax.plot([0, 1], [0, 1], color=style.SOFT, linewidth=0.9, linestyle="--", label="calibrated")
    if column.is_categorical:
        p = state.level_probabilities(j)
        order = np.argsort(-p.mean(axis=0), kind="stable")[:3].tolist() if p.shape[1] > 2 else [p.shape[1] - 1]
        for k, colour in zip(order, style.LEVEL_COLORS, strict=False):
            _draw_groups(ax, p[:, k], X[:, j] == k, bins, style.short(column.levels[k]), colour)
        ax.set(xlabel="predicted probability", ylabel="share of rows")
    else:
        ends = state.quantile(j, np.concatenate([(1 - _INTERVALS) / 2, (1 + _INTERVALS) / 2]))
        ends = ends if column.kind == "datetime" else snapped(column, ends)
        inside = (ends[:, : len(_INTERVALS)] <= X[:, [j]]) & (X[:, [j]] <= ends[:, len(_INTERVALS) :])
        share = inside.mean(axis=0)
        ax.errorbar(_INTERVALS, share, 2 * _sd(share, len(X)), fmt="o-", color=style.POSTERIOR, markersize=4,
                    linewidth=1, label="intervals")  # fmt: skip
        ax.set(xlabel="the interval should hold", ylabel="share of rows that it holds")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    style.in_percent(ax.xaxis)
    style.in_percent(ax.yaxis)
    ax.set_title(f"Calibration of {style.short(target)}, {len(X):,} rows", loc="left", fontsize=11)
    ax.legend(frameon=False, fontsize=8, title=style.short(target) if column.is_categorical else None)
    style.clean(ax)
    return ax


def _draw_groups(ax: Axes, p: np.ndarray, is_true: np.ndarray, bins: int, label: str, colour: str) -> None:
    """Mean probability and share of rows of groups of equal size."""
    groups = [group for group in np.array_split(np.argsort(p, kind="stable"), bins) if len(group)]
    x = np.array([p[group].mean() for group in groups])
    y = np.array([is_true[group].mean() for group in groups])
    error = np.array([_sd(share, len(group)) for share, group in zip(y, groups, strict=True)])
    ax.errorbar(x, y, 2 * error, fmt="o-", color=colour, markersize=4, linewidth=1, label=label)


def _sd(share: Any, n: int) -> Any:
    """Standard error of a share of n rows; as if half a row more had been seen of either outcome."""
    shrunk = (np.asarray(share) * n + 0.5) / (n + 1.0)
    return np.sqrt(shrunk * (1.0 - shrunk) / n)


def fidelity(found: Fidelity, most: int = 12, ax: Axes | None = None) -> Axes:
    """How far a joint, or synthetic rows, are from a table: its columns and pairs that differ most.

    Parameters
    ----------
    found : Fidelity
        Of `jointforest.fidelity`.
    most : int
        Most columns, and most pairs.
    ax : Axes, optional

    Returns
    -------
    Axes
        Bars are distances from 0 (the same) to 1. A dark mark is the distance of held-out rows, if there are some: what
        chance alone gives. The title is the score of the two-sample test.

    Raises
    ------
    ValueError
        If neither marginals nor pairs were asked for.

    Examples
    --------
    >>> joint = jf.JointTree(random_state=0).fit(penguins.iloc[::2]).joint_
    >>> found = jf.fidelity(joint, penguins.iloc[::2], penguins.iloc[1::2], only=["marginals", "pairs"], random_state=0)
    >>> plot.fidelity(found, most=3).get_xlabel()
    'distance from the table: 0 the same, 1 nothing in common'
    """
    if not isinstance(found, Fidelity):
        raise TypeError(f"expected what jointforest.fidelity answers, got {type(found).__name__}")
    check_number("most", most, 1, whole=True, text="a positive integer")
    lines: list[tuple[str, float, float | None]] = []
    if found.marginals is not None:
        new = found.marginals_held_out.distance if found.marginals_held_out else {}
        lines += [(style.short(name), x, new.get(name)) for name, x in list(found.marginals.distance.items())[:most]]
    n_columns = len(lines)
    if found.pairs is not None:
        similar = found.pairs_held_out.similarity if found.pairs_held_out else {}
        for names, x in list(found.pairs.similarity.items())[:most]:
            other = None if names not in similar else 1.0 - similar[names]
            lines.append((" × ".join(style.short(name, 20) for name in names), 1.0 - x, other))
    if not lines:
        raise ValueError("the fidelity has neither marginals nor pairs: ask for them with only=['marginals', 'pairs']")
    at = np.array([k + (0.8 if k >= n_columns > 0 else 0.0) for k in range(len(lines))])
    ax = style.new_axes(7.0, 1.5 + 0.27 * len(lines)) if ax is None else ax
    whose = "joint" if found.of == "joint" else "these rows"
    ax.barh(at, [x for _, x, _ in lines], height=0.62, color=style.POSTERIOR, label=whose)
    marks = [(y, x) for y, (_, _, x) in zip(at.tolist(), lines, strict=True) if x is not None]
    if marks:
        ax.plot([x for _, x in marks], [y for y, _ in marks], "|", color=style.TABLE, markersize=11, markeredgewidth=2,
                label="held-out rows (chance)")  # fmt: skip
    ax.set_yticks(at, [name for name, _, _ in lines])
    ax.set_ylim(at[-1] + 0.6, -0.6)
    largest = max(x for _, *both in lines for x in both if x is not None)
    ax.set_xlim(0.0, max(1.05 * largest, 0.1))
    ax.set_xlabel("distance from the table: 0 the same, 1 nothing in common")
    score = found.told_apart
    title = "How far from the table"
    if score is not None:
        title = f"Score {score.score:.2f} of the two-sample test (1 = cannot be told apart)"
    ax.set_title(title, loc="left", fontsize=11)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    style.clean(ax)
    return ax


def _check_values(values: Any) -> None:
    if not isinstance(values, ShapleyValues):
        raise TypeError(
            f"expected ShapleyValues, such as jf.shapley('income', joint, rows), got {type(values).__name__}"
        )


# ---- Pictures of how far predictions can be trusted.

_FEWEST = 30
"""An accuracy of fewer rows is left out."""
_THRESHOLDS = np.linspace(0.0, 0.5, 21)


def accuracy_by_epsilon(
    epsilon: np.ndarray,
    right: np.ndarray,
    thresholds: Sequence[float] | np.ndarray = _THRESHOLDS,
    ax: Axes | None = None,
) -> Axes:
    """Accuracy among the rows whose epsilon is at least a threshold, and among those below it.

    Parameters
    ----------
    epsilon : float array (n,)
        Robustness of n predictions; rows where it is NaN are left out.
    right : bool array (n,)
        Whether the predictions were right.
    thresholds : sequence of floats
    ax : Axes, optional

    Returns
    -------
    Axes
        With two lines, above and below; a point only where at least 30 rows remain.

    Raises
    ------
    ValueError
        If epsilon and right differ in length.

    References
    ----------
    A. Correia, R. Peharz, C. de Campos, "Towards Robust Classification with Deep Generative Forests", 2020, Figure 3.

    Examples
    --------
    >>> from jointforest.plot import accuracy_by_epsilon
    >>> epsilon = np.linspace(0, 0.4, 200)
    >>> ax = accuracy_by_epsilon(epsilon, epsilon > 0.1)
    >>> [line.get_label() for line in ax.lines]
    ['epsilon at least', 'epsilon below']
    """
    epsilon, right = np.asarray(epsilon, dtype=float), np.asarray(right, dtype=bool)
    if epsilon.shape != right.shape:
        raise ValueError(f"epsilon has shape {epsilon.shape} and right {right.shape}; expected the same")
    epsilon, right = epsilon[~np.isnan(epsilon)], right[~np.isnan(epsilon)]
    ax = new_axes(5.4, 3.6) if ax is None else ax
    above = [(t, right[epsilon >= t]) for t in thresholds]
    below = [(t, right[epsilon < t]) for t in thresholds]
    for label, parts, colour in (("epsilon at least", above, POSTERIOR), ("epsilon below", below, LOWER)):
        points = [(t, rows.mean()) for t, rows in parts if len(rows) >= _FEWEST]
        ax.plot([t for t, _ in points], [share for _, share in points], marker=".", color=colour, label=label)
    ax.set(xlabel="threshold of epsilon", ylabel="accuracy")
    in_percent(ax.yaxis)
    ax.legend(frameon=False)
    clean(ax)
    return ax


def epsilon_against_density(uncertainty: Uncertainty, ax: Axes | None = None) -> Axes:
    """Epsilon of n predictions against the log-density of their rows, coloured by reading.

    Parameters
    ----------
    uncertainty : Uncertainty
        From ``uncertainty`` of a classifier or a joint.
    ax : Axes, optional

    Returns
    -------
    Axes
        With one scatter for each reading that occurs.

    Examples
    --------
    >>> from jointforest.plot import epsilon_against_density
    >>> X, y = penguins.drop(columns="species"), penguins["species"]
    >>> clf = jf.GenerativeForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> ax = epsilon_against_density(clf.uncertainty(X))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('log-density', 'epsilon')
    """
    ax = new_axes(5.4, 3.6) if ax is None else ax
    for reading, colour in zip(READINGS, LEVEL_COLORS, strict=False):
        rows = uncertainty.reading == reading
        if rows.any():
            ax.scatter(uncertainty.log_density[rows], uncertainty.epsilon[rows], s=9, c=colour, label=reading)
    ax.set(xlabel="log-density", ylabel="epsilon")
    ax.legend(frameon=False)
    clean(ax)
    return ax


def extreme_rows(X: Any, epsilon: np.ndarray, shape: tuple[int, int] | None = None, k: int = 8) -> Figure:
    """The k most and the k least robust rows.

    Parameters
    ----------
    X : frame or array of n rows
    epsilon : float array (n,)
        Robustness of their predictions; rows where it is NaN are not shown.
    shape : pair of ints, optional
        Height and width of the picture that a row's numbers are; default: rows are shown as a table.
    k : int

    Returns
    -------
    Figure
        Two rows of pictures, the most robust above, or two tables; each with its epsilon.

    Raises
    ------
    ValueError
        If X and epsilon differ in length, or the columns do not make a picture of this shape.

    References
    ----------
    A. Correia, R. Peharz, C. de Campos, "Towards Robust Classification with Deep Generative Forests", 2020, Figure 4.

    Examples
    --------
    >>> from jointforest.plot import extreme_rows
    >>> figure = extreme_rows(np.random.default_rng(0).random((20, 4)), np.linspace(0, 0.5, 20), (2, 2), k=3)
    >>> [ax.get_title() for ax in figure.axes]
    ['0.500', '0.474', '0.447', '0.000', '0.026', '0.053']
    """
    cells, epsilon = np.asarray(X), np.asarray(epsilon, dtype=float)
    if len(cells) != len(epsilon):
        raise ValueError(f"X has {len(cells)} rows and epsilon {len(epsilon)}; expected as many of both")
    if shape is not None and cells.shape[1] != shape[0] * shape[1]:
        raise ValueError(f"X has {cells.shape[1]} columns; a picture of shape {shape} needs {shape[0] * shape[1]}")
    order = np.argsort(epsilon, kind="stable")[: int(np.sum(~np.isnan(epsilon)))]
    most, least = order[::-1][:k], order[:k]
    if shape is None:
        return _both_ends(
            cells, [str(name) for name in getattr(X, "columns", range(cells.shape[1]))], epsilon, most, least
        )
    figure, axes = plt.subplots(2, max(len(most), 1), squeeze=False, figsize=(1.1 * max(len(most), 1), 2.8))
    for line, rows in zip(axes, (most, least), strict=True):
        for ax in line:
            ax.set_axis_off()
        for ax, row in zip(line, rows, strict=False):
            ax.imshow(cells[row].astype(float).reshape(shape), cmap="gray_r")
            ax.set_title(f"{epsilon[row]:.3f}", fontsize=8)
    return figure


def _both_ends(cells: np.ndarray, names: list[str], epsilon: np.ndarray, most: np.ndarray, least: np.ndarray) -> Figure:
    """Both ends as tables, epsilon first."""
    figure, axes = plt.subplots(2, 1, figsize=(1.2 * (len(names) + 1), 0.5 * (len(most) + 2)))
    for ax, rows, title in zip(axes, (most, least), ("most robust", "least robust"), strict=True):
        ax.set_axis_off()
        ax.set_title(title)
        text = [[f"{epsilon[row]:.3f}", *map(str, cells[row])] for row in rows]
        if text:
            ax.table(text, colLabels=["epsilon", *names], loc="center")
    return figure


# ---- Survival curves of a column by groups of evidence, beside those of a table.

_POINTS, _FEW = 200, 25


def survival(
    joint: Joint,
    column: str,
    groups: Sequence[str] = ("",),
    frame: Any = None,
    until: Any = None,
    standard_errors: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """The probability that an event has not happened yet, over time, in groups of rows.

    Parameters
    ----------
    joint : Joint
    column : str
        A column of times, as numbers or dates.
    groups : sequence of str
        Texts of conditions, such as ``["plan = basic", "plan = pro"]``: a curve each. Default: all rows.
    frame : frame, optional
        Rows to compare with: the Kaplan-Meier estimate of those in each group is drawn as a thin line. A row counts as
        much as it is probable that it is in the group, given its known cells.
    until : number or date, optional
        The end of the curves; default, and at most where rows are censored: the largest time that is known exactly.
    standard_errors : bool
        Whether to shade two standard errors on both sides.
    ax : Axes, optional

    Returns
    -------
    Axes
        A line for each group, labelled by its conditions; with a frame one more after each of which it has rows.

    Raises
    ------
    ValueError
        If the column has levels, or a group has probability 0.

    Examples
    --------
    >>> ax = plot.survival(joint, "body_mass_g", ["species = Adelie", "species = Gentoo"], penguins)
    >>> [line.get_label() for line in ax.lines][::2]
    ["species = 'Adelie'", "species = 'Gentoo'"]
    """
    check_joint(joint)
    if isinstance(groups, str) or not len(groups):
        raise ValueError(f"groups must be a list of texts such as ['age >= 40'], at least one, got {groups!r}")
    found, j = joint.schema[column], joint.schema.index(column)
    if found.is_categorical:
        raise ValueError(f"column {column!r} is {found.kind}: it has no times; give a column of numbers or dates")
    last = min(found.maximum if until is None else float(found.numbers(until)), found.learned_until)
    t = np.linspace(min(found.minimum, last, 0.0 if found.kind != "datetime" else last), last, _POINTS)
    rows = None if frame is None else joint.given(frame)
    ax = new_axes(5.8, 3.6) if ax is None else ax
    for text, colour in zip(groups, [LEVEL_COLORS[k % len(LEVEL_COLORS)] for k in range(len(groups))], strict=True):
        given = one_posterior(joint.given(text) if text else joint.given())
        curve = 1.0 - given.state.cdf(j, t)[0]
        ax.plot(places(found, t), curve, color=colour, label=given.evidence_text or "all rows")
        if standard_errors:
            few = np.linspace(t[0], t[-1], _FEW)
            times = [found.scalar(float(x)) for x in few]
            error = [given.standard_error({column: Interval(lo=x, closed="neither")}) for x in times]
            middle, width = np.interp(few, t, curve), 2.0 * np.array(error)
            low, high = np.clip([middle - width, middle + width], 0.0, 1.0)
            ax.fill_between(places(found, few), low, high, color=colour, alpha=0.15, linewidth=0)
        if rows is not None:
            weight = np.atleast_1d(rows.probability(text)) if text else np.ones(len(rows))
            estimate = kaplan_meier(rows.state.evidence, j, weight)
            if estimate is None:
                continue
            at, share = estimate
            share = np.append(1.0, share[at <= last])
            at, share = np.concatenate([t[:1], at[at <= last], [last]]), np.append(share, share[-1])
            ax.plot(places(found, at), share, drawstyle="steps-post", color=colour, linewidth=0.8, label="Kaplan-Meier")
    ax.set(xlabel=short(column), ylabel="share without an event", ylim=(-0.02, 1.02))
    in_percent(ax.yaxis)
    if found.kind == "datetime":
        format_dates(ax)
    clean(ax)
    ax.legend(frameon=False, fontsize=8)
    return ax


def kaplan_meier(evidence: Evidence, j: int, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Kaplan-Meier of rows of evidence with weights (n,): times of events (k,), and the share without one from each;
    None if no row remains. Cells known to be above a number are censored there; those with other regions are left
    out."""
    time, region = evidence.value[:, j].copy(), evidence.cell_regions()[:, j]
    is_event = ~np.isnan(time)
    some = np.flatnonzero((region >= 0) & ~is_event)
    first, end = evidence.run_start[region[some]], evidence.run_start[region[some] + 1]
    is_later = (end == first + 1) & np.isposinf(evidence.run_hi[np.minimum(first, len(evidence.run_hi) - 1)])
    time[some[is_later]] = evidence.run_lo[first[is_later]]
    known = np.flatnonzero(~np.isnan(time) & (weight > 0.0))
    if not len(known):
        return None
    order = known[np.lexsort((~is_event[known], time[known]))]
    at_risk = weight[order][::-1].cumsum()[::-1]
    times, first_of = np.unique(time[order], return_index=True)
    died = np.add.reduceat(weight[order] * is_event[order], first_of)
    share = np.cumprod(1.0 - died / at_risk[first_of])
    return times[died > 0.0], share[died > 0.0]
