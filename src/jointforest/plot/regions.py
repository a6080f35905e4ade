"""Two numeric columns and a class: the leaves' boxes over the density."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from ..api.joint import Joint
from ..data.evidence import build
from ..data.frames import encode
from ..inference.explanation.tree_text import tree_leaves
from .distributions import span, trees_of
from .style import LEVEL_COLORS, TABLE, clean, new_axes, short

_PIXELS = 150


def regions(joint: Joint, x: str, y: str, target: str | None = None, frame: Any = None, ax: Axes | None = None) -> Axes:
    """The boxes of a tree's leaves over the density of two columns, the rows of a table coloured by class.

    Parameters
    ----------
    joint : Joint
        Of several trees the boxes are the first one's; the density is always the joint's.
    x, y : str
        Two numeric columns. All other columns are summed over: the boxes of leaves that differ in other
        columns overlap.
    target : str, optional
        A column with levels: boxes are tinted in the colour of their most probable level, rows drawn in that of their
        own.
    frame : frame, optional
        Rows to draw.
    ax : Axes, optional

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
    >>> import jointforest as jf
    >>> from jointforest import plot
    >>> penguins = jf.datasets.load_penguins()[["species", "flipper_length_mm", "bill_length_mm"]]
    >>> joint = jf.JointTree(random_state=0).fit(penguins).joint_
    >>> ax = plot.regions(joint, "flipper_length_mm", "bill_length_mm", "species", penguins)
    >>> len(ax.patches) == joint.n_leaves, [dots.get_label() for dots in ax.collections]
    (True, ['Adelie', 'Chinstrap', 'Gentoo'])
    """
    trees, schema = trees_of(joint, "regions"), joint.schema
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
        np.sqrt(_density(joint, axes, (left, right), (low, high))),
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
    low, high = (known.min(), known.max()) if len(known) else span(joint.distribution, build(joint.schema), j)
    margin = 0.04 * (high - low) or max(0.5, 1e-3 * abs(low))
    return float(low - margin), float(high + margin)


def _density(joint: Joint, axes: list[int], *ends: tuple[float, float]) -> np.ndarray:
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
