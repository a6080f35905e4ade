"""Text to rules between columns."""

# Grammar, beside that of `parser`::
#
#     rule    = names "->" column | column "<->" column              a function of columns
#             | "combinations" "(" names ")"                         only the combinations in the table exist
#             | (column "=" sum | sum "=" column) ["within" number]  an equation
#             | column ("<" | "<=" | ">" | ">=") column              an order
#             | names "missing" "together"                           in the same rows
#             | column "missing" "iff" where                         in these rows, and no others
#             | column "missing" "if" where                          in these rows, and perhaps others
#     where   = column "=" value | column "in" "{" value {"," value} "}"
#             | "(" names ")" "in" "{" tuple {"," tuple} "}"
#     tuple   = "(" value {"," value} ")"
#     names   = column {"," column}

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ..data.rules.rule import Combinations, Equation, Function, MissingTogether, MissingWhere, Order, Rule
from .parser import QuerySyntaxError, SumReader, Value, date_at, wrong_date

_HINT = (
    "rules are: start <= end; total = net + tax; city -> country; code <-> name; combinations(country, city); "
    "delay, reason missing together; delay missing iff state = cancelled"
)
_WITHIN = "write mean = low / 2 + high / 2 within 0.01"
_BOUND = "a rule is between columns; bounds of one column are conditions of questions: P(a > 3 | b <= 5)"
_CUT = "names with dots, dashes or spaces stand in backticks: `pm2.5` <= limit"
_ONE_EACH = "give one rule for each statement"
_One = TypeVar("_One")


def rule(text: str) -> Rule:
    """A rule between columns, to be declared to a learner.

    Parameters
    ----------
    text : str
        One of

        - ``start <= end`` or ``start < end``: an order of numbers or dates;
        - ``total = net + 0.5 * fee + 3``: a column is a sum of others, rounded to its grid;
          ``mean = low / 2 + high / 2 within 0.01``: cells are rounded, and may miss the sum by so much;
        - ``city -> country`` or ``origin, target -> distance``: a function; ``code <-> name``: in both directions;
        - ``combinations(country, city)``: only the combinations of values that the table has exist;
        - ``delay, reason missing together``: cells are missing in the same rows;
        - ``delay missing iff state = cancelled``, or ``in {cancelled, diverted}``: in these rows and in no others;
        - ``shoe_size missing if runs = no``: in these rows, where the question does not apply, and perhaps in others.

        Names with spaces stand in backticks. Dates count in seconds: ``end = start + 60 * minutes``.

    Raises
    ------
    QuerySyntaxError
        With the place of the fault, and a hint.

    Examples
    --------
    >>> str(rule("end >= start"))
    'start <= end'
    >>> rule("total = net + tax").columns
    ('total', 'net', 'tax')
    """
    if not isinstance(text, str):
        raise TypeError(f"rule: expected a text such as 'start <= end', got {type(text).__name__}")
    if not text.strip():
        raise QuerySyntaxError("the rule is empty", text, 0, _HINT)
    try:
        return _RuleReader(text, None).whole()
    except QuerySyntaxError as error:
        if text[error.position : error.position + 1] == ";":
            error = QuerySyntaxError("';' does not join rules", text, error.position, _ONE_EACH)
        raise error from None


