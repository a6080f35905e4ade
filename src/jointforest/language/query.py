"""A query, read."""

from __future__ import annotations

from dataclasses import dataclass

from .combine import Conditions
from .render import column_text, conditions_text

FUNCTIONS = ("P", "E", "Var", "Sd", "Q", "Median", "Mode", "logp")


@dataclass(frozen=True)
class Query:
    """One question.

    Attributes
    ----------
    function : str
        One of `FUNCTIONS`.
    column : str or None
        The column asked for; None where `event` is.
    levels : tuple of float
        Levels of the quantiles of ``Q``.
    event : tuple of (str, condition)
        What ``P`` or ``logp`` is of; empty if `column` is given.
    evidence : tuple of (str, condition)
        What is known.

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

    def __str__(self) -> str:
        what = conditions_text(self.event) if self.column is None else column_text(self.column)
        levels = "".join(f", {level!r}" for level in self.levels)
        evidence = f" | {conditions_text(self.evidence)}" if self.evidence else ""
        return f"{self.function}({what}{levels}{evidence})"
