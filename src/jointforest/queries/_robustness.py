"""Kernels: the worst case of a prediction when every parameter is contaminated, and how much contamination it takes.

For a predicted class y and a challenger z a node's value is the most that p(z, evidence) - p(y, evidence) -
u p(evidence) below it can be; its mass is p(evidence) there. With u = 0 that is the worst case of the mixture; the
worst case of a tree's own p(z | evidence) - p(y | evidence) is the u at which the value is 0 (Dinkelbach, 1967).
The mathematics, with proofs: docs/robustness.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ..leaves._slots import kernel
from ..leaves.table import FACTORS, NORMAL, SUM
from ._circuits import has_circuit
from ._credal import best_mean, density_bound, is_cut, log_density_bound, trend, with_atoms
from ._reached import Reached, know, reach

_STEEP = -2.0
"""A start for interpolation where log-odds may be without bound."""
_ROUNDING = 1e-15
"""Ratios are known to this."""


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


# ------------------------------------------------------------------------------------------- the evidence in a leaf


@kernel
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@kernel
def _bound_products(columns, leaves, problem, reached, worst, first, stop, epsilon):
    """Write the log bounds of the evidence in those of the reached leaves that are one product and lack them."""
    level_mass, log_level, level_at = leaves.level_mass, leaves.log_level, reached.level_at
    family, a, b, lo, hi = leaves.family, leaves.a, leaves.b, leaves.lo, leaves.hi
    log_norm, log_rest, atom_mass = leaves.log_norm, leaves.log_rest, leaves.atom_mass
    atom_start, steps, best_means = columns.atom_start, columns.step, worst.best
    n_levels, n_numbers = reached.n_levels[0], reached.n_numbers[0]
    log_kept = math.log1p(-epsilon) if epsilon < 1.0 else -math.inf
    for i in range(first, stop):
        row, upper = reached.leaf[i], worst.value[i] > 0.0
        bound = worst.upper[i] if upper else worst.lower[i]
        if bound == bound or leaves.node_start[row] < leaves.node_start[row + 1]:
            continue
        total, product = 0.0, 1.0  # logarithms are taken of products of many
        if worst.is_blank[leaves.tree[row]]:
            n_levels, n_numbers = 0, 0
        else:
            n_levels, n_numbers = reached.n_levels[0], reached.n_numbers[0]
        if upper and epsilon > 0.0:
            for k in range(n_levels):
                product *= (1.0 - epsilon) * level_mass[row, level_at[k]] + epsilon
                if product < 1e-100:
                    total, product = total + math.log(product), 1.0
        else:
            for k in range(n_levels):
                total += log_level[row, level_at[k]]
            total += n_levels * log_kept if n_levels > 0 else 0.0
        for k in range(n_numbers):
            if total == -math.inf:
                break
            j = reached.number[k]
            slot, x = columns.slot[j], reached.x[j]
            f, m, s, u, v = family[row, slot], a[row, slot], b[row, slot], lo[row, slot], hi[row, slot]
            step, n_atoms = steps[slot], atom_start[slot + 1] - atom_start[slot]
            unit = problem.c * (s if problem.unit.shape[0] == 0 else problem.unit[slot])
            reach, best = unit * epsilon, x
            rises = trend(m, s, u, v, step, x, reach)
            if upper and rises == 0 and reach > 0.0 and f == NORMAL and is_cut(u, v):
                best = best_means[i * n_numbers + k]
                if best != best:
                    best = best_mean(m, s, u, v, step, x, unit)
                    best_means[i * n_numbers + k] = best
            bound, factor = 0.0, 1.0
            if step > 0.0 or reached.atom[j] < 0:
                norm = log_norm[row, slot]
                bound, factor = density_bound(f, m, s, u, v, norm, step, x, reach, rises, best, upper)
            if n_atoms > 0:
                own = -1.0
                if reached.atom[j] >= 0:
                    own = atom_mass[row, atom_start[slot] + reached.atom[j]]
                    bound, factor = bound + math.log(factor), 1.0
                mass, bound = with_atoms(bound, log_rest[row, slot], own, n_atoms, step, epsilon, upper)
                factor *= mass
            product *= factor
            if not 1e-100 < product < 1e100:
                total, product = total + _log(product), 1.0
            total += bound
        total += math.log(product)
        if upper:
            worst.upper[i] = total
        else:
            worst.lower[i] = total


@kernel
def _factors_log_bound(columns, leaves, problem, reached, q, epsilon, upper):
    """Log bound of the evidence on the scope of a FACTORS node; the target is no evidence."""
    total, row, part = 0.0, leaves.node_row[q], leaves.node_scope[q]
    for i in range(leaves.scope_start[part], leaves.scope_start[part + 1]):
        j = leaves.scope_column[i]
        slot, x = columns.slot[j], reached.x[j]
        if x != x or total == -math.inf:
            continue
        if columns.is_categorical[j]:
            if columns.level_start[slot + 1] - columns.level_start[slot] > 1:
                mass = (1.0 - epsilon) * leaves.level_mass[row, int(x)]
                total += _log(mass + epsilon if upper else mass)
            continue
        f, m, s, u, v = (
            leaves.family[row, slot],
            leaves.a[row, slot],
            leaves.b[row, slot],
            leaves.lo[row, slot],
            leaves.hi[row, slot],
        )
        step, n_atoms = columns.step[slot], columns.atom_start[slot + 1] - columns.atom_start[slot]
        reach = problem.c * (s if problem.unit.shape[0] == 0 else problem.unit[slot]) * epsilon
        best, bound, atom = x, 0.0, reached.atom[j]
        rises = trend(m, s, u, v, step, x, reach)
        if upper and rises == 0 and reach > 0.0 and f == NORMAL and is_cut(u, v):
            best = best_mean(m, s, u, v, step, x, reach)
        if step > 0.0 or atom < 0:
            norm = leaves.log_norm[row, slot]
            bound = log_density_bound(f, m, s, u, v, norm, step, x, reach, rises, best, upper)
        if n_atoms > 0:
            own = leaves.atom_mass[row, columns.atom_start[slot] + atom] if atom >= 0 else -1.0
            mass, bound = with_atoms(bound, leaves.log_rest[row, slot], own, n_atoms, step, epsilon, upper)
            total += _log(mass)
        total += bound
    return total


@kernel
def _sum_log_bound(leaves, worst, q, epsilon, upper):
    """Log bound of a SUM node from its children's."""
    end = leaves.node_end
    top, least = -math.inf, math.inf
    child = q + 1
    while child < end[q]:
        bound = worst.q_upper[child] if upper else worst.q_lower[child]
        top, least = max(top, bound), min(least, bound)
        child = end[child]
    if top == -math.inf:
        return top
    total, child = 0.0, q + 1
    while child < end[q]:
        bound = worst.q_upper[child] if upper else worst.q_lower[child]
        total += math.exp(leaves.node_log_weight[child] + bound - top)
        child = end[child]
    total = (1.0 - epsilon) * total + epsilon * (1.0 if upper else math.exp(least - top))
    return top + math.log(total) if total > 0.0 else -math.inf


