"""A forest as named arrays, and back: what a model file holds of it, every field checked."""

# Kernels do not check bounds. Everything is checked with whole-array operations, in an order in which each check may
# rely on the ones before.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data.schema import Columns, Schema, kernel_columns
from ...runtime.arrays import FINITE, Field, check_arrays, need_all, ranges
from ...runtime.parameters import need
from .leaves.derived import make_leaves
from .leaves.family_kernels import MODULES, NO_SCALE
from .leaves.level_kernels import fill_wide
from .leaves.levels import WideLevels, layout, words_of
from .leaves.table import PIECES, Leaves, ParameterTables, no_pieces
from .structure import Forest, Trees, tree_boxes
from .structure_kernels import MIXED

# ---- Whether a node table is a forest: each node reached once, from one root, and every split within its column.

_TOLERANCE = 1e-6
"""By how much a sum of weights or masses may differ from 1, or the weights of two children from their parent's."""

TREE_FIELDS = {
    "feature": Field("i4", "N", MIXED),
    "threshold": Field("f8", "N", -np.inf),
    "levels_at": Field("i4", "N", -1),
    "left_levels": Field("u8", "W"),
    "left": Field("i4", "N"),
    "right": Field("i4", "N"),
    "leaf": Field("i4", "N"),
    "weight": Field("f8", "N", 0.0, 1.0 + _TOLERANCE),
    "root": Field("i4", "T", 0),
}
"""The fields of `Trees`."""


def check_trees(columns: Columns, trees: Trees, has_background: bool) -> None:
    """Check every array of the node table, under columns that were checked before."""
    sizes = check_arrays("trees.", trees._asdict(), TREE_FIELDS)
    need(0 < sizes["N"] < 2**31 and sizes["T"] > 0, "trees: expected at least one node and one root")

    feature = trees.feature
    need_all("trees.feature", feature < len(columns.slot), feature, "a column's number, -1 or -2")
    is_leaf = feature == -1
    check_links(trees, is_leaf)
    _check_splits(columns, trees)
    _check_weights(trees, is_leaf)
    need(
        not has_background or (feature[trees.root[-1] :] < 0).all(),
        "trees.root: the background (the last tree) must have no splits",
    )


def check_links(trees: Any, is_leaf: np.ndarray) -> None:
    """Check the fields left, right, root and leaf of any table of nodes."""
    n = len(is_leaf)
    number = np.arange(n)
    for name, child in (("left", trees.left), ("right", trees.right)):
        below = (child > number) & (child < n)
        need_all(f"trees.{name}", np.where(is_leaf, child == -1, below), child, "a later node, or -1 at a leaf")
    need_all("trees.root", trees.root < n, trees.root, "a node's number")
    # children come after their parent, so there is no cycle; reached once each, the nodes form disjoint trees
    inner = ~is_leaf
    reached = np.bincount(np.concatenate([trees.left[inner], trees.right[inner], trees.root]), minlength=n)
    if not (reached == 1).all():
        node = int(np.argmax(reached != 1))
        raise ValueError(f"trees: node {node} is reached {reached[node]} times, expected once")
    rises = np.diff(trees.root, prepend=-1) > 0
    need_all("trees.root", rises, trees.root, "the number of a node behind the tree before")
    end = np.append(trees.root[1:], n)[np.searchsorted(trees.root, number, side="right") - 1]
    for name, child in (("left", trees.left), ("right", trees.right)):
        need_all(f"trees.{name}", child < end, child, "a node of the same tree, whose nodes are side by side")
    n_leaves = int(is_leaf.sum())
    within = (trees.leaf >= 0) & (trees.leaf < n_leaves)
    need_all("trees.leaf", np.where(is_leaf, within, trees.leaf == -1), trees.leaf, "a leaf's number, or -1")
    counts = np.bincount(trees.leaf[is_leaf], minlength=n_leaves)
    need((counts == 1).all(), "trees.leaf: a leaf's number is there twice")


