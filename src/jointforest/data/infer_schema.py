"""The schema of a table, inferred once at learning from what is observed of its columns."""

# Its parts: kinds of columns; columns that are set aside; columns that are a function of another column.

from __future__ import annotations

import datetime as dt
import math
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..runtime.warnings import warn
from . import times
from .cells import OPEN, FrameReader, numbers, of_numbers, ranges_refused, ticks, without
from .conditions import Censored, Interval
from .csv_files import WORDS, is_number
from .frames import encode_reader, read
from .observe_table import (
    MAX_CELLS,
    MICRO,
    Labels,
    Look,
    Moments,
    Numbers,
    Outermost,
    Seen,
    WantedValues,
    count,
    counted_numbers,
    digits_of,
    find_atoms,
    grid_step,
    is_tied,
    look,
    look_at,
    outermost,
    precision,
    time_step,
)
from .range_texts import range_text
from .ranges import complete_column, with_flag
from .schema import (
    CATEGORICAL_KINDS,
    KINDS,
    MAX_LEVELS,
    NO_KINDS,
    SHAPE_CLASSES,
    Column,
    Frame,
    Level,
    Schema,
    SetAside,
    cell_places,
    ends_of,
    is_number_name,
    near,
    snapped,
)
from .text_columns import find_forms, with_forms
from .times import seconds, zone, zone_of
from .written_forms import WrittenForm, is_missing_word

_FAR = 10.0
"""Smallest gap to all other values, in units of their range, from which on any repeated value is far."""
_APART = 0.5
"""The same for usual codes of missing cells, such as 99 or -1."""
_PILE = 5
"""Fewest cells of such a code; of nines that are far, two are enough."""
_NINES = re.compile(r"-?(9+(\.9+)?|88+|77+)")
_CHOSEN = re.compile(rf"{_NINES.pattern}|-[1-9]0*")
_NO_DAYS = ("0001-01-01", "1753-01-01", "1899-12-30", "1899-12-31", "1900-01-01", "1970-01-01", "2099-12-31")
_CALENDAR_ENDS = re.compile(r"(0001|2999|9999)-")
"""Years that programs use for 'no date'."""
_COORDINATE = re.compile(r"(^|[^a-z])(lat|lon|lng|long)([^a-z]|$)|latitude|longitude")
_GROUP = 3
"""Values beside each other that may stand for nothing, such as 97, 98 and 99."""
_SHOWN = 5
"""Columns that a warning names."""
_ENOUGH = 10
"""Distinct other values beside which one is odd; beside nines, and in columns of dates, three are enough."""


class StandIn(NamedTuple):
    """A value of a column that may stand for a missing cell: the number, its text, its cells, and what is odd."""

    column: str
    value: float
    text: str
    n: int
    why: str


def stand_ins(column: Column, outer: Outermost) -> list[StandIn]:
    """The values of a column of numbers or dates that may mean a missing cell, by its outermost distinct values."""
    values, counts = outer
    texts = [_stand_in_text(column, value) for value in values.tolist()]
    is_date = column.kind == "datetime"
    chosen = np.array([text[:10] in _NO_DAYS if is_date else bool(_CHOSEN.fullmatch(text)) for text in texts], bool)
    odd = _far(values, counts, chosen, np.array([is_date or bool(_NINES.fullmatch(text)) for text in texts], bool))
    rest = np.delete(np.arange(len(values)), sorted(odd))
    ends = f" ({texts[rest[0]]} to {texts[rest[-1]]})" if len(rest) and not is_date else ""
    why = dict.fromkeys(odd, f"far from all other {'dates' if is_date else 'values'}{ends}")
    if is_date:
        why |= {k: why.get(k, "at an end of calendars") for k, text in enumerate(texts) if _CALENDAR_ENDS.match(text)}
    elif len(values) > _ENOUGH and _is_pile_below_zero(column, outer):
        why.setdefault(0, "the only value below zero")
    inside: list[StandIn] = []
    if 0.0 in column.atoms and column.step < 0.1 and _COORDINATE.search(column.name.lower()):
        k = int(np.searchsorted(values, 0.0))
        said = "the value that many programs write for no coordinate"
        if k < len(values) and values[k] == 0.0:
            why.setdefault(k, said)
        else:
            inside = [StandIn(column.name, 0.0, "0", 0, said)]
    if column.written is not None:  # as the warning writes it
        texts = [column.written.write(value + column.zero) for value in values.tolist()]
    at_ends = [StandIn(column.name, float(values[k]), texts[k], int(counts[k]), of) for k, of in sorted(why.items())]
    return inside + at_ends


def _is_pile_below_zero(column: Column, outer: Outermost) -> bool:
    """Whether the only value below zero is a whole number that many cells have."""
    lowest, second = outer.values[:2].tolist()
    return lowest < 0.0 <= second and lowest.is_integer() and outer.counts[0] >= _PILE and lowest in column.atoms


def _far(values: np.ndarray, counts: np.ndarray, chosen: np.ndarray, are_nines: np.ndarray) -> set[int]:
    """Places of values (k,), ascending, that recur at the ends and are far from all others."""
    low, high, far = 0, len(values) - 1, set[int]()
    while True:
        for m, at_top in ((m, at_top) for m in range(1, _GROUP + 1) for at_top in (True, False)):
            outer = range(high - m + 1, high + 1) if at_top else range(low, low + m)
            inner = values[low : high - m + 1] if at_top else values[low + m : high + 1]
            if len(inner) < 3 or (len(inner) < _ENOUGH and not are_nines[list(outer)].any()):
                continue
            with np.errstate(over="ignore", invalid="ignore"):  # no multiple of an infinite range is far
                gap = values[outer[0]] - inner[-1] if at_top else inner[0] - values[outer[-1]]
                ranges, n = gap / (inner[-1] - inner[0]), int(counts[list(outer)].min())
            is_far = ranges > _FAR and n > 1 and are_nines[list(outer)].all()
            if is_far or (n >= _PILE and ranges > (_APART if chosen[list(outer)].any() else _FAR)):
                far |= set(outer)
                low, high = (low, high - m) if at_top else (low + m, high)
                break
        else:
            return far


