"""A whole tree as indented text."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from ...cards.html import text_html
from ...data.evidence import build
from ...data.texts import column_text
from ...models.box_forest.box_trees import BoxTrees
from ...models.box_forest.leaves.levels import members
from ...models.box_forest.structure_kernels import MIXED
from ...query_language.render import condition_text
from ...runtime.parameters import check_number
from .explain import shown_rule
from .rules import leaf_summaries, side_condition, split_conditions, summary_text

# ---- Nodes and leaves of one tree as people see them: tests as conditions, shares of the tree's rows.


class TreeNode(NamedTuple):
    """A node of a tree as people see it.

    parent : int. Its place in the list of nodes; -1 of the root.
    column : str. Column that the test to come here is on; '' of the root, and below a node that mixes its children.
    share : float. Of the tree's rows.
    leaf : int. Number of the leaf, -1 of inner nodes.
    """

    depth: int
    parent: int
    column: str
    test: Any
    share: float
    leaf: int

    @property
    def text(self) -> str:
        """The test to come here."""
        return condition_text(column_text(self.column), self.test) if self.column else "one component"


def tree_nodes(forest: BoxTrees, tree: int) -> list[TreeNode]:
    """Nodes of a tree, parents before their children, left before right; those that no test leads to are left out."""
    _check_tree(forest, tree)
    nodes: list[TreeNode] = []
    # A stack, since trees may be deeper than Python's calls.
    start = np.ones(int(forest.columns.level_start[-1]), dtype=bool)
    todo: list[tuple[int, int, int, str, Any, np.ndarray]] = [(int(forest.trees.root[tree]), 0, -1, "", None, start)]
    while todo:
        node, depth, parent, column, test, allowed = todo.pop()
        leaf = int(forest.trees.leaf[node])
        if leaf < 0:
            sides = _children(forest, node, allowed)
            if len(sides) == 1:  # all levels that come here go one way: no test to show
                todo.append((sides[0][0], depth, parent, column, test, allowed))
                continue
            j = int(forest.trees.feature[node])
            split = "" if j == MIXED else forest.schema.names[j]
            todo += [(child, depth + 1, len(nodes), split, test, reach) for child, test, reach in reversed(sides)]
        nodes.append(TreeNode(depth, parent, column, test, float(forest.trees.weight[node]), leaf))
    return nodes


def tree_leaves(forest: BoxTrees, tree: int) -> np.ndarray:
    """Numbers of a tree's leaves, those without weight left out; a ValueError if there is no such tree."""
    _check_tree(forest, tree)
    return np.flatnonzero((forest.tree == tree) & (forest.log_weight > -np.inf))


def n_trees(forest: BoxTrees) -> int:
    """Number of trees, the background left out."""
    return len(forest.trees.root) - forest.has_background


def _check_tree(forest: BoxTrees, tree: int) -> None:
    n = n_trees(forest)
    check_number("tree", tree, 0, n - 1, whole=True, text=f"the number of a tree, 0 to {n - 1}")


def _children(forest: BoxTrees, node: int, allowed: np.ndarray) -> list[tuple[int, Any, np.ndarray]]:
    """Children that some row can reach, each with its test and the levels (bool (S,)) that are possible below."""
    trees, columns = forest.trees, forest.columns
    j = int(trees.feature[node])
    children = int(trees.left[node]), int(trees.right[node])
    if j == MIXED:
        return [(child, None, allowed) for child in children]
    column, slot = forest.schema.columns[j], columns.slot[j]
    if trees.levels_at[node] < 0:
        cut = float(trees.threshold[node])
        tests: tuple[Any, Any] = side_condition(column, -np.inf, cut), side_condition(column, cut, np.inf)
        reach = [allowed, allowed]
    else:
        first, end = int(columns.level_start[slot]), int(columns.level_start[slot + 1])
        goes_left = members(trees.left_levels[trees.levels_at[node] :], end - first)
        reach = [allowed.copy(), allowed.copy()]
        reach[0][first:end] &= goes_left
        reach[1][first:end] &= ~goes_left
        left, right = (np.flatnonzero(side[first:end]) for side in reach)
        if not len(left) or not len(right):
            return [(children[0 if len(left) else 1], None, allowed)]
        tests = split_conditions(column, left, right)
    return [(children[i], tests[i], reach[i]) for i in (0, 1)]


class TreeText(str):
    """A tree as text, whose lines notebooks show one below the other."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return text_html(self)


def tree_text(forest: BoxTrees, tree: int, max_leaves: int | None = None) -> TreeText:
    """The nodes of a tree, one line each, and under each leaf its summary: see `Joint.rules`."""
    if max_leaves is not None:
        check_number("max_leaves", max_leaves, 1, whole=True, text="a positive integer or None")
    nodes = tree_nodes(forest, tree)
    leaves = tree_leaves(forest, tree)
    folded = {} if max_leaves is None else _folded(nodes, int(max_leaves))
    hidden = {k for k, node in enumerate(nodes) if node.parent >= 0 and node.parent in folded}
    for k, node in enumerate(nodes):  # parents come before their children
        if node.parent in hidden:
            hidden.add(k)
    shown = [node.leaf for k, node in enumerate(nodes) if node.leaf >= 0 and k not in hidden]
    wanted = np.intersect1d(leaves, shown)  # leaves of no weight do not count
    says = dict(zip(wanted.tolist(), leaf_summaries(forest, build(forest.schema), wanted), strict=True))
    lines = [f"tree {tree} of {n_trees(forest)}: {len(leaves)} leaves; shares are of the tree's rows"]
    if folded:
        lines[0] += f"; {len(leaves) - len(wanted)} of them folded up (max_leaves={max_leaves})"
    for k, node in enumerate(nodes):
        if k in hidden:
            continue
        text = "(all rows)" if node.parent < 0 else _test_text(node, max_leaves is None)
        at = "" if node.leaf < 0 else f"  [{forest.leaf_kind(node.leaf)} {node.leaf}]"
        at = f"  [... {folded[k]} leaves]" if k in folded else at
        lines.append(f"{'  ' * node.depth}{text}  {100 * node.share:.1f}%{at}")
        if node.leaf in says:
            lines.append(f"{'  ' * node.depth}    {summary_text(forest.schema, says[node.leaf])}")
    return TreeText("\n".join(lines))


def _test_text(node: TreeNode, in_full: bool) -> str:
    return node.text if in_full else shown_rule(node.text)


def _folded(nodes: list[TreeNode], most: int) -> dict[int, int]:
    """Inner nodes shown as ends, so that at most ``most`` ends are shown, with their numbers of leaves."""
    # Opened are the nodes that most rows reach.
    children: list[list[int]] = [[] for _ in nodes]
    n_leaves = [int(node.leaf >= 0) for node in nodes]
    for k in range(len(nodes) - 1, 0, -1):
        children[nodes[k].parent].append(k)
        n_leaves[nodes[k].parent] += n_leaves[k]
    closed = [(-nodes[0].share, 0)] if children[0] else []
    ends = 1
    while closed and ends + len(children[closed[0][1]]) - 1 <= most:
        _, k = heapq.heappop(closed)
        ends += len(children[k]) - 1
        for child in children[k]:
            if children[child]:
                heapq.heappush(closed, (-nodes[child].share, child))
    return {k: n_leaves[k] for _, k in closed}
