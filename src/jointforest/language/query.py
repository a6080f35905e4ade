"""A query, read."""

from __future__ import annotations

from dataclasses import dataclass

from .combine import Conditions
from .render import column_text, conditions_text
from .sums import Comparison, Sum

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
