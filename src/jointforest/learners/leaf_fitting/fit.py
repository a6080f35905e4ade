"""Leaf densities: Watson et al. 2023, Algorithm 2 (FORDE), with atoms, grids and shrinkage."""

# Every leaf is a product of one distribution per column, estimated on the rows that reach the leaf, and smoothed.

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...data.schema import Columns
from ...models.box_forest.leaves.family_kernels import FAMILIES, NO_SCALE
from ...models.box_forest.leaves.levels import Layout, WideLevels, layout, one_column, side_by_side
from ...models.box_forest.leaves.table import NORMAL, STUDENT, Pieces
from . import statistics_kernels
from .constants import FIXED

# ---- What the rows of each leaf of a tree add up to: all that leaf densities of independent columns are made from.


class ListedLevels(NamedTuple):
    """Levels of one column that occur in leaves, by leaf, then by level, and the weight of their rows; arrays (k,)."""

    leaf: np.ndarray
    level: np.ndarray
    weight: np.ndarray


class LeafSums(NamedTuple):
    """Sums over the rows in each of the l leaves of a tree, each row by its weight.

    size : float64 array (l,). Weight of the rows.
    missing : float64 array (l, d). Of those whose cell is missing.
    atoms : float64 array (l, A). Of those on each atom.
    off_atoms : float64 array (p, l, 5). Of the other numbers of each numeric slot: weight, mean, sum of squared
        deviations over the slot's ``unit`` squared, smallest, largest.
    unit : float64 array (p,)
    levels : float64 array (l, S'). Weight of the rows with each level, as in ``Leaves.level_mass``.
    wide : tuple of Listed. Levels of the wide columns.
    """

    size: np.ndarray
    missing: np.ndarray
    atoms: np.ndarray
    off_atoms: np.ndarray
    unit: np.ndarray
    levels: np.ndarray
    wide: tuple[ListedLevels, ...]


NONE = ListedLevels(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def leaf_sums(
    columns: Columns,
    cells: tuple[np.ndarray, np.ndarray],
    unit: np.ndarray,
    rows: np.ndarray,
    start: np.ndarray,
    weight: np.ndarray,
    only: Sequence[int] | None = None,
    drawn: np.ndarray | None = None,
) -> LeafSums:
    """Sums of the rows of each leaf k, ``rows[start[k]:start[k + 1]]``, with weights (n,), in the columns ``only``."""
    values, codes = cells
    n_leaves, d, p = len(start) - 1, len(columns.slot), len(columns.step)
    where = layout(columns)
    weight = np.require(weight, requirements=["C", "W"])  # the kernels are compiled for one layout
    missing, atoms = np.zeros((n_leaves, d)), np.zeros((n_leaves, len(columns.atom_value)))
    off_atoms, levels = np.zeros((p, n_leaves, 5)), np.zeros((n_leaves, len(where.narrow)))
    wide = [NONE] * len(where.slots)
    leaf = np.repeat(np.arange(n_leaves), np.diff(start))
    for j in range(d) if only is None else only:
        slot, absent = columns.slot[j], np.zeros(n_leaves)
        if not columns.is_categorical[j]:
            at = columns.atoms_of(slot)
            on = np.zeros((n_leaves, at.stop - at.start))
            statistics_kernels.numeric_statistics(
                values[j], codes[j], rows, start, weight, unit[slot], on, off_atoms[slot], absent
            )
            atoms[:, at] = on
        elif where.place[slot] < 0:
            wide[-1 - where.place[slot]] = _list_levels(codes[j], rows, start, weight, columns.n_levels(slot), absent)
        else:
            counts = np.zeros((n_leaves, columns.n_levels(slot)))
            statistics_kernels.level_counts(codes[j], rows, start, weight, counts, absent)
            levels[:, narrow_at(columns, where, slot)] = counts
        missing[:, j] = absent
        if drawn is not None:
            missing[:, j] += np.bincount(leaf, weight[rows] * drawn[j, rows], n_leaves)
    size = np.bincount(leaf, weight[rows], minlength=n_leaves)
    return LeafSums(size, missing, atoms, off_atoms, unit, levels, tuple(wide))


def narrow_at(columns: Columns, where: Layout, slot: int) -> slice:
    """Place of a column's levels among those of the columns that are not wide."""
    return slice(int(where.place[slot]), int(where.place[slot]) + columns.n_levels(slot))


def _list_levels(
    codes: np.ndarray, rows: np.ndarray, start: np.ndarray, weight: np.ndarray, n_levels: int, missing: np.ndarray
) -> ListedLevels:
    """Levels of one column of many levels; weights of missing cells (l,) are written."""
    listed = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), np.empty(len(rows))
    n = statistics_kernels.wide_level_counts(codes, rows, start, weight, np.zeros(n_levels), listed, missing)
    return ListedLevels(*(x[:n].copy() for x in listed))


