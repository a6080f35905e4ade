"""Answers of hidden trees under a sum with unknown parts, beside all rows of the table and their densities."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.conditions import Interval, PerRow, likely
from jointforest.data.evidence import Evidence, build
from jointforest.models.hidden_tree import hinge, linked
from jointforest.models.ruled import translate
from jointforest.models.ruled.posterior import RuledPosterior
from jointforest.models.ruled.ruled import RuledDistribution
from jointforest.runtime import arrays

from ...random_cases.table_part import TableDistribution

NUMBERS = ("a", "b", "c", "total", "late")


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 600
    a = rng.integers(0, 4, n)
    b = np.minimum(rng.poisson(1.0 + 0.5 * a), 4)
    c = np.minimum(rng.poisson(0.5 + 0.3 * b), 3)
    kind = np.array(["x", "y", "z"])[np.clip(a - rng.integers(0, 2, n), 0, 2)]
    frame = pd.DataFrame({"kind": kind, "a": a, "b": b, "c": c, "late": (a + c + rng.integers(0, 2, n)) // 2})
    frame["total"] = a + 2 * b - c + 3
    return frame


@pytest.fixture(autouse=True)
def _links_short_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of few values are linked too, which are rows otherwise."""
    monkeypatch.setattr(translate, "FEW_PLACES", 0)


@pytest.fixture(scope="module", params=["total = a + 2 * b - c + 3"])
def models(request: pytest.FixtureRequest) -> tuple[RuledDistribution, TableDistribution]:
    """The ruled distribution, and its rows within a box that holds nearly all, with their probabilities."""
    learner = jf.HiddenTreeForest(n_states=4, max_iter=3, max_leaf_nodes=2, rules=[request.param], random_state=0)
    ruled = learner.fit(_frame()).joint_.distribution
    assert isinstance(ruled, RuledDistribution)
    inner = ruled.inner.schema
    axes = [range(len(c.levels)) if c.is_categorical else range(-3, 14) for c in inner.columns]
    Z = np.array(list(itertools.product(*axes)), float)
    p = np.exp(ruled.inner.log_density(Evidence.of_values(Z)))
    assert abs(p.sum() - 1.0) < 1e-5
    some = p > 1e-13
    return ruled, TableDistribution(ruled.schema, ruled.coordinates.rows(Z[some]), p[some])


CASES = [
    {"total": 7},
    {"total": 4, "kind": "x"},
    {"total": 9, "a": 2},
    {"total": 9, "c": 1, "late": 2},
    {"total": Interval(5, 8)},
    {"total": Interval(9, None), "b": Interval(1, 3)},
    {"total": 6, "a": Interval(1, 2), "b": likely({2: 0.7}, 0.1)},
    {"total": likely({5: 0.9, 6: 0.5}, 0.01), "late": 1},
]


@pytest.mark.parametrize("said", CASES)
def test_answers(models: tuple[RuledDistribution, TableDistribution], said: dict[str, object]) -> None:
    ruled, table = models
    evidence = build(ruled.schema, conditions=said)
    state, expected = ruled.observe(evidence), table.observe(evidence)
    assert isinstance(state, RuledPosterior) and state.rows.sums is not None
    assert np.allclose(ruled.log_density(evidence), table.log_density(evidence), atol=1e-4)
    assert np.isclose(state.log_evidence, table.log_density(evidence)[0], atol=1e-4)
    points, cuts, q = np.arange(-2.0, 16.0), np.array([1.5, 3.5, 6.5]), np.array([0.1003, 0.5004, 0.9001])
    for name in NUMBERS:
        j = ruled.schema.index(name)
        for found, wanted in zip(state.moments(j), expected.moments(j), strict=True):
            assert np.allclose(found, wanted, atol=2e-4)
        assert np.allclose(state.cdf(j, points), expected.cdf(j, points), atol=1e-4)
        assert np.allclose(state.pdf(j, points), expected.pdf(j, points), atol=1e-4)
        assert np.allclose(state.histogram(j, cuts), expected.histogram(j, cuts), atol=1e-4)
        assert np.allclose(state.quantile(j, q), expected.quantile(j, q))
    kind = ruled.schema.index("kind")
    assert np.allclose(state.level_probabilities(kind), expected.level_probabilities(kind), atol=1e-4)
    for a, b in itertools.combinations([ruled.schema.index(name) for name in NUMBERS], 2):
        assert np.allclose(state.covariance(a, b), expected.covariance(a, b), atol=5e-4)


def test_rows_asked_together_are_answered_as_each_alone(models: tuple[RuledDistribution, TableDistribution]) -> None:
    ruled, table = models
    rng = np.random.default_rng(1)
    X = table.rows[rng.choice(len(table.rows), 30, p=table.weight / table.weight.sum())]
    X[rng.random(X.shape) < 0.6] = np.nan
    evidence = Evidence.of_values(X)
    together, filled = ruled.observe(evidence), ruled.impute(evidence)[0]
    assert np.allclose(ruled.log_density(evidence), table.log_density(evidence), atol=1e-3)
    for i in range(len(X)):
        one = evidence.take(np.array([i]))
        alone = ruled.observe(one)
        for j in (ruled.schema.index(name) for name in NUMBERS):
            assert np.allclose(together.moments(j)[0][i], alone.moments(j)[0][0], rtol=1e-5)
        assert np.array_equal(ruled.impute(one)[0][0], filled[i])


