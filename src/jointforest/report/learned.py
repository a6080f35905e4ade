"""What was learned, in words: kinds of columns, what was compared, rules of a small tree."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..explain.box_trees import box_trees
from ..explain.tree_text import tree_text

MOST_LEAVES = 24
"""Leaves of a tree whose rules can be read."""


def facts(joint: Any) -> list[tuple[str, str]]:
    """Names and texts: columns, rows, parts, how it was chosen."""
    about = joint.info()
    kinds = Counter(column["kind"] for column in about["columns"])
    most = max((column["n_observed"] for column in about["columns"]), default=0)
    found = [
        ("columns", ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items(), key=lambda one: (-one[1], one[0])))),
        ("learned from", f"{most:,.0f} rows, counted by the known cells of the fullest column"),
        ("the joint", repr(joint)),
    ]
    if joint.epsilon:
        found.append(("background", f"{joint.epsilon:.2g} of the weight, for rows like none that was seen"))
    if joint.fitted_by is not None:
        found.append(("chosen by", joint.fitted_by.in_words))
    return found


def rules(joint: Any) -> str | None:
    """The rules of a joint that is one tree of few leaves; None of any other."""
    if joint.n_trees != 1 or not 1 < joint.n_leaves <= MOST_LEAVES or joint.n_states:
        return None
    return tree_text(box_trees(joint.model, "rules"), 0, MOST_LEAVES)
