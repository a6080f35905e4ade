"""Evidence written cell by cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointforest.table.evidence import Evidence


class Region(NamedTuple):
    """A region of one column: runs (lo, hi] and the numbers of the atoms in it."""

    runs: tuple[tuple[float, float], ...] = ()
    atoms: tuple[int, ...] = ()


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
        log_penalty=np.zeros(n),
    )
