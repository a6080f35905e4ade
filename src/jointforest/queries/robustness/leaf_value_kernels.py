"""Kernels: value and mass, as `tree_value_kernels` defines them, of the leaves that a row reaches."""

from __future__ import annotations

import math

from ...ground.compile import kernel
from ...leaves.levels.level_kernels import level_mass
from ...leaves.table import FACTORS, SUM
from .leaf_bound_kernels import bound_circuit, bound_products


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
def value_classes(problem, row, leaf, y, z, u, epsilon):
    """Value and mass of a parameter row of the leaf whose only contaminated distribution is that of the target."""
    leaves, slot = problem.leaves, problem.slot
    q_y, q_z = level_mass(leaves, row, slot, y), level_mass(leaves, row, slot, z)
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
def _value_circuit(problem, worst, leaf, y, z, u, epsilon):
    """Write value, mass and scale of a circuit's nodes that hold the target, its root among them."""
    leaves, end = problem.leaves, problem.leaves.node_end
    for q in range(leaves.node_start[leaf + 1] - 1, leaves.node_start[leaf] - 1, -1):
        if not problem.holds_target[q]:
            continue
        if leaves.node_kind[q] == SUM:
            _sum_value(leaves, worst, q, epsilon)
            continue
        if leaves.node_kind[q] == FACTORS:
            value, mass = value_classes(problem, leaves.node_row[q], leaf, y, z, u, epsilon)
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
def _value_products(problem, reached, worst, first, stop, y, z, u, epsilon):
    """Write value and mass of those reached leaves that are one product; the scale is still to come."""
    leaves, slot, allowed = problem.leaves, problem.slot, problem.allowed
    for i in range(first, stop):
        leaf = reached.leaf[i]
        others = problem.n_allowed[leaf] > allowed[leaf, y]
        q_y, q_z = level_mass(leaves, leaf, slot, y), level_mass(leaves, leaf, slot, z)
        worst.value[i], worst.mass[i] = _class_value(q_y, q_z, allowed[leaf, z] != 0, others, u, epsilon)


@kernel
def value_leaves(problem, reached, worst, first, stop, y, z, u, epsilon):
    """Write value, mass and scale of the reached leaves first..stop-1; returns the largest scale."""
    leaves = problem.leaves
    if worst.epsilon[0] != epsilon:
        for i in range(reached.leaf_start[problem.trees.root.shape[0]]):
            worst.lower[i], worst.upper[i] = math.nan, math.nan
        worst.epsilon[0] = epsilon
    _value_products(problem, reached, worst, first, stop, y, z, u, epsilon)
    bound_products(problem, reached, worst, first, stop, epsilon)
    top = -math.inf
    for i in range(first, stop):
        leaf = reached.leaf[i]
        if leaves.node_start[leaf] < leaves.node_start[leaf + 1]:
            if worst.upper[i] != worst.upper[i]:
                bound_circuit(problem, reached, worst, leaf, epsilon)
                worst.upper[i] = 0.0  # no bound, only a mark that those of the nodes are there
            _value_circuit(problem, worst, leaf, y, z, u, epsilon)
            root = leaves.node_start[leaf]
            worst.value[i], worst.mass[i] = worst.q_value[root], worst.q_mass[root]
            worst.log_scale[i] = worst.q_scale[root]
        else:
            worst.log_scale[i] = worst.upper[i] if worst.value[i] > 0.0 else worst.lower[i]
        top = max(top, worst.log_scale[i])
    return top
