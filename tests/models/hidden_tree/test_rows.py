"""Draws from hidden trees: how often codes, values and blanks come, and that evidence is kept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from jointforest.data.discretization.discretizer import codes_of
from jointforest.data.evidence import Evidence
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.runtime.threads import use_jobs

from ...oracle import hidden as oracle
from ...oracle.evidence import Set
from ...random_cases.hidden_trees import random_evidence, random_hidden, random_plain

SEEDS = [*range(12), *range(100, 106)]  # from 100 on: trees whose states are codes
DRAWS = 4_000


def possible_rows(seed: int, n: int) -> tuple[HiddenTree, Evidence, list[oracle.Given]]:
    """Hidden trees and rows of evidence that they allow."""
    hidden = random_hidden(seed) if seed < 100 else random_plain(seed)
    evidence = random_evidence(seed, hidden, 12)
    given = [oracle.Given(hidden, oracle.row_of(hidden, evidence, i)) for i in range(12)]
    some = [i for i, of in enumerate(given) if of.probability > 0.0][:n]
    return HiddenTree(hidden), evidence.take(np.array(some)), [given[i] for i in some]


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_have_the_distribution_that_enumeration_gives(seed: int) -> None:
    part, evidence, rows = possible_rows(seed, 4)
    drawn = part.sample(evidence, DRAWS, seed, False).reshape(len(rows), DRAWS, -1)
    for i, given in enumerate(rows):
        codes = np.column_stack([codes_of(scale, drawn[i, :, j])[0] for j, scale in enumerate(part.hidden.scales)])
        expected = DRAWS * oracle.all_codes(given)
        found = np.zeros(expected.shape)
        np.add.at(found, tuple(codes.T), 1)
        often = expected > 5.0
        assert found[expected == 0.0].sum() == 0
        assert (found - expected)[~often].sum() < 6.0 * np.sqrt(max(expected[~often].sum(), 1.0))
        statistic = ((found - expected) ** 2)[often] / expected[often]
        assert statistic.sum() < chi2.isf(1e-5, max(often.sum(), 1))
        for j, column in enumerate(part.schema.columns):
            if column.kind == "continuous" and (given.knowns[j] is None or isinstance(given.knowns[j], Set)):
                x = drawn[i, :300, j]
                order = np.sort(x).tolist()
                below = dict(zip(order, oracle.cdf(given, j, order), strict=True))
                assert kstest(x, np.vectorize(below.__getitem__)).pvalue > 1e-5


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_agree_with_the_evidence(seed: int) -> None:
    part, evidence, rows = possible_rows(seed, 12)
    drawn = part.sample(evidence, 50, seed, False).reshape(len(rows), 50, -1)
    assert np.isfinite(drawn).all()
    for i, given in enumerate(rows):
        for j, known in enumerate(given.knowns):
            if isinstance(known, Set):
                column = part.schema.columns[j]
                is_mass = column.is_categorical or column.step > 0.0
                for x in drawn[i, :, j].tolist():
                    assert oracle.likelihood(column, x, is_mass or x in column.atoms, known) > 0.0
            elif known is not None:
                assert (drawn[i, :, j] == known).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_seed_alone_decides(seed: int) -> None:
    part, evidence, _ = possible_rows(seed, 12)
    first = use_jobs(1)(part.sample)(evidence, 700, seed, True)
    np.testing.assert_array_equal(use_jobs(4)(part.sample)(evidence, 700, seed, True), first)
    assert not np.array_equal(part.sample(evidence, 700, seed + 1, True), first)


def test_many_draws_and_many_rows_have_streams_of_their_own() -> None:
    part = HiddenTree(random_hidden(1, 3, kinds=("continuous",), zeros=0.0))
    nothing = Evidence.of_values(np.full((3, 3), np.nan))
    drawn = use_jobs(3)(part.sample)(nothing, 20_000, 0, False)
    assert len(np.unique(drawn[:, 0])) == len(drawn)
    np.testing.assert_array_equal(use_jobs(1)(part.sample)(nothing, 20_000, 0, False), drawn)
    many = part.sample(Evidence.of_values(np.full((40_000, 3), np.nan)), 1, 0, False)
    assert len(np.unique(many[:, 0])) == len(many)


@pytest.mark.parametrize("seed", SEEDS)
def test_blanks_come_as_often_as_the_states_say(seed: int) -> None:
    part, evidence, rows = possible_rows(seed, 3)
    drawn = part.sample(evidence, DRAWS, seed, True).reshape(len(rows), DRAWS, -1)
    for i, given in enumerate(rows):
        for j, known in enumerate(given.knowns):
            share = np.isnan(drawn[i, :, j]).mean()
            expected = oracle.missing_rate(given, j) if known is None else 0.0
            assert abs(share - expected) <= 5.0 * np.sqrt(expected * (1.0 - expected) / DRAWS) + 1e-12


def test_impossible_rows_are_drawn_as_blanks_and_the_others_are_not() -> None:
    hidden = random_hidden(2, 3, kinds=("levels",), zeros=0.6)
    levels = [len(column.levels) for column in hidden.schema.columns]
    rows = np.stack(np.meshgrid(*(np.arange(float(n)) for n in levels), indexing="ij"), axis=-1).reshape(-1, 3)
    evidence, part = Evidence.of_values(rows), HiddenTree(hidden)
    impossible = np.isneginf(part.log_density(evidence))
    assert 0 < impossible.sum() < len(rows)
    drawn = part.sample(evidence, 3, 0, False)
    assert np.isnan(drawn[np.repeat(impossible, 3)]).all()
    np.testing.assert_array_equal(drawn[np.repeat(~impossible, 3)], np.repeat(rows[~impossible], 3, axis=0))
