"""Leaves made from their parameters: the derived fields, and the circuits checked."""

from __future__ import annotations

import numpy as np

from ....data.schema import Columns
from ....runtime.threads import chunks, map_ordered
from .circuit_structure_kernels import SOUND, derive, first_unsound
from .levels import layout, no_wide
from .table import FACTORS, PRODUCT, SUM, Circuits, Leaves, ParameterTables

# ---- Circuits of leaves: their rows in the parameter tables, and whether they are sound.

_TOLERANCE = 1e-6
"""By how much the weights of a sum's children may differ from 1."""

_COMPLAINTS = {
    1: "node_end: expected subtrees one inside the other, in preorder, each leaf's nodes under one root",
    2: "a sum or product without children",
    3: "a FACTORS node with children",
    4: "node_log_weight: expected weights of a sum's children that sum to 1",
    5: "node_log_weight: expected 0, as the node's parent is no sum",
    6: "not decomposable: two children of the product share a column",
    7: "not smooth: two children of the sum have different columns",
    8: "the root lacks columns",
    9: "a FACTORS node without columns",
}


def check_circuits(circuits: Circuits | Leaves) -> None:
    """A ValueError unless circuits are smooth and decomposable, their weights sum to 1, and roots have all columns."""
    start, kind, end = circuits.node_start, circuits.node_kind, circuits.node_end
    n = len(kind)
    if not (len(start) > 0 and start[0] == 0 and start[-1] == n and (start[1:] >= start[:-1]).all()):
        raise ValueError(f"leaves.node_start: expected rising numbers from 0 to the number of nodes, {n}")
    if not np.isin(kind, (SUM, PRODUCT, FACTORS)).all():
        node = int(np.argmin(np.isin(kind, (SUM, PRODUCT, FACTORS))))
        raise ValueError(f"leaves.node_kind[{node}] is {kind[node]}, expected SUM, PRODUCT or FACTORS")
    weight = circuits.node_log_weight
    if not (weight <= _TOLERANCE).all():  # false for NaN, too
        node = int(np.argmin(weight <= _TOLERANCE))
        raise ValueError(f"leaves.node_log_weight[{node}] is {weight[node]}, expected a logarithm of at most 1")
    if not (circuits.scope <= 1).all():
        raise ValueError("leaves.scope: expected zeros and ones")
    if len(circuits.scope) != np.count_nonzero(kind == FACTORS):
        raise ValueError("leaves.scope: expected one row a FACTORS node")
    _check_rows(circuits)
    words = np.packbits(circuits.scope, axis=1)
    complaint, leaf, node = first_unsound(start, kind, end, weight, words, circuits.scope.shape[1], _TOLERANCE)
    if complaint != SOUND:
        raise ValueError(f"leaf {leaf}, node {node}: {_COMPLAINTS[complaint]}")


def _check_rows(circuits: Circuits | Leaves) -> None:
    """Check that the rows from L on are the FACTORS nodes', each of one leaf and describing a column at most once."""
    n_leaves, row = len(circuits.node_start) - 1, circuits.node_row
    fits = np.where(circuits.node_kind == FACTORS, row >= n_leaves, row == -1)
    if not fits.all():
        wrong = int(np.argmin(fits))
        expected = f"a row from {n_leaves} on of FACTORS nodes, -1 of others"
        raise ValueError(f"leaves.node_row[{wrong}] is {row[wrong]}, expected {expected}")
    node = np.flatnonzero(row >= 0)
    of, used = row[node] - n_leaves, np.unique(row[node])
    if len(used) != int(used.max(initial=n_leaves - 1)) + 1 - n_leaves:
        raise ValueError("leaves.node_row: expected every row from the number of leaves on")
    leaf = np.repeat(np.arange(n_leaves), np.diff(circuits.node_start))[node]
    alien = leaf != leaf_of_rows(circuits.node_start, row)[row[node]]
    if alien.any():
        raise ValueError(f"leaf {leaf[alien][0]}, node {node[alien][0]}: its row is another leaf's")
    factors, column = np.nonzero(circuits.scope)
    cell = of[factors].astype(np.int64) * circuits.scope.shape[1] + column
    first = np.unique(cell, return_index=True)[1]
    if len(first) < len(cell):
        again = factors[np.setdiff1d(np.arange(len(cell)), first)[0]]
        raise ValueError(f"leaf {leaf[again]}, node {node[again]}: another node of its row describes the same column")


