"""Robustness: how far every parameter of the model may be wrong before the predicted class changes."""

from __future__ import annotations

import math

import numpy as np

from ...forest.column.levels import level_probability
from ...forest.forest import Forest
from ...forest.posterior.density import log_density
from ...ground.checks import check_number
from ...ground.threads import chunks, map_ordered
from ...table.distinct_rows import distinct_rows
from ...table.evidence import Evidence
from .problem import make_problem, without_target
from .robustness_kernels import epsilon_rows, margin_rows
from .scratch import make_scratch

_ROWS = 32


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
        How trees are combined. 1, the mixture: the trees' weights are contaminated, and the background is one more
        tree. Below 1, an average of the trees' own conditionals: the weights (pi_t p_t(evidence))^beta are those of the
        model as it is, and precise; the background does not count.
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
    evidence = without_target(model, evidence, j)
    problem = make_problem(model, j, beta, c, shift, n_jobs)
    rows, place = distinct_rows(evidence)
    p = level_probability(model, rows, j, n_jobs, beta)
    predicted, second = _two_likeliest(p)

    def work(first: int, stop: int) -> np.ndarray:
        if problem.n_classes == 1:
            return np.where(predicted[first:stop] < 0, math.nan, 1.0)
        out, of = np.full(stop - first, math.nan), slice(first, stop)
        epsilon_rows(problem, rows, *make_scratch(problem), first, predicted[of], second[of], p[of], float(tol), out)
        return out

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
    evidence = without_target(model, evidence, j)
    problem = make_problem(model, j, beta, c, shift, n_jobs)
    predicted, _ = _two_likeliest(level_probability(model, evidence, j, n_jobs, beta))
    log_evidence = log_density(model, evidence, n_jobs) - evidence.log_penalty

    def work(first: int, stop: int) -> np.ndarray:
        out, some = (
            np.full((stop - first, problem.n_classes), math.nan),
            (predicted[first:stop], log_evidence[first:stop]),
        )
        margin_rows(problem, evidence, *make_scratch(problem), first, *some, float(epsilon), out)
        return out

    parts = list(map_ordered(work, chunks(len(evidence.value), _ROWS), n_jobs))
    return np.concatenate([np.empty((0, problem.n_classes)), *parts])


def _two_likeliest(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest class of each row, the first of equals, and the next one; -1 where there is none."""
    known = ~np.isnan(p[:, 0])
    predicted = np.where(known, p.argmax(axis=1), -1)
    if p.shape[1] == 1:
        return predicted, np.full(len(p), -1)
    rest = p.copy()
    rest[np.arange(len(p)), predicted] = -np.inf
    return predicted, np.where(known, np.argmax(rest, axis=1), -1)
