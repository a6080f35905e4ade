"""Whether files can be put together to one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def check_schema(first: pa.Schema, schema: pa.Schema, first_file: str, file: str) -> None:
    """A ValueError if a file has other columns than the first one, or a column whose type is of another sort."""
    for name in first.names:
        if name not in schema.names:
            raise ValueError(f"{file}: there is no column {name!r}, which {first_file} has")
    for name in schema.names:
        if name not in first.names:
            raise ValueError(f"{file}: column {name!r} is not in {first_file}; all files need the same columns")
        expected, found = first.field(name).type, schema.field(name).type
        if len({_sort(expected), _sort(found)} - {"empty"}) > 1:
            raise ValueError(f"{file}: column {name!r} is of type {found}, in {first_file} it is {expected}")


def _sort(kind: pa.DataType) -> str:
    """What a column of this type holds, so far as columns of several types can be put together."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _sort(kind.value_type)
    if pa.types.is_null(kind):
        return "empty"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    return str(kind)
