"""Quick checks of the queries against plain loops over all leaves (no tree is walked) and against each other.

The loops are over leaves that are one product each.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from jointforest.data.evidence import Evidence
from jointforest.models.box_forest.leaves import level_kernels, slot_kernels
from jointforest.models.box_forest.posterior import log_density, posterior, sample
from jointforest.models.box_forest.structure import Forest
from jointforest.runtime.threads import use_jobs

from ...box_answers import background_weight, cdf, impute, level_probability, mean_variance, pdf, quantile
from ...compiled import compiled
from ...random_cases.cells import Region, make_evidence
from ...random_cases.evidence import random_evidence
from ...random_cases.models import random_model

find_atom, value_log_density = compiled(slot_kernels.find_atom), compiled(slot_kernels.value_log_density)
region_log_mass, slot_mean_variance = compiled(slot_kernels.region_log_mass), compiled(slot_kernels.slot_mean_variance)
level_region_log_mass = compiled(slot_kernels.level_region_log_mass)
log_level = compiled(level_kernels.log_level)

SEEDS = range(8)


def row(evidence: Evidence, rows: np.ndarray | list[int]) -> Evidence:
    """Some rows of evidence."""
    rows = np.asarray(rows, dtype=np.intp)
    return Evidence(evidence.value[rows], evidence.region[rows], *evidence[2:8], evidence.log_penalty[rows])


def possible(model: Forest, seed: int, n: int) -> Evidence:
    """Random evidence of n rows, each of positive probability."""
    evidence = random_evidence(model, seed, 4 * n)
    return row(evidence, np.flatnonzero(log_density(model, evidence) > -np.inf)[:n])


def all_log_weights(model: Forest, evidence: Evidence, i: int) -> np.ndarray:
    """log p(leaf, evidence of row i) of every leaf; leaves give no mass outside their box."""
    columns, leaves = model.columns, model.leaves
    out = leaves.log_weight.copy()
    for leaf in range(len(out)):
        for j, s in enumerate(columns.slot):
            x = evidence.value[i, j]
            region = evidence.region[i, j] if len(evidence.region) else -1
            if not np.isnan(x):
                if columns.is_categorical[j]:
                    out[leaf] += log_level(leaves, leaf, s, int(x))
                else:
                    out[leaf] += value_log_density(columns, leaves, leaf, s, x, find_atom(columns, s, x))
            elif region >= 0:
                mass = level_region_log_mass if columns.is_categorical[j] else region_log_mass
                out[leaf] += mass(columns, leaves, evidence, leaf, s, region)
    return out


@pytest.mark.parametrize("seed", SEEDS)
def test_posterior_is_the_loop_over_all_leaves(seed: int) -> None:
    model = random_model(seed, background=seed % 2 == 0, mixed=0.0)
    evidence = random_evidence(model, seed, 30)
    post = posterior(model, evidence)
    assert np.array_equal(log_density(model, evidence), post.log_evidence + evidence.log_penalty)
    weight = background_weight(model, evidence)
    for i in range(30):
        expected = all_log_weights(model, evidence, i)
        found = np.full(len(expected), -np.inf)
        entries = slice(post.start[i], post.start[i + 1])
        assert len(set(post.leaf[entries].tolist())) == len(post.leaf[entries])
        found[post.leaf[entries]] = post.log_weight[entries]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert np.all(post.log_weight[entries] > -np.inf)
        total = logsumexp(expected) if np.any(expected > -np.inf) else -np.inf
        np.testing.assert_allclose(post.log_evidence[i], total, rtol=1e-12, atol=1e-12)
        if total == -np.inf:
            assert np.isnan(weight[i])
        else:
            share = np.exp(expected[-1] - total) if model.has_background else 0.0
            np.testing.assert_allclose(weight[i], share, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_mix_the_leaves(seed: int) -> None:
    model = random_model(seed, mixed=0.0)
    evidence = possible(model, seed, 20)
    filled = impute(model, evidence)
    for j, s in enumerate(model.columns.slot):
        column = model.schema.columns[j]
        if column.is_categorical:
            levels = level_probability(model, evidence, j)
            np.testing.assert_allclose(levels.sum(axis=1), 1.0, rtol=1e-12)
            assert np.array_equal(np.argmax(levels, axis=1), filled[:, j])
            continue
        mean, variance = mean_variance(model, evidence, j)
        for i in range(20):
            if not np.isnan(evidence.value[i, j]):
                assert (mean[i], variance[i], filled[i, j]) == (evidence.value[i, j], 0.0, evidence.value[i, j])
                continue
            log_weight = all_log_weights(model, evidence, i)
            weight = np.exp(log_weight - logsumexp(log_weight))
            region = evidence.region[i, j]
            some = np.flatnonzero(weight)
            moments = [slot_mean_variance(model.columns, model.leaves, evidence, leaf, s, region) for leaf in some]
            m, v = np.array(moments).T
            expected = weight[some] @ m
            scale = column.maximum - column.minimum
            np.testing.assert_allclose(mean[i], expected, rtol=1e-10, atol=1e-10 * scale)
            np.testing.assert_allclose(
                variance[i], weight[some] @ (v + (m - expected) ** 2), rtol=1e-9, atol=(1e-9 * scale) ** 2
            )
            assert abs(filled[i, j] - mean[i]) <= column.step / 2 * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_quantiles_invert_the_cdf(seed: int) -> None:
    model = random_model(seed)
    evidence = possible(model, seed, 12)
    q = np.array([1e-4, 0.05, 0.3, 0.5, 0.95, 0.9999])
    for j, column in enumerate(model.schema.columns):
        if column.is_categorical:
            continue
        x = quantile(model, evidence, j, q)
        assert np.all(np.diff(x, axis=1) >= 0)
        tolerance = 1e-9 * (column.maximum - column.minimum)
        for i in range(12):
            if not np.isnan(evidence.value[i, j]):
                assert np.all(x[i] == evidence.value[i, j])
                continue
            one = row(evidence, [i])
            assert np.all(cdf(model, one, j, x[i])[0] >= q - 1e-12)
            below = x[i] - column.step if column.step else x[i] - tolerance
            assert np.all(cdf(model, one, j, below)[0] < q + 1e-12)
        if column.step:
            cells = (x - column.center) / column.step
            np.testing.assert_allclose(cells, np.round(cells), atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_pdf_of_a_grid_sums_to_the_cdf(seed: int) -> None:
    model = random_model(seed, kinds=("integer", "rounded", "categorical"))
    evidence = possible(model, seed, 12)
    for j in range(2):
        column = model.schema.columns[j]
        first = round((column.minimum - column.center) / column.step)
        centres = column.center + column.step * np.arange(first, first + 30)
        for i in range(12):
            if np.isnan(evidence.value[i, j]):
                one = row(evidence, [i])
                mass = pdf(model, one, j, centres)[0] * column.step
                np.testing.assert_allclose(
                    np.cumsum(mass)[1:] - mass[0], np.diff(cdf(model, one, j, centres)[0]).cumsum(), atol=1e-9
                )


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_keep_to_the_evidence(seed: int) -> None:
    model = random_model(seed)
    evidence = possible(model, seed, 15)
    draws = sample(model, evidence, 20, seed)
    known = np.repeat(evidence.value, 20, axis=0)
    assert not np.isnan(draws).any()
    assert np.array_equal(draws[~np.isnan(known)], known[~np.isnan(known)])
    assert np.all(log_density(model, make_evidence(draws.tolist())) > -np.inf)
    for i, j in np.argwhere(evidence.region >= 0):
        region, column = evidence.region[i, j], model.schema.columns[j]
        runs = [evidence.run_lo[evidence.run_start[region] : evidence.run_start[region + 1]]]
        runs.append(evidence.run_hi[evidence.run_start[region] : evidence.run_start[region + 1]])
        for x in draws[20 * i : 20 * i + 20, j]:
            held = any(lo < x <= hi for lo, hi in zip(*runs, strict=True))
            if column.step == 0.0 and x in column.atoms:
                held = bool(int(evidence.atoms[region]) >> column.atoms.index(x) & 1)
            assert held
    blanked = sample(model, evidence, 20, seed, missing=True)
    blank = np.isnan(blanked)
    assert blank.any()
    assert not blank[~np.isnan(known) | np.repeat(evidence.region >= 0, 20, axis=0)].any()
    assert np.array_equal(blanked[~blank], draws[~blank])


def test_draws_of_a_marginal() -> None:
    model = random_model(3)
    evidence = make_evidence([[None] * len(model.schema.columns)])
    n = 40_000
    draws = sample(model, evidence, n, 7)
    for j, column in enumerate(model.schema.columns):
        if column.is_categorical:
            expected = level_probability(model, evidence, j)[0]
            found = np.bincount(draws[:, j].astype(int), minlength=len(expected)) / n
            assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / n) + 1e-12)
        else:
            points = quantile(model, evidence, j, np.linspace(0.05, 0.95, 7))[0]
            expected = cdf(model, evidence, j, points)[0]
            found = (draws[:, j, None] <= points).mean(axis=0)
            assert np.all(np.abs(found - expected) < 5 / np.sqrt(4 * n))


def test_threads_and_chunks_change_nothing() -> None:
    model = random_model(1)
    evidence = random_evidence(model, 1, 1500)
    some = np.arange(1400, 1500)[::-1]
    part = row(evidence, some)
    numeric = [j for j, column in enumerate(model.schema.columns) if not column.is_categorical]
    answers = [
        lambda e, n: use_jobs(n)(log_density)(model, e),
        lambda e, n: use_jobs(n)(background_weight)(model, e),
        lambda e, n: use_jobs(n)(posterior)(model, e).log_evidence,
        lambda e, n: np.stack(use_jobs(n)(mean_variance)(model, e, numeric[0]), axis=1),
        lambda e, n: use_jobs(n)(cdf)(model, e, numeric[1], [0.0]),
        lambda e, n: use_jobs(n)(impute)(model, e),
    ]
    for answer in answers:
        whole = answer(evidence, 1)
        assert np.array_equal(whole, answer(evidence, 3), equal_nan=True)
        assert np.array_equal(whole[some], answer(part, 2), equal_nan=True)
    assert np.array_equal(
        use_jobs(1)(sample)(model, evidence, 3, 5), use_jobs(3)(sample)(model, evidence, 3, 5), equal_nan=True
    )
    one = make_evidence([[None] * len(model.schema.columns)])
    assert np.array_equal(sample(model, one, 40_000, 5)[:50], sample(model, one, 50, 5))


def test_impossible_and_empty_evidence() -> None:
    model = random_model(2, background=False, kinds=("continuous", "categorical"))
    far = make_evidence([[Region(), None], [None, 0.0]])
    assert log_density(model, far)[0] == -np.inf
    assert np.isnan(background_weight(model, far)[0])
    assert np.isnan(level_probability(model, far, 1)[0]).all()
    assert np.isnan(sample(model, far, 2, 0)[:2]).all()
    assert np.isnan(impute(model, far)[0, 1])
    for question in (mean_variance, lambda *a: cdf(*a, [0.0]), lambda *a: quantile(*a, [0.5])):
        with pytest.raises(ValueError, match="c1"):
            question(model, far, 1)
    with pytest.raises(ValueError, match="c0"):
        level_probability(model, far, 0)
    with pytest.raises(ValueError, match=r"above 0 and below 1, got 1\.5"):
        quantile(model, far, 0, [0.5, 1.5])
    none = row(far, [])
    assert log_density(model, none).shape == (0,)
    assert posterior(model, none).start.tolist() == [0]
    assert sample(model, none, 3, 0).shape == (0, 2)
    assert impute(model, none).shape == (0, 2)


def test_nothing_known_has_probability_one() -> None:
    model = random_model(4)
    nothing = make_evidence([[None] * len(model.schema.columns)])
    assert abs(log_density(model, nothing)[0]) < 1e-12
