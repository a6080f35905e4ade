"""Conditions: the part of the grammar that events and evidence share."""

from __future__ import annotations

from ..table.conditions import Interval, has_soft
from ..table.missing import Missing
from ..table.soft_conditions import About, Likely, about, likely
from .combine import Condition, Conditions, Value, any_of, merge, negate
from .errors import QuerySyntaxError
from .sums import OPERATORS, Comparison, SumReader
from .tokens import Token

_DEEPEST = 50
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_CLOSING = {"{": "}", "(": ")", "[": "]"}


class ConditionParser(SumReader):
    """Recursive descent: one method a rule of the grammar (see `parser`)."""

    depth = 0
    compared: list[Comparison] | None = None
    """Comparisons of columns met so far; None where they have no place."""

    def conditions(self, what: str) -> Conditions:
        """Clauses joined by commas."""
        if self.token.sort == "end":
            raise self.fail(f"expected {what}", hint="such as age >= 40")
        clauses = [self.clause()]
        while self.is_symbol(","):
            self.advance()
            clauses.append(self.clause())
        if not (self.token.sort == "end" or self.is_symbol("|", ")")):
            raise self.fail(f"expected ',' or 'and', found {self.found()}", hint=self.quoting_hint())
        return merge(clauses)

    def clause(self) -> Conditions:
        """Conditions joined by ``or``, all on one column."""
        start = self.token
        found = [self.all()]
        while self.is_keyword("or"):
            self.advance()
            found.append(self.all())
        if len(found) == 1:
            return found[0]
        if not all(found):
            raise self.fail("a comparison of columns is not joined by 'or'", start, "ask for the parts, and add up")
        return self.on_one_column(start, found, "or", "P(A or B) = P(A) + P(B) - P(A, B)")

    def all(self) -> Conditions:
        """Conditions joined by ``and``."""
        found = [self.part()]
        while self.is_keyword("and"):
            self.advance()
            found.append(self.part())
        return merge(found)

    def part(self) -> Conditions:
        """A condition, its opposite, or conditions in brackets."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fail(f"brackets and 'not' more than {_DEEPEST} deep")
        start = self.token
        if self.is_keyword("not"):
            self.advance()
            found = self.part()
            if not found:
                raise self.fail("a comparison of columns has no 'not' before it", start, "turn it round: a <= b")
            if len(found) > 1:
                raise self.across_columns(start, found, "not", "P(not A) = 1 - P(A)")
            found = ((found[0][0], negate(found[0][1])),)
        elif self.is_symbol("("):
            self.advance()
            found = self.conditions("a condition")
            self.expect(")", "each '(' needs its ')'")
        elif (comparison := self.comparison()) is not None:
            self.compare(comparison, start)
            found = ()
        else:
            found = (self.condition(),)
        self.depth -= 1
        return found

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

    def on_one_column(self, start: Token, found: list[Conditions], word: str, answer: str) -> Conditions:
        """Conditions of which any may hold; an error at ``start`` if they are on several columns."""
        columns = {column for conditions in found for column, _ in conditions}
        if len(columns) > 1:
            raise self.across_columns(start, merge(found), word, answer)
        return ((columns.pop(), any_of([conditions[0][1] for conditions in found])),)

    def across_columns(self, start: Token, found: Conditions, word: str, answer: str) -> QuerySyntaxError:
        """The error that a word joins several columns; ``answer`` is how to ask instead."""
        names = ", ".join(repr(column) for column, _ in found[:4])
        hint = f"ask for the parts and combine them: {answer}"
        return self.fail(f"'{word}' over different columns ({names}) is not a region of one column", start, hint)

    def condition(self) -> tuple[str, Condition]:
        """One condition; ``column`` may stand after a value, as in ``40 <= age < 60``."""
        if self.token.sort in ("number", "string") or self.is_symbol("+", "-"):
            return self.turned()
        start = self.token
        column = self.column()
        if self.is_symbol(*_TURNED):
            op = str(self.advance().value)
            condition = self.against(op, self.value())
            if self.is_symbol(*_TURNED):
                raise self.fail("a chain of comparisons starts with a value", hint=f"write 40 <= {column} < 60")
            return column, condition
        if self.is_keyword("not") and self.is_keyword("in", "between", ahead=1):
            self.advance()
            return column, negate(self.membership())
        if self.is_keyword("in", "between"):
            return column, self.membership()
        if self.is_keyword("is"):
            return column, self.missing()
        if self.is_keyword("about"):
            return column, self.measured(column)
        if self.is_keyword("likely"):
            return column, self.likelihoods(column)
        return column, self.lone(start, column)

    def lone(self, start: Token, column: str) -> Condition:
        """A column with nothing after it is a boolean that is true."""
        if not (self.token.sort == "end" or self.is_symbol(",", ")", "|") or self.is_keyword("and", "or")):
            hint = "a condition is: column = value, column in {...}, column between a and b"
            raise self.fail(f"expected a comparison after {column!r}, found {self.found()}", hint=hint)
        if self.kinds is not None and self.kinds[column] != "boolean":
            hint = f"only a boolean column stands alone; write {column} = value"
            raise self.fail(f"{column!r} is {self.kinds[column]}, not boolean", start, hint)
        return True

    def turned(self) -> tuple[str, Condition]:
        """A condition that starts with a value: ``40 <= age``, ``40 <= age < 60``."""
        low = self.value()
        if not self.is_symbol(*_TURNED):
            raise self.fail(f"expected a comparison, found {self.found()}", hint="write age >= 40, or 40 <= age < 60")
        first = str(self.advance().value)
        column = self.column()
        if not self.is_symbol(*_TURNED):
            return column, self.against(_TURNED[first], low)
        if first[0] not in "<>" or str(self.token.value)[0] != first[0]:
            raise self.fail("the two comparisons of a chain point the same way", hint=f"write 40 <= {column} < 60")
        second = str(self.advance().value)
        high = self.value()
        closed = ("=" in first, "=" in second)
        if first[0] == ">":
            low, high, closed = high, low, closed[::-1]
        return column, _interval(low, high, *closed)

    def membership(self) -> Condition:
        """What follows a column: ``between`` two values, or ``in`` a list of them."""
        if self.is_keyword("between"):
            self.advance()
            low = self.value()
            if not self.is_keyword("and"):
                raise self.fail(f"expected 'and', found {self.found()}", hint="write column between 40 and 60")
            self.advance()
            return _interval(low, self.value(), True, True)
        self.advance()
        opening = str(self.token.value)
        if not self.is_symbol(*_CLOSING):
            raise self.fail(f"expected a list of values, found {self.found()}", hint="write column in {a, b}")
        self.advance()
        if self.is_symbol(_CLOSING[opening]):
            raise self.fail("an empty list of values", hint="give at least one value")
        values = [self.value()]
        while self.is_symbol(","):
            self.advance()
            values.append(self.value())
        self.expect(_CLOSING[opening], f"values are joined by ','; the list ends with '{_CLOSING[opening]}'")
        return any_of(values)

    def missing(self) -> Condition:
        """What follows a column: ``is missing``, ``is not missing``."""
        self.advance()
        is_not = self.is_keyword("not")
        if is_not:
            self.advance()
        if not self.is_keyword("missing"):
            hint = "write column is missing, column is not missing; column = value"
            raise self.fail(f"expected 'missing', found {self.found()}", hint=hint)
        self.advance()
        return negate(Missing()) if is_not else Missing()

    def measured(self, column: str) -> About:
        """What follows a column: ``about`` a value, and the standard deviation ``sd``."""
        self.advance()
        value, hint = self.value(), f"write {column} about 40 sd 2"
        if not self.is_keyword("sd"):
            raise self.fail(f"expected 'sd', found {self.found()}", hint=hint)
        self.advance()
        start = self.token
        try:
            return about(value, self.value())
        except (TypeError, ValueError) as error:
            raise self.fail("sd is a number above 0", start, hint) from error

    def likelihoods(self, column: str) -> Likely:
        """What follows a column: ``likely`` and the likelihoods of values, or of conditions on the column."""
        start, hint = self.advance(), f"write {column} likely {{a: 0.7, b: 0.3, others: 0.1}}"
        self.expect("{", hint)
        found: dict[Condition, float] = {}
        others = 0.0
        while True:
            key = self.token
            is_others = self.is_keyword("others") and self.is_symbol(":", ahead=1)
            said = self.advance().value if is_others else self.outcome(column)
            if said in found and not is_others:
                raise self.fail("a second likelihood of one value", key)
            self.expect(":", hint)
            if self.token.sort != "number":
                raise self.fail(f"expected a likelihood, found {self.found()}", hint=hint)
            likelihood = float(self.advance().value)
            if is_others:
                others = likelihood
            else:
                found[said] = likelihood
            if not self.is_symbol(","):
                break
            self.advance()
        self.expect("}", "likelihoods are joined by ','; they end with '}'")
        try:
            return likely(found, others)
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

    def against(self, op: str, value: Value) -> Condition:
        """Condition that a column stands in a relation to a value."""
        if op == "=":
            return value
        if op == "!=":
            return negate(value)
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
