"""Checks of arguments: ranges, texts, and what the errors say."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

import jointforest as jf
from jointforest.runtime.parameters import (
    FLAG,
    Number,
    check,
    check_number,
    check_parameters,
    check_shares,
    parameter,
    seed_of,
)


@dataclass
class Some:
    """Two parameters that are limited, and one that is free."""

    a: float = parameter(0.0, Number(0))
    b: float = parameter(0.0, Number(0))
    c: object = None


@pytest.mark.parametrize(
    ("number", "inside", "outside"),
    [
        (
            Number(),
            [0, -1e300, math.inf, np.float32(2), Fraction(1, 3)],
            [math.nan, True, np.bool_(True), "1", None, 1j],
        ),
        (Number(0, 1), [0, 1, 0.5, np.int8(1)], [-1e-300, 1.0000001, [0.5], np.array([0.5])]),
        (Number(0, 1, without="low"), [1e-300, 1], [0, 0.0, -0.0]),
        (Number(0, 1, without="high"), [0, 0.999], [1, np.float64(1)]),
        (Number(0, 1, without="both"), [0.5], [0, 1]),
        (Number(0, math.inf, without="high"), [0, 1e308], [math.inf]),
        (Number(2, whole=True), [2, np.int64(3), 10**400], [1, 2.0, np.float64(2), True]),
    ],
)
def test_what_is_in_a_range(number: Number, inside: list, outside: list) -> None:
    assert [value for value in inside if value not in number] == []
    assert [value for value in outside if value in number] == []


def test_what_errors_call_a_range() -> None:
    for number, text in (
        (Number(), "a number"),
        (Number(2), "a number at least 2"),
        (Number(high=3, whole=True), "a whole number at most 3"),
        (Number(0, 0.5), "a number between 0 and 0.5"),
        (Number(0, 1, without="high"), "a number at least 0 and less than 1"),
        (Number(0, 1, without="both"), "a number more than 0 and less than 1"),
        (Number(1, whole=True, text="a positive integer"), "a positive integer"),
    ):
        assert str(number) == text


def test_what_errors_say() -> None:
    for allowed, text in (
        (("a", "b"), "one of 'a', 'b'"),
        (("a",), "one of 'a'"),
        ((Number(0),), "a number at least 0"),
        ((Number(1, whole=True), None), "a whole number at least 1 or None"),
        (("auto", None, Number(0)), "'auto', None or a number at least 0"),
        (FLAG, "True or False"),
    ):
        for value in (-1, "c", ["a"], np.array(["a"])):
            with pytest.raises(ValueError) as error:
                check("it", value, allowed)
            assert str(error.value) == f"it must be {text}, got {value!r}"
    check("it", "a", ("a", "b"))
    check("it", None, ("a", None))
    check("it", np.str_("b"), ("a", "b"))
    check("it", np.False_, FLAG)
    with pytest.raises(ValueError, match="it must be True or False, got 1"):
        check("it", 1, FLAG)
    with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
        check_number("k", 0, 1, whole=True, text="a positive integer")
    with pytest.raises(ValueError, match="b must be a number at least 0, got -1"):
        check_parameters(Some(b=-1))


def test_shares() -> None:
    assert check_shares("q", 0.5).shape == ()
    assert check_shares("q", [0.1, 0.2]).tolist() == [0.1, 0.2]
    assert check_shares("q", []).shape == (0,)
    for wrong in (0, 1, [0.5, math.nan], [[0.5]], "x", None, [0.1, [0.2]]):
        with pytest.raises(ValueError, match="q must be a number, or a sequence of numbers, between 0 and 1, got"):
            check_shares("q", wrong)


def test_seeds() -> None:
    assert seed_of(7) == seed_of(np.int64(7)) == 7
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    legacy = np.random.RandomState(1)
    assert all(0 <= seed_of(legacy) < 2**31 for _ in range(50))  # what a RandomState can draw on every system
    assert seed_of(np.random.RandomState(1)) == seed_of(np.random.RandomState(1))
    assert 0 <= seed_of(None) < 2**63
    for wrong in (-1, 1.0, True, "1", 2**63):
        with pytest.raises(ValueError, match="random_state must be None, a non-negative integer, a Generator or a Ran"):
            seed_of(wrong)


ESTIMATORS = [
    jf.AdversarialForest, jf.JointTree, jf.GenerativeForestClassifier, jf.GenerativeForestRegressor,
    jf.ForestOutlierDetector, jf.HiddenTreeForest,
]  # fmt: skip


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_what_estimators_declare(estimator: type) -> None:
    """Every parameter is a field, its default is allowed, and what is not is refused by name."""
    fresh = clone(estimator())
    assert {one.name for one in fields(fresh) if one.init} == set(fresh.get_params(deep=False))
    fresh._check()
    limited = [one.name for one in fields(fresh) if "allowed" in one.metadata]
    assert limited
    for name in limited:
        with pytest.raises(ValueError, match=rf"^{name} must be .*, got \(\)$"):
            estimator(**{name: ()}).fit([[1.0]], [1])
