"""A step of EM over batches against the step over all rows at once, and against responsibilities by enumeration."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from jointforest.learners.hidden_tree.constants import FIXED
from jointforest.learners.hidden_tree.em import (
    Maximisation,
    Smoothing,
    expected_counts,
    from_tree,
    log_probabilities,
    to_tree,
)
from jointforest.learners.hidden_tree.learn import LearnSettings
from jointforest.learners.hidden_tree.leaves import learn_trees
from jointforest.learners.hidden_tree.rake import raked
from jointforest.learners.hidden_tree.structure import CodeTable, code_columns
from jointforest.learners.hidden_tree.totals import _shares, add_rows, add_totals, improved, no_rows, scaled
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees
from jointforest.runtime.threads import one_by_one

SETTINGS = LearnSettings(n_states=4, passes=2, full=0)


def table(n: int = 600) -> CodeTable:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    codes = np.column_stack([group, 3 * group + rng.integers(0, 3, n), rng.integers(0, 5, n) + group])
    codes[rng.random(codes.shape) < 0.05] = 99
    n_codes = np.array([3, 9, 7])
    return CodeTable(np.where(codes == 99, n_codes, codes), n_codes, np.array([False, True, True]))


def hidden_of(trees, share) -> HiddenTrees:
    scales = tuple(type("Scale", (), {"n_codes": K})() for K in (3, 9, 7))
    return HiddenTrees(None, scales, tuple(trees), np.log(share))  # type: ignore[arg-type]  # the scales' sizes will do


def by_column(codes: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(codes.T, dtype=np.int32)


def shares(hidden, member, codes):
    return _shares(hidden, [from_tree(tree) for tree in hidden.trees], member, codes, by_column(codes))


def totals_over(hidden, member, codes, parts):
    total = no_rows(hidden)
    for k, some in enumerate(np.array_split(codes, parts)):
        own = no_rows(hidden) if k % 2 else total
        add_rows(own, hidden, member, some, one_by_one)
        if own is not total:
            add_totals(total, own)
    return total


def test_one_tree_is_the_step_over_all_rows():
    rows = table()
    learned = learn_trees(rows, SETTINGS, 0)
    hidden, member = hidden_of(learned.trees, learned.share), np.zeros(1, np.int64)
    smoothing, columns = Smoothing(), code_columns(rows)
    nodes, tables = from_tree(learned.trees[0])
    counts = expected_counts(nodes, tables, by_column(rows.codes), np.arange(600), np.ones(600, np.float32))
    step = Maximisation(nodes, columns, smoothing)
    step.fit_normals(counts, smoothing)
    expected = raked(to_tree(nodes, step.tables(counts, smoothing), columns), nodes, counts)
    for parts in (1, 5):
        found = improved(hidden, member, totals_over(hidden, member, rows.codes, parts), rows.is_ordered, smoothing)
        for mine, its in zip(
            found.trees[0].transition + found.trees[0].emission, expected.transition + expected.emission, strict=True
        ):
            assert np.allclose(mine, its, atol=1e-5)
        assert np.exp(found.log_weight).sum() == pytest.approx(1)


def test_trees_of_a_member_share_rows_out_by_bayes():
    rows = table()
    learned = [learn_trees(rows, SETTINGS._replace(n_leaves=3), seed) for seed in (0, 1)]
    trees = [tree for of in learned for tree in of.trees]
    member = np.repeat([0, 1], [len(of.trees) for of in learned])
    share = np.concatenate([of.share for of in learned]) / 2
    hidden = hidden_of(trees, share)
    found = shares(hidden, member, rows.codes)
    for m in (0, 1):
        own = np.flatnonzero(member == m)
        log_p = np.empty((len(rows.codes), len(own)))
        for k, t in enumerate(own):
            for i, row in enumerate(rows.codes):  # an impossible row has no log-probability
                ok = all(
                    c == K or trees[t].emission[n][:, c].any()
                    for n, (c, K) in enumerate(zip(row[trees[t].column], rows.n_codes[trees[t].column], strict=True))
                )
                log_p[i, k] = log_probabilities(*from_tree(trees[t]), by_column(row[None]))[0] if ok else -np.inf
        p = share[own] * np.exp(log_p)
        assert np.allclose(found[:, own], p / p.sum(axis=1, keepdims=True), atol=1e-5)
    total = totals_over(hidden, member, rows.codes, 4)
    assert total.mass.sum() == pytest.approx(2 * len(rows.codes), rel=1e-5)
    new = improved(hidden, member, total, rows.is_ordered, Smoothing())
    assert np.exp(new.log_weight[member == 0]).sum() == pytest.approx(0.5)
    for old, now in zip(trees, new.trees, strict=True):  # what a leaf's box does not allow stays impossible
        for k in range(3):
            assert np.array_equal(old.emission[k].any(axis=0), now.emission[k].any(axis=0))


def test_tree_without_rows_stays():
    rows = table()
    learned = learn_trees(rows, SETTINGS._replace(n_leaves=2), 0)
    hidden, member = hidden_of(learned.trees, learned.share), np.zeros(len(learned.trees), np.int64)
    inside = shares(hidden, member, rows.codes)[:, 0] > 1.0 - FIXED.negligible_share
    found = improved(hidden, member, totals_over(hidden, member, rows.codes[inside], 1), rows.is_ordered, Smoothing())
    assert found.trees[1] is learned.trees[1] and np.exp(found.log_weight[0]) > 0.99


def test_rows_with_weights_count_as_many_rows():
    rows = table()
    learned = learn_trees(rows, SETTINGS._replace(n_leaves=2), 0)
    hidden, member = hidden_of(learned.trees, learned.share), np.zeros(len(learned.trees), np.int64)
    times = np.random.default_rng(1).integers(0, 4, len(rows.codes))
    weighed = no_rows(hidden)
    for some in np.array_split(np.arange(len(times)), 3):
        add_rows(weighed, hidden, member, rows.codes[some], one_by_one, times[some] / 4)
    expected = totals_over(hidden, member, np.repeat(rows.codes, times, axis=0), 1)
    found = scaled(weighed, 4.0)
    assert np.allclose(found.mass, expected.mass, rtol=1e-5)
    for mine, its in zip(found.counts, expected.counts, strict=True):
        for a, b in zip(chain(*mine), chain(*its), strict=True):
            assert np.allclose(a, b, rtol=1e-3, atol=1e-3)
