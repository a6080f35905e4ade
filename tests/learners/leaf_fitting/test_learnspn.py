"""LearnSPN: the graph of dependent columns, the clusters, and the circuits that they make."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans

from jointforest.data.schema import Columns
from jointforest.learners.leaf_fitting import learnspn, learnspn_kernels
from jointforest.learners.leaf_fitting.fit import Table, prepare_table
from jointforest.learners.leaf_fitting.learnspn import (
    Factors,
    Node,
    Product,
    SpnRows,
    SpnSettings,
    SumNode,
    class_components,
    multiplied_out,
    spn_circuits,
    spn_components,
)
from jointforest.learners.leaf_fitting.statistics_kernels import rows_by_leaf
from jointforest.runtime.random_kernels import stream_state

from ...compiled import compiled
from .test_independence import mixed, numeric, table, table_p_value

two_means = compiled(learnspn_kernels.two_means)

SPN = SpnSettings()


def layout(n_levels: list[int]) -> Columns:
    """Columns without grid or atoms; 0 levels: a number."""
    is_categorical = np.array(n_levels) > 0
    slot = np.where(is_categorical, np.cumsum(is_categorical), np.cumsum(~is_categorical)).astype(np.int32) - 1
    zero, start = np.zeros(np.sum(~is_categorical)), np.zeros(np.sum(~is_categorical) + 1, np.int32)
    level_start = np.concatenate([[0], np.cumsum([k for k in n_levels if k > 0])]).astype(np.int32)
    return Columns(is_categorical.astype(np.uint8), slot, zero, zero, start, np.empty(0), level_start)


def learn(
    columns: Columns,
    X: np.ndarray,
    leaf_of: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    apart: tuple[int, ...] = (),
    spn: SpnSettings = SPN,
    seed: int = 0,
) -> dict[int, Node]:
    n, d = X.shape
    weight = np.ones(n) if weight is None else weight
    leaf_of = np.zeros(n, np.int32) if leaf_of is None else leaf_of
    rows, start = rows_by_leaf(np.where(weight > 0, leaf_of, -1).astype(np.int32), int(leaf_of.max()) + 1)
    inside = ~np.isin(np.arange(d), apart)
    return dict(spn_circuits(columns, prepare_table(columns, X), rows, start, weight, spn, inside, seed, 3))


def nodes_of(node: Node) -> list[Node]:
    """A node and all below it, parents first, in the order of the children."""
    return [node, *(below for child in getattr(node, "children", ()) for below in nodes_of(child))]


def cells(node: Node) -> set[tuple[int, int]]:
    """The (row, column) cells of all factors under a node; fails if one is there twice."""
    factors = [one for one in nodes_of(node) if isinstance(one, Factors)]
    found = [(i, j) for one in factors for i in one.rows.tolist() for j in one.columns.tolist()]
    assert len(found) == len(set(found))
    return set(found)


def check(circuits: dict[int, Node], leaf_of: np.ndarray, weight: np.ndarray, d: int, spn: SpnSettings) -> None:
    """Every circuit cuts its leaf's rows x columns in pieces; sums cut rows in their shares, products columns."""
    for leaf, circuit in circuits.items():
        own = np.flatnonzero((leaf_of == leaf) & (weight > 0)).tolist()
        assert len(own) >= max(spn.min_samples, 2 * spn.min_rows)
        assert any(isinstance(node, SumNode) for node in nodes_of(circuit))
        assert cells(circuit) == {(i, j) for i in own for j in range(d)}
        for node in nodes_of(circuit):
            rows = {i for i, _ in cells(node)}
            scope = {j for _, j in cells(node)}
            assert cells(node) == {(i, j) for i in rows for j in scope}
            if isinstance(node, Product):
                kinds = [type(child) for child in node.children]
                assert len(kinds) > 1 and kinds.count(Factors) <= 1 and Product not in kinds
            elif isinstance(node, SumNode):
                parts = [{i for i, _ in cells(child)} for child in node.children]
                assert min(map(len, parts)) >= spn.min_rows
                shares = np.array([weight[list(part)].sum() for part in parts]) / weight[list(rows)].sum()
                np.testing.assert_allclose(np.exp(node.log_weight), shares, rtol=1e-12)


def value(node: Node, factors: list[Node], of_cell: np.ndarray) -> float:
    """The value of a node when column j has the value ``of_cell[f, j]`` in factor f, from the definition."""
    if isinstance(node, Factors):
        f = next(k for k, one in enumerate(factors) if one is node)
        return float(of_cell[f][node.columns].prod())
    below = np.array([value(child, factors, of_cell) for child in node.children])
    return float(np.exp(node.log_weight) @ below if isinstance(node, SumNode) else below.prod())


