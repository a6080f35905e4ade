"""Histograms of numeric columns: leaf weights times a table of what each leaf has in each bin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence
from ...runtime.numeric_kernels import mix_rows
from ...runtime.threads import chunks, map_ordered
from .histogram_kernels import add_rows_inside, bin_rows
from .posterior import LeafPosterior, OneRow, numeric_slot
from .structure import Forest

# ---- Mass of bins of a numeric column: what histograms are made of.

CHUNK = 4096
"""Parameter rows of one row of evidence that a thread takes at a time."""
_NEAR = 1e-6
"""Steps of a grid by which the end of a bin may miss the edge of a cell."""


class Bins(NamedTuple):
    """Disjoint, ascending bins ``(lo, hi]``.

    lo, hi : float64 array (B,), C-contiguous. Without NaN; of a grid edges of cells.
    """

    lo: np.ndarray
    hi: np.ndarray


def bins_between(forest: Forest, j: int, cuts: np.ndarray) -> Bins:
    """The bins of column j between ascending cuts, and those below the first and above the last: all numbers."""
    step, origin = (float(field[numeric_slot(forest, j)]) for field in (forest.columns.step, forest.columns.origin))
    hi = np.append(cuts, np.inf)
    if step > 0.0:  # as `slot_kernels.cell_end`
        inner = np.isfinite(hi)
        hi[inner] = origin + (np.floor((hi[inner] - origin) / step + _NEAR) + 0.5) * step
    return Bins(np.concatenate([[-np.inf], hi])[:-1], hi)


def mass_in_row(forest: Forest, evidence: Evidence, j: int, post: LeafPosterior, bins: Bins) -> np.ndarray:
    """P(column j in bin) of a posterior of one row, (1, B): its leaves are shared among threads."""

    def work(first: int, stop: int) -> np.ndarray:
        ends = np.array([0, stop - first], dtype=np.int64)
        part = LeafPosterior(ends, post.leaf[first:stop], post.log_weight[first:stop], post.log_evidence)
        return mass_in_rows(forest, evidence, j, part, 0, bins)

    if np.isfinite(evidence.value[0, j]):
        return mass_in_rows(forest, evidence, j, post, 0, bins)
    return np.sum([*map_ordered(work, chunks(len(post.leaf), CHUNK) or [(0, 0)])], axis=0)


def mass_in_rows(forest: Forest, evidence: Evidence, j: int, post: LeafPosterior, first: int, bins: Bins) -> np.ndarray:
    """P(column j in bin) in each row of a posterior of column j (of the rows first.. of evidence), (rows, B)."""
    return np.asarray(bin_rows(forest.columns, forest.leaves, evidence, j, post, first, bins.lo, bins.hi))


def mass_in_leaves(forest: Forest, evidence: Evidence, j: int, leaf: np.ndarray, bins: Bins) -> np.ndarray:
    """P(column j in bin | evidence on column j) in each of m parameter rows, (m, B); of evidence row i for the i-th."""
    m = len(leaf)
    post = LeafPosterior(np.arange(m + 1, dtype=np.int64), leaf.astype(np.int32), np.zeros(m), np.zeros(m))
    return mass_in_rows(forest, evidence, j, post, 0, bins)


_LIMIT = 256 << 20
"""Bytes that the tables of a forest may take together; what does not fit is computed from the leaves each time."""
FEW = 16
"""A table is made where evidence leaves more than one in so many parameter rows: below, it costs more than it saves."""
MANY_ROWS = 8
"""Rows of evidence from which on a table is made whatever they leave: each reaches many leaves."""
_PIECES = 100_000
"""Most pairs of a run and a bin that are compared; of more no table is made."""


class BinTables:
    """P(column in bin) in every parameter row of a forest, float32 (R, B): made when first asked for, the oldest go."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._nothing = Evidence.nothing(len(forest.schema.columns), CHUNK)
        self._tables: dict[tuple[int, bytes], np.ndarray] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all tables."""
        return sum(table.nbytes for table in list(self._tables.values()))

    def of(self, j: int, bins: Bins, n_asked: int) -> np.ndarray | None:
        """The table of a column's bins; None if there is none, and it does not pay for n_asked rows of it, or fit."""
        key, R = (j, bins.hi.tobytes()), len(self._forest.leaves.tree)
        size = 4 * R * len(bins.hi)
        if key not in self._tables and n_asked * FEW > R and size <= _LIMIT:
            while self._tables and self.nbytes + size > _LIMIT:
                self._tables.pop(next(iter(self._tables)), None)
            self._tables[key] = self._made(j, bins, R)
        return self._tables.get(key)

    def in_leaves(self, j: int, leaf: np.ndarray, bins: Bins) -> np.ndarray:
        """P(column j in bin) in each of m parameter rows, at most `CHUNK`, without a table, (m, B)."""
        return mass_in_leaves(self._forest, self._nothing, j, leaf, bins)

    def _made(self, j: int, bins: Bins, R: int) -> np.ndarray:
        def work(first: int, stop: int) -> np.ndarray:
            return self.in_leaves(j, np.arange(first, stop), bins).astype(np.float32)

        return np.concatenate([*map_ordered(work, chunks(R, CHUNK))])


