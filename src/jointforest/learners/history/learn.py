"""From prepared histories to a model: values or changes, the order of the columns, the trees of every target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...data.discretization.discretizer import codes_of
from ...models.history.columns import Coded, HistoryColumns, code_histories, last_known, no_expectations
from ...models.history.history_model import HistoryModel
from ...models.history.known_kernels import cell_log_probabilities
from ...models.history.records import Histories, empty_state, of_subjects
from ...runtime.threads import map_ordered
from .constants import Constants
from .expectations import choose_expectations
from .lines import learn_line_shares
from .order import order_rows, others_of, take_subjects
from .prepare import Prepared, with_changes
from .targets import targets_of
from .trees import HistoryTree, Target, conditionals_of, learn_target

Tell = Callable[[str], None]


def learn_histories(prepared: Prepared, seed: int, constants: Constants, tell: Tell) -> HistoryModel:
    """The model of histories; ``tell`` gets a text of what is done."""
    columns = choose_changes(prepared, seed, constants)
    coded = _code(columns, prepared)
    sample = of_subjects(coded.histories, take_subjects(coded.histories, constants.order_rows, seed))
    order = order_rows(columns, sample)
    columns = replace(columns, rows=tuple(columns.rows[j] for j in order))
    names = [variable.coding.column.name for variable in columns.rows]
    tell(f"{len(columns.head)} constant variables; the columns of a row are drawn in this order: {', '.join(names)}")
    histories = _code(columns, prepared).histories
    others = others_of(columns, histories)
    columns = replace(columns, expectations=choose_expectations(columns, histories, others, seed, constants))
    targets = targets_of(columns, others)
    lengths, counts = np.unique(prepared.rows.length, return_counts=True)
    none = np.zeros((len(columns.rows), 3))

    def model_of(some: Histories) -> HistoryModel:
        learned = _learn_all(columns, some, targets, seed, constants)
        return HistoryModel(columns, conditionals_of(learned, columns.layout), lengths, counts, none)

    shares = learn_line_shares(columns, histories, prepared, model_of, seed, constants)
    return replace(model_of(histories), line_share=shares)


def _code(columns: HistoryColumns, prepared: Prepared) -> Coded:
    rows = prepared.rows
    return code_histories(columns, rows.start, prepared.X, rows.time, rows.length)


def _learn_all(
    columns: HistoryColumns,
    histories: Histories,
    targets: list[Target],
    seed: int,
    constants: Constants,
) -> list[tuple[Target, list[HistoryTree]]]:
    """The trees of all targets, those with most work first."""
    layout = columns.layout
    ranked = sorted(range(len(targets)), key=lambda k: -targets[k].number)

    def work(k: int) -> list[HistoryTree]:
        return learn_target(layout, histories, targets[k], seed, constants)

    found = dict(zip(ranked, map_ordered(work, [(k,) for k in ranked], "learning histories"), strict=True))
    return [(targets[k], found[k]) for k in range(len(targets))]


# ---- Values or changes.


def choose_changes(prepared: Prepared, seed: int, constants: Constants) -> HistoryColumns:
    """The columns, with changes predicted instead of values where that makes held-out subjects more probable."""
    columns, rows = prepared.columns, prepared.rows
    is_first = np.zeros(len(prepared.X), dtype=bool)
    is_first[rows.start[:-1]] = True
    candidates = [j for j in range(len(columns.rows)) if _may_change(columns, prepared, j, is_first, constants)]
    if not candidates:
        return columns
    changed = {j: with_changes(columns.rows[j], prepared.X[:, columns.rows[j].source], is_first) for j in candidates}

    def work(j: int) -> bool:
        by_value = replace(columns, rows=(columns.rows[j],), expectations=no_expectations(1))
        by_change = replace(by_value, rows=(changed[j],))
        scores = [_judge(one, prepared, seed, constants) for one in (by_value, by_change)]
        return scores[1] > scores[0]

    better = list(map_ordered(work, [(j,) for j in candidates]))
    chosen = {j for j, is_better in zip(candidates, better, strict=True) if is_better}
    return replace(columns, rows=tuple(changed[j] if j in chosen else v for j, v in enumerate(columns.rows)))


def _may_change(
    columns: HistoryColumns, prepared: Prepared, j: int, is_first: np.ndarray, constants: Constants
) -> bool:
    """Whether a row variable is a column of numbers, none missing, with enough of them in bins of several values."""
    # Without a grid, its values must not repeat: the mass of an unknown value that repeats a later one is not drawn.
    variable = columns.rows[j]
    coding = variable.coding
    if variable.source < 0 or coding.column.is_categorical or coding.has_missing:
        return False
    x = prepared.X[:, variable.source]
    if coding.column.step == 0.0 and (x == last_known(x, is_first)).mean() > constants.still_share:
        return False
    code, _ = codes_of(coding.scale, x)
    return float((~coding.is_single[code]).mean()) >= constants.binned_share


def _judge(columns: HistoryColumns, prepared: Prepared, seed: int, constants: Constants) -> float:
    """Mean log-density of the cells of one column in held-out subjects, from a sample."""
    coded = _code(columns, prepared)
    subjects = take_subjects(coded.histories, constants.order_rows, seed)
    n_judged = max(1, int(len(subjects) * constants.judged_share))
    judged = np.sort(np.random.default_rng([seed, 2]).permutation(subjects)[:n_judged])
    kept = np.setdiff1d(subjects, judged)
    if len(kept) == 0:
        return 0.0
    layout = columns.layout
    train, test = of_subjects(coded.histories, kept), of_subjects(coded.histories, judged)
    # without ratio trees, which take longer
    targets = [replace(target, sorts=()) for target in targets_of(columns, [[]])]
    learned = [(target, learn_target(layout, train, target, seed, constants)) for target in targets]
    conditionals = conditionals_of(learned, layout)
    of_head, of_cell = np.zeros(test.head.shape), np.zeros(test.code.shape)
    cell_log_probabilities(layout, conditionals, test, empty_state(1, layout.n_head, 1), np.empty(66), of_head, of_cell)
    length = np.diff(coded.histories.start)[judged]
    start = np.concatenate([[0], np.cumsum(length)])
    rows = np.repeat(coded.histories.start[judged] - start[:-1], length) + np.arange(start[-1])
    return float((of_cell[:, 0] + coded.row_base[rows, 0]).mean())
