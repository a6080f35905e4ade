"""What is known of a cell: a value, a set of values, or nothing; and what a leaf says of it."""

from __future__ import annotations

import math
from typing import NamedTuple

from .boxes import n_levels
from .slot import level_mass, log, piece, rest_mass, value_log_density

Runs = list[tuple[float, float]]


class Set(NamedTuple):
    """A set of values of one column: runs (lo, hi] and the numbers of atoms; if it is soft, their likelihoods."""

    runs: Runs
    atoms: set[int]
    of_runs: list[float] | None = None
    of_atoms: dict[int, float] | None = None

    def weighed_runs(self):
        """Runs with their likelihoods."""
        return zip(self.runs, self.of_runs or [1.0] * len(self.runs), strict=True)

    def weight_of(self, k):
        """Likelihood of atom k."""
        return self.of_atoms[k] if self.of_atoms else 1.0


def cell(evidence, i, j):
    """What is known of a cell: None, a float, or a `Set`."""
    if not math.isnan(evidence.value[i, j]):
        return float(evidence.value[i, j])
    if evidence.region.size == 0 or evidence.region[i, j] < 0:
        return None
    r = int(evidence.region[i, j])
    runs = range(int(evidence.run_start[r]), int(evidence.run_start[r + 1]))
    bits = int(evidence.atoms[r])
    atoms = {k for k in range(64) if bits >> k & 1}
    soft = evidence.atom_log_weight.size > 0
    return Set(
        [(float(evidence.run_lo[q]), float(evidence.run_hi[q])) for q in runs],
        atoms,
        [math.exp(evidence.run_log_weight[q]) for q in runs],
        {k: math.exp(evidence.atom_log_weight[r, k]) for k in atoms} if soft else None,
    )


def is_level_in(k, known):
    """Whether level k agrees with a value or a set."""
    return any(lo < k <= hi for lo, hi in known.runs) if isinstance(known, Set) else k == known


def likelihood(k, known):
    """How likely level k is by a value or a set."""
    if isinstance(known, Set):
        return math.fsum(weight for (lo, hi), weight in known.weighed_runs() if lo < k <= hi)
    return float(k == known)


def likelihood_at(x, piece, known):
    """How likely the number x is by a set; an atom by its own, where there is no grid."""
    for k, (value, _) in enumerate(piece.atoms if piece.step == 0.0 else []):
        if value == x:
            return known.weight_of(k) if k in known.atoms else 0.0
    return math.fsum(weight for (lo, hi), weight in known.weighed_runs() if lo < x <= hi)


def within(region, piece, lo, hi):
    """The part of a set that lies in (lo, hi]."""
    runs = [((max(u, lo), min(v, hi)), w) for (u, v), w in region.weighed_runs() if max(u, lo) < min(v, hi)]
    atoms = {k for k in region.atoms if k < len(piece.atoms) and lo < piece.atoms[k][0] <= hi}
    return Set([run for run, _ in runs], atoms, [w for _, w in runs], region.of_atoms)


def everything(model, j):
    """The set of all values of a numeric column."""
    s = model.columns.slot[j]
    return Set([(-math.inf, math.inf)], set(range(int(model.columns.atom_start[s + 1] - model.columns.atom_start[s]))))


def set_mass(piece, region):
    """Design, same place: the region's atoms, and the rest's mass of its runs, times their likelihoods."""
    on_atoms = math.fsum(region.weight_of(k) * mass for k, (_, mass) in enumerate(piece.atoms) if k in region.atoms)
    return on_atoms + piece.rest * math.fsum(w * rest_mass(piece, lo, hi) for (lo, hi), w in region.weighed_runs())


def log_factor(model, box, leaf, j, known):
    """Log of 1[x_j in B_lj] * D_lj(what is known of x_j): a density for a value, a mass for a set, 1 for nothing."""
    bounds, levels = box
    if known is None:
        return 0.0
    if model.columns.is_categorical[j]:
        allowed = levels.get(j, set(range(n_levels(model, j))))
        meant = {k for k in allowed if is_level_in(k, known)}
        return log(math.fsum(m * likelihood(k, known) for k, m in enumerate(level_mass(model, leaf, j)) if k in meant))
    lo, hi = bounds.get(j, (-math.inf, math.inf))
    this = piece(model, leaf, j)
    if isinstance(known, Set):
        return log(set_mass(this, within(known, this, lo, hi)))
    return value_log_density(this, known) if lo < known <= hi else -math.inf
