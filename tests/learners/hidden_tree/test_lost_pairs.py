"""Pairs that a short fit has lost, and draws of codes against enumeration."""

import numpy as np

from jointforest.learners.hidden_tree.choose import choose_settings
from jointforest.learners.hidden_tree.improve_structure import draw_codes, pair_to_join
from jointforest.learners.hidden_tree.learn import LearnSettings
from jointforest.learners.hidden_tree.leaves import learn_trees
from jointforest.learners.hidden_tree.structure import CodeTable
from jointforest.models.hidden_tree.hidden_trees import TreeTables

SETTINGS = LearnSettings(n_states=16, passes=2, full=0)


def far_apart(n=5_000, seed=1):
    """Two columns of 32 codes that agree on one of 16 cases, each with a bit (columns 0 and 3) that is half its own.

    The other half of both bits is one coin: it would have to pass the 16 states of both columns, which hold the case.
    """
    rng = np.random.default_rng(seed)
    case, coin = rng.integers(16, size=n), rng.integers(2, size=n)
    first, second = 2 * case + rng.integers(2, size=(2, n))
    low, high = (np.where(rng.random(n) < 0.5, bit, coin) for bit in (case % 2, case // 2 % 2))
    return CodeTable(np.column_stack([low, first, second, high]), np.array([2, 32, 32, 2]), np.zeros(4, bool))


def neighbours(tree):
    column = tree.column.tolist()
    return {frozenset((j, column[k])) for j, k in zip(column[1:], tree.parent.tolist()[1:], strict=True)}


def test_a_pair_that_is_lost_is_joined():
    table = far_apart()
    before = learn_trees(table, SETTINGS, 0)
    assert frozenset((0, 3)) not in neighbours(before.trees[0])
    pair = pair_to_join(table, SETTINGS, before, 0)
    assert pair == (0, 3)
    after = learn_trees(table, SETTINGS._replace(joined=pair), 0)
    assert frozenset((0, 3)) in neighbours(after.trees[0])
    assert np.nanmean(after.held_out) > np.nanmean(before.held_out)


def test_all_members_of_a_mixture_join_the_pair():
    table = far_apart()
    for seed in range(6):
        member = SETTINGS._replace(passes=0, perturb=1.0, joined=(0, 3))
        assert frozenset((0, 3)) in neighbours(learn_trees(table, member, seed).trees[0])


def test_nothing_is_joined_where_nothing_is_lost():
    table = CodeTable(np.random.default_rng(0).integers(4, size=(2_000, 4)), np.full(4, 4), np.zeros(4, bool))
    assert choose_settings(table, SETTINGS._replace(passes=4), ("joined",)).joined is None


def test_too_few_columns_or_rows():
    table = far_apart()
    two = CodeTable(table.codes[:, :2], table.n_codes[:2], table.is_ordered[:2])
    few = table.take(np.arange(50))
    for small in (two, few):
        assert choose_settings(small, SETTINGS._replace(passes=4), ("joined",)).joined is None


def test_rows_of_no_weight_do_not_count():
    table = far_apart()
    some = np.arange(len(table.codes)) < 4_000
    weighed = table._replace(weight=some.astype(float))
    wild = weighed._replace(codes=np.where(some[:, None], table.codes, 0))
    found = [
        choose_settings(rows, SETTINGS._replace(passes=4, n_states=32), ("joined",)).joined for rows in (weighed, wild)
    ]
    assert found == [(0, 3)] * 2


def test_draws_of_codes():
    """Against the sum over states: a root of two states, a child of three codes."""
    share, towards = np.array([[0.3, 0.7]]), np.array([[0.9, 0.1], [0.2, 0.8]])
    root, child = np.array([[0.6, 0.4], [0.1, 0.9]]), np.array([[0.5, 0.25, 0.25], [0.0, 0.1, 0.9]])
    tree = TreeTables(np.array([1, 0]), np.array([-1, 0]), (share, towards), (root, child))
    n = 40_000
    codes = draw_codes(tree, n, np.random.default_rng(0))
    want = n * np.einsum("a,ab,ac,bd->cd", share[0], towards, root, child)  # code of column 1, code of column 0
    seen = np.zeros((2, 3))
    np.add.at(seen, (codes[:, 1], codes[:, 0]), 1.0)
    assert ((seen - want) ** 2 / want).sum() < 26.0  # five degrees of freedom
