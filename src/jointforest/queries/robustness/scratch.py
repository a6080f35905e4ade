"""The scratch that robustness works one row out on, one block a thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.records import record
from .problem import Problem


@record
class Reached(NamedTuple):
    """What one row reaches of trees with N nodes and L leaves over d columns: written by `reach_kernels.reached_nodes`.

    Nodes are in preorder. Those of tree t are ``node_start[t]:node_start[t + 1]``, its leaves
    ``leaf_start[t]:leaf_start[t + 1]``.

    Attributes
    ----------
    node_start, leaf_start : int64 arrays (T + 1,)
    leaf : int32 array (L,)
        Leaves that are reached.
    leaf_at : int32 array (N,)
        Which of the reached leaves the node is; -1 of inner nodes.
    child, other : int32 arrays (N,)
        The node's children; ``other`` is -1 if the row reaches only one.
    share : float64 array (N,)
        Weight of ``child`` at the node; that of the other child is the rest.
    stack : int32 array (N,)
        Nodes whose other child is still to be visited.
    n_levels, n_numbers : int64 arrays (1,)
        Known categorical cells that can be contaminated, and known numbers.
    level_slot, level : int32 arrays (d,)
        Slot and code of each such level.
    number : int32 array (d,)
        Columns of the known numbers.
    x : float64 array (d,)
        By column: the number, on a grid the centre of its cell, or the level's code; NaN where nothing is known.
    atom : int32 array (d,)
        By column: number of x's atom within the slot, -1 if none.
    """

    node_start: np.ndarray
    leaf_start: np.ndarray
    leaf: np.ndarray
    leaf_at: np.ndarray
    child: np.ndarray
    other: np.ndarray
    share: np.ndarray
    stack: np.ndarray
    n_levels: np.ndarray
    n_numbers: np.ndarray
    level_slot: np.ndarray
    level: np.ndarray
    number: np.ndarray
    x: np.ndarray
    atom: np.ndarray


@record
class Worst(NamedTuple):
    """The worst case of one row, for one contamination and challenger.

    ``value * exp(log_scale)`` is the value of a leaf or of a circuit's node; the nodes of a tree share one scale.

    Attributes
    ----------
    epsilon : float64 array (1,)
        The contamination that lower and upper are for.
    lower, upper : float64 arrays (L,)
        Log bounds of the evidence in the reached leaves, NaN until asked for.
    best_mean : float64 array (L, p)
        `density_bound_kernels.best_mean` of each reached leaf and slot, NaN until asked for.
    value, mass, log_scale : float64 arrays (L,)
        Of the reached leaves.
    node_value, node_mass : float64 arrays (N,)
        Of the reached nodes.
    tree_value, tree_mass, tree_weight, ratio : float64 arrays (T,)
        ``tree_weight`` in the average of trees; ``ratio`` where Dinkelbach's method ended last.
    is_blank : uint8 array (T,)
        Trees that give the evidence probability 0 and are averaged all the same: they know boxes alone.
    q_lower, q_upper, q_value, q_mass, q_scale : float64 arrays (Q,)
        Of circuits' nodes: bounds of those without target, the rest of those with it.
    """

    epsilon: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    best_mean: np.ndarray
    value: np.ndarray
    mass: np.ndarray
    log_scale: np.ndarray
    node_value: np.ndarray
    node_mass: np.ndarray
    tree_value: np.ndarray
    tree_mass: np.ndarray
    tree_weight: np.ndarray
    ratio: np.ndarray
    is_blank: np.ndarray
    q_lower: np.ndarray
    q_upper: np.ndarray
    q_value: np.ndarray
    q_mass: np.ndarray
    q_scale: np.ndarray


def make_scratch(problem: Problem) -> tuple[Reached, Worst]:
    """Arrays for one row; memory that no row touches is never claimed from the system."""
    n_nodes, n_leaves, n_trees = len(problem.trees.feature), len(problem.leaves.log_weight), len(problem.trees.root)
    d, p, n_circuit = len(problem.columns.slot), len(problem.columns.step), len(problem.leaves.node_kind)
    reached = Reached(
        node_start=np.empty(n_trees + 1, np.int64),
        leaf_start=np.empty(n_trees + 1, np.int64),
        leaf=np.empty(n_leaves, np.int32),
        leaf_at=np.empty(n_nodes, np.int32),
        child=np.empty(n_nodes, np.int32),
        other=np.empty(n_nodes, np.int32),
        share=np.empty(n_nodes),
        stack=np.empty(n_nodes, np.int32),
        n_levels=np.empty(1, np.int64),
        n_numbers=np.empty(1, np.int64),
        level_slot=np.empty(d, np.int32),
        level=np.empty(d, np.int32),
        number=np.empty(d, np.int32),
        x=np.empty(d),
        atom=np.empty(d, np.int32),
    )
    worst = Worst(
        epsilon=np.empty(1),
        lower=np.empty(n_leaves),
        upper=np.empty(n_leaves),
        best_mean=np.empty((n_leaves, p)),
        value=np.empty(n_leaves),
        mass=np.empty(n_leaves),
        log_scale=np.empty(n_leaves),
        node_value=np.empty(n_nodes),
        node_mass=np.empty(n_nodes),
        tree_value=np.empty(n_trees),
        tree_mass=np.empty(n_trees),
        tree_weight=np.empty(n_trees),
        ratio=np.empty(n_trees),
        is_blank=np.zeros(n_trees, np.uint8),
        q_lower=np.empty(n_circuit),
        q_upper=np.empty(n_circuit),
        q_value=np.empty(n_circuit),
        q_mass=np.empty(n_circuit),
        q_scale=np.empty(n_circuit),
    )
    return reached, worst
