"""Explanations: the leaves that carry an answer, and the regions in which an event is most probable, as rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..forest.forest import Forest
from ..forest.posterior.density import log_density
from ..forest.posterior.posterior import posterior
from ..ground.checks import check_number
from ..language import conditions_text
from ..table.conditions import AnyOf, PerRow, n_rows, normal
from ..table.evidence import build, intersect
from ..table.regions import Evidence
from ..trees.boxes import leaf_boxes
from .leaf_summaries import answers_text, leaf_answers
from .rules import box_conditions, rule_text


@dataclass(frozen=True, repr=False)
class Explanation:
    """Rules with what belongs to them; made by `Posterior.explain` and `Joint.reverse`, which say what is in it.

    Attributes
    ----------
    rules : list of dict
        Plain data, the most important rule first.
    text : str
        The same as a table to print; ``print(explanation)`` does.
    """

    rules: list[dict[str, Any]]
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def explain(model: Forest, evidence: Evidence, k: int, n_jobs: int | None = -1) -> Explanation:
    """The k leaves with the largest weight given one row of evidence: see `Posterior.explain`.

    Raises
    ------
    ValueError
        If k is not a positive integer, or the evidence has probability 0.
    """
    check_number("k", k, 1, whole=True, text="a positive integer")
    post = posterior(model, evidence, n_jobs)
    log_evidence = float(post.log_evidence[0])
    if log_evidence == -math.inf:
        raise ValueError("the evidence has probability 0: no leaf carries an answer; drop or widen a condition")
    most = np.argsort(-post.log_weight, kind="stable")[:k]
    leaf, log_weight = post.leaf[most], post.log_weight[most]
    boxes = leaf_boxes(model.trees, model.columns)
    found = [
        {
            "rule": rule_text(box_conditions(model.schema, model.columns, *(side[number] for side in boxes))),
            "weight": math.exp(log - log_evidence),
            "log_weight": log,
            "leaf": number,
            "tree": int(model.leaves.tree[number]),
            "kind": leaf_kind(model, number),
            "says": says,
        }
        for number, log, says in zip(
            leaf.tolist(), log_weight.tolist(), leaf_answers(model, evidence, leaf), strict=True
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
        lines.append(" " * 19 + answers_text(model.schema, rule["says"]))
    return Explanation(found, "\n".join(lines))


def leaf_kind(model: Forest, leaf: int) -> str:
    """``"leaf"`` (a product), ``"circuit"`` or ``"background"``."""
    if model.has_background and leaf == len(model.leaves.log_weight) - 1:
        return "background"
    start = model.leaves.node_start
    return "circuit" if start[leaf + 1] > start[leaf] else "leaf"


def reverse(model: Forest, event: Mapping[str, Any], k: int, min_share: float, n_jobs: int | None = -1) -> Explanation:
    """The k regions in which an event (conditions by column) is most probable: see `Joint.reverse`.

    Raises
    ------
    ValueError
        If a parameter is out of range, the event says nothing, has probability 0, or speaks of several rows.
    """
    check_number("k", k, 1, whole=True, text="a positive integer")
    check_number("min_share", min_share, 0, 1)
    schema = model.schema
    if any(n_rows(condition) is not None for condition in event.values()):
        raise ValueError("the event must speak of one row, got a condition with an entry for each of several")
    wanted = {name: normal(condition) for name, condition in event.items()}
    wanted = {name: condition for name, condition in wanted.items() if condition is not None}
    if not wanted:
        raise ValueError("the event says nothing; give a condition such as \"income = '>50K'\"")
    text = conditions_text(wanted)
    # A set, even of one value, is a region: its mass is wanted, not its density.
    region = {name: AnyOf(condition) for name, condition in wanted.items()}
    log_event = float(log_density(model, build(schema, conditions=region), n_jobs)[0])
    if log_event == -math.inf:
        raise ValueError(f"the event has probability 0: {text}; widen one of its conditions")
    boxes = _regions(model, set(wanted), min_share)
    order: list[int] = []
    if boxes:
        names = {name for conditions in boxes for name in conditions}
        per_row = {name: PerRow([AnyOf(box[name]) if name in box else None for box in boxes]) for name in names}
        within = build(schema, conditions=per_row, n=len(boxes))
        log_region = log_density(model, within, n_jobs)
        log_given = np.minimum(log_density(model, intersect(schema, within, region), n_jobs) - log_region, 0.0)
        order = np.lexsort((-log_region, -log_given))[:k].tolist()
    found = [
        {
            "rule": rule_text(boxes[i]),
            "event_probability": math.exp(log_given[i]),
            "lift": math.exp(log_given[i] - log_event),
            "probability": math.exp(min(log_region[i], 0.0)),
        }
        for i in order
    ]
    lines = [f"P({text}) = {math.exp(log_event):.4g}; of {len(boxes)} regions those in which it is most probable"]
    lines.append("P(event | region)   lift  P(region)  rule")
    lines += [f"{r['event_probability']:17.4f} {r['lift']:6.2f} {r['probability']:10.4f}  {r['rule']}" for r in found]
    return Explanation(found, "\n".join(lines))


def _regions(model: Forest, asked: set[str], min_share: float) -> list[dict[str, Any]]:
    """Distinct boxes of the leaves, without the columns asked of, that hold ``min_share`` of the rows of a tree."""
    lo, hi, allowed = leaf_boxes(model.trees, model.columns)
    n = len(model.leaves.log_weight) - model.has_background
    weight, tree = np.exp(model.leaves.log_weight[:n]), model.leaves.tree[:n]
    share = weight / np.bincount(tree, weight)[tree]
    boxes: dict[str, dict[str, Any]] = {}
    held: dict[tuple[str, int], float] = {}
    for leaf in np.flatnonzero(weight > 0).tolist():
        box = box_conditions(model.schema, model.columns, lo[leaf], hi[leaf], allowed[leaf])
        box = {name: condition for name, condition in box.items() if name not in asked}
        rule = rule_text(box)
        boxes[rule] = box
        held[rule, int(tree[leaf])] = held.get((rule, int(tree[leaf])), 0.0) + float(share[leaf])
    enough = {rule for (rule, _), total in held.items() if total >= min_share - 1e-12}
    return [box for rule, box in boxes.items() if rule and rule in enough]
