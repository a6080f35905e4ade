"""What every explanation is: rules as plain data, and as a table to print."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, repr=False)
class Explanation:
    """Rules with what belongs to them; made by `Posterior.explain` and `Joint.reverse`, which say what is in it.

    Attributes
    ----------
    rules : list of dict
        Plain data, the most important rule first.
    text : str
        The rules as a table; ``print(explanation)`` shows it.
    """

    rules: list[dict[str, Any]]
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return text_html(self.text)


def text_html(text: str) -> str:
    """Lines of text for notebooks, none broken: what is too wide is scrolled."""
    return f'<pre style="white-space:pre;overflow-x:auto;line-height:1.4;font-size:12px">{escape(text)}</pre>'
