"""Moments, levels, distribution functions, quantiles and imputation against the oracle."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

from jointforest.data.evidence import Evidence, build, distinct_rows
from jointforest.models.box_forest.posterior import log_density, tree_log_density
from jointforest.models.box_forest.structure import Forest

from ... import oracle
from ...box_answers import background_weight, cdf, impute, level_probability, mean_variance, pdf, quantile
from ...random_cases.cells import Region, make_evidence
from ...random_cases.evidence import random_evidence
from ...random_cases.models import random_model, random_number, seeds

N = 6


def setting(seed: int) -> tuple[Forest, Evidence]:
    model = random_model(seed, n_trees=1 + seed % 3, max_depth=1 + seed % 4, background=seed % 3 > 0)
    return model, random_evidence(model, seed, N)


def row_of(evidence: Evidence, i: int) -> Evidence:
    return evidence._replace(
        value=evidence.value[i : i + 1],
        region=evidence.region[i : i + 1] if evidence.region.size else evidence.region,
        log_penalty=evidence.log_penalty[i : i + 1],
    )


def numeric(model: Forest) -> list[int]:
    return [j for j, c in enumerate(model.schema.columns) if not c.is_categorical]


def points(model: Forest, j: int, seed: int) -> np.ndarray:
    """Plausible values of a column, its atoms, and values beside them."""
    rng, column = np.random.default_rng(seed), model.schema.columns[j]
    some = [random_number(rng, column) for _ in range(6)] + list(column.atoms)
    beside = [x for a in column.atoms for x in (math.nextafter(a, -math.inf), math.nextafter(a, math.inf))]
    far = [column.minimum - 100, column.maximum + 100]
    grid = column.center + np.round((np.array(some + far) - column.center) / max(column.step, 1e-9)) * column.step
    return grid if column.step > 0.0 else np.array(some + beside + far)


@given(seeds)
@settings(max_examples=30)
def test_level_probability(seed: int) -> None:
    model, evidence = setting(seed)
    for j, column in enumerate(model.schema.columns):
        if column.is_categorical:
            got = level_probability(model, evidence, j)
            want = [oracle.level_probability(oracle.given(model, evidence, i, j)) for i in range(N)]
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-13)


def test_no_level_probability_is_above_one() -> None:
    model = random_model(1)
    for j, column in enumerate(model.schema.columns):
        for level in column.levels:
            only = build(model.schema, conditions={column.name: [level]})
            assert 1 - 1e-12 < level_probability(model, only, j).max() <= 1.0


@given(seeds)
@settings(max_examples=20)
def test_mean_and_variance(seed: int) -> None:
    model, evidence = setting(seed)
    for j in numeric(model):
        mean, variance = mean_variance(model, evidence, j)
        want = np.array([oracle.mean_variance(oracle.given(model, evidence, i, j)) for i in range(N)])
        spread = np.sqrt(want[:, 1] + 1e-12)
        np.testing.assert_allclose((mean - want[:, 0]) / spread, np.where(np.isnan(mean), np.nan, 0.0), atol=1e-7)
        # The oracle's sums of cells are good to some 1e-8 in heavy tails.
        np.testing.assert_allclose(variance, want[:, 1], rtol=1e-6, atol=1e-13)


@given(seeds)
@settings(max_examples=20)
def test_cdf_and_pdf(seed: int) -> None:
    model, evidence = setting(seed)
    for j in numeric(model):
        x = points(model, j, seed)
        f, p = cdf(model, evidence, j, x), pdf(model, evidence, j, x)
        for i in range(N):
            column = oracle.given(model, evidence, i, j)
            np.testing.assert_allclose(f[i], [oracle.cdf(column, v) for v in x], rtol=1e-9, atol=1e-12)
            if not isinstance(column.known, float):
                np.testing.assert_allclose(p[i], [oracle.pdf(column, v) for v in x], rtol=1e-9, atol=1e-13)
        order = np.argsort(x)
        assert np.all(np.diff(f[:, order], axis=1)[~np.isnan(f[:, 0])] >= 0.0)


def test_no_cdf_is_above_one() -> None:
    model = random_model(2)
    for j in numeric(model):
        assert 1 - 1e-12 < cdf(model, build(model.schema), j, np.array([1e300])).item() <= 1.0


@given(seeds)
@settings(max_examples=15)
def test_quantile(seed: int) -> None:
    model, evidence = setting(seed)
    q = np.array([1e-6, 0.05, 0.31, 0.5, 0.77, 0.95, 1 - 1e-6])
    for j in numeric(model):
        got, step = quantile(model, evidence, j, q), model.schema.columns[j].step
        assert np.all(np.diff(got, axis=1)[~np.isnan(got[:, 0])] >= 0.0)
        for i in range(N):
            column = oracle.given(model, evidence, i, j)
            spread = np.nan_to_num(got[i, 5] - got[i, 1])  # NaN for impossible evidence
            atol = 0.5 * step or 1e-7 * spread + 1e-12
            want = np.array([oracle.quantile(column, level) for level in q])
            close = np.isclose(got[i], want, rtol=1e-6, atol=atol, equal_nan=True)
            for x, level in zip(got[i, ~close], q[~close], strict=True):  # F is flat here: either end will do
                assert oracle.cdf(column, x) == pytest.approx(level, abs=1e-9)


@given(seeds)
@settings(max_examples=15)
def test_quantile_is_the_lowest_that_reaches(seed: int) -> None:
    """F(x) >= q at the quantile x, and F < q one cell (or a little) below it; on atoms and cells exactly."""
    model, evidence = setting(seed)
    q = np.array([0.02, 0.2, 0.4, 0.6, 0.8, 0.98])
    for j in numeric(model):
        column = model.schema.columns[j]
        got = quantile(model, evidence, j, q)
        for i in range(N):
            if np.isnan(got[i, 0]) or not math.isnan(evidence.value[i, j]):
                continue
            below = column.step if column.step > 0.0 else 1e-6 * (got[i, -1] - got[i, 0]) + 1e-9 * np.abs(got[i])
            one = row_of(evidence, i)
            assert np.all(cdf(model, one, j, got[i])[0] >= q - 1e-9)
            assert np.all(cdf(model, one, j, got[i] - below)[0] < q + 1e-9)
            on_atom = np.isin(got[i], column.atoms)
            before = got[i] - column.step if column.step > 0.0 else np.nextafter(got[i], -math.inf)
            assert np.all((cdf(model, one, j, before)[0] < q)[on_atom])
            if column.step > 0.0:
                np.testing.assert_allclose(
                    np.round((got[i] - column.center) / column.step) * column.step + column.center, got[i]
                )


@pytest.mark.parametrize("kind", ["continuous", "mixed", "integer", "rounded"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_quantile_of_many_leaves(kind: str, seed: int) -> None:
    """More leaves than are sampled for a first guess: the definition holds, by the CDF alone."""
    model = random_model(seed, kinds=(kind, "continuous", "categorical"), n_trees=90, max_depth=5)
    assert len(model.leaves.log_weight) > 600
    column, q = model.schema.columns[0], np.array([1e-12, 1e-4, 0.02, 0.3, 0.5, 0.9, 0.9999, 1 - 1e-12])
    evidence = random_evidence(model, seed, 8)
    vague = np.isnan(evidence.value[:, 0])
    got = quantile(model, evidence, 0, q)
    np.testing.assert_array_equal(got, quantile(model, evidence, 0, q[::-1])[:, ::-1])
    for i in np.flatnonzero(vague & ~np.isnan(got[:, 0])):
        one = row_of(evidence, i)
        spread = np.sqrt(mean_variance(model, one, 0)[1])
        below = got[i] - (column.step or 2e-10 * spread + 1e-15 * np.abs(got[i]))
        on_atom = np.isin(got[i], column.atoms) & (column.step == 0.0)
        below[on_atom] = np.nextafter(got[i], -math.inf)[on_atom]
        top = cdf(model, one, 0, np.array([math.inf]))[0, 0]  # 1, up to rounding
        assert np.all(cdf(model, one, 0, got[i])[0] >= np.minimum(q, top) - 1e-15)
        assert np.all(cdf(model, one, 0, below)[0] < np.where(on_atom, q, q + 1e-14))  # F is rounded, and flat in tails


@given(seeds)
@settings(max_examples=8)
def test_impute(seed: int) -> None:
    model, evidence = setting(seed)
    got = impute(model, evidence)
    for i in range(N):
        want = oracle.impute(model, evidence, i)
        for j, column in enumerate(model.schema.columns):
            if column.is_categorical and got[i, j] != want[j] and not math.isnan(want[j]):  # a tie, up to rounding
                p = oracle.level_probability(oracle.given(model, evidence, i, j))
                assert p[int(got[i, j])] == pytest.approx(p[int(want[j])], rel=1e-12)
            elif column.step > 0.0 and not math.isnan(evidence.value[i, j]):
                assert got[i, j] == evidence.value[i, j]
            elif column.step > 0.0 and abs(got[i, j] - want[j]) > 0.5 * column.step:  # half way between two cells
                mean, _ = oracle.mean_variance(oracle.given(model, evidence, i, j))
                assert abs(abs(mean - want[j]) - 0.5 * column.step) < 1e-6 * column.step
            else:
                np.testing.assert_allclose(got[i, j], want[j], rtol=1e-6, atol=1e-6 * max(column.step, 1e-3))


QUERIES: dict[str, Callable[[Forest, Evidence], np.ndarray]] = {
    "mean": lambda m, e: mean_variance(m, e, 0)[0],
    "variance": lambda m, e: mean_variance(m, e, 0)[1],
    "levels": lambda m, e: level_probability(m, e, 3)[:, 0],
    "cdf": lambda m, e: cdf(m, e, 0, np.array([0.0]))[:, 0],
    "pdf": lambda m, e: pdf(m, e, 0, np.array([0.0]))[:, 0],
    "quantile": lambda m, e: quantile(m, e, 0, np.array([0.5]))[:, 0],
    "impute": lambda m, e: impute(m, e)[:, 0],
}


@pytest.mark.parametrize("name", QUERIES)
def test_impossible_evidence_answers_nan(name: str) -> None:
    """An empty region: elsewhere, or of the column asked for; rows beside it are answered."""
    model = random_model(2, kinds=("continuous", "mixed", "integer", "categorical"))
    rows = [[None] * 4, [None, Region(), None, None], [Region(), None, None, None], [None, 0.1, None, Region()]]
    got = QUERIES[name](model, make_evidence(rows))
    assert np.isnan(got).tolist() == [False, True, True, True]


def test_value_as_evidence_on_the_column_itself() -> None:
    model = random_model(4, kinds=("continuous", "mixed", "integer", "categorical"))
    atom = model.schema.columns[1].atoms[0]
    evidence = make_evidence([[0.25, atom, 3.0, 0.0]])
    for j, x in enumerate((0.25, atom, 3.0)):
        assert mean_variance(model, evidence, j)[0].tolist() == [x]
        assert mean_variance(model, evidence, j)[1].tolist() == [0.0]
        assert quantile(model, evidence, j, np.array([0.1, 0.9])).tolist() == [[x, x]]
        assert cdf(model, evidence, j, np.array([x - 1, x, x + 1])).tolist() == [[0.0, 1.0, 1.0]]
    assert level_probability(model, evidence, 3)[0, 0] == 1.0


def test_only_an_atom_left() -> None:
    """A region of one atom: everything about the column is known."""
    model = random_model(4, kinds=("continuous", "mixed"))
    atom = model.schema.columns[1].atoms[0]
    evidence = make_evidence([[None, Region((), (0,))]])
    mean, variance = mean_variance(model, evidence, 1)
    assert mean[0] == pytest.approx(atom, rel=1e-14)
    assert variance[0] == pytest.approx(0.0, abs=1e-12)
    assert quantile(model, evidence, 1, np.array([0.01, 0.5, 0.99])).tolist() == [[atom] * 3]
    assert pdf(model, evidence, 1, np.array([atom]))[0, 0] == pytest.approx(1.0)


def test_wrong_kind_of_column_is_named() -> None:
    model = random_model(2, kinds=("continuous", "categorical"))
    evidence = make_evidence([[None, None]])
    with pytest.raises(ValueError, match="'c1'"):
        mean_variance(model, evidence, 1)
    with pytest.raises(ValueError, match="'c1'"):
        cdf(model, evidence, 1, np.array([0.0]))
    with pytest.raises(ValueError, match="'c0'"):
        level_probability(model, evidence, 0)
    for q in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="'c0'"):
            quantile(model, evidence, 0, np.array([q]))


def test_equal_rows_of_evidence_have_equal_answers() -> None:
    """Few distinct rows are answered once each: as if every row were asked alone; penalties stay each row's own."""
    model = random_model(3, kinds=("continuous", "integer", "categorical"), n_trees=3)
    one = random_evidence(model, 3, 5)
    assert one.region.size
    again = np.random.default_rng(0).integers(0, 5, 64)
    penalty = -np.arange(64.0)
    many = one._replace(value=one.value[again], region=one.region[again], log_penalty=penalty)
    rows, place = distinct_rows(many)
    assert len(rows.value) == 5
    np.testing.assert_array_equal(rows.value[place], many.value)
    np.testing.assert_array_equal(rows.region[place], many.region)
    for question in (
        lambda e: mean_variance(model, e, 0)[0],
        lambda e: quantile(model, e, 1, np.array([0.1, 0.5])),
        lambda e: level_probability(model, e, 2),
        lambda e: background_weight(model, e),
        lambda e: log_density(model, e) - e.log_penalty,
        lambda e: tree_log_density(model, e) - e.log_penalty[:, None],
    ):
        np.testing.assert_allclose(question(many), question(one)[again], rtol=1e-12, atol=1e-13)


