"""Leaves with their derived fields."""

from __future__ import annotations

import numpy as np

from ....data.schema import Columns
from ....runtime.threads import chunks, map_ordered
from .circuit_structure_kernels import derive
from .circuits import no_circuits, node_scopes, scope_columns
from .levels import layout, no_wide
from .table import Circuits, Leaves, ParameterTables

_CHUNK = 4096


def table_bytes(columns: Columns, n_rows: int) -> int:
    """Bytes of the parameter tables of leaves with so many parameter rows, about."""
    where = layout(columns)
    numbers = 6 * len(columns.step) + 2 * len(columns.atom_value) + 2 * len(where.narrow) + 3 * len(where.slots)
    return 8 * n_rows * numbers


def make_leaves(columns: Columns, tables: ParameterTables, circuits: Circuits | None = None) -> Leaves:
    """Leaves from their parameters: contiguous arrays of the right types, and the derived fields."""

    def real(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.float64)

    def whole(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.int32)

    def byte(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.uint8)

    a, level_mass = real(tables.a), real(tables.level_mass)
    if circuits is None:
        circuits = no_circuits(len(tables.log_weight), len(columns.slot))
    where = layout(columns)
    wide = no_wide(where, len(a)) if tables.wide is None else tables.wide._replace(place=where.place, start=where.start)
    if level_mass.shape[1] != len(where.narrow) or wide.scale.shape[1] != len(where.slots):
        raise ValueError("level masses of columns of many levels are `WideLevels`, those of others are dense")
    node_kind, scope = byte(circuits.node_kind), byte(circuits.scope)
    scope_start, scope_column = scope_columns(scope)
    leaves = Leaves(
        tree=whole(tables.tree),
        log_weight=real(tables.log_weight),
        family=byte(tables.family),
        a=a,
        b=real(tables.b),
        lo=real(tables.lo),
        hi=real(tables.hi),
        log_norm=np.empty_like(a),
        atom_mass=real(tables.atom_mass),
        log_rest=np.empty_like(a),
        level_mass=level_mass,
        log_level=np.empty_like(level_mass),
        wide=wide,
        missing_rate=real(tables.missing_rate),
        node_start=whole(circuits.node_start),
        node_kind=node_kind,
        node_end=whole(circuits.node_end),
        node_log_weight=real(circuits.node_log_weight),
        node_row=whole(circuits.node_row),
        scope=scope,
        node_scope=node_scopes(node_kind),
        scope_start=scope_start,
        scope_column=scope_column,
    )
    for _ in map_ordered(derive, [(columns, leaves, start, stop) for start, stop in chunks(len(a), _CHUNK)]):
        pass
    return leaves
