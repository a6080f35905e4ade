"""Kernels: the components of a joint that count for a row, and the masses that they give to marks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...forest.posterior.circuit_kernels import circuit_log_density, find_atoms, has_circuit, share_out
from ...ground.compile import array_kernel, kernel
from ...ground.records import record
from .region_kernels import ONE, ZERO, component_mass

BLOCK = 128
"""Components a block."""
STRIDE = BLOCK + 8
"""Entries a row of a block: no power of two, whose rows would fall into the same few cache lines."""
_BUCKETS = 128
_TILE = 32  # components whose masses are fetched at once: their cache lines stay for the next marks

# divisions by 0 are seen to; without Python's check of them loops become vector instructions


@record
class Live(NamedTuple):
    """The components that count for one row.

    Attributes
    ----------
    component : int32 array (C,)
    weight : float64 array (C,)
        Sums to 1 over the row's components.
    n, n_products : int64 arrays (1,)
        How many; components whose columns are independent come first.
    dropped : float64 array (1,)
        Share of the posterior weight of components that were left out.
    """

    component: np.ndarray
    weight: np.ndarray
    n: np.ndarray
    n_products: np.ndarray
    dropped: np.ndarray


@array_kernel
def scratch_live(n_components):
    """Scratch for `find_live`."""
    return Live(
        np.empty(n_components, np.int32), np.empty(n_components, np.float64), np.zeros(1, np.int64),
        np.zeros(1, np.int64), np.zeros(1, np.float64),
    )  # fmt: skip


@kernel
def find_live(columns, leaves, evidence, components, row, post, at, most, atom, value, weight, live):
    """Write the components of row ``at`` of the posterior, but for light ones of at most ``most`` weight together.

    ``value`` and ``weight`` (Q,) get log p(evidence) and log p(node takes part, evidence) of the circuits' nodes;
    ``atom`` is scratch.
    """
    n = 0
    n_nodes = leaves.node_kind.shape[0]
    if n_nodes > 0:
        find_atoms(columns, evidence, row, atom)
    for k in range(post.start[at], post.start[at + 1]):
        leaf = post.leaf[k]
        log_weight = post.log_weight[k] - post.log_evidence[at]
        if not has_circuit(leaves, leaf):
            live.component[n], live.weight[n] = components.start[leaf], math.exp(log_weight)
            n += 1
            continue
        circuit_log_density(columns, leaves, evidence, row, atom, leaf, value)
        share_out(leaves, leaf, log_weight, value, weight)
        for c in range(components.start[leaf], components.start[leaf + 1]):
            share = math.exp(weight[components.node[c]])
            if share > 0.0:
                live.component[n], live.weight[n] = c, share
                n += 1
    limit = 0.0 if most <= 0.0 else light_weight(live.weight, n, most)
    kept, total, dropped = 0, 0.0, 0.0
    for i in range(n):
        if live.weight[i] < limit:
            dropped += live.weight[i]
        else:
            live.component[kept], live.weight[kept] = live.component[i], live.weight[i]
            total += live.weight[i]
            kept += 1
    for i in range(kept):
        live.weight[i] /= total
    live.n[0], live.dropped[0] = kept, dropped
    first = kept  # products first
    if n_nodes > 0:
        first = 0
        for i in range(kept):
            if components.is_product[live.component[i]]:
                c, w = live.component[i], live.weight[i]
                live.component[i], live.weight[i] = live.component[first], live.weight[first]
                live.component[first], live.weight[first] = c, w
                first += 1
    live.n_products[0] = first


@kernel
def light_weight(weight, n, most):
    """The largest power of 1/2 such that the weights below it sum to at most ``most``."""
    limit, top = 1.0, 0.0
    for i in range(n):
        top = max(top, weight[i])
    while limit > top:  # the heaviest stays
        limit *= 0.5
    for _ in range(_BUCKETS):
        total = 0.0
        for i in range(n):
            if weight[i] < limit:
                total += weight[i]
        if total <= most:
            return limit
        limit *= 0.5
    return 0.0


@kernel
def gather(columns, leaves, evidence, marks, components, masses, used, n_used, live, first, n, level_row, out):
    """Masses of the used marks in the live components first..first+n-1 into ``out`` (marks, STRIDE), 0 beyond n.

    ``level_row`` (S, STRIDE) gets the masses of the levels of the marks' columns.
    """
    end = (n + 7) // 8 * 8
    for i in range(end):
        out[ZERO, i], out[ONE, i] = 0.0, 1.0
    u = 2
    while u < n_used:
        j = marks.column[used[u]]
        stop = u
        while stop < n_used and marks.column[used[stop]] == j:
            stop += 1
        if columns.is_categorical[j]:
            slot = columns.slot[j]
            start, n_levels = columns.level_start[slot], columns.level_start[slot + 1] - columns.level_start[slot]
            for tile in range(0, n, _TILE):
                for k in range(start, start + n_levels):
                    for i in range(tile, min(tile + _TILE, n)):
                        level_row[k, i] = masses.level[live.component[first + i], k]
            for k in range(n_levels):
                for i in range(n, end):
                    level_row[start + k, i] = 0.0
            for v in range(u, stop):
                add_levels(marks, used[v], start, n_levels, n, level_row, v, out)
        else:
            for tile in range(0, n, _TILE):
                for v in range(u, stop):
                    place = masses.place[used[v]]
                    for i in range(tile, min(tile + _TILE, n)):
                        c = live.component[first + i]
                        if place >= 0:
                            out[v, i] = masses.table[c, place]
                        else:
                            out[v, i] = component_mass(columns, leaves, evidence, marks, components, c, used[v])
        for v in range(u, stop):
            for i in range(n, end):
                out[v, i] = 0.0
        u = stop


@kernel
def add_levels(marks, m, start, n_levels, n, level_row, v, out):
    """Write the mass of a set of levels, the sum of rows of ``level_row`` from ``start`` on, into row v of ``out``."""
    first, stop = marks.level_start[m], marks.level_start[m + 1]
    if 2 * (stop - first) <= n_levels:
        for i in range(n):
            out[v, i] = 0.0
        for at in range(first, stop):
            k = start + marks.level[at]
            for i in range(n):
                out[v, i] += level_row[k, i]
        for i in range(n):
            out[v, i] = min(out[v, i], 1.0)
        return
    for i in range(n):
        out[v, i] = 1.0
    at = first
    for k in range(n_levels):
        if at < stop and marks.level[at] == k:
            at += 1
            continue
        for i in range(n):
            out[v, i] -= level_row[start + k, i]
    for i in range(n):
        out[v, i] = max(out[v, i], 0.0)
