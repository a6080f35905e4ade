"""The marginal distribution of some columns, as a forest of its own. See docs/how-to/reshape-a-joint.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...data.schema import Columns, Schema, kernel_columns
from ...runtime.records import record
from .condition_kernels import new_nodes, restrict, weights_below
from .leaves.derived import make_leaves
from .leaves.levels import layout, take
from .leaves.table import FACTORS, Circuits, Leaves, ParameterTables
from .structure import Forest, Trees
from .structure_kernels import MIXED

# ---- Parts of a new model from those of an old one: fewer leaves, fewer columns, other circuits.


@record
class Nodes(NamedTuple):
    """Circuits of m leaves, every leaf with at least one node; preorder as in `models.box_forest.leaves.table.Leaves`.

    Attributes
    ----------
    start : int64 array (m + 1,)
    kind : uint8 array (n,)
    end : int64 array (n,)
    log_weight : float64 array (n,)
    row : int64 array (n,)
        Row of the old tables that a FACTORS node is made of; -1 of others.
    piece : int64 array (n,)
        Which part of that row, see `condition`.
    scope : bool array (n, d)
        Columns of FACTORS nodes; nothing of others.
    """

    start: np.ndarray
    kind: np.ndarray
    end: np.ndarray
    log_weight: np.ndarray
    row: np.ndarray
    piece: np.ndarray
    scope: np.ndarray


class Packed(NamedTuple):
    """Parameter rows of new tables, and the circuits over them.

    Attributes
    ----------
    row, piece, leaf : int64 arrays (R,)
        The old parameter row that each is made of, which piece of it, and the leaf that it belongs to.
    circuits : Circuits
    """

    row: np.ndarray
    piece: np.ndarray
    leaf: np.ndarray
    circuits: Circuits


class Restricted(NamedTuple):
    """Trees of some of the leaves.

    Attributes
    ----------
    trees : Trees
    log_weight : float64 array (l,)
        Sums to 1 over all leaves.
    tree, old_tree : int64 arrays (l,), (t,)
        Tree of each leaf, and which tree each one was.
    leaf : int64 array (l,)
        Which leaf each one was.
    """

    trees: Trees
    log_weight: np.ndarray
    tree: np.ndarray
    old_tree: np.ndarray
    leaf: np.ndarray


def ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The numbers ``first[k], ..., first[k] + count[k] - 1`` of every k, one after the other."""
    return np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())


def restricted_trees(columns: Columns, trees: Trees, log_weight: np.ndarray) -> Restricted:
    """The trees of the leaves with weight; see `condition_kernels.restrict`."""
    alive = (log_weight > -np.inf).astype(np.uint8)
    made = new_nodes(len(trees.feature), len(alive), len(trees.root))
    n, n_trees, n_leaves = restrict(trees, alive, made)
    node, left, right, number = (field[:n].copy() for field in made[:4])
    root, old_tree, leaf = made.root[:n_trees].copy(), made.old_tree[:n_trees].copy(), made.leaf[:n_leaves].copy()
    of_leaf = log_weight[leaf] - np.logaddexp.reduce(log_weight[leaf])
    weight, _ = weights_below(left, right, number, root, of_leaf)
    is_leaf = number >= 0
    feature = trees.feature[node]
    by_levels = ~is_leaf & (trees.levels_at[node] >= 0)
    n_words = np.zeros(len(node), np.int64)
    slot = columns.slot[feature[by_levels]]
    n_words[by_levels] = (np.diff(columns.level_start)[slot] + 63) // 64
    words = ranges(trees.levels_at[node[by_levels]].astype(np.int64), n_words[by_levels])
    new = Trees(
        feature=feature,
        threshold=trees.threshold[node],
        levels_at=np.where(by_levels, np.cumsum(n_words) - n_words, -1).astype(np.int32),
        left_levels=trees.left_levels[words],
        left=left,
        right=right,
        leaf=number,
        weight=weight,
        root=root,
    )
    tree_of_node = np.searchsorted(root, np.arange(len(node)), side="right") - 1
    return Restricted(new, of_leaf, tree_of_node[is_leaf], old_tree, leaf)


def nodes_of(leaves: Leaves, leaf: np.ndarray) -> tuple[Nodes, np.ndarray]:
    """The circuits of these leaves, a plain leaf as one FACTORS node; and which old node each one was, -1 if none."""
    first = leaves.node_start[leaf].astype(np.int64)
    n_own = leaves.node_start[leaf + 1] - first
    start = np.concatenate([[0], np.cumsum(np.maximum(n_own, 1))])
    of = np.repeat(np.arange(len(leaf)), np.diff(start))
    n = len(of)
    old = np.where(n_own[of] > 0, np.arange(n) - start[of] + first[of], -1)
    with_row = np.flatnonzero(old >= 0)
    was = old[with_row]
    kind = np.full(n, FACTORS, np.uint8)
    kind[with_row] = leaves.node_kind[was]
    end = np.arange(1, n + 1)
    end[with_row] = leaves.node_end[was] - was + with_row
    log_weight, row = np.zeros(n), leaf[of].astype(np.int64)
    log_weight[with_row], row[with_row] = leaves.node_log_weight[was], leaves.node_row[was]
    scope = np.ones((n, leaves.scope.shape[1]), bool)
    scope[with_row] = False
    factors = with_row[leaves.node_kind[was] == FACTORS]
    scope[factors] = leaves.scope[leaves.node_scope[old[factors]]] == 1
    return Nodes(start, kind, end, log_weight, row, np.zeros(n, np.int64), scope), old


