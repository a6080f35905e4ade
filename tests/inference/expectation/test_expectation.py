"""Expectations of ensembles under a joint, against sums over leaves and over completions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointforest.inference.expectation.expectation import MatchedRows, expected, leaf_probability, with_table
from jointforest.inference.expectation.match import match_ensemble
from jointforest.runtime.threads import use_jobs

from ... import oracle
from ...random_cases.cells import make_evidence
from ...random_cases.ensembles import random_ensemble, random_rows
from ...random_cases.models import random_model, seeds

LEVELS = ("categorical", "boolean", "ordered", "categorical")


def case(seed, n=6, **options):
    """A random model, an ensemble, and rows for both."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, **{"max_depth": 2, **options})
    ensemble = random_ensemble(rng, model, n_outputs=1 + seed % 3)
    cells, rows, X, other = random_rows(rng, model, ensemble, n)
    return model, ensemble, cells, rows, MatchedRows(make_evidence(cells), X, other)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_mean_and_leaves_by_regions(seed):
    model, ensemble, cells, rows, given_rows = case(seed)
    matched = match_ensemble(ensemble, model)
    mean, error = expected(matched, given_rows)
    leaves = leaf_probability(matched, given_rows)
    assert (error == 0).all()
    for i, (row, known) in enumerate(zip(rows, cells, strict=True)):
        p = oracle.expectation.leaf_probability(model, ensemble, row, known)
        mine = np.zeros(len(p))
        entries = slice(leaves.start[i], leaves.start[i + 1])
        mine[leaves.leaf[entries]] = leaves.probability[entries]
        np.testing.assert_allclose(mine, p, atol=1e-10)
        np.testing.assert_allclose(mean[i], ensemble.base + p @ ensemble.value, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_mean_by_completions(seed):
    model, ensemble, cells, rows, given_rows = case(seed, n=4, kinds=LEVELS[: 2 + seed % 2])
    mean, _ = expected(match_ensemble(ensemble, model), given_rows)
    for i in range(len(rows)):
        direct = oracle.expectation.enumerated(model, ensemble, rows[i], cells[i], lambda total: total)
        np.testing.assert_allclose(mean[i], direct, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from([1e-3, 1e-2, 0.1, 0.5]))
def test_errors_stay_below_their_bound(seed, tolerance):
    model, ensemble, _, _, rows = case(seed, n=20)
    matched = match_ensemble(ensemble, model)
    exact, _ = expected(matched, rows)
    mean, error = expected(matched, rows, tolerance)
    assert (np.abs(mean - exact) <= error + 1e-12).all()
    half = sum(matched.half[root] for root in ensemble.root).max()
    assert error.max() <= tolerance * half * matched.half.shape[1] + 1e-12


def test_table_threads_and_repeated_rows_change_nothing():
    model, ensemble, _, _, rows = case(5, n=40)
    matched = match_ensemble(ensemble, model)
    mean, error = use_jobs(1)(expected)(matched, rows, 1e-3)
    again = MatchedRows(
        rows.evidence._replace(value=np.tile(rows.evidence.value, (3, 1)), log_penalty=np.zeros(120)),
        np.tile(rows.X, (3, 1)),
        np.tile(rows.other, (3, 1)),
    )
    for other in (matched, with_table(matched), with_table(matched, most_bytes=8 * len(model.leaves.tree))):
        for n_jobs in (1, 2):
            got = use_jobs(n_jobs)(expected)(other, again, 1e-3)
            np.testing.assert_array_equal(got[0], np.tile(mean, (3, 1)))
            np.testing.assert_array_equal(got[1], np.tile(error, (3, 1)))


@pytest.mark.parametrize(("seed", "mixed"), [(12, 0.0), (297, 0.3)])
def test_rows_of_probability_zero_are_not_predicted(seed, mixed):
    model = random_model(seed, kinds=("continuous", "categorical"), background=False, mixed=mixed)
    evidence = make_evidence([[1e9, None]])
    assert oracle.log_density(model, evidence)[0] == -np.inf
    ensemble = random_ensemble(np.random.default_rng(0), model, n_trees=20)
    X = np.array([[1e9 if name == "c0" else np.nan for name in ensemble.names]])
    rows = MatchedRows(evidence, X, np.zeros(X.shape, dtype=bool))
    mean, error = expected(match_ensemble(ensemble, model), rows)
    assert np.isnan(mean).all() and np.isnan(error).all()
    assert len(leaf_probability(match_ensemble(ensemble, model), rows).leaf) == 0
