"""`compare_tables`: which columns, pairs of columns and regions changed between two tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy.special import gammaincc, xlogy
from scipy.stats import binom

from ..data.cells import ColumnCells, FrameReader, joined_cells, numbers
from ..data.csv_files import is_number
from ..data.discretization.dependence import coarse
from ..data.discretization.discretizer import code_table
from ..data.discretization.learn import has_far_values, learn_scale
from ..data.frames import encode_reader, from_cells, read
from ..data.infer_schema import infer_schema
from ..data.reading import cell_in_words, date_text, number_text
from ..data.schema import Column, Schema
from ..data.times import is_span, zone_of
from ..evaluation.columns_and_pairs import pearson
from ..runtime.arrays import divided
from ..runtime.parameters import check_number, seed_of
from ..runtime.threads import map_ordered, one_blas_thread, threaded
from ..runtime.warnings import UnseenLevelWarning

BINS = 16
"""Most bins of a column of numbers alone."""
_ROWS_OF_BIN = 8
"""Rows of both tables that a bin of a pair of columns has on average, at least; this sets the number of bins."""
_MOST_BINS = 8
_HELD = {"number": "numbers", "integer": "numbers", "boolean": "booleans", "datetime": "dates", "levels": "levels"}


class Coded(NamedTuple):
    """Columns as codes 0, 1, ...; missing cells have the last code.

    codes : int64 array (n, d)
    size : int64 array (d,). Number of codes of each column.
    """

    codes: np.ndarray
    size: np.ndarray


class TwoTables(NamedTuple):
    """The rows of an old and of a new table, one below the other, read by one schema.

    schema : Schema. The d columns that are compared.
    left_out : dict of str to str. The other columns, and why they are left out.
    n_old : int. Rows of the old table, which come first.
    X : float64 array (n, d). Numbers and codes of levels, NaN where missing.
    fine, few : Coded. The columns alone, and with few bins each, as pairs of columns use them.
    """

    schema: Schema
    left_out: dict[str, str]
    n_old: int
    X: np.ndarray
    fine: Coded
    few: Coded


def read_two(old: Any, new: Any) -> TwoTables:
    """Read two tables; neither their order nor which row is of which table changes the codes."""
    readers = [read(frame) for frame in (old, new)]
    for reader, name in zip(readers, ("old", "new"), strict=True):
        if not reader.n:
            raise ValueError(f"the {name} table has no rows; at least one is needed")
    first, second = readers
    left_out = {name: "is not in the new table" for name in first.names if name not in second.names}
    left_out |= {name: "is not in the old table" for name in second.names if name not in first.names}
    cells = {}
    left_out |= unreadable(first) | unreadable(second)
    for name in first.names:
        if name not in left_out:
            pair = first.cells(name), second.cells(name)
            try:  # levels whose declared orders differ are refused, too
                cells[name] = joined_cells(name, *pair)
            except ValueError:
                held = [_held_in_words(one) for one in pair]
                if held == ["dates"] * 2:
                    held = [f"dates {'with' if zone_of(one.dtype) else 'without'} a time zone" for one in pair]
                held = ["levels of one order", "levels of another"] if held[0] == held[1] else held
                left_out[name] = f"holds {held[0]} in the old table, and {held[1]} in the new one"
    both = FrameReader(first.frame, list(cells), first.n + second.n, cells.__getitem__, first.number_names)
    alone = schema_of_table(FrameReader(first.frame, list(cells), first.n, first.cells, first.number_names))
    # A column that is an identifier in the old table may have each of its values twice in both.
    aside = {column.name: column.aside.in_words for _, column in alone.unknown if column.aside}
    schema = schema_of_table(both, dict.fromkeys(aside, "ignored"))
    left_out |= schema.reasons_aside | aside
    schema, X, with_ranges = encode_exact(schema, both)
    left_out |= with_ranges
    if not schema.columns:
        raise ValueError(f"no column can be compared: {left_out_in_words(left_out) or 'the tables have none'}")
    scales = [learn_scale(column, X[:, j], None, BINS) for j, column in enumerate(schema.columns)]
    n_codes = np.array([scale.n_codes for scale in scales])
    codes = code_table(scales, X)
    most = int(np.clip(np.sqrt(len(X) / _ROWS_OF_BIN), 2, _MOST_BINS))
    few, n_few = coarse(codes, n_codes, np.array([c.is_ordered for c in schema.columns]), most)
    few = np.where(few < 0, n_few, few).astype(np.int64)
    return TwoTables(schema, left_out, first.n, X, Coded(codes.astype(np.int64), n_codes + 1), Coded(few, n_few + 1))


def left_out_in_words(left_out: Mapping[str, str]) -> str:
    """Columns, and why they are left out."""
    return "; ".join(f"{name!r} {why}" for name, why in left_out.items())


def encode_exact(schema: Schema, reader: FrameReader) -> tuple[Schema, np.ndarray, dict[str, str]]:
    """The columns that have no cell that is a range, their numbers and codes (n, d), and why others are left out."""
    X, _, ranges = encode_reader(schema, reader, None)
    some = [] if ranges is None else np.flatnonzero((ranges.number >= 0).any(axis=0)).tolist()
    aside = {schema.names[j]: (int(schema.places[j]), schema.columns[j]) for j in some}
    kept = tuple(column for column in schema.columns if column.name not in aside)
    unknown = tuple(sorted((*schema.unknown, *aside.values()), key=lambda of: of[0]))
    schema = replace(schema, columns=kept, unknown=unknown, rules=schema.rules_among(kept))
    return schema, np.delete(X, some, axis=1), dict.fromkeys(aside, "has cells that are ranges")


def _held_in_words(cells: ColumnCells) -> str:
    """What a column holds, with the first text that is no number."""
    if is_span(cells.dtype):
        return "time spans"
    texts = [label for label in cells.labels if isinstance(label, str)]
    if cells.sort != "levels" or not texts:
        return _HELD[cells.sort]
    return f"text such as {next((text for text in texts if not is_number(text)), texts[0])!r}"


def unreadable(reader: FrameReader) -> dict[str, str]:
    """The columns whose values no column can have, such as lists, and what is said of them."""
    found = {}
    for name in reader.names:
        try:
            reader.cells(name)
        except TypeError:
            found[name] = "holds values of a type that is not supported"
    return found


def schema_of_table(reader: FrameReader, kinds: Mapping[str, str] | None = None) -> Schema:
    """The schema of a table, of no column if all are set aside or unknown."""
    some = "\0"  # a column that is never set aside: infer_schema refuses tables of other columns only
    constant = numbers("number", "float64", np.zeros(reader.n))
    names = [*reader.names, some]
    wider = replace(reader, names=names, cells=lambda name: constant if name == some else reader.cells(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = infer_schema(wider, kinds, doubt=False)
    return schema.without(schema.index(some))


# ---- `compare_tables`: which columns, pairs of columns and regions changed between two tables.

PERMUTATIONS = 999
"""Permutations of which rows are new."""
_GROUPS = 512
"""Groups of rows of the smaller table that permutations move as a whole."""
_SAME = 1.0 + 1e-9
"""p-values that differ by less than this factor are equal."""
_REGIONS = 3
"""Bins of a pair that are named."""
_EXPLAINED = 0.9
"""Share of a change's information from which on another change explains it."""
_TYPES = {"row": int} | dict.fromkeys(("information", "p_value", "adjusted", "log_density", "percentile"), float)
_PLAIN = 1e-4
"""p-value of a trend below which a sentence is about means and correlations, even if other statistics are clearer."""