# ---- A table prepared for learning leaf densities, and what is known of each of its columns as a whole.

NARROWEST = 1e-140
"""Smallest standard deviation of a column, so that the variance of its leaves is a float64 number."""


class Table(NamedTuple):
    """The rows to learn from, prepared once for all trees.

    values : float64 array (d, n). Cells, grid columns snapped to cell centres; NaN where missing.
    codes : int32 array (d, n). Codes of levels, or numbers of atoms; -1 where missing or on no atom.
    centre, spread, low, high : float64 arrays (p,). Mean, standard deviation (never 0), smallest and largest of each
        numeric slot's values that are on no atom.
    atom_share : float64 array (A,). Share of the column's rows on each atom.
    level_share : float64 array (S,). Smoothed marginal of each level, positive.
    missing : float64 array (d,). Share of missing cells, those that were filled among them.
    edges : float64 array (2, p). `schema.edges` of the numeric slots: no leaf has anything beyond.
    drawn : bool array (d, n), optional. Cells that were missing and are filled; None: none.
    """

    values: np.ndarray
    codes: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray
    atom_share: np.ndarray
    level_share: np.ndarray
    missing: np.ndarray
    edges: np.ndarray
    drawn: np.ndarray | None = None


def prepare_table(
    columns: Columns, X: np.ndarray, drawn: np.ndarray | None = None, edges: np.ndarray | None = None
) -> Table:
    """`Table` of X (n, d) with snapped grid columns; cells ``drawn`` (n, d) were missing; ``edges`` None: open."""
    edges = _open(columns) if edges is None else edges
    values = np.ascontiguousarray(X.T)
    drawn = None if drawn is None or not drawn.any() else np.ascontiguousarray(drawn.T)
    codes = kernel_codes(columns, values)
    scale, atom_share = _no_scale(columns), np.zeros(int(columns.atom_start[-1]))
    level_share = np.zeros(int(columns.level_start[-1]))
    for j in range(len(values)):
        known = ~np.isnan(values[j])
        slot = columns.slot[j]
        if columns.is_categorical[j]:
            at = columns.levels_of(slot)
            level_share[at] = _level_share(np.bincount(codes[j, known], minlength=at.stop - at.start))
            continue
        at = columns.atoms_of(slot)
        on = codes[j, codes[j] >= 0]
        atom_share[at] = np.bincount(on, minlength=at.stop - at.start) / max(known.sum(), 1)
        off_atoms = values[j, known & (codes[j] < 0)]
        if len(off_atoms) == 0:  # a column of atoms only: as if they were no atoms
            off_atoms = values[j, known]
        if len(off_atoms) == 0:
            continue
        low, high = off_atoms.min(), off_atoms.max()
        unit = max(high - low, np.finfo(float).tiny)
        centre = low + unit * np.mean((off_atoms - low) / unit)
        scale.put(columns, slot, centre, unit * np.std((off_atoms - centre) / unit), low, high)
    missing = np.isnan(values) if drawn is None else np.isnan(values) | drawn
    return Table(values, codes, *scale, atom_share, level_share, missing.mean(axis=1), edges, drawn)


