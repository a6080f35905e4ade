"""How well a row of evidence fits each leaf: the kernels behind every query.

Columns are the outer loop and a block of leaves the inner one: what belongs to the cell is computed once a block, the
inner loops hold plain arrays, and a block's parameters stay in the processor's cache from column to column.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import array_kernel, entry, kernel
from ...runtime.records import record
from .circuit_kernels import circuit_log_density, find_atoms, has_circuit, rows_of_column, share_out
from .forest import Forest
from .leaves.family_kernels import log_pdf
from .leaves.grid_kernels import cell_centre, log_cell_density
from .leaves.level_kernels import log_level
from .leaves.slot_kernels import find_atom, level_region_log_mass, region_log_mass, value_log_density
from .region_kernels import cell_region, reachable

BLOCK = 256
"""Leaves a block."""
_CERTAIN = 5e-324
"""What stands for the log density 0 among those at atoms, where 0 is one not yet known."""
LEAVES, LEAVES_AND_SHARES, LOG_EVIDENCE = -1, -2, -3
"""What `posterior_rows` is wanted for beside a column: leaves; these and, of one row, the shares of their circuits'
nodes; log p(evidence) alone."""


@kernel
def add_level(leaves, slot, level, leaf, first, end, total):
    """Add the log mass of a level to the totals of the leaves first..end-1 of the list."""
    place = leaves.wide.place[slot]
    if place >= 0:
        log_mass, at = leaves.log_level, place + level
        for i in range(first, end):
            total[i] += log_mass[leaf[i], at]
        return
    for i in range(first, end):
        if total[i] > -math.inf:
            total[i] += log_level(leaves, leaf[i], slot, level)


@kernel
def add_atom(columns, leaves, slot, atom, leaf, first, end, at_atoms, total):
    """Add the log density of an atom to the totals of the leaves first..end-1, from those known (`Forest.at_atoms`)."""
    at = columns.atom_start[slot] + atom
    for i in range(first, end):
        if total[i] == -math.inf:
            continue
        k = leaf[i]
        if at_atoms[k, at] == 0.0:
            log_density = value_log_density(columns, leaves, k, slot, columns.atom_value[at], atom)
            at_atoms[k, at] = log_density if log_density != 0.0 else _CERTAIN
        total[i] += at_atoms[k, at]


@kernel
def add_value(columns, leaves, slot, x, leaf, first, end, at_atoms, total):
    """Add the log density of a number (`slot_kernels.value_log_density`) to the totals of the leaves first..end-1."""
    atom = find_atom(columns, slot, x)
    if atom >= 0:
        add_atom(columns, leaves, slot, atom, leaf, first, end, at_atoms, total)
        return
    family, a, b, lo, hi = leaves.family, leaves.a, leaves.b, leaves.lo, leaves.hi
    log_norm, log_rest = leaves.log_norm, leaves.log_rest
    step = columns.step[slot]
    centre = cell_centre(step, columns.origin[slot], x) if step > 0.0 else x
    for i in range(first, end):
        k = leaf[i]
        if total[i] == -math.inf:
            continue
        f, c, s, u, v, w = family[k, slot], a[k, slot], b[k, slot], lo[k, slot], hi[k, slot], log_norm[k, slot]
        if step == 0.0:
            total[i] += log_rest[k, slot] + log_pdf(f, c, s, u, v, w, x)
        else:
            total[i] += log_rest[k, slot] + log_cell_density(f, c, s, u, v, w, centre, step)


@kernel
def add_region(columns, leaves, evidence, j, region, leaf, first, end, total):
    """Add the log mass of a region of column j to the totals of the leaves first..end-1 of the list."""
    slot, is_categorical = columns.slot[j], columns.is_categorical[j]
    for i in range(first, end):
        if total[i] == -math.inf:
            continue
        if is_categorical:
            total[i] += level_region_log_mass(columns, leaves, evidence, leaf[i], slot, region)
        else:
            total[i] += region_log_mass(columns, leaves, evidence, leaf[i], slot, region)


@kernel
def knows_nothing(evidence, row):
    """Whether no cell of the row has a value or a region."""
    for j in range(evidence.value.shape[1]):
        if not math.isnan(evidence.value[row, j]) or cell_region(evidence, row, j) >= 0:
            return False
    return True


@kernel
def add_cells(columns, leaves, evidence, row, leaf, first, end, at_atoms, log_weight):
    """Add the log density of the row's cells to the totals of the leaves first..end-1 of the list."""
    for categorical in (1, 0):  # levels first: they are cheap, and may rule leaves out
        for j in range(evidence.value.shape[1]):
            if columns.is_categorical[j] != categorical:
                continue
            x, region, slot = evidence.value[row, j], cell_region(evidence, row, j), columns.slot[j]
            if x == x and categorical:
                add_level(leaves, slot, int(x), leaf, first, end, log_weight)
            elif x == x:
                add_value(columns, leaves, slot, x, leaf, first, end, at_atoms, log_weight)
            elif region >= 0:
                add_region(columns, leaves, evidence, j, region, leaf, first, end, log_weight)