def _stand_in_text(column: Column, value: float) -> str:
    """How a value is written, by default as pandas and files do."""
    return str(column.from_number(value)) if column.kind == "datetime" else f"{value:.10g}"


def warn_of(doubts: Iterable[StandIn]) -> None:
    """One warning of each text, with all of its columns."""
    of_text: dict[str, list[StandIn]] = {}
    for doubt in doubts:
        of_text.setdefault(doubt.text, []).append(doubt)
    for text, some in of_text.items():
        first = some[0]
        where, why = f"column {first.column!r}: {_n_cells(first.n)} {text}, {first.why}", first.why.partition(" (")[0]
        if len(some) > 1:
            names = ", ".join(map(repr, [one.column for one in some[:_SHOWN]]))
            more = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
            where = f"columns {names}{more}: {_n_cells(sum(one.n for one in some))} {text}, {why}"
        value, column = text if is_number(text) else repr(text), f"frame[{first.column!r}]"
        warn(
            f"{where}; if that means a missing cell, make these cells missing: in pandas by {column}.mask({column} == "
            f"{value}), on the command line by --na={shlex.quote(text)}, which is for all columns",
            UserWarning,
        )


def _n_cells(n: int) -> str:
    """'3 cells are': the start of the sentence."""
    return "1 cell is" if n == 1 else f"{n:,} cells are" if n else "cells are"


# ---- The schema of a table, inferred once at learning from what is observed of its columns.


class NoRows(ValueError):
    """A table without rows."""


def infer_schema(frame: Any, kinds: Mapping[str, Any] | None = None, doubt: bool = True) -> Schema:
    """Schema of a frame: the kind, grid, atoms and levels of each column; ``kinds`` overrides kinds by name."""
    # Raises ValueError or TypeError, which name the column, for what no schema can describe.
    reader = read(frame)
    flags = flags_of(kinds)
    kinds = checked_kinds(reader.names, kinds)
    reader = without(reader, {name for name, kind in kinds.items() if kind == "ignored"})
    found = find_forms(reader, kinds)
    of_ranges = {name for name, kind in kinds.items() if kind == "ranges"}
    kinds = {name: kind for name, kind in kinds.items() if kind != "ranges"}
    reader = with_flags(with_forms(reader, found), flags)
    _doubt_last_rows(reader)
    seen = with_ends_of_ranges(look(reader), reader)
    wanted = to_count(seen, kinds)
    schema = schema_of(seen, count(reader, wanted), kinds)
    check_ranges(schema, of_ranges)
    schema = with_ranges(schema, reader, flags)

    def with_notes(column: Column) -> Column:
        written, aside = found.forms.get(column.name, column.written), column.aside
        why_text = found.why_text.get(column.name, "")
        if why_text and aside is not None and aside.reason == "identifier":  # rather numbers with errors among them
            aside = SetAside("unlike cells", aside.n_distinct)
        return replace(column, written=written, why_text=why_text, aside=aside)

    unknown = tuple((place, with_notes(column)) for place, column in schema.unknown)
    schema = replace(schema, columns=tuple(map(with_notes, schema.columns)), unknown=unknown)
    if doubt:
        doubt_values(schema, seen)
    return schema


def check_ranges(schema: Schema, names: Collection[str]) -> None:
    """Raise ValueError if one of these columns, which should hold ranges, has levels."""
    for column in schema.columns:
        if column.name in names and column.is_categorical:
            odd = next((x for x in column.levels if not isinstance(x, str) or range_text(x) is None), None)
            fault = f"{odd!r} is no range and no number as the others"
            if odd is None:
                fault = f"the ends of ranges such as {column.levels[0]!r} are not written in one form"
            raise ValueError(f"kinds: column {column.name!r}: {fault}")


def flags_of(kinds: Any) -> dict[str, Censored]:
    """The columns for which a flag column marks numbers that are not exact."""
    given = kinds if isinstance(kinds, Mapping) else {}
    return {str(name): kind for name, kind in given.items() if isinstance(kind, Censored)}


def checked_kinds(names: Sequence[str], kinds: Mapping[str, Any] | None) -> dict[str, str]:
    """The kinds of columns, without those of `flags_of`; flag columns are ignored."""
    flags = flags_of(kinds)
    if not isinstance(kinds, Mapping):
        return _check_kinds(names, kinds)
    asked = {of.flag: "ignored" for of in flags.values()}
    for name in asked:
        if kinds.get(name, "ignored") != "ignored":
            raise ValueError(
                f"kinds: column {name!r} says which cells of another one are exact, so that it takes no part in the "
                "joint; leave it out of kinds"
            )
    others = {name: kind for name, kind in kinds.items() if str(name) not in flags}
    ranges = {str(name): kind for name, kind in others.items() if kind == "ranges"}
    plain = {name: kind for name, kind in others.items() if kind != "ranges"}
    _check_kinds(names, dict.fromkeys((*flags, *ranges), "ignored"))
    return _check_kinds(names, plain | asked) | ranges


def with_flags(reader: FrameReader, flags: Mapping[str, Censored]) -> FrameReader:
    """The table with ranges in columns in which another one marks some numbers as not exact."""
    if not flags:
        return reader
    read = {name: with_flag(reader.cells(name), reader.cells(of.flag), name, of) for name, of in flags.items()}
    return replace(reader, cells=lambda name: read[name] if name in read else reader.cells(name))


