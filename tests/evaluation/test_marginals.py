"""Distances of columns: against the definitions and scipy, and a wrong column found by name."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from jointforest.data.infer_schema import infer_schema
from jointforest.evaluation.columns_and_pairs import column_distances, kolmogorov, read_table_cells

from ..oracle import fidelity as oracle
from .tables import columns, table


@pytest.mark.parametrize("seed", range(5))
def test_distances_are_those_of_the_definition(seed: int) -> None:
    real, other = table(60 + seed, seed), table(45, seed + 50)
    schema = infer_schema(real)
    a, b = read_table_cells(schema, real, "table"), read_table_cells(schema, other, "rows")
    found = column_distances(a, b)
    for j, (name, u, v) in enumerate(zip(a.names, columns(a), columns(b), strict=True)):
        truth = (oracle.kolmogorov if a.is_numeric(j) else oracle.total_variation)(u, v)
        assert found.distance[name] == pytest.approx(truth, abs=1e-12)
    assert found.shape == pytest.approx(1 - np.mean(list(found.distance.values())))
    assert list(found.distance.values()) == sorted(found.distance.values(), reverse=True)
    assert found.missing["y"] == pytest.approx(other["y"].isna().mean() - real["y"].isna().mean())
    assert set(found.missing) == {"y"}


@pytest.mark.parametrize("seed", range(10))
def test_kolmogorov_is_scipys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = np.round(rng.normal(size=50), seed % 3), np.round(rng.normal(size=70) + 0.2, seed % 3)
    assert kolmogorov(a, b) == pytest.approx(ks_2samp(a, b).statistic, abs=1e-12)


def test_a_table_against_itself_shuffled_is_at_no_distance() -> None:
    real = table(200, 0)
    schema = infer_schema(real)
    cells = read_table_cells(schema, real, "table")
    found = column_distances(cells, cells.take(np.random.default_rng(0).permutation(200)))
    assert found.shape == 1.0 and set(found.distance.values()) == {0.0}


def test_the_wrong_column_is_first() -> None:
    real = table(300, 0)
    schema = infer_schema(real)
    cells = read_table_cells(schema, real, "table")
    for name in ("count", "kind"):
        wrong = real.copy()
        wrong[name] = wrong[name] * 0 + 9 if name == "count" else "c"
        assert next(iter(column_distances(cells, read_table_cells(schema, wrong, "rows")).distance)) == name


def test_levels_never_seen_and_missing_cells_are_levels() -> None:
    real = table(100, 0)[["kind"]].astype(object)
    schema = infer_schema(real)
    cells = read_table_cells(schema, real, "table")
    new = real.copy()
    new.loc[:, "kind"] = "new"
    assert column_distances(cells, read_table_cells(schema, new, "rows")).distance["kind"] == 1.0
    gone = real.copy()
    gone.loc[:, "kind"] = None
    share = real["kind"].isna().mean()
    assert column_distances(cells, read_table_cells(schema, gone, "rows")).distance["kind"] == pytest.approx(1 - share)


def test_a_column_of_numbers_that_the_rows_do_not_know_is_as_far_as_can_be() -> None:
    real = table(50, 0)[["x"]]
    schema = infer_schema(real)
    found = column_distances(read_table_cells(schema, real, "table"), read_table_cells(schema, real * np.nan, "rows"))
    assert found.distance == {"x": 1.0} and found.missing == {"x": 1.0}


def test_numbers_that_only_rounding_tells_apart_are_one() -> None:
    real = pd.DataFrame({"x": np.repeat([0.1, 0.1 + 0.2, 0.7], 20)})
    rows = pd.DataFrame({"x": np.repeat([0.1, 0.3, 0.7], 20)})
    schema = infer_schema(real)
    a, b = read_table_cells(schema, real, "table"), read_table_cells(schema, rows, "rows")
    assert schema.columns[0].step > 0
    assert column_distances(a, b).distance["x"] == 0.0
    far = pd.DataFrame({"x": real["x"] + 2.0**33})  # rounding is coarse beside the step there
    next_to_it = pd.DataFrame({"x": np.nextafter(far["x"], np.inf)})
    there, beside = read_table_cells(schema, far, "table"), read_table_cells(schema, next_to_it, "rows")
    assert column_distances(there, beside).distance["x"] == 0.0
    off = pd.DataFrame({"x": np.repeat([0.1, 0.301, 0.7], 20)})  # a number beside the grid stays where it is
    assert column_distances(a, read_table_cells(schema, off, "rows")).distance["x"] > 0.3


def test_a_weight_is_as_many_rows() -> None:
    x, y, weight = np.array([3.0, 1.0, 2.0]), np.array([0.5, 2.5]), np.array([2, 0, 3])
    assert kolmogorov(x, y, weight.astype(float)) == pytest.approx(kolmogorov(np.repeat(x, weight), y), abs=1e-15)
    assert np.isnan(kolmogorov(x, y, np.zeros(3)))
