"""Log-densities: against the oracle, and as a probability measure (integrals, marginals, chain rule)."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.table import UNIFORM, ParameterTables
from jointforest.models.box_forest.posterior import log_density, posterior
from jointforest.models.box_forest.structure import Forest

from ... import oracle
from ...box_answers import cdf, level_probability, pdf
from ...oracle.quadrature import complete, integrand, rule
from ...random_cases.cells import Cell, Region, make_evidence
from ...random_cases.evidence import joined, random_cells, random_evidence, random_point
from ...random_cases.models import random_cut, random_model, random_number, seeds


@given(seeds)
@settings(max_examples=40)
def test_log_density_is_the_plain_sum_over_leaves(seed: int) -> None:
    model = random_model(seed, n_trees=1 + seed % 4, max_depth=1 + seed % 5, background=seed % 3 > 0)
    evidence = random_evidence(model, seed, 12)
    evidence = evidence._replace(log_penalty=-np.arange(12.0))
    np.testing.assert_allclose(log_density(model, evidence), oracle.log_density(model, evidence), rtol=1e-9, atol=1e-9)


SMALL = [
    ("continuous",),
    ("mixed",),
    ("integer",),
    ("rounded",),
    ("datetime",),
    ("categorical", "ordered", "boolean"),
    ("continuous", "categorical"),
    ("mixed", "boolean"),
    ("mixed", "continuous"),
    ("continuous", "integer", "boolean"),
    ("integer", "rounded"),
]


@pytest.mark.parametrize("kinds", SMALL)
@pytest.mark.parametrize("background", [False, True])
def test_density_integrates_to_one(kinds: tuple[str, ...], background: bool) -> None:
    for seed in (1, 2):
        model = random_model(seed, n_trees=3 if len(kinds) == 1 else 1, max_depth=2, kinds=kinds, background=background)
        rules = [rule(model, j, reach=100.0) for j in range(len(kinds))]
        total = 0.0
        # The first column goes through the outer loop, so that one call has a bounded number of rows.
        rest = list(itertools.product(*(range(len(x)) for x, _ in rules[1:])))
        rest_x = np.array([[rules[j + 1][0][k] for j, k in enumerate(ks)] for ks in rest]).reshape(len(rest), -1)
        rest_w = np.array([math.prod(rules[j + 1][1][k] for j, k in enumerate(ks)) for ks in rest])
        block = max(1, 200_000 // len(rest))
        for at in range(0, len(rules[0][0]), block):
            x, w = rules[0][0][at : at + block], rules[0][1][at : at + block]
            rows = np.column_stack([np.repeat(x, len(rest)), np.tile(rest_x, (len(x), 1))])
            total += float(np.dot(np.exp(log_density(model, complete(rows))), np.outer(w, rest_w).ravel()))
        assert total == pytest.approx(1.0, abs=1e-6)


@given(seeds)
@settings(max_examples=25)
def test_marginal_is_the_integrated_joint(seed: int) -> None:
    """Over each column in turn, for rows that know the other columns in any way; also within a region."""
    model = random_model(seed, n_trees=2, max_depth=3, background=seed % 3 > 0)
    for row in random_cells(np.random.default_rng(seed), model, 3):
        for j in range(len(row)):
            region = row[j] if isinstance(row[j], Region) else None
            x, w = rule(model, j, cuts=tuple(b for run in region.runs for b in run) if region else ())
            if region is not None:
                inside = np.any([(x > lo) & (x <= hi) for lo, hi in region.runs] or [np.zeros(len(x), bool)], axis=0)
                column = model.schema.columns[j]
                for k, value in enumerate(column.atoms if column.step == 0.0 else ()):
                    inside[x == value] = k in region.atoms
                x, w = x[inside], w[inside]
            evidence = make_evidence([[*row[:j], region, *row[j + 1 :]]])
            total = float(np.dot(np.exp(log_density(model, integrand(evidence, j, x))), w))
            marginal = math.exp(log_density(model, evidence)[0])
            assert total == pytest.approx(marginal, rel=1e-8, abs=1e-300)


def conditional(model: Forest, row: list[Cell], j: int, b: Cell) -> float:
    """p(column j in b | row), read from the query about column j alone."""
    evidence, column = make_evidence([row]), model.schema.columns[j]
    if column.is_categorical:
        p = level_probability(model, evidence, j)[0]
        levels = [
            k for k in range(len(p)) if oracle.is_level_in(k, oracle.Set(b.runs, set()) if isinstance(b, Region) else b)
        ]
        return float(p[levels].sum())
    if not isinstance(b, Region):
        return float(pdf(model, evidence, j, np.array([b]))[0, 0])
    bounds = np.array(b.runs).ravel() - 0.5 * column.step  # on grids the centre of the cell below the edge
    f = cdf(model, evidence, j, np.where(np.isinf(bounds), np.sign(bounds) * 1e300, bounds))[0]
    return float(np.sum(f[1::2] - f[::2]))


@given(seeds)
@settings(max_examples=40)
def test_chain_rule(seed: int) -> None:
    """log p(a, b) = log p(a) + log p(b1 | a) + log p(b2 | a, b1) ..., for values, intervals and sets."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, n_trees=3, max_depth=3)
    for row in random_cells(rng, model, 4):
        # Runs of a mixed column and its atoms have to agree to be read off a distribution function.
        row = [
            Region(c.runs, tuple(k for k, a in enumerate(column.atoms) if any(lo < a <= hi for lo, hi in c.runs)))
            if isinstance(c, Region)
            else c
            for c, column in zip(row, model.schema.columns, strict=True)
        ]
        row = [Region(tuple(joined(list(c.runs))), c.atoms) if isinstance(c, Region) else c for c in row]
        known: list[Cell] = [None] * len(row)
        whole = log_density(model, make_evidence([row]))[0]
        if whole == -math.inf:
            continue
        log_p = 0.0
        for j in rng.permutation(len(row)):
            if row[j] is not None:
                log_p += math.log(conditional(model, known, int(j), row[j]))
            known[j] = row[j]
        assert log_p == pytest.approx(whole, rel=1e-9, abs=1e-9)


