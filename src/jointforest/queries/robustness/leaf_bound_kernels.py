"""Kernels: the lowest and the highest density that a leaf can give the evidence when it is contaminated."""

from __future__ import annotations

import math

from ...ground.compile import kernel
from ...leaves.table import FACTORS, NORMAL, SUM
from .credal_kernels import best_mean, density_bound, is_cut, log_density_bound, trend, with_atoms


@kernel
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@kernel
def bound_products(columns, leaves, problem, reached, worst, first, stop, epsilon):
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
def bound_circuit(columns, leaves, problem, reached, worst, leaf, epsilon, is_blank):
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
