"""The regions in which an event is most probable, as rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data.conditions import AnyOf, PerRow, check_hard, n_rows, normal
from ...data.evidence import build, intersect
from ...models.base import Distribution
from ...models.box_forest.box_trees import BoxTrees
from ...query_language.render import conditions_text
from ...runtime.parameters import check_number
from .explain import Explanation, shown_rule
from .rules import box_conditions, rule_text


def reverse(model: Distribution, event: Mapping[str, Any], k: int, min_share: float) -> Explanation:
    """The k regions in which an event (conditions by column) is most probable: see `Joint.reverse`.

    Raises ValueError if a parameter is out of range, the event says nothing, has probability 0, or speaks of several
    rows, or the model has several parts or no boxes.
    """
    trees = model.box_trees_for("reverse")
    check_number("k", k, 1, whole=True, text="a positive integer")
    check_number("min_share", min_share, 0, 1)
    schema = model.schema
    check_hard(event)
    if any(n_rows(condition) is not None for condition in event.values()):
        raise ValueError("the event must speak of one row, got a condition with an entry for each of several")
    wanted = {name: normal(condition) for name, condition in event.items()}
    wanted = {name: condition for name, condition in wanted.items() if condition is not None}
    if not wanted:
        raise ValueError("the event says nothing; give a condition such as \"income = '>50K'\"")
    text = conditions_text(wanted)
    # A set, even of one value, is a region: its mass is wanted, not its density.
    region = {name: AnyOf(condition) for name, condition in wanted.items()}
    log_event = float(model.log_density(build(schema, conditions=region))[0])
    if log_event == -math.inf:
        raise ValueError(f"the event has probability 0: {text}; widen one of its conditions")
    boxes = _regions(trees, set(wanted), min_share)
    order: list[int] = []
    if boxes:
        names = {name for conditions in boxes for name in conditions}
        per_row = {name: PerRow([AnyOf(box[name]) if name in box else None for box in boxes]) for name in names}
        within = build(schema, conditions=per_row, n=len(boxes))
        log_region = model.log_density(within)
        log_given = np.minimum(model.log_density(intersect(schema, within, region)) - log_region, 0.0)
        order = np.lexsort((-log_region, -log_given))[:k].tolist()
    answers = [
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
    lines += [
        f"{r['event_probability']:17.4f} {r['lift']:6.2f} {r['probability']:10.4f}  {shown_rule(str(r['rule']))}"
        for r in answers
    ]
    return Explanation(answers, "\n".join(lines))


def _regions(trees: BoxTrees, asked: set[str], min_share: float) -> list[dict[str, Any]]:
    """Distinct boxes of the leaves, without the columns asked of, that hold ``min_share`` of the rows of a tree."""
    lo, hi, allowed = trees.boxes
    n = np.count_nonzero(~trees.is_background(np.arange(len(trees.log_weight))))
    weight, tree = np.exp(trees.log_weight[:n]), trees.tree[:n]
    share = weight / np.bincount(tree, weight)[tree]
    boxes: dict[str, dict[str, Any]] = {}
    held: dict[tuple[str, int], float] = {}
    for leaf in np.flatnonzero(weight > 0).tolist():
        box = box_conditions(trees.schema, trees.columns, lo[leaf], hi[leaf], allowed[leaf])
        box = {name: condition for name, condition in box.items() if name not in asked}
        rule = rule_text(box)
        boxes[rule] = box
        held[rule, int(tree[leaf])] = held.get((rule, int(tree[leaf])), 0.0) + float(share[leaf])
    enough = {rule for (rule, _), total in held.items() if total >= min_share - 1e-12}
    return [box for rule, box in boxes.items() if rule and rule in enough]
