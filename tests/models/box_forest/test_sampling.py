"""Draws follow the exact marginals and conditionals, keep to the evidence, and are independent across rows.

Seeds are fixed, so that nothing flakes. Some thousand comparisons are made: each may have a p-value down to 1e-6, and
where p-values are exactly uniform, all of them together must be uniform.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from jointforest.data.evidence import Evidence
from jointforest.models.box_forest import posterior
from jointforest.models.box_forest.posterior import log_density, sample, weighed_draws
from jointforest.models.box_forest.structure import Forest

from ... import oracle
from ...box_answers import cdf, quantile
from ...random_cases.cells import Cell, Region, make_evidence
from ...random_cases.evidence import random_cells, random_evidence, softened
from ...random_cases.models import random_model, seeds

TINY = 1e-6


def chi_square_p(observed: np.ndarray, expected: np.ndarray) -> float:
    """p-value of the counts, bins of few expected ones put together; 0 if a count is where nothing can be."""
    if np.any(observed[expected <= 1e-9] > 0):
        return 0.0
    order = np.argsort(expected)
    observed, expected = observed[order].astype(float), expected[order]
    few = int(np.searchsorted(np.cumsum(expected), 8.0)) + 1
    observed = np.append(observed[few:], observed[:few].sum())
    expected = np.append(expected[few:], expected[:few].sum())
    if len(observed) < 2:
        return 1.0
    return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(observed) - 1))


def cuts_of(model: Forest, evidence: Evidence, j: int) -> np.ndarray:
    """Points that cut a numeric column into bins: some quantiles, and both sides of atoms."""
    column = model.schema.columns[j]
    some = quantile(model, evidence, j, np.array([0.03, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 0.98]))[0].tolist()
    for atom in column.atoms:
        some += [atom, atom - column.step if column.step > 0.0 else math.nextafter(atom, -math.inf)]
    return np.unique(some)


def check_column(model: Forest, evidence: Evidence, j: int, x: np.ndarray) -> None:
    """Draws x of one column, given one row of evidence, against the oracle's probabilities of bins."""
    column = oracle.given(model, evidence, 0, j)
    if model.columns.is_categorical[j]:
        probability = oracle.level_probability(column)
        counts = np.bincount(x.astype(int), minlength=len(probability))
    else:
        cuts = cuts_of(model, evidence, j)
        f = [oracle.cdf(column, c) for c in cuts]
        probability = np.maximum(np.diff([0.0, *f, 1.0]), 0.0)
        tolerance = 0.25 * model.schema.columns[j].step
        counts = np.bincount(np.searchsorted(cuts + tolerance, x), minlength=len(probability))
    assert chi_square_p(counts, len(x) * probability) > TINY, (
        j,
        counts.tolist(),
        (len(x) * probability).round(2).tolist(),
    )


@given(seeds)
@settings(max_examples=25)
def test_columns_given_evidence(seed: int) -> None:
    """Each column's draws, for rows with values, regions or nothing (the first row of evidence is empty)."""
    model = random_model(seed, n_trees=2, max_depth=3, background=seed % 3 > 0)
    rng = np.random.default_rng(seed)
    m, cells = 2000, softened(rng, model, random_cells(rng, model, 4))
    for row in (cells[0], *cells[2:]):
        evidence = make_evidence([row])
        draws = sample(model, evidence, m, seed)
        assert draws.shape == (m, len(row))
        if log_density(model, evidence)[0] == -math.inf:
            assert np.all(np.isnan(draws))
            continue
        for j, known in enumerate(row):
            if isinstance(known, float):
                assert np.all(draws[:, j] == known)
            else:
                check_column(model, evidence, j, draws[:, j])


