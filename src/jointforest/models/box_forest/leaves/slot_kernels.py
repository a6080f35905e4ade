"""One numeric or categorical slot of one leaf as queries see it: the density with grid and atoms, levels, regions."""

# Formulas: "Densities of one column in one leaf" in docs/design.md. l is the leaf, s the slot; region -1 means no
# restriction. Regions are of `data.evidence.Evidence`; the mass of a soft one is weighed by its likelihood.

from __future__ import annotations

import math

import numpy as np

from ....runtime.compile import entry, kernel
from ....runtime.random_kernels import uniform
from .density_kernels import density_of
from .family_kernels import draw, log_mass, log_norm, mean_variance
from .grid_kernels import cell_centre, grid_mean_variance, log_density, pool_moments
from .level_kernels import level_mass, levels_mass
from .table import PIECES, UNIFORM

# ---- Kernels: the pieces of the continuous part of one numeric slot in one leaf; see `table.Pieces`. A density without
# pieces counts as a single piece, with number -1 and weight 1.


@kernel
def piece_numbers(leaves, l, s):  # noqa: E741
    """Numbers of the slot's first piece and of the one after its last."""
    if leaves.family[l, s] != PIECES:
        return np.int64(-1), np.int64(0)
    first = np.int64(leaves.a[l, s])
    return first, first + np.int64(leaves.b[l, s])


@kernel
def piece(leaves, l, s, k):  # noqa: E741
    """Piece k of the slot: its density, and the log of its share."""
    if k < 0:
        return density_of(leaves, l, s), 0.0
    return density_of(leaves.pieces, k, 0), leaves.pieces.log_weight[k]


@kernel
def piece_at(leaves, l, s, x):  # noqa: E741
    """Number of the first piece that ends at x or above; of the last one if none does."""
    low, stop = piece_numbers(leaves, l, s)
    high = stop - 1
    while low < high:
        middle = (low + high) // 2
        if leaves.pieces.hi[middle, 0] >= x:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def rest_log_density(leaves, l, s, x, step):  # noqa: E741
    """Log density of the continuous part at x; on a grid (``step`` > 0) of the cell with centre x."""
    if leaves.family[l, s] != PIECES:
        return log_density(density_of(leaves, l, s), x, step)
    d, log_share = piece(leaves, l, s, piece_at(leaves, l, s, x))
    return log_share + log_density(d, x, step)


# ---- A slot as queries see it: the density with grid and atoms, levels, regions.


_ONE = np.uint64(1)
_NEAR = 1e-6
"""A value this close to a centre, in steps, counts as the centre."""


@kernel
def find_atom(columns, s, x):
    """Number of the atom equal to x (on a grid: in the same cell), -1 if none."""
    first, end = columns.atom_start[s], columns.atom_start[s + 1]
    if first == end:
        return -1
    step = columns.step[s]
    if step > 0.0:
        x = cell_centre(step, columns.origin[s], x)
    for k in range(first, end):
        if abs(columns.atom_value[k] - x) <= 0.25 * step:
            return k - first
    return -1


@kernel
def safe_log(x):
    """Log of x >= 0, -inf at 0."""
    return math.log(x) if x > 0.0 else -math.inf


@kernel
def _grid_atom(atom_mass, log_rest, log_density, step):
    """Log density of a cell that is also an atom."""
    mass = atom_mass + math.exp(log_rest + log_density) * step
    return safe_log(mass) - math.log(step)


@kernel
def value_log_density(columns, leaves, l, s, x, atom):  # noqa: E741
    """Log density of the value x in leaf l; ``atom`` is the number of x's atom within the slot, or -1."""
    step = columns.step[s]
    if step == 0.0 and atom >= 0:
        return safe_log(leaves.atom_mass[l, columns.atom_start[s] + atom])
    at = cell_centre(step, columns.origin[s], x) if step > 0.0 else x
    of_rest = rest_log_density(leaves, l, s, at, step)
    if atom >= 0:
        return _grid_atom(leaves.atom_mass[l, columns.atom_start[s] + atom], leaves.log_rest[l, s], of_rest, step)
    return leaves.log_rest[l, s] + of_rest


