"""Completions: the draws of a row depend on no other row, follow the exact posterior, and are spread evenly.

Random mixtures of a forest and hidden trees, and their components alone, with random evidence of values and regions.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.evidence import Evidence, build
from jointforest.models.base import Distribution
from jointforest.runtime.threads import use_jobs

from .hidden_tree.test_mixture import Case

SEEDS, KINDS, M = range(8), ("forest", "hidden trees", "mixture"), 24


@cache
def case(seed: int, kind: str) -> tuple[Distribution, Evidence]:
    of = Case(seed)
    place = {"forest": 0, "hidden trees": 1}
    return (of.model.components[place[kind]] if kind in place else of.model), of.evidence


def equal_counts(evidence: Evidence, m: int = M) -> np.ndarray:
    return np.full(len(evidence.value), m)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_draws_of_a_row_depend_on_no_other_row(seed: int, kind: str) -> None:
    """Rows alone, in another order, several times; with one and two threads."""
    model, evidence = case(seed, kind)
    n, d = evidence.value.shape
    count = np.array([24, 0, 7, 24, 1])
    whole = model.completions(evidence, count, 3)
    assert whole.shape == (count.sum(), d)
    np.testing.assert_array_equal(use_jobs(2)(model.completions)(evidence, count, 3), whole)
    stop = np.cumsum(count)
    order = np.array([4, 2, 0, 3, 2])
    again = model.completions(evidence.take(order), count[order], 3)
    wanted = np.concatenate([whole[stop[i] - count[i] : stop[i]] for i in order])
    np.testing.assert_allclose(again, wanted, rtol=1e-9)
    for i in range(n):
        alone = model.completions(evidence.take(np.array([i])), count[[i]], 3)
        np.testing.assert_allclose(alone, whole[stop[i] - count[i] : stop[i]], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_means_of_draws_are_those_of_the_posterior(seed: int, kind: str) -> None:
    """Over many seeds, within five standard errors of independent draws; known cells keep their value."""
    model, evidence = case(seed, kind)
    n, d = evidence.value.shape
    many = 300
    draws = np.stack([model.completions(evidence, equal_counts(evidence), s).reshape(n, M, d) for s in range(many)])
    known = ~np.isnan(evidence.value)
    is_possible = np.isfinite(model.log_density(evidence))
    np.testing.assert_array_equal(np.isnan(draws).any(axis=(0, 2, 3)), ~is_possible)
    state = model.observe(evidence)
    for i in np.flatnonzero(is_possible):
        assert (draws[:, i, :, known[i]] == evidence.value[i, known[i]][:, None, None]).all()
    for j, column in enumerate(model.schema.columns):
        x = draws[..., j][:, is_possible]  # (seeds, rows, M)
        if column.is_categorical:
            p = state.level_probabilities(j)[is_possible]
            share = (x[..., None] == np.arange(p.shape[1])).mean(axis=(0, 2))
            error = np.sqrt(np.maximum(p * (1 - p), 0.0) / (many * M))
            assert (np.abs(share - p) <= 5 * error + 1e-7).all()
        else:
            mean, variance = (moment[is_possible] for moment in state.moments(j))
            some = np.isfinite(variance)
            error = np.sqrt(variance / (many * M))
            found = x.mean(axis=(0, 2))
            assert (np.abs(found - mean)[some] <= (6 * error + 1e-6 * (1 + np.abs(mean)))[some]).all()


@cache
def dependent(kind: str) -> Distribution:
    rng = np.random.default_rng(0)
    z = rng.normal(size=600)
    frame = pd.DataFrame(
        {
            "a": z + 0.4 * rng.normal(size=600),
            "b": -z + 0.4 * rng.normal(size=600),
            "c": np.where(z + 0.5 * rng.normal(size=600) > 0, "up", "down"),
        }
    )
    forest = jf.AdversarialForest(5, random_state=0, n_jobs=1).fit(frame).joint_
    hidden = jf.HiddenTreeForest(n_states=8, max_iter=2, random_state=0, n_jobs=1).fit(frame).joint_
    return {"forest": forest, "hidden trees": hidden, "mixture": jf.mix([forest, hidden])}[kind].distribution


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_dependence_of_independent_draws(kind: str) -> None:
    """The mean of a * b over completions of one cell, of many seeds, beside that of independent draws."""
    model = dependent(kind)
    evidence = build(model.schema, np.array([[np.nan, np.nan, 0.0], [np.nan, np.nan, np.nan]]))
    each = np.stack([model.completions(evidence, equal_counts(evidence), s) for s in range(400)])
    product = (each[:, :, 0] * each[:, :, 1]).reshape(400, 2, M).mean(axis=(0, 2))
    plain = model.sample(evidence, 40_000, 0, False)
    independent = (plain[:, 0] * plain[:, 1]).reshape(2, -1)
    error = independent.std(axis=1) * np.sqrt(1 / (400 * M) + 1 / 40_000)
    assert (np.abs(product - independent.mean(axis=1)) < 5 * error).all()


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_spread_evenly(kind: str) -> None:
    """The mean of the draws of a row varies less over seeds than the mean of as many independent draws."""
    model = dependent(kind)
    evidence = build(model.schema, np.array([[np.nan, np.nan, np.nan], [0.7, np.nan, np.nan]]))
    each = np.stack([model.completions(evidence, equal_counts(evidence), s) for s in range(200)])
    found = each[:, :, 1].reshape(200, 2, M).mean(axis=2).var(axis=0)
    plain = model.sample(evidence, 20_000, 0, False)[:, 1].reshape(2, -1).var(axis=1) / M
    assert (found < 0.8 * plain).all()


def test_a_kind_without_its_own_completions_draws_row_by_row() -> None:
    class Plain:
        def sample(self, evidence, m, seed, missing):
            noise = np.random.default_rng(seed).random((len(evidence.value) * m, 1))
            return np.repeat(evidence.value, m, axis=0) + noise

    evidence = Evidence.of_values(np.array([[0.0, 1.0], [5.0, 5.0], [2.0, 3.0]]))
    found = Distribution.completions(Plain(), evidence, np.array([2, 0, 3]), 0)
    assert found.shape == (5, 2)
    np.testing.assert_allclose(found[:2] - evidence.value[0], found[2:4] - evidence.value[2])