def bins_of(model: Forest, evidence: Evidence, j: int) -> list[Region]:
    """A few disjoint regions that cover a column."""
    column = model.schema.columns[j]
    if column.is_categorical:
        return [Region(((k - 0.5, k + 0.5),)) for k in range(len(column.levels))]
    middle = float(quantile(model, evidence, j, np.array([0.5]))[0, 0]) + 0.5 * column.step
    runs = [(-math.inf, middle), (middle, math.inf)]
    return [Region((run,), tuple(k for k, a in enumerate(column.atoms) if run[0] < a <= run[1])) for run in runs]


def in_runs(x: np.ndarray, region: Region) -> np.ndarray:
    """Whether each value lies in one of the runs of a region."""
    return np.any([(lo < x) & (x <= hi) for lo, hi in region.runs], axis=0)


@given(seeds)
@settings(max_examples=10)
def test_pairs_of_columns(seed: int) -> None:
    """The dependence between columns: counts in the products of bins of two columns, given one value."""
    kinds = ("continuous", "mixed", "integer", "boolean", "ordered")
    model = random_model(seed, n_trees=2, max_depth=4, kinds=kinds)
    known: list[Cell] = [None, None, None, float(seed % 2), None]
    evidence, m = make_evidence([known]), 3000
    draws = sample(model, evidence, m, seed)
    total = oracle.log_density(model, evidence)[0]
    for j, k in itertools.combinations((0, 1, 2, 4), 2):
        products = list(itertools.product(bins_of(model, evidence, j), bins_of(model, evidence, k)))
        rows = [[a if i == j else b if i == k else known[i] for i in range(5)] for a, b in products]
        probability = np.exp(oracle.log_density(model, make_evidence(rows)) - total)
        assert probability.sum() == pytest.approx(1.0)
        counts = [np.sum(in_runs(draws[:, j], a) & in_runs(draws[:, k], b)) for a, b in products]
        assert chi_square_p(np.array(counts), m * probability) > TINY


def test_many_seeds_together_are_uniform() -> None:
    """Kolmogorov-Smirnov p-values of a column without atoms, over models and seeds, are themselves uniform."""
    p_values = []
    for seed in range(40):
        model = random_model(seed, n_trees=2, max_depth=2, kinds=("continuous", "integer", "boolean"))
        for known in (None, 0.0):
            evidence = make_evidence([[None, None, known]])
            x = sample(model, evidence, 500, seed)[:, 0]
            p_values.append(stats.kstest(cdf(model, evidence, 0, x)[0], "uniform").pvalue)
    assert min(p_values) > TINY
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4


def test_rows_and_draws_are_independent() -> None:
    model = random_model(7, n_trees=2, kinds=("continuous", "continuous"))
    draws = sample(model, make_evidence([[None, None]] * 2), 4000, 1)
    first, second = stats.rankdata(draws[:4000, 0]), stats.rankdata(draws[4000:, 0])
    assert stats.pearsonr(first, second).pvalue > TINY  # the same draws of two rows
    assert stats.pearsonr(first[1:], first[:-1]).pvalue > TINY  # neighbours of one row
    assert len(np.unique(draws[:, 0])) == 8000
    other = sample(model, make_evidence([[None, None]] * 2), 4000, 2)
    assert stats.pearsonr(first, stats.rankdata(other[:4000, 0])).pvalue > TINY
    assert not np.any(draws == other)


def holds(model: Forest, j: int, known: Cell, x: float) -> bool:
    """Whether x agrees with what was known of column j."""
    column = model.schema.columns[j]
    if not isinstance(known, Region):
        return known is None or x == known
    on_atom = [k for k, a in enumerate(column.atoms) if x == a and column.step == 0.0]
    return on_atom[0] in known.atoms if on_atom else any(lo < x <= hi for lo, hi in known.runs)