@record
class RowScratch(NamedTuple):
    """What weighing a row of evidence writes to, used again from row to row; see `row_scratch`.

    Attributes
    ----------
    stack : int32 array, as long as all trees have nodes
        Nodes still to be visited.
    leaf : int32 array (L,), log_weight : float64 array (L,)
        Leaves that the row meets, and their log p(leaf, evidence).
    atom : int32 array (d,)
        The atom that each number of the row is, see `circuit_kernels.find_atoms`.
    value, share : float64 arrays (Q,)
        Of the nodes of leaves with circuits: log p(evidence), and log p(node takes part, evidence).
    entry : int32 array (R,), log_entry : float64 array (R,)
        Parameter rows that describe a column, and their log p(row describes it, evidence).
    at_atoms : float64 array (L, A)
        `Forest.at_atoms`: this is kept.
    """

    stack: np.ndarray
    leaf: np.ndarray
    log_weight: np.ndarray
    atom: np.ndarray
    value: np.ndarray
    share: np.ndarray
    entry: np.ndarray
    log_entry: np.ndarray
    at_atoms: np.ndarray


def row_scratch(forest: Forest) -> RowScratch:
    """Scratch for weighing rows under this forest."""
    leaves = forest.leaves
    n_leaves, n_nodes, n_entries = len(leaves.log_weight), len(leaves.node_kind), len(leaves.tree)
    return RowScratch(
        stack=np.empty(len(forest.trees.feature), np.int32),
        leaf=np.empty(n_leaves, np.int32),
        log_weight=np.empty(n_leaves),
        atom=np.empty(len(forest.columns.slot), np.int32),
        value=np.zeros(n_nodes),
        share=np.empty(n_nodes),
        entry=np.empty(n_entries, np.int32),
        log_entry=np.empty(n_entries),
        at_atoms=forest.at_atoms,
    )


@kernel
def weigh_row(columns, trees, leaves, evidence, row, scratch):
    """Write the leaves that the row's evidence meets and their log p(leaf, evidence) to the scratch; return how many.

    Leaves that give the evidence probability 0 are left out. The scratch also gets log p(evidence) of the circuits'
    nodes, where a leaf is listed.
    """
    leaf, log_weight, value = scratch.leaf, scratch.log_weight, scratch.value
    if knows_nothing(evidence, row):
        n = leaves.log_weight.shape[0]
        for i in range(n):
            leaf[i] = i
            log_weight[i] = leaves.log_weight[i]
        value[:] = 0.0
        return n
    n = reachable(columns, trees, evidence, row, scratch.stack, leaf)
    for i in range(n):
        log_weight[i] = leaves.log_weight[leaf[i]]
    if value.shape[0] > 0:
        for i in range(n):
            if has_circuit(leaves, leaf[i]):
                log_weight[i] = -math.inf  # so that the loops over columns pass it by
    for first in range(0, n, BLOCK):
        end = min(first + BLOCK, n)
        add_cells(columns, leaves, evidence, row, leaf, first, end, scratch.at_atoms, log_weight)
    if value.shape[0] > 0:
        find_atoms(columns, evidence, row, scratch.atom)
        for i in range(n):
            if has_circuit(leaves, leaf[i]):
                log_weight[i] = circuit_log_density(columns, leaves, evidence, row, scratch.atom, leaf[i], value)
                log_weight[i] += leaves.log_weight[leaf[i]]
    kept = 0
    for i in range(n):
        if log_weight[i] > -math.inf:
            leaf[kept], log_weight[kept] = leaf[i], log_weight[i]
            kept += 1
    return kept


