"""What must be true of hidden trees that come from a file."""

from __future__ import annotations

import numpy as np

from ..table.scale.check import check_scale
from ..table.schema import kernel_columns
from ..trees.check import check_trees
from .grown import Grown
from .hidden_trees import HiddenTrees
from .tree import HiddenTree

SUM_ERROR = 1e-4
"""Most that a row of a table may be off 1: what float32 leaves of a sum of thousands of entries, with room."""


def check_hidden(hidden: HiddenTrees) -> None:
    """See that every field of hidden trees is as `HiddenTrees` and `HiddenTree` promise.

    Raises
    ------
    ValueError
        Names the tree and the field, or the column of a scale, and what was expected.
    """
    columns = hidden.schema.columns
    if len(hidden.scales) != len(columns):
        raise ValueError(f"hidden trees: {len(hidden.scales)} scales for {len(columns)} columns")
    for scale, column in zip(hidden.scales, columns, strict=True):
        check_scale(scale, column)
    check_weights(hidden.log_weight, len(hidden.trees), "hidden trees")
    for t, tree in enumerate(hidden.trees):
        what = f"hidden tree {t}"
        _check_shape(tree, len(columns), what)
        _check_tables(tree, [scale.n_codes for scale in hidden.scales], what)
        for j, scale in enumerate(hidden.scales):
            if tree.emission[tree.node[j]][:, np.isneginf(scale.log_code)].any():
                raise ValueError(f"{what}: column {columns[j].name!r} has a code that its scale has nothing of")
    if hidden.grown is not None:
        check_trees(kernel_columns(hidden.schema), hidden.grown.trees, hidden.grown.has_background)
        _check_leaves(hidden.grown, len(hidden.trees))


def _check_leaves(grown: Grown, n: int) -> None:
    """Each hidden tree has a leaf of its own, rising."""
    leaf, n_leaves = grown.leaf, int((grown.trees.leaf >= 0).sum())
    if not isinstance(leaf, np.ndarray) or leaf.dtype != np.int32 or leaf.shape != (n,):
        raise ValueError(f"hidden trees: the leaves that they stand in must be int32, {n} of them")
    if (np.diff(leaf, prepend=np.int32(-1)) <= 0).any() or leaf[-1] >= n_leaves:
        raise ValueError(f"hidden trees: the leaves that they stand in must rise, from 0 to {n_leaves - 1}")
    if grown.has_background and leaf[-1] != n_leaves - 1:
        raise ValueError("hidden trees: the last one must stand in the background")


def check_weights(log_weight: np.ndarray, n: int, what: str) -> None:
    """See that there are n logarithms of weights, at least one, and that the weights sum to 1.

    Raises
    ------
    ValueError
        If not.
    """
    if not isinstance(log_weight, np.ndarray) or log_weight.dtype != np.float64 or log_weight.shape != (n,) or n < 1:
        raise ValueError(f"{what}: log_weight must be float64 of shape ({n},), one at least")
    if np.isnan(log_weight).any() or (log_weight > 1e-9).any() or abs(np.exp(log_weight).sum() - 1.0) > 1e-6:
        raise ValueError(f"{what}: weights must sum to 1")


def _check_shape(tree: HiddenTree, d: int, what: str) -> None:
    """Parents before their children, each column once."""
    for name in ("column", "parent"):
        array = getattr(tree, name)
        if not isinstance(array, np.ndarray) or array.dtype != np.int32 or array.shape != (len(tree.parent),):
            raise ValueError(f"{what}: {name} must be int32, one a node")
    parent, column = tree.parent, tree.column
    if len(parent) == 0 or parent[0] != -1:
        raise ValueError(f"{what}: node 0 must be the root, with parent -1")
    if np.any(parent[1:] < 0) or np.any(parent[1:] >= np.arange(1, len(parent))):
        raise ValueError(f"{what}: parents must come before their children, and there is one root")
    if not np.array_equal(np.sort(column[column != -1]), np.arange(d)):
        raise ValueError(f"{what}: each of the {d} columns must have one node")


def _check_tables(tree: HiddenTree, n_codes: list[int], what: str) -> None:
    """Shapes that fit each other, one type, shares that sum to 1."""
    m = len(tree.parent)
    if len(tree.transition) != m or len(tree.emission) != m or len(tree.blank) not in (0, m):
        raise ValueError(f"{what}: expected one table of each kind for each of {m} nodes")
    dtype = tree.transition[0].dtype
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"{what}: tables must be float32 or float64, got {dtype}")
    above = 1
    for k, j in enumerate(tree.column.tolist()):
        table = tree.transition[k]
        if k:
            above = tree.transition[tree.parent[k]].shape[1]
        states = table.shape[1] if table.ndim == 2 else 0
        _check_shares(table, (above, max(states, 1)), dtype, f"{what}, node {k}: transition")
        if j >= 0:
            _check_shares(tree.emission[k], (states, n_codes[j]), dtype, f"{what}, node {k}: emission")
        elif tree.emission[k].shape != (states, 0) or tree.emission[k].dtype != dtype:
            raise ValueError(f"{what}, node {k}: emission of a node without a column must have the shape ({states}, 0)")
        if tree.blank:
            blank = tree.blank[k]
            if blank.shape != (states,) or blank.dtype != dtype or not ((blank >= 0.0) & (blank <= 1.0)).all():
                raise ValueError(f"{what}, node {k}: blank must be {states} shares from 0 to 1, {dtype}")


def _check_shares(table: np.ndarray, shape: tuple[int, int], dtype: np.dtype, what: str) -> None:
    if table.shape != shape or table.dtype != dtype:
        raise ValueError(f"{what} must be {dtype} of shape {shape}, got {table.dtype} of shape {table.shape}")
    if not (table >= 0.0).all():
        raise ValueError(f"{what} has an entry below 0 or NaN")
    total = table.sum(axis=1, dtype=np.float64)
    if not (np.abs(total - 1.0) <= SUM_ERROR).all():
        raise ValueError(f"{what}: rows must sum to 1")
