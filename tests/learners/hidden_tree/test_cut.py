"""Rows cut into leaves, and hidden trees in them."""

import numpy as np
import pytest

from jointforest.learners.hidden_tree.em import from_tree, log_probabilities
from jointforest.learners.hidden_tree.learn import LearnSettings
from jointforest.learners.hidden_tree.leaves import complete_codes, cut, learn_trees
from jointforest.learners.hidden_tree.structure import CodeTable, code_columns
from jointforest.models.hidden_tree.messages import log_probability
from jointforest.runtime.threads import use_jobs

N_CODES, IS_ORDERED = np.array([6, 4, 5]), np.array([True, False, True])


def table(n: int, seed: int, missing: float = 0.0) -> np.ndarray:
    """Three columns that follow one hidden case each."""
    rng = np.random.default_rng(seed)
    case = rng.integers(4, size=n)
    codes = np.column_stack([case + rng.integers(3, size=n), case, np.minimum(case + rng.integers(2, size=n), 4)])
    return np.where(rng.random(codes.shape) < missing, N_CODES, codes)


def inside(leaf, codes) -> np.ndarray:
    return np.all([np.append(a, True)[codes[:, j]] for j, a in enumerate(leaf.allowed)], axis=0)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_each_row_is_in_one_leaf_and_inside_its_box(missing):
    rows = CodeTable(table(600, 0, missing), N_CODES, IS_ORDERED)
    codes = complete_codes(rows, 0)
    is_known = rows.codes < N_CODES
    assert (codes[is_known] == rows.codes[is_known]).all() and (codes < N_CODES).all()
    leaves = cut(codes, code_columns(rows), 5, np.random.default_rng(0))
    assert len(leaves) == 5
    assert sorted(np.concatenate([leaf.rows for leaf in leaves]).tolist()) == list(range(600))
    assert all(inside(leaf, codes[leaf.rows]).all() for leaf in leaves)
    complete = np.stack(np.meshgrid(*map(np.arange, N_CODES), indexing="ij"), -1).reshape(-1, 3)
    assert (sum(inside(leaf, complete).astype(int) for leaf in leaves) == 1).all()


def test_the_first_split_takes_most_variance_off():
    """Against all splits of all columns, two columns of two numbers each and one of noise."""
    rng = np.random.default_rng(1)
    codes = rng.integers(4, size=(400, 1)) + np.zeros((1, 3), int)
    codes[:, 2] = rng.integers(4, size=400)
    columns = code_columns(CodeTable(codes, np.full(3, 4), np.ones(3, bool)))
    first, second = cut(codes, columns, 2, np.random.default_rng(0))
    seen = np.column_stack([column.score[codes[:, j]] for j, column in enumerate(columns)])
    seen = (seen - seen.mean(axis=0)) / seen.std(axis=0)

    def left_over(is_left):
        return sum(((seen[side] - seen[side].mean(axis=0)) ** 2).sum() for side in (is_left, ~is_left))

    best = min(left_over(codes[:, j] <= c) for j in range(3) for c in range(3)
               if 400 / 6 <= (codes[:, j] <= c).sum() <= 400 * 5 / 6)  # fmt: skip
    chosen = np.isin(np.arange(400), first.rows)
    assert len(first.rows) + len(second.rows) == 400
    assert left_over(chosen) == pytest.approx(best, rel=1e-3)


def test_constant_columns_are_not_cut():
    codes = np.zeros((100, 2), int)
    columns = code_columns(CodeTable(codes, np.ones(2, int), np.ones(2, bool)))
    assert len(cut(codes, columns, 4, np.random.default_rng(0))) == 1


def test_wide_tables_are_cut_too():
    rng = np.random.default_rng(2)
    codes = (rng.random((300, 1)) < 0.5) ^ (rng.random((300, 150)) < 0.1)
    columns = code_columns(CodeTable(codes.astype(int), np.full(150, 2), np.zeros(150, bool)))
    leaves = cut(codes.astype(int), columns, 2, np.random.default_rng(0))
    majority = codes.mean(axis=1) > 0.5
    share = [majority[leaf.rows].mean() for leaf in leaves]
    assert abs(share[0] - share[1]) > 0.7


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_in_leaves_have_no_probability_outside_and_sum_to_one(weighted):
    codes = table(600, 3, 0.1)
    weight = np.random.default_rng(0).integers(3, size=600).astype(float) if weighted else None
    settings = LearnSettings(n_states=4, n_leaves=3, passes=2)
    learned = learn_trees(CodeTable(codes, N_CODES, IS_ORDERED, weight), settings, seed=0)
    assert len(learned.trees) == len(learned.share) == 3
    assert learned.share.sum() == pytest.approx(1.0)
    complete = np.stack(np.meshgrid(*map(np.arange, N_CODES), indexing="ij"), -1).reshape(-1, 3)
    each = np.array([np.exp(log_probability(t, [t.by_code[k][complete[:, j]] for k, j in enumerate(t.column.tolist())],
                                            len(complete))) for t in learned.trees])  # fmt: skip
    np.testing.assert_allclose(each.sum(axis=1), 1.0, rtol=1e-5)
    assert ((each > 0).sum(axis=0) == 1).all()


def test_leaves_are_the_same_whatever_the_threads_and_tell_of_held_out_rows():
    rows, others = CodeTable(table(2_000, 4), N_CODES, IS_ORDERED), table(500, 5)
    settings = LearnSettings(n_states=4, n_leaves=4, passes=2)
    told = []
    one, two = (use_jobs(jobs)(learn_trees)(rows, settings, 1, lambda *a: told.append(a)) for jobs in (1, 2))
    for a, b in zip(one.trees, two.trees, strict=True):
        tables = zip(a.transition + a.emission, b.transition + b.emission, strict=True)
        assert all(np.array_equal(x, y) for x, y in tables)
    np.testing.assert_array_equal(one.held_out, two.held_out)
    assert [now for now, _, _ in told[:8]] == list(range(1, 9)) and {most for _, most, _ in told} == {8}
    rows_of = np.ascontiguousarray(others.T, dtype=np.int32)
    joint = np.logaddexp.reduce([
        log_probabilities(*from_tree(t), rows_of) + np.log(share)
        for t, share in zip(one.trees, one.share, strict=True)
    ])  # fmt: skip
    assert np.nanmean(one.held_out) == pytest.approx(joint.mean(), abs=0.15)
    alone = learn_trees(rows, settings._replace(n_leaves=1), 1)
    assert len(alone.trees) == 1
    expected = log_probabilities(*from_tree(alone.trees[0]), rows_of).mean()
    assert np.nanmean(alone.held_out) == pytest.approx(expected, abs=0.15)


def test_rows_that_miss_the_split_take_sides_as_others_do():
    codes = np.repeat([[0, 0], [1, 1]], [3000, 1000], axis=0)
    codes[np.random.default_rng(0).random(4000) < 0.5, :] = 2  # of most rows nothing is known
    codes[::7] = [0, 0]
    columns = code_columns(CodeTable(codes, np.full(2, 2), np.zeros(2, bool)))
    leaves = cut(codes, columns, 2, np.random.default_rng(0))
    known, lost = codes[:, 0] < 2, codes[:, 0] == 2
    for leaf in leaves:
        mine = np.isin(np.arange(4000), leaf.rows)
        assert mine[lost].mean() == pytest.approx(mine[known].mean(), abs=0.04)
