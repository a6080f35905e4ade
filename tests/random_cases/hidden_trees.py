"""Random small hidden trees over columns of every kind, and random evidence about them."""

from __future__ import annotations

import numpy as np

from jointforest.data.discretization.discretizer import Scale
from jointforest.data.evidence import Evidence
from jointforest.data.schema import Column, Schema
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees, TreeTables

from ..data.discretization.random_scales import KINDS, atoms_of, random_scale
from .cells import Cell, Region, make_evidence
from .evidence import random_region, soft


def random_hidden(
    seed: int, d: int | None = None, dtype: type = np.float64, zeros: float = 0.15, kinds: tuple[str, ...] = KINDS
) -> HiddenTrees:
    """One to three trees of 1 to 4 states over 2 to 4 columns; a share of the tables' entries is 0."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5)) if d is None else d
    scales = tuple(random_scale(str(rng.choice(kinds)), rng) for _ in range(d))
    columns = tuple(column_of(rng, f"c{j}", scale) for j, scale in enumerate(scales))
    trees = tuple(random_tree(rng, scales, dtype, zeros) for _ in range(int(rng.integers(1, 4))))
    return HiddenTrees(Schema(columns, "pandas"), scales, trees, np.log(rng.dirichlet(np.ones(len(trees)))))


def random_plain(seed: int, alike: bool = True) -> HiddenTrees:
    """Two to five trees whose states are some of the codes of each column; of one structure where they are alike."""
    rng = np.random.default_rng(seed)
    base = random_hidden(seed)
    first = random_tree(rng, base.scales, np.float64, 0.1, missing_nodes=False)
    trees = []
    for _ in range(int(rng.integers(2, 6))):
        one = first if alike else random_tree(rng, base.scales, np.float64, 0.1, missing_nodes=False)
        codes = [np.sort(rng.choice(K, int(rng.integers(1, K + 1)), replace=False))
                 for K in (base.scales[j].n_codes for j in one.column.tolist())]  # fmt: skip
        above = [1 if p < 0 else len(codes[p]) for p in one.parent.tolist()]
        transition = tuple(random_table(rng, K, len(own), np.float64, 0.1)
                           for K, own in zip(above, codes, strict=True))  # fmt: skip
        emission = tuple(np.eye(base.scales[j].n_codes)[own] for j, own in zip(one.column.tolist(), codes, strict=True))
        blank = tuple(rng.uniform(0.0, 1.0, len(own)) for own in codes)
        trees.append(TreeTables(one.column, one.parent, transition, emission, blank))
    return HiddenTrees(base.schema, base.scales, tuple(trees), np.log(rng.dirichlet(np.ones(len(trees)))))


def column_of(rng: np.random.Generator, name: str, scale: Scale) -> Column:
    """A column that a scale may belong to."""
    if scale.step == 0.0 and (scale.rate == 0.0).all() and np.array_equal(scale.lo, np.arange(float(len(scale.lo)))):
        return Column(name, "categorical", "str", levels=tuple(f"level {k}" for k in range(len(scale.lo))))
    ends = np.concatenate([scale.lo, scale.hi])
    ends = ends[np.isfinite(ends)]
    low, high = float(ends.min()) - 1.0, float(ends.max()) + 1.0
    if scale.step > 0.0:
        cells = rng.choice(12, 3, replace=False) - 4
        atoms = tuple(sorted((scale.origin + cells * scale.step).tolist())) if rng.random() < 0.5 else ()
        return Column(name, "rounded", "float64", scale.step, scale.origin, atoms, (), low, high, 100)
    atoms = atoms_of(scale)
    return Column(name, "mixed" if atoms else "continuous", "float64", 0.0, 0.0, atoms, (), low, high, 100)


def random_tree(
    rng: np.random.Generator, scales: tuple[Scale, ...], dtype: type, zeros: float, missing_nodes: bool = True
) -> TreeTables:
    """A tree over the columns in random order, each node below a random earlier one.

    In half of the trees one or two more nodes say whether cells of some columns are missing.
    """
    column = rng.permutation(len(scales)).astype(np.int32)
    parent = np.array([-1] + [int(rng.integers(k)) for k in range(1, len(scales))], np.int32)
    H = rng.integers(1, 5, len(scales))
    transition = [random_table(rng, 1 if k == 0 else H[parent[k]], H[k], dtype, zeros) for k in range(len(scales))]
    emission = [random_table(rng, H[k], scales[j].n_codes, dtype, zeros) for k, j in enumerate(column.tolist())]
    blank = [rng.uniform(0.0, 1.0, h).astype(dtype) for h in H]
    d, at = len(scales), np.empty(0, np.int32)
    if missing_nodes and rng.random() < 0.5:
        more = int(rng.integers(1, 3))
        above = [int(rng.integers(d + k)) for k in range(more)]
        H = np.concatenate([H, np.full(more, 2)])
        transition += [random_table(rng, H[k], 2, dtype, zeros) for k in above]
        emission += [np.empty((2, 0), dtype)] * more
        blank += [np.array([0.0, 1.0], dtype)] * more
        column, parent = np.append(column, [-1] * more).astype(np.int32), np.append(parent, above).astype(np.int32)
        at = np.where(rng.random(d) < 0.5, np.arange(d), d + rng.integers(0, more, d)).astype(np.int32)
        at = np.append(at, np.arange(d, d + more)).astype(np.int32)
    return TreeTables(column, parent, tuple(transition), tuple(emission), tuple(blank), at)


def random_table(rng: np.random.Generator, rows: int, columns: int, dtype: type, zeros: float) -> np.ndarray:
    """Rows of shares, of which some are 0."""
    table = rng.gamma(0.7, 1.0, (rows, columns)) + 1e-3
    table[rng.random(table.shape) < zeros] = 0.0
    table[table.sum(axis=1) == 0.0, 0] = 1.0
    return (table / table.sum(axis=1, keepdims=True)).astype(dtype)


def random_value(rng: np.random.Generator, column: Column, scale: Scale) -> float:
    """A level, or a number: often one that the scale has, on a grid sometimes off a cell's centre."""
    if column.is_categorical:
        return float(rng.integers(len(column.levels)))
    if column.atoms and rng.random() < 0.4:
        return float(rng.choice(column.atoms))
    if rng.random() < 0.15:
        return float(rng.uniform(column.minimum - 3.0, column.maximum + 3.0))
    s = int(rng.integers(len(scale.lo)))
    lo, hi = max(float(scale.lo[s]), column.minimum - 4.0), min(float(scale.hi[s]), column.maximum + 4.0)
    lo, hi = min(lo, hi), max(lo, hi)
    return float(rng.uniform(lo, hi)) if column.step == 0.0 else round_to_cell(rng, column, lo, hi)


