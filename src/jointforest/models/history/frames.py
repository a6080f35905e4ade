"""Frames like the table of histories that was learned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ...data.csv_files import numbered
from ...data.frames import decode
from ...data.schema import Column
from .columns import HistoryColumns


def frame_of(
    columns: HistoryColumns,
    group: Column,
    subject: np.ndarray,
    time: np.ndarray | None,
    X: np.ndarray,
    counts: Mapping[str, np.ndarray] = MappingProxyType({}),
    first_new: int | None = None,
) -> Any:
    """A frame like the table of histories, behind columns of counts; ``subject`` holds cells of the column group."""
    schema = columns.frame_schema
    cells = {group.name: subject} | {name: X[:, j] for j, name in enumerate(columns.schema.names)}
    if columns.time is not None and time is not None:
        cells[columns.time.name] = time
    names = numbered([*schema.all_columns.names, *counts], doubt=False)[len(schema.all_columns.names) :]
    whole = "Int64" if schema.frame == "polars" else "int64"
    of_counts = tuple(Column(name, "integer", whole, 1.0) for name in names)
    of_frame = tuple(group if column.name == group.name else column for column in schema.columns)
    unknown = tuple((at + len(counts), column) for at, column in schema.unknown)
    return decode(
        replace(schema, columns=(*of_counts, *of_frame), unknown=unknown),
        np.column_stack([*counts.values(), *(cells[name] for name in schema.names)]),
        first_new,
    )
