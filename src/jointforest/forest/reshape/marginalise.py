"""The marginal distribution of some columns, as a forest of its own. See docs/modes.md."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...leaves.derived import make_leaves
from ...leaves.levels.wide import layout, take
from ...leaves.table import FACTORS, SUM, ParameterTables
from ...table.schema import Schema, kernel_columns
from ..forest import Forest
from .rebuild import Nodes, Restricted, nodes_of, packed, ranges, restricted_trees, without


def keep(forest: Forest, columns: Sequence[int]) -> Forest:
    """The marginal of a forest over some of its columns, exact.

    Trees keep their splits down to the first one of a column that goes; all leaves below it become one leaf, the
    mixture (a SUM) of what they say of the columns that stay. So tree t's density is the marginal of what it was.

    Parameters
    ----------
    forest : Forest
    columns : sequence of int
        Numbers of the columns that stay, at least one; their order stays that of the table.

    Returns
    -------
    Forest
        Answers as the old one does where the other columns are missing. A new leaf's missing rates are the means of
        those of its leaves.

    Raises
    ------
    ValueError
        If no column is left.

    Examples
    --------
    >>> import jointforest as jf
    >>> learned = jf.AdversarialForest(n_estimators=2, random_state=0).fit(jf.datasets.load_penguins())
    >>> forest = learned.joint_.model.forest
    >>> keep(forest, [0, 1]).schema.names
    ('species', 'island')
    """
    d = len(forest.schema.columns)
    stays = np.zeros(d, bool)
    stays[list(columns)] = True
    if not stays.any():
        raise ValueError("keep: name at least one column")
    kept = np.flatnonzero(stays)
    leaves = forest.leaves
    small = restricted_trees(forest.columns, forest.trees, leaves.log_weight, stays)
    new = packed(mixed_nodes(_narrowed(nodes_of(leaves, small.leaf)[0], kept), small, leaves.log_weight))

    schema = Schema(tuple(forest.schema.columns[j] for j in kept), forest.schema.frame)
    numeric = forest.columns.slot[kept[forest.columns.is_categorical[kept] == 0]]
    categorical = forest.columns.slot[kept[forest.columns.is_categorical[kept] == 1]]
    atoms = ranges(forest.columns.atom_start[numeric], np.diff(forest.columns.atom_start)[numeric])
    place = layout(forest.columns).place[categorical]
    levels = ranges(place[place >= 0], np.diff(forest.columns.level_start)[categorical][place >= 0])
    columns_kept = kernel_columns(schema)
    return Forest(
        schema=schema,
        columns=columns_kept,
        trees=small.trees,
        leaves=make_leaves(
            columns_kept,
            ParameterTables(
                small.tree[new.leaf],
                small.log_weight,
                leaves.family[new.row][:, numeric],
                leaves.a[new.row][:, numeric],
                leaves.b[new.row][:, numeric],
                leaves.lo[new.row][:, numeric],
                leaves.hi[new.row][:, numeric],
                leaves.atom_mass[new.row][:, atoms],
                leaves.level_mass[new.row][:, levels],
                mean_missing_rates(leaves.missing_rate[:, kept], small, leaves.log_weight),
                take(layout(columns_kept), leaves.wide, new.row, (-1 - place[place < 0]).tolist()),
            ),
            circuits=new.circuits,
        ),
        has_background=forest.has_background and bool(small.old_tree[-1] == len(forest.trees.root) - 1),
    )


def _narrowed(nodes: Nodes, kept: np.ndarray) -> Nodes:
    """The circuits over these columns alone: nodes of none of them go."""
    scope = nodes.scope[:, kept]
    described = np.concatenate([[0], np.cumsum(scope.any(axis=1))])
    gone = described[nodes.end] == described[:-1]
    return without(nodes._replace(scope=scope), gone)


def _shares(small: Restricted, log_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The new leaf of each old one, (m,), and the log of its share in it."""
    group = np.repeat(np.arange(len(small.start) - 1), np.diff(small.start))
    share = log_weight[small.leaf]
    return group, share - np.logaddexp.reduceat(share, small.start[:-1])[group]


def mixed_nodes(nodes: Nodes, small: Restricted, log_weight: np.ndarray) -> Nodes:
    """A SUM above the circuits of leaves that have become one."""
    group, share = _shares(small, log_weight)
    several = np.diff(small.start) > 1
    many = several[group]
    nodes.log_weight[nodes.start[:-1][many]] = share[many]
    before = np.concatenate([[0], np.cumsum(several)])
    start = nodes.start[small.start] + before
    n = len(nodes.kind)
    of = np.repeat(group, np.diff(nodes.start))
    at = np.arange(n) + before[of + 1]
    total = n + int(before[-1])
    kind, end = np.full(total, SUM, np.uint8), np.zeros(total, np.int64)
    weight, row, piece = np.zeros(total), np.full(total, -1), np.zeros(total, np.int64)
    scope = np.zeros((total, nodes.scope.shape[1]), bool)
    kind[at], weight[at], row[at], scope[at] = nodes.kind, nodes.log_weight, nodes.row, nodes.scope
    end[at] = nodes.end + before[of + 1]  # ends lie within the leaf
    end[start[:-1][several]] = start[1:][several]
    row[kind != FACTORS] = -1
    return Nodes(start, kind, end, weight, row, piece, scope)


def mean_missing_rates(missing_rate: np.ndarray, small: Restricted, log_weight: np.ndarray) -> np.ndarray:
    """Missing rates of the new leaves: means of those of the old, by weight."""
    _, share = _shares(small, log_weight)
    return np.minimum(np.add.reduceat(np.exp(share)[:, None] * missing_rate[small.leaf], small.start[:-1], axis=0), 1)
