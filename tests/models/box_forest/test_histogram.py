"""Histograms of numeric columns, by tables and without, against differences of the oracle's CDF."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from jointforest.data.evidence import Evidence
from jointforest.models.box_forest import histogram as histograms
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.box_forest.histogram import BinTables, bins_between
from jointforest.models.box_forest.histogram_kernels import BLOCK, add_rows_inside, mixed_table_rows
from jointforest.models.box_forest.posterior import LeafPosterior, OneRow, tree_answers
from jointforest.models.box_forest.structure import Forest
from jointforest.runtime.numeric_kernels import mix_rows
from jointforest.runtime.threads import use_jobs

from ... import oracle
from ...box_answers import bin_mass, cdf, histogram, level_probability, pdf
from ...random_cases.cells import Region, make_evidence
from ...random_cases.evidence import random_evidence
from ...random_cases.models import random_cut, random_model, random_number, seeds

N = 6


def setting(seed: int) -> tuple[Forest, Evidence]:
    model = random_model(seed, n_trees=1 + seed % 3, max_depth=1 + seed % 4, background=seed % 3 > 0)
    return model, random_evidence(model, seed, N)


def numeric(model: Forest) -> list[int]:
    return [j for j, c in enumerate(model.schema.columns) if not c.is_categorical]


def some_cuts(model: Forest, j: int, seed: int) -> np.ndarray:
    """Cuts of a column, ascending: on atoms, on edges of cells and off them, and far out."""
    rng, column = np.random.default_rng(seed), model.schema.columns[j]
    inside = [random_number(rng, column) for _ in range(3)] + [random_cut(rng, column) for _ in range(3)]
    off = [float(rng.uniform(column.minimum, column.maximum))]
    return np.unique([*inside, *off, *column.atoms, column.maximum + 100 * (column.step or 1.0)])


@given(seeds)
@settings(max_examples=25)
def test_histograms_are_differences_of_the_cdf(seed: int) -> None:
    model, evidence = setting(seed)
    for j in numeric(model):
        cuts, tables = some_cuts(model, j, seed), BinTables(model)
        found = histogram(model, tables, evidence, j, cuts)
        for i in range(N):
            column = oracle.given(model, evidence, i, j)
            want = np.diff([oracle.cdf(column, v) for v in cuts], prepend=0.0, append=1.0)
            want = want if np.isfinite(want[0]) else np.full(len(want), np.nan)
            np.testing.assert_allclose(found[i], want, rtol=1e-9, atol=1e-12)
            one = evidence.take(np.array([i]))
            by_table = histogram(model, tables, one, j, cuts, known=OneRow(model, one))
            np.testing.assert_allclose(by_table[0], want, rtol=1e-6, atol=1e-12)


@given(seeds)
@settings(max_examples=8)
def test_the_mean_comes_with_the_histogram(seed: int) -> None:
    """As each is found alone, of few rows and of many, which are answered by a table of several blocks."""
    model, evidence = setting(seed)
    for j in numeric(model):
        cuts = some_cuts(model, j, seed)
        with pytest.MonkeyPatch.context() as patch:
            for many in (N + 1, 1):
                patch.setattr(histograms, "MANY_ROWS", many)
                unknown = evidence.without(j)  # other columns may have regions
                state = BoxForest(model).observe(unknown)
                mean, mass = state.mean_and_histogram(j, cuts)
                np.testing.assert_allclose(mean, state.moments(j)[0], rtol=1e-12)
                want = [oracle.given(model, unknown, i, j) for i in range(N)]
                for i, column in enumerate(want):
                    by_hand = np.diff([oracle.cdf(column, v) for v in cuts], prepend=0.0, append=1.0)
                    by_hand = by_hand if np.isfinite(by_hand[0]) else np.full(len(by_hand), np.nan)
                    np.testing.assert_allclose(mass[i], by_hand, rtol=1e-6, atol=1e-7)


def test_tables_of_several_blocks_are_mixed_in_order() -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(5), 3 * BLOCK + 7).astype(np.float32)
    rows = [np.sort(rng.permutation(len(table))[:900]), np.array([], dtype=int), rng.permutation(len(table))]
    start = np.cumsum([0, *map(len, rows)])
    leaf, log_weight = np.concatenate(rows).astype(np.int32), np.log(rng.random(start[-1]))
    log_evidence = np.array([1.5, -np.inf, 0.0])
    found = mixed_table_rows(table, LeafPosterior(start, leaf, log_weight, log_evidence))
    for i in (0, 2):
        own = slice(start[i], start[i + 1])
        want = np.exp(log_weight[own] - log_evidence[i]) @ table[leaf[own]].astype(np.float64)
        np.testing.assert_allclose(found[i], want, rtol=1e-12)
    assert np.isnan(found[1]).all()


@given(seeds)
@settings(max_examples=12)
def test_levels_of_a_row_weighed_before(seed: int) -> None:
    model, evidence = setting(seed)
    for j, column in enumerate(model.schema.columns):
        if column.is_categorical:
            for i in range(N):
                one = evidence.take(np.array([i]))
                want = oracle.level_probability(oracle.given(model, evidence, i, j))
                known = OneRow(model, one)
                got = level_probability(model, one, j, known=known)
                np.testing.assert_allclose(got[0], want, rtol=1e-9, atol=1e-13)
                by_all = histogram(model, BinTables(model), one, j, np.empty(0), known=known)
                np.testing.assert_allclose(by_all[0], want, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_a_table_as_matrix_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, row = rng.dirichlet(np.ones(7), 30).astype(np.float32), rng.permutation(30)[:12].astype(np.int32)
    weight, inside = rng.dirichlet(np.ones(12)), (rng.random(7) < 0.5).astype(np.float64)
    inside[2] = 0.0
    piece, bins = rng.random((12, 2)) * 0.1, np.array([2, 2])
    table[row[:3]] *= inside == 0.0  # nothing in the region but for a trace: lost
    piece[:3] = 1e-40
    out, is_lost = np.zeros(7), np.zeros(12, bool)
    mix_rows(table, row, weight, out)
    np.testing.assert_allclose(out, weight @ table[row].astype(np.float64), rtol=1e-12)
    out[:] = 0.0
    add_rows_inside(table, row, weight, inside, piece, bins, out, is_lost)
    mass = table[row].astype(np.float64) * inside
    mass[:, 2] = piece.sum(axis=1)
    np.testing.assert_array_equal(is_lost, np.arange(12) < 3)
    want = (weight / mass.sum(axis=1))[3:] @ mass[3:]
    np.testing.assert_allclose(out, want, rtol=1e-12, atol=1e-300)


def one_column(seed: int) -> tuple[Forest, float, float]:
    """A forest of a continuous column and others, and the column's range."""
    model = random_model(seed, kinds=("continuous", "integer", "categorical"), n_trees=3, background=False)
    return model, model.schema.columns[0].minimum, model.schema.columns[0].maximum


