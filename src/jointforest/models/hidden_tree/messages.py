"""Evidence as hidden trees see it, and messages up and down a hidden tree, for a batch of rows at once."""

# Upward messages are scaled row by row to a greatest entry of 1, downward ones to a sum of 1. Where evidence is
# impossible, the log scale is -inf and the messages are arbitrary. None stands for all ones.

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...data.discretization.base_density import cdf
from ...data.discretization.discretizer import Scale, codes_of
from ...data.discretization.restrict import CutScales, restrict_each
from ...data.evidence import Evidence
from ...data.schema import Column
from ...runtime.arrays import ranges
from ...runtime.threads import of_finite
from .hidden_trees import HiddenTrees, TreeTables

Message = np.ndarray | None

_TINY = 1e-30  # scales whose inverse is a float32
_IN_FLOAT32 = 3  # messages that may be multiplied in float32; products of more lose differences between states


class Upward(NamedTuple):
    """The results of the pass from the leaves to the root, for n rows; a list has one entry a node.

    own : list of m arrays (n, H_k) or None. p(evidence of the node's column | state), as given.
    message : list of m arrays (n, H_parent) or None. p(evidence at and below the node | state of the parent), scaled.
    below : list of m arrays (n, H_k) or None. p(evidence below the node | its state), scaled.
    inside : list of m arrays (n, H_k) or None. p(evidence at and below the node | its state), scaled.
    log_probability : float64 array (n,). log p(evidence); -inf where it is impossible.
    """

    own: list[Message]
    message: list[Message]
    below: list[Message]
    inside: list[Message]
    log_probability: np.ndarray


class Downward(NamedTuple):
    """The results of the pass from the root to the leaves; arrays have n rows, or 1 where all rows agree.

    above : list of m arrays (n, H_parent). p(state of the parent, evidence that is not at or below the node), scaled.
    outside : list of m arrays (n, H_k). ``above @ transition``.
    """

    upward: Upward
    above: list[np.ndarray]
    outside: list[np.ndarray]

    def state(self, k: int) -> np.ndarray:
        """p(state of node k, evidence) but for a factor of each row, (n, H_k)."""
        inside = self.upward.inside[k]
        return self.outside[k] if inside is None else self.outside[k] * inside

    def rest(self, k: int) -> np.ndarray:
        """The same without the evidence of the node's own column."""
        below = self.upward.below[k]
        return self.outside[k] if below is None else self.outside[k] * below


def log_probability(tree: TreeTables, own: Sequence[Message], n: int) -> np.ndarray:
    """log p(evidence) of n rows, (n,): the pass upward that keeps no message."""
    return _up(tree, own, n, keep=False).log_probability


def up(tree: TreeTables, own: Sequence[Message], n: int) -> Upward:
    """The pass from the leaves to the root; ``own[k]`` is p(evidence of node k's column | state), (n, H_k)."""
    return _up(tree, own, n, keep=True)


@of_finite
def down(tree: TreeTables, upward: Upward, nodes: Sequence[int] | None = None) -> Downward:
    """The pass from the root to the leaves, or to some nodes alone; the others are left empty."""
    one = np.ones((1, 1), tree.dtype)
    above, outside = [one] * len(tree), [_through(one, tree.transition[0])] * len(tree)
    on_the_way = np.full(len(tree), nodes is None)
    on_the_way[list(nodes or ())] = True
    for k in range(len(tree) - 1, 0, -1):
        on_the_way[tree.parent[k]] |= on_the_way[k]
    for k, children in enumerate(tree.children):
        if any(on_the_way[c] for c in children):
            base = outside[k] if upward.own[k] is None else outside[k] * upward.own[k]
            for c, others in zip(children, without_each(base, [upward.message[c] for c in children]), strict=True):
                if on_the_way[c]:
                    above[c] = others
                    outside[c] = _through(others, tree.transition[c])
    return Downward(upward, above, outside)


def without_each(base: np.ndarray, messages: list[Message]) -> list[np.ndarray]:
    """``base`` times all messages but one, scaled, for each of the messages in turn."""
    if len(messages) > _IN_FLOAT32 and base.dtype != np.float64:
        wide = [None if message is None else message.astype(np.float64) for message in messages]
        return [found.astype(base.dtype) for found in without_each(base.astype(np.float64), wide)]
    before = [_by_sum(base)]
    for message in messages[:-1]:
        before.append(before[-1] if message is None else _by_sum(before[-1] * message))
    after: Message = None
    for i in range(len(messages) - 1, 0, -1):
        after = times(after, messages[i])[0]
        if after is not None:
            before[i - 1] = _by_sum(before[i - 1] * after)
    return before


def times(a: Message, b: Message) -> tuple[Message, np.ndarray | float]:
    """The product of two scaled messages, scaled, and the log of its scale."""
    if a is None or b is None:
        return b if a is None else a, 0.0
    return _scaled(a * b)


