"""Every question about hidden trees against enumeration of states and clouds of points."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from jointforest.data.evidence import Evidence
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees

from ...oracle import hidden as oracle
from ...oracle.evidence import Set
from ...random_cases.hidden_trees import random_evidence, random_hidden, random_plain

SEEDS = [*range(30), *range(100, 115)]  # from 100 on: trees whose states are codes
N = 7
NEAR = {"rtol": 1e-9, "atol": 1e-10}


@cache
def case(seed: int) -> tuple[HiddenTrees, Evidence, list[oracle.Given], np.ndarray]:
    """Hidden trees, rows of evidence, the same as the oracle sees them, and log p(evidence) by the oracle."""
    hidden = random_hidden(seed) if seed < 100 else random_plain(seed, alike=seed % 3 > 0)
    evidence = random_evidence(seed, hidden, N)
    rows = [oracle.Given(hidden, oracle.row_of(hidden, evidence, i)) for i in range(N)]
    return hidden, evidence, rows, np.array([oracle.log_density(given) for given in rows])


def one_row(evidence: Evidence, i: int) -> Evidence:
    return evidence.take(np.array([i]))


def is_free(given: oracle.Given, j: int) -> bool:
    """Whether no value of the column is known."""
    return given.knowns[j] is None or isinstance(given.knowns[j], Set)


def numeric(hidden: HiddenTrees) -> list[int]:
    return [j for j, column in enumerate(hidden.schema.columns) if not column.is_categorical]


def some_points(hidden: HiddenTrees, j: int, seed: int) -> np.ndarray:
    """Ends of segments, atoms, points between and far out; on a grid centres of cells and points off them."""
    scale, rng = hidden.scales[j], np.random.default_rng(seed)
    ends = np.concatenate([scale.lo, scale.hi])
    ends = ends[np.isfinite(ends)]
    between = rng.uniform(ends.min() - 3.0, ends.max() + 3.0, 5)
    if scale.step > 0.0:
        cells = np.rint((between - scale.origin) / scale.step)
        return scale.origin + (cells + np.array([0.0, 0.0, 0.0, 0.2, -0.2])) * scale.step
    return np.concatenate([rng.permutation(ends)[:4], between])


def test_cases_are_rich() -> None:
    possible = np.concatenate([case(seed)[3] for seed in SEEDS])
    assert 0.5 < np.isfinite(possible).mean() < 0.97
    shares = np.concatenate([HiddenTree(case(seed)[0]).observe(case(seed)[1]).background_weight() for seed in SEEDS])
    assert np.nanmin(shares) == 0.0 and np.nanmax(shares) == 1.0
    steps = [c.step for seed in SEEDS for c in case(seed)[0].schema.columns if not c.is_categorical]
    assert 0.0 in steps and max(steps) > 0.0
    assert any(len(case(seed)[0].trees) == 3 for seed in SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_log_density(seed: int) -> None:
    hidden, evidence, _, expected = case(seed)
    np.testing.assert_allclose(HiddenTree(hidden).log_density(evidence), expected, **NEAR)
    penalty = evidence._replace(log_penalty=np.arange(N) - 3.0)
    np.testing.assert_allclose(HiddenTree(hidden).log_density(penalty), expected + np.arange(N) - 3.0, **NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_far_tails_are_the_background_and_impossible_rows_are_nan(seed: int) -> None:
    hidden, evidence, rows, expected = case(seed)
    part = HiddenTree(hidden)
    answer = np.where(np.isfinite(expected), [oracle.is_far(given) for given in rows], np.nan)
    np.testing.assert_array_equal(part.observe(evidence).background_weight(), answer)
    for i in range(N):
        one = one_row(evidence, i)
        np.testing.assert_array_equal(part.observe(one).background_weight(), answer[[i]])


@pytest.mark.parametrize("seed", SEEDS)
def test_levels(seed: int) -> None:
    hidden, evidence, rows, possible = case(seed)
    part = HiddenTree(hidden)
    for j in sorted(set(range(len(hidden.schema.columns))) - set(numeric(hidden))):
        found = part.observe(evidence).level_probabilities(j)
        for i, given in enumerate(rows):
            one = one_row(evidence, i)
            if np.isneginf(possible[i]):
                assert np.isnan(found[i]).all()
            else:
                np.testing.assert_allclose(found[i], oracle.level_probability(given, j), **NEAR)
            np.testing.assert_allclose(part.observe(one).level_probabilities(j)[0], found[i], atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_mean_and_variance(seed: int) -> None:
    hidden, evidence, rows, possible = case(seed)
    part = HiddenTree(hidden)
    for j in numeric(hidden):
        mean, variance = part.observe(evidence).moments(j)
        for i, given in enumerate(rows):
            one = one_row(evidence, i)
            if np.isneginf(possible[i]):
                assert np.isnan(mean[i]) and np.isnan(variance[i])
            else:
                expected = oracle.mean_variance(given, j)
                np.testing.assert_allclose([mean[i], variance[i]], expected, rtol=1e-9, atol=1e-9)
            again = np.concatenate(part.observe(one).moments(j))
            np.testing.assert_allclose(again, [mean[i], variance[i]], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_means_without_the_column_itself(seed: int) -> None:
    """Of different rows of each column; also where the cell that is not looked at makes the row impossible."""
    hidden, evidence, _, _ = case(seed)
    asked = {j: np.arange(j % 2, N, 1 + j % 2) for j in range(len(hidden.schema.columns))}
    found = HiddenTree(hidden).means_without_each(evidence, asked)
    assert HiddenTree(hidden).means_without_each(evidence, {}) == {}
    for j, rows in asked.items():
        for i, means in zip(rows.tolist(), found[j], strict=True):
            knowns = [None if k == j else known for k, known in enumerate(oracle.row_of(hidden, evidence, i))]
            given = oracle.Given(hidden, knowns)
            if np.isneginf(oracle.log_density(given)):
                assert np.isnan(means).all()
            elif hidden.schema.columns[j].is_categorical:
                np.testing.assert_allclose(means, oracle.level_probability(given, j), **NEAR)
            else:
                np.testing.assert_allclose(means, oracle.mean_variance(given, j)[:1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_distribution_function_and_density(seed: int) -> None:
    hidden, evidence, rows, possible = case(seed)
    part = HiddenTree(hidden)
    for j in numeric(hidden):
        x = np.append(some_points(hidden, j, seed), np.nan)
        below, density = part.observe(evidence).cdf(j, x), part.observe(evidence).pdf(j, x)
        assert below.shape == density.shape == (N, len(x))
        for i, given in enumerate(rows):
            if np.isneginf(possible[i]):
                assert np.isnan(below[i]).all() and np.isnan(density[i]).all()
                continue
            assert np.isnan(below[i, -1]) and np.isnan(density[i, -1])
            np.testing.assert_allclose(below[i, :-1], oracle.cdf(given, j, x[:-1].tolist()), **NEAR)
            if is_free(given, j):
                expected = [oracle.pdf(given, j, at) for at in x[:-1].tolist()]
                np.testing.assert_allclose(density[i, :-1], expected, **NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_histograms_are_differences_of_the_distribution_function(seed: int) -> None:
    hidden, evidence, rows, possible = case(seed)
    part = HiddenTree(hidden)
    for j in numeric(hidden):
        cuts = np.unique(some_points(hidden, j, seed))
        found = part.observe(evidence).histogram(j, cuts)
        assert found.shape == (N, len(cuts) + 1) and part.observe(evidence).histogram(j, np.empty(0)).shape == (N, 1)
        for i, given in enumerate(rows):
            one = one_row(evidence, i)
            again = part.observe(one).histogram(j, cuts)[0]
            np.testing.assert_allclose(again, found[i], atol=1e-12)
            if np.isneginf(possible[i]):
                assert np.isnan(found[i]).all() and np.isnan(part.observe(one).histogram(j, np.empty(0))).all()
            else:
                expected = np.diff(oracle.cdf(given, j, cuts.tolist()), prepend=0.0, append=1.0)
                np.testing.assert_allclose(found[i], expected, **NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_quantiles_are_where_the_distribution_function_passes(seed: int) -> None:
    hidden, evidence, rows, possible = case(seed)
    part, q = HiddenTree(hidden), np.array([0.001, 0.17, 0.5, 0.83, 0.999])
    for j in numeric(hidden):
        found = part.observe(evidence).quantile(j, q)
        step = hidden.scales[j].step
        for i, given in enumerate(rows):
            if np.isneginf(possible[i]):
                assert np.isnan(found[i]).all()
                continue
            assert (np.diff(found[i]) >= 0.0).all()
            just = step if step > 0.0 else 1e-7 * (1.0 + np.abs(found[i]))
            assert (oracle.cdf(given, j, (found[i] + 0.01 * just).tolist()) >= q - 1e-8).all()
            assert (oracle.cdf(given, j, (found[i] - just).tolist()) <= q + 1e-8).all()


def test_quantile_levels_outside_0_to_1_are_refused() -> None:
    hidden = random_hidden(0, kinds=("continuous",))
    for wrong in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="q must be above 0 and below 1"):
            HiddenTree(hidden).observe(random_evidence(0, hidden, 1)).quantile(0, np.array([wrong]))


@pytest.mark.parametrize("seed", SEEDS)
def test_imputation(seed: int) -> None:
    hidden, evidence, rows, possible = case(seed)
    filled, share = HiddenTree(hidden).impute(evidence)
    np.testing.assert_array_equal(share, HiddenTree(hidden).observe(evidence).background_weight())
    for i, given in enumerate(rows):
        for j, column in enumerate(hidden.schema.columns):
            if not is_free(given, j):
                assert filled[i, j] == given.knowns[j]
            elif np.isneginf(possible[i]):
                assert np.isnan(filled[i, j])
            elif column.is_categorical:
                p = oracle.level_probability(given, j)
                assert p[int(filled[i, j])] >= p.max() - 1e-10
            else:
                mean = oracle.mean_variance(given, j)[0]
                assert abs(filled[i, j] - mean) <= 0.5 * column.step + 1e-9 * (1.0 + abs(mean))


def test_no_rows_have_answers_of_no_rows() -> None:
    hidden = random_hidden(3, 3, kinds=("grid", "levels"))
    part, nothing = HiddenTree(hidden), Evidence.of_values(np.empty((0, 3)))
    assert part.log_density(nothing).shape == (0,)
    assert part.sample(nothing, 5, 0, False).shape == (0, 3)
    assert part.impute(nothing)[0].shape == (0, 3)
    for j, column in enumerate(hidden.schema.columns):
        if column.is_categorical:
            assert part.observe(nothing).level_probabilities(j).shape == (0, len(column.levels))
        else:
            assert part.observe(nothing).cdf(j, np.zeros(2)).shape == (0, 2)
            assert part.observe(nothing).quantile(j, np.array([0.5])).shape == (0, 1)
