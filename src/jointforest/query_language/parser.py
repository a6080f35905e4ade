"""Text to queries and conditions; the grammar is in docs/reference/query-language.md."""

# Conditions are pairs of a column and a condition of `jointforest.data.conditions`, one pair a column.

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..data.conditions import (
    KEYWORDS,
    MISSING,
    About,
    AllOf,
    AnyOf,
    Interval,
    Likely,
    Missing,
    Not,
    about,
    column_text,
    has_soft,
    is_word_character,
    likely,
    shown_number,
    sum_text,
)
from ..data.schema import near
from .render import conditions_text

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
_DATE = re.compile(r"[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}(?:[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)?")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{1,2}")
_PAIRS = frozenset(["<=", ">=", "==", "!=", "<>"])
_SYMBOLS = _PAIRS | frozenset("<>=()[]{},|+-:*/")
_SPELLINGS = {"==": "=", "<>": "!=", "\u2264": "<=", "\u2265": ">=", "\u2260": "!="}
_QUOTES = {"'": "string", '"': "double", "`": "backtick"}
_LONGEST_NUMBER = 400


class Token(NamedTuple):
    """A word (bare), string ('..'), double (".."), backtick (`..`), number, symbol or end. ``value`` is the text
    without quotes, the Python number, or the symbol in its one spelling."""

    sort: str
    value: str | int | float
    start: int
    stop: int


def tokenize(text: str) -> list[Token]:
    """Cut a text into tokens; the last one is the end. Raises QuerySyntaxError with the place of the fault."""
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
    elif character in "–—":
        hint = "a range is: between 40 and 60; text with dashes goes in single quotes"
    elif character in "%‰" or unicodedata.category(character) == "Sc":
        hint = "write the number alone, or quote it as the table writes it, such as '15%'"
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


# ---- Conditions put together in one normal form, so that equal meanings are equal conditions.

Value = str | int | float | bool
Condition = Value | Interval | AnyOf | AllOf | Not | Likely | About | Missing
Conditions = tuple[tuple[str, Condition], ...]
"""Pairs of a column and its condition, each column once."""


