"""Leaves made from their parameters, with the derived fields."""

from __future__ import annotations

import numpy as np

from ....data.schema import Columns
from ....runtime.threads import chunks, map_ordered
from .levels import layout, no_wide
from .slot_kernels import derive, derive_pieces
from .table import Leaves, ParameterTables, Pieces, no_pieces

_CHUNK = 4096
"""Leaves of a chunk for a thread."""


def make_leaves(columns: Columns, tables: ParameterTables) -> Leaves:
    """Leaves from their parameters: contiguous arrays of the right types, and the derived fields."""

    def numbers(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.float64)

    def integers(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.int32)

    def small_integers(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.uint8)

    a, level_mass = numbers(tables.a), numbers(tables.level_mass)
    where = layout(columns)
    wide = no_wide(where, len(a)) if tables.wide is None else tables.wide._replace(place=where.place, start=where.start)
    if level_mass.shape[1] != len(where.narrow) or wide.scale.shape[1] != len(where.slots):
        raise ValueError("level masses of columns of many levels are `WideLevels`, those of others are dense")
    family, pieces = small_integers(tables.family), tables.pieces or no_pieces()
    of_pieces = {name: numbers(getattr(pieces, name)) for name in ("a", "b", "lo", "hi", "log_weight")}
    leaves = Leaves(
        tree=integers(tables.tree),
        log_weight=numbers(tables.log_weight),
        family=family,
        a=a,
        b=numbers(tables.b),
        lo=numbers(tables.lo),
        hi=numbers(tables.hi),
        log_norm=np.empty_like(a),
        atom_mass=numbers(tables.atom_mass),
        log_rest=np.empty_like(a),
        level_mass=level_mass,
        log_level=np.empty_like(level_mass),
        wide=wide,
        missing_rate=numbers(tables.missing_rate),
        pieces=Pieces(
            family=small_integers(pieces.family),
            **of_pieces,
            log_norm=np.empty_like(of_pieces["a"]),
            below=np.empty_like(of_pieces["log_weight"]),
        ),
    )
    derive_pieces(leaves)
    for _ in map_ordered(derive, [(columns, leaves, start, stop) for start, stop in chunks(len(a), _CHUNK)]):
        pass
    return leaves