def round_to_cell(rng: np.random.Generator, column: Column, lo: float, hi: float) -> float:
    """A number in a cell of the grid between two edges."""
    k = np.rint((rng.uniform(lo, hi) - column.center) / column.step)
    return float(column.center + (k + rng.choice([0.0, 0.3, -0.3])) * column.step)


def random_cells(seed: int, hidden: HiddenTrees, n: int) -> list[list[Cell]]:
    """Rows of values, regions hard and soft, and nothing; the first row is empty, the second one of values."""
    rng = np.random.default_rng([seed, 1])
    rows: list[list[Cell]] = []
    for i in range(n):
        shares = (1.0, 0.0, 0.0) if i == 0 else (0.0, 1.0, 0.0) if i == 1 else rng.dirichlet(np.ones(3))
        row: list[Cell] = []
        for column, scale in zip(hidden.schema.columns, hidden.scales, strict=True):
            case = int(rng.choice(3, p=shares))
            region = random_region(rng, column) if case == 2 else Region()
            if case == 2 and rng.random() < 0.5:
                region = soft(rng, column, region)
            row.append((None, random_value(rng, column, scale), region)[case])
        rows.append(row)
    return rows


def random_evidence(seed: int, hidden: HiddenTrees, n: int) -> Evidence:
    """Random evidence of n rows; see `random_cells`."""
    return make_evidence(random_cells(seed, hidden, n))
