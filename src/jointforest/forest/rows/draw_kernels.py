"""Kernel that draws rows."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry, kernel
from ...ground.random_kernels import stream, uniform
from ...leaves.one_slot.slot_kernels import level_draw, slot_draw
from ..column.mixture_kernels import row_mixture
from ..posterior.circuit_kernels import circuit_log_density, draw_parts, find_atoms, has_circuit
from ..posterior.region_kernels import cell_region


@kernel
def draw_row(columns, leaves, evidence, row, leaf, of, missing, state, out):
    """Draw one row from a leaf, given the row's evidence; column j by the row ``of[j]`` of the parameter tables."""
    for j in range(out.shape[0]):
        x = evidence.value[row, j]
        if x == x:
            out[j] = x
        elif columns.is_categorical[j]:
            region = cell_region(evidence, row, j)
            out[j] = level_draw(columns, leaves, evidence, of[j], columns.slot[j], region, uniform(state))
        else:
            region = cell_region(evidence, row, j)
            u1, u2 = uniform(state), uniform(state)
            out[j] = slot_draw(columns, leaves, evidence, of[j], columns.slot[j], region, u1, u2)
    if missing:
        for j in range(out.shape[0]):
            known = evidence.value[row, j] == evidence.value[row, j] or cell_region(evidence, row, j) >= 0
            if not known and uniform(state) < leaves.missing_rate[leaf, j]:
                out[j] = math.nan


@entry
def draw_rows(columns, leaves, evidence, post, first, m, begin, end, seed, missing, out):
    """Draws begin..end-1 of the m of each row of the posterior (of the rows first..), into ``out`` (n * m, d).

    Draws of a row are made leaf by leaf, so that the leaves' parameters are read in order; every draw has its own
    random stream, so that the order changes nothing.
    """
    n_nodes = leaves.node_kind.shape[0]
    atom, of = np.empty(out.shape[1], np.int32), np.empty(out.shape[1], np.int64)
    value, active = np.empty(n_nodes, np.float64), np.empty(n_nodes, np.uint8)
    for i in range(post.log_evidence.shape[0]):
        at = (first + i) * m
        if post.log_evidence[i] == -math.inf:
            out[at + begin : at + end] = math.nan
            continue
        leaf, weight = row_mixture(post, i)
        cumulative = np.cumsum(weight)
        total = cumulative[-1]
        entry = np.empty(end - begin, np.int64)
        for k in range(begin, end):
            state = stream(seed, at + k)
            entry[k - begin] = np.searchsorted(cumulative, uniform(state) * total)
        if n_nodes > 0:
            find_atoms(columns, evidence, first + i, atom)
        last = -1
        for k in np.argsort(entry):
            state = stream(seed, at + begin + k)
            uniform(state)  # chose the leaf
            this = leaf[entry[k]]
            if this != last and has_circuit(leaves, this):
                circuit_log_density(columns, leaves, evidence, first + i, atom, this, value)
            last = this
            draw_parts(leaves, this, value, active, state, of)
            draw_row(columns, leaves, evidence, first + i, this, of, missing, state, out[at + begin + k])
