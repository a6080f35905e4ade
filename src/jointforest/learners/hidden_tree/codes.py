"""Rows of codes from the cells of a table, each column on its own scale."""

from __future__ import annotations

import numpy as np

from ...data.discretization.discretizer import Scale, code_table
from ...data.discretization.learn import code_gaps, learn_scale
from ...data.schema import Column, Schema
from ...runtime.threads import one_blas_thread
from .structure import CodeTable, View


def scales_of(
    schema: Schema, cells: np.ndarray, weight: np.ndarray | None, n_bins: int, fine: float, singles: bool
) -> tuple[Scale, ...]:
    """The scale of each column, from its known cells (n, d); parameters as of `learn_scale`."""
    with one_blas_thread():
        return tuple(learn_scale(c, cells[:, j], weight, n_bins, fine, singles) for j, c in enumerate(schema.columns))


def table_of(schema: Schema, scales: tuple[Scale, ...], cells: np.ndarray, weight: np.ndarray | None) -> CodeTable:
    """Rows of cells (n, d) as codes."""
    codes = code_table(scales, cells)
    n_codes = np.array([scale.n_codes for scale in scales])
    is_ordered = np.array([not column.is_categorical for column in schema.columns])
    views = tuple(map(_views, schema.columns, scales)) if any(c.parts for c in schema.columns) else ()
    gaps = tuple(
        np.zeros(scale.n_codes) if column.is_categorical else code_gaps(column, scale, cells[:, j], weight)
        for j, (column, scale) in enumerate(zip(schema.columns, scales, strict=True))
    )
    return CodeTable(np.ascontiguousarray(codes), n_codes, is_ordered, weight, views, gaps)


def _views(column: Column, scale: Scale) -> tuple[View, ...]:
    """The columns that one stands for, by its codes; of levels that share a code those of the commonest."""
    found = []
    for is_number, values in column.parts:
        distinct, of_level = np.unique(values, return_inverse=True)
        code = np.zeros(scale.n_codes + 1, np.int64)
        order = np.argsort(scale.log_mass, kind="stable")  # the last one written is the commonest
        code[scale.code[order]] = of_level.reshape(-1)[order]
        code[-1] = len(distinct)
        found.append(View(code, len(distinct), is_number))
    return tuple(found)
