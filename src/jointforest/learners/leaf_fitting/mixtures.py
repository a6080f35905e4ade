"""Forests whose leaves are mixtures of products: fits the distributions of the components of `learnspn`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...data.schema import Columns, Schema
from ...models.box_forest.leaves.levels import apart, layout, side_by_side, stacked
from ...models.box_forest.structure import Forest, mix_leaves, tree_boxes
from ...runtime.threads import map_ordered
from .densities import AssignedRows, as_forest, first_leaves, fit_rows, rows_in_leaves
from .fit import Settings, Table, TreeLeaves, narrow_at
from .learnspn import Components

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
        return _mixed(columns, leaves, groups, learned)

    parts = list(map_ordered(one, [(t,) for t in range(len(trees.root))], "fitting leaves"))
    leaf = np.concatenate([of + start for (_, of, _), start in zip(parts, first[:-1], strict=True)])
    mixed = mix_leaves(trees, leaf, np.concatenate([share for *_, share in parts]))
    return as_forest(schema, columns, table, mixed, [fitted for fitted, *_ in parts], epsilon)


def _mixed(
    columns: Columns, leaves: TreeLeaves, groups: TreeLeaves, learned: Components
) -> tuple[TreeLeaves, np.ndarray, np.ndarray]:
    """The components as new leaves, sorted by their old leaf; the old leaf of each; and its share of the old leaf.

    Column j of a component takes its distribution from the rows of one group (`Components.group`). A leaf without
    components stays a single product of its own distributions.
    """
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
