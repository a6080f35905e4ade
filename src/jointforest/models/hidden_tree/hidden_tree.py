"""`HiddenTree`: weighted hidden trees as a distribution, and its posterior state; `ChowLiuForest`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...data.discretization import base_density
from ...data.discretization.discretizer import Scale
from ...data.evidence import Evidence, within_ends
from ...data.schema import Schema, kernel_columns
from ..base import Distribution, Parts, PosteriorState
from ..box_forest.box_trees import BoxTrees
from ..points import Points
from . import column, sampling
from .column import HiddenState, covariance, most_informed_nodes
from .condition import condition, given_missing, in_state, marginalize, missing_shares
from .files import hidden_to_arrays
from .hidden_trees import Grown, HiddenTrees
from .hinge import LinkedSum
from .linked import LinkedRows
from .messages import code_evidence, is_far
from .modes import hidden_modes
from .posterior import KeptRows, codes_by_tree, log_density, log_density_without, sums_over_trees, tree_log_density

_ENTRIES_PER_LEAF = 400
"""Entries of transition tables that take as long as one leaf of a forest."""
_KEPT_ENTRIES = 1 << 22
"""Most rows of evidence, times codes of a column, whose posterior is kept for further questions."""


@dataclass(frozen=True)
class HiddenTree(Distribution):
    """A mixture of hidden Chow-Liu trees: see `hidden_trees.HiddenTrees` for its tables and its formula. In place of a
    background, the open tails of the base densities cover the rows that no state has."""

    kind = "hidden trees"
    hidden: HiddenTrees

    @property
    def forest_hint(self) -> str:
        return "; learn with AdversarialForest or JointTree(leaf='quantile') to have one"

    @property
    def schema(self) -> Schema:
        return self.hidden.schema

    def with_schema(self, schema: Schema) -> HiddenTree:
        return replace(self, hidden=replace(self.hidden, schema=schema))

    def hidden_trees(self) -> HiddenTrees:
        return self.hidden

    def log_density(self, evidence: Evidence) -> np.ndarray:
        return log_density(self.hidden, evidence)

    def observe(self, evidence: Evidence) -> HiddenTreePosterior:
        return HiddenTreePosterior(self, evidence)

    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool) -> np.ndarray:
        drawn = sampling.sample(self.hidden, evidence, m, seed, missing)
        return within_ends(self.schema, evidence, m, drawn)

    def completions(self, evidence: Evidence, count: np.ndarray, seed: int) -> np.ndarray:
        return sampling.completions(self.hidden, evidence, count, seed)

    def impute(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        filled, impossible = sampling.impute(self.hidden, evidence)
        return filled, np.where(impossible, np.nan, is_far(self.hidden, evidence))

    def condition(self, evidence: Evidence) -> HiddenTree:
        return HiddenTree(condition(self.hidden, evidence))

    def marginalize(self, columns: list[int]) -> HiddenTree:
        return HiddenTree(marginalize(self.hidden, columns))

    def given_missing(self, j: int, is_missing: bool) -> tuple[HiddenTree | None, float]:
        hidden, log_probability = given_missing(self.hidden, j, is_missing)
        return None if hidden is None else HiddenTree(hidden), log_probability

    def log_density_without_each(self, evidence: Evidence, known: np.ndarray) -> np.ndarray:
        """One pass up and one down for all columns."""
        return log_density_without(self.hidden, evidence)

    def means_without_each(self, evidence: Evidence, asked: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """One pass up and one down for all columns; rows that are impossible in a tree one column at a time."""
        if not asked or self.hidden.support is not None:
            return super().means_without_each(evidence, asked)
        found = column.means_without_each(self.hidden, evidence, asked)
        lost = {j: np.flatnonzero(np.isnan(means).any(axis=1)) for j, means in found.items()}
        again = {j: asked[j][rows] for j, rows in lost.items() if len(rows)}
        for j, means in super().means_without_each(evidence, again).items():
            found[j][lost[j]] = means
        return found

    def modes(self, evidence: Evidence, k: int, budget: int) -> tuple[np.ndarray, float]:
        return hidden_modes(self.hidden, evidence, budget)

    def heaviest_states(
        self, evidence: Evidence, k: int, linked: LinkedSum | None = None
    ) -> tuple[list[HiddenState], int]:
        """As the base class; the row may have a sum beside it."""
        posteriors = None if linked is None else LinkedRows(self.hidden, evidence, [linked]).node_states()
        nodes = most_informed_nodes(self.hidden, evidence, posteriors)
        total = float(np.logaddexp.reduce([log_joint for _, _, log_joint in nodes]))
        weight = [np.exp(log_joint - total) * posterior for _, posterior, log_joint in nodes]
        each = [(t, state) for t, of_tree in enumerate(weight) for state in np.flatnonzero(of_tree > 0.0).tolist()]
        found = []
        for t, state in sorted(each, key=lambda of: -weight[of[0]][of[1]])[:k]:
            node, w = nodes[t][0], float(weight[t][state])
            column = self.schema.names[int(self.hidden.trees[t].column[node])]
            inside = HiddenTree(in_state(self.hidden, t, node, state))
            found.append(HiddenState(w, math.log(w) + total, t, column, state, inside))
        return found, len(each)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return hidden_to_arrays(self.hidden)

    def size(self) -> dict[str, int]:
        trees = self.hidden.trees
        return {"trees": len(trees), "states": max(int(tree.n_states.max()) for tree in trees)}

    def density_breaks(self, j: int) -> list[np.ndarray]:
        return [self.hidden.scales[j].lo, self.hidden.scales[j].hi]

    def density_cost(self) -> float:
        return self.mode_cost() / _ENTRIES_PER_LEAF

    def mode_cost(self) -> int:
        return sum(table.size for tree in self.hidden.trees for table in tree.transition)


class HiddenTreePosterior(PosteriorState):
    """The posterior of hidden trees. Results for few rows are kept for further questions."""

    distribution: HiddenTree

    @property
    def hidden(self) -> HiddenTrees:
        return self.distribution.hidden

    @cached_property
    def kept(self) -> KeptRows | None:
        """The results for the evidence so far; None of so many rows that each question reads them in batches."""
        n, K = len(self.evidence.value), max(scale.n_codes for scale in self.hidden.scales)
        return KeptRows(self.hidden, self.evidence) if n == 1 or n * K <= _KEPT_ENTRIES else None

    def prepare(self, columns: Sequence[int]) -> None:
        if self.kept is not None:
            self.kept.posterior(columns)

    @cached_property
    def log_evidence(self) -> float:
        if self.kept is None:
            return super().log_evidence
        return float(self.kept.log_probability()[0])

    def log_probability(self) -> np.ndarray:
        if self.kept is None:
            return super().log_probability()
        return self.kept.log_probability() + self.evidence.log_penalty

    def background_weight(self) -> np.ndarray:
        impossible = np.isneginf(self.log_probability())
        return np.where(impossible, np.nan, is_far(self.hidden, self.evidence))

    def _answers(self, j: int, ask: Callable[..., column.Question], *about: np.ndarray) -> np.ndarray:
        """The answers to a question about column j, at some points or levels or at none, (n, q)."""
        question = ask(self.hidden.schema.columns[j], *(np.asarray(x, dtype=np.float64) for x in about))
        return column.column_answers(self.hidden, self.evidence, j, question, self.kept)

    def level_probabilities(self, j: int) -> np.ndarray:
        return self._answers(j, column.level_probabilities)

    def moments(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = self._answers(j, column.moments).T
        return mean.copy(), variance.copy()

    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self._answers(j, column.cdf, x)

    def pdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self._answers(j, column.pdf, x)

    def quantile(self, j: int, q: np.ndarray) -> np.ndarray:
        return self._answers(j, column.quantile, q)

    def parts(self, j: int) -> Parts:
        """Hidden states; where states are codes, they are only the rows that satisfy the evidence."""
        if all(tree.is_plain for tree in self.hidden.trees):
            return super().parts(j)
        return column.parts(self.hidden, KeptRows(self.hidden, self.evidence.take(np.array([0]))), j)

    def covariance(self, a: int, b: int) -> np.ndarray:
        return covariance(self.hidden, self.evidence, a, b, kept=self.kept)

    def missing_shares(self, columns: Sequence[int]) -> np.ndarray:
        if self.kept is None or len(self.evidence.value) > 1:
            return super().missing_shares(columns)
        return missing_shares(self.hidden, self.kept, list(columns))


class LinkedPosterior(HiddenTreePosterior):
    """The posterior of hidden trees given evidence and a sum in each row, all of the same columns in the same order.
    There is no other evidence on these columns, of whose values the sums have the likelihoods."""

    def __init__(self, distribution: HiddenTree, evidence: Evidence, sums: Sequence[LinkedSum]) -> None:
        super().__init__(distribution, evidence)
        self.sums = sums

    @cached_property
    def kept(self) -> LinkedRows:
        return LinkedRows(self.hidden, self.evidence, self.sums)

    def law(self, j: int) -> list[np.ndarray]:
        """The posterior of the values of a part in each row, n arrays (S,); NaN where the evidence is impossible."""
        return self.kept.law(j)

    @cached_property
    def totals(self) -> list[np.ndarray]:
        """The posterior of the total in each row, n arrays (L,); NaN where the evidence is impossible."""
        return self.kept.totals()

    def _points(self, j: int) -> list[Points] | None:
        """The distribution of a part in each row; None of another column."""
        if not self.sums or j not in self.sums[0].columns:
            return None
        of = self.distribution.schema.columns[j]
        return [Points(of, *law) for law in self.kept.points(j)]

    def level_probabilities(self, j: int) -> np.ndarray:
        if (points := self._points(j)) is None:
            return super().level_probabilities(j)
        out = np.zeros((len(points), len(self.distribution.schema.columns[j].levels)))
        for row, of in zip(out, points, strict=True):
            row[of.value.astype(np.int64)] = of.p
        return out

    def moments(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        if (points := self._points(j)) is None:
            return super().moments(j)
        mean = np.array([of.p @ of.value for of in points])
        variance = [of.p @ (of.value - m) ** 2 for of, m in zip(points, mean, strict=True)]
        return mean, np.array(variance)

    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self._by_points(j, x, Points.cdf, super().cdf)

    def pdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self._by_points(j, x, Points.pdf, super().pdf)

    def quantile(self, j: int, q: np.ndarray) -> np.ndarray:
        return self._by_points(j, q, Points.quantile, super().quantile)

    def _by_points(
        self,
        j: int,
        x: np.ndarray,
        ask: Callable[[Points, np.ndarray], np.ndarray],
        otherwise: Callable[..., np.ndarray],
    ) -> np.ndarray:
        """An answer about a part at q points, (n, q), NaN where the row or the point is; ``otherwise`` of others."""
        if (points := self._points(j)) is None:
            return otherwise(j, x)
        out, x = np.full((len(points), len(x)), np.nan), np.asarray(x, np.float64)
        some = ~np.isnan(x)
        for row, of in zip(out, points, strict=True):
            if not np.isnan(of.p[0]):
                row[some] = ask(of, x[some])
        return out

    def parts(self, j: int) -> Parts:
        return PosteriorState.parts(self, j)

    def covariance(self, a: int, b: int) -> np.ndarray:
        """By two more passes, as `column.covariance`, with weights on the values of a part."""
        columns = self.sums[0].columns
        if a not in columns:
            a, b = b, a
        if a == b:
            return self.moments(a)[1]
        if a not in columns:
            return super().covariance(a, b)
        i, mean = columns.index(a), self.moments(a)[0]
        laws, sides = self.kept.law(a), []
        excess = [one.values[i] - m for one, m in zip(self.sums, mean, strict=True)]
        size = np.array([law @ np.maximum(x, 0.0) for law, x in zip(laws, excess, strict=True)])
        for sign in (1.0, -1.0):
            with np.errstate(divide="ignore"):
                tilts = [np.log(np.maximum(sign * x, 0.0)) for x in excess]
            sums = [
                one._replace(log_like=(*one.log_like[:i], one.log_like[i] + tilt, *one.log_like[i + 1 :]))
                for one, tilt in zip(self.sums, tilts, strict=True)
            ]
            sides.append(LinkedPosterior(self.distribution, self.evidence, sums).center(b))
        out = size * (sides[0] - sides[1])
        return np.where(size > 1e-12 * np.abs(mean), out, np.where(np.isnan(mean), np.nan, 0.0))

    def missing_probabilities(self, columns: Sequence[int]) -> np.ndarray:
        return self.kept.missing(columns)[0]


# ---- `ChowLiuForest`: a forest with a Chow-Liu tree in each leaf, and the view of its trees for rules and pictures.


@dataclass(frozen=True, eq=False)
class ChowLiuTrees(BoxTrees):
    """The view of the trees of a forest whose leaves contain hidden trees; see `BoxTrees`."""

    hidden: HiddenTrees
    grown: Grown

    def tree_log_density(self, evidence: Evidence) -> np.ndarray:
        first = np.searchsorted(self.tree[self.grown.leaf], np.arange(len(self.trees.root)))
        return sums_over_trees(self.hidden, evidence, first) + evidence.log_penalty[:, None]

    def met_leaves(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        log_weight = tree_log_density(self.hidden, evidence)[0]
        met = log_weight > -np.inf
        return self.grown.leaf[met], log_weight[met]

    def column_in_groups(self, evidence: Evidence, groups: Sequence[np.ndarray] | np.ndarray, j: int) -> _CodeColumn:
        hidden = self.hidden
        group_of = np.full(int(self.grown.leaf.max()) + 1, -1)
        for number, leaves in enumerate(groups):
            group_of[leaves] = number
        group = group_of[self.grown.leaf]
        mine = np.flatnonzero(group >= 0)
        few = replace(
            hidden, trees=tuple(hidden.trees[t] for t in mine), log_weight=hidden.log_weight[mine], grown=None
        )
        log_weight = tree_log_density(few, evidence)[0]
        codes = codes_by_tree(few, evidence, [j])[j]
        p = np.zeros((len(groups), codes.shape[1]))
        for number in range(len(groups)):
            own = np.flatnonzero(group[mine] == number)
            p[number] = np.exp(log_weight[own] - np.logaddexp.reduce(log_weight[own])) @ codes[own]
        known, scale = code_evidence(hidden, evidence)[j], hidden.scales[j]
        region = int(known.code[0]) - scale.n_codes - 1
        return _CodeColumn(known.regions[region] if region >= 0 else scale, len(hidden.schema.columns[j].levels), p)

    def leaf_kind(self, leaf: int) -> str:
        return "background" if self.is_background(leaf) else "Chow-Liu leaf"


@dataclass(frozen=True)
class ChowLiuForest(HiddenTree):
    """A forest with a Chow-Liu tree in each leaf, which is a hidden tree whose states are codes."""

    kind = "forest with Chow-Liu leaves"

    @property
    def forest_hint(self) -> str:
        return "; learn with leaf='quantile' to have one"

    @property
    def grown(self) -> Grown:
        """The forest of the leaves, which is present in every object of this class."""
        assert self.hidden.grown is not None
        return self.hidden.grown

    def box_trees(self) -> ChowLiuTrees:
        trees, hidden = self.grown.trees, self.hidden
        node = np.flatnonzero(trees.leaf >= 0)
        tree = np.empty(len(node), np.int64)
        tree[trees.leaf[node]] = np.searchsorted(trees.root, node, side="right") - 1
        log_weight = np.full(len(node), -np.inf)
        log_weight[self.grown.leaf] = hidden.log_weight
        columns, has_background = kernel_columns(hidden.schema), self.grown.has_background
        return ChowLiuTrees(hidden.schema, columns, trees, tree, log_weight, has_background, hidden, self.grown)

    def size(self) -> dict[str, int]:
        n_background = int(self.grown.has_background)
        leaves = int((self.grown.trees.leaf >= 0).sum())
        return {"trees": len(self.grown.trees.root) - n_background, "leaves": leaves - n_background}


@dataclass(frozen=True)
class _CodeColumn:
    """A column in k groups of leaves with Chow-Liu trees; ``p`` (k, n_codes) is p(code) in each group."""

    scale: Scale
    n_levels: int
    p: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(self.p @ base_density.cdf(self.scale, x).T, 1.0)

    def quantile(self, levels: np.ndarray) -> np.ndarray:
        return base_density.quantiles(self.scale, self.p, levels)

    def mean(self) -> np.ndarray:
        return np.asarray(self.p @ self.scale.moments[1])

    def level_probability(self) -> np.ndarray:
        return base_density.levels(self.scale, self.p, self.n_levels)
