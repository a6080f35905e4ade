"""Expectation maximisation of a hidden tree: expected counts of rows, and tables from counts."""

# Tables of all nodes stand in flat arrays, so that one call of a kernel goes through all columns.

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...models.hidden_tree.hidden_trees import TreeTables
from ...runtime.records import record
from ...runtime.threads import Run, chunks, one_by_one
from . import em_kernels
from .constants import FIXED
from .structure import CodeColumn

# ---- Tables of all nodes in flat arrays.


@record
class Nodes(NamedTuple):
    """The nodes of a tree, and where their tables begin in flat arrays.

    parent, column, n_states, n_children : int64 arrays (m,). Parents come before their children; -1 of the root.
    most_states : int
    n_cells : int64 array (m,). Codes of the column, and one for a missing cell.
    first_state, first_transition, first_cell : int64 arrays (m + 1,). In arrays over states, over pairs of states of
        parent and node, and over cells and states.
    first_message, first_sent : int64 arrays (m + 1,). In arrays over states of the parent, and over cells and states of
        the parent.
    """

    parent: np.ndarray
    column: np.ndarray
    n_states: np.ndarray
    n_children: np.ndarray
    most_states: int
    n_cells: np.ndarray
    first_state: np.ndarray
    first_transition: np.ndarray
    first_cell: np.ndarray
    first_message: np.ndarray
    first_sent: np.ndarray


@record
class Tables(NamedTuple):
    """Counts of rows, or probabilities, of all nodes.

    transition : float32 array. Tables (H_parent, H_k), one after the other.
    cell : float32 array. Tables (K + 1, H_k); the last row is that of a missing cell, which is ones in tables of
        probabilities.
    """

    transition: np.ndarray
    cell: np.ndarray


NO_TABLES = Tables(np.empty(0, np.float32), np.empty(0, np.float32))


def nodes_of(order: np.ndarray, parent: np.ndarray, n_states: np.ndarray, n_codes: np.ndarray) -> Nodes:
    """Nodes of the columns ``order`` with so many states each, and so many codes of each *column*."""
    n_states, n_cells = n_states.astype(np.int64), n_codes[order].astype(np.int64) + 1
    above = np.where(parent >= 0, n_states[parent], 1)
    starts = [n_states, above * n_states, n_cells * n_states, above, n_cells * above]
    return Nodes(
        parent.astype(np.int64),
        order.astype(np.int64),
        n_states,
        np.bincount(parent[1:], minlength=len(parent)),
        int(n_states.max()),
        n_cells,
        *(np.concatenate([[0], np.cumsum(size)]) for size in starts),
    )


def empty_tables(nodes: Nodes) -> Tables:
    """Tables that are not yet written."""
    return Tables(np.empty(nodes.first_transition[-1], np.float32), np.empty(nodes.first_cell[-1], np.float32))


