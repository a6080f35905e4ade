"""Kernel of conditioning: in which runs of a region pieces have mass."""

from __future__ import annotations

import math

import numpy as np

from ...runtime.compile import entry
from .leaves.family_kernels import log_mass
from .leaves.slot_kernels import piece


@entry
def runs_inside(columns, leaves, evidence, leaf, slot, number, region):
    """The runs of a region with mass for each of n pieces (leaf, number) of a slot: start, run, log likelihood mass."""
    n_pieces, first_run, end_run = number.shape[0], evidence.run_start[region], evidence.run_start[region + 1]
    start = np.zeros(n_pieces + 1, np.int64)
    run, log_share = np.empty(n_pieces, np.int64), np.empty(n_pieces, np.float64)
    n = 0
    for i in range(n_pieces):
        d, log_weight = piece(leaves, leaf[i], slot, number[i])
        for q in range(first_run, end_run):
            u, v = max(evidence.run_lo[q], d.lo), min(evidence.run_hi[q], d.hi)
            if v - u > 0.5 * columns.step[slot]:  # less is rounding
                mass = log_weight + log_mass(d, u, v) + evidence.run_log_weight[q]
                if mass == -math.inf:
                    continue
                if n == run.shape[0]:
                    run = np.concatenate((run, np.empty_like(run)))
                    log_share = np.concatenate((log_share, np.empty_like(log_share)))
                run[n], log_share[n] = q, mass
                n += 1
        start[i + 1] = n
    return start, run[:n].copy(), log_share[:n].copy()
