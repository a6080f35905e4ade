"""A forest of some of the columns, or given evidence, as a forest of its own. See docs/how-to/reshape-a-joint.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...data.evidence import Evidence
from ...data.schema import Columns, Schema, kernel_columns
from ...runtime.arrays import ranges
from .descent_kernels import runs_inside
from .leaves.derived import make_leaves
from .leaves.levels import WideLevels, apart, layout, side_by_side, take_levels, weighed_levels, words_of
from .leaves.table import PIECES, UNIFORM, ParameterTables, Pieces, pieces_of, pieces_of_slot, taken_pieces
from .posterior_kernels import posterior_rows, row_scratch
from .structure import Forest, Trees, keep_leaves, with_weights
from .structure_kernels import MIXED

# ---- The marginal distribution of some columns.


class Restricted(NamedTuple):
    """Trees of some of the leaves.

    log_weight : float64 array (l,). Sums to 1 over all leaves.
    tree, old_tree : int64 arrays (l,), (t,). Tree of each leaf, and which tree each one was.
    leaf : int64 array (l,). Which leaf each one was.
    """

    trees: Trees
    log_weight: np.ndarray
    tree: np.ndarray
    old_tree: np.ndarray
    leaf: np.ndarray


def restricted_trees(columns: Columns, trees: Trees, log_weight: np.ndarray) -> Restricted:
    """The trees of the leaves with weight, and the sets of levels of their splits alone."""
    kept, leaf, old_tree = keep_leaves(trees, log_weight > -np.inf)
    of_leaf = log_weight[leaf] - np.logaddexp.reduce(log_weight[leaf])
    by_levels = kept.levels_at >= 0
    n_words = np.zeros(len(by_levels), np.int64)
    n_words[by_levels] = words_of(np.diff(columns.level_start)[columns.slot[kept.feature[by_levels]]])
    kept = kept._replace(
        levels_at=np.where(by_levels, np.cumsum(n_words) - n_words, -1).astype(np.int32),
        left_levels=trees.left_levels[ranges(kept.levels_at[by_levels].astype(np.int64), n_words[by_levels])],
    )
    tree = (np.searchsorted(kept.root, np.arange(len(by_levels)), side="right") - 1)[kept.leaf >= 0]
    top = np.full(len(old_tree), -np.inf)
    np.maximum.at(top, tree, of_leaf)
    return Restricted(with_weights(kept, np.exp(of_leaf - top[tree])), of_leaf, tree, old_tree, leaf)


def marginalize(forest: Forest, columns: Sequence[int]) -> Forest:
    """The exact marginal of a forest over some of its columns."""
    # Where the column of a split goes, the node mixes its children. So tree t's density is the marginal of what it was.
    d = len(forest.schema.columns)
    stays = np.zeros(d, bool)
    stays[list(columns)] = True
    if not stays.any():
        raise ValueError("keep: name at least one column")
    kept = np.flatnonzero(stays)
    leaves = forest.leaves
    schema = Schema(tuple(forest.schema.columns[j] for j in kept), forest.schema.frame, n_rows=forest.schema.n_rows)
    numeric = forest.columns.slot[kept[forest.columns.is_categorical[kept] == 0]]
    categorical = forest.columns.slot[kept[forest.columns.is_categorical[kept] == 1]]
    atoms = ranges(forest.columns.atom_start[numeric], np.diff(forest.columns.atom_start)[numeric])
    place = layout(forest.columns).place[categorical]
    levels = ranges(place[place >= 0], np.diff(forest.columns.level_start)[categorical][place >= 0])
    columns_kept = kernel_columns(schema)
    family, a, b = (field[:, numeric].copy() for field in (leaves.family, leaves.a, leaves.b))
    pieces = taken_pieces(leaves.pieces, family, a, b)
    return Forest(
        schema=schema,
        columns=columns_kept,
        trees=_without_splits(forest.trees, stays),
        leaves=make_leaves(
            columns_kept,
            ParameterTables(
                leaves.tree,
                leaves.log_weight,
                family,
                a,
                b,
                leaves.lo[:, numeric],
                leaves.hi[:, numeric],
                leaves.atom_mass[:, atoms],
                leaves.level_mass[:, levels],
                leaves.missing_rate[:, kept],
                take_levels(
                    layout(columns_kept), leaves.wide, np.arange(len(leaves.tree)), (-1 - place[place < 0]).tolist()
                ),
                pieces,
            ),
        ),
        has_background=forest.has_background,
    )


def _without_splits(trees: Trees, stays: np.ndarray) -> Trees:
    """The trees without the splits of columns that do not stay (bool (d,)); columns are numbered anew."""
    is_split, column = trees.feature >= 0, np.maximum(trees.feature, 0)
    goes = is_split & ~stays[column]
    number = np.where(is_split, (np.cumsum(stays) - 1)[column], trees.feature)
    return trees._replace(
        feature=np.where(goes, MIXED, number).astype(np.int32),
        threshold=np.where(goes, 0.0, trees.threshold),
        levels_at=np.where(goes, -1, trees.levels_at).astype(np.int32),
    )


# ---- The pieces that likelihoods of runs cut a column into, and fewer of them where a leaf is hardly informative.


class ColumnParts(NamedTuple):
    """Parts of one numeric column that are left, of U pieces of leaves.

    piece : int64 array (m,). The piece that each is a part of, ascending.
    first, last : int64 arrays (m,). Runs of the evidence that it begins and ends with.
    log_mass : float64 array (m,). Log of its mass times its likelihood.
    """

    piece: np.ndarray
    first: np.ndarray
    last: np.ndarray
    log_mass: np.ndarray


def joined_parts(
    parts: ColumnParts, n_pieces: int, first_run: int, log_weight: np.ndarray, within: float
) -> ColumnParts:
    """Neighbours joined as long as no piece's CDF moves by more than ``within``; ``log_weight`` is of the runs."""
    n_runs, top = len(log_weight), np.full(n_pieces, -np.inf)
    np.maximum.at(top, parts.piece, parts.log_mass)
    share = np.zeros((n_pieces, n_runs))
    share[parts.piece, parts.first - first_run] = np.exp(parts.log_mass - top[parts.piece])
    begins = _begins(share, share * np.exp(-log_weight), within)
    begins[top == -np.inf] = False
    piece, run = np.nonzero(begins)
    is_last = np.append(piece[1:] != piece[:-1], True)[: len(piece)]
    stop = np.where(is_last, n_runs, np.append(run[1:], n_runs)[: len(piece)])
    below = np.concatenate([np.zeros((n_pieces, 1)), np.cumsum(share, axis=1)], axis=1)
    mass = below[piece, stop] - below[piece, run]
    with np.errstate(divide="ignore"):
        return ColumnParts(piece, run + first_run, stop - 1 + first_run, np.log(mass) + top[piece])


