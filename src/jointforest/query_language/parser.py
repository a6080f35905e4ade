"""Text to queries and conditions.

Grammar (keywords and functions in any case)::

    query     = "P" "(" (column | event) ["|" evidence] ")"          distribution of a column, or probability
              | "logp" "(" event ["|" evidence] ")"                  log-density
              | ("E" | "Var" | "Sd") "(" sum ["|" evidence] ")"
              | ("Median" | "Mode") "(" column ["|" evidence] ")"
              | ("Cov" | "Corr") "(" column "," column ["|" evidence] ")"
              | "Q" "(" column {"," number} ["|" evidence] ")"       quantiles, each level in (0, 1)
    event, evidence = clause {"," clause}
    clause    = all {"or" all}                                       all of it about one column
    all       = part {"and" part}
    part      = "not" part | "(" event ")" | condition
    condition = column op value | column ["not"] "between" value "and" value
              | column ["not"] "in" "{" value {"," value} "}"        also ( ) and [ ]
              | value op column [op value]                           40 <= age < 60
              | column "is" ["not"] "missing"
              | sum op sum                                           of columns; only in the event of P
              | column "about" value "sd" number                     soft evidence: a measurement,
              | column "likely" "{" entry {"," entry} "}"            or how likely what was seen is
    entry     = (value | condition | "others") ":" number            of a value, a condition on this column, the rest
              | column                                               a boolean column, true
    sum       = ["+" | "-"] term {("+" | "-") term}
    term      = [number "*"] column | column ("*" | "/") number | number
    op        = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">="
    column    = word | `..` | ".."                                   the quote doubled stands for itself
    value     = ["+" | "-"] number | '..' | ".." | word              true and false are booleans

``and`` binds tighter than ``or``, and ``or`` tighter than the comma. ``or`` joins conditions on one column only.
A query's result is a `Query`; conditions are pairs of a column and a condition of `jointforest.data.conditions`, one
pair a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..data.schema import near
from ..data.texts import column_text
from .conditions import Comparison, ConditionParser, Conditions, Sum
from .render import conditions_text
from .tokens import QuerySyntaxError

# ---- A query, read.

FUNCTIONS = ("P", "E", "Var", "Sd", "Cov", "Corr", "Q", "Median", "Mode", "logp")


@dataclass(frozen=True)
class Query:
    """One question.

    Attributes
    ----------
    function : str
        One of `FUNCTIONS`.
    column : str or None
        The column asked for; None where `event`, `sum` or `compared` is.
    levels : tuple of float
        Levels of the quantiles of ``Q``.
    event : tuple of (str, condition)
        What ``P`` or ``logp`` is of; empty if `column` is given.
    evidence : tuple of (str, condition)
        What is known.
    sum : Sum, optional
        What ``E``, ``Var`` or ``Sd`` is of, where it is no column.
    other : str, optional
        The second column of ``Cov`` and ``Corr``.
    compared : tuple of Comparison
        Comparisons of columns in the event of ``P``.

    Examples
    --------
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
    """Read a query such as ``P(income = '>50K' | age >= 40, sex = 'Female')``.

    Parameters
    ----------
    text : str
    kinds : mapping of str to str, optional
        The table's columns and their kinds; without it any column name is accepted.
    aside : mapping of str to str, optional
        Columns that take no part in the model, and why.

    Returns
    -------
    Query

    Raises
    ------
    QuerySyntaxError
        With the place of the fault, and a hint.

    Examples
    --------
    >>> parse_query("E(age | sex = Female)").column
    'age'
    """
    return QueryParser(text, kinds, aside).query()


def parse_conditions(
    text: str, kinds: Mapping[str, str] | None = None, aside: Mapping[str, str] | None = None
) -> Conditions:
    """Read conditions such as ``age >= 40 and sex = 'Female'``: pairs of a column and its condition.

    Parameters and errors are those of `parse_query`.

    Examples
    --------
    >>> parse_conditions("sex = Female")
    (('sex', 'Female'),)
    """
    return QueryParser(text, kinds, aside).conditions_alone()


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
        if function == "P" and self.is_lone_column():
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
            raise self.fail(f"expected nothing more, found {self.found()}", hint=hint)
        return Query(function, column, levels, event, evidence, of, other, compared)

    def no_sums(self, function: str) -> QuerySyntaxError:
        """The error that a function is of one column."""
        hint = "sums of columns have E, Var and Sd; names with dashes or spaces are quoted: `a-b`"
        return self.fail(f"{function} is of one column, found {self.found()}", hint=hint)

    def function(self) -> str:
        """Read a function's name and the bracket after it."""
        names = {name.lower(): name for name in FUNCTIONS}
        token = self.token
        if token.sort != "word" or not self.is_symbol("(", ahead=1):
            some = f"one of {', '.join(FUNCTIONS)} with brackets, such as P(income = '>50K' | age >= 40)"
            raise self.fail("expected a query", hint=some)
        name = names.get(str(token.value).lower())
        if name is None:
            raise self.fail(f"no function is called {token.value!r}", hint=near(token.value, FUNCTIONS))
        self.advance()
        self.advance()
        return name

    def is_lone_column(self) -> bool:
        """Whether ``P`` is asked of a column (its distribution) rather than of an event."""
        return self.is_column_name() and self.is_symbol("|", ")", ahead=1)

    def sum_of_columns(self) -> Sum:
        """Read a sum that has a column."""
        start = self.token
        found = self.sum()
        if not found.terms:
            raise self.fail("a sum without a column", start, "name a column, such as E(a - b | evidence)")
        return found

    def levels(self) -> tuple[float, ...]:
        """Read the levels of the quantiles of ``Q``."""
        levels = []
        hint = "write Q(column, 0.05, 0.5, 0.95 | evidence)"
        while self.is_symbol(","):
            self.advance()
            if self.token.sort != "number":
                raise self.fail(f"expected a level such as 0.95, found {self.found()}", hint=hint)
            if not 0 < float(self.token.value) < 1:
                raise self.fail("a quantile's level is more than 0 and less than 1", hint=hint)
            levels.append(float(self.advance().value))
        if not levels:
            raise self.fail("Q needs the levels of the quantiles", hint=hint)
        return tuple(levels)

    def evidence(self, function: str) -> Conditions:
        """Read the evidence after the bar, if there is any, and the closing bracket."""
        evidence: Conditions = ()
        if self.is_symbol("|"):
            self.advance()
            if self.is_symbol(")"):
                raise self.fail("no evidence after the bar", hint="leave the bar out, or give a condition")
            evidence = self.conditions("evidence")
            if self.is_symbol("|"):
                raise self.fail("a second bar '|'", hint="join the evidence by ',' or 'and'")
        elif self.is_symbol(",") or self.token.sort == "word":
            hint = f"evidence goes after a bar: {function}(column | evidence)"
            raise self.fail(f"expected '|' or ')', found {self.found()}", hint=hint)
        self.expect(")", "each '(' needs its ')'")
        return evidence

    def conditions_alone(self) -> Conditions:
        """The whole text as conditions."""
        conditions = self.conditions("a condition")
        if self.is_symbol("|"):
            raise self.fail("a bar '|' has no place in conditions", hint="it belongs in queries: P(event | evidence)")
        if self.token.sort != "end":
            raise self.fail(f"expected ',' or 'and', found {self.found()}", hint=self.quoting_hint())
        return conditions