class _Held(NamedTuple):
    """What of bins lies in a region: bins wholly inside, and pieces (lo, hi] of others."""

    inside: np.ndarray  # 1.0 of bins inside, else 0.0, (B,)
    pieces: Bins
    bin_of_piece: np.ndarray


def table_of_many(forest: Forest, tables: BinTables, evidence: Evidence, j: int, bins: Bins) -> np.ndarray | None:
    """The table by which many rows that know nothing of the column are answered; None of others, or if it is large."""
    is_known = ~np.isnan(evidence.value[:, j]) | (evidence.cell_regions()[:, j] >= 0)
    if len(evidence.value) < MANY_ROWS or is_known.any():
        return None
    return tables.of(j, bins, len(forest.leaves.tree))


def free_levels(forest: Forest, evidence: Evidence, j: int, known: OneRow) -> np.ndarray | None:
    """Level shares of one row, (1, K), by those of all columns; None if the column is restricted, or as there."""
    if not np.isnan(evidence.value[0, j]) or evidence.cell_regions()[0, j] >= 0:
        return None
    shares, slot = known.level_shares, forest.columns.slot[j]
    if shares is None:
        return None
    first, stop = forest.columns.level_start[slot : slot + 2].tolist()
    return np.minimum(shares[first:stop], 1.0)[None]


def from_table(
    forest: Forest, tables: BinTables, evidence: Evidence, j: int, bins: Bins, known: OneRow
) -> np.ndarray | None:
    """The histogram of one row, (B,), by a table; None where that does not serve."""
    (row, weight), region = known.mixture, int(evidence.cell_regions()[0, j])
    held = _held(forest, evidence, j, region, bins) if region >= 0 else None
    if not len(row) or (region >= 0 and held is None):
        return None
    table = tables.of(j, bins, len(row))
    if table is None:
        return None
    if held is None:
        out = np.zeros(len(bins.hi))
        mix_rows(table, row, weight, out)
        return out

    def work(first: int, stop: int) -> np.ndarray:
        rows, share = row[first:stop], weight[first:stop]
        out, is_lost = np.zeros(len(bins.hi)), np.zeros(len(rows), bool)
        pieces = tables.in_leaves(j, rows, held.pieces)
        add_rows_inside(table, rows, share, held.inside, pieces, np.ascontiguousarray(held.bin_of_piece), out, is_lost)
        lost = np.flatnonzero(is_lost & (share > 0.0))
        if len(lost):
            out += share[lost] @ mass_in_leaves(forest, evidence.repeat(len(lost)), j, rows[lost], bins)
        return out

    return np.sum([*map_ordered(work, chunks(len(row), CHUNK))], axis=0)


def _held(forest: Forest, evidence: Evidence, j: int, region: int, bins: Bins) -> _Held | None:
    """The parts of the bins in a region; None where these are not enough: soft evidence, atoms apart from runs."""
    runs = slice(evidence.run_start[region], evidence.run_start[region + 1])
    lo, hi = evidence.run_lo[runs], evidence.run_hi[runs]
    column = forest.schema.columns[j]
    soft = evidence.run_log_weight[runs].any() or (
        evidence.atom_log_weight.size and evidence.atom_log_weight[region].any()
    )
    if soft or len(lo) * len(bins.lo) > _PIECES:
        return None
    if column.step == 0.0:
        for k, atom in enumerate(column.atoms):
            if bool(int(evidence.atoms[region]) >> k & 1) != bool(((lo < atom) & (atom <= hi)).any()):
                return None
    near = 0.25 * column.step  # runs and bins end on edges of cells
    u, v = np.maximum(lo[:, None], bins.lo), np.minimum(hi[:, None], bins.hi)
    is_whole = (u <= bins.lo + near) & (v >= bins.hi - near) & (bins.lo < bins.hi)
    run, b = np.nonzero((v - u > 2 * near) & ~is_whole)
    if len(b) > len(bins.lo):
        return None
    return _Held(is_whole.any(axis=0).astype(np.float64), Bins(u[run, b], v[run, b]), b)
