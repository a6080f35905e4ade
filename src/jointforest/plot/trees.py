"""A tree as a picture, with what its leaves hold, and as Graphviz text; leaves of images as images."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..api.joint import Joint
from ..data.conditions import AnyOf, Interval, Not
from ..data.evidence import build
from ..inference.explanation import TreeNode, tree_leaves, tree_nodes
from ..inference.histogram import even_edges
from ..models.base import Distribution
from ..models.box_forest.box_trees import BoxTrees
from ..query_language.render import condition_text
from ..runtime.parameters import Number, check_number
from .distributions import BINS, MOST_LEVELS, chosen, draw_bins, places, span, trees_of
from .style import POSTERIOR, short

_MOST_COLUMNS = 6
_LABEL = 26


class _Shown(NamedTuple):
    """Nodes that are drawn, in the order of `tree_nodes`, and the groups of leaves below those at an end."""

    nodes: list[TreeNode]
    leaves: list[np.ndarray]  # of each node: none of one that is open, all below of one at an end


def tree(joint: Joint, tree: int = 0, columns: Sequence[str] | None = None, max_leaves: int = 24) -> Figure:
    """One tree from left to right: tests on the branches, and at each end the distributions of some columns.

    Parameters
    ----------
    joint : Joint
    tree : int
        Number of the tree, 0 to ``n_trees - 1``.
    columns : sequence of str, optional
        Columns whose distributions are shown; default: the first 6.
    max_leaves : int
        Most ends. In a larger tree the heaviest nodes are opened first; an end that is no leaf is labelled with its
        number of leaves, and shows their mixture.

    Returns
    -------
    Figure
        Its first axes holds the tree; the others, line by line, an end's columns: numbers as shares of bins (the same
        for all ends, 1 % of the column is outside of them; the line is the mean), levels as bars. Shares are of the
        tree's rows; a bar that reaches the full height is the largest share of the panel.

    Raises
    ------
    ValueError
        If there is no such tree or column, or max_leaves is not at least 1.

    References
    ----------
    D. Nyga, M. Picklum, T. Schierenbeck, M. Beetz, "Joint Probability Trees", 2023.

    Examples
    --------
    >>> joint = jf.JointTree(max_leaf_nodes=3, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> figure = plot.tree(joint, columns=["species", "body_mass_g"])
    >>> len(figure.axes)  # the tree, and two columns of three leaves
    7
    >>> figure.savefig("tree.svg")  # or .pdf, .png
    """
    forest = trees_of(joint, "tree")
    shown = _shown_nodes(forest, tree, max_leaves)
    names = chosen(forest.schema, columns, _MOST_COLUMNS)
    ends = [number for number, leaves in enumerate(shown.leaves) if len(leaves)]
    depth = 1 + max(node.depth for node in shown.nodes)
    wide, high = 1.75 * depth + 1.3 * len(names), 0.6 * max(len(ends), 2) + 0.6
    figure = plt.figure(figsize=(wide, high), layout="constrained")
    grid = figure.add_gridspec(len(ends), 1 + len(names), width_ratios=[1.75 * depth, *([1.3] * len(names))])
    _draw_branches(figure.add_subplot(grid[:, 0]), shown, ends, depth)
    panels = [[figure.add_subplot(grid[line, 1 + place]) for place in range(len(names))] for line in range(len(ends))]
    groups = [shown.leaves[end] for end in ends]
    for place, j in enumerate(names):
        _draw_column(joint.distribution, forest, j, groups, [line[place] for line in panels])
    return figure


def _shown_nodes(forest: BoxTrees, tree: int, max_leaves: int) -> _Shown:
    """Nodes of a tree with at most so many ends, opened from the heaviest on."""
    check_number("max_leaves", max_leaves, 1, whole=True, text="a positive integer")
    nodes = tree_nodes(forest, tree)
    weighted = set(tree_leaves(forest, tree).tolist())
    below: list[list[int]] = [[node.leaf] if node.leaf in weighted else [] for node in nodes]
    children: list[list[int]] = [[] for _ in nodes]
    for number in range(len(nodes) - 1, 0, -1):
        below[nodes[number].parent] += below[number]
        children[nodes[number].parent].insert(0, number)
    is_open = [False] * len(nodes)
    heap = [(-1.0, 0)] if children[0] else []
    ends = 1
    while heap:
        number = heapq.heappop(heap)[1]
        kept = [child for child in children[number] if below[child]]
        if ends + len(kept) - 1 > max_leaves:
            break
        is_open[number] = True
        ends += len(kept) - 1
        for child in kept:
            if children[child]:
                heapq.heappush(heap, (-nodes[child].share, child))
    place = {-1: -1}
    found = _Shown([], [])
    for number, node in enumerate(nodes):
        if below[number] and (node.parent < 0 or (node.parent in place and is_open[node.parent])):
            place[number] = len(found.nodes)
            found.nodes.append(node._replace(parent=place[node.parent]))
            found.leaves.append(np.array([] if is_open[number] else sorted(below[number]), dtype=np.int64))
    return found


def _draw_branches(ax: Axes, shown: _Shown, ends: list[int], depth: int) -> None:
    """Branches with their tests; ends stand in the middle of their lines of panels."""
    height = [math.nan] * len(shown.nodes)
    for line, end in enumerate(ends):
        height[end] = line + 0.5
    kids: list[list[float]] = [[] for _ in shown.nodes]
    for number in range(len(shown.nodes) - 1, -1, -1):
        node = shown.nodes[number]
        if kids[number]:
            height[number] = (min(kids[number]) + max(kids[number])) / 2
            ax.plot([node.depth + 1] * 2, [min(kids[number]), max(kids[number])], color="0.5", linewidth=1)
        if node.parent >= 0:
            kids[node.parent].append(height[number])
    for number, node in enumerate(shown.nodes):
        stop = node.depth + 1 if not len(shown.leaves[number]) else depth
        ax.plot([node.depth, stop], [height[number]] * 2, color="0.5", linewidth=1)
        text = "all rows" if node.parent < 0 else _short_test_text(node)
        ax.text(node.depth + 0.04, height[number] - 0.06, text, fontsize=7, va="bottom")
        ax.text(
            node.depth + 0.04, height[number] + 0.06, _share_text(node, shown.leaves[number]),
            fontsize=6.5, va="top", color="0.35",
        )  # fmt: skip
    ax.set(xlim=(0, depth), ylim=(len(ends), 0))
    ax.set_axis_off()


def _draw_column(model: Distribution, forest: BoxTrees, j: int, groups: list[np.ndarray], panels: list[Axes]) -> None:
    """One column's panels from top to bottom."""
    column = forest.schema.columns[j]
    in_groups = forest.column_in_groups(build(forest.schema), groups, j)
    if column.is_categorical:
        share = in_groups.level_probability()
        order = np.argsort(-share.max(axis=0), kind="stable")[:MOST_LEVELS]
        order = np.sort(order)
        for ax, bars in zip(panels, share[:, order], strict=True):
            ax.bar(np.arange(len(order)), bars, color=POSTERIOR)
            ax.set(ylim=(0, max(bars.max(), 1e-300) * 1.05))
        panels[-1].set_xticks(
            np.arange(len(order)), [short(column.levels[code], 12) for code in order], rotation=60, fontsize=6
        )
    else:
        edges = even_edges(column, *span(model, build(forest.schema), j), BINS)
        cdf = in_groups.cdf(edges)
        mean = in_groups.mean()
        for ax, up_to, middle in zip(panels, cdf, mean, strict=True):
            draw_bins(ax, column, edges, np.diff(up_to), fill=True, color=POSTERIOR, alpha=0.9)
            if edges[0] <= middle <= edges[-1]:
                ax.axvline(places(column, np.array([middle]))[0], color="black", linewidth=0.8)
        panels[-1].tick_params(labelsize=6)
        if column.kind != "datetime":
            panels[-1].xaxis.set_major_locator(MaxNLocator(3))
    for ax in panels:
        ax.set_yticks([])
        ax.spines[["top", "left", "right"]].set_visible(False)
        if ax is not panels[-1]:
            ax.tick_params(bottom=False, labelbottom=False)
            ax.xaxis.get_offset_text().set_visible(False)
    panels[0].set_title(short(column.name, 20), fontsize=8)


def _short_test_text(node: TreeNode) -> str:
    """The test that leads to a node: numbers with four digits, of many levels the first, on two lines if it is long."""
    test = node.test
    if not node.column:
        return node.text
    if isinstance(test, Interval):
        test = Interval(_rounded_end(test.lo), _rounded_end(test.hi), test.closed)
    text = condition_text("", test).strip()
    levels = test.condition if isinstance(test, Not) else test
    if isinstance(levels, AnyOf):
        text = ("not in " if isinstance(test, Not) else "in ") + _some_levels(levels.conditions)
    if len(node.column) + len(text) < _LABEL:
        return f"{short(node.column)} {short(text, _LABEL)}"
    return f"{short(node.column, _LABEL)}\n{short(text, _LABEL + 6)}"


def _some_levels(levels: Sequence[Any]) -> str:
    """As many levels as there is room for, and the number of the others."""
    names = [str(level) for level in levels]
    kept = 1
    while kept < len(names) and len(", ".join(names[: kept + 1])) <= _LABEL - 6:
        kept += 1
    more = f" +{len(names) - kept}" if kept < len(names) else ""
    return "{" + short(", ".join(names[:kept]), _LABEL - 6) + more + "}"


def _rounded_end(end: Any) -> Any:
    return float(f"{end:.4g}") if isinstance(end, float) else end


def _share_text(node: TreeNode, leaves: np.ndarray) -> str:
    share = f"{100 * node.share:.1f}%"
    if not len(leaves):
        return share
    return f"{share}  leaf {node.leaf}" if node.leaf >= 0 else f"{share}  {len(leaves)} leaves"


# ---- What the leaves of a table of pictures look like.


_WIDE = 10


def leaf_images(joint: Joint, shape: tuple[int, int], columns: Sequence[str] | None = None, tree: int = 0) -> Figure:
    """The expectation of each leaf of a tree, where a row is a picture; the heaviest leaf first.

    Parameters
    ----------
    joint : Joint
    shape : pair of ints
        Height and width of a picture.
    columns : sequence of str, optional
        Its pixels, line by line; default: all columns of numbers.
    tree : int
        Number of the tree.

    Returns
    -------
    Figure
        One axes a leaf, with the share of the tree's rows it holds, and the most probable level of each column with
        levels.

    Raises
    ------
    ValueError
        If there is no such tree or column, a column has levels, or there are not height * width of them.

    References
    ----------
    D. Nyga, M. Picklum, T. Schierenbeck, M. Beetz, "Joint Probability Trees", 2023, Figure 3.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> X = np.random.default_rng(0).normal(size=(200, 6)) + 5 * (np.arange(200) % 2)[:, None]
    >>> joint = jf.JointTree(random_state=0).fit(X).joint_
    >>> figure = plot.leaf_images(joint, (2, 3))
    >>> len(figure.axes) == joint.n_leaves
    True
    """
    trees, schema = trees_of(joint, "leaf_images"), joint.schema
    numeric = [column.name for column in schema.columns if not column.is_categorical]
    pixels = chosen(schema, numeric if columns is None else columns, 0)
    for j in pixels:
        if schema.columns[j].is_categorical:
            raise ValueError(f"column {schema.names[j]!r} is {schema.columns[j].kind}: a pixel is a number")
    if np.shape(shape) != (2,) or not all(n in Number(1, whole=True) for n in shape):
        raise ValueError(f"shape must be a pair of positive integers, height and width, got {shape!r}")
    if len(pixels) != shape[0] * shape[1]:
        raise ValueError(f"{len(pixels)} columns make no picture of shape {shape}, which has {shape[0] * shape[1]}")
    leaves = tree_leaves(trees, tree)
    leaves = leaves[np.argsort(-trees.log_weight[leaves], kind="stable")]
    nothing = build(schema)
    image = np.column_stack([trees.column_in_groups(nothing, leaves[:, None], j).mean() for j in pixels])
    labels = [f"{100 * share:.1f}%" for share in _leaf_shares(trees, leaves)]
    for j, column in enumerate(schema.columns):
        if column.is_categorical:
            share = trees.column_in_groups(nothing, leaves[:, None], j).level_probability()
            best = share.argmax(axis=1).tolist()
            labels = [f"{label}\n{short(column.levels[code], 10)}" for label, code in zip(labels, best, strict=True)]
    high = -(-len(leaves) // _WIDE)
    lines = labels[0].count("\n") + 1
    figure = plt.figure(figsize=(0.9 * _WIDE, (0.9 + 0.14 * lines) * high), layout="constrained")
    for place, (picture, label) in enumerate(zip(image, labels, strict=True)):
        ax = figure.add_subplot(high, _WIDE, place + 1)
        ax.imshow(picture.reshape(shape), cmap="gray_r", vmin=image.min(), vmax=image.max())
        ax.set_title(label, fontsize=7)
        ax.set_axis_off()
    return figure


def _leaf_shares(trees: BoxTrees, leaves: np.ndarray) -> list[float]:
    """Shares of these leaves in their tree."""
    weight = np.exp(trees.log_weight[leaves])
    return list((weight / weight.sum()).tolist())