def all_of(conditions: Iterable[Condition]) -> Condition:
    """All of them; a lone one is itself."""
    flat = [part for c in conditions for part in (c.conditions if isinstance(c, AllOf) else (c,))]
    return flat[0] if len(flat) == 1 else AllOf(*flat)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Any of them; a lone one is itself."""
    flat = [part for c in conditions for part in (c.conditions if isinstance(c, AnyOf) else (c,))]
    return flat[0] if len(flat) == 1 else AnyOf(*flat)


def negate(condition: Condition) -> Condition:
    """The opposite condition."""
    if isinstance(condition, Not):
        inner: Condition = condition.condition
        return inner
    if isinstance(condition, bool):
        return not condition
    return Not(condition)


def _merge(clauses: Iterable[Conditions]) -> Conditions:
    """Conditions that all hold: those on one column become one."""
    parts_of: dict[str, list[Condition]] = {}
    for conditions in clauses:
        for column, condition in conditions:
            parts_of.setdefault(column, []).append(condition)
    return tuple((column, all_of(parts)) for column, parts in parts_of.items())


# ---- Reading tokens one by one: symbols, columns' names, values.


class Cursor:
    """A place in a text: ``at`` is the number of the next token."""

    def __init__(self, text: str, kinds: Mapping[str, str] | None, aside: Mapping[str, str] | None = None) -> None:
        self.text, self.kinds, self.aside = text, kinds, aside or {}
        self.tokens = tokenize(text)
        self.at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def advance(self) -> Token:
        """The next token, and go past it."""
        token = self.token
        self.at += 1
        return token

    def takes(self, *symbols: str) -> bool:
        """Whether the token is one of these symbols, which is then passed."""
        found = self.is_symbol(*symbols)
        self.at += found
        return found

    def takes_word(self, *words: str) -> bool:
        """Whether the token is one of these keywords, which is then passed."""
        found = self.is_keyword(*words)
        self.at += found
        return found

    def fail(self, problem: str, token: Token | None = None, hint: str = "") -> QuerySyntaxError:
        """The error to raise; at the next token, unless another is given."""
        return QuerySyntaxError(problem, self.text, (token or self.token).start, hint)

    def is_symbol(self, *symbols: str, ahead: int = 0) -> bool:
        """Whether the next token (or one further ahead) is one of the symbols."""
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token.sort == "symbol" and token.value in symbols

    def is_keyword(self, *words: str, ahead: int = 0) -> bool:
        """Whether the next token (or one further ahead) is one of the words, in any case."""
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token.sort == "word" and str(token.value).lower() in words

    def expect(self, symbol: str, hint: str = "") -> None:
        """Go past a symbol that must be there."""
        if not self.takes(symbol):
            raise self.fail(f"expected '{symbol}', found {self.shown_token()}", hint=hint)

    def shown_token(self) -> str:
        """The next token as errors show it."""
        if self.token.sort == "end":
            return "the end of the text"
        return repr(self.text[self.token.start : self.token.stop][:40])

    def is_column_name(self) -> bool:
        """Whether the next token can be a column: a bare word that is no keyword, or a quoted name."""
        token = self.token
        if token.sort == "word":
            return str(token.value).lower() not in KEYWORDS
        return token.sort in ("backtick", "double")

    def column(self) -> str:
        """Read a column's name; an error if the table has no such column."""
        if not self.is_column_name():
            hint = "names are bare words, or in backticks or double quotes"
            raise self.fail(f"expected a column's name, found {self.shown_token()}", hint=hint)
        token = self.advance()
        name = str(token.value)
        if self.kinds is not None and name not in self.kinds:
            if name in self.aside:
                raise self.fail(f"column {name!r} {self.aside[name]} and takes no part in the model", token)
            raise self.fail(f"no column is called {name!r}", token, self.similar(name))
        return name

    def similar(self, name: str) -> str:
        """Hint for a name that is no column."""
        names = [*(self.kinds or ()), *self.aside]
        spaced = [other for other in names if other != other.strip() and other.strip().casefold() == name.casefold()]
        if spaced:
            return f"names with spaces at their ends are quoted: {column_text(spaced[0])}"
        longer = [one for one in names if one.startswith(name) and not is_word_character(one[len(name) :][:1])]
        if longer and not self.is_symbol("=", "<", ">"):
            # The name was cut off at a dash or a space.
            return f"names with dots, dashes or spaces are quoted: `{longer[0]}`"
        return near(name, names)

    def value(self) -> Value:
        """Read a value: a number with its sign, a text, or a bare word."""
        sign = self.advance() if self.is_symbol("+", "-") else None
        token = self.token
        if token.sort == "number" and not isinstance(token.value, str):
            self.check_date(token)
            self.advance()
            return -token.value if sign and sign.value == "-" else token.value
        if sign:
            raise self.fail(f"expected a number after '{sign.value}', found {self.shown_token()}")
        if token.sort in ("string", "double"):
            self.advance()
            return str(token.value)
        if token.sort == "word" and str(token.value).lower() not in KEYWORDS:
            return self.word()
        hint = "values are numbers, 'text in single quotes', or single words"
        raise self.fail(f"expected a value, found {self.shown_token()}", hint=hint)

    def check_date(self, token: Token) -> None:
        """An error if a number begins a date, which stands in quotes; it says whether such a date exists."""
        date = date_at(self.text, token.start)
        if not date:
            return
        column = self.column_of_value(token.start + len(date))
        of = f"column {column!r}: " if column is not None else ""
        what = "expected a date or time in single quotes such as '2024-03-01 12:30'"
        raise self.fail(f"{of}{what}, got {date}", token, wrong_date(date) or f"write '{date}'")

    def column_of_value(self, stop: int) -> str | None:
        """The column that a value ending at ``stop`` is compared with: the one after it, or the last one before."""
        after = [token for token in self.tokens[self.at :] if token.start >= stop]
        if len(after) > 1 and after[0].sort == "symbol" and after[0].value in OPERATORS and self._is_column(after[1]):
            return str(after[1].value)
        before = [str(token.value) for token in self.tokens[: self.at] if self._is_column(token)]
        return before[-1] if before else None

    def _is_column(self, token: Token) -> bool:
        """Whether a token names a column; where the columns are not known, whether it may."""
        if token.sort not in ("word", "backtick", "double"):
            return False
        if self.kinds is not None:
            return token.value in self.kinds
        return token.sort != "word" or str(token.value).lower() not in KEYWORDS

    def word(self) -> str | bool:
        """Read a bare word as a value: true and false are booleans, signs of a missing value an error."""
        token = self.advance()
        word = str(token.value)
        if word.lower() in ("true", "false"):
            return word.lower() == "true"
        if word.lower() in MISSING:
            hint = f"leave out what is not known; a missing value is: column is missing; a level is: '{word}'"
            raise self.fail(f"{word} is not a value", token, hint)
        return word

    def quoting_hint(self) -> str:
        """Hint for a token that nothing leads up to: often the rest of a text without quotes."""
        previous, token = self.tokens[self.at - 1] if self.at else self.token, self.token
        following = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        low, high = (self.text[one.start : one.stop] for one in (previous, following))
        is_range = (self.is_symbol("-") or self.is_keyword("to")) and previous.sort == following.sort == "number"
        if is_range and not _MONTH.fullmatch(f"{low}-{high}"):
            return f"a range is: between {low} and {high}; dates go in single quotes: '2024-03-01'"
        if previous.sort == "number" and self.is_symbol("-", "/", ":"):
            return "dates and times go in single quotes: '2024-03-01'"
        if previous.sort == "number" and token.sort == "word":
            quoted = self.text[previous.start : token.stop]
            return f"write the number alone, {low}, or quote it as the table writes it: '{quoted}'"
        if previous.sort == token.sort == "number":
            return "write one number; a range is: between 40 and 60"
        if previous.sort in ("word", "number") and self.token.sort != "end":
            return "text with dashes, dots or spaces goes in single quotes: 'Never-married'"
        return ""


