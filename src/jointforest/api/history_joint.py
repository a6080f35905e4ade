"""The joint distribution of histories: frames with several rows for each subject in, answers and frames out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import narwhals as nw
import numpy as np

from .. import cards
from ..data.frames import encode, fill, read, warn_unseen, with_names
from ..data.history_rows import HistoryRows, check_history_names, group_rows, split_columns, whole_subjects
from ..data.schema import Schema
from ..evaluation.columns_and_pairs import TableCells, table_cells
from ..evaluation.histories import HistoryCells, HistoryFidelity, history_fidelity
from ..models.file import save_model
from ..models.history.columns import (
    GAP,
    LENGTH_COLUMN,
    START,
    CodedCells,
    HistoryColumns,
    code_histories,
    first_known,
    frame_of,
)
from ..models.history.history_model import IMPUTE_CAP, HistoryModel, draw_values, impute_codes
from ..models.history.records import of_subjects
from ..runtime.parameters import Number, check_number, seed_of
from ..runtime.threads import threaded
from ..runtime.warnings import warn
from .forecast import Forecast, make_forecast
from .joint import Joint

CAP = 256
"""Hypotheses about unknown cells: sums over them are exact as long as there are no more."""
_ROUNDING = 1e-9
"""Differences of estimates up to this are rounding."""
RUNS = 32
"""Estimates from which a standard error comes: that of eight was too small in one of 50 histories."""


_NEXT = "use joint.forecast(frame) for the next rows, joint.impute(frame) for missing cells"
INSTEAD = {
    "given": _NEXT,
    "condition": _NEXT,
    "marginal": _NEXT,
    "query": "use joint.forecast(frame).probability(\"status = 'late'\"), or its mean, proba, quantile or interval",
    "probability": "use joint.forecast(frame).probability(event) for the next rows",
    "compare": "use joint.forecast(frame).sample(m), and compare columns of the draws",
    "predict": "use joint.forecast(frame).mean(column) for the next rows, joint.impute(frame) for missing cells",
    "predict_proba": "use joint.forecast(frame).proba(column) for the next rows",
    "report": "use joint.fidelity(frame, holdout) to compare drawn histories with those of the table",
    "robustness": "use joint.attribution(frame) to find unusual cells",
    "tree_log_density": "use joint.attribution(frame) for the log-density of each cell",
    "n_trees": "use joint.model.n_trees",
    "n_leaves": "use joint.model.n_leaves",
    "kinds": "use joint.schema.kinds",
}
"""What to ask instead of verbs that joints of single rows have."""


class Given(NamedTuple):
    """Histories of a frame.

    frame : frame of N rows. With a number behind each name that another column has, too.
    X : float64 array (N, number of schema columns). Subject after subject, in the order of time.
    unseen : bool array of the same shape
    """

    frame: Any
    rows: HistoryRows
    X: np.ndarray
    unseen: np.ndarray
    coded: CodedCells


class HistoryJoint:
    """The joint distribution of the histories of subjects, made by `HistoryForest` or `jf.fit(..., group=)`.

    ``n_jobs`` of its methods is a number of threads; no answer depends on it.

    A frame has several rows for each subject, in any order; its columns are matched by name. Answers about subjects are
    in the order in which they first appear in the frame: see `subjects`.

    An empty cell of a column that had empty cells at learning is a fact, as it was then: the cell is missing. In other
    columns it is unknown, and summed out.

    Parameters
    ----------
    model : HistoryModel

    Attributes
    ----------
    model : HistoryModel

    Examples
    --------
    >>> visits = jf.datasets.make_visits(300, random_state=0)
    >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
    >>> joint
    HistoryJoint(300 subjects; constant: sex; varying: status, weight, pressure; ... trees, ... leaves)
    >>> joint.forecast(visits, steps=2, random_state=0).mean("pressure").shape
    (300, 2)
    """

    is_of_histories: ClassVar[bool] = True
    """Whether it is a joint of histories, not of single rows."""

    def __init__(self, model: HistoryModel) -> None:
        self.model = model

    def __repr__(self) -> str:
        constant = f"; constant: {_few_of(self.constant)}" if self.constant else ""
        return (
            f"HistoryJoint({int(self.model.length_counts.sum())} subjects{constant}; varying: {_few_of(self.varying)}; "
            f"{self.model.n_trees} trees, {self.model.n_leaves} leaves)"
        )

    def _repr_html_(self) -> str:
        about = {name: "the same in all rows of a subject" for name in self.constant}
        about |= dict.fromkeys(self.varying, "varies from row to row")
        rows = [(name, self.schema[name].kind if name in self.schema.names else "", of) for name, of in about.items()]
        return cards.view_html(repr(self), [], [cards.table_html(rows, ("column", "kind", ""))])

    def __getattr__(self, name: str) -> Any:
        """Say what to ask instead of a verb that joints of single rows have."""
        if name.startswith("__") or not hasattr(Joint, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        instead = INSTEAD.get(name, "only joints of single rows have it; fit the table without group")
        raise AttributeError(f"a joint of histories has no {name!r}: {instead}")

    # -- what it is

    @property
    def schema(self) -> Schema:
        """What is known of the columns other than those of subject and time."""
        return self.model.columns.schema

    @property
    def group(self) -> str:
        """Name of the column of subjects."""
        return self.model.columns.group.name

    @property
    def order(self) -> str | None:
        """Name of the column of times; None if rows are in order as they stand."""
        time = self.model.columns.time
        return None if time is None else time.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns other than those of subject and time, in order."""
        return self.schema.names

    @property
    def constant(self) -> tuple[str, ...]:
        """Columns that have one value within a subject."""
        return tuple(self.schema.names[v.source] for v in self.model.columns.head if v.source >= 0)

    @property
    def varying(self) -> tuple[str, ...]:
        """Columns that vary within a subject, in the order of the frame."""
        places = sorted(v.source for v in self.model.columns.rows if v.source >= 0)
        return tuple(self.schema.names[j] for j in places)

    def info(self) -> dict[str, Any]:
        """Size and columns of the model, as plain dicts and lists."""
        model, columns = self.model, self.model.columns
        return {
            "subjects": int(model.length_counts.sum()),
            "rows": int((model.lengths * model.length_counts).sum()),
            "trees": model.n_trees,
            "leaves": model.n_leaves,
            "group": self.group,
            "order": self.order,
            "constant": list(self.constant),
            "varying": list(self.varying),
            "drawn": [self._label(v.source) for v in columns.rows],
            "changes": [self._label(columns.rows[j].source) for j in columns.changes],
            "ends": columns.has_length,
            "columns": [{"name": c.name, "kind": c.kind} for c in self.schema.columns],
        }

    def _label(self, source: int) -> str:
        """Name of a variable."""
        own = {
            GAP: f"time since the row before ({self.order})",
            START: f"first {self.order}",
            LENGTH_COLUMN: "number of rows",
        }
        return own[source] if source < 0 else self.schema.names[source]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to a `.joint` file; `jf.load` reads it."""
        save_model(self.model, path)

    # -- reading frames

    def subjects(self, frame: Any) -> list[Any]:
        """What a frame calls its subjects, in the order of answers."""
        return self._rows(with_names(frame)).labels

    def in_batches(self, source: Any, rows: int = 100_000) -> Iterator[Any]:
        """Frames of whole subjects, one after the other, from a table larger than memory: to ask about each of them.

        Parameters
        ----------
        source : path or list of paths, pyarrow.dataset.Dataset, polars.LazyFrame, DuckDB relation, callable, or a frame
            As `HistoryForest.fit_batches` takes it. The rows of each subject must stand together, in any order.
        rows : int
            Rows of a frame, at most; a subject with more rows has a frame of its own.

        Yields
        ------
        frame

        Raises
        ------
        ValueError
            If the column of subjects is not there, a row has no subject, or rows of a subject stand apart.

        Examples
        --------
        >>> visits = jf.datasets.make_visits(300, random_state=0)
        >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
        >>> batches = lambda: (visits[k : k + 500] for k in range(0, len(visits), 500))
        >>> sum(len(joint.log_density(part)) for part in joint.in_batches(batches, rows=1000))
        300
        """
        check_number("rows", rows, 1, whole=True)
        return whole_subjects(source, self.group, int(rows))

    @property
    def _keys(self) -> list[str]:
        """Names of the columns of subjects and of times."""
        return [self.group] if self.order is None else [self.group, self.order]

    def _rows(self, frame: Any) -> HistoryRows:
        reader = read(frame)
        check_history_names(reader, self.group, self.order)
        return group_rows(reader, self.group, self.model.columns.time)

    def _read(self, frame: Any, ended: bool, empty_is_unknown: bool = False) -> Given:
        """The histories of a frame."""
        frame = with_names(frame)
        rows = self._rows(frame)
        _, rest = split_columns(frame, self._keys)
        X, unseen = encode(self.schema, rest)
        warn_unseen(self.schema, rest, unseen)
        X, unseen = np.ascontiguousarray(X[rows.place]), unseen[rows.place]
        self._warn_varying(rows, X)
        length = rows.length if ended or not self.model.columns.has_length else np.full(len(rows.labels), -1)
        coded = code_histories(self.model.columns, rows.start, X, rows.time, length, empty_is_unknown, unseen)
        return Given(frame, rows, X, unseen, coded)

    def _warn_varying(self, rows: HistoryRows, X: np.ndarray) -> None:
        """Say where a constant column is not constant: its first value is taken."""
        subject = np.repeat(np.arange(len(rows.labels)), rows.length)
        for variable in self.model.columns.head:
            if variable.source < 0 or not len(X):
                continue
            x = X[:, variable.source]
            first = np.repeat(first_known(rows.start, x), rows.length)
            odd = np.flatnonzero(~np.isnan(x) & (x != first))
            if len(odd):
                name, who = self.schema.names[variable.source], rows.labels[subject[odd[0]]]
                many = len(np.unique(subject[odd]))
                warn(
                    f"column {name!r} was constant within subjects at learning, and varies in {many} of the frame, "
                    f"the first of them {who!r}; its first value is taken",
                    UserWarning,
                )

    # -- questions

    @threaded
    def log_density(
        self, frame: Any, *, ended: bool = True, random_state: Any = 0, n_jobs: int | None = -1
    ) -> np.ndarray:
        """Log-density of the history of each subject.

        It is exact for subjects whose unknown cells have at most 256 combinations of codes. For others it is the log
        of an unbiased estimate of the density from 256 weighted draws: see `standard_error`.

        Parameters
        ----------
        frame : frame of N rows
        ended : bool
            Whether the last row of a subject is the end of its history; otherwise it may go on.
        random_state : None, int, Generator or RandomState
            For subjects of which it is an estimate.

        Returns
        -------
        float64 array (n,)
            In the order of `subjects`.

        Examples
        --------
        >>> visits = jf.datasets.make_visits(200, random_state=0)
        >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
        >>> joint.log_density(visits).shape
        (200,)
        """
        return self._log_density(self._read(frame, ended), seed_of(random_state))

    @threaded
    def standard_error(
        self, frame: Any, *, ended: bool = True, random_state: Any = 0, n_jobs: int | None = -1
    ) -> np.ndarray:
        """Standard error of `log_density`: float64 array (n,), 0 for subjects of which it is exact.

        It is the standard deviation of 32 estimates with different draws.
        """
        given = self._read(frame, ended)
        seeds = np.random.default_rng([seed_of(random_state), 3]).integers(0, 2**31, RUNS).tolist()
        error = np.std([self._log_density(given, seed) for seed in seeds], axis=0, ddof=1)
        return np.where(error < _ROUNDING, 0.0, error)

    def _log_density(self, given: Given, seed: int) -> np.ndarray:
        of_head, of_cell = self._cell_logs(given, seed)
        of_head = of_head + np.where(given.coded.histories.head >= 0, given.coded.head_base, 0.0)
        of_cell = of_cell + np.where(given.coded.histories.code >= 0, given.coded.row_base, 0.0)
        subject = np.repeat(np.arange(len(given.rows.labels)), given.rows.length)
        total = of_head.sum(axis=1) + np.bincount(subject, of_cell.sum(axis=1), len(given.rows.labels))
        penalty = np.array([column.log_unseen for column in self.schema.columns])
        return np.asarray(total + np.bincount(subject, given.unseen @ penalty, len(total)))

    def _cell_logs(self, given: Given, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Log-probability of the code of every known cell given all before it; 0 of unknown ones."""
        histories = given.coded.histories
        unknown = self.model.unknown_cells(histories, np.zeros(len(histories.length), dtype=np.int64)) > 0
        of_head, of_cell = np.zeros(histories.head.shape), np.zeros(histories.code.shape)
        row_unknown = np.repeat(unknown, given.rows.length)
        if not unknown.all():
            part = of_subjects(histories, np.flatnonzero(~unknown))
            of_head[~unknown], of_cell[~row_unknown] = self.model.log_probabilities(part)
        if unknown.any():
            part = of_subjects(histories, np.flatnonzero(unknown))
            found = self.model.walk(
                part, np.zeros(len(part.length), dtype=np.int64), cap=CAP, seed=seed, marginals=False,
                each=lambda a, b, found: (found.of_head, found.of_cell),
            )  # fmt: skip
            of_head[unknown] = np.concatenate([one for one, _ in found])
            of_cell[row_unknown] = np.concatenate([one for _, one in found])
        return of_head, of_cell

    @threaded
    def attribution(self, frame: Any, *, random_state: Any = 0, n_jobs: int | None = -1) -> Any:
        """Which visit, and which of its cells, is odd: log p(cell | everything before it in the subject's history).

        Compare a cell with the same column's cells in other rows: densities depend on the unit of the numbers.

        Parameters
        ----------
        frame : frame of N rows
        random_state, n_jobs
            As of `log_density`.

        Returns
        -------
        float64 array (N, number of columns)
            In the order of the frame's rows and of ``columns``; NaN where the cell is unknown. A constant column has
            its value in the subject's first row and NaN in the others.
        """
        given = self._read(frame, True)
        of_head, of_cell = self._cell_logs(given, seed_of(random_state))
        histories, coded = given.coded.histories, given.coded
        out = np.full((len(given.X), len(self.schema.columns)), np.nan)
        for v, variable in enumerate(self.model.columns.head):
            if variable.source >= 0:
                known = histories.head[:, v] >= 0
                logs = np.where(known, of_head[:, v] + coded.head_base[:, v], np.nan)
                out[histories.start[:-1], variable.source] = logs
        for j, variable in enumerate(self.model.columns.rows):
            if variable.source >= 0:
                known = histories.code[:, j] >= 0
                out[:, variable.source] = np.where(known, of_cell[:, j] + coded.row_base[:, j], np.nan)
        penalty = np.array([column.log_unseen for column in self.schema.columns])
        out = np.where(given.unseen, penalty, out)
        in_frame = np.empty_like(out)
        in_frame[given.rows.place] = out
        return in_frame

    @threaded
    def forecast(
        self, frame: Any, steps: int = 1, *, n_draws: int = 100, random_state: Any = None, n_jobs: int | None = -1
    ) -> Forecast:
        """What is known of the next rows of each subject, and whether its history ends.

        Parameters
        ----------
        frame : frame of N rows
            What is known so far; cells may be missing.
        steps : int
            Rows to come, on condition that the history goes on.
        n_draws : int
            Draws of these rows; also the number of hypotheses, if that is more than 64, with which sums over unknown
            cells are taken.
        random_state : None, int, Generator or RandomState

        Examples
        --------
        >>> visits = jf.datasets.make_visits(300, random_state=0)
        >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
        >>> known = visits[visits["patient"] < 5]
        >>> next_rows = joint.forecast(known, steps=3, random_state=0)
        >>> next_rows.proba("status").shape, next_rows.interval("weight", 0.9).shape
        ((4, 3, 3), (4, 3, 2))
        >>> next_rows.end_probability.shape
        (4, 3)
        """
        check_number("steps", steps, 1, 100_000, whole=True)
        check_number("n_draws", n_draws, 1, 100_000, whole=True)
        given = self._read(frame, False)
        return make_forecast(self.model, given.rows, given.X, given.coded, steps, n_draws, seed_of(random_state))

    @threaded
    def impute(
        self,
        frame: Any,
        method: str = "mean",
        m: int | None = None,
        random_state: Any = None,
        *,
        n_jobs: int | None = -1,
    ) -> Any:
        """Fill the missing cells given the whole history, rows before and after; every known cell stays what it is.

        An imputed mean of a number lies between the mean of the joint and the straight line in time between the known
        neighbours in its column. How near to the line was learned for each column. Imputed draws are
        those of the joint.

        Parameters
        ----------
        frame : frame of N rows
        method : {"mean", "sample"}
            Means of numbers (on a grid the nearest cell) and the most probable levels, or a joint draw a subject.
        m : int, optional
            Number of draws, with ``method="sample"``.
        random_state : None, int, Generator or RandomState

        Returns
        -------
        frame as at learning, N rows in the order of the frame; with m a list of m frames

        Examples
        --------
        >>> visits = jf.datasets.make_visits(300, random_state=0)
        >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
        >>> gaps = visits.assign(status=visits["status"].mask(visits.index % 7 == 0))
        >>> filled = joint.impute(gaps, random_state=0)
        >>> int(filled["status"].isna().sum())
        0
        """
        if method not in ("mean", "sample"):
            raise ValueError(f"method must be 'mean' or 'sample', got {method!r}")
        if m is not None and (method == "mean" or m not in Number(1, whole=True)):
            raise ValueError(f"m must be a positive integer, and goes with method='sample'; got m={m!r}, {method!r}")
        given = self._read(frame, True, empty_is_unknown=True)
        drawn = impute_codes(
            self.model, given.X, given.coded, given.rows.time, method, m or 1, IMPUTE_CAP, seed_of(random_state)
        )
        frames = [self._filled(given, X) for X in drawn]
        return frames if m is not None else frames[0]

    def _filled(self, given: Given, X: np.ndarray) -> Any:
        """The frame with cells filled in."""
        frame = given.frame
        back = np.empty(len(X), dtype=np.int64)
        back[given.rows.place] = np.arange(len(X))
        of_keys, rest = split_columns(frame, self._keys)
        filled = nw.from_native(fill(self.schema, rest, given.X[back], given.unseen[back], X[back]), eager_only=True)
        keys = nw.from_native(of_keys, eager_only=True)
        if keys.implementation is not filled.implementation:
            keys = nw.from_dict(keys.to_dict(as_series=False), backend=filled.implementation)
        together = nw.concat([nw.maybe_reset_index(keys), nw.maybe_reset_index(filled)], how="horizontal")
        place = {str(name): j for j, name in enumerate(together.columns)}
        names = map(str, nw.from_native(frame, eager_only=True).columns)
        out = together[:, [place[name] for name in names if name in place]].to_native()
        if nw.dependencies.is_pandas_dataframe(frame) and nw.dependencies.is_pandas_dataframe(out):
            out.index = frame.index
        return out

    @threaded
    def sample(self, n: int, random_state: Any = None, *, n_jobs: int | None = -1) -> Any:
        """Draw the histories of n new subjects: a frame as at learning, with new identifiers.

        Each subject has exactly the distribution of the joint. Subjects are drawn side by side, so that shares among
        them are closer to the probabilities than those of independent draws.

        Parameters
        ----------
        n : int
        random_state : None, int, Generator or RandomState

        Returns
        -------
        frame
            Subject after subject, in the order of time; cells are missing as often as at learning.

        Examples
        --------
        >>> visits = jf.datasets.make_visits(300, random_state=0)
        >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
        >>> joint.sample(10, random_state=0)["patient"].nunique()
        10
        """
        check_number("n", n, 1, 100_000_000, whole=True)
        seed = seed_of(random_state)
        columns, model = self.model.columns, self.model
        drawn = model.draw(n, seed)
        rng = np.random.default_rng([seed, 1])
        start = np.concatenate([[0], np.cumsum(drawn.length)])
        subject = np.repeat(np.arange(n), drawn.length)
        is_first = np.zeros(start[-1], dtype=bool)
        is_first[start[:-1]] = True
        X = np.full((start[-1], len(self.schema.columns)), np.nan)
        begin, gap = np.full(n, columns.begin), np.full(start[-1], columns.step)
        for v, variable in enumerate(columns.head):
            if variable.source == LENGTH_COLUMN:
                continue
            x = draw_values(variable.coding, drawn.head[:, v], np.ones(n, dtype=bool), rng)
            if variable.source == START:
                begin = x
            else:
                X[:, variable.source] = x[subject]
        for j, variable in enumerate(columns.rows):
            if variable.coding.change is not None:
                x = drawn.value[:, j]
            else:
                x = draw_values(variable.coding, drawn.code[:, j], is_first, rng)
            if variable.source == GAP:
                gap = x
            else:
                X[:, variable.source] = x
        time = None if columns.time is None else times_of(begin[subject], gap, is_first, columns)
        return self._frame(np.arange(n)[subject], time, X)

    @threaded
    def fidelity(
        self, frame: Any, holdout: Any = None, *, random_state: Any = None, n_jobs: int | None = -1
    ) -> HistoryFidelity:
        """How true drawn histories are to those of a table.

        As many subjects are drawn as the table has.

        Parameters
        ----------
        frame : frame of N rows
            The table that was learned from.
        holdout : frame, optional
            Subjects of the same source that were not learned from. Two-sample tests compare drawn subjects with them,
            or with ``frame`` if there are none.
        random_state : None, int, Generator or RandomState
        n_jobs : int or None
            Threads; the figures do not depend on it.

        Examples
        --------
        >>> visits = jf.datasets.make_visits(300, random_state=0)
        >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
        >>> found = joint.fidelity(visits, jf.datasets.make_visits(300, random_state=1), random_state=0)
        >>> found.drawn.columns > 0.9, found.told_apart_rows.score > 0.6
        (True, True)
        """
        seed = seed_of(random_state)
        table = self._cells(self._read(frame, True))
        drawn = self._cells(self._read(self.sample(len(table.length), seed), True))
        new = None if holdout is None else self._cells(self._read(holdout, True))
        return history_fidelity(table, drawn, new, seed)

    def explore(self, data: Any = None, *, title: str = "joint", port: int = 0, browser: bool | None = None) -> Any:
        """A page in the browser that shows histories: one subject's rows with a forecast, or all columns over time.

        Cells can be changed on the page, and the forecast follows. Where it is shown: see `Joint.explore`.

        Parameters
        ----------
        data : frame of N rows, optional
            Histories to look at. Without them the page draws subjects from the joint.
        title, port, browser
            As of `Joint.explore`.

        Returns
        -------
        Explorer or NotebookExplorer
            As of `Joint.explore`.

        Raises
        ------
        ImportError, OSError
            As of `Joint.explore`.
        ValueError
            If the table lacks the column of subjects or of times.

        Examples
        --------
        >>> visits = jf.datasets.make_visits(200, random_state=0)
        >>> joint = jf.fit(visits, group="patient", order="date", random_state=0)
        >>> with joint.explore(visits, browser=False) as page:
        ...     page.url.startswith("http://127.0.0.1:")
        True
        """
        from ..explorer.open import explore  # a server's imports, which no other question needs

        return explore(self, title, data, None, port, browser)

    def _cells(self, given: Given) -> HistoryCells:
        """The cells of histories; where times are irregular also the time since the row before."""
        cells = table_cells(self.schema, given.X, given.unseen)
        for j, variable in enumerate(self.model.columns.rows):
            if variable.source == GAP:
                gap = given.coded.row_value[:, [j]]
                cells = TableCells(
                    (*cells.names, self._label(GAP)), np.append(cells.n_levels, 0), np.hstack([cells.X, gap])
                )
        return HistoryCells(cells, given.rows.start)

    def _frame(self, subject: np.ndarray, time: np.ndarray | None, X: np.ndarray) -> Any:
        """A frame of new subjects, numbered from 1."""
        group = self.model.columns.group
        if group.kind != "categorical":
            return frame_of(self.model.columns, group, subject + 1, time, X, first_new=0)
        group = replace(group, levels=tuple(str(k + 1) for k in range(int(subject.max(initial=-1)) + 1)))
        return frame_of(self.model.columns, group, subject, time, X, first_new=0)


def times_of(begin: np.ndarray, gap: np.ndarray, is_first: np.ndarray, columns: HistoryColumns) -> np.ndarray:
    """Times of rows from those of the first rows and the time between rows."""
    moved = np.where(is_first, 0.0, np.maximum(gap, columns.least_gap))
    total = np.cumsum(moved)
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(total)), 0))
    return np.asarray(begin + total - total[first])


def _few_of(names: tuple[str, ...], most: int = 4) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