@kernel
def cut_to_support(columns, leaves, l, s, u, v):  # noqa: E741
    """The part of (u, v] in the support; less than half a cell of a grid is rounding, and empty."""
    u, v = max(u, leaves.lo[l, s]), min(v, leaves.hi[l, s])
    if v - u <= 0.5 * columns.step[s]:
        return u, u
    return u, v


@kernel
def log_run_mass(columns, leaves, l, s, u, v):  # noqa: E741
    """Log of the mass of the rest in (u, v]."""
    u, v = cut_to_support(columns, leaves, l, s, u, v)
    if not u < v:
        return -math.inf
    first, stop = piece_numbers(leaves, l, s)
    if first < 0:
        return log_mass(density_of(leaves, l, s), u, v)
    if u > leaves.lo[l, s]:
        total, k = 0.0, piece_at(leaves, l, s, u)
    elif v >= leaves.hi[l, s]:
        return 0.0
    else:
        k = piece_at(leaves, l, s, v)
        total = leaves.pieces.below[k]
    for at in range(k, stop):
        d, log_share = piece(leaves, l, s, at)
        if d.lo >= v:
            break
        if min(v, d.hi) - max(u, d.lo) > 0.5 * columns.step[s]:
            total += math.exp(log_share + log_mass(d, u, v))
    return min(safe_log(total), 0.0)


@kernel
def has_atom(evidence, region, k):
    """Whether atom k of its slot is in the region; no region (-1) has them all."""
    return region < 0 or (evidence.atoms[region] >> np.uint64(k)) & _ONE != 0


@kernel
def weighed_atom(evidence, region, k, mass):
    """The mass of atom k, which is in the region, times its likelihood there."""
    if region < 0 or evidence.atom_log_weight.shape[0] == 0:
        return mass
    return mass * math.exp(evidence.atom_log_weight[region, k])


@kernel
def log_add(x, y):
    """Log of exp(x) + exp(y)."""
    if x < y:
        x, y = y, x
    if y == -math.inf:
        return x
    return x + math.log1p(math.exp(y - x))


@kernel
def _log_mass_up_to(columns, leaves, evidence, l, s, region, x):  # noqa: E741
    """Log of the mass of the region up to x."""
    first = columns.atom_start[s]
    atoms = 0.0
    for k in range(columns.atom_start[s + 1] - first):
        if columns.atom_value[first + k] <= x and has_atom(evidence, region, k):
            atoms += weighed_atom(evidence, region, k, leaves.atom_mass[l, first + k])
    total = safe_log(atoms)
    log_rest = leaves.log_rest[l, s]
    if log_rest == -math.inf:
        return total
    if region < 0:
        return log_add(total, log_rest + log_run_mass(columns, leaves, l, s, -math.inf, x))
    for run in range(evidence.run_start[region], evidence.run_start[region + 1]):
        mass = log_run_mass(columns, leaves, l, s, evidence.run_lo[run], min(evidence.run_hi[run], x))
        total = log_add(total, log_rest + mass + evidence.run_log_weight[run])
    return total


@kernel
def region_log_mass(columns, leaves, evidence, l, s, region):  # noqa: E741
    """Log of the mass of the region of numeric slot s."""
    if region < 0:
        return 0.0
    return min(_log_mass_up_to(columns, leaves, evidence, l, s, region, math.inf), 0.0)


@kernel
def cell_end(columns, s, x):
    """x, on a grid the upper edge of the last cell with a centre <= x."""
    step, origin = columns.step[s], columns.origin[s]
    if step > 0.0 and abs(x) < math.inf:
        return origin + (np.floor((x - origin) / step + _NEAR) + 0.5) * step
    return x


@kernel
def is_line(columns, leaves, l, s, region):  # noqa: E741
    """Whether the leaf's CDF is one line: uniform, without atoms or region."""
    return region < 0 and leaves.family[l, s] == UNIFORM and columns.atom_start[s] == columns.atom_start[s + 1]