def _check_splits(columns: Columns, trees: Trees) -> None:
    is_split = trees.feature >= 0
    feature = np.where(is_split, trees.feature, 0)
    by_levels = is_split & (columns.is_categorical[feature] == 1)
    threshold = trees.threshold
    need_all("trees.threshold", (is_split & ~by_levels) | (threshold == 0), threshold, "0 where no number is split")
    first = trees.levels_at
    need_all("trees.levels_at", np.where(by_levels, first >= 0, first == -1), first, "-1 unless levels are split")

    node = np.flatnonzero(by_levels)
    if not len(node):
        return
    n_levels = np.diff(columns.level_start)[columns.slot[feature[node]]].astype(np.int64)
    last = first[node].astype(np.int64) + (n_levels + 63) // 64 - 1
    fits = last < len(trees.left_levels)
    need_all("trees.levels_at of split", fits, first[node], "a set of levels within trees.left_levels")
    last_bit = ((n_levels - 1) % 64).astype(np.uint64)
    # two shifts, because one by 64 bits is undefined
    beyond = (trees.left_levels[last] >> last_bit) >> np.uint64(1)
    need_all("trees.left_levels of split", beyond == 0, beyond, "no bits beyond the column's levels")


def _check_weights(trees: Trees, is_leaf: np.ndarray) -> None:
    weight = trees.weight
    at_roots = weight[trees.root]
    need_all("trees.weight of root", np.abs(at_roots - 1) <= _TOLERANCE, at_roots, "1")
    node = np.flatnonzero(~is_leaf)
    parts = weight[trees.left[node]] + weight[trees.right[node]]
    need_all("trees.weight of split", np.abs(weight[node] - parts) <= _TOLERANCE, parts, "the sum of its children's")


# ---- Whether the level masses of columns of many levels are what `WideLevels` promises.

WIDE_FIELDS = {
    "share": Field("f8", "G W", 0.0, FINITE[1]),
    "share_row": Field("i4", "L w", 0),
    "scale": Field("f8", "L w", 0.0, FINITE[1]),
    "words": Field("u8", "B"),
    "set_at": Field("i4", "L w", 0),
    "own_start": Field("i8", "Lw+1", 0),
    "own_level": Field("i4", "E", 0),
    "own_mass": Field("f8", "E", 0.0, FINITE[1]),
}
"""The fields of `WideLevels` that are not derived from others."""

_ROWS = 1024
"""Leaves whose masses are checked at a time, which bounds memory."""


def check_wide(columns: Columns, wide: WideLevels, n_rows: int) -> None:
    """Check every field for itself, so that kernels may read them."""
    where = layout(columns)
    w = len(where.slots)
    sizes = {"L": n_rows, "w": w, "W": int(where.start[-1]), "Lw+1": n_rows * w + 1}
    check_arrays("leaves.wide.", wide._asdict(), WIDE_FIELDS, **sizes)
    need(np.array_equal(wide.place, where.place), "leaves.wide.place does not agree with the columns")
    need(np.array_equal(wide.start, where.start), "leaves.wide.start does not agree with the columns")
    number = wide.share_row
    need_all("leaves.wide.share_row", number < len(wide.share), number, "a row of leaves.wide.share")
    size = np.diff(where.start).astype(np.int64)
    fits = wide.set_at + words_of(size) <= len(wide.words)
    need_all("leaves.wide.set_at", fits, wide.set_at, "a set of levels within leaves.wide.words")
    beyond = (wide.words[wide.set_at + words_of(size) - 1] >> ((size - 1) % 64).astype(np.uint64)) >> np.uint64(1)
    need_all("leaves.wide.words of set", beyond == 0, beyond, "no bits beyond the column's levels")
    _check_lists(wide, size, n_rows)


def _check_lists(wide: WideLevels, size: np.ndarray, n_rows: int) -> None:
    """Each row's list of levels lies in the arrays, and rises."""
    start, level = wide.own_start, wide.own_level
    need(start[0] == 0 and start[-1] == len(level), "leaves.wide.own_start: expected 0 first, the lists' end last")
    need_all("leaves.wide.own_start", start <= len(level), start, "a place in the lists")
    need_all("leaves.wide.own_start", np.diff(start, prepend=0) >= 0, start, "a place not before the one before it")
    of = np.repeat(np.tile(size, n_rows), np.diff(start))
    need_all("leaves.wide.own_level", level < of, level, "a level of the column")
    rises = np.diff(level, prepend=-1) > 0
    rises[start[:-1][start[:-1] < len(level)]] = True  # where a list begins
    need_all("leaves.wide.own_level", rises, level, "levels that rise within a list")


