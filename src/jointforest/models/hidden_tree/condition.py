"""Hidden trees made of hidden trees: conditioned on evidence, and of fewer columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...data.discretization.discretizer import Scale, codes_of, whole
from ...data.discretization.restrict import restrict
from ...data.evidence import Evidence
from ...data.schema import Column, Schema
from ...runtime.threads import one_blas_thread
from .column import at_center
from .hidden_trees import HiddenTrees, TreeTables
from .messages import Message, code_evidence, down, own_messages, region_scales, times, up
from .posterior import KeptRows


def condition(hidden: HiddenTrees, evidence: Evidence) -> HiddenTrees:
    """The distribution given one row of evidence, exact; raises ValueError if the evidence has probability 0."""
    # Transitions and emissions are multiplied by the messages below them, so the structure stays. A value on a grid, or
    # a level, restricts the column to its cell; a column without grid becomes ``mixed`` with the value as its only
    # atom.
    known = code_evidence(hidden, evidence)
    vectors = {
        j: _by_code(of.code[0], of.likelihood, K)
        for j, (of, K) in enumerate(zip(known, (scale.n_codes for scale in hidden.scales), strict=True))
        if of.code[0] != K
    }
    joint, trees = [], []
    for tree, log_weight in zip(hidden.trees, hidden.log_weight.tolist(), strict=True):
        upward = up(tree, own_messages(tree, known), 1)
        if upward.log_probability[0] > -np.inf:
            joint.append(log_weight + float(upward.log_probability[0]))
            trees.append(conditioned_tree(tree, upward.inside, vectors))
    if not trees or not np.isfinite(sum(of.log_base[0] for of in known)):
        raise ValueError("the evidence has probability 0; drop or widen one of its conditions")
    columns, scales = [], []
    for j, column in enumerate(hidden.schema.columns):
        pinned, scale = _restricted_scale(column, hidden.scales[j], evidence, j)
        columns.append(pinned)
        scales.append(scale)
    schema = replace(hidden.schema, columns=tuple(columns))
    return HiddenTrees(schema, tuple(scales), tuple(trees), np.array(joint) - np.logaddexp.reduce(joint))


def marginalize(hidden: HiddenTrees, columns: Sequence[int]) -> HiddenTrees:
    """The marginal over some columns, exact, in the table's order; raises ValueError if none is left."""
    kept = sorted(columns)
    if not kept:
        raise ValueError("keep: name at least one column")
    number = {j: i for i, j in enumerate(kept)}
    schema = Schema(tuple(hidden.schema.columns[j] for j in kept), hidden.schema.frame, n_rows=hidden.schema.n_rows)
    trees = tuple(_without(tree, number) for tree in hidden.trees)
    return HiddenTrees(schema, tuple(hidden.scales[j] for j in kept), trees, hidden.log_weight)


def _by_code(code: int, likelihood: np.ndarray, K: int) -> np.ndarray:
    """The likelihood of each code of a column under one row of evidence, (K,)."""
    return likelihood[code - K - 1] if code > K else (np.arange(K) == code).astype(np.float64)


def conditioned_tree(tree: TreeTables, inside: list[Message], vectors: Mapping[int, np.ndarray]) -> TreeTables:
    """The tree given evidence by code of some columns, and what lies at and below each node, (1, H_k)."""
    transition, emission = [], []
    known = {tree.missing_node[j] for j in vectors}
    blank = tuple(np.zeros_like(share) if k in known else share for k, share in enumerate(tree.blank))
    seen = _known_cell_messages(tree, known)
    for k, j in enumerate(tree.column.tolist()):
        here = times(inside[k], seen[k])[0]
        before, codes = tree.transition[k], tree.emission[k]
        transition.append(before if here is None else _normed(before * here, before).astype(tree.dtype))
        vector = vectors.get(j)
        emission.append(codes if vector is None else _normed(codes * vector, vector / vector.sum()).astype(tree.dtype))
    return replace(tree, transition=tuple(transition), emission=tuple(emission), blank=blank)


