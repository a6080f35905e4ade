"""Copies and the closest row, against the definitions."""

import numpy as np
import pytest

from jointforest.data.infer_schema import infer_schema
from jointforest.evaluation import held_out as module
from jointforest.evaluation.columns_and_pairs import TableCells, read_table_cells
from jointforest.evaluation.held_out import RankedTable, count_copies

from ..oracle import fidelity as oracle
from .tables import columns, table

REAL = table(80, 0)
SCHEMA = infer_schema(REAL)
A = read_table_cells(SCHEMA, REAL, "table")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_distances_are_those_of_the_definition() -> None:
    other = read_table_cells(SCHEMA, table(30, 1), "rows")
    lists, rows = columns(A), list(zip(*columns(other), strict=True))
    levels = [A.is_numeric(j) for j in range(len(A.names))]
    found = RankedTable(A).closest(other.X)
    for row, distance in zip(rows, found, strict=True):
        truth = min(oracle.gower(row, one, lists, levels) for one in zip(*lists, strict=True))
        assert distance == pytest.approx(truth, abs=1e-6)


def test_blocks_of_rows_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    other = read_table_cells(SCHEMA, table(30, 1), "rows")
    whole = RankedTable(A).closest(other.X)
    monkeypatch.setattr(module, "chunks", lambda n, size: [(k, min(k + 7, n)) for k in range(0, n, 7)])
    assert RankedTable(A).closest(other.X).tolist() == whole.tolist()


def test_a_table_shuffled_is_all_copies_and_new_rows_none() -> None:
    new = read_table_cells(SCHEMA, table(40, 1), "rows")
    found = count_copies(A, A.take(rng().permutation(80)), new, rng())
    assert found.share == 1.0 and found.distance == (0.0, 0.0)
    assert found.share_held_out == 0.0 and found.distance_held_out is not None and found.distance_held_out[0] > 0.0
    alone = count_copies(A, new, None, rng())
    assert alone.share == 0.0 and alone.share_held_out is None and alone.distance == found.distance_held_out


def test_some_copies_are_counted() -> None:
    other = read_table_cells(SCHEMA, table(60, 1), "rows")
    mixed = other._replace(X=np.concatenate([other.X, A.X[:20]]))
    assert count_copies(A, mixed, None, rng()).share == pytest.approx(0.25)


def test_minus_zero_and_missing_cells_are_equal_to_themselves() -> None:
    cells = TableCells(("a", "b"), np.zeros(2, dtype=int), np.array([[0.0, np.nan], [1.0, 2.0]]))
    other = cells._replace(X=np.array([[-0.0, -np.nan], [1.0, np.nan]]))
    assert count_copies(cells, other, None, rng()).share == 0.5


def test_a_column_without_a_known_cell() -> None:
    cells = TableCells(("a",), np.zeros(1, dtype=int), np.full((3, 1), np.nan))
    assert RankedTable(cells).closest(np.array([[np.nan], [1.0]])).tolist() == [0.0, 1.0]


def test_tiny_numbers_are_told_apart() -> None:
    cells = TableCells(("a",), np.zeros(1, dtype=int), np.array([[1e-20], [5.0]]))
    assert count_copies(cells, cells._replace(X=np.array([[2e-20], [5.0]])), None, rng()).share == 0.5
