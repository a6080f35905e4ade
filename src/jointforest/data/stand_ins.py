"""Values that may stand for a missing cell: -999, one repeated -200, 9999-12-31, many zeros among coordinates."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..runtime.warnings import warn
from .csv_files import is_number
from .observe_table import Outermost
from .schema import Column

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
