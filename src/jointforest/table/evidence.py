"""Evidence from frames and conditions: per cell nothing, a value, or a region."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .compile import NOWHERE, Region, compiled, contains, intersected, region_contains
from .conditions import n_rows, of_row
from .regions import Evidence
from .schema import Column, Schema


def build(
    schema: Schema,
    X: np.ndarray | None = None,
    unseen: np.ndarray | None = None,
    conditions: Mapping[str, Any] | None = None,
    n: int | None = None,
) -> Evidence:
    """Evidence of n rows.

    Parameters
    ----------
    schema : Schema
    X : float64 array (n, d), optional
        Values and level codes, NaN where nothing is known, from `frames.encode`. Default: nothing is known.
    unseen : bool array (n, d), optional
        Cells that hold a level never seen at learning; they count as missing, with a penalty.
    conditions : dict of column name to condition, optional
        A scalar, a list (any of its entries), or what `conditions` offers; it holds for every row, unless its ends are
        arrays with one entry a row, or it is a `PerRow`. A cell that has a value too must meet both.
    n : int, optional
        Number of rows if there is no X; default: that of the conditions' arrays, else 1.

    Returns
    -------
    Evidence

    Raises
    ------
    ValueError
        Wrong shapes, unknown columns, and conditions that a column cannot have (see `compile.compiled`).

    Examples
    --------
    >>> age = Column("age", "integer", "int64", step=1.0)
    >>> evidence = build(Schema((age,), "pandas"), conditions={"age": [1, 2, 7]})
    >>> evidence.run_lo, evidence.run_hi
    (array([0.5, 6.5]), array([2.5, 7.5]))
    """
    conditions = dict(conditions or {})
    d = len(schema.columns)
    if X is None:
        lengths = {name: rows for name, condition in conditions.items() if (rows := n_rows(condition)) is not None}
        n = n if n is not None else next(iter(lengths.values()), 1)
        value = np.full((n, d), np.nan)
    else:
        value = np.array(X, dtype=np.float64, order="C", ndmin=2)
        if value.shape[1] != d or (n is not None and len(value) != n):
            raise ValueError(f"X: expected shape ({'n' if n is None else n}, {d}), got {value.shape}")
    penalty = np.zeros(len(value))
    if unseen is not None:
        if unseen.shape != value.shape:
            raise ValueError(f"unseen: expected shape {value.shape}, got {unseen.shape}")
        value[unseen] = np.nan
        penalty += unseen @ np.array([column.log_unseen for column in schema.columns])
    nothing = np.empty(0)
    start = np.zeros(1, dtype=np.int32)
    no_region = np.empty((0, 0), dtype=np.int32)
    evidence = Evidence(value, no_region, start, nothing, nothing, np.empty(0, dtype=np.uint64), penalty)
    return intersect(schema, evidence, conditions)


def intersect(schema: Schema, evidence: Evidence, conditions: Mapping[str, Any]) -> Evidence:
    """The evidence, and the conditions besides; the evidence given is left as it is.

    Where a column has both, the result is what meets both: a value if there was one and it meets the condition, the
    empty region if it does not, the common part of two regions. Evidence of one row is repeated for conditions of n.

    Raises
    ------
    ValueError
        As `build`.
    """
    conditions = {name: condition for name, condition in conditions.items() if _says_something(condition)}
    if not conditions:
        return evidence
    n = len(evidence.value)
    lengths = {name: rows for name, condition in conditions.items() if (rows := n_rows(condition)) is not None}
    if n == 1 and lengths:
        n = next(iter(lengths.values()))
    for name, rows in lengths.items():
        if rows != n:
            raise ValueError(f"column {name!r}: the condition speaks of {rows} rows, the evidence has {n}")
    d = len(schema.columns)
    value = np.array(np.broadcast_to(evidence.value, (n, d)), order="C")
    region = np.full((n, d), -1, dtype=np.int32)
    if evidence.region.size:
        region[:] = evidence.region
    known = _RegionTable(evidence)
    for name, condition in conditions.items():
        j = schema.index(name)
        column = schema.columns[j]
        if name in lengths:
            for i in range(n):
                _narrow(column, of_row(condition, i), value[i : i + 1, j], region[i : i + 1, j], known)
        else:
            _narrow(column, condition, value[:, j], region[:, j], known)
    penalty = np.array(np.broadcast_to(evidence.log_penalty, n))
    return known.evidence(value, region, penalty)


def drop(evidence: Evidence, j: int) -> Evidence:
    """The evidence with nothing known of column j; penalties of levels never seen stay."""
    value = evidence.value.copy()
    value[:, j] = np.nan
    region = evidence.region.copy()
    if region.size:
        region[:, j] = -1
    return evidence._replace(value=value, region=region)


def _says_something(condition: Any) -> bool:
    if n_rows(condition) is not None:
        return True
    return not (condition is None or (isinstance(condition, float) and math.isnan(condition)))


class _RegionTable:
    """Regions by number, each once."""

    def __init__(self, evidence: Evidence) -> None:
        bounds = list(zip(evidence.run_lo.tolist(), evidence.run_hi.tolist(), strict=True))
        start = evidence.run_start.tolist()
        self.regions = [
            Region(tuple(bounds[a:b]), int(atoms))
            for a, b, atoms in zip(start[:-1], start[1:], evidence.atoms.tolist(), strict=True)
        ]
        self._number = {region: number for number, region in enumerate(self.regions)}

    def number(self, region: Region) -> int:
        number = self._number.setdefault(region, len(self.regions))
        if number == len(self.regions):
            self.regions.append(region)
        return number

    def evidence(self, value: np.ndarray, region: np.ndarray, penalty: np.ndarray) -> Evidence:
        """Evidence with the regions that are in use."""
        used, numbers = np.unique(region, return_inverse=True)
        regions = [self.regions[number] for number in used.tolist() if number >= 0]
        if not regions:
            region = np.empty((0, 0), dtype=np.int32)
        else:
            region = np.ascontiguousarray((numbers.reshape(region.shape) - (used[0] < 0)).astype(np.int32))
        runs = [run for found in regions for run in found.runs]
        return Evidence(
            value=value,
            region=region,
            run_start=np.cumsum([0] + [len(found.runs) for found in regions]).astype(np.int32),
            run_lo=np.array([lo for lo, _ in runs], dtype=np.float64),
            run_hi=np.array([hi for _, hi in runs], dtype=np.float64),
            atoms=np.array([found.atoms for found in regions], dtype=np.uint64),
            log_penalty=penalty,
        )


def _narrow(column: Column, condition: Any, value: np.ndarray, region: np.ndarray, known: _RegionTable) -> None:
    """Add a condition to the cells of a column (some or all rows), in place."""
    meaning = compiled(column, condition)
    if meaning is None:
        return
    has_value = ~np.isnan(value)
    numbers = np.unique(value[has_value])
    outside = np.array([x for x in numbers.tolist() if not contains(column, condition, x)])
    conflict = np.isin(value, outside)
    before = region.copy()
    for number in np.unique(before[~has_value]).tolist():
        cells = ~has_value & (before == number)
        old = known.regions[number] if number >= 0 else None
        if isinstance(meaning, Region):
            region[cells] = known.number(meaning if old is None else intersected(old, meaning))
        elif old is not None and not region_contains(column, old, meaning):
            region[cells] = known.number(NOWHERE)
        else:
            value[cells], region[cells] = meaning, -1
    value[conflict], region[conflict] = np.nan, known.number(NOWHERE)
