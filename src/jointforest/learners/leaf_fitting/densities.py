"""From trees and the rows in their leaves to a model: leaf densities, weights, background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...data.schema import Columns, Schema
from ...models.box_forest.leaves.derived import make_leaves
from ...models.box_forest.leaves.levels import apart, layout, side_by_side, stacked
from ...models.box_forest.leaves.table import Leaves, ParameterTables, no_pieces, stacked_pieces
from ...models.box_forest.structure import Forest, Trees, add_stump, mix_leaves, tree_boxes
from ...runtime.threads import map_ordered
from ..growing.grow import Ranks, RankTree, find_leaves, join_trees, prune
from .fit import LeafSums, Settings, Table, TreeLeaves, background, fit_tree, leaf_sums, narrow_at
from .learnspn import Components
from .quantile import LeafCdfs, leaf_cdfs, values_of_rows, with_cdfs
from .statistics_kernels import rows_by_leaf


class AssignedRows(NamedTuple):
    """A forest, and where the training rows end in it.

    trees : Trees. T trees with L leaves, without background.
    leaf_of : int32 array (T, n). Leaf (0..L-1) in which each row ends, in each tree; -1 if none.
    weight : float64 array (T, n). Weight of each row in each tree; 0 is out of bag. Trees may share one row of it.
    """

    trees: Trees
    leaf_of: np.ndarray
    weight: np.ndarray


def assign_rows(
    columns: Columns,
    ranks: Ranks,
    trees: Sequence[RankTree],
    leaf_node: Sequence[np.ndarray] | np.ndarray,
    weight: Sequence[np.ndarray] | np.ndarray,
) -> AssignedRows:
    """Join T trees on ranks to a forest; row i ends in node ``leaf_node[t][i]`` of tree t (-1: none)."""
    counted = [w > 0 for w in weight]
    rows_at = [
        np.bincount(node[is_counted], w[is_counted], minlength=len(tree.feature))
        for tree, node, w, is_counted in zip(trees, leaf_node, weight, counted, strict=True)
    ]
    forest = join_trees(columns, ranks, list(trees), rows_at)
    leaf_of = np.empty((len(trees), len(leaf_node[0])), dtype=np.int32)
    for out, node, first in zip(leaf_of, leaf_node, forest.root, strict=True):
        out[:] = np.where(node >= 0, forest.leaf[node + first], -1)
    return AssignedRows(forest, leaf_of, np.asarray(weight))


def first_trees(assigned: AssignedRows, n_trees: int) -> AssignedRows:
    """The first trees of the forest alone."""
    trees = assigned.trees
    if n_trees >= len(trees.root):
        return assigned
    end = trees.root[n_trees]
    cut = {field: getattr(trees, field)[:end] for field in trees._fields if field not in ("root", "left_levels")}
    return AssignedRows(
        trees._replace(root=trees.root[:n_trees], **cut), assigned.leaf_of[:n_trees], assigned.weight[:n_trees]
    )


def first_leaves(trees: Trees) -> np.ndarray:
    """Leaves of tree t are ``first[t]..first[t + 1] - 1``; shape (T + 1,)."""
    n_leaves = np.add.reduceat(trees.leaf >= 0, trees.root, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(n_leaves)])


def rows_in_leaves(assigned: AssignedRows, first: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a weight in tree t, by leaf: those of its leaf l, from 0, are ``rows[start[l] : start[l + 1]]``."""
    leaf = np.where(assigned.weight[t] > 0, assigned.leaf_of[t] - first[t], -1).astype(np.int32)
    return rows_by_leaf(leaf, int(first[t + 1] - first[t]))


def prune_small_leaves(
    tree: RankTree, codes: np.ndarray, counts: np.ndarray, min_rows: int, node: np.ndarray | None = None
) -> tuple[RankTree, np.ndarray]:
    """A tree with ``min_rows`` of the rows ``counts`` (n,) in each leaf, and the node (n,) in which each row ends."""
    if node is None:
        node = find_leaves(tree, codes)
    pruned, new = prune(tree, np.bincount(node[counts], minlength=len(tree.feature)), min_rows)
    if len(pruned.feature) == len(tree.feature):
        return tree, node
    return pruned, find_leaves(pruned, codes, new[node])