def wrong_date(text: str) -> str:
    """What is wrong with a text that looks like a date; empty if there is such a date."""
    try:
        dt.datetime.fromisoformat(text)
    except ValueError as error:
        return str(error) if "isoformat" not in str(error) else "months, days and hours have two digits: '2024-03-01'"
    return ""


def date_at(text: str, start: int) -> str:
    """What looks like a date, with or without a time, at this place of a text; empty if nothing does."""
    found = _DATE.match(text, start)
    return found[0] if found else ""


def _comma_hint(tokens: list[Token]) -> str:
    """Hint for a decimal comma, if the last three tokens are a number, a comma and a number without spaces."""
    if len(tokens) < 3:
        return ""
    whole, comma, fraction = tokens[-3:]
    is_tight = whole.stop == comma.start and comma.stop == fraction.start
    if not (is_tight and comma.value == "," and whole.sort == fraction.sort == "number"):
        return ""
    such = f", {whole.value}.{fraction.value}," if isinstance(whole.value, int) else ""
    return f"decimals have a point{such} or are quoted as the table writes them"


# ---- Sums of columns, and comparisons of them: read, and written out.

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Sum:
    """sum of coefficient * column, plus a constant.

    terms : tuple of (float, str). Coefficients, none of them 0, and columns, each once.
    constant : float

    >>> str(Sum(((1.0, "arrival"), (-2.0, "delay")), 3.0))
    'arrival - 2 * delay + 3'
    """

    terms: tuple[tuple[float, str], ...]
    constant: float = 0.0

    @property
    def is_column(self) -> bool:
        """Whether it is one column as it is."""
        return len(self.terms) == 1 and self.terms[0][0] == 1.0 and self.constant == 0.0

    def __sub__(self, other: Sum) -> Sum:
        return _collected([*self.terms, *((-c, name) for c, name in other.terms)], self.constant - other.constant)

    def __str__(self) -> str:
        return sum_text(self.terms, self.constant)


@dataclass(frozen=True)
class Comparison:
    """Two sums of columns compared; ``op`` is one of `OPERATORS`."""

    left: Sum
    op: str
    right: Sum

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


class SumReader(Cursor):
    """Reads sums of columns, such as ``arrival - 2 * delay + 3``."""

    def sum(self, of_values: bool = False) -> Sum:
        """A sum of at least one term; ``of_values``: bare words are columns only where the table has such a one."""
        terms: list[tuple[float, str]] = []
        constant = 0.0
        sign = self._sign()
        while True:
            coefficient, name = self._term(of_values)
            if name is None:
                constant += sign * coefficient
            else:
                terms.append((sign * coefficient, name))
            if not self.is_symbol("+", "-"):
                return _collected(terms, constant)
            sign = self._sign()

    def comparison(self) -> Comparison | None:
        """The comparison of columns that stands here, gone past; None if none does, with the cursor where it was."""
        start = self.at
        try:
            left = self.sum()
            if self.is_symbol(*OPERATORS):
                op = str(self.advance().value)
                right = self.sum(any(self._has_levels(name) for _, name in left.terms) or self.kinds is None)
                if self._is_of_columns(left, right):
                    return Comparison(left, op, right)
        except QuerySyntaxError:
            pass
        self.at = start
        return None

    def _is_of_columns(self, left: Sum, right: Sum) -> bool:
        """Whether it is more than one column and a value."""
        if len(left.terms) + len(right.terms) > 1:
            return True
        of, other = (left, right) if left.terms else (right, left)
        return bool(of.terms) and not of.is_column and not other.terms

    def _has_levels(self, name: str) -> bool:
        return self.kinds is not None and self.kinds[name] in ("categorical", "ordered")

    def _sign(self) -> float:
        sign = 1.0
        while self.is_symbol("+", "-"):
            sign *= -1.0 if self.advance().value == "-" else 1.0
        return sign

    def _term(self, of_values: bool) -> tuple[float, str | None]:
        """A coefficient and a column, or a number."""
        token = self.token
        if token.sort == "number":
            self.advance()
            return float(token.value), self._summand(of_values) if self.takes("*") else None
        name = self._summand(of_values)
        if not self.is_symbol("*", "/"):
            return 1.0, name
        by = str(self.advance().value)
        factor = self.token
        if factor.sort != "number" or not float(factor.value):
            hint = "sums have columns, and numbers as factors: 2 * net + tax"
            raise self.fail(f"expected a number other than 0 after '{by}', found {self.shown_token()}", hint=hint)
        self.advance()
        return (float(factor.value) if by == "*" else 1.0 / float(factor.value)), name

    def _summand(self, of_values: bool) -> str:
        token = self.token
        if of_values and token.sort != "backtick":
            raise self.fail("expected a column in backticks")
        return self.column()


