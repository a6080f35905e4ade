"""The joint that a page shows, with what is worked out of it once: bins, atoms, and what is known without evidence."""

from __future__ import annotations

import hashlib
import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import narwhals as nw
import numpy as np

from ..data import times
from ..data.evidence import build
from ..data.frames import encode_ranges, read
from ..data.ranges import Ranges
from ..data.reading import date_text
from ..data.schema import Column
from ..ensembles.table import Ensemble
from ..inference.check.result import Check
from ..inference.expectation.expectation import MatchedRows, expected_answer, expected_by_draws, knows_splits
from ..inference.expectation.match import Features, MatchedEnsemble, filled, match_ensemble, match_features
from ..inference.histogram import INNER, histogram, is_beyond, shown_edges
from ..inference.information.divergence import CLASS_BINS as BINS_OF_DEPENDENCE
from ..inference.information.divergence import class_cuts
from ..inference.sampling import sample
from ..models.base import Distribution, PosteriorState
from ..models.file import contents

BINS = 40
"""Most bins of a column of numbers."""
_HEAVY = 8.0
"""A column of numbers has a heavy tail if 1 % of its positive numbers are so many times the middle one."""
_PER_DECADE = ((1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0), (1.0, 1.6, 2.5, 4.0, 6.3), (1.0, 2.0, 5.0), (1.0,))
"""Edges of the bins of a logarithmic axis, finer and coarser ones."""
ATOMS = 8
"""Most atoms of a column that have cuts of their own."""
_DRAWS = 20_000
"""Draws by which the middle of a bin is found."""
_MOST_CELLS = 500_000
"""Most cells of these draws."""
NO_TABLE = "no table was loaded beside the joint: give cells, or start with --table"
_FEW = 10
"""Fewer draws are not informative."""


class ShownBins(NamedTuple):
    """How a column is cut.

    edges : float64 array (B + 1,). Ends of the bins shown; nothing of a column of levels.
    cuts : float64 array (C + 1,). ``edges``, and the ends of the cells of the heaviest atoms.
    first : int array (B,). Number of the first cut of each bin.
    """

    edges: np.ndarray
    cuts: np.ndarray
    first: np.ndarray

    def together(self, fine: np.ndarray) -> np.ndarray:
        """Masses of the bins from those of the cuts; of a column of levels they are the same."""
        return np.add.reduceat(fine, self.first) if len(self.first) else fine


