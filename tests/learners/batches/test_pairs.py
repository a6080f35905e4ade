"""Rows of each leaf by two linked codes, counted over batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.discretization.discretizer import codes_of
from jointforest.data.frames import encode
from jointforest.data.schema import kernel_columns
from jointforest.learners.batches.fill import Route
from jointforest.learners.batches.sample import Pass, Weights
from jointforest.learners.chow_liu_leaves.learn import CodePairs, count_pairs

from .test_fit_batches import table


@pytest.mark.parametrize("weights", [None, Weights("w", 4.0, 20)])
def test_counts_are_those_of_rows_one_at_a_time(weights: Weights | None) -> None:
    frame = table(300).dropna(subset=["k"]).reset_index(drop=True)
    learner = jf.JointTree(leaf="chow_liu", features=["k"], min_impurity_decrease=0.0, epsilon=0.0)
    hidden = learner.fit(frame).joint_.distribution.components[0].hidden  # type: ignore[attr-defined]
    trees, first = hidden.grown.trees, hidden.trees[0]
    cuts = np.sort(trees.threshold[trees.feature >= 0])
    route = Route(hidden.schema, kernel_columns(hidden.schema), trees, 0, weights, None)
    pairs = CodePairs(route, hidden.scales, first.column, first.parent)
    weight = np.random.default_rng(0).integers(1, 5, len(frame)).astype(float)
    source = frame if weights is None else frame.assign(w=weight)

    def fold(one: Pass, n: int | None = None) -> Any:
        parts = [one.over([part.reset_index(drop=True)]) for part in (source[:100], source[100:101], source[101:])]
        return one.together(parts[::-1])

    found = count_pairs(fold, len(frame), pairs)
    X = encode(hidden.schema, frame)[0]
    codes = np.column_stack([codes_of(scale, X[:, j])[0] for j, scale in enumerate(hidden.scales)])
    leaf = np.searchsorted(cuts, X[:, list(frame).index("k")])  # leaves from left to right
    order = np.argsort([left_end(trees, node) for node in np.flatnonzero(trees.leaf >= 0)])
    assert len(found[0]) == len(cuts) + 1 > 2
    times = np.ones(len(frame)) if weights is None else weight / 4.0 * 2**20
    for k, j in enumerate(first.column.tolist()):
        expected = np.zeros(found[k].shape)
        for i in range(len(frame)):
            above = codes[i, first.column[first.parent[k]]] if k else 0
            expected[order[leaf[i]], above, codes[i, j]] += times[i]
        np.testing.assert_array_equal(found[k], expected)


def left_end(trees: Any, node: int) -> float:
    """Where the box of a leaf begins on the only column that splits."""
    end = -np.inf
    while node not in trees.root:
        above = int(np.flatnonzero((trees.left == node) | (trees.right == node))[0])
        end = max(end, trees.threshold[above]) if trees.right[above] == node else end
        node = above
    return end


def test_a_source_that_changes() -> None:
    frame = pd.DataFrame({"a": np.arange(500.0), "b": np.arange(500.0) % 7})
    seen = []

    def source() -> list[pd.DataFrame]:
        seen.append(1)
        return [frame if len(seen) < 2 else frame[:400]]

    class Few(jf.JointTree):
        def _sampled_rows(self) -> int:
            return 100

    with pytest.raises(ValueError, match="gave 500 rows at first and 400 later"):
        Few(leaf="chow_liu", random_state=0).fit_batches(source)
