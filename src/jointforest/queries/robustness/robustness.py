"""Robustness: how far every parameter of the model may be wrong before the predicted class changes."""

from __future__ import annotations

import math

import numpy as np

from ...forest.column.levels import level_probability
from ...forest.column.moments import mean_variance
from ...forest.forest import Forest
from ...forest.posterior.density import log_density
from ...ground.checks import check, check_number
from ...ground.threads import chunks, map_ordered
from ...leaves.table import FACTORS
from ...table.distinct_rows import distinct_rows
from ...table.evidence import build
from ...table.regions import Evidence
from .reach_kernels import allowed_levels, node_weights
from .robustness_kernels import epsilon_rows, margin_rows
from .row_kernels import Problem

_ROWS = 32
_SHIFTS = ("leaf", "column")


def robustness(
    model: Forest,
    evidence: Evidence,
    j: int,
    *,
    beta: float = 1.0,
    c: float = 1.0,
    shift: str = "leaf",
    tol: float = 1e-6,
    n_jobs: int | None = -1,
) -> tuple[np.ndarray, np.ndarray]:
    """The largest epsilon such that contaminating every parameter at once cannot change the predicted class.

    Every distribution over finitely many outcomes with probabilities w (branches of a split, trees of the mixture, sums
    of circuits, levels, atoms and the rest of a number) may be any ``(1 - epsilon) w + epsilon v``, and every normal's
    mean anything within ``c * epsilon`` units of its own. Splits, and families other than the normal, stay as they are.

    Parameters
    ----------
    model : Forest
    evidence : Evidence
        n rows of values; cells of which nothing is known are summed out. The target's own cells are not looked at.
    j : int
        Number of the target, a categorical column.
    beta : float
        How trees are combined, see `posterior.chunk_posterior`. 1, the mixture: the trees' weights are contaminated,
        and the background is one more tree. Below 1, an average of the trees' own conditionals: the weights
        (pi_t p_t(evidence))^beta are those of the model as it is, and precise; the background does not count.
    c : float
        How far means move, at epsilon 1, in units of ``shift``; 0: not at all.
    shift : {"leaf", "column"}
        The unit: the leaf's own standard deviation, or half of the column's.
    tol : float
        Epsilon is at most this much below the exact answer, and never above it but for rounding.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    epsilon : float64 array (n,)
        0 where another class is as likely; 1 where no contamination suffices; NaN where the evidence has probability 0.
    predicted : int64 array (n,)
        The most probable class, the first of equals; -1 where epsilon is NaN.

    Raises
    ------
    ValueError
        If column j is not categorical, evidence has regions, or c, shift or tol is out of range.

    Notes
    -----
    A. Correia, R. Peharz, C. de Campos, "Towards Robust Classification with Deep Generative Forests" (2020), sections 3
    and 4; D. Maua and others, "Robustifying sum-product networks" (IJAR, 2018), Theorem 1. See docs/robustness.md.
    """
    check_number("tol", tol, 0, without="low", text="more than 0")
    evidence = _without_target(model, evidence, j)
    problem = _problem(model, j, beta, c, shift, n_jobs)
    rows, place = distinct_rows(evidence)
    p = level_probability(model, rows, j, n_jobs, beta)
    predicted, second = _two_likeliest(p)

    def work(first: int, stop: int) -> np.ndarray:
        if problem.n_classes == 1:
            return np.where(predicted[first:stop] < 0, math.nan, 1.0)
        given = predicted[first:stop], second[first:stop], p[first:stop]
        return epsilon_rows(model.columns, model.trees, model.leaves, problem, rows, first, stop, *given, tol)

    parts = list(map_ordered(work, chunks(len(rows.value), _ROWS), n_jobs))
    return np.concatenate([np.empty(0), *parts])[place], predicted[place]


