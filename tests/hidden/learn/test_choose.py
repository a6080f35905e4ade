"""Settings chosen by held-out rows."""

import numpy as np

from jointforest.hidden.learn.choose import choose_settings
from jointforest.hidden.learn.learn import LearnSettings


def independent_blocks(n, seed=0):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 8, n), rng.integers(0, 8, n)
    return np.column_stack([first, first, second, second]), np.full(4, 8), np.zeros(4, dtype=bool)


def test_few_states_cannot_be_shared_by_independent_blocks():
    chosen = choose_settings(*independent_blocks(2000), settings=LearnSettings(n_states=16), free=("start",))
    assert chosen == LearnSettings(n_states=16, start="local")


def test_as_many_states_as_held_out_rows_want():
    quick = LearnSettings(n_states=16, passes=3)
    codes = np.random.default_rng(0).integers(0, 3, (600, 4))
    chosen = choose_settings(codes, np.full(4, 3), np.zeros(4, dtype=bool), settings=quick, free=("n_states",))
    assert chosen.n_states <= 8
    chosen = choose_settings(*independent_blocks(1000), settings=quick, free=("n_states",))
    assert chosen.n_states >= 8


def test_what_is_not_free_stays():
    settings = LearnSettings(n_states=4, start="local", passes=2, perturb=0.3)
    assert choose_settings(*independent_blocks(300), settings=settings, free=()) == settings
    chosen = choose_settings(*independent_blocks(300), settings=settings, free=("transition", "normal"))
    assert chosen._replace(smoothing=settings.smoothing) == settings
    assert chosen.smoothing._replace(transition=1.0) == settings.smoothing._replace(transition=1.0)


def test_too_few_rows_to_choose_by():
    settings = LearnSettings(n_states=4)
    assert choose_settings(*independent_blocks(12), settings=settings) == settings


def test_same_choice_whatever_the_threads():
    table = independent_blocks(500, seed=3)
    settings = LearnSettings(n_states=6, passes=3)
    one, two = (choose_settings(*table, settings=settings, seed=1, n_jobs=jobs) for jobs in (1, 2))
    assert one == two
