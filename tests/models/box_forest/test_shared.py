"""Leaves of rows that share cells, against Bayes' rule over all leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from jointforest.data.evidence import Evidence
from jointforest.models.box_forest import posterior as box_forest_posterior
from jointforest.models.box_forest.posterior import posterior, shared_posteriors

from ...random_cases.evidence import random_evidence, random_point
from ...random_cases.models import random_model, seeds
from .test_posterior import same_as_oracle


def coalitions(model, rng: np.random.Generator, n: int) -> Evidence:
    """Rows that know some cells of two rows; one knows nothing."""
    rows = np.array([random_point(rng, model), random_point(rng, model)], dtype=float)
    value = np.where(rng.random((n, rows.shape[1])) < 0.6, rows[rng.integers(0, 2, n)], np.nan)
    value[0] = np.nan
    return Evidence.of_values(value)


@given(seeds)
@settings(max_examples=40)
def test_shared_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(seed, n_trees=1 + seed % 3, max_depth=1 + seed % 4, mixed=0.5 if seed % 3 == 0 else 0.0)
    evidence = coalitions(model, rng, 24)
    post = shared_posteriors(model, evidence)(0, 24)
    same_as_oracle(post, model, evidence, 1e-10)


def test_regions_and_lonely_cells_go_the_usual_way() -> None:
    model = random_model(3, n_trees=2, max_depth=3, mixed=0.0)
    for evidence in (
        random_evidence(model, 5, 12),
        Evidence.of_values(np.full((0, len(model.schema.columns)), np.nan)),
    ):
        found, wanted = shared_posteriors(model, evidence)(0, len(evidence.value)), posterior(model, evidence)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_parts_of_the_rows_have_the_posterior_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(4, n_trees=3, max_depth=3, mixed=0.0)
    evidence = coalitions(model, np.random.default_rng(0), 24)
    wanted = shared_posteriors(model, evidence)(0, 24)
    for entries in (10**6, 4 * len(model.leaves.log_weight)):  # all cells fit, or those of two rows at most
        monkeypatch.setattr(box_forest_posterior, "_SHARED_ENTRIES", entries)
        posterior_of = shared_posteriors(model, evidence)
        for first, stop in ((0, 10), (10, 24)):
            part = posterior_of(first, stop)
            np.testing.assert_allclose(part.log_evidence, wanted.log_evidence[first:stop], rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(np.diff(part.start), np.diff(wanted.start)[first:stop])
