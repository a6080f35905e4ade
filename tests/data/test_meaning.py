"""Conditions against brute force: membership point by point in plain Python, with exact decimals."""

import datetime as dt
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointforest.data import meaning as runs
from jointforest.data.conditions import AllOf, AnyOf, Interval, Not, PerRow, between
from jointforest.data.meaning import Region, contains, intersected, meaning_of, region_contains
from jointforest.data.schema import Column
from jointforest.models.box_forest.leaves.grid_kernels import cell_centre

from ..compiled import compiled as callable_kernel

INTEGER = Column("i", "integer", "int64", step=1.0, atoms=(0.0, 3.0))
TENTHS = Column("r", "rounded", "float64", step=0.1, atoms=(-0.3, 0.3, 0.7))
FIFTHS = Column("f", "rounded", "float64", step=0.2)
MIXED = Column("m", "mixed", "float64", atoms=(0.0, 2.5))
ORDERED = Column("o", "ordered", "object", levels=("xs", "s", "m", "l", "xl"))
COLOURS = Column("c", "categorical", "object", levels=("red", "green", "blue"))
HOURS = Column("t", "datetime", "datetime64[us]", step=3600.0, origin=1704067200.0)

numbers = st.integers(-12, 12).map(float)
run_sets = st.lists(st.tuples(numbers, numbers), max_size=6).map(
    lambda pairs: runs.union([(tuple(sorted(p)),) for p in pairs])
)
POINTS = [x / 2 for x in range(-30, 31)]


@given(run_sets, run_sets)
def test_run_algebra(a, b):
    for result, rule in (
        (runs.union([a, b]), lambda p, q: p or q),
        (runs.intersection(a, b), lambda p, q: p and q),
        (runs.complement(a, (-math.inf, math.inf)), lambda p, q: not p),
    ):
        assert all(lo < hi for lo, hi in result)
        assert all(x[1] < y[0] for x, y in pairwise(result))
        for x in POINTS:
            inside = [any(lo < x <= hi for lo, hi in part) for part in (a, b)]
            assert runs.inside(result, x) == rule(*inside)


def trees(values, ordered=True):
    """Conditions of all sorts over some values."""
    ends = st.tuples(st.none() | values, st.none() | values)
    intervals = st.tuples(ends, st.sampled_from(["both", "left", "right", "neither"]))
    leaves = values
    if ordered:
        leaves |= intervals
    return st.recursive(
        leaves,
        lambda parts: st.one_of(
            st.tuples(st.just("any"), st.lists(parts, min_size=1, max_size=3)),
            st.tuples(st.just("all"), st.lists(parts, min_size=1, max_size=3)),
            st.tuples(st.just("not"), parts),
        ),
        max_leaves=6,
    )


def condition_of(tree, order):
    """Condition of a tree; the ends of an interval are put in order."""
    if not isinstance(tree, tuple):
        return tree
    if tree[0] == "any":
        return AnyOf(*(condition_of(part, order) for part in tree[1]))
    if tree[0] == "all":
        return AllOf(*(condition_of(part, order) for part in tree[1]))
    if tree[0] == "not":
        return Not(condition_of(tree[1], order))
    (lo, hi), closed = tree
    if lo is not None and hi is not None and order(lo) > order(hi):
        lo, hi = hi, lo
    return Interval(lo, hi, closed)


def holds(tree, x, order):
    """Whether a point meets the tree, from the definition."""
    if not isinstance(tree, tuple):
        return x == order(tree)
    if tree[0] == "any":
        return any(holds(part, x, order) for part in tree[1])
    if tree[0] == "all":
        return all(holds(part, x, order) for part in tree[1])
    if tree[0] == "not":
        return not holds(tree[1], x, order)
    (lo, hi), closed = tree
    lo, hi = (None if end is None else order(end) for end in (lo, hi))
    if lo is not None and hi is not None and lo > hi:
        lo, hi = hi, lo
    above = lo is None or (x >= lo if closed in ("both", "left") else x > lo)
    return above and (hi is None or (x <= hi if closed in ("both", "right") else x < hi))


def tenth(x):
    return Fraction(round(x * 10), 10)


