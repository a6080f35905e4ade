"""Associations of pairs: against the definitions, and a broken pair found by name."""

import numpy as np
import pytest

from jointforest.data.infer_schema import infer_schema
from jointforest.evaluation.columns_and_pairs import (
    TableCells,
    pairs,
    pearson,
    quantile_edges,
    read_table_cells,
    width_edges,
)

from ..oracle import fidelity as oracle
from .tables import columns, table

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("seed", range(4))
def test_similarities_are_those_of_the_definition(seed: int) -> None:
    real, other = table(80, seed), table(60 + seed, seed + 50)
    schema = infer_schema(real)
    a, b = read_table_cells(schema, real, "table"), read_table_cells(schema, other, "rows")
    found = pairs(a, b, RANDOM)
    lists = columns(a), columns(b)
    assert len(found.similarity) == found.n_pairs == 15
    for (first, second), similarity in found.similarity.items():
        i, j = a.names.index(first), a.names.index(second)
        if a.is_numeric(i) and a.is_numeric(j):
            r = [oracle.correlation(one[i], one[j]) for one in lists]
            truth = 1 - abs(r[0] - r[1]) / 2
            assert found.correlation[first, second] == pytest.approx(r, abs=1e-12)
        else:
            cut = {k: oracle.tenth if a.is_numeric(k) else (lambda x, _: x) for k in (i, j)}
            coded = [[cut[k](x, lists[0][k]) for x in one[k]] for one in lists for k in (i, j)]
            tables = list(zip(coded[0], coded[1], strict=True)), list(zip(coded[2], coded[3], strict=True))
            truth = 1 - oracle.total_variation(*tables)
        assert similarity == pytest.approx(truth, abs=1e-12)
    assert found.trend == pytest.approx(np.mean(list(found.similarity.values())))


def test_a_table_against_itself_shuffled_is_alike() -> None:
    cells = read_table_cells(infer_schema(frame := table(150, 1)), frame, "table")
    assert pairs(cells, cells.take(RANDOM.permutation(150)), RANDOM).trend == pytest.approx(1.0, abs=1e-12)


def test_the_broken_pair_is_first() -> None:
    real = table(500, 0)
    schema = infer_schema(real)
    broken = real.copy()
    broken["y"] = RANDOM.permutation(broken["y"])
    found = pairs(read_table_cells(schema, real, "table"), read_table_cells(schema, broken, "rows"), RANDOM)
    first = next(iter(found.similarity))
    assert first in {("x", "y"), ("y", "flag")}
    assert found.correlation["x", "y"][0] > 0.8 > 0.2 > found.correlation["x", "y"][1]


def test_many_levels_are_counted_where_they_occur() -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.integers(0, 5000, (50, 2)).astype(float), rng.integers(0, 5000, (60, 2)).astype(float)
    Z[:20] = X[:20]
    counts = np.array([5000, 5000])
    found = pairs(TableCells(("a", "b"), counts, X), TableCells(("a", "b"), counts, Z), rng)
    truth = 1 - oracle.total_variation([tuple(row) for row in X], [tuple(row) for row in Z])
    assert found.similarity["a", "b"] == pytest.approx(truth)


def test_wide_tables_are_sampled_and_the_seed_says_which() -> None:
    X = np.random.default_rng(0).normal(size=(20, 12))
    cells = TableCells(tuple("abcdefghijkl"), np.zeros(12, dtype=int), X)
    found = [pairs(cells, cells, np.random.default_rng(seed), most=10) for seed in (1, 1, 2)]
    assert found[0].n_pairs == 66 and len(found[0].similarity) == 10
    assert found[0] == found[1] != found[2]


def test_constant_columns_huge_and_tiny_numbers() -> None:
    x = np.array([1.0, 2.0, 4.0, 3.0])
    assert np.isnan(pearson(x, np.ones(4)))
    assert pearson(x * 1e307, -x * 1e-307) == pytest.approx(-1.0)
    assert pearson(1e15 + x, x) == pytest.approx(1.0)
    real = TableCells(("a", "b"), np.zeros(2, dtype=int), np.column_stack([x, np.ones(4)]))
    assert not pairs(real, real, RANDOM).similarity and np.isnan(pairs(real, real, RANDOM).trend)
    true = TableCells(("a", "b"), np.zeros(2, dtype=int), np.column_stack([x, x]))
    assert pairs(true, real, RANDOM).similarity["a", "b"] == pytest.approx(0.5)


def test_edges() -> None:
    x = np.concatenate([np.zeros(90), np.arange(1.0, 11.0)])
    assert quantile_edges(x).tolist() == [0.0]
    assert width_edges(x).tolist() == pytest.approx(list(range(1, 10)))