# ---- The fitted leaves of all trees of a forest as one table.


def join_leaves(
    columns: Columns, trees: Sequence[TreeLeaves], back: TreeLeaves | None = None, epsilon: float = 0.0
) -> Leaves:
    """Leaves of a forest of equally weighted trees, the background ``back`` last with weight ``epsilon``."""
    parts = [*trees] if back is None else [*trees, back]
    share = (1.0 - epsilon if back is not None else 1.0) / len(trees)
    weights = [share * t.rows / t.rows.sum() for t in trees] + ([] if back is None else [np.array([epsilon])])
    with np.errstate(divide="ignore"):
        log_weight = np.log(np.concatenate(weights))
    fields = ("family", "a", "b", "lo", "hi", "atom_mass", "level_mass", "missing_rate")
    table = {field: [getattr(p, field) for p in parts] for field in fields}
    table["a"] = [a.copy() for a in table["a"]]
    pieces = stacked_pieces([p.pieces or no_pieces() for p in parts], table["family"], table["a"])
    return make_leaves(
        columns,
        ParameterTables(
            tree=np.repeat(np.arange(len(parts)), [len(p.rows) for p in parts]),
            log_weight=log_weight,
            **{name: np.concatenate(of) for name, of in table.items()},
            wide=stacked([p.wide for p in parts]),
            pieces=pieces,
        ),
    )


TARGET = Settings(leaf="normal", bounds="no", smoothing=0.0, spread_rows=1e-6)
"""Classes are not smoothed and means are the rows' own, so that on complete rows a tree's conditional is its own
prediction (Correia et al. 2020, Theorem 1); leaves of a single row take the spread of the others."""

