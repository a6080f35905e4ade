"""The leaves that carry an answer, as rules with their weights."""

from __future__ import annotations

import math

import numpy as np

from ..forest.forest import Forest
from ..forest.posterior.posterior import posterior
from ..ground.checks import check_number
from ..table.evidence import Evidence
from ..trees.boxes import leaf_boxes
from .explanation import Explanation
from .leaf_summaries import leaf_kind, leaf_summaries, summary_text
from .rules import box_conditions, rule_text


def explain(forest: Forest, evidence: Evidence, k: int, n_jobs: int | None = -1) -> Explanation:
    """The k leaves with the largest weight given one row of evidence: see `Posterior.explain`.

    Raises
    ------
    ValueError
        If k is not a positive integer, or the evidence has probability 0.
    """
    check_number("k", k, 1, whole=True, text="a positive integer")
    post = posterior(forest, evidence, n_jobs)
    log_evidence = float(post.log_evidence[0])
    if log_evidence == -math.inf:
        raise ValueError("the evidence has probability 0: no leaf carries an answer; drop or widen a condition")
    most = np.argsort(-post.log_weight, kind="stable")[:k]
    leaf, log_weight = post.leaf[most], post.log_weight[most]
    boxes = leaf_boxes(forest.trees, forest.columns)
    found = [
        {
            "rule": rule_text(box_conditions(forest.schema, forest.columns, *(side[number] for side in boxes))),
            "weight": math.exp(log - log_evidence),
            "log_weight": log,
            "leaf": number,
            "tree": int(forest.leaves.tree[number]),
            "kind": leaf_kind(forest, number),
            "says": says,
        }
        for number, log, says in zip(
            leaf.tolist(), log_weight.tolist(), leaf_summaries(forest, evidence, leaf), strict=True
        )
    ]
    share = sum(rule["weight"] for rule in found)
    lines = [
        f"{len(found)} of the {len(post.leaf)} leaves that meet the evidence carry {100 * share:.1f} % of the answer"
    ]
    lines.append("   weight   log  rule")
    for rule in found:
        at = "" if rule["kind"] == "background" else f"  [tree {rule['tree']}, {rule['kind']} {rule['leaf']}]"
        shown = rule["rule"] or ("(background)" if rule["kind"] == "background" else "(all rows)")
        lines.append(f"{100 * rule['weight']:7.2f} % {rule['log_weight']:7.2f}  {shown}{at}")
        lines.append(" " * 19 + summary_text(forest.schema, rule["says"]))
    return Explanation(found, "\n".join(lines))
