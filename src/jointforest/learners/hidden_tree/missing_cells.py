"""Whether cells are missing, learned after a joint that sums over missing cells."""

# The joint is that of complete rows, so a missing cell is no evidence of a state. Columns that miss cells together
# share a node without a column of its own, whose two states are known and missing. It hangs below the column, or below
# the other such node, that explains most of the missing cells (Chow, Liu 1968). Nothing hangs below it but nodes of its
# kind, so it changes no probability of a value. Columns whose missing cells depend on nothing miss them with one
# probability.
#
# A column of at most ``FIXED.most_codes_of_missing`` codes gets a node of its codes below the node of its states, and
# missing cells hang below that: the rows of a rare code are spread over many states, which would lose most of what it
# says.

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...data.discretization.dependence import coarse, times_log
from ...data.schema import Schema
from ...models.hidden_tree.hidden_trees import HiddenTrees, TreeTables
from ...models.hidden_tree.messages import down, up
from ...models.hidden_tree.posterior import batch_rows
from ...runtime.threads import chunks
from .codes import scales_of, table_of
from .constants import FIXED
from .structure import CodeTable

LEAST_MASS, LEAST_LOG = 1e-30, -1e300
"""Smallest divisor and log-probability, for rows to which trees give probability 0; such rows count nothing there."""


class Group(NamedTuple):
    """Columns that miss their cells together.

    columns : int64 array
    parent : int. The column, or the number of the earlier group, that explains most of the missing cells.
    is_below_group : bool
    is_dependent : bool. Whether the parent explains any of them; if not, they are as frequent in all states of the
        parent.
    """

    columns: np.ndarray
    parent: int
    is_below_group: bool
    is_dependent: bool


def with_missing_cells(hidden: HiddenTrees, table: CodeTable, seed: int) -> HiddenTrees:
    """The hidden trees, which have a node for each column of the table, with probabilities of missing cells."""
    # They are expected counts over some of the rows: of cells that are missing, by state of the parent.
    lost = table.codes == table.n_codes
    if not lost.any():
        return hidden
    usual = np.average(lost, axis=0, weights=table.weight)
    groups = _groups(table, lost)
    rows = np.sort(np.random.default_rng(seed).permutation(table.weighed_rows())[: FIXED.start_rows])
    few = table.take(rows)
    indicator = np.column_stack([lost[rows, group.columns[0]] for group in groups] or [np.empty((len(rows), 0))])
    weight = np.ones((len(rows), 1)) if few.weight is None else few.weight[:, None]
    parents = sorted({group.parent for group in groups if not group.is_below_group})
    of_codes = [j for j in parents if table.n_codes[j] <= FIXED.most_codes_of_missing]
    of_states = [j for j in parents if j not in of_codes]
    heavy = weight * np.hstack([np.ones_like(weight), indicator])
    sums = _sums_by_state(hidden, few.codes, heavy, of_states) if of_states else [{}] * len(hidden.trees)
    by_code = {j: _sums_by_code(few.codes[:, j], heavy, int(table.n_codes[j])) for j in of_codes}
    by_indicator = heavy.T @ np.hstack([np.ones_like(weight), indicator])
    return replace(
        hidden,
        trees=tuple(
            _with_nodes(tree, usual, groups, by_code, by_state, by_indicator)
            for tree, by_state in zip(hidden.trees, sums, strict=True)
        ),
    )


def columns_explain(schema: Schema, cells: np.ndarray) -> bool:
    """Whether a column explains a large part of which cells (n, d) of another one are missing."""
    lost = np.isnan(cells)
    columns = np.flatnonzero(lost.any(axis=0) & ~lost.all(axis=0))
    if not len(columns):
        return False
    table = table_of(schema, scales_of(schema, cells, None, FIXED.fewest_bins, 0.0, False), cells, None)
    indicator, n = lost[:, columns].astype(np.float64), len(cells)
    ratio = _ratios_with_columns(table, indicator, np.ones(n))
    ratio[np.arange(len(columns)), columns] = -np.inf  # a cell says nothing of whether it is missing itself
    n_lost = indicator.sum(axis=0)
    entropy = n * np.log(n) - times_log(n_lost) - times_log(n - n_lost)
    return bool((ratio.max(axis=1) > np.maximum(FIXED.missing_evidence, FIXED.explained * entropy)).any())


