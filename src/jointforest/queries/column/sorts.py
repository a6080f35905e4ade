"""Which questions a column can be asked: numbers or levels."""

from __future__ import annotations

from ...table.schema import Schema


def need_numbers(schema: Schema, j: int) -> None:
    """A ValueError if column j is not numeric."""
    column = schema.columns[j]
    if column.is_categorical:
        raise ValueError(f"column {column.name!r} is {column.kind}: this question needs numbers; ask for its levels")


def need_levels(schema: Schema, j: int) -> None:
    """A ValueError if column j is not categorical."""
    column = schema.columns[j]
    if not column.is_categorical:
        raise ValueError(f"column {column.name!r} is {column.kind}: it has no levels; ask for mean, cdf or quantile")
