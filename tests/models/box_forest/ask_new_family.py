"""Asks a forest of logistic leaves, learned from a table, every question; `test_new_family` runs it as a process."""

from __future__ import annotations

import math
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.stats import kstest

import jointforest as jf
from jointforest.models.box_forest.posterior import log_density

from ... import oracle
from ...box_answers import cdf, level_probability, mean_variance, pdf, quantile
from ...random_cases.evidence import random_evidence

N = 5
SEEDS = 4


def table() -> pd.DataFrame:
    """Numbers with tails, on a grid and with a point mass, levels, and missing cells."""
    rng = np.random.default_rng(0)
    level = rng.choice(["a", "b", "c"], 400)
    x = rng.logistic(size=400) + (level == "a") * 3
    count = rng.poisson(40 + 5 * np.abs(x))
    mixed = np.where(rng.random(400) < 0.3, 0.0, x + rng.logistic(size=400))
    frame = pd.DataFrame({"x": x, "count": count, "mixed": mixed, "level": level})
    return frame.mask(rng.random(frame.shape) < 0.05)


def close(got: object, want: object, rtol: float = 1e-8, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(got, dtype=float), np.asarray(want, dtype=float), rtol=rtol, atol=atol)


def ask(joint: jf.Joint, frame: pd.DataFrame) -> None:
    """Compare answers of the joint with the oracle's, or with integrals of its density."""
    forest = joint.distribution.forest
    assert (forest.leaves.family == oracle.LOGISTIC).any()
    rng = np.random.default_rng(1)
    for seed in range(SEEDS):
        evidence = random_evidence(forest, seed, N)
        close(log_density(forest, evidence), oracle.log_density(forest, evidence), 1e-9)
        for j, column in enumerate(forest.schema.columns):
            of = [oracle.given(forest, evidence, i, j) for i in range(N)]
            if column.is_categorical:
                close(level_probability(forest, evidence, j), [oracle.level_probability(g) for g in of])
                continue
            moments = np.transpose(mean_variance(forest, evidence, j))
            close(moments, [oracle.mean_variance(g) for g in of], 1e-7, 1e-9)
            q = rng.uniform(0.05, 0.95, 2)
            close(quantile(forest, evidence, j, q), [[oracle.quantile(g, p) for p in q] for g in of], 1e-7)
            at = frame[column.name].dropna().to_numpy()[:4].astype(float)
            close(cdf(forest, evidence, j, at), [[oracle.cdf(g, x) for x in at] for g in of])
            unknown = [i for i, g in enumerate(of) if not isinstance(g.known, float)]
            close(pdf(forest, evidence, j, at)[unknown], [[oracle.pdf(of[i], x) for x in at] for i in unknown])

    given, x = joint.given(level="a"), joint.given(level="a").marginal("x")
    cuts = np.linspace(-30, 40, 71)
    parts = list(pairwise(cuts))
    close(x.mean(), sum(quad(lambda t: t * float(x.pdf(t)), u, v)[0] for u, v in parts), 1e-6)
    drawn = given.sample(4000, random_state=0)
    assert kstest(drawn["x"].to_numpy(dtype=float), x.cdf).pvalue > 1e-3
    held = jf.between(0.5, 2.0)
    near = joint.given(x=held)
    inside = near.sample(2000, random_state=1)["x"].to_numpy(dtype=float)
    assert 0.5 <= inside.min() <= inside.max() <= 2.0
    assert kstest(inside, near.marginal("x").cdf).pvalue > 1e-3
    close(joint.condition(x=held).marginal("mixed").mean(), near.mean("mixed"), 1e-9)
    close(joint.select("x", "count").marginal("count").var(), joint.marginal("count").var(), 1e-9)
    shown = joint.marginal("count").histogram()
    close(np.sum(shown.mass), 1.0, 1e-9)
    best = given.mode()
    assert best.log_density[0] >= joint.log_density(drawn).max() - 1e-9
    y = joint.marginal("x")

    def surprise(t: float) -> float:
        p = float(y.pdf(t))
        return -p * math.log(p) if p > 0 else 0.0

    close(joint.entropy("x").value, sum(quad(surprise, u, v)[0] for u, v in parts), 1e-3)
    assert np.isfinite(joint.robustness(frame.head(5), "level")).all()
    with tempfile.TemporaryDirectory() as folder:
        joint.save(Path(folder) / "logistic.joint")
        close(jf.load(Path(folder) / "logistic.joint").log_density(frame), joint.log_density(frame), 0.0, 0.0)


if __name__ == "__main__":
    rows = table()
    for learner in (
        jf.AdversarialForest(2, leaf="logistic", min_samples_leaf=60, random_state=0),
        jf.JointTree(leaf="logistic", max_leaf_nodes=4, random_state=0),
    ):
        ask(learner.fit(rows).joint_, rows)
