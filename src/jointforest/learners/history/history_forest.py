"""The estimator of histories."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

from ...api.history_joint import HistoryJoint
from ...data.cells import FrameReader
from ...data.frames import read
from ...runtime.parameters import FLAG, VERBOSE, Number, parameter
from ...runtime.progress import write_line
from ...runtime.threads import threaded
from ..base import Estimator, as_frame
from ..batches.passes import fold_of, has_own_passes
from .batches import sample_subjects
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
    >>> import jointforest as jf
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
        >>> import jointforest as jf
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