def with_ends_of_ranges(seen: Look, reader: FrameReader) -> Look:
    """What was seen, with the ends of ranges for the numbers or moments of columns that have no others."""
    columns = list(seen.columns)
    for j, name in enumerate(seen.names):
        known = columns[j]
        if known.n_ranges and known.n_known == 0:
            cells = reader.cells(name)
            ends = [end for x in cells.intervals for end in (x.lo, x.hi) if end not in OPEN]
            try:
                if known.sort == "datetime":
                    micro = np.rint([seconds(end, 0.0, zone_of(cells.dtype)) * MICRO for end in ends]).astype(np.int64)
                    known = look_at(ticks(cells.dtype, micro, np.zeros(len(ends), bool), MICRO))
                else:
                    known = look_at(numbers("number", cells.dtype, np.array(ends or [0.0], dtype=np.float64)))
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"column {name!r}: expected ranges of numbers, or of dates as pandas.Timestamp, got {ends[0]!r} as "
                    f"an end ({error})"
                ) from None
            columns[j] = replace(known, n_known=0, n_ranges=columns[j].n_ranges)
    return replace(seen, columns=tuple(columns))


def with_ranges(schema: Schema, reader: FrameReader, flags: Mapping[str, Censored]) -> Schema:
    """The schema with the ends of columns of ranges, inferred from imputed values."""
    # The rows are those of the table, or stand for them.
    columns = list(schema.columns)
    few = [j for j, column in enumerate(columns) if column.n_ranges or column.name in flags]
    if not few:
        return schema
    names = [columns[j].name for j in few]
    small = replace(schema, columns=tuple(columns[j] for j in few), unknown=(), rules=())
    X, _, found = encode_reader(small, replace(reader, frame="pandas", names=names))
    for k, j in enumerate(few):
        column = columns[j] = replace(columns[j], censored=flags.get(names[k]))
        if found is None or not (found.number[:, k] >= 0).any():
            continue
        is_known = not np.isnan(X[:, k]).all()
        of_cells = [found.intervals[i] for i in np.unique(found.number[found.number[:, k] >= 0, k])]
        if not is_known and column.kind in ("integer", "rounded") and _touch(of_cells):
            column = replace(column, kind="continuous", step=0.0)
        if not is_known and (of := column.censored) is not None:
            problem = "true beside every number of {!r}: none is exact"
            if of.event:
                problem = "false beside every number of {!r}: no event has happened"
            raise ValueError(
                f"column {of.flag!r}: {problem.format(names[k])}, and nothing can be learned of them; leave them "
                f"out: kinds={{{names[k]!r}: 'ignored'}}"
            )
        x = complete_column(column, X[:, k], *found.of_column(k, column))
        values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
        whole = _with_ends(
            replace(column, minimum=float(values[0]), maximum=float(values[-1])), outermost(values, counts)
        )
        column = (
            replace(column, lower=min(whole.lower, column.minimum), upper=max(whole.upper, column.maximum))
            if is_known
            else replace(column, lower=whole.lower, upper=whole.upper)
        )
        begins = [column.to_number(one.lo) for one in of_cells if one.hi is None]
        if begins:
            until = column.maximum if is_known else max(begins)
            column = replace(column, learned_until=until)
        columns[j] = column if is_known else replace(column, minimum=whole.minimum, maximum=whole.maximum)
    return replace(schema, columns=tuple(columns))


def _touch(ranges: Sequence[Interval]) -> bool:
    """Whether ranges begin where others end, and none a little later: then their ends are no evidence of a grid."""
    begins = np.unique([one.lo for one in ranges if one.lo not in OPEN])
    ends = np.unique([one.hi for one in ranges if one.hi not in OPEN])
    widths = [one.hi - one.lo for one in ranges if one.lo not in OPEN and one.hi not in OPEN and one.hi > one.lo]
    if not widths or not len(begins):
        return False
    apart = np.array([begins[begins >= end][0] - end for end in ends if begins[-1] >= end])
    return bool((apart == 0.0).any()) and not bool(((apart > 0.0) & (apart <= 0.5 * min(widths))).any())


