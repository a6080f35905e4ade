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
    CircuitNodes,
    SpnRows,
    SpnSettings,
    class_components,
    make_views,
    multiplied_out,
    spn_circuits,
    spn_components,
)
from jointforest.learners.leaf_fitting.learnspn_kernels import FACTORS, PRODUCT, SUM
from jointforest.learners.leaf_fitting.statistics_kernels import rows_by_leaf
from jointforest.runtime.random_kernels import stream_state

from ...compiled import compiled
from .test_independence_kernels import mixed, numeric, table, table_p_value

components = compiled(learnspn_kernels.components)
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
) -> dict[int, CircuitNodes]:
    n, d = X.shape
    weight = np.ones(n) if weight is None else weight
    leaf_of = np.zeros(n, np.int32) if leaf_of is None else leaf_of
    rows, start = rows_by_leaf(np.where(weight > 0, leaf_of, -1).astype(np.int32), int(leaf_of.max()) + 1)
    inside = ~np.isin(np.arange(d), apart)
    return dict(spn_circuits(columns, prepare_table(columns, X), rows, start, weight, spn, inside, seed, 3))


def children(nodes: CircuitNodes, node: int) -> list[int]:
    found, child = [], node + 1
    while child < nodes.end[node]:
        found.append(child)
        child = nodes.end[child]
    return found


def group(nodes: CircuitNodes, f: int) -> list[int]:
    """Rows of a FACTORS node."""
    return nodes.group_rows[nodes.group_start[f] : nodes.group_start[f + 1]].tolist()


def cells(nodes: CircuitNodes, node: int) -> set[tuple[int, int]]:
    """The (row, column) cells of all FACTORS nodes under a node; fails if one is there twice."""
    found: list[tuple[int, int]] = []
    factors = np.cumsum(nodes.kind == FACTORS) - 1
    for q in range(node, nodes.end[node]):
        if nodes.kind[q] == FACTORS:
            found += [
                (i, j) for i in group(nodes, factors[q]) for j in np.flatnonzero(nodes.scope[factors[q]]).tolist()
            ]
    assert len(found) == len(set(found))
    return set(found)


def check(circuits: dict[int, CircuitNodes], leaf_of: np.ndarray, weight: np.ndarray, d: int, spn: SpnSettings) -> None:
    """Every circuit cuts its leaf's rows x columns in pieces; sums cut rows in their shares, products columns."""
    for leaf, nodes in circuits.items():
        own = np.flatnonzero((leaf_of == leaf) & (weight > 0)).tolist()
        assert len(own) >= max(spn.min_samples, 2 * spn.min_rows)
        assert SUM in nodes.kind and nodes.end[0] == len(nodes.kind)
        assert cells(nodes, 0) == {(i, j) for i in own for j in range(d)}
        for q in range(len(nodes.kind)):
            rows = {i for i, _ in cells(nodes, q)}
            scope = {j for _, j in cells(nodes, q)}
            assert cells(nodes, q) == {(i, j) for i in rows for j in scope}
            if nodes.kind[q] == PRODUCT:
                kinds = nodes.kind[children(nodes, q)]
                assert len(kinds) > 1 and np.sum(kinds == FACTORS) <= 1 and PRODUCT not in kinds
            elif nodes.kind[q] == SUM:
                parts = [{i for i, _ in cells(nodes, child)} for child in children(nodes, q)]
                assert min(map(len, parts)) >= spn.min_rows
                shares = np.array([weight[list(part)].sum() for part in parts]) / weight[list(rows)].sum()
                np.testing.assert_allclose(np.exp(nodes.log_weight[children(nodes, q)]), shares, rtol=1e-12)


def value(nodes: CircuitNodes, node: int, of_cell: np.ndarray) -> float:
    """The value of a node when column j has the value ``of_cell[f, j]`` in FACTORS node f, from the definition."""
    if nodes.kind[node] == FACTORS:
        f = int(np.sum(nodes.kind[:node] == FACTORS))
        return float(of_cell[f][nodes.scope[f] == 1].prod())
    below = np.array([value(nodes, child, of_cell) for child in children(nodes, node)])
    if nodes.kind[node] == PRODUCT:
        return float(below.prod())
    return float(np.exp(nodes.log_weight[children(nodes, node)]) @ below)


