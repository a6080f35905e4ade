"""Kernels: what is asked of robustness, and the scratch that one row of it is worked out on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.compile import array_kernel
from ...ground.records import record
from .reach_kernels import Reached


@record
class Problem(NamedTuple):
    """What is asked, the same for all rows.

    Attributes
    ----------
    first_level, n_classes : int
        Place of the target's levels in the tables, and their number.
    c : float
        Means move by up to ``c * epsilon * unit``.
    unit : float64 array (p,), or (0,)
        Unit of each slot; empty: the leaf's own standard deviation.
    beta : float
        How trees are combined, see `robustness.robustness`.
    n_trees : int
        Trees that count: with beta below 1 without the background.
    allowed : uint8 array (L, K)
        Classes that the leaf's box admits.
    n_allowed : int64 array (L,)
    splits_target : int
        1 if some leaf's box excludes classes.
    holds_target : uint8 array (Q,)
        Whether the circuit's node describes the target.
    weight : float64 array (N,)
        From `_reached.node_weights`.
    """

    first_level: int
    n_classes: int
    c: float
    unit: np.ndarray
    beta: float
    n_trees: int
    allowed: np.ndarray
    n_allowed: np.ndarray
    splits_target: int
    holds_target: np.ndarray
    weight: np.ndarray


class Worst(NamedTuple):
    """Scratch for one row. ``value * exp(log_scale)`` is a leaf's or circuit node's value; trees' nodes share a scale.

    Attributes
    ----------
    epsilon : float64 array (1,)
        The contamination that lower and upper are for.
    lower, upper : float64 arrays (L,)
        Log bounds of the evidence in the reached leaves, NaN until asked for.
    best : float64 array
        `_credal.best_mean` of each reached leaf and known number, NaN until asked for.
    value, mass, log_scale : float64 arrays (L,)
        Of the reached leaves.
    node_value, node_mass : float64 arrays (N,)
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
    best: np.ndarray
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


@array_kernel
def scratch(columns, trees, leaves):
    """Arrays for one row."""
    n_nodes, n_leaves, n_trees = trees.feature.shape[0], leaves.log_weight.shape[0], trees.root.shape[0]
    d, n_circuit = columns.slot.shape[0], leaves.node_kind.shape[0]
    reached = Reached(
        np.empty(n_trees + 1, np.int32),
        np.empty(n_trees + 1, np.int32),
        np.empty(n_leaves, np.int32),
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.float64),
        np.empty(1, np.int64),
        np.empty(1, np.int64),
        np.empty(d, np.int32),
        np.empty(d, np.int32),
        np.empty(d, np.float64),
        np.empty(d, np.int32),
    )
    worst = Worst(
        np.empty(1),
        np.empty(n_leaves),
        np.empty(n_leaves),
        np.empty(0),
        np.empty(n_leaves),
        np.empty(n_leaves),
        np.empty(n_leaves),
        np.empty(n_nodes),
        np.empty(n_nodes),
        np.empty(n_trees),
        np.empty(n_trees),
        np.empty(n_trees),
        np.empty(n_trees),
        np.zeros(n_trees, np.uint8),
        np.empty(n_circuit),
        np.empty(n_circuit),
        np.empty(n_circuit),
        np.empty(n_circuit),
        np.empty(n_circuit),
    )
    return reached, worst


@array_kernel
def with_best(worst, best):
    """The same scratch with another ``best``."""
    return Worst(
        worst.epsilon,
        worst.lower,
        worst.upper,
        best,
        worst.value,
        worst.mass,
        worst.log_scale,
        worst.node_value,
        worst.node_mass,
        worst.tree_value,
        worst.tree_mass,
        worst.tree_weight,
        worst.ratio,
        worst.is_blank,
        worst.q_lower,
        worst.q_upper,
        worst.q_value,
        worst.q_mass,
        worst.q_scale,
    )