def _check_kinds(names: Sequence[str], kinds: Mapping[str, str] | None) -> dict[str, str]:
    """The kinds that a user gave, by the names of a table's columns."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise TypeError(f"kinds: expected a dict such as {{'age': 'continuous'}}, got {kinds!r}")
    kinds = {str(name) if is_number_name(name) else name: kind for name, kind in (kinds or {}).items()}
    if not names:
        raise ValueError("the table has no columns")
    for name, kind in kinds.items():
        if name not in names:
            raise ValueError(f"kinds: there is no column {name!r}; {near(name, names)}")
        if kind not in (*KINDS, *NO_KINDS):
            known = ", ".join((*KINDS, "ranges", *NO_KINDS))
            raise ValueError(
                f"kinds: column {name!r}: {kind!r} is no kind of column; one of {known}, or "
                "jf.censored(...), on the command line event:COLUMN or below:COLUMN"
            )
    return kinds


def to_count(seen: Look, kinds: Mapping[str, str]) -> dict[str, WantedValues]:
    """Values whose exact counts decide what may be atoms, in columns of too many values to have counted all."""
    wanted_of = {}
    for name, column in zip(seen.names, seen.columns, strict=True):
        wanted = None if kinds.get(name) in NO_KINDS else _to_count(name, column, kinds.get(name))
        if wanted is not None:
            wanted_of[name] = wanted
    return wanted_of


def schema_of(seen: Look, counted: Mapping[str, np.ndarray], kinds: Mapping[str, str]) -> Schema:
    """The schema of a table that was examined, with the counts of what was `to_count`."""
    if seen.n == 0:
        raise NoRows("the table has no rows; at least one is needed")
    columns, unknown = [], []
    aside: Column | None
    for place, (name, column) in enumerate(zip(seen.names, seen.columns, strict=True)):
        has_number_name = name in seen.number_names
        if kinds.get(name) == "ignored":
            aside = replace(_unknown_column(name, column), n_observed=column.n_known, aside=SetAside("ignored", 0))
        else:
            aside = set_aside(name, column, kinds.get(name)) if column.n_known else _unknown_column(name, column)
            aside = None if column.n_ranges else aside
        if aside is not None:
            unknown.append((place, replace(aside, has_number_name=has_number_name)))
        else:
            made = None if name in kinds or column.n_ranges else _tick_box(name, column, seen.n, seen.frame)
            made = made or _inferred_column(name, column, kinds.get(name), counted.get(name))
            remark = "" if name in kinds else _of_rows(name, column, made) or _of_words(name, column, seen.frame)
            columns.append(replace(made, has_number_name=has_number_name, remark=remark))
    if not columns and any(column.aside for _, column in unknown):
        name, why = next((column.name, column.aside.in_words) for _, column in unknown if column.aside)
        raise ValueError(
            f"column {name!r} {why}, and there is no other column; say its kind to learn it, such as "
            f"kinds={{{name!r}: 'categorical'}}"
        )
    _tell_unknown([column.name for _, column in unknown if column.aside is None], len(columns))
    return Schema(tuple(columns), seen.frame, tuple(unknown), float(seen.n))


def _unknown_column(name: str, seen: Seen) -> Column:
    """A column without any known cell, of a kind that its type can have."""
    if seen.sort == "datetime":
        return Column(name, "datetime", seen.dtype, step=1.0)
    if isinstance(seen.what, Labels) or seen.sort == "empty":
        column = Column(name, "categorical", seen.dtype)
        labels = _labels(column, seen.what)[:MAX_LEVELS] if isinstance(seen.what, Labels) else ()
        return replace(column, levels=labels or ("",))
    return Column(name, "continuous", seen.dtype)


def _tell_unknown(names: list[str], n_known: int) -> None:
    """Warn of columns without any known cell; an error if there is no other."""
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    which = f"column{'s' if len(names) > 1 else ''} {shown}: all cells are missing"
    if names and not n_known:
        raise ValueError(f"{which}, and there is no other column; nothing can be learned")
    if names:
        warn(
            f"{which}, so that nothing is known of {'them' if len(names) > 1 else 'it'}; drop what is of no use",
            UserWarning,
        )


_TICKS = frozenset(
    ("x", "yes", "y", "true", "t", "1", "on", "ok", "checked", "selected", "✓", "✔", "☑", "ja", "oui", "si")
)
_FEWEST_TICKS = 5
_MOST_TICKED = 0.95
"""Share of known cells beyond which a column of one text is constant, unless its text is one of those of ticks."""
_BOOLEANS = {"polars": "Boolean", "pandas": "bool", "numpy": "bool"}


def _tick_box(name: str, seen: Seen, n: int, frame: Frame) -> Column | None:
    """A column of n cells with one known value and missing cells as a tick box, None if it is none."""
    # The value is a text, True or 1; in arrays, which are often made for other programs, it is no number.
    if not _FEWEST_TICKS <= seen.n_known < n:
        return None
    mark = ""
    if isinstance(seen.what, Labels):
        counts = zip(seen.what.labels, seen.what.counts.tolist(), strict=True)
        used = [(k, label) for label, k in counts if k or seen.what.declared]
        if len({label.strip() if isinstance(label, str) else label for _, label in used}) > 1:
            return None
        mark = max(used)[1]
    elif frame == "numpy" or not isinstance(seen.what, Numbers) or not seen.what.low == seen.what.high == 1.0:
        return None
    if isinstance(mark, str) and mark.strip().casefold() not in (*_TICKS, "") and seen.n_known > _MOST_TICKED * n:
        return None
    written = WrittenForm("tick", seen.dtype, prefix=mark if isinstance(mark, str) else "")
    return Column(name, "boolean", _BOOLEANS.get(frame, "bool"), levels=(False, True), n_observed=n, written=written)


def _inferred_column(name: str, seen: Seen, kind: str | None, counted: np.ndarray | None) -> Column:
    column = Column(name, kind or "", seen.dtype, n_observed=seen.n_known + seen.n_ranges, n_ranges=seen.n_ranges)
    if seen.n_ranges and (kind in CATEGORICAL_KINDS or not isinstance(seen.what, Numbers | Moments)):
        raise ValueError(ranges_refused(name, seen.n_ranges, f"which a column of {kind or 'text'} does not have"))
    if seen.n_ranges and not seen.n_known:  # values are ends of ranges, which no cell has
        if isinstance(seen.what, Moments):
            made = _datetime(column, seen.what)
            return replace(made, atoms=(), only="", step=min(made.step, times.DAY))  # days between weekly ends
        made = _numeric(column, seen.sort, _as_numbers(column, seen), counted)
        return replace(made, atoms=(), kind="continuous" if made.kind == "mixed" else made.kind)
    if isinstance(seen.what, Moments):
        return _datetime(column, seen.what)
    if kind in CATEGORICAL_KINDS or (kind is None and seen.sort in ("levels", "boolean")):
        return _categorical(column, seen)
    numbers = _as_numbers(column, seen)
    exact = replace(_numeric(column, seen.sort, numbers, counted), n_observed=seen.n_known)
    return replace(_with_ends(exact, numbers.outermost), n_observed=column.n_observed)


def _outermost(seen: Numbers | Moments, origin: int) -> Outermost:
    """The outermost numbers of a column, those of moments in seconds from the origin, which is in microseconds."""
    if isinstance(seen, Numbers):
        return seen.outermost
    return Outermost((seen.outermost.values - origin) / MICRO, seen.outermost.counts)


def doubt_values(schema: Schema, seen: Look) -> None:
    """Warn of values of a table that was examined which may stand for missing cells."""
    what = {name: column.what for name, column in zip(seen.names, seen.columns, strict=True)}
    warn_of(
        odd
        for column in schema.columns
        if not column.is_categorical and isinstance(of := what[column.name], Numbers | Moments)
        for odd in stand_ins(column, _outermost(of, round(column.origin) * MICRO))
    )


def _with_ends(column: Column, outer: Outermost) -> Column:
    """The column with its `ends_of`, from the outermost of its numbers, or moments in seconds from the origin."""
    values, counts, ends = *outer, np.array([column.minimum, column.maximum])
    if column.step > 0.0:
        cells, place = np.unique(cell_places(column, values), return_inverse=True)
        values = snapped(column, column.center + cells * column.step)
        counts, ends = np.bincount(place, counts), snapped(column, ends)
    has_zero = column.kind != "datetime" and column.only in ("", "hhmm")
    lower, upper = ends_of(values, counts, column.n_observed, column.step, (ends[0], ends[1]), has_zero)
    if column.only == "hhmm" and ends[1] <= 2359.0:  # else draws beyond the day would all be moved to its last minute
        upper = column.center + math.floor((2359.0 - column.center) / column.step) * column.step
    return replace(column, lower=lower, upper=upper)


def _datetime(column: Column, seen: Moments) -> Column:
    if column.kind not in ("", "datetime"):
        raise ValueError(
            f"column {column.name!r}: dates and times are of kind 'datetime', not {column.kind!r}; "
            "turn them into numbers or text first for another kind"
        )
    zone_name = zone_of(column.dtype)
    if zone_name is not None:
        try:
            zone(zone_name)
        except ValueError as error:
            raise ValueError(
                f"column {column.name!r}: {error}; convert it, such as with .dt.tz_convert('UTC')"
            ) from None
    origin = seen.first // MICRO * MICRO  # the number 0 is the first moment, down to a whole second so that it is exact
    # distances of a single moment are measured from 1970
    step = time_step(seen.apart or seen.first, len(seen.outermost.values))
    if seen.first != origin:
        step = min(step, time_step(seen.first - origin, 0))
    outer = _outermost(seen, origin)
    column = replace(
        column,
        kind="datetime",
        step=step,
        origin=float(origin // MICRO),
        minimum=(seen.first - origin) / MICRO,
        maximum=(seen.last - origin) / MICRO,
        only=times.of_days(seen.odd, column.n_observed, len(outer.values)) if step == times.DAY else "",
    )
    far = replace(column, atoms=tuple(odd.value for odd in stand_ins(column, outer) if odd.n > 1))
    return _with_ends(far, outer)


def _categorical(column: Column, seen: Seen) -> Column:
    kind = column.kind or ("boolean" if seen.sort == "boolean" else "categorical")
    levels: tuple[Level, ...]
    if isinstance(seen.what, Labels):
        kind = "ordered" if seen.what.ordered and not column.kind else kind
        levels = _labels(column, seen.what)
        if kind == "boolean":
            if not all(isinstance(level, bool) for level in levels):
                raise ValueError(
                    f"column {column.name!r}: a boolean column holds True and False, got {levels[0]!r}; "
                    "leave it categorical, or turn it into booleans"
                )
            levels = (False, True)
        elif len(levels) == 2 and set(map(type, levels)) == {bool} and not column.kind:
            kind, levels = "boolean", (False, True)
        n_levels = len(levels)
    else:
        numbers = _none_infinite(column, _as_numbers(column, seen))
        distinct, n_levels = numbers.values.counted()[0], numbers.values.tally.n_distinct
        if kind == "boolean":
            wrong = distinct[(distinct != 0) & (distinct != 1)]
            if len(wrong):
                raise ValueError(f"column {column.name!r}: a boolean column holds 0 and 1 only, got {wrong[0]:g}")
            levels = (False, True)
            n_levels = 2
        elif seen.sort == "boolean":
            levels = tuple(bool(value) for value in distinct)
        else:
            levels = tuple(_int_if_whole(value) for value in distinct.tolist())
    if n_levels > MAX_LEVELS:
        raise ValueError(
            f"column {column.name!r}: {n_levels} levels, at most {MAX_LEVELS} are supported; "
            "drop the column if it names the rows, or join its rare levels"
        )
    n_used = int(np.count_nonzero(seen.what.counts)) if isinstance(seen.what, Labels) else n_levels
    if seen.sort == "levels" and column.n_observed > 100 and n_used > 0.9 * column.n_observed:
        warn(
            f"column {column.name!r}: {n_used} different texts in {column.n_observed} rows; "
            "a column that names the rows tells nothing of others: consider dropping it",
            UserWarning,
        )
    return replace(column, kind=kind, levels=levels)


def _labels(column: Column, seen: Labels) -> tuple[Level, ...]:
    """Levels of a column of labels: in the declared order, else sorted."""
    for label in seen.labels:
        if not isinstance(label, str | bool | int | float) or (isinstance(label, float) and math.isinf(label)):
            hint = (
                "take the category away, such as with astype('datetime64[us]')"
                if isinstance(label, dt.date)
                else "use astype(str)"
            )
            raise TypeError(
                f"column {column.name!r}: levels must be text, booleans or finite numbers, "
                f"got {label!r} of type {type(label).__name__}; {hint}"
            )
    if len(set(seen.labels)) != len(seen.labels):
        twice = next(label for k, label in enumerate(seen.labels) if label in seen.labels[:k])
        raise ValueError(f"column {column.name!r}: two of its levels equal {twice!r}; turn them into text, each once")
    return tuple(seen.labels) if seen.declared else _spelled(seen)


def _spelled(seen: Labels) -> tuple[Level, ...]:
    """The labels, sorted; of those that differ by white space at their ends only the most frequent, or barest, one."""
    best: dict[Any, Any] = {}
    for label, n in zip(seen.labels, seen.counts.tolist(), strict=True):
        bare = label.strip() if isinstance(label, str) else label
        best[bare] = max(best.get(bare, (-1,)), (n, label == bare, label))
    # of numbers and texts, the numbers come first
    return tuple(sorted((label for _, _, label in best.values()), key=lambda one: (isinstance(one, str), one)))


def _as_numbers(column: Column, seen: Seen) -> Numbers:
    """A column's numbers; those of its labels where it holds labels."""
    if isinstance(seen.what, Numbers):
        return seen.what
    labels = seen.what if isinstance(seen.what, Labels) else Labels((), np.empty(0, np.int64), False, False)
    wrong = [label for label in labels.labels if isinstance(label, str)]
    if wrong or column.kind == "datetime":
        hint = "turn the text into dates first" if column.kind == "datetime" else "turn the text into numbers first"
        shown = (wrong or list(labels.labels))[0]
        raise ValueError(f"column {column.name!r}: got {shown!r} in a column to be {column.kind}; {hint}")
    used = labels.counts > 0
    values, place = np.unique(np.array([float(label) for label in labels.labels])[used], return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, place, labels.counts[used])
    return counted_numbers(values, counts, of_numbers(column.dtype))


