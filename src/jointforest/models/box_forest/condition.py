"""A forest conditioned on evidence, as a forest of its own. See docs/how-to/reshape-a-joint.md."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence
from ...data.schema import Columns, Schema, kernel_columns
from .condition_kernels import pieces
from .leaves.circuit_structure_kernels import parents
from .leaves.derived import make_leaves, table_bytes
from .leaves.levels import WideLevels, apart, layout, side_by_side, weighed
from .leaves.table import FACTORS, PRODUCT, SUM, ParameterTables
from .marginalize import Nodes, Packed, nodes_of, packed, restricted_trees, without
from .posterior_kernels import LEAVES, posterior_rows, row_scratch
from .structure import Forest

# ---- The pieces that likelihoods of runs cut a column into, and fewer of them where a leaf hardly tells.


class Pieces(NamedTuple):
    """Pieces of one column in R parameter rows.

    Attributes
    ----------
    start : int64 array (R + 1,)
        Row r has the pieces ``start[r]:start[r + 1]``.
    first, last : int64 arrays (m,)
        Runs of the evidence that a piece begins and ends with.
    log_share : float64 array (m,)
        Log of the piece's share of the region's mass in the row; a row's first one has the atoms, too.
    log_first : float64 array (R,)
        Log mass of the first piece, atoms included.
    """

    start: np.ndarray
    first: np.ndarray
    last: np.ndarray
    log_share: np.ndarray
    log_first: np.ndarray


def joined(pieces: Pieces, atoms: np.ndarray, first_run: int, log_weight: np.ndarray, within: float) -> Pieces:
    """Neighbours joined as long as no row's CDF moves by more than ``within``."""
    n_rows, n_runs = len(atoms), len(log_weight)
    has_pieces = np.diff(pieces.start) > 0
    row = np.repeat(np.arange(n_rows), np.diff(pieces.start))
    head = np.minimum(pieces.start[:-1], max(len(pieces.log_share) - 1, 0))
    log_total = np.where(has_pieces, pieces.log_first - pieces.log_share[head], 0.0) if len(row) else np.zeros(n_rows)
    share = np.zeros((n_rows, n_runs))
    share[row, pieces.first - first_run] = np.exp(pieces.log_share + log_total[row])
    first = np.where(has_pieces, (share > 0.0).argmax(axis=1), 0)
    share[np.arange(n_rows), first] = np.maximum(
        share[np.arange(n_rows), first] - np.where(has_pieces, atoms, 0.0), 0.0
    )
    begins = _begins(share, share * np.exp(-log_weight), within)
    begins[~has_pieces] = False
    row, run = np.nonzero(begins)
    start = np.concatenate([[0], np.cumsum(begins.sum(axis=1))])
    below = np.concatenate([np.zeros((n_rows, 1)), np.cumsum(share, axis=1)], axis=1)
    stop = np.append(run[1:], n_runs)
    stop[start[1:][has_pieces] - 1] = n_runs
    mass = below[row, stop] - below[row, run]
    mass[start[:-1][has_pieces]] += atoms[has_pieces]
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)
    log_first = pieces.log_first.copy()
    log_first[has_pieces] = log_mass[start[:-1][has_pieces]]
    return Pieces(start, run + first_run, stop - 1 + first_run, log_mass - log_total[row], log_first)


def _begins(weighed: np.ndarray, plain: np.ndarray, within: float) -> np.ndarray:
    """Runs (R, Q) at which a piece begins, of masses with and without likelihoods, (R, Q) each: greedy, run by run.

    Inside a piece the two cumulative masses lie on a line, so a piece ends where no line is near all of them.
    """
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


_MOST_BYTES = 4 * 2**30
"""Size that parameter tables may have if they are much longer than before."""


def condition(forest: Forest, evidence: Evidence, seen: bool = True, within: float = 0.0) -> Forest:
    """The forest given one row of evidence, exact: leaves have their posterior weights, and are cut to the evidence.

    Supports are cut to the evidence, levels and atoms outside of it get no mass. Where a row has mass in several runs
    of a region, its column becomes a mixture (a SUM) with one truncated piece a run. A value on a grid, or a level, is
    the region of its cell. A column without grid that has a value becomes ``mixed``, with the value as its only atom.
    Leaves that the evidence excludes go, and trees of which none is left. Evidence of probability 0, a value too far
    out on its grid, and pieces that would take more than 4 GB are ValueErrors.
    """
    columns, leaves = forest.columns, forest.leaves
    evidence = _as_regions(forest.schema, columns, evidence)
    scratch = row_scratch(forest)
    _, leaf, log_joint, _ = posterior_rows(columns, forest.trees, leaves, evidence, 0, 1, LEAVES, scratch)
    if not len(leaf):
        raise ValueError("the evidence has probability 0; drop or widen one of its conditions")
    log_weight = np.full(len(leaves.log_weight), -np.inf)
    log_weight[leaf] = log_joint
    small = restricted_trees(columns, forest.trees, log_weight)
    regions = _regions(evidence)
    cut = {
        j: _pieces(forest, evidence, int(columns.slot[j]), region, within)
        for j, region in regions.items()
        if not columns.is_categorical[j]
    }
    nodes = _split(_reweighed(*nodes_of(leaves, small.leaf), scratch.value), cut)
    new = packed(nodes)
    _check_size(forest, len(new.row))

    pinned = {j: float(x) for j, x in enumerate(evidence.value[0].tolist()) if x == x}
    schema = _pin(forest.schema, pinned)
    layout = kernel_columns(schema)
    lo, hi, atom_mass = _cut_numbers(forest, evidence, cut, pinned, new)
    level_mass, wide = _cut_levels(forest, evidence, regions, new.row)
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
                small.tree[new.leaf],
                small.log_weight,
                leaves.family[new.row],
                leaves.a[new.row],
                leaves.b[new.row],
                lo,
                hi,
                atom_mass,
                level_mass,
                missing_rate,
                wide,
            ),
            circuits=new.circuits,
        ),
        has_background=forest.has_background
        and bool(small.old_tree[-1] == len(forest.trees.root) - 1)
        and len(small.old_tree) > 1,
    )


