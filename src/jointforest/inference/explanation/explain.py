"""The leaves and hidden states that carry an answer, and the regions of an event, as rules with their weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cards import html, svg
from ...cards.html import Html
from ...data.conditions import AnyOf, PerRow, check_hard, n_rows, normal
from ...data.evidence import Evidence, build, intersect
from ...data.schema import Column, Schema
from ...models.base import Distribution, PosteriorState
from ...models.box_forest.box_trees import BoxTrees
from ...models.hidden_tree.column import HiddenState, state_divergence
from ...query_language.parser import tokenize
from ...query_language.render import conditions_text
from ...query_language.shown import with_shown_numbers
from ...runtime.parameters import check_number
from .rules import (
    SUMMARY_LEVEL,
    box_conditions,
    column_summary,
    leaf_summaries,
    levels_condition,
    rule_text,
    side_condition,
    summary_text,
)

# ---- What every explanation is: rules as plain data, and as a table to print.


@dataclass(frozen=True, repr=False)
class Explanation:
    """Rules with what belongs to them; made by `Posterior.explain` and `Joint.reverse`, which describe its contents.

    Attributes
    ----------
    rules : list of dict
        Plain data, the most important rule first.
    text : str
        The rules as a table; ``print(explanation)`` shows it.
    """

    rules: list[dict[str, Any]]
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = self.text.split("\n", 1)[0]
        share = "weight" if any("weight" in rule for rule in self.rules) else "event_probability"
        rows = [_html_row(rule, share) for rule in self.rules]
        header = (share.replace("_", " "), "", "rule, and what holds there")
        return html.view_html(title, [], [html.table_html(rows, header, wraps=True)] if rows else [])


def _html_row(rule: dict[str, Any], share: str) -> list[str]:
    """A rule as a row of a table: its share, a bar, and the rule with its summary of columns."""
    shown = shown_rule(rule["rule"]) or ("(background)" if rule.get("kind") == "background" else "(all rows)")
    said = "; ".join(f"{name} {_plain_text(summary)}" for name, summary in rule.get("says", {}).items())
    if "lift" in rule:
        said = f"{rule['lift']:.3g} times as probable as elsewhere; the region has {svg.percent(rule['probability'])}"
    text = f"<b>{html.words(shown)}</b><br>{html.soft(said)}" if said else f"<b>{html.words(shown)}</b>"
    return [svg.percent(rule[share]), Html(svg.bar_svg(rule[share])), Html(text)]


def _plain_text(summary: dict[str, Any]) -> str:
    """The summary of a column under a rule, from plain data."""
    if "levels" in summary:
        return ", ".join(f"{level} {p:.0%}" for level, p in summary["levels"].items())
    mean, low, high = (
        (f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}") if isinstance(x, float | int) else str(x)[:19]
        for x in map(summary.get, ("mean", "low", "high"))
    )
    return mean if low == high else f"{mean} ({low} to {high})"


# ---- Hidden states as rules: what sets a state apart in the query language, and a summary of the columns in it.

_COLUMNS = 3
"""Most columns in a rule."""
APART = 0.1
"""Least divergence, in nats, of a column that a rule names."""
_CUTS = np.linspace(0.05, 0.95, 19)
"""Levels of the quantiles between which bins of a column of numbers lie, in which distributions are compared."""
_TAILS = np.array([(1 - SUMMARY_LEVEL) / 2, (1 + SUMMARY_LEVEL) / 2])


def _state_rules(model: Distribution, evidence: Evidence, states: list[HiddenState]) -> list[dict[str, Any]]:
    """The rules of hidden states, and summaries of the columns in them, given one row of evidence."""
    # A rule names at most three columns, those of largest KL divergence from the table, with regions that hold 90 %.
    schema, nothing = model.schema, build(model.schema)
    whole = model.observe(nothing)
    cuts = [None if c.is_categorical else np.unique(whole.quantile(j, _CUTS)) for j, c in enumerate(schema.columns)]
    marginal = [_answer_shares(whole, j, cut) for j, cut in enumerate(cuts)]
    found = []
    for one in states:
        alone, given = one.distribution.observe(nothing), one.distribution.observe(evidence)
        apart = [state_divergence(_answer_shares(alone, j, cut), marginal[j]) for j, cut in enumerate(cuts)]
        named = sorted(np.argsort(-np.array(apart), kind="stable")[:_COLUMNS].tolist())
        conditions = {
            schema.names[j]: _condition_of(schema.columns[j], _summed(alone, j)) for j in named if apart[j] >= APART
        }
        says = {
            column.name: column_summary(column, _summed(given, j))
            for j, column in enumerate(schema.columns)
            if math.isnan(evidence.value[0, j])
        }
        rule = rule_text({name: said for name, said in conditions.items() if said is not None})
        found.append({"rule": rule, "weight": one.weight, "log_weight": one.log_weight, "tree": one.tree,
                      "column": one.column, "state": one.state, "kind": "state", "says": says})  # fmt: skip
    return found


def _answer_shares(state: PosteriorState, j: int, cuts: np.ndarray | None) -> np.ndarray:
    """Probabilities of the levels of a column, or of its bins."""
    return state.level_probabilities(j)[0] if cuts is None else state.histogram(j, cuts)[0]


def _summed(state: PosteriorState, j: int) -> np.ndarray:
    """Probabilities of the levels of a column, or its mean and the ends of the interval that holds 90 %."""
    if state.distribution.schema.columns[j].is_categorical:
        return state.level_probabilities(j)[0]
    return np.append(state.moments(j)[0], state.quantile(j, _TAILS)[0])


def _condition_of(column: Column, numbers: np.ndarray) -> Any:
    """The interval of equal tails, or the fewest levels, that hold 90 % of a column; None if that is everything."""
    if column.is_categorical:
        order = np.argsort(-numbers, kind="stable")
        allowed = np.zeros(len(numbers), bool)
        allowed[order[: int(np.searchsorted(np.cumsum(numbers[order]), SUMMARY_LEVEL * numbers.sum())) + 1]] = True
        return levels_condition(column, allowed)
    lo, hi = numbers[1:].tolist()
    below = lo - 0.5 * column.step if column.step > 0.0 else float(np.nextafter(lo, -np.inf))
    return side_condition(column, below, hi + 0.5 * column.step)


# ---- Rules as tables show them: long lists of values cut short.

_MOST = 8
"""Values of a list that are shown; more do not fit into a line."""


def shown_rule(text: str, most: int = _MOST) -> str:
    """A text of conditions as people read it: long lists have ``most`` values, and the number of the others."""
    text = with_shown_numbers(text)
    pieces, start, kept, count = [], 0, -1, 0
    for token in tokenize(text):
        if token.sort == "symbol" and token.value == "{":
            count, kept = 1, -1
        elif token.sort == "symbol" and token.value == "," and count:
            kept = token.start if count == most else kept
            count += 1
        elif token.sort == "symbol" and token.value == "}" and count:
            if count > most + 1:
                pieces.append(f"{text[start:kept]}, ... {count - most:,} others")
                start = token.start
            count = 0
    return "".join([*pieces, text[start:]])


def explain(model: Distribution, evidence: Evidence, k: int) -> Explanation:
    """The k leaves or states with the largest weight given one row of evidence: see `Posterior.explain`."""
    check_number("k", k, 1, whole=True, text="a positive integer")
    share = np.nan_to_num(model.observe(evidence).component_weights[0])
    listed, met = [], {"leaves": 0, "states": 0}
    for number, part in enumerate(model.components):
        if not share[number] > 0.0:
            continue
        if (trees := part.box_trees()) is not None:
            rules, n = _leaf_rules(trees, evidence, k)
            met["leaves"] += n
        elif (heaviest := part.heaviest_states(evidence, k)) is not None:
            if part.log_density(evidence)[0] == -math.inf:
                continue
            rules = _state_rules(part, evidence, heaviest[0])
            met["states"] += heaviest[1]
        else:
            raise ValueError(
                f"an explanation needs forests and hidden trees; this joint has the component: {part.kind}"
            )
        for rule in rules:
            rule["weight"] *= float(share[number])
            rule["log_weight"] += float(model.log_weight[number])
            if len(model.components) > 1:
                rule["part"] = number
        listed += rules
    if not listed:
        raise ValueError("the evidence has probability 0: no leaf carries an answer; drop or widen a condition")
    listed = sorted(listed, key=lambda rule: -rule["weight"])[:k]
    return Explanation(listed, _rules_table(model.schema, listed, met))


def _leaf_rules(trees: BoxTrees, evidence: Evidence, k: int) -> tuple[list[dict[str, Any]], int]:
    """The k leaves of a part with the largest weight, none if the evidence is impossible; and how many it reaches."""
    leaf, log_weight = trees.met_leaves(evidence)
    n, log_evidence = len(leaf), float(np.logaddexp.reduce(log_weight, initial=-math.inf))
    if log_evidence == -math.inf:
        return [], 0
    most = np.argsort(-log_weight, kind="stable")[:k]
    leaf, log_weight = leaf[most], log_weight[most]
    rules = [
        {
            "rule": rule_text(box_conditions(trees.schema, trees.columns, *(side[number] for side in trees.boxes))),
            "weight": math.exp(log - log_evidence),
            "log_weight": log,
            "leaf": number,
            "tree": int(trees.tree[number]),
            "kind": trees.leaf_kind(number),
            "says": says,
        }
        for number, log, says in zip(
            leaf.tolist(), log_weight.tolist(), leaf_summaries(trees, evidence, leaf), strict=True
        )
    ]
    return rules, n


def _rules_table(schema: Schema, rules: list[dict[str, Any]], met: dict[str, int]) -> str:
    """The rules as a table."""
    share = sum(rule["weight"] for rule in rules)
    what = " and ".join(f"{n} {name}" for name, n in met.items() if n)
    lines = [f"{len(rules)} of the {what} that meet the evidence carry {100 * share:.1f}% of the answer"]
    lines.append("  weight   log  rule")
    for rule in rules:
        shown = shown_rule(rule["rule"]) or ("(background)" if rule["kind"] == "background" else "(all rows)")
        lines.append(f"{100 * rule['weight']:7.2f}% {rule['log_weight']:7.2f}  {shown}{_source_of_rule(rule)}")
        lines.append(" " * 18 + summary_text(schema, rule["says"]))
    return "\n".join(lines)


def _source_of_rule(rule: dict[str, Any]) -> str:
    """Where a rule comes from."""
    if rule["kind"] == "background":
        return ""
    if rule["kind"] == "state":
        return f"  [hidden tree {rule['tree']}, state {rule['state']} of {rule['column']}]"
    return f"  [tree {rule['tree']}, {rule['kind']} {rule['leaf']}]"


# ---- The regions in which an event is most probable, as rules.


def reverse(model: Distribution, event: Mapping[str, Any], k: int, min_share: float) -> Explanation:
    """The k regions in which an event (conditions by column) is most probable: see `Joint.reverse`."""
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
