"""A column's scale, learned from its values."""

from __future__ import annotations

import numpy as np

from ..schema import Column
from .bins import cut
from .pieces import segments_of
from .scale import Scale
from .tally import ABSENT, count_places

MAX_LEVEL_CODES = 1024
"""Levels of a categorical column beyond this number share codes."""


def learn_scale(
    column: Column, values: np.ndarray, weight: np.ndarray | None, n_codes: int, fine_ends: float = 0.0
) -> Scale:
    """The scale of a column.

    Numbers get at most ``n_codes`` ordered bins: a place (cell of a grid, or atom) that holds 1/K of the weight (and
    10 rows) is alone in its bin, the others are cut at equal weight. Inside a bin lie

    - points: atoms, and cells of a grid that several rows share, with some rows taken off each (`points.point_rows`);
    - pieces over runs of about 64 distinct values, with the rows taken off and those of all other values: uniform, or
      exponential with the mean of the rows where these are clearly nearer to one end, but falling by e^30 at most;
    - in the outermost bins, open exponential tails with about one row.

    Levels of categorical columns are codes, but of more than 1,024 the rarest share codes.

    Parameters
    ----------
    column : Column
    values : float64 array (n,)
        As `frames.encode` gives them: numbers or level codes, NaN where missing.
    weight : float64 array (n,) or None
        Weights of the rows, at least 0; None: all 1.
    n_codes : int
        Most bins of a numeric column.
    fine_ends : float
        0: bins are cut at equal weight; up to 1: the outermost ones are narrower, the others wider.

    Returns
    -------
    Scale
        No number, and no level of the column, has density 0.

    Examples
    --------
    >>> age = Column("age", "integer", "int64", step=1.0)
    >>> scale = learn_scale(age, np.repeat([30.0, 31.0, 40.0], [50, 49, 1]), None, 8)
    >>> scale.n_codes, scale.lo.tolist()
    (3, [-inf, 29.5, 30.5, 31.5, 40.5])
    """
    if column.is_categorical:
        return _of_levels(len(column.levels), values, weight)
    tally = count_places(column, values, weight)
    bins = cut(tally, n_codes, fine_ends)
    segments = segments_of(tally, bins)
    lo, hi, rate = segments.lo, segments.hi, segments.rate
    if column.step > 0:
        lo, hi = column.center + lo * column.step, column.center + hi * column.step
        rate = rate / column.step
    n = int(bins.of_place[-1]) + 1
    rows = np.bincount(segments.code, segments.rows, n)
    log_mass = np.log(segments.rows) - np.log(rows)[segments.code]
    return Scale(n, column.step, column.center, lo, hi, rate, segments.code.astype(np.int32), log_mass)


def _of_levels(n_levels: int, values: np.ndarray, weight: np.ndarray | None) -> Scale:
    """Levels as codes; of more than MAX_LEVEL_CODES the rarest share the upper half of the codes, dealt out in turn."""
    used = ~np.isnan(values)
    rows = np.bincount(values[used].astype(np.intp), None if weight is None else weight[used], n_levels) + ABSENT
    code = np.arange(n_levels)
    if n_levels > MAX_LEVEL_CODES:
        own = MAX_LEVEL_CODES // 2
        rank = np.empty(n_levels, dtype=np.intp)
        rank[np.argsort(-rows, kind="stable")] = np.arange(n_levels)
        code = np.where(rank < own, rank, own + (rank - own) % (MAX_LEVEL_CODES - own))
    n_codes = min(n_levels, MAX_LEVEL_CODES)
    log_mass = np.log(rows) - np.log(np.bincount(code, rows, n_codes))[code]
    place, flat = np.arange(float(n_levels)), np.zeros(n_levels)
    return Scale(n_codes, 0.0, 0.0, place, place.copy(), flat, code.astype(np.int32), log_mass)