def _pieces(forest: Forest, evidence: Evidence, slot: int, region: int, within: float) -> Pieces:
    """The pieces that a region cuts a numeric slot of each parameter row into."""
    columns, leaves = forest.columns, forest.leaves
    start, run, log_share, log_first = pieces(columns, leaves, evidence, slot, region)
    uncut = Pieces(start, run, run, log_share, log_first)
    if within <= 0.0:
        return uncut
    mass = leaves.atom_mass[:, columns.atom_start[slot] : columns.atom_start[slot + 1]]
    likelihood = np.exp(evidence.atom_log_weight[region, : mass.shape[1]])
    runs = slice(evidence.run_start[region], evidence.run_start[region + 1])
    return joined(uncut, mass @ likelihood, int(runs.start), evidence.run_log_weight[runs], within)


def _check_size(forest: Forest, n_rows: int) -> None:
    """Each piece of a leaf takes a whole row of the parameter tables."""
    size = table_bytes(forest.columns, n_rows)
    if size > _MOST_BYTES and n_rows > 2 * len(forest.leaves.tree):
        raise ValueError(
            f"the evidence cuts {len(forest.leaves.log_weight)} leaves into {n_rows} pieces, of {size / 2**30:.1f} GB; "
            "use given(...), or evidence of fewer intervals: likely({between(a, b): likelihood, ...}) in place of about"
        )


def _regions(evidence: Evidence) -> dict[int, int]:
    """Number of the region of each column that has one."""
    return {j: region for j, region in enumerate(evidence.cell_regions()[0].tolist()) if region >= 0}


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
            atoms_of_slot = columns.atom_value[columns.atom_start[slot] : columns.atom_start[slot + 1]]
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


def _reweighed(nodes: Nodes, old: np.ndarray, value: np.ndarray) -> Nodes:
    """Circuits whose sums have their posterior weights; children of weight 0 go.

    ``old`` and ``value`` are as of `nodes_of` and `posterior_kernels.RowScratch`.
    """
    if not len(value):
        return nodes
    log_p = np.where(old >= 0, value[old], 0.0)
    parent = parents(nodes.end)
    below_sum = (parent >= 0) & (nodes.kind[parent] == SUM)
    gone = below_sum & ((log_p == -np.inf) | (nodes.log_weight == -np.inf))
    with np.errstate(invalid="ignore"):  # below nodes that are gone
        share = np.where(below_sum, nodes.log_weight + log_p - log_p[parent], 0.0)
    return without(nodes._replace(log_weight=np.minimum(share, 0.0)), gone)


def _split(nodes: Nodes, cut: dict[int, Pieces]) -> Nodes:
    """Circuits in which a column of several pieces is a SUM over them, beside the rest of its FACTORS node."""
    n, d = nodes.scope.shape
    size = np.zeros((n, d), np.int64)  # nodes that a column takes of its own
    for j, column in cut.items():
        n_pieces = np.where(nodes.scope[:, j], np.diff(column.start)[nodes.row], 0)
        size[:, j] = np.where(n_pieces > 1, n_pieces + 1, 0)
    split = np.asarray(size.any(axis=1))
    if not split.any():
        return nodes
    has_others = split & (nodes.scope & (size == 0)).any(axis=1)
    at = np.concatenate([[0], np.cumsum(1 + has_others + size.sum(axis=1))])
    total, start = int(at[-1]), at[:-1]
    kind, end, weight = np.full(total, FACTORS, np.uint8), np.arange(1, total + 1), np.zeros(total)
    row, piece, scope = np.full(total, -1), np.zeros(total, np.int64), np.zeros((total, d), bool)
    kind[start], end[start], weight[start] = np.where(split, PRODUCT, nodes.kind), at[nodes.end], nodes.log_weight
    row[start], scope[start] = np.where(split, -1, nodes.row), nodes.scope & ~split[:, None]
    row[start[has_others] + 1], scope[start[has_others] + 1] = (
        nodes.row[has_others],
        nodes.scope[has_others] & (size[has_others] == 0),
    )
    cursor = start + 1 + has_others
    for j, column in cut.items():
        node = np.flatnonzero(size[:, j])
        count = size[node, j] - 1
        first = cursor[node]
        kind[first], end[first] = SUM, first + 1 + count
        which = np.repeat(np.arange(len(node)), count)
        k = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        child, of = first[which] + 1 + k, nodes.row[node][which]
        row[child], piece[child], scope[child, j] = of, k, True
        weight[child] = column.log_share[column.start[of] + k]
        cursor = cursor + size[:, j]
    return Nodes(at[nodes.start], kind, end, weight, row, piece, scope)


