"""The rows of a table that the joint finds least probable, and which of their cells make them so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..explore.one_row import row
from ..explore.subject import Subject

UNLIKELY = 3.0
"""Nats from which on a cell is marked: 1 in 20."""
CELLS = 5
"""Cells that are shown of a row."""


def unusual_rows(subject: Subject, frame: Any, k: int) -> list[dict[str, Any]]:
    """The k rows of least log-density, the least first, each with its least likely cells."""
    density = np.asarray(subject.joint.log_density(frame))
    beside = replace(subject, rows=frame)
    found = []
    for i in np.argsort(density, kind="stable")[:k].tolist():
        cells = [cell for cell in row(beside, {"row": i})["cells"] if cell["unlikely"] is not None]
        cells.sort(key=lambda cell: -cell["unlikely"])
        shown = [
            {
                "name": cell["name"],
                "text": cell["text"],
                "expected": cell["expected"],
                "is_odd": cell["unlikely"] >= UNLIKELY,
                "unlikely": f"{cell['unlikely']:.1f}",
            }
            for cell in cells[:CELLS]
        ]
        found.append({"number": i, "log_density": f"{density[i]:.2f}", "cells": shown})
    return found
