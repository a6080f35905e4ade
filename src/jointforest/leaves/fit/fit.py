"""Leaf densities: Watson et al. 2023, Algorithm 2 (FORDE), with atoms, grids and shrinkage.

Every leaf is a product of one distribution per column, estimated on the rows that reach the leaf. The plain
estimates of the paper are too sharp in small leaves; `Settings` says how much they borrow from the column as a
whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...table.columns import Columns
from ..levels.wide import WideLevels, layout, one_column, side_by_side
from .prepare import Table
from .statistics_kernels import (
    atom_masses,
    level_masses,
    means_and_spreads,
    wide_level_masses,
)
from .sums import LeafSums, Listed, narrow_at
from .truncated_normal_kernels import mass_beyond, truncated_location, truncated_mle

EDGE_ROWS = 5.0  # bounds="auto" cuts where the leaves put more than so many rows' mass beyond all data


class Settings(NamedTuple):
    """How leaf densities are estimated.

    Attributes
    ----------
    leaf : "normal", "normal_moments", "normal_mle", "uniform" or "quantile"
        Density of numbers that lie on no atom. "normal": a truncated normal with the leaf's mean, whose parent has the
        leaf's standard deviation. "normal_moments": the parent has the leaf's mean too (the paper), so that truncation
        moves the mean. "normal_mle": maximum likelihood. "quantile": a piecewise-linear CDF, see `quantile`; here it
        is fitted like "uniform".
    bounds : "auto", "no", "local" or "global"
        Support of it: the leaf's box ("no"); the box with its open sides cut at the span of the whole column
        ("global"); the span of the leaf's own values ("local"); the box, cut like "global" on a side where the leaves
        would put more than a few rows' mass beyond all data ("auto"). Uniform leaves need finite bounds and read "no"
        and "auto" as "global".
    smoothing : float
        Pseudo-rows added to a leaf's levels: in all with the prior "marginal", for each level with "uniform".
    prior : "marginal" or "uniform"
        How pseudo-rows are shared out: by the column's frequencies, or evenly (the paper's alpha).
    spread_rows : float
        Pseudo-rows with which a leaf's variance is shrunk to the pooled within-leaf variance of its column; 0 for none.
    min_spread : float or float64 array (p,)
        Smallest standard deviation of a leaf, in units of the column's; one for each numeric slot if an array.
    quantile_epsilon : float
        Largest distance of a piecewise-linear CDF from that of the leaf's rows.
    """

    leaf: str = "normal"
    bounds: str = "auto"
    smoothing: float = 0.2
    prior: str = "marginal"
    spread_rows: float = 2.0
    min_spread: float | np.ndarray = 0.01
    quantile_epsilon: float = 0.01


LIKE_UNIFORM = ("uniform", "quantile")
"""Leaves without a scale."""


class TreeLeaves(NamedTuple):
    """Fitted leaves of one tree: the parameters of `leaves.table.Leaves`, and the weight of the rows of each."""

    rows: np.ndarray
    a: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    atom_mass: np.ndarray
    level_mass: np.ndarray
    missing_rate: np.ndarray
    wide: WideLevels


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
    """Leaf densities of one tree.

    Parameters
    ----------
    table : Table
        Of which the cells are not looked at.
    sums : LeafSums
        What the rows in each leaf add up to.
    box_lo, box_hi : float64 arrays (l, p), allowed : bool array (l, S)
        The boxes of the tree's leaves, from `trees.boxes.leaf_boxes`.
    only : sequence of int, optional
        Columns to fit; what is returned of the others has no meaning.
    """
    n_leaves, p = box_lo.shape
    d = len(columns.slot)
    a, b = np.zeros((n_leaves, p)), np.ones((n_leaves, p))
    lo, hi = box_lo.copy(), box_hi.copy()
    atom_mass = np.zeros((n_leaves, len(columns.atom_value)))
    where = layout(columns)
    level_mass = np.zeros((n_leaves, len(where.narrow)))
    wide: dict[int, WideLevels] = {}
    for j in range(d) if only is None else only:
        slot = columns.slot[j]
        if columns.is_categorical[j]:
            at = slice(columns.level_start[slot], columns.level_start[slot + 1])
            n_levels = at.stop - at.start
            is_uniform = settings.prior == "uniform"
            prior = np.full(n_levels, 1 / n_levels) if is_uniform else table.level_share[at]
            pseudo = float(settings.smoothing * (n_levels if is_uniform else 1))
            how = pseudo, prior, np.ascontiguousarray(allowed[:, at])
            place = int(where.place[slot])
            if place < 0:
                wide[-1 - place] = _wide_column(sums.wide[-1 - place], *how)
            else:
                mass, own = np.empty((n_leaves, n_levels)), narrow_at(columns, where, slot)
                level_masses(np.ascontiguousarray(sums.levels[:, own]), *how, mass)
                level_mass[:, own] = mass
            continue
        at = slice(columns.atom_start[slot], columns.atom_start[slot + 1])
        rest = sums.rest[slot]
        if sums.unit[slot] != table.spread[slot]:
            rest = rest * [1.0, 1.0, (sums.unit[slot] / table.spread[slot]) ** 2, 1.0, 1.0]
        if at.stop > at.start:
            value, share, atoms = columns.atom_value[at], table.atom_share[at], np.ascontiguousarray(sums.atoms[:, at])
            box, mass = (np.ascontiguousarray(lo[:, slot]), np.ascontiguousarray(hi[:, slot])), np.empty(atoms.shape)
            atom_masses(value, share, atoms, rest, *box, float(settings.smoothing), mass)
            atom_mass[:, at] = mass
        step = float(columns.step[slot])
        lo[:, slot], hi[:, slot] = _support(rest, lo[:, slot], hi[:, slot], step, table, slot, settings)
        if settings.leaf not in LIKE_UNIFORM:
            a[:, slot], b[:, slot] = _normal(rest, lo[:, slot], hi[:, slot], step, table, slot, settings)
        if settings.leaf not in LIKE_UNIFORM and settings.bounds == "auto":
            below, above = _edges(rest, a[:, slot], b[:, slot], lo[:, slot], hi[:, slot], step, table, slot)
            if below > -np.inf or above < np.inf:
                lo[:, slot] = np.where(hi[:, slot] > below, np.maximum(lo[:, slot], below), lo[:, slot])
                hi[:, slot] = np.where(lo[:, slot] < above, np.minimum(hi[:, slot], above), hi[:, slot])
                a[:, slot], b[:, slot] = _normal(rest, lo[:, slot], hi[:, slot], step, table, slot, settings)
    if settings.leaf in LIKE_UNIFORM:
        a[:], b[:] = 0.0, 0.0
    missing_rate = sums.missing / np.where(sums.size > 0, sums.size, 1.0)[:, None]
    fitted = [wide.get(t) or _unfitted(columns, slot, n_leaves) for t, slot in enumerate(where.slots.tolist())]
    levels = side_by_side(where, fitted, n_leaves)
    return TreeLeaves(sums.size, a, b, lo, hi, atom_mass, level_mass, missing_rate, levels)


def _wide_column(listed: Listed, pseudo: float, prior: np.ndarray, allowed: np.ndarray) -> WideLevels:
    """Level masses of one column of many levels."""
    scale, mass = np.empty(len(allowed)), np.empty(len(listed.weight))
    wide_level_masses(*listed, pseudo, prior, allowed, scale, mass)
    own = mass > 0.0
    return one_column(scale, prior, allowed, listed.leaf[own], listed.level[own], mass[own])


def _unfitted(columns: Columns, slot: int, n_leaves: int) -> WideLevels:
    """What stands for a column of many levels that is not fitted."""
    size = int(columns.level_start[slot + 1] - columns.level_start[slot])
    none = np.empty(0, np.int64)
    return one_column(np.ones(n_leaves), np.full(size, 1 / size), np.ones((1, size), bool), none, none, none * 1.0)


def _support(
    rest: np.ndarray, lo: np.ndarray, hi: np.ndarray, step: float, table: Table, slot: int, settings: Settings
) -> tuple[np.ndarray, np.ndarray]:
    """Support (lo, hi] of the rest inside the box, see `Settings.bounds`."""
    if settings.bounds in ("no", "auto") and settings.leaf not in LIKE_UNIFORM:
        return lo, hi
    pad = (
        step / 2
        if step > 0
        else _min_spread(settings, slot) * table.spread[slot] + 1e-9 * abs(table.high[slot] - table.low[slot])
    )
    low, high = _lower(table.low[slot], pad), _higher(table.high[slot], pad)
    if settings.bounds == "local":
        low = np.where(rest[:, 0] > 0, _lower(rest[:, 3], pad), low)
        high = np.where(rest[:, 0] > 0, _higher(rest[:, 4], pad), high)
        new_lo, new_hi = np.maximum(lo, low), np.minimum(hi, high)
    else:
        new_lo, new_hi = np.where(np.isinf(lo), low, lo), np.where(np.isinf(hi), high, hi)
    # A box beyond the column's span keeps its finite side and gets a width of one pad.
    empty = ~(new_lo < new_hi)
    new_lo = np.where(empty, np.where(np.isinf(lo), _lower(hi, 2 * pad), lo), new_lo)
    new_hi = np.where(empty, np.where(np.isinf(hi), _higher(lo, 2 * pad), hi), new_hi)
    return new_lo, new_hi


def _edges(
    rest: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    step: float,
    table: Table,
    slot: int,
) -> tuple[float, float]:
    """Ends of the column's span at which the leaves are cut with bounds="auto"; infinite where they are not."""
    weight = rest[:, 0] / max(rest[:, 0].sum(), 1.0)
    pad = step / 2 if step > 0 else 1e-9 * abs(table.high[slot] - table.low[slot])
    low, high = float(_lower(table.low[slot], pad)), float(_higher(table.high[slot], pad))
    below, above = mass_beyond(weight, *(np.ascontiguousarray(x) for x in (a, b, lo, hi)), low, high)
    most = EDGE_ROWS / max(rest[:, 0].sum(), 1.0)
    return (low if below > most else -np.inf), (high if above > most else np.inf)