@dataclass(frozen=True)
class Change:
    """One change between two tables: of a column, or of a pair of columns beyond the changes of each.

    Attributes
    ----------
    columns : tuple of str
        One column or two.
    information : float
        Information about "old or new", in nats, that fewer columns do not give; corrected for bias, at least 0.
    p_value : float
        Of this change alone.
    adjusted : float
        p-value adjusted for all columns and pairs: the probability that any of them seems to change as much by chance.
    sentence : str
        The size of the change in the column's own units, with counts.
    regions : tuple of str
        The bins of a pair that changed most.
    explained_by : tuple of str
        The columns of a change with more information that explains this one; empty if there is none.
    """

    columns: tuple[str, ...]
    information: float
    p_value: float
    adjusted: float
    sentence: str
    regions: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = ", ".join(self.explained_by)
        named = f"the pair ({by})" if len(self.explained_by) > 1 else by
        return self.sentence + (f"; explained by the change of {named}" if by else "")


@dataclass(frozen=True, eq=False)
class TableComparison:
    """What changed between two tables; made by `compare_tables`.

    Attributes
    ----------
    n_old, n_new : int
        Rows.
    p_value : float
        Of the hypothesis that nothing changed.
    level : float
        The greatest adjusted p-value of ``changes``.
    changes : tuple of Change
        The one of most information first.
    left_out : dict of str to str
        The columns that were not compared, and why.
    notes : tuple of str
        Repeated rows, levels that one table alone has, and values of the new table that are far from all others.
    """

    n_old: int
    n_new: int
    p_value: float
    level: float
    changes: tuple[Change, ...]
    left_out: dict[str, str]
    notes: tuple[str, ...]
    _old: Any
    _new: Any
    _names: tuple[str, ...]

    def __repr__(self) -> str:
        n = len(self.changes)
        lines = [
            f"{self.n_old:,} old and {self.n_new:,} new rows: p-value {self.p_value:.3g} (hypothesis: nothing changed)"
        ]
        lines += [f"  {change}" for change in self.changes] or ["  no single change found"] * (not n)
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join([*lines, *(f"  {name!r} is not compared: it {why}" for name, why in self.left_out.items())])

    @property
    def findings(self) -> Any:
        """The changes as a frame of the library of the old table.

        Returns
        -------
        frame with the columns column, second_column (None of single columns), information, p_value, adjusted, change,
        regions and explained_by (texts separated by "; ")
        """
        found = self.changes
        cells: dict[str, list[Any]] = {
            "column": [c.columns[0] for c in found],
            "second_column": [(*c.columns, None)[1] for c in found],
            **{name: [getattr(c, name) for c in found] for name in ("information", "p_value", "adjusted")},
            "change": [c.sentence for c in found],
            **{name: ["; ".join(getattr(c, name)) for c in found] for name in ("regions", "explained_by")},
        }
        return from_cells(cells, read(self._old).frame, _TYPES)

    @threaded
    def row_scores(self, joint: Any = None, *, random_state: Any = None, n_jobs: int | None = -1) -> Any:
        """How probable the old joint makes each row of the new table.

        Parameters
        ----------
        joint : Joint, optional
            A joint of the old table; default: the forest of `ForestOutlierDetector`, without columns that separate
            the tables, such as a date.
        random_state : None, int, Generator or RandomState
        n_jobs : int or None

        Returns
        -------
        frame with the columns row (position, from 0), log_density, and percentile among the rows of the old table

        Raises
        ------
        ValueError
            If every column separates the tables, and no joint is given.
        """
        from ..estimators.outliers import ForestOutlierDetector

        share = self.n_new / (self.n_old + self.n_new)
        apart = {c.columns for c in self.changes if _separates(c.information, share)}
        names = tuple(joint.columns) if joint else tuple(name for name in self._names if (name,) not in apart)
        if not names:
            every = ", ".join(map(repr, self._names))
            raise ValueError(
                f"no column is left to score rows by: each of {every} has other values in the new table; give a joint "
                "of the old table"
            )
        old, new = (_select_columns(frame, names) for frame in (self._old, self._new))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenLevelWarning)  # new levels are among the changes
            if joint is None:
                detector = ForestOutlierDetector(random_state=seed_of(random_state) % 2**32, n_jobs=n_jobs).fit(old)
            else:
                detector = ForestOutlierDetector.from_joint(joint, old, n_jobs=n_jobs)
            scores = {"row": np.arange(self.n_new), "log_density": detector.score_samples(new)}
            return from_cells(scores | {"percentile": detector.percentile(new)}, read(self._old).frame, _TYPES)