def check_wide_masses(columns: Columns, trees: Trees, wide: WideLevels) -> None:
    """Check that the masses of leaves sum to 1 and are 0 outside the leaves' boxes."""
    # Needs trees, and fields of ``wide``, that were checked before.
    where = layout(columns)
    if not len(where.slots):
        return
    first = np.minimum.reduceat(np.where(trees.leaf >= 0, trees.leaf, len(trees.leaf)), trees.root)
    for t in range(len(trees.root)):
        allowed = tree_boxes(trees, columns, t)[2]
        for at in range(0, len(allowed), _ROWS):
            rows = first[t] + np.arange(at, min(at + _ROWS, len(allowed)))
            for k, slot in enumerate(where.slots.tolist()):
                levels = columns.levels_of(slot)
                _check_rows(wide, k, slot, rows, allowed[rows - first[t], levels])


def _check_rows(wide: WideLevels, k: int, slot: int, rows: np.ndarray, allowed: np.ndarray) -> None:
    mass = np.zeros(allowed.shape)
    fill_wide(wide, k, rows, mass)
    outside = (mass != 0) & ~allowed
    if outside.any():
        row, level = np.argwhere(outside)[0]
        raise ValueError(
            f"leaves.wide of categorical slot {slot}, row {rows[row]}: level {level} has mass {mass[row, level]}, "
            "expected 0 outside the leaf's box"
        )
    total = mass.sum(axis=1)
    off = ~(np.abs(total - 1) <= _TOLERANCE)
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"leaves.wide of categorical slot {slot}, row {rows[row]}: masses sum to {total[row]:.9g}, expected 1"
        )


_MOST_CELLS = 2.0**52
"""Number of cells from 0 beyond which neighbouring cells are equal as floats."""

_LEAST_SCALE = 1e-100
"""Least scale of a density on a grid, in steps: squares of the ratio must not overflow."""

LEAF_FIELDS = {
    "tree": Field("i4", "L"),
    "log_weight": Field("f8", "L", -np.inf, _TOLERANCE),
    "family": Field("u1", "L p"),
    "a": Field("f8", "L p", *FINITE),
    "b": Field("f8", "L p", *FINITE),
    "lo": Field("f8", "L p", -np.inf),
    "hi": Field("f8", "L p", -np.inf),
    "atom_mass": Field("f8", "L A", 0.0),
    "level_mass": Field("f8", "L S'", 0.0),
    "missing_rate": Field("f8", "L d", 0.0, 1.0),
}
"""The fields of `Leaves` that are not derived from others."""

DERIVED_FIELDS = {
    "log_norm": Field("f8", "L p", *FINITE),  # the support has mass
    "log_rest": Field("f8", "L p", -np.inf, _TOLERANCE),
    "log_level": Field("f8", "L S'", -np.inf, _TOLERANCE),
}
"""The derived fields of `Leaves`."""

PIECE_FIELDS = {
    "family": Field("u1", "P 1"),
    "a": Field("f8", "P 1", *FINITE),
    "b": Field("f8", "P 1", *FINITE),
    "lo": Field("f8", "P 1", -np.inf),
    "hi": Field("f8", "P 1", -np.inf),
    "log_weight": Field("f8", "P", -np.inf, _TOLERANCE),
}
"""The fields of `Pieces` that are not derived from others."""


def check_forest(schema: Schema, columns: Columns, trees: Trees, leaves: Leaves, has_background: bool) -> None:
    """Raise ValueError, which names field and entry, unless the arrays satisfy `Columns`, `Trees` and `Leaves`."""
    check_columns(schema, columns)
    check_trees(columns, trees, has_background)
    check_leaves(columns, trees, leaves._asdict())
    check_derived(columns, leaves)


