"""The fitted leaves of all trees of a forest as one table."""

from __future__ import annotations

import numpy as np

from ..table.columns import Columns
from .derived import make_leaves
from .fit.fit import TreeLeaves
from .levels.wide import stacked
from .table import NORMAL, STUDENT, UNIFORM, Circuits, Leaves, ParameterTables


def join(
    columns: Columns,
    trees: list[TreeLeaves],
    back: TreeLeaves | None = None,
    epsilon: float = 0.0,
    circuits: list[tuple[Circuits, TreeLeaves]] | None = None,
) -> Leaves:
    """Leaves of a forest of equally weighted trees, the background last with weight ``epsilon``.

    Parameters
    ----------
    trees : list of TreeLeaves
    back : TreeLeaves, optional
        The background.
    epsilon : float
    circuits : list of (Circuits, TreeLeaves), optional
        For each tree the circuits of its leaves, nodes and rows numbered within the tree, and their rows.
    """
    parts = trees if back is None else [*trees, back]
    share = (1.0 - epsilon if back is not None else 1.0) / len(trees)
    weights = [share * t.rows / t.rows.sum() for t in trees] + ([] if back is None else [np.array([epsilon])])
    with np.errstate(divide="ignore"):
        log_weight = np.log(np.concatenate(weights))
    groups = [] if circuits is None else [fitted for _, fitted in circuits]
    number = [*range(len(parts)), *range(len(groups))]
    all_parts = [*parts, *groups]
    # normals have a scale, uniforms have none; the columns of a leaf need not be of one family
    family = [np.where(p.b > 0, STUDENT if p is back else NORMAL, UNIFORM) for p in all_parts]
    table = {
        field: np.concatenate([getattr(p, field) for p in all_parts])
        for field in ("a", "b", "lo", "hi", "atom_mass", "level_mass")
    }
    return make_leaves(
        columns,
        ParameterTables(
            tree=np.concatenate([np.full(len(p.rows), t) for t, p in zip(number, all_parts, strict=True)]),
            log_weight=log_weight,
            family=np.concatenate(family),
            **table,
            missing_rate=np.concatenate([p.missing_rate for p in parts]),
            wide=stacked([p.wide for p in all_parts]),
        ),
        circuits=None if circuits is None else _joined(circuits, len(log_weight), back is not None),
    )


def _joined(trees: list[tuple[Circuits, TreeLeaves]], n_leaves: int, has_background: bool) -> Circuits:
    """Circuits of all trees, numbered through; the background has none."""
    circuits = [c for c, _ in trees]
    first = np.cumsum([0] + [len(c.node_kind) for c in circuits])
    first_row = n_leaves + np.cumsum([0] + [len(fitted.rows) for _, fitted in trees])
    start = [c.node_start[:-1] + at for c, at in zip(circuits, first[:-1], strict=True)]
    last = np.full(2 if has_background else 1, first[-1])
    rows = [np.where(c.node_row >= 0, c.node_row + at, -1) for c, at in zip(circuits, first_row[:-1], strict=True)]
    return Circuits(
        node_start=np.concatenate([*start, last]).astype(np.int32),
        node_kind=np.concatenate([c.node_kind for c in circuits]),
        node_end=np.concatenate([c.node_end + at for c, at in zip(circuits, first[:-1], strict=True)]).astype(np.int32),
        node_log_weight=np.concatenate([c.node_log_weight for c in circuits]),
        node_row=np.concatenate(rows).astype(np.int32),
        scope=np.concatenate([c.scope for c in circuits]),
    )
