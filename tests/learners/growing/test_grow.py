"""Growing, pruning and boxes of trees against slow, obvious computations."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from jointforest.data.schema import Columns, snap
from jointforest.learners.growing.grow import (
    GrowthRows,
    GrowthSettings,
    Ranks,
    RankTree,
    Scratch,
    find_leaves,
    grow,
    join_trees,
    prune,
    rank,
    scratch_for,
)
from jointforest.learners.growing.grow_kernels import (
    ENTROPY,
    GINI,
    VARIANCE,
    best_levels,
    best_threshold,
    cut_ranks,
    describe_node,
)
from jointforest.models.box_forest.structure import Trees, add_stump, leaf_boxes
from jointforest.models.box_forest.structure_kernels import rows_below

from ...compiled import compiled


def make_columns(levels: list[int], step: list[float] | None = None) -> Columns:
    """Columns without atoms; ``levels[j]`` is the number of levels of column j, 0 if it is numeric."""
    is_categorical = np.array([k > 0 for k in levels], dtype=np.uint8)
    slot = np.where(is_categorical == 1, np.cumsum(is_categorical == 1), np.cumsum(is_categorical == 0)) - 1
    p = int((is_categorical == 0).sum())
    return Columns(
        is_categorical=is_categorical,
        slot=slot.astype(np.int32),
        step=np.zeros(p) if step is None else np.array(step),
        origin=np.zeros(p),
        atom_start=np.zeros(p + 1, dtype=np.int32),
        atom_value=np.empty(0),
        level_start=np.cumsum([0] + [k for k in levels if k > 0]).astype(np.int32),
    )


# -- the best split of one column


def purity_of(y: np.ndarray, weight: np.ndarray, criterion: int) -> float:
    """W * (1 - Gini impurity), - W * entropy, or - W * variance of some rows."""
    total = weight.sum()
    if total == 0:
        return 0.0
    if criterion == VARIANCE:
        return float(-(weight * (y - np.average(y, weights=weight)) ** 2).sum())
    share = np.bincount(y.astype(int), weight) / total
    if criterion == ENTROPY:
        return float(-total * scipy.stats.entropy(share))
    return float(total * (share**2).sum())


def gain_of(is_left: np.ndarray, y: np.ndarray, weight: np.ndarray, criterion: int = GINI) -> float:
    parts = [purity_of(y[side], weight[side], criterion) for side in (is_left, ~is_left)]
    return sum(parts) - purity_of(y, weight, criterion)


def is_valid(is_left: np.ndarray, weight: np.ndarray, least: float) -> bool:
    """Whether both sides have rows, and enough weight."""
    return all(side.any() and weight[side].sum() >= least for side in (is_left, ~is_left))


class Node(NamedTuple):
    """Rows of a node: codes of one column, targets and weights; those of its rows."""

    codes: np.ndarray
    rows: np.ndarray
    least: float
    scratch: Scratch
    c: np.ndarray
    t: np.ndarray
    w: np.ndarray

    def gains(self, sets: list[np.ndarray], criterion: int) -> list[float]:
        """Gain of each set of rows that may go left; minus infinity if it may not."""
        return [gain_of(s, self.t, self.w, criterion) if is_valid(s, self.w, self.least) else -np.inf for s in sets]


def make_node(
    codes: np.ndarray, y: np.ndarray, weight: np.ndarray, rows: np.ndarray, least: float, n_codes: int, n_classes: int
) -> Node:
    criterion = VARIANCE if n_classes == 0 else GINI
    target, both = y.astype(float), np.full(2, n_codes, np.int32)  # scratch for either kind of column
    table = GrowthRows(codes[None], both, np.array([0, 1], np.uint8), np.zeros(2, np.uint8), target, weight)
    scratch = scratch_for(table, rows, n_classes or 2, 0, 0)
    compiled(describe_node)(criterion, target, weight, rows, scratch)
    return Node(codes, rows, least, scratch, codes[rows], y[rows], weight[rows])


@st.composite
def nodes(draw: st.DrawFn, n_codes: int, n_classes: int, limited: bool = True) -> Node:
    """A node of up to 24 rows with weights and limits; targets are numbers if ``n_classes`` is 0."""
    n = draw(st.integers(1, 24))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_codes, n).astype(np.int32)
    y = rng.integers(0, n_classes, n).astype(np.int32) if n_classes else 1e3 + rng.normal(size=n)
    weight = rng.integers(1, 4, n).astype(np.float64) if draw(st.booleans()) else rng.random(n) + 1e-3
    rows = rng.permutation(n)[: draw(st.integers(1, n))].astype(np.int32)
    smallest = float(rng.integers(0, 4)) if draw(st.booleans()) else 0.0
    return make_node(codes, y, weight, rows, smallest if limited else 0.0, n_codes, n_classes)


@pytest.mark.parametrize(("criterion", "n_classes"), [(GINI, 2), (GINI, 3), (ENTROPY, 2), (ENTROPY, 3), (VARIANCE, 0)])
@pytest.mark.parametrize("n_codes", [3, 12, 1000, 100_000])  # few codes are counted, many are listed
@given(data=st.data())
def test_best_threshold(data: st.DataObject, n_codes: int, criterion: int, n_classes: int) -> None:
    node = data.draw(nodes(n_codes, n_classes))
    cuts = np.unique(node.c)[:-1]
    gains = dict(zip(cuts.tolist(), node.gains([node.c <= k for k in cuts], criterion), strict=True))
    for _ in range(2):  # the scratch is as it was
        gain, below, above = compiled(best_threshold)(criterion, node.codes, node.rows, node.scratch, node.least)
        if not gains:
            assert (gain, below, above) == (-np.inf, -1, -1)
        elif max(gains.values()) == -np.inf:
            assert (gain, below, above) == (0.0, -1, -1)
        else:
            assert gain == pytest.approx(max(gains.values()), abs=1e-9)
            assert gains[below] == pytest.approx(gain, abs=1e-9)
            assert above == node.c[node.c > below].min()


def run_best_levels(node: Node, n_levels: int, ordered: bool, criterion: int) -> tuple[float, np.ndarray]:
    node.scratch.trial[:] = 0
    gain = compiled(best_levels)(criterion, node.codes, n_levels, ordered, node.rows, node.scratch, node.least)
    return gain, node.scratch.trial.astype(bool)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(("criterion", "n_classes"), [(GINI, 2), (ENTROPY, 2), (VARIANCE, 0)])
@given(data=st.data())
def test_best_levels_are_found_exactly(data: st.DataObject, criterion: int, n_classes: int, ordered: bool) -> None:
    n_levels = 6
    # with limits the best allowed set need not be one of those sorted by share
    node = data.draw(nodes(n_levels, n_classes, limited=ordered))
    if ordered:
        sets = [np.arange(n_levels) <= k for k in range(n_levels - 1)]
    else:
        sets = [np.array(bits, dtype=bool) for bits in itertools.product([False, True], repeat=n_levels)]
    best = max(node.gains([s[node.c] for s in sets], criterion))
    gain, found = run_best_levels(node, n_levels, ordered, criterion)
    if best == -np.inf:
        assert gain == (0.0 if len(np.unique(node.c)) > 1 else -np.inf)
        return
    assert gain == pytest.approx(best, abs=1e-9)
    assert gain_of(found[node.c], node.t, node.w, criterion) == pytest.approx(gain, abs=1e-9)
    absent = ~np.isin(np.arange(n_levels), node.c)
    if ordered:
        assert (np.diff(found.astype(int)) <= 0).all()
    elif absent.any():
        left, right = (node.w[side].sum() for side in (found[node.c], ~found[node.c]))
        if left != pytest.approx(right):
            assert (found[absent] == (left > right)).all()


@pytest.mark.parametrize("criterion", [GINI, ENTROPY])
@pytest.mark.parametrize(("n_classes", "n_levels"), [(2, 7), (3, 7), (4, 70)])
@given(data=st.data())
def test_best_levels_is_a_valid_set_with_its_gain(
    data: st.DataObject, n_classes: int, n_levels: int, criterion: int
) -> None:
    node = data.draw(nodes(n_levels, n_classes))
    gain, found = run_best_levels(node, n_levels, False, criterion)
    if gain == -np.inf:
        assert len(np.unique(node.c)) < 2
    elif gain > 0.0:
        assert is_valid(found[node.c], node.w, node.least)
        assert gain == pytest.approx(gain_of(found[node.c], node.t, node.w, criterion), abs=1e-9)


@pytest.mark.parametrize("criterion", [GINI, ENTROPY, VARIANCE])
def test_many_levels_are_split_exactly(criterion: int) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 200, 2000).astype(np.int32)
    y = (rng.random(2000) < rng.random(200)[codes]).astype(np.int32)
    if criterion == VARIANCE:
        y = y + rng.normal(size=2000)
    rows, unlimited = np.arange(2000, dtype=np.int32), 0.0
    node = make_node(codes, y, np.ones(2000), rows, unlimited, 200, 0 if criterion == VARIANCE else 2)
    gain, found = run_best_levels(node, 200, False, criterion)
    share = np.array([y[codes == k].mean() for k in range(200)])
    order = np.argsort(share)
    best = max(gain_of(np.isin(codes, order[:k]), y, np.ones(2000), criterion) for k in range(1, 200))
    assert gain == pytest.approx(best, rel=1e-9)
    assert share[found].max() <= share[~found].min()


# -- ranks


def test_ranks_and_snapping() -> None:
    columns = make_columns([0, 3, 0], step=[0.0, 0.5])
    X = np.array([[2.0, 2, 0.74], [np.nan, np.nan, np.nan], [-1.0, 0, 0.26], [2.0, 0, -0.1]])
    snapped = snap(columns, X)
    assert snapped[:, 2].tolist() == pytest.approx([0.5, np.nan, 0.5, 0.0], nan_ok=True)
    assert X[0, 2] == 0.74
    ranks = rank(columns, snapped[[0, 2, 3]])
    assert ranks.codes.tolist() == [[1, 0, 1], [2, 0, 0], [1, 1, 0]]
    assert ranks.n_codes.tolist() == [2, 3, 2]
    assert ranks.value_start.tolist() == [0, 2, 2, 4]
    assert ranks.values.tolist() == [-1.0, 2.0, 0.0, 0.5]


# -- whole trees


class Table:
    """A random table with classes and bootstrap weights, and trees grown on it."""

    def __init__(self, seed: int, n: int = 150, n_classes: int = 2, tied: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.columns = make_columns([0, 5, 0, 70, 0], step=[0.0, 0.5, 0.0])
        x = rng.normal(size=(n, 5))
        x[:, 1] = rng.integers(0, 5, n)
        x[:, 3] = rng.integers(0, 70, n)
        if tied:  # neighbouring floats
            x[:, 4] = np.nextafter(1.0, 2.0) * rng.integers(0, 2, n) + 0.0
            x[:, 4] = np.where(x[:, 4] > 0, np.nextafter(1.0, 2.0), 1.0)
        signal = x[:, 0] + (x[:, 1] == 2) - (x[:, 3] % 3 == 0) + (x[:, 4] > 1)
        self.y = np.digitize(signal + rng.normal(size=n), np.linspace(-0.5, 1, n_classes - 1)).astype(np.int32)
        self.X = snap(self.columns, x)
        self.ranks = rank(self.columns, self.X)
        self.weight = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
        self.n_classes = n_classes

    def grow(self, is_ordered: tuple[int, ...] = (0, 0, 0, 0, 0), **settings: object) -> RankTree:
        stream = {"seed": settings.pop("seed", 7), "number": settings.pop("number", 3)}
        how = GrowthSettings(**({"max_features": 5} | settings))
        return grow(
            self.ranks, self.columns.is_categorical, np.array(is_ordered, np.uint8), self.y, self.n_classes,
            self.weight, how, **stream,
        )[0]  # fmt: skip

    def node_table(self, trees: list[RankTree], leaf_nodes: list[np.ndarray]) -> Trees:
        counts = [np.bincount(node, minlength=len(t.feature)) for t, node in zip(trees, leaf_nodes, strict=True)]
        return join_trees(self.columns, self.ranks, trees, counts)


def depths(tree: RankTree) -> np.ndarray:
    out = np.zeros(len(tree.left), dtype=int)
    for node in range(len(tree.left)):
        if tree.left[node] >= 0:
            out[[tree.left[node], tree.right[node]]] = out[node] + 1
    return out


def walk(trees: Trees, root: int, row: np.ndarray) -> int:
    """Leaf of a complete row, from the definition of the node table."""
    node = root
    while trees.left[node] >= 0:
        x = row[trees.feature[node]]
        if trees.levels_at[node] < 0:
            left = x <= trees.threshold[node]
        else:
            word = int(trees.left_levels[trees.levels_at[node] + int(x) // 64])
            left = bool(word >> (int(x) % 64) & 1)
        node = trees.left[node] if left else trees.right[node]
    return int(trees.leaf[node])


def check_structure(trees: Trees) -> None:
    """What the docstring of `Trees` promises."""
    inner = trees.left >= 0
    assert ((trees.feature >= 0) == inner).all()
    assert ((trees.right >= 0) == inner).all()
    assert ((trees.leaf < 0) == inner).all()
    nodes_ = np.arange(len(inner))[inner]
    assert (trees.left[inner] > nodes_).all()
    assert (trees.right[inner] > nodes_).all()
    children = np.concatenate([trees.left[inner], trees.right[inner]])
    assert sorted([*children, *trees.root]) == list(range(len(inner)))
    assert sorted(trees.leaf[~inner]) == list(range((~inner).sum()))
    assert trees.weight[trees.root] == pytest.approx(1.0)
    assert trees.weight[inner] == pytest.approx(trees.weight[trees.left[inner]] + trees.weight[trees.right[inner]])
    assert np.isfinite(trees.threshold).all()


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_row_lies_in_the_box_of_its_leaf(seed: int, tied: bool) -> None:
    table = Table(seed, tied=tied)
    settings = [{}, {"max_leaf_nodes": 9}, {"is_ordered": (0, 1, 0, 1, 0), "max_features": 1}]
    grown = [table.grow(number=t, **s) for t, s in enumerate(settings)]
    leaf_nodes = [find_leaves(tree, table.ranks.codes) for tree in grown]
    trees = table.node_table(grown, leaf_nodes)
    check_structure(trees)
    lo, hi, allowed = leaf_boxes(trees, table.columns)
    first = 0
    numeric = table.X[:, table.columns.is_categorical == 0]
    levels = table.X[:, table.columns.is_categorical == 1].astype(int) + table.columns.level_start[:-1]
    for t, (tree, leaf_node) in enumerate(zip(grown, leaf_nodes, strict=True)):
        leaf_of = trees.leaf[trees.root[t] + leaf_node]
        n_leaves = int((tree.left < 0).sum())
        for i, row in enumerate(table.X):  # also those that the bootstrap did not draw
            inside = ((lo < numeric[i]) & (numeric[i] <= hi)).all(1) & allowed[:, levels[i]].all(1)
            found = np.flatnonzero(inside[first : first + n_leaves]) + first
            assert found.tolist() == [leaf_of[i]] == [walk(trees, trees.root[t], row)]
        rows = np.bincount(leaf_of - first, minlength=n_leaves)
        assert trees.weight[trees.root[t] : trees.root[t] + len(tree.left)][tree.left < 0] * len(
            table.X
        ) == pytest.approx(rows)
        first += n_leaves


def test_thresholds_are_halfway_and_on_cell_edges() -> None:
    table = Table(0)
    tree = table.grow()
    trees = table.node_table([tree], [find_leaves(tree, table.ranks.codes)])
    for node in np.flatnonzero((trees.feature >= 0) & (trees.levels_at < 0)):
        x = np.unique(table.X[:, trees.feature[node]])
        low, high = x[x <= trees.threshold[node]].max(), x[x > trees.threshold[node]].min()
        if trees.feature[node] == 2:
            assert trees.threshold[node] % 0.5 == pytest.approx(0.25)
        else:
            assert trees.threshold[node] == pytest.approx((low + high) / 2)


@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=30, unique=True),
    data=st.data(),
)
def test_cuts_separate_any_two_values(values: list[float], data: st.DataObject) -> None:
    x = np.unique(np.array(values) + 0.0)
    low = data.draw(st.integers(0, len(x) - 2))
    high = data.draw(st.integers(low + 1, len(x) - 1))
    one = np.zeros(1, np.int32)
    cut = np.array([low], np.int32)
    cut_ranks(one, cut, np.array([high], np.int32), np.array([0, len(x)]), x)
    middle = x[low] / 2 + x[high] / 2
    between = np.arange(low + 1, high)
    assert cut[0] == low + (x[between] <= middle).sum()
    columns = make_columns([0])
    ranks = Ranks(np.zeros((1, 1), np.int32), np.array([len(x)], np.int32), np.array([0, len(x)]), x)
    tree = RankTree(
        feature=np.array([0, -1, -1], np.int32),
        below_rank=np.array([cut[0], -1, -1], np.int32),
        levels_at=np.full(3, -1, np.int32),
        left=np.array([1, -1, -1], np.int32),
        right=np.array([2, -1, -1], np.int32),
        level_words=np.empty(0, np.uint64),
    )
    threshold = join_trees(columns, ranks, [tree], [np.array([0, 1, 1])]).threshold[0]
    assert x[cut[0]] <= threshold < x[cut[0] + 1]


def test_a_value_halfway_goes_left() -> None:
    """As it would if the threshold were there."""
    cut, high = np.array([0, 1], np.int32), np.array([4, 3], np.int32)
    cut_ranks(np.zeros(2, np.int32), cut, high, np.array([0, 5]), np.arange(5.0))
    assert cut.tolist() == [2, 2]


@pytest.mark.parametrize("settings", [{"max_depth": 1}, {"max_depth": 3}, {"max_depth": 3, "max_leaf_nodes": 5}])
def test_depth_limit(settings: dict) -> None:
    tree = Table(1).grow(**settings)
    assert depths(tree).max() == settings["max_depth"]


@pytest.mark.parametrize("limit", [2, 3, 6])
def test_leaf_limit_makes_the_best_splits(limit: int) -> None:
    table = Table(2)
    tree = table.grow(max_leaf_nodes=limit)
    assert (tree.left < 0).sum() == limit
    gains = split_gains(table, tree)
    inner = np.flatnonzero(tree.left >= 0)
    # best first: whatever was split gains at least as much as any leaf could have, of those its parents opened
    full = table.grow()
    full_gains = split_gains(table, full)
    chosen, frontier = [], {0: full_gains[0]}
    for _ in range(limit - 1):
        node = max(frontier, key=frontier.__getitem__)
        chosen.append(frontier.pop(node))
        frontier |= {int(c): full_gains[c] for c in (full.left[node], full.right[node]) if full.left[c] >= 0}
    assert sorted(gains[inner]) == pytest.approx(sorted(chosen))


def split_gains(table: Table, tree: RankTree) -> np.ndarray:
    """Gain of each inner node on the rows that the tree was grown on (complete rows)."""
    rows = {0: np.flatnonzero(table.weight > 0)}
    gains = np.zeros(len(tree.left))
    for node in range(len(tree.left)):
        if tree.left[node] < 0:
            continue
        at = rows[node]
        code = table.ranks.codes[tree.feature[node], at]
        if tree.levels_at[node] < 0:
            left = code <= tree.below_rank[node]
        else:
            words = tree.level_words[tree.levels_at[node] :].tolist()
            left = np.array([bool(words[c // 64] >> (c % 64) & 1) for c in code.tolist()])
        gains[node] = gain_of(left, table.y[at], table.weight[at])
        rows[int(tree.left[node])], rows[int(tree.right[node])] = at[left], at[~left]
    return gains


def test_constant_columns_count_as_tried_unless_told_to_keep_looking() -> None:
    rng = np.random.default_rng(0)
    X = np.c_[np.zeros((64, 9)), rng.random(64)]
    X = np.r_[X, np.ones((1, 10))]  # a last row, not drawn: the columns are constant in the tree alone
    y = (X[:, 9] > 0.5).astype(np.int32)
    ranks, no = rank(make_columns([0] * 10), X), np.zeros(10, np.uint8)
    split, drawn = {True: 0, False: 0}, np.r_[np.ones(64), 0.0]
    for keep_looking in split:
        for t in range(200):
            tree, _ = grow(ranks, no, no, y, 2, drawn, GrowthSettings(3, keep_looking=keep_looking), seed=0, number=t)
            split[keep_looking] += len(tree.left) > 1
    assert split[True] == 200 and GrowthSettings(3).keep_looking  # as scikit-learn does
    assert split[False] == pytest.approx(0.3 * 200, abs=5 * np.sqrt(0.21 * 200))
    ranks = rank(make_columns([0] * 10), X[:64])  # columns constant in the table never count
    for t in range(20):
        how = GrowthSettings(1, keep_looking=False)
        tree, _ = grow(ranks, no, no, y[:64], 2, np.ones(64), how, seed=0, number=t)
        assert len(tree.left) > 1


@pytest.mark.parametrize("settings", [{}, {"max_leaf_nodes": 7}, {"min_samples_split": 200.0}])
def test_rows_are_found_where_growing_left_them(settings: dict) -> None:
    table = Table(9, n=400)
    how, no = GrowthSettings(2, **settings), np.zeros(5, np.uint8)
    tree, node = grow(table.ranks, table.columns.is_categorical, no, table.y, 2, table.weight, how, seed=7, number=3)
    for one, other in zip(tree, table.grow(max_features=2, **settings), strict=True):
        assert one.tolist() == other.tolist()
    assert node.tolist() == find_leaves(tree, table.ranks.codes).tolist()


@pytest.mark.parametrize("criterion", [GINI, ENTROPY, VARIANCE])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_unlimited_tree_ends_in_pure_leaves(n_classes: int, criterion: int) -> None:
    table = Table(3, n_classes=n_classes)
    tree = table.grow(criterion=criterion)
    leaf = find_leaves(tree, table.ranks.codes)
    drawn = table.weight > 0
    for node in np.unique(leaf[drawn]):
        assert len(np.unique(table.y[drawn & (leaf == node)])) == 1


def test_variance_of_two_classes_is_gini() -> None:
    """p (1 - p) is half of Gini's impurity, so the trees are the same; weights of any size leave no ties."""
    table = Table(8, n=400)
    table.weight *= np.random.default_rng(0).uniform(0.5, 1.5, 400)
    gini, variance = (table.grow(criterion=c, max_features=2, min_samples_leaf=3) for c in (GINI, VARIANCE))
    assert len(gini.left) > 9
    for one, other in zip(gini, variance, strict=True):
        assert one.tolist() == pytest.approx(other.tolist())