@kernel
def log_sum(x, n):
    """log of the sum of exp of the first n entries, in their order."""
    top = -math.inf
    for i in range(n):
        top = max(top, x[i])
    if top == -math.inf:
        return top
    total = 0.0
    for i in range(n):
        total += math.exp(x[i] - top)
    return top + math.log(total)


@entry
def posterior_rows(columns, trees, leaves, evidence, first, stop, wanted, scratch):
    """Start, leaf, log_weight and log_evidence (see `posterior.LeafPosterior`) of the rows first..stop-1.

    If a column is ``wanted`` the entries are not leaves but the parameter rows that describe the column. One kernel
    answers whatever is wanted, because weighing rows takes long to compile.
    """
    several = wanted >= 0 and leaves.node_kind.shape[0] > 0  # a leaf may have several entries
    start = np.zeros(stop - first + 1, np.int64)
    all_leaf = np.empty(1024 if wanted != LOG_EVIDENCE else 0, np.int32)
    all_log_weight = np.empty(all_leaf.shape[0], np.float64)
    log_evidence = np.empty(stop - first, np.float64)
    end = np.int64(0)
    for row in range(first, stop):
        n = weigh_row(columns, trees, leaves, evidence, row, scratch)
        if several or wanted == LEAVES_AND_SHARES:
            for i in range(n):
                if has_circuit(leaves, scratch.leaf[i]):
                    share_out(leaves, scratch.leaf[i], scratch.log_weight[i], scratch.value, scratch.share)
        leaf, log_weight = scratch.leaf, scratch.log_weight
        if several:
            n = rows_of_column(leaves, wanted, leaf, log_weight, n, scratch.share, scratch.entry, scratch.log_entry)
            leaf, log_weight = scratch.entry, scratch.log_entry
        log_evidence[row - first] = log_sum(log_weight, n)
        if wanted == LOG_EVIDENCE:
            continue
        if end + n > all_leaf.shape[0]:
            size = max(2 * all_leaf.shape[0], end + n)
            all_leaf, all_log_weight = widened(all_leaf, end, size), widened(all_log_weight, end, size)
        for i in range(n):
            all_leaf[end + i], all_log_weight[end + i] = leaf[i], log_weight[i]
        end += n
        start[row - first + 1] = end
    return start, all_leaf[:end], all_log_weight[:end], log_evidence


@array_kernel
def widened(x, n, size):
    """An array of this size that starts with the first n entries of x."""
    wider = np.empty(size, x.dtype)
    for i in range(n):
        wider[i] = x[i]
    return wider


# ---- Kernel that reads one weighed row of evidence for a question about one column.


@entry
def entries_of_column(leaves, column, leaf, log_weight, share):
    """Parameter rows that describe a column, their log p(row describes it, evidence), and the log of its sum."""
    entry = np.empty(leaves.tree.shape[0], np.int32)
    log_entry = np.empty(leaves.tree.shape[0], np.float64)
    n = rows_of_column(leaves, column, leaf, log_weight, leaf.shape[0], share, entry, log_entry)
    return entry[:n], log_entry[:n], log_sum(log_entry, n)