def _collected(terms: list[tuple[float, str]], constant: float) -> Sum:
    """The sum with each column once."""
    total: dict[str, float] = {}
    for coefficient, name in terms:
        total[name] = total.get(name, 0.0) + coefficient
    return Sum(tuple((c, name) for name, c in total.items() if c != 0.0), constant)


_DEEPEST = 50
_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_AFTER_COLUMN = ("in", "between", "is", "about", "likely", "not")
_CLOSING = {"{": "}", "(": ")", "[": "]"}


class ConditionParser(SumReader):
    """Recursive descent: one method a rule of the grammar (see `parser`)."""

    depth = 0
    compared: list[Comparison] | None = None
    """Comparisons of columns read so far; None where they are not allowed."""
    beside: str | None = None
    """The column whose name may be left out of conditions."""

    def conditions(self, what: str) -> Conditions:
        """Clauses joined by commas."""
        if self.token.sort == "end":
            raise self.fail(f"expected {what}", hint="such as age >= 40")
        clauses = [self.clause()]
        while self.takes(","):
            clauses.append(self.clause())
        if not (self.token.sort == "end" or self.is_symbol("|", ")")):
            raise self.fail(f"expected ',' or 'and', found {self.shown_token()}", hint=self.quoting_hint())
        return _merge(clauses)

    def clause(self) -> Conditions:
        """Conditions joined by ``or``, all on one column."""
        start = self.token
        parts = [self.all()]
        while self.takes_word("or"):
            parts.append(self.all())
        if len(parts) == 1:
            return parts[0]
        if not all(parts):
            raise self.fail("a comparison of columns is not joined by 'or'", start, "ask for the parts, and add up")
        columns = {column for conditions in parts for column, _ in conditions}
        if len(columns) > 1:
            raise self.across_columns(start, _merge(parts), "or", "P(A or B) = P(A) + P(B) - P(A, B)")
        return ((columns.pop(), any_of([conditions[0][1] for conditions in parts])),)

    def all(self) -> Conditions:
        """Conditions joined by ``and``."""
        parts = [self.part()]
        while self.takes_word("and"):
            parts.append(self.part())
        return _merge(parts)

    def part(self) -> Conditions:
        """A condition, its opposite, or conditions in brackets."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fail(f"brackets and 'not' more than {_DEEPEST} deep")
        start = self.token
        if self.takes_word("not"):
            conditions = self.part()
            if not conditions:
                raise self.fail("a comparison of columns has no 'not' before it", start, "turn it round: a <= b")
            if len(conditions) > 1:
                raise self.across_columns(start, conditions, "not", "P(not A) = 1 - P(A)")
            conditions = ((conditions[0][0], self.opposite(*conditions[0])),)
        elif self.takes("("):
            conditions = self.conditions("a condition")
            self.expect(")", "each '(' needs its ')'")
        elif (comparison := self.comparison()) is not None:
            self.compare(comparison, start)
            conditions = ()
        else:
            conditions = (self.condition(),)
        self.depth -= 1
        return conditions

    def compare(self, comparison: Comparison, start: Token) -> None:
        """Take down a comparison of columns."""
        if self.compared is None:
            hint = "ask for its probability: P(a > b | evidence)"
            raise self.fail("columns are compared in the event of P alone", start, hint)
        if self.is_symbol(*OPERATORS):
            raise self.fail("a chain of comparisons of columns", hint="write a < b, b < c")
        of = comparison.left - comparison.right
        if len(of.terms) < 2:
            hint = "compare it with one number: column > 3" if of.terms else "name two columns"
            raise self.fail("a comparison of columns is of two or more", start, hint)
        self.compared.append(comparison)

    def across_columns(self, start: Token, conditions: Conditions, word: str, answer: str) -> QuerySyntaxError:
        """The error that a word joins several columns; ``answer`` is how to ask instead."""
        names = ", ".join(repr(column) for column, _ in conditions[:4])
        hint = f"ask for the parts and combine them: {answer}"
        return self.fail(f"'{word}' over different columns ({names}) is not a region of one column", start, hint)

    def condition(self) -> tuple[str, Condition]:
        """One condition; ``column`` may stand after a value, as in ``40 <= age < 60``."""
        if self.token.sort in ("number", "string") or self.is_symbol("+", "-"):
            return self.value_first()
        start, at = self.token, self.at
        column = self.column() if self.beside is None or self.is_named(start) else self.beside
        if self.is_symbol(*_REVERSED):
            op = str(self.advance().value)
            condition = self.compared_with(column, op, self.value())
            if self.is_symbol(*_REVERSED):
                raise self.fail("a chain of comparisons starts with a value", hint=f"write 40 <= {column} < 60")
            return column, condition
        if self.is_keyword("not") and self.is_keyword("in", "between", ahead=1):
            self.advance()
            return column, self.opposite(column, self.membership())
        if self.is_keyword("in", "between"):
            return column, self.membership()
        if self.is_keyword("is"):
            return column, self.missing()
        if self.is_keyword("about"):
            return column, self.measured(column)
        if self.is_keyword("likely"):
            return column, self.likelihoods(column)
        if self.at == at:  # the name is left out, and no word that compares follows
            return column, self.bare_value(self.value())
        return column, self.boolean_column(start, column)

    def boolean_column(self, start: Token, column: str) -> Condition:
        """A column with nothing after it is a boolean that is true."""
        if not (self.token.sort == "end" or self.is_symbol(",", ")", "|") or self.is_keyword("and", "or")):
            hint = "a condition is: column = value, column in {...}, column between a and b"
            raise self.fail(f"expected a comparison after {column!r}, found {self.shown_token()}", hint=hint)
        if self.kinds is not None and self.kinds[column] != "boolean":
            hint = f"only a column of true and false, or of 0 and 1, stands alone; write {column} = value"
            raise self.fail(f"{column!r} is {self.kinds[column]}, not boolean", start, hint)
        return True

    def value_first(self) -> tuple[str, Condition]:
        """A condition that starts with a value: ``40 <= age``, ``40 <= age < 60``."""
        before, low = self.tokens[: self.at + 1], self.value()
        if not self.is_symbol(*_REVERSED):
            if self.beside is not None:
                return self.beside, self.bare_value(low)
            hint = _comma_hint(before) or "write age >= 40, or 40 <= age < 60"
            raise self.fail(f"expected a comparison, found {self.shown_token()}", hint=hint)
        first = str(self.advance().value)
        column = self.column()
        if not self.is_symbol(*_REVERSED):
            return column, self.compared_with(column, _REVERSED[first], low)
        if first[0] not in "<>" or str(self.token.value)[0] != first[0]:
            raise self.fail("the two comparisons of a chain point the same way", hint=f"write 40 <= {column} < 60")
        second = str(self.advance().value)
        high = self.value()
        closed = ("=" in first, "=" in second)
        if first[0] == ">":
            low, high, closed = high, low, closed[::-1]
        return column, _interval(low, high, *closed)

    def opposite(self, column: str, condition: Condition) -> Condition:
        """The opposite condition on a column: only booleans have an opposite value."""
        is_boolean = self.kinds is None or self.kinds[column] == "boolean"
        return Not(condition) if isinstance(condition, bool) and not is_boolean else negate(condition)

    def is_named(self, token: Token) -> bool:
        """Whether a condition beside a column's name has a name all the same, and does not begin with a value."""
        # A word alone is a level, also if a column has this name.
        if not (self.is_column_name() and self._is_column(token)):
            return False
        if token.sort == "backtick" or self.beside is None or not self._has_levels(self.beside):
            return True
        return self.is_symbol(*_REVERSED, ahead=1) or self.is_keyword(*_AFTER_COLUMN, ahead=1)

    def bare_value(self, value: Value) -> Value:
        """A value beside a column's name; an error if a comma follows, because no cell has two values."""
        if not self.is_symbol(","):
            return value
        first, following = self.tokens[self.at - 1], self.tokens[self.at + 1]
        both = self.text[first.start : following.stop]
        hints = [_comma_hint(self.tokens[self.at - 1 : self.at + 2]), f"several values are: in {{{both}}}"]
        raise self.fail("a comma after a value", hint="; ".join(filter(None, hints)))

    def membership(self) -> Condition:
        """What follows a column: ``between`` two values, or ``in`` a list of them."""
        if self.takes_word("between"):
            low = self.value()
            if not self.takes_word("and"):
                raise self.fail(f"expected 'and', found {self.shown_token()}", hint="write column between 40 and 60")
            return _interval(low, self.value(), True, True)
        self.advance()
        opening = str(self.token.value)
        if not self.takes(*_CLOSING):
            raise self.fail(f"expected a list of values, found {self.shown_token()}", hint="write column in {a, b}")
        if self.is_symbol(_CLOSING[opening]):
            raise self.fail("an empty list of values", hint="give at least one value")
        values = [self.value()]
        while self.takes(","):
            values.append(self.value())
        self.expect(_CLOSING[opening], f"values are joined by ','; the list ends with '{_CLOSING[opening]}'")
        return any_of(values)

    def missing(self) -> Condition:
        """What follows a column: ``is missing``, ``is not missing``."""
        self.advance()
        is_not = self.takes_word("not")
        if not self.takes_word("missing"):
            hint = "write column is missing, column is not missing; column = value"
            raise self.fail(f"expected 'missing', found {self.shown_token()}", hint=hint)
        return negate(Missing()) if is_not else Missing()

    def measured(self, column: str) -> About:
        """What follows a column: ``about`` a value, and the standard deviation ``sd``."""
        self.advance()
        value, hint = self.value(), f"write {column} about 40 sd 2"
        if not self.takes_word("sd"):
            raise self.fail(f"expected 'sd', found {self.shown_token()}", hint=hint)
        start = self.token
        try:
            return about(value, self.value())
        except (TypeError, ValueError) as error:
            raise self.fail("sd is a number above 0", start, hint) from error

    def likelihoods(self, column: str) -> Likely:
        """What follows a column: ``likely`` and the likelihoods of values, or of conditions on the column."""
        start, hint = self.advance(), f"write {column} likely {{a: 0.7, b: 0.3, others: 0.1}}"
        self.expect("{", hint)
        likelihood_of: dict[Condition, float] = {}
        others = 0.0
        while True:
            key = self.token
            is_others = self.is_keyword("others") and self.is_symbol(":", ahead=1)
            said = self.advance().value if is_others else self.outcome(column)
            if said in likelihood_of and not is_others:
                raise self.fail("a second likelihood of one value", key)
            self.expect(":", hint)
            if self.token.sort != "number":
                raise self.fail(f"expected a likelihood, found {self.shown_token()}", hint=hint)
            likelihood = float(self.advance().value)
            if is_others:
                others = likelihood
            else:
                likelihood_of[said] = likelihood
            if not self.takes(","):
                break
        self.expect("}", "likelihoods are joined by ','; they end with '}'")
        try:
            return likely(likelihood_of, others)
        except ValueError as error:
            raise self.fail("all likelihoods are 0, or there are none", start, hint) from error

    def outcome(self, column: str) -> Condition:
        """A value, or a condition on the column, that has a likelihood."""
        at, start = self.at, self.token
        if start.sort != "backtick":
            value = self.value()
            if self.is_symbol(":", ",", "}"):
                return value
        self.at = at
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fail(f"likelihoods more than {_DEEPEST} deep")
        of, condition = self.condition()
        self.depth -= 1
        if of != column:
            raise self.fail(f"a condition on {of!r} among likelihoods of {column!r}", start)
        if has_soft(condition):
            raise self.fail("the likelihood of soft evidence", start, "multiply the likelihoods, and write them down")
        return condition

    def compared_with(self, column: str, op: str, value: Value) -> Condition:
        """Condition that a column stands in a relation to a value."""
        if op == "=":
            return value
        if op == "!=":
            return self.opposite(column, value)
        if op in ("<", "<="):
            return _interval(None, value, False, op == "<=")
        return _interval(value, None, op == ">=", False)


