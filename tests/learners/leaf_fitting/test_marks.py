"""Counts at and between marks against loops over the rows; numbers made of them against the rows'."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointforest.learners.leaf_fitting.fit import NONE, LeafSums
from jointforest.learners.leaf_fitting.quantile import (
    LeafValues,
    add_marks,
    add_values,
    marks_of,
    values_of_marks,
    values_of_rows,
)
from jointforest.learners.leaf_fitting.statistics_kernels import rows_by_leaf

seeds = st.integers(0, 2**32 - 1)


def by_leaf(x: np.ndarray, atom: np.ndarray, leaf_of: np.ndarray, n_leaves: int) -> LeafValues:
    rows, start = rows_by_leaf(leaf_of, n_leaves)
    return values_of_rows(x, atom, rows, start, np.ones(len(x)))


def sums_of(x: np.ndarray, atom: np.ndarray, leaf_of: np.ndarray, n_leaves: int, unit: float) -> LeafSums:
    """Sums of one column, written out."""
    rest = np.zeros((1, n_leaves, 5))
    for leaf in range(n_leaves):
        own = x[(leaf_of == leaf) & (atom < 0) & ~np.isnan(x)]
        if len(own):
            rest[0, leaf] = len(own), own.mean(), own.var() * len(own) / unit**2, own.min(), own.max()
    none = np.zeros((n_leaves, 0))
    return LeafSums(np.zeros(n_leaves), none, none, rest, np.array([unit]), none, (NONE,))


def table(rng: np.random.Generator, n: int, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells of a column, the atoms they lie on, the leaves that they end in."""
    x = rng.normal(3.0, 2.0, n)
    x = np.round(x / step) * step if step else np.where(rng.random(n) < 0.5, np.round(x), x)
    x[rng.random(n) < 0.1] = np.nan
    atom = np.where(x == np.round(x / 2) * 2, 0, -1) if rng.random() < 0.5 else np.full(n, -1)
    return x, atom.astype(np.int32), rng.integers(0, 5, n).astype(np.int32)


def ones(x: np.ndarray) -> np.ndarray:
    return np.ones(len(x), np.int64)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_rows_that_count_several_times(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, atom, leaf_of = table(rng, 100, 0.0)
    times, sample = rng.integers(0, 4, 100), by_leaf(x[:30], atom[:30], leaf_of[:30], 5)
    once, repeated = marks_of(sample), marks_of(sample)
    add_values(once, x, atom, leaf_of, 8 * times)
    each = np.repeat(np.arange(100), times)
    add_values(repeated, x[each], atom[each], leaf_of[each], ones(each))
    np.testing.assert_array_equal(once.at, 8 * repeated.at)
    np.testing.assert_array_equal(once.above, 8 * repeated.above)
    sums = sums_of(x[each], atom[each], leaf_of[each], 5, unit=1.3)
    for found, other in zip(
        values_of_marks(once, sums, 0, 0.0, 0.125), values_of_marks(repeated, sums, 0, 0.0), strict=True
    ):
        np.testing.assert_array_equal(found, other)
    # less than a row beyond the marks: all of it lies at the ends
    few = values_of_marks(once, sums, 0, 0.0, 0.001)
    assert (few.weight > 0).all() and few.weight.sum() == pytest.approx(0.001 * (once.at.sum() + once.above.sum()))


@given(seeds, st.sampled_from([0.0, 0.5]))
@settings(max_examples=60, deadline=None)
def test_counts_and_what_is_made_of_them(seed: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    x, atom, leaf_of = table(rng, int(rng.integers(1, 200)), step)
    some = rng.random(len(x)) < rng.choice([0.0, 0.1, 0.5])
    sample = by_leaf(x[some], atom[some], leaf_of[some], 6)
    whole, half = marks_of(sample), marks_of(sample)
    add_values(whole, x, atom, leaf_of, ones(x))
    cut = int(rng.integers(0, len(x) + 1))
    add_values(half, x[:cut], atom[:cut], leaf_of[:cut], ones(x[:cut]))
    other = marks_of(sample)
    add_values(other, x[cut:], atom[cut:], leaf_of[cut:], ones(x[cut:]))
    add_marks(half, other)
    np.testing.assert_array_equal(half.at, whole.at)
    np.testing.assert_array_equal(half.above, whole.above)

    sums = sums_of(x, atom, leaf_of, 6, unit=1.7)
    found, rows = values_of_marks(whole, sums, 0, step), by_leaf(x, atom, leaf_of, 6)
    np.testing.assert_allclose(found.mean, rows.mean, atol=1e-12)
    np.testing.assert_allclose(found.var, rows.var, atol=1e-12)
    np.testing.assert_array_equal(found.rows, rows.rows)
    for leaf in range(6):
        want = rows.x[rows.start[leaf] : rows.start[leaf + 1]]
        got = found.x[found.start[leaf] : found.start[leaf + 1]]
        weight = found.weight[found.start[leaf] : found.start[leaf + 1]]
        assert weight.sum() == pytest.approx(len(want)) and (np.diff(got) >= 0).all() and (weight > 0).all()
        if len(want):
            assert got[0] == want[0] and got[-1] == want[-1]
        for mark in whole.x[whole.start[leaf] : whole.start[leaf + 1]]:
            # the distribution function is the rows' at each mark, and beside it
            assert weight[got < mark].sum() == pytest.approx((want < mark).sum())
            if not step:
                assert weight[got <= mark].sum() == pytest.approx((want <= mark).sum())
        if step:
            np.testing.assert_allclose(got / step, np.rint(got / step), atol=1e-9)


def test_a_whole_sample_is_the_rows_themselves() -> None:
    rng = np.random.default_rng(0)
    x, atom, leaf_of = table(rng, 300, 0.5)
    rows = by_leaf(x, atom, leaf_of, 5)
    marks = marks_of(rows)
    add_values(marks, x, atom, leaf_of, ones(x))
    found = values_of_marks(marks, sums_of(x, atom, leaf_of, 5, 1.0), 0, 0.5)
    assert not marks.above.any()
    np.testing.assert_array_equal(np.repeat(found.x, found.weight.astype(int)), rows.x)


def test_the_largest_floats() -> None:
    x = np.array([-1.7e308, 1.7e308, 0.0, 1e308])
    none, leaf_of = np.full(4, -1, np.int32), np.zeros(4, np.int32)
    marks = marks_of(by_leaf(x[2:3], none[2:3], leaf_of[2:3], 1))
    add_values(marks, x, none, leaf_of, ones(x))
    rest = np.array([[[4.0, 2.5e307, 6.0, -1.7e308, 1.7e308]]])
    empty = np.zeros((1, 0))
    sums = LeafSums(np.full(1, 4.0), empty, empty, rest, np.array([1e308]), empty, (NONE,))
    found = values_of_marks(marks, sums, 0, 0.0)
    assert np.isfinite(found.x).all() and found.x[0] == x[0] and found.x[-1] == x[1] and found.weight.sum() == 4
