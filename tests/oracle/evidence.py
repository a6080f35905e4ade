"""What is known of a cell: a value, a set of values, or nothing; and what a leaf says of it."""

from __future__ import annotations

import math
from typing import NamedTuple

from tests.oracle.boxes import n_levels
from tests.oracle.slot import level_mass, log, piece, rest_mass, value_log_density

Runs = list[tuple[float, float]]


class Set(NamedTuple):
    """A set of values of one column: runs (lo, hi] and the numbers of atoms."""

    runs: Runs
    atoms: set[int]


def cell(evidence, i, j):
    """What is known of a cell: None, a float, or a `Set`."""
    if not math.isnan(evidence.value[i, j]):
        return float(evidence.value[i, j])
    if evidence.region.size == 0 or evidence.region[i, j] < 0:
        return None
    r = int(evidence.region[i, j])
    runs = range(int(evidence.run_start[r]), int(evidence.run_start[r + 1]))
    bits = int(evidence.atoms[r])
    return Set(
        [(float(evidence.run_lo[q]), float(evidence.run_hi[q])) for q in runs], {k for k in range(64) if bits >> k & 1}
    )


def is_level_in(k, known):
    """Whether level k agrees with a value or a set."""
    return any(lo < k <= hi for lo, hi in known.runs) if isinstance(known, Set) else k == known


def within(region, piece, lo, hi):
    """The part of a set that lies in (lo, hi]."""
    runs = [(max(u, lo), min(v, hi)) for u, v in region.runs if max(u, lo) < min(v, hi)]
    return Set(runs, {k for k in region.atoms if k < len(piece.atoms) and lo < piece.atoms[k][0] <= hi})


def everything(model, j):
    """The set of all values of a numeric column."""
    s = model.columns.slot[j]
    return Set([(-math.inf, math.inf)], set(range(int(model.columns.atom_start[s + 1] - model.columns.atom_start[s]))))


def set_mass(piece, region):
    """Design, same place: the region's atoms, and the rest's mass of its runs."""
    on_atoms = math.fsum(mass for k, (_, mass) in enumerate(piece.atoms) if k in region.atoms)
    return on_atoms + piece.rest * math.fsum(rest_mass(piece, lo, hi) for lo, hi in region.runs)


def log_factor(model, box, leaf, j, known):
    """Log of 1[x_j in B_lj] * D_lj(what is known of x_j): a density for a value, a mass for a set, 1 for nothing.

    ``leaf`` is a row of the parameter tables: a leaf, or a part of a circuit.
    """
    bounds, levels = box
    if known is None:
        return 0.0
    if model.columns.is_categorical[j]:
        allowed = levels.get(j, set(range(n_levels(model, j))))
        meant = {k for k in allowed if is_level_in(k, known)}
        return log(math.fsum(m for k, m in enumerate(level_mass(model, leaf, j)) if k in meant))
    lo, hi = bounds.get(j, (-math.inf, math.inf))
    this = piece(model, leaf, j)
    if isinstance(known, Set):
        return log(set_mass(this, within(known, this, lo, hi)))
    return value_log_density(this, known) if lo < known <= hi else -math.inf
