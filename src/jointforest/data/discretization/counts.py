"""The distinct values of a column, counted: what a scale is learned from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..schema import Column


class PlaceTally(NamedTuple):
    """m distinct observed places of a numeric column, ascending.

    place : float64 array (m,). The number of the cell on a grid, else the value.
    rows : float64 array (m,). How many rows have it.
    weight : float64 array (m,). Their weight, in rows: all rows together weigh as much as their number.
    is_atom : bool array (m,). Whether a value without grid has a mass of its own; of dates whether it lies far from the
        others.
    half : float. Half the width of a place: 1/2 on a grid, where a place is a cell, else 0.
    lower, upper : float. The first and the last place that the column may have; infinite where an end is open.
    """

    place: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    is_atom: np.ndarray
    half: float
    lower: float
    upper: float

    @property
    def n(self) -> float:
        """Rows."""
        return float(self.rows.sum())


def mirrored(tally: PlaceTally) -> PlaceTally:
    """The tally of the column's negative."""
    place, rows, weight, is_atom = (field[::-1] for field in tally[:4])
    return PlaceTally(-place, rows, weight, is_atom, tally.half, -tally.upper, -tally.lower)


def cell_number(x: np.ndarray, step: float, origin: float) -> np.ndarray:
    """Number of the grid cell (centre - step/2, centre + step/2] with x in it."""
    with np.errstate(over="ignore"):
        cells = np.clip((x - origin) / step, -1e300, 1e300)
    near = np.rint(cells)
    off = np.abs(cells - near) > 1e-6 + 4e-16 * np.abs(cells)
    return np.asarray(np.where(off, np.ceil(cells - 0.5), near))


def count_places(column: Column, values: np.ndarray, weight: np.ndarray | None) -> PlaceTally:
    """The tally of a numeric column; rows without a value or weight do not count."""
    used = ~np.isnan(values)
    if weight is not None:
        used &= weight > 0
    x = values[used]
    if len(x) == 0:
        # nothing is known here: the ends that the schema remembers stand for the column
        ends = [end for end in (column.minimum, column.maximum) if np.isfinite(end)]
        x, weight, used = np.array(ends or [column.center]), None, np.ones(len(ends or [0]), dtype=bool)
    if column.step > 0:
        x = cell_number(x, column.step, column.center)
    place, group, counts = np.unique(x, return_inverse=True, return_counts=True)
    rows: np.ndarray = counts.astype(np.float64)
    mass = rows
    if weight is not None:
        heaviest = weight[used] / weight[used].max()
        mass = np.bincount(group, heaviest * (len(x) / heaviest.sum()))
    half, atoms = 0.0, np.array(column.atoms)
    lower, upper = column.lower, column.upper
    if column.step > 0:
        half, (lower, upper) = 0.5, cell_number(np.array([lower, upper]), column.step, column.center).tolist()
        atoms = cell_number(atoms, column.step, column.center) if column.kind == "datetime" else atoms[:0]
    else:
        place, rows, mass = _with_atoms(atoms, place, rows, mass)
    lower, upper = min(lower, float(place[0])), max(upper, float(place[-1]))
    return PlaceTally(place + 0.0, rows, np.maximum(mass, 1e-300), np.isin(place, atoms), half, lower, upper)


def _with_atoms(
    atoms: np.ndarray, place: np.ndarray, rows: np.ndarray, mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Atoms that these rows lack count as a small part of a row, so that none has probability 0."""
    absent = np.setdiff1d(atoms, place)
    order = np.argsort(np.concatenate([place, absent]), kind="stable")
    return (
        np.concatenate([place, absent])[order],
        np.concatenate([rows, np.zeros(len(absent))])[order],
        np.concatenate([mass, np.full(len(absent), ABSENT)])[order],
    )


ABSENT = 0.1
"""Rows that an atom or a level counts for which no row has."""
