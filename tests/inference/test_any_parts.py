"""Modes of hidden trees and of mixtures, against all rows of a small table and a fine grid of points."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.discretization.base_density import peaks
from jointforest.data.discretization.discretizer import codes_of
from jointforest.data.discretization.learn import learn_scale
from jointforest.data.discretization.restrict import restrict
from jointforest.data.schema import Column
from jointforest.models.hidden_tree.modes import ascend, code_problem, log_density_of
from jointforest.models.mixture import Mixture

from ..random_cases.hidden_parts import ALL, INSIDE, hidden_joint, mixed_joint, small_table
from ..random_cases.table_part import TableDistribution

EVIDENCE = [
    {},
    {"place": "there"},
    {"size": jf.between(1, 3), "flag": True},
    {"grade": 2, "place": ["here", "nowhere"]},
]


def best(of: Joint, known: dict) -> float:
    """The greatest log density of all rows of `ALL` that agree with the evidence."""
    holds = np.ones(len(ALL), bool)
    for name, said in known.items():
        if isinstance(said, jf.Interval):
            holds &= ALL[name].between(said.lo, said.hi).to_numpy()
        else:
            holds &= ALL[name].isin(said if isinstance(said, list) else [said]).to_numpy()
    return float(of.log_density(ALL[holds]).max())


@pytest.mark.parametrize("known", EVIDENCE, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_the_mode_of_hidden_trees_is_found_and_certified(seed: int, known: dict) -> None:
    of = hidden_joint(small_table(seed), seed, n_trees=1 + seed % 3, n_states=4)
    found = of.given({**INSIDE, **known}).mode(3)
    truth = best(of, known)
    assert found.log_density[0] == pytest.approx(truth, abs=1e-9)
    assert truth - 1e-9 <= found.log_bound <= truth + 1e-8
    np.testing.assert_allclose(of.log_density(found.rows), found.log_density, atol=1e-12)
    assert (np.diff(found.log_density) <= 0).all()
    loose = of.given({**INSIDE, **known}).mode(budget=0)
    assert loose.log_density[0] <= truth + 1e-9 <= loose.log_bound + 2e-9


@pytest.mark.parametrize("seed", range(6))
def test_rows_climb_until_no_single_code_is_better(seed: int) -> None:
    """From every row of codes; compared with all rows that differ in one code."""
    of = hidden_joint(small_table(seed), seed, n_trees=1 + seed % 3, n_states=4)
    problem = code_problem(of.distribution.components[0].hidden, of.given(INSIDE).state.evidence)
    some = [np.flatnonzero(~np.isnan(value)) for value in problem.value]
    rows = np.array(list(itertools.product(*some)))[:: 1 + seed]
    density = log_density_of(problem, rows)
    for row, before in zip(rows[:40], density[:40], strict=True):
        (top,) = ascend(problem, row[None])
        reached = float(log_density_of(problem, top[None])[0])
        assert reached >= before - 1e-12
        near = [np.where(np.arange(len(top)) == j, c, top) for j, codes in enumerate(some) for c in codes]
        assert reached >= log_density_of(problem, np.array(near)).max() - 1e-9
    tops = ascend(problem, rows)
    assert len(np.unique(tops, axis=0)) == len(tops) < len(rows)


@pytest.mark.parametrize("known", EVIDENCE, ids=str)
def test_mixtures_are_bounded_by_the_sum_of_their_parts(known: dict) -> None:
    of = mixed_joint(small_table(0), 4)
    found = of.given({**INSIDE, **known}).mode(2)
    truth = best(of, known)
    assert found.log_density[0] - 1e-9 <= truth <= found.log_bound + 1e-9
    assert found.log_bound - found.log_density[0] < 1.0
    np.testing.assert_allclose(of.log_density(found.rows), found.log_density, atol=1e-12)


def test_modes_with_numbers() -> None:
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, 2.0, 200)
    frame = pd.DataFrame({"x": x, "y": np.where(x > 3, 0.0, rng.normal(size=200)), "k": np.round(x)})
    for seed in range(4):
        of = hidden_joint(frame, seed, n_bins=5, n_states=4)
        for known in ({}, {"x": jf.between(1.5, 3.25)}, {"x": 2.5}):
            found = of.given(known).mode()
            assert found.log_bound - found.log_density[0] < 1e-8
            assert found.log_density[0] == pytest.approx(of.log_density(found.rows)[0], abs=1e-12)
            drawn = of.given(known).sample(3000, random_state=1)
            assert of.log_density(drawn).max() <= found.log_bound + 1e-9
            if "x" in known:
                assert found.rows["x"].iloc[0] == 2.5 or 1.5 <= found.rows["x"].iloc[0] <= 3.25


@cache
def scale(kind: str):
    rng = np.random.default_rng(2)
    step = {"integer": 1.0, "rounded": 0.25}.get(kind, 0.0)
    x = rng.normal(3, 2, 120)
    x = np.round(x / step) * step if step else x
    x[::3] = x[0] if kind == "mixed" else x[::3]
    column = Column("x", kind, "float64", step=step, atoms=(float(x[0]),) if kind == "mixed" else ())
    return column, learn_scale(column, x, None, 5)


@pytest.mark.parametrize(
    ("kind", "cut"), itertools.product(["continuous", "mixed", "integer", "rounded"], [False, True])
)
def test_the_best_point_of_each_code(kind: str, cut: bool) -> None:
    column, of = scale(kind)
    if cut:
        of = restrict(of, np.array([1.125]), np.array([4.625]), 1, column.atoms)
    value, log_peak = peaks(of)
    grid = np.concatenate([np.linspace(-12, 18, 4001), np.arange(-12, 18, 0.25), np.array(column.atoms)])
    grid = np.concatenate([grid, np.nextafter(of.lo[np.isfinite(of.lo)], np.inf), of.hi[np.isfinite(of.hi)]])
    code, log_base = codes_of(of, grid)
    for c in range(of.n_codes):
        mine = log_base[(code == c) & (log_base > -np.inf)]
        if not len(mine):
            assert np.isnan(value[c]) and log_peak[c] == -np.inf
            continue
        assert log_peak[c] == pytest.approx(mine.max(), abs=1e-9)
        assert codes_of(of, value[[c]]) == (c, pytest.approx(log_peak[c], abs=1e-12))


def test_what_has_no_certified_mode_says_so() -> None:
    of = hidden_joint(small_table(0), 1)
    with pytest.raises(ValueError, match=r"evidence on column 'place' is soft"):
        of.given(place=jf.likely({"here": 0.9, "there": 0.1})).mode()
    with pytest.raises(ValueError, match="probability 0"):
        of.condition(INSIDE).given(size=30).mode()
    part = of.distribution.components[0]
    toy = TableDistribution(of.schema, np.zeros((1, 4)), np.ones(1))
    both = Joint(Mixture((part, toy), np.log([0.5, 0.5])))
    message = "needs a joint of forests and hidden trees; this one has the component: table"
    with pytest.raises(ValueError, match=message):
        both.given().mode()
