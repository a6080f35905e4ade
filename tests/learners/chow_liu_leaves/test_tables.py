"""Tables of leaves against counts made one row at a time, and against sums over all rows of codes."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.learners.chow_liu_leaves import learn
from jointforest.learners.chow_liu_leaves.constants import FIXED

K, H, L = 6, 4, 3


def some_rows(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two columns of codes, of which the last means missing, a leaf and a weight for each row."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, K + 1, n), rng.integers(0, H + 1, n)
    return a, b, rng.integers(0, L, n), rng.integers(0, 3, n).astype(float)


def test_leaf_pair_counts() -> None:
    a, b, leaf, weight = some_rows(0)
    count = np.zeros((L, K + 1, H + 1))
    for i in range(len(a)):
        count[leaf[i], a[i], b[i]] += weight[i]
    np.testing.assert_array_equal(learn.leaf_pair_counts(a, b, leaf, L, K, H, weight), count)


def test_neighbours_keep_the_marginal_and_spare_what_is_common() -> None:
    marginal = np.array([0.02, 0.03, 0.6, 0.02, 0.03, 0.3])
    move = learn.neighbours(marginal, 0.2)
    np.testing.assert_allclose(move.sum(axis=1), 1.0)
    for i, j in ((0, 1), (2, 3), (1, 2)):
        at = [NormalDist().inv_cdf(math.fsum(marginal[:k]) + marginal[k] / 2) for k in range(6)]
        kernel = [marginal[k] * math.exp(-0.5 * ((at[i] - at[k]) / 0.2) ** 2) for k in range(6)]
        assert move[i, j] == pytest.approx(kernel[j] / math.fsum(kernel))
    assert move[2, 2] > 0.999 and move[3, 4] > 0.5


def test_neighbours_of_a_tail_lie_far_apart() -> None:
    move = learn.neighbours(np.full(100, 0.01), 0.1)
    assert move[99, 98] < 0.01 and move[50, 51] > 0.09


@pytest.mark.parametrize("is_ordered", [False, True])
def test_leaf_marginals_stay_in_the_box(is_ordered: bool) -> None:
    rng = np.random.default_rng(1)
    marginal, allowed = rng.dirichlet(np.ones(K)), rng.random((L, K)) < 0.5
    allowed[:, 0] = True
    prior = allowed * rng.random((L, K))
    prior /= prior.sum(axis=1, keepdims=True)
    count = rng.integers(0, 9, (L, K)) * allowed.astype(float)
    found = learn.leaf_marginals(count, allowed, prior, marginal, is_ordered)
    assert (found[~allowed] == 0.0).all() and (found[allowed] > 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    if not is_ordered:
        expected = count + FIXED.marginal_rows * prior
        np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("parent", [(-1, 0, 1, 2), (-1, 0, 0, 1)])
def test_shares_in_boxes_are_those_of_all_rows_in_them(parent: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(parent))
    sizes = (3, 4, 2, 3)
    given = [rng.dirichlet(np.ones(sizes[k]), sizes[parent[k]] if k else 1) for k in range(4)]
    joint = np.zeros(sizes)
    for row in np.ndindex(*sizes):
        joint[row] = np.prod([given[k][row[parent[k]] if k else 0, row[k]] for k in range(4)])
    marginal = [joint.sum(axis=tuple(i for i in range(4) if i != k)) for k in range(4)]
    pair = [marginal[parent[k]][:, None] * given[k] if k else given[0] for k in range(4)]
    edges = learn.Edges(np.arange(4), np.array(parent), [False] * 4, marginal, pair, [0.0] * 4)
    allowed = [rng.random((5, size)) < 0.6 for size in sizes]
    for of in allowed:
        of[:, 0] = True
    found = learn.in_boxes(edges, allowed)
    for i in range(5):
        inside = joint * np.einsum("a,b,c,d->abcd", *(of[i] for of in allowed))
        for k in range(4):
            expected = inside.sum(axis=tuple(j for j in range(4) if j != k)) / inside.sum()
            np.testing.assert_allclose(found[k][i], expected, atol=1e-12)


def test_pairs_of_leaves_have_the_marginals_and_keep_odds_ratios() -> None:
    rng = np.random.default_rng(2)
    pair = rng.dirichlet(np.ones(K * H)).reshape(K, H) * 0.5 + 0.5 / (K * H)
    count = rng.integers(0, 9, (K, H)).astype(float)
    above, below = rng.dirichlet(np.full(K, 5.0)), rng.dirichlet(np.full(H, 5.0))
    found = learn.leaf_pair(count, pair, above, below)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(above @ found, below, atol=2e-3)
    table = count + FIXED.pair_rows * pair / pair.sum(axis=1, keepdims=True)
    odds = found[0, 0] * found[1, 1] / (found[0, 1] * found[1, 0])
    assert odds == pytest.approx(table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0]), rel=1e-4)


def moved(share: np.ndarray) -> np.ndarray:
    """Where a code's rows go: a normal kernel of width .2 on normal scores."""
    at = [NormalDist().inv_cdf(math.fsum(share[:k]) + share[k] / 2) for k in range(len(share))]
    kernel = np.array([[math.exp(-0.5 * ((x - y) / 0.2) ** 2) for y in at] for x in at]) * share
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def smoothed(count: np.ndarray, above: np.ndarray, below: np.ndarray, rows: float) -> np.ndarray:
    """p(b | a): rows with both codes, and some as the neighbours and a tenth of a row of the child have them."""
    near = moved(above).T @ count @ moved(below) + 0.1 * below
    total = count + rows * near / near.sum(axis=1, keepdims=True)
    return np.asarray(total / total.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("n", "noise", "jumps", "rows"),
    [(200, 0.2, 0.0, 0.3), (200, 0.5, 0.0, 3.0), (200, 2.0, 0.5, 30.0), (4000, 4.0, 0.2, 200.0), (4000, 4.0, 0.0, 1e3)],
)
def test_each_half_chooses_the_neighbours_rows_of_the_other(n: int, noise: float, jumps: float, rows: float) -> None:
    """Of the figures in docs/concepts/adversarial-forest.md: few rows where codes jump, many where they are as their
    neighbours are."""
    rng = np.random.default_rng(4)
    a = rng.integers(0, 8, n)
    b = np.clip(np.rint(a + noise * rng.normal(size=n)), 0, 7).astype(int)
    b = np.where(rng.random(n) < jumps, a * 5 % 8, b)
    count = np.zeros((2, 8, 8))
    np.add.at(count, (np.arange(n) % 2, a, b), 1.0)
    above, below = np.bincount(a, minlength=8) / n, np.bincount(b, minlength=8) / n

    def gain(tried: float) -> float:
        given = [smoothed(half, above, below, tried) for half in count]
        return sum(float(np.sum(half * np.log(other))) for half, other in zip(count, given[::-1], strict=True))

    assert max((0.3, 3.0, 30.0, 200.0, 1000.0), key=gain) == rows
    codes, yes = np.column_stack([a, b]), np.array([True, True])
    edges = learn.table_edges(codes, np.array([8, 8]), yes, np.zeros(2), np.array([0, 1]), np.array([-1, 0]))
    want = above[:, None] * smoothed(count.sum(axis=0), above, below, rows)
    np.testing.assert_allclose(edges.pair[1], want, rtol=1e-9)


