"""Whether a bin of a column is one value."""

from __future__ import annotations

import numpy as np

from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import kernel_columns
from jointforest.learners.growing.grow import rank
from jointforest.learners.joint_tree.grow import joint_rows, split_column


def test_a_bin_is_a_value_where_no_bin_holds_two() -> None:
    X = np.column_stack([np.arange(600.0), np.arange(600) % 300, np.arange(600) % 7])
    columns = kernel_columns(infer_schema(X))
    data = joint_rows(columns, np.zeros(3, np.uint8), rank(columns, X), X, max_bins=300)
    found = [split_column(data, j, np.array([(j + 1) % 3]), 2) for j in range(3)]
    assert [by.is_exact for by in found] == [False, True, True]
    assert [by.n_bins for by in found] == [300, 300, 7]