@dataclass(frozen=True)
class ShownJoint:
    """What a page shows.

    title : str. Name of its file.
    rows : frame, optional. A table whose rows the page shows and counts in addition to the joint.
    trained : Ensemble, optional. A trained model whose expected predictions are asked for.
    """

    joint: Any
    title: str = "joint"
    rows: Any = None
    trained: Ensemble | None = None

    index: ClassVar[str] = "index.html"
    widget: ClassVar[str] = "widget_main.js"
    """The file of its page, and the script of its widget."""
    about: ClassVar[str] = "single rows"

    @cached_property
    def version(self) -> str:
        """Fingerprint of the joint, the same wherever it is loaded."""
        return fingerprint(self.joint.distribution)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.joint.schema.columns

    @cached_property
    def predictor(self) -> Predictor | None:
        """The trained model asked under the joint; None without one."""
        return None if self.trained is None else Predictor(self.trained, self.joint.distribution)

    @cached_property
    def nothing(self) -> PosteriorState:
        """The posterior without evidence."""
        return self.joint.distribution.observe(build(self.joint.schema))

    @cached_property
    def bins(self) -> tuple[ShownBins, ...]:
        """How each column is cut, the same whatever the evidence."""
        return tuple(_shown_bins(self, j, column) for j, column in enumerate(self.columns))

    @cached_property
    def masses(self) -> tuple[np.ndarray, ...]:
        """Mass of each column's cuts, or levels, without evidence."""
        return tuple(histogram(self.nothing, j, bins.cuts)[0] for j, bins in enumerate(self.bins))

    @cached_property
    def centers(self) -> tuple[np.ndarray, ...]:
        """Mean within each cut of a column of numbers, without evidence; nothing of a column of levels."""
        return tuple(centers_of_cuts(self, j, bins.cuts) for j, bins in enumerate(self.bins))

    @cached_property
    def class_cuts(self) -> list[np.ndarray]:
        """Cuts between the classes of each column by which dependence is measured."""
        return [class_cuts(self.nothing, j, BINS_OF_DEPENDENCE) for j in range(len(self.columns))]

    @cached_property
    def _read_rows(self) -> tuple[np.ndarray, np.ndarray, Ranges | None] | None:
        return None if self.rows is None else encode_ranges(self.joint.schema, self.rows)

    @property
    def encoded(self) -> np.ndarray | None:
        """The rows of the table as the joint encodes them, (n, d); ranges and levels never seen are missing."""
        return None if self._read_rows is None else self._read_rows[0]

    @cached_property
    def ranged(self) -> frozenset[int]:
        """Columns in which some cells of the table are ranges: which rows satisfy evidence on them is not known."""
        ranges = None if self._read_rows is None else self._read_rows[2]
        return frozenset() if ranges is None else frozenset(np.flatnonzero((ranges.number >= 0).any(axis=0)).tolist())

    @cached_property
    def checked(self) -> Checked:
        """Which cells of the table are wrong; seconds for a large table, so only when it is asked for."""
        if self.rows is None:
            raise ValueError(NO_TABLE)
        return check_with_notes(self.joint, self.rows)

    @cached_property
    def draws(self) -> np.ndarray:
        """Rows drawn from the joint, (n, d), by which the middle of a bin is found."""
        n = max(min(_DRAWS, _MOST_CELLS // len(self.columns)), 1)
        return sample(self.joint.distribution, self.nothing.evidence, n, 0)

    def is_heavy(self, j: int) -> bool:
        """Whether column j has a heavy tail of positive numbers, so that a logarithmic axis shows more."""
        column, drawn = self.columns[j], self.draws[:, j]
        positive = drawn[drawn > 0.0]
        if column.is_categorical or column.kind == "datetime" or len(positive) < 100 or (drawn < 0.0).mean() > 0.01:
            return False
        middle, high = np.quantile(positive, [0.5, 0.99]).tolist()
        return bool(high >= _HEAVY * middle)

    def log_edges(self, j: int) -> np.ndarray:
        """Edges of a logarithmic axis of column j, round numbers; the first bin holds all numbers below the second."""
        column, drawn = self.columns[j], self.draws[:, j]
        low, high = float(np.quantile(drawn[drawn > 0.0], INNER[0])), max(column.maximum, float(np.nanmax(drawn)))
        powers = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for digits in _PER_DECADE:
            edges = np.unique(np.outer(10.0**powers, digits))
            edges = edges[max(int(np.searchsorted(edges, low)) - 1, 0) : int(np.searchsorted(edges, high)) + 1]
            if len(edges) < BINS:
                break
        half = 0.5 * column.step
        if half > 0.0:
            edges = np.unique(column.center + np.ceil((edges - column.center) / column.step) * column.step - half)
        first = min(column.minimum, float(np.nanmin(drawn))) - half
        return np.concatenate([[first], edges]) if first < edges[0] else edges

    @cached_property
    def can_miss(self) -> frozenset[str]:
        """Columns where learning saw cells missing."""
        model = self.joint.distribution
        return frozenset(c.name for c in self.columns if model.given_missing_cells({c.name: True})[0] is not None)

    @cached_property
    def kept(self) -> dict[int, dict[str, Any]]:
        """The answers of columns without evidence, once they are known."""
        return {}

    @cached_property
    def said_missing(self) -> dict[Any, tuple[Distribution | None, float]]:
        """Models given which cells are missing or not, as asked last, with the log-probability of that."""
        return {}


def _shown_bins(shown: ShownJoint, j: int, column: Column) -> ShownBins:
    none = np.empty(0)
    if column.is_categorical:
        return ShownBins(none, none, none.astype(int))
    drawn = shown.draws[~np.isnan(shown.draws[:, j]), j]  # a rule may make cells missing
    low, high = np.quantile(drawn, INNER).tolist() if len(drawn) else (math.nan, math.nan)
    edges = shown_edges(column, (low, high), BINS)
    cuts = _shown_cuts(column, edges, _heaviest(shown.nothing, j, column))
    first = np.searchsorted(cuts, edges[:-1] - 0.25 * column.step)
    first[0] = 0
    return ShownBins(edges, cuts, first)


def _shown_cuts(column: Column, edges: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """Edges, the ends of the atoms' cells and of what learning saw, ascending; the first and the last are outermost."""
    is_below, is_above = is_beyond(column, edges)
    inside = edges[None if is_below else 1 : None if is_above else -1]
    inner = np.unique(np.concatenate([inside, *_cell_ends(column, atoms)]))
    if column.step > 0.0:  # edges of one cell, written by two roundings, are one
        inner = inner[np.diff(inner, prepend=-np.inf) > 0.25 * column.step]
    half = 0.5 * column.step
    low, high = (column.minimum - half if is_below else edges[0]), (column.maximum + half if is_above else edges[-1])
    if len(inner):
        low = min(low, inner[0] - 0.5 * column.step if column.step > 0.0 else np.nextafter(inner[0], -np.inf))
        high = max(high, inner[-1] + 0.5 * column.step if column.step > 0.0 else np.nextafter(inner[-1], np.inf))
    return np.concatenate([[low], inner, [high]])


def centers_of_cuts(shown: ShownJoint, j: int, cuts: np.ndarray) -> np.ndarray:
    """Mean of the draws in each cut, (C,), its middle where there are few; what lies beyond counts with the ends."""
    if not len(cuts):
        return cuts
    drawn = shown.draws[~np.isnan(shown.draws[:, j]), j]  # a rule may make cells missing
    place = np.clip(np.searchsorted(cuts, drawn) - 1, 0, len(cuts) - 2)
    n, total = np.bincount(place, minlength=len(cuts) - 1), np.bincount(place, drawn, len(cuts) - 1)
    return np.where(n < _FEW, 0.5 * (cuts[:-1] + cuts[1:]), total / np.maximum(n, 1))


def _cell_ends(column: Column, atoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends (lo, hi] of what holds each atom and, but for a grid's cell, next to nothing else."""
    if column.step > 0.0:
        return atoms - 0.5 * column.step, atoms + 0.5 * column.step
    return np.nextafter(atoms, -np.inf), atoms


def _heaviest(nothing: PosteriorState, j: int, column: Column) -> np.ndarray:
    """The atoms that hold most without evidence, ascending, at most `ATOMS`."""
    atoms = np.array(column.atoms)
    if not len(atoms):
        return atoms
    below, above = _cell_ends(column, atoms)
    cuts = np.unique(np.concatenate([below, above]))
    if len(cuts) < 2:
        return atoms
    masses = histogram(nothing, j, np.concatenate([[-np.inf], cuts, [np.inf]]))[0]
    mass = masses[np.searchsorted(cuts, atoms)]
    keep = np.sort(np.argsort(-mass, kind="stable")[:ATOMS])
    return atoms[keep]


def shares_of_rows(x: np.ndarray, column: Column, edges: np.ndarray) -> np.ndarray:
    """Share of the known cells of x (n,) in each bin, or of each level; all zeros if no cell is known."""
    x = x[~np.isnan(x)]
    if column.is_categorical:
        count = np.bincount(x.astype(np.int64), minlength=len(column.levels))
    else:
        place = np.clip(np.searchsorted(edges, x) - 1, 0, len(edges) - 2)
        count = np.bincount(place, minlength=len(edges) - 1)
    return np.asarray(count / max(len(x), 1))


def fingerprint(model: Any) -> str:
    """Digest of what a file of the model holds; of a kind that files do not hold, its place in memory."""
    try:
        about, arrays = contents(model)
    except ValueError:  # it is loaded nowhere else
        return f"{id(model):016x}"
    digest = hashlib.blake2b(repr(sorted(about.items())).encode(), digest_size=8)
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def shown_joint(joint: Any, title: str, rows: Any, trained: Ensemble | None) -> ShownJoint:
    """What a page shows."""
    if rows is not None:  # an error should be raised here, not on the page
        read(rows)
    shown = ShownJoint(joint, title, rows, trained)
    _ = shown.predictor  # an error should be raised here if they do not fit
    return shown


# ---- A column's numbers as the page has them: dates in milliseconds since 1970, everything else as it is.

_ULPS = 8 * 2.0**-52


def to_shown(column: Column, number: float) -> float | None:
    """A number of the column as the page has it; None for NaN and infinity."""
    shown = (number + column.origin) * 1e3 if column.kind == "datetime" else number
    return float(shown) if math.isfinite(shown) else None


def all_shown(column: Column, numbers: np.ndarray) -> list[float | None]:
    """`to_shown` of an array."""
    return [to_shown(column, x) for x in numbers.tolist()]


def described(column: Column, edges: np.ndarray) -> dict[str, Any]:
    """Name, kind, levels or grid of a column, with ends of bins of numbers."""
    is_number, is_date = not column.is_categorical, column.kind == "datetime"
    step = column.step * 1e3 if is_date else column.step
    beyond = is_beyond(column, edges) if is_number else (False, False)
    is_open = is_number and column.learned_until < math.inf
    return {
        "name": column.name,
        "kind": column.kind,
        "levels": None if is_number else list(column.levels),
        "labels": None if is_number else [str(level) for level in column.levels],
        "edges": all_shown(column, edges) if is_number else None,
        "beyond": (beyond[0], beyond[1] or is_open) if is_number else None,
        "until": to_shown(column, column.learned_until) if is_open else None,
        "is_time": is_open and column.censored is not None,
        "step": step or None if is_number else None,
        "zone": times.zone_of(column.dtype) if is_date else None,
        "month": column.written.pattern if column.written is not None and column.written.sort == "month" else None,
    }


def from_shown(column: Column, shown: float) -> float:
    """A number of the column from the page's number."""
    try:
        number = float(shown)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"column {column.name!r}: expected a finite number, got {str(shown)[:40]}")
    if column.kind != "datetime":
        return number
    if not times.RANGE[0] <= number / 1e3 <= times.RANGE[1]:
        raise ValueError(
            f"column {column.name!r}: expected a date of the years 1 to 9999, got {number:g} ms since 1970"
        )
    return number / 1e3 - column.origin


def rounding(column: Column, number: float) -> float:
    """How far a number may be from what was meant, by its way through `to_shown` and `from_shown`."""
    return _ULPS * (abs(number) + (abs(column.origin) if column.kind == "datetime" else 0.0))


def written(column: Column, number: float) -> Any:
    """A number of the column as people write it in conditions: 40, 1.5, '2024-03-01 12:30'."""
    if column.kind == "datetime":
        return date_text(column, number)
    if column.written is not None and column.written.sort == "month":
        return column.text(number)
    value = column.from_number(number) if column.step > 0.0 else number
    if abs(value - number) > 1e-9 * max(1.0, abs(number)):  # not the centre of a cell
        value = number
    return int(value) if value == round(value) and abs(value) < 1e15 else value


def cell_text(column: Column, number: float, digits: int | None = None) -> str | None:
    """A cell as text, as CSV has it; None where missing. ``digits`` are those of numbers that have no grid."""
    if math.isnan(number):
        return None
    if column.kind == "datetime":
        return date_text(column, number)
    if column.step == 0.0 and not column.is_categorical:
        return repr(number) if digits is None else f"{number:.{digits}g}"
    return str(column.from_number(number))


# ---- What a trained model predicts of a row: in expectation over the cells that are not known, and of the whole row.


TOLERANCE, DRAWS, SEED = 1e-4, 128, 0
"""Those of `ExpectedPredictor`, so that its answers are the same."""


class _Expected(NamedTuple):
    value: list[float]
    error: list[float]


class Predictor:
    """A trained ensemble asked under a joint.

    ensemble : Ensemble
    model : Distribution. Of the joint.
    Raises ValueError if the ensemble's features are not among the joint's columns.
    """

    def __init__(self, ensemble: Ensemble, model: Distribution) -> None:
        self.ensemble, self.model = ensemble, model
        self.features: Features = match_features(ensemble, model.schema)

    @cached_property
    def _matched(self) -> MatchedEnsemble | None:
        if not self.model.is_forest:
            return None
        return match_ensemble(self.ensemble, self.model.forest_for("a certified bound"))

    def ask(self, x: np.ndarray, known: np.ndarray) -> dict[str, Any]:
        """The model's expected prediction of a row x (d,) given its ``known`` cells, its error, and its own one."""
        expected = self._expected(self._rows(np.where(known, x, np.nan)))
        whole = self._rows(x)
        own = self._expected(whole).value if knows_splits(self.features, whole)[0] else None
        ensemble, names = self.ensemble, self.model.schema.names
        return {
            "library": ensemble.library,
            "classes": None if ensemble.classes is None else [str(label) for label in ensemble.classes],
            "features": [names[j] for j in self.features.column.tolist()],
            "expected": None if np.isnan(expected.value).any() else expected.value,
            "error": expected.error,
            "own": own,
        }

    def _rows(self, x: np.ndarray) -> MatchedRows:
        n = len(self.features.column)
        X, other = filled(self.features, np.full((1, n), np.nan), np.zeros((1, n), dtype=bool), x[None])
        return MatchedRows(build(self.model.schema, x[None]), X, other)

    def _expected(self, rows: MatchedRows) -> _Expected:
        if self._matched is None:
            drawn = expected_by_draws(self.features, self.model, rows, "auto", DRAWS, SEED)
            answer, error = drawn.answer[0], drawn.answer_error[0]
        else:
            found = expected_answer(self._matched, rows, "auto", DRAWS, SEED, TOLERANCE)
            answer, error = found.answer[0], found.error[0]
        if self.ensemble.classes is not None and self.ensemble.link == "logistic":
            answer, error = np.array([1.0 - answer[0], answer[0]]), np.array([error[0], error[0]])
        return _Expected(answer.tolist(), error.tolist())


# ---- Cells of a table that are probably wrong, as pages show them.


SUSPICIOUS = 0.5
"""Probability of being wrong from which on a cell is shown."""


class Checked(NamedTuple):
    """The check of a table, and its warnings."""

    found: Check
    notes: list[str]


def check_with_notes(joint: Any, frame: Any) -> Checked:
    """`Joint.check`, whose warnings are part of what is shown."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        found = joint.check(frame)
    return Checked(found, list(dict.fromkeys(str(n.message) for n in notes if issubclass(n.category, UserWarning))))


def suspicious(cells: Any, k: int) -> list[dict[str, Any]]:
    """The first k of `Check.cells` that are more probably wrong than right."""
    rows = cells.tolist() if isinstance(cells, np.ndarray) else nw.from_native(cells).head(k).rows()
    names = ("row", "column", "value", "p_wrong", "best", "p_best", "reason")
    found = [dict(zip(names, row, strict=True)) for row in rows[:k]]
    return [cell for cell in found if cell["p_wrong"] >= SUSPICIOUS]
