"""One row of evidence as many, which differ in what they say of one column."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .build_evidence import RegionTable
from .evidence import Evidence
from .interval_unions import Runs
from .meaning import NOWHERE, Region, intersected, log_likelihood, region_contains
from .schema import Column, Schema

_NEAR = 1e-6  # of a cell


def with_values(schema: Schema, evidence: Evidence, j: int, x: np.ndarray) -> Evidence:
    """n rows of evidence, in which column j has the values x (n,) besides what one row says (no value) of it."""
    n, column = len(x), schema.columns[j]
    rows = evidence.repeat(n)
    penalty, region = rows.log_penalty.copy(), rows.cell_regions()
    if region[0, j] >= 0:
        said = RegionTable(evidence).regions[int(region[0, j])]
        penalty += [log_likelihood(column, said, value) for value in x.tolist()]
    region[:, j] = -1
    value = rows.value.copy()
    value[:, j] = x
    return rows._replace(value=value, log_penalty=penalty, region=region if rows.has_regions else rows.region)


def within(schema: Schema, evidence: Evidence, j: int, regions: Sequence[Region]) -> Evidence:
    """n rows of evidence, of which the i-th says, too, that column j lies in ``regions[i]``."""
    table, column = RegionTable(evidence), schema.columns[j]
    value, number = evidence.value.copy(), evidence.cell_regions()
    for i, region in enumerate(regions):
        x, old = float(value[i, j]), int(number[i, j])
        if math.isnan(x):
            number[i, j] = table.number(region if old < 0 else intersected(table.regions[old], region))
        elif not region_contains(column, region, x):
            value[i, j], number[i, j] = math.nan, table.number(NOWHERE)
    return table.evidence(value, number, evidence.log_penalty.copy())


def side_of(column: Column, op: str, x: float) -> Region:
    """The region of a numeric column that stands in a relation (``< <= > >= = !=``) to a number; atoms one by one."""
    if op in ("<", "<="):
        return _up_to(column, x, op == "<=")
    if op in (">", ">="):
        return _without(column, _up_to(column, x, op == ">"))
    at = _at(column, x)
    return at if op == "=" else _without(column, at)


def _up_to(column: Column, x: float, closed: bool) -> Region:
    if column.step > 0.0:
        place = (x - column.center) / column.step
        on_center = abs(place - round(place)) < _NEAR
        last = round(place) - (not closed) if on_center else math.floor(place)
        edge = column.center + (last + 0.5) * column.step
        return Region(((-math.inf, edge),), _atoms(column, [atom < edge for atom in column.atoms]))
    return Region(((-math.inf, x),), _atoms(column, [atom <= x if closed else atom < x for atom in column.atoms]))


def _at(column: Column, x: float) -> Region:
    if column.step > 0.0:
        place = round((x - column.center) / column.step)
        center = column.center + place * column.step
        if abs(center - x) > _NEAR * column.step:
            return NOWHERE
        lo, hi = center - 0.5 * column.step, center + 0.5 * column.step
        return Region(((lo, hi),), _atoms(column, [lo < atom <= hi for atom in column.atoms]))
    return Region((), _atoms(column, [atom == x for atom in column.atoms]))


def _without(column: Column, region: Region) -> Region:
    """What a region of at most one run leaves over."""
    runs: Runs = ((-math.inf, math.inf),)
    if region.runs:
        ((lo, hi),) = region.runs
        runs = tuple(run for run in ((-math.inf, lo), (hi, math.inf)) if run[0] < run[1])
    return Region(runs, ~region.atoms & ((1 << len(column.atoms)) - 1))


def _atoms(column: Column, held: list[bool]) -> int:
    return sum(1 << k for k, is_in in enumerate(held) if is_in)
