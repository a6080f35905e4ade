"""One row of evidence weighed once: the same answers as weighed for each question, and as the oracle's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import jointforest as jf
from jointforest.data.evidence import Evidence
from jointforest.models.box_forest.posterior import OneRow, chunk_posterior

from ... import oracle
from ...box_answers import background_weight, cdf, level_probability, mean_variance, pdf, quantile
from ...random_cases.evidence import random_evidence
from ...random_cases.models import random_model, seeds
from ...wrapped import joint_of


def one(evidence: Evidence, i: int) -> Evidence:
    """Row i alone."""
    region = evidence.region[i : i + 1] if evidence.region.size else evidence.region
    return evidence._replace(
        value=evidence.value[i : i + 1], region=region, log_penalty=evidence.log_penalty[i : i + 1]
    )


@given(seeds)
@settings(max_examples=40)
def test_the_posterior_is_that_of_each_question(seed: int) -> None:
    model = random_model(seed, n_trees=1 + seed % 3, max_depth=1 + seed % 4, background=seed % 3 > 0)
    evidence = random_evidence(model, seed, 4)
    for i in range(4):
        row = one(evidence, i)
        known = OneRow(model, row)
        post = known.posterior
        for got, want in zip(post, chunk_posterior(model, row, 0, 1), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
        rows, weight = known.mixture
        np.testing.assert_array_equal(rows, post.leaf)
        np.testing.assert_allclose(weight, np.exp(post.log_weight - post.log_evidence[0]), rtol=1e-12)
        assert not len(rows) or weight.sum() == pytest.approx(1.0)
        want_weight = oracle.background_weight(model, evidence, i)
        np.testing.assert_allclose(background_weight(model, row, known=known), want_weight, rtol=1e-9, atol=1e-12)


@given(seeds)
@settings(max_examples=20)
def test_readers_answer_the_same(seed: int) -> None:
    model = random_model(seed, n_trees=2, max_depth=3, background=True)
    row = one(random_evidence(model, seed, 1), 0)
    known = OneRow(model, row)
    points, shares = np.linspace(-5, 5, 7), np.array([0.05, 0.5, 0.95])
    for j, column in enumerate(model.schema.columns):
        if column.is_categorical:
            got, want = level_probability(model, row, j, known=known), level_probability(model, row, j)
            np.testing.assert_array_equal(got, want)
            continue
        np.testing.assert_array_equal(mean_variance(model, row, j, known=known), mean_variance(model, row, j))
        for question, x in ((cdf, points), (pdf, points), (quantile, shares)):
            np.testing.assert_array_equal(question(model, row, j, x, known=known), question(model, row, j, x))


def test_a_posterior_weighs_its_evidence_once(monkeypatch) -> None:
    from jointforest.models.box_forest import posterior as module

    joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
    calls = []
    weigh = module.posterior_rows
    monkeypatch.setattr(module, "posterior_rows", lambda *given: calls.append(1) or weigh(*given))
    known = joint.given("body_mass_g > 5000")
    for name, marginal in known.marginals().items():
        if joint.levels(name):
            known.proba(name)
        else:
            marginal.mean(), marginal.cdf(40.0), known.interval(name), known.std(name)
    assert len(calls) == 1


def test_a_wrong_number_of_threads_is_an_error_for_one_row_too() -> None:
    joint = joint_of(random_model(1, kinds=("continuous", "boolean")))
    with pytest.raises(ValueError, match="n_jobs must be"):
        joint.given(c1=True).mean("c0", n_jobs=0)
