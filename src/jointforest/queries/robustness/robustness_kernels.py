"""Kernels: the worst case of a prediction when every parameter is contaminated, and how much contamination it takes.

For a predicted class y and a challenger z a node's value is the most that p(z, evidence) - p(y, evidence) -
u p(evidence) below it can be; its mass is p(evidence) there. With u = 0 that is the worst case of the mixture; the
worst case of a tree's own p(z | evidence) - p(y | evidence) is the u at which the value is 0 (Dinkelbach, 1967).
The mathematics, with proofs: docs/robustness.md.
"""

from __future__ import annotations

import math

import numpy as np

from ...forest.posterior.circuit_kernels import has_circuit
from ...ground.compile import array_kernel, entry, kernel
from .leaf_value_kernels import value_classes, value_leaves
from .reach_kernels import know, reach
from .row_kernels import scratch, with_best

_STEEP = -2.0
"""A start for interpolation where log-odds may be without bound."""
_ROUNDING = 1e-15
"""Ratios are known to this."""


@kernel
def _value_trees(reached, worst, first, stop, epsilon, top):
    """Write value and mass of trees, as multiples of e^top: splits are sums, of which the row reaches parts."""
    value, mass, kept = worst.node_value, worst.node_mass, 1.0 - epsilon
    for node in range(reached.node_start[stop] - 1, reached.node_start[first] - 1, -1):
        at = reached.leaf_at[node]
        if at >= 0:
            scale = math.exp(worst.log_scale[at] - top)
            value[node], mass[node] = worst.value[at] * scale, worst.mass[at] * scale
            continue
        child, other, w = reached.child[node], reached.other[node], reached.share[node]
        v, m = (value[other], mass[other]) if other >= 0 else (0.0, 0.0)  # the evidence excludes the other side
        best, best_mass = (value[child], mass[child]) if value[child] > v else (v, m)
        value[node] = kept * (w * value[child] + (1.0 - w) * v) + epsilon * best
        mass[node] = kept * (w * mass[child] + (1.0 - w) * m) + epsilon * best_mass
    for t in range(first, stop):
        worst.tree_value[t], worst.tree_mass[t] = value[reached.node_start[t]], mass[reached.node_start[t]]


@kernel
def mixture_value(columns, trees, leaves, problem, reached, worst, y, z, epsilon):
    """Value and mass of the mixture of all trees, whose weights are contaminated too, and the log of their scale."""
    n = reached.leaf_start[problem.n_trees]
    top = value_leaves(columns, leaves, problem, reached, worst, 0, n, y, z, 0.0, epsilon)
    if top == -math.inf:
        return 0.0, 0.0, top
    _value_trees(reached, worst, 0, problem.n_trees, epsilon, top)
    value, mass, best, best_mass = 0.0, 0.0, -math.inf, 0.0
    for t in range(problem.n_trees):
        w = problem.weight[trees.root[t]]
        value += w * worst.tree_value[t]
        mass += w * worst.tree_mass[t]
        if worst.tree_value[t] > best:
            best, best_mass = worst.tree_value[t], worst.tree_mass[t]
    return (1.0 - epsilon) * value + epsilon * best, (1.0 - epsilon) * mass + epsilon * best_mass, top


@kernel
def _excess(columns, leaves, problem, reached, worst, t, y, z, u, epsilon):
    """Value and mass of one tree, and the log of their scale."""
    first, stop = reached.leaf_start[t], reached.leaf_start[t + 1]
    top = value_leaves(columns, leaves, problem, reached, worst, first, stop, y, z, u, epsilon)
    if top == -math.inf:
        return 0.0, 0.0, top
    _value_trees(reached, worst, t, t + 1, epsilon, top)
    return worst.tree_value[t], worst.tree_mass[t], top


