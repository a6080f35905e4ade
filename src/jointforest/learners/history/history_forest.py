"""The estimator of histories, and its sample of subjects from a table in batches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from ...api.history_joint import HistoryJoint
from ...data.cells import ColumnCells, FrameReader, joined_cells, taken
from ...data.frames import read
from ...data.history_rows import check_history_names, check_subjects
from ...data.observe_table import check_alike
from ...data.sample_rows import Cells, row_keys
from ...runtime.parameters import FLAG, VERBOSE, Number, parameter
from ...runtime.progress import write_line
from ...runtime.threads import threaded
from ..base import Estimator, as_frame
from ..batches.sample import FoldBatches, Pass, fold_of, has_own_passes
from .constants import FIXED, Constants
from .learn import learn_histories
from .prepare import prepare_histories


@dataclass(eq=False, repr=False)
class HistoryForest(Estimator):
    """Learn the joint distribution of histories: tables with several rows for each subject.

    A history is a chain of cells, row after row and column after column. Trees predict each cell from what came before
    it: the row before, the columns before it in its row, and memories of the subject's past. See
    ``docs/concepts/histories.md``.

    Parameters
    ----------
    smoothing : float or "auto"
        How simple trees are kept and how much leaves are smoothed. With 1, histories that were not learned from have
        about the highest likelihood, which is best for forecasts; with less, draws are more realistic. ``"auto"`` is
        0.1 for 50,000 rows and more, and 1 for fewer.
    ends : bool
        Whether the last row of a subject is the end of its history. If it is only where the data stop, say False: then
        the number of rows is not modelled.
    kinds : dict or None
        Kinds of columns by name, where the inferred ones are not wanted.
    random_state : None, int, Generator or RandomState
        The same seed gives the same joint, whatever ``n_jobs``.
    n_jobs : int or None
        Threads (-1: all cores).
    verbose : bool or int
        Whether to tell what is done, on standard error.

    Attributes
    ----------
    joint_ : HistoryJoint
    feature_names_in_ : ndarray of str, only if fitted on a frame
    n_features_in_ : int

    Examples
    --------
    >>> visits = jf.datasets.make_visits(200, random_state=0)
    >>> joint = jf.HistoryForest(random_state=0).fit(visits, group="patient", order="date").joint_
    >>> joint.constant
    ('sex',)
    >>> joint.log_density(visits).shape
    (200,)
    """

    joint_: HistoryJoint = field(init=False)
    _: KW_ONLY
    smoothing: float | str = parameter("auto", Number(0, 100), "auto")
    ends: bool = parameter(True, *FLAG)
    kinds: dict[str, str] | None = None
    random_state: Any = None
    n_jobs: int | None = -1
    verbose: bool | int = parameter(False, *VERBOSE)

    @threaded
    def fit(self, X: Any, y: None = None, *, group: str, order: str | None = None) -> Self:
        """Learn from a frame (pandas, polars, pyarrow) with several rows for each subject.

        Parameters
        ----------
        X : frame of N rows
            In any order; cells may be missing.
        y : ignored
        group : str
            The column that names the subject of each row.
        order : str, optional
            The column of times, numbers or dates. Rows of a subject with the same time keep their order in the table.
            Without ``order``, all rows do.

        Raises
        ------
        ValueError
            If a parameter is out of its range, a column is not there, a subject or time is missing, no two rows of any
            subject differ in time, or no subject has two rows.
        """
        start = time.monotonic()
        self._check()
        return self._learn(read(as_frame(X)), group, order, self._draw_seed(), start)

    @threaded
    def fit_batches(self, source: Any, *, group: str, order: str | None = None) -> Self:
        """Learn from a table larger than memory, in one pass over batches of its rows.

        The joint is learned from a sample of whole subjects, with at most 1,000,000 rows: those whose identifiers have
        the smallest hashes. With ``order``, the joint does not depend on how the table is cut into batches, nor on the
        order of its rows. See ``docs/how-to/large-tables.md``.

        Parameters
        ----------
        source : path or list of paths, pyarrow.dataset.Dataset, polars.LazyFrame, DuckDB relation, callable, or a frame
            As `AdversarialForest.fit_batches` takes it.
        group, order : str
            As of `fit`. An engine needs ``order``, because its batches have none.

        Raises
        ------
        ValueError
            As `fit` raises it, and if batches have other columns or types that no column can combine.
        FileNotFoundError
            If there is no such file.

        Examples
        --------
        >>> visits = jf.datasets.make_visits(200, random_state=0)
        >>> forest = jf.HistoryForest(random_state=0)
        >>> batches = lambda: (visits[k : k + 500] for k in range(0, len(visits), 500))
        >>> forest.fit_batches(batches, group="patient", order="date").joint_
        HistoryJoint(200 subjects; constant: sex; varying: status, weight, pressure; ... trees, ... leaves)
        """
        start = time.monotonic()
        self._check()
        seed = self._draw_seed()
        if order is None and has_own_passes(source):
            raise ValueError("order: the batches of an engine have no order; name the column of times")
        fold, time_column = fold_of(source), None if order is None else str(order)
        reader, n_rows = sample_subjects(fold, str(group), time_column, FIXED.batch_rows, seed)
        if reader.n < n_rows:
            self._tell(f"{n_rows} rows, from {reader.n} of which whole subjects are learned")
        return self._learn(reader, group, order, seed, start)

    def _tell(self, text: str) -> None:
        if self.verbose:
            write_line(text)

    def _learn(self, reader: FrameReader, group: str, order: str | None, seed: int, start: float) -> Self:
        """Learn from a frame that is read."""
        self._name_columns(reader.names, reader.frame)
        prepared = prepare_histories(reader, group, order, self.kinds, self.ends)
        size = len(prepared.rows.labels), *prepared.X.shape
        self._tell("{} subjects, {} rows, {} columns".format(*size))
        constants = smoothed(self.smoothing, len(prepared.X))
        model = learn_histories(prepared, seed, constants, self._tell)
        self.joint_ = HistoryJoint(model)
        self._tell(f"{model.n_trees} trees, {model.n_leaves} leaves, in {time.monotonic() - start:.1f} s")
        return self


def smoothed(smoothing: float | str, n_rows: int) -> Constants:
    """Constants for a value of the parameter ``smoothing``."""
    if isinstance(smoothing, str):
        smoothing = FIXED.smoothing_of_many if n_rows >= FIXED.many_rows else 1.0
    pseudo = FIXED.least_pseudo + (1.0 - FIXED.least_pseudo) * smoothing
    return replace(
        FIXED, gain_a_type=float(smoothing), near=pseudo, far=pseudo, ratio_pseudo=10.0 + 10.0 * smoothing,
        binned_share=FIXED.binned_share if smoothing >= 1.0 else FIXED.binned_share_of_many,
    )  # fmt: skip


# ---- A sample of whole subjects from a table in batches, however the rows of a subject are spread over them.
# ---- A subject's key is a hash of its identifier and the seed. The subjects with the smallest keys are kept, with all
# ---- their rows, as long as there are not too many. What is kept does not depend on how the table is cut, and a
# ---- subject that is left out at any point is never among those kept in the end.


class _Part(NamedTuple):
    """Rows of a batch: the keys of their subjects, uint64 (n,), and their cells."""

    keys: np.ndarray
    cells: Cells


class SubjectSample(NamedTuple):
    """All rows of the subjects with the smallest keys, as they came: mergeable, by `merge_subjects`.

    reader : FrameReader. A frame without rows: library and names.
    below : uint64. Keys of the subjects that are kept are less than this.
    parts : list of Part
    n_rows : int. Rows met, those that were left out among them.
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
    """The rows of some subjects, in the order of their keys, and how many rows the table has, in one pass."""
    # At most ``most_rows`` rows are kept, unless a single subject has more. Raises ValueError if there is no row, a
    # column is not there, a row has no subject, or batches do not go together.
    add = partial(_add_histories, group=group, order=order, most_rows=most_rows, seed=seed)
    found = fold(Pass(_no_histories, add, partial(_merge_samples, most_rows=most_rows), "looking at subjects"), None)
    if found is None or found.n_rows == 0:
        raise ValueError("the source gave no rows; at least one is needed")
    parts = _kept(found, most_rows).parts
    keys = np.concatenate([part.keys for part in parts])
    by_key = np.argsort(keys, kind="stable")
    cells = {name: taken(_in_one(name, [part.cells[name] for part in parts]), by_key) for name in found.reader.names}
    return replace(found.reader, n=len(keys), cells=cells.__getitem__), found.n_rows


def _no_histories() -> None:
    """The sample of no rows; a function that can be sent to other machines."""


def _add_histories(
    sums: SubjectSample | None, batch: Any, group: str, order: str | None, most_rows: int, seed: int
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


def _merge_samples(a: SubjectSample | None, b: SubjectSample | None, most_rows: int) -> SubjectSample | None:
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
        columns = [joined_cells(name, a, b) for a, b in zip(columns[::2], columns[1::2], strict=False)] + last
    return columns[0]