def test_pairs_of_the_table() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, 20_000)
    b = np.where(rng.random(len(a)) < 0.9, a, 3)  # 3 is missing
    codes = np.column_stack([a, b])
    is_ordered = np.array([False, False])
    edges = learn.table_edges(codes, np.array([3, 3]), is_ordered, np.zeros(2), np.array([0, 1]), np.array([-1, 0]))
    given = edges.pair[1] / edges.pair[1].sum(axis=1, keepdims=True)
    assert (edges.pair[1] > 0.0).all() and (np.diag(given) > 0.999).all()
    np.testing.assert_allclose(edges.pair[1].sum(axis=1), edges.marginal[0])
    np.testing.assert_allclose(edges.marginal[1], np.bincount(b[b < 3]) / (b < 3).sum())


@pytest.mark.parametrize(
    "learner",
    [jf.JointTree(leaf="chow_liu", random_state=0), jf.HiddenTreeForest(2, start="factors", random_state=0)],
    ids=["chow_liu", "factors"],
)
def test_close_columns_stay_close_in_a_range_of_one(learner: jf.JointTree | jf.HiddenTreeForest) -> None:
    """No leaf or state may lend its rows cells of the whole table: few of them would double a standard deviation."""
    rng = np.random.default_rng(0)
    area = rng.lognormal(10.0, 0.5, 1_000)
    frame = pd.DataFrame(
        {
            "area": area,
            "hull": area * rng.normal(1.01, 0.004, 1_000),
            "length": np.sqrt(area) * rng.normal(2.0, 0.1, 1_000),
            "other": rng.normal(size=1_000),
        }
    )
    joint = learner.fit(frame).joint_
    for q in (0.2, 0.4, 0.8):
        rows = frame["area"][frame["hull"] <= frame["hull"].quantile(q)]
        given = joint.given({"hull": jf.between(None, float(frame["hull"].quantile(q)))})
        assert given.mean("area") == pytest.approx(rows.mean(), rel=0.04)
        assert given.std("area") == pytest.approx(rows.std(), rel=0.2)
