"""Leaves learned from codes: no mass outside boxes, tables by hand, and few states where boxes are small."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from jointforest.learners.chow_liu_leaves.constants import FIXED
from jointforest.learners.chow_liu_leaves.learn import Boxes, counted_rows, edges_of, learn_leaves
from jointforest.models.hidden_tree.hidden_trees import TreeTables
from jointforest.runtime.threads import use_jobs

N_CODES = np.array([4, 3, 5])


class Grown(NamedTuple):
    """Boxes, where rows end in them, and what they count."""

    boxes: Boxes
    leaf_of: np.ndarray
    weight: np.ndarray


def some_boxes(codes: np.ndarray) -> Grown:
    """Two trees: one cut at code 1 of the first column, one leaf with everything."""
    n = len(codes)
    low = np.array([True, True, False, False])
    allowed = [np.ones((3, K), bool) for K in N_CODES]
    allowed[0][0], allowed[0][1] = low, ~low
    leaf = np.where(codes[:, 0] < 2, 0, 1)
    share = np.array([(leaf == 0).mean(), (leaf == 1).mean(), 1.0])
    leaf_of = np.array([leaf, np.full(n, 2)], dtype=np.int32)
    weight = np.ones((2, n))
    weight[1, ::3] = 2.0
    return Grown(Boxes(allowed, np.array([0, 2, 3]), share), leaf_of, weight)


def learned(
    codes: np.ndarray, is_ordered: list[bool], grown: Grown, epsilon: float, n_jobs: int = 1
) -> tuple[tuple[TreeTables, ...], np.ndarray]:
    missing = codes == N_CODES
    edges = edges_of(codes, N_CODES, np.array(is_ordered), missing.mean(axis=0))
    counted = counted_rows(edges, codes, missing, grown.leaf_of, grown.weight)
    return use_jobs(n_jobs)(learn_leaves)(edges, grown.boxes, counted, epsilon)


def some_codes(seed: int, n: int = 300, missing: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, n)
    b = np.where(rng.random(n) < 0.8, a // 2, 2)
    c = np.where(rng.random(n) < 0.7, a, rng.integers(0, 5, n))
    codes = np.column_stack([a, b, c])
    blank = rng.random(codes.shape) < missing
    blank[:, 0] = False
    return np.where(blank, N_CODES, codes)


def probability(tree: TreeTables, codes: tuple[int, ...]) -> float:
    """Of one row of codes, by the definition."""
    p, states = 1.0, []
    for k, j in enumerate(tree.column.tolist()):
        inside = np.flatnonzero(tree.emission[k][:, codes[j]])
        if not len(inside):
            return 0.0
        states.append(int(inside[0]))
        p *= float(tree.transition[k][states[tree.parent[k]] if k else 0, states[k]])
    return p


def test_mass_is_1_and_none_of_it_outside_the_box() -> None:
    codes = some_codes(0)
    grown = some_boxes(codes)
    trees, log_weight = learned(codes, [True, False, True], grown, 0.01)
    np.testing.assert_allclose(np.exp(log_weight), [*0.5 * 0.99 * grown.boxes.share, 0.01])
    for i, tree in enumerate(trees):
        total = 0.0
        for row in itertools.product(range(4), range(3), range(5)):
            p = probability(tree, row)
            total += p
            inside = i == 3 or all(grown.boxes.allowed[j][i, code] for j, code in enumerate(row))
            assert (p > 0.0) == inside
        assert total == pytest.approx(1.0, abs=1e-5)
    node = trees[0].node[0]
    assert trees[0].emission[node].shape == (2, 4) and trees[2].emission[node].shape == (4, 4)


def test_a_leaf_by_hand() -> None:
    codes = some_codes(1)
    grown = some_boxes(codes)
    trees, _ = learned(codes, [False] * 3, grown, 0.01)
    tree, whole = trees[2], trees[3]
    weight = grown.weight[1]
    shares = []
    for k, j in enumerate(tree.column.tolist()):
        K = N_CODES[j]
        count = np.array([weight[codes[:, j] == code].sum() for code in range(K)])
        known = np.array([(codes[:, j] == code).sum() for code in range(K)]) + 0.0
        known[known == 0.0] = 0.5
        share = count + FIXED.least_share * weight.sum() * known / known.sum()  # of one leaf, the counts themselves
        shares.append(share / share.sum())
        if k == 0:
            np.testing.assert_allclose(tree.transition[0][0], shares[0], rtol=1e-5)
            continue
        up = tree.column[tree.parent[k]]
        marginal = np.array([(codes[:, up] == code).mean() for code in range(N_CODES[up])])
        pair = whole.transition[k] * marginal[:, None]
        counts = np.array([[weight[(codes[:, up] == a) & (codes[:, j] == b)].sum() for b in range(K)]
                           for a in range(N_CODES[up])])  # fmt: skip
        expected = counts + FIXED.pair_rows * pair / pair.sum(axis=1, keepdims=True)
        for _ in range(200):  # proportional fitting
            expected *= (shares[tree.parent[k]] / expected.sum(axis=1))[:, None]
            expected *= shares[k] / expected.sum(axis=0)
        np.testing.assert_allclose(tree.transition[k], expected / expected.sum(axis=1, keepdims=True), atol=2e-3)
    lost = (weight[codes[:, 1] == 3].sum() + (codes[:, 1] == 3).mean()) / (weight.sum() + 1.0)
    np.testing.assert_allclose(tree.blank[tree.node[1]], lost, rtol=1e-6)


def test_threads_and_missing_columns() -> None:
    codes = some_codes(2)
    codes[:, 2] = N_CODES[2]
    grown = some_boxes(codes)
    one, weight = learned(codes, [True, False, True], grown, 0.0, 1)
    two, again = learned(codes, [True, False, True], grown, 0.0, 2)
    np.testing.assert_array_equal(weight, again)
    assert len(one) == len(two) == 3
    for a, b in zip(one, two, strict=True):
        for x, y in zip(a.transition + a.emission + a.blank, b.transition + b.emission + b.blank, strict=True):
            np.testing.assert_array_equal(x, y)
            assert np.isfinite(x).all()
    assert one[0].emission[one[0].node[1]] is one[1].emission[one[1].node[1]]  # one table for all leaves
