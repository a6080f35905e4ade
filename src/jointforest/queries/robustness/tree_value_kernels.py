"""Kernels: the worst case of a prediction when every parameter is contaminated by epsilon, up the trees.

For a predicted class y and a challenger z a node's value is the most that p(z, evidence) - p(y, evidence) -
u p(evidence) below it can be; its mass is p(evidence) there. With u = 0 that is the worst case of the mixture; the
worst case of a tree's own p(z | evidence) - p(y | evidence) is the u at which the value is 0 (Dinkelbach, 1967).
The mathematics, with proofs: docs/robustness.md.
"""

from __future__ import annotations

import math

from ...forest.posterior.circuit_kernels import has_circuit
from ...ground.compile import kernel
from .leaf_value_kernels import value_classes, value_leaves

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
def mixture_value(problem, reached, worst, y, z, epsilon):
    """Value and mass of the mixture of all trees, whose weights are contaminated too, and the log of their scale."""
    n = reached.leaf_start[problem.n_trees]
    top = value_leaves(problem, reached, worst, 0, n, y, z, 0.0, epsilon)
    if top == -math.inf:
        return 0.0, 0.0, top
    _value_trees(reached, worst, 0, problem.n_trees, epsilon, top)
    value, mass, best, best_mass = 0.0, 0.0, -math.inf, 0.0
    for t in range(problem.n_trees):
        w = problem.weight[problem.trees.root[t]]
        value += w * worst.tree_value[t]
        mass += w * worst.tree_mass[t]
        if worst.tree_value[t] > best:
            best, best_mass = worst.tree_value[t], worst.tree_mass[t]
    return (1.0 - epsilon) * value + epsilon * best, (1.0 - epsilon) * mass + epsilon * best_mass, top


@kernel
def _excess(problem, reached, worst, t, y, z, u, epsilon):
    """Value and mass of one tree, and the log of their scale."""
    first, stop = reached.leaf_start[t], reached.leaf_start[t + 1]
    top = value_leaves(problem, reached, worst, first, stop, y, z, u, epsilon)
    if top == -math.inf:
        return 0.0, 0.0, top
    _value_trees(reached, worst, t, t + 1, epsilon, top)
    return worst.tree_value[t], worst.tree_mass[t], top


@kernel
def _ratio(problem, reached, worst, t, y, z, epsilon):
    """The most that p_t(z | evidence) - p_t(y | evidence) can be."""
    first = reached.leaf_start[t]
    if reached.leaf_start[t + 1] == first + 1 and not has_circuit(problem.leaves, reached.leaf[first]):
        leaf = reached.leaf[first]  # the evidence, whatever its density, says no more than the leaf
        value, mass = value_classes(problem, leaf, leaf, y, z, 0.0, epsilon)
        return value / mass
    u = worst.ratio[t]  # of another epsilon or challenger: near the answer, but it may lie above it
    value, mass, _ = _excess(problem, reached, worst, t, y, z, u, epsilon)
    if not value > 0.0:
        u = -1.0
        value, mass, _ = _excess(problem, reached, worst, t, y, z, u, epsilon)
    while value > _ROUNDING * mass:
        u += value / mass
        value, mass, _ = _excess(problem, reached, worst, t, y, z, u, epsilon)
    worst.ratio[t] = u
    return u


@kernel
def average_value(problem, reached, worst, y, z, epsilon):
    """The most that the weighed average of the trees' p_t(z | evidence) - p_t(y | evidence) can be."""
    total = 0.0
    for t in range(problem.n_trees):
        if worst.tree_weight[t] > 0.0:
            total += worst.tree_weight[t] * _ratio(problem, reached, worst, t, y, z, epsilon)
    return total


@kernel
def weigh_trees(problem, reached, worst, y, z):
    """Write the weights of the trees in the average, (pi_t p_t(evidence))^beta of the model as it is over their sum.

    Also which trees are blank; and forget the ratios.
    """
    top, weight = -math.inf, worst.tree_weight
    for t in range(problem.n_trees):
        worst.ratio[t], worst.is_blank[t], weight[t] = -1.0, 0, -math.inf
        _, mass, scale = _excess(problem, reached, worst, t, y, z, 0.0, 0.0)
        if mass > 0.0:
            weight[t] = problem.beta * (math.log(mass) + scale + math.log(problem.weight[problem.trees.root[t]]))
        else:
            worst.is_blank[t] = 1
        top = max(top, weight[t])
    if top == -math.inf or problem.beta == 0.0:
        for t in range(problem.n_trees):
            weight[t] = 0.0
        top = 0.0
    total = 0.0
    for t in range(problem.n_trees):
        weight[t] = math.exp(weight[t] - top)
        total += weight[t]
    for t in range(problem.n_trees):
        weight[t] /= total
    worst.epsilon[0] = math.nan  # the bounds did not know which trees are blank
