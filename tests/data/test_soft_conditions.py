"""Soft evidence: what it means in a column, how it is combined with other conditions, and what is refused."""

import datetime as dt
import math

import numpy as np
import pytest

from jointforest.data.conditions import AllOf, AnyOf, Not, PerRow, about, between, check_hard, likely
from jointforest.data.evidence import build, intersect
from jointforest.data.meaning import Region, meaning_of, region_log_likelihood, soft_region
from jointforest.data.schema import Column, Schema

INTEGER = Column("i", "integer", "int64", step=1.0, atoms=(0.0, 3.0), n_observed=9)
TENTHS = Column("t", "rounded", "float64", step=0.1)
MIXED = Column("m", "mixed", "float64", atoms=(0.0, 2.5))
COLOURS = Column("c", "categorical", "object", levels=("red", "green", "blue"))
SIZES = Column("o", "ordered", "object", levels=("s", "m", "l"))
DAYS = Column("d", "datetime", "datetime64[ns]", step=86400.0, origin=1704067200.0)
SCHEMA = Schema((INTEGER, MIXED, COLOURS), "pandas")


def normal(x, mean, sd):
    return -0.5 * ((x - mean) / sd) ** 2


def test_likelihoods_of_levels_are_those_given_divided_by_the_greatest():
    region = soft_region(COLOURS, likely({"blue": 0.7, "red": 0.2}))
    assert region_log_likelihood(COLOURS, region, 2.0) == 0.0
    assert region_log_likelihood(COLOURS, region, 0.0) == pytest.approx(math.log(0.2 / 0.7))
    assert region_log_likelihood(COLOURS, region, 1.0) == -math.inf
    others = soft_region(COLOURS, likely({"blue": 0.7}, others=0.07))
    assert [region_log_likelihood(COLOURS, others, k) for k in (0.0, 1.0)] == pytest.approx([math.log(0.1)] * 2)
    several = soft_region(SIZES, likely({("s", "m"): 0.5, "l": 1}))
    assert several.runs == ((-0.5, 1.5), (1.5, 2.5)) and several.run_log_weights == (math.log(0.5), 0.0)
    ordered = soft_region(SIZES, likely({between("m", None): 0.5}, others=1))
    assert [region_log_likelihood(SIZES, ordered, k) for k in range(3)] == pytest.approx([0.0, *[math.log(0.5)] * 2])


@pytest.mark.parametrize(
    ("column", "soft", "hard"),
    [
        (COLOURS, likely({"red": 1, "blue": 1, "green": 0}), ["red", "blue"]),
        (COLOURS, likely({"red": 0.3}), ["red"]),
        (COLOURS, likely({"red": 0.0}, others=5), Not("red")),
        (INTEGER, likely({between(2, 4): 1, 7: 1}), [2, 3, 4, 7]),
        (INTEGER, likely({between(None, 4): 0.2, 5: 0.2}), between(None, 5)),
        (MIXED, likely({2.5: 0.2, between(5, 6): 0.2}), AnyOf(2.5, between(5, 6))),
        (INTEGER, about(5, sd=1e-3), [5]),
        (INTEGER, about(5.5, sd=1e-3), [5, 6]),
        (INTEGER, about(5, sd=1e-300), [5]),
        (TENTHS, about(0.3, sd=1e-3), [0.3]),
    ],
    ids=str,
)
def test_likelihoods_of_0_and_1_are_a_set(column, soft, hard):
    region, expected = soft_region(column, soft), meaning_of(column, hard)
    assert region.runs == pytest.approx(np.array(expected.runs)) and region.atoms == expected.atoms
    assert (region.run_log_weights, region.atom_log_weights) == ((), ())


def test_a_measurement_weighs_each_cell_of_a_grid_by_its_centre():
    region = soft_region(INTEGER, about(2, sd=1.7))
    for k in range(-11, 16):
        assert region_log_likelihood(INTEGER, region, k) == pytest.approx(normal(k, 2, 1.7))
    assert region_log_likelihood(INTEGER, region, 16.0) == region_log_likelihood(INTEGER, region, -12.0) == -math.inf
    # relative to the best cell
    between_two = soft_region(INTEGER, about(2.4, sd=0.5))
    assert region_log_likelihood(INTEGER, between_two, 2.0) == 0.0
    assert region_log_likelihood(INTEGER, between_two, 3.0) == pytest.approx(normal(3, 2.4, 0.5) - normal(2, 2.4, 0.5))
    fine = soft_region(TENTHS, about(0.3, sd=0.5))
    assert region_log_likelihood(TENTHS, fine, 1.2) == pytest.approx(normal(1.2, 0.3, 0.5))


def test_a_measurement_coarser_than_the_grid_is_a_staircase_of_whole_cells():
    region = soft_region(INTEGER, about(2, sd=300))
    assert len(region.runs) < 180
    assert all(math.isclose(edge % 1.0, 0.5) for run in region.runs for edge in run)
    for k in (0, 3):  # atoms stay cells of their own
        assert region_log_likelihood(INTEGER, region, k) == pytest.approx(normal(k, 2, 300), abs=1e-12)
    for k in range(-2000, 2000, 97):
        assert region_log_likelihood(INTEGER, region, k) == pytest.approx(normal(k, 2, 300), abs=0.4)
    share = sum((hi - lo) * math.exp(w) for (lo, hi), w in zip(region.runs, region.run_log_weights, strict=True))
    assert share == pytest.approx(300 * math.sqrt(2 * math.pi), rel=1e-6)