def _known_cell_messages(tree: TreeTables, known: set[int]) -> list[Message]:
    """Messages of known cells to the states of nodes of missing cells, (1, H_k); columns' states get none."""
    seen: list[Message] = [None] * len(tree)
    apart = {k for k in tree.missing_node.values() if tree.column[k] < 0}
    for k in sorted(apart, reverse=True):
        if k in known:
            seen[k] = times(seen[k], (1.0 - tree.blank[k])[None].astype(tree.dtype))[0]
        here, above = seen[k], int(tree.parent[k])
        if here is not None and above in apart:
            seen[above] = times(seen[above], here @ tree.transition[k].T)[0]
    return seen


def _normed(table: np.ndarray, instead: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; rows that nothing is left of, which no draw reaches, have other shares instead."""
    total = table.sum(axis=1, dtype=np.float64, keepdims=True)
    return np.where(total > 0.0, table / np.where(total > 0.0, total, 1.0), instead)


def _restricted_scale(column: Column, scale: Scale, evidence: Evidence, j: int) -> tuple[Column, Scale]:
    """A column and its scale given one row of evidence; codes that are impossible have no segments left."""
    x = float(evidence.value[0, j])
    region = int(evidence.region[0, j]) if evidence.has_regions else -1
    if region >= 0:
        return column, whole(region_scales(scale, evidence, np.array([region]), column.atoms)[0])
    if np.isnan(x):
        return column, scale
    if column.step == 0.0 and not column.is_categorical:
        return replace(column, kind="mixed", atoms=(x,)), _pinned(scale, x)
    half = 0.5 if column.is_categorical else 0.5 * column.step
    center = at_center(column, np.array([x]))
    return column, whole(restrict(scale, center - half, center + half, 0, column.atoms))


def _pinned(scale: Scale, x: float) -> Scale:
    """The scale whose only segment is the point x, in the code that x has."""
    code = codes_of(scale, np.array([x]))[0].astype(np.int32)
    return replace(scale, lo=np.array([x]), hi=np.array([x]), rate=np.zeros(1), code=code, log_mass=np.zeros(1))


def _without(tree: TreeTables, number: dict[int, int]) -> TreeTables:
    """The tree without the columns that have no new number; nodes that hold nothing together are summed out."""
    needed = {tree.missing_node[j] for j in number} if tree.blank else set()
    column = [number.get(j, -1) for j in tree.column.tolist()]
    parent, transition = tree.parent.tolist(), list(tree.transition)
    stays = [True] * len(column)
    below: list[list[int]] = [list(children) for children in tree.children]
    for k in range(len(column) - 1, -1, -1):
        if column[k] >= 0 or k in needed or len(below[k]) > 1:
            continue
        stays[k] = False
        above = parent[k]
        if below[k]:  # a link in a chain
            child = below[k][0]
            transition[child], parent[child] = transition[k] @ transition[child], above
        if above >= 0:
            below[above] = [c for c in below[above] if c != k] + below[k]
    old = np.flatnonzero(stays)
    place = {k: i for i, k in enumerate(old.tolist())}
    return TreeTables(
        np.array([column[k] for k in old], np.int32),
        np.array([place.get(parent[k], -1) for k in old], np.int32),
        tuple(np.ascontiguousarray(transition[k]) for k in old),
        tuple(tree.emission[k] if column[k] >= 0 else tree.emission[k][:, :0] for k in old),
        tuple(tree.blank[k] for k in old) if tree.blank else (),
        np.array(
            [place.get(k, i) for i, k in enumerate(tree.missing_at[old])] if len(tree.missing_at) else [], np.int32
        ),
    )


# ---- Hidden trees given that a cell is missing, or is not: states weighed anew; how probable it is.


def given_missing(hidden: HiddenTrees, j: int, is_missing: bool) -> tuple[HiddenTrees | None, float]:
    """The distribution given that cell j is missing (or is known), and the log-probability of that."""
    # The share of missing cells in each state is a message from the node. None and -inf where impossible.
    trees, joint = [], []
    for tree, log_weight in zip(hidden.trees, hidden.log_weight.tolist(), strict=True):
        k = tree.missing_node[j]
        rate = tree.blank[k] if tree.blank else np.zeros(tree.n_states[k], tree.dtype)
        given, log_p = _tree_given(tree, k, rate if is_missing else 1 - rate)
        if log_p > -np.inf:
            blank = np.full(len(rate), float(is_missing), rate.dtype)
            trees.append(replace(given, blank=(*tree.blank[:k], blank, *tree.blank[k + 1 :]) if tree.blank else ()))
            joint.append(log_weight + log_p)
    log_share = float(np.logaddexp.reduce(joint, initial=-np.inf))
    if not trees:
        return None, -np.inf
    return replace(hidden, trees=tuple(trees), log_weight=np.array(joint) - log_share, grown=None), log_share


def in_state(hidden: HiddenTrees, t: int, node: int, state: int) -> HiddenTrees:
    """The distribution of the rows of tree t whose node is in a state."""
    tree = hidden.trees[t]
    given, _ = _tree_given(tree, node, np.arange(tree.n_states[node]) == state)
    return replace(hidden, trees=(given,), log_weight=np.zeros(1), grown=None)


def _tree_given(tree: TreeTables, node: int, likelihood: np.ndarray) -> tuple[TreeTables, float]:
    """The tree given a likelihood of the states of one node, (H,), and the log-probability of that."""
    own: list[Message] = [None] * len(tree)
    own[node] = likelihood.astype(tree.dtype)[None]
    upward = up(tree, own, 1)
    return conditioned_tree(tree, upward.inside, {}), float(upward.log_probability[0])


def missing_shares(hidden: HiddenTrees, kept: KeptRows, columns: list[int]) -> np.ndarray:
    """P(cell j missing | one row of evidence) of the ``columns`` that are not evidently missing, (len(columns),)."""
    post = kept.posterior(columns)
    share = np.exp(post.log_joint[0] - np.logaddexp.reduce(post.log_joint[0]))
    found = np.zeros(len(columns))
    for t in np.flatnonzero(share > 0.0).tolist():
        tree = hidden.trees[t]
        if not tree.blank:
            continue
        upward = up(tree, own_messages(tree, post.known), 1)
        nodes = [tree.missing_node[j] for j in columns]
        downward = down(tree, upward, nodes)
        for i, k in enumerate(nodes):
            state = downward.state(k)[0]
            found[i] += share[t] * float(state @ tree.blank[k]) / float(state.sum())
    return found


# ---- The joint distribution of the codes of a few columns, exact: pairs, mostly.

_MOST = 1 << 24
"""Most entries of a table, states included: 128 MB."""


def joint_codes(hidden: HiddenTrees, columns: Sequence[int]) -> np.ndarray | None:
    """p(codes of m columns), an array (K_1, ..., K_m) that sums to 1; None if it were larger than `_MOST`."""
    # Codes given evidence are those of the conditioned trees: see `condition`.
    size = math.prod(int(hidden.scales[j].n_codes) for j in columns)  # of many columns it exceeds the largest float
    if size * max(int(tree.n_states.max()) for tree in hidden.trees) > _MOST:
        return None
    few = marginalize(hidden, columns)
    with one_blas_thread():
        each = [np.exp(w) * _reshaped_tree(tree) for tree, w in zip(few.trees, few.log_weight.tolist(), strict=True)]
    total: np.ndarray = sum(each)
    return total.transpose(np.argsort(np.argsort(columns))) / total.sum()


def _reshaped_tree(tree: TreeTables) -> np.ndarray:
    """p(codes) of all columns of a small tree, in the order of the columns."""
    tables: list[np.ndarray] = [np.empty(0)] * len(tree)  # p(codes at and below | state), with the columns' numbers
    order: list[list[int]] = [[]] * len(tree)
    for k in range(len(tree) - 1, -1, -1):
        j = int(tree.column[k])
        table = tree.emission[k].astype(np.float64) if j >= 0 else np.ones((tree.transition[k].shape[1], 1))
        order[k] = [j] if j >= 0 else []
        for c in tree.children[k]:
            table = (table[:, :, None] * tables[c][:, None, :]).reshape(len(table), -1)
            order[k] = order[k] + order[c]
        tables[k] = tree.transition[k].astype(np.float64) @ table
    sizes = {int(j): tree.emission[k].shape[1] for k, j in enumerate(tree.column) if j >= 0}
    return tables[0].reshape([sizes[j] for j in order[0]]).transpose(np.argsort(order[0]))
