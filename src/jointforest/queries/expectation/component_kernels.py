"""Kernels: the components of circuits, and the masses that components give to split regions."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry, kernel
from ...leaves.levels.level_kernels import add_levels, add_wide, level_mass
from ...leaves.one_slot.slot_kernels import slot_cdf
from ...leaves.table import FACTORS, PRODUCT, SUM
from .split_regions import ONE


@entry
def circuit_components(leaves):
    """The fields of `components.Components` of a joint some of whose leaves have circuits."""
    n_leaves, n_nodes = leaves.log_weight.shape[0], leaves.node_kind.shape[0]
    width, is_product = np.zeros(n_nodes, np.int32), np.ones(n_nodes, np.uint8)
    find_products(leaves, width, is_product)
    most = n_leaves + n_nodes
    start, part_start = np.zeros(n_leaves + 1, np.int32), np.zeros(most + 1, np.int32)
    leaf_of, node_of, simple = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
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
                n_parts = add_parts(leaves, q, log_weight, n_parts, part_row, part_scope, part_weight)
            n += 1
            part_start[n] = n_parts
            q = leaves.node_end[q]
        start[leaf + 1] = n
    return (
        start, leaf_of[:n].copy(), node_of[:n].copy(), simple[:n].copy(), part_start[: n + 1].copy(),
        part_row[:n_parts].copy(), part_scope[:n_parts].copy(), part_weight[:n_parts].copy(),
    )  # fmt: skip


@kernel
def find_products(leaves, width, is_product):
    """Write how many columns each node of the circuits has, and whether these are independent below it."""
    for q in range(width.shape[0] - 1, -1, -1):  # children come after their parent
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


@kernel
def add_parts(leaves, q, log_weight, n, part_row, part_scope, part_weight):
    """Write the parts of node q from place n on; return the place after them. ``log_weight`` (Q,) is scratch."""
    log_weight[q] = 0.0
    for r in range(q, leaves.node_end[q]):
        if leaves.node_kind[r] == FACTORS:
            part_row[n], part_scope[n] = leaves.node_row[r], leaves.node_scope[r]
            part_weight[n] = math.exp(log_weight[r])
            n += 1
        child = r + 1
        while child < leaves.node_end[r]:
            log_weight[child] = log_weight[r] + leaves.node_log_weight[child]
            child = leaves.node_end[child]
    return n


@kernel
def row_mass(columns, leaves, evidence, regions, row, m):
    """Mass of a split region under a parameter row."""
    j = regions.column[m]
    if j < 0:
        return 1.0 if m == ONE else 0.0
    slot = columns.slot[j]
    if not columns.is_categorical[j]:
        return slot_cdf(columns, leaves, evidence, row, slot, -1, regions.edge[m])
    total = 0.0
    for k in range(regions.level_start[m], regions.level_start[m + 1]):
        total += level_mass(leaves, row, slot, regions.level[k])
    return min(total, 1.0)


@kernel
def component_mass(columns, leaves, evidence, regions, components, c, m):
    """Mass of a split region in a component whose columns are independent."""
    first, stop = components.part_start[c], components.part_start[c + 1]
    if stop - first == 1:
        return row_mass(columns, leaves, evidence, regions, components.part_row[first], m)
    if m <= ONE:
        return 1.0 if m == ONE else 0.0
    total = 0.0
    for k in range(first, stop):
        if leaves.scope[components.part_scope[k], regions.column[m]]:
            mass = row_mass(columns, leaves, evidence, regions, components.part_row[k], m)
            total += components.part_weight[k] * mass
    return min(total, 1.0)


@entry
def fill_level_masses(leaves, columns, components, first, stop, out):
    """Masses of the levels of columns of few in the components first..stop-1, into ``out`` (C, N)."""
    for c in range(first, stop):
        out[c] = 0.0
        for k in range(components.part_start[c], components.part_start[c + 1]):
            row, scope, weight = components.part_row[k], components.part_scope[k], components.part_weight[k]
            for j in range(columns.slot.shape[0]):
                if columns.is_categorical[j] and (scope < 0 or leaves.scope[scope, j]):
                    slot = columns.slot[j]
                    place, size = leaves.wide.place[slot], columns.level_start[slot + 1] - columns.level_start[slot]
                    if place >= 0:
                        add_levels(leaves, row, slot, size, weight, out[c], place)


@kernel
def add_wide_levels(leaves, components, j, t, c, out, start):
    """Add the masses of the levels of column j, the wide column t, in component c to ``out`` from ``start`` on."""
    for k in range(components.part_start[c], components.part_start[c + 1]):
        scope = components.part_scope[k]
        if scope < 0 or leaves.scope[scope, j]:
            add_wide(leaves.wide, components.part_row[k], t, components.part_weight[k], out, start)


@entry
def fill_region_masses(columns, leaves, evidence, regions, components, region, first, stop, out):
    """Masses of the split regions ``region`` (m,) in the components first..stop-1, into ``out`` (C, m)."""
    for c in range(first, stop):
        if not components.is_product[c]:
            out[c] = 0.0
            continue
        for k in range(region.shape[0]):
            out[c, k] = component_mass(columns, leaves, evidence, regions, components, c, region[k])
