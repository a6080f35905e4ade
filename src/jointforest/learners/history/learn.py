"""From prepared histories to a model: values or changes, the order of the columns, the trees of every target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...data.discretization.dependence import mutual_information
from ...data.discretization.discretizer import codes_of
from ...models.history import contexts
from ...models.history.columns import (
    GAP,
    CodedCells,
    Expectations,
    HistoryColumns,
    code_histories,
    last_known,
    no_expectations,
)
from ...models.history.contexts import CODE, HEAD, N_CLASSES, N_VALUES, NOW, OF_ROW, PREVIOUS, VALUE
from ...models.history.draw_kernels import cell_log_probabilities, collect_contexts, expected_classes, target_codes_of
from ...models.history.history_model import AFTER, BEFORE, BETWEEN, HistoryModel, impute_codes, line_of
from ...models.history.records import Conditionals, Histories, HistoryLayout, empty_state, of_subjects
from ...runtime.threads import map_ordered
from .constants import FIXED, Constants
from .grow_kernels import GrownTree, Room, SplitLimits, grow_ratio_tree, grow_value_tree, smooth_values
from .prepare import Prepared, with_changes


class HistoryTree(NamedTuple):
    """One tree of a target.

    sort : int. Sort of its classes: see `contexts`.
    feature, threshold, child : int32 array (M,). Feature -1 and child -1 at leaves.
    entry : float32 array (L, C). Entries of the leaves, in the order of their nodes.
    """

    sort: int
    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    entry: np.ndarray


@dataclass(frozen=True)
class Target:
    """What is to be predicted.

    number : int. Number of the target: see `Conditionals`.
    is_number : bool. Whether neighbouring codes are alike.
    may_miss : bool. Whether its cells may be missing; if not, the code of missing cells has no probability.
    kinds, columns : int16 array (K,). Its contexts.
    sorts : tuple of int. Sorts of classes of its ratio trees, in order.
    """

    number: int
    n_codes: int
    is_number: bool
    may_miss: bool
    kinds: np.ndarray
    columns: np.ndarray
    sorts: tuple[int, ...]


class TargetRows(NamedTuple):
    """Contexts uint8 (K, R) and codes int32 (R,) of the rows of a target."""

    values: np.ndarray
    code: np.ndarray


def rows_of(layout: HistoryLayout, histories: Histories, target: Target) -> TargetRows:
    """The rows of a target."""
    state = empty_state(1, layout.n_head, len(layout.n_codes))
    most = max(len(histories.code), len(histories.length))
    code = np.empty(most, dtype=np.int32)
    n = target_codes_of(layout, histories, target.number, state, code)
    values = np.empty((len(target.kinds), n), dtype=np.uint8)
    collect_contexts(layout, histories, target.kinds, target.columns, target.number, state, values)
    return TargetRows(values, code[:n])


def learn_target(
    layout: HistoryLayout, histories: Histories, target: Target, seed: int, constants: Constants = FIXED
) -> list[HistoryTree]:
    """The trees of a target: a value tree, then a ratio tree for each kind of classes."""
    rows = rows_of(layout, histories, target)
    trees = [value_tree(rows, target, seed, constants)]
    for sort in target.sorts:
        trees.append(ratio_tree(layout, histories, target, rows, trees, sort, seed, constants))
    return trees


def _room_for_tree(n_rows: int, min_rows: int, constants: Constants) -> GrownTree:
    """Room for a tree."""
    m = max(3, 2 * min(constants.leaves, n_rows // max(min_rows, 1) + 2))
    feature, threshold, child, parent = np.zeros((4, m), dtype=np.int32)
    start, stop = np.zeros((2, m), dtype=np.int64)
    rows, spare = np.zeros((2, n_rows), dtype=np.int64)
    return GrownTree(feature, threshold, child, parent, start, stop, rows, spare)


def grow_values(rows: TargetRows, n_codes: int, number: int, seed: int, constants: Constants) -> tuple[GrownTree, int]:
    """The nodes of a value tree, and their number."""
    grown = _room_for_tree(len(rows.code), constants.min_rows, constants)
    limits = SplitLimits(
        constants.min_rows, constants.value_gain, constants.gain_a_type, len(grown.feature), constants.split_rows, 0.0
    )
    count = np.arange(constants.split_rows + 2)
    room = Room(
        log_table=count * np.log(np.maximum(count, 1)),
        order=np.zeros(constants.split_rows, dtype=np.int32),
        place=np.zeros(N_VALUES + 1, dtype=np.int64),
        left=np.zeros(n_codes, dtype=np.int64),
        right=np.zeros(n_codes, dtype=np.int64),
    )
    n_nodes = grow_value_tree(rows.values, rows.code, grown, limits, room, seed, 2 * number)
    return grown, n_nodes


def value_tree(rows: TargetRows, target: Target, seed: int, constants: Constants) -> HistoryTree:
    """A tree whose leaves hold distributions over the codes."""
    n_codes = target.n_codes
    grown, n_nodes = grow_values(rows, n_codes, target.number, seed, constants)
    marginal = np.bincount(rows.code, minlength=n_codes) + 0.1
    marginal[0] = marginal[0] if target.may_miss else 0.0
    marginal /= marginal.sum()
    table = np.zeros((n_nodes, n_codes))
    smooth_values(
        grown, n_nodes, rows.code, int(target.is_number), constants.near, constants.far, marginal,
        np.zeros((3, n_codes)), table, np.zeros(n_codes + 2),
    )  # fmt: skip
    return _history_tree(VALUE, grown, n_nodes, table)


def ratio_tree(
    layout: HistoryLayout,
    histories: Histories,
    target: Target,
    rows: TargetRows,
    trees: Sequence[HistoryTree],
    sort: int,
    seed: int,
    constants: Constants,
) -> HistoryTree:
    """A tree whose leaves multiply the classes of the codes by observed over expected rows."""
    n, n_classes = len(rows.code), N_CLASSES[sort]
    kept = np.arange(len(target.kinds))
    if sort == CODE:
        j = (target.number - layout.n_head) % len(layout.n_codes)
        n_classes, kept = int(layout.n_codes[j]), of_others(target, j)
    state = empty_state(1, layout.n_head, len(layout.n_codes))
    observed, expected = np.empty(n, dtype=np.int64), np.empty((n, n_classes), dtype=np.float32)
    so_far = conditionals_of([(target, trees)], layout)
    expected_classes(layout, so_far, histories, target.number, sort, state, np.empty(64), observed, expected)
    grown = _room_for_tree(n, constants.ratio_rows, constants)
    limits = SplitLimits(
        constants.ratio_rows, constants.ratio_gain, constants.gain_a_type, len(grown.feature), constants.split_rows,
        constants.ratio_pseudo,
    )  # fmt: skip
    ratio = np.ones((len(grown.feature), n_classes))
    n_nodes = grow_ratio_tree(
        rows.values[kept], observed, expected, grown, limits, ratio, np.zeros((N_VALUES, n_classes)),
        np.zeros((N_VALUES, n_classes)), np.zeros((4, n_classes)), seed, 2 * target.number + 1,
    )  # fmt: skip
    feature = grown.feature[:n_nodes]
    feature[feature >= 0] = kept[feature[feature >= 0]]
    return _history_tree(sort, grown, n_nodes, ratio)


def of_others(target: Target, j: int) -> np.ndarray:
    """Numbers of the contexts of column j that do not look at the column itself."""
    kinds, columns = target.kinds, target.columns
    return np.flatnonzero(np.isin(kinds, (NOW, HEAD, *OF_ROW)) | ((kinds == PREVIOUS) & (columns != j)))


def _history_tree(sort: int, grown: GrownTree, n_nodes: int, table: np.ndarray) -> HistoryTree:
    feature = grown.feature[:n_nodes]
    order = depth_first(np.where(feature < 0, -1, grown.child[:n_nodes]))
    number = np.empty(n_nodes, dtype=np.int32)
    number[order] = np.arange(n_nodes)
    feature = feature[order]
    leaf = feature < 0
    child = np.where(leaf, -1, number[grown.child[:n_nodes][order]]).astype(np.int32)
    return HistoryTree(sort, feature, grown.threshold[:n_nodes][order], child, table[order[leaf]].astype(np.float32))


def depth_first(child: np.ndarray) -> np.ndarray:
    """Nodes of a tree (int64 (M,)) with small subtrees together, near each other in memory; children side by side.
    ``child`` (M,) is the left child of each node, which the right one follows; -1 at leaves."""
    left, order, waiting = child.tolist(), [0], [0]
    while waiting:
        first = left[waiting.pop()]
        if first >= 0:
            order += (first, first + 1)
            waiting += (first + 1, first)
    return np.array(order, dtype=np.int64)


def conditionals_of(learned: Sequence[tuple[Target, Sequence[HistoryTree]]], layout: HistoryLayout) -> Conditionals:
    """All trees as the arrays of kernels; targets without trees have none."""
    n_targets = layout.n_head + 2 * len(layout.n_codes)
    by_number = {target.number: (target, trees) for target, trees in learned}
    codes, start = np.ones(n_targets, dtype=np.int64), np.zeros(n_targets + 1, dtype=np.int64)
    sorts, roots, kinds, columns, thresholds, children, tables = [], [], [], [], [], [], []
    n_nodes = n_entries = 0
    for number in range(n_targets):
        if number in by_number:
            target, trees = by_number[number]
            codes[number] = target.n_codes
            for tree in trees:
                leaf = tree.feature < 0
                at = n_entries + np.arange(leaf.sum()) * tree.entry.shape[1]
                child = tree.child.astype(np.int64) + n_nodes
                child[leaf] = -1 - at
                sorts.append(tree.sort)
                roots.append(n_nodes)
                kinds.append(np.append(target.kinds, 0)[tree.feature])
                columns.append(np.append(target.columns, 0)[tree.feature])
                thresholds.append(tree.threshold)
                children.append(child)
                tables.append(tree.entry.ravel())
                n_nodes += len(leaf)
                n_entries += tree.entry.size
        start[number + 1] = len(sorts)
    return Conditionals(
        codes, start, np.array(sorts, dtype=np.int64), np.array(roots, dtype=np.int64),
        np.concatenate(kinds).astype(np.int16), np.concatenate(columns).astype(np.int16),
        np.concatenate(thresholds).astype(np.int16), np.concatenate(children), np.concatenate(tables),
    )  # fmt: skip


# ---- From prepared histories to a model: values or changes, the order of the columns, the trees of every target.

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


def _code(columns: HistoryColumns, prepared: Prepared) -> CodedCells:
    rows = prepared.rows
    return code_histories(columns, rows.start, prepared.X, rows.time, rows.length)


def _learn_all(
    columns: HistoryColumns, histories: Histories, targets: list[Target], seed: int, constants: Constants
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


# ---- The order in which the columns of a row are drawn, and which other columns each one looks at.


def take_subjects(histories: Histories, n_rows: int, seed: int) -> np.ndarray:
    """Some subjects, drawn at random, with about ``n_rows`` rows together: ascending numbers."""
    length = np.diff(histories.start)
    chosen = np.random.default_rng([seed, 1]).permutation(len(length))
    return np.sort(chosen[: 1 + np.searchsorted(np.cumsum(length[chosen]), n_rows)])


def order_rows(columns: HistoryColumns, histories: Histories) -> list[int]:
    """Numbers of the row variables in the order in which they are to be drawn."""
    # The time since the row before comes first. Columns of levels that mostly stay follow, those that stay most often
    # first, because what comes after them then keeps to them. The others follow in the order in which a maximum
    # spanning tree of mutual information (Prim 1957) reaches them from these, or from the column that the others say
    # most about.
    d = len(columns.rows)
    stays = np.array([stay_share(histories, j) for j in range(d)])
    is_gap = np.array([variable.source == GAP for variable in columns.rows])
    levels = np.array([variable.coding.column.is_categorical for variable in columns.rows])
    steady = levels & (stays >= FIXED.steady_share) & ~is_gap
    placed = np.flatnonzero(is_gap).tolist() + sorted(np.flatnonzero(steady).tolist(), key=lambda j: -stays[j])
    information = row_information(histories)
    information[is_gap] = information[:, is_gap] = 0.0
    rest = [j for j in range(d) if j not in placed]
    while rest:
        hubs = [j for j in placed if not is_gap[j]]
        reach = information[np.ix_(rest, hubs)].max(axis=1) if hubs else information[np.ix_(rest, rest)].sum(axis=1)
        placed.append(rest.pop(int(np.argmax(reach))))
    return placed


def stay_share(histories: Histories, j: int) -> float:
    """Share of rows after the first in which a column has the code of the row before."""
    code = histories.code[:, j]
    later = np.ones(len(code), dtype=bool)
    later[histories.start[:-1]] = False
    same = np.concatenate([[False], code[1:] == code[:-1]])
    return float(same[later].mean()) if later.any() else 0.0


def row_information(histories: Histories) -> np.ndarray:
    """Mutual information of each two columns of a row, (d, d), from classes of codes; 0 on the diagonal."""
    classes = np.minimum(histories.code // FIXED.codes_a_class, FIXED.classes - 1).astype(np.int32)
    found = mutual_information(classes, np.full(classes.shape[1], FIXED.classes))
    np.fill_diagonal(found, 0.0)
    return found


def others_of(columns: HistoryColumns, histories: Histories) -> list[list[int]]:
    """For each column of a row the other columns that its contexts have: the most informative ones, ascending."""
    d = len(columns.rows)
    if d - 1 <= FIXED.others:
        return [[i for i in range(d) if i != j] for j in range(d)]
    ranked = np.argsort(-row_information(histories), axis=1, kind="stable")
    return [sorted([i for i in ranked[j].tolist() if i != j][: FIXED.others]) for j in range(d)]


# ---- How much imputed means follow the straight line between known neighbours, learned from cells that are hidden.


def split_off(histories: Histories, seed: int, constants: Constants) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of subjects to learn a trial model from, and of others whose cells it imputes; both ascending."""
    sample = take_subjects(histories, constants.line_rows, seed)
    mixed = np.random.default_rng([seed, 4]).permutation(sample)
    rows = np.cumsum(np.diff(histories.start)[mixed])
    n = np.searchsorted(rows, constants.judged_line_share * rows[-1])
    return np.sort(mixed[n:]), np.sort(mixed[:n])


