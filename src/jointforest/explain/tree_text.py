"""A whole tree as indented text."""

from __future__ import annotations

import heapq

import numpy as np

from ..ground.checks import check_number
from ..language.render import column_text, condition_text
from ..table.build_evidence import build
from .box_trees import BoxTrees
from .explanation import text_html
from .leaf_summaries import leaf_kind, leaf_summaries, summary_text
from .shown import shown_rule
from .tree_nodes import TreeNode, n_trees, tree_leaves, tree_nodes


class TreeText(str):
    """A tree as text, whose lines notebooks show one below the other."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return text_html(self)


def tree_text(forest: BoxTrees, tree: int, max_leaves: int | None = None) -> TreeText:
    """The nodes of a tree, one line each, and under each leaf what it says: see `Joint.rules`.

    Raises
    ------
    ValueError
        If there is no such tree, or ``max_leaves`` is no positive integer.
    """
    if max_leaves is not None:
        check_number("max_leaves", max_leaves, 1, whole=True, text="a positive integer or None")
    nodes = tree_nodes(forest, tree)
    mine = tree_leaves(forest, tree)
    folded = {} if max_leaves is None else _folded(nodes, int(max_leaves))
    hidden = {k for k, node in enumerate(nodes) if node.parent >= 0 and node.parent in folded}
    for k, node in enumerate(nodes):  # parents come before their children
        if node.parent in hidden:
            hidden.add(k)
    shown = [node.leaf for k, node in enumerate(nodes) if node.leaf >= 0 and k not in hidden]
    wanted = np.intersect1d(mine, shown)  # leaves of no weight say nothing
    says = dict(zip(wanted.tolist(), leaf_summaries(forest, build(forest.schema), wanted), strict=True))
    lines = [f"tree {tree} of {n_trees(forest)}: {len(mine)} leaves; shares are of the tree's rows"]
    if folded:
        lines[0] += f"; {len(mine) - len(wanted)} of them folded up (max_leaves={max_leaves})"
    for k, node in enumerate(nodes):
        if k in hidden:
            continue
        text = "(all rows)" if node.parent < 0 else _test_text(node, max_leaves is None)
        at = "" if node.leaf < 0 else f"  [{leaf_kind(forest, node.leaf)} {node.leaf}]"
        at = f"  [... {folded[k]} leaves]" if k in folded else at
        lines.append(f"{'  ' * node.depth}{text}  {100 * node.share:.1f} %{at}")
        if node.leaf in says:
            lines.append(f"{'  ' * node.depth}    {summary_text(forest.schema, says[node.leaf])}")
    return TreeText("\n".join(lines))


def _test_text(node: TreeNode, whole: bool) -> str:
    text = condition_text(column_text(node.column), node.test)
    return text if whole else shown_rule(text)


def _folded(nodes: list[TreeNode], most: int) -> dict[int, int]:
    """Inner nodes that stand for all below them, so that at most ``most`` ends are shown, with their numbers of leaves.

    Opened are the nodes that most rows reach.
    """
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
