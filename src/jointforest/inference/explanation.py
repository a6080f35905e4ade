"""Leaves and hidden states that carry an answer, regions of an event as rules, and trees as text."""

from __future__ import annotations

import datetime as dt
import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import cards
from ..cards import Html, text_html
from ..data.conditions import AnyOf, Interval, Not, PerRow, check_hard, column_text, n_rows, normal
from ..data.evidence import Evidence, build, intersect
from ..data.schema import Column, Columns, Schema, place_on_grid
from ..models.base import Distribution, PosteriorState
from ..models.box_forest.box_trees import BoxTrees
from ..models.box_forest.leaves.levels import members
from ..models.box_forest.structure_kernels import MIXED
from ..models.hidden_tree.column import HiddenState, state_divergence
from ..query_language.parser import tokenize, with_shown_numbers
from ..query_language.render import condition_text, conditions_text
from ..runtime.parameters import check_number


def box_conditions(
    schema: Schema, columns: Columns, lo: np.ndarray, hi: np.ndarray, allowed: np.ndarray
) -> dict[str, Any]:
    """Conditions, by column, of one box; columns that it leaves open have none."""
    conditions: dict[str, Any] = {}
    for j, column in enumerate(schema.columns):
        slot = columns.slot[j]
        if column.is_categorical:
            at, end = columns.level_start[slot], columns.level_start[slot + 1]
            condition = levels_condition(column, allowed[at:end])
        else:
            condition = side_condition(column, float(lo[slot]), float(hi[slot]))
        if condition is not None:
            conditions[column.name] = condition
    return conditions


def rule_text(conditions: Mapping[str, Any]) -> str:
    """Conditions joined by ``and``; '' if there are none."""
    return " and ".join(condition_text(column_text(name), condition) for name, condition in conditions.items())


def side_condition(column: Column, lo: float, hi: float) -> Any:
    """Condition that a number is in ``(lo, hi]``, None if every number is; on a grid by its cells' centres."""
    if lo == -math.inf and hi == math.inf:
        return None
    first: Any = None if lo == -math.inf else lo
    last: Any = None if hi == math.inf else hi
    if column.step == 0.0:
        return Interval(first, last, "neither" if last is None else "right")
    if first is not None:
        first = grid_value(column, column.center + (math.floor(place_on_grid(column, lo)) + 1) * column.step)
    if last is not None:
        last = grid_value(column, column.center + math.floor(place_on_grid(column, hi)) * column.step)
    if first is not None and first == last:
        return first
    return Interval(first, last, "left" if last is None else "right" if first is None else "both")


def grid_value(column: Column, number: float) -> Any:
    """Value of the nearest cell of a grid; midnights of a column of whole days are dates."""
    value = column.from_number(number)
    is_midnight = isinstance(value, dt.datetime) and value.tzinfo is None and value.time() == dt.time()
    return value.date() if is_midnight and column.step % 86400.0 == 0.0 else value


def levels_condition(column: Column, allowed: np.ndarray) -> Any:
    """Condition that a level is one of those allowed (bool (K,)), in its shorter form; None if all are."""
    codes = np.flatnonzero(allowed)
    if len(codes) == len(allowed):
        return None
    if column.kind == "ordered" and 1 < len(codes) == codes[-1] - codes[0] + 1:
        low, high = column.levels[codes[0]], column.levels[codes[-1]]
        if codes[0] == 0:
            return Interval(None, high, "right")
        return Interval(low, None, "left") if codes[-1] == len(allowed) - 1 else Interval(low, high)
    others = np.flatnonzero(~allowed)
    return _any_of(column, codes) if 0 < len(codes) <= len(others) else Not(_any_of(column, others))


def split_conditions(column: Column, left: np.ndarray, right: np.ndarray) -> tuple[Any, Any]:
    """Conditions, as short as may be, that separate the levels with the codes ``left`` from those with ``right``."""
    if column.kind == "ordered" and (left.max() < right.min() or right.max() < left.min()):
        below = Interval(None, column.levels[min(left.max(), right.max())], "right")
        above = Interval(below.hi, None, "neither")
        return (below, above) if left.max() < right.min() else (above, below)
    if len(left) == len(right) == 1:
        return column.levels[left[0]], column.levels[right[0]]
    inside = _any_of(column, left if len(left) <= len(right) else right)
    return (inside, Not(inside)) if len(left) <= len(right) else (Not(inside), inside)


def _any_of(column: Column, codes: np.ndarray) -> Any:
    levels = [column.levels[code] for code in codes]
    return levels[0] if len(levels) == 1 else AnyOf(*levels)


# ---- Summaries of single leaves: means of columns with intervals, and most probable levels.


SUMMARY_LEVEL = 0.9
"""Share of a column's distribution in a leaf that its interval holds."""
_NOISE = 1e-9
"""A smaller share of a column's range is no number of it."""
_MOST_LEVELS = 3
"""Levels of a column that are shown, the most probable ones."""


