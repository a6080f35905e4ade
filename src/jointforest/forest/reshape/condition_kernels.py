"""Kernel of conditioning: in which runs of a region a parameter row has mass."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import entry
from ...leaves.one_slot.slot_kernels import has_atom, log_add, log_run_mass, safe_log, weighed_atom


@entry
def pieces(columns, leaves, evidence, slot, region):
    """The runs of a region in which each parameter row has mass, for one numeric slot.

    Returns
    -------
    start : int64 array (R + 1,), run : int64 array (m,)
        Row r has mass in the runs ``run[start[r]:start[r + 1]]``.
    log_share : float64 array (m,)
        Log of the piece's share of the region's mass in the parameter row; the first one has the atoms, too.
    log_first : float64 array (R,)
        Log mass of the first piece, atoms included.
    """
    n_rows, first_run, end_run = leaves.tree.shape[0], evidence.run_start[region], evidence.run_start[region + 1]
    start = np.zeros(n_rows + 1, np.int64)
    run, log_share = np.empty(n_rows, np.int64), np.empty(n_rows, np.float64)
    log_first = np.empty(n_rows, np.float64)
    first_atom = columns.atom_start[slot]
    n = 0
    for r in range(n_rows):
        atoms = 0.0
        for k in range(columns.atom_start[slot + 1] - first_atom):
            if has_atom(evidence, region, k):
                atoms += weighed_atom(evidence, region, k, leaves.atom_mass[r, first_atom + k])
        log_first[r] = safe_log(atoms)
        total = log_first[r]
        rest = leaves.log_rest[r, slot]
        if rest > -math.inf:
            for q in range(first_run, end_run):
                mass = rest + log_run_mass(columns, leaves, r, slot, evidence.run_lo[q], evidence.run_hi[q])
                if mass == -math.inf:
                    continue
                mass += evidence.run_log_weight[q]
                if n == run.shape[0]:
                    run = np.concatenate((run, np.empty_like(run)))
                    log_share = np.concatenate((log_share, np.empty_like(log_share)))
                run[n] = q
                log_share[n] = mass
                if n == start[r]:
                    log_first[r] = log_add(log_first[r], mass)
                    log_share[n] = log_first[r]
                total = log_add(total, mass)
                n += 1
        log_share[start[r] : n] -= total
        start[r + 1] = n
    return start, run[:n].copy(), log_share[:n].copy(), log_first