def _begins(weighed: np.ndarray, plain: np.ndarray, within: float) -> np.ndarray:
    """Runs (R, Q) at which a piece begins, of masses with and without likelihoods, (R, Q) each: greedy, run by run."""
    # Inside a piece the two cumulative masses lie on a line, so a piece ends where no line is near all of them.
    weighed, plain = (np.cumsum(x, axis=1) / np.maximum(x.sum(axis=1, keepdims=True), 1e-300) for x in (weighed, plain))
    n_rows, n_runs = weighed.shape
    begins = np.zeros((n_rows, n_runs), bool)
    begins[:, 0] = True
    at, of = np.zeros(n_rows), np.zeros(n_rows)  # cumulative masses where the piece begins
    low, high = np.zeros(n_rows), np.full(n_rows, np.inf)  # slopes of lines that are near
    for q in range(n_runs):
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (weighed[:, q] - of) / (plain[:, q] - at)
            new = np.isfinite(slope) & ((slope < low * (1.0 - 1e-9)) | (slope > high * (1.0 + 1e-9)))
            if q:
                begins[new, q] = True
                at[new], of[new] = plain[new, q - 1], weighed[new, q - 1]
                low[new], high[new] = 0.0, np.inf
            width, rise = plain[:, q] - at, weighed[:, q] - of
            is_wide = width > 1e-14
            low = np.where(is_wide, np.maximum(low, (rise - within) / width), low)
            high = np.where(is_wide, np.minimum(high, (rise + within) / width), high)
    return begins