def learn_line_shares(
    columns: HistoryColumns,
    histories: Histories,
    prepared: Prepared,
    learn: Callable[[Histories], HistoryModel],
    seed: int,
    constants: Constants,
) -> np.ndarray:
    """Weights of the line for each column of a row, float64 (d, 3): by least squares over hidden cells."""
    # They are lower by one standard error, so that few cells or a few large errors do not move the means.
    #
    # A fifth of the numbers of some subjects is hidden, and imputed by a model that is learned from others. Both come
    # from a small sample: a larger one takes longer, and changes the weights little.
    numbers = [j for j, v in enumerate(columns.rows) if v.source >= 0 and not v.coding.column.is_categorical]
    kept, judged = split_off(histories, seed, constants)
    found = np.zeros((len(columns.rows), 3))
    if not numbers or not len(judged):
        return found
    rows = prepared.rows
    length = rows.length[judged]
    start = np.concatenate([[0], np.cumsum(length)])
    at = np.repeat(rows.start[judged] - start[:-1], length) + np.arange(start[-1])
    truth, time = prepared.X[at], None if rows.time is None else rows.time[at]
    X, rng = truth.copy(), np.random.default_rng([seed, 5])
    for j in numbers:
        X[rng.random(len(X)) < constants.hidden_share, columns.rows[j].source] = np.nan
    trial = learn(of_subjects(histories, kept))
    coded = code_histories(columns, start, X, time, length, empty_is_unknown=True)
    (means,) = impute_codes(trial, X, coded, time, "mean", 1, constants.line_hypotheses, seed)
    for j in numbers:
        source = columns.rows[j].source
        line, sides = line_of(start, time, X[:, source])
        for k in (BETWEEN, AFTER, BEFORE):
            at = np.flatnonzero((sides == k) & ~np.isnan(line) & ~np.isnan(truth[:, source]))
            if len(at) >= constants.fewest_hidden:
                away, error = line[at] - means[at, source], truth[at, source] - means[at, source]
                total = max(away @ away, 1e-300)
                share = (away @ error) / total
                uncertain = np.sqrt(((error - share * away) ** 2 * away**2).sum()) / total
                found[j, k] = np.clip(share - constants.line_doubt * uncertain, 0.0, 1.0)
    return found


