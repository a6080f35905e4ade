"""The one error of the language: what is wrong, where, and what to do."""

from __future__ import annotations

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
        return f"{self.problem} at position {self.position + 1}{hint}\n    {shown}\n    {' ' * (column - start)}^"
