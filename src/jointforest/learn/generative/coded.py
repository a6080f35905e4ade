"""Features on the scales of their columns, for trees whose leaves are Chow-Liu trees on codes."""

from __future__ import annotations

import numpy as np

from ...leaves.fit.prepare import prepare
from ...table.schema import Schema, kernel_columns
from ..base import Rows
from ..chow_liu import coded
from .targets import Training


def coded_training(training: Training, weight: np.ndarray) -> Training:
    """The features as codes, between which trees split; the target, which is not split, as it is."""
    even = weight if np.ptp(weight) > 0.0 else None
    table = coded(Rows(training.schema, training.columns, training.X), even)
    schema = training.schema
    own = (*table.rows.schema.columns[:-1], schema.columns[-1])
    schema = Schema(own, schema.frame)
    columns = kernel_columns(schema)
    X = np.column_stack([table.rows.X[:, :-1], training.X[:, -1]])
    return Training(schema, columns, X, prepare(columns, X), training.label_dtype, table)