def marginals(columns: Columns, sums: LeafSums, edges: np.ndarray | None = None) -> Table:
    """`Table`, without its cells, of the rows that add up to the sums of a single leaf."""
    scale, share = _no_scale(columns), np.zeros(int(columns.atom_start[-1]))
    n, level_share, where = float(sums.size[0]), np.zeros(int(columns.level_start[-1])), layout(columns)
    for j, slot in enumerate(columns.slot.tolist()):
        if columns.is_categorical[j]:
            at = columns.levels_of(slot)
            if where.place[slot] >= 0:
                count = sums.levels[0, narrow_at(columns, where, slot)]
            else:
                listed = sums.wide[-1 - where.place[slot]]
                count = np.bincount(listed.level, listed.weight, at.stop - at.start)
            level_share[at] = _level_share(count)
            continue
        at = columns.atoms_of(slot)
        atoms, (weight, mean, deviations, low, high) = sums.atoms[0, at], sums.off_atoms[slot, 0]
        share[at] = atoms / max(n - sums.missing[0, j], 1.0)
        if weight > 0:
            scale.put(columns, slot, mean, sums.unit[slot] * np.sqrt(deviations / weight), low, high)
        elif atoms.sum() > 0:
            value = columns.atom_value[at]
            mean = np.average(value, weights=atoms)
            spread = np.sqrt(np.average((value - mean) ** 2, weights=atoms))
            scale.put(columns, slot, mean, spread, value[atoms > 0].min(), value[atoms > 0].max())
    no_cells = np.empty((len(columns.slot), 0)), np.empty((len(columns.slot), 0), np.int32)
    return Table(*no_cells, *scale, share, level_share, sums.missing[0] / n, _open(columns) if edges is None else edges)


def _open(columns: Columns) -> np.ndarray:
    """`Table`'s edges of columns without ends."""
    return np.repeat([[-np.inf], [np.inf]], len(columns.step), axis=1)


class _Scale(NamedTuple):
    """`Table`'s centre, spread, low and high."""

    centre: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def put(self, columns: Columns, slot: int, centre: float, spread: float, low: float, high: float) -> None:
        """Set those of one slot; a spread of 0 becomes a small one."""
        if not spread > 0:
            spread = columns.step[slot] if columns.step[slot] > 0 else max(abs(centre) * 1e-3, 1e-3)
        self.centre[slot], self.spread[slot] = centre, max(spread, NARROWEST)
        self.low[slot], self.high[slot] = low, high


def _no_scale(columns: Columns) -> _Scale:
    p = len(columns.step)
    return _Scale(np.zeros(p), np.ones(p), np.zeros(p), np.zeros(p))


def _level_share(count: np.ndarray) -> np.ndarray:
    """Smoothed marginal of a column's levels (K,), positive."""
    return np.asarray((count + 1 / len(count)) / (count.sum() + 1))


def kernel_codes(columns: Columns, values: np.ndarray) -> np.ndarray:
    """`Table`'s codes of cells (d, n)."""
    codes = np.full(values.shape, -1, dtype=np.int32)
    for j, slot in enumerate(columns.slot.tolist()):
        if columns.is_categorical[j]:
            known = ~np.isnan(values[j])
            codes[j, known] = values[j, known].astype(np.int32)
            continue
        atoms = columns.atom_value[columns.atoms_of(slot)]
        for k, atom in enumerate(atoms):
            codes[j, np.abs(values[j] - atom) <= columns.step[slot] / 4] = k  # equal, or in the same cell of a grid
    return codes


class Settings(NamedTuple):
    """How leaf densities are estimated; the fields are the parameters of `AdversarialForest`.

    leaf : one of `LEAF_DENSITIES`. Density of numbers that lie on no atom; "quantile" is fitted like "uniform" here.
    bounds : "auto", "no", "local" or "global". Support; uniform leaves read "no" and "auto" as "global".
    smoothing : float. Pseudo-rows of a leaf's levels.
    prior : "marginal" or "uniform". Distribution of the pseudo-rows.
    spread_rows : float. Pseudo-rows of the pooled variance within leaves.
    min_spread : float or float64 array (p,). Smallest standard deviation of a leaf, in units of the column's.
    quantile_epsilon : float. Largest distance of a piecewise-linear CDF from that of the leaf's rows.
    """

    leaf: str = "normal"
    bounds: str = "auto"
    smoothing: float = 0.2
    prior: str = "marginal"
    spread_rows: float = 2.0
    min_spread: float | np.ndarray = 0.01
    quantile_epsilon: float = 0.01