def test_best_first_equals_depth_first_when_unlimited() -> None:
    table = Table(4)
    leaves = []
    for settings in ({}, {"max_leaf_nodes": 10_000}):
        tree = table.grow(**settings)
        leaf = find_leaves(tree, table.ranks.codes)
        leaves.append({tuple(np.flatnonzero(leaf == node)) for node in np.unique(leaf)})
    assert leaves[0] == leaves[1]


def test_split_size() -> None:
    table = Table(5)
    tree = table.grow(min_samples_split=20)
    leaf = find_leaves(tree, table.ranks.codes)
    below = rows_below(tree.left, tree.right, np.bincount(leaf, table.weight, len(tree.left)))
    assert (below[tree.left >= 0] >= 20 - 1e-9).all()


def test_known_leaves_stay_and_the_others_are_found() -> None:
    table = Table(6)
    tree = table.grow()
    leaf = find_leaves(tree, table.ranks.codes)
    known = np.where(np.arange(len(leaf)) % 3 == 0, leaf, -1).astype(np.int32)
    assert find_leaves(tree, table.ranks.codes, known).tolist() == leaf.tolist()


@pytest.mark.parametrize("X", [np.zeros((1, 2)), np.ones((20, 2)), np.full((20, 2), np.nan)])
def test_nothing_to_split(X: np.ndarray) -> None:
    columns = make_columns([0, 0])
    y = np.arange(len(X), dtype=np.int32) % 2
    no = np.zeros(2, np.uint8)
    tree, _ = grow(rank(columns, X), no, no, y, 2, np.ones(len(X)), GrowthSettings(2), seed=0, number=0)
    assert tree.left.tolist() == [-1]


