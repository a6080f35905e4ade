"""Evidence that a row's numbers are near given ones: what they are exactly, heaps and units do not matter."""

from __future__ import annotations

import numpy as np

from .evidence import Evidence
from .schema import Column, Schema


def neighbourhood(schema: Schema, known: Evidence, reach: np.ndarray) -> Evidence:
    """The evidence, with every number x that is known replaced by the interval from x - reach to x + reach.

    Parameters
    ----------
    schema : Schema
    known : Evidence
        n rows of values.
    reach : float64 array (d,)
        How far from the value its neighbours are, in the column's numbers, at least 0. On a grid a cell is in the
        interval if its centre is. Of level codes it says nothing.

    Returns
    -------
    Evidence
        Regions in place of numbers; equal numbers of a column share one.

    Examples
    --------
    >>> age = Schema((Column("age", "integer", "int64", step=1.0),), "pandas")
    >>> near = neighbourhood(age, Evidence.of_values(np.array([[40.0], [np.nan]])), np.array([2.0]))
    >>> near.run_lo.tolist(), near.run_hi.tolist(), near.region.tolist()
    ([37.5], [42.5], [[0], [-1]])
    """
    value, region = known.value.copy(), np.full(known.value.shape, -1, dtype=np.int32)
    lo, hi, atoms = [], [], []
    n_regions = 0
    for j, column in enumerate(schema.columns):
        if column.is_categorical:
            continue
        rows = np.flatnonzero(~np.isnan(value[:, j]))
        numbers, place = np.unique(value[rows, j], return_inverse=True)
        region[rows, j] = n_regions + place
        value[rows, j] = np.nan
        n_regions += len(numbers)
        start, end, held = _intervals(column, numbers, float(reach[j]))
        lo.append(start)
        hi.append(end)
        atoms.append(held)
    if n_regions == 0:
        return known
    return known._replace(
        value=value,
        region=region,
        run_start=np.arange(n_regions + 1, dtype=np.int32),
        run_lo=np.concatenate(lo),
        run_hi=np.concatenate(hi),
        atoms=np.concatenate(atoms),
        run_log_weight=np.zeros(n_regions),
    )


def _intervals(column: Column, x: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends of the run around each number x (m,), on cell edges of a grid, and the atoms within as bits."""
    if column.step > 0.0:
        cell = np.round((x - column.center) / column.step)
        cells = np.floor(reach / column.step)
        lo, hi = (column.center + (cell + side * (cells + 0.5)) * column.step for side in (-1.0, 1.0))
    else:
        lo, hi = np.minimum(x - reach, np.nextafter(x, -np.inf)), np.maximum(x + reach, np.nextafter(x, np.inf))
    held = np.zeros(len(x), dtype=np.uint64)
    for k, atom in enumerate(column.atoms):
        is_near = (lo < atom) & (atom < hi) if column.step > 0.0 else (lo <= atom) & (atom <= hi)
        held |= is_near.astype(np.uint64) << np.uint64(k)
    return lo, hi, held
