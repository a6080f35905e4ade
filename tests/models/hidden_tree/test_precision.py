"""Large hidden trees in float32: near float64, without underflow; batches and threads change nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from jointforest.data.discretization.discretizer import Scale
from jointforest.data.evidence import Evidence
from jointforest.data.schema import Column, Schema
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees, TreeTables
from jointforest.models.hidden_tree.messages import down, up
from jointforest.runtime.threads import use_jobs

from ...random_cases.cells import Cell, Region, make_evidence
from ...random_cases.hidden_trees import random_hidden


def levels(name: str, K: int) -> tuple[Column, Scale]:
    """A column of K levels, each its own code."""
    place, nothing = np.arange(float(K)), np.zeros(K)
    scale = Scale(K, 0.0, 0.0, place, place.copy(), nothing, np.arange(K, dtype=np.int32), nothing.copy())
    return Column(name, "categorical", "str", levels=tuple(str(k) for k in range(K)), n_observed=100), scale


@cache
def large(d: int, H: int, K: int, peak: float = 0.3) -> HiddenTrees:
    """A hidden tree of d columns with K levels and H states, float32; tables differ much between states."""
    rng = np.random.default_rng(d)
    columns, scales = zip(*(levels(f"c{j}", K) for j in range(d)), strict=True)
    parent = np.array([-1] + [int(rng.integers(max(0, k - 3), k)) for k in range(1, d)], np.int32)
    transition: list[np.ndarray] = []
    emission: list[np.ndarray] = []
    for k in range(d):
        if k > 20:  # large tables take long to make: those of earlier nodes are used again
            transition.append(transition[1 + k % 20])
            emission.append(emission[1 + k % 20])
            continue
        for tables, rows, n in ((transition, 1 if k == 0 else H, H), (emission, H, K)):
            table = rng.gamma(peak, 1.0, (rows, n)) + 1e-7
            tables.append((table / table.sum(axis=1, keepdims=True)).astype(np.float32))
    tree = TreeTables(np.arange(d, dtype=np.int32), parent, tuple(transition), tuple(emission))
    return HiddenTrees(Schema(columns, "pandas"), scales, (tree,), np.zeros(1))


def in_float64(hidden: HiddenTrees) -> HiddenTrees:
    """The same hidden trees with float64 tables, rows of sum 1 as float32 has them."""
    wide = [
        replace(
            tree,
            transition=tuple(t.astype(np.float64) for t in tree.transition),
            emission=tuple(t.astype(np.float64) for t in tree.emission),
        )
        for tree in hidden.trees
    ]
    return replace(hidden, trees=tuple(wide))


def rows(hidden: HiddenTrees, n: int, blank: float = 0.2) -> Evidence:
    """Uniform random codes, some of them missing: rows far from what the trees like."""
    rng = np.random.default_rng(n)
    shape = (n, len(hidden.scales))
    value = np.array([rng.integers(scale.n_codes, size=n) for scale in hidden.scales], float).T
    value[rng.random(shape) < blank] = np.nan
    return Evidence.of_values(np.ascontiguousarray(value))


def test_float32_is_within_a_ten_thousandth_of_float64() -> None:
    hidden = large(200, 24, 6)
    evidence = rows(hidden, 60)
    narrow, wide = HiddenTree(hidden), HiddenTree(in_float64(hidden))
    expected = wide.log_density(evidence)
    assert expected.min() < -300.0  # exp of it is nothing in float32
    np.testing.assert_allclose(narrow.log_density(evidence), expected, atol=1e-4, rtol=0.0)
    for j in (0, 57, 199):
        np.testing.assert_allclose(
            narrow.observe(evidence).level_probabilities(j), wide.observe(evidence).level_probabilities(j), atol=1e-4
        )


def test_a_thousand_columns_of_256_states_do_not_underflow() -> None:
    hidden = large(1_000, 256, 3)
    evidence = rows(hidden, 2)
    part = HiddenTree(hidden)
    found = part.log_density(evidence)
    assert np.isfinite(found).all() and (found < -800.0).all()
    p = part.observe(evidence).level_probabilities(500)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
    assert (p >= 0.0).all()


def test_evidence_that_only_rare_states_fit_is_answered() -> None:
    """Each column alone says that its state is a rare one; a product of all is far below the smallest float32."""
    d, eps = 60, 1e-6
    columns, scales = zip(*(levels(f"c{j}", 2) for j in range(d)), strict=True)
    stay = np.array([[1.0 - eps, eps], [eps, 1.0 - eps]])
    emission = np.array([[1.0 - eps, eps], [eps, 1.0 - eps]])
    tree = TreeTables(
        np.arange(d, dtype=np.int32),
        np.arange(-1, d - 1, dtype=np.int32),
        (np.array([[0.5, 0.5]], np.float32), *[stay.astype(np.float32)] * (d - 1)),
        (emission.astype(np.float32),) * d,
    )
    hidden = HiddenTrees(Schema(columns, "pandas"), scales, (tree,), np.zeros(1))
    evidence = Evidence.of_values(np.tile([0.0, 1.0], (1, d // 2)))
    found = HiddenTree(hidden).log_density(evidence)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, HiddenTree(in_float64(hidden)).log_density(evidence), rtol=1e-5)


@pytest.mark.parametrize("n", [4, 12, 30])
def test_children_that_contradict_each_other_are_weighed_exactly(n: int) -> None:
    """Half of a root's children rule out its first state, half the second: no state may be lost on the way."""
    eps = np.float32(1e-7)
    columns, scales = zip(*(levels(f"c{j}", 2) for j in range(n + 2)), strict=True)
    clear = np.array([[1.0 - eps, eps], [eps, 1.0 - eps]], np.float32)
    parent = np.array([-1] + [0] * (n + 1), np.int32)
    transition = (np.array([[0.3, 0.7]], np.float32), *[clear] * (n + 1))
    tree = TreeTables(np.arange(n + 2, dtype=np.int32), parent, transition, (clear,) * (n + 2))
    hidden = HiddenTrees(Schema(columns, "pandas"), scales, (tree,), np.zeros(1))
    evidence = Evidence.of_values(np.array([[np.nan, *np.repeat([0.0, 1.0], n // 2), last] for last in (np.nan, 1.0)]))
    narrow, wide = HiddenTree(hidden), HiddenTree(in_float64(hidden))
    np.testing.assert_allclose(narrow.log_density(evidence), wide.log_density(evidence), rtol=1e-5)
    for j in (0, 1, n, n + 1):
        np.testing.assert_allclose(
            narrow.observe(evidence).level_probabilities(j), wide.observe(evidence).level_probabilities(j), atol=1e-5
        )


def test_batches_order_and_threads_change_nothing() -> None:
    hidden = large(30, 16, 5)
    part, evidence = HiddenTree(hidden), rows(hidden, 2_500)
    order = np.random.default_rng(0).permutation(2_500)
    log_density, p = use_jobs(1)(part.log_density)(evidence), use_jobs(1)(part.observe(evidence).level_probabilities)(3)
    np.testing.assert_array_equal(use_jobs(4)(part.log_density)(evidence), log_density)
    np.testing.assert_array_equal(use_jobs(4)(part.observe(evidence).level_probabilities)(3), p)
    np.testing.assert_allclose(part.log_density(evidence.take(order)), log_density[order], atol=2e-5, rtol=0)
    np.testing.assert_allclose(part.observe(evidence.take(order)).level_probabilities(3), p[order], atol=1e-6)
    filled = use_jobs(1)(part.impute)(evidence)
    for found, expected in zip(use_jobs(4)(part.impute)(evidence), filled, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(10))
def test_the_chain_rule_holds(seed: int) -> None:
    """log p(row) is the sum of log p(column | columns before it); regions of all values are no evidence."""
    hidden = random_hidden(seed, 4, zeros=0.0)
    part = HiddenTree(hidden)
    x = part.sample(make_evidence([[None] * 4]), 3, seed, False)
    total = np.zeros(3)
    for j, column in enumerate(hidden.schema.columns):
        before = x.copy()
        before[:, j:] = np.nan
        if column.is_categorical:
            p = part.observe(Evidence.of_values(before)).level_probabilities(j)[np.arange(3), x[:, j].astype(int)]
        else:
            p = np.array([part.observe(Evidence.of_values(before[[i]])).pdf(j, x[i, [j]])[0, 0] for i in range(3)])
        total += np.log(p)
    np.testing.assert_allclose(part.log_density(Evidence.of_values(x)), total, rtol=1e-9)
    everything: list[Cell] = [
        Region(((-np.inf, np.inf),), tuple(range(len(column.atoms)))) for column in hidden.schema.columns
    ]
    assert part.log_density(make_evidence([everything]))[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kind", ["continuous", "grid"])
def test_far_tails_have_a_density_and_answers(kind: str) -> None:
    """Where a scale has an open tail no number is impossible, and what follows from it is a distribution."""
    seed = next(s for s in range(100) if np.isinf(random_hidden(s, 2, kinds=(kind,), zeros=0.0).scales[0].hi[-1]))
    hidden = random_hidden(seed, 2, kinds=(kind,), zeros=0.0)
    part = HiddenTree(hidden)
    far = make_evidence([[x, None] for x in (1e3, 1e6, 1e12, 1e100, 1e300)])
    assert np.isfinite(part.log_density(far)).all()
    assert (np.diff(part.log_density(far)) <= 0.0).all()
    mean, variance = part.observe(far).moments(1)
    assert np.isfinite(mean).all() and (variance >= 0.0).all()
    beyond = make_evidence([[Region(((1e4 + hidden.scales[0].step / 2 + hidden.scales[0].origin, np.inf),)), None]])
    assert part.observe(beyond).cdf(0, np.array([9_000.0]))[0, 0] == 0.0
    assert part.observe(beyond).moments(0)[0][0] > 1e4
    assert np.isfinite(part.log_density(beyond)).all()


@pytest.mark.parametrize("factor", [1e-30, 1e30])
@pytest.mark.parametrize("d", [4, 12])
def test_messages_do_not_depend_on_the_size_of_likelihoods(d: int, factor: float) -> None:
    tree = large(d, 8, 5).trees[0]
    own = [table[np.arange(5) % len(table)] for table in tree.by_code]
    one, other = up(tree, own, 5), up(tree, [np.float32(factor) * x for x in own], 5)
    np.testing.assert_allclose(other.log_probability, one.log_probability + d * np.log(factor), rtol=1e-5)
    for x, y in zip(down(tree, one).outside, down(tree, other).outside, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-3, atol=1e-6)