def without(nodes: Nodes, gone: np.ndarray) -> Nodes:
    """The nodes but those that are gone (bool (n,)) and all below them."""
    depth = np.zeros(len(gone) + 1, np.int64)
    np.add.at(depth, np.flatnonzero(gone), 1)
    np.add.at(depth, nodes.end[gone], -1)
    kept = np.cumsum(depth)[:-1] == 0
    at = np.concatenate([[0], np.cumsum(kept)])
    return Nodes(
        at[nodes.start], nodes.kind[kept], at[nodes.end[kept]], *(field[kept] for field in nodes[3:])
    )  # fmt: skip


def packed(nodes: Nodes) -> Packed:
    """Number parameter rows: a leaf of one FACTORS node has its own, equal pieces of an old row share one."""
    n_leaves, n_nodes = len(nodes.start) - 1, np.diff(nodes.start)
    factors = np.flatnonzero(nodes.kind == FACTORS)
    of = np.repeat(np.arange(n_leaves), n_nodes)
    first_factors = factors[
        np.searchsorted(factors, nodes.start[:-1])
    ]  # whose row stands in the unused row of a circuit leaf
    inside = (n_nodes > 1)[of]
    at = np.concatenate([[0], np.cumsum(inside)])
    is_factors = inside & (nodes.kind == FACTORS)
    most = int(nodes.piece.max(initial=0)) + 1
    key, first, number = np.unique(
        nodes.row[is_factors] * most + nodes.piece[is_factors], return_index=True, return_inverse=True
    )
    row = np.full(len(of), -1)
    row[is_factors] = n_leaves + number
    circuits = Circuits(
        node_start=at[nodes.start].astype(np.int32),
        node_kind=nodes.kind[inside],
        node_end=at[nodes.end[inside]].astype(np.int32),
        node_log_weight=nodes.log_weight[inside],
        node_row=row[inside].astype(np.int32),
        scope=nodes.scope[is_factors].astype(np.uint8),
    )
    return Packed(
        row=np.concatenate([nodes.row[first_factors], key // most]),
        piece=np.concatenate([np.zeros(n_leaves, np.int64), key % most]),
        leaf=np.concatenate([np.arange(n_leaves), of[is_factors][first]]),
        circuits=circuits,
    )


def marginalize(forest: Forest, columns: Sequence[int]) -> Forest:
    """The marginal of a forest over some of its columns, exact; it answers as the forest does with the others missing.

    Where the column of a split goes, the node mixes its children. So tree t's density is the marginal of what it was.
    """
    d = len(forest.schema.columns)
    stays = np.zeros(d, bool)
    stays[list(columns)] = True
    if not stays.any():
        raise ValueError("keep: name at least one column")
    kept = np.flatnonzero(stays)
    leaves = forest.leaves
    new = packed(_narrowed(nodes_of(leaves, np.arange(len(leaves.log_weight)))[0], kept))

    schema = Schema(tuple(forest.schema.columns[j] for j in kept), forest.schema.frame, n_rows=forest.schema.n_rows)
    numeric = forest.columns.slot[kept[forest.columns.is_categorical[kept] == 0]]
    categorical = forest.columns.slot[kept[forest.columns.is_categorical[kept] == 1]]
    atoms = ranges(forest.columns.atom_start[numeric], np.diff(forest.columns.atom_start)[numeric])
    place = layout(forest.columns).place[categorical]
    levels = ranges(place[place >= 0], np.diff(forest.columns.level_start)[categorical][place >= 0])
    columns_kept = kernel_columns(schema)
    return Forest(
        schema=schema,
        columns=columns_kept,
        trees=_without_splits(forest.trees, stays),
        leaves=make_leaves(
            columns_kept,
            ParameterTables(
                leaves.tree[new.leaf],
                leaves.log_weight,
                leaves.family[new.row][:, numeric],
                leaves.a[new.row][:, numeric],
                leaves.b[new.row][:, numeric],
                leaves.lo[new.row][:, numeric],
                leaves.hi[new.row][:, numeric],
                leaves.atom_mass[new.row][:, atoms],
                leaves.level_mass[new.row][:, levels],
                leaves.missing_rate[:, kept],
                take(layout(columns_kept), leaves.wide, new.row, (-1 - place[place < 0]).tolist()),
            ),
            circuits=new.circuits,
        ),
        has_background=forest.has_background,
    )


def _narrowed(nodes: Nodes, kept: np.ndarray) -> Nodes:
    """The circuits over these columns alone: nodes of none of them go."""
    scope = nodes.scope[:, kept]
    described = np.concatenate([[0], np.cumsum(scope.any(axis=1))])
    gone = described[nodes.end] == described[:-1]
    return without(nodes._replace(scope=scope), gone)


def _without_splits(trees: Trees, stays: np.ndarray) -> Trees:
    """The trees without the splits of columns that do not stay (bool (d,)); columns are numbered anew."""
    is_split = trees.feature >= 0
    goes = is_split & ~stays[trees.feature]
    number = np.where(is_split, (np.cumsum(stays) - 1)[trees.feature], trees.feature)
    return trees._replace(
        feature=np.where(goes, MIXED, number).astype(np.int32),
        threshold=np.where(goes, 0.0, trees.threshold),
        levels_at=np.where(goes, -1, trees.levels_at).astype(np.int32),
    )
