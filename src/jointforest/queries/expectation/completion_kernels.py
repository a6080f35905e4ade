"""Kernel that completes rows, stratified by components."""

from __future__ import annotations

import math

import numpy as np

from ...forest.column.mixture_kernels import row_mixture
from ...forest.posterior.circuit_kernels import circuit_log_density, draw_parts, find_atoms, has_circuit
from ...forest.rows.draw_kernels import draw_row
from ...ground.compile import entry
from ...ground.random_kernels import stream, uniform


@entry
def complete_rows(columns, leaves, evidence, post, m, seed, offset, out):
    """m completions of each row of the evidence, into ``out`` (n * m, d).

    The leaf of draw k is that at a random place of the k-th of m equal parts of the cumulated weights, so that leaves
    are drawn as often as their weights say, but for less than one draw (stratified sampling). Streams are by row and
    draw, rows counted from ``offset`` on.
    """
    n_nodes = leaves.node_kind.shape[0]
    atom, of = np.empty(out.shape[1], np.int32), np.empty(out.shape[1], np.int32)
    value, active = np.empty(n_nodes, np.float64), np.empty(n_nodes, np.uint8)
    for i in range(post.log_evidence.shape[0]):
        at = i * m
        if post.log_evidence[i] == -math.inf:
            out[at : at + m] = math.nan
            continue
        leaf, weight = row_mixture(post, i)
        total = weight.sum()
        if n_nodes > 0:
            find_atoms(columns, evidence, i, atom)
        entry, up_to, last = 0, weight[0], -1
        for k in range(m):
            state = stream(seed, offset * m + at + k)
            target = (k + uniform(state)) / m * total
            while up_to < target and entry < leaf.shape[0] - 1:
                entry += 1
                up_to += weight[entry]
            this = leaf[entry]
            if this != last and has_circuit(leaves, this):
                circuit_log_density(columns, leaves, evidence, i, atom, this, value)
            last = this
            draw_parts(leaves, this, value, active, state, of)
            draw_row(columns, leaves, evidence, i, this, of, False, state, out[at + k])
