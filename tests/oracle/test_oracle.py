"""The oracle itself, on a model small enough to work out by hand, and with whole-number probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from jointforest.data.schema import Column, Schema, kernel_columns
from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.table import ParameterTables
from jointforest.models.box_forest.structure import Forest, Trees

from .. import oracle
from ..random_cases.cells import Region, make_evidence


def by_hand() -> Forest:
    """One split of a mixed column at its atom 0, an integer column and a categorical one; leaves of weight 1/4, 3/4."""
    schema = Schema(
        (
            Column("x", "mixed", "float64", atoms=(0.0,)),
            Column("n", "integer", "int64", step=1.0),
            Column("c", "categorical", "str", levels=("r", "s", "t")),
        ),
        "pandas",
    )
    trees = Trees(
        feature=np.array([0, -1, -1], dtype=np.int32),
        threshold=np.array([0.0, 0.0, 0.0]),
        levels_at=np.full(3, -1, dtype=np.int32),
        left_levels=np.empty(0, dtype=np.uint64),
        left=np.array([1, -1, -1], dtype=np.int32),
        right=np.array([2, -1, -1], dtype=np.int32),
        leaf=np.array([-1, 0, 1], dtype=np.int32),
        weight=np.array([1.0, 0.25, 0.75]),
        root=np.array([0], dtype=np.int32),
    )
    layout = kernel_columns(schema)
    leaves = make_leaves(
        layout,
        ParameterTables(
            np.zeros(2, dtype=np.int32),
            np.log([0.25, 0.75]),
            np.array([[oracle.UNIFORM, oracle.UNIFORM], [oracle.NORMAL, oracle.STUDENT]], dtype=np.uint8),
            np.array([[0.0, 0.0], [1.0, 2.0]]),
            np.array([[1.0, 1.0], [2.0, 3.0]]),
            np.array([[-4.0, -0.5], [0.0, -np.inf]]),
            np.array([[0.0, 3.5], [np.inf, np.inf]]),
            np.array([[0.5], [0.0]]),
            np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]),
            np.zeros((2, 3)),
        ),
    )
    return Forest(schema, layout, trees, leaves, has_background=False)


def probability(*row) -> float:
    return math.exp(oracle.log_density(by_hand(), make_evidence([list(row)]))[0])


def test_values() -> None:
    assert probability(None, None, None) == pytest.approx(1.0)
    assert probability(0.0, None, None) == pytest.approx(0.25 * 0.5)  # the atom goes left
    assert probability(-1.0, 2.0, 0.0) == pytest.approx(0.25 * (0.5 / 4) * 0.25 * 0.5)
    t = stats.t(4, 2.0, 3.0)
    normal = stats.truncnorm(-0.5, np.inf, 1.0, 2.0)
    right = 0.75 * normal.pdf(1.5) * (t.cdf(7.5) - t.cdf(6.5)) * 0.5
    assert probability(1.5, 7.0, 2.0) == pytest.approx(right, rel=1e-12)
    assert probability(1.5, 7.3, 2.0) == pytest.approx(right, rel=1e-12)  # anywhere in the cell


def test_sets() -> None:
    assert probability(Region(((-1.0, 0.0),), ()), None, None) == pytest.approx(0.25 * 0.5 / 4)
    assert probability(Region(((-1.0, 0.0),), (0,)), None, None) == pytest.approx(0.25 * (0.5 / 4 + 0.5))
    assert probability(Region((), (0,)), None, None) == pytest.approx(0.125)
    assert probability(Region(), None, None) == 0.0
    assert probability(None, None, Region(((0.5, 2.5),))) == pytest.approx(0.25 * 0.5 + 0.75 * 0.75)


def test_readers() -> None:
    model = by_hand()
    left = oracle.given(model, make_evidence([[Region(((-4.0, 0.0),), (0,)), None, None]]), 0, 1)
    assert oracle.mean_variance(left) == pytest.approx((1.5, 1.25))  # 0, 1, 2, 3
    assert oracle.quantile(left, 0.5) == 1.0
    assert oracle.cdf(left, 1.0) == pytest.approx(0.5)
    x = oracle.given(model, make_evidence([[Region(((-4.0, 0.0),), (0,)), None, None]]), 0, 0)
    assert oracle.mean_variance(x) == pytest.approx((-1.0, 0.5 * 16 / 3 - 1.0))
    assert oracle.quantile(x, 0.25) == pytest.approx(-2.0)
    assert oracle.quantile(x, 0.75) == 0.0
    right = oracle.given(model, make_evidence([[2.0, None, None]]), 0, 2)
    assert oracle.level_probability(right) == pytest.approx([0.25, 0.25, 0.5])
    x = oracle.given(model, make_evidence([[None, None, 2.0]]), 0, 0)
    normal = stats.truncnorm(-0.5, np.inf, 1.0, 2.0)
    assert oracle.mean_variance(x) == pytest.approx((normal.mean(), normal.var()), rel=1e-9)
    assert oracle.quantile(x, 0.3) == pytest.approx(normal.ppf(0.3))
