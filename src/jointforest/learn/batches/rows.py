"""Rows of a batch, once the schema of the table is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...table.cells import FrameReader
from ...table.frames import encode_cells
from ...table.libraries import read
from ...table.schema import Schema, kernel_columns
from ...trees.ranks import snap
from .sample import held


class BatchRows(NamedTuple):
    """Rows of a batch: as they were read, and their cells, float64 (n, d), grid columns snapped."""

    reader: FrameReader
    X: np.ndarray


def cells_of(schema: Schema, batch: Any, ignored: str | None = None) -> BatchRows:
    """The rows of a batch, which may have one column more.

    Raises
    ------
    ValueError
        If it has levels that the table did not have when it was looked at.
    """
    reader = held(read(batch))
    X, unseen = encode_cells(schema, reader, () if ignored is None else (ignored,))
    if unseen.any():
        name = schema.names[int(np.argmax(unseen.any(axis=0)))]
        raise ValueError(
            f"column {name!r} has a level that it did not have when the table was looked at; "
            "the source must give the same rows at each call"
        )
    return BatchRows(reader, snap(kernel_columns(schema), X))


def check_number(n: int, found: int) -> None:
    """Raise ValueError if a source gave other rows than before."""
    if found != n:
        raise ValueError(
            f"the source gave {n} rows at first and {found} later; it must give the same rows at each call"
        )
