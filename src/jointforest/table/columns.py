"""What the kernels know about columns: plain arrays, one entry a column, slot, atom or level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..ground.records import record


@record
class Columns(NamedTuple):
    """Column layout for the kernels.

    A table has d columns. Each is numeric or categorical and has a *slot*: its place among the columns of its
    own sort. There are p numeric and c categorical slots, p + c = d.

    Attributes
    ----------
    is_categorical : uint8 array (d,)
        1 where the column is categorical (also ordered and boolean ones), else 0.
    slot : int32 array (d,)
        Place of the column among the numeric, or among the categorical, columns.
    step : float64 array (p,)
        Width of a grid cell of a numeric slot; 0 where the slot has no grid (a density).
    origin : float64 array (p,)
        Centre of one cell: cells are ``origin + k*step -+ step/2``.
    atom_start : int32 array (p + 1,)
        ``atom_value[atom_start[s]:atom_start[s + 1]]`` are the atoms of numeric slot s, ascending, at most 64.
    atom_value : float64 array (A,)
        Values that have a mass of their own.
    level_start : int32 array (c + 1,)
        Levels of categorical slot s are ``level_start[s]:level_start[s + 1]`` of any per-level table.
    """

    is_categorical: np.ndarray
    slot: np.ndarray
    step: np.ndarray
    origin: np.ndarray
    atom_start: np.ndarray
    atom_value: np.ndarray
    level_start: np.ndarray