@pytest.mark.parametrize("seed", range(6))
def test_regions_far_out_in_the_tails_keep_their_digits(seed: int) -> None:
    model, low, high = one_column(seed)
    start = high + 5 * (high - low)
    one = make_evidence([[Region(((start, np.inf),)), None, None]])
    cuts, known = start + (high - low) * np.array([-9.0, -1.0, 0.001, 0.01, 0.1]), OneRow(model, one)
    tables = BinTables(model)
    found = histogram(model, tables, one, 0, cuts, known=known)
    assert tables.nbytes > 0
    np.testing.assert_allclose(found, bin_mass(model, one, 0, bins_between(model, 0, cuts)), rtol=1e-6, atol=1e-15)
    assert (np.isnan(found).all() or found.sum() == pytest.approx(1.0)) and not found[0, :2].any()


def test_tables_are_made_where_they_pay_and_stay_within_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    model, low, high = one_column(1)
    nothing = make_evidence([[None, None, None]])
    known, R = OneRow(model, nothing), len(model.leaves.tree)
    cuts = [np.linspace(low, high, q) for q in (3, 4, 5)]
    tables = BinTables(model)
    want = [histogram(model, tables, nothing, 0, c) for c in cuts]
    assert tables.nbytes == 0  # rows that nobody has weighed before
    for limit, kept in ((1 << 20, 4 + 5 + 6), (4 * R * 11, 5 + 6), (4 * R * 4, 4), (0, 0)):
        monkeypatch.setattr(histograms, "_LIMIT", limit)
        tables = BinTables(model)
        for c, mass in zip(cuts, want, strict=True):
            for n_jobs in (1, 2):
                found = use_jobs(n_jobs)(histogram)(model, tables, nothing, 0, c, known=known)
                np.testing.assert_allclose(found, mass, rtol=1e-6, atol=1e-12)
        assert tables.nbytes == 4 * R * kept
    assert BinTables(model).of(0, bins_between(model, 0, cuts[0]), R // histograms.FEW - 1) is None


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_trees_weighted_by_beta(beta: float) -> None:
    """CDF, density and histogram are averages of the trees alone, with the weights (pi_t p_t(evidence))^beta."""
    model = random_model(3, n_trees=3, background=False)
    assert not model.has_background
    j = numeric(model)[0]
    cuts = some_cuts(model, j, 0)
    rng = np.random.default_rng(0)
    cells = np.full((8 * histograms.MANY_ROWS + 1, len(model.schema.columns)), np.nan)
    other = next(k for k in numeric(model) if k != j)
    cells[:, other] = [random_number(rng, model.schema.columns[other]) for _ in cells]
    evidence = Evidence.of_values(cells)
    log_tree, _ = tree_answers(model, evidence, j)
    log_tree = log_tree + np.log(np.bincount(model.leaves.tree, np.exp(model.leaves.log_weight)))
    possible = np.isfinite(log_tree).all(axis=1)
    assert possible.sum() > 10
    weight = np.exp(beta * log_tree[possible])
    weight /= weight.sum(axis=1, keepdims=True)
    own = np.stack([by_tree(model, t, evidence, j, cuts)[possible] for t in range(3)], axis=1)
    want = np.einsum("nt,ntb->nb", weight, own)
    state = BoxForest(model).observe_by_trees(evidence, beta)
    np.testing.assert_allclose(state.cdf(j, cuts)[possible], want.cumsum(axis=1)[:, :-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(state.histogram(j, cuts)[possible], want, rtol=1e-5, atol=1e-6)
    few = BoxForest(model).observe_by_trees(evidence.take(np.flatnonzero(possible)[:5]), beta)
    np.testing.assert_allclose(few.histogram(j, cuts), want[:5], rtol=1e-6, atol=1e-9)
    inside = np.array([random_number(rng, model.schema.columns[j])])
    densities = np.stack([by_tree(model, t, evidence, j, inside, pdf)[possible] for t in range(3)], axis=1)
    np.testing.assert_allclose(state.pdf(j, inside)[possible], np.einsum("nt,ntb->nb", weight, densities), rtol=1e-6)


def by_tree(model: Forest, t: int, evidence: Evidence, j: int, x: np.ndarray, ask: Any = None) -> np.ndarray:
    """The histogram of column j between cuts, or what is asked at x, by tree t alone."""
    log_weight = np.where(model.leaves.tree == t, model.leaves.log_weight, -np.inf)
    total = np.logaddexp.reduce(log_weight)
    alone = replace(model, leaves=model.leaves._replace(log_weight=log_weight - total))
    if ask is not None:
        return ask(alone, evidence, j, x)
    return np.diff(cdf(alone, evidence, j, x), axis=1, prepend=0.0, append=1.0)


def test_many_rows_by_a_table() -> None:
    """As each of them alone; rows of probability 0 are NaN."""
    model, low, high = one_column(2)
    rng = np.random.default_rng(1)
    cells = np.full((200, 3), np.nan)
    cells[:, 1] = rng.integers(-50, 50, 200)
    evidence, cuts = Evidence.of_values(cells), np.linspace(low, high, 9)
    tables = BinTables(model)
    found = histogram(model, tables, evidence, 0, cuts)
    assert tables.nbytes > 0
    np.testing.assert_allclose(found, bin_mass(model, evidence, 0, bins_between(model, 0, cuts)), rtol=1e-5, atol=1e-6)