def _interval(low: Value | None, high: Value | None, low_in: bool, high_in: bool) -> Interval:
    """Interval from whether its ends belong to it."""
    if low_in and high_in:
        return Interval(low, high, "both")
    if low_in or high_in:
        return Interval(low, high, "left" if low_in else "right")
    return Interval(low, high, "neither")


# ---- A query, read.

_OTHER_NAMES = {"mean": "E", "average": "E", "avg": "E", "std": "Sd", "quantile": "Q", "probability": "P", "prob": "P"}
"""What others call a function."""
FUNCTIONS = ("P", "E", "Var", "Sd", "Cov", "Corr", "Q", "Median", "Mode", "logp")


@dataclass(frozen=True)
class Query:
    """One question.

    function : str. One of `FUNCTIONS`.
    column : str or None. The column asked for; None where `event`, `sum` or `compared` is.
    levels : tuple of float. Levels of the quantiles of ``Q``.
    event : tuple of (str, condition). What ``P`` or ``logp`` is of; empty if `column` is given.
    evidence : tuple of (str, condition). What is known.
    sum : Sum, optional. What ``E``, ``Var`` or ``Sd`` is of, where it is no column.
    other : str, optional. The second column of ``Cov`` and ``Corr``.
    compared : tuple of Comparison. Comparisons of columns in the event of ``P``.

    >>> str(Query("Q", "age", (0.5,), (), (("sex", "Female"),)))
    "Q(age, 0.5 | sex = 'Female')"
    """

    function: str
    column: str | None
    levels: tuple[float, ...] = ()
    event: Conditions = ()
    evidence: Conditions = ()
    sum: Sum | None = None
    other: str | None = None
    compared: tuple[Comparison, ...] = ()

    def __str__(self) -> str:
        if self.column is not None:
            what = ", ".join(column_text(name) for name in (self.column, self.other) if name is not None)
        elif self.sum is not None:
            what = str(self.sum)
        else:
            what = ", ".join(filter(None, [*map(str, self.compared), conditions_text(self.event)]))
        levels = "".join(f", {level!r}" for level in self.levels)
        evidence = f" | {conditions_text(self.evidence)}" if self.evidence else ""
        return f"{self.function}({what}{levels}{evidence})"