def leaf_summaries(trees: BoxTrees, evidence: Evidence, leaf: np.ndarray) -> list[dict[str, dict[str, Any]]]:
    """Summaries of the columns without a known value in k leaves, given one row of evidence: dicts by column."""
    # Numbers have {"mean", "low", "high"}, the interval with equal tails that holds 90 %; levels at most three of them.
    summaries: list[dict[str, dict[str, Any]]] = [{} for _ in leaf]
    tails = np.array([(1 - SUMMARY_LEVEL) / 2, (1 + SUMMARY_LEVEL) / 2])
    for j, column in enumerate(trees.schema.columns):
        if not len(leaf) or not math.isnan(evidence.value[0, j]):
            continue
        in_leaves = trees.column_in_groups(evidence, leaf[:, None], j)
        if column.is_categorical:
            answers = in_leaves.level_probability()
        else:
            answers = np.column_stack([in_leaves.mean(), in_leaves.quantile(tails)])
        for says, numbers in zip(summaries, answers, strict=True):
            says[column.name] = column_summary(column, numbers)
    return summaries


def column_summary(column: Column, numbers: np.ndarray) -> dict[str, Any]:
    """A column's summary as users read it: of the probabilities of its levels, or of mean, low and high."""
    if column.is_categorical:
        return {"levels": _likeliest(column, numbers)}
    if column.kind != "datetime":  # what differences of large sums leave of 0 is none
        noise = _NOISE * (column.maximum - column.minimum)
        numbers = np.where(np.abs(numbers) < noise, 0.0, numbers)
    return {name: column.scalar(x) for name, x in zip(("mean", "low", "high"), numbers.tolist(), strict=True)}


def summary_text(schema: Schema, says: Mapping[str, Mapping[str, Any]]) -> str:
    """The summary of a leaf, in one line."""
    return "; ".join(f"{name} {_column_text(schema[name], summary)}" for name, summary in says.items())


def _likeliest(column: Column, share: np.ndarray) -> dict[Any, float]:
    order = np.argsort(-share, kind="stable")[:_MOST_LEVELS]
    return {column.levels[code]: float(share[code]) for code in order if share[code] > 0}


def _column_text(column: Column, summary: Mapping[str, Any]) -> str:
    if column.is_categorical:
        shown = {level: share for level, share in summary["levels"].items() if share >= 0.005}
        return ", ".join(f"{level} {100 * share:.0f}%" for level, share in (shown or summary["levels"]).items())
    mean, low, high = (_rule_value_text(column, summary, which) for which in ("mean", "low", "high"))
    return mean if mean == low == high else f"{mean} ({low} to {high})"


def _rule_value_text(column: Column, summary: Mapping[str, Any], which: str) -> str:
    """A number with two digits of its interval's width, a date, a time to the second."""
    value = summary[which]
    if column.kind == "datetime":
        if isinstance(value, dt.date):  # else beyond the calendar
            value = grid_value(column, column.to_number(value))
        return value.isoformat(" ", "seconds") if isinstance(value, dt.datetime) else str(value)
    width = summary["high"] - summary["low"]
    if not 0 < width < 1e15 or abs(value) > 1e15:
        return f"{value:.6g}"
    places = max(1 - math.floor(math.log10(width)), 0)
    if column.step > 0 and which != "mean":
        places = min(places, column.decimals)
    return f"{value:z.{places}f}"


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
        return cards.view_html(title, [], [cards.table_html(rows, header, wraps=True)] if rows else [])


def _html_row(rule: dict[str, Any], share: str) -> list[str]:
    """A rule as a row of a table: its share, a bar, and the rule with its summary of columns."""
    shown = shown_rule(rule["rule"]) or ("(background)" if rule.get("kind") == "background" else "(all rows)")
    said = "; ".join(f"{name} {_plain_text(summary)}" for name, summary in rule.get("says", {}).items())
    if "lift" in rule:
        said = f"{rule['lift']:.3g} times as probable as elsewhere; the region has {cards.percent(rule['probability'])}"
    text = f"<b>{cards.words(shown)}</b><br>{cards.soft(said)}" if said else f"<b>{cards.words(shown)}</b>"
    return [cards.percent(rule[share]), Html(cards.bar_svg(rule[share])), Html(text)]


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
        text = "(all rows)" if node.parent < 0 else (node.text if max_leaves is None else shown_rule(node.text))
        at = "" if node.leaf < 0 else f"  [{forest.leaf_kind(node.leaf)} {node.leaf}]"
        at = f"  [... {folded[k]} leaves]" if k in folded else at
        lines.append(f"{'  ' * node.depth}{text}  {100 * node.share:.1f}%{at}")
        if node.leaf in says:
            lines.append(f"{'  ' * node.depth}    {summary_text(forest.schema, says[node.leaf])}")
    return TreeText("\n".join(lines))


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