class _RuleReader(SumReader):
    """Recursive descent; one method a part of the grammar."""

    def whole(self) -> Rule:
        """The text as one rule."""
        start = self.token
        found = self._combinations() or self._about_names() or self._compared()
        if self.is_symbol(",") or self.is_keyword("and"):
            raise self.fail(f"expected one rule, found {self.shown_token()} after it", hint=_ONE_EACH)
        if self._is_cut_name():
            raise self.fail(f"expected nothing more, found {self.shown_token()}", hint=_CUT)
        if self.token.sort == "word":
            hint = (
                "names with spaces stand in backticks: total = net + `local tax`; in a shell, quote the rule with '...'"
            )
            raise self.fail(f"expected nothing more, found {self.shown_token()}", hint=hint)
        if self.token.sort != "end":
            raise self.fail(f"expected nothing more, found {self.shown_token()}", hint=_HINT)
        if len(set(found.columns)) < len(found.columns):
            raise self.fail("a rule names each column once", start)
        return found

    def _is_cut_name(self) -> bool:
        """Whether the next token follows a bare word without a space, as after the dot of a name."""
        before = self.tokens[self.at - 1] if self.at else self.token
        return before.sort == "word" and before.stop == self.token.start and self.text[before.stop :][:1] == "."

    def _combinations(self) -> Rule | None:
        if not (self.is_keyword("combinations") and self.is_symbol("(", ahead=1)):
            return None
        self.advance()
        of = self._bracketed(self.column)
        if len(of) < 2:
            raise self.fail("combinations are of two columns or more", hint=_HINT)
        return Combinations(of=of)

    def _about_names(self) -> Rule | None:
        """A function, or which cells are missing; None where no such rule stands, with the cursor where it was."""
        at = self.at
        if not self.is_column_name():
            return None
        names = self._listed(self.column)
        if self.is_symbol("-") and self.is_symbol(">", ahead=1):
            self.at += 2
            return Function(of=names, column=self.column())
        if self.is_symbol("<") and self.is_symbol("-", ahead=1) and self.is_symbol(">", ahead=2):
            self.at += 3
            if len(names) > 1:
                raise self.fail("'<->' stands between two columns", hint="write a, b -> c")
            return Function(of=names, column=self.column(), is_mutual=True)
        if self.is_keyword("missing") and self.is_keyword("together", ahead=1):
            self.at += 2
            if len(names) < 2:
                raise self.fail("one column is not missing together with others", hint="write a, b missing together")
            return MissingTogether(of=names)
        if self.is_keyword("missing") and any(self.is_keyword(word, ahead=1) for word in ("iff", "if")):
            is_mutual = self.is_keyword("iff", ahead=1)
            self.at += 2
            if len(names) > 1:
                raise self.fail("'missing iff' is about one column", hint="write a rule for each column")
            return replace(self._where(names[0]), is_mutual=is_mutual)
        self.at = at
        return None

    def _where(self, column: str) -> MissingWhere:
        """What follows ``missing iff``, or ``missing if``."""
        if self.is_symbol("("):
            of = self._bracketed(self.column)
            self._go_past_in()
            return MissingWhere(column=column, of=of, values=self._within_braces(lambda: self._values_of(len(of))))
        of = (self.column(),)
        if self.is_symbol("="):
            self.advance()
            return MissingWhere(column=column, of=of, values=((self.value(),),))
        if self.is_symbol("<=", ">="):
            is_upper = str(self.advance().value) == "<="
            end = self.value()
            if isinstance(end, str | bool):
                raise self.fail(f"expected a number after the comparison, found {end!r}", hint=_HINT)
            return MissingWhere(column=column, of=of, values=((None, end) if is_upper else (end, None),))
        self._go_past_in()
        return MissingWhere(column=column, of=of, values=self._within_braces(lambda: (self.value(),)))

    def _compared(self) -> Rule:
        """An equation or an order."""
        start = self.token
        self._refuse_constants()
        left = self.sum()
        if not self.is_symbol("=", "<", "<=", ">", ">="):
            hint = _CUT if self._is_cut_name() else _HINT
            raise self.fail(f"expected a rule, found {self.shown_token()}", hint=hint)
        op = str(self.advance().value)
        if self.is_symbol("<", ">"):
            raise self.fail(f"there is no comparison '{op}{self.token.value}'", hint="write a >= b, a <= b, or a -> b")
        right = self.sum()
        if self.is_symbol("=", "<", "<=", ">", ">="):
            raise self.fail("a chain of comparisons is several rules", hint="give one rule for each of them")
        if op == "=":
            of, other = (left, right) if left.is_column else (right, left)
            if not of.is_column or not other.terms:
                hint = "write total = net + tax"
                raise self.fail(
                    "an equation has one column on one side, and a sum of columns on the other", start, hint
                )
            terms, constant, tolerance = other.terms, other.constant, self._tolerance()
            return Equation(column=of.terms[0][1], terms=terms, constant=constant, tolerance=tolerance)
        bounded = left if left.is_column else right
        if bounded.is_column and not (left.terms and right.terms):
            bound = left if bounded is right else right
            name = bounded.terms[0][1]
            raise self.fail(f"column {name!r}: expected another column beside it, got {bound}", start, _BOUND)
        if not (left.is_column and right.is_column):
            raise self.fail("an order is of two columns as they are", start, "write start <= end")
        low, high = (left, right) if op[0] == "<" else (right, left)
        return Order(low=low.terms[0][1], high=high.terms[0][1], is_strict=len(op) == 1)

    def _refuse_constants(self) -> None:
        """An error if the text compares a column with a date or another text, which a rule does not."""
        for at, token in enumerate(self.tokens):
            date = date_at(self.text, token.start + (token.sort == "string"))
            if token.sort != "string" and not (token.sort == "number" and date):
                continue
            self.at = at
            column = self.column_of_value(max(token.stop, token.start + len(date)))
            of, value = f"column {column!r}: " if column is not None else "", date or str(token.value)
            if date and wrong_date(date):
                what = f"{of}expected a date or time such as '2024-03-01 12:30', got {value!r}"
                raise self.fail(what, token, wrong_date(date))
            raise self.fail(f"{of}expected another column beside it, got {value!r}", token, _BOUND)

    def _tolerance(self) -> float:
        """The number after ``within``; 0 where this word does not stand."""
        if not self.is_keyword("within"):
            return 0.0
        self.advance()
        token = self.token
        if token.sort != "number" or not 0.0 < float(token.value) < math.inf:
            raise self.fail(f"expected a number above 0 after 'within', found {self.shown_token()}", hint=_WITHIN)
        self.advance()
        return float(token.value)

    def _values_of(self, n: int) -> tuple[Value, ...]:
        values = self._bracketed(self.value)
        if len(values) != n:
            raise self.fail(f"expected {n} values in brackets, got {len(values)}")
        return values

    def _go_past_in(self) -> None:
        if not self.is_keyword("in"):
            raise self.fail(
                f"expected '=', '<=', '>=' or 'in', found {self.shown_token()}", hint="write a missing iff b in {x, y}"
            )
        self.advance()

    def _listed(self, read: Callable[[], _One]) -> tuple[_One, ...]:
        found = [read()]
        while self.is_symbol(","):
            self.advance()
            found.append(read())
        return tuple(found)

    def _bracketed(self, read: Callable[[], _One]) -> tuple[_One, ...]:
        self.expect("(")
        found = self._listed(read)
        self.expect(")")
        return found

    def _within_braces(self, read: Callable[[], _One]) -> tuple[_One, ...]:
        self.expect("{")
        found = self._listed(read)
        self.expect("}")
        return found
