"""Level masses of columns of many levels: shares and lists beside dense rows."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.data.schema import Columns
from jointforest.models.box_forest.leaves.level_kernels import fill_wide, mix_wide, wide_mass
from jointforest.models.box_forest.leaves.levels import (
    WideLevels,
    apart,
    dense_levels,
    layout,
    mixed_level_masses,
    one_column,
    stacked,
    take_levels,
    weighed_levels,
    weighed_sums,
)

from ....compiled import compiled
from ....random_cases.levels import split_levels
from ....random_cases.models import random_model

SIZES = (70, 3, 65, 128, 1)


def columns_of(sizes: tuple[int, ...] = SIZES) -> Columns:
    """Categorical columns of these many levels."""
    d, start = len(sizes), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    none, zero = np.empty(0), np.zeros(1, np.int32)
    return Columns(np.ones(d, np.uint8), np.arange(d, dtype=np.int32), none, none, zero, none, start)


def random_masses(seed: int, n: int = 12, sizes: tuple[int, ...] = SIZES) -> np.ndarray:
    """Level masses of n rows, many of them 0."""
    rng = np.random.default_rng(seed)
    found = []
    for size in sizes:
        mass = rng.dirichlet(np.ones(size), n) * (rng.random((n, size)) < rng.random((n, 1)))
        mass[:, 0] += mass.sum(axis=1) == 0
        found.append(mass / mass.sum(axis=1, keepdims=True))
    return np.concatenate(found, axis=1)


def dense(columns: Columns, wide: WideLevels) -> np.ndarray:
    """Masses of the wide columns, (R, W), entry by entry."""
    found = []
    for t in range(wide.scale.shape[1]):
        for row in range(len(wide.scale)):
            for level in range(wide.start[t + 1] - wide.start[t]):
                word = int(wide.words[wide.set_at[row, t] + level // 64])
                share = wide.share[wide.share_row[row, t], wide.start[t] + level] * (word >> (level % 64) & 1)
                at = row * wide.scale.shape[1] + t
                listed = range(wide.own_start[at], wide.own_start[at + 1])
                own = sum(wide.own_mass[k] for k in listed if wide.own_level[k] == level)
                found.append(wide.scale[row, t] * share + own)
    parts, at = [], 0
    for t in range(wide.scale.shape[1]):
        size = int(wide.start[t + 1] - wide.start[t])
        parts.append(np.reshape(found[at : at + len(wide.scale) * size], (-1, size)))
        at += len(wide.scale) * size
    return np.concatenate(parts, axis=1)


def of_wide(columns: Columns, mass: np.ndarray) -> np.ndarray:
    """The wide columns' part of level masses."""
    start = columns.level_start
    return np.concatenate([mass[:, start[s] : start[s + 1]] for s in layout(columns).slots], axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_tables_of_rows_and_columns(seed: int) -> None:
    columns, mass = columns_of(), random_masses(seed)
    narrow, wide = split_levels(np.random.default_rng(seed), columns, mass)
    want, where = of_wide(columns, mass), layout(columns)
    assert where.slots.tolist() == [0, 2, 3]
    assert where.place.tolist() == [-1, 0, -2, -3, 3]
    np.testing.assert_array_equal(narrow, mass[:, [70, 71, 72, -1]])
    np.testing.assert_allclose(dense(columns, wide), want, atol=1e-15)
    rows = np.array([5, 0, 5, 11])
    taken = take_levels(where, wide, rows)
    np.testing.assert_allclose(dense(columns, taken), want[rows], atol=1e-15)
    assert len(taken.words) <= len(wide.words)
    fewer = columns_of((3, 128, 70))
    order = take_levels(layout(fewer), wide, rows, [2, 0])
    np.testing.assert_allclose(dense(fewer, order), want[rows][:, [*range(135, 263), *range(70)]], atol=1e-15)
    both = stacked([wide, taken])
    np.testing.assert_allclose(dense(columns, both), np.concatenate([want, want[rows]]), atol=1e-15)
    assert len(both.share) == len(wide.share)
    alone = apart(wide, 1)
    np.testing.assert_allclose(dense(columns_of((65,)), alone), want[:, 70:135], atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_likelihoods_of_levels(seed: int) -> None:
    rng, columns = np.random.default_rng(seed), columns_of((90,))
    mass = random_masses(seed, sizes=(90,))
    _, wide = split_levels(rng, columns, mass)
    likelihood = rng.random(90) * (rng.random(90) < 0.1)
    product = mass * likelihood
    total = product.sum(axis=1, keepdims=True)
    want = np.where(total > 0, product / np.where(total > 0, total, 1), mass)
    np.testing.assert_allclose(dense(columns, weighed_levels(wide, likelihood)), want, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_sums_over_levels_and_rows(seed: int) -> None:
    rng, columns, mass = np.random.default_rng(seed), columns_of(), random_masses(seed)
    _, wide = split_levels(rng, columns, mass)
    rows, weight = np.array([3, 0, 3]), rng.random(len(mass)) * (rng.random(len(mass)) < 0.7)
    for t, slot in enumerate(layout(columns).slots):
        want = mass[:, columns.level_start[slot] : columns.level_start[slot + 1]]
        filled, mixed = np.zeros((3, want.shape[1])), np.zeros(want.shape[1])
        fill_wide(wide, t, rows, filled)
        np.testing.assert_allclose(filled, want[rows], atol=1e-15)
        mix_wide(wide, t, np.arange(len(weight), dtype=np.int32), weight, mixed)
        np.testing.assert_allclose(mixed, weight @ want, atol=1e-14)


def test_rows_that_share_all_levels() -> None:
    rng, size = np.random.default_rng(0), 140
    share, scale, own = rng.dirichlet(np.ones(size)), rng.random(5), np.zeros((5, size))
    row, level = np.array([0, 0, 3]), np.array([2, 139, 64])
    own[row, level] = (0.1, 0.2, 0.3)
    wide = one_column(scale, share, np.ones((1, size), bool), row, level, own[row, level])
    want, filled, mixed = scale[:, None] * share + own, np.zeros((5, size)), np.zeros(size)
    fill_wide(wide, 0, np.arange(5), filled)
    np.testing.assert_allclose(filled, want, rtol=1e-13)
    weight, likelihood = rng.random(5), rng.random(size)
    mix_wide(wide, 0, np.arange(5, dtype=np.int32), weight, mixed)
    np.testing.assert_allclose(mixed, weight @ want, rtol=1e-13)
    np.testing.assert_allclose(weighed_sums(wide, likelihood), want @ likelihood, rtol=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_reading_leaves(seed: int) -> None:
    model = random_model(seed, kinds=("categorical", "categorical", "ordered", "continuous"))
    columns, leaves = model.columns, model.leaves
    whole = [dense_levels(columns, leaves, s) for s in range(3)]
    rows = np.array([2, 0, 2])
    for s in range(3):
        np.testing.assert_array_equal(dense_levels(columns, leaves, s, rows), whole[s][rows])
    weight = np.random.default_rng(seed).random(len(leaves.tree))
    weight[0] = 0.0
    for some in (np.arange(len(weight), dtype=np.int32), np.array([3, 1], np.int32)):
        want = weight[some] @ np.concatenate(whole, axis=1)[some]
        np.testing.assert_allclose(mixed_level_masses(columns, leaves, some, weight[some]), want, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_one_level_by_lookup_is_that_of_the_row(seed: int) -> None:
    columns, mass = columns_of(), random_masses(seed)
    _, wide = split_levels(np.random.default_rng(seed), columns, mass)
    whole, of_level = dense(columns, wide), compiled(wide_mass)
    assert len(wide.own_level)
    for t in range(wide.scale.shape[1]):
        for row in range(len(mass)):
            levels = range(wide.start[t + 1] - wide.start[t])
            found = [of_level(wide, row, t, level) for level in levels]
            np.testing.assert_allclose(found, whole[row, wide.start[t] : wide.start[t + 1]], rtol=1e-12)