LEAF_DENSITIES = (*(name for name in FAMILIES if name != "student"), "normal_moments", "normal_mle", "quantile")
"""What `Settings.leaf` can be: a family, and how it is fitted. Student t is the background's."""


def family_of(leaf: str) -> np.uint8:
    """The code of the family that such leaves are first fitted as."""
    name = "uniform" if leaf == "quantile" else leaf.split("_")[0]
    return np.uint8([*FAMILIES].index(name))


def has_scale(leaf: str) -> bool:
    """Whether such leaves have a location and a scale."""
    return family_of(leaf) not in NO_SCALE


class TreeLeaves(NamedTuple):
    """Fitted leaves of one tree: the parameters of `Leaves`, and the weight of the rows of each leaf."""

    rows: np.ndarray
    family: np.ndarray
    a: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    atom_mass: np.ndarray
    level_mass: np.ndarray
    missing_rate: np.ndarray
    wide: WideLevels
    pieces: Pieces | None = None


def fit_tree(
    columns: Columns,
    table: Table,
    sums: LeafSums,
    box_lo: np.ndarray,
    box_hi: np.ndarray,
    allowed: np.ndarray,
    settings: Settings,
    only: Sequence[int] | None = None,
) -> TreeLeaves:
    """Leaf densities of one tree, from the sums of its leaves and their boxes; of the columns ``only``."""
    n_leaves, p = box_lo.shape
    d, family, is_scaled = len(columns.slot), family_of(settings.leaf), has_scale(settings.leaf)
    a, b = np.zeros((n_leaves, p)), np.ones((n_leaves, p))
    lo, hi = box_lo.copy(), box_hi.copy()
    atom_mass = np.zeros((n_leaves, len(columns.atom_value)))
    where = layout(columns)
    level_mass = np.zeros((n_leaves, len(where.narrow)))
    wide: dict[int, WideLevels] = {}
    for j in range(d) if only is None else only:
        slot = columns.slot[j]
        if columns.is_categorical[j]:
            at = columns.levels_of(slot)
            n_levels = at.stop - at.start
            is_uniform = settings.prior == "uniform"
            prior = np.full(n_levels, 1 / n_levels) if is_uniform else table.level_share[at]
            pseudo = float(settings.smoothing * (n_levels if is_uniform else 1))
            how = pseudo, prior, np.ascontiguousarray(allowed[:, at])
            place = int(where.place[slot])
            if place < 0:
                wide[-1 - place] = _wide_column(sums.wide[-1 - place], *how)
            else:
                mass, places = np.empty((n_leaves, n_levels)), narrow_at(columns, where, slot)
                statistics_kernels.level_masses(np.ascontiguousarray(sums.levels[:, places]), *how, mass)
                level_mass[:, places] = mass
            continue
        at = columns.atoms_of(slot)
        off_atoms = sums.off_atoms[slot]
        if sums.unit[slot] != table.spread[slot]:
            off_atoms = off_atoms * [1.0, 1.0, (sums.unit[slot] / table.spread[slot]) ** 2, 1.0, 1.0]
        if at.stop > at.start:
            value, share, atoms = columns.atom_value[at], table.atom_share[at], np.ascontiguousarray(sums.atoms[:, at])
            box, mass = (np.ascontiguousarray(lo[:, slot]), np.ascontiguousarray(hi[:, slot])), np.empty(atoms.shape)
            statistics_kernels.atom_masses(value, share, atoms, off_atoms, *box, float(settings.smoothing), mass)
            atom_mass[:, at] = mass
        step = float(columns.step[slot])
        lo[:, slot], hi[:, slot] = _support_in_box(off_atoms, lo[:, slot], hi[:, slot], step, table, slot, settings)
        if is_scaled:
            pooled = off_atoms[:, 2].sum() / max(np.maximum(off_atoms[:, 0] - 1, 0).sum(), 1.0)
            leaves = off_atoms, lo[:, slot], hi[:, slot]
            a[:, slot], b[:, slot] = _location_and_scale(*leaves, pooled, step, table, slot, settings)
        ends = [tuple(table.edges[:, slot].tolist())]
        if is_scaled and settings.bounds == "auto":
            ends += [
                _ends_of_span(family, off_atoms, a[:, slot], b[:, slot], lo[:, slot], hi[:, slot], step, table, slot)
            ]
        if np.isfinite(ends).any():
            was = lo[:, slot].copy(), hi[:, slot].copy()
            for below, above in ends:  # a leaf that lies beyond the span is still cut at the edge
                lo[:, slot] = np.where(hi[:, slot] > below, np.maximum(lo[:, slot], below), lo[:, slot])
                hi[:, slot] = np.where(lo[:, slot] < above, np.minimum(hi[:, slot], above), hi[:, slot])
            cut = (lo[:, slot] != was[0]) | (hi[:, slot] != was[1])
            if cut.any() and is_scaled:
                leaves = off_atoms[cut], lo[cut, slot], hi[cut, slot]
                a[cut, slot], b[cut, slot] = _location_and_scale(*leaves, pooled, step, table, slot, settings)
    if not is_scaled:
        a[:], b[:] = 0.0, 0.0
    missing_rate = sums.missing / np.where(sums.size > 0, sums.size, 1.0)[:, None]
    fitted = [wide.get(t) or _unfitted(columns, slot, n_leaves) for t, slot in enumerate(where.slots.tolist())]
    levels = side_by_side(where, fitted, n_leaves)
    return TreeLeaves(
        sums.size, np.full((n_leaves, p), family), a, b, lo, hi, atom_mass, level_mass, missing_rate, levels
    )