def _numeric(column: Column, sort: str, seen: Numbers, counted: np.ndarray | None) -> Column:
    if column.kind == "datetime":
        raise ValueError(f"column {column.name!r}: got numbers in a column to be datetime; turn them into dates first")
    seen = _none_infinite(column, seen)
    column = replace(column, dtype=of_numbers(column.dtype), minimum=seen.low, maximum=seen.high)
    (values, counts), tally = seen.values.counted(), seen.values.tally
    step = 0.0 if column.kind in ("continuous", "mixed") else _step(column, sort, seen)
    if step >= 1.0 and not column.kind:
        only = times.calendar_of_numbers(seen.odd, tally.n, seen.outermost.values)
        if only:
            step = float(math.gcd(round(step), 20)) if only == "hhmm" else 1.0
            column = _tell_calendar(replace(column, only=only))
        elif pattern := times.dates_in_numbers(values):
            _tell_dates(column, pattern, values[0])
    if sort == "number" and step < 1.0:
        column = replace(column, digits=digits_of(values, step, precision(column.dtype)))
        if column.digits and not column.kind and not is_tied(tally.n, tally.n_distinct):
            step = 0.0  # the digits describe such numbers better than the grid
    if column.kind == "continuous":
        return column
    if not tally.is_whole:
        wanted = _possible_atoms(seen, step)
        values, counts = wanted.values, np.zeros(len(wanted.values)) if counted is None else counted
    n_distinct = tally.n_distinct
    if step > 0:
        # values of 32 bits, or the outcomes of sums, are near their cell's centre only: count cells
        cells, place = np.unique(np.rint(values / step), return_inverse=True)
        values, counts = snapped(replace(column, step=step), cells * step), np.bincount(place, counts)
        n_distinct = len(values) if tally.is_whole else n_distinct
    atoms = find_atoms(values, counts, step, tally.n, n_distinct)
    if step > 0:
        kind = column.kind or ("integer" if step == 1.0 else "rounded")
    elif column.kind == "mixed" and not atoms:
        raise ValueError(
            f"column {column.name!r}: no value is common enough to have a mass of its own (5 % of the cells, or 0.2 % "
            "and 20 of them); use the kind 'continuous'"
        )
    else:
        kind = "mixed" if atoms else "continuous"
    return replace(column, kind=kind, step=step, atoms=atoms)


