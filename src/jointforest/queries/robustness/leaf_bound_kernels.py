"""Kernels: the lowest and the highest density that a contaminated leaf can give the evidence."""

from __future__ import annotations

import math

from ...ground.compile import kernel
from ...leaves.levels.level_kernels import level_mass, log_level
from ...leaves.table import FACTORS, NORMAL, SUM
from .density_bound_kernels import best_mean, is_cut, log_density, normal_density_bound, trend, with_atoms


@kernel
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@kernel
def _best_mean(worst, at, a, b, lo, hi, step, x, unit, reach):
    """`best_mean` of x, kept for every epsilon ``at`` a reached leaf (its place) and slot; place -1: not kept."""
    if at[0] < 0:
        return best_mean(a, b, lo, hi, step, x, reach)
    best = worst.best_mean[at]
    if best != best:
        best = best_mean(a, b, lo, hi, step, x, unit)
        worst.best_mean[at] = best
    return best


@kernel
def _number_bound(problem, reached, worst, row, j, i, epsilon, upper):
    """Bound of the density of the known number j in a parameter row, as the product of a mass, a factor and e^log.

    ``i`` is the place of the row's leaf among the reached ones; -1 if the leaf has a circuit.
    """
    columns, leaves = problem.columns, problem.leaves
    slot, x, atom = columns.slot[j], reached.x[j], reached.atom[j]
    step, first = columns.step[slot], columns.atom_start[slot]
    log, factor, mass, n_atoms = 0.0, 1.0, 1.0, columns.atom_start[slot + 1] - first
    if step > 0.0 or atom < 0:
        a, b, lo, hi = leaves.a[row, slot], leaves.b[row, slot], leaves.lo[row, slot], leaves.hi[row, slot]
        unit = problem.c * (b if problem.unit.shape[0] == 0 else problem.unit[slot])
        reach, family = unit * epsilon, leaves.family[row, slot]
        if family != NORMAL or reach == 0.0:
            log = log_density(family, a, b, lo, hi, leaves.log_norm[row, slot], step, x)
        else:
            rises, best = trend(a, b, lo, hi, step, x, reach), x
            if upper and rises == 0 and is_cut(lo, hi):
                best = _best_mean(worst, (i, slot), a, b, lo, hi, step, x, unit, reach)
            log, factor = normal_density_bound(a, b, lo, hi, step, x, reach, rises, best, upper)
    if n_atoms > 0:
        own = -1.0
        if atom >= 0:
            own = leaves.atom_mass[row, first + atom]
            log, factor = log + math.log(factor), 1.0
        mass, log = with_atoms(log, leaves.log_rest[row, slot], own, n_atoms, step, epsilon, upper)
    return mass, factor, log


@kernel
def _product_log_bound(problem, reached, worst, i, epsilon, log_kept, upper):
    """Log bound of the evidence in the i-th of the reached leaves, which is one product; log_kept: log(1 - epsilon)."""
    leaves, slot, level = problem.leaves, reached.level_slot, reached.level
    row, n_levels = reached.leaf[i], reached.n_levels[0]
    total, product = 0.0, 1.0  # logarithms are taken of products of many
    if upper and epsilon > 0.0:
        for k in range(n_levels):
            product *= (1.0 - epsilon) * level_mass(leaves, row, slot[k], level[k]) + epsilon
            if product < 1e-100:
                total, product = total + math.log(product), 1.0
    else:
        for k in range(n_levels):
            total += log_level(leaves, row, slot[k], level[k])
        total += n_levels * log_kept if n_levels > 0 else 0.0
    for k in range(reached.n_numbers[0]):
        if total == -math.inf:
            break
        mass, factor, log = _number_bound(problem, reached, worst, row, reached.number[k], i, epsilon, upper)
        product *= factor * mass
        if not 1e-100 < product < 1e100:
            total, product = total + _log(product), 1.0
        total += log
    return total + math.log(product)