def test_a_measurement_of_a_density_is_a_staircase_and_exact_on_atoms():
    region = soft_region(MIXED, about(1, sd=2))
    assert region.atom_log_weights == pytest.approx((normal(0, 1, 2), normal(2.5, 1, 2)))
    assert region.runs[0][0] == pytest.approx(-15) and region.runs[-1][1] == pytest.approx(17)
    for x in np.linspace(-6, 8, 50):
        assert region_log_likelihood(MIXED, region, x + 1e-9) == pytest.approx(normal(x, 1, 2), abs=0.2)
    area = sum((hi - lo) * math.exp(w) for (lo, hi), w in zip(region.runs, region.run_log_weights, strict=True))
    assert area == pytest.approx(2 * math.sqrt(2 * math.pi), rel=1e-9)
    # an atom too far off is ruled out
    assert soft_region(MIXED, about(100, sd=2)).atoms == 0


def test_dates_take_spans_of_time():
    by_days = soft_region(DAYS, about("2024-01-05", sd=dt.timedelta(days=2)))
    assert by_days == soft_region(DAYS, about(dt.date(2024, 1, 5), sd=2 * 86400))
    assert by_days == soft_region(DAYS, about(np.datetime64("2024-01-05"), sd=np.timedelta64(2, "D")))
    assert region_log_likelihood(DAYS, by_days, 6 * 86400.0) == pytest.approx(normal(6, 4, 2))


def one(conditions, X=None):
    return build(SCHEMA, X, conditions=conditions)


def region_of(evidence, j):
    """The region of column j in row 0, as `Region`."""
    r = evidence.region[0, j]
    runs = slice(evidence.run_start[r], evidence.run_start[r + 1])
    weights = tuple(evidence.run_log_weight[runs].tolist())
    atoms = tuple(evidence.atom_log_weight[r].tolist()) if evidence.atom_log_weight.size else ()
    bounds = tuple(zip(evidence.run_lo[runs].tolist(), evidence.run_hi[runs].tolist(), strict=True))
    return Region(bounds, int(evidence.atoms[r]), weights, atoms)


def test_conditions_on_one_column_multiply():
    parts = [between(-1, 4), about(2, sd=1.5), likely({0: 0.3, between(1, 3): 1}, others=0.2)]
    together = region_of(one({"i": AllOf(*parts)}), 0)
    steps = one({})
    for part in parts[::-1]:
        steps = intersect(SCHEMA, steps, {"i": part})
    nested = region_of(one({"i": AllOf(parts[0], AllOf(parts[1], parts[2]))}), 0)
    for k in range(-6, 9):
        inside = -1 <= k <= 4
        want = normal(k, 2, 1.5) + math.log(1.0 if 1 <= k <= 3 else 0.3 if k == 0 else 0.2) if inside else -math.inf
        for region in (together, nested, region_of(steps, 0)):
            assert region_log_likelihood(INTEGER, region, k) == pytest.approx(want)
    assert one({"i": AllOf(between(0, 1), about(90, sd=2))}).run_start.tolist() == [0, 0]  # nothing is left


def test_soft_evidence_of_a_known_value_is_a_penalty():
    X = np.array([[1.0, 0.0, 2.0], [4.0, 1.0, np.nan], [np.nan, np.nan, np.nan]])
    evidence = one({"i": about(2, sd=2), "c": likely({"blue": 1, "red": 0.25})}, X)
    assert evidence.log_penalty.tolist() == pytest.approx([normal(1, 2, 2), normal(4, 2, 2), 0.0])
    np.testing.assert_array_equal(evidence.value[:, :2], X[:, :2])
    # and the other way round
    after = intersect(SCHEMA, one({"i": about(2, sd=2), "m": about(1, sd=1)}), {"i": 4, "m": 2.5})
    assert after.value[0, :2].tolist() == [4.0, 2.5]
    assert after.log_penalty[0] == pytest.approx(normal(4, 2, 2) + normal(2.5, 1, 1))
    assert one({"i": AllOf(4, about(2, sd=2))}).log_penalty[0] == pytest.approx(normal(4, 2, 2))
    assert one({"i": about(2, sd=2)}, np.array([[90.0, np.nan, np.nan]])).region[0, 0] == 0  # ruled out


