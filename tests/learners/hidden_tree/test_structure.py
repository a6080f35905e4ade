"""Mutual information against its definition, and Chow-Liu trees against all spanning trees."""

from itertools import pairwise

import numpy as np
import pytest

from jointforest.data.discretization.dependence import coarse, mutual_information, spanning_tree
from jointforest.learners.hidden_tree.structure import CodeTable, View, join, path

from ...oracle import hidden_learning as oracle


@pytest.mark.parametrize("weighted", [False, True])
def test_mutual_information_by_definition(weighted):
    rng = np.random.default_rng(0)
    classes = rng.integers(-1, 3, (80, 3)).astype(np.int16)
    classes[:, 1] = np.where(rng.random(80) < 0.8, classes[:, 0], classes[:, 1])
    weight = rng.uniform(0.5, 2.0, 80) if weighted else None
    found = mutual_information(classes, np.array([3, 3, 3]), weight)
    w = np.ones(80) if weight is None else weight
    for i in range(3):
        for j in range(3):
            want = 0.0 if i == j else oracle.mutual_information(classes[:, i].tolist(), classes[:, j].tolist(), w)
            assert found[i, j] == pytest.approx(want, abs=1e-6)
    assert found[0, 1] > 0.3


@pytest.mark.parametrize("seed", range(4))
def test_spanning_tree_is_the_greatest(seed):
    rng = np.random.default_rng(seed)
    weight = rng.random((6, 6))
    weight = weight + weight.T
    np.fill_diagonal(weight, 0.0)
    order, parent = spanning_tree(weight)
    assert sorted(order.tolist()) == list(range(6))
    assert parent[0] == -1 and all(parent[k] < k for k in range(6)) and np.all(parent[1:] >= 0)
    total = sum(weight[order[k], order[parent[k]]] for k in range(1, 6))
    assert total == pytest.approx(oracle.greatest_spanning_tree(weight.tolist()))


def test_spanning_tree_of_one_column():
    order, parent = spanning_tree(np.zeros((1, 1)))
    assert order.tolist() == [0] and parent.tolist() == [-1]


def test_coarse_joins_ordered_codes_to_runs_and_keeps_common_levels():
    rng = np.random.default_rng(0)
    codes = np.column_stack(
        [rng.integers(0, 64, 4000), np.minimum(rng.geometric(0.2, 4000) - 1, 39), np.arange(4000) % 2]
    )
    codes[0] = [64, 40, 2]
    classes, size = coarse(codes, np.array([64, 40, 2]), np.array([True, False, False]))
    assert size.tolist() == [16, 16, 2] and classes[0].tolist() == [-1, -1, -1]
    by_code = [np.unique(classes[codes[:, 0] == q, 0]) for q in range(64)]
    assert all(len(u) == 1 for u in by_code) and np.all(np.diff(np.concatenate(by_code)) >= 0)
    np.testing.assert_array_equal(classes[1:, 2], codes[1:, 2])
    assert len(set(classes[codes[:, 1] == q, 1].item(0) for q in range(15))) == 15


def test_the_root_is_in_the_middle_whatever_its_number():
    for chain in ([1, 0, 2], [3, 1, 0, 4, 2], [0, 1, 2]):
        information = np.zeros((len(chain), len(chain)))
        for a, b in pairwise(chain):
            information[a, b] = information[b, a] = 1.0
        order, parent = spanning_tree(information)
        assert order[0] == chain[len(chain) // 2] and parent[0] == -1


def links(order, parent):
    return {frozenset((int(order[k]), int(order[parent[k]]))) for k in range(1, len(order))}


@pytest.mark.parametrize("seed", range(4))
def test_a_joined_pair_takes_the_place_of_the_weakest_link_between(seed):
    rng = np.random.default_rng(seed)
    information = rng.random((7, 7))
    information = information + information.T
    np.fill_diagonal(information, 0.0)
    order, parent = spanning_tree(information)
    before = links(order, parent)
    a, b = next((a, b) for a in range(7) for b in range(a) if frozenset((a, b)) not in before)
    between = path(order, parent, a, b)
    assert all(frozenset(link) in before for link in between)
    ends = [sum(j in link for link in between) for j in range(7)]
    assert ends[a] == ends[b] == 1 and sorted(ends) == sorted(
        [1, 1] + [2] * (len(between) - 1) + [0] * (6 - len(between))
    )
    weakest = min(between, key=lambda link: information[link])
    after = links(*spanning_tree(join(information, a, b)))
    assert after == before - {frozenset(weakest)} | {frozenset((a, b))}
    assert links(*spanning_tree(join(join(information, a, b), b, a))) == after


def test_a_pair_is_joined_where_there_is_no_information():
    assert frozenset((0, 2)) in links(*spanning_tree(join(np.zeros((4, 4)), 0, 2)))


def test_columns_that_a_compound_stands_for_are_learned_apart():
    rng = np.random.default_rng(0)
    pair = rng.integers(0, 7, 50)  # code 6 is missing
    first, second = np.array([0, 0, 1, 1, 2, 2, 3]), np.array([0, 1, 0, 1, 0, 1, 2])
    other = rng.integers(0, 3, 50)
    views = ((View(first, 3, True), View(second, 2, False)), ())
    table = CodeTable(np.column_stack([pair, other]), np.array([6, 2]), np.array([False, True]), None, views)
    apart = table.apart()
    assert np.array_equal(apart.codes, np.column_stack([first[pair], second[pair], other]))
    assert apart.n_codes.tolist() == [3, 2, 2] and apart.is_ordered.tolist() == [True, False, True]
    assert apart.views == ()
