"""Levels of a model that takes no others."""

from __future__ import annotations

from typing import Any


class ClosedLevels(tuple[Any, ...]):
    """The levels of a feature of a model that refuses others, such as one behind an encoder that raises an error."""
