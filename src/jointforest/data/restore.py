"""Numbers and codes back to values as a frame stores them: steps shared by all kinds of frames."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np

from . import times
from .schema import Column, snapped
from .times import PER_SECOND, unit_of


def codes(x: np.ndarray) -> np.ndarray:
    """Level codes as int32, -1 where missing."""
    out: np.ndarray = np.where(np.isnan(x), -1.0, x).astype(np.int32)
    return out


def values(column: Column, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (of levels: their values as float) and the mask of missing cells."""
    missing = np.isnan(x)
    if not column.is_categorical:
        return snapped(column, x), missing
    try:
        table = np.array([float(level) for level in column.levels] + [np.nan])
    except ValueError:
        raise ValueError(f"column {column.name!r}: text levels cannot be stored as {column.dtype}") from None
    return np.asarray(table[codes(x)]), missing


def cast(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers as a numpy type: rounded if it holds integers, clipped to its range rather than wrapped around."""
    if dtype.kind == "f" and dtype.itemsize < 8:
        limit = float(np.finfo(dtype).max)
        numbers = np.clip(numbers, -limit, limit)
    if dtype.kind not in "iu":
        return np.asarray(numbers, dtype=dtype)
    limits = np.iinfo(dtype)
    rounded = np.rint(numbers)
    out: np.ndarray = np.clip(rounded, float(limits.min), np.nextafter(float(limits.max), 0.0)).astype(dtype)
    if dtype.itemsize < 8:
        out[rounded >= limits.max] = limits.max
    return out


def stamps(column: Column, x: np.ndarray) -> np.ndarray:
    """Moments as datetime64 in the unit of the column's dtype (UTC if there is a time zone), NaT where missing."""
    if column.only:
        x = snapped(column, x)
    unit = unit_of(column.dtype)
    per_second = PER_SECOND[unit]
    low, high = times.RANGE_NS if unit == "ns" else times.RANGE
    steps = np.rint(np.clip(x, low - column.origin, high - column.origin) / column.step)
    missing = np.isnan(x)
    steps[missing] = 0.0
    # whole grid steps first, so that the arithmetic on ticks stays in integers
    micro = round(column.step * 1e6)
    total = steps.astype(np.int64) * micro
    low = total // 10**6
    ticks = (low + int(column.origin)) * per_second + (total - low * 10**6) * per_second // 10**6
    ticks[missing] = np.iinfo(np.int64).min
    out: np.ndarray = ticks.view(f"datetime64[{unit}]")
    return out


def spans(column: Column, x: np.ndarray, per_second: float) -> np.ndarray:
    """Durations, or times of day, as whole ticks, int64; those of NaT where missing."""
    seconds, missing = values(column, x)
    if times.is_clock(column.dtype):
        seconds = np.clip(seconds, 0.0, 86400.0 - 1.0 / per_second)
    out = np.maximum(cast(np.where(missing, 0.0, seconds * per_second), np.dtype(np.int64)), np.iinfo(np.int64).min + 1)
    out[missing] = np.iinfo(np.int64).min
    return out


def objects(column: Column, x: np.ndarray, absent: Any) -> np.ndarray:
    """Python objects (text, numbers, dates, decimals) with a given sign for missing cells."""
    if column.is_categorical:
        table = np.empty(len(column.levels) + 1, dtype=object)
        table[:-1] = _typed(column, list(column.levels))
        table[-1] = absent
        return np.asarray(table[codes(x)])
    missing = np.isnan(x)
    out = np.empty(len(x), dtype=object)
    if column.dtype.startswith("object[time"):
        micro = np.where(missing, 0, spans(column, x, 1e6))
        out[:] = [moment.time() for moment in micro.astype("datetime64[us]").tolist()]
    elif column.kind == "datetime":
        out[:] = stamps(column, x).astype("datetime64[D]").astype(object)
    else:
        centres = snapped(column, x)
        out[:] = _typed(column, np.where(missing, 0.0, centres).tolist())
    out[missing] = absent
    return out


def _typed(column: Column, items: list[Any]) -> list[Any]:
    if column.dtype.startswith("object[int"):
        return [round(item) for item in items]
    if column.dtype.startswith("object[decimal"):
        scale = re.search(r"\((\d+)\)", column.dtype)
        return [Decimal(f"{item:.{scale[1]}f}" if scale else str(item)) for item in items]
    return items