def _tell_calendar(column: Column) -> Column:
    """The column, after a notice that its numbers are taken for dates or times."""
    what = f"{times.IN_WORDS[column.only]} ({column.only})"
    warn(
        f"column {column.name!r}: its whole numbers are read as {what}, so that none is drawn that does not exist; for "
        f"plain numbers say kinds={{{column.name!r}: 'integer'}}, or --kinds {shlex.quote(column.name + '=integer')}",
        UserWarning,
    )
    return column


def _tell_dates(column: Column, pattern: str, value: float) -> None:
    """A notice that whole numbers seem to be dates, which have no order as numbers."""
    said = "month, day, year" if pattern == "%m%d%Y" else "day, month, year"
    warn(
        f"column {column.name!r}: its whole numbers, such as {value:.0f}, seem to be dates ({said}), and are learned "
        f"as numbers; to learn dates, write them as year-month-day; in pandas by pandas.to_datetime("
        f"frame[{column.name!r}].astype(str).str.zfill(8), format={pattern!r})",
        UserWarning,
    )


def _to_count(name: str, seen: Seen, kind: str | None) -> WantedValues | None:
    """Values of one column to count, None if all or none are counted."""
    if not isinstance(seen.what, Numbers) or seen.what.values.tally.is_whole or seen.what.n_infinite:
        return None
    if kind == "continuous" or kind in CATEGORICAL_KINDS or kind == "datetime":
        return None
    column = Column(name, kind or "", seen.dtype)
    step = 0.0 if kind == "mixed" else _step(column, seen.sort, seen.what, is_quiet=True)
    return _possible_atoms(seen.what, step)


def _possible_atoms(seen: Numbers, step: float) -> WantedValues:
    """Values that may be atoms: none that is one is left out."""
    values = seen.values.frequent(0.002 if step == 0 else 0.005)
    if step > 0:
        cells = np.rint(values / step)
        cells = np.unique((cells[:, None] + np.arange(-2, 3)).ravel())
        ends = np.rint(np.array([seen.low, seen.high]) / step)
        cells = cells[(cells >= ends[0]) & (cells <= ends[1])]
        values = np.union1d(cells, ends) * step
    else:
        values = np.union1d(values, [seen.low, seen.high])
    return WantedValues(values, step)


