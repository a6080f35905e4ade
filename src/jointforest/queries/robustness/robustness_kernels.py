"""Kernels: how much contamination it takes until another class can win, row by row."""

from __future__ import annotations

import math

from ...ground.compile import entry, kernel
from ...ground.root_kernels import chandrupatla
from .reach_kernels import known_cells, reached_nodes
from .tree_value_kernels import average_value, mixture_value, weigh_trees

_STEEP = -2.0
"""A start for interpolation where log-odds may be without bound."""


@kernel
def _log_odds(value, mass):
    """Log-odds of the challenger against all else, which grow nearly as the means move."""
    if not abs(value) < mass:
        return 40.0 if value >= 0.0 else -40.0
    return math.log1p(2.0 * value / (mass - value))


@kernel
def _gap(problem, reached, worst, y, z, epsilon):
    """Below 0 if the challenger cannot win; smooth in epsilon, and nearly straight."""
    if problem.beta < 1.0:
        return average_value(problem, reached, worst, y, z, epsilon)
    value, mass, _ = mixture_value(problem, reached, worst, y, z, epsilon)
    return _log_odds(value, mass)


@kernel
def _first_win(problem, reached, worst, y, z, margin, stop, tol):
    """The most epsilon, to ``tol``, at which the challenger cannot win; at ``stop`` it can.

    ``margin`` is the challenger's probability less that of y, in the model as it is. It wins at the latest where
    contaminating the classes alone is enough, unless boxes exclude it.
    """
    if margin >= 0.0:
        return 0.0
    b, fb = 0.0, margin if problem.beta < 1.0 else max(_log_odds(margin, 1.0), _STEEP)
    if problem.splits_target == 0:
        stop = min(stop, margin / (margin - 1.0))
    a = max(stop - 0.5 * tol, 0.0)
    fa = _gap(problem, reached, worst, y, z, a)
    if fa < 0.0:
        return a
    c, fc, t = a, fa, fa / (fa - fb)
    while abs(b - a) > tol:
        least = 0.5 * tol / abs(b - a)
        t = min(max(t, least), 1.0 - least)
        x = a + t * (b - a)
        f = _gap(problem, reached, worst, y, z, x)
        if (f < 0.0) == (fa < 0.0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, f
        t = chandrupatla(a, fa, b, fb, c, fc)
    return a if fa < 0.0 else b


@kernel
def _row_epsilon(problem, reached, worst, y, second, p, i, tol):
    """The most epsilon at which no challenger of class y can win; ``p[i]`` are the probabilities of the classes."""
    found = 1.0  # there any class can have all the mass
    for k in range(-1, problem.n_classes):
        z = second if k < 0 else k  # the likeliest challenger first: mostly none of the others can win so soon
        if z == y or k == second:
            continue
        at = worst.epsilon[0] if found <= worst.epsilon[0] <= found + tol else found  # its bounds are at hand
        if k >= 0 and _gap(problem, reached, worst, y, z, at) < 0.0:
            continue
        margin = p[i, z] - p[i, y]
        found = min(found, _first_win(problem, reached, worst, y, z, margin, at, tol))
        if found == 0.0:
            break
    return found


@kernel
def _start_row(problem, evidence, row, y, z, reached, worst):
    """Write what the row reaches, and forget what was known of another row."""
    known_cells(problem.columns, evidence, row, reached)
    reached_nodes(problem, evidence, row, reached)
    for i in range(reached.leaf_start[problem.trees.root.shape[0]]):
        for slot in range(worst.best_mean.shape[1]):
            worst.best_mean[i, slot] = math.nan
    worst.epsilon[0] = math.nan
    if problem.beta < 1.0:
        weigh_trees(problem, reached, worst, y, z)


@entry
def epsilon_rows(problem, evidence, reached, worst, first, predicted, second, p, tol, out):
    """Write the robustness of the rows from ``first`` on: epsilon, to ``tol``, at most 1.

    ``predicted`` and ``second`` are their two likeliest classes, -1 for none, ``p`` the probabilities of all;
    ``reached`` and ``worst`` are scratch.
    """
    for i in range(out.shape[0]):
        y, z = predicted[i], second[i]
        if y >= 0:
            _start_row(problem, evidence, first + i, y, z, reached, worst)
            out[i] = _row_epsilon(problem, reached, worst, y, z, p, i, tol)


@entry
def margin_rows(problem, evidence, reached, worst, first, predicted, log_evidence, epsilon, out):
    """Write by how much each class can beat the predicted one, in the rows from ``first`` on: (rows, K).

    ``log_evidence`` is log p(evidence) in the model as it is; ``reached`` and ``worst`` are scratch.
    """
    for i in range(out.shape[0]):
        y = predicted[i]
        if y < 0:
            continue
        _start_row(problem, evidence, first + i, y, 1 if y == 0 else 0, reached, worst)
        for z in range(problem.n_classes):
            if z == y:
                out[i, z] = 0.0
            elif problem.beta < 1.0:
                out[i, z] = average_value(problem, reached, worst, y, z, epsilon)
            else:
                value, _, top = mixture_value(problem, reached, worst, y, z, epsilon)
                out[i, z] = value * math.exp(top - log_evidence[i]) if value != 0.0 else 0.0