@threaded
def compare_tables(
    old: Any, new: Any, *, level: float = 0.05, random_state: Any = None, n_jobs: int | None = -1
) -> TableComparison:
    """Which columns, pairs of columns and regions changed between two tables.

    Method and limits: ``docs/how-to/compare-tables.md``.

    Parameters
    ----------
    old, new : frame of n and of m rows
        pandas, polars, pyarrow, or a 2-D numpy array. Columns are matched by name.
    level : float
        Probability that a change is listed though nothing changed.
    random_state : None, int, Generator or RandomState
        Draws permutations of rows; the same seed gives the same result.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Raises
    ------
    ValueError
        If a table has no rows, or no column can be compared.

    Examples
    --------
    >>> penguins = jf.datasets.load_penguins().sample(frac=1.0, random_state=0)
    >>> old, new = penguins[:172], penguins[172:]
    >>> jf.compare_tables(old, new, random_state=0).changes
    ()
    >>> heavy = new.assign(body_mass_g=new["body_mass_g"] + 500)
    >>> jf.compare_tables(old, heavy, random_state=0).changes[0].columns
    ('body_mass_g',)
    """
    check_number("level", level, 0, 1, text="a probability between 0 and 1")
    tables = read_two(old, new)
    with one_blas_thread():
        model = _Model(tables)
        least = model.least_p_values(seed_of(random_state))
        changes = model.changes(level, np.sort(least[1:]))
    p_value = float(np.count_nonzero(least <= least[0] * _SAME) / len(least))
    n_new = len(tables.X) - tables.n_old
    notes, names = tuple(Words(tables).notes()), tables.schema.names
    return TableComparison(tables.n_old, n_new, p_value, level, changes, tables.left_out, notes, old, new, names)


def _separates(information: float, share: float) -> bool:
    """Whether information about "new" is nearly all there is: a date, of which the tables have other values."""
    return information >= -_EXPLAINED * float(xlogy(share, share) + xlogy(1.0 - share, 1.0 - share))


class _Place(NamedTuple):
    """A column, or a pair of columns: which cells rows are in, and what explains or favours a change."""

    columns: tuple[int, ...]
    shape: tuple[int, ...]
    main: np.ndarray
    trend: np.ndarray | None


