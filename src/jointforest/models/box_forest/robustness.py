"""Robustness: how far every parameter of the model may be wrong before the predicted class changes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence, build, distinct_rows
from ...data.schema import Columns, Schema
from ...runtime.parameters import check, check_number
from ...runtime.records import record
from ...runtime.threads import chunks, map_ordered
from .box_forest import BoxForest
from .leaves.table import Leaves
from .robustness_kernels import allowed_levels, epsilon_rows
from .structure import Forest, Trees, at_leaves
from .structure_kernels import rows_below

# ---- What is asked of robustness, the same for all rows, and whether it can be asked.

_SHIFTS = ("leaf", "column")


@record
class _RobustnessProblem(NamedTuple):
    """The model and what is asked of it: L leaves of N nodes, K classes, p numeric slots.

    columns : Columns
    trees : Trees
    leaves : Leaves
    slot, n_classes : int. Categorical slot of the target, and its number of levels, K.
    c : float. Means move by up to ``c * epsilon * unit``.
    unit : float64 array (p,), or (0,). Unit of each slot; empty: the leaf's own standard deviation.
    beta : float. How trees are combined, see `robustness.robustness`.
    n_trees : int. Trees that count: with beta below 1 without the background.
    allowed : uint8 array (L, K). Classes that the leaf's box admits.
    n_allowed : int64 array (L,). Their number.
    splits_target : int. 1 if some leaf's box excludes classes.
    weight : float64 array (N,). Weight of each node: the sum of the leaves' below it; of a root, that of its tree.
    """

    columns: Columns
    trees: Trees
    leaves: Leaves
    slot: int
    n_classes: int
    c: float
    unit: np.ndarray
    beta: float
    n_trees: int
    allowed: np.ndarray
    n_allowed: np.ndarray
    splits_target: int
    weight: np.ndarray


def check_target(schema: Schema, j: int) -> None:
    """A ValueError unless column j has classes, whose prediction can be robust."""
    column = schema.columns[j]
    if not column.is_categorical:
        raise ValueError(
            f"column {column.name!r} is {column.kind}: robustness is that of a predicted class; "
            "for a number ask for intervals (quantile, predict_interval), or its variance"
        )


def without_target(model: Forest, evidence: Evidence, j: int) -> Evidence:
    """Evidence on all columns but the target."""
    check_target(model.schema, j)
    evidence = evidence.without(j)
    has_region = (evidence.cell_regions() >= 0).any(axis=0)
    if has_region.any():
        k = int(np.flatnonzero(has_region)[0])
        raise ValueError(
            f"column {model.schema.columns[k].name!r} has a range or a set as evidence; robustness takes values and "
            "missing cells alone"
        )
    return evidence._replace(region=np.empty((0, 0), np.int32))


def make_problem(model: Forest, j: int, beta: float, c: float, shift: str) -> _RobustnessProblem:
    """What is asked of every row; a ValueError if c or shift is out of range."""
    check("shift", shift, _SHIFTS)
    check_number("c", c, 0, math.inf, without="high", text="a number of at least 0")
    trees, leaves = model.trees, model.leaves
    allowed = _allowed(model, j)
    weight = rows_below(trees.left, trees.right, at_leaves(trees, np.exp(leaves.log_weight)))
    return _RobustnessProblem(
        columns=model.columns,
        trees=trees,
        leaves=leaves,
        slot=int(model.columns.slot[j]),
        n_classes=allowed.shape[1],
        c=float(c),
        unit=_half_spreads(model) if shift == "column" else np.empty(0),
        beta=float(beta),
        n_trees=len(trees.root) - int(model.has_background and beta < 1),
        allowed=allowed,
        n_allowed=allowed.sum(axis=1, dtype=np.int64),
        splits_target=int(not allowed.all()),
        weight=weight,
    )


def _allowed(model: Forest, j: int) -> np.ndarray:
    """Which levels of categorical column j the box of each leaf admits; uint8 (L, K)."""
    trees, slot = model.trees, model.columns.slot[j]
    n_levels = model.columns.n_levels(slot)
    allowed = np.ones((len(model.leaves.log_weight), n_levels), np.uint8)
    if (trees.feature == j).any():
        allowed_levels(trees, j, np.ones((len(trees.feature), n_levels), np.uint8), allowed)
    return allowed


def _half_spreads(model: Forest) -> np.ndarray:
    """Half of each numeric column's standard deviation in the model, (p,)."""
    prior = BoxForest(model).observe(build(model.schema, n=1))
    numbers = np.flatnonzero(model.columns.is_categorical == 0)
    return np.array([0.5 * math.sqrt(prior.moments(int(k))[1][0]) for k in numbers])


# ---- The scratch that robustness works one row out on, one block a thread.