def _scaled(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows divided by their greatest entry, and the log of that; rows of zeros become ones, with -inf."""
    top = x.max(axis=1, keepdims=True)
    if top.min() > _TINY:
        return x * (1.0 / top), np.log(top[:, 0].astype(np.float64))  # several times as fast as to divide
    zero = top == 0.0
    with np.errstate(divide="ignore"):
        log_top = np.log(top[:, 0].astype(np.float64))
    one = np.ones((), x.dtype)
    return np.where(zero, one, x / np.where(zero, one, top)), log_top


def _by_sum(x: np.ndarray) -> np.ndarray:
    """Rows divided by their sums, which are found faster than greatest entries; rows of zeros become ones."""
    total = (x @ np.ones(x.shape[1], x.dtype))[:, None]
    if total.min() > _TINY:
        return x * (1.0 / total)
    return x / total if total.all() else _scaled(x)[0]


def _towards(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Messages x (n, H) by the states of the parent: a table (K, H) of all rows, or (n, K, H) of each row."""
    return x @ table.T if table.ndim == 2 else np.matmul(table, x[:, :, None])[:, :, 0]


def _through(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Messages x (n, K) from the states of the parent, by those of the node: a table (K, H), or (n, K, H)."""
    return x @ table if table.ndim == 2 else np.matmul(x[:, None, :], table)[:, 0]


@of_finite
def _up(tree: TreeTables, own: Sequence[Message], n: int, keep: bool) -> Upward:
    m = len(tree)
    log_scale = np.zeros(n)
    message: list[Message] = [None] * m
    below: list[Message] = [None] * m
    inside: list[Message] = [None] * m
    for k in range(m - 1, -1, -1):
        here = below[k]
        below[k] = here if here is None else here.astype(tree.dtype, copy=False)
        inside[k], log_top = times(below[k], own[k])
        log_scale += log_top
        here = inside[k]
        if here is None:
            continue
        sent, log_top = _scaled(_towards(here, tree.transition[k]))
        log_scale += log_top
        above = int(tree.parent[k])
        if above >= 0:
            message[k] = sent
            wide = sent.astype(np.float64) if len(tree.children[above]) > _IN_FLOAT32 else sent
            below[above], log_top = times(below[above], wide)
            log_scale += log_top
        if not keep:
            message[k] = below[k] = inside[k] = None
    return Upward(list(own), message, below, inside, log_scale)


# ---- Evidence as hidden trees see it: one vector over its codes for each cell.


class CodeEvidence(NamedTuple):
    """The likelihoods of n rows of evidence for one column.

    code : int64 array (n,). The value's code; K where nothing is known; K + 1 + r for the column's r-th region.
    log_base : float64 array (n,). Log of the factor of a code's probability: base density, or scale of a region.
    regions : tuple of R Scale. The column's scale within each of its regions.
    likelihood : float64 array (R, K). Share of each code inside the region, the greatest 1.
    value : float64 array (n,). Values, NaN where none is known.
    """

    code: np.ndarray
    log_base: np.ndarray
    regions: Sequence[Scale]
    likelihood: np.ndarray
    value: np.ndarray

    def take(self, rows: np.ndarray | slice) -> CodeEvidence:
        """Some of the rows."""
        return self._replace(code=self.code[rows], log_base=self.log_base[rows], value=self.value[rows])


def code_evidence(hidden: HiddenTrees, evidence: Evidence) -> list[CodeEvidence]:
    """The evidence on each column."""
    region = evidence.cell_regions() if evidence.has_regions else None
    return [
        _of_column(hidden, evidence, j, None if region is None else region[:, j])
        for j in range(len(hidden.schema.columns))
    ]


def _of_column(hidden: HiddenTrees, evidence: Evidence, j: int, region: np.ndarray | None) -> CodeEvidence:
    scale = hidden.scales[j]
    K, value = scale.n_codes, evidence.value[:, j]
    if region is None and np.isnan(value).all():
        return CodeEvidence(np.full(len(value), K), np.zeros(len(value)), (), np.empty((0, K)), value)
    code, log_base = codes_of(scale, value)
    code = code.astype(np.int64)
    if len(hidden.lost[j]):
        log_base[np.isin(value, hidden.lost[j])] = -np.inf
    if region is None or not (region >= 0).any():
        return CodeEvidence(code, log_base, (), np.empty((0, K)), value)
    numbers, place = np.unique(region, return_inverse=True)
    known = np.flatnonzero(numbers >= 0)
    cuts = region_scales(scale, evidence, numbers[known], hidden.schema.columns[j].atoms)
    log_top = cuts.log_code.max(axis=1)
    likelihood = np.exp(cuts.log_code - np.where(log_top > -np.inf, log_top, 0.0)[:, None])
    which = place.reshape(-1) - known[0]
    has = which >= 0
    code[has] = K + 1 + which[has]
    log_base[has] = log_top[which[has]]
    return CodeEvidence(code, log_base, cuts, likelihood, value)


def region_scales(scale: Scale, evidence: Evidence, numbers: np.ndarray, atoms: tuple[float, ...]) -> CutScales:
    """A column's scale cut to some regions; masses are multiplied with the likelihoods of soft ones."""
    count = evidence.run_start[numbers + 1] - evidence.run_start[numbers]
    runs = ranges(evidence.run_start[numbers], count)
    return restrict_each(
        scale,
        np.concatenate([[0], np.cumsum(count)]),
        evidence.run_lo[runs],
        evidence.run_hi[runs],
        evidence.atoms[numbers],
        atoms,
        evidence.run_log_weight[runs],
        evidence.atom_log_weight[numbers] if evidence.atom_log_weight.size else None,
    )


def possible_rows(hidden: HiddenTrees, known: list[CodeEvidence]) -> list[np.ndarray | slice]:
    """Rows of evidence to which each tree may give a probability above 0; it gives the other rows none."""
    if hidden.support is None:
        return [slice(None)] * len(hidden.trees)
    possible = np.ones((len(known[0].code), len(hidden.trees)), bool)
    for said, support in zip(known, hidden.support, strict=True):
        if (said.code != len(support)).any():
            inside = np.concatenate([support, np.ones((1, support.shape[1]), bool), _meets(said, support)])
            possible &= inside[said.code]
    return [np.flatnonzero(rows) for rows in np.ascontiguousarray(possible.T)]


@of_finite
def _meets(said: CodeEvidence, support: np.ndarray) -> np.ndarray:
    """Whether each region has a code that each tree gives a probability, (R, T)."""
    return np.asarray((said.likelihood > 0.0).astype(np.float32) @ support.astype(np.float32) > 0.0)


def own_messages(tree: TreeTables, known: list[CodeEvidence]) -> list[Message]:
    """p(evidence of the node's column | state) of each node: m arrays (n, H_k), or None where nothing is known."""
    return [None if j < 0 else _own(tree, k, known[j]) for k, j in enumerate(tree.column.tolist())]


@of_finite
def _own(tree: TreeTables, k: int, known: CodeEvidence) -> Message:
    K, picked = tree.emission[k].shape[1], tree.picked[k]
    if (known.code == K).all():
        return None
    if picked is None:
        own = tree.by_code[k][np.minimum(known.code, K)]
    else:
        own = ((known.code[:, None] == picked) | (known.code[:, None] == K)).astype(tree.dtype)
    if not len(known.regions):
        return own
    by_region = known.likelihood @ tree.emission[k].T if picked is None else known.likelihood[:, picked]
    inside = by_region.astype(tree.dtype)
    has = known.code > K
    own[has] = inside[known.code[has] - K - 1]
    return own


# ---- Which evidence lies so far out that only the tails of a column's scale answer for it.

_ROWS = 1e-3  # rows of the table that learned, expected as far out or farther


def is_far(hidden: HiddenTrees, evidence: Evidence) -> np.ndarray:
    """Whether a number lies far beyond all that was observed, bool (n,): fewer than `_ROWS` rows are expected there."""
    # Each of the two outer bins of a column of K bins is taken to hold 1 / K of the rows.
    far = np.zeros(len(evidence.value), bool)
    regions = evidence.cell_regions() if evidence.has_regions else None
    for j, (column, scale) in enumerate(zip(hidden.schema.columns, hidden.scales, strict=True)):
        if column.is_categorical:
            continue
        value = evidence.value[:, j]
        far |= _lie_beyond(column, scale, value - 0.5 * column.step, value + 0.5 * column.step)
        if regions is not None:
            rows = np.flatnonzero(regions[:, j] >= 0)
            number, place = np.unique(regions[rows, j], return_inverse=True)
            far[rows] |= _lie_beyond(column, scale, *_least_and_greatest(column, evidence, number))[place.reshape(-1)]
    return far


def _least_and_greatest(column: Column, evidence: Evidence, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest number of regions, each (r,); NaN of an empty one."""
    lo, hi = np.full(len(number), np.nan), np.full(len(number), np.nan)
    first, end = evidence.run_start[number], evidence.run_start[number + 1]
    some = first < end
    lo[some], hi[some] = evidence.run_lo[first[some]], evidence.run_hi[end[some] - 1]
    for r, bits in enumerate(evidence.atoms[number].tolist()):
        held = [atom for k, atom in enumerate(column.atoms) if bits >> k & 1]
        if held:
            lo[r], hi[r] = np.fmin(lo[r], held[0]), np.fmax(hi[r], held[-1])
    return lo, hi


def _lie_beyond(column: Column, scale: Scale, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Whether intervals lie beyond the observed range and the scale has next to nothing as far out, (n,)."""
    far = np.zeros(len(lo), bool)
    least = _ROWS * scale.n_codes / max(column.n_observed, 1)
    above, below = np.flatnonzero(lo > column.maximum), np.flatnonzero(hi < column.minimum)
    if len(above):
        far[above] = 1.0 - cdf(scale, lo[above])[:, -1] < least
    if len(below):
        far[below] = cdf(scale, hi[below])[:, 0] < least
    return far
