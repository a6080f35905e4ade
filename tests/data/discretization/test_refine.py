"""Finer codes have the density of the codes that they are parts of."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.data.discretization.discretizer import codes_of
from jointforest.data.discretization.learn import learn_scale
from jointforest.data.discretization.refine import refined
from jointforest.data.schema import Column

RANDOM = np.random.default_rng(0)
COLUMNS = {
    "normal": (Column("x", "continuous", "float64"), RANDOM.standard_normal(200)),
    "skewed": (Column("x", "continuous", "float64"), np.exp(2.0 * RANDOM.standard_normal(200))),
    "point masses": (
        Column("x", "continuous", "float64", atoms=(0.0, 1.0)),
        np.concatenate([np.zeros(60), np.ones(40), RANDOM.standard_normal(200)]),
    ),
    "whole": (Column("x", "integer", "int64", step=1.0), np.rint(20.0 * RANDOM.standard_normal(200))),
    "few whole": (Column("x", "integer", "int64", step=1.0), RANDOM.integers(0, 5, 200) * 1.0),
    "one value": (Column("x", "continuous", "float64"), np.full(50, 3.0)),
}


@pytest.mark.parametrize("parts", [1, 3, 4])
@pytest.mark.parametrize("name", COLUMNS)
def test_density_is_the_same(name: str, parts: int) -> None:
    column, values = COLUMNS[name]
    scale = learn_scale(column, values, None, 16)
    fine = refined(scale, parts)
    points = np.concatenate([values, values + 0.37, values * 3.0, values - 11.0])
    points = np.rint(points) if column.step else points
    code, base = codes_of(scale, points)
    part, fine_base = codes_of(fine.scale, points)
    np.testing.assert_array_equal(fine.code[part], code)
    np.testing.assert_allclose(np.log(fine.share[part]) + fine_base, base, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.bincount(fine.code, fine.share), 1.0)
    assert (np.diff(codes_of(fine.scale, np.sort(points))[0]) >= 0).all()


def test_parts_of_intervals_have_equal_shares() -> None:
    column, values = COLUMNS["normal"]
    fine = refined(learn_scale(column, values, None, 16), 3)
    np.testing.assert_allclose(fine.share, 1.0 / 3.0, atol=0.02)