# ---- Trees that tell the expected code of a number from the columns before it in its row.


Others = Sequence[Sequence[int]]
"""For each column of a row the other columns that its contexts have."""


class ExpectationTree(NamedTuple):
    """The tree of one column; its children count from its own first node."""

    kind: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    child: np.ndarray


def choose_expectations(
    columns: HistoryColumns, histories: Histories, others: Others, seed: int, constants: Constants
) -> Expectations:
    """Expectation trees of the columns of numbers whose held-out cells are more probable with them."""
    candidates = [j for j, variable in enumerate(columns.rows) if not variable.coding.column.is_categorical]
    subjects = take_subjects(histories, constants.order_rows, seed)
    n_judged = int(len(subjects) * constants.judged_share)
    judged = np.sort(np.random.default_rng([seed, 3]).permutation(subjects)[:n_judged])
    train, test = of_subjects(histories, np.setdiff1d(subjects, judged)), of_subjects(histories, judged)
    if n_judged == 0 or not candidates:
        return columns.expectations

    def work(j: int) -> ExpectationTree | None:
        tree = grow_expectation(columns, train, others, j, seed, constants)
        if len(tree.child) == 1:  # the columns before say nothing
            return None
        beside = replace(columns, expectations=_joined_conditionals({j: tree}, len(columns.rows)))
        scores = [_judge_expectations(one, train, test, others, j, seed, constants) for one in (columns, beside)]
        return grow_expectation(columns, histories, others, j, seed, constants) if scores[1] > scores[0] else None

    trees = list(map_ordered(work, [(j,) for j in candidates]))
    found = {j: tree for j, tree in zip(candidates, trees, strict=True) if tree is not None}
    return _joined_conditionals(found, len(columns.rows))