@kernel
def _ratio(columns, leaves, problem, reached, worst, t, y, z, epsilon):
    """The most that p_t(z | evidence) - p_t(y | evidence) can be."""
    first = reached.leaf_start[t]
    if reached.leaf_start[t + 1] == first + 1 and not has_circuit(leaves, reached.leaf[first]):
        leaf = reached.leaf[first]  # the evidence, whatever its density, says no more than the leaf
        value, mass = value_classes(leaves, problem, leaf, leaf, y, z, 0.0, epsilon)
        return value / mass
    u = worst.ratio[t]  # of another epsilon or challenger: near the answer, but it may lie above it
    value, mass, _ = _excess(columns, leaves, problem, reached, worst, t, y, z, u, epsilon)
    if not value > 0.0:
        u = -1.0
        value, mass, _ = _excess(columns, leaves, problem, reached, worst, t, y, z, u, epsilon)
    while value > _ROUNDING * mass:
        u += value / mass
        value, mass, _ = _excess(columns, leaves, problem, reached, worst, t, y, z, u, epsilon)
    worst.ratio[t] = u
    return u


@kernel
def average_value(columns, leaves, problem, reached, worst, y, z, epsilon):
    """The most that the weighed average of the trees' p_t(z | evidence) - p_t(y | evidence) can be."""
    total = 0.0
    for t in range(problem.n_trees):
        if worst.tree_weight[t] > 0.0:
            total += worst.tree_weight[t] * _ratio(columns, leaves, problem, reached, worst, t, y, z, epsilon)
    return total


@kernel
def _weigh_trees(columns, trees, leaves, problem, reached, worst, y, z):
    """Write the weights of the trees in the average, of the model as it is: see `_combine.weigh_trees`."""
    top, weight = -math.inf, worst.tree_weight
    for t in range(problem.n_trees):
        worst.ratio[t], worst.is_blank[t], weight[t] = -1.0, 0, -math.inf
        _, mass, scale = _excess(columns, leaves, problem, reached, worst, t, y, z, 0.0, 0.0)
        if mass > 0.0:
            weight[t] = problem.beta * (math.log(mass) + scale + math.log(problem.weight[trees.root[t]]))
        else:
            worst.is_blank[t] = 1
        top = max(top, weight[t])
    if top == -math.inf or problem.beta == 0.0:
        weight[:] = 0.0
        top = 0.0
    total = 0.0
    for t in range(problem.n_trees):
        weight[t] = math.exp(weight[t] - top)
        total += weight[t]
    for t in range(problem.n_trees):
        weight[t] /= total
    worst.epsilon[0] = math.nan  # the bounds did not know which trees are blank


@kernel
def _log_odds(value, mass):
    """Those of the challenger against all else, which grow nearly as the means move."""
    if not abs(value) < mass:
        return 40.0 if value >= 0.0 else -40.0
    return math.log1p(2.0 * value / (mass - value))


@kernel
def _gap(columns, trees, leaves, problem, reached, worst, y, z, epsilon):
    """Below 0 if the challenger cannot win; smooth in epsilon, and nearly straight."""
    if problem.beta < 1.0:
        return average_value(columns, leaves, problem, reached, worst, y, z, epsilon)
    value, mass, _ = mixture_value(columns, trees, leaves, problem, reached, worst, y, z, epsilon)
    return _log_odds(value, mass)