def _wide_column(listed: ListedLevels, pseudo: float, prior: np.ndarray, allowed: np.ndarray) -> WideLevels:
    """Level masses of one column of many levels."""
    scale, mass = np.empty(len(allowed)), np.empty(len(listed.weight))
    statistics_kernels.wide_level_masses(*listed, pseudo, prior, allowed, scale, mass)
    has_mass = mass > 0.0
    return one_column(scale, prior, allowed, listed.leaf[has_mass], listed.level[has_mass], mass[has_mass])


def _unfitted(columns: Columns, slot: int, n_leaves: int) -> WideLevels:
    """What stands for a column of many levels that is not fitted."""
    size = columns.n_levels(slot)
    none = np.empty(0, np.int64)
    return one_column(np.ones(n_leaves), np.full(size, 1 / size), np.ones((1, size), bool), none, none, none * 1.0)


def _support_in_box(
    off_atoms: np.ndarray, lo: np.ndarray, hi: np.ndarray, step: float, table: Table, slot: int, settings: Settings
) -> tuple[np.ndarray, np.ndarray]:
    """Support (lo, hi] of numbers off atoms inside the box, see `Settings.bounds`."""
    if settings.bounds in ("no", "auto") and has_scale(settings.leaf):
        return lo, hi
    pad = (
        step / 2
        if step > 0
        else _min_spread(settings, slot) * table.spread[slot] + 1e-9 * abs(table.high[slot] - table.low[slot])
    )
    low, high = _lower(table.low[slot], pad), _higher(table.high[slot], pad)
    if settings.bounds == "local":
        low = np.where(off_atoms[:, 0] > 0, _lower(off_atoms[:, 3], pad), low)
        high = np.where(off_atoms[:, 0] > 0, _higher(off_atoms[:, 4], pad), high)
        new_lo, new_hi = np.maximum(lo, low), np.minimum(hi, high)
    else:
        new_lo, new_hi = np.where(np.isinf(lo), low, lo), np.where(np.isinf(hi), high, hi)
    # A box beyond the column's span keeps its finite side and gets a width of one pad.
    empty = ~(new_lo < new_hi)
    new_lo = np.where(empty, np.where(np.isinf(lo), _lower(hi, 2 * pad), lo), new_lo)
    new_hi = np.where(empty, np.where(np.isinf(hi), _higher(lo, 2 * pad), hi), new_hi)
    return new_lo, new_hi


