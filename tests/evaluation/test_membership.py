"""Attacks on membership: the definition by loops, copies, independent rows, and whether the standard error is one."""

from __future__ import annotations

import numpy as np
import pytest

import jointforest as jf
from jointforest.data.infer_schema import infer_schema
from jointforest.evaluation.columns_and_pairs import read_table_cells
from jointforest.evaluation.held_out import advantage, membership

from ..oracle import fidelity as oracle
from .tables import columns, table

REAL, NEW, OTHER = table(150, 0), table(120, 1), table(90, 2)
SCHEMA = infer_schema(REAL)
A, B, C = (read_table_cells(SCHEMA, frame, "rows") for frame in (REAL, NEW, OTHER))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("seed", range(5))
def test_advantage_and_its_error_are_those_of_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    inside, outside = random.integers(0, 6, 30) + 0.0, random.integers(0, 5, 20) + 0.0
    inside[:2] = -np.inf
    assert advantage(inside, outside) == pytest.approx(oracle.advantage(inside.tolist(), outside.tolist()), abs=1e-12)


def test_the_standard_error_is_the_spread_over_repetitions() -> None:
    random = np.random.default_rng(0)
    found = np.array([advantage(random.normal(0.5, 1, 60), random.normal(0, 1, 90)) for _ in range(600)])
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=0.1)
    assert found[:, 0].mean() == pytest.approx(0.2763, abs=0.012)  # 2 Phi(0.5 / sqrt 2) - 1


def test_by_distance_is_that_of_all_pairs_of_rows() -> None:
    found = membership(A, C, B, None, rng())
    lists, levels = columns(C), [C.is_numeric(j) for j in range(len(C.names))]
    rows = list(zip(*lists, strict=True))

    def closest(cells) -> list[float]:  # type: ignore[no-untyped-def]
        return [min(oracle.gower(row, one, lists, levels) for one in rows) for row in zip(*columns(cells), strict=True)]

    inside, outside = (np.round([-d for d in closest(cells)], 6).tolist() for cells in (A, B))
    assert (found.advantage, found.standard_error) == pytest.approx(oracle.advantage(inside, outside), abs=2e-3)
    assert found.density_advantage is None


def test_a_table_that_is_copied_is_always_guessed() -> None:
    found = membership(A, A.take(rng().permutation(150)), B, None, rng())
    assert found.advantage > 0.99 and found.nearer > 0.85 and found.standard_error < 0.01
    half = membership(A, A.take(np.arange(75)), B, None, rng())
    assert 0.4 < half.advantage < 0.75  # half of the table is sure, of the other half nothing is known


def test_independent_rows_give_nobody_away() -> None:
    tables = [[read_table_cells(SCHEMA, table(300, 9 * k + i), "rows") for i in range(3)] for k in range(1, 9)]
    found = [membership(*three, None, rng()) for three in tables]
    z = np.array([one.advantage / one.standard_error for one in found])
    away = np.array([(one.nearer - 0.5) / one.nearer_error for one in found])
    assert np.abs(z).max() < 3.5 and abs(z.mean()) < 1.2
    assert np.abs(away).max() < 5.0 and abs(np.mean([one.nearer for one in found]) - 0.5) < 0.05


def test_a_joint_is_attacked_by_density() -> None:
    sharp = jf.JointTree(leaf="quantile", min_samples_leaf=2, random_state=0).fit(REAL).joint_
    blunt = jf.JointTree(leaf="quantile", min_samples_leaf=0.4, random_state=0).fit(REAL).joint_
    remembers, learns = (
        jf.fidelity(j, REAL, NEW, only=["membership"], random_state=0).membership for j in (sharp, blunt)
    )
    inside, outside = sharp.log_density(REAL).tolist(), sharp.log_density(NEW).tolist()
    assert (remembers.density_advantage, remembers.density_error) == pytest.approx(oracle.advantage(inside, outside))
    assert remembers.density_advantage > 0.4 > abs(learns.density_advantage)


def test_it_is_shown_and_needs_held_out_rows() -> None:
    found = jf.fidelity(OTHER, REAL, NEW, only=["membership"], random_state=0)
    assert "Guessing which rows were learned from" in str(found) and "standard error" in found._repr_html_()
    figures = set(found.to_frame()["figure"])
    assert {"membership_advantage", "membership_standard_error", "membership_nearer"} <= figures
    assert "membership_density_advantage" not in figures
    without = jf.fidelity(OTHER, REAL, only=["membership"])
    assert without.membership is None and "no held-out rows" in str(without)
    one = jf.fidelity(OTHER.iloc[:1], REAL.iloc[:1], NEW.iloc[:1], only=["membership"]).membership
    assert np.isfinite(one.advantage) and one.standard_error == 0.0
