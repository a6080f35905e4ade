"""Second moments and expectations of links, against pairs of leaves and completions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from jointforest.ensembles.evaluate import apply_link
from jointforest.inference.expectation.expectation import MatchedRows, by_cells, by_pairs, completed_sums, expected
from jointforest.inference.expectation.match import match_ensemble
from jointforest.runtime.threads import use_jobs

from ... import oracle
from ...random_cases.cells import make_evidence
from ...random_cases.ensembles import random_ensemble, random_rows
from ...random_cases.models import random_model, seeds

LEVELS = ("categorical", "boolean", "ordered", "categorical")


def case(seed, link="identity", n=4, n_trees=2, **options):
    """A random model, an ensemble matched with it, and rows for both."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, **{"max_depth": 2, "n_trees": 2, **options})
    n_outputs = {"logistic": 1, "exp": 1, "softmax": 3}.get(link, 1 + seed % 2)
    ensemble = random_ensemble(rng, model, n_trees=n_trees, max_depth=2, n_outputs=n_outputs, link=link)
    cells, rows, X, other = random_rows(rng, model, ensemble, n)
    return model, ensemble, match_ensemble(ensemble, model), cells, rows, MatchedRows(make_evidence(cells), X, other)


@settings(max_examples=8, deadline=None)
@given(seeds)
def test_second_moments_by_regions(seed):
    model, ensemble, matched, cells, rows, given_rows = case(seed)
    _, moments = by_cells(matched, given_rows, most=10**6)
    pairs = by_pairs(matched, given_rows)
    assert moments.is_exact.all()
    for i, (row, known) in enumerate(zip(rows, cells, strict=True)):
        second = oracle.expectation.second_moment(model, ensemble, row, known)
        np.testing.assert_allclose(moments.second[i], second, atol=1e-10)
        np.testing.assert_allclose(moments.mean[i], oracle.expectation.mean(model, ensemble, row, known), atol=1e-10)
        if pairs.is_exact[i]:
            np.testing.assert_allclose(pairs.second[i], second, atol=1e-10)
            np.testing.assert_allclose(pairs.mean[i], moments.mean[i], atol=1e-10)


def test_pairs_answer_all_rows_of_leaves_that_are_products():
    for seed in range(12):
        _, _, matched, _, _, rows = case(seed, mixed=0.0, n=10, n_trees=4)
        linked, moments = by_cells(matched, rows, most=10**6)
        pairs = by_pairs(matched, rows)
        assert pairs.is_exact.all()
        np.testing.assert_allclose(pairs.second, moments.second, atol=1e-10)
        np.testing.assert_allclose(linked, expected(matched, rows)[0], atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(seeds)
@pytest.mark.parametrize("link", ["logistic", "softmax", "exp"])
def test_links_by_completions(link, seed):
    model, ensemble, matched, cells, rows, given_rows = case(seed, link, kinds=LEVELS[: 2 + seed % 2])
    linked, _ = by_cells(matched, given_rows)
    for i in range(len(rows)):
        direct = oracle.expectation.enumerated(
            model, ensemble, rows[i], cells[i], lambda total: apply_link(link, total[None])[0]
        )
        np.testing.assert_allclose(linked[i], direct, atol=1e-10)


def test_rows_with_too_many_cells_are_left():
    _, _, matched, _, _, rows = case(3, n_trees=4)
    linked, moments = by_cells(matched, rows, most=1)
    missing = np.isnan(rows.X).any(axis=1)
    assert not moments.is_exact[0] and moments.is_exact[1]  # nothing known; everything known
    np.testing.assert_array_equal(np.isnan(linked).any(axis=1), ~moments.is_exact)
    assert missing[~moments.is_exact].all()


@pytest.mark.parametrize("mixed", [0.0, 0.7])
def test_completions_are_as_probable_as_they_should(mixed):
    for seed in range(6):
        _, _, matched, _, _, rows = case(seed, mixed=mixed, n=8, n_trees=3)
        _, moments = by_cells(matched, rows, most=10**6)
        total = completed_sums(matched, rows, 2000, seed)
        variance = np.einsum("nkk->nk", moments.second) - moments.mean**2
        error = np.abs(total.mean(axis=1) - moments.mean)
        assert (error <= 5 * np.sqrt(np.maximum(variance, 0) / 2000) + 1e-9).all()
        np.testing.assert_allclose(total.var(axis=1), variance, atol=0.25 * variance.max() + 1e-9)


def test_completions_do_not_depend_on_threads():
    _, _, matched, _, _, rows = case(1, n=40)
    np.testing.assert_array_equal(
        use_jobs(1)(completed_sums)(matched, rows, 7, 3), use_jobs(2)(completed_sums)(matched, rows, 7, 3)
    )


def test_completions_do_not_depend_on_how_many_are_held_at_once(monkeypatch):
    _, _, matched, _, _, rows = case(1, n=5)
    whole = completed_sums(matched, rows, 7, 3)
    monkeypatch.setattr("jointforest.inference.expectation.expectation._DRAWN", 3)  # fewer than one row's
    np.testing.assert_array_equal(completed_sums(matched, rows, 7, 3), whole)