def parse_query(text: str, kinds: Mapping[str, str] | None = None, aside: Mapping[str, str] | None = None) -> Query:
    """Read a query such as ``P(income = '>50K' | age >= 40, sex = 'Female')``."""
    # ``kinds`` are the table's columns and their kinds; without them any column name is accepted. ``aside`` are columns
    # that take no part in the model, and why. Raises QuerySyntaxError with the place of the fault, and a hint.
    return QueryParser(text, kinds, aside).query()


def parse_conditions(
    text: str, kinds: Mapping[str, str] | None = None, aside: Mapping[str, str] | None = None
) -> Conditions:
    """Read conditions, such as ``age >= 40``, as pairs of a column and its condition: see `parse_query`."""
    return QueryParser(text, kinds, aside).conditions_alone()


def parse_beside(column: str, text: str, kinds: Mapping[str, str]) -> Condition:
    """Read conditions on one column, whose name may be left out: ``>= 40``, ``in {a, b}``, ``is missing``, or a value
    alone.

    Raises QuerySyntaxError, also if the text has a condition on another column.

    Examples
    --------
    >>> parse_beside("age", ">= 40", {"age": "integer"})
    Interval(lo=40, hi=None, closed='left')
    >>> parse_beside("sex", "Female", {"sex": "categorical"})
    'Female'
    """
    parser = QueryParser(text, kinds)
    parser.beside = column
    conditions = parser.conditions_alone()
    others = [name for name, _ in conditions if name != column]
    if others:
        raise parser.fail(f"a condition on {others[0]!r} beside the name of {column!r}", parser.tokens[0])
    return conditions[0][1]


