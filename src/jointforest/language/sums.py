"""Sums of columns, and comparisons of them: read, and written out."""

from __future__ import annotations

from dataclasses import dataclass

from .cursor import Cursor
from .errors import QuerySyntaxError
from .render import column_text, number_text

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Sum:
    """sum of coefficient * column, plus a constant.

    Attributes
    ----------
    terms : tuple of (float, str)
        Coefficients, none of them 0, and columns, each once.
    constant : float

    Examples
    --------
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
        parts = [(c, column_text(name) if abs(c) == 1.0 else f"{number_text(abs(c))} * {column_text(name)}")
                 for c, name in self.terms]  # fmt: skip
        if self.constant or not parts:
            parts.append((self.constant, number_text(abs(self.constant))))
        text = "".join(f" {'-' if c < 0 else '+'} {part}" for c, part in parts)
        return text[3:] if text.startswith(" + ") else "-" + text[3:]


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
        sign = self._sign(1.0)
        while True:
            coefficient, name = self._term(of_values)
            if name is None:
                constant += sign * coefficient
            else:
                terms.append((sign * coefficient, name))
            if not self.is_symbol("+", "-"):
                return _collected(terms, constant)
            sign = self._sign(1.0)

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

    def _sign(self, sign: float) -> float:
        while self.is_symbol("+", "-"):
            sign *= -1.0 if self.advance().value == "-" else 1.0
        return sign

    def _term(self, of_values: bool) -> tuple[float, str | None]:
        """A coefficient and a column, or a number."""
        token = self.token
        if token.sort == "number":
            self.advance()
            if not self.is_symbol("*"):
                return float(token.value), None
            self.advance()
            return float(token.value), self._summand(of_values)
        name = self._summand(of_values)
        if not self.is_symbol("*", "/"):
            return 1.0, name
        by = str(self.advance().value)
        factor = self.token
        if factor.sort != "number" or not float(factor.value):
            raise self.fail(f"expected a number other than 0 after '{by}', found {self.found()}")
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
