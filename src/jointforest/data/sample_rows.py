"""A sample of a table's rows that does not depend on their order, or on how the table is cut."""

# The rows with the smallest `row_keys`, which depend on their content, are taken, and counted. Common rows, which stand
# for many, are found by `Tally.frequent`, counted in a second pass, and always taken.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from .cells import ColumnCells, FrameReader, joined_cells, taken
from .conditions import Interval
from .observe_table import Size, Tally, merge_tallies, mix_all_bits, number_keys, tally_of

Cells = Mapping[str, ColumnCells]


class RowSample(NamedTuple):
    """Some rows, each once.

    tally : Tally. Their keys, and how often each occurs in the table.
    cells : dict of column name to ColumnCells. Their cells, in the order of the keys.
    """

    tally: Tally
    cells: Cells


class CommonRows(NamedTuple):
    """Rows that may be common, counted exactly; of rows not seen yet there are no cells.

    keys : uint64 array (k,), ascending
    counts : int64 array (k,)
    cells : dict of column name to ColumnCells. Of the rows that occur, in the order of the keys.
    """

    keys: np.ndarray
    counts: np.ndarray
    cells: Cells


def sample_size(n_rows: int) -> Size:
    """Keys kept for a sample of so many rows."""
    return Size(most=n_rows, n_common=2 * n_rows)


def sample_rows(reader: FrameReader, seed: int, size: Size) -> RowSample:
    """The sample of one table, or batch."""
    cells = {name: reader.cells(name) for name in reader.names}
    keys = row_keys(cells.items(), reader.n, seed)
    tally = tally_of(keys, np.ones(len(keys), np.int64), size)
    return RowSample(tally, _first_cells(cells, keys, tally.keys))


def merge_samples(a: RowSample, b: RowSample, size: Size) -> RowSample:
    """The samples of two parts of a table as one."""
    tally = merge_tallies(a.tally, b.tally, size)
    cells = {name: joined_cells(name, of_a, b.cells[name]) for name, of_a in a.cells.items()}
    return RowSample(tally, _first_cells(cells, np.concatenate([a.tally.keys, b.tally.keys]), tally.keys))


def common_keys(sample: RowSample, size: Size) -> np.ndarray:
    """Keys of rows to be counted in a second pass, uint64 (k,), ascending: none where hardly a row is repeated."""
    return sample.tally.frequent(4.0 / size.n_common)


def count_common(reader: FrameReader, keys: np.ndarray, seed: int) -> CommonRows:
    """The common rows of these keys in one table, or batch."""
    cells = {name: reader.cells(name) for name in reader.names}
    if not len(keys):
        return CommonRows(keys, np.empty(0, np.int64), _first_cells(cells, keys, keys))
    key_of_row = row_keys(cells.items(), reader.n, seed)
    place = np.minimum(np.searchsorted(keys, key_of_row), len(keys) - 1)
    counts = np.bincount(place[keys[place] == key_of_row], minlength=len(keys)).astype(np.int64)
    return CommonRows(keys, counts, _first_cells(cells, key_of_row, keys[counts > 0]))


def merge_common(a: CommonRows, b: CommonRows) -> CommonRows:
    """The common rows of two parts of a table as one."""
    counts = a.counts + b.counts
    cells = {name: joined_cells(name, of_a, b.cells[name]) for name, of_a in a.cells.items()}
    keys = np.concatenate([a.keys[a.counts > 0], b.keys[b.counts > 0]])
    return CommonRows(a.keys, counts, _first_cells(cells, keys, a.keys[counts > 0]))


def weighed_rows(sample: RowSample, common: CommonRows | None) -> tuple[Cells, np.ndarray]:
    """Rows that stand for the table, each once, by their keys, and how many rows each stands for, float64 (k,)."""
    weight = sample.tally.counts.astype(np.float64)
    if sample.tally.is_whole or common is None:
        return sample.cells, weight * (sample.tally.n / weight.sum())
    is_often = common.counts > 0
    is_rare = ~np.isin(sample.tally.keys, common.keys)
    weight = weight[is_rare] * ((sample.tally.n - common.counts.sum()) / max(weight[is_rare].sum(), 1.0))
    keys = np.concatenate([sample.tally.keys[is_rare], common.keys[is_often]])
    order = np.argsort(keys)
    kept = np.flatnonzero(is_rare)
    cells = {
        name: taken(joined_cells(name, taken(of, kept), common.cells[name]), order) for name, of in sample.cells.items()
    }
    return cells, np.concatenate([weight, common.counts[is_often]])[order]


def _first_cells(cells: Cells, keys: np.ndarray, wanted: np.ndarray) -> Cells:
    """Cells of the first rows with the wanted keys, ascending; all of them are among ``keys`` (n,)."""
    rows = np.empty(0, np.int64)
    if len(wanted):
        order = np.argsort(keys, kind="stable")
        rows = order[np.searchsorted(keys[order], wanted)]
    return {name: taken(column, rows) for name, column in cells.items()}


# ---- 64-bit keys of cells and rows, by their content alone: what is sampled does not depend on where a row stands.


_MISSING = np.uint64(0x9E3779B97F4A7C15)


def label_key(label: Any) -> int:
    """Key of a level: of equal levels the same, whatever the process."""
    text = f"{'text' if isinstance(label, str) else 'number'}:{label if isinstance(label, str) else float(label)!r}"
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def cell_keys(cells: ColumnCells) -> np.ndarray:
    """Key of each cell of a column, uint64 (n,); a moment's does not depend on the unit it is stored in."""
    if cells.sort == "levels" and cells.codes is not None:
        of_label = np.array([label_key(label) for label in cells.labels] + [0], dtype=np.uint64)
        keys = of_label[cells.codes]
    elif cells.sort == "datetime":
        ticks = np.where(cells.missing, 0, cells.values)
        per_second = round(cells.per_second) if cells.per_second >= 1 else 1
        full_seconds = ticks // per_second
        keys = number_keys(full_seconds * round(max(1.0, 1 / cells.per_second))) ^ number_keys(
            (ticks - full_seconds * per_second) / per_second
        )
    else:
        keys = number_keys(np.where(cells.missing, 0.0, cells.values))
    keys = np.where(cells.missing, _MISSING, keys)
    if cells.range_of is None:
        return keys
    of_range = np.array([*(label_key(_text_of(interval)) for interval in cells.intervals), 0], np.uint64)
    return np.where(cells.range_of >= 0, of_range[cells.range_of], keys)


def _text_of(interval: Interval) -> str:
    """A range as text, the same whether its ends are whole numbers or floats."""
    ends = [float(end) if isinstance(end, int | float | np.number) else end for end in (interval.lo, interval.hi)]
    return f"{ends[0]!r} to {ends[1]!r}, {interval.closed}"


def row_keys(columns: Iterable[tuple[str, ColumnCells]], n: int, seed: int) -> np.ndarray:
    """Key of each of n rows, uint64 (n,): of equal cells in columns of equal names, in whatever order, the same."""
    total = np.zeros(n, dtype=np.uint64)
    for name, cells in columns:
        total += mix_all_bits(cell_keys(cells) ^ np.uint64(label_key(name)))
    return mix_all_bits(total ^ mix_all_bits(np.full(1, seed, dtype=np.uint64)))