def test_sums_beside_rows_are_cut_into_pieces_that_fit_in_memory(
    models: tuple[RuledDistribution, TableDistribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    ruled, table = models
    bounds = PerRow(tuple(Interval(None, high) for high in range(3, 13)))
    evidence = build(ruled.schema, conditions={"total": bounds, "a": Interval(1, None)}, n=10)
    assert max(len(some) for some, _ in ruled.rows(evidence)) == 10
    monkeypatch.setattr(arrays, "LIMIT", 10_000)
    assert 1 <= max(len(some) for some, _ in ruled.rows(evidence)) < 5
    assert np.allclose(ruled.log_density(evidence), table.log_density(evidence), atol=1e-3)
    j = ruled.schema.index("b")
    assert np.allclose(ruled.observe(evidence).moments(j)[0], table.observe(evidence).moments(j)[0], atol=1e-3)


def test_many_totals_beside_the_same_evidence(models: tuple[RuledDistribution, TableDistribution]) -> None:
    ruled, table = models
    X = np.full((60, len(ruled.schema.columns)), np.nan)
    X[:, ruled.schema.index("total")] = np.tile(np.arange(12.0), 5)
    X[:, ruled.schema.index("late")] = np.repeat([0.0, 1.0, 2.0, np.nan, 3.0], 12)
    evidence = Evidence.of_values(X)
    expected = table.log_density(evidence)
    some = expected > -12.0
    assert some.sum() > 30 and np.allclose(ruled.log_density(evidence)[some], expected[some], atol=1e-3)
    X[:, ruled.schema.index("c")] = 1.0  # two parts are unknown
    evidence = Evidence.of_values(X)
    expected = table.log_density(evidence)
    some = expected > -12.0
    assert some.sum() > 20 and np.allclose(ruled.log_density(evidence)[some], expected[some], atol=1e-3)


def test_totals_of_rows_alike_are_as_those_of_each_row_alone(
    models: tuple[RuledDistribution, TableDistribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    ruled, _ = models
    X = np.full((24, len(ruled.schema.columns)), np.nan)
    X[:, ruled.schema.index("total")] = np.tile(np.arange(12.0), 2)
    X[12:, ruled.schema.index("a")] = 2.0
    together = ruled.log_density(Evidence.of_values(X))
    alone = [ruled.log_density(Evidence.of_values(row[None]))[0] for row in X]
    assert np.allclose(together, alone, atol=1e-6)  # messages of rows together are rounded otherwise, to 32 bits
    monkeypatch.setattr(linked, "_MOST_ASKED", 0)
    assert np.allclose(ruled.log_density(Evidence.of_values(X)), alone, atol=1e-6)
    monkeypatch.setattr(hinge, "_PAIRS", 0)  # by Fourier transforms
    assert np.allclose(ruled.log_density(Evidence.of_values(X)), alone, rtol=1e-6)


def test_a_sum_of_two_long_parts_is_linked(
    models: tuple[RuledDistribution, TableDistribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    ruled, table = models
    assert ruled.linker is not None
    monkeypatch.setattr("jointforest.models.ruled.linked._MOST_PLACES", 2)
    for said, is_linked in (
        ({"total": 8, "c": 1}, True), ({"total": 8}, False), ({"total": Interval(4, 9), "c": 1}, True)
    ):  # fmt: skip
        evidence = build(ruled.schema, conditions=said)
        state = ruled.observe(evidence)
        assert isinstance(state, RuledPosterior) and (state.rows.sums is not None) == is_linked
        j = ruled.schema.index("a")
        assert np.allclose(state.moments(j)[0], table.observe(evidence).moments(j)[0], atol=2e-4)


def test_draws(models: tuple[RuledDistribution, TableDistribution]) -> None:
    ruled, table = models
    for said in CASES:
        evidence = build(ruled.schema, conditions=said)
        drawn, state = ruled.sample(evidence, 4_000, 0, False), table.observe(evidence)
        for name in NUMBERS:
            j = ruled.schema.index(name)
            mean, variance = (float(x[0]) for x in state.moments(j))
            assert abs(drawn[:, j].mean() - mean) < 4.5 * np.sqrt(abs(variance) / len(drawn)) + 1e-3


def test_a_total_out_of_reach_is_answered_by_tails(models: tuple[RuledDistribution, TableDistribution]) -> None:
    ruled, _ = models
    assert ruled.log_density(build(ruled.schema, conditions={"total": 500}))[0] > -np.inf


def test_masses_of_a_grid_with_another_step() -> None:
    rng = np.random.default_rng(0)
    a, b = (np.round(rng.gamma(2.0, 1.0, 800), 1) for _ in range(2))
    frame = pd.DataFrame({"a": a, "b": b, "c": np.round(a + b, 1), "s": np.where(a > b, "x", "y")})
    learner = jf.HiddenTreeForest(n_states=3, max_iter=1, max_leaf_nodes=1, rules=["c = a + b"], random_state=0)
    ruled = learner.fit(frame).joint_.distribution
    assert isinstance(ruled, RuledDistribution)
    evidence = build(ruled.schema, conditions={"c": Interval(0, 3.0)})
    expected = ruled.sample(build(ruled.schema), 40_000, 0, False)[:, 2]
    assert np.isclose(np.exp(ruled.log_density(evidence)[0]), (expected <= 3.04).mean(), atol=0.015)
    spread = ruled.spread_out(evidence).log_evidence
    assert np.isclose(ruled.log_density(evidence)[0], spread, atol=1e-5)