_Box = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Lower and upper sides, and levels allowed, of the leaves of a tree: see `models.box_forest.structure`."""


def learn_densities(
    schema: Schema,
    columns: Columns,
    table: Table,
    assigned: AssignedRows,
    settings: Settings,
    epsilon: float,
    target: Settings | None = None,
    quantile: np.ndarray | None = None,
) -> Forest:
    """The forest with leaf densities estimated on the rows in them; slots ``quantile`` (p,) have quantile leaves."""
    fitted = fit_trees(columns, table, assigned, settings, target, quantile)
    return as_forest(schema, columns, table, assigned.trees, fitted, epsilon)


def fit_trees(
    columns: Columns,
    table: Table,
    assigned: AssignedRows,
    settings: Settings,
    target: Settings | None = None,
    quantile: np.ndarray | None = None,
) -> list[TreeLeaves]:
    """The leaves of each tree, not yet a forest; parameters as of `learn_densities`."""
    trees, weight = assigned.trees, assigned.weight
    first = first_leaves(trees)
    modelled = quantile_leaves(columns, settings, quantile, target is not None)

    def one(t: int) -> TreeLeaves:
        box = tree_boxes(trees, columns, t)
        rows, start = rows_in_leaves(assigned, first, t)
        return fit_rows(columns, table, rows, start, weight[t], box, settings, target)

    fitted = list(map_ordered(one, [(t,) for t in range(len(trees.root))], "fitting leaves"))
    if not modelled.any():
        return fitted
    return quantile_trees(columns, table, assigned, fitted, modelled, settings.quantile_epsilon)


def quantile_trees(
    columns: Columns,
    table: Table,
    assigned: AssignedRows,
    fitted: Sequence[TreeLeaves],
    slots: np.ndarray,
    epsilon: float,
) -> list[TreeLeaves]:
    """Fitted trees, with quantile leaves of some numeric slots, bool (p,); they stay as they are."""
    cdfs = tree_cdfs(columns, table, assigned, slots, epsilon)
    return [with_cdfs(leaves, of_tree) for leaves, of_tree in zip(fitted, cdfs, strict=True)]


def tree_cdfs(
    columns: Columns, table: Table, assigned: AssignedRows, slots: np.ndarray, epsilon: float
) -> list[dict[int, LeafCdfs]]:
    """CDFs of the leaves of each tree in some numeric slots, bool (p,), by slot."""
    first, pairs = first_leaves(assigned.trees), slots_and_columns(columns, slots)

    def one(t: int) -> dict[int, LeafCdfs]:
        rows, start = rows_in_leaves(assigned, first, t)
        lo, hi, _ = tree_boxes(assigned.trees, columns, t)

        def of_slot(slot: int, j: int) -> LeafCdfs:
            values = values_of_rows(table.values[j], table.codes[j], rows, start, assigned.weight[t])
            return leaf_cdfs(columns, table, slot, values, (lo, hi), epsilon)

        return dict(zip((slot for slot, _ in pairs), map_ordered(of_slot, pairs), strict=True))

    return list(map_ordered(one, [(t,) for t in range(len(assigned.trees.root))], "fitting leaves"))


def slots_and_columns(columns: Columns, modelled: np.ndarray) -> list[tuple[int, int]]:
    """Slots among the ``modelled`` ones, bool (p,), and the number of the column of each."""
    numbers = np.flatnonzero(columns.is_categorical == 0)
    return [(int(columns.slot[j]), int(j)) for j in numbers if modelled[columns.slot[j]]]


def quantile_leaves(columns: Columns, settings: Settings, quantile: np.ndarray | None, has_target: bool) -> np.ndarray:
    """Numeric slots with quantile leaves, bool (p,): those that are given, or all or none by the settings."""
    modelled = np.full(len(columns.step), settings.leaf == "quantile") if quantile is None else quantile.copy()
    if has_target and not columns.is_categorical[-1]:
        modelled[columns.slot[-1]] = False  # it has its own distribution
    return modelled


def fit_rows(
    columns: Columns,
    table: Table,
    rows: np.ndarray,
    start: np.ndarray,
    weight: np.ndarray,
    box: _Box,
    settings: Settings,
    target: Settings | None,
) -> TreeLeaves:
    """`fit_leaves` of the leaves of a box each, whose rows are ``rows[start[k]:start[k + 1]]`` and count ``weight``."""
    cells = table.values, table.codes
    sums = leaf_sums(columns, cells, table.spread, rows, start, weight, drawn=table.drawn)
    return fit_leaves(columns, table, sums, box, settings, target)


def fit_leaves(
    columns: Columns, table: Table, sums: LeafSums, box: _Box, settings: Settings, target: Settings | None
) -> TreeLeaves:
    """Leaf densities of one tree by the settings, of the last column by those of the ``target``."""
    leaves, last = fit_tree(columns, table, sums, *box, settings), len(columns.slot) - 1
    if target is None:
        return leaves
    return _with_column(columns, leaves, fit_tree(columns, table, sums, *box, target, [last]), last)


def as_forest(
    schema: Schema, columns: Columns, table: Table, trees: Trees, fitted: Sequence[TreeLeaves], epsilon: float
) -> Forest:
    """The forest of fitted trees, with a background of weight ``epsilon``, 0 for none."""
    back = background(columns, table) if epsilon > 0 else None
    leaves = join_leaves(columns, fitted, back, epsilon)
    return Forest(schema, columns, trees if back is None else add_stump(trees), leaves, has_background=back is not None)


def _with_column(columns: Columns, leaves: TreeLeaves, other: TreeLeaves, j: int) -> TreeLeaves:
    """The leaves, with the distributions of column j from the other ones."""
    slot = columns.slot[j]
    leaves.missing_rate[:, j] = other.missing_rate[:, j]
    if columns.is_categorical[j]:
        where = layout(columns)
        if where.place[slot] < 0:
            t, n = -1 - where.place[slot], len(leaves.rows)
            wide = [apart(other.wide if k == t else leaves.wide, k) for k in range(len(where.slots))]
            return leaves._replace(wide=side_by_side(where, wide, n))
        at = narrow_at(columns, where, slot)
        leaves.level_mass[:, at] = other.level_mass[:, at]
        return leaves
    for field in ("family", "a", "b", "lo", "hi"):
        getattr(leaves, field)[:, slot] = getattr(other, field)[:, slot]
    at = columns.atoms_of(slot)
    leaves.atom_mass[:, at] = other.atom_mass[:, at]
    return leaves


# ---- Forests whose leaves are mixtures of products: the components of `learnspn`, fitted.


LearnComponents = Callable[[np.ndarray, np.ndarray, np.ndarray, int], Components]
"""Gives the components of the leaves of a tree.

