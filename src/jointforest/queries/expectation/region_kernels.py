"""Kernels: regions of columns at the nodes of an ensemble, and the masses that a joint's components give them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...ground.compile import entry, kernel
from ...ground.records import record
from ...leaves.one_slot.slot_kernels import slot_cdf
from ...leaves.table import FACTORS, PRODUCT, SUM

ZERO, ONE = 0, 1
"""Marks of mass 0 and 1 in every component."""


@record
class Marks(NamedTuple):
    """Regions of single columns whose masses add up to those of all nodes' regions.

    A numeric mark is everything up to an edge, a categorical one a set of levels.

    Attributes
    ----------
    column : int32 array (M,)
        -1 of ZERO and ONE.
    edge : float64 array (M,)
        Ascending within a column, finite; 0 of others than numeric marks.
    level_start : int32 array (M + 1,)
        ``level[level_start[m]:level_start[m + 1]]`` are the levels of a categorical mark.
    level : int32 array
    """

    column: np.ndarray
    edge: np.ndarray
    level_start: np.ndarray
    level: np.ndarray


@record
class Masses(NamedTuple):
    """Masses in the joint's components.

    Attributes
    ----------
    level : float64 array (C, S)
        Of each level of the categorical columns.
    table : float64 array (C, m)
        Of numeric marks, computed beforehand.
    place : int32 array (M,)
        Where a mark is in the table; -1 if it is not.
    """

    level: np.ndarray
    table: np.ndarray
    place: np.ndarray


@record
class Components(NamedTuple):
    """The joint as a mixture of C components: leaves, or of a leaf with a circuit the children of its first sums.

    Attributes
    ----------
    start : int32 array (L + 1,)
        Those of leaf l are ``start[l]:start[l + 1]``.
    leaf : int32 array (C,)
    node : int32 array (C,)
        Node of the leaf's circuit; -1 where the component is the leaf.
    is_product : uint8 array (C,)
        Whether the columns are independent within the component.
    part_start : int32 array (C + 1,)
        ``part_start[c]:part_start[c + 1]`` are the parts of a product; the other components have none.
    part_row, part_scope : int32 arrays
        Row of the parameter tables, and scope (-1: all columns), of each part.
    part_weight : float64 array
        The distribution of a column is the mixture, with these weights, of the parts that have it in their scope.
    """

    start: np.ndarray
    leaf: np.ndarray
    node: np.ndarray
    is_product: np.ndarray
    part_start: np.ndarray
    part_row: np.ndarray
    part_scope: np.ndarray
    part_weight: np.ndarray


@entry
def parents(left, right):
    """Parent of each node, -1 of roots, and whether the node is its left child."""
    parent, is_left = np.full(left.shape[0], -1, np.int32), np.zeros(left.shape[0], np.bool_)
    for node in range(left.shape[0]):
        if left[node] >= 0:
            parent[left[node]], parent[right[node]] = node, node
            is_left[left[node]] = True
    return parent, is_left


@entry
def numeric_regions(parent, is_left, column, j, nodes, edge):
    """Ends (lo, mid, hi) of column j at its nodes: (lo, hi] reaches the node, (lo, mid] goes on to the left.

    ``column`` (N,) is the column that each node splits, ``edge`` (N,) where.
    """
    out = np.empty((3, nodes.shape[0]), np.float64)
    for i in range(nodes.shape[0]):
        lo, hi = -math.inf, math.inf
        child, above = nodes[i], parent[nodes[i]]
        while above >= 0:
            if column[above] == j:
                if is_left[child]:
                    hi = min(hi, edge[above])
                else:
                    lo = max(lo, edge[above])
            child, above = above, parent[above]
        hi = max(lo, hi)
        out[0, i], out[1, i], out[2, i] = lo, min(max(edge[nodes[i]], lo), hi), hi
    return out


@entry
def level_regions(parent, is_left, column, j, nodes, place, goes_left):
    """Levels of column j that reach each of its nodes, uint8 (nodes, levels).

    ``place`` (N,) is where a node is among ``nodes``, ``goes_left`` (nodes, levels) what its split says.
    """
    reach = np.ones(goes_left.shape, np.uint8)
    for i in range(nodes.shape[0]):
        child, above = nodes[i], parent[nodes[i]]
        while above >= 0:
            if column[above] == j:
                for k in range(goes_left.shape[1]):
                    if (goes_left[place[above], k] != 0) != is_left[child]:
                        reach[i, k] = 0
            child, above = above, parent[above]
    return reach


@entry
def components_of(leaves, n_columns):
    """The fields of `Components`."""
    n_leaves, n_nodes = leaves.log_weight.shape[0], leaves.node_kind.shape[0]
    width, is_product = np.zeros(n_nodes, np.int32), np.ones(n_nodes, np.uint8)
    for q in range(n_nodes - 1, -1, -1):  # children come after their parent
        if leaves.node_kind[q] == FACTORS:
            k = leaves.node_scope[q]
            width[q] = leaves.scope_start[k + 1] - leaves.scope_start[k]
            continue
        child = q + 1
        while child < leaves.node_end[q]:
            if leaves.node_kind[q] == PRODUCT:
                width[q] += width[child]
            else:
                width[q] = width[child]
            is_product[q] &= is_product[child]
            child = leaves.node_end[child]
        if leaves.node_kind[q] == SUM and width[q] > 1:
            is_product[q] = 0
    most = n_leaves + n_nodes
    start = np.zeros(n_leaves + 1, np.int32)
    leaf_of, node_of, simple = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
    part_start = np.zeros(most + 1, np.int32)
    part_row, part_scope, part_weight = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.float64)
    log_weight = np.zeros(n_nodes, np.float64)
    n, n_parts = 0, 0
    for leaf in range(n_leaves):
        q, stop = leaves.node_start[leaf], leaves.node_start[leaf + 1]
        if q == stop:
            leaf_of[n], node_of[n], simple[n] = leaf, -1, 1
            part_row[n_parts], part_scope[n_parts], part_weight[n_parts] = leaf, -1, 1.0
            n_parts += 1
            n += 1
            part_start[n] = n_parts
        while q < stop:
            if leaves.node_kind[q] == SUM and width[q] > 1:
                q += 1
                continue
            leaf_of[n], node_of[n], simple[n] = leaf, q, is_product[q]
            if is_product[q]:
                log_weight[q] = 0.0
                for r in range(q, leaves.node_end[q]):
                    if leaves.node_kind[r] == FACTORS:
                        part_row[n_parts], part_scope[n_parts] = leaves.node_row[r], leaves.node_scope[r]
                        part_weight[n_parts] = math.exp(log_weight[r])
                        n_parts += 1
                    child = r + 1
                    while child < leaves.node_end[r]:
                        log_weight[child] = log_weight[r] + leaves.node_log_weight[child]
                        child = leaves.node_end[child]
            n += 1
            part_start[n] = n_parts
            q = leaves.node_end[q]
        start[leaf + 1] = n
    return (
        start, leaf_of[:n].copy(), node_of[:n].copy(), simple[:n].copy(), part_start[: n + 1].copy(),
        part_row[:n_parts].copy(), part_scope[:n_parts].copy(), part_weight[:n_parts].copy(),
    )  # fmt: skip


@kernel
def row_mass(columns, leaves, evidence, marks, row, m):
    """Mass of a mark in a row of the parameter tables."""
    j = marks.column[m]
    if j < 0:
        return 1.0 if m == ONE else 0.0
    slot = columns.slot[j]
    if not columns.is_categorical[j]:
        return slot_cdf(columns, leaves, evidence, row, slot, -1, marks.edge[m])
    first, total = columns.level_start[slot], 0.0
    for k in range(marks.level_start[m], marks.level_start[m + 1]):
        total += leaves.level_mass[row, first + marks.level[k]]
    return min(total, 1.0)


@kernel
def component_mass(columns, leaves, evidence, marks, components, c, m):
    """Mass of a mark in a component whose columns are independent."""
    first, stop = components.part_start[c], components.part_start[c + 1]
    if stop - first == 1:
        return row_mass(columns, leaves, evidence, marks, components.part_row[first], m)
    if m <= ONE:
        return 1.0 if m == ONE else 0.0
    total = 0.0
    for k in range(first, stop):
        if leaves.scope[components.part_scope[k], marks.column[m]]:
            mass = row_mass(columns, leaves, evidence, marks, components.part_row[k], m)
            total += components.part_weight[k] * mass
    return min(total, 1.0)


@entry
def fill_levels(leaves, columns, components, first, stop, out):
    """Masses of all levels in the components first..stop-1, into ``out`` (C, S)."""
    for c in range(first, stop):
        out[c] = 0.0
        for k in range(components.part_start[c], components.part_start[c + 1]):
            row, scope, weight = components.part_row[k], components.part_scope[k], components.part_weight[k]
            for j in range(columns.slot.shape[0]):
                if columns.is_categorical[j] and (scope < 0 or leaves.scope[scope, j]):
                    slot = columns.slot[j]
                    for level in range(columns.level_start[slot], columns.level_start[slot + 1]):
                        out[c, level] += weight * leaves.level_mass[row, level]


@entry
def fill_masses(columns, leaves, evidence, marks, components, mark, first, stop, out):
    """Masses of the marks ``mark`` (m,) in the components first..stop-1, into ``out`` (C, m)."""
    for c in range(first, stop):
        if not components.is_product[c]:
            out[c] = 0.0
            continue
        for k in range(mark.shape[0]):
            out[c, k] = component_mass(columns, leaves, evidence, marks, components, c, mark[k])