_MOST_PIECES = 2**26
"""Pieces that the numbers of all leaves may be cut into: some 4 GB."""


def condition(forest: Forest, evidence: Evidence, seen: bool = True, within: float = 0.0) -> Forest:
    """The forest given one row of evidence, exact: posterior weights, and leaves restricted to the evidence."""
    # Mass in several runs of a region becomes several pieces. A value on a grid, or a level, is the region of its cell;
    # a column without grid becomes ``mixed`` with the value as its only atom. Leaves that the evidence excludes are
    # removed.
    columns, leaves = forest.columns, forest.leaves
    evidence = _as_regions(forest.schema, columns, evidence)
    _, leaf, log_joint, _ = posterior_rows(columns, forest.trees, leaves, evidence, 0, 1, True, row_scratch(forest))
    if not len(leaf):
        raise ValueError("the evidence has probability 0; drop or widen one of its conditions")
    log_weight = np.full(len(leaves.log_weight), -np.inf)
    log_weight[leaf] = log_joint
    small = restricted_trees(columns, forest.trees, log_weight)
    regions = {j: region for j, region in enumerate(evidence.cell_regions()[0].tolist()) if region >= 0}
    pinned = {j: float(x) for j, x in enumerate(evidence.value[0].tolist()) if x == x}
    schema = _pin(forest.schema, pinned)
    layout = kernel_columns(schema)
    numbers = _cut_numbers(forest, evidence, regions, pinned, small.leaf, within)
    level_mass, wide = _cut_levels(forest, evidence, regions, small.leaf)
    missing_rate = leaves.missing_rate[small.leaf].copy()
    if seen:
        missing_rate[:, [*regions, *pinned]] = 0.0
    return Forest(
        schema=schema,
        columns=layout,
        trees=small.trees,
        leaves=make_leaves(
            layout,
            ParameterTables(
                tree=small.tree,
                log_weight=small.log_weight,
                level_mass=level_mass,
                missing_rate=missing_rate,
                wide=wide,
                **numbers,
            ),
        ),
        has_background=forest.has_background
        and bool(small.old_tree[-1] == len(forest.trees.root) - 1)
        and len(small.old_tree) > 1,
    )


def _check_room(forest: Forest, n_pieces: int) -> None:
    if n_pieces > _MOST_PIECES:
        raise ValueError(
            f"the evidence cuts {len(forest.leaves.log_weight)} leaves into {n_pieces} pieces; "
            "use given(...), or evidence of fewer intervals: likely({between(a, b): likelihood, ...}) in place of about"
        )


def _as_regions(schema: Schema, columns: Columns, evidence: Evidence) -> Evidence:
    """The evidence with levels, and values on grids, as regions: their cells."""
    value = evidence.value.copy()
    region = evidence.cell_regions()
    runs: list[tuple[float, float]] = []
    atoms: list[int] = []
    for j in np.flatnonzero(~np.isnan(value[0])).tolist():
        slot, x = columns.slot[j], value[0, j]
        held, half = 0, 0.5
        if not columns.is_categorical[j]:
            step, origin = columns.step[slot], columns.origin[slot]
            if step == 0.0:
                continue
            x, half = origin + np.ceil((x - origin) / step - 0.5) * step, 0.5 * step
            atoms_of_slot = columns.atom_value[columns.atoms_of(slot)]
            if not x - half < x < x + half:
                raise ValueError(
                    f"column {schema.names[j]!r}: {x:g} is too far out to condition on, as its cell of width {step:g} "
                    "is narrower than numbers there; use given(...), or an interval"
                )
            held = sum(1 << k for k, atom in enumerate(atoms_of_slot.tolist()) if abs(atom - x) <= 0.25 * step)
        region[0, j] = len(evidence.atoms) + len(runs)
        value[0, j] = np.nan
        runs.append((x - half, x + half))
        atoms.append(held)
    if not runs:
        return evidence
    lo, hi = np.array(runs).T
    return evidence._replace(
        value=value,
        region=region,
        run_start=np.append(evidence.run_start, evidence.run_start[-1] + 1 + np.arange(len(runs), dtype=np.int32)),
        run_lo=np.append(evidence.run_lo, lo),
        run_hi=np.append(evidence.run_hi, hi),
        atoms=np.append(evidence.atoms, np.array(atoms, np.uint64)),
        run_log_weight=np.append(evidence.run_log_weight, np.zeros(len(runs))),
        atom_log_weight=_with_hard_atoms(evidence.atom_log_weight, atoms),
    )