Arguments: the rows sorted by leaf, the start of each leaf in them, the weights of rows, and the number of the tree.
"""


def learn_mixtures(
    schema: Schema,
    columns: Columns,
    table: Table,
    assigned: AssignedRows,
    settings: Settings,
    epsilon: float,
    target: Settings | None,
    components: LearnComponents,
) -> Forest:
    """Like `densities.learn_densities`, but each leaf is a mixture of products."""
    trees, weight, first = assigned.trees, assigned.weight, first_leaves(assigned.trees)

    def one(t: int) -> tuple[TreeLeaves, np.ndarray, np.ndarray]:
        rows, start = rows_in_leaves(assigned, first, t)
        box = tree_boxes(trees, columns, t)
        learned = components(rows, start, weight[t], t)
        leaves = fit_rows(columns, table, rows, start, weight[t], box, settings, target)
        lo, hi, allowed = (side[learned.group_leaf] for side in box)
        of_groups = learned.group_rows, learned.group_start
        groups = fit_rows(columns, table, *of_groups, weight[t], (lo, hi, allowed), settings, target)
        return _mixed_leaves(columns, leaves, groups, learned)

    parts = list(map_ordered(one, [(t,) for t in range(len(trees.root))], "fitting leaves"))
    leaf = np.concatenate([of + start for (_, of, _), start in zip(parts, first[:-1], strict=True)])
    mixed = mix_leaves(trees, leaf, np.concatenate([share for *_, share in parts]))
    return as_forest(schema, columns, table, mixed, [fitted for fitted, *_ in parts], epsilon)


def _mixed_leaves(
    columns: Columns, leaves: TreeLeaves, groups: TreeLeaves, learned: Components
) -> tuple[TreeLeaves, np.ndarray, np.ndarray]:
    """The components as new leaves, sorted by their old leaf; the old leaf of each; and its share of the old leaf."""
    # A leaf without components stays a single product of its own distributions.
    n_leaves, d = len(leaves.rows), len(columns.slot)
    plain = np.setdiff1d(np.arange(n_leaves), learned.leaf)
    leaf = np.concatenate([plain, learned.leaf])
    # Rows of the joined tables below, which contain the distributions of the leaves first, and then of the groups.
    row = np.concatenate([np.repeat(plain[:, None], d, axis=1), n_leaves + learned.group])
    order = np.argsort(leaf, kind="stable")
    leaf, row = leaf[order], row[order]
    share = np.concatenate([np.ones(len(plain)), np.exp(learned.log_weight)])[order]
    fields = {
        name: np.concatenate([getattr(of, name) for of in (leaves, groups)])
        for name in ("family", "a", "b", "lo", "hi")
    }
    atom_mass = np.concatenate([leaves.atom_mass, groups.atom_mass])
    level_mass = np.concatenate([leaves.level_mass, groups.level_mass])
    where, wide_of = layout(columns), stacked([leaves.wide, groups.wide])
    wide = {}
    new = {name: np.empty((len(leaf), field.shape[1]), field.dtype) for name, field in fields.items()}
    new_atoms, new_levels = (np.empty((len(leaf), field.shape[1])) for field in (atom_mass, level_mass))
    for j in range(d):
        slot, of = columns.slot[j], row[:, j]
        if not columns.is_categorical[j]:
            for name, field in fields.items():
                new[name][:, slot] = field[of, slot]
            atoms = columns.atoms_of(slot)
            new_atoms[:, atoms] = atom_mass[of, atoms]
        elif where.place[slot] >= 0:
            levels = narrow_at(columns, where, slot)
            new_levels[:, levels] = level_mass[of, levels]
        else:
            wide[-1 - where.place[slot]] = apart(wide_of, -1 - where.place[slot], of)
    fitted = TreeLeaves(
        rows=leaves.rows[leaf] * share,
        **new,  # type: ignore[arg-type] # arrays, none of them pieces
        atom_mass=new_atoms,
        level_mass=new_levels,
        missing_rate=leaves.missing_rate[leaf],
        wide=side_by_side(where, [wide[t] for t in range(len(where.slots))], len(leaf)),
    )
    return fitted, leaf, share