def _pin(schema: Schema, pinned: dict[int, float]) -> Schema:
    """The schema in which pinned columns have their value as the only atom."""
    columns = [
        replace(column, kind="mixed", atoms=(pinned[j],)) if j in pinned else column
        for j, column in enumerate(schema.columns)
    ]
    return replace(schema, columns=tuple(columns))


def _cut_numbers(
    forest: Forest, evidence: Evidence, cut: dict[int, Pieces], pinned: dict[int, float], new: Packed
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Supports (R, p) and masses of atoms (R, A) of the new parameter rows; where one has no mass it is as before."""
    columns, leaves = forest.columns, forest.leaves
    lo, hi = leaves.lo[new.row], leaves.hi[new.row]
    masses = []
    for j in np.flatnonzero(columns.is_categorical == 0).tolist():
        slot = columns.slot[j]
        mass = leaves.atom_mass[new.row, columns.atom_start[slot] : columns.atom_start[slot + 1]]
        if j in pinned:
            mass = np.ones((len(new.row), 1))
        elif j in cut:
            column, n_pieces = cut[j], np.diff(cut[j].start)[new.row]
            is_cut = n_pieces > 0
            piece = np.minimum(new.piece[is_cut], n_pieces[is_cut] - 1)
            which = column.start[new.row[is_cut]] + piece
            lo[is_cut, slot] = np.maximum(lo[is_cut, slot], evidence.run_lo[column.first[which]])
            hi[is_cut, slot] = np.minimum(hi[is_cut, slot], evidence.run_hi[column.last[which]])
            region = int(evidence.region[0, j])
            held = (evidence.atoms[region] >> np.arange(mass.shape[1], dtype=np.uint64)) & np.uint64(1)
            likelihood = np.zeros(mass.shape[1])
            if evidence.atom_log_weight.size:
                likelihood[: evidence.atom_log_weight.shape[1]] = evidence.atom_log_weight[region, : mass.shape[1]]
            log_first = column.log_first[new.row].reshape(-1, 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.exp(np.log(mass) + np.log(held.astype(np.float64)) + likelihood - log_first)
            first = (new.piece == 0) | (new.piece >= n_pieces)
            mass = np.where(first.reshape(-1, 1), np.where(log_first > -np.inf, share, mass), 0.0)
        masses.append(mass)
    return lo, hi, np.concatenate([np.zeros((len(new.row), 0)), *masses], axis=1)


def _cut_levels(
    forest: Forest, evidence: Evidence, regions: dict[int, int], row: np.ndarray
) -> tuple[np.ndarray, WideLevels]:
    """Level masses of the new parameter rows; one without mass in a region keeps what it had."""
    columns, leaves, where = forest.columns, forest.leaves, layout(forest.columns)
    mass: np.ndarray = leaves.level_mass[row]
    wide = [apart(leaves.wide, t, row) for t in range(len(where.slots))]
    for j, region in regions.items():
        if columns.is_categorical[j]:
            slot = int(columns.slot[j])
            likelihood = _of_levels(evidence, region, int(columns.level_start[slot + 1] - columns.level_start[slot]))
            place = int(where.place[slot])
            if place < 0:
                wide[-1 - place] = weighed(wide[-1 - place], likelihood)
                continue
            at = slice(place, place + len(likelihood))
            inside = mass[:, at] * likelihood
            total = inside.sum(axis=1, keepdims=True)
            np.divide(inside, total, out=inside, where=total > 0)
            mass[:, at] = np.where(total > 0, inside, mass[:, at])
    return mass, side_by_side(where, wide, len(row))


def _of_levels(evidence: Evidence, region: int, n: int) -> np.ndarray:
    """Likelihood of each of n levels under a region, (n,)."""
    level = np.arange(n)[:, None]
    runs = slice(*evidence.run_start[region : region + 2])
    held = (evidence.run_lo[runs] < level) & (level <= evidence.run_hi[runs])
    return np.asarray((held * np.exp(evidence.run_log_weight[runs])).sum(axis=1))


# ---- A forest given that a cell is missing, or is not: its leaves weighed anew.


def given_missing(forest: Forest, j: int, is_missing: bool) -> tuple[Forest | None, float]:
    """The distribution given that cell j is missing (or is known), and the log-probability of that.

    A leaf of weight w whose rows lack the cell at the rate r has w r (or w (1 - r)); in a leaf it tells nothing of the
    columns. None and -inf where no leaf is left.
    """
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
