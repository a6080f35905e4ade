"""Leaves with their derived fields."""

from __future__ import annotations

import numpy as np

from ..ground.threads import chunks, map_ordered
from ..table.columns import Columns
from .circuits.soundness import no_circuits, node_scopes, scope_columns
from .derived_kernels import derive
from .table import Circuits, Leaves

_CHUNK = 4096


def make_leaves(
    columns: Columns,
    tree: np.ndarray,
    log_weight: np.ndarray,
    family: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    atom_mass: np.ndarray,
    level_mass: np.ndarray,
    missing_rate: np.ndarray,
    *,
    circuits: Circuits | None = None,
) -> Leaves:
    """Leaves from their parameters: contiguous arrays of the right types, and the derived fields.

    Parameters
    ----------
    columns : Columns
        Layout of the slots.
    tree, log_weight, family, a, b, lo, hi, atom_mass, level_mass, missing_rate : array-like
        See `Leaves`.
    circuits : Circuits, optional
        None: every leaf is one product, and the tables have one row a leaf.

    Returns
    -------
    Leaves
        Arrays are copied only where their type or layout has to change.

    Examples
    --------
    One leaf with one standard normal column, cut to the positive half:

    >>> import numpy as np
    >>> from jointforest.table.columns import Columns
    >>> none, start = np.empty(0), np.zeros(2, np.int32)
    >>> columns = Columns(np.zeros(1, np.uint8), start[:1], np.zeros(1), np.zeros(1), start, none, start[:1])
    >>> table = np.zeros((1, 0))
    >>> leaves = make_leaves(columns, [0], [0.0], [[0]], [[0.0]], [[1.0]], [[0.0]], [[np.inf]], table, table, [[0.0]])
    >>> float(np.exp(leaves.log_norm[0, 0]).round(12))
    0.5
    """

    def real(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.float64)

    def whole(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.int32)

    def byte(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, dtype=np.uint8)

    family = byte(family)
    a, b, lo, hi, atom_mass, level_mass = (real(x) for x in (a, b, lo, hi, atom_mass, level_mass))
    if circuits is None:
        circuits = no_circuits(len(log_weight), len(columns.slot))
    node_kind, scope = byte(circuits.node_kind), byte(circuits.scope)
    scope_start, scope_column = scope_columns(scope)
    leaves = Leaves(
        tree=whole(tree),
        log_weight=real(log_weight),
        family=family,
        a=a,
        b=b,
        lo=lo,
        hi=hi,
        log_norm=np.empty_like(a),
        atom_mass=atom_mass,
        log_rest=np.empty_like(a),
        level_mass=level_mass,
        log_level=np.empty_like(level_mass),
        missing_rate=real(missing_rate),
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