def _ends_of_span(
    family: np.uint8,
    off_atoms: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    step: float,
    table: Table,
    slot: int,
) -> tuple[float, float]:
    """Ends of the column's span at which the leaves are cut with bounds="auto"; infinite where they are not."""
    weight = off_atoms[:, 0] / max(off_atoms[:, 0].sum(), 1.0)
    pad = step / 2 if step > 0 else 1e-9 * abs(table.high[slot] - table.low[slot])
    low, high = float(_lower(table.low[slot], pad)), float(_higher(table.high[slot], pad))
    below, above = statistics_kernels.mass_beyond(
        family, weight, *(np.ascontiguousarray(x) for x in (a, b, lo, hi)), low, high
    )
    most = FIXED.edge_rows / max(off_atoms[:, 0].sum(), 1.0)
    return (low if below > most else -np.inf), (high if above > most else np.inf)


def _lower(x: np.ndarray, pad: float) -> np.ndarray:
    """x - pad, at least the next number below x."""
    return np.minimum(x - pad, np.nextafter(x, -np.inf))


def _higher(x: np.ndarray, pad: float) -> np.ndarray:
    """x + pad, at least the next number above x."""
    return np.maximum(x + pad, np.nextafter(x, np.inf))


def _location_and_scale(
    off_atoms: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    pooled: float,
    step: float,
    table: Table,
    slot: int,
    settings: Settings,
) -> tuple[np.ndarray, np.ndarray]:
    """Location and scale (l,) of the untruncated parent of each leaf's numbers off atoms."""
    unit, centre = table.spread[slot], table.centre[slot]
    floor = max(_min_spread(settings, slot) * unit, 0.3 * step)
    span = table.low[slot], table.high[slot]
    lo, hi = np.ascontiguousarray(lo), np.ascontiguousarray(hi)
    mean, spread = statistics_kernels.means_and_spreads(
        off_atoms, lo, hi, unit, centre, *span, floor, pooled, float(settings.spread_rows)
    )
    if settings.leaf not in ("normal", "normal_mle"):  # moments of the parent; a normal's scale is its spread
        family = family_of(settings.leaf)
        return mean, spread if family == NORMAL else spread / statistics_kernels.standard_spread(family)
    standard = (mean - centre) / unit, spread / unit, (lo - centre) / unit, (hi - centre) / unit  # no square overflows
    if settings.leaf == "normal":
        return centre + unit * statistics_kernels.truncated_location(*standard), spread
    mean, spread = statistics_kernels.truncated_mle(*standard, floor / unit, 4.0)
    return centre + unit * mean, unit * spread


def _min_spread(settings: Settings, slot: int) -> float:
    """Smallest standard deviation in a leaf of this slot, in units of the column's."""
    smallest = settings.min_spread
    return float(smallest[slot]) if isinstance(smallest, np.ndarray) else smallest


def background(columns: Columns, table: Table) -> TreeLeaves:
    """The single leaf of the background: Student t around each column's mean, smoothed marginals, no bounds."""
    p, where, none = len(columns.step), layout(columns), np.empty(0, np.int64)
    shares = [table.level_share[columns.levels_of(s)] for s in where.slots]
    wide = [one_column(np.ones(1), of, np.ones((1, len(of)), bool), none, none, none * 1.0) for of in shares]
    return TreeLeaves(
        rows=np.array([table.values.shape[1]]),
        family=np.full((1, p), STUDENT),
        a=table.centre[None].copy(),
        b=table.spread[None].copy(),
        lo=np.full((1, p), -np.inf),
        hi=np.full((1, p), np.inf),
        atom_mass=_background_atoms(columns, table)[None],
        level_mass=table.level_share[None, where.narrow],
        missing_rate=table.missing[None].copy(),
        wide=side_by_side(where, wide, 1),
    )


def _background_atoms(columns: Columns, table: Table) -> np.ndarray:
    """Atom shares (A,), with at least a thousandth of each column left to numbers off atoms."""
    mass = table.atom_share.copy()
    for slot in range(len(columns.step)):
        at = columns.atoms_of(slot)
        mass[at] *= min(1.0, 0.999 / max(mass[at].sum(), 1e-300))
    return mass
