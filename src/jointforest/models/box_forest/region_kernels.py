"""Kernels on regions and grid cells, and of conditioning on them."""

import math

import numpy as np

from ...runtime.compile import entry, kernel
from .leaves.family_kernels import log_mass
from .leaves.grid_kernels import cell_centre
from .leaves.slot_kernels import find_atom, piece

_NEAR = 1e-6
"""A value this close to a centre, in steps, is given back as it was."""


@kernel
def cell_region(evidence, row, j):
    """Number of the cell's region, -1 if it has none."""
    if evidence.region.shape[0] == 0:
        return -1
    return evidence.region[row, j]


@kernel
def known_number(columns, slot, x):
    """The number that a known value counts as: on a grid the centre of its cell."""
    step = columns.step[slot]
    if step == 0.0:
        return x
    centre = cell_centre(step, columns.origin[slot], x)
    return x if abs(x - centre) <= _NEAR * step else centre


@kernel
def in_region(columns, evidence, slot, region, x):
    """Whether the region holds the value x (on a grid: its cell)."""
    return log_likelihood(columns, evidence, slot, region, x) > -math.inf


@kernel
def log_likelihood(columns, evidence, slot, region, x):
    """Log-likelihood that the region (-1: none) gives to the value x (on a grid: to its cell); -inf outside."""
    if region < 0:
        return 0.0
    if columns.step[slot] == 0.0:
        atom = find_atom(columns, slot, x)
        if atom >= 0:
            if (evidence.atoms[region] >> atom) & 1 == 0:
                return -math.inf
            return evidence.atom_log_weight[region, atom] if evidence.atom_log_weight.shape[0] > 0 else 0.0
    centre = x if columns.step[slot] == 0.0 else cell_centre(columns.step[slot], columns.origin[slot], x)
    for run in range(evidence.run_start[region], evidence.run_start[region + 1]):
        if evidence.run_lo[run] < centre <= evidence.run_hi[run]:
            return evidence.run_log_weight[run]
    return -math.inf


# ---- Kernel of conditioning: in which runs of a region pieces have mass.


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
