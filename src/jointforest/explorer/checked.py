"""Cells of a table that are probably wrong, as pages show them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from ..inference.check.result import Check

SUSPICIOUS = 0.5
"""Probability of being wrong from which on a cell is shown."""


class Checked(NamedTuple):
    """The check of a table, and its warnings."""

    found: Check
    notes: list[str]


def check_with_notes(joint: Any, frame: Any) -> Checked:
    """`Joint.check`, whose warnings are part of what is shown."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        found = joint.check(frame)
    return Checked(found, list(dict.fromkeys(str(n.message) for n in notes if issubclass(n.category, UserWarning))))


def suspicious(cells: Any, k: int) -> list[dict[str, Any]]:
    """The first k of `Check.cells` that are more probably wrong than right."""
    rows = cells.tolist() if isinstance(cells, np.ndarray) else nw.from_native(cells).head(k).rows()
    names = ("row", "column", "value", "p_wrong", "best", "p_best", "reason")
    found = [dict(zip(names, row, strict=True)) for row in rows[:k]]
    return [cell for cell in found if cell["p_wrong"] >= SUSPICIOUS]
