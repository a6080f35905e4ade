"""Kernel of iterative proportional fitting: factors of the codes of a hidden tree's columns."""

from __future__ import annotations

import numpy as np

from ...runtime.compile import array_kernel, entry
from .em_kernels import cell_table, transition_table


@array_kernel
def masses(cells, factor, mass):
    """Write the mass of the codes in each state (H,), of cells (K + 1, H) of which the last row is a missing cell."""
    mass[:] = 0.0
    for x in range(len(factor)):
        row = cells[x]
        for s in range(len(mass)):
            mass[s] += row[s] * factor[x]


@array_kernel
def fit_factor(cells, weight, target, factor, share):
    """Fit the factors of a column's codes (K,), for weights of its states (H,); the largest error of a share before."""
    everything, worst = 0.0, 0.0
    for x in range(len(factor)):
        row, now = cells[x], 0.0
        for s in range(len(weight)):
            now += row[s] * weight[s]
        share[x] = now * factor[x]
        everything += share[x]
    for x in range(len(factor)):
        now = share[x] / everything
        worst = max(worst, abs(now - target[x]))
        if now > 0.0:
            factor[x] *= target[x] / now
    return worst


@entry
def fit_factors(nodes, tables, target, first, walk, is_back, sweeps, least, factor, here):
    """Fit the share of each code, column by column, until the largest error of a sweep is below ``least``.

    ``out`` is the probability of a node's states with everything that does not lie at or below it. ``here`` is what
    lies at and below it says of its states, and ``up`` what that says of its parent's states.

    Parameters
    ----------
    nodes, tables : `em.Nodes`, `em.Tables`
        Probabilities.
    target : float64 array
        Shares of the codes, node by node.
    first : int64 array (m + 1,)
        Where the codes of each node begin.
    walk : int64 array (2m,)
        Nodes depth first from the root, each on the way down and on the way back: each sees those fitted before.
    is_back : bool array (2m,)
    sweeps : int
        Most sweeps.
    least : float
    factor : float64 array
        Of the codes; ones, is written.
    here : float64 array
        Of the states of all nodes; ones, is written.
    """
    up, out = np.ones(nodes.first_message[-1]), np.empty(nodes.first_state[-1])
    mass, share = np.empty(nodes.most_states), np.empty(nodes.n_cells.max())
    for _ in range(sweeps):
        worst = 0.0
        for i in range(len(walk)):
            k = walk[i]
            transition, cells = transition_table(nodes, tables.transition, k), cell_table(nodes, tables.cell, k)
            H, above = len(cells[0]), nodes.parent[k]
            of_state, own_mass = here[nodes.first_state[k] : nodes.first_state[k + 1]], mass[:H]
            others = out[nodes.first_state[k] : nodes.first_state[k + 1]]
            sent = up[nodes.first_message[k] : nodes.first_message[k + 1]]
            p = nodes.first_state[above] if above >= 0 else 0
            if is_back[i]:
                for r in range(len(transition)):
                    row, now = transition[r], 0.0
                    for s in range(H):
                        now += row[s] * of_state[s]
                    if above >= 0:
                        here[p + r] *= now / sent[r]
                    sent[r] = now
                continue
            others[:] = 0.0
            for r in range(len(transition)):
                row, now = transition[r], out[p + r] * here[p + r] / sent[r] if above >= 0 else 1.0
                for s in range(H):
                    others[s] += now * row[s]
            codes = slice(first[k], first[k + 1])
            masses(cells, factor[codes], own_mass)
            for s in range(H):
                of_state[s] /= own_mass[s]
                own_mass[s] = others[s] * of_state[s]
            worst = max(worst, fit_factor(cells, own_mass, target[codes], factor[codes], share))
            masses(cells, factor[codes], own_mass)
            for s in range(H):
                of_state[s] *= own_mass[s]
        if worst < least:
            break
