"""What must be true of a scale that comes from a file."""

from __future__ import annotations

import numpy as np

from ..schema import Column
from .discretizer import Scale
from .restrict import cell_edge

_SUM_ERROR = 1e-6


def check_scale(scale: Scale, column: Column) -> None:
    """Raise ValueError, which names column and field, unless a scale is valid and belongs to this column."""
    what = f"column {column.name!r}: its scale"
    _check_fields(scale, what)
    if scale.step != (0.0 if column.is_categorical else column.step):
        raise ValueError(f"{what}: step is {scale.step:g}, the column's is {column.step:g}")
    if scale.origin != (0.0 if column.is_categorical else column.center):
        raise ValueError(f"{what}: origin is {scale.origin:g}, the column's is {column.center:g}")
    _check_segments(scale, what)
    points = scale.lo[scale.is_point]
    if column.is_categorical:
        if not scale.is_point.all() or not np.isin(points, np.arange(len(column.levels))).all():
            raise ValueError(f"{what}: segments of a categorical column are points at its {len(column.levels)} levels")
    else:
        if np.any(np.diff(scale.code) < 0):
            raise ValueError(f"{what}: codes of a numeric column must ascend with its segments")
        if scale.step > 0:
            _check_grid(scale, what)
        elif not np.isin(points, column.atoms).all():
            raise ValueError(f"{what}: has a point that is not an atom of the column")


def _check_fields(scale: Scale, what: str) -> None:
    """Types, shapes, ranges of single numbers."""
    if not isinstance(scale.n_codes, int) or isinstance(scale.n_codes, bool) or scale.n_codes < 1:
        raise ValueError(f"{what}: n_codes must be a whole number, at least 1, got {scale.n_codes!r}")
    for name in ("lo", "hi", "rate", "log_mass", "code"):
        array = getattr(scale, name)
        dtype = np.dtype(np.int32 if name == "code" else np.float64)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != (len(scale.lo),):
            raise ValueError(f"{what}: {name} must be {dtype} of shape ({len(scale.lo)},)")
        if np.isnan(array).any():
            raise ValueError(f"{what}: {name} has NaN")
    if len(scale.lo) == 0:
        raise ValueError(f"{what}: has no segments")
    if scale.code.min() < 0 or scale.code.max() >= scale.n_codes:
        raise ValueError(f"{what}: codes must be from 0 to {scale.n_codes - 1}")
    if not np.isfinite(scale.rate).all() or not np.isfinite(scale.log_mass).all():
        raise ValueError(f"{what}: rate and log_mass must be finite")
    if np.any(np.abs(scale.log_code[np.unique(scale.code)]) > _SUM_ERROR):
        raise ValueError(f"{what}: the shares of a code must sum to 1")


def _check_segments(scale: Scale, what: str) -> None:
    """Order, disjointness and ends."""
    lo, hi, rate = scale.lo, scale.hi, scale.rate
    same = (np.diff(lo) == 0) & (np.diff(hi) == 0)
    if np.any(lo > hi) or np.any(hi[:-1] > lo[1:]) or np.any(same):
        raise ValueError(f"{what}: segments must ascend and be disjoint, lo <= hi")
    if np.any(np.isinf(lo) & np.isinf(hi)) or np.any(np.isposinf(lo)) or np.any(np.isneginf(hi)):
        raise ValueError(f"{what}: a segment has at most one open end, lo below or hi above")
    if np.any(np.isinf(lo) & (rate >= 0)) or np.any(np.isinf(hi) & (rate <= 0)):
        raise ValueError(f"{what}: an open lower tail needs rate < 0, an open upper one rate > 0")


def _check_grid(scale: Scale, what: str) -> None:
    """Segments of a grid lie on edges of cells."""
    ends = np.concatenate([scale.lo, scale.hi])
    ends = ends[np.isfinite(ends)]
    off = np.abs(ends - cell_edge(scale, ends)) > 1e-6 * scale.step + 4e-16 * np.abs(ends)
    if scale.is_point.any() or off.any():
        raise ValueError(f"{what}: segments of a grid column must lie between edges of cells of {scale.step:g}")
