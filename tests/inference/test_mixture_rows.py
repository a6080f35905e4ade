"""Mixtures answer many rows of evidence at once as they answer each row alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf


@cache
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "c"], 600, p=[0.6, 0.3, 0.1])
    age = np.clip(np.rint(rng.normal(40, 12, 600) + 10 * (group == "b")), 18, 90)
    size = 3.0 * age + rng.normal(0, 20, 600)
    return pd.DataFrame({"group": group, "age": age, "size": size, "flag": rng.random(600) < age / 100})


@cache
def joint() -> jf.Joint:
    """A forest, a forest with Chow-Liu leaves, and a hidden tree."""
    learners = [
        jf.AdversarialForest(5, random_state=0),
        jf.AdversarialForest(3, leaf="chow_liu", random_state=0),
        jf.HiddenTreeForest(n_states=8, max_iter=3, random_state=0),
    ]
    return jf.mix([learner.fit(table()).joint_ for learner in learners], [1, 1, 2])


@pytest.mark.parametrize("column", ["age", "size"])
def test_quantiles_of_many_rows_are_those_of_each(column: str) -> None:
    rows = table().iloc[:25].drop(columns=[column])
    levels = [0.01, 0.3, 0.5, 0.99]
    each = np.array([joint().given(rows.iloc[[i]]).quantile(column, levels)[0] for i in range(len(rows))])
    np.testing.assert_allclose(joint().given(rows).quantile(column, levels), each, rtol=1e-6)


@pytest.mark.parametrize("condition", [{}, {"age": jf.between(30, 60)}])
def test_covariances_of_many_rows_are_those_of_each(condition: dict) -> None:
    rows = table().iloc[:25][["group"]]
    each = [joint().given(rows.iloc[[i]], **condition).cov("age", "size")[0] for i in range(len(rows))]
    np.testing.assert_allclose(joint().given(rows, **condition).cov("age", "size"), each, rtol=1e-4)
    each = [joint().given(rows.iloc[[i]], **condition).cov("flag", "size")[0] for i in range(len(rows))]
    np.testing.assert_allclose(joint().given(rows, **condition).cov("flag", "size"), each, rtol=1e-4, atol=1e-4)


def test_draws_of_many_rows_follow_each_posterior() -> None:
    evidence = pd.DataFrame({"group": ["a", "b", "a", "c"] * 5})  # equal rows, which are propagated once
    m = 2_000
    drawn = [joint().given(evidence).sample(m, random_state=0, n_jobs=n_jobs) for n_jobs in (1, 2)]
    pd.testing.assert_frame_equal(*drawn)
    assert (drawn[0]["group"].to_numpy() == np.repeat(evidence["group"].to_numpy(), m)).all()
    mean = drawn[0]["size"].to_numpy().reshape(-1, m).mean(axis=1)
    known = joint().given(evidence)
    apart = (mean - known.mean("size")) / (known.std("size") / np.sqrt(m))
    assert np.abs(apart).max() < 4.5
    assert len(np.unique(mean)) == len(mean)  # equal rows have draws of their own


def test_draws_of_a_rare_relation_follow_its_distribution() -> None:
    where = "size > 3 * age + 2 * age - 25"
    rows = joint().sample(1_500, random_state=1, where=where)
    assert (rows["size"] > 5 * rows["age"] - 25).all()
    everything = joint().sample(200_000, random_state=2)
    kept = everything[everything["size"] > 5 * everything["age"] - 25]
    error = np.sqrt(kept["age"].var() * (1 / len(kept) + 1 / len(rows)))
    assert abs(rows["age"].mean() - kept["age"].mean()) < 4.5 * error
