"""A scale from a file: every field that is wrong is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointforest.data.discretization.check import check_scale
from jointforest.data.discretization.learn import learn_scale
from jointforest.data.schema import Column

MIXED = Column("x", "mixed", "float64", atoms=(0.0,))
WHOLE = Column("x", "integer", "int64", step=1.0)
LEVELS = Column("x", "categorical", "str", levels=("a", "b", "c"))


def scale_of(column: Column) -> Any:
    """A scale with several codes and segments, whose arrays may be written."""
    values = np.array([0.0, 1.0, 2.0] * 10 + [0.0] * 10)
    values = values if column.step or column.is_categorical else values + np.linspace(0, 1, 40) * (values > 0)
    return learn_scale(column, values, None, 4)


def put(array: np.ndarray, at: int, value: float) -> np.ndarray:
    array = array.copy()
    array[at] = value
    return array


@pytest.mark.parametrize("column", [MIXED, WHOLE, LEVELS])
def test_learned_scales_pass(column: Column) -> None:
    check_scale(scale_of(column), column)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: dict(n_codes=0), "n_codes"),
        (lambda s: dict(n_codes=True), "n_codes"),
        (lambda s: dict(n_codes=s.n_codes - 1), "codes must be from 0"),
        (lambda s: dict(step=0.5), "step is 0.5"),
        (lambda s: dict(origin=0.5), "origin is 0.5"),
        (lambda s: dict(lo=s.lo[1:]), "hi must be"),
        (lambda s: dict(hi=s.hi.astype(np.float32)), "hi must be float64"),
        (lambda s: dict(code=s.code.astype(np.int64)), "code must be int32"),
        (lambda s: dict(rate=s.rate[:, None]), "rate must be"),
        (lambda s: dict(rate=put(s.rate, 1, np.inf)), "rate and log_mass must be finite"),
        (lambda s: dict(log_mass=put(s.log_mass, 1, -np.inf)), "must be finite"),
        (lambda s: dict(log_mass=put(s.log_mass, 1, np.nan)), "log_mass has NaN"),
        (lambda s: dict(log_mass=put(s.log_mass, 1, 0.5)), "sum to 1"),
        (lambda s: dict(code=put(s.code, 0, -1)), "codes must be from 0"),
        (lambda s: dict(hi=put(s.hi, 1, 1e6)), "ascend and be disjoint"),
        (lambda s: dict(lo=put(s.lo, 2, 1e6)), "ascend and be disjoint"),
        (lambda s: {name: getattr(s, name)[:0] for name in ("lo", "hi", "rate", "code", "log_mass")}, "no segments"),
    ],
)
@pytest.mark.parametrize("column", [MIXED, WHOLE])
def test_wrong_fields(column: Column, change: Any, message: str) -> None:
    scale = scale_of(column)
    with pytest.raises(ValueError, match=f"column 'x'.*{message}"):
        check_scale(replace(scale, **change(scale)), column)


def test_wrong_ends_and_codes() -> None:
    scale = scale_of(MIXED)
    for wrong, message in [
        (replace(scale, rate=put(scale.rate, 0, 0.0)), "open lower tail"),
        (replace(scale, rate=put(scale.rate, -1, -1.0)), "open lower tail"),
        (replace(scale, lo=put(scale.lo, -1, -np.inf)), "ascend"),
        (replace(scale, code=scale.code[::-1].copy(), log_mass=scale.log_mass[::-1].copy()), "must ascend"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_scale(wrong, MIXED)


def test_scales_of_other_columns() -> None:
    with pytest.raises(ValueError, match="not an atom of the column"):
        check_scale(scale_of(MIXED), replace(MIXED, kind="continuous", atoms=()))
    with pytest.raises(ValueError, match="points at its 2 levels"):
        check_scale(scale_of(LEVELS), replace(LEVELS, levels=("a", "b")))
    whole = scale_of(WHOLE)
    with pytest.raises(ValueError, match="between edges of cells"):
        check_scale(replace(whole, lo=whole.lo + 0.25, hi=whole.hi + 0.25), WHOLE)