@kernel
def _first_win(columns, trees, leaves, problem, reached, worst, y, z, margin, stop, tol):
    """The most epsilon, to ``tol``, at which the challenger cannot win; at ``stop`` it can.

    ``margin`` is the challenger's probability less that of y, in the model as it is. It wins at the latest where
    contaminating the classes alone is enough, unless boxes exclude it.

    The bracket is narrowed by inverse quadratic steps where these are safe, by halves elsewhere (T. R. Chandrupatla,
    "A new hybrid quadratic/bisection algorithm", Advances in Engineering Software 28, 1997).
    """
    if margin >= 0.0:
        return 0.0
    b, fb = 0.0, margin if problem.beta < 1.0 else max(_log_odds(margin, 1.0), _STEEP)
    if problem.splits_target == 0:
        stop = min(stop, margin / (margin - 1.0))
    a = max(stop - 0.5 * tol, 0.0)
    fa = _gap(columns, trees, leaves, problem, reached, worst, y, z, a)
    if fa < 0.0:
        return a
    c, fc, t = a, fa, fa / (fa - fb)
    while abs(b - a) > tol:
        least = 0.5 * tol / abs(b - a)
        t = min(max(t, least), 1.0 - least)
        x = a + t * (b - a)
        f = _gap(columns, trees, leaves, problem, reached, worst, y, z, x)
        if (f < 0.0) == (fa < 0.0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, f
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        t = 0.5
        if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
            t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return a if fa < 0.0 else b


@kernel
def _row_epsilon(columns, trees, leaves, problem, reached, worst, y, second, p, i, tol):
    """The most epsilon at which no challenger of class y can win; ``p[i]`` are the probabilities of the classes."""
    found = 1.0  # there any class can have all the mass
    for k in range(-1, problem.n_classes):
        z = second if k < 0 else k  # the likeliest challenger first: mostly none of the others can win so soon
        if z == y or k == second:
            continue
        at = worst.epsilon[0] if found <= worst.epsilon[0] <= found + tol else found  # its bounds are at hand
        if k >= 0 and _gap(columns, trees, leaves, problem, reached, worst, y, z, at) < 0.0:
            continue
        margin = p[i, z] - p[i, y]
        found = min(found, _first_win(columns, trees, leaves, problem, reached, worst, y, z, margin, at, tol))
        if found == 0.0:
            break
    return found


@array_kernel
def _start_row(columns, trees, leaves, problem, evidence, row, y, z, stack, reached, worst):
    """Write what the row reaches; the scratch for it."""
    know(columns, evidence, row, reached)
    reach(columns, trees, problem.weight, evidence, row, stack, reached)
    n = reached.leaf_start[trees.root.shape[0]] * reached.n_numbers[0]
    if n > worst.best.shape[0]:
        worst = with_best(worst, np.empty(2 * n))
    worst.best[:n] = math.nan
    worst.epsilon[0] = math.nan
    if problem.beta < 1.0:
        _weigh_trees(columns, trees, leaves, problem, reached, worst, y, z)
    return worst


@entry
def epsilon_rows(columns, trees, leaves, problem, evidence, first, stop, predicted, second, p, tol):
    """`robustness.robustness` of the rows first..stop-1, from their two likeliest classes (-1: none) and all p."""
    reached, worst = scratch(columns, trees, leaves)
    stack = np.empty(trees.feature.shape[0], np.int32)
    out = np.full(stop - first, math.nan)
    for row in range(first, stop):
        y, z = predicted[row - first], second[row - first]
        if y >= 0:
            worst = _start_row(columns, trees, leaves, problem, evidence, row, y, z, stack, reached, worst)
            out[row - first] = _row_epsilon(columns, trees, leaves, problem, reached, worst, y, z, p, row - first, tol)
    return out


@entry
def margin_rows(columns, trees, leaves, problem, evidence, first, stop, predicted, log_evidence, epsilon):
    """`robustness.worst_margin` of the rows first..stop-1."""
    reached, worst = scratch(columns, trees, leaves)
    stack = np.empty(trees.feature.shape[0], np.int32)
    out = np.full((stop - first, problem.n_classes), math.nan)
    for row in range(first, stop):
        y = predicted[row - first]
        if y < 0:
            continue
        z = 1 if y == 0 else 0
        worst = _start_row(columns, trees, leaves, problem, evidence, row, y, z, stack, reached, worst)
        for z in range(problem.n_classes):
            if z == y:
                out[row - first, z] = 0.0
            elif problem.beta < 1.0:
                value = average_value(columns, leaves, problem, reached, worst, y, z, epsilon)
                out[row - first, z] = value
            else:
                value, _, top = mixture_value(columns, trees, leaves, problem, reached, worst, y, z, epsilon)
                out[row - first, z] = value * math.exp(top - log_evidence[row - first]) if value != 0.0 else 0.0
    return out
