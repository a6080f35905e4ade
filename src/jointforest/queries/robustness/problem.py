"""What is asked of robustness, the same for all rows, and whether it can be asked."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...forest.column.moments import mean_variance
from ...forest.forest import Forest
from ...ground.checks import check, check_number
from ...ground.records import record
from ...leaves.table import FACTORS, Leaves
from ...table.build_evidence import build
from ...table.columns import Columns
from ...table.evidence import Evidence
from ...table.schema import Schema
from ...trees.nodes import Trees
from .reach_kernels import allowed_levels, node_weights

_SHIFTS = ("leaf", "column")


@record
class Problem(NamedTuple):
    """The model and what is asked of it: L leaves of N nodes, K classes, p numeric slots, Q circuit nodes.

    Attributes
    ----------
    columns : Columns
    trees : Trees
    leaves : Leaves
    slot, n_classes : int
        Categorical slot of the target, and its number of levels, K.
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
        Their number.
    splits_target : int
        1 if some leaf's box excludes classes.
    holds_target : uint8 array (Q,)
        Whether the circuit's node describes the target.
    weight : float64 array (N,)
        Weight of each node: the sum of the leaves' below it; of a root, that of its tree.
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
    holds_target: np.ndarray
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
    """Evidence on all columns but the target.

    Raises
    ------
    ValueError
        If column j is not categorical, or evidence has regions.
    """
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


def make_problem(model: Forest, j: int, beta: float, c: float, shift: str, n_jobs: int | None) -> Problem:
    """What is asked of every row; a ValueError if c or shift is out of range."""
    check("shift", shift, _SHIFTS)
    check_number("c", c, 0, math.inf, without="high", text="a number of at least 0")
    trees, leaves = model.trees, model.leaves
    allowed, weight = _allowed(model, j), np.empty(len(trees.feature))
    node_weights(trees, leaves, weight)
    return Problem(
        columns=model.columns,
        trees=trees,
        leaves=leaves,
        slot=int(model.columns.slot[j]),
        n_classes=allowed.shape[1],
        c=float(c),
        unit=_half_spreads(model, n_jobs) if shift == "column" else np.empty(0),
        beta=float(beta),
        n_trees=len(trees.root) - int(model.has_background and beta < 1),
        allowed=allowed,
        n_allowed=allowed.sum(axis=1, dtype=np.int64),
        splits_target=int(not allowed.all()),
        holds_target=_holding(model, j),
        weight=weight,
    )


def _allowed(model: Forest, j: int) -> np.ndarray:
    """Which levels of categorical column j the box of each leaf admits; uint8 (L, K)."""
    trees, slot = model.trees, model.columns.slot[j]
    n_levels = model.columns.level_start[slot + 1] - model.columns.level_start[slot]
    allowed = np.ones((len(model.leaves.log_weight), n_levels), np.uint8)
    if (trees.feature == j).any():
        allowed_levels(trees, j, np.ones((len(trees.feature), n_levels), np.uint8), allowed)
    return allowed


def _half_spreads(model: Forest, n_jobs: int | None) -> np.ndarray:
    """Half of each numeric column's standard deviation in the model, (p,)."""
    nothing = build(model.schema, n=1)
    numbers = np.flatnonzero(model.columns.is_categorical == 0)
    return np.array([0.5 * math.sqrt(mean_variance(model, nothing, int(k), n_jobs)[1][0]) for k in numbers])


def _holding(model: Forest, j: int) -> np.ndarray:
    """Which nodes of circuits describe column j, uint8 (Q,)."""
    leaves = model.leaves
    own = np.zeros(len(leaves.node_kind), bool)
    own[leaves.node_kind == FACTORS] = leaves.scope[:, j] == 1
    until = np.concatenate([[0], np.cumsum(own)])  # a node holds the column if a node of its subtree does
    return (until[leaves.node_end] > until[:-1]).astype(np.uint8)
