"""Kernels of LearnSPN (Gens and Domingos 2013): the circuit of one leaf. See docs/learnspn.md."""

from __future__ import annotations

import numpy as np

from ...ground.compile import array_kernel, entry, kernel
from ..table import FACTORS, PRODUCT, SUM
from .column_groups_kernels import components
from .row_groups_kernels import points_of, two_means

_OPEN, _CONNECTED, _REST = 0, 1, 2
"""What is known of a node to come: nothing, that its columns do not split, that it takes what a product has left."""


@array_kernel
def _sort_columns(columns, label):
    """Sort columns in place: those alone in their component first, then one component after the other.

    Returns the ends (of the columns alone, of the first component, ...).
    """
    k = columns.shape[0]
    size = np.zeros(k, np.int64)
    for c in label:
        size[c] += 1
    old = columns.copy()
    end = np.zeros(1 + np.sum(size > 1), np.int64)
    at = 0
    for c in range(k):
        if size[label[c]] == 1:
            columns[at] = old[c]
            at += 1
    end[0] = at
    group = 1
    for first in range(k):
        if size[first] > 1:
            for c in range(k):
                if label[c] == first:
                    columns[at] = old[c]
                    at += 1
            end[group] = at
            group += 1
    return end


@array_kernel
def _part_rows(rows, side, weight):
    """Sort rows in place, those on side False first; the log shares of the two sides in the weight."""
    old = rows.copy()
    at = np.array([0, rows.shape[0] - np.sum(side)])
    share = np.zeros(2)
    for i in range(rows.shape[0]):
        s = int(side[i])
        rows[at[s]] = old[i]
        at[s] += 1
        share[s] += weight[old[i]]
    return np.log(share / share.sum())


@kernel
def _push(nodes, waiting, r0, r1, c0, c1, known, parent, log_weight):
    """Put a node to come on top of ``waiting`` others; how many wait."""
    task = nodes.stack[waiting]
    task[0], task[1], task[2], task[3], task[4], task[5] = r0, r1, c0, c1, known, parent
    nodes.stack_log_weight[waiting] = log_weight
    return waiting + 1


@kernel
def _begin_product(nodes, waiting, q, r0, r1, c0, columns, end):
    """Node q is the product of groups of columns, which end at ``end``; how many nodes wait.

    The first group, of columns that are alone, is for the FACTORS node that comes last.
    """
    n_groups = end.shape[0]
    nodes.kind[q] = PRODUCT
    nodes.n_children[q] = n_groups
    for k in range(c0, end[0]):
        nodes.in_rest[columns[k]] = True
    waiting = _push(nodes, waiting, r0, r1, c0, end[n_groups - 1], _REST, q, 0.0)
    for g in range(n_groups - 1, 0, -1):
        waiting = _push(nodes, waiting, r0, r1, end[g - 1], end[g], _CONNECTED, q, 0.0)
    return waiting


@kernel
def _count_rest(nodes, columns):
    n = 0
    for j in columns:
        n += nodes.in_rest[j]
    return n


@kernel
def _add_factors(nodes, q, f, rows, columns, is_rest):
    """Node q is FACTORS node f, of these rows and columns, or of those of the columns that are in the rest."""
    for j in columns:
        nodes.scope[f, j] = nodes.in_rest[j] or not is_rest
        nodes.in_rest[j] = False
    nodes.kind[q] = FACTORS
    first = nodes.group_start[f]
    for i in range(rows.shape[0]):
        nodes.group_rows[first + i] = rows[i]
    nodes.group_start[f + 1] = first + rows.shape[0]


@kernel
def _find_ends(nodes, q):
    """Ends of the subtrees of the q nodes, from how many children each has."""
    for node in range(q - 1, -1, -1):
        last = node + 1
        for _ in range(nodes.n_children[node]):
            last = nodes.end[last]
        nodes.end[node] = last


@entry
def learn_leaf(cells, rows, columns, n_apart, min_rows, significance, views, nodes, state):
    """Circuit over all d columns of the rows of one leaf, into ``nodes``.

    Parameters
    ----------
    cells : Cells
    rows : int32 array (n,), columns : int32 array (d,)
        Rows of the leaf; all columns, of which the first ``n_apart`` are left out of the structure. Both are
        reordered.
    views : Views, out
        Scratch for n rows.
    nodes : Nodes, out

    Returns
    -------
    q, f : int
        How many nodes, and FACTORS nodes, there are; none if there is no sum among them, so that the leaf is one
        product.
    """
    waiting = _push(nodes, 0, 0, rows.shape[0], 0, columns.shape[0], _OPEN, -1, 0.0)
    q, f, n_sums = 0, 0, 0
    while waiting > 0:
        waiting -= 1
        task = nodes.stack[waiting]
        r0, r1, c0, c1, known, parent = task[0], task[1], task[2], task[3], task[4], task[5]
        nodes.log_weight[q] = nodes.stack_log_weight[waiting]
        nodes.n_children[q] = 0
        here = rows[r0:r1]
        if known == _OPEN and r1 - r0 >= 2 * min_rows:
            inside = columns[c0 + n_apart : c1] if q == 0 else columns[c0:c1]
            end = _sort_columns(inside, components(cells, here, inside, significance, views)) + (c1 - inside.shape[0])
            if end[0] == c0 and len(end) == 2:
                known = _CONNECTED
            elif len(end) > 1:
                waiting = _begin_product(nodes, waiting, q, r0, r1, c0, columns, end)
                q += 1
                continue
        if known == _CONNECTED:
            side = two_means(points_of(cells, here, columns[c0:c1]), min_rows, state)
            middle = r1 - np.sum(side)
            if middle < r1:
                nodes.kind[q] = SUM
                nodes.n_children[q] = 2
                n_sums += 1
                log_share = _part_rows(here, side, cells.weight)
                waiting = _push(nodes, waiting, middle, r1, c0, c1, _OPEN, q, log_share[1])
                waiting = _push(nodes, waiting, r0, middle, c0, c1, _OPEN, q, log_share[0])
                q += 1
                continue
            if parent >= 0 and nodes.kind[parent] == PRODUCT:  # no clusters: to the columns that are alone
                for j in columns[c0:c1]:
                    nodes.in_rest[j] = True
                nodes.n_children[parent] -= 1
                continue
        if known == _REST:
            if _count_rest(nodes, columns[c0:c1]) == 0:
                nodes.n_children[parent] -= 1
                continue
            if parent == q - 1:  # no other child
                q, nodes.n_children[parent] = parent, 0
        _add_factors(nodes, q, f, here, columns[c0:c1], known == _REST)
        q, f = q + 1, f + 1
    if n_sums == 0:
        return 0, 0
    _find_ends(nodes, q)
    return q, f