def split_tables(nodes: Nodes, tables: Tables) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Views of the transition tables (H_parent, H_k) and of the cell tables (K + 1, H_k) of the nodes."""
    shape = nodes.n_states.tolist()
    transition = np.split(tables.transition, nodes.first_transition[1:-1])
    cell = np.split(tables.cell, nodes.first_cell[1:-1])
    return [t.reshape(-1, H) for t, H in zip(transition, shape, strict=True)], [
        c.reshape(-1, H) for c, H in zip(cell, shape, strict=True)
    ]


def to_tree(nodes: Nodes, tables: Tables, columns: tuple[CodeColumn, ...]) -> TreeTables:
    """The tree of these probabilities."""
    emission = []
    transition, cells = split_tables(nodes, tables)
    for j, cell in zip(nodes.column.tolist(), cells, strict=True):
        known = cell[:-1].sum(axis=0)
        with np.errstate(invalid="ignore"):
            share = np.where(known > 0.0, cell[:-1] / known, columns[j].marginal[:, None])
        emission.append(np.ascontiguousarray(share.T, dtype=np.float32))
    return TreeTables(
        nodes.column.astype(np.int32),
        nodes.parent.astype(np.int32),
        tuple(table.copy() for table in transition),
        tuple(emission),
    )


def from_tree(tree: TreeTables) -> tuple[Nodes, Tables]:
    """The nodes and the probabilities of a tree that has a column at each node."""
    n_codes = np.empty(len(tree), np.int64)
    n_codes[tree.column] = [table.shape[1] for table in tree.emission]
    nodes = nodes_of(tree.column, tree.parent, tree.n_states, n_codes)
    cells = [np.concatenate([table.T, np.ones((1, len(table)))]) for table in tree.emission]
    return nodes, Tables(_flat(tree.transition), _flat(cells))


def _flat(tables: list[np.ndarray] | tuple[np.ndarray, ...]) -> np.ndarray:
    return np.concatenate([np.asarray(table, np.float32).ravel() for table in tables])


# ---- Expectation. A range is a code more, behind that of a missing cell: its row of a cell table is the sum of those
# of its codes, each times the share of the code that lies in the range.

Covers = tuple[np.ndarray, ...]
"""Share of each code of each column in each of its ranges, d arrays (R_j, K_j); empty where there are no ranges."""


def _with_ranges(nodes: Nodes, tables: Tables, covers: Covers) -> tuple[Nodes, Tables]:
    """Nodes and tables with codes for ranges."""
    n_codes = np.empty(len(covers), np.int64)
    n_codes[nodes.column] = nodes.n_cells - 1
    wide = nodes_of(nodes.column, nodes.parent, nodes.n_states, n_codes + [len(cover) for cover in covers])
    cells = [
        np.concatenate([cell, covers[j].astype(np.float32) @ cell[:-1]])
        for j, cell in zip(nodes.column.tolist(), split_tables(nodes, tables)[1], strict=True)
    ]
    return wide, Tables(tables.transition, _flat(cells))


def _without_ranges(
    nodes: Nodes, tables: Tables, wide: Nodes, counts: Tables, covers: Covers, before: Tables
) -> Tables:
    """Counts by codes: those of a range are spread over its codes as the counts ``before`` are."""
    # Were they spread as the tables are, what smoothing adds would be added anew in each step, as no cell objects to
    # it.
    cells = []
    each = (split_tables(nodes, tables)[1], split_tables(wide, counts)[1], split_tables(nodes, before)[1])
    for j, cell, count, old in zip(nodes.column.tolist(), *each, strict=True):
        cover, K = covers[j].astype(np.float32), len(cell) - 1
        own = count[: K + 1].copy()
        if len(cover):
            share = old[:K] + FIXED.range_smoothing * cell[:K]
            own[:K] += share * (cover.T @ (count[K + 1 :] / np.maximum(cover @ share, LEAST)))
        cells.append(own)
    return Tables(counts.transition, _flat(cells))


LEAST = np.float32(1e-30)
"""Floor of the probability of a range in a state."""


def expected_counts(
    nodes: Nodes,
    tables: Tables,
    codes: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray,
    run: Run = one_by_one,
    covers: Covers = (),
    before: Tables | None = None,
) -> Tables:
    """Expected counts over some rows, at least one, of codes (d, N) with weights (N,), piece by piece."""
    # Codes of ranges have ``covers``; ``before`` are the counts of which the tables are, or these themselves (None).
    if covers:
        wide, of_wide = _with_ranges(nodes, tables, covers)
        counts = expected_counts(wide, of_wide, codes, rows, weight, run)
        return _without_ranges(nodes, tables, wide, counts, covers, before or tables)
    most = nodes.most_states
    pieces = _pieces(nodes, rows)

    def count(piece: np.ndarray) -> Tables:
        counts = empty_tables(nodes)
        em_kernels.expect(nodes, tables, codes, piece, weight, counts, np.empty(len(piece)))
        return counts

    run = run if most >= FIXED.threads_from_states else one_by_one
    result: Tables | None = None
    for first in range(0, len(pieces), FIXED.waiting_pieces):
        for counts in run(count, [(piece,) for piece in pieces[first : first + FIXED.waiting_pieces]]):
            if result is None:
                result = counts
            else:
                add_counts(result, counts)
    assert result is not None
    return result


def add_counts(totals: Tables, more: Tables) -> None:
    """Add counts to totals, in place."""
    for total, new in zip(totals, more, strict=True):
        total += new


def log_probabilities(
    nodes: Nodes, tables: Tables, codes: np.ndarray, run: Run = one_by_one, covers: Covers = ()
) -> np.ndarray:
    """Log-probability of each row of codes (d, N), (N,)."""
    if covers:
        nodes, tables = _with_ranges(nodes, tables, covers)

    def one(piece: np.ndarray) -> np.ndarray:
        found = np.empty(len(piece))
        em_kernels.expect(nodes, tables, codes, piece, NO_WEIGHT, NO_TABLES, found)
        return found

    rows = np.arange(codes.shape[1])
    return np.concatenate([np.empty(0), *run(one, [(piece,) for piece in _pieces(nodes, rows)])])


NO_WEIGHT = np.empty(0, np.float32)


def _pieces(nodes: Nodes, rows: np.ndarray) -> list[np.ndarray]:
    """Rows in pieces of work, which do not depend on the number of threads: sums are merged in their order."""
    most = nodes.most_states
    size = int(np.clip(FIXED.piece_entries // most, FIXED.piece_fewest_rows, FIXED.piece_most_rows))
    size = int(np.clip(FIXED.piece_floats // max(int(nodes.first_state[-1]), 1), 32, size))
    if len(rows) > FIXED.long_batch:
        size *= 4
    elif most >= FIXED.threads_from_states:
        size = min(size, max((len(rows) + 1) // 2, FIXED.fewest_piece_rows))
    return [rows[a:b] for a, b in chunks(len(rows), size)]


# ---- Maximisation.


@record
class Smoothing(NamedTuple):
    """Rows added to the counts of each state.

    A state whose rows all have the same code gets next to nothing, except for its normal. A state whose rows have many
    codes probably has further codes that no row has shown yet (Witten and Bell 1991). So the rows added grow with the
    effective number of codes of the state, less one: the number of equally frequent codes that would be as diverse.

    transition : float. Rows for each further state of a child, by `em_kernels.like_states`, where ``near`` does not
        count.
    normal : float. Pseudo-rows of the state's own normal, on the scale of normal scores, and of its own point masses.
        They are multiplied by the state's share of rows outside point masses, and by the column's share of known cells.
    marginal : float. Rows for each further code, in the proportions of the column's marginal; not for numbers with a
        ``normal``.
    extra : float. Rows in the proportions of the child's states, whatever the number of codes.
    near : float. Rows of transitions by the state's own normal over the child's states (`em_kernels.near_states`),
        where the child's column is of numbers.
    point_mass : float. A code with a larger part of the rows that exceeds the codes beside it is a point mass, such as
        40 hours a week. No normal blurs it with its neighbours.
    """

    transition: float = 0.02
    normal: float = 30.0
    marginal: float = 0.01
    extra: float = 0.0
    near: float = 0.0
    point_mass: float = FIXED.point_mass


@record
class FlatColumns(NamedTuple):
    """Columns of codes one after the other, as kernels take them; see `structure.CodeColumn`.

    first : int64 array (d + 1,). Where each column's codes begin; its edges begin j places later.
    marginal : float32 array
    known : float32 array (d,). Share of the rows that know the cell.
    is_smooth : bool array (d,). Whether codes are ordered, and two or more are no point masses.
    is_light : bool array. Whether a code is possible and no point mass.
    score, spread : float64 arrays. Mean and variance of a standard normal within each code's interval; 0 where codes
        have no order.
    edge : float64 array
    """

    first: np.ndarray
    marginal: np.ndarray
    known: np.ndarray
    is_smooth: np.ndarray
    is_light: np.ndarray
    score: np.ndarray
    spread: np.ndarray
    edge: np.ndarray


def flat_columns(columns: tuple[CodeColumn, ...], smoothing: Smoothing) -> FlatColumns:
    """The columns as kernels take them."""
    light = [is_light(column, smoothing) for column in columns]
    zeros = [np.zeros(column.n_codes) for column in columns]
    apart = [_apart(column, of) for column, of in zip(columns, light, strict=True)]
    return FlatColumns(
        np.concatenate([[0], np.cumsum([column.n_codes for column in columns])]),
        _flat([column.marginal for column in columns]),
        np.array([column.known for column in columns], np.float32),
        np.array([column.is_ordered and np.count_nonzero(of) > 1 for column, of in zip(columns, light, strict=True)]),
        np.concatenate(light),
        np.concatenate([c.score + of if c.is_ordered else of for c, of in zip(columns, apart, strict=True)]),
        np.concatenate([spread_inside(c) if c.is_ordered else zero for c, zero in zip(columns, zeros, strict=True)]),
        np.concatenate(
            [
                c.edge + _between(of) if c.is_ordered else np.zeros(c.n_codes + 1)
                for c, of in zip(columns, apart, strict=True)
            ]
        ),
    )


def _apart(column: CodeColumn, light: np.ndarray) -> np.ndarray:
    """Offsets of the codes' normal scores, (K,): a sparse place between two peaks is as wide as if it were as dense as
    the lower peak."""
    # Normal scores hide the distance between groups of values: the normal of one group would reach into the next one.
    more = np.zeros(max(column.n_codes - 1, 0))
    if column.center is not None:
        is_inside = light[:-1] & light[1:]
        mass, length = column.marginal[:-1] + column.marginal[1:], np.diff(column.center)
        with np.errstate(all="ignore"):
            density = np.where(is_inside & (length > 0.0), mass / length, 0.0)
            peak = np.minimum(np.maximum.accumulate(density), np.maximum.accumulate(density[::-1])[::-1])
            more = np.where(density > 0.0, np.minimum(np.diff(column.score) * (peak / density - 1.0), FIXED.gap), 0.0)
    if column.gaps is not None:
        more = np.where(np.diff(column.gaps) > 0, FIXED.gap, more)
    return np.concatenate([np.zeros(min(column.n_codes, 1)), np.cumsum(more)])


def _between(apart: np.ndarray) -> np.ndarray:
    """Offsets of the ends of the codes' intervals, (K + 1,): means of those of the codes on both sides."""
    padded = np.pad(apart, 1, "edge")
    return 0.5 * (padded[1:] + padded[:-1])