def test_deep_trees_and_their_boxes() -> None:
    n = 300
    X = np.cumsum(np.arange(n, dtype=float))[:, None]
    columns = make_columns([0])
    ranks = rank(columns, X)
    y = (np.arange(n) % 2).astype(np.int32)
    no = np.zeros(1, np.uint8)
    tree, _ = grow(ranks, no, no, y, 2, np.ones(n), GrowthSettings(1), seed=0, number=0)
    assert (tree.left < 0).sum() == n
    assert depths(tree).max() > 64
    leaf = find_leaves(tree, ranks.codes)
    trees = join_trees(columns, ranks, [tree], [np.bincount(leaf, minlength=len(tree.left))])
    lo, hi, _ = leaf_boxes(trees, columns)
    at = trees.leaf[leaf]
    assert sorted(at) == list(range(n))
    middle = (X[1:, 0] + X[:-1, 0]) / 2
    assert lo[at, 0].tolist() == [-np.inf, *middle]
    assert hi[at, 0].tolist() == [*middle, np.inf]


# -- against scikit-learn

NAMES = {GINI: "gini", ENTROPY: "entropy", VARIANCE: "squared_error"}


def continuous_rows(criterion: int, n: int = 400, d: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Continuous columns; classes, or numbers; bootstrap weights."""
    rng = np.random.default_rng(criterion)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(float)  # scikit-learn keeps single precision
    signal = X[:, 0] + np.sin(3 * X[:, 1]) + 0.5 * rng.normal(size=n)
    weight = np.bincount(rng.integers(0, n, n), minlength=n).astype(float)
    if criterion == VARIANCE:
        return X, signal, weight
    return X, np.digitize(signal, [-1.0, 0.0, 0.5]).astype(np.int32), weight


def both_trees(criterion: int, weighted: bool, **settings: float) -> tuple[RankTree, object, tuple]:
    """Our tree and scikit-learn's with all columns tried; X, y, weights and each drawn row's leaf in ours."""
    X, y, weight = continuous_rows(criterion)
    weight = weight if weighted else np.ones(len(X))
    make = DecisionTreeRegressor if criterion == VARIANCE else DecisionTreeClassifier
    theirs = make(criterion=NAMES[criterion], random_state=0, **settings).fit(X, y, weight)
    columns, no = make_columns([0] * X.shape[1]), np.zeros(X.shape[1], np.uint8)
    ranks = rank(columns, X)
    how = GrowthSettings(X.shape[1], criterion, **settings)
    ours, _ = grow(ranks, no, no, y, 4, weight, how, seed=0, number=0)
    drawn = weight > 0
    return ours, theirs, (X[drawn], y[drawn], weight[drawn], find_leaves(ours, ranks.codes)[drawn])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", [GINI, ENTROPY, VARIANCE])
def test_best_split_of_the_root_as_in_scikit_learn(criterion: int, weighted: bool) -> None:
    ours, theirs, (X, y, weight, leaf) = both_trees(criterion, weighted, max_depth=1)
    tree = theirs.tree_  # type: ignore[attr-defined]
    assert ours.feature[0] == tree.feature[0]
    is_left = leaf == ours.left[0]
    assert is_left.tolist() == (X[:, tree.feature[0]] <= tree.threshold[0]).tolist()
    impurity = tree.impurity * tree.weighted_n_node_samples * (np.log(2.0) if criterion == ENTROPY else 1.0)
    assert gain_of(is_left, y, weight, criterion) == pytest.approx(impurity[0] - impurity[1:].sum(), rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", [GINI, ENTROPY, VARIANCE])
@pytest.mark.parametrize("settings", [{}, {"max_depth": 4}, {"max_leaf_nodes": 12}, {"min_samples_leaf": 9}])
def test_impurity_of_the_tree_as_in_scikit_learn(criterion: int, weighted: bool, settings: dict) -> None:
    """scikit-learn's smallest leaf counts distinct rows, ours how often they were drawn: the same without weights."""
    _, theirs, (X, y, weight, leaf) = both_trees(criterion, weighted and "min_samples_leaf" not in settings, **settings)
    their_leaf = theirs.apply(X)  # type: ignore[attr-defined]

    def impurity(leaves: np.ndarray) -> float:
        parts = [leaves == node for node in np.unique(leaves)]
        return sum(
            (weight[at].sum() if criterion == GINI else 0.0) - purity_of(y[at], weight[at], criterion) for at in parts
        )

    whole = impurity(np.zeros(len(y)))
    close = 1e-9 if criterion == VARIANCE else 0.01  # classes tie, and of equal gains either may be chosen
    assert impurity(leaf) == pytest.approx(impurity(their_leaf), abs=1e-9 * whole, rel=close)
    assert len(np.unique(leaf)) == pytest.approx(len(np.unique(their_leaf)), rel=0.03)


@pytest.mark.parametrize("weighted", [False, True])
def test_smallest_leaves(weighted: bool) -> None:
    for criterion in NAMES:
        _, _, (_, _, weight, leaf) = both_trees(criterion, weighted, min_samples_leaf=9)
        assert np.bincount(leaf, weight)[np.unique(leaf)].min() >= 9


def test_numbers_of_any_size_give_the_same_tree() -> None:
    X, y, weight = continuous_rows(VARIANCE)
    ranks, no = rank(make_columns([0] * 4), X), np.zeros(4, np.uint8)
    y = np.round(y, 3)
    y[7] = 1e4  # one far-off number does not hide what the others have to say
    trees = [
        grow(ranks, no, no, z, 0, weight, GrowthSettings(2, VARIANCE), seed=0, number=0)[0]
        for z in (y, 1e3 * y, 1e-9 * y, y + 1e6)
    ]
    assert (trees[0].left < 0).sum() >= 0.9 * (weight > 0).sum()
    for tree in trees[1:]:
        assert tree.feature.tolist() == trees[0].feature.tolist()
        assert tree.below_rank.tolist() == trees[0].below_rank.tolist()


def test_equal_numbers_are_a_leaf() -> None:
    X, _, weight = continuous_rows(VARIANCE)
    ranks, no = rank(make_columns([0] * 4), X), np.zeros(4, np.uint8)
    for y in (np.full(len(X), 0.1), np.where(X[:, 0] > 0, 0.1, 0.7)):
        tree, _ = grow(ranks, no, no, y, 0, weight, GrowthSettings(4, VARIANCE), seed=0, number=0)
        assert (tree.left < 0).sum() == len(np.unique(y))


# -- pruning


def slowly_pruned(tree: RankTree, node: int, rows_at: np.ndarray, least: int) -> tuple:
    """(rows, subtree): a subtree is the old node, and its two subtrees if it stays inner."""
    if tree.left[node] < 0:
        return int(rows_at[node]), (node,)
    rows_a, a = slowly_pruned(tree, int(tree.left[node]), rows_at, least)
    rows_b, b = slowly_pruned(tree, int(tree.right[node]), rows_at, least)
    small_a, small_b = (len(s) == 1 and r < least for s, r in ((a, rows_a), (b, rows_b)))
    rows = rows_a + rows_b
    if small_a and small_b:
        return (0 if node > 0 else rows), (node,)  # goes the way of its children
    if small_a or small_b:
        return rows, b if small_a else a
    return rows, (node, a, b)


def as_nested(tree: RankTree, node: int) -> tuple:
    """The pruned tree as nested splits, to compare by what its nodes ask."""
    if tree.left[node] < 0:
        return ()
    key = (int(tree.feature[node]), int(tree.below_rank[node]), int(tree.levels_at[node]))
    return (key, as_nested(tree, int(tree.left[node])), as_nested(tree, int(tree.right[node])))


def nested_slowly(tree: RankTree, subtree: tuple) -> tuple:
    if len(subtree) == 1:
        return ()
    node, a, b = subtree
    key = (int(tree.feature[node]), int(tree.below_rank[node]), int(tree.levels_at[node]))
    return (key, nested_slowly(tree, a), nested_slowly(tree, b))


@pytest.mark.parametrize("least", [1, 2, 5, 40, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_pruning_against_a_recursive_version(seed: int, least: int) -> None:
    table = Table(seed)
    tree = table.grow()
    rows_at = np.bincount(find_leaves(tree, table.ranks.codes)[table.y == 1], minlength=len(tree.left))
    small, number = prune(tree, rows_at, least)
    _, expected = slowly_pruned(tree, 0, rows_at, least)
    assert as_nested(small, 0) == nested_slowly(tree, expected)
    check_structure(table.node_table([small], [find_leaves(small, table.ranks.codes)]))
    kept = np.flatnonzero(number >= 0)
    assert sorted(number[kept]) == list(range(len(small.left)))
    assert (number[(tree.left < 0) & (rows_at >= least)] >= 0).all()
    assert (number[(tree.left < 0) & (rows_at < least)] < 0).all() or len(small.left) == 1
    split = kept[small.left[number[kept]] >= 0]
    assert (small.feature[number[split]] == tree.feature[split]).all()
    if least == 1000:
        assert len(small.left) == 1


def test_rows_below_add_up() -> None:
    left = np.array([1, 3, -1, -1, -1], np.int32)
    right = np.array([2, 4, -1, -1, -1], np.int32)
    assert rows_below(left, right, np.array([0.0, 0, 5, 2, 3])).tolist() == [10.0, 5, 5, 2, 3]


def test_add_stump() -> None:
    table = Table(0)
    grown = table.grow(max_depth=2)
    trees = table.node_table([grown], [find_leaves(grown, table.ranks.codes)])
    more = add_stump(trees)
    check_structure(more)
    assert more.root.tolist() == [0, len(trees.left)]
    lo, hi, allowed = leaf_boxes(more, table.columns)
    assert np.isneginf(lo[-1]).all() and np.isposinf(hi[-1]).all() and allowed[-1].all()