def _groups(table: CodeTable, lost: np.ndarray) -> list[Group]:
    """Groups of columns whose missing cells depend on others, parents before their children."""
    # Dependence is the log-likelihood ratio of a two-way table of counts, less what chance gives. It must exceed
    # ``FIXED.missing_evidence``.
    by_pattern: dict[bytes, list[int]] = {}
    for j in np.flatnonzero(lost.any(axis=0) & ~lost.all(axis=0)).tolist():
        by_pattern.setdefault(np.packbits(lost[:, j]).tobytes(), []).append(j)
    columns = [np.array(of_pattern) for of_pattern in by_pattern.values()]
    if not columns:
        return []
    weight = np.ones(len(lost)) if table.weight is None else table.weight
    indicator = lost[:, [of_group[0] for of_group in columns]].astype(np.float64)
    below_column = _ratios_with_columns(table, indicator, weight)
    for i, of_group in enumerate(columns):
        below_column[i, of_group] = -np.inf  # a cell says nothing of whether it is missing itself
    both, n = indicator.T @ (indicator * weight[:, None]), weight.sum()
    each = np.diag(both)
    corners = (both, each[:, None] - both, each - both, n - each[:, None] - each + both)
    below_group = sum(times_log(np.maximum(corner, 0.0)) for corner in corners) + times_log(n) - 0.5
    below_group -= (times_log(each) + times_log(n - each))[:, None] + times_log(each) + times_log(n - each)
    np.fill_diagonal(below_group, 0.0)
    return _linked(columns, below_column, np.asarray(below_group))


def _linked(columns: list[np.ndarray], below_column: np.ndarray, below_group: np.ndarray) -> list[Group]:
    """Groups joined one after the other by the strongest link to a column or to a group before (Prim)."""
    parent, strength = below_column.argmax(axis=1), below_column.max(axis=1)
    is_below_group, is_left = np.zeros(len(columns), bool), np.ones(len(columns), bool)
    found: list[Group] = []
    while is_left.any() and len(found) < FIXED.most_missing_groups:
        new = int(np.where(is_left, strength, -np.inf).argmax())
        is_left[new] = False
        most = max(strength[new], below_group[is_left, new].max(initial=0.0))
        if len(columns[new]) == 1 and most < FIXED.missing_evidence:
            continue
        is_dependent = bool(strength[new] >= FIXED.missing_evidence)
        found.append(Group(columns[new], int(parent[new]), bool(is_below_group[new]), is_dependent))
        closer = is_left & (below_group[:, new] > strength)
        parent[closer], strength[closer], is_below_group[closer] = len(found) - 1, below_group[closer, new], True
    return found