@kernel
def _bound_circuit(columns, leaves, problem, reached, worst, leaf, epsilon, is_blank):
    """Write the bounds of the evidence in a circuit's nodes; those of FACTORS nodes leave the target out."""
    end = leaves.node_end
    for q in range(leaves.node_start[leaf + 1] - 1, leaves.node_start[leaf] - 1, -1):
        worst.q_lower[q], worst.q_upper[q] = 0.0, 0.0
        if is_blank:
            continue
        if leaves.node_kind[q] == FACTORS:
            worst.q_lower[q] = _factors_log_bound(columns, leaves, problem, reached, q, epsilon, False)
            worst.q_upper[q] = _factors_log_bound(columns, leaves, problem, reached, q, epsilon, True)
        elif not problem.holds_target[q] and leaves.node_kind[q] == SUM:
            worst.q_lower[q] = _sum_log_bound(leaves, worst, q, epsilon, False)
            worst.q_upper[q] = _sum_log_bound(leaves, worst, q, epsilon, True)
        elif not problem.holds_target[q]:
            child = q + 1
            while child < end[q]:
                worst.q_lower[q] += worst.q_lower[child]
                worst.q_upper[q] += worst.q_upper[child]
                child = end[child]


# ----------------------------------------------------------------------------------------------- the value of a leaf