def check_columns(schema: Schema, columns: Columns) -> None:
    """Check that the kernels' columns are those of the schema."""
    for name, expected in kernel_columns(schema)._asdict().items():
        given = getattr(columns, name)
        need(
            isinstance(given, np.ndarray) and given.dtype == expected.dtype and np.array_equal(given, expected),
            f"columns.{name} does not agree with the schema",
        )


def check_leaves(columns: Columns, trees: Trees, fields: Mapping[str, Any]) -> None:
    """Check the fields of `Leaves` that are not derived, under columns and trees that were checked before."""
    n_leaves = int((trees.feature == -1).sum())
    check_arrays("leaves.", fields, LEAF_FIELDS, L=n_leaves, **_sizes(columns))
    _check_trees_of_leaves(trees, fields["tree"])
    total = float(np.exp(fields["log_weight"]).sum())
    need(abs(total - 1) <= _TOLERANCE, f"leaves.log_weight: the weights sum to {total:.9g}, expected 1")

    check_wide(columns, fields["wide"], n_leaves)
    lo, hi, allowed = _all_boxes(trees, columns)
    _check_supports(fields, lo, hi)
    _check_densities("leaves", columns.step, columns.origin, fields)
    _check_pieces(columns, fields)
    _check_atoms(columns, fields["atom_mass"], lo, hi)
    _check_levels(columns, fields["level_mass"], allowed)
    check_wide_masses(columns, trees, fields["wide"])


def check_derived(columns: Columns, leaves: Leaves) -> None:
    """Check the derived fields of `Leaves`: their shapes, and that no density has a norm that is 0 or not a number."""
    check_arrays("leaves.", leaves._asdict(), DERIVED_FIELDS, L=len(leaves.log_weight), **_sizes(columns))
    check_arrays("leaves.pieces.", leaves.pieces._asdict(), {"log_norm": Field("f8", "P 1", *FINITE)})


def _sizes(columns: Columns) -> dict[str, int]:
    sizes = {"d": len(columns.slot), "p": len(columns.step), "A": len(columns.atom_value)}
    return sizes | {"S'": len(layout(columns).narrow)}


def _check_trees_of_leaves(trees: Trees, tree: np.ndarray) -> None:
    """Each leaf names the tree that it hangs in, and the leaves of a tree are contiguous."""
    is_leaf = trees.feature == -1
    root = np.arange(len(trees.feature))
    inner = np.flatnonzero(~is_leaf)
    root[trees.left[inner]] = root[trees.right[inner]] = inner
    # a parent's number is smaller than its children's, so jumping up doubles its reach until all are at a root
    while not np.array_equal(up := root[root], root):
        root = up
    tree_of_root = np.full(len(root), -1, dtype=np.int64)
    tree_of_root[trees.root] = np.arange(len(trees.root))
    expected = np.empty(np.count_nonzero(is_leaf), dtype=np.int64)
    expected[trees.leaf[is_leaf]] = tree_of_root[root[is_leaf]]
    need_all("leaves.tree", tree == expected, tree, "the number of the tree that the leaf hangs in")
    need(
        np.count_nonzero(np.diff(expected)) == len(trees.root) - 1,
        "leaves.tree: expected the leaves of each tree side by side",
    )


