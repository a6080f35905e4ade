"""Whether a bin of a column is one value."""

from __future__ import annotations

import numpy as np

from jointforest.table.infer.infer_schema import infer_schema
from jointforest.table.schema import kernel_columns
from jointforest.trees.grow_joint.groups import split_column
from jointforest.trees.grow_joint.joint_rows import joint_rows
from jointforest.trees.ranks import rank


def test_a_bin_is_a_value_where_no_bin_holds_two() -> None:
    X = np.column_stack([np.arange(600.0), np.arange(600) % 300, np.arange(600) % 7])
    columns = kernel_columns(infer_schema(X))
    data = joint_rows(columns, np.zeros(3, np.uint8), rank(columns, X), X, max_bins=300)
    found = [split_column(data, j, np.array([(j + 1) % 3]), 2) for j in range(3)]
    assert [by.is_exact for by in found] == [False, True, True]
    assert [by.n_bins for by in found] == [300, 300, 7]
