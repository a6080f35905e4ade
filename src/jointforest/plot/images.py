"""What the leaves of a table of pictures look like."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..api.joint import Joint
from ..data.evidence import build
from ..inference.explanation.tree_text import tree_leaves
from ..models.box_forest.box_trees import BoxTrees
from ..runtime.parameters import Number
from .distributions import chosen, trees_of
from .style import short

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
    >>> import numpy as np
    >>> import jointforest as jf
    >>> from jointforest import plot
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
    labels = [f"{100 * share:.1f}%" for share in _shares(trees, leaves)]
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


def _shares(trees: BoxTrees, leaves: np.ndarray) -> list[float]:
    """Shares of these leaves in their tree."""
    weight = np.exp(trees.log_weight[leaves])
    return list((weight / weight.sum()).tolist())