def parse_event(
    text: str, kinds: Mapping[str, str] | None = None, aside: Mapping[str, str] | None = None
) -> tuple[Conditions, tuple[Comparison, ...]]:
    """Read conditions and comparisons of columns, such as ``age >= 40, arrival > departure``.

    Parameters and errors are those of `parse_query`.

    Examples
    --------
    >>> conditions, compared = parse_event("age >= 40, arrival > departure", {"age": "integer", "arrival": "integer",
    ...                                                                       "departure": "integer"})
    >>> conditions[0][0], str(compared[0])
    ('age', 'arrival > departure')
    """
    parser = QueryParser(text, kinds, aside)
    parser.compared = []
    return parser.conditions_alone(), tuple(parser.compared)


class QueryParser(ConditionParser):
    """Queries, and conditions that stand alone."""

    def query(self) -> Query:
        """The whole text as a query."""
        function = self.function()
        column: str | None = None
        levels: tuple[float, ...] = ()
        event: Conditions = ()
        of: Sum | None = None
        other: str | None = None
        compared: tuple[Comparison, ...] = ()
        if function == "P" and self.is_of_column():
            column = self.column()
        elif function in ("P", "logp"):
            self.compared = [] if function == "P" else None
            event = self.conditions("an event")
            compared, self.compared = tuple(self.compared or ()), None
        elif function in ("E", "Var", "Sd"):
            of = self.sum_of_columns()
            column, of = (of.terms[0][1], None) if of.is_column else (None, of)
        elif function in ("Cov", "Corr"):
            column = self.column()
            self.expect(",", f"{function} is of two columns: {function}(a, b | evidence)")
            other = self.column()
        else:
            column = self.column()
            if self.is_symbol("+", "-", "*", "/"):
                raise self.no_sums(function)
            levels = self.levels() if function == "Q" else ()
        evidence = self.evidence(function)
        if self.token.sort != "end":
            hint = "evidence goes inside, after a bar '|'"
            raise self.fail(f"expected nothing more, found {self.shown_token()}", hint=hint)
        return Query(function, column, levels, event, evidence, of, other, compared)

    def no_sums(self, function: str) -> QuerySyntaxError:
        """The error that a function is of one column."""
        hint = "sums of columns have E, Var and Sd; names with dashes or spaces are quoted: `a-b`"
        return self.fail(f"{function} is of one column, found {self.shown_token()}", hint=hint)

    def function(self) -> str:
        """Read a function's name and the bracket after it."""
        names = {name.lower(): name for name in FUNCTIONS}
        token = self.token
        if token.sort != "word" or not self.is_symbol("(", ahead=1):
            hint = f"one of {', '.join(FUNCTIONS)} with brackets, such as P(income = '>50K' | age >= 40)"
            raise self.fail("expected a query", hint=hint)
        name = names.get(str(token.value).lower())
        if name is None:
            meant = _OTHER_NAMES.get(str(token.value).lower())
            hint = f"did you mean {meant!r}?" if meant else near(token.value, FUNCTIONS)
            raise self.fail(f"no function is called {token.value!r}", hint=hint)
        self.advance()
        self.advance()
        return name

    def is_of_column(self) -> bool:
        """Whether ``P`` is asked of a column (its distribution) rather than of an event."""
        return self.is_column_name() and self.is_symbol("|", ")", ahead=1)

    def sum_of_columns(self) -> Sum:
        """Read a sum that has a column."""
        start = self.token
        total = self.sum()
        if not total.terms:
            raise self.fail("a sum without a column", start, "name a column, such as E(a - b | evidence)")
        return total

    def levels(self) -> tuple[float, ...]:
        """Read the levels of the quantiles of ``Q``."""
        levels = []
        hint = "write Q(column, 0.05, 0.5, 0.95 | evidence)"
        while self.takes(","):
            if self.token.sort != "number":
                raise self.fail(f"expected a level such as 0.95, found {self.shown_token()}", hint=hint)
            if not 0 < float(self.token.value) < 1:
                raise self.fail("a quantile's level is more than 0 and less than 1", hint=hint)
            levels.append(float(self.advance().value))
        if not levels:
            raise self.fail("Q needs the levels of the quantiles", hint=hint)
        return tuple(levels)

    def evidence(self, function: str) -> Conditions:
        """Read the evidence after the bar, if there is any, and the closing bracket."""
        evidence: Conditions = ()
        if self.takes("|"):
            if self.is_symbol(")"):
                raise self.fail("no evidence after the bar", hint="leave the bar out, or give a condition")
            evidence = self.conditions("evidence")
            if self.is_symbol("|"):
                raise self.fail("a second bar '|'", hint="join the evidence by ',' or 'and'")
        elif self.is_symbol(",") or self.token.sort == "word":
            hint = f"evidence goes after a bar: {function}(column | evidence)"
            raise self.fail(f"expected '|' or ')', found {self.shown_token()}", hint=hint)
        self.expect(")", "each '(' needs its ')'")
        return evidence

    def conditions_alone(self) -> Conditions:
        """The whole text as conditions."""
        conditions = self.conditions("a condition")
        if self.is_symbol("|"):
            raise self.fail("a bar '|' has no place in conditions", hint="it belongs in queries: P(event | evidence)")
        if self.token.sort != "end":
            raise self.fail(f"expected ',' or 'and', found {self.shown_token()}", hint=self.quoting_hint())
        return conditions


# ---- Conditions as people read them; the text may not read back as the same conditions.


def with_shown_numbers(text: str) -> str:
    """A text of conditions in which numbers have the digits that people read."""
    pieces, start = [], 0
    for token in tokenize(text):
        if isinstance(token.value, float):
            pieces += [text[start : token.start], shown_number(token.value)]
            start = token.stop
    return "".join([*pieces, text[start:]])