def _all_boxes(trees: Trees, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`leaf_boxes`, tree by tree, and of the levels those of columns of few alone."""
    narrow = layout(columns).narrow
    n_leaves = int((trees.leaf >= 0).sum())
    lo, hi = np.empty((n_leaves, len(columns.step))), np.empty((n_leaves, len(columns.step)))
    allowed = np.empty((n_leaves, len(narrow)), bool)
    for t in range(len(trees.root)):
        stop = trees.root[t + 1] if t + 1 < len(trees.root) else len(trees.leaf)
        leaves = trees.leaf[trees.root[t] : stop]
        first, of_tree = int(leaves[leaves >= 0].min()), tree_boxes(trees, columns, t)
        at = slice(first, first + len(of_tree[0]))
        lo[at], hi[at], allowed[at] = of_tree[0], of_tree[1], of_tree[2][:, narrow]
    return lo, hi, allowed


def _check_supports(fields: Mapping[str, np.ndarray], lo: np.ndarray, hi: np.ndarray) -> None:
    left, right = fields["lo"], fields["hi"]
    need_all("leaves.lo", left < right, left, "a bound below leaves.hi")
    need_all("leaves.lo", left >= lo, left, "a bound inside the leaf's box")
    need_all("leaves.hi", right <= hi, right, "a bound inside the leaf's box")


def _check_pieces(columns: Columns, fields: Mapping[str, Any]) -> None:
    """The pieces of a slot are disjoint, ascend from end to end of its support, and have weights that sum to 1."""
    pieces, family = fields["pieces"], fields["family"]
    n = check_arrays("leaves.pieces.", pieces._asdict(), PIECE_FIELDS)["P"]
    cut = family == PIECES
    first, count = fields["a"][cut], fields["b"][cut]
    whole = (first == np.rint(first)) & (count == np.rint(count))
    need_all("leaves.a", whole & (first >= 0) & (first + count <= n), first, "the number of a piece")
    need_all("leaves.b", count >= 2, count, "two pieces at least")
    need(count.sum() == n, f"leaves.pieces: expected {count.sum():.0f}, all that leaves name, got {n}")
    first, count = first.astype(np.int64), count.astype(np.int64)
    number = ranges(first, count)
    used = np.bincount(number, minlength=n)
    need_all("leaves.pieces", used == 1, used, "a piece of one leaf")
    owner = np.empty(n, np.int64)
    owner[number] = np.repeat(np.arange(len(first)), count)
    total = np.bincount(owner, np.exp(pieces.log_weight), minlength=len(first))
    need_all("leaves.pieces.log_weight", np.abs(total - 1) <= _TOLERANCE, total, "weights that sum to 1")
    lo, hi = pieces.lo[:, 0], pieces.hi[:, 0]
    need_all("leaves.pieces.lo", lo < hi, lo, "a bound below leaves.pieces.hi")
    slot = np.nonzero(cut)[1]
    inner = np.ones(n, bool)
    inner[first] = False
    after = np.flatnonzero(inner)
    apart = lo[after] >= hi[after - 1] - 0.25 * columns.step[slot[owner[after]]]
    need_all("leaves.pieces.lo", apart, lo[after], "a bound at or above the end of the piece before")
    for name, ends, at in (("lo", lo[first], fields["lo"][cut]), ("hi", hi[first + count - 1], fields["hi"][cut])):
        need_all(f"leaves.{name}", ends == at, at, "the end of the slot's pieces")
    for s in range(len(columns.step)):
        mine = np.flatnonzero(slot[owner] == s)
        of_slot = {name: getattr(pieces, name)[mine] for name in ("family", "a", "b", "lo", "hi")}
        need_all("leaves.pieces.family", of_slot["family"] < len(MODULES), of_slot["family"], "a known family")
        _check_densities("leaves.pieces", columns.step[s : s + 1], columns.origin[s : s + 1], of_slot)


def _check_densities(table: str, step: np.ndarray, origin: np.ndarray, fields: Mapping[str, np.ndarray]) -> None:
    """Parameters of densities, in tables (n, p) of slots of these steps and origins (p,), but for slots in pieces."""
    family, b, right = fields["family"], fields["b"], fields["hi"]
    need_all(f"{table}.family", (family < len(MODULES)) | (family == PIECES), family, "a known family")
    no_scale = np.isin(family, NO_SCALE) | (family == PIECES)
    need_all(f"{table}.b", (b > 0) | no_scale, b, "a scale above 0")
    with np.errstate(over="ignore"):
        bounded = np.isfinite(right - fields["lo"])
    need_all(f"{table}.hi", bounded | ~np.isin(family, NO_SCALE), right, "a finite support of a uniform density")
    # supports end on cell edges, and neighbouring cells differ as floats there (else loops over cells never end)
    for s in np.flatnonzero(step > 0):
        for name in ("lo", "hi", "a"):
            value = fields[name][:, s]
            with np.errstate(over="ignore", invalid="ignore"):
                cells = (value - origin[s]) / step[s] + 0.5
                size = (np.abs(value) + abs(origin[s])) / step[s]
                on_edge = np.abs(cells - np.rint(cells)) <= _TOLERANCE + 1e-15 * size
            free = no_scale[:, s] if name == "a" else np.isinf(value)
            at = f"{table}.{name} of numeric slot {s}"
            need_all(at, (size <= _MOST_CELLS) | free, value, "a number that the grid can resolve")
            need_all(at, on_edge | free | (name == "a"), value, "an edge of a grid cell")
        scale = b[:, s]
        resolved = (scale > _LEAST_SCALE * step[s]) | no_scale[:, s]
        need_all(f"{table}.b of numeric slot {s}", resolved, scale, "a scale that does not vanish beside the step")


def _check_atoms(columns: Columns, mass: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> None:
    for s in np.flatnonzero(np.diff(columns.atom_start)).tolist():
        atoms = columns.atoms_of(s)
        total = mass[:, atoms].sum(axis=1)
        need_all(
            f"leaves.atom_mass of numeric slot {s}", total <= 1 + _TOLERANCE, total, "masses that sum to at most 1"
        )
        value = columns.atom_value[atoms]
        inside = (lo[:, s, None] < value) & (value <= hi[:, s, None])
        need_all("leaves.atom_mass", inside | (mass[:, atoms] == 0), mass[:, atoms], "0 outside the leaf's box")


def _check_levels(columns: Columns, mass: np.ndarray, allowed: np.ndarray) -> None:
    need_all("leaves.level_mass", allowed | (mass == 0), mass, "0 outside the leaf's box")
    place = layout(columns).place
    for s in np.flatnonzero(place >= 0).tolist():
        total = mass[:, int(place[s]) : int(place[s]) + columns.n_levels(s)].sum(axis=1)
        is_one = np.abs(total - 1) <= _TOLERANCE
        need_all(f"leaves.level_mass of categorical slot {s}", is_one, total, "masses that sum to 1")


# ---- To arrays, and from arrays.

NAMES = frozenset(
    {f"trees.{name}" for name in TREE_FIELDS}
    | {f"leaves.{name}" for name in LEAF_FIELDS}
    | {f"leaves.wide.{name}" for name in WIDE_FIELDS}
    | {f"leaves.pieces.{name}" for name in PIECE_FIELDS}
)
"""Names of a forest's arrays; what is derived from others is computed again."""


def forest_to_arrays(forest: Forest) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The metadata of a forest, and its arrays; a ValueError if the forest is broken."""
    check_forest(forest.schema, forest.columns, forest.trees, forest.leaves, forest.has_background)
    arrays = {f"trees.{name}": getattr(forest.trees, name) for name in TREE_FIELDS}
    arrays |= {f"leaves.{name}": getattr(forest.leaves, name) for name in LEAF_FIELDS}
    arrays |= {f"leaves.wide.{name}": getattr(forest.leaves.wide, name) for name in WIDE_FIELDS}
    arrays |= {f"leaves.pieces.{name}": getattr(forest.leaves.pieces, name) for name in PIECE_FIELDS}
    return {"kind": "forest", "has_background": bool(forest.has_background)}, arrays


def forest_from_arrays(schema: Schema, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Forest:
    """The forest, every field checked; a ValueError if one is not as it must be."""
    if set(about) != {"kind", "has_background"} or type(about["has_background"]) is not bool:
        raise ValueError("a forest's metadata are has_background, true or false")
    columns = kernel_columns(schema)
    trees = Trees(**{name: arrays[f"trees.{name}"] for name in TREE_FIELDS})
    where = layout(columns)
    wide = {name: arrays[f"leaves.wide.{name}"] for name in WIDE_FIELDS}
    fields: dict[str, Any] = {name: arrays[f"leaves.{name}"] for name in LEAF_FIELDS}
    fields["wide"] = WideLevels(place=where.place, start=where.start, **wide)
    fields["pieces"] = no_pieces()._replace(**{name: arrays[f"leaves.pieces.{name}"] for name in PIECE_FIELDS})
    # nothing may be computed from arrays before they are checked
    check_columns(schema, columns)
    check_trees(columns, trees, about["has_background"])
    check_leaves(columns, trees, fields)
    leaves = make_leaves(columns, ParameterTables(**fields))
    check_derived(columns, leaves)
    return Forest(schema, columns, trees, leaves, about["has_background"])