def check_grid(column, tree, order, cells):
    """Every cell (number, its exact value) is in the region, or is the value, exactly if it meets the tree."""
    condition = condition_of(tree, order)
    meaning = meaning_of(column, condition)
    for number, exact in cells:
        expected = holds(tree, exact, order)
        assert contains(column, condition, number) == expected
        if not isinstance(meaning, Region):
            assert (abs(meaning - number) < 0.01) == expected
            continue
        assert region_contains(column, meaning, number) == expected
        # as a kernel reads it: the run that holds the cell's centre, and the bit of its atom
        assert runs.inside(meaning.runs, number) == expected
        for k, atom in enumerate(column.atoms):
            if abs(atom - number) < 0.01:
                assert bool(meaning.atoms >> k & 1) == expected


@given(trees(st.integers(-5, 5)))
@settings(max_examples=200)
def test_integers(tree):
    check_grid(INTEGER, tree, Fraction, [(float(k), Fraction(k)) for k in range(-7, 8)])


@given(trees(st.integers(-9, 9).map(lambda k: k / 10)))
@settings(max_examples=200)
def test_tenths(tree):
    # the cells' centres as users write them (0.3) and as arithmetic gives them (3 * 0.1)
    cells = [(k / 10, Fraction(k, 10)) for k in range(-11, 12)] + [(k * 0.1, Fraction(k, 10)) for k in range(-11, 12)]
    check_grid(TENTHS, tree, tenth, cells)


@given(trees(st.sampled_from(ORDERED.levels)))
@settings(max_examples=200)
def test_ordered_levels(tree):
    check_grid(ORDERED, tree, ORDERED.levels.index, [(float(k), k) for k in range(5)])


@given(trees(st.sampled_from(COLOURS.levels), ordered=False))
def test_unordered_levels(tree):
    check_grid(COLOURS, tree, COLOURS.levels.index, [(float(k), k) for k in range(3)])


@given(trees(st.sampled_from([0.0, 2.5])), st.data())
@settings(max_examples=200)
def test_atoms_and_density(tree, data):
    # all scalars are atoms, so that every condition is allowed; the points are off all ends, where a density lives
    meaning = meaning_of(MIXED, condition_of(tree, float))
    for x in (-1.0, 0.0, 1.3, 2.5, 7.0):
        expected = holds(tree, x, float)
        inside = region_contains(MIXED, meaning, x) if isinstance(meaning, Region) else meaning == x
        assert inside == expected
        if isinstance(meaning, Region) and x in MIXED.atoms:
            assert bool(meaning.atoms >> MIXED.atoms.index(x) & 1) == expected


@given(trees(st.integers(-5, 5)), trees(st.integers(-5, 5)))
def test_intersection_of_regions(one, two):
    a, b = (meaning_of(INTEGER, AnyOf(condition_of(tree, float), AllOf())) for tree in (one, two))
    assert isinstance(a, Region)
    both = intersected(a, b)
    for k in range(-7, 8):
        assert region_contains(INTEGER, both, k) == (region_contains(INTEGER, a, k) and region_contains(INTEGER, b, k))


def test_what_is_a_value_and_what_a_region():
    assert meaning_of(INTEGER, 4) == 4.0
    assert meaning_of(INTEGER, None) is None
    assert meaning_of(INTEGER, math.nan) is None
    assert meaning_of(INTEGER, [4]) == Region(((3.5, 4.5),), 0)
    assert meaning_of(INTEGER, {3, 4}) == Region(((2.5, 4.5),), 0b10)
    assert meaning_of(INTEGER, between(4, 4)) == Region(((3.5, 4.5),), 0)
    assert meaning_of(INTEGER, between(3.2, 3.9)) == Region((), 0)
    assert meaning_of(INTEGER, []) == Region((), 0)
    assert meaning_of(MIXED, AllOf(1.0, between(0, 5))) == 1.0
    assert meaning_of(MIXED, AllOf(1.0, between(2, 5))) == Region((), 0)
    assert meaning_of(MIXED, AllOf(1.0, Not(1.0))) == Region((), 0)
    assert meaning_of(MIXED, AllOf(1.0, 2.0)) == Region((), 0)
    assert meaning_of(MIXED, between(0, 5, "neither")) == Region(((0.0, 5.0),), 0b10)
    assert meaning_of(MIXED, [0.0, 2.5]) == Region((), 0b11)
    assert meaning_of(MIXED, Not([0.0, 7.0])) == Region(((-math.inf, math.inf),), 0b10)
    assert meaning_of(MIXED, between()) == Region(((-math.inf, math.inf),), 0b11)
    assert meaning_of(COLOURS, "blue") == 2.0
    assert meaning_of(COLOURS, ["blue", "red"]) == Region(((-0.5, 0.5), (1.5, 2.5)), 0)
    assert meaning_of(FIFTHS, between(0.4, 0.6)).runs == pytest.approx(np.array([[0.3, 0.7]]))


