"""Settings chosen by held-out rows."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from jointforest.learners.hidden_tree import choose
from jointforest.learners.hidden_tree.choose import choose_settings, draw_score, settings_for_likelihood
from jointforest.learners.hidden_tree.constants import FIXED
from jointforest.learners.hidden_tree.learn import LearnSettings
from jointforest.learners.hidden_tree.leaves import exceeds, learn_trees
from jointforest.learners.hidden_tree.structure import CodeTable
from jointforest.runtime.threads import use_jobs


def independent_blocks(n, seed=0):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 8, n), rng.integers(0, 8, n)
    return CodeTable(np.column_stack([first, first, second, second]), np.full(4, 8), np.zeros(4, dtype=bool))


def test_start_is_what_held_out_rows_like():
    """Two blocks of eight cases each: clusters of rows would be 64, those of a column with its like are eight."""
    settings = LearnSettings(n_states=12, passes=2)
    assert choose_settings(independent_blocks(1500), settings, ("start",), seed=4) == settings._replace(start="local")


def test_as_many_states_as_held_out_rows_want():
    """Independent columns want the fewest states, blocks of eight cases at least eight."""
    settings = LearnSettings(n_states=64)
    noise = CodeTable(np.random.default_rng(0).integers(0, 3, (600, 4)), np.full(4, 3), np.zeros(4, dtype=bool))
    assert choose_settings(noise, settings, ("n_states",)).n_states == 4
    assert choose_settings(independent_blocks(1000), settings, ("n_states",)).n_states >= 8


def test_states_and_smoothing_are_those_of_the_likeliest_trees_learned_in_full():
    """The best number of states is among those tried here. Smoothing is tried with half of the states, and dropout."""
    settings = LearnSettings(n_states=32, passes=4, start="local")

    def held_out(n_states, dropout=0.0, transition=settings.smoothing.transition):
        smoothing = settings.smoothing._replace(transition=transition)
        trial = settings._replace(n_states=n_states, dropout=dropout, smoothing=smoothing, full=0)
        return np.nanmean(learn_trees(table, trial, 5).held_out)

    for table in (independent_blocks(2_000), independent_blocks(2_000, seed=1)):
        best = max((4, 8, 16, 32), key=held_out)
        expected = settings._replace(n_states=best, dropout=0.2)
        assert settings_for_likelihood(table, settings, (True, False), 5) == expected
        transition = max((settings.smoothing.transition, 0.3), key=lambda rows: held_out(16, 0.2, rows))
        chosen = settings_for_likelihood(table, settings, (False, True), 5)
        smoothing = settings.smoothing._replace(transition=transition)
        assert chosen == settings._replace(dropout=0.2, smoothing=smoothing)
    quick = settings._replace(passes=3)
    assert settings_for_likelihood(table, quick, (False, True), 5) == quick


def test_a_gain_counts_if_it_exceeds_its_standard_error():
    rng = np.random.default_rng(0)
    old = rng.normal(size=1_000)
    noise = rng.normal(size=1_000)
    noise = (noise - noise.mean()) / noise.std()
    error = 1.0 / 1_000**0.5
    assert exceeds(old + noise + 1.1 * error, old, None) and not exceeds(old + noise + 0.9 * error, old, None)
    learned = np.full(500, np.nan)
    for gain, is_better in ((1.1, True), (0.9, False)):
        new = np.append(old + noise + gain * error, learned)
        assert exceeds(new, np.append(old, learned), np.append(np.full(1_000, 3.0), np.ones(500))) == is_better
    weight = np.repeat([1.0, 0.0], 500)  # half of the rows: an error larger by the root of two
    gain = np.tile(noise[:500] - noise[:500].mean(), 2)
    gain *= 1.0 / gain.std()
    assert not exceeds(old + gain + 1.3 * error, old, weight) and exceeds(old + gain + 1.5 * error, old, weight)


def test_held_out_rows_are_those_of_the_seed_and_have_their_probability_by_all_leaves():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (600, 3)) // rng.integers(1, 3, (600, 1))
    table = CodeTable(codes, np.full(3, 3), np.zeros(3, bool), rng.random(600))
    one, two = (learn_trees(table, LearnSettings(n_states=2, n_leaves=n, passes=2, full=0), 0) for n in (1, 2))
    held = ~np.isnan(two.held_out)
    assert held.sum() == 60 and (held == ~np.isnan(one.held_out)).all() and len(two.trees) == 2

    def probability(row, tree):
        total = 0.0
        for states in product(*(range(n) for n in tree.n_states)):
            p = 1.0
            for k, (j, above) in enumerate(zip(tree.column, tree.parent, strict=True)):
                p *= tree.transition[k][states[above] if k else 0, states[k]]
                p *= tree.emission[k][states[k], row[j]]
            total += p
        return total

    for learned in (one, two):
        for row, found in zip(codes[held], learned.held_out[held], strict=True):
            p = sum(s * probability(row, tree) for s, tree in zip(learned.share, learned.trees, strict=True))
            assert found == pytest.approx(np.log(p), abs=1e-5)


def test_what_is_not_free_stays():
    settings = LearnSettings(n_states=4, start="local", passes=2, perturb=0.3)
    assert choose_settings(independent_blocks(300), settings=settings, free=()) == settings
    chosen = choose_settings(independent_blocks(300), settings=settings, free=("transition", "normal"))
    assert chosen._replace(smoothing=settings.smoothing) == settings
    assert chosen.smoothing._replace(transition=1.0) == settings.smoothing._replace(transition=1.0)


def test_too_few_rows_to_choose_by():
    settings = LearnSettings(n_states=4)
    assert choose_settings(independent_blocks(12), settings=settings) == settings


def test_same_choice_whatever_the_threads():
    table = independent_blocks(500, seed=3)
    settings = LearnSettings(n_states=6, passes=3)
    one, two = (use_jobs(jobs)(choose_settings)(table, settings=settings, seed=1) for jobs in (1, 2))
    assert one == two


def test_leaves_are_chosen_where_each_has_dependence_of_its_own():
    """Sixty days of one case each in either of eight weeks: more than the states of one tree can hold."""
    rng = np.random.default_rng(0)
    week, day = rng.integers(8, size=4_000), rng.integers(8, size=4_000)
    case = rng.integers(64, size=(8, 8))
    codes = np.column_stack([week, day, case[week, day] // 8, case[week, day] % 8])
    table = CodeTable(codes, np.full(4, 8), np.zeros(4, bool))
    independent = table._replace(codes=rng.integers(8, size=(4_000, 4)))
    for settings in (LearnSettings(n_states=16, passes=4), LearnSettings(n_states=16, passes=3, start="local")):
        assert choose_settings(table, settings, ("n_leaves",)).n_leaves == 8
        assert choose_settings(independent, settings, ("n_leaves",)).n_leaves == 1
    quick = LearnSettings(n_states=16, passes=3, start="shared")
    assert choose_settings(table, quick, ("n_leaves",)).n_leaves == 1


def test_leaves_are_those_of_better_draws_whatever_the_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clear difference of scores decides, of a quick choice a smaller one; else held-out rows do."""
    table = independent_blocks(4_000)
    scores: list[float] = []
    monkeypatch.setattr(choose, "draw_score", lambda *given: scores.pop(0))  # of eight leaves, and then of one
    for settings, limit in (
        (LearnSettings(n_states=16, passes=4), FIXED.leaves_score),
        (LearnSettings(n_states=16, passes=3, start="local"), FIXED.quick_leaves_score),
    ):
        for is_likelier in (True, False):
            monkeypatch.setattr(choose, "exceeds", lambda *given, answer=is_likelier: answer)
            for gain, expected in ((limit + 0.01, 8), (limit - 0.01, 8 if is_likelier else 1), (-limit - 0.01, 1)):
                scores[:] = 0.5 + gain, 0.5
                assert choose_settings(table, settings, ("n_leaves",)).n_leaves == expected