@given(seeds)
@settings(max_examples=25)
def test_draws_keep_to_the_evidence_and_are_possible(seed: int) -> None:
    model = random_model(seed, n_trees=3, max_depth=3, background=seed % 3 > 0)
    rng = np.random.default_rng(seed)
    cells, m = softened(rng, model, random_cells(rng, model, 10)), 30
    draws = sample(model, make_evidence(cells), m, seed).reshape(10, m, -1)
    possible = oracle.log_density(model, make_evidence(cells)) > -math.inf
    for i, row in enumerate(cells):
        if not possible[i]:
            assert np.all(np.isnan(draws[i]))
            continue
        for j, known in enumerate(row):
            column = model.schema.columns[j]
            assert all(holds(model, j, known, x) for x in draws[i, :, j]), (j, known)
            if column.step > 0.0 and not isinstance(known, float):  # centres of cells
                k = (draws[i, :, j] - column.center) / column.step
                np.testing.assert_allclose(k, np.round(k), atol=1e-6)
        assert np.all(np.isfinite(log_density(model, make_evidence([list(map(float, x)) for x in draws[i]]))))


def test_far_tails_without_rejection() -> None:
    """Evidence that holds almost no mass: still draws, inside it, with the tail's distribution."""
    model = random_model(11, n_trees=2, kinds=("continuous", "integer"))
    far = (1e7, math.inf)
    evidence = make_evidence([[Region((far,)), None], [None, Region(((1e7 + 0.5, math.inf),))]])
    draws = sample(model, evidence, 2000, 3).reshape(2, 2000, 2)
    assert np.all(np.isfinite(draws))
    assert draws[0, :, 0].min() > 1e7 and draws[1, :, 1].min() > 1e7
    for x in (draws[0, :, 0], draws[1, :, 1]):  # so far out a Student t is a power law of exponent 4
        assert stats.kstest(x, stats.pareto(4, scale=1e7).cdf).pvalue > TINY


def test_missing_cells_come_at_the_learned_rates() -> None:
    model = random_model(9, n_trees=2)
    m, level = 20_000, float(np.argmax(oracle.level_mass(model, 0, 5)))
    for known in (None, level):
        row: list[Cell] = [None] * len(model.schema.columns)
        row[5] = known
        row[2] = Region(((-math.inf, math.inf),), tuple(range(len(model.schema.columns[2].atoms))))
        evidence = make_evidence([row])
        draws = sample(model, evidence, m, 5, missing=True)
        assert not np.isnan(sample(model, evidence, 100, 5)).any()
        for j in range(len(row)):
            share = np.isnan(draws[:, j]).mean()
            rate = oracle.missing_rate(model, evidence, 0, j) if row[j] is None else 0.0
            assert abs(share - rate) <= 5 * math.sqrt(rate * (1 - rate) / m)


def test_impossible_rows_are_nan_beside_others() -> None:
    model = random_model(2, kinds=("continuous", "mixed", "categorical"))
    draws = sample(model, make_evidence([[None] * 3, [None, Region(), None], [None] * 3]), 5, 1)
    assert np.isnan(draws).all(axis=1).tolist() == [False] * 5 + [True] * 5 + [False] * 5
    assert np.isnan(draws).any(axis=1).tolist() == [False] * 5 + [True] * 5 + [False] * 5


@pytest.mark.parametrize("m", [1, 7])
def test_the_weight_of_the_background_comes_with_the_draws(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(2, kinds=("continuous", "mixed", "categorical"))
    assert model.has_background
    evidence = make_evidence([[None] * 3, [None, Region(), None], [1.0, None, 0.0], [50.0, None, None]])
    monkeypatch.setattr(posterior, "_DRAWS", 2)  # several chunks of rows, and of draws
    draws, share = weighed_draws(model, evidence, m, 5)
    np.testing.assert_array_equal(draws, sample(model, evidence, m, 5))
    for row, of_row in enumerate(share):
        np.testing.assert_allclose(of_row, oracle.background_weight(model, evidence, row), atol=1e-12)
    assert np.isnan(share).tolist() == [False, True, False, False]


def test_no_draws() -> None:
    model = random_model(2, kinds=("continuous", "mixed", "categorical"))
    assert sample(model, random_evidence(model, 1, 3), 0, 1).shape == (0, 3)