@pytest.mark.parametrize("column", [INTEGER, TENTHS, FIFTHS], ids=lambda column: column.name)
def test_between_two_cells_conditions_and_densities_agree(column):
    centre = callable_kernel(cell_centre)
    for k in range(-40, 40):
        x = (k + 0.5) * column.step
        assert contains(column, x, float(centre(column.step, column.origin, x))), x


def test_dates():
    day = meaning_of(HOURS, between("2024-01-02", dt.datetime(2024, 1, 2, 23)))
    assert day == Region(((86400 - 1800.0, 2 * 86400 - 1800.0),), 0)
    assert meaning_of(HOURS, between("2024-01-02", "2024-01-03", "left")) == day
    assert meaning_of(HOURS, np.datetime64("2024-01-01T05:00")) == 5 * 3600.0


@pytest.mark.parametrize(
    ("column", "condition", "message"),
    [
        (INTEGER, Interval(5, 3), "column 'i': the interval from 5 to 3 is reversed"),
        (INTEGER, "five", "column 'i'.*expected a number, got 'five'"),
        (INTEGER, between("a", 3), "expected a number, got 'a'"),
        (INTEGER, math.inf, "finite"),
        (COLOURS, between("red", "blue"), "column 'c' has no order"),
        (COLOURS, "gren", "column 'c': 'gren' is not one of its 3 levels; did you mean 'green'"),
        (COLOURS, ["red", "gren"], "did you mean 'green'"),
        (COLOURS, Not("gren"), "did you mean 'green'"),
        (ORDERED, between("l", "s"), "reversed"),
        (ORDERED, between("m", "xxl"), "'xxl' is not one of its 5 levels"),
        (MIXED, [1.0, 2.0], "column 'm' has a density, in which the single value 1 has probability 0"),
        (MIXED, AnyOf(0.0, AllOf(1.0, between(0, 2))), "probability 0"),
        (MIXED, [0.0, None], "None"),
        (INTEGER, AllOf(PerRow([1]), 2), "PerRow"),
        (HOURS, between("soon", None), "expected a date or time"),
    ],
)
def test_bad_conditions(column, condition, message):
    with pytest.raises(ValueError, match=message):
        meaning_of(column, condition)


def test_bad_forms():
    with pytest.raises(ValueError, match="closed: expected"):
        between(0, 1, "open")
    with pytest.raises(TypeError, match=r"PerRow\(array\)"):
        meaning_of(INTEGER, np.array([1, 2]))
    assert AnyOf(1, 2) == AnyOf([1, 2])
    assert AllOf([between(0, 1), 2]).conditions == (between(0, 1), 2)
    assert AnyOf([1, 2], 3).conditions == (AnyOf(1, 2), 3)
    assert Not([1, 2]) == Not(AnyOf(1, 2)) and len({Not([1, 2]), Not({1, 2})}) == 1


def test_what_has_no_likelihoods_has_likelihood_1():
    region = Region(((0.0, 1.0), (2.0, 3.0)), 0b101)
    assert region.run_weights() == (0.0, 0.0) and region.atom_weights() == (0.0, 0.0, 0.0)
    assert region._replace(run_log_weights=(-1.0, -2.0)).atom_weights() == (0.0, 0.0, 0.0)
    assert region._replace(atom_log_weights=(-1.0, 0.0, -3.0)).run_weights() == (0.0, 0.0)