@kernel
def _class_value(q_y, q_z, z_allowed, others_allowed, u, epsilon):
    """The most that q(z) - q(y) - u q(box) can be for a contaminated distribution q of classes, and its q(box).

    ``box`` are the classes that the leaf's box admits, ``others_allowed``: some besides y and z.
    """
    if z_allowed:
        best, mass = 1.0 - u, 1.0
    elif u < 0.0 and others_allowed:
        best, mass = -u, 1.0
    else:  # all that contaminates is on classes out of the box
        best, mass = 0.0, 0.0
    return (1.0 - epsilon) * (q_z - q_y - u) + epsilon * best, 1.0 - epsilon + epsilon * mass


@kernel
def _value_classes(leaves, problem, row, leaf, y, z, u, epsilon):
    """`_class_value` of a row of the tables that belongs to the leaf."""
    q_y, q_z = leaves.level_mass[row, problem.first_level + y], leaves.level_mass[row, problem.first_level + z]
    z_allowed, others = problem.allowed[leaf, z] != 0, problem.n_allowed[leaf] > problem.allowed[leaf, y]
    return _class_value(q_y, q_z, z_allowed, others, u, epsilon)


@kernel
def _sum_value(leaves, worst, q, epsilon):
    """Write value, mass and scale of a SUM node that holds the target."""
    end = leaves.node_end
    top, child = -math.inf, q + 1
    while child < end[q]:
        top = max(top, worst.q_scale[child])
        child = end[child]
    worst.q_value[q], worst.q_mass[q], worst.q_scale[q] = 0.0, 0.0, top
    if top == -math.inf:
        return
    value, mass, best, best_mass, child = 0.0, 0.0, -math.inf, 0.0, q + 1
    while child < end[q]:
        scale, w = math.exp(worst.q_scale[child] - top), math.exp(leaves.node_log_weight[child])
        v, m = worst.q_value[child] * scale, worst.q_mass[child] * scale
        value += w * v
        mass += w * m
        if v > best:
            best, best_mass = v, m
        child = end[child]
    worst.q_value[q] = (1.0 - epsilon) * value + epsilon * best
    worst.q_mass[q] = (1.0 - epsilon) * mass + epsilon * best_mass


@kernel
def _value_circuit(leaves, problem, worst, leaf, y, z, u, epsilon):
    """Write value, mass and scale of a circuit's nodes that hold the target, its root among them."""
    end = leaves.node_end
    for q in range(leaves.node_start[leaf + 1] - 1, leaves.node_start[leaf] - 1, -1):
        if not problem.holds_target[q]:
            continue
        if leaves.node_kind[q] == SUM:
            _sum_value(leaves, worst, q, epsilon)
            continue
        if leaves.node_kind[q] == FACTORS:
            value, mass = _value_classes(leaves, problem, leaves.node_row[q], leaf, y, z, u, epsilon)
            scale = worst.q_upper[q] if value > 0.0 else worst.q_lower[q]
        else:
            child = q + 1
            while not problem.holds_target[child]:
                child = end[child]
            value, mass, scale = worst.q_value[child], worst.q_mass[child], worst.q_scale[child]
            child = q + 1
            while child < end[q]:
                if not problem.holds_target[child]:
                    scale += worst.q_upper[child] if value > 0.0 else worst.q_lower[child]
                child = end[child]
        worst.q_value[q], worst.q_mass[q], worst.q_scale[q] = value, mass, scale


@kernel
def _value_products(leaves, problem, reached, worst, first, stop, y, z, u, epsilon):
    """Write value and mass of those reached leaves that are one product; the scale is still to come."""
    level_mass, allowed = leaves.level_mass, problem.allowed
    at_y, at_z = problem.first_level + y, problem.first_level + z
    for i in range(first, stop):
        leaf = reached.leaf[i]
        others = problem.n_allowed[leaf] > allowed[leaf, y]
        q_y, q_z = level_mass[leaf, at_y], level_mass[leaf, at_z]
        worst.value[i], worst.mass[i] = _class_value(q_y, q_z, allowed[leaf, z] != 0, others, u, epsilon)