def _step(column: Column, sort: str, seen: Numbers, is_quiet: bool = False) -> float:
    """Width of the grid's cells; 0 for no grid."""
    eps, tally = precision(column.dtype), seen.values.tally
    largest = max(abs(seen.low), abs(seen.high))
    if sort == "integer" and largest > MAX_CELLS and column.kind == "":
        if not is_quiet:
            warn(
                f"column {column.name!r}: integers beyond 2**51 (such as {largest:.0f}) are kept as floating-point "
                "numbers, to about 16 digits; drop the column if it names the rows",
                UserWarning,
            )
        return 0.0
    step = grid_step(seen.grids, tally.n_distinct, largest, eps)
    if column.kind == "integer":
        if not seen.grids.power[0] or largest > MAX_CELLS:
            distinct = seen.values.counted()[0]
            wrong = distinct[(distinct != np.rint(distinct)) | (np.abs(distinct) > MAX_CELLS)]
            shown = f"{wrong[0]!r}" if len(wrong) else f"{largest!r}"
            raise ValueError(f"column {column.name!r}: an integer column holds whole numbers below 2**51, got {shown}")
        return 1.0
    if column.kind == "rounded" and step == 0.0:
        raise ValueError(
            f"column {column.name!r}: its values are not on a grid of up to 9 decimals, so it cannot be rounded; "
            "use the kind 'continuous'"
        )
    return step


def _none_infinite(column: Column, seen: Numbers) -> Numbers:
    """The numbers; an error if some are infinite."""
    infinite = seen.n_infinite
    if infinite:
        raise ValueError(
            f"column {column.name!r}: {infinite} infinite value{'s' if infinite > 1 else ''}; "
            "expected finite numbers, make them missing (NaN; on the command line: --na inf) or large and finite"
        )
    return seen


def _int_if_whole(value: float) -> int | float:
    return int(value) if value == round(value) and abs(value) < 2**53 else value


# ---- Columns that carry no distribution: identifiers, free text and columns of too many levels.

_LEAST = 100
"""In columns of more known cells the number of distinct values decides whether they identify the rows."""
_DISTINCT = 0.95
"""Least share of distinct values among the cells of a column of identifiers."""
_WORDS = 5.0
"""Least mean number of words in a cell of free text."""
_ROW_NAME = re.compile(r"__index_level_\d+__|row_?names?|unnamed: ?\d+|")
"""Names under which pandas and R write the names or numbers of rows, in small letters."""
_ID_NAME = re.compile(
    r"(.*[^a-z])?(id|ids|key|uuid|guid|index|rownum|row_?number|no|nr|number|nummer|unnamed: ?\d+)\.?|.*[a-z](Id|ID)|"
)


def set_aside(name: str, seen: Seen, kind: str | None) -> Column | None:
    """The description of a column that is set aside, None for any other; ``kind`` is the kind that the user gave."""
    if kind not in (None, "identifier"):
        return None
    must = kind == "identifier"
    if isinstance(seen.what, Labels) and all(isinstance(label, str) for label in seen.what.labels):
        return _of_texts(name, seen, seen.what, must)
    if isinstance(seen.what, Numbers) and seen.sort in ("integer", "number"):
        numbers = seen.what
        tally = numbers.values.tally
        # of many values a sample is counted: if none of these occurs twice, next to none of the others does
        is_distinct = bool((tally.counts == 1).all())
        n_distinct = seen.n_known if is_distinct else tally.n_distinct
        is_key = seen.sort == "integer" and is_distinct and seen.n_known > 1
        if must or (is_key and (_names_rows(name) or (seen.n_known > _LEAST and _is_id(name)))):
            aside = SetAside("identifier", n_distinct, first=int(numbers.high) + 1 if abs(numbers.high) < 2**52 else 1)
            return Column(name, "integer", of_numbers(seen.dtype), step=1.0, n_observed=seen.n_known, aside=aside)
        return None
    if must:
        raise ValueError(f"kinds: column {name!r}: an identifier is text or a whole number, got {seen.sort}")
    return None


def _names_rows(name: str) -> bool:
    return _ROW_NAME.fullmatch(name.lower()) is not None


def _is_id(name: str) -> bool:
    return (_ID_NAME.fullmatch(name) or _ID_NAME.fullmatch(name.lower())) is not None


def _of_words(name: str, seen: Seen, frame: Frame) -> str:
    """A remark on levels that are words for missing cells; else empty. Those of CSV files were decided already."""
    if not isinstance(seen.what, Labels) or seen.what.declared:
        return ""
    counts = list(zip(seen.what.labels, seen.what.counts.tolist(), strict=True))
    words = [(label, n) for label, n in counts if isinstance(label, str) and is_missing_word(label)]
    words = [one for one in words if frame != "pyarrow" or one[0].strip() not in WORDS]
    shown = ", ".join(f"{label!r} ({n:,} of {seen.n_known:,} cells)" for label, n in sorted(words))
    if not words or len(words) == sum(n > 0 for _, n in counts):  # of nothing but such words, all are levels
        return ""
    label, column = min(words)[0], f"frame[{name!r}]"
    return (
        f"the level{'s' if len(words) > 1 else ''} {shown} may mean a missing cell; if so, make such cells missing: in "
        f"pandas by {column}.mask({column} == {label!r}), of CSV on the command line by --na={shlex.quote(label)}"
    )