def _with_hard_atoms(atom_log_weight: np.ndarray, atoms: list[int]) -> np.ndarray:
    """`Evidence.atom_log_weight` with regions added that are not soft, of these atoms."""
    n, width = atom_log_weight.shape
    if n == 0:
        return atom_log_weight
    wider = np.zeros((n + len(atoms), max(width, *(held.bit_length() for held in atoms))))
    wider[:n, :width] = atom_log_weight
    return wider


def _pin(schema: Schema, pinned: dict[int, float]) -> Schema:
    """The schema in which pinned columns have their value as the only atom."""
    columns = [
        replace(column, kind="mixed", atoms=(pinned[j],)) if j in pinned else column
        for j, column in enumerate(schema.columns)
    ]
    return replace(schema, columns=tuple(columns))


def _cut_numbers(
    forest: Forest,
    evidence: Evidence,
    regions: dict[int, int],
    pinned: dict[int, float],
    leaf: np.ndarray,
    within: float,
) -> dict[str, Any]:
    """The numeric fields of `ParameterTables` of these leaves (n,), cut to the regions of columns."""
    columns, leaves = forest.columns, forest.leaves
    fields = {name: getattr(leaves, name)[leaf].copy() for name in ("family", "a", "b", "lo", "hi")}
    masses, cut = [np.zeros((len(leaf), 0))], []
    for j in np.flatnonzero(columns.is_categorical == 0).tolist():
        slot = int(columns.slot[j])
        mass = leaves.atom_mass[leaf, columns.atoms_of(slot)]
        if j in pinned:
            mass = np.ones((len(leaf), 1))
        elif j in regions:
            mass, at, pieces = _cut_column(forest, evidence, slot, regions[j], leaf, mass, within)
            count = np.bincount(at, minlength=len(leaf))
            alone = count[at] == 1
            for name, field in fields.items():
                field[at[alone], slot] = getattr(pieces, name)[alone, 0]
            fields["family"][at[~alone], slot] = UNIFORM  # until the pieces are numbered
            cut.append((slot, at[~alone], pieces_of(*(field[~alone] for field in pieces[:6]))))
            _check_room(forest, sum(len(at) for _, at, _ in cut))
        masses.append(mass)
    kept = taken_pieces(leaves.pieces, fields["family"], fields["a"], fields["b"])
    before = len(kept.log_weight)
    for slot, at, pieces in cut:
        several, first, count = np.unique(at, return_index=True, return_counts=True)
        fields["family"][several, slot] = PIECES
        fields["a"][several, slot], fields["b"][several, slot] = first + before, count
        fields["lo"][several, slot] = pieces.lo[first, 0]
        fields["hi"][several, slot] = pieces.hi[first + count - 1, 0]
        before += len(at)
    tables = [kept, *(pieces for *_, pieces in cut)]
    pieces = pieces_of(*(np.concatenate(of) for of in zip(*(table[:6] for table in tables), strict=True)))
    return {**fields, "atom_mass": np.concatenate(masses, axis=1), "pieces": pieces}