def worst_margin(
    model: Forest,
    evidence: Evidence,
    j: int,
    epsilon: float,
    *,
    beta: float = 1.0,
    c: float = 1.0,
    shift: str = "leaf",
    n_jobs: int | None = -1,
) -> np.ndarray:
    """The most by which each class can beat the predicted one when every parameter is contaminated by epsilon.

    Parameters
    ----------
    epsilon : float
        0..1.
    model, evidence, j, beta, c, shift, n_jobs
        See `robustness`.

    Returns
    -------
    float64 array (n, K)
        With beta 1 the maximum of p(class, evidence) - p(predicted, evidence), in units of the model's p(evidence);
        below 1 that of the average of the trees' p_t(class | evidence) - p_t(predicted | evidence). 0 for the predicted
        class; NaN where the evidence has probability 0. The prediction is robust where all others are negative.

    Raises
    ------
    ValueError
        See `robustness`; also if epsilon is not in 0..1.
    """
    check_number("epsilon", epsilon, 0, 1, text="between 0 and 1")
    evidence = _without_target(model, evidence, j)
    problem = _problem(model, j, beta, c, shift, n_jobs)
    predicted, _ = _two_likeliest(level_probability(model, evidence, j, n_jobs, beta))
    log_evidence = log_density(model, evidence, n_jobs) - evidence.log_penalty

    def work(first: int, stop: int) -> np.ndarray:
        some = predicted[first:stop], log_evidence[first:stop]
        return margin_rows(model.columns, model.trees, model.leaves, problem, evidence, first, stop, *some, epsilon)

    parts = list(map_ordered(work, chunks(len(evidence.value), _ROWS), n_jobs))
    return np.concatenate([np.empty((0, problem.n_classes)), *parts])


def _without_target(model: Forest, evidence: Evidence, j: int) -> Evidence:
    """Evidence on all columns but the target, if robustness can be told of it."""
    if not model.columns.is_categorical[j]:
        column = model.schema.columns[j]
        raise ValueError(
            f"column {column.name!r} is {column.kind}: robustness is that of a predicted class; "
            "for a number ask for intervals (quantile, predict_interval), or its variance"
        )
    evidence = evidence.without(j)
    has_region = (evidence.cell_regions() >= 0).any(axis=0)
    if has_region.any():
        k = int(np.flatnonzero(has_region)[0])
        raise ValueError(
            f"column {model.schema.columns[k].name!r} has a range or a set as evidence; robustness takes values and "
            "missing cells alone"
        )
    return evidence._replace(region=np.empty((0, 0), np.int32))


def _problem(model: Forest, j: int, beta: float, c: float, shift: str, n_jobs: int | None) -> Problem:
    """What is asked of every row."""
    check("shift", shift, _SHIFTS)
    check_number("c", c, 0, math.inf, without="high", text="a number of at least 0")
    columns, trees, leaves = model.columns, model.trees, model.leaves
    slot = columns.slot[j]
    allowed = allowed_levels(columns, trees, j)
    return Problem(
        first_level=int(columns.level_start[slot]),
        n_classes=allowed.shape[1],
        c=float(c),
        unit=_half_spreads(model, n_jobs) if shift == "column" else np.empty(0),
        beta=float(beta),
        n_trees=len(trees.root) - (model.has_background and beta < 1),
        allowed=allowed,
        n_allowed=allowed.sum(axis=1, dtype=np.int64),
        splits_target=int(not allowed.all()),
        holds_target=_holding(model, j),
        weight=node_weights(trees, leaves),
    )


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


def _two_likeliest(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest class of each row, the first of equals, and the next one; -1 where there is none."""
    known = ~np.isnan(p[:, 0])
    predicted = np.where(known, p.argmax(axis=1), -1)
    if p.shape[1] == 1:
        return predicted, np.full(len(p), -1)
    rest = p.copy()
    rest[np.arange(len(p)), predicted] = -np.inf
    return predicted, np.where(known, np.argmax(rest, axis=1), -1)