def check_components(circuit: Node, d: int, rng: np.random.Generator) -> None:
    """The mixture of products has the value of the circuit, whatever the factors are."""
    mixture = multiplied_out(circuit, d)
    factors = [node for node in nodes_of(circuit) if isinstance(node, Factors)]
    assert [part.tolist() for part in mixture.rows] == [one.rows.tolist() for one in factors]
    of_cell = rng.uniform(0.5, 1.5, (len(factors), d))
    products = of_cell[mixture.group, np.arange(d)].prod(axis=1)
    assert np.exp(mixture.log_weight) @ products == pytest.approx(value(circuit, factors, of_cell), rel=1e-12)
    for j in range(d):
        assert all(j in factors[f].columns for f in mixture.group[:, j].tolist())


def ring(n: int, rng: np.random.Generator) -> np.ndarray:
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(n, 2))


# ------------------------------------------------------------------------------------------------- the column graph


def pair_p_value(X: np.ndarray, n_levels: list[int], a: int, b: int) -> float:
    """P-value of one pair of columns; a column of numbers that is mostly one value counts as two levels."""
    numbers, levels = [], []
    for j in (a, b):
        x = X[:, j]
        known = ~np.isnan(x)
        values, counts = np.unique(x[known], return_counts=True)
        if n_levels[j]:
            levels.append(np.where(known, x, -1).astype(int))
        elif counts.max() > 2 / 3 * known.sum():
            levels.append(np.where(known, x == values[counts.argmax()], -1))
        else:
            numbers.append(x)
    if len(numbers) == 2:
        return numeric(*numbers)
    if len(numbers) == 1:
        return mixed(numbers[0], levels[0])
    both = (levels[0] >= 0) & (levels[1] >= 0)
    return table_p_value(table(levels[0][both], levels[1][both]))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(10))
def test_components(seed: int, missing: float) -> None:
    rng = np.random.default_rng(seed)
    n, n_levels = 80, [0, 0, 0, 0, 3, 5, 2, 0]
    hidden = rng.normal(size=(n, 4))[:, rng.integers(0, 4, len(n_levels))]
    X = hidden + rng.uniform(0.3, 1.5) * rng.normal(size=hidden.shape)
    for j, k in enumerate(n_levels):
        if k:
            X[:, j] = np.clip(np.floor(X[:, j] + k / 2), 0, k - 1)
    X[:, 1] = np.round(X[:, 1])
    X[X[:, 2] < 1, 2] = 0.0  # mostly zeros
    X[rng.random(X.shape) < missing] = np.nan
    prepared = prepare_table(layout(n_levels), X)
    d = len(n_levels)
    significance = 0.05
    graph = np.zeros((d, d))
    for a in range(d):
        for b in range(a + 1, d):
            graph[a, b] = pair_p_value(X, n_levels, a, b) < significance / (d * (d - 1) / 2)
    _, expected = connected_components(graph, directed=False)
    rows, columns = rng.permutation(n).astype(np.int32), np.arange(d, dtype=np.int32)
    none = np.empty(0)
    is_categorical = layout(n_levels).is_categorical == 1
    settings = SpnSettings(significance=significance)
    got = SpnRows(prepared.values, is_categorical, none, none, none, none, settings, none).components(rows, columns)
    np.testing.assert_array_equal(got[:, None] == got, expected[:, None] == expected)


# ------------------------------------------------------------------------------------------------------ the clusters


def test_two_means_finds_two_clouds() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(60, 3)), rng.normal(size=(40, 3)) + 5])
    side = two_means(points, 10, stream_state(0, 0))
    expected = KMeans(2, n_init=5, random_state=0).fit_predict(points)
    assert set(side[:60]) != set(side[60:])
    np.testing.assert_array_equal(side == side[0], expected == expected[0])


def test_two_means_ends_near_the_best() -> None:
    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(50, 4))
        side = two_means(points, 1, stream_state(seed, 0))
        loss = sum(((points[side == s] - points[side == s].mean(axis=0)) ** 2).sum() for s in (False, True))
        assert loss < 1.1 * KMeans(2, n_init=20, random_state=0).fit(points).inertia_


