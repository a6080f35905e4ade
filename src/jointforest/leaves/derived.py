"""Leaves with their derived fields."""

from __future__ import annotations

import math

import numpy as np

from ..ground.compile import entry
from ..ground.threads import chunks, map_ordered
from ..table.columns import Columns
from .circuits.soundness import no_circuits, node_scopes, scope_columns
from .families.family_kernels import log_norm
from .table import Circuits, Leaves

_CHUNK = 4096
_NOTHING_LEFT = 1e-13
"""What rounding leaves of 1 minus the atoms' masses."""


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
    norm, rest, level = np.empty_like(a), np.empty_like(a), np.empty_like(level_mass)
    work = [
        (columns.atom_start, family, a, b, lo, hi, atom_mass, level_mass, norm, rest, level, start, stop)
        for start, stop in chunks(len(a), _CHUNK)
    ]
    for _ in map_ordered(_derive, work):
        pass
    if circuits is None:
        circuits = no_circuits(len(log_weight), len(columns.slot))
    node_kind, scope = byte(circuits.node_kind), byte(circuits.scope)
    scope_start, scope_column = scope_columns(scope)
    return Leaves(
        tree=whole(tree),
        log_weight=real(log_weight),
        family=family,
        a=a,
        b=b,
        lo=lo,
        hi=hi,
        log_norm=norm,
        atom_mass=atom_mass,
        log_rest=rest,
        level_mass=level_mass,
        log_level=level,
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


@entry
def _derive(atom_start, family, a, b, lo, hi, atom_mass, level_mass, norm, rest, level, start, stop):
    for leaf in range(start, stop):
        for s in range(a.shape[1]):
            norm[leaf, s] = log_norm(family[leaf, s], a[leaf, s], b[leaf, s], lo[leaf, s], hi[leaf, s])
            left = 1.0
            for k in range(atom_start[s], atom_start[s + 1]):
                left -= atom_mass[leaf, k]
            rest[leaf, s] = math.log(min(left, 1.0)) if left > _NOTHING_LEFT else -math.inf
        for k in range(level_mass.shape[1]):
            level[leaf, k] = math.log(level_mass[leaf, k]) if level_mass[leaf, k] > 0.0 else -math.inf
