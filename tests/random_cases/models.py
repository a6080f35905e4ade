"""Random small models and evidence, built field by field: nothing is learned, so that every corner can be met.

Numbers live near a column's `minimum` and `maximum`; parameters are mild, so that plain floats are accurate enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from jointforest.data.schema import CATEGORICAL_KINDS, KINDS, Column, Schema, kernel_columns
from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.table import (
    NORMAL,
    PIECES,
    STUDENT,
    UNIFORM,
    ParameterTables,
    Pieces,
    no_pieces,
    pieces_of,
)
from jointforest.models.box_forest.structure import Forest, Trees
from jointforest.models.box_forest.structure_kernels import MIXED

from .levels import split_levels

seeds = st.integers(0, 2**32 - 1)
"""Strategy over seeds."""


# ---------------------------------------------------------------------------------------------------------- columns


def random_column(rng: np.random.Generator, name: str, kind: str) -> Column:
    """A column with random grid, atoms and levels; most of its mass lies between `minimum` and `maximum`."""
    n_observed = int(rng.integers(5, 1000))
    if kind in CATEGORICAL_KINDS:
        n_levels = 2 if kind == "boolean" else int(rng.choice([1, 2, 3, 5, 70], p=[0.1, 0.2, 0.3, 0.3, 0.1]))
        levels = (False, True) if kind == "boolean" else tuple(f"level {k}" for k in range(n_levels))
        return Column(name, kind, "bool" if kind == "boolean" else "str", levels=levels, n_observed=n_observed)
    if kind == "datetime":
        step, origin, middle, spread = 86400.0, 1.7e9, 86400.0 * 20, 86400.0 * 3
    elif kind == "integer":
        step, origin, middle, spread = 1.0, 0.0, float(rng.integers(-5, 50)), float(rng.uniform(0.5, 4))
    elif kind == "rounded":
        step = float(rng.choice([0.1, 0.25, 0.01, 20.0]))
        origin = float(rng.choice([0.0, 0.05]))
        middle, spread = step * float(rng.integers(-20, 20)), step * float(rng.uniform(0.5, 5))
    else:
        step, origin, middle, spread = 0.0, 0.0, float(rng.normal(0, 3)), float(10 ** rng.uniform(-1, 1))
    column = Column(
        name,
        kind,
        "datetime64[ns]" if kind == "datetime" else "int64" if kind == "integer" else "float64",
        step=step,
        origin=origin,
        minimum=middle - 3 * spread,
        maximum=middle + 3 * spread,
        n_observed=n_observed,
    )
    n_atoms = {"mixed": int(rng.integers(1, 4)), "integer": int(rng.integers(0, 3)), "rounded": int(rng.integers(0, 2))}
    atoms = sorted({random_number(rng, column) for _ in range(n_atoms.get(kind, 0))})
    return Column(**{**vars(column), "atoms": tuple(atoms)})


def cell_centre(column: Column, k: int) -> float:
    """Centre of cell k of a grid."""
    return column.center + k * column.step


def cell_edge(column: Column, k: int) -> float:
    """Upper edge of cell k of a grid."""
    return column.center + (k + 0.5) * column.step


def cell_number(column: Column, x: float) -> int:
    """Number of the cell of a grid that x is nearest to the centre of."""
    return round((x - column.center) / column.step)


def random_number(rng: np.random.Generator, column: Column) -> float:
    """A plausible value of a numeric column: often an atom, a cell's centre if there is a grid."""
    if column.atoms and rng.random() < 0.4:
        return float(rng.choice(column.atoms))
    x = float(rng.uniform(column.minimum, column.maximum))
    return x if column.step == 0.0 else cell_centre(column, cell_number(column, x))


def random_cut(rng: np.random.Generator, column: Column) -> float:
    """A plausible threshold or bound: a cell edge if there is a grid; in mixed columns sometimes an atom itself."""
    x = random_number(rng, column) if column.kind == "mixed" else float(rng.uniform(column.minimum, column.maximum))
    return x if column.step == 0.0 else cell_edge(column, cell_number(column, x))


# ------------------------------------------------------------------------------------------------------------ trees


@dataclass
class Box:
    """Bounds (lo, hi] of numeric columns and the levels allowed of categorical ones, by column number."""

    bounds: dict[int, tuple[float, float]]
    levels: dict[int, list[int]]

    def with_bounds(self, j: int, lo: float, hi: float) -> Box:
        return Box({**self.bounds, j: (lo, hi)}, self.levels)

    def with_levels(self, j: int, levels: list[int]) -> Box:
        return Box(self.bounds, {**self.levels, j: levels})


