"""Texts of ranges, such as <0.5 and 10-20, as intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .conditions import Closed, Interval
from .csv_files import is_number

_NUMBER = r"[^\s\d<>≤≥()\[\]]{0,4}\s?\d(?:[\d.,'’  ]*\d)?(?:\s?[^\W\d_][^\s\d<>()\[\]+\-–]{0,14}|\s?[%‰])?"
_SIGNED = rf"[+\-−]?{_NUMBER}"
_ENDS: tuple[tuple[str, str, Closed], ...] = (
    (rf"(?:<=|=<|≤|up to|at most|max\.?)\s*(?P<hi>{_SIGNED})", "", "right"),
    (rf"(?P<hi>{_SIGNED})\s*(?:and|or) (?:under|below|younger|less|fewer|lower)", "", "right"),
    (rf"(?:<|under|below|less than|fewer than)\s*(?P<hi>{_SIGNED})", "", "neither"),
    (rf"(?:>=|=>|≥|at least|min\.?)\s*(?P<lo>{_SIGNED})", "", "left"),
    (rf"(?P<lo>{_SIGNED})\s*(?:\+|(?:and|or) (?:over|above|older|more|up|greater|higher))", "", "left"),
    (rf"(?:>|over|above|more than|greater than)\s*(?P<lo>{_SIGNED})", "", "neither"),
    (rf"(?P<lo>{_SIGNED})\s*(?:to|\.\.\.?|…)\s*(?P<hi>{_SIGNED})", "", "both"),
    (rf"(?P<lo>{_NUMBER})\s*[-–—]\s*(?P<hi>{_NUMBER})", "dash", "both"),
)
_FORMS = tuple((re.compile(rf"\s*{regex}\s*", re.IGNORECASE), mark, closed) for regex, mark, closed in _ENDS)
_BRACKETS = re.compile(
    rf"\s*(?P<open>[\[(])\s*(?P<lo>{_SIGNED}|-inf)?\s*[,;]\s*(?P<hi>{_SIGNED}|\+?inf)?\s*(?P<end>[\])])\s*"
)
_ACCOUNTING = re.compile(r"\(\S*\)")
"""A number below 0, such as (1,200)."""
_CLOSED: Mapping[str, Closed] = {"[]": "both", "[)": "left", "(]": "right", "()": "neither"}


class RangeText(NamedTuple):
    """The texts of the ends of a range, empty where it is open; and whether a dash stands between them."""

    lo: str
    hi: str
    closed: Closed
    has_dash: bool = False

    @property
    def ends(self) -> list[str]:
        """The ends that it has."""
        return [end for end in (self.lo, self.hi) if end]


def range_text(text: str) -> RangeText | None:
    """A text taken apart that may be a range; None of any other.

    Examples
    --------
    >>> range_text("<0.25"), range_text("10-20").ends, range_text("2020-01-05")
    (RangeText(lo='', hi='0.25', closed='neither', has_dash=False), ['10', '20'], None)
    """
    if not any(map(str.isdigit, text)) or is_number(text):
        return None
    if (match := _BRACKETS.fullmatch(text)) is not None and not _ACCOUNTING.fullmatch(text):
        lo, hi = (end if end and end[-1:].isdigit() else "" for end in (match["lo"], match["hi"]))
        return RangeText(lo, hi, _CLOSED[match["open"] + match["end"]]) if lo or hi else None
    for regex, mark, closed in _FORMS:
        if (match := regex.fullmatch(text)) is not None:
            found = match.groupdict()
            return RangeText(found.get("lo") or "", found.get("hi") or "", closed, bool(mark))
    return None


def interval_of(text: RangeText, numbers: Mapping[str, float]) -> Interval | None:
    """The interval of a text, by the numbers of the texts of its ends; None where one is no number, or it is empty."""
    lo, hi = (numbers[end] if end else None for end in (text.lo, text.hi))
    if any(end is not None and math.isnan(end) for end in (lo, hi)):
        return None
    if lo is not None and hi is not None and (lo > hi or (lo == hi and text.has_dash)):
        return None
    return Interval(lo, hi, text.closed)


def order_if_disjoint(found: Sequence[Interval]) -> np.ndarray | None:
    """The order of intervals that do not overlap; None if some do."""
    ends = np.array([(-math.inf if x.lo is None else x.lo, math.inf if x.hi is None else x.hi) for x in found])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    is_apart = ends[order[:-1], 1] <= ends[order[1:], 0]
    return order if is_apart.all() else None
