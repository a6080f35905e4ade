"""Evidence: values, regions and penalties in place; conditions added to evidence; a column forgotten."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointforest.data.conditions import AllOf, Not, PerRow, between
from jointforest.data.evidence import build, intersect
from jointforest.data.schema import Column, Schema

SCHEMA = Schema(
    (
        Column("i", "integer", "int64", step=1.0, atoms=(0.0, 3.0), n_observed=9),
        Column("x", "continuous", "float64", n_observed=9),
        Column("c", "categorical", "object", levels=("red", "green", "blue"), n_observed=9),
    ),
    "pandas",
)
NAN = math.nan


def members(evidence, row, j):
    """Whole numbers in -9..9 that a cell allows, or None if it says nothing."""
    if not np.isnan(evidence.value[row, j]):
        return {int(evidence.value[row, j])}
    if not evidence.region.size or evidence.region[row, j] < 0:
        return None
    r = evidence.region[row, j]
    span = range(evidence.run_start[r], evidence.run_start[r + 1])
    return {k for k in range(-9, 10) if any(evidence.run_lo[q] < k <= evidence.run_hi[q] for q in span)}


def well_formed(evidence):
    n, d = evidence.value.shape
    dtypes = [array.dtype for array in evidence]
    assert dtypes == [np.float64, np.int32, np.int32, *[np.float64] * 2, np.uint64, *[np.float64] * 3]
    assert evidence.value.flags.c_contiguous
    assert evidence.region.flags.c_contiguous
    assert evidence.region.shape in ((0, 0), (n, d))
    assert len(evidence.log_penalty) == n
    assert evidence.run_start[0] == 0
    assert evidence.run_start[-1] == len(evidence.run_lo) == len(evidence.run_hi)
    assert len(evidence.atoms) == len(evidence.run_start) - 1
    assert len(evidence.run_log_weight) == len(evidence.run_lo)
    assert len(evidence.atom_log_weight) in (0, len(evidence.atoms))
    if evidence.region.size:
        assert not np.any((evidence.region >= 0) & ~np.isnan(evidence.value))
        assert set(np.unique(evidence.region)) - {-1} == set(range(len(evidence.atoms)))
    return evidence


def test_nothing_known():
    evidence = well_formed(build(SCHEMA))
    assert evidence.value.shape == (1, 3)
    assert np.isnan(evidence.value).all()
    assert evidence.region.shape == (0, 0)
    assert build(SCHEMA, n=4).value.shape == (4, 3)
    assert build(SCHEMA, conditions={"i": None}).region.shape == (0, 0)


def test_values_and_penalties():
    X = np.array([[1.0, 0.5, NAN], [NAN, 0.5, NAN]])
    unseen = np.array([[False, False, True], [False, False, False]])
    evidence = well_formed(build(SCHEMA, X, unseen))
    np.testing.assert_array_equal(evidence.value, X)
    np.testing.assert_allclose(evidence.log_penalty, [-math.log(10), 0.0])
    assert evidence.value is not X


def test_conditions_meet_values():
    X = np.array([[1.0, NAN, 0.0], [5.0, NAN, 1.0], [NAN, NAN, NAN]])
    evidence = well_formed(build(SCHEMA, X, conditions={"i": between(0, 2), "c": ["red", "blue"], "x": 0.5}))
    assert [members(evidence, row, 0) for row in range(3)] == [{1}, set(), {0, 1, 2}]
    assert [members(evidence, row, 2) for row in range(3)] == [{0}, set(), {0, 2}]
    assert evidence.value[:, 1].tolist() == [0.5, 0.5, 0.5]
    assert X[1, 0] == 5.0
    # the empty region of two columns is one; so three regions
    assert len(evidence.atoms) == 3
    r = evidence.region[2, 0]
    assert evidence.atoms[r] == 0b01


def test_a_value_meets_a_value():
    evidence = well_formed(build(SCHEMA, np.array([[1.0, NAN, NAN], [2.0, NAN, NAN], [NAN] * 3]), conditions={"i": 2}))
    assert [members(evidence, row, 0) for row in range(3)] == [set(), {2}, {2}]


def test_one_condition_a_row():
    conditions = {
        "i": between(np.array([0, 3, np.nan]), np.array([2, 3, 4])),
        "c": PerRow(["red", None, ["green", "blue"]]),
        "x": PerRow(np.array([0.5, np.nan, 1.5])),
    }
    evidence = well_formed(build(SCHEMA, conditions=conditions))
    assert [members(evidence, row, 0) for row in range(3)] == [{0, 1, 2}, {3}, set(range(-9, 5))]
    assert [members(evidence, row, 2) for row in range(3)] == [{0}, None, {1, 2}]
    np.testing.assert_array_equal(evidence.value[:, 1], [0.5, NAN, 1.5])
    nested = build(SCHEMA, conditions={"i": AllOf(between(np.array([0, 3]), 5), Not(4))})
    assert [members(nested, row, 0) for row in range(2)] == [{0, 1, 2, 3, 5}, {3, 5}]


def test_equal_regions_are_stored_once():
    lows = np.tile([0, 1], 500)
    evidence = well_formed(build(SCHEMA, conditions={"i": between(lows, 5)}))
    assert evidence.region.shape == (1000, 3)
    assert len(evidence.atoms) == 2


interval = st.tuples(st.integers(-6, 6), st.integers(-6, 6)).map(lambda pair: between(*sorted(pair)))
condition = st.one_of(
    interval, st.lists(st.integers(-6, 6), min_size=1, max_size=4), interval.map(Not), st.integers(-6, 6)
)


@given(condition, condition, condition)
def test_intersect_is_all_of(a, b, c):
    step_by_step = intersect(SCHEMA, intersect(SCHEMA, build(SCHEMA, conditions={"i": a}), {"i": b}), {"i": c})
    parts = [members(build(SCHEMA, conditions={"i": one}), 0, 0) for one in (a, b, c)]
    expected = set.intersection(*parts)
    assert members(well_formed(step_by_step), 0, 0) == expected
    assert members(build(SCHEMA, conditions={"i": AllOf(a, b, c)}), 0, 0) == expected


def test_intersect_leaves_the_evidence_as_it_was():
    evidence = build(SCHEMA, np.array([[1.0, NAN, NAN]]), conditions={"c": ["red", "blue"]})
    before = [array.copy() for array in evidence]
    after = well_formed(intersect(SCHEMA, evidence, {"i": 2, "c": "blue", "x": between(0, 1)}))
    for array, copy in zip(evidence, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert members(after, 0, 0) == set()
    assert members(after, 0, 2) == {2}
    assert intersect(SCHEMA, evidence, {}) is evidence


def test_intersect_of_one_row_with_many():
    evidence = build(SCHEMA, conditions={"c": "red"})
    many = well_formed(intersect(SCHEMA, evidence, {"i": between(np.array([0, 1]), 2)}))
    assert [members(many, row, 0) for row in range(2)] == [{0, 1, 2}, {1, 2}]
    assert many.value[:, 2].tolist() == [0.0, 0.0]


def test_drop():
    evidence = build(SCHEMA, np.array([[1.0, 0.5, NAN]]), conditions={"c": ["red", "blue"]})
    assert members(evidence.without(2), 0, 2) is None
    assert members(evidence.without(0), 0, 0) is None
    assert members(evidence.without(0), 0, 2) == {0, 2}
    assert evidence.value[0, 0] == 1.0


def test_errors():
    with pytest.raises(ValueError, match="no column 'ii'"):
        build(SCHEMA, conditions={"ii": 3})
    with pytest.raises(ValueError, match="X: expected shape"):
        build(SCHEMA, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="unseen: expected shape"):
        build(SCHEMA, np.zeros((2, 3)), np.zeros((1, 3), dtype=bool))
    with pytest.raises(ValueError, match="column 'i': the condition speaks of 2 rows, the evidence has 3"):
        build(SCHEMA, np.zeros((3, 3)), conditions={"i": between(np.array([0, 1]), 5)})
    with pytest.raises(ValueError, match="different numbers of rows"):
        build(SCHEMA, conditions={"i": between(np.array([0, 1]), np.array([3, 4, 5]))})
    with pytest.raises(ValueError, match=r"column 'c'.*did you mean 'green'"):
        build(SCHEMA, conditions={"c": "Green"})