def check_components(nodes: CircuitNodes, rng: np.random.Generator) -> None:
    """The mixture of products has the value of the circuit, whatever the factors are."""
    mixture = multiplied_out(nodes)
    d = nodes.scope.shape[1]
    assert len(mixture.rows) == len(nodes.scope) and [part.tolist() for part in mixture.rows] == [
        group(nodes, f) for f in range(len(nodes.scope))
    ]
    of_cell = rng.uniform(0.5, 1.5, (len(nodes.scope), d))
    products = of_cell[mixture.group, np.arange(d)].prod(axis=1)
    assert np.exp(mixture.log_weight) @ products == pytest.approx(value(nodes, 0, of_cell), rel=1e-12)
    assert all(nodes.scope[mixture.group[:, j], j].all() for j in range(d))


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
    cells = SpnRows(
        prepared.values, prepared.codes, layout(n_levels).is_categorical, none, none, none, np.empty(0, np.int32)
    )
    got = components(cells, rows, columns, significance, make_views(d, n))
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
    for leaf, nodes in circuits.items():
        check_components(nodes, rng)
        for f in np.flatnonzero(nodes.scope[:, -1]) if has_target else ():
            assert set(group(nodes, f)) == set(np.flatnonzero((leaf_of == leaf) & (weight > 0)))


def test_independent_groups_become_a_product() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([ring(300, rng), rng.normal(size=300), ring(300, rng)])[:, [0, 3, 2, 1, 4]]
    nodes = learn(layout([0] * 5), X)[0]
    assert nodes.kind[0] == PRODUCT
    scopes = [sorted({j for _, j in cells(nodes, child)}) for child in children(nodes, 0)]
    assert scopes == [[0, 3], [1, 4], [2]]
    assert nodes.kind[children(nodes, 0)].tolist() == [SUM, SUM, FACTORS]


def test_products_of_too_many_components(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the columns of a child are independent, and have the rows of all its components."""
    rng = np.random.default_rng(1)
    X = np.column_stack([ring(300, rng), ring(300, rng)])
    nodes = learn(layout([0] * 4), X)[0]
    size = len(multiplied_out(nodes).log_weight)
    monkeypatch.setattr(learnspn, "_MOST_COMPONENTS", size - 1)
    mixture = multiplied_out(nodes)
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
    nodes = learn(layout([0, 0, 0, 2]), X)[0]
    assert nodes.kind.tolist() == [SUM, FACTORS, FACTORS]
    first = {i for i, _ in cells(nodes, 1)}
    wrong = np.mean([(i in first) != cluster[i] for i in range(300)])
    assert min(wrong, 1 - wrong) < 0.01


def test_the_class_apart_is_in_a_factor_of_the_root() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([ring(200, rng), rng.integers(0, 2, 200)])
    X[:, 2] = X[:, 0] > 0
    nodes = learn(layout([0, 0, 2]), X, apart=(2,))[0]
    assert nodes.kind[:2].tolist() == [PRODUCT, SUM]
    assert len(children(nodes, 0)) == 2 and nodes.kind[-1] == FACTORS
    assert nodes.scope[-1].tolist() == [0, 0, 1] and not nodes.scope[:-1, 2].any()
    taking_part = learn(layout([0, 0, 2]), X)[0]
    assert taking_part.kind[0] == SUM


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
    np.testing.assert_array_equal(plain[0].group_rows, weighted[0].group_rows)
    check(weighted, np.zeros(100, np.int32), weight, 2, SPN)


def test_the_seed_decides() -> None:
    rng = np.random.default_rng(8)
    X = np.column_stack([ring(200, rng), ring(200, rng)])
    same = [learn(layout([0] * 4), X, seed=s) for s in (1, 1, 2)]
    for name in ("kind", "end", "log_weight", "scope", "group_start", "group_rows"):
        np.testing.assert_array_equal(getattr(same[0][0], name), getattr(same[1][0], name))
    assert not np.array_equal(same[0][0].group_rows, same[2][0].group_rows)


def test_huge_and_tiny_numbers() -> None:
    X = ring(100, np.random.default_rng(9)) * [1e150, 1e-100] + [1e151, 0]
    check(learn(layout([0, 0]), X), np.zeros(100, np.int32), np.ones(100), 2, SPN)
    assert len(learn(layout([0, 0]), X)[0].kind) == len(learn(layout([0, 0]), X / [1e150, 1e-100])[0].kind)


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