def is_light(column: CodeColumn, smoothing: Smoothing) -> np.ndarray:
    """Whether an ordered code is possible, no point mass, and no value far from all others, bool (K,)."""
    share = column.marginal
    if not column.is_ordered:
        return np.zeros(len(share), bool)
    is_point_mass = (share > smoothing.point_mass) & (share > FIXED.point_mass_above * column.around)
    is_alone = is_point_mass if column.far is None else is_point_mass | column.far
    return np.asarray(~is_alone & (share > 0.0))


def spread_inside(column: CodeColumn) -> np.ndarray:
    """Variance of a standard normal within each code's interval, (K,)."""
    edge = column.edge
    density = np.where(np.isfinite(edge), edge, 0.0) * np.exp(-0.5 * edge**2) / np.sqrt(2 * np.pi)
    possible = column.marginal > 0
    return np.asarray(
        np.maximum(1.0 - np.diff(density) / np.where(possible, column.marginal, 1.0) - column.score**2, 0.0) * possible
    )


class Maximisation:
    """Tables from counts, for the nodes and columns of one tree; the normals of states are kept from call to call."""

    def __init__(self, nodes: Nodes, columns: tuple[CodeColumn, ...], smoothing: Smoothing, run: Run = one_by_one):
        self._nodes, self._columns = nodes, flat_columns(columns, smoothing)
        is_smooth = bool(self._columns.is_smooth.any())
        self.normals = Tables(
            np.empty(nodes.first_transition[-1] if is_smooth and smoothing.near > 0.0 else 0, np.float32),
            np.empty(nodes.first_cell[-1] if is_smooth and smoothing.normal > 0.0 else 0, np.float32),
        )
        self._run = run
        self._parts = _parts(nodes)

    def fit_normals(self, counts: Tables, smoothing: Smoothing) -> None:
        """Fit the normals of the states anew."""

        def one(first: int, last: int) -> None:
            em_kernels.fit_normals(self._nodes, first, last, self._columns, counts, smoothing, self.normals)

        if any(len(table) for table in self.normals):
            self._run(one, self._parts)

    def tables(self, counts: Tables, smoothing: Smoothing) -> Tables:
        """The tables that are proportional to counts and what is added."""
        result = empty_tables(self._nodes)

        def one(first: int, last: int) -> None:
            em_kernels.maximise(self._nodes, first, last, self._columns, counts, self.normals, smoothing, result)

        self._run(one, self._parts)
        return result


def _parts(nodes: Nodes) -> list[tuple[int, int]]:
    """Runs of nodes whose tables are worth a thread."""
    size = nodes.first_transition + nodes.first_cell
    n = int(np.clip(size[-1] // FIXED.part_entries, 1, len(nodes.parent)))
    bounds = np.unique(np.searchsorted(size, np.linspace(0, size[-1], n + 1)))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
