"""A warning of levels that were never seen at learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ground.warnings import UnseenLevelWarning, warn
from .cells import FrameReader
from .libraries import read
from .schema import Schema


def warn_unseen(schema: Schema, frame: Any, unseen: np.ndarray) -> None:
    """One warning that names the columns and the levels; ``unseen`` (n, d) as `table.frames.encode` marks them.

    Another one if there are cells in columns of which nothing was known at learning.
    """
    if not unseen.any() and not schema.unknown:
        return
    reader = read(frame)
    _warn_unknown(schema, reader)
    if not unseen.any():
        return
    parts = []
    for j in np.flatnonzero(unseen.any(axis=0)):
        name = f"x{schema.places[j]}" if reader.frame == "numpy" else schema.names[j]
        cells = reader.cells(name)
        rows = unseen[:, j]
        found = cells.values[rows].tolist() if cells.codes is None else [cells.labels[k] for k in cells.codes[rows]]
        levels = list(dict.fromkeys(found))
        shown = ", ".join(repr(level) for level in levels[:5]) + (", ..." if len(levels) > 5 else "")
        parts.append(f"{schema.names[j]!r}: {shown} ({int(rows.sum())} cells)")
    warn(UnseenLevelWarning("levels never seen at learning count as missing: " + "; ".join(parts)))


def _warn_unknown(schema: Schema, reader: FrameReader) -> None:
    """Warn of columns that have known cells, but had none at learning."""
    names = [(f"x{place}" if reader.frame == "numpy" else column.name, column.name) for place, column in schema.unknown]
    told = [name for own, name in names if own in reader.names and not reader.cells(own).missing.all()]
    if told:
        shown = ", ".join(map(repr, told[:5])) + (f" and {len(told) - 5} more" if len(told) > 5 else "")
        warn(UnseenLevelWarning(f"all cells were missing at learning, so that these say nothing: {shown}"))
