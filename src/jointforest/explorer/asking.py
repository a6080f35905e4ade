"""What the pages of one kind of joint may ask, and whether an answer is still wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Questions(NamedTuple):
    """What the pages of one kind of joint ask.

    asks : dict. What answers each question, by name.
    prepare : callable. Works out, once, what the questions need.
    waits : bool. Whether a question waits until this is done; otherwise it works out what it needs.
    compile_ahead : callable or None. Compiles what the buttons of a page ask; None if nothing is left to compile.
    """

    asks: dict[str, Callable[..., Any]]
    prepare: Callable[[Any], None]
    waits: bool
    compile_ahead: Callable[[Any], None] | None


class Overtaken(Exception):
    """Nobody waits for the answer any more."""


def always() -> bool:
    """Whether a question is still wanted, of those that nothing overtakes."""
    return True