@dataclass
class Nodes:
    """The node table while it grows."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    levels_at: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    boxes: dict[int, Box] = field(default_factory=dict)  # of the leaves, by node

    def add(self, weight: float) -> int:
        self.feature.append(-1)
        self.threshold.append(0.0)
        self.levels_at.append(-1)
        self.left.append(-1)
        self.right.append(-1)
        self.weight.append(weight)
        return len(self.feature) - 1


def whole_space(schema: Schema) -> Box:
    """The box of a root."""
    numeric = {j: (-math.inf, math.inf) for j, c in enumerate(schema.columns) if not c.is_categorical}
    return Box(numeric, {j: list(range(len(c.levels))) for j, c in enumerate(schema.columns) if c.is_categorical})


def grow(
    rng: np.random.Generator, schema: Schema, nodes: Nodes, box: Box, depth: int, weight: float, mixed: float
) -> int:
    """Add a random subtree over a box, the share ``mixed`` of whose inner nodes has no split; returns its top node."""
    node = nodes.add(weight)
    split = random_split(rng, schema, nodes, node, box) if depth > 0 and rng.random() < 0.9 else None
    if split is not None and mixed > 0.0 and rng.random() < mixed:
        nodes.feature[node], nodes.threshold[node], nodes.levels_at[node] = MIXED, 0.0, -1
        split = box, box
    if split is None:
        nodes.boxes[node] = box
    else:
        share = float(rng.uniform(0.1, 0.9))
        nodes.left[node] = grow(rng, schema, nodes, split[0], depth - 1, weight * share, mixed)
        nodes.right[node] = grow(rng, schema, nodes, split[1], depth - 1, weight * (1.0 - share), mixed)
    return node


def random_split(rng: np.random.Generator, schema: Schema, nodes: Nodes, node: int, box: Box) -> tuple[Box, Box] | None:
    """Make the node a random split that cuts its box; the two halves, or None if a few tries found no cut."""
    for j in rng.integers(0, len(schema.columns), size=5).tolist():
        column = schema.columns[j]
        if not column.is_categorical:
            lo, hi = box.bounds[j]
            cut = random_cut(rng, column)
            if lo < cut < hi:
                nodes.feature[node], nodes.threshold[node] = j, cut
                return box.with_bounds(j, lo, cut), box.with_bounds(j, cut, hi)
        elif len(box.levels[j]) > 1:
            left = random_half(rng, box.levels[j], column.is_ordered)
            right = [k for k in box.levels[j] if k not in left]
            # The bits of levels that cannot reach the node mean nothing: they are set at random.
            absent = [k for k in range(len(column.levels)) if k not in box.levels[j] and rng.random() < 0.5]
            nodes.feature[node], nodes.levels_at[node] = j, len(nodes.words)
            words = [0] * ((len(column.levels) + 63) // 64)
            for k in left + absent:
                words[k // 64] |= 1 << (k % 64)
            nodes.words.extend(words)
            return box.with_levels(j, left), box.with_levels(j, right)
    return None


def random_half(rng: np.random.Generator, levels: list[int], ordered: bool) -> list[int]:
    """Some of the levels, but neither none nor all; the first ones if they are ordered."""
    n = int(rng.integers(1, len(levels)))
    return levels[:n] if ordered else sorted(rng.choice(levels, size=n, replace=False).tolist())


# ----------------------------------------------------------------------------------------------------------- leaves


class LeafTable(NamedTuple):
    """What `make_leaves` takes, row by row."""

    family: np.ndarray
    a: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    atom_mass: np.ndarray
    level_mass: np.ndarray
    missing_rate: np.ndarray


def fill_leaf(rng: np.random.Generator, schema: Schema, table: LeafTable, leaf: int, box: Box, wide: bool) -> None:
    """Random parameters of one leaf; ``wide``: those of a background, which gives mass to everything."""
    layout = kernel_columns(schema)
    for j, column in enumerate(schema.columns):
        s = layout.slot[j]
        if column.is_categorical:
            at = layout.level_start[s]
            mass = rng.dirichlet(np.ones(len(box.levels[j])))
            if not wide and len(mass) > 2 and rng.random() < 0.3:
                mass[0] = 0.0  # a level that the box allows and the leaf has never seen
                mass /= mass.sum()
            table.level_mass[leaf, [at + k for k in box.levels[j]]] = mass
            continue
        lo, hi = box.bounds[j]
        middle, spread = (column.minimum + column.maximum) / 2, (column.maximum - column.minimum) / 6
        if wide:
            table.family[leaf, s], table.a[leaf, s], table.b[leaf, s] = STUDENT, middle, spread * rng.uniform(0.7, 1.5)
        else:
            family = int(rng.choice([NORMAL, UNIFORM, STUDENT], p=[0.55, 0.3, 0.15]))
            if family == UNIFORM or rng.random() < 0.3:
                lo, hi = finite_part(rng, column, lo, hi)
            table.family[leaf, s] = family
            if family != UNIFORM:
                near_lo, near_hi = max(lo, column.minimum), min(hi, column.maximum)
                table.a[leaf, s] = rng.uniform(min(near_lo, near_hi), max(near_lo, near_hi))
                table.b[leaf, s] = spread * rng.uniform(0.3, 2.0)
        table.lo[leaf, s], table.hi[leaf, s] = lo, hi
        atom_mass = table.atom_mass[leaf, layout.atom_start[s] : layout.atom_start[s + 1]]
        fill_atoms(rng, column, atom_mass, box.bounds[j], wide)
    table.missing_rate[leaf] = rng.uniform(0.0, 0.4, size=len(schema.columns))


def finite_part(rng: np.random.Generator, column: Column, lo: float, hi: float) -> tuple[float, float]:
    """A finite interval within (lo, hi], on cell edges if there is a grid."""
    spread = (column.maximum - column.minimum) / 6
    if math.isinf(lo):
        lo = (hi if math.isfinite(hi) else column.maximum) - spread * float(rng.uniform(1, 6)) - column.step
    if math.isinf(hi):
        hi = lo + spread * float(rng.uniform(1, 6)) + column.step
    if column.step == 0.0:
        return lo, hi
    first = math.ceil((lo - column.center) / column.step - 0.5 - 1e-6)
    last = math.floor((hi - column.center) / column.step - 0.5 + 1e-6)
    return cell_edge(column, first), cell_edge(column, max(last, first + 1))


def fill_atoms(
    rng: np.random.Generator, column: Column, mass: np.ndarray, bounds: tuple[float, float], wide: bool
) -> None:
    """Random masses of the atoms within the bounds: sometimes none, sometimes everything (not if ``wide``)."""
    inside = [k for k, value in enumerate(column.atoms) if bounds[0] < value <= bounds[1]]
    case = 1.0 if wide else rng.random()
    if not inside or case < 0.1:
        return
    if case < 0.25:
        mass[inside[0]] = 1.0
    else:
        mass[inside] = rng.dirichlet(np.ones(len(inside) + 1))[:-1]


def cut_in_pieces(rng: np.random.Generator, schema: Schema, table: LeafTable, n: int, share: float) -> Pieces:
    """Cut the densities of a share of the numbers of the first n leaves, in place; the pieces."""
    layout, found = kernel_columns(schema), []
    for leaf in range(n if share > 0.0 else 0):
        for j, column in enumerate(schema.columns):
            s = layout.slot[j]
            if column.is_categorical or rng.random() >= share:
                continue
            lo, hi = table.lo[leaf, s], table.hi[leaf, s]
            drawn = [random_cut(rng, column) for _ in range(int(rng.integers(2, 5)))]
            edges = [lo, *sorted({cut for cut in drawn if lo < cut < hi}), hi]
            ends = [end for end in pairwise(edges) if end[1] - end[0] > 0.5 * column.step]
            if len(ends) > 3 and rng.random() < 0.5:
                del ends[1]  # a gap
            if len(ends) < 2:
                continue
            weight = rng.dirichlet(np.ones(len(ends)))
            if len(ends) > 2 and rng.random() < 0.3:
                weight[1] = 0.0
                weight /= weight.sum()
            table.family[leaf, s], table.a[leaf, s], table.b[leaf, s] = PIECES, len(found), len(ends)
            table.lo[leaf, s], table.hi[leaf, s] = ends[0][0], ends[-1][1]
            spread = (column.maximum - column.minimum) / 6
            for (u, v), w in zip(ends, weight.tolist(), strict=True):
                is_uniform = rng.random() < 0.5 and math.isfinite(v - u)
                family = UNIFORM if is_uniform else int(rng.choice([NORMAL, STUDENT]))
                near = sorted((max(u, column.minimum), min(v, column.maximum)))
                a = 0.0 if is_uniform else float(rng.uniform(*near))
                found.append((family, a, 0.0 if is_uniform else spread * rng.uniform(0.5, 2.0), u, v, w))
    if not found:
        return no_pieces()
    family, *numbers, weights = (np.array(field) for field in zip(*found, strict=True))
    with np.errstate(divide="ignore"):
        return pieces_of(family.astype(np.uint8), *numbers, np.log(weights))


# ----------------------------------------------------------------------------------------------------------- models


def random_schema(rng: np.random.Generator, kinds: tuple[str, ...]) -> Schema:
    """Columns of these kinds, named ``c0``, ``c1``, ..."""
    return Schema(tuple(random_column(rng, f"c{j}", kind) for j, kind in enumerate(kinds)), "pandas")


def random_model(
    seed: int,
    n_trees: int = 3,
    max_depth: int = 3,
    background: bool = True,
    kinds: tuple[str, ...] = KINDS,
    epsilon: float | None = None,
    mixed: float | None = None,
) -> Forest:
    """A random model over columns of the given kinds; the background is one more tree of weight epsilon.

    ``mixed`` is the share of inner nodes without a split, and of numbers whose density is cut in pieces: None for some
    in two models of three.
    """
    if mixed is None:
        mixed = 0.3 * (seed % 3 > 0)
    rng = np.random.default_rng(seed)
    schema = random_schema(rng, kinds)
    if epsilon is None:
        epsilon = float(rng.choice([1e-3, 0.05, 0.3]))
    share = rng.dirichlet(np.full(n_trees, 5.0)) * (1.0 - epsilon if background else 1.0)
    nodes, roots, leaf_nodes = Nodes(), [], []
    for t in range(n_trees + background):
        depth = max_depth if t < n_trees else 0
        before = len(nodes.feature)
        roots.append(grow(rng, schema, nodes, whole_space(schema), depth, 1.0, mixed))
        mine = [node for node in range(before, len(nodes.feature)) if node in nodes.boxes]
        leaf_nodes += [(node, t) for node in rng.permutation(mine).tolist()]  # any order within a tree is allowed
    share = np.append(share, epsilon) if background else share
    return finish_model(rng, schema, nodes, roots, leaf_nodes, share, background, mixed)


def finish_model(
    rng: np.random.Generator,
    schema: Schema,
    nodes: Nodes,
    roots: list[int],
    leaf_nodes: list[tuple[int, int]],
    share: np.ndarray,
    background: bool,
    mixed: float,
) -> Forest:
    """Fill the leaves with random parameters and put the arrays together."""
    layout = kernel_columns(schema)
    n, p = len(leaf_nodes), len(layout.step)
    table = LeafTable(
        family=np.zeros((n, p), dtype=np.uint8),
        a=np.zeros((n, p)),
        b=np.zeros((n, p)),
        lo=np.zeros((n, p)),
        hi=np.zeros((n, p)),
        atom_mass=np.zeros((n, len(layout.atom_value))),
        level_mass=np.zeros((n, layout.level_start[-1])),
        missing_rate=np.zeros((n, len(schema.columns))),
    )
    number = np.full(len(nodes.feature), -1, dtype=np.int32)
    for leaf, (node, t) in enumerate(leaf_nodes):
        number[node] = leaf
        fill_leaf(rng, schema, table, leaf, nodes.boxes[node], wide=background and t == len(roots) - 1)
    pieces = cut_in_pieces(np.random.default_rng(len(number)), schema, table, n - background, 0.6 * mixed)
    trees = Trees(
        feature=np.array(nodes.feature, dtype=np.int32),
        threshold=np.array(nodes.threshold, dtype=np.float64),
        levels_at=np.array(nodes.levels_at, dtype=np.int32),
        left_levels=np.array(nodes.words, dtype=np.uint64),
        left=np.array(nodes.left, dtype=np.int32),
        right=np.array(nodes.right, dtype=np.int32),
        leaf=number,
        weight=np.array(nodes.weight, dtype=np.float64),
        root=np.array(roots, dtype=np.int32),
    )
    tree = [t for _, t in leaf_nodes]
    log_weight = np.log([share[t] * nodes.weight[node] for node, t in leaf_nodes])
    narrow, wide = split_levels(rng.spawn(1)[0], layout, table.level_mass)
    leaves = make_leaves(
        layout,
        ParameterTables(np.array(tree), log_weight, *table._replace(level_mass=narrow), wide=wide, pieces=pieces),
    )
    return Forest(schema, layout, trees, leaves, background)