def test_rows_that_differ_are_kept() -> None:
    """Distinct rows as they are; rows with one value but two regions are two."""
    distinct = make_evidence([[float(i)] for i in range(40)])
    assert distinct_rows(distinct)[0] is distinct
    pair = make_evidence([[Region(((0.0, 1.0),))], [Region(((0.0, 2.0),))]])
    two = pair._replace(
        value=np.tile(pair.value, (20, 1)), region=np.tile(pair.region, (20, 1)), log_penalty=np.zeros(40)
    )
    rows, place = distinct_rows(two)
    np.testing.assert_array_equal(rows.region[place], two.region)
    assert len(rows.value) == 2


def test_known_value_beside_a_cell_centre_counts_as_its_cell() -> None:
    model = random_model(4, kinds=("continuous", "integer"))
    evidence = make_evidence([[0.3, 40.3], [None, 39.6], [None, 40.0]])
    assert mean_variance(model, evidence, 1)[0].tolist() == [40.0, 40.0, 40.0]
    assert quantile(model, evidence, 1, np.array([0.1, 0.9])).tolist() == [[40.0, 40.0]] * 3
    assert cdf(model, evidence, 1, np.array([39.0, 39.9, 40.0, 41.0])).tolist() == [[0.0, 0.0, 1.0, 1.0]] * 3
    assert mean_variance(model, evidence, 0)[0][0] == 0.3
