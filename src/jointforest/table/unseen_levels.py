"""A warning of levels that were never seen at learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ground.warnings import UnseenLevelWarning, warn
from .libraries import read
from .schema import Schema


def warn_unseen(schema: Schema, frame: Any, unseen: np.ndarray) -> None:
    """One warning that names the columns and the levels; ``unseen`` (n, d) as `table.frames.encode` marks them."""
    if not unseen.any():
        return
    reader = read(frame)
    parts = []
    for j in np.flatnonzero(unseen.any(axis=0)):
        name = f"x{j}" if reader.frame == "numpy" else schema.names[j]
        cells = reader.cells(name)
        rows = unseen[:, j]
        found = cells.values[rows].tolist() if cells.codes is None else [cells.labels[k] for k in cells.codes[rows]]
        levels = list(dict.fromkeys(found))
        shown = ", ".join(repr(level) for level in levels[:5]) + (", ..." if len(levels) > 5 else "")
        parts.append(f"{schema.names[j]!r}: {shown} ({int(rows.sum())} cells)")
    warn(UnseenLevelWarning("levels never seen at learning count as missing: " + "; ".join(parts)))