@given(seeds)
@settings(max_examples=25)
def test_chain_rule_through_the_posterior(seed: int) -> None:
    """p(b | a) = sum over leaves of p(leaf | a) p(b | a, leaf), with the leaf's part from the oracle."""
    model = random_model(seed, n_trees=3, max_depth=3)
    cells = random_cells(np.random.default_rng(seed), model, 5)
    boxes = oracle.leaf_boxes(model)
    for row in cells:
        half = len(row) // 2
        a, b = make_evidence([[*row[:half], *[None] * (len(row) - half)]]), make_evidence([row])
        post = posterior(model, a)
        if post.log_evidence[0] == -math.inf:
            continue
        known = [[oracle.cell(e, 0, j) for j in range(len(row))] for e in (a, b)]
        p = 0.0
        for leaf, w in zip(post.leaf.tolist(), post.log_weight, strict=True):
            of_a, of_b = (oracle.log_leaf(model, boxes[leaf], leaf, k) for k in known)
            p += math.exp(w - post.log_evidence[0] + of_b - of_a)
        whole = log_density(model, b)[0] - log_density(model, a)[0]
        assert (math.log(p) if p > 0 else -math.inf) == pytest.approx(whole, rel=1e-9, abs=1e-9)


def test_a_thousand_columns_do_not_underflow() -> None:
    kinds = ("continuous", "mixed", "integer", "rounded", "datetime", "boolean", "categorical", "ordered") * 125
    model = random_model(0, n_trees=2, max_depth=4, kinds=kinds)
    rng = np.random.default_rng(0)
    rows = [[random_number(rng, c) if not c.is_categorical else 0.0 for c in model.schema.columns] for _ in range(3)]
    rows += [random_point(rng, model) for _ in range(3)]
    evidence = make_evidence([list(row) for row in rows])
    got = log_density(model, evidence)
    assert np.all(np.isfinite(got))
    assert got.min() < -745  # below what a plain product of floats can hold
    np.testing.assert_allclose(got, oracle.log_density(model, evidence), rtol=1e-9)


@given(seeds)
@settings(max_examples=30)
def test_edges_thresholds_and_atoms_exactly(seed: int) -> None:
    """Values on thresholds, on bounds of leaves, next to them, and on atoms belong to one box each."""
    rng = np.random.default_rng(seed)
    model = random_model(
        seed, n_trees=2, max_depth=4, background=seed % 2 == 0, kinds=("continuous", "mixed", "integer")
    )
    rows = []
    for j, column in enumerate(model.schema.columns):
        s = model.columns.slot[j]
        special = [*model.leaves.lo[:, s], *model.leaves.hi[:, s], *column.atoms]
        special += model.trees.threshold[model.trees.feature == j].tolist()
        for x in [float(v) for v in special if math.isfinite(v)][:12]:
            for value in (x, math.nextafter(x, -math.inf), math.nextafter(x, math.inf)):
                if column.step > 0.0:
                    value = x - 0.5 * column.step  # centre of the cell below the edge
                row: list[Cell] = [None] * 3
                row[j] = value
                rows += [row, [v if v is not None else p for v, p in zip(row, random_point(rng, model), strict=True)]]
    evidence = make_evidence(rows)
    np.testing.assert_allclose(log_density(model, evidence), oracle.log_density(model, evidence), rtol=1e-9, atol=1e-9)


