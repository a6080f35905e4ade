"""Trees that tell the expected code of a number from the columns before it in its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...models.history.columns import Expectations, HistoryColumns, no_expectations
from ...models.history.contexts import CODE, HEAD, NOW, POSITION
from ...models.history.known_kernels import expected_classes
from ...models.history.records import Histories, empty_state, of_subjects
from ...runtime.threads import map_ordered
from .constants import Constants
from .order import take_subjects
from .targets import targets_of
from .trees import TargetRows, conditionals_of, grow_values, learn_target

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
        beside = replace(columns, expectations=_joined({j: tree}, len(columns.rows)))
        scores = [_judge(one, train, test, others, j, seed, constants) for one in (columns, beside)]
        return grow_expectation(columns, histories, others, j, seed, constants) if scores[1] > scores[0] else None

    trees = list(map_ordered(work, [(j,) for j in candidates]))
    found = {j: tree for j, tree in zip(candidates, trees, strict=True) if tree is not None}
    return _joined(found, len(columns.rows))


def grow_expectation(
    columns: HistoryColumns, histories: Histories, others: Others, j: int, seed: int, constants: Constants
) -> ExpectationTree:
    """A tree on the number of the row, constant columns and earlier columns; leaves hold -1 - their mean code."""
    start, earlier = histories.start, [i for i in others[j] if i < j]
    known = np.flatnonzero(histories.code[:, j] > 0)
    subject = np.repeat(np.arange(len(start) - 1), np.diff(start))[known]
    constant = range(len(columns.head) - int(columns.has_length))
    contexts = [(POSITION, 0), *((HEAD, v) for v in constant), *((NOW, i) for i in earlier)]
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
    kind, column = (np.array([*part, 0], dtype=np.int16)[grown.feature[:n]] for part in zip(*contexts, strict=True))
    return ExpectationTree(kind, column, grown.threshold[:n].astype(np.int16), child)


def _joined(trees: dict[int, ExpectationTree], d: int) -> Expectations:
    """The trees of some of d columns as the arrays of kernels."""
    found, n_nodes = no_expectations(d), 0
    for j, tree in trees.items():
        found.root[j] = n_nodes
        moved = tree._replace(child=np.where(tree.child >= 0, tree.child + n_nodes, tree.child))
        found = Expectations(found.root, *(np.concatenate(two) for two in zip(found[1:], moved, strict=True)))
        n_nodes += len(tree.child)
    return found


def _judge(
    columns: HistoryColumns,
    train: Histories,
    test: Histories,
    others: Others,
    j: int,
    seed: int,
    constants: Constants,
) -> float:
    """Mean log-probability of the codes of column j in later rows of the test subjects."""
    layout = columns.layout
    target = targets_of(columns, others)[layout.n_head + len(columns.rows) + j]
    n, n_codes = len(test.code), int(layout.n_codes[j])
    trees = conditionals_of([(target, learn_target(layout, train, target, seed, constants))], layout)
    state = empty_state(1, layout.n_head, len(columns.rows))
    observed, expected = np.empty(n, dtype=np.int64), np.empty((n, n_codes), dtype=np.float32)
    m = expected_classes(layout, trees, test, target.number, CODE, state, np.empty(64), observed, expected)
    return float(np.log(expected[np.arange(m), observed[:m]] + 1e-9).mean()) if m else 0.0


def count_bins(n: np.ndarray) -> np.ndarray:
    """Counts as contexts: see `memory_kernels.count_bin`."""
    beyond = np.minimum(32 + (4.0 * np.log2(np.maximum(n, 32) / 32.0)).astype(np.int64), 127)
    return np.where(n <= 32, np.maximum(n, 0), beyond)
