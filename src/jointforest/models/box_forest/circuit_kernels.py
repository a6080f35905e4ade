"""Kernels of circuit leaves under a row of evidence: up the nodes for densities, down them for weights.

Arrays over nodes (``value``, ``weight``, ``active``) are scratch of length Q, of which a leaf's nodes are its own part.
"""

from __future__ import annotations

import math

import numpy as np

from ...runtime.compile import array_kernel, kernel
from ...runtime.random_kernels import uniform
from .leaves.level_kernels import log_level
from .leaves.slot_kernels import find_atom, level_region_log_mass, region_log_mass, value_log_density
from .leaves.table import FACTORS, PRODUCT, SUM
from .region_kernels import cell_region


@kernel
def has_circuit(leaves, leaf):
    """Whether the leaf is a circuit, not one product."""
    return leaves.node_start[leaf + 1] > leaves.node_start[leaf]


@kernel
def find_atoms(columns, evidence, row, atom):
    """Write the number of the atom that each number of the row is into ``atom``, -1 for none; -2 where no number is."""
    for j in range(evidence.value.shape[1]):
        x = evidence.value[row, j]
        atom[j] = -2
        if x == x and not columns.is_categorical[j]:
            atom[j] = find_atom(columns, columns.slot[j], x)


@kernel
def knows_column(evidence, row, j):
    """Whether the row has a value or a region of column j."""
    return not math.isnan(evidence.value[row, j]) or cell_region(evidence, row, j) >= 0


@kernel
def factors_log_density(columns, leaves, evidence, row, atom, q):
    """Log p(evidence on the scope) of the FACTORS node q."""
    total = 0.0
    of, k = leaves.node_row[q], leaves.node_scope[q]
    for i in range(leaves.scope_start[k], leaves.scope_start[k + 1]):
        j = leaves.scope_column[i]
        x, region, slot = evidence.value[row, j], cell_region(evidence, row, j), columns.slot[j]
        if columns.is_categorical[j]:
            if x == x:
                total += log_level(leaves, of, slot, int(x))
            elif region >= 0:
                total += level_region_log_mass(columns, leaves, evidence, of, slot, region)
        elif x == x:
            total += value_log_density(columns, leaves, of, slot, x, np.int64(atom[j]))
        elif region >= 0:
            total += region_log_mass(columns, leaves, evidence, of, slot, region)
        if total == -math.inf:
            break
    return total


@kernel
def children_log_density(leaves, q, value):
    """Log p(evidence) of a SUM or PRODUCT node from its children's."""
    end, log_weight = leaves.node_end, leaves.node_log_weight
    total, child = 0.0, q + 1
    if leaves.node_kind[q] == PRODUCT:
        while child < end[q]:
            total += value[child]
            child = end[child]
        return total
    top, held = -math.inf, 0
    while child < end[q]:
        if value[child] > -math.inf:
            held += 1
            top = max(top, log_weight[child] + value[child])
        child = end[child]
    if held <= 1:  # a value lies in one piece
        return top
    child = q + 1
    while child < end[q]:
        if value[child] > -math.inf:
            total += math.exp(log_weight[child] + value[child] - top)
        child = end[child]
    return top + math.log(total)


@kernel
def circuit_log_density(columns, leaves, evidence, row, atom, leaf, value):
    """Log p(evidence) of a leaf with a circuit; that of each of its nodes goes to ``value``."""
    first = leaves.node_start[leaf]
    kind, scope, start, column = leaves.node_kind, leaves.node_scope, leaves.scope_start, leaves.scope_column
    node_row, lo, hi, values, slots, steps = (
        leaves.node_row, leaves.lo, leaves.hi, evidence.value, columns.slot, columns.step
    )  # fmt: skip
    for q in range(leaves.node_start[leaf + 1] - 1, first - 1, -1):  # children come after their parent
        if kind[q] != FACTORS:
            value[q] = children_log_density(leaves, q, value)
            continue
        at = start[scope[q]]
        j = column[at]
        value[q] = 0.0
        # most nodes of quantile leaves are of one column, of which nothing is known, or a number that lies elsewhere
        if start[scope[q] + 1] - at == 1:
            if atom[j] == -1:
                x, s = values[row, j], slots[j]
                step = steps[s]  # on a grid it may share a cell with the support
                if x + step <= lo[node_row[q], s] or x - step > hi[node_row[q], s]:
                    value[q] = -math.inf
                    continue
            elif not knows_column(evidence, row, j):
                continue
        value[q] = factors_log_density(columns, leaves, evidence, row, atom, q)
    return value[first]


