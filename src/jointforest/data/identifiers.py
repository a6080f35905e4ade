"""Why a column is set aside, and how new identifiers are written."""

from __future__ import annotations

import random
from dataclasses import dataclass

NO_KINDS = ("identifier", "ignored")
"""How a user names columns that take no part in the model."""
REASONS = ("identifier", "free text", "too many levels", "unlike cells", "ignored")
SHAPE_CLASSES = (
    ("d", "0123456789"),
    ("h", "0123456789abcdef"),
    ("H", "0123456789ABCDEF"),
    ("a", "abcdefghijklmnopqrstuvwxyz"),
    ("A", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ("w", "0123456789abcdefghijklmnopqrstuvwxyz"),
    ("W", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
)
"""Classes of characters of which identifiers are made."""


@dataclass(frozen=True)
class SetAside:
    """Why a column takes no part in the model, and how new identifiers are written.

    reason : {"identifier", "free text", "too many levels", "unlike cells", "ignored"}
    n_distinct : int. Distinct values at learning.
    prefix, suffix : str. Text around the number of each identifier.
    width : int. Digits of the number, with zeros in front; 0 where there are none.
    first : int. Number of the first new identifier; -1 where identifiers hold no number.
    mask : str. Class of each character, where identifiers hold no number; ``\\`` stands before a constant character.
    """

    reason: str
    n_distinct: int
    prefix: str = ""
    suffix: str = ""
    width: int = 0
    first: int = -1
    mask: str = ""

    @property
    def in_words(self) -> str:
        """Why the column is set aside."""
        return {
            "identifier": f"names the rows ({self.n_distinct:,} distinct values)",
            "free text": f"is free text ({self.n_distinct:,} distinct texts)",
            "too many levels": f"has {self.n_distinct:,} levels, too many to learn",
            "unlike cells": f"has cells of unlike forms ({self.n_distinct:,} distinct texts)",
            "ignored": "was left out on request",
        }[self.reason]

    @property
    def is_left_empty(self) -> bool:
        """Whether drawn rows have no value of the column, and the user did not ask for this."""
        return self.reason in ("free text", "too many levels")

    def new(self, k: int) -> str:
        """The identifier of drawn row k. Counted ones are new; random ones are new but for a negligible probability."""
        if not self.mask:
            return f"{self.prefix}{max(self.first, 1) + k:0{self.width}d}{self.suffix}"
        chosen, out, i = random.Random(k), [], 0
        characters = dict(SHAPE_CLASSES)
        while i < len(self.mask):
            if self.mask[i] == "\\":
                i += 1
                out.append(self.mask[i])
            else:
                out.append(chosen.choice(characters[self.mask[i]]))
            i += 1
        return "".join(out)
