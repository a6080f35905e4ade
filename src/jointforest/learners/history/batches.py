"""A sample of whole subjects from a table in batches, however the rows of a subject are spread over them.

A subject's key is a hash of its identifier and the seed. The subjects with the smallest keys are kept, with all their
rows, as long as there are not too many. What is kept does not depend on how the table is cut, and a subject that is
left out at any point is never among those kept in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.cells import ColumnCells, FrameReader, joined, taken
from ...data.frames import read
from ...data.history_rows import check_history_names, check_subjects
from ...data.observe_table import check_alike
from ...data.sample_rows import Cells, row_keys
from ..batches.passes import FoldBatches, Pass


class _Part(NamedTuple):
    """Rows of a batch: the keys of their subjects, uint64 (n,), and their cells."""

    keys: np.ndarray
    cells: Cells


class SubjectSample(NamedTuple):
    """All rows of the subjects with the smallest keys, as they came: mergeable, by `merge_subjects`.

    Attributes
    ----------
    reader : FrameReader
        A frame without rows: library and names.
    below : uint64
        Keys of the subjects that are kept are less than this.
    parts : list of Part
    n_rows : int
        Rows met, those that were left out among them.
    """

    reader: FrameReader
    below: np.uint64
    parts: list[_Part]
    n_rows: int

    @property
    def n_kept(self) -> int:
        """Rows of the parts."""
        return sum(len(part.keys) for part in self.parts)


def sample_subjects(
    fold: FoldBatches, group: str, order: str | None, most_rows: int, seed: int
) -> tuple[FrameReader, int]:
    """The rows of some subjects, in the order of their keys, and how many rows the table has, in one pass.

    At most ``most_rows`` rows are kept, unless a single subject has more. Raises ValueError if there is no row, a
    column is not there, a row has no subject, or batches do not go together.
    """
    add = partial(_add, group=group, order=order, most_rows=most_rows, seed=seed)
    found = fold(Pass(_nothing, add, partial(_merge, most_rows=most_rows), "looking at subjects"), None)
    if found is None or found.n_rows == 0:
        raise ValueError("the source gave no rows; at least one is needed")
    parts = _kept(found, most_rows).parts
    keys = np.concatenate([part.keys for part in parts])
    by_key = np.argsort(keys, kind="stable")
    cells = {name: taken(_in_one(name, [part.cells[name] for part in parts]), by_key) for name in found.reader.names}
    return replace(found.reader, n=len(keys), cells=cells.__getitem__), found.n_rows


def _nothing() -> None:
    """The sample of no rows; a function that can be sent to other machines."""


def _add(
    sums: SubjectSample | None,
    batch: Any,
    group: str,
    order: str | None,
    most_rows: int,
    seed: int,
) -> SubjectSample:
    """The sample with the rows of a batch."""
    reader = read(batch)
    check_history_names(reader, group, order)
    cells = {name: reader.cells(name) for name in reader.names}
    check_subjects(cells[group], group)
    keys = row_keys([(group, cells[group])], reader.n, seed)
    none = replace(reader, n=0, cells=partial(_no_cells, {name: taken(of, np.arange(0)) for name, of in cells.items()}))
    one = SubjectSample(none, np.uint64(2**64 - 1), [_Part(keys, cells)] if reader.n else [], reader.n)
    return one if sums is None else merge_subjects(sums, one, most_rows)


def _no_cells(cells: Cells, name: str) -> ColumnCells:
    """The cells of a frame without rows; a function that can be sent to other machines."""
    return cells[name]


def _merge(a: SubjectSample | None, b: SubjectSample | None, most_rows: int) -> SubjectSample | None:
    """The same, where an engine has found no rows in a part."""
    if a is None:
        return b
    if b is None:
        return a
    return merge_subjects(a, b, most_rows)


def merge_subjects(a: SubjectSample, b: SubjectSample, most_rows: int) -> SubjectSample:
    """The samples of two parts of a table as one."""
    check_alike(a.reader.names, b.reader.names)
    if a.reader.frame != b.reader.frame:
        frames = f"a part of the table is of {b.reader.frame}, another of {a.reader.frame}"
        raise ValueError(f"{frames}; give parts of one library")
    both = SubjectSample(a.reader, min(a.below, b.below), [*a.parts, *b.parts], a.n_rows + b.n_rows)
    return _kept(both, most_rows) if both.n_kept > 2 * most_rows else both


def _kept(sample: SubjectSample, most_rows: int) -> SubjectSample:
    """The same without the subjects of the largest keys, so that at most so many rows are left, or one subject."""
    keys, counts = np.unique(np.concatenate([part.keys for part in sample.parts]), return_counts=True)
    is_kept = (keys < sample.below) & (np.cumsum(counts) <= most_rows)
    is_kept[0] = True
    below = min(sample.below, keys[~is_kept][0]) if not is_kept.all() else sample.below
    parts = []
    for part in sample.parts:
        rows = np.flatnonzero(part.keys < below)
        if len(rows) == len(part.keys):
            parts.append(part)
        elif len(rows):
            parts.append(_Part(part.keys[rows], {name: taken(of, rows) for name, of in part.cells.items()}))
    return sample._replace(below=below, parts=parts)


def _in_one(name: str, columns: Sequence[ColumnCells]) -> ColumnCells:
    """Cells of a column in many parts as one; neighbours are joined first, so that each cell is copied few times."""
    while len(columns) > 1:
        last = [] if len(columns) % 2 == 0 else [columns[-1]]
        columns = [joined(name, a, b) for a, b in zip(columns[::2], columns[1::2], strict=False)] + last
    return columns[0]