def no_circuits(n_leaves: int, n_columns: int) -> Circuits:
    """Circuits of leaves that are all one product."""
    return Circuits(
        node_start=np.zeros(n_leaves + 1, np.int32),
        node_kind=np.empty(0, np.uint8),
        node_end=np.empty(0, np.int32),
        node_log_weight=np.empty(0),
        node_row=np.empty(0, np.int32),
        scope=np.empty((0, n_columns), np.uint8),
    )


def node_scopes(node_kind: np.ndarray) -> np.ndarray:
    """Row of each node in ``scope``, int32 (Q,): FACTORS nodes are counted in node order, others have -1."""
    is_factors = node_kind == FACTORS
    return np.where(is_factors, np.cumsum(is_factors) - 1, -1).astype(np.int32)


def leaf_of_rows(node_start: np.ndarray, node_row: np.ndarray) -> np.ndarray:
    """Leaf that each parameter row belongs to, int64 (R,)."""
    number = np.arange(len(node_start) - 1)
    leaf_of_node = np.repeat(number, np.diff(node_start))
    has_row = node_row >= 0
    leaf = np.concatenate([number, np.zeros(max(node_row.max(initial=-1) + 1 - len(number), 0), number.dtype)])
    leaf[node_row[has_row]] = leaf_of_node[has_row]
    return leaf


def scope_columns(scope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scopes as lists of columns: ``scope_start`` and ``scope_column`` of `Leaves`."""
    start = np.zeros(len(scope) + 1, np.int32)
    start[1:] = np.cumsum(scope.sum(axis=1, dtype=np.int64))
    return start, np.nonzero(scope)[1].astype(np.int32)


# ---- Leaves with their derived fields.

_CHUNK = 4096
"""Leaves of a chunk for a thread."""


def table_bytes(columns: Columns, n_rows: int) -> int:
    """Bytes of the parameter tables of leaves with so many parameter rows, about."""
    where = layout(columns)
    numbers = 6 * len(columns.step) + 2 * len(columns.atom_value) + 2 * len(where.narrow) + 3 * len(where.slots)
    return 8 * n_rows * numbers


def make_leaves(columns: Columns, tables: ParameterTables, circuits: Circuits | None = None) -> Leaves:
    """Leaves from their parameters: contiguous arrays of the right types, and the derived fields."""

    def numbers(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.float64)

    def integers(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.int32)

    def small_integers(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.uint8)

    a, level_mass = numbers(tables.a), numbers(tables.level_mass)
    if circuits is None:
        circuits = no_circuits(len(tables.log_weight), len(columns.slot))
    where = layout(columns)
    wide = no_wide(where, len(a)) if tables.wide is None else tables.wide._replace(place=where.place, start=where.start)
    if level_mass.shape[1] != len(where.narrow) or wide.scale.shape[1] != len(where.slots):
        raise ValueError("level masses of columns of many levels are `WideLevels`, those of others are dense")
    node_kind, scope = small_integers(circuits.node_kind), small_integers(circuits.scope)
    scope_start, scope_column = scope_columns(scope)
    leaves = Leaves(
        tree=integers(tables.tree),
        log_weight=numbers(tables.log_weight),
        family=small_integers(tables.family),
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
        node_start=integers(circuits.node_start),
        node_kind=node_kind,
        node_end=integers(circuits.node_end),
        node_log_weight=numbers(circuits.node_log_weight),
        node_row=integers(circuits.node_row),
        scope=scope,
        node_scope=node_scopes(node_kind),
        scope_start=scope_start,
        scope_column=scope_column,
    )
    for _ in map_ordered(derive, [(columns, leaves, start, stop) for start, stop in chunks(len(a), _CHUNK)]):
        pass
    return leaves