def _ratios_with_columns(table: CodeTable, indicator: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Log-likelihood ratio of each indicator (n, r) and each column, over the rows that know it, (r, d)."""
    classes, size = coarse(table.codes, table.n_codes, table.is_ordered)
    start = np.concatenate([[0], np.cumsum(size + 1)])  # the last class of a column is a missing cell
    counts = np.zeros((indicator.shape[1] + 1, start[-1]))
    for first in range(0, len(classes), 8_192):
        rows = slice(first, first + 8_192)
        at = start[:-1] + np.where(classes[rows] < 0, size, classes[rows])
        hot = np.zeros((len(at), start[-1]), np.float32)
        hot[np.arange(len(at))[:, None], at] = weight[rows, None]
        counts += np.column_stack([indicator[rows], np.ones(len(at))]).T @ hot
    counts[:, start[1:] - 1] = 0.0
    missing, every = counts[:-1], counts[-1]

    def by_column(x: np.ndarray) -> np.ndarray:
        return np.add.reduceat(x, start[:-1], axis=-1)

    ratio = by_column(times_log(missing) + times_log(every - missing) - times_log(every))
    ratio -= times_log(by_column(missing)) + times_log(by_column(every - missing)) - times_log(by_column(every))
    ratio -= np.maximum(by_column((every > 0.0).astype(np.float64)) - 1.0, 0.0) / 2
    # a column says nothing of rows that do not know it: if these miss the cells more or less often, it is no parent
    n, n_missing = weight.sum(), indicator.T @ weight
    known, of_known = by_column(every), by_column(missing)
    rest, of_rest = n - known, n_missing[:, None] - of_known
    share = np.clip(of_known / np.maximum(known, 1e-300), 1e-3, 1.0 - 1e-3)
    apart = times_log(of_rest) + times_log(rest - of_rest) - times_log(rest)
    apart -= of_rest * np.log(share) + (rest - of_rest) * np.log1p(-share)
    return np.asarray(np.where(apart > FIXED.missing_evidence, -np.inf, ratio))


def _sums_by_code(codes: np.ndarray, heavy: np.ndarray, n_codes: int) -> np.ndarray:
    """``heavy`` (n, r) summed over the rows of each code, (K, r); rows that do not know it count nothing."""
    sums = np.zeros((n_codes + 1, heavy.shape[1]))
    np.add.at(sums, codes, heavy)
    return sums[:-1]


def _sums_by_state(
    hidden: HiddenTrees, codes: np.ndarray, heavy: np.ndarray, columns: list[int]
) -> list[dict[int, np.ndarray]]:
    """``heavy`` (n, r) summed over rows, weighted by the posterior probabilities of tree and state: (H, r)."""
    # There is a dict for each tree, with the states of each of some columns.
    sums = [{j: np.zeros((tree.n_states[tree.node[j]], heavy.shape[1])) for j in columns} for tree in hidden.trees]
    for first, last in chunks(len(codes), batch_rows(hidden)):
        code, number = codes[first:last], heavy[first:last]
        rows = [np.flatnonzero(possible) for possible in may_be_of(hidden, code).T]  # a complete row is in few boxes
        upward = [
            up(tree, [tree.by_code[k][code[own, j]] for k, j in enumerate(tree.column.tolist())], len(own))
            for tree, own in zip(hidden.trees, rows, strict=True)
        ]
        log_joint = np.full((len(code), len(rows)), -np.inf)
        for t, (of, own) in enumerate(zip(upward, rows, strict=True)):
            log_joint[own, t] = of.log_probability + hidden.log_weight[t]
        top = np.maximum(np.logaddexp.reduce(log_joint, axis=1, keepdims=True), LEAST_LOG)
        share = np.exp(log_joint - top)
        for t, tree in enumerate(hidden.trees):
            node = {j: tree.node[j] for j in columns}
            downward = down(tree, upward[t], [*node.values()])
            for j, k in node.items():
                state = downward.state(k)
                state = state * (share[rows[t], t] / np.maximum(state.sum(axis=1), LEAST_MASS))[:, None]
                sums[t][j] += state.T @ number[rows[t]]
    return sums


def may_be_of(hidden: HiddenTrees, codes: np.ndarray) -> np.ndarray:
    """Whether rows of codes (n, d) may come from each tree, bool (n, T)."""
    can_be = np.ones((len(codes), len(hidden.trees)), bool)
    for j, support in enumerate(hidden.support or ()):
        can_be &= np.vstack([support, np.ones((1, support.shape[1]), bool)])[codes[:, j]]
    return can_be


def _with_nodes(
    tree: TreeTables,
    usual: np.ndarray,
    groups: list[Group],
    by_code: dict[int, np.ndarray],
    by_state: dict[int, np.ndarray],
    by_indicator: np.ndarray,
) -> TreeTables:
    """The tree with a node for the codes of each column of ``by_code``, then one for each group, after its others."""
    # ``usual`` (d,) are the columns' shares of missing cells. ``by_code`` are sums over the rows of each code, of rows
    # and of those that miss the cells of each group; ``by_state`` are the same of a tree's states, by column.
    # ``by_indicator`` are the same sums over rows that miss the cells of a group.
    tree = _with_codes(tree, list(by_code))
    m, dtype = len(tree), tree.dtype
    parent, transition = tree.parent.tolist(), list(tree.transition)
    at = np.arange(m + len(groups), dtype=np.int32)
    of_node = [usual[j] if j >= 0 else 0.0 for j in tree.column.tolist()]
    blank = [np.full(states, share, dtype) for states, share in zip(tree.n_states, of_node, strict=True)]
    by_column = by_state | by_code
    for i, group in enumerate(groups):
        if group.is_below_group:
            parent.append(m + group.parent)
            missing = by_indicator[[0, 1 + group.parent]][:, [0, 1 + i]]
            rows, lost = (missing - np.array([missing[1], [0.0, 0.0]])).T
        else:
            parent.append(tree.node[group.parent])
            rows, lost = by_column[group.parent][:, [0, 1 + i]].T
        of_all = usual[group.columns[0]]
        share = (lost + FIXED.missing_rows * of_all) / (rows + FIXED.missing_rows)
        share = share if group.is_dependent else np.full_like(share, of_all)
        transition.append(np.stack([1.0 - share, share], axis=1).astype(dtype))
        blank.append(np.array([0.0, 1.0], dtype))
        at[[tree.node[j] for j in group.columns.tolist()]] = m + i
    return TreeTables(
        np.append(tree.column, np.full(len(groups), -1, np.int32)),
        np.array(parent, np.int32),
        tuple(transition),
        tree.emission + (np.empty((2, 0), dtype),) * len(groups),
        tuple(blank),
        at,
    )


def _with_codes(tree: TreeTables, columns: list[int]) -> TreeTables:
    """The tree in which some columns have a node whose states are their codes, below the node of their states."""
    column, parent = tree.column.copy(), tree.parent.tolist()
    transition, emission = list(tree.transition), list(tree.emission)
    for j in columns:
        k = tree.node[j]
        column[k] = -1
        parent.append(k)
        transition.append(emission[k])
        emission.append(np.eye(emission[k].shape[1], dtype=tree.dtype))
        emission[k] = emission[k][:, :0]
    return TreeTables(
        np.append(column, np.array(columns, np.int32)), np.array(parent, np.int32), tuple(transition), tuple(emission)
    )


def columns_alone(tree: TreeTables) -> TreeTables:
    """The tree without nodes of missing cells and of codes: a node for each column."""
    m = len(tree.node)
    column, emission = tree.column[:m].copy(), list(tree.emission[:m])
    for j, k in tree.node.items():
        if k >= m:
            column[tree.parent[k]], emission[tree.parent[k]] = j, tree.transition[k]
    return TreeTables(column, tree.parent[:m], tree.transition[:m], tuple(emission))


def with_nodes_of(tree: TreeTables, other: TreeTables) -> TreeTables:
    """The tree, which has a node for each column, with the nodes of missing cells and of codes of another one."""
    m = len(tree)
    tree = _with_codes(tree, other.column[m:][other.column[m:] >= 0].tolist())
    n = len(tree)
    return replace(
        other, transition=tree.transition + other.transition[n:], emission=tree.emission + other.emission[n:]
    )