@record
class Reached(NamedTuple):
    """What one row reaches of trees with N nodes and L leaves over d columns; `reached_nodes` writes it.

    Nodes are in preorder. Those of tree t are ``node_start[t]:node_start[t + 1]``, its leaves
    ``leaf_start[t]:leaf_start[t + 1]``.

    node_start, leaf_start : int64 arrays (T + 1,)
    leaf : int32 array (L,). Leaves that are reached.
    leaf_at : int32 array (N,). Which of the reached leaves the node is; -1 of inner nodes.
    child, other : int32 arrays (N,). The node's children; ``other`` is -1 if the row reaches only one.
    share : float64 array (N,). Weight of ``child`` at the node; that of the other child is the rest.
    stack : int32 array (N,). Nodes whose other child is still to be visited.
    n_levels, n_numbers : int64 arrays (1,). Known categorical cells that can be contaminated, and known numbers.
    level_slot, level : int32 arrays (d,). Slot and code of each such level.
    number : int32 array (d,). Columns of the known numbers.
    x : float64 array (d,). By column: the number, on a grid the cell's centre, or the level's code; NaN where missing.
    atom : int32 array (d,). By column: number of x's atom within the slot, -1 if none.
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

    ``value * exp(log_scale)`` is the value of a leaf; the nodes of a tree share one scale.

    epsilon : float64 array (1,). The contamination that lower and upper are for.
    lower, upper : float64 arrays (L,). Log bounds of the evidence in the reached leaves, NaN until asked for.
    best_mean : float64 array (L, p). `robustness_kernels.best_mean` of each reached leaf and slot, NaN until asked for.
    value, mass, log_scale : float64 arrays (L,). Of the reached leaves.
    node_value, node_mass : float64 arrays (N,). Of the reached nodes.
    tree_value, tree_mass, tree_weight, ratio : float64 arrays (T,). ``ratio`` is the last one of Dinkelbach's method.
    is_impossible : uint8 array (T,). Trees that give the evidence probability 0 and are averaged all the same.
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
    is_impossible: np.ndarray


def _make_scratch(problem: _RobustnessProblem) -> tuple[Reached, Worst]:
    """Arrays for one row; memory that no row touches is never claimed from the system."""
    n_nodes, n_leaves, n_trees = len(problem.trees.feature), len(problem.leaves.log_weight), len(problem.trees.root)
    d, p = len(problem.columns.slot), len(problem.columns.step)
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
        is_impossible=np.zeros(n_trees, np.uint8),
    )
    return reached, worst


_ROWS = 32
"""Rows of a chunk for a thread."""


def robustness(
    model: Forest,
    evidence: Evidence,
    j: int,
    *,
    beta: float = 1.0,
    c: float = 1.0,
    shift: str = "leaf",
    tol: float = 1e-6,
) -> tuple[np.ndarray, np.ndarray]:
    """The largest epsilon (n,) such that contaminating every parameter at once cannot change the predicted class, and
    this class, int64 (n,), of categorical column j.

    Every distribution over finitely many outcomes with probabilities w (branches of a split, trees of the mixture,
    pieces of a density, levels, atoms and the other numbers) may be any ``(1 - epsilon) w + epsilon v``, and every
    normal's mean anything within ``c * epsilon`` units of its own. The unit is the leaf's own standard deviation
    (``shift="leaf"``), or half of the column's. Splits, and families other than the normal, stay as they are.

    With beta 1 the trees are a mixture: their weights are contaminated, and the background is one more tree. Below 1
    they are an average of the trees' own conditionals: the weights (pi_t p_t(evidence))^beta are those of the model as
    it is, and precise; the background does not count.

    Epsilon is at most ``tol`` below the exact answer, and never above it but for rounding. It is 0 where another class
    is as likely, 1 where no contamination suffices, and NaN where the evidence has probability 0; there the class is
    -1. Of equally probable classes the first is predicted. Raises ValueError if column j is not categorical, evidence
    has regions, or c, shift or tol is out of range.

    Source: A. Correia, R. Peharz, C. de Campos, "Towards Robust Classification with Deep Generative Forests" (2020),
    sections 3 and 4; D. Maua and others, "Robustifying sum-product networks" (IJAR, 2018), Theorem 1. See
    docs/how-to/check-robustness.md.
    """
    check_number("tol", tol, 0, without="low", text="more than 0")
    evidence = without_target(model, evidence, j)
    problem = make_problem(model, j, beta, c, shift)
    rows, place = distinct_rows(evidence)
    p = BoxForest(model).observe_by_trees(rows, beta).level_probabilities(j)
    predicted, second = _two_likeliest(p)

    def work(first: int, stop: int) -> np.ndarray:
        if problem.n_classes == 1:
            return np.where(predicted[first:stop] < 0, math.nan, 1.0)
        out, of = np.full(stop - first, math.nan), slice(first, stop)
        epsilon_rows(problem, rows, *_make_scratch(problem), first, predicted[of], second[of], p[of], float(tol), out)
        return out

    parts = list(map_ordered(work, chunks(len(rows.value), _ROWS)))
    return np.concatenate([np.empty(0), *parts])[place], predicted[place]


def _two_likeliest(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest class of each row, the first of equals, and the next one; -1 where there is none."""
    known = ~np.isnan(p[:, 0])
    predicted = np.where(known, p.argmax(axis=1), -1)
    if p.shape[1] == 1:
        return predicted, np.full(len(p), -1)
    others = p.copy()
    others[np.arange(len(p)), predicted] = -np.inf
    return predicted, np.where(known, np.argmax(others, axis=1), -1)