@pytest.mark.parametrize("is_weighed", [False, True])
def test_scores_of_draws_tell_a_tree_that_fits_from_one_that_does_not(is_weighed: bool) -> None:
    """Two blocks of equal columns with missing cells: few states lose them, enough states keep them."""
    rng = np.random.default_rng(1)
    blocks = independent_blocks(3_000)
    codes = np.where(rng.random(blocks.codes.shape) < 0.1, 8, blocks.codes)
    weight = np.where(blocks.codes[:, 0] < 4, 3.0, 1.0) if is_weighed else None
    table = CodeTable(codes, blocks.n_codes, np.array([False, True, True, False]), weight)
    fit, unfit = (
        use_jobs(jobs)(draw_score)(
            table, learn_trees(table, LearnSettings(n_states=states, start="local", passes=6), 0), 0
        )
        for states, jobs in ((16, 1), (1, 2))
    )
    assert fit > 0.85 and unfit < 0.5
    of_leaves = learn_trees(table, LearnSettings(n_states=16, n_leaves=2, start="local", passes=6), 0)
    assert draw_score(table, of_leaves, 0) == use_jobs(2)(draw_score)(table, of_leaves, 0) > 0.8


def test_trials_of_wide_tables_learn_dependent_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 3, (400, 1))
    codes = np.where(rng.random((400, 200)) < 0.8, hidden, rng.integers(0, 3, (400, 200)))
    table = CodeTable(codes, np.full(200, 3), np.zeros(200, bool))
    learned: list[int] = []
    learn = choose.learn_trees

    def watched(some: CodeTable, *more: Any) -> Any:
        learned.append(some.codes.shape[1])
        return learn(some, *more)

    monkeypatch.setattr(choose, "learn_trees", watched)
    monkeypatch.setattr(choose, "FIXED", replace(choose.FIXED, trial_columns=20))
    best = choose.choose_settings(table, LearnSettings(n_states=16), ("n_states",))
    assert set(learned) == {20} and 3 <= best.n_states <= 16
    narrow = table.select(np.arange(150))
    np.testing.assert_array_equal(narrow.codes, codes[:, :150])
    learned.clear()
    choose.choose_settings(narrow, LearnSettings(n_states=4), ("n_states",))
    assert set(learned) == {150}


def test_names_of_no_setting_are_refused():
    with pytest.raises(ValueError, match="no setting 'smothing'"):
        choose_settings(independent_blocks(100), free=("start", "smothing"))