@kernel
def line_cdf(lo, hi, x):
    """CDF of a uniform distribution."""
    return min(max((x - lo) / (hi - lo), 0.0), 1.0)


@kernel
def slot_cdf(columns, leaves, evidence, l, s, region, x):  # noqa: E741
    """P(X <= x | region) in the leaf, on grids of the cells with a centre <= x; NaN without mass."""
    total = region_log_mass(columns, leaves, evidence, l, s, region)
    if total == -math.inf or math.isnan(x):
        return math.nan
    x = cell_end(columns, s, x)
    if is_line(columns, leaves, l, s, region):
        return line_cdf(leaves.lo[l, s], leaves.hi[l, s], x)
    return min(math.exp(_log_mass_up_to(columns, leaves, evidence, l, s, region, x) - total), 1.0)


@kernel
def _run_moments(columns, leaves, l, s, u, v):  # noqa: E741
    """Mean and variance of the rest in a run that has mass."""
    u, v = cut_to_support(columns, leaves, l, s, u, v)
    step, origin = columns.step[s], columns.origin[s]
    first, stop = piece_numbers(leaves, l, s)
    log_w, mean, var = -math.inf, math.nan, math.nan
    for k in range(first, stop):
        d, log_share = piece(leaves, l, s, k)
        if min(v, d.hi) - max(u, d.lo) > 0.5 * step:
            m, w = grid_mean_variance(d, u, v, step, origin) if step > 0.0 else mean_variance(d, u, v)
            if first < 0:
                return m, w
            log_w, mean, var = pool_moments(log_w, mean, var, log_share + log_mass(d, u, v), m, w)
    return mean, var


@kernel
def slot_mean_variance(columns, leaves, evidence, l, s, region):  # noqa: E741
    """Mean and variance of numeric slot s in the leaf given the region, on grids of cell centres; NaN without mass."""
    log_w, mean, var = -math.inf, math.nan, math.nan
    log_rest = leaves.log_rest[l, s]
    if log_rest > -math.inf:
        if region < 0:
            log_w = log_rest
            mean, var = _run_moments(columns, leaves, l, s, -math.inf, math.inf)
        else:
            for run in range(evidence.run_start[region], evidence.run_start[region + 1]):
                u, v = evidence.run_lo[run], evidence.run_hi[run]
                mass = log_run_mass(columns, leaves, l, s, u, v)
                if mass > -math.inf:
                    m, w = _run_moments(columns, leaves, l, s, u, v)
                    mass += log_rest + evidence.run_log_weight[run]
                    log_w, mean, var = pool_moments(log_w, mean, var, mass, m, w)
    first = columns.atom_start[s]
    for k in range(columns.atom_start[s + 1] - first):
        if has_atom(evidence, region, k):
            log_atom = safe_log(weighed_atom(evidence, region, k, leaves.atom_mass[l, first + k]))
            log_w, mean, var = pool_moments(log_w, mean, var, log_atom, columns.atom_value[first + k], 0.0)
    return mean, var


@kernel
def _draw_piece(columns, leaves, l, s, u, v, state):  # noqa: E741
    """Draw the piece that a draw from (u, v] is in, by the masses of the pieces there."""
    first, stop = piece_numbers(leaves, l, s)
    if first < 0:
        return first
    target = uniform(state) * math.exp(log_run_mass(columns, leaves, l, s, u, v))
    chosen = piece_at(leaves, l, s, u)
    for k in range(chosen, stop):
        d, log_share = piece(leaves, l, s, k)
        if d.lo >= v:
            break
        if min(v, d.hi) - max(u, d.lo) > 0.5 * columns.step[s]:
            chosen = k
            target -= math.exp(log_share + log_mass(d, u, v))
            if target < 0.0:
                break
    return chosen


