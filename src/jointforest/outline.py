"""A whole tree as indented text."""

from __future__ import annotations

from typing import Any

import numpy as np

from .explain import leaf_kind
from .language.render import column_text, condition_text
from .leaf_answers import answers_text, leaf_answers
from .model import Model
from .rules import side_condition, split_conditions
from .table.evidence import build


def outline(model: Model, tree: int) -> str:
    """Every node of a tree, one line each, and under each leaf what it says: see `Joint.rules`.

    Raises
    ------
    ValueError
        If there is no such tree.
    """
    n_trees = len(model.trees.root) - model.has_background
    if isinstance(tree, bool) or not isinstance(tree, int | np.integer) or not 0 <= tree < n_trees:
        raise ValueError(f"tree must be the number of a tree, 0 to {n_trees - 1}, got {tree!r}")
    n_leaves = len(model.leaves.log_weight)
    mine = np.flatnonzero((model.leaves.tree[:n_leaves] == tree) & (model.leaves.log_weight > -np.inf))
    says = dict(zip(mine.tolist(), leaf_answers(model, build(model.schema), mine), strict=True))
    lines = [f"tree {tree} of {n_trees}: {len(mine)} leaves; shares are of the tree's rows"]
    # A stack, since trees may be deeper than Python's calls.
    start = np.ones(int(model.columns.level_start[-1]), dtype=bool)
    todo = [(int(model.trees.root[tree]), 0, "(all rows)", start)]
    while todo:
        node, depth, text, allowed = todo.pop()
        leaf = int(model.trees.leaf[node])
        if leaf < 0:
            sides = _sides(model, node, allowed)
            if len(sides) == 1:  # all levels that come here go one way: no test to show
                todo.append((sides[0][0], depth, text, allowed))
                continue
        share = f"{100 * float(model.trees.weight[node]):.1f} %"
        at = "" if leaf < 0 else f"  [{leaf_kind(model, leaf)} {leaf}]"
        lines.append(f"{'  ' * depth}{text}  {share}{at}")
        if leaf < 0:
            todo += [(child, depth + 1, test, reach) for child, test, reach in reversed(sides)]
        elif leaf in says:
            lines.append(f"{'  ' * depth}    {answers_text(model.schema, says[leaf])}")
    return "\n".join(lines)


def _sides(model: Model, node: int, allowed: np.ndarray) -> list[tuple[int, str, np.ndarray]]:
    """Children that some row can reach, each with its test and the levels (bool (S,)) that are possible below."""
    trees, columns = model.trees, model.columns
    j = int(trees.feature[node])
    column, slot = model.schema.columns[j], columns.slot[j]
    children = int(trees.left[node]), int(trees.right[node])
    if trees.levels_at[node] < 0:
        cut = float(trees.threshold[node])
        tests: tuple[Any, Any] = side_condition(column, -np.inf, cut), side_condition(column, cut, np.inf)
        reach = [allowed, allowed]
    else:
        first, end = int(columns.level_start[slot]), int(columns.level_start[slot + 1])
        k = np.arange(end - first)
        words = trees.left_levels[trees.levels_at[node] + k // 64]
        goes_left = (words >> (k % 64).astype(np.uint64)) & np.uint64(1) == 1
        reach = [allowed.copy(), allowed.copy()]
        reach[0][first:end] &= goes_left
        reach[1][first:end] &= ~goes_left
        left, right = (np.flatnonzero(side[first:end]) for side in reach)
        if not len(left) or not len(right):
            return [(children[0 if len(left) else 1], "", allowed)]
        tests = split_conditions(column, left, right)
    name = column_text(column.name)
    return [(children[i], condition_text(name, tests[i]), reach[i]) for i in (0, 1)]