def _cut_column(
    forest: Forest, evidence: Evidence, slot: int, region: int, leaf: np.ndarray, mass: np.ndarray, within: float
) -> tuple[np.ndarray, np.ndarray, Pieces]:
    """A numeric slot cut to a region: masses of atoms (n, A), and pieces with the place of their leaf, ascending."""
    columns, leaves = forest.columns, forest.leaves
    of, number = pieces_of_slot(leaves, slot, leaf)
    start, run, log_mass = runs_inside(columns, leaves, evidence, leaf[of].astype(np.int64), slot, number, region)
    parts = ColumnParts(np.repeat(np.arange(len(of)), np.diff(start)), run, run, log_mass)
    if within > 0.0:
        runs = slice(evidence.run_start[region], evidence.run_start[region + 1])
        parts = joined_parts(parts, len(of), int(runs.start), evidence.run_log_weight[runs], within)
    held = (evidence.atoms[region] >> np.arange(mass.shape[1], dtype=np.uint64)) & np.uint64(1)
    likelihood = np.zeros(mass.shape[1])
    if evidence.atom_log_weight.size:
        likelihood[: evidence.atom_log_weight.shape[1]] = evidence.atom_log_weight[region, : mass.shape[1]]
    at, unit = of[parts.piece], number[parts.piece]
    log_rest = leaves.log_rest[leaf, slot]
    possible = log_rest[at] > -np.inf
    parts, at, unit = ColumnParts(*(field[possible] for field in parts)), at[possible], unit[possible]
    log_total = np.full(len(leaf), -np.inf)
    np.logaddexp.at(log_total, at, parts.log_mass)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_atoms = np.log(mass) + np.log(held.astype(np.float64)) + likelihood
        everything = np.logaddexp(np.logaddexp.reduce(log_atoms, axis=1, initial=-np.inf), log_total + log_rest)
        share = np.exp(log_atoms - everything[:, None])
    whole = unit < 0
    fields = []
    for name in ("family", "a", "b", "lo", "hi"):
        field = getattr(leaves, name)[leaf[at], slot]
        field[~whole] = getattr(leaves.pieces, name)[unit[~whole], 0]
        fields.append(field)
    family, a, b, lo, hi = fields
    lo, hi = np.maximum(lo, evidence.run_lo[parts.first]), np.minimum(hi, evidence.run_hi[parts.last])
    return share, at, pieces_of(family, a, b, lo, hi, parts.log_mass - log_total[at])


def _cut_levels(
    forest: Forest, evidence: Evidence, regions: dict[int, int], row: np.ndarray
) -> tuple[np.ndarray, WideLevels]:
    """Level masses of the new leaves; one without mass in a region keeps what it had."""
    columns, leaves, where = forest.columns, forest.leaves, layout(forest.columns)
    mass: np.ndarray = leaves.level_mass[row]
    wide = [apart(leaves.wide, t, row) for t in range(len(where.slots))]
    for j, region in regions.items():
        if columns.is_categorical[j]:
            slot = int(columns.slot[j])
            likelihood = _level_likelihoods(evidence, region, columns.n_levels(slot))
            place = int(where.place[slot])
            if place < 0:
                wide[-1 - place] = weighed_levels(wide[-1 - place], likelihood)
                continue
            at = slice(place, place + len(likelihood))
            inside = mass[:, at] * likelihood
            total = inside.sum(axis=1, keepdims=True)
            np.divide(inside, total, out=inside, where=total > 0)
            mass[:, at] = np.where(total > 0, inside, mass[:, at])
    return mass, side_by_side(where, wide, len(row))


def _level_likelihoods(evidence: Evidence, region: int, n: int) -> np.ndarray:
    """Likelihood of each of n levels under a region, (n,)."""
    level = np.arange(n)[:, None]
    runs = slice(*evidence.run_start[region : region + 2])
    held = (evidence.run_lo[runs] < level) & (level <= evidence.run_hi[runs])
    return np.asarray((held * np.exp(evidence.run_log_weight[runs])).sum(axis=1))


# ---- A forest given that a cell is missing, or is not: its leaves weighed anew.


def given_missing(forest: Forest, j: int, is_missing: bool) -> tuple[Forest | None, float]:
    """The distribution given that cell j is missing (or known), and the log-probability; None, -inf if impossible."""
    leaves = forest.leaves
    rate = leaves.missing_rate[:, j] if is_missing else 1.0 - leaves.missing_rate[:, j]
    with np.errstate(divide="ignore"):
        log_weight = leaves.log_weight + np.log(rate)
    log_share = float(np.logaddexp.reduce(log_weight))
    if log_share == -np.inf:
        return None, -np.inf
    missing_rate = leaves.missing_rate.copy()
    missing_rate[:, j] = float(is_missing)
    weighed = leaves._replace(log_weight=log_weight - log_share, missing_rate=missing_rate)
    return replace(forest, leaves=weighed), log_share