@kernel
def _draw_run(columns, leaves, l, s, u, v, state):  # noqa: E741
    """Draw from the rest in a run, on grids a cell's centre; NaN if the run has no mass."""
    u, v = cut_to_support(columns, leaves, l, s, u, v)
    if not u < v:
        return math.nan
    step = columns.step[s]
    if v - u < 1.5 * step:  # one cell
        return cell_centre(step, columns.origin[s], 0.5 * (u + v))
    d, _ = piece(leaves, l, s, _draw_piece(columns, leaves, l, s, u, v, state))
    u, v = max(u, d.lo), min(v, d.hi)
    x = draw(d, u, v, state)
    if step == 0.0:
        return x
    # a point within rounding of the run's end must not slip into the cell beyond it
    x = min(max(x, u + 0.25 * step), v - 0.25 * step)
    return cell_centre(step, columns.origin[s], x)


@kernel
def _draw_atom(columns, leaves, evidence, l, s, region, target):  # noqa: E741
    """The atom of the region at which the sum of the masses passes ``target``; NaN if none does."""
    first = columns.atom_start[s]
    total = 0.0
    for k in range(columns.atom_start[s + 1] - first):
        if has_atom(evidence, region, k):
            total += weighed_atom(evidence, region, k, leaves.atom_mass[l, first + k])
            if target < total:
                return columns.atom_value[first + k]
    return math.nan


@kernel
def _last_atom(columns, leaves, evidence, l, s, region):  # noqa: E741
    first = columns.atom_start[s]
    value = math.nan
    for k in range(columns.atom_start[s + 1] - first):
        if has_atom(evidence, region, k) and leaves.atom_mass[l, first + k] > 0.0:
            value = columns.atom_value[first + k]
    return value


@kernel
def _draw_in_runs(columns, leaves, evidence, l, s, region, state):  # noqa: E741
    """Draw from the rest in the runs of the region; NaN if they have no mass."""
    start, end = evidence.run_start[region], evidence.run_start[region + 1]
    if end - start == 1:
        return _draw_run(columns, leaves, l, s, evidence.run_lo[start], evidence.run_hi[start], state)
    total = -math.inf
    last = -1
    for run in range(start, end):
        mass = log_run_mass(columns, leaves, l, s, evidence.run_lo[run], evidence.run_hi[run])
        if mass > -math.inf:
            total = log_add(total, mass + evidence.run_log_weight[run])
            last = run
    if last < 0:
        return math.nan
    u = uniform(state)
    for run in range(start, last):
        mass = log_run_mass(columns, leaves, l, s, evidence.run_lo[run], evidence.run_hi[run])
        u -= math.exp(mass + evidence.run_log_weight[run] - total)
        if u < 0.0:
            return _draw_run(columns, leaves, l, s, evidence.run_lo[run], evidence.run_hi[run], state)
    return _draw_run(columns, leaves, l, s, evidence.run_lo[last], evidence.run_hi[last], state)


@kernel
def slot_draw(columns, leaves, evidence, l, s, region, state):  # noqa: E741
    """Draw from numeric slot s given the region; NaN if the region has no mass."""
    log_rest = leaves.log_rest[l, s]
    if columns.atom_start[s + 1] > columns.atom_start[s]:
        scale = 1.0
        if region >= 0:
            log_total = region_log_mass(columns, leaves, evidence, l, s, region)
            scale = math.exp(log_total)
        x = _draw_atom(columns, leaves, evidence, l, s, region, uniform(state) * scale)
        if x == x:
            return x
    if log_rest > -math.inf:
        if region < 0:
            return _draw_run(columns, leaves, l, s, -math.inf, math.inf, state)
        x = _draw_in_runs(columns, leaves, evidence, l, s, region, state)
        if x == x:
            return x
    return _last_atom(columns, leaves, evidence, l, s, region)


@kernel
def run_levels(evidence, run, n_levels):
    """Levels (first, end) of a run of a categorical column's region: those k with lo < k <= hi."""
    first = math.floor(min(max(evidence.run_lo[run], -0.5), n_levels)) + 1
    end = math.floor(max(min(evidence.run_hi[run], n_levels - 0.5), -1.0)) + 1
    return int(first), int(end)


@kernel
def run_weight(evidence, run):
    """Likelihood of a run: 1 in hard evidence."""
    log_weight = evidence.run_log_weight[run]
    return math.exp(log_weight) if log_weight < 0.0 else 1.0


