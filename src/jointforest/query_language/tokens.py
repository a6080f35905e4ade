"""Text to tokens."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from ..data.texts import is_word_character

# ---- The one error of the language: what is wrong, where, and what to do.

_WIDTH = 60
"""Characters shown on either side of the place."""


class QuerySyntaxError(ValueError):
    """A text that is not a query, or not a condition.

    Attributes
    ----------
    problem : str
        What is wrong, one line.
    text : str
        The whole text.
    position : int
        Where, counted from 0.
    hint : str
        What to do, one line; may be empty.
    """

    def __init__(self, problem: str, text: str, position: int, hint: str = "") -> None:
        self.problem, self.text, self.position, self.hint = problem, text, position, hint
        super().__init__(problem, text, position, hint)

    def __str__(self) -> str:
        # Only the line at fault is shown, and of a long one only the part around the place.
        first = self.text.rfind("\n", 0, self.position) + 1
        last = self.text.find("\n", self.position)
        line = self.text[first : len(self.text) if last < 0 else last]
        column = self.position - first
        start = max(0, column - _WIDTH)
        shown = "".join(c if c.isprintable() else " " for c in line[start : column + _WIDTH])
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.problem} (at position {self.position + 1}){hint}\n    {shown}\n    {' ' * (column - start)}^"


_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PAIRS = frozenset(["<=", ">=", "==", "!=", "<>"])
_SYMBOLS = _PAIRS | frozenset("<>=()[]{},|+-:*/")
_SPELLINGS = {"==": "=", "<>": "!=", "\u2264": "<=", "\u2265": ">=", "\u2260": "!="}
_QUOTES = {"'": "string", '"': "double", "`": "backtick"}
_LONGEST_NUMBER = 400


class Token(NamedTuple):
    """A word (bare), string ('..'), double (".."), backtick (`..`), number, symbol or end.

    ``value`` is the text without quotes, the Python number, or the symbol in its one spelling.
    """

    sort: str
    value: str | int | float
    start: int
    stop: int


def tokenize(text: str) -> list[Token]:
    """Cut a text into tokens; the last one is the end.

    Raises
    ------
    QuerySyntaxError
        At an unclosed quote, an unreadable number or a character with no meaning.
    """
    tokens = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = _next_token(text, at)
        tokens.append(token)
        at = token.stop
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def _next_token(text: str, at: int) -> Token:
    character = text[at]
    if character in _QUOTES:
        return _quoted(text, at)
    pair = text[at : at + 2]
    symbol = pair if pair in _PAIRS else character
    if symbol in _SYMBOLS or symbol in _SPELLINGS:
        return Token("symbol", _SPELLINGS.get(symbol, symbol), at, at + len(symbol))
    number = _NUMBER.match(text, at)
    if number and not (number.end() < len(text) and is_word_character(text[number.end()])):
        return Token("number", _number(text, at, number.group()), at, number.end())
    if is_word_character(character):
        stop = at
        while stop < len(text) and is_word_character(text[stop]):
            stop += 1
        return Token("word", text[at:stop], at, stop)
    hint = "names with dots or spaces go in backticks or double quotes, text values in single quotes"
    if character == ";":
        hint = "join conditions by ',' or 'and'"
    elif character in "&!":
        hint = "write 'and', 'or', 'not'"
    raise QuerySyntaxError(f"cannot read {character!r}", text, at, hint)


def _quoted(text: str, at: int) -> Token:
    """A quoted text; the quote doubled stands for itself."""
    quote = text[at]
    parts = []
    start = at + 1
    while True:
        stop = text.find(quote, start)
        if stop < 0:
            raise QuerySyntaxError(f"the quote {quote} is not closed", text, at, f"add {quote} at its end")
        parts.append(text[start:stop])
        if not text.startswith(quote, stop + 1):
            return Token(_QUOTES[quote], quote.join(parts), at, stop + 1)
        start = stop + 2


def _number(text: str, at: int, digits: str) -> int | float:
    if len(digits) > _LONGEST_NUMBER or not math.isfinite(float(digits)):
        raise QuerySyntaxError("the number is too large", text, at)
    return int(digits) if digits.isdecimal() else float(digits)
