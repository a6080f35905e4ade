"""Evidence written cell by cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointforest.data.evidence import Evidence


class Region(NamedTuple):
    """A region of one column: runs (lo, hi] and the numbers of the atoms in it; log-likelihoods of both if soft."""

    runs: tuple[tuple[float, float], ...] = ()
    atoms: tuple[int, ...] = ()
    run_log_weights: tuple[float, ...] = ()
    atom_log_weights: tuple[float, ...] = ()


Cell = float | Region | None  # a value, a region, or nothing known


def make_evidence(cells: list[list[Cell]]) -> Evidence:
    """Evidence of n rows, given cell by cell."""
    n, d = len(cells), len(cells[0])
    value, region = np.full((n, d), np.nan), np.full((n, d), -1, dtype=np.int32)
    regions: list[Region] = []
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            if isinstance(cell, Region):
                region[i, j] = len(regions)
                regions.append(cell)
            elif cell is not None:
                value[i, j] = cell
    runs = [run for r in regions for run in r.runs]
    return Evidence(
        value=value,
        region=region if regions else np.empty((0, 0), dtype=np.int32),
        run_start=np.cumsum([0] + [len(r.runs) for r in regions]).astype(np.int32),
        run_lo=np.array([lo for lo, _ in runs], dtype=np.float64),
        run_hi=np.array([hi for _, hi in runs], dtype=np.float64),
        atoms=np.array([sum(1 << k for k in r.atoms) for r in regions], dtype=np.uint64),
        run_log_weight=np.array([w for r in regions for w in r.run_log_weights or [0.0] * len(r.runs)]),
        atom_log_weight=_atom_log_weight(regions),
        log_penalty=np.zeros(n),
    )


def _atom_log_weight(regions: list[Region]) -> np.ndarray:
    if not any(r.run_log_weights or r.atom_log_weights for r in regions):
        return np.empty((0, 0))
    table = np.zeros((len(regions), 1 + max(k for r in regions for k in (*r.atoms, -1))))
    for row, r in zip(table, regions, strict=True):
        row[list(r.atoms)] = r.atom_log_weights or 0.0
    return table
