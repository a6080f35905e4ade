"""Several forests over one schema as one forest: their weighted sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .leaves.derived import make_leaves
from .leaves.levels import layout, stacked, take_levels
from .leaves.table import ParameterTables, stacked_pieces, taken_pieces
from .structure import Forest, Trees, add_stump, mix_leaves


def merge(forests: Sequence[Forest], log_weight: np.ndarray) -> Forest:
    """The forest of all trees, with P(x) = sum_i exp(log_weight[i]) P_i(x), exact."""
    # Backgrounds become one: a tree without splits that mixes them.
    own = [len(forest.leaves.log_weight) - forest.n_background for forest in forests]
    ends = [slice(n, len(forest.leaves.log_weight)) for forest, n in zip(forests, own, strict=True)]
    taken = [
        *zip(forests, [slice(0, n) for n in own], log_weight, strict=True),
        *zip(forests, ends, log_weight, strict=True),
    ]
    of_leaf = np.concatenate([forest.leaves.log_weight[leaf] + weight for forest, leaf, weight in taken])
    of_leaf -= np.logaddexp.reduce(of_leaf)
    trees, n_own = _stacked([_without_background(forest) for forest in forests]), sum(own)
    n_trees = len(trees.root)
    tree = np.repeat(np.arange(n_trees), np.diff(np.append(_first_leaves(trees), n_own)))
    if len(of_leaf) > n_own:
        share = np.exp(of_leaf[n_own:] - np.logaddexp.reduce(of_leaf[n_own:]))
        leaf = np.minimum(np.arange(len(of_leaf)), n_own)
        trees = mix_leaves(add_stump(trees), leaf, np.concatenate([np.ones(n_own), share]))
        tree = np.append(tree, np.full(len(share), n_trees))
    fields = ("family", "a", "b", "lo", "hi", "atom_mass", "level_mass", "missing_rate")
    table = {name: [getattr(forest.leaves, name)[leaf].copy() for forest, leaf, _ in taken] for name in fields}
    own_pieces = [
        taken_pieces(forest.leaves.pieces, *of)
        for (forest, *_), *of in zip(taken, table["family"], table["a"], table["b"], strict=True)
    ]
    pieces = stacked_pieces(own_pieces, table["family"], table["a"])
    wide = stacked([forest.leaves.wide for forest in forests])
    before = np.cumsum([0] + [len(forest.leaves.tree) for forest in forests[:-1]])
    rows = [
        np.arange(len(forest.leaves.tree))[leaf] + at
        for (forest, leaf, _), at in zip(taken, [*before, *before], strict=True)
    ]
    return Forest(
        schema=forests[0].schema,
        columns=forests[0].columns,
        trees=trees,
        leaves=make_leaves(
            forests[0].columns,
            ParameterTables(
                tree=tree,
                log_weight=of_leaf,
                **{name: np.concatenate(parts) for name, parts in table.items()},
                wide=take_levels(layout(forests[0].columns), wide, np.concatenate(rows)),
                pieces=pieces,
            ),
        ),
        has_background=len(of_leaf) > n_own,
    )


def _without_background(forest: Forest) -> Trees:
    """The node table less the background, which is its last tree."""
    if not forest.has_background:
        return forest.trees
    trees, end = forest.trees, int(forest.trees.root[-1])
    own = {name: field[:end] for name, field in trees._asdict().items() if name not in ("root", "left_levels")}
    return trees._replace(**own, root=trees.root[:-1])


def _stacked(parts: list[Trees]) -> Trees:
    """The trees of all node tables, numbered through."""

    def through(name: str, counted: str) -> np.ndarray:
        """A field of numbers, each table's behind those of the tables before; -1 stays."""
        fields, before = [], 0
        for trees in parts:
            field = getattr(trees, name)
            fields.append(np.where(field >= 0, field + before, -1).astype(np.int32))
            before += int(trees.leaf.max()) + 1 if counted == "leaf" else len(getattr(trees, counted))
        return np.concatenate(fields)

    def plain(name: str) -> np.ndarray:
        return np.concatenate([getattr(trees, name) for trees in parts])

    return Trees(
        feature=plain("feature"),
        threshold=plain("threshold"),
        levels_at=through("levels_at", "left_levels"),
        left_levels=plain("left_levels"),
        left=through("left", "feature"),
        right=through("right", "feature"),
        leaf=through("leaf", "leaf"),
        weight=plain("weight"),
        root=through("root", "feature"),
    )


def _first_leaves(trees: Trees) -> np.ndarray:
    """Number of the first leaf of each tree; a tree's nodes, and its leaves, are contiguous."""
    number = np.where(trees.leaf >= 0, trees.leaf, np.iinfo(np.int32).max)
    return np.minimum.reduceat(number, trees.root)
