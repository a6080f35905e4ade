"""What the kernels of modes work on: a forest, one row of evidence, and scratch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...forest.forest import Forest
from ...ground.records import record
from ...leaves.table import Leaves
from ...table.columns import Columns
from ...table.evidence import Evidence
from ...trees.nodes import Trees


@record
class Problem(NamedTuple):
    """The search for the mode of a model under one row of evidence.

    Attributes
    ----------
    columns, trees, leaves : Columns, Trees, Leaves
        The forest.
    evidence : Evidence
        One row.
    stack : int32 array, reached : int32 array (L,)
        Scratch: nodes to visit, and leaves that the evidence can reach.
    greatest, bound, share : float64 arrays (Q,)
        Scratch, of circuit nodes: the density at a likely point, an upper bound of the density, the weight.
    active : uint8 array (Q,)
        Scratch, of circuit nodes: whether a node takes part at the likely point.
    best_bound : float64 array (T,), best_leaf : int64 array (T,)
        Scratch, of trees: the greatest bound of their leaves, and where that leaf is in the list (-1: nowhere).
    point, other : float64 arrays (d,)
        Scratch: points.
    loss, worst : float64 arrays (d,), own, culprit : int32 arrays (d,)
        Scratch, of columns; see `bound_kernels.choose_cut`.
    """

    columns: Columns
    trees: Trees
    leaves: Leaves
    evidence: Evidence
    stack: np.ndarray
    reached: np.ndarray
    greatest: np.ndarray
    bound: np.ndarray
    share: np.ndarray
    active: np.ndarray
    best_bound: np.ndarray
    best_leaf: np.ndarray
    point: np.ndarray
    other: np.ndarray
    loss: np.ndarray
    worst: np.ndarray
    own: np.ndarray
    culprit: np.ndarray


def problem_of(forest: Forest, evidence: Evidence) -> Problem:
    """The search for the mode of a model under one row of evidence, with scratch of its own."""
    d, n_trees = len(forest.columns.slot), len(forest.trees.root)
    n_leaves, n_nodes = len(forest.leaves.log_weight), len(forest.leaves.node_kind)
    return Problem(
        columns=forest.columns,
        trees=forest.trees,
        leaves=forest.leaves,
        evidence=evidence,
        stack=np.empty(len(forest.trees.feature), np.int32),
        reached=np.empty(n_leaves, np.int32),
        greatest=np.empty(n_nodes),
        bound=np.empty(n_nodes),
        share=np.empty(n_nodes),
        active=np.zeros(n_nodes, np.uint8),
        best_bound=np.empty(n_trees),
        best_leaf=np.empty(n_trees, np.int64),
        point=np.empty(d),
        other=np.empty(d),
        loss=np.empty(d),
        worst=np.empty(d),
        own=np.empty(d, np.int32),
        culprit=np.empty(d, np.int32),
    )
