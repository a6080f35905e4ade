"""What is known of a table's columns: names, kinds, grids, atoms, levels, ends. Remembered, never guessed again."""

from __future__ import annotations

import difflib
import math
import random
import re
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from ..runtime.records import record
from . import times

if TYPE_CHECKING:
    from .conditions import Censored
    from .csv_files import CsvForm
    from .rules.rule import Rule
    from .written_forms import WrittenForm

NO_KINDS = ("identifier", "ignored")
"""How a user names columns that take no part in the model."""
REASONS = ("identifier", "free text", "too many levels", "unlike cells", "ignored")
SHAPE_CLASSES = (
    ("d", "0123456789"),
    ("h", "0123456789abcdef"),
    ("H", "0123456789ABCDEF"),
    ("a", "abcdefghijklmnopqrstuvwxyz"),
    ("A", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ("w", "0123456789abcdefghijklmnopqrstuvwxyz"),
    ("W", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
)
"""Classes of characters of which identifiers are made."""


@dataclass(frozen=True)
class SetAside:
    """Why a column takes no part in the model, and how new identifiers are written.

    reason : {"identifier", "free text", "too many levels", "unlike cells", "ignored"}
    n_distinct : int. Distinct values at learning.
    prefix, suffix : str. Text around the number of each identifier.
    width : int. Digits of the number, with zeros in front; 0 where there are none.
    first : int. Number of the first new identifier; -1 where identifiers hold no number.
    mask : str. Class of each character, where identifiers hold no number; ``\\`` stands before a constant character.
    """

    reason: str
    n_distinct: int
    prefix: str = ""
    suffix: str = ""
    width: int = 0
    first: int = -1
    mask: str = ""

    @property
    def in_words(self) -> str:
        """Why the column is set aside."""
        return {
            "identifier": f"names the rows ({self.n_distinct:,} distinct values)",
            "free text": f"is free text ({self.n_distinct:,} distinct texts)",
            "too many levels": f"has {self.n_distinct:,} levels, too many to learn",
            "unlike cells": f"has cells of unlike forms ({self.n_distinct:,} distinct texts)",
            "ignored": "was left out on request",
        }[self.reason]

    @property
    def is_left_empty(self) -> bool:
        """Whether drawn rows have no value of the column, and the user did not ask for this."""
        return self.reason in ("free text", "too many levels")

    def new(self, k: int) -> str:
        """The identifier of drawn row k. Counted ones are new; random ones are new but for a negligible probability."""
        if not self.mask:
            return f"{self.prefix}{max(self.first, 1) + k:0{self.width}d}{self.suffix}"
        chosen, out, i = random.Random(k), [], 0
        characters = dict(SHAPE_CLASSES)
        while i < len(self.mask):
            if self.mask[i] == "\\":
                i += 1
                out.append(self.mask[i])
            else:
                out.append(chosen.choice(characters[self.mask[i]]))
            i += 1
        return "".join(out)


# ---- What the kernels know about columns: plain arrays, one entry a column, slot, atom or level.


@record
class Columns(NamedTuple):
    """Column layout for the kernels.

    A table has d columns. Each is numeric or categorical and has a *slot*: its place among the columns of its
    own kind. There are p numeric and c categorical slots, p + c = d.

    is_categorical : uint8 array (d,). 1 where the column is categorical (also ordered and boolean ones), else 0.
    slot : int32 array (d,). Place of the column among the numeric, or among the categorical, columns.
    step : float64 array (p,). Width of a grid cell of a numeric slot; 0 where the slot has no grid (a density).
    origin : float64 array (p,). Centre of one cell: cells are ``origin + k*step -+ step/2``.
    atom_start : int32 array (p + 1,). Slot s has the atoms ``atom_value[atom_start[s]:atom_start[s + 1]]``, ascending.
    atom_value : float64 array (A,). Values that have a mass of their own.
    level_start : int32 array (c + 1,). Slot s has the levels ``level_start[s]:level_start[s + 1]`` of a table.
    """

    is_categorical: np.ndarray
    slot: np.ndarray
    step: np.ndarray
    origin: np.ndarray
    atom_start: np.ndarray
    atom_value: np.ndarray
    level_start: np.ndarray

    def atoms_of(self, slot: int) -> slice:
        """The atoms of a numeric slot in any table by atom."""
        return slice(int(self.atom_start[slot]), int(self.atom_start[slot + 1]))

    def levels_of(self, slot: int) -> slice:
        """The levels of a categorical slot in any table by level."""
        return slice(int(self.level_start[slot]), int(self.level_start[slot + 1]))

    def n_levels(self, slot: int) -> int:
        """Number of levels of a categorical slot."""
        return int(self.level_start[slot + 1] - self.level_start[slot])


Level = str | bool | int | float
Frame = Literal["pandas", "polars", "pyarrow", "numpy", "file"]
"""The library of a table's frame. A table that the command line read from a file has the types of pyarrow, and its
answers are frames of the library that is installed."""

FRAMES: tuple[str, ...] = get_args(Frame)
NUMERIC_KINDS = ("continuous", "mixed", "integer", "rounded", "datetime")
CATEGORICAL_KINDS = ("boolean", "categorical", "ordered")
KINDS = NUMERIC_KINDS + CATEGORICAL_KINDS
GRID_KINDS = ("integer", "rounded", "datetime")
DIGIT_KINDS = ("continuous", "mixed", "rounded")
"""Kinds of columns whose cells may have a number of significant digits."""
MOST_DIGITS = 9
MAX_ATOMS = 64
MAX_LEVELS = 10_000

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)\s*")
_LONGEST = 80  # characters of a value in an error
_ALIKE = 0.7
"""Least ratio of `difflib` of names that a hint proposes: at 0.6, 'unit' is proposed for 'quantity'."""
_SHORTEST_PART = 3
"""Fewest characters of a part of a name for which the whole name is proposed."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    name : str
    kind : str. One of `KINDS`.
    dtype : str. How the column is stored in the frame it came from; what `frames.decode` gives back.
    step : float. Width of a grid cell; 0 where there is no grid.
    origin : float. Centre of one grid cell. Of a date-time column: the seconds since 1970-01-01 (UTC) of the number 0.
    atoms : tuple of float. Values with a mass of their own, ascending; at most 64; cell centres if there is a grid.
    levels : tuple of str, bool, int or float. Levels of a categorical column; the code of a level is its place.
    minimum, maximum : float. Range of the observed numbers; NaN in a categorical column.
    lower, upper : float. Ends beyond which nothing is drawn, cell centres if there is a grid; infinite where open.
    only : str. The calendar (`times`) whose values alone are drawn; empty if there is none.
    n_observed : int. Number of cells seen at learning that were not missing.
    n_ranges : int. How many of them were ranges. ``minimum`` and ``maximum`` are then those of the others.
    censored : Censored or None. Another column that marks exact numbers.
    learned_until : float. With ranges open above: the largest exact number, or else the largest lower end; otherwise
    inf.
    has_number_name : bool. Whether the column's name in its pandas frame is a whole number, whose text is ``name``.
    written : WrittenForm or None. How a column of text writes its numbers, dates or times.
    aside : SetAside or None. Why a column takes no part in the model although it has known cells.
    parts : tuple of (bool, tuple of float). Of a compound: whether each of its columns has numbers, and its number or
    code in each level. Levels that share a code agree in all parts but the one of most values (`learn_scale`).
    digits : int. Significant digits with which the cells are written, if more precise than a grid; else 0.
    why_text : str. Why cells of text, most of which seem to be numbers, dates or times, were not read as such.
    remark : str. What else looks wrong in the column; empty if nothing does.

    Examples
    --------
    >>> island = Column("island", "categorical", "str", levels=("Biscoe", "Dream"), n_observed=10)
    >>> island.to_number("Dream"), island.from_number(0.0)
    (1.0, 'Biscoe')
    """

    name: str
    kind: str
    dtype: str
    step: float = 0.0
    origin: float = 0.0
    atoms: tuple[float, ...] = ()
    levels: tuple[Level, ...] = ()
    minimum: float = math.nan
    maximum: float = math.nan
    n_observed: int = 0
    has_number_name: bool = False
    written: WrittenForm | None = None
    aside: SetAside | None = None
    parts: tuple[tuple[bool, tuple[float, ...]], ...] = field(default=(), compare=False, repr=False)
    why_text: str = ""
    remark: str = ""
    digits: int = 0
    lower: float = -math.inf
    upper: float = math.inf
    only: str = ""
    n_ranges: int = 0
    censored: Censored | None = None
    learned_until: float = math.inf

    @property
    def label(self) -> str | int:
        """The column's name in its frame."""
        return int(self.name) if self.has_number_name else self.name

    def to_dict(self) -> dict[str, Any]:
        """As plain dicts, lists, strings and finite numbers: for JSON; `schema_check.column_from_dict` reads it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype,
            "step": self.step,
            "origin": self.origin,
            "atoms": list(self.atoms),
            "levels": list(self.levels),
            "minimum": None if math.isnan(self.minimum) else self.minimum,
            "maximum": None if math.isnan(self.maximum) else self.maximum,
            "n_observed": self.n_observed,
            **({"has_number_name": True} if self.has_number_name else {}),
            **({"written": asdict(self.written)} if self.written is not None else {}),
            **({"aside": asdict(self.aside)} if self.aside is not None else {}),
            **({"why_text": self.why_text} if self.why_text else {}),
            **({"remark": self.remark} if self.remark else {}),
            **({"digits": self.digits} if self.digits else {}),
            **({"lower": self.lower} if self.lower > -math.inf else {}),
            **({"upper": self.upper} if self.upper < math.inf else {}),
            **({"only": self.only} if self.only else {}),
            **({"n_ranges": self.n_ranges} if self.n_ranges else {}),
            **({"censored": asdict(self.censored)} if self.censored is not None else {}),
            **({"learned_until": self.learned_until} if self.learned_until < math.inf else {}),
        }

    @property
    def is_categorical(self) -> bool:
        """Whether cells are level codes (kinds boolean, categorical and ordered)."""
        return self.kind in CATEGORICAL_KINDS

    @property
    def is_flag(self) -> bool:
        """Whether cells are false and true, or 0 and 1, so that the column alone is a condition."""
        ends = self.levels if self.is_categorical else (self.minimum, self.maximum)
        return tuple(ends) == (0, 1) and self.kind in ("boolean", "categorical", "ordered", "integer")

    @property
    def is_ordered(self) -> bool:
        """Whether values can be compared: all columns but unordered categorical ones."""
        return self.kind != "categorical"

    @property
    def log_unseen(self) -> float:
        """What a level never seen adds to a row's log-probability: -log(n_observed + 1)."""
        return -math.log(self.n_observed + 1.0)

    @property
    def center(self) -> float:
        """Centre of one grid cell in the numbers that kernels see (0 for date-times, else `origin`)."""
        return 0.0 if self.kind == "datetime" else self.origin

    @property
    def zero(self) -> float:
        """What the number 0 stands for: of date-times the seconds since 1970-01-01, else 0."""
        return self.origin if self.kind == "datetime" else 0.0

    @cached_property
    def codes(self) -> dict[Level, int]:
        """Code of each level, and of its text without the white space at its ends where no other level has it."""
        codes = {level: code for code, level in enumerate(self.levels)}
        bare = [(level.strip(), code) for level, code in codes.items() if isinstance(level, str)]
        n_of = Counter(text for text, _ in bare)
        return {text: code for text, code in bare if n_of[text] == 1} | codes

    def code(self, label: Any) -> int | None:
        """Code of the level that a label names, with any white space at its ends; None if it names none."""
        code = self.codes.get(label)
        return self.codes.get(label.strip()) if code is None and isinstance(label, str) else code

    def to_number(self, value: Any) -> float:
        """Number (or level code) that stands for a value given by a user."""
        value = self._plain(value)
        if self.written is not None and isinstance(value, str):
            number = self.written.parse(value)
            if number is not None:
                return number - self.zero
        if self.is_categorical:
            if self.dtype.startswith("category[interval["):
                value = str(value)  # a level is the text of an interval of pandas
            code = self.code(value) if isinstance(value, str | bool | int | float) else None
            if code is None:
                hint, said = near(value, self.levels), shortened(value)
                raise ValueError(f"column {self.name!r}: {said} is not one of its {len(self.levels)} levels; {hint}")
            return float(code)
        if self.kind == "datetime":
            try:
                return times.seconds(value, self.origin, times.zone_of(self.dtype))
            except times.ClockError as error:
                raise ValueError(f"column {self.name!r}: {error}") from None
            except (ValueError, TypeError, OverflowError) as error:
                example = (
                    self.text(self.minimum) or "2024-03-01 12:30" if self.written is None else self.written.example
                )
                why = f" ({error})" if self.written is None else ""
                raise ValueError(
                    f"column {self.name!r}: expected a date or time such as {example!r}, got {value!r}{why}"
                ) from None
        if isinstance(value, bool) and self.is_flag:
            return float(value)
        try:
            if isinstance(value, str | bool | bytes):
                raise TypeError
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            such = "" if self.written is None else f" such as {self.written.example!r}"
            such = f" of seconds, or a text such as {self.text(self.maximum)!r}" if times.is_span(self.dtype) else such
            is_range = type(value).__name__ == "Interval" or str(value).strip().startswith(tuple("<>≤≥[("))
            hint = "; for a range say jf.between(low, high), with None for an open end" if is_range else ""
            hint = "; write the number without quotes" if isinstance(value, str) and _NUMBER.fullmatch(value) else hint
            raise ValueError(
                f"column {self.name!r} ({self.kind}): expected a number{such}, got {shortened(value)}{hint}"
            ) from None
        if not math.isfinite(number):
            raise ValueError(f"column {self.name!r}: expected a finite number, got {number}; None means nothing known")
        return number

    def _plain(self, value: Any) -> Any:
        """A value without the types and texts of durations, times of day and periods: seconds, and first moments."""
        if times.is_span(self.dtype):
            value = times.span_of(value)
        if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
            value = value.item()
        if self.dtype.startswith("period") and isinstance(value, str | int):
            value = times.period_start(str(value), self.dtype) or str(value).partition("/")[0]
        is_period = type(value).__name__ == "Period" and self.kind == "datetime"  # of pandas
        return value.start_time if is_period else value

    def text(self, number: float) -> str:
        """A number as its frame shows it, of a column of durations, times of day, months or periods; else empty."""
        if self.written is not None and self.written.sort in ("month", "time", "duration") and math.isfinite(number):
            return self.written.write(number + self.zero)
        if times.is_span(self.dtype) and math.isfinite(number):
            return times.span_text(number, self.dtype)
        is_period = self.dtype.startswith("period") and math.isfinite(number)
        return times.period_text(self.scalar(number), self.dtype) if is_period else ""

    def from_number(self, number: float) -> Any:
        """Python value (level, int, float, date or datetime) of a number or code; None for NaN."""
        if math.isnan(number):
            return None
        if self.is_categorical:
            return self.levels[int(number)]
        if self.kind == "datetime":
            number = snapped(self, np.array([number]))[0] if self.only else number
            return times.moment(round(number / self.step) * self.step, self.origin, self.dtype)
        if self.only:
            return int(snapped(self, np.array([number]))[0])
        if self.digits:
            return float(snapped(self, np.array([number]))[0])
        if self.step == 0.0:
            return number
        cells = (number - self.origin) / self.step
        if abs(cells) > 2.0**52:  # finer than float64
            return int(number) if self.kind == "integer" else number
        number = round(cells) * self.step + self.origin
        return round(number, self.decimals or None)

    def values(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers or level codes in any shape as the column's values: float64, datetime64[us], or objects."""
        # Moments of a column with a time zone are datetimes of this zone, as one answer is.
        if self.is_categorical:
            known = ~np.isnan(numbers)
            levels = np.array([*self.levels, None], dtype=object)
            return levels[np.where(known, numbers, len(self.levels)).astype(np.int64)]
        if self.kind != "datetime":
            return numbers
        if times.zone_of(self.dtype) is None:
            return self.moments(numbers)
        flat = [None if x != x else times.moment(x, self.origin, self.dtype) for x in numbers.ravel().tolist()]
        return np.array(flat, dtype=object).reshape(numbers.shape)

    def moments(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers of a date-time column in any shape as datetime64[us], in UTC if it has a time zone."""
        micro = np.round(numbers * 1e6)
        # Far beyond any calendar the background still has mass: such moments are shown as the last one there is.
        far = 2.0**62
        moment = np.clip(np.where(np.isnan(micro), 0.0, micro), -far, far).astype(np.int64) + int(self.origin) * 10**6
        return np.where(np.isnan(micro), np.datetime64("NaT"), moment.view("datetime64[us]"))

    def numbers_of_moments(self, moments: np.ndarray) -> np.ndarray:
        """Numbers of a date-time column from what `values` makes of them; NaN of what is missing."""
        if moments.dtype.kind == "M":
            seconds = moments.astype("datetime64[us]").astype(np.int64) / 1e6 - self.origin
            return np.where(np.isnat(moments), np.nan, seconds)
        zone = times.zone_of(self.dtype)
        flat = [math.nan if x is None else times.seconds(x, self.origin, zone) for x in moments.ravel().tolist()]
        return np.array(flat, np.float64).reshape(moments.shape)

    def scalar(self, number: float) -> Any:
        """One answer, which need not be a value of the column: a float, the nearest date, a datetime, or a level."""
        if self.kind == "datetime":
            if math.isnan(number):
                return None
            if times.is_date(self.dtype):
                number = round(number / self.step) * self.step
            try:
                return times.moment(number, self.origin, self.dtype)
            except OverflowError:
                return self.values(np.array([number]))[0]
        return self.from_number(number) if self.is_categorical else float(number)

    def numbers(self, given: Any) -> np.ndarray:
        """Array of numbers or level codes for a value, or an array or list of values, in its shape."""
        array = np.asarray(given)
        if array.dtype.kind in "iuf" and not self.is_categorical and self.kind != "datetime":
            return array.astype(np.float64)
        flat = [self.to_number(value) for value in array.astype(object).ravel()]
        return np.array(flat, dtype=np.float64).reshape(array.shape)

    @property
    def largest(self) -> float:
        """Largest observed number without its sign."""
        return max(abs(self.minimum), abs(self.maximum))

    @property
    def last_digit(self) -> float:
        """Worth of the last digit of the largest number, by the `digits` of the column; 0 where these are not known."""
        if not self.digits:
            return 0.0
        return float(10.0 ** digit_power(np.array([self.largest]), self.digits)[0])

    @cached_property
    def decimals(self) -> int:
        """Number of decimals that every cell centre of the grid can be written with."""
        for k in range(16):
            if all(
                abs(v * 10**k - round(v * 10**k)) < min(1e-6, 0.5 * abs(v) * 10**k or 1.0)
                for v in (self.step, self.origin)
            ):
                return k
        return 16


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order, and the kind of frame they came in.

    columns : tuple of Column
    frame : {"pandas", "polars", "pyarrow", "numpy", "file"}
    unknown : tuple of (int, Column). Columns that take no part in the model, and their places in the frame: without a
        known cell at learning, or set aside. In draws, identifiers are new, and the others missing.
    n_rows : float. Rows that the model was learned from, times the probability of its evidence; 0 if unknown.
    rules : tuple of Rule. Rules between the columns, found or declared.
    spelling : CsvForm or None. How the CSV file of the table was written, if unusual; later commands read and write so.
    checked : str. Result of the self-check of `jf.fit`; empty without one.
    """

    columns: tuple[Column, ...]
    frame: Frame
    unknown: tuple[tuple[int, Column], ...] = ()
    n_rows: float = field(default=0.0, compare=False)
    rules: tuple[Rule, ...] = field(default=(), compare=False)
    spelling: CsvForm | None = field(default=None, compare=False)
    checked: str = field(default="", compare=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Kind of each column by its name."""
        return {column.name: column.kind for column in self.columns}

    @cached_property
    def tick_boxes(self) -> frozenset[str]:
        """Names of the columns whose missing cells mean False."""
        return frozenset(column.name for column in self.columns if column.written and column.written.sort == "tick")

    @cached_property
    def kinds_asked(self) -> dict[str, str]:
        """Kind of each column by its name, as conditions take it: columns of 0 and 1 count as booleans."""
        return {column.name: "boolean" if column.is_flag else column.kind for column in self.columns}

    @cached_property
    def reasons_aside(self) -> dict[str, str]:
        """Why columns take no part in the model, by their names."""
        flags = {c.censored.flag: f"says which {c.name!r} are exact" for c in self.columns if c.censored}
        words = {c.name: c.aside.in_words if c.aside else "has no known cell" for _, c in self.unknown}
        return words | {name: said for name, said in flags.items() if name in words}

    @cached_property
    def all_columns(self) -> Schema:
        """All columns of the frame, those of which nothing is known among them."""
        columns = list(self.columns)
        for place, column in self.unknown:
            columns.insert(place, column)
        return Schema(tuple(columns), self.frame, n_rows=self.n_rows)

    @cached_property
    def places(self) -> np.ndarray:
        """Place of each of `columns` among all columns of the frame, int64 (d,)."""
        lost = [place for place, _ in self.unknown]
        return np.delete(np.arange(len(self.columns) + len(lost)), lost)

    def without(self, j: int) -> Schema:
        """All columns but column j."""
        unknown = tuple((place - int(place > self.places[j]), column) for place, column in self.unknown)
        columns = self.columns[:j] + self.columns[j + 1 :]
        return Schema(columns, self.frame, unknown, self.n_rows, self.rules_among(columns), self.spelling)

    def rules_among(self, columns: Iterable[Column]) -> tuple[Rule, ...]:
        """The rules that are about some of the columns alone."""
        names = {column.name for column in columns}
        return tuple(rule for rule in self.rules if names.issuperset(rule.columns))

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}

    def index(self, name: str | int) -> int:
        """Number of the column with this name, or with this text for a name."""
        j = self._number.get(name) if isinstance(name, str) else None
        if j is None and is_number_name(name):
            j = self._number.get(str(name))
            j = j if j is not None and self.columns[j].has_number_name else None
        if j is None:
            self._refuse_unknown(name)
        if j is None:
            raise ValueError(f"no column {name!r} in the model; {near(name, self.names)}")
        return j

    def _refuse_unknown(self, name: str | int) -> None:
        """Say why a column takes no part in the model, if the name is that of one."""
        column = next((column for _, column in self.unknown if name in (column.name, column.label)), None)
        if column is not None and column.aside is not None:
            hint = f"say its kind, such as kinds={{{name!r}: 'categorical'}}, or --kinds {name}=categorical"
            why = self.reasons_aside[column.name]
            more = f"; to learn it all the same, {hint}" if why == column.aside.in_words else ""  # else it is a flag
            raise ValueError(f"column {name!r} {why} and takes no part in the model{more}")
        if column is not None:
            raise ValueError(f"column {name!r}: all its cells were missing at learning, so that nothing is known of it")

    def __getitem__(self, name: str | int) -> Column:
        return self.columns[self.index(name)]

    def to_dict(self) -> dict[str, Any]:
        """As plain dicts, lists, strings and finite numbers: for JSON; `schema_check.schema_from_dict` reads it."""
        unknown = [{"place": place} | column.to_dict() for place, column in self.unknown]
        columns = [column.to_dict() for column in self.columns]
        about = {"frame": self.frame, "columns": columns, "n_rows": self.n_rows}
        rules = [rule.to_dict() for rule in self.rules]
        about |= ({"unknown": unknown} if unknown else {}) | ({"rules": rules} if rules else {})
        spelled = self.spelling and self.spelling.to_dict()
        more: dict[str, Any] = {"spelling": spelled, "checked": self.checked}
        return about | {name: value for name, value in more.items() if value}


def kernel_columns(schema: Schema) -> Columns:
    """The schema's columns as arrays for the kernels."""
    is_categorical = np.array([c.is_categorical for c in schema.columns], dtype=np.uint8)
    slot = np.where(is_categorical == 1, np.cumsum(is_categorical), np.cumsum(1 - is_categorical)) - 1
    numeric = [c for c in schema.columns if not c.is_categorical]
    categorical = [c for c in schema.columns if c.is_categorical]
    return Columns(
        is_categorical=is_categorical,
        slot=slot.astype(np.int32),
        step=np.array([c.step for c in numeric], dtype=np.float64),
        origin=np.array([c.center for c in numeric], dtype=np.float64),
        atom_start=np.cumsum([0] + [len(c.atoms) for c in numeric]).astype(np.int32),
        atom_value=np.array([value for c in numeric for value in c.atoms], dtype=np.float64),
        level_start=np.cumsum([0] + [len(c.levels) for c in categorical]).astype(np.int32),
    )


def edges(schema: Schema) -> np.ndarray:
    """What the ends of numeric columns include, (2, p): half-open intervals, on a grid to the edges of cells."""
    numeric = [column for column in schema.columns if not column.is_categorical]
    half = np.array([0.5 * column.step for column in numeric])
    lower = np.array([column.lower for column in numeric]) - half
    lower = np.where(half > 0.0, lower, np.nextafter(lower, -np.inf))
    return np.stack([lower, np.array([column.upper for column in numeric]) + half])


def is_number_name(name: Any) -> bool:
    """Whether a column's name is a whole number."""
    return isinstance(name, Integral) and not isinstance(name, bool)


def shortened(value: Any) -> str:
    """A value as errors show it: what is long is cut."""
    text = repr(value[: _LONGEST + 1] if isinstance(value, str) else value)
    length = f" ({len(value)} characters)" if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...{length}"


def as_levels(column: Column) -> str:
    """Hint for who wants the probability of each value of a column of whole numbers; of other columns empty."""
    if column.kind != "integer":
        return ""
    option = shlex.quote(f"{column.name}=categorical")
    return (
        f"; for the probability of each value, learn it as levels: kinds={{{column.name!r}: 'categorical'}} (on the "
        f"command line: --kinds {option})"
    )


def near(value: Any, known: Iterable[Any], n: int = 3) -> str:
    """Hint of an error message: the known names spelled most like a value or holding it, or the first ones."""
    known, value = list(known), str(value)[:_LONGEST]
    text = {str(item): item for item in reversed(known)}
    folded, lower = {key.lower(): item for key, item in text.items()}, value.lower()
    close = [text[match] for match in difflib.get_close_matches(value, text, n, _ALIKE)]
    close = close or [folded[match] for match in difflib.get_close_matches(lower, folded, n, _ALIKE)]
    if not close and len(lower) >= _SHORTEST_PART:
        close = [item for item in known if lower in str(item).lower()][:n]
    if close:
        return "did you mean " + " or ".join(map(shortened, close)) + "?"
    shown = ", ".join(map(shortened, known[:8]))
    return f"known: {shown}" + (f", ... ({len(known)} in all)" if len(known) > 8 else "")


# ---- Places of numbers on a column's grid, counted in cells.


def place_on_grid(column: Column, number: float) -> float:
    """Place of a number on the column's grid, in cells; whole (up to rounding errors) at cell centres."""
    if column.is_categorical or column.step == 0.0:
        return number
    cells = (number - column.center) / column.step
    if math.isinf(cells):
        return cells
    near = float(round(cells))
    return near if abs(cells - near) <= 1e-6 + 4e-16 * abs(cells) else cells


def cell_place(column: Column, number: float) -> float:
    """Place of the cell of a number (the number itself where there is no grid); between two cells, the lower one."""
    at = place_on_grid(column, number)
    return float(math.ceil(at - 0.5)) if column.step > 0.0 and math.isfinite(at) else at


def cell_places(column: Column, numbers: np.ndarray) -> np.ndarray:
    """`cell_place` of finite numbers (n,) of a column with a grid."""
    cells = (numbers - column.center) / column.step
    near = np.rint(cells)
    at = np.where(np.abs(cells - near) <= 1e-6 + 4e-16 * np.abs(cells), near, cells)
    return np.asarray(np.ceil(at - 0.5))


def snapped(column: Column, x: np.ndarray) -> np.ndarray:
    """Numbers moved to the centre of their grid cell, and to the digits of the column, as the nearest float."""
    if column.step == 0.0:
        return _with_digits(column, x, np.ascontiguousarray(x))
    with np.errstate(over="ignore", invalid="ignore"):
        if column.center == 0.0 and column.step <= 1.0 and round(1.0 / column.step) * column.step == 1.0:
            per_unit = round(1.0 / column.step)  # dividing whole numbers gives the float nearest to the decimal
            centers = np.rint(x * per_unit) / per_unit
        else:
            centers = np.rint((x - column.center) / column.step) * column.step + column.center
            centers = np.round(centers, column.decimals)
    if column.only:
        centers = _on_calendar(column, centers)
    far = np.abs(x) > 2.0**52 * column.step
    return _with_digits(column, x, np.where(far, x, centers) if far.any() else centers)


def _on_calendar(column: Column, x: np.ndarray) -> np.ndarray:
    """Cell centres (n,), some of them missing, as those of the column's calendar."""
    known = ~np.isnan(x)
    unit, zero = (times.DAY, column.origin) if column.kind == "datetime" else (1, 0.0)
    whole = np.rint((np.clip(x[known], *times.RANGE) + zero) / unit).astype(np.int64)
    out = x.copy()
    out[known] = times.moved(column.only, whole) * float(unit) - zero
    return out


def _with_digits(column: Column, x: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """Numbers (n,) rounded to the digits of a column; what they are on its grid, ``fine``, where that is no finer."""
    # Numbers beyond the range of the column are rounded as its largest one, so that sums hold there as well.
    if not column.digits:
        return fine
    power = digit_power(x, column.digits)
    power = np.fmin(power, digit_power(np.array([column.largest]), column.digits))
    up = np.maximum(power, 0.0)
    per_worth = 10.0 ** (up - power)  # dividing a whole number by another one gives the float nearest to the decimal
    with np.errstate(invalid="ignore"):
        rounded = np.rint(x / 10.0**up * per_worth) / per_worth * 10.0**up
    return np.asarray(np.where(10.0**power > 1.000001 * column.step, rounded, fine))


def digit_power(x: np.ndarray, digits: int) -> np.ndarray:
    """The power of ten that the last of so many significant digits of numbers (n,) counts; 0 for zeros and NaN."""
    size = np.abs(x)
    is_number = (size > 1e-200) & (size < 1e200)
    return np.asarray(np.where(is_number, np.floor(np.log10(np.where(is_number, size, 1.0))) - (digits - 1), 0.0))


def snap(columns: Columns, X: np.ndarray) -> np.ndarray:
    """Copy of X (n, d) with the values of grid columns moved to the centres of their cells."""
    X = np.array(X, dtype=np.float64)
    for j in np.flatnonzero(columns.is_categorical == 0):
        step, origin = columns.step[columns.slot[j]], columns.origin[columns.slot[j]]
        if step > 0:
            X[:, j] = origin + step * np.ceil((X[:, j] - origin) / step - 0.5)
    return X


def seconds_apart(seconds: np.ndarray) -> np.ndarray:
    """Distances between date-times, timedelta64[us]; NaT for NaN."""
    micro = np.round(seconds * 1e6)
    return np.where(np.isnan(micro), np.timedelta64("NaT"), np.nan_to_num(micro).astype("timedelta64[us]"))


# ---- Where a column of numbers ends: at its hard ends nothing lies beyond, its open ends have a tail.

# An end is hard where rows pile up, where they stop sharply, and in columns of few whole numbers.

PILE = 5.0
"""Rows that should lie beyond a pile, and do not."""
_FEW_CELLS = 10
"""Whole numbers from end to end, of columns that have no others, ..."""
ROWS_EACH = 5
"""... with so many rows for each."""
OUTERMOST = (64, 32, 16)
"""Rows from an end within which it is seen whether they stop sharply."""
ROWS_A_CELL = 2.0
"""Outermost rows for each cell of the grid: of fewer, or without a grid, the last row is not the end."""
_SURE = math.log(1000.0)
"""Log-likelihood of a sharp stop over that of a tail, among the most of them; among the fewest it is not below 0."""


def ends_of(
    values: np.ndarray, counts: np.ndarray, n: int, step: float, ends: tuple[float, float], has_zero: bool = True
) -> tuple[float, float]:
    """The lower and upper end of a column, infinite where it is open."""
    # ``values`` (k,) are ascending distinct numbers with their counts: the 64 nearest to either end, or all if fewer.
    # ``has_zero``: whether 0 means more to the column than another number; it does not for dates.
    low, high = ends
    is_narrow = step == 1.0 and high - low < _FEW_CELLS and n >= ROWS_EACH * (high - low + 1.0)
    has_low = is_narrow or _stops(-values[::-1], counts[::-1], n, step)
    has_high = is_narrow or _stops(values, counts, n, step)
    lower, upper = low if has_low else -math.inf, high if has_high else math.inf
    if has_zero and low >= 0.0:
        lower = max(lower, 0.0 if low == 0.0 or step in (0.0, 1.0) else step)
    if has_zero and high <= 0.0:
        upper = min(upper, 0.0 if high == 0.0 or step in (0.0, 1.0) else -step)
    return float(lower), float(upper)


def _stops(values: np.ndarray, counts: np.ndarray, n: int, step: float) -> bool:
    """Whether the numbers pile up, or stop sharply, at the greatest of them."""
    values, counts = values[-OUTERMOST[0] :], counts[-OUTERMOST[0] :]
    last, before = float(counts[-1]), float(counts[-2]) if len(counts) > 1 else 0.0
    if last * last > PILE * max(last, before):  # as many again, less by the factor by which the last ones are fewer
        return True
    beyond = np.cumsum(counts[::-1])[::-1]  # rows from each value on
    most = next((k for k in OUTERMOST[:-1] if n >= 2 * k), 0)
    first = int(np.flatnonzero(beyond >= most)[-1]) if most else -1
    if first < 0 or beyond[first] * step < ROWS_A_CELL * (values[-1] - values[first] + step) or step == 0.0:
        return False
    likelihoods = [_sharpness(values, counts, beyond, step, k) for k in OUTERMOST if k <= most]
    return likelihoods[0] > _SURE and min(likelihoods) > 0.0


def _sharpness(values: np.ndarray, counts: np.ndarray, beyond: np.ndarray, step: float, k: int) -> float:
    """Log-likelihood of the k outermost rows if they are uniform up to the last, over that of an exponential tail."""
    first = int(np.flatnonzero(beyond >= k)[-1])
    start = values[first] - 0.5 * step
    excess = values[first:] - start
    width, n = excess[-1] + 0.5 * step, float(beyond[first])
    mean = float(excess @ (counts[first:] / n))
    return n * (math.log(mean / width) + 1.0) if width > 0.0 and mean > 0.0 else 0.0