def grow_expectation(
    columns: HistoryColumns, histories: Histories, others: Others, j: int, seed: int, constants: Constants
) -> ExpectationTree:
    """A tree on the number of the row, constant columns and earlier columns; leaves hold -1 - their mean code."""
    start, earlier = histories.start, [i for i in others[j] if i < j]
    known = np.flatnonzero(histories.code[:, j] > 0)
    subject = np.repeat(np.arange(len(start) - 1), np.diff(start))[known]
    constant = range(len(columns.head) - int(columns.has_length))
    asked = [(contexts.POSITION, 0), *((contexts.HEAD, v) for v in constant), *((contexts.NOW, i) for i in earlier)]
    values = [count_bins(known - start[subject])]
    values += [histories.head[subject, v] for v in constant] + [histories.code[known, i] for i in earlier]
    code = histories.code[known, j].astype(np.int32)
    coarse = replace(constants, min_rows=constants.expectation_rows)
    rows = TargetRows(np.array(values).astype(np.uint8), code)
    grown, n = grow_values(
        rows, columns.rows[j].coding.n_codes, len(columns.head) + 2 * len(columns.rows) + j, seed, coarse
    )
    ends = zip(grown.start[:n].tolist(), grown.stop[:n].tolist(), strict=True)
    mean = np.array([code[grown.rows[a:b]].mean() if b > a else 1.0 for a, b in ends])
    child = np.where(grown.feature[:n] < 0, -1 - np.floor(mean + 0.5).astype(np.int64), grown.child[:n])
    kind, column = (np.array([*part, 0], dtype=np.int16)[grown.feature[:n]] for part in zip(*asked, strict=True))
    return ExpectationTree(kind, column, grown.threshold[:n].astype(np.int16), child)


