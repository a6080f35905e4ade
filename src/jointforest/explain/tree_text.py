"""A whole tree as indented text."""

from __future__ import annotations

from ..forest.forest import Forest
from ..language.render import column_text, condition_text
from ..table.build_evidence import build
from .leaf_summaries import leaf_kind, leaf_summaries, summary_text
from .tree_nodes import n_trees, tree_leaves, tree_nodes


def tree_text(forest: Forest, tree: int) -> str:
    """Every node of a tree, one line each, and under each leaf what it says: see `Joint.rules`.

    Raises
    ------
    ValueError
        If there is no such tree.
    """
    nodes = tree_nodes(forest, tree)
    mine = tree_leaves(forest, tree)
    says = dict(zip(mine.tolist(), leaf_summaries(forest, build(forest.schema), mine), strict=True))
    lines = [f"tree {tree} of {n_trees(forest)}: {len(mine)} leaves; shares are of the tree's rows"]
    for node in nodes:
        text = "(all rows)" if node.parent < 0 else condition_text(column_text(node.column), node.test)
        at = "" if node.leaf < 0 else f"  [{leaf_kind(forest, node.leaf)} {node.leaf}]"
        lines.append(f"{'  ' * node.depth}{text}  {100 * node.share:.1f} %{at}")
        if node.leaf in says:
            lines.append(f"{'  ' * node.depth}    {summary_text(forest.schema, says[node.leaf])}")
    return "\n".join(lines)
