"""Rows held out: each once, copies together, every column known to whoever learns."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.learners.selection.folds import known_levels, pick_rows, split_folds


def cells(n: int, seed: int = 0) -> np.ndarray:
    """Rows of small numbers, many of them equal, some cells missing."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 3)).astype(float)
    X[rng.random((n, 3)) < 0.1] = np.nan
    return X


def rows_of(X: np.ndarray) -> set[tuple[str, ...]]:
    return {tuple(map(str, row + 0.0)) for row in X}


@pytest.mark.parametrize("folds", [1, 2, 5])
@pytest.mark.parametrize("n", [7, 60, 301])
def test_equal_rows_are_on_one_side(n: int, folds: int) -> None:
    X = cells(n)
    found = split_folds(X, 10_000, folds, 0.2, 0)
    assert len(found) == folds
    for fold in found:
        assert not rows_of(X[fold.learn]) & rows_of(X[fold.held])
        np.testing.assert_array_equal(np.sort(np.concatenate(fold)), np.arange(n))
    if folds > 1:
        np.testing.assert_array_equal(np.sort(np.concatenate([fold.held for fold in found])), np.arange(n))


@pytest.mark.parametrize("folds", [1, 5])
def test_cases_of_few_values_recur_among_held_out_rows(folds: int) -> None:
    """Held-out rows are then as often equal to a learned row as any rows are."""
    X = np.random.default_rng(0).integers(0, 2, (2_000, 9)).astype(float)
    for fold in split_folds(X, 10_000, folds, 0.2, 0):
        learned = rows_of(X[fold.learn])
        assert len(fold.held) == 400
        assert np.mean([tuple(map(str, row)) in learned for row in X[fold.held]]) > 0.9
    amounts = np.column_stack([X, np.random.default_rng(1).integers(0, 30, 2_000)])
    for fold in split_folds(amounts, 10_000, folds, 0.2, 0):
        assert not rows_of(amounts[fold.learn]) & rows_of(amounts[fold.held])


def test_a_share_is_held_out_of_some_rows() -> None:
    X = np.arange(9_000.0).reshape(3_000, 3)
    (fold,) = split_folds(X, 1_000, 1, 0.2, 5)
    assert len(fold.held) == pytest.approx(200, abs=2)
    assert len(fold.learn) + len(fold.held) == 1_000
    (other,) = split_folds(X, 1_000, 1, 0.2, 6)
    assert not np.array_equal(fold.held, other.held)


def test_minus_zero_is_zero_and_missing_cells_are_equal() -> None:
    X = np.array([[0.0, np.nan], [-0.0, -np.nan], [1.0, np.nan]])
    (fold,) = split_folds(X, 10, 1, 0.5, 0)
    assert fold.held.tolist() == [2]


def test_nothing_is_held_out_of_equal_rows() -> None:
    assert split_folds(np.ones((50, 2)), 100, 5, 0.2, 0) == []
    assert split_folds(np.ones((1, 2)), 100, 5, 0.2, 0) == []


def test_a_common_row_is_learned_from() -> None:
    X = np.zeros((100, 2))
    X[:3, 0] = [1, 2, 3]
    for seed in range(10):
        (fold,) = split_folds(X, 100, 1, 0.2, seed)
        assert 50 in fold.learn
        assert len(fold.held) >= 1


@pytest.mark.parametrize("folds", [1, 5])
def test_the_only_known_cell_of_a_column_is_learned_from(folds: int) -> None:
    X = np.arange(40.0).reshape(20, 2)
    X[:, 1] = np.nan
    X[13, 1] = 4.0
    for seed in range(10):
        for fold in split_folds(X, 20, folds, 0.2, seed):
            assert 13 in fold.learn


def test_levels_that_were_not_learned_from_are_missing() -> None:
    learn = np.array([[0.0, 5.0], [1.0, 6.0]])
    held = np.array([[1.0, 7.0], [2.0, 5.0], [np.nan, 5.0]])
    found = known_levels(learn, held, np.array([True, False]))
    np.testing.assert_array_equal(found, [[1.0, 7.0], [np.nan, 5.0], [np.nan, 5.0]])


def test_some_rows_know_every_column() -> None:
    X = np.arange(200.0).reshape(100, 2)
    X[:, 1] = np.nan
    X[63, 1] = 1.0
    for seed in range(5):
        found = pick_rows(X, 10, seed)
        assert 63 in found
        assert len(found) in (10, 11)
        assert (np.diff(found) > 0).all()
    np.testing.assert_array_equal(pick_rows(X, 100, 0), np.arange(100))


def test_values_of_the_only_column_recur_among_held_out_rows() -> None:
    cells = np.random.default_rng(0).integers(0, 40, (400, 1)).astype(float)
    for learn, held in split_folds(cells, 400, 5, 0.2, 0):
        assert np.isin(cells[held], cells[learn]).mean() > 0.9
