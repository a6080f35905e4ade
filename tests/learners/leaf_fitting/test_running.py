"""Sums over rows in batches against exact fractions, and against the sums of rows at hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import kernel_columns
from jointforest.learners.batches.fill import add_leaf_rows, add_sums, leaf_sums_of, no_leaf_rows, one_leaf
from jointforest.learners.leaf_fitting.fit import kernel_codes, leaf_sums, marginals, prepare_table
from jointforest.learners.leaf_fitting.statistics_kernels import rows_by_leaf


def case(n: int, seed: int):
    """Columns and cells (d, n) of numbers, atoms, few and many levels, and leaves of the rows."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n) * 1e6,
            "atom": np.where(rng.random(n) < 0.4, 0.0, rng.normal(size=n)),
            "few": rng.choice(["a", "b", "c"], n),
            "many": rng.integers(0, 90, n).astype(str),
            "far": 1e9 + rng.integers(0, 5, n),
        }
    )
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    schema = infer_schema(frame)
    columns = kernel_columns(schema)
    return columns, encode(schema, frame)[0], rng.integers(0, 4, n).astype(np.int32)


def ones(rows):
    return np.ones(len(rows), np.int64)


def added(columns, X, leaf_of, parts, centre, unit):
    """Sums of the rows, batch after batch, every second one by way of sums of its own."""
    sums = no_leaf_rows(columns, 5, centre, unit, {})
    for k, rows in enumerate(parts):
        values = np.ascontiguousarray(X[rows].T)
        if k % 2:
            own = no_leaf_rows(columns, 5, centre, unit, {})
            add_leaf_rows(own, columns, values, kernel_codes(columns, values), leaf_of[rows], ones(rows))
            add_sums(sums, own)
        else:
            add_leaf_rows(sums, columns, values, kernel_codes(columns, values), leaf_of[rows], ones(rows))
    return sums


@given(st.integers(0, 50), st.integers(1, 6))
def test_sums_are_those_of_the_rows_in_any_order(seed, n_parts):
    columns, X, leaf_of = case(300, seed)
    table = prepare_table(columns, X)
    order = np.random.default_rng(seed).permutation(300)
    once = added(columns, X, leaf_of, [np.arange(300)], table.centre, table.spread)
    parts = added(columns, X, leaf_of, np.array_split(order, n_parts), table.centre, table.spread)
    found, other = leaf_sums_of(columns, once), leaf_sums_of(columns, parts)
    for mine, its in zip(found[:-1], other[:-1], strict=True):
        assert np.array_equal(mine, its)
    for mine, its in zip(found.wide, other.wide, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine, its, strict=True))
    expected = leaf_sums(columns, (table.values, table.codes), table.spread, *rows_by_leaf(leaf_of, 5), np.ones(300))
    for field in ("size", "missing", "atoms", "levels"):
        assert np.array_equal(getattr(found, field), getattr(expected, field)), field
    assert np.allclose(found.off_atoms, expected.off_atoms, rtol=1e-10, atol=1e-12)
    for mine, its in zip(found.wide, expected.wide, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine, its, strict=True))


@given(st.integers(0, 50), st.sampled_from([1, 1000]))
def test_rows_that_count_several_times(seed, parts_of_one):
    """As many rows; and, counted in parts of a row, what sums of rows with weights are."""
    columns, X, leaf_of = case(200, seed)
    times = np.random.default_rng(seed + 1).integers(1, 5, 200)
    table, values = prepare_table(columns, X), np.ascontiguousarray(X.T)
    sums = no_leaf_rows(columns, 5, table.centre, table.spread, {})
    for rows in np.array_split(np.random.default_rng(seed).permutation(200), 3):
        some = np.ascontiguousarray(values[:, rows])
        add_leaf_rows(sums, columns, some, kernel_codes(columns, some), leaf_of[rows], times[rows] * parts_of_one)
    found = leaf_sums_of(columns, sums, 1 / parts_of_one)
    several = added(columns, X, leaf_of, [np.repeat(np.arange(200), times)], table.centre, table.spread)
    cells = table.values, table.codes
    by_weight = leaf_sums(columns, cells, table.spread, *rows_by_leaf(leaf_of, 5), times.astype(np.float64))
    for other in (leaf_sums_of(columns, several), by_weight):
        for field in ("size", "missing", "atoms", "levels"):
            assert np.allclose(getattr(found, field), getattr(other, field), rtol=1e-13), field
        assert np.allclose(found.off_atoms, other.off_atoms, rtol=1e-9, atol=1e-12)
        for mine, its in zip(found.wide, other.wide, strict=True):
            assert all(np.allclose(a, b, rtol=1e-13) for a, b in zip(mine, its, strict=True))
    assert int(sums.rows) == 200


def test_narrow_spread_far_from_the_centre_is_exact():
    x = 1e8 + np.random.default_rng(0).normal(size=500) * 1e-3
    columns = kernel_columns(infer_schema(pd.DataFrame({"x": x}), {"x": "continuous"}))
    sums = no_leaf_rows(columns, 1, np.array([3.0]), np.array([7.0]), {})
    values = x[None]
    add_leaf_rows(sums, columns, values, kernel_codes(columns, values), np.zeros(500, np.int32), ones(x))
    _, mean, deviations, low, high = leaf_sums_of(columns, sums).off_atoms[0, 0]
    exact = [Fraction((v - 3.0) / 7.0) for v in x]
    centre = sum(exact) / 500
    assert mean == pytest.approx(float(3 + 7 * centre), rel=1e-15)
    assert deviations == pytest.approx(float(sum((v - centre) ** 2 for v in exact)), rel=1e-9)
    assert (low, high) == (x.min(), x.max())


def test_what_is_known_of_columns_is_what_the_rows_say():
    columns, X, leaf_of = case(400, 7)
    table = prepare_table(columns, X)
    sums = added(columns, X, leaf_of, np.array_split(np.arange(400), 3), np.zeros(3), np.ones(3))
    found = marginals(columns, leaf_sums_of(columns, one_leaf(columns, sums)))
    for field in ("centre", "spread", "low", "high", "atom_share", "level_share", "missing"):
        assert np.allclose(getattr(found, field), getattr(table, field), rtol=1e-12, atol=0.0), field


def test_column_of_atoms_alone():
    columns = kernel_columns(infer_schema(pd.DataFrame({"x": [np.pi] * 9})))
    table, values = prepare_table(columns, np.full((9, 1), np.pi)), np.full((1, 9), np.pi)
    sums = no_leaf_rows(columns, 1, np.zeros(1), np.ones(1), {})
    add_leaf_rows(sums, columns, values, kernel_codes(columns, values), np.zeros(9, np.int32), ones(range(9)))
    found = marginals(columns, leaf_sums_of(columns, sums))
    assert found.centre == table.centre and found.spread == table.spread and found.low == table.low == np.pi