@kernel
def _level_mass(columns, leaves, evidence, l, s, region):  # noqa: E741
    first = columns.level_start[s]
    total = 0.0
    for run in range(evidence.run_start[region], evidence.run_start[region + 1]):
        start, end = run_levels(evidence, run, columns.level_start[s + 1] - first)
        weight = run_weight(evidence, run)
        total += weight * levels_mass(leaves, l, s, start, end)
    return total


@kernel
def level_region_log_mass(columns, leaves, evidence, l, s, region):  # noqa: E741
    """Log of the mass of the region of categorical slot s."""
    if region < 0:
        return 0.0
    return safe_log(min(_level_mass(columns, leaves, evidence, l, s, region), 1.0))


@kernel
def _draw_few(masses, u):
    """Number of the one of some masses, which sum to 1, that holds the place u, from whichever end is nearer."""
    n = masses.shape[0]
    if u < 0.5:
        for k in range(n):
            u -= masses[k]
            if u < 0.0:
                return k
    else:
        u = 1.0 - u
        for k in range(n - 1, -1, -1):
            u -= masses[k]
            if u < 0.0:
                return k
    return -1  # by no rounding: the other half has mass enough


@kernel
def level_draw(columns, leaves, evidence, l, s, region, u):  # noqa: E741
    """Draw a level code of categorical slot s given the region, from a uniform; -1 if the region has no mass."""
    first = columns.level_start[s]
    level = -1
    if region < 0:
        place = leaves.wide.place[s]
        if place >= 0:
            return _draw_few(leaves.level_mass[l, place : place + columns.level_start[s + 1] - first], u)
        total = 0.0
        for k in range(columns.level_start[s + 1] - first):
            mass = level_mass(leaves, l, s, k)
            if mass > 0.0:
                total += mass
                level = k
                if u < total:
                    return level
        return level
    target = u * _level_mass(columns, leaves, evidence, l, s, region)
    total = 0.0
    for run in range(evidence.run_start[region], evidence.run_start[region + 1]):
        start, end = run_levels(evidence, run, columns.level_start[s + 1] - first)
        weight = run_weight(evidence, run)
        for k in range(start, end):
            mass = weight * level_mass(leaves, l, s, k)
            if mass > 0.0:
                total += mass
                level = k
                if target < total:
                    return level
    return level


# ---- Kernels of the derived fields of leaves.

_NOTHING_LEFT = 1e-13
"""What rounding leaves of 1 minus the atoms' masses."""


@entry
def derive(columns, leaves, start, stop):
    """Write the derived fields of the leaves ``start`` to ``stop``."""
    for row in range(start, stop):
        for s in range(leaves.a.shape[1]):
            d = density_of(leaves, row, s)
            leaves.log_norm[row, s] = log_norm(d) if d.family != PIECES else 0.0
            off_atoms = 1.0
            for k in range(columns.atom_start[s], columns.atom_start[s + 1]):
                off_atoms -= leaves.atom_mass[row, k]
            leaves.log_rest[row, s] = math.log(min(off_atoms, 1.0)) if off_atoms > _NOTHING_LEFT else -math.inf
        for k in range(leaves.level_mass.shape[1]):
            mass = leaves.level_mass[row, k]
            leaves.log_level[row, k] = math.log(mass) if mass > 0.0 else -math.inf


@entry
def derive_pieces(leaves):
    """Write the derived fields of the pieces of all leaves."""
    pieces = leaves.pieces
    for k in range(pieces.log_weight.shape[0]):
        pieces.log_norm[k, 0] = log_norm(density_of(pieces, k, 0))
        pieces.below[k] = 0.0
    for row in range(leaves.a.shape[0]):
        for s in range(leaves.a.shape[1]):
            first, stop = piece_numbers(leaves, row, s)
            for k in range(first + 1, stop):  # none where the density is whole
                pieces.below[k] = pieces.below[k - 1] + math.exp(pieces.log_weight[k - 1])
