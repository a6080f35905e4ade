"""The leaves and hidden states that carry an answer, as rules with their weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..forest.forest import Forest
from ..forest.posterior.posterior import posterior
from ..ground.checks import check_number
from ..hidden.part import HiddenPart
from ..hidden.posterior import tree_log_density
from ..model.model import Model
from ..queries.posterior.mixing import log_joint
from ..table.evidence import Evidence
from ..table.schema import Schema
from .box_trees import BoxTrees, of_part
from .explanation import Explanation
from .leaf_summaries import leaf_kind, leaf_summaries, summary_text
from .rules import box_conditions, rule_text
from .shown import shown_rule
from .states import state_rules


def explain(model: Model, evidence: Evidence, k: int, n_jobs: int | None = -1) -> Explanation:
    """The k leaves or states with the largest weight given one row of evidence: see `Posterior.explain`.

    Raises
    ------
    ValueError
        If k is not a positive integer, or the evidence has probability 0, or a part is neither a forest nor hidden
        trees.
    """
    check_number("k", k, 1, whole=True, text="a positive integer")
    each = log_joint(model, evidence, n_jobs)[0] if len(model.parts) > 1 else np.zeros(1)
    share = np.exp(each - np.logaddexp.reduce(each)) if np.isfinite(each).any() else each
    found, met = [], {"leaves": 0, "states": 0}
    for number, part in enumerate(model.parts):
        if not share[number] > 0.0:
            continue
        if (trees := of_part(part)) is not None:
            rules, n = _leaf_rules(trees, evidence, k, n_jobs)
            met["leaves"] += n
        elif isinstance(part, HiddenPart) and part.log_density(evidence)[0] > -math.inf:
            rules, n = state_rules(part.hidden, evidence, k)
            met["states"] += n
        elif isinstance(part, HiddenPart):
            rules = []
        else:
            raise ValueError(f"an explanation needs forests and hidden trees; this joint has the part: {part.kind}")
        for rule in rules:
            rule["weight"] *= float(share[number])
            rule["log_weight"] += float(model.log_weight[number])
            if len(model.parts) > 1:
                rule["part"] = number
        found += rules
    if not found:
        raise ValueError("the evidence has probability 0: no leaf carries an answer; drop or widen a condition")
    found = sorted(found, key=lambda rule: -rule["weight"])[:k]
    return Explanation(found, _text(model.schema, found, met))


def _met_leaves(trees: BoxTrees, evidence: Evidence, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Leaves that one row of evidence meets, and log p(leaf, evidence) of each."""
    if isinstance(trees.within, Forest):
        post = posterior(trees.within, evidence, n_jobs)
        return post.leaf, post.log_weight
    assert trees.within.grown is not None
    log_weight = tree_log_density(trees.within, evidence, n_jobs)[0]
    met = log_weight > -math.inf
    return trees.within.grown.leaf[met], log_weight[met]


def _leaf_rules(trees: BoxTrees, evidence: Evidence, k: int, n_jobs: int | None) -> tuple[list[dict[str, Any]], int]:
    """The k leaves of a part with the largest weight, none if the evidence is impossible; and how many it meets."""
    leaf, log_weight = _met_leaves(trees, evidence, n_jobs)
    n, log_evidence = len(leaf), float(np.logaddexp.reduce(log_weight, initial=-math.inf))
    if log_evidence == -math.inf:
        return [], 0
    most = np.argsort(-log_weight, kind="stable")[:k]
    leaf, log_weight = leaf[most], log_weight[most]
    found = [
        {
            "rule": rule_text(box_conditions(trees.schema, trees.columns, *(side[number] for side in trees.boxes))),
            "weight": math.exp(log - log_evidence),
            "log_weight": log,
            "leaf": number,
            "tree": int(trees.tree[number]),
            "kind": leaf_kind(trees, number),
            "says": says,
        }
        for number, log, says in zip(
            leaf.tolist(), log_weight.tolist(), leaf_summaries(trees, evidence, leaf), strict=True
        )
    ]
    return found, n


def _text(schema: Schema, found: list[dict[str, Any]], met: dict[str, int]) -> str:
    """The rules as a table."""
    share = sum(rule["weight"] for rule in found)
    what = " and ".join(f"{n} {name}" for name, n in met.items() if n)
    lines = [f"{len(found)} of the {what} that meet the evidence carry {100 * share:.1f} % of the answer"]
    lines.append("   weight   log  rule")
    for rule in found:
        shown = shown_rule(rule["rule"]) or ("(background)" if rule["kind"] == "background" else "(all rows)")
        lines.append(f"{100 * rule['weight']:7.2f} % {rule['log_weight']:7.2f}  {shown}{_place(rule)}")
        lines.append(" " * 19 + summary_text(schema, rule["says"]))
    return "\n".join(lines)


def _place(rule: dict[str, Any]) -> str:
    """Where a rule comes from."""
    if rule["kind"] == "background":
        return ""
    if rule["kind"] == "state":
        return f"  [hidden tree {rule['tree']}, state {rule['state']} of {rule['column']}]"
    return f"  [tree {rule['tree']}, {rule['kind']} {rule['leaf']}]"
