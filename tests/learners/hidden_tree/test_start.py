"""What clustering sees of a column, and tables with nothing to cluster by."""

from __future__ import annotations

import numpy as np

from jointforest.learners.hidden_tree.complete import _factors, _patterns
from jointforest.learners.hidden_tree.start import clusters, features
from jointforest.learners.hidden_tree.structure import CodeColumn

NONE = np.zeros(0)


def levels(marginal: list[float]) -> CodeColumn:
    return CodeColumn(np.array(marginal), NONE, NONE, NONE)


def test_an_indicator_a_common_level_but_one_of_two_levels() -> None:
    code = np.repeat(np.arange(3), [500, 499, 1])[:, None]
    three = levels([0.5, 0.4999, 0.0001])  # the last too rare to be seen
    assert [f.shape[1] for f in features(code, (three,))] == [2]
    assert [f.shape[1] for f in features(code[:999], (levels([0.5, 0.5]),))] == [1]


def test_one_cluster_where_there_is_nothing_to_tell_rows_apart() -> None:
    rng = np.random.default_rng(0)
    assert clusters(np.zeros((5, 0), np.float32), 3, rng, np.ones(5)).tolist() == [0] * 5
    assert clusters(np.ones((1, 2), np.float32), 3, rng, np.ones(1)).tolist() == [0]
    assert clusters(rng.normal(size=(5, 2)).astype(np.float32), 1, rng, np.ones(5)).tolist() == [0] * 5


def test_factors_are_those_of_each_row_alone() -> None:
    rng = np.random.default_rng(0)
    known = (rng.random((40, 6)) < 0.7).astype(np.float32)
    known[:20] = known[0]
    X = (rng.normal(size=(40, 6)) * known).astype(np.float32)
    loading, noise = rng.normal(size=(6, 2)), rng.uniform(0.2, 1.0, 6)
    mean, covariance = _factors(X, _patterns(known), loading, noise)
    for i in range(40):
        seen = known[i] > 0.0
        scaled = loading[seen] / noise[seen, None]
        own = np.linalg.inv(np.eye(2) + loading[seen].T @ scaled)
        np.testing.assert_allclose(covariance[i], own, atol=1e-6)
        np.testing.assert_allclose(mean[i], own @ scaled.T @ X[i, seen], atol=1e-6)
