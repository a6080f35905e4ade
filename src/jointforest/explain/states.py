"""Hidden states as rules: what sets a state apart, in the query language, and what it says given the evidence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..hidden.evidence import CodeEvidence, code_evidence
from ..hidden.hidden_trees import HiddenTrees
from ..hidden.states import States, codes_in_states, told_states
from ..table.build_evidence import build
from ..table.evidence import Evidence
from ..table.scale import draws
from ..table.scale.scale import Scale
from ..table.schema import Column
from .leaf_summaries import LEVEL, column_summary
from .rules import levels_condition, rule_text, side_condition

COLUMNS = 3
"""Most columns in a rule."""
APART = 0.1
"""Least divergence, in nats, of a column that a rule names."""
TAILS = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])


def state_rules(hidden: HiddenTrees, evidence: Evidence, k: int) -> tuple[list[dict[str, Any]], int]:
    """The k states of greatest weight given one row of evidence, with weights that sum to 1 over all; and their number.

    A state's rule names the columns whose distribution in the state is farthest (KL) from the whole table's, at most
    three: the interval of equal tails, or the fewest levels, that hold 90 % of the column in the state.
    """
    told = told_states(hidden, evidence)
    total = float(np.logaddexp.reduce([of.log_joint for of in told]))
    weight = np.concatenate([np.exp(of.log_joint - total) * of.posterior for of in told])
    tree_of = np.repeat(np.arange(len(told)), [len(of.posterior) for of in told])
    state_of = np.concatenate([np.arange(len(of.posterior)) for of in told])
    most = np.argsort(-weight, kind="stable")[:k]
    most = most[weight[most] > 0.0]
    found: dict[int, dict[str, Any]] = {}
    for t in np.unique(tree_of[most]).tolist():
        mine = most[tree_of[most] == t]
        for i, says, rule in zip(mine.tolist(), *_told(hidden, evidence, t, told[t], state_of[mine]), strict=True):
            found[i] = {
                "rule": rule,
                "weight": float(weight[i]),
                "log_weight": math.log(weight[i]) + total,
                "tree": t,
                "column": hidden.schema.names[int(hidden.trees[t].column[told[t].node])],
                "state": int(state_of[i]),
                "kind": "state",
                "says": says,
            }
    return [found[i] for i in most.tolist()], int((weight > 0.0).sum())


def _told(
    hidden: HiddenTrees, evidence: Evidence, t: int, told: States, states: np.ndarray
) -> tuple[list[dict[str, dict[str, Any]]], list[str]]:
    """What states of a tree's node say given the evidence, and their rules."""
    tree, nothing, known = hidden.trees[t], code_evidence(hidden, build(hidden.schema)), code_evidence(hidden, evidence)
    given, alone = codes_in_states(tree, known, told.node, states), codes_in_states(tree, nothing, told.node, states)
    everything = np.arange(len(told.prior))
    marginal = {j: told.prior @ p for j, p in codes_in_states(tree, nothing, told.node, everything).items()}
    says: list[dict[str, dict[str, Any]]] = [{} for _ in states]
    for j, column in enumerate(hidden.schema.columns):
        if math.isnan(evidence.value[0, j]):
            for i, summary in enumerate(_summaries(column, _scale(hidden.scales[j], known[j]), given[j])):
                says[i][column.name] = summary
    rules = []
    for i in range(len(states)):
        apart = {j: _divergence(p[i], marginal[j]) for j, p in alone.items()}
        named = sorted(sorted(apart, key=lambda j: -apart[j])[:COLUMNS])
        conditions = {
            hidden.schema.names[j]: _condition(hidden.schema.columns[j], hidden.scales[j], alone[j][i])
            for j in named
            if apart[j] >= APART
        }
        rules.append(rule_text({name: said for name, said in conditions.items() if said is not None}))
    return says, rules


def _scale(scale: Scale, known: CodeEvidence) -> Scale:
    """The column's scale within the evidence's region, if it has one."""
    region = int(known.code[0]) - scale.n_codes - 1
    return known.regions[region] if region >= 0 else scale


def _summaries(column: Column, scale: Scale, p: np.ndarray) -> list[dict[str, Any]]:
    """What n states say of a column whose codes have these probabilities (n, K)."""
    if column.is_categorical:
        return [column_summary(column, share) for share in draws.levels(scale, p, len(column.levels))]
    mean, ends = p @ scale.moments[1], draws.quantiles(scale, p, TAILS)
    return [column_summary(column, np.array([center, *tails])) for center, tails in zip(mean, ends, strict=True)]


def _condition(column: Column, scale: Scale, p: np.ndarray) -> Any:
    """The interval of equal tails, or the fewest levels, that hold 90 % of a column; None if that is everything."""
    if column.is_categorical:
        share = draws.levels(scale, p[None], len(column.levels))[0]
        order = np.argsort(-share, kind="stable")
        allowed = np.zeros(len(share), bool)
        allowed[order[: int(np.searchsorted(np.cumsum(share[order]), LEVEL * share.sum())) + 1]] = True
        return levels_condition(column, allowed)
    lo, hi = draws.quantiles(scale, p[None], TAILS)[0].tolist()
    below = lo - 0.5 * column.step if column.step > 0.0 else float(np.nextafter(lo, -np.inf))
    return side_condition(column, below, hi + 0.5 * column.step)


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    some = p > 0.0
    return float(p[some] @ np.log(p[some] / np.maximum(q[some], np.finfo(float).tiny)))
