"""Memory that kernels write to and read again, one row after the other: made once for a chunk of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...runtime.records import record
from .component_kernels import STRIDE
from .match import MatchedArrays


@record
class ResidualTrees(NamedTuple):
    """The residual trees of one row: n nodes in preorder, a node's left child next to it.

    node : int32 array (N,). Number of the node in the ensemble.
    right : int32 array (N,). Place of the right child; -1 at leaves.
    parent : int32 array (N,). Place of the parent; -1 at roots.
    start : int32 array (T + 1,). Place of each tree's root.
    one_column : uint8 array (N,). Of inner nodes: whether all splits from here on are of one column.
    mass : float64 array (N,). Probability of the leaf; also of an inner node whose subtree was not followed.
    is_used : uint8 array (M,), used : int32 array (M,), local : int32 array (M,). Split regions that the nodes refer
        to, in order, ZERO and ONE first, and the place of each among these.
    """

    node: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    start: np.ndarray
    one_column: np.ndarray
    mass: np.ndarray
    is_used: np.ndarray
    used: np.ndarray
    local: np.ndarray


@record
class ActiveComponents(NamedTuple):
    """The components (leaves) of the joint that count for one row.

    component : int32 array (C,)
    weight : float64 array (C,). Sums to 1 over the row's components.
    n : int64 array (1,). How many.
    dropped : float64 array (1,). Share of the posterior weight of components that were left out.
    """

    component: np.ndarray
    weight: np.ndarray
    n: np.ndarray
    dropped: np.ndarray


@record
class _RowScratch(NamedTuple):
    """Scratch for one row.

    box : int32 array (d, 2), box_column : int32 array (d,). A leaf's box: its columns, and their split regions.
    stack, one_stack : int32 arrays, stack_mass, one_stack_mass : float64 arrays. Ways still to go down a tree, and down
        a part of it that splits one column.
    mass : float64 array (M, STRIDE). Masses of the used split regions in a block of components.
    vector : float64 array (depth + 3, STRIDE). Weights of the block's components down a tree; row 0 at its root.
    level_mass : float64 array (S, STRIDE)
    root_mass : float64 array (M,). Masses of the used split regions under the weights in row 0; NaN: not computed yet.
    """

    residual: ResidualTrees
    active: ActiveComponents
    box: np.ndarray
    box_column: np.ndarray
    stack: np.ndarray
    one_stack: np.ndarray
    stack_mass: np.ndarray
    one_stack_mass: np.ndarray
    mass: np.ndarray
    vector: np.ndarray
    level_mass: np.ndarray
    root_mass: np.ndarray


def expectation_scratch(arrays: MatchedArrays) -> _RowScratch:
    """Scratch for the rows of one thread; memory is only taken for what a row writes."""
    n_nodes, n_trees, d = len(arrays.splits.feature), len(arrays.splits.root), len(arrays.columns.slot)
    n_regions, n_components = len(arrays.regions.column), len(arrays.leaves.log_weight)
    n_levels, depth = int(arrays.columns.level_start[-1]), arrays.depth

    def integers(*shape: int) -> np.ndarray:
        return np.empty(shape, dtype=np.int32)

    residual = ResidualTrees(
        integers(n_nodes), integers(n_nodes), integers(n_nodes), integers(n_trees + 1), np.empty(n_nodes,
        dtype=np.uint8), np.empty(n_nodes), np.empty(n_regions, dtype=np.uint8), integers(n_regions),
        integers(n_regions),
    )  # fmt: skip
    active = ActiveComponents(
        integers(n_components), np.empty(n_components), np.zeros(1, dtype=np.int64), np.zeros(1),
    )  # fmt: skip
    return _RowScratch(
        residual=residual,
        active=active,
        box=integers(d, 2),
        box_column=integers(d),
        stack=integers(2 * depth + 4),
        one_stack=integers(2 * depth + 4),
        stack_mass=np.empty(2 * depth + 4),
        one_stack_mass=np.empty(2 * depth + 4),
        mass=np.empty((n_regions, STRIDE)),
        vector=np.empty((depth + 3, STRIDE)),
        level_mass=np.empty((n_levels, STRIDE)),
        root_mass=np.empty(n_regions),
    )


@record
class PairSums(NamedTuple):
    """What pairs of leaves are added to, see `pair_kernels.leaf_pair_rows`.

    tree, stop : int
    value, matrix, product, mass : float64 arrays
    """

    tree: int
    stop: int
    value: np.ndarray
    matrix: np.ndarray
    product: np.ndarray
    mass: np.ndarray


@record
class SplitCells(NamedTuple):
    """The cells of one row: those into which its D missing columns are split, and all their combinations.

    Cells of a number lie between neighbouring edges; levels that no split separates are one cell.

    n : int64 array (1,). D, the number of columns; the next four have a place for each.
    column : int32 array (d,)
    first, size : int32 arrays (d,). The cells of column c are ``first[c]:first[c] + size[c]``.
    region : int32 array (d,). Place of the column's first split region among the used ones.
    place : int32 array (d,). Where a column of the joint is among the D; -1 if it is not.
    level_cell : int32 array (S,). Which of its column's cells a level is in.
    level_key : uint64 array (S,). Equal for levels that no split separates.
    member : uint8 array (M, levels). Whether a set of levels has the cell of this number.
    """

    n: np.ndarray
    column: np.ndarray
    first: np.ndarray
    size: np.ndarray
    region: np.ndarray
    place: np.ndarray
    level_cell: np.ndarray
    level_key: np.ndarray
    member: np.ndarray


@record
class CellScratch(NamedTuple):
    """Scratch for the combinations of one row's cells.

    combination : int64 array (d,). The cell of each column.
    probability : float64 array (most combinations,)
    mass : float64 array (cells, STRIDE). Mass of each cell in a block of components.
    vector : float64 array (d + 1, STRIDE). Weights of components times masses of cells of the first columns.
    total, answer : float64 arrays (K,)
    """

    cells: SplitCells
    combination: np.ndarray
    probability: np.ndarray
    mass: np.ndarray
    vector: np.ndarray
    total: np.ndarray
    answer: np.ndarray


def cell_scratch(arrays: MatchedArrays, most: int) -> CellScratch:
    """Scratch for rows with at most ``most`` combinations of cells."""
    d, n_levels, n_outputs = len(arrays.columns.slot), int(arrays.columns.level_start[-1]), arrays.middle.shape[1]
    n_regions = len(arrays.regions.column)
    n_cells = n_regions + n_levels + d  # at most
    widest = int(np.diff(arrays.columns.level_start).max(initial=1))
    column, first, size, region, place = np.empty((5, d), dtype=np.int32)
    cells = SplitCells(
        np.zeros(1, dtype=np.int64), column, first, size, region, place, np.empty(n_levels, dtype=np.int32),
        np.empty(n_levels, dtype=np.uint64), np.empty((n_regions, min(widest, most)), dtype=np.uint8),
    )  # fmt: skip
    return CellScratch(
        cells=cells,
        combination=np.zeros(d, dtype=np.int64),
        probability=np.empty(most),
        mass=np.empty((n_cells, STRIDE)),
        vector=np.empty((d + 1, STRIDE)),
        total=np.empty(n_outputs),
        answer=np.empty(n_outputs),
    )