@kernel
def bound_products(problem, reached, worst, first, stop, epsilon):
    """Write the log bounds of the evidence in those of the reached leaves that are one product and lack them."""
    leaves = problem.leaves
    log_kept = math.log1p(-epsilon) if epsilon < 1.0 else -math.inf
    for i in range(first, stop):
        row, upper = reached.leaf[i], worst.value[i] > 0.0
        bound = worst.upper[i] if upper else worst.lower[i]
        if bound == bound or leaves.node_start[row] < leaves.node_start[row + 1]:
            continue
        bound = 0.0
        if not worst.is_blank[leaves.tree[row]]:
            bound = _product_log_bound(problem, reached, worst, i, epsilon, log_kept, upper)
        if upper:
            worst.upper[i] = bound
        else:
            worst.lower[i] = bound


@kernel
def _factors_log_bound(problem, reached, worst, q, epsilon, upper):
    """Log bound of the evidence on the scope of a FACTORS node; the target is no evidence."""
    columns, leaves = problem.columns, problem.leaves
    total, row, part = 0.0, leaves.node_row[q], leaves.node_scope[q]
    for i in range(leaves.scope_start[part], leaves.scope_start[part + 1]):
        j = leaves.scope_column[i]
        slot, x = columns.slot[j], reached.x[j]
        if x != x or total == -math.inf:
            continue
        if columns.is_categorical[j]:
            if columns.level_start[slot + 1] - columns.level_start[slot] > 1:
                mass = (1.0 - epsilon) * level_mass(leaves, row, slot, int(x))
                total += _log(mass + epsilon if upper else mass)
            continue
        mass, factor, log = _number_bound(problem, reached, worst, row, j, -1, epsilon, upper)
        total += _log(mass)
        total += log + math.log(factor)
    return total


@kernel
def _sum_log_bound(leaves, bound, q, epsilon, upper):
    """Log bound of a SUM node from its children's."""
    end = leaves.node_end
    top, least = -math.inf, math.inf
    child = q + 1
    while child < end[q]:
        top, least = max(top, bound[child]), min(least, bound[child])
        child = end[child]
    if top == -math.inf:
        return top
    total, child = 0.0, q + 1
    while child < end[q]:
        total += math.exp(leaves.node_log_weight[child] + bound[child] - top)
        child = end[child]
    total = (1.0 - epsilon) * total + epsilon * (1.0 if upper else math.exp(least - top))
    return top + math.log(total) if total > 0.0 else -math.inf


@kernel
def _product_node_bound(leaves, bound, q):
    """Log bound of a PRODUCT node from its children's."""
    total, child = 0.0, q + 1
    while child < leaves.node_end[q]:
        total += bound[child]
        child = leaves.node_end[child]
    return total


@kernel
def _node_log_bound(problem, reached, worst, bound, q, epsilon, upper):
    """Log bound of the evidence in a circuit's node; of a FACTORS node without the target, 0 of others that hold it."""
    leaves = problem.leaves
    if leaves.node_kind[q] == FACTORS:
        return _factors_log_bound(problem, reached, worst, q, epsilon, upper)
    if problem.holds_target[q]:
        return 0.0
    if leaves.node_kind[q] == SUM:
        return _sum_log_bound(leaves, bound, q, epsilon, upper)
    return _product_node_bound(leaves, bound, q)


@kernel
def bound_circuit(problem, reached, worst, leaf, epsilon):
    """Write the log bounds of the evidence in the nodes of a leaf's circuit, children first."""
    leaves, lower, upper = problem.leaves, worst.q_lower, worst.q_upper
    is_blank = worst.is_blank[leaves.tree[leaf]] != 0
    for q in range(leaves.node_start[leaf + 1] - 1, leaves.node_start[leaf] - 1, -1):
        lower[q], upper[q] = 0.0, 0.0
        if not is_blank:
            lower[q] = _node_log_bound(problem, reached, worst, lower, q, epsilon, False)
            upper[q] = _node_log_bound(problem, reached, worst, upper, q, epsilon, True)
