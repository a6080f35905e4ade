"""Conditions as people read them; the text may not read back as the same conditions."""

from __future__ import annotations

from ..data.texts import shown_number
from .parser import tokenize


def with_shown_numbers(text: str) -> str:
    """A text of conditions in which numbers have the digits that people read."""
    pieces, start = [], 0
    for token in tokenize(text):
        if isinstance(token.value, float):
            pieces += [text[start : token.start], shown_number(token.value)]
            start = token.stop
    return "".join([*pieces, text[start:]])
