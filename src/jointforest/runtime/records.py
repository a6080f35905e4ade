"""Records: NamedTuples of arrays and numbers that kernels take by reference."""

# This module does not import numba, so that a schema can be read without loading it.

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_marked: list[type] = []
_followers: list[Callable[[type], None]] = []


def record(cls: Class) -> Class:
    """Mark a NamedTuple class: kernels get one pointer to its fields (`runtime.compile`)."""
    _marked.append(cls)
    for tell in _followers:
        tell(cls)
    return cls


def follow(tell: Callable[[type], None]) -> None:
    """Call ``tell`` with every class that is, or will be, marked."""
    _followers.append(tell)
    for cls in _marked:
        tell(cls)