@kernel
def _value_leaves(columns, leaves, problem, reached, worst, first, stop, y, z, u, epsilon):
    """Write value, mass and scale of the reached leaves first..stop-1; returns the largest scale."""
    if worst.epsilon[0] != epsilon:
        for i in range(reached.leaf_start[reached.leaf_start.shape[0] - 1]):
            worst.lower[i], worst.upper[i] = math.nan, math.nan
        worst.epsilon[0] = epsilon
    _value_products(leaves, problem, reached, worst, first, stop, y, z, u, epsilon)
    _bound_products(columns, leaves, problem, reached, worst, first, stop, epsilon)
    top = -math.inf
    for i in range(first, stop):
        leaf = reached.leaf[i]
        if leaves.node_start[leaf] < leaves.node_start[leaf + 1]:
            if worst.upper[i] != worst.upper[i]:
                is_blank = worst.is_blank[leaves.tree[leaf]] != 0
                _bound_circuit(columns, leaves, problem, reached, worst, leaf, epsilon, is_blank)
                worst.upper[i] = 0.0  # no bound, only a mark that those of the nodes are there
            _value_circuit(leaves, problem, worst, leaf, y, z, u, epsilon)
            root = leaves.node_start[leaf]
            worst.value[i], worst.mass[i] = worst.q_value[root], worst.q_mass[root]
            worst.log_scale[i] = worst.q_scale[root]
        else:
            worst.log_scale[i] = worst.upper[i] if worst.value[i] > 0.0 else worst.lower[i]
        top = max(top, worst.log_scale[i])
    return top


# -------------------------------------------------------------------------------------------------- up the trees


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
    top = _value_leaves(columns, leaves, problem, reached, worst, 0, n, y, z, 0.0, epsilon)
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
    top = _value_leaves(columns, leaves, problem, reached, worst, first, stop, y, z, u, epsilon)
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
        value, mass = _value_classes(leaves, problem, leaf, leaf, y, z, 0.0, epsilon)
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


# -------------------------------------------------------------------------------------------- how much it takes


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


@njit(nogil=True, cache=True)
def _scratch(columns, trees, leaves):
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


@njit(nogil=True, cache=True)
def _with_best(worst, best):
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


@njit(nogil=True, cache=True)
def _start_row(columns, trees, leaves, problem, evidence, row, y, z, stack, reached, worst):
    """Write what the row reaches; the scratch for it."""
    know(columns, evidence, row, reached)
    reach(columns, trees, problem.weight, evidence, row, stack, reached)
    n = reached.leaf_start[trees.root.shape[0]] * reached.n_numbers[0]
    if n > worst.best.shape[0]:
        worst = _with_best(worst, np.empty(2 * n))
    worst.best[:n] = math.nan
    worst.epsilon[0] = math.nan
    if problem.beta < 1.0:
        _weigh_trees(columns, trees, leaves, problem, reached, worst, y, z)
    return worst


@njit(nogil=True, cache=True)
def epsilon_rows(columns, trees, leaves, problem, evidence, first, stop, predicted, second, p, tol):
    """`robustness.robustness` of the rows first..stop-1, from their two likeliest classes (-1: none) and all p."""
    reached, worst = _scratch(columns, trees, leaves)
    stack = np.empty(trees.feature.shape[0], np.int32)
    out = np.full(stop - first, math.nan)
    for row in range(first, stop):
        y, z = predicted[row - first], second[row - first]
        if y >= 0:
            worst = _start_row(columns, trees, leaves, problem, evidence, row, y, z, stack, reached, worst)
            out[row - first] = _row_epsilon(columns, trees, leaves, problem, reached, worst, y, z, p, row - first, tol)
    return out


@njit(nogil=True, cache=True)
def margin_rows(columns, trees, leaves, problem, evidence, first, stop, predicted, log_evidence, epsilon):
    """`robustness.worst_margin` of the rows first..stop-1."""
    reached, worst = _scratch(columns, trees, leaves)
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