def _of_rows(name: str, seen: Seen, column: Column) -> str:
    """A remark on a column that may number the rows, or name the subjects of several rows each; else empty."""
    option = shlex.quote(name)
    if isinstance(seen.what, Numbers):
        n_distinct = seen.what.values.tally.n_distinct
    else:
        n_distinct = int(np.count_nonzero(seen.what.counts)) if isinstance(seen.what, Labels) else 0
    span = column.maximum - column.minimum + 1.0 if column.kind == "integer" and column.minimum in (0.0, 1.0) else 0.0
    if n_distinct == seen.n_known == span >= _FEWEST:
        return (
            "each whole number once, as if it numbered the rows; if so, leave it out: "
            f"kinds={{{name!r}: 'identifier'}}, or --kinds {shlex.quote(name + '=identifier')}"
        )
    if (
        _SUBJECT_NAME.fullmatch(name)
        and (column.is_categorical or column.kind == "integer")
        and _FEWEST < n_distinct < seen.n_known / 1.5
    ):
        return (
            f"{n_distinct:,} distinct values in {seen.n_known:,} rows; if it names the subject of several rows, learn "
            f"histories: jf.fit(table, group={name!r}), or fit --group {option}"
        )
    return ""


_SUBJECT_NAME = re.compile(r"(?i:(.*[^a-z])?(id|key|uuid|guid))|.*[a-z](Id|ID)")
_FEWEST = 20
"""Rows, or subjects, below which a column is taken as it is."""
_TOTAL = re.compile(r"(grand|sub)?[ -]?total(s|e|es|er)?|sums?|summen?|(ins)?gesamt(summe)?|somme|suma", re.IGNORECASE)
"""What stands in the row of totals."""
_MOST_TO_DOUBT = 100_000
"""Rows of larger tables are not examined: they come from no spreadsheet."""


def _doubt_last_rows(reader: FrameReader) -> None:
    """Warn of rows at the end without any known cell, and of a last row that holds totals."""
    n_blank, totals = last_rows(reader)
    if n_blank:
        rows = f"the last {n_blank} rows have" if n_blank > 1 else "the last row has"
        warn(f"{rows} no known cell; remove what is no row of the table", UserWarning)
    if totals:
        warn(f"the last row looks like totals, with {totals}; if so, remove it", UserWarning)


def last_rows(reader: FrameReader) -> tuple[int, str]:
    """The number of rows at the end without any known cell, and which totals the last other row holds, if any."""
    if not 4 <= reader.n <= _MOST_TO_DOUBT or len(reader.names) < 2:
        return 0, ""
    columns = {name: reader.cells(name) for name in reader.names}
    is_known = ~np.all([cells.missing for cells in columns.values()], axis=0)
    last = int(np.flatnonzero(is_known)[-1]) if is_known.any() else 0
    what = []
    for name, cells in columns.items():
        if cells.missing[last]:
            continue
        if cells.codes is not None:
            code = cells.codes[last]
            label = cells.labels[code]
            if isinstance(label, str) and _TOTAL.fullmatch(label.strip(" :")) and (cells.codes == code).sum() == 1:
                what.append(f"{label!r} in column {name!r}")
        elif cells.sort in ("number", "integer"):
            above = np.where(np.isinf(cells.values[:last]), np.nan, cells.values[:last])  # refused later
            is_sum = math.isclose(np.nansum(above), cells.values[last], rel_tol=1e-9) and cells.values[last] != 0.0
            what += [f"the sum of column {name!r}"] if is_sum and np.count_nonzero(above > 0.0) > 2 else []
    is_odd = any(cells.missing[last] for cells in columns.values())
    is_total = len(what) > 1 or (what and (is_odd or not what[0].startswith("the sum")))
    return (reader.n - 1 - last if last else 0), " and ".join(what[:2]) if is_total else ""


def _of_texts(name: str, seen: Seen, labels: Labels, must: bool) -> Column | None:
    """A column of texts that is set aside, or None."""
    used = [str(label) for label, n in zip(labels.labels, labels.counts.tolist(), strict=True) if n]
    share = len(used) / max(seen.n_known, 1)
    words = float(np.mean([len(text.split()) for text in used[:1000]])) if used else 0.0
    if must or (_names_rows(name) and 1 < len(used) == seen.n_known):
        reason = "identifier"
    elif labels.declared and len(used) > MAX_LEVELS:
        reason = "too many levels"
    elif labels.declared or seen.n_known <= _LEAST:
        return None
    elif words >= _WORDS and share > 0.5:
        reason = "free text"
    elif share >= _DISTINCT:
        reason = "identifier"
    elif len(used) > MAX_LEVELS:
        reason = "too many levels"
    else:
        return None
    aside = SetAside(reason, len(used), **_id_form(used)) if reason == "identifier" else SetAside(reason, len(used))
    return Column(name, "categorical", seen.dtype, levels=("",), n_observed=seen.n_known, aside=aside)


def _id_form(texts: list[str]) -> dict[str, Any]:
    """How identifiers are written: a text with a number in it, or characters of the same classes."""
    matches = [re.fullmatch(r"(.*?)(\d{1,15})(\D*)", text) for text in texts]
    numbered = [match for match in matches if match is not None]
    if len(numbered) == len(texts) and len({(match[1], match[3]) for match in numbered}) == 1:
        widths = {len(match[2]) for match in numbered}
        has_zeros = any(match[2].startswith("0") for match in numbered)
        width = max(widths) if has_zeros and len(widths) == 1 else 0
        last = max(int(match[2]) for match in numbered)
        return {"prefix": numbered[0][1], "suffix": numbered[0][3], "width": width, "first": last + 1}
    if len({len(text) for text in texts}) > 1 or len(texts[0]) > 100:
        return {"prefix": "new-"}
    mask, freedom = [], 1.0
    for characters in map(set, zip(*texts, strict=True)):
        of = next((name for name, members in SHAPE_CLASSES if characters <= set(members)), None)
        if len(characters) == 1 or of is None:
            if len(characters) > 1:
                return {"prefix": "new-"}
            mask.append("\\" + next(iter(characters)))
        else:
            mask.append(of)
            freedom *= len(dict(SHAPE_CLASSES)[of])
    return {"mask": "".join(mask)} if freedom >= 1e15 else {"prefix": "new-"}  # enough that none is drawn twice
