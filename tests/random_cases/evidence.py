"""Random evidence about a model: points that it can draw, regions around them, and rows of both."""

from __future__ import annotations

import math

import numpy as np

from jointforest.data.evidence import Evidence
from jointforest.data.schema import Column
from jointforest.models.box_forest.leaves.table import PIECES
from jointforest.models.box_forest.structure import Forest

from ..oracle.slot import level_mass
from .cells import Cell, Region, make_evidence
from .models import cell_centre, finite_part, random_cut, random_number


def random_point(rng: np.random.Generator, model: Forest) -> list[float]:
    """A complete row to which some leaf gives positive density (not a draw from the model, but near enough)."""
    leaves, layout = model.leaves, model.columns
    leaf = int(rng.integers(0, len(leaves.log_weight)))
    row = []
    for j, column in enumerate(model.schema.columns):
        s = layout.slot[j]
        if column.is_categorical:
            mass = level_mass(model, leaf, j)
            row.append(float(rng.choice(np.flatnonzero(mass))))
            continue
        atoms = leaves.atom_mass[leaf, layout.atom_start[s] : layout.atom_start[s + 1]]
        if rng.random() < atoms.sum():
            row.append(column.atoms[int(rng.choice(np.flatnonzero(atoms > 0)))])
            continue
        ends = leaves.lo[leaf, s], leaves.hi[leaf, s]
        if leaves.family[leaf, s] == PIECES:
            first = int(leaves.a[leaf, s])
            possible = np.flatnonzero(leaves.pieces.log_weight[first : first + int(leaves.b[leaf, s])] > -np.inf)
            k = first + int(rng.choice(possible))
            ends = leaves.pieces.lo[k, 0], leaves.pieces.hi[k, 0]
        lo, hi = max(ends[0], column.minimum), min(ends[1], column.maximum)
        if lo >= hi:  # the support lies beyond the usual range
            lo, hi = finite_part(rng, column, *map(float, ends))
        if column.step == 0.0:
            row.append(float(rng.uniform(lo, hi)))
        else:
            first = math.ceil((lo - column.center) / column.step - 1e-6)
            last = math.floor((hi - column.center) / column.step + 1e-6)
            row.append(cell_centre(column, int(rng.integers(first, last + 1)) if last >= first else first))
    return row


def random_region(rng: np.random.Generator, column: Column, around: float | None = None) -> Region:
    """A random region of a column, in which ``around`` lies if it is given; else it may be empty."""
    if column.is_categorical:
        chosen = {k for k in range(len(column.levels)) if rng.random() < 0.5}
        chosen |= {int(around)} if around is not None else set()
        runs = [(k - 0.5, k + 0.5) for k in sorted(chosen)]
        return Region(tuple(joined(runs) if rng.random() < 0.5 else runs))
    cuts = sorted({random_cut(rng, column) for _ in range(int(rng.choice([2, 2, 4])))})
    if rng.random() < 0.3:
        cuts[0] = -math.inf
    if rng.random() < 0.3:
        cuts[-1] = math.inf
    runs = list(zip(cuts[:-1:2], cuts[1::2], strict=False))
    on_atom = column.step == 0.0 and around in column.atoms  # then it need not lie in a run
    if around is not None and not on_atom and not contains(runs, around):
        runs = run_around(around, cuts)
    if column.step > 0.0:
        return Region(tuple(runs), tuple(k for k, value in enumerate(column.atoms) if contains(runs, value)))
    kept = [k for k, value in enumerate(column.atoms) if value == around or rng.random() < 0.5]
    if column.atoms and kept and around in (None, *column.atoms) and rng.random() < 0.2:
        runs = []  # nothing but atoms
    return Region(tuple(runs), tuple(kept))


def contains(runs: list[tuple[float, float]], x: float) -> bool:
    """Whether x lies in one of the runs."""
    return any(lo < x <= hi for lo, hi in runs)


def joined(runs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same set with runs that touch made one."""
    result: list[tuple[float, float]] = []
    for lo, hi in runs:
        if result and result[-1][1] == lo:
            result[-1] = (result[-1][0], hi)
        else:
            result.append((lo, hi))
    return result


def run_around(x: float, cuts: list[float]) -> list[tuple[float, float]]:
    """The one run between neighbouring cuts that x lies in."""
    below = max([c for c in cuts if c < x], default=-math.inf)
    return [(below, min([c for c in cuts if c >= x], default=math.inf))]


def random_cells(rng: np.random.Generator, model: Forest, n: int) -> list[list[Cell]]:
    """Random evidence of n rows: the first is empty, the second complete, every third has no regions.

    Most rows hold a point that some leaf supports; in the others each cell is drawn alone.
    """
    columns, rows = model.schema.columns, []
    for i in range(n):
        point = random_point(rng, model)
        together = rng.random() < 0.75
        shares = (0.0, 1.0, 0.0) if i == 1 else (1.0, 0.0, 0.0) if i == 0 else rng.dirichlet(np.ones(3))
        row: list[Cell] = []
        for column, x in zip(columns, point, strict=True):
            case = rng.choice(3, p=shares)
            if not together:
                x = float(rng.integers(len(column.levels))) if column.is_categorical else random_number(rng, column)
            if case == 2 and i % 3 == 2:
                case = 0
            row.append((None, x, random_region(rng, column, x if together else None))[case])
        rows.append(row)
    return rows


def softened(rng: np.random.Generator, model: Forest, cells: list[list[Cell]]) -> list[list[Cell]]:
    """The cells with half of the regions made soft: runs are cut in two, and they and the atoms get likelihoods."""
    return [
        [
            soft(rng, column, cell) if isinstance(cell, Region) and rng.random() < 0.5 else cell
            for column, cell in zip(model.schema.columns, row, strict=True)
        ]
        for row in cells
    ]


def soft(rng: np.random.Generator, column: Column, region: Region) -> Region:
    """A region with random likelihoods, some of them 1."""
    runs: list[tuple[float, float]] = []
    for lo, hi in region.runs:
        whole = range(math.ceil(lo + 0.6), math.floor(hi) + 1) if column.is_categorical else []
        cut = rng.choice([k - 0.5 for k in whole]) if len(whole) else math.nan
        cut = cut if column.is_categorical else random_cut(rng, column)
        runs += [(lo, float(cut)), (float(cut), hi)] if lo < cut < hi else [(lo, hi)]
    weights = [float(rng.choice([0.0, rng.uniform(-4.0, 0.0)])) for _ in runs]
    atoms = [float(rng.uniform(-4.0, 0.0)) for _ in region.atoms]
    if column.step > 0.0:  # an atom is as likely as its cell
        held = zip(runs, weights, strict=True)
        of_run = list(held)
        atoms = [next(w for (lo, hi), w in of_run if lo < column.atoms[k] <= hi) for k in region.atoms]
    return Region(tuple(runs), region.atoms, tuple(weights), tuple(atoms))


def random_evidence(model: Forest, seed: int, n: int) -> Evidence:
    """Random evidence of n rows: values, regions, hard and soft, and nothing; see `random_cells`."""
    cells = random_cells(np.random.default_rng(seed), model, n)
    return make_evidence(softened(np.random.default_rng([seed, 1]), model, cells))