def test_two_means_needs_two_clusters_of_some_size() -> None:
    assert not two_means(np.ones((50, 2)), 1, stream_state(0, 0)).any()
    points = np.zeros((50, 1))
    points[:5] = 100.0
    assert two_means(points, 5, stream_state(0, 0)).any()
    assert not two_means(points, 6, stream_state(0, 0)).any()


# ------------------------------------------------------------------------------------------------------ the circuits


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 0.1, 0.6]), st.integers(1, 20))
def test_circuits_cut_the_table_in_pieces(seed: int, has_target: bool, missing: float, min_rows: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = 200, int(rng.integers(1, 7))
    n_levels = rng.choice([0, 0, 2, 6], d).tolist()
    hidden = rng.normal(size=(n, 2))[:, rng.integers(0, 2, d)]
    X = hidden + rng.choice([0.1, 1.0]) * rng.normal(size=(n, d))
    for j, k in enumerate(n_levels):
        if k:
            X[:, j] = np.clip(np.floor(X[:, j] + k / 2), 0, k - 1)
    X[rng.random((n, d)) < missing] = np.nan
    X[:, 0] = rng.choice([X[0, 0], 0.0])  # constant, perhaps missing
    leaf_of = np.sort(rng.integers(0, 4, n)).astype(np.int32)
    weight = rng.poisson(1.0, n).astype(float)
    spn = SpnSettings(min_rows=min_rows, significance=0.5)
    apart = (d - 1,) if has_target else ()
    circuits = learn(layout(n_levels), X, leaf_of, weight, apart, spn)
    check(circuits, leaf_of, weight, d, spn)
    for leaf, circuit in circuits.items():
        check_components(circuit, d, rng)
        for node in nodes_of(circuit) if has_target else ():
            if isinstance(node, Factors) and d - 1 in node.columns:
                assert set(node.rows) == set(np.flatnonzero((leaf_of == leaf) & (weight > 0)))


def test_independent_groups_become_a_product() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([ring(300, rng), rng.normal(size=300), ring(300, rng)])[:, [0, 3, 2, 1, 4]]
    circuit = learn(layout([0] * 5), X)[0]
    assert isinstance(circuit, Product)
    scopes = [sorted({j for _, j in cells(child)}) for child in circuit.children]
    assert scopes == [[0, 3], [1, 4], [2]]
    assert [type(child) for child in circuit.children] == [SumNode, SumNode, Factors]


def test_products_of_too_many_components(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the columns of a child are independent, and have the rows of all its components."""
    rng = np.random.default_rng(1)
    X = np.column_stack([ring(300, rng), ring(300, rng)])
    circuit = learn(layout([0] * 4), X)[0]
    size = len(multiplied_out(circuit, 4).log_weight)
    monkeypatch.setattr(learnspn, "_MOST_COMPONENTS", size - 1)
    mixture = multiplied_out(circuit, 4)
    assert 1 < len(mixture.log_weight) < size and np.exp(mixture.log_weight).sum() == pytest.approx(1.0)
    for j in range(4):
        of_column = [mixture.rows[k] for k in np.unique(mixture.group[:, j])]
        assert sorted(np.concatenate(of_column)) == list(range(300))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_clusters_become_a_sum(missing: float) -> None:
    rng = np.random.default_rng(2)
    cluster = rng.random(300) < 0.3
    X = np.column_stack([rng.normal(size=(300, 3)) + 6 * cluster[:, None], cluster])
    X[:, 3] = np.where(rng.random(300) < 0.1, ~cluster, cluster)
    X[:, :3][rng.random((300, 3)) < missing] = np.nan
    circuit = learn(layout([0, 0, 0, 2]), X)[0]
    assert [type(node) for node in nodes_of(circuit)] == [SumNode, Factors, Factors]
    first = {i for i, _ in cells(nodes_of(circuit)[1])}
    wrong = np.mean([(i in first) != cluster[i] for i in range(300)])
    assert min(wrong, 1 - wrong) < 0.01


def test_the_class_apart_is_in_a_factor_of_the_root() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([ring(200, rng), rng.integers(0, 2, 200)])
    X[:, 2] = X[:, 0] > 0
    circuit = learn(layout([0, 0, 2]), X, apart=(2,))[0]
    assert isinstance(circuit, Product)
    assert [type(child) for child in circuit.children] == [SumNode, Factors]
    assert circuit.children[1].columns.tolist() == [2] and not any(j == 2 for _, j in cells(circuit.children[0]))
    assert isinstance(learn(layout([0, 0, 2]), X)[0], SumNode)


def test_independent_columns_need_no_circuit() -> None:
    """In few leaves of independent columns is anything found: at most the significance, and four standard errors."""
    rng = np.random.default_rng(4)
    n_leaves, size = 400, 50
    X = np.column_stack([rng.normal(size=(n_leaves * size, 5)), rng.integers(0, 3, (n_leaves * size, 3))])
    X[:, 4] = np.round(X[:, 4])
    X[rng.random(X.shape) < 0.1] = np.nan
    leaf_of = np.repeat(np.arange(n_leaves), size).astype(np.int32)
    circuits = learn(layout([0] * 5 + [3] * 3), X, leaf_of)
    assert len(circuits) / n_leaves < 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_leaves)


def test_small_leaves_and_repeated_rows_get_no_circuit() -> None:
    rng = np.random.default_rng(5)
    X = ring(100, rng)
    leaf_of = np.repeat([0, 1], [29, 71]).astype(np.int32)
    weight = np.where(leaf_of == 0, 10.0, 1.0)
    assert list(learn(layout([0, 0]), X, leaf_of, weight)) == [1]
    nothing = spn_components(layout([0, 0]), iter(learn(layout([0, 0]), X[:29]).items()))
    assert [len(field) for field in nothing] == [0, 0, 0, 0, 1, 0] and nothing.group.shape == (0, 2)


def test_rows_weigh_in_the_sums_alone() -> None:
    X = ring(100, np.random.default_rng(6))
    weight = np.random.default_rng(7).integers(1, 4, 100).astype(float)
    plain, weighted = learn(layout([0, 0]), X), learn(layout([0, 0]), X, weight=weight)
    np.testing.assert_array_equal(*(np.concatenate(multiplied_out(one[0], 2).rows) for one in (plain, weighted)))
    check(weighted, np.zeros(100, np.int32), weight, 2, SPN)


def test_the_seed_decides() -> None:
    rng = np.random.default_rng(8)
    X = np.column_stack([ring(200, rng), ring(200, rng)])
    same = [multiplied_out(learn(layout([0] * 4), X, seed=s)[0], 4) for s in (1, 1, 2)]
    np.testing.assert_array_equal(same[0].log_weight, same[1].log_weight)
    np.testing.assert_array_equal(same[0].group, same[1].group)
    rows = [[part.tolist() for part in one.rows] for one in same]
    assert rows[0] == rows[1] != rows[2]


def test_huge_and_tiny_numbers() -> None:
    X = ring(100, np.random.default_rng(9)) * [1e150, 1e-100] + [1e151, 0]
    check(learn(layout([0, 0]), X), np.zeros(100, np.int32), np.ones(100), 2, SPN)
    both = (learn(layout([0, 0]), table)[0] for table in (X, X / [1e150, 1e-100]))
    assert len(nodes_of(next(both))) == len(nodes_of(next(both)))


# ------------------------------------------------------------------------------------------------------- the classes


def test_class_components() -> None:
    rng = np.random.default_rng(10)
    n, columns = 60, layout([0, 3])
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n)])
    leaf_of = rng.integers(0, 3, n).astype(np.int32)
    X[leaf_of == 1, 1] = 2.0
    X[::9, 1] = np.nan
    weight = rng.integers(0, 3, n).astype(float)
    prepared: Table = prepare_table(columns, X)
    rows, start = rows_by_leaf(np.where(weight > 0, leaf_of, -1).astype(np.int32), 3)
    found = class_components(columns, prepared, rows, start, weight, 1)
    assert found.leaf.tolist() == found.group_leaf.tolist() == [0, 0, 0, 2, 2, 2]
    assert found.group.tolist() == [[k, k] for k in range(6)]
    for k, (first, stop) in enumerate(zip(found.group_start[:-1], found.group_start[1:], strict=True)):
        leaf, label, rows_of = found.leaf[k], k % 3, found.group_rows[first:stop]
        assert sorted(rows_of) == np.flatnonzero((leaf_of == leaf) & (X[:, 1] == label) & (weight > 0)).tolist()
        known = weight[(leaf_of == leaf) & ~np.isnan(X[:, 1])].sum()
        assert np.exp(found.log_weight[k]) == pytest.approx(weight[rows_of].sum() / known)


def test_no_leaf_of_two_classes() -> None:
    columns, X = layout([2]), np.array([[0.0, 0.0, 1.0, np.nan]]).T
    found = class_components(
        columns, prepare_table(columns, X), np.arange(4, dtype=np.int32), np.array([0, 2, 4]), np.ones(4), 0
    )
    assert found.leaf.tolist() == [] and found.group.shape == (0, 1)
