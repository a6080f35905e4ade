"""Which library a frame is of: frames taken apart and built again by its backend, imported only then."""

from __future__ import annotations

import os
from typing import Any

import narwhals as nw
import numpy as np

from .cells import FrameReader
from .schema import Schema


def read(frame: Any) -> FrameReader:
    """Take apart a pandas, polars or pyarrow table, a 2-D numpy array, or any eager frame that narwhals knows.

    Raises
    ------
    TypeError
        If it is no such frame, or a column has a type that is not supported.
    ValueError
        If two columns have the same name, or a name is not text.
    """
    if isinstance(frame, np.ndarray):
        from .backends import numpy as _numpy

        return _numpy.read(frame)
    if nw.dependencies.is_pandas_dataframe(frame):
        from .backends import pandas as _pandas

        return _pandas.read(frame)
    if nw.dependencies.is_polars_dataframe(frame):
        from .backends import polars as _polars

        return _polars.read(frame)
    if not nw.dependencies.is_pyarrow_table(frame):
        frame = _through_narwhals(frame)
    from .backends import arrow as _arrow

    return _arrow.read(frame)


def build(schema: Schema, X: np.ndarray) -> Any:
    """Frame of the library that the schema came from, of numbers and codes (n, d), best with contiguous columns."""
    if schema.frame == "pandas":
        from .backends import pandas as _pandas

        return _pandas.build(schema, X)
    if schema.frame == "polars":
        from .backends import polars as _polars

        return _polars.build(schema, X)
    if schema.frame == "pyarrow":
        from .backends import arrow as _arrow

        return _arrow.build(schema, X)
    from .backends import numpy as _numpy

    return _numpy.build(schema, X)


def _through_narwhals(frame: Any) -> Any:
    what = type(frame).__module__.partition(".")[0] + "." + type(frame).__name__
    if nw.dependencies.is_polars_lazyframe(frame):
        raise TypeError("got a polars LazyFrame; call .collect() first")
    try:
        return nw.from_native(frame, eager_only=True).to_arrow()
    except TypeError:
        hint = "a dict or list of rows can be wrapped by pandas.DataFrame(...)"
        if isinstance(frame, str | os.PathLike):
            hint = "read the file first, such as by pandas.read_csv; fit_batches takes files"
        elif nw.dependencies.is_into_series(frame):
            hint = "a series becomes a table of one column by .to_frame(), of one row by .to_frame().T"
        raise TypeError(
            f"expected a pandas, polars or pyarrow table or a 2-D numpy array, got {what}; {hint}"
        ) from None