def test_one_measurement_a_row():
    conditions = {
        "i": about(np.array([2.0, np.nan, 5.0]), sd=np.array([1.0, 1.0, 2.0])),
        "c": PerRow([likely({"red": 1, "blue": 0.5}), "red", AllOf(["red", "blue"], likely({"red": 0.5}, others=1))]),
    }
    evidence = one(conditions)
    assert evidence.region[1, 0] == -1 and evidence.value[1, 2] == 0.0
    for i, (mean, sd) in ((0, (2, 1)), (2, (5, 2))):
        region = region_of(evidence.take(np.array([i])), 0)
        assert region_log_likelihood(INTEGER, region, 3) == pytest.approx(normal(3, mean, sd))
    last = region_of(evidence.take(np.array([2])), 2)
    assert [region_log_likelihood(COLOURS, last, k) for k in range(3)] == pytest.approx([math.log(0.5), -math.inf, 0.0])
    with pytest.raises(ValueError, match="different numbers of rows"):
        one({"i": about(np.array([1.0, 2.0]), sd=np.array([1.0]))})


def test_which_columns_are_soft():
    evidence = one({"i": about(2, sd=2), "c": ["red", "blue"]})
    assert evidence.soft_columns().tolist() == [True, False, False]
    assert one({"m": likely({0.0: 1, 2.5: 0.5})}).soft_columns().tolist() == [False, True, False]
    assert not one({"i": 2}).soft_columns().any() and not one({"i": between(1, 2)}).soft_columns().any()
    assert one({"i": between(1, 2)}).atom_log_weight.shape == (0, 0)


def test_equal_soft_regions_are_stored_once():
    evidence = one({"i": about(np.tile([1.0, 2.0], 200), sd=2)})
    assert len(evidence.atoms) == 2 and evidence.region.shape == (400, 3)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: likely({}), ValueError, "at least one level"),
        (lambda: likely({"a": 0.0}), ValueError, "all likelihoods in .* are 0"),
        (lambda: likely({"a": -0.1, "b": 1}), ValueError, "likelihood of 'a' is -0.1; expected a finite number"),
        (lambda: likely({"a": math.nan}), ValueError, "likelihood of 'a' is nan"),
        (lambda: likely({"a": math.inf}), ValueError, "likelihood of 'a' is inf"),
        (lambda: likely({"a": 1}, others=-1), ValueError, "likelihood of 'others' is -1"),
        (lambda: likely({"a": "much"}), TypeError, "expected a number as the likelihood of 'a', got 'much'"),
        (lambda: likely([("a", 1)]), TypeError, "expected a dict"),
        (lambda: about(3, sd=0), ValueError, "expected a finite sd above 0, got 0"),
        (lambda: about(3, sd=math.nan), ValueError, "sd above 0"),
        (lambda: about(3, sd=np.array([1.0, -2.0])), ValueError, "sd above 0"),
        (lambda: about(3, sd=dt.timedelta(0)), ValueError, "sd above 0"),
        (lambda: about([3, 4], sd=1), TypeError, r"about: expected a value, or a numpy array.*got \[3, 4\]"),
        (lambda: about(3, sd=[1, 2]), TypeError, r"about: expected a value, or a numpy array.*got \[1, 2\]"),
        (lambda: between([3, 4], None), TypeError, r"between: expected a value, or a numpy array.*got \[3, 4\]"),
        (lambda: about(3, sd="2"), TypeError, "expected sd to be a number or a timedelta, got '2'"),
        (lambda: check_hard({"x": AllOf(1, Not(about(1, sd=1)))}), ValueError, "column 'x': an event either happens"),
    ],
)
def test_bad_soft_conditions(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("column", "condition", "message"),
    [
        (COLOURS, likely({"gren": 1}), "column 'c': 'gren' is not one of its 3 levels; did you mean 'green'"),
        (COLOURS, likely({"red": 1, ("red", "blue"): 0.5}), "'red' and .* overlap"),
        (INTEGER, likely({between(0, 5): 1, between(5, 9): 0.5}), "overlap, so some value has two likelihoods"),
        (INTEGER, likely({None: 1}), "not that one is missing"),
        (MIXED, likely({1.5: 1}), "single value 1.5 has probability 0"),
        (COLOURS, about("red", sd=1), "column 'c' is categorical: about.* is a measurement of a number"),
        (INTEGER, about("five", sd=1), "expected a number, got 'five'"),
        (INTEGER, about(math.inf, sd=1), "finite"),
        (INTEGER, about(1e300, sd=1), "finer, or wider, than numbers are"),
        (MIXED, about(1, sd=1e308), "finer, or wider, than numbers are"),
        (MIXED, about(1, sd=1e-300), "finer, or wider, than numbers are"),
        (DAYS, about("soon", sd=1), "expected a date or time"),
        (MIXED, about(1, sd=dt.timedelta(days=5)), "expected a number as sd, got datetime.timedelta"),
        (INTEGER, about(1, sd=np.timedelta64(5, "s")), "expected a number as sd, got np.timedelta64"),
    ],
    ids=str,
)
def test_soft_conditions_that_a_column_cannot_have(column, condition, message):
    with pytest.raises(ValueError, match=message):
        soft_region(column, condition)


@pytest.mark.parametrize("condition", [Not(about(1, sd=1)), AnyOf(1, about(1, sd=1)), AllOf(1, Not(likely({1: 1})))])
def test_soft_evidence_is_not_negated_or_an_alternative(condition):
    with pytest.raises(
        ValueError, match=r"column 'i': .* is soft evidence, which cannot be negated or be one of several"
    ):
        one({"i": condition})