def test_anywhere_in_a_cell_counts_as_the_cell() -> None:
    model = random_model(5, kinds=("integer", "rounded", "datetime"))
    rng = np.random.default_rng(5)
    step = np.array([c.step for c in model.schema.columns])
    centres = np.array([random_point(rng, model) for _ in range(20)])
    want = log_density(model, complete(centres))
    for shift in (-0.49, -0.2, 0.3, 0.49):
        np.testing.assert_allclose(log_density(model, complete(centres + shift * step)), want, rtol=1e-12)


@pytest.mark.parametrize("size", [1e6, 1e15, 1e100, 1e300, 1.7e308])
def test_the_background_gives_every_row_a_density(size: float) -> None:
    for seed in range(3):
        model = random_model(seed, n_trees=2)
        for sign in (-1.0, 1.0):
            x = [0.0 if c.is_categorical else sign * size for c in model.schema.columns]
            evidence = make_evidence([x, *[[x[j] if j == k else None for j in range(len(x))] for k in range(len(x))]])
            got = log_density(model, evidence)
            assert np.all(np.isfinite(got))
            if size <= 1e300:
                free = [i for i, c in enumerate([None, *model.schema.columns]) if c and c.step == 0.0]
                want = oracle.log_density(
                    model, make_evidence([row for i, row in enumerate(rows_of(evidence)) if i in free])
                )
                np.testing.assert_allclose(got[free], want, rtol=1e-9)


def rows_of(evidence) -> list[list[Cell]]:
    return [[None if math.isnan(v) else float(v) for v in row] for row in evidence.value]


@given(seeds)
@settings(max_examples=20)
def test_every_finite_row_has_positive_density_under_a_background(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(seed, n_trees=2)
    rows = [
        [
            float(rng.integers(len(c.levels))) if c.is_categorical else random_cut(rng, c) * 10 ** rng.uniform(0, 12)
            for c in model.schema.columns
        ]
        for _ in range(20)
    ]
    assert np.all(np.isfinite(log_density(model, make_evidence([list(row) for row in rows]))))


def test_impossible_evidence_is_minus_infinity_not_garbage() -> None:
    model = random_model(3, background=True, kinds=("continuous", "mixed", "integer", "categorical"))
    everything = (-math.inf, math.inf)
    rows: list[list[Cell]] = [[Region() if j == k else None for j in range(4)] for k in range(4)]
    rows.append([Region((everything,)), None, Region(), 0.0])
    assert log_density(model, make_evidence(rows)).tolist() == [-math.inf] * 5


def test_outside_every_box_without_a_background() -> None:
    """Where only uniform leaves are left the density is exactly 0 outside them, and right at their edges."""
    model = random_model(3, background=False, kinds=("continuous",), n_trees=1, max_depth=0)
    v, one = model.leaves, np.ones((1, 1))
    family = np.full((1, 1), UNIFORM, dtype=np.uint8)
    bounds = (0 * one, 0 * one, -2 * one, 2 * one)
    leaves = make_leaves(
        model.columns,
        ParameterTables(v.tree, v.log_weight, family, *bounds, v.atom_mass, v.level_mass, v.missing_rate, v.wide),
    )
    model = replace(model, leaves=leaves)
    inside, outside = -math.log(4.0), -math.inf
    x = [-2.0, math.nextafter(-2.0, 0.0), 0.0, 2.0, math.nextafter(2.0, 3.0), 1e300, -1e300]
    want = [outside, inside, inside, inside, outside, outside, outside]
    assert log_density(model, make_evidence([[v] for v in x])) == pytest.approx(want)
    sets = [Region(((-math.inf, -2.0),)), Region(((2.0, 5.0),)), Region(((-5.0, -2.0), (1.0, 3.0)))]
    assert log_density(model, make_evidence([[r] for r in sets])) == pytest.approx([outside, outside, inside])