def _joined_conditionals(trees: dict[int, ExpectationTree], d: int) -> Expectations:
    """The trees of some of d columns as the arrays of kernels."""
    found, n_nodes = no_expectations(d), 0
    for j, tree in trees.items():
        found.root[j] = n_nodes
        moved = tree._replace(child=np.where(tree.child >= 0, tree.child + n_nodes, tree.child))
        found = Expectations(found.root, *(np.concatenate(two) for two in zip(found[1:], moved, strict=True)))
        n_nodes += len(tree.child)
    return found


def _judge_expectations(
    columns: HistoryColumns, train: Histories, test: Histories, others: Others, j: int, seed: int, constants: Constants
) -> float:
    """Mean log-probability of the codes of column j in later rows of the test subjects."""
    layout = columns.layout
    target = targets_of(columns, others)[layout.n_head + len(columns.rows) + j]
    n, n_codes = len(test.code), int(layout.n_codes[j])
    trees = conditionals_of([(target, learn_target(layout, train, target, seed, constants))], layout)
    state = empty_state(1, layout.n_head, len(columns.rows))
    observed, expected = np.empty(n, dtype=np.int64), np.empty((n, n_codes), dtype=np.float32)
    m = expected_classes(layout, trees, test, target.number, contexts.CODE, state, np.empty(64), observed, expected)
    return float(np.log(expected[np.arange(m), observed[:m]] + 1e-9).mean()) if m else 0.0