class _Model:
    """All columns and pairs of two tables, and the numbers of old and new rows in their cells."""

    def __init__(self, tables: TwoTables) -> None:
        self._tables, d = tables, len(tables.schema.columns)
        self._share = 1.0 - tables.n_old / len(tables.X)
        self._places = []
        for j in range(d):
            score = self._scores(tables.fine, j)
            trend = score if score.shape[1] == 1 else None
            self._places.append(_Place((j,), score.shape[:1], np.ones((len(score), 1)), trend))
        scores = [self._scores(tables.few, j) for j in range(d)]
        for i in range(d):
            for j in range(i + 1, d):
                a, b = scores[i], scores[j]
                main = np.hstack([np.repeat(np.eye(len(a)), len(b), 0), np.tile(np.eye(len(b)), (len(a), 1))])
                has_trend = min(a.shape[1], b.shape[1]) == 1
                trend = np.einsum("ik,jl->ijkl", a, b).reshape(len(main), -1) if has_trend else None
                self._places.append(_Place((i, j), (len(a), len(b)), main, trend))
        # Columns and pairs share the level half and half, as in Bonferroni's correction with weights.
        n_pairs = len(self._places) - d
        n_kinds = 2 if n_pairs else 1
        self._weight = np.repeat([n_kinds * d, n_kinds * n_pairs], [d, n_pairs]) / len(self._places)

    def _scores(self, coded: Coded, j: int) -> np.ndarray:
        """Contrasts of the codes of a column, (K, k): ranks of ordered ones, an indicator of each level of others."""
        K, column = int(coded.size[j]), self._tables.schema.columns[j]
        if not column.is_ordered:
            return np.eye(K)
        count = np.bincount(coded.codes[:, j], minlength=K)[:-1] / max(len(coded.codes), 1)
        rank = np.cumsum(count) - 0.5 * count
        return np.append(rank - (rank @ count) / max(count.sum(), 1e-300), 0.0)[:, None]

    def _cells(self, columns: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
        """The cell of each row, (n,), and the numbers of codes: many of one column, few of several."""
        coded = self._tables.fine if len(columns) == 1 else self._tables.few
        shape = tuple(int(coded.size[j]) for j in columns)
        return np.ravel_multi_index(tuple(coded.codes[:, j] for j in columns), shape), shape

    def _counts(self, columns: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of rows of both tables, and of the new one, in the cells of columns."""
        cell, shape = self._cells(columns)
        rows, new = (
            np.bincount(cell[first:], minlength=int(np.prod(shape))).astype(np.float64).reshape(shape)
            for first in (0, self._tables.n_old)
        )
        return rows, new

    def least_p_values(self, seed: int) -> np.ndarray:
        """The least p-value of all columns and pairs, and of each permutation of which rows are new."""
        # Groups of as many rows change places, not single rows. Rows in no group stay where they are.
        n, n_old = len(self._tables.X), self._tables.n_old
        random = np.random.default_rng(seed)
        size = max(1, min(n_old, n - n_old) // _GROUPS)
        group = np.full(n, -1)
        n_groups: list[int] = []
        for rows in (np.arange(n_old), np.arange(n_old, n)):
            count = min(len(rows) // size, 2 * _GROUPS)
            group[random.permutation(rows)[: count * size]] = np.repeat(np.arange(count), size) + sum(n_groups)
            n_groups.append(count)
        is_new = np.zeros((1 + PERMUTATIONS, sum(n_groups)))
        is_new[:, n_groups[0] :] = 1.0
        is_new[1:] = random.permuted(is_new[1:], axis=1)
        grouped, fixed = group >= 0, np.flatnonzero(group[n_old:] < 0) + n_old

        def of_place(place: _Place, weight: float) -> np.ndarray:
            cell, n_cells = self._cells(place.columns)[0], int(np.prod(place.shape))
            of_group = np.bincount(group[grouped] * n_cells + cell[grouped], minlength=is_new.shape[1] * n_cells)
            new = is_new @ of_group.reshape(-1, n_cells).astype(np.float64)
            new += np.bincount(cell[fixed], minlength=n_cells)
            rows = np.bincount(cell, minlength=n_cells).astype(np.float64)
            return weight * CellTest(rows, np.full(n_cells, self._share), place.main, place.trend).p_value(new)

        least = np.full(1 + PERMUTATIONS, np.inf)
        for p in map_ordered(of_place, list(zip(self._places, self._weight.tolist(), strict=True))):
            least = np.minimum(least, p)
        return least

    def changes(self, level: float, by_chance: np.ndarray) -> tuple[Change, ...]:
        """The changes, that of most information first; ``by_chance`` are least p-values of permutations, ascending."""
        terms = list(map_ordered(self._fit, [(place,) for place in self._places]))
        p_values = np.array([float(term.p_value(new.reshape(1, -1))[0]) for term, _, new in terms])
        # Westfall and Young: how often the least of all p-values is as small by chance.
        adjusted = (1 + np.searchsorted(by_chance, self._weight * p_values * _SAME, "right")) / (1 + len(by_chance))
        information = np.array([self._information(term.p, rows, new, term.freedom) for term, rows, new in terms])
        found = sorted(np.flatnonzero(adjusted <= level).tolist(), key=lambda k: (-information[k], p_values[k]))
        words, names = Words(self._tables), self._tables.schema.names
        changes: list[Change] = []
        causes: list[tuple[int, ...]] = []
        for k in found:
            (term, rows, new), columns = terms[k], self._places[k].columns
            by = next((one for one in causes if self._explains(columns, one, information[k])), None)
            if by is None and not _separates(information[k], self._share):
                causes.append(columns)
            tests = term.p_values(new.reshape(1, -1))[:, 0]
            is_trend = len(tests) == 3 and bool(tests[2] <= max(tests.min(), _PLAIN))
            excess, regions = deviance(rows, term.p.reshape(rows.shape), new), list[str]()
            if len(columns) == 1:
                sentence = words.column(columns[0], excess, is_trend)
            else:
                i, j = columns
                sentence = words.pair(i, j, rows, new, excess, is_trend)
                clear = excess * deviance(rows, np.full(rows.shape, self._share), new)  # a change of its own, too
                most = np.argsort(-clear, axis=None, kind="stable")[:_REGIONS].tolist()
                expected = (rows.ravel() * term.p).tolist()
                regions = [words.region((i, j), divmod(c, rows.shape[1]), expected[c]) for c in most]
            about, causing = (() if of is None else tuple(names[j] for j in of) for of in (columns, by))
            p, q = float(p_values[k]), float(adjusted[k])
            changes.append(Change(about, float(information[k]), p, q, sentence, tuple(regions), causing))
        return tuple(changes)

    def _fit(self, place: _Place) -> tuple[CellTest, np.ndarray, np.ndarray]:
        """The test of a place beyond its columns alone, its rows and its new rows."""
        rows, new = self._counts(place.columns)
        p = fitted(rows, new, [(0,), (1,)]) if rows.ndim == 2 else np.full(rows.shape, self._share)
        return CellTest(rows.ravel(), p.ravel(), place.main, place.trend), rows, new

    def _information(self, p: np.ndarray, rows: np.ndarray, new: np.ndarray, freedom: float) -> float:
        """Information about "new" that expected shares p do not give, in nats per row, corrected for bias."""
        total = float(deviance(rows, p.reshape(rows.shape), new).sum())
        return max(total - 0.5 * freedom, 0.0) / len(self._tables.X)

    def _explains(self, columns: tuple[int, ...], cause: tuple[int, ...], information: float) -> bool:
        """Whether a change of other columns leaves next to nothing of the information of one, by three at most."""
        both = tuple(dict.fromkeys((*cause, *columns)))
        if len(both) > 3 or set(columns) == set(both):
            return False
        rows, new = self._counts(both)
        its, other = (tuple(both.index(j) for j in of) for of in (columns, cause))
        simpler: list[tuple[int, ...]] = [(axis,) for axis in its] if len(its) > 1 else [()]
        bias = 0.5 * float(np.prod([self._tables.few.size[j] - 1 for j in columns]))

        def gain(margins: list[tuple[int, ...]]) -> tuple[float, float]:
            """What the columns add to a model, in nats, and the variance of "new" that the model leaves."""
            without, with_it = (fitted(rows, new, of) for of in (margins, [*margins, its]))
            added = float((deviance(rows, without, new) - deviance(rows, with_it, new)).sum()) - bias
            return added, float((rows * without * (1.0 - without)).sum())

        (alone, before), (beside, after) = gain(simpler), gain([*simpler, other])
        if alone < 0.5 * information * len(self._tables.X):  # few bins hide what changed
            return False
        # Where the other change tells most new rows, any column adds less, by chance even nothing: an independent one
        # about ``left``, with the standard deviation of a noncentral chi-squared number.
        left = alone * after / max(before, 1e-9)
        return beside < (1.0 - _EXPLAINED) * left and _EXPLAINED * left > np.sqrt(2.0 * left + bias)


def _select_columns(frame: Any, names: tuple[str, ...]) -> Any:
    """The columns of a frame, by the names of the schema."""
    if isinstance(frame, np.ndarray):
        of = read(frame).names
        return frame[:, [of.index(name) for name in names]]
    wide = nw.from_native(frame, eager_only=True)
    return wide.select([name for name in wide.columns if str(name) in names]).to_native()


# ---- Changes in sentences: shares and means of the rows of the old and the new table, in the columns' own units.


_NAMED = 3
"""Most levels of a bin that are named."""
_CHANCE = 0.001
"""Largest probability of chance up to which levels that only one table has are reported."""
_COPIES = 5.0
"""Pairs of equal rows, as a multiple of the expected number, from which repeated rows are reported."""
_MOST_FAR = 10
"""Most values of a column that are examined because they are far from all others."""


def _percent(hits: int, n: int) -> str:
    share = 100.0 * hits / max(n, 1)
    return f"{share:.{1 if share >= 1.0 or not hits else 2}f}% ({hits:,} of {n:,})"


def _values_in_words(values: list[tuple[str, int]]) -> str:
    """Values with their numbers of rows, in words; the first ones are named."""
    texts = [f"{text} ({n:,} {'row' if n == 1 else 'rows'})" for text, n in values[:_NAMED]]
    more = [f"{len(values) - _NAMED} others"] * (len(values) > _NAMED)
    return ", ".join([*texts, *more])


def _end_in_words(column: Column, inside: np.ndarray, values: np.ndarray, is_high: bool) -> str:
    """An end of an interval, rounded outwards as far as it holds no other value of the column."""
    end = float(inside.max() if is_high else inside.min())
    if column.kind == "datetime" or column.text(end):
        return column.text(end) or date_text(column, end)
    beyond = values[values > end].min(initial=np.inf) if is_high else values[values < end].max(initial=-np.inf)
    if inside.min() == inside.max():
        beyond = np.nextafter(end, np.inf if is_high else -np.inf)
    for digits in range(10):
        scaled = Decimal(repr(end)).scaleb(digits).to_integral_value(ROUND_CEILING if is_high else ROUND_FLOOR)
        rounded = float(scaled.scaleb(-digits))
        if rounded < beyond if is_high else rounded > beyond:
            return number_text(column, rounded, rounded, rounded + 0.5 * 10.0 ** (3 - digits))
    return str(cell_in_words(column, end))


class Words:
    """Writes sentences about two tables."""

    def __init__(self, tables: TwoTables) -> None:
        self._tables = tables
        self._is_new = np.arange(len(tables.X)) >= tables.n_old

    def _part(self, coded: Coded, j: int, code: int) -> str:
        """The rows with a code of a column: a level, a few levels, an interval, or missing cells."""
        column, x = self._tables.schema.columns[j], self._tables.X[coded.codes[:, j] == code, j]
        if code == coded.size[j] - 1:
            return f"{column.name} is missing"
        if column.is_categorical:
            levels, count = np.unique(x, return_counts=True)
            named = [str(cell_in_words(column, level)) for level in levels[np.argsort(-count, kind="stable")]]
            if len(named) > _NAMED:
                return f"{column.name} is one of {len(named)} rare levels"
            return f"{column.name} = {' or '.join(named)}"
        low, high = (_end_in_words(column, x, self._tables.X[:, j], is_high) for is_high in (False, True))
        return f"{column.name} = {low}" if x.min() == x.max() else f"{column.name} from {low} to {high}"

    def _share(self, hits: np.ndarray, among: np.ndarray) -> str:
        """The shares of rows in both tables, with counts; masks (n,)."""
        old, new = (
            (int(np.count_nonzero(hits & among & side)), int(np.count_nonzero(among & side)))
            for side in (~self._is_new, self._is_new)
        )
        return f"{_percent(*old)} -> {_percent(*new)}"

    def column(self, j: int, contribution: np.ndarray, is_trend: bool) -> str:
        """The change of a column; ``contribution`` (K,) of its codes."""
        if is_trend and not self._tables.schema.columns[j].is_flag:
            return self._mean(j, np.ones(len(self._is_new), bool))
        of, code = self._tables.fine, int(np.argmax(contribution))
        hits = of.codes[:, j] == code
        if code == of.size[j] - 1:
            name = self._tables.schema.columns[j].name
            return f"share of missing cells of {name}: {self._share(hits, np.ones_like(hits))}"
        return f"share of {self._part(of, j, code)}: {self._share(hits, np.ones_like(hits))}"

    def notes(self) -> list[str]:
        """Repeated rows; by column, levels that one table alone has, and new values that are far from all others."""
        found = self._repeated()
        for j, column in enumerate(self._tables.schema.columns):
            if column.is_categorical:
                sides = [self._tables.X[side, j] for side in (self._is_new, ~self._is_new)]
                new, gone = (self._levels_alone(j, one, other) for one, other in (sides, sides[::-1]))
                said = {"levels only in the new table": new, "levels only in the old table": gone}
                texts = [f"{where}: {levels}" for where, levels in said.items() if levels]
                found += [f"{column.name}: {'; '.join(texts)}"] * bool(texts)
            elif far := self._far_values(j):
                found.append(f"{column.name} has values far from all others: {far}")
        return found

    def _repeated(self) -> list[str]:
        """The numbers of rows that repeat an earlier one of their table, where rows of the other table seldom do."""
        X = np.nan_to_num(self._tables.X, nan=np.inf)
        row = np.unique(X, axis=0, return_inverse=True)[1].ravel()
        old, new = (np.bincount(row[side], minlength=len(X)).astype(float) for side in (~self._is_new, self._is_new))
        notes = []
        for name, here, there in (("old", old, new), ("new", new, old)):
            n, repeats = int(here.sum()), int(np.maximum(here - 1.0, 0.0).sum())
            # Pairs of equal rows in one table, beside what pairs of rows of both tables let expect.
            expected = (1.0 + here @ there) * (n - 1) / (2.0 * there.sum())
            if repeats >= 0.02 * n and here @ (here - 1.0) / 2.0 > 10.0 + _COPIES * expected:
                text = f"{repeats:,} of {n:,} {name} rows repeat an earlier one"
                notes.append(f"{text}; if they are copies, p-values are too small")
        return notes

    def _levels_alone(self, j: int, codes: np.ndarray, others: np.ndarray) -> str:
        """Levels of rows (n,) of one table that the other (m,) lacks, unless this is likely by chance (Good 1953)."""
        column = self._tables.schema.columns[j]
        level, count = np.unique(codes[~np.isnan(codes)], return_counts=True)
        known, often = np.unique(others[~np.isnan(others)], return_counts=True)
        alone = ~np.isin(level, known)
        n_alone, n_once = int(count[alone].sum()), int(np.count_nonzero(often == 1))
        share = count.sum() / max(count.sum() + often.sum(), 1)
        by_chance = float(binom.sf(n_alone - 1, n_alone + n_once + 1, share))  # one row more, as none may be luck
        if not n_alone or not len(known) or by_chance > _CHANCE:
            return ""
        order = np.argsort(-count[alone], kind="stable")
        return _values_in_words(
            [(str(cell_in_words(column, level[alone][k])), int(count[alone][k])) for k in order.tolist()]
        )

    def _far_values(self, j: int) -> str:
        """Values that only the new table has, and that are too far from all others for the tail of these."""
        column, x = self._tables.schema.columns[j], self._tables.X[:, j]
        old, rest = x[~self._is_new], x[~np.isnan(x)]
        far: list[tuple[str, int]] = []
        while len(rest) and len(far) < _MOST_FAR and has_far_values(column, rest):
            end = rest[np.argmax(np.abs(rest - np.median(rest)))]
            if end in old:
                break
            far.append((str(cell_in_words(column, float(end))), int(np.count_nonzero(rest == end))))
            rest = rest[rest != end]
        return _values_in_words(far)

    def _mean(self, j: int, among: np.ndarray, where: str = "") -> str:
        """The change of the mean of a column of numbers, or of an ordered one its median; among rows of a mask (n,)."""
        column, x = self._tables.schema.columns[j], self._tables.X[:, j]
        known = among & ~np.isnan(x)
        values = [x[known & side] for side in (~self._is_new, self._is_new)]
        counts = " -> ".join(f"{len(of):,}" for of in values)
        what, of = ("median", np.median) if column.is_categorical else ("mean", np.mean)
        if not all(map(len, values)):
            return f"number of known cells of {column.name}{where}: {counts}"
        ends = [float(of(side)) for side in values]
        if column.is_categorical:
            texts = [str(cell_in_words(column, float(np.ceil(end)))) for end in ends]
        else:
            low, high = min(ends), max(ends)
            span = max(high - low, 1e-3 * float(np.std(x[known])))
            texts = [column.text(end) or number_text(column, end, low, low + 10.0 * span, True) for end in ends]
        return f"{what} of {column.name}{where}: {texts[0]} -> {texts[1]} ({counts} cells)"

    def _move(self, j: int, among: np.ndarray) -> float:
        """How clearly the numbers of a column differ between the tables, among rows of a mask (n,): n r^2 of ranks."""
        known = among & ~np.isnan(self._tables.X[:, j])
        pairs = np.column_stack([self._tables.X[known, j], self._is_new[known]])
        return len(pairs) * _rank_correlation(pairs) ** 2

    def pair(self, i: int, j: int, rows: np.ndarray, new: np.ndarray, excess: np.ndarray, is_trend: bool) -> str:
        """The change of columns i and j beyond that of each, from rows, new rows and deviances (I, J)."""
        # Where rows of one level deviate from the sum of both changes, those of others do, too. So the named group has
        # both: an excess, and a change of its own.
        columns, codes = self._tables.schema.columns, self._tables.few.codes
        numeric = [k for k in (i, j) if columns[k].is_ordered and not columns[k].is_flag]
        if is_trend and len(numeric) == 2:
            known = ~np.isnan(self._tables.X[:, [i, j]]).any(1)
            texts = [
                f"{_rank_correlation(self._tables.X[known & side][:, [i, j]]):z.2f}".replace("-", "−")
                + f" ({np.count_nonzero(known & side):,})"
                for side in (~self._is_new, self._is_new)
            ]
            return f"rank correlation of {columns[i].name} and {columns[j].name}: {texts[0]} -> {texts[1]} rows"
        if is_trend and numeric:
            (number,) = numeric
            other = j if number == i else i
            moves = [self._move(number, codes[:, other] == code) for code in range(self._tables.few.size[other])]
            code = int(np.argmax(excess.sum(1 if other == i else 0) * moves))
            where = self._part(self._tables.few, other, code)
            return self._mean(number, codes[:, other] == code, f" where {where}")
        if columns[i].is_ordered and not columns[j].is_ordered:  # groups are the rows of a level
            i, j, rows, new, excess = j, i, rows.T, new.T, excess.T
        share = new.sum(1, keepdims=True) / np.maximum(rows.sum(1, keepdims=True), 1.0)
        a, b = np.unravel_index(int(np.argmax(excess * deviance(rows, share, new))), rows.shape)
        among, hits = codes[:, i] == a, codes[:, j] == b
        where = self._part(self._tables.few, i, int(a))
        return f"share of {self._part(self._tables.few, j, int(b))} where {where}: {self._share(hits, among)}"

    def region(self, columns: tuple[int, int], cell: tuple[int, int], expected: float) -> str:
        """The change of the share of a cell of two columns, with what the changes of each would give."""
        few, (i, j), (a, b) = self._tables.few, columns, cell
        hits = (few.codes[:, i] == a) & (few.codes[:, j] == b)
        n_new = int(self._is_new.sum())
        return (
            f"share of {self._part(few, i, a)} and {self._part(few, j, b)}: {self._share(hits, np.ones_like(hits))}, "
            f"{100.0 * expected / n_new:.1f}% expected"
        )


def _rank_correlation(x: np.ndarray) -> float:
    """Spearman's correlation of two columns (n, 2); 0 where one of them never changes."""
    ranks = np.empty(x.shape)
    for k in (0, 1):
        _, place, count = np.unique(x[:, k], return_inverse=True, return_counts=True)
        ranks[:, k] = (np.cumsum(count) - 0.5 * count)[place]
    return float(np.nan_to_num(pearson(*ranks.T)))


# ---- Tests of terms: whether the share of new rows differs between the codes of a column, or the cells of a pair.

_STEPS = 100
"""Most steps of iterative proportional fitting."""
_CLOSE = 1e-3
"""Change of a cell, in rows, below which the fit ends."""


class CellTest:
    """A test whether new rows fall into C cells as expected, by the numbers of new rows in them.

    Its p-value is the least one of three statistics, times their number: the sum of squares over all cells, that of a
    trend, and the cell that deviates most.

    rows : float64 array (C,). Rows of both tables in each cell.
    p : float64 array (C,). Expected share of new rows in each cell.
    main : float64 array (C, k). What the expected shares were fitted by; one of its combinations is constant.
    trend : float64 array (C, m), optional. Contrasts that are more probable than others, such as a column's ranks.
    """

    def __init__(self, rows: np.ndarray, p: np.ndarray, main: np.ndarray, trend: np.ndarray | None = None) -> None:
        self.rows, self.p = rows, p
        variance = rows * p * (1.0 - p)
        used = variance > 1e-9
        scale = np.sqrt(np.where(used, variance, 0.0))
        self._inverse = np.where(used, 1.0 / np.where(used, scale, 1.0), 0.0)
        excess = np.where(used, 1.0 / np.where(used, variance, 1.0) - 6.0 / np.maximum(rows, 1.0), 0.0)
        wide = scale[:, None] * main
        self._main = _basis(wide, wide)
        self._gammas = [_gamma(used - np.square(self._main).sum(1), excess)]
        self._trend = None
        if trend is not None:
            wide = scale[:, None] * trend
            basis = _basis(wide - self._main @ (self._main.T @ wide), wide)
            if basis.shape[1]:
                self._trend = basis
                self._gammas.append(_gamma(np.square(basis).sum(1), excess))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the sum over all cells."""
        return self._gammas[0][0]

    def p_values(self, new: np.ndarray) -> np.ndarray:
        """p-values of all cells, of the most deviating cell, and of the trend if any, (3 or 2, n); new is (n, C)."""
        # Sums of squares have about a gamma distribution with the mean and variance of those of binomial numbers. A
        # cell has Chernoff's bound, times the number of cells, which also holds without replacement.
        z = (new - self.rows * self.p) * self._inverse
        along = np.square(z @ self._main).sum(1)
        sums = [np.square(z).sum(1) - along]
        if self._trend is not None:
            sums.append(np.square(z @ self._trend).sum(1))
        tails = [_gamma_tail(total, *gamma) for total, gamma in zip(sums, self._gammas, strict=True)]
        most = deviance(self.rows, self.p, new).max(1)
        return np.stack([tails[0], np.minimum(2.0 * np.count_nonzero(self.rows) * np.exp(-most), 1.0), *tails[1:]])

    def p_value(self, new: np.ndarray) -> np.ndarray:
        """The least p-value of the statistics, times their number, (n,)."""
        found = self.p_values(new)
        return np.minimum(len(found) * found.min(0), 1.0)


def deviance(rows: np.ndarray, p: np.ndarray, new: np.ndarray) -> np.ndarray:
    """rows KL(new/rows | p) of cells, in nats: the log-likelihood of the observed shares over that of p."""
    old = rows - new
    with np.errstate(divide="ignore", invalid="ignore"):
        by_share = xlogy(new, new / rows) + xlogy(old, old / rows)
        return np.asarray(np.where(rows > 0, by_share - xlogy(new, p) - xlogy(old, 1.0 - p), 0.0))


def fitted(rows: np.ndarray, new: np.ndarray, margins: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Shares of new rows in each cell, if the log-odds are a sum of a term of each margin (tuples of axes)."""
    # Iterative proportional fitting: the model has the observed numbers of new rows of each margin.
    both = np.stack([new, rows - new])
    fit = np.stack([0.5 * rows, 0.5 * rows])
    for _ in range(_STEPS):
        before = fit
        for margin in margins:
            others = tuple(axis + 1 for axis in range(rows.ndim) if axis not in margin)
            fit = fit * divided(both.sum(others, keepdims=True), fit.sum(others, keepdims=True))
            fit = fit * divided(rows, fit.sum(0))
        if np.abs(fit - before).max() < _CLOSE:
            break
    return np.clip(divided(fit[0], rows), 0.0, 1.0)


def _basis(columns: np.ndarray, of: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of columns, without what is rounding beside the columns ``of``."""
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, size > 1e-6 * np.linalg.norm(of)])


def _gamma(diagonal: np.ndarray, excess: np.ndarray) -> tuple[float, float]:
    """Mean and variance of a sum of squares of a projection, whose diagonal is given, of standardised numbers."""
    mean = float(np.maximum(diagonal, 0.0).sum())
    return mean, 2.0 * mean + float(np.square(diagonal) @ excess)


def _gamma_tail(total: np.ndarray, mean: float, variance: float) -> np.ndarray:
    """Probability that a gamma distribution exceeds a total; 1 where there is no freedom."""
    if mean < 1e-6 or variance < 1e-6 * mean:
        return np.ones(len(total))
    return np.asarray(gammaincc(mean * mean / variance, np.maximum(total, 0.0) * mean / variance))