def _lower(x: np.ndarray, pad: float) -> np.ndarray:
    """x - pad, at least the next number below x."""
    return np.minimum(x - pad, np.nextafter(x, -np.inf))


def _higher(x: np.ndarray, pad: float) -> np.ndarray:
    """x + pad, at least the next number above x."""
    return np.maximum(x + pad, np.nextafter(x, np.inf))


def _normal(
    rest: np.ndarray, lo: np.ndarray, hi: np.ndarray, step: float, table: Table, slot: int, settings: Settings
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (l,) of the untruncated parent of each leaf's rest."""
    unit, centre = table.spread[slot], table.centre[slot]
    floor = max(_min_spread(settings, slot) * unit, 0.3 * step)
    pooled = rest[:, 2].sum() / max(np.maximum(rest[:, 0] - 1, 0).sum(), 1.0)
    span = table.low[slot], table.high[slot]
    lo, hi = np.ascontiguousarray(lo), np.ascontiguousarray(hi)
    mean, spread = means_and_spreads(rest, lo, hi, unit, centre, *span, floor, pooled, float(settings.spread_rows))
    if settings.leaf == "normal_moments":
        return mean, spread
    standard = (mean - centre) / unit, spread / unit, (lo - centre) / unit, (hi - centre) / unit  # no square overflows
    if settings.leaf == "normal":
        return centre + unit * truncated_location(*standard), spread
    mean, spread = truncated_mle(*standard, floor / unit, 4.0)
    return centre + unit * mean, unit * spread


def _min_spread(settings: Settings, slot: int) -> float:
    """Smallest standard deviation in a leaf of this slot, in units of the column's."""
    smallest = settings.min_spread
    return float(smallest[slot]) if isinstance(smallest, np.ndarray) else smallest


def background(columns: Columns, table: Table) -> TreeLeaves:
    """The single leaf of the background: Student t around each column's mean, smoothed marginals, no bounds."""
    p, where, none = len(columns.step), layout(columns), np.empty(0, np.int64)
    shares = [table.level_share[columns.level_start[s] : columns.level_start[s + 1]] for s in where.slots]
    wide = [one_column(np.ones(1), of, np.ones((1, len(of)), bool), none, none, none * 1.0) for of in shares]
    return TreeLeaves(
        rows=np.array([table.values.shape[1]]),
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
    """Atom shares (A,), with at least a thousandth of each column left to the rest."""
    mass = table.atom_share.copy()
    for slot in range(len(columns.step)):
        at = slice(columns.atom_start[slot], columns.atom_start[slot + 1])
        mass[at] *= min(1.0, 0.999 / max(mass[at].sum(), 1e-300))
    return mass