def count_bins(n: np.ndarray) -> np.ndarray:
    """Counts as contexts: see `memory_kernels.count_bin`."""
    beyond = np.minimum(32 + (4.0 * np.log2(np.maximum(n, 32) / 32.0)).astype(np.int64), 127)
    return np.where(n <= 32, np.maximum(n, 0), beyond)


# ---- What the trees of each target may look at.


OWN = (contexts.LAG2, contexts.FIRST, contexts.BACK, contexts.KNOWN, contexts.CHANGES, contexts.RUN, contexts.DISTINCT)
"""Memories of the column itself."""
OWN_NUMBER = (contexts.MEAN, contexts.LOW, contexts.HIGH, contexts.FROM_FIRST, contexts.FROM_LAG2, contexts.FROM_MEAN)
"""Those that need an order of the codes."""
BESIDE_EXPECTED = (
    contexts.EXPECTED,
    contexts.FROM_EXPECTED,
    contexts.EXCESS,
    contexts.LAST_EXCESS,
    contexts.FROM_USUAL,
)
"""Those of columns with an expectation tree."""


def targets_of(columns: HistoryColumns, others: Sequence[Sequence[int]]) -> list[Target]:
    """All targets; ``others[j]`` are the columns of a row whose codes the contexts of column j have."""
    h, d = len(columns.head), len(columns.rows)
    constant = range(h - int(columns.has_length))
    found = []
    for v, variable in enumerate(columns.head):
        asked = [(contexts.HEAD, u) for u in range(v)]
        coding = variable.coding
        found.append(_target(v, coding.n_codes, not coding.column.is_categorical, coding.has_missing, asked, ()))
    for j, variable in enumerate(columns.rows):
        coding, earlier = variable.coding, [i for i in others[j] if i < j]
        of_head = [(contexts.HEAD, u) for u in constant]
        length = [(contexts.LENGTH, 0)] if columns.has_length else []
        is_number = not coding.column.is_categorical
        asked = length + of_head + [(contexts.NOW, i) for i in earlier]
        if coding.change is not None:
            asked.append((contexts.POSITION, 0))
        may_miss = coding.has_missing or variable.source == GAP  # no row is before a first one
        found.append(_target(h + j, coding.n_codes, is_number, may_miss, asked, ()))
    for j, variable in enumerate(columns.rows):
        coding, earlier = variable.coding, [i for i in others[j] if i < j]
        is_number = not coding.column.is_categorical
        asked = [
            (contexts.POSITION, 0),
            *([(contexts.LENGTH, 0), (contexts.REMAINING, 0)] if columns.has_length else []),
        ]
        asked += [(contexts.HEAD, u) for u in constant]
        asked += [(contexts.PREVIOUS, i) for i in (*others[j], j)]
        asked += [(kind, i) for i in earlier for kind in (contexts.NOW, contexts.CHANGED)]
        asked += [(kind, j) for kind in OWN + (OWN_NUMBER if is_number else ())]
        if coding.change is not None:
            asked.append((contexts.LAST_CHANGE, j))
        has_expected = columns.expectations.root[j] >= 0
        asked += [(kind, j) for kind in (BESIDE_EXPECTED if has_expected else ())]
        sorts: tuple[int, ...] = (
            (contexts.SOURCE, contexts.OFFSET_FIRST, contexts.OFFSET_MEAN, contexts.CODE)
            if is_number
            else (contexts.SOURCE, contexts.CODE)
        )
        if has_expected:
            sorts = (contexts.OFFSET_USUAL, *sorts)
        may_miss = coding.has_missing and variable.source != GAP
        found.append(_target(h + d + j, coding.n_targets, is_number, may_miss, asked, sorts))
    return found


def _target(
    number: int, n_codes: int, is_number: bool, may_miss: bool, asked: Sequence[tuple[int, int]], sorts: tuple[int, ...]
) -> Target:
    kinds = np.array([kind for kind, _ in asked], dtype=np.int16)
    return Target(number, n_codes, is_number, may_miss, kinds, np.array([i for _, i in asked], dtype=np.int16), sorts)
