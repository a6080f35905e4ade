"""Trees learned in one call: determinism, weights, missing cells, tables of every odd shape."""

import numpy as np
import pytest

from jointforest.learners.hidden_tree.em import Smoothing, from_tree, log_probabilities, nodes_of
from jointforest.learners.hidden_tree.learn import (
    LearnSettings,
    _n_batches,
    _with_hidden,
    learn_tree,
)
from jointforest.learners.hidden_tree.structure import CodeTable
from jointforest.runtime.threads import use_jobs

pytestmark = pytest.mark.smoke  # runs on wheels


def blocks(n, seed=0):
    """Codes of four columns: two blocks of two; each second column repeats the first nine times in ten."""
    rng = np.random.default_rng(seed)
    first, third = rng.integers(0, 6, n), rng.integers(0, 12, n)
    second = np.where(rng.random(n) < 0.9, first, rng.integers(0, 6, n))
    fourth = np.where(rng.random(n) < 0.9, third, rng.integers(0, 12, n))
    codes = np.column_stack([first, second, third, fourth])
    return CodeTable(codes, np.array([6, 6, 12, 12]), np.array([False, False, True, True]))


def mean_log_probability(tree, codes):
    """Mean log-probability of rows of codes (n, d)."""
    return log_probabilities(*from_tree(tree), np.ascontiguousarray(codes.T, dtype=np.int32)).mean()


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.transition + a.emission, b.transition + b.emission, strict=True))


@pytest.mark.parametrize("start", ["shared", "local"])
def test_learns_blocks(start):
    others = blocks(2000, seed=1).codes
    heard = []
    settings = LearnSettings(n_states=64, start=start)
    tree = learn_tree(blocks(3000), settings, progress=lambda *a: heard.append(a))
    assert max(tree.n_states) <= 64
    for tables in (tree.transition, tree.emission):
        for table in tables:
            assert table.dtype == np.float32
            np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-5)
    p, q = 0.9 + 0.1 / 6, 0.9 + 0.1 / 12
    entropy = (
        np.log(72) - p * np.log(p) - (1 - p) * np.log((1 - p) / 5) - q * np.log(q) - (1 - q) * np.log((1 - q) / 11)
    )
    assert -mean_log_probability(tree, others) == pytest.approx(entropy, abs=0.25)
    assert [h[0] for h in heard] == list(range(1, len(heard) + 1)) and all(h[1] == settings.passes for h in heard)


def test_same_seed_same_tree_whatever_the_threads():
    table = blocks(3000)
    settings = LearnSettings(n_states=12, passes=2, batch=1500)
    one, two = (use_jobs(jobs)(learn_tree)(table, settings, 3) for jobs in (1, 2))
    assert same(one, two)
    assert not same(one, learn_tree(table, settings, 4))


@pytest.mark.parametrize("n", [3, 100, 1_000, 6_144, 6_145, 10_000, 29_305])
def test_no_batch_is_longer_than_wanted(n):
    sizes = [len(part) for part in np.array_split(np.arange(n), _n_batches(n, LearnSettings(n_states=256), 3))]
    assert max(sizes) <= 256
    assert len(sizes) == 1 or min(sizes) >= 8
    assert len(sizes) >= min(24, n // 8)
    assert len(sizes) <= 24 or max(sizes) > 128


def test_rows_of_no_weight_do_not_count():
    table = blocks(600)._replace(weight=(np.arange(600) < 400).astype(float))
    settings = LearnSettings(n_states=6, passes=2)
    wild = table.codes.copy()
    wild[400:] = 0
    assert same(learn_tree(table, settings), learn_tree(table._replace(codes=wild), settings))


def test_missing_cells_are_summed_out():
    table = blocks(3000)
    hidden = np.random.default_rng(5).random(table.codes.shape) < 0.2
    tree = learn_tree(table._replace(codes=np.where(hidden, table.n_codes, table.codes)), LearnSettings(n_states=24))
    independent = learn_tree(table, LearnSettings(n_states=1))
    others = blocks(2000, seed=1).codes
    assert mean_log_probability(tree, others) > mean_log_probability(independent, others) + 2.0


def test_members_differ():
    rng = np.random.default_rng(0)
    codes = np.cumsum(rng.integers(0, 2, (500, 6)), axis=1)
    table = CodeTable(codes, np.full(6, 7), np.ones(6, dtype=bool))
    found = {tuple(learn_tree(table, LearnSettings(4, passes=0, perturb=1.0), seed).parent) for seed in range(6)}
    assert len(found) > 1


@pytest.mark.parametrize(
    ("shape", "n_codes", "is_ordered"),
    [((1, 2), 3, False), ((20, 3), 5, True), ((300, 1), 9, True), ((300, 3), 1, True), ((300, 3), 1, False),
     ((300, 2), 1000, True), ((300, 2), 1000, False), ((120, 300), 2, False)],
)  # fmt: skip
def test_odd_tables(shape, n_codes, is_ordered):
    codes = np.random.default_rng(0).integers(0, n_codes + 1, shape)
    settings = LearnSettings(n_states=8, passes=1)
    tree = learn_tree(CodeTable(codes, np.full(shape[1], n_codes), np.full(shape[1], is_ordered)), settings)
    assert np.isfinite(mean_log_probability(tree, codes))


@pytest.mark.parametrize("start", ["shared", "local"])
def test_all_cells_missing_but_one(start):
    codes = np.full((300, 4), 3)
    codes[0, 0] = 1
    table = CodeTable(codes, np.full(4, 3), np.array([True, False, True, False]))
    tree = learn_tree(table, LearnSettings(8, start=start, passes=2))
    assert all(np.isfinite(table).all() for table in tree.transition + tree.emission)


def test_rows_held_out_count_in_the_end():
    """A cell that only rows held out have is as common in the joint as in the table, seen in the last passes or not."""
    codes = np.zeros((1_000, 1), int)
    codes[np.random.default_rng(0).permutation(1_000)[:500]] = 1
    table = CodeTable(codes, np.array([2]), np.zeros(1, bool))
    settings = LearnSettings(1, passes=1, smoothing=Smoothing(0.0, 0.0, 0.0), anneal=0.0)
    share = [float(learn_tree(table, settings._replace(refit=refit)).emission[0][0, 1]) for refit in (False, True)]
    assert share == pytest.approx([0.5, 0.5], abs=1e-6)


def test_a_share_of_the_cells_is_hidden_and_the_others_stay():
    n_codes = np.array([2, 5, 3])
    nodes = nodes_of(np.array([2, 0, 1]), np.array([-1, 0, 0]), np.array([2, 2, 2]), n_codes)
    codes = np.random.default_rng(0).integers(0, n_codes[:, None], (3, 2_000)).astype(np.int32)
    found = _with_hidden(nodes, codes, 0.2, np.random.default_rng(1))
    is_hidden = found != codes
    assert found.dtype == codes.dtype and is_hidden.mean(axis=1) == pytest.approx(0.2, abs=0.03)
    assert all((found[j, is_hidden[j]] == n_codes[j]).all() for j in range(3))
    assert (found == _with_hidden(nodes, codes, 0.2, np.random.default_rng(1))).all()