@kernel
def share_out(leaves, leaf, log_weight, value, weight):
    """Write log p(node takes part, evidence) of each node of a leaf into ``weight``; ``log_weight``: of the leaf.

    A child of a SUM takes part as often as its part in the sum, one of a PRODUCT whenever the product does (the
    derivatives of A. Darwiche, "A differential approach to inference in Bayesian networks", JACM, 2003).
    """
    end = leaves.node_end
    first = leaves.node_start[leaf]
    weight[first] = log_weight
    for q in range(first, leaves.node_start[leaf + 1]):
        child = q + 1
        while child < end[q]:
            weight[child] = weight[q]
            if leaves.node_kind[q] == SUM and weight[q] > -math.inf:
                weight[child] += leaves.node_log_weight[child] + value[child] - value[q]
            child = end[child]


@kernel
def rows_of_column(leaves, column, leaf, log_weight, n, weight, row, log_row):
    """Write the parameter rows that describe a column, and log p(row describes it, evidence); return how many.

    A leaf without circuit has the row of its own number. ``leaf`` and ``log_weight`` hold n leaves, ``weight`` what
    `share_out` says of the others' nodes. Rows of probability 0 are left out.
    """
    n_rows = 0
    for i in range(n):
        if not has_circuit(leaves, leaf[i]):
            row[n_rows], log_row[n_rows] = leaf[i], log_weight[i]
            n_rows += 1
            continue
        for q in range(leaves.node_start[leaf[i]], leaves.node_start[leaf[i] + 1]):
            k = leaves.node_scope[q]
            if k >= 0 and leaves.scope[k, column] and weight[q] > -math.inf:
                row[n_rows], log_row[n_rows] = leaves.node_row[q], weight[q]
                n_rows += 1
    return n_rows


@array_kernel
def column_mixture(leaves, column, leaf, log_weight, log_evidence, weight):
    """Parameter rows that describe a column and their weights, which sum to 1; see `rows_of_column`."""
    n = leaf.shape[0]
    for i in range(leaf.shape[0]):
        n += leaves.node_start[leaf[i] + 1] - leaves.node_start[leaf[i]]
    row, share = np.empty(n, np.int32), np.empty(n, np.float64)
    n = rows_of_column(leaves, column, leaf, log_weight, leaf.shape[0], weight, row, share)
    for i in range(n):
        share[i] = math.exp(share[i] - log_evidence)
    return row[:n], share[:n]


@kernel
def draw_child(leaves, q, value, state):
    """Draw a child of a SUM node by its part in the sum."""
    end = leaves.node_end
    target = uniform(state)
    child, chosen = q + 1, q + 1
    total = 0.0
    while child < end[q]:
        part = math.exp(leaves.node_log_weight[child] + value[child] - value[q])
        if part > 0.0:
            chosen = child
            total += part
            if target < total:
                break
        child = end[child]
    return chosen


@kernel
def draw_parts(leaves, leaf, value, active, state, of):
    """Draw which parameter row describes each column, given the evidence, into ``of`` (d,).

    ``value`` are the nodes' values from `circuit_log_density`; a leaf without circuit has the row of its own number.
    """
    if not has_circuit(leaves, leaf):
        of[:] = leaf
        return
    end = leaves.node_end
    q = np.int64(leaves.node_start[leaf])
    active[q] = 1
    while q < leaves.node_start[leaf + 1]:
        if not active[q]:
            q = end[q]
            continue
        chosen = draw_child(leaves, q, value, state) if leaves.node_kind[q] == SUM else -1
        child = q + 1
        while child < end[q]:
            active[child] = chosen < 0 or child == chosen
            child = end[child]
        if leaves.node_kind[q] == FACTORS:
            k = leaves.node_scope[q]
            for i in range(leaves.scope_start[k], leaves.scope_start[k + 1]):
                of[leaves.scope_column[i]] = leaves.node_row[q]
        q += 1
