"""Leaves of fitted trees, given quantile leaves afterwards."""

from __future__ import annotations

import numpy as np
import pandas as pd

from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import kernel_columns
from jointforest.learners.growing.grow import RankTree, rank
from jointforest.learners.leaf_fitting.densities import (
    as_forest,
    assign_rows,
    fit_trees,
    learn_densities,
    quantile_trees,
)
from jointforest.learners.leaf_fitting.fit import Settings, prepare_table


def test_quantile_leaves_of_fitted_trees_are_those_of_one_go() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "y": rng.exponential(size=60), "z": rng.choice(["a", "b"], 60)})
    schema = infer_schema(frame)
    columns, X = kernel_columns(schema), encode(schema, frame)[0]
    ranks = rank(columns, X)
    cut = 29  # the first column's lower half goes left
    tree = RankTree(
        np.array([0, -1, -1], np.int32), np.array([cut, -1, -1], np.int32), np.full(3, -1, np.int32),
        np.array([1, -1, -1], np.int32), np.array([2, -1, -1], np.int32), np.zeros(0, np.uint64),
    )  # fmt: skip
    node = np.where(ranks.codes[0] <= cut, 1, 2).astype(np.int32)
    assigned, cells, settings = (
        assign_rows(columns, ranks, [tree], [node], [np.ones(60)]),
        prepare_table(columns, X),
        Settings(),
    )
    slots = np.array([False, True])
    plain = fit_trees(columns, cells, assigned, settings)
    before = as_forest(schema, columns, cells, assigned.trees, plain, 0.001)
    later = quantile_trees(columns, cells, assigned, plain, slots, settings.quantile_epsilon)
    forest = as_forest(schema, columns, cells, assigned.trees, later, 0.001)
    direct = learn_densities(schema, columns, cells, assigned, settings, 0.001, quantile=slots)
    for name in ("log_weight", "family", "a", "b", "lo", "hi", "level_mass"):
        np.testing.assert_array_equal(getattr(forest.leaves, name), getattr(direct.leaves, name))
    for one, other in zip(forest.leaves.pieces, direct.leaves.pieces, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(forest.leaves.pieces.log_weight) > 0 == len(before.leaves.pieces.log_weight)
    normal = learn_densities(schema, columns, cells, assigned, settings, 0.001)
    np.testing.assert_array_equal(before.leaves.a, normal.leaves.a)
    unchanged = as_forest(schema, columns, cells, assigned.trees, plain, 0.001)
    np.testing.assert_array_equal(unchanged.leaves.b, normal.leaves.b)
