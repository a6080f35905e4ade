"""Choice of the settings of hidden trees by validation log-likelihood and draws, from trials on some of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...data.discretization.dependence import spanning_tree
from ...evaluation.columns_and_pairs import TableCells
from ...evaluation.two_sample_test import QUICK_ROWS, quick_score
from .constants import FIXED
from .em import is_light
from .improve_structure import draw_codes, pair_to_join
from .learn import LearnSettings
from .leaves import Learned, complete_codes, exceeds, learn_trees, mean_of
from .structure import CodeTable, code_columns, information_of

_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "start": [{"start": "shared"}, {"start": "local"}],
    "near": [{"near": rows} for rows in (0.0, 3.0, 10.0)],
    "normal": [{"normal": rows} for rows in (5.0, 30.0, 100.0)],
    "few_normal": [{"normal": rows} for rows in (5.0, 30.0)],
    "transition": [{"transition": rows} for rows in (0.05, 0.3)],
}


def choose_settings(
    table: CodeTable,
    settings: LearnSettings | None = None,
    free: Iterable[str] = ("start", "normal", "transition"),
    seed: int = 0,
    fewest_states: int = 1,
) -> LearnSettings:
    """Settings with those parts replaced that are free, by validation log-likelihood, one after another.

    Trials learn from few enough rows that their work is bounded, and with as many rows a state as ``settings`` have, so
    that the same seed makes the same choice on any machine. In wide tables they learn some columns alone: those in the
    middle of the spanning tree, which depend on each other. Held-out likelihood prefers fewer states than rows that
    cannot be told from real ones need: leave "n_states" out of ``free`` where those are wanted.

    settings : LearnSettings, optional. What is not free, and the most states.
    free : iterable of {"n_states", "n_leaves", "joined", "start", "near", "normal", "few_normal", "transition"}. What
        is chosen; smoothing by ``near`` and ``normal`` matters to ordered columns with smooth codes.
    fewest_states : int. Smallest number of states that is tried.
    Raises ValueError for a name in ``free`` that no setting has.

    >>> table = CodeTable(np.repeat([[0, 0], [1, 1]], 100, axis=0), np.array([2, 2]), np.array([False, False]))
    >>> choose_settings(table, free=("start",)).start in ("shared", "local")
    True
    """
    free = set(free)
    if unknown := free - {"n_states", "n_leaves", "joined", *_OPTIONS}:
        raise ValueError(f"free: there is no setting {sorted(unknown)[0]!r}")
    best = settings or LearnSettings()
    first = None
    if "n_leaves" in free:
        n_leaves, first = _n_leaves(table, best, seed)
        best = best._replace(n_leaves=n_leaves)
    if "joined" in free and best.n_leaves == 1 and not _is_quick(best):
        short = _short(best)
        first = first or learn_trees(table, short, seed)
        best = best._replace(joined=pair_to_join(table, short, first, seed))
    rows = _some(table, best, seed)
    free -= {"n_leaves", "joined"}
    if not free:
        return best
    if len(rows) < FIXED.fewest_held_out_from:  # none would be held out
        few = max(len(rows) // FIXED.rows_a_state_without_trials, 1)
        return best._replace(n_states=min(best.n_states, few)) if "n_states" in free else best
    some, part = table.take(rows), len(rows) / len(table.codes)
    information = information_of(some)
    if len(table.n_codes) >= FIXED.wide:
        middle = np.sort(spanning_tree(information)[0][: FIXED.trial_columns])
        some, information = some.select(middle), information[np.ix_(middle, middle)]
    complete = complete_codes(some, seed)
    n_splits = int(np.clip(np.ceil(FIXED.trial_held_out / (0.1 * len(rows))), 1, FIXED.trial_splits))

    def held_out(trial: LearnSettings) -> np.ndarray:
        n_states = max(round(trial.n_states * part), 1)
        passes = min(trial.passes, FIXED.trial_passes)
        smaller = trial._replace(n_states=n_states, perturb=0.0, passes=passes, batches=FIXED.trial_batches)
        trials = (learn_trees(some, smaller, seed + i, None, information, complete) for i in range(n_splits))
        return np.array([one.held_out for one in trials])

    def score(trial: LearnSettings) -> float:
        return mean_of(held_out(trial), some.weight)

    top = None
    if "n_states" in free:
        if "start" in free:
            few = min(best.n_states, FIXED.start_states)
            starts = [best._replace(start=option["start"]) for option in _OPTIONS["start"]]
            best = max(starts, key=lambda trial: score(trial._replace(n_states=few)))
            free.discard("start")
        best, values = _climb(best, len(rows), held_out, some.weight, fewest_states)
        top = mean_of(values, some.weight)
    if not any(np.count_nonzero(is_light(column, best.smoothing)) > 1 for column in code_columns(some)):
        free -= {"near", "normal", "few_normal"}
    for name, options in _OPTIONS.items():
        if name in free:
            top = score(best) if top is None else top
            for option in options:
                trial = _with(best, option)
                now = top if trial == best else score(trial)
                if now > top:
                    best, top = trial, now
    return best


def _short(settings: LearnSettings) -> LearnSettings:
    """Few passes with half of the states."""
    return settings._replace(
        passes=min(settings.passes, FIXED.short_passes), n_leaves=1, n_states=max(settings.n_states // 2, 1), full=0
    )


def _is_quick(settings: LearnSettings) -> bool:
    """Whether learning is over so soon that trials must be, too."""
    return settings.passes <= FIXED.quick_passes and settings.n_states <= FIXED.quick_states


def _n_leaves(table: CodeTable, settings: LearnSettings, seed: int) -> tuple[int, Learned | None]:
    """One leaf or eight, by draws and validation rows of short trials; with eight, these have half the states."""
    # Draws of the better choice are harder to tell from the rows by more than a limit (`draw_score`). Where they are
    # not, eight leaves must gain more validation log-likelihood than its standard error. The trials learn from all
    # rows. On fewer rows eight leaves would have fewer states each, and the comparison would favour one leaf. One leaf
    # is taken without a trial if there are too few rows for eight. Where learning is soon over, trials are of one pass
    # with half as many states again, in which one tree makes as many steps as each of the eight, and only tables of
    # numbers, which start locally, are tried. Columns that stand for several are tried as these: a combination that no
    # row of a leaf has costs likelihood there, but draws are better with eight leaves all the same (see the experiment
    # on enforced rules). Also what one leaf learned, of the table's own columns.
    if len(table.codes) < FIXED.leaves * settings.n_states * FIXED.rows_a_state:
        return 1, None
    quick = _short(settings)
    if _is_quick(settings):
        if settings.start == "shared":
            return 1, None
        quick = quick._replace(passes=1, n_states=max(settings.n_states // 4, 1), batch=len(table.codes))
    is_apart = any(table.views)
    if is_apart:
        table = table.apart()
    one, more = (
        quick._replace(n_leaves=leaves, n_states=max(quick.n_states // less, 1))
        for leaves, less in ((1, 1), (FIXED.leaves, 2))
    )
    first, other = (learn_trees(table, trial, seed) for trial in (one, more))
    gain = draw_score(table, other, seed) - draw_score(table, first, seed)
    is_better = exceeds(other.held_out, first.held_out, table.weight)
    if abs(gain) > (FIXED.quick_leaves_score if _is_quick(settings) else FIXED.leaves_score):
        is_better = gain > 0.0
    return (FIXED.leaves if is_better else 1), None if is_apart else first


def draw_score(table: CodeTable, learned: Learned, seed: int) -> float:
    """Told-apart score of codes drawn from hidden trees, beside those of rows, whose cells are missing in both."""
    random = np.random.default_rng([seed, 3])
    share = None if table.weight is None else table.weight / table.weight.sum()
    rows = table.codes[random.choice(len(table.codes), min(len(table.codes), QUICK_ROWS), share is not None, share)]
    each = random.multinomial(len(rows), learned.share / learned.share.sum())
    of_trees = [draw_codes(tree, n, random) for tree, n in zip(learned.trees, each.tolist(), strict=True)]
    drawn = np.where(rows < table.n_codes, random.permutation(np.concatenate(of_trees)), table.n_codes)
    n_levels = np.where(table.is_ordered, 0, table.n_codes + 1)
    names = tuple(map(str, range(len(n_levels))))
    real, synthetic = (
        TableCells(names, n_levels, np.where(table.is_ordered & (codes == table.n_codes), np.nan, codes))
        for codes in (rows, drawn)
    )
    return quick_score(real, synthetic, seed)


def _with(settings: LearnSettings, option: dict[str, Any]) -> LearnSettings:
    if "start" in option:
        return settings._replace(**option)
    return settings._replace(smoothing=settings.smoothing._replace(**option))


def _climb(
    settings: LearnSettings,
    n: int,
    held_out: Callable[[LearnSettings], np.ndarray],
    weight: np.ndarray | None,
    fewest: int,
) -> tuple[LearnSettings, np.ndarray]:
    """More and more states for n rows, until two in a row give no gain or there are too few rows a state."""
    # Any gain counts: states chosen by gains above their standard error were too few (see the experiment on the
    # population). Returns also the log-probabilities of the rows that the best trial held out.
    best, top, worse = settings, None, 0
    tried = [*(h for h in FIXED.states_tried if fewest <= h < settings.n_states), settings.n_states]
    for n_states in tried:
        if n_states > tried[0] and n_states * FIXED.rows_a_state > n:
            break
        trial = settings._replace(n_states=n_states)
        now = held_out(trial)
        if top is None or mean_of(now - top, weight) > 0.0:
            best, top, worse = trial, now, 0
        else:
            worse += 1
            if worse == 2:
                break
    assert top is not None
    return best, top


def settings_for_likelihood(
    table: CodeTable, settings: LearnSettings, is_free: tuple[bool, bool], seed: int
) -> LearnSettings:
    """Settings with dropout, and the states and smoothing of transitions of highest validation log-likelihood."""
    # Each trial is learned from all rows in all passes but those at the end. On some of the rows, in a few passes, many
    # states do not yet fit the rows too closely, and such trials choose too many. Trials of smoothing have half of the
    # states, which bounds the time. ``is_free`` says whether states and smoothing are chosen. Given states have no
    # dropout, and no trial of smoothing, where learning is soon over.

    def held_out(trial: LearnSettings) -> np.ndarray:
        return learn_trees(table, trial._replace(full=0, perturb=0.0), seed).held_out

    if is_free[0]:
        settings, _ = _climb(settings, len(table.codes), held_out, table.weight, 1)
    elif _is_quick(settings):
        return settings
    settings = settings._replace(dropout=FIXED.dropout)
    if is_free[1]:
        half = settings._replace(n_states=max(settings.n_states // 2, 1))
        smoothing = settings.smoothing._replace(transition=FIXED.more_transition)
        gain = held_out(half._replace(smoothing=smoothing)) - held_out(half)
        if mean_of(gain, table.weight) > 0.0:
            settings = settings._replace(smoothing=smoothing)
    return settings


def _some(table: CodeTable, settings: LearnSettings, seed: int) -> np.ndarray:
    """Rows of the trials: work falls with the cube of their share, since states fall with it, too."""
    rows = table.weighed_rows()
    whole = 3.0 * len(rows) * len(table.n_codes) * settings.n_states**2 * max(settings.passes, 1) * FIXED.trials
    most = max(
        int(len(rows) * min(FIXED.trial_share / FIXED.trials, FIXED.trial_work / whole) ** (1 / 3)), FIXED.trial_rows
    )
    return np.sort(np.random.default_rng(seed).permutation(rows)[:most])
