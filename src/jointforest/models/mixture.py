"""`Mixture`: a weighted sum of distributions over the same schema, and its posterior state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..data.evidence import Evidence, build, distinct_rows
from ..data.rules.rule import Rule
from ..data.schema import Column, Schema
from ..runtime.arrays import ranges
from .base import Distribution, Parts, PosteriorState, of_known
from .box_forest.box_forest import BoxForest, merge_forests
from .points import inverted


class Mixture(Distribution):
    """M(x) = sum_k exp(log_weight[k]) P_k(x); each component P_k is a distribution over all columns of the schema.

    components : tuple of K Distribution. Of one schema.
    log_weight : float64 array (K,). ``exp`` of it sums to 1.
    """

    kind = "mixture"

    def __init__(self, components: tuple[Distribution, ...], log_weight: np.ndarray) -> None:
        self._components, self._log_weight = components, log_weight

    @property
    def components(self) -> tuple[Distribution, ...]:
        return self._components

    @property
    def log_weight(self) -> np.ndarray:
        return self._log_weight

    @property
    def schema(self) -> Schema:
        return self.components[0].schema

    def with_schema(self, schema: Schema) -> Mixture:
        return Mixture(tuple(part.with_schema(schema) for part in self.components), self.log_weight)

    @property
    def missing_by_rule(self) -> frozenset[str]:  # type: ignore[override] # it depends on the components
        return frozenset.intersection(*(component.missing_by_rule for component in self.components))

    def log_joint(self, evidence: Evidence) -> np.ndarray:
        """log weight_k + log p_k(evidence) of each component, (n, K)."""
        return np.column_stack([p.log_density(evidence) for p in self.components]) + self.log_weight

    def has_exact_density(self, columns: list[int]) -> bool:
        return all(component.has_exact_density(columns) for component in self.components)

    def log_density(self, evidence: Evidence) -> np.ndarray:
        return np.logaddexp.reduce(self.log_joint(evidence), axis=1)

    def log_density_without_each(self, evidence: Evidence, known: np.ndarray) -> np.ndarray:
        each = [p.log_density_without_each(evidence, known) for p in self.components]
        return np.logaddexp.reduce([x + w for x, w in zip(each, self.log_weight, strict=True)], axis=0)

    def observe(self, evidence: Evidence) -> MixturePosterior:
        return MixturePosterior(self, evidence)

    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool) -> np.ndarray:
        """Draws the component by how well the evidence fits it, then a row of that component."""
        # Equal rows of evidence, and all draws of a row, are propagated together.
        n, d = evidence.value.shape
        rows, place = distinct_rows(evidence)
        row = np.repeat(np.arange(n) if isinstance(place, slice) else place, m)
        out = np.full((n * m, d), np.nan)
        last = np.cumsum(self.observe(rows).component_weights, axis=1)
        chosen = (np.random.default_rng(seed).random((n * m, 1)) >= last[row, :-1]).sum(axis=1)
        chosen[np.isnan(last[row, 0])] = -1
        for k, component in enumerate(self.components):
            chosen_rows = np.flatnonzero(chosen == k)
            chosen_rows = chosen_rows[np.argsort(row[chosen_rows], kind="stable")]
            count = np.bincount(row[chosen_rows], minlength=len(rows.value))
            of_row = count[row[chosen_rows]]
            for draws in np.unique(of_row).tolist():
                rows_here = rows.take(np.flatnonzero(count == draws))
                seed_here = int(np.random.SeedSequence([seed, k, draws]).generate_state(1, np.uint64)[0] >> 2)
                out[chosen_rows[of_row == draws]] = component.sample(rows_here, draws, seed_here, missing)
        return out

    def completions(self, evidence: Evidence, count: np.ndarray, seed: int) -> np.ndarray:
        return self.observe(evidence).completions(count, seed)

    def condition(self, evidence: Evidence) -> Distribution:
        log_joint = self.log_joint(evidence)[0]
        possible = np.flatnonzero(log_joint > -np.inf).tolist() or [0]  # a component raises the error if none is
        return _sum_of([self.components[k].condition(evidence) for k in possible], log_joint[possible])

    def marginalize(self, columns: list[int]) -> Mixture:
        return Mixture(tuple(p.marginalize(columns) for p in self.components), self.log_weight)

    def is_seen(self, evidence: Evidence) -> np.ndarray:
        return np.logical_or.reduce([component.is_seen(evidence) for component in self.components])

    def given_known(self, columns: Sequence[int]) -> Distribution:
        nothing = self.observe(build(self.schema))
        state = nothing.knowing(columns)
        if state is nothing:
            return self
        log_p = state._log_joint()[0]
        possible = np.flatnonzero(log_p > -np.inf).tolist() or [0]  # a component raises the error if none is
        return _sum_of([self.components[k].given_known(columns) for k in possible], log_p[possible])

    def given_missing(self, j: int, is_missing: bool) -> tuple[Distribution | None, float]:
        each = [p.given_missing(j, is_missing) for p in self.components]
        log_joint = self.log_weight + np.array([log_p for _, log_p in each])
        log_p = float(np.logaddexp.reduce(log_joint))
        if log_p == -np.inf:
            return None, -np.inf
        possible = [p for p, _ in each if p is not None]
        return _sum_of(possible, log_joint[log_joint > -np.inf]), log_p

    def modes(self, evidence: Evidence, k: int, budget: int) -> tuple[np.ndarray, float]:
        """The components' rows; a mixture is nowhere greater than the weighted sum of its components' bounds."""
        rows, bounds, columns = [], [], range(len(self.schema.columns))
        for component, log_weight in zip(self.components, self.log_weight.tolist(), strict=True):
            if component.observe(evidence).knowing(columns).log_probability()[0] > -np.inf:
                X, log_bound = component.modes(evidence, k, budget)
                rows.append(X)
                bounds.append(log_weight + log_bound)
        return np.vstack(rows), float(np.logaddexp.reduce(bounds))

    def why_impossible(self, evidence: Evidence) -> str:
        return next(filter(None, (component.why_impossible(evidence) for component in self.components)), "")

    def density_breaks(self, j: int) -> list[np.ndarray]:
        return [points for component in self.components for points in component.density_breaks(j)]

    def density_cost(self) -> float:
        return sum(component.density_cost() for component in self.components)

    def mode_cost(self) -> int:
        return sum(component.mode_cost() for component in self.components)


def _sum_of(components: list[Distribution], log_joint: np.ndarray) -> Distribution:
    """The mixture with weights in proportion to ``exp(log_joint)``; a single component is no mixture."""
    if len(components) == 1:
        return components[0]
    return Mixture(tuple(components), log_joint - np.logaddexp.reduce(log_joint))


class MixturePosterior(PosteriorState):
    """The posterior of a mixture: each component's answer is weighted by p(component given the evidence)."""

    distribution: Mixture

    @cached_property
    def states(self) -> tuple[PosteriorState, ...]:
        """The posterior state of each component."""
        return tuple(component.observe(self.evidence) for component in self.distribution.components)

    def knowing(self, columns: Sequence[int]) -> MixturePosterior:
        """The components are weighed anew: some may have more rows in which the columns have values."""
        states = tuple(state.knowing(columns) for state in self.states)
        if all(state is before for state, before in zip(states, self.states, strict=True)):
            return self
        found = MixturePosterior(self.distribution, self.evidence)
        found.states, found._known = states, self._known | frozenset(columns)
        return found

    def prepare(self, columns: Sequence[int]) -> None:
        for state in self.states:
            state.prepare(columns)

    _known: frozenset[int] = frozenset()
    """Columns that have values in each row; see `knowing`."""

    @cached_property
    def component_weights(self) -> np.ndarray:
        """p(component k | evidence), (n, K): rows sum to 1, NaN where the evidence has probability 0."""
        return _weights_of(self._log_joint())

    def _log_joint(self) -> np.ndarray:
        """log weight_k + log p_k(evidence) of each row and component, (n, K)."""
        each = [state.log_probability() for state in self.states]
        return np.column_stack(each) + self.distribution.log_weight

    def log_probability(self) -> np.ndarray:
        return np.asarray(np.logaddexp.reduce(self._log_joint(), axis=1))

    def completions(self, count: np.ndarray, seed: int) -> np.ndarray:
        """The draws of the first component come first; how many there are is found by systematic sampling."""
        d = self.evidence.value.shape[1]
        offset = np.random.default_rng(seed).random()
        below = np.cumsum(self.component_weights, axis=1)
        below[:, -1] += 1e-9  # rounding must not lose the last draw
        stop = np.clip(np.ceil(count[:, None] * below - offset), 0, count[:, None])
        stop[np.isnan(stop)] = 0.0  # impossible rows have no draws of any component
        number = np.diff(stop, axis=1, prepend=0.0).astype(np.int64)
        first = (np.cumsum(count) - count)[:, None] + np.cumsum(number, axis=1) - number
        out = np.full((int(count.sum()), d), np.nan)
        for k, component in enumerate(self.distribution.components):
            rows = np.flatnonzero(number[:, k])
            own = number[rows, k]
            at = ranges(first[rows, k], own)
            seed_here = int(np.random.SeedSequence([seed, k]).generate_state(1, np.uint64)[0] >> 2)
            out[at] = component.completions(self.evidence.take(rows), own, seed_here)
        return out

    def mean_of(self, answers: Sequence[np.ndarray]) -> np.ndarray:
        """sum_k component_weights[:, k] answers[k]; components of weight 0 do not count, whatever they answer."""
        return weighted(self.component_weights, answers)

    @property
    def effective_draws(self) -> np.ndarray:
        return np.asarray(np.min([state.effective_draws for state in self.states], axis=0))

    @cached_property
    def log_evidence(self) -> float:
        return float(np.logaddexp.reduce(self._log_joint_of_first))

    @property
    def _log_joint_of_first(self) -> np.ndarray:
        """log weight_k + log p_k(evidence) of the first row, (K,), which the states have computed already."""
        return np.array([state.log_evidence for state in self.states]) + self.distribution.log_weight

    def background_weight(self) -> np.ndarray:
        return self.mean_of([state.background_weight() for state in self.states])

    @of_known
    def level_probabilities(self, j: int) -> np.ndarray:
        if len(self.evidence.value) == 1:  # whose leaves are weighed once for all questions
            return self.mean_of([state.level_probabilities(j) for state in self.states])
        each = [state.levels_and_log_probability(j) for state in self.states]
        log_joint = np.column_stack([log_p for _, log_p in each]) + self.distribution.log_weight
        self.component_weights = _weights_of(log_joint)  # found on the way, and needed by draws too
        return self.mean_of([levels for levels, _ in each])

    @of_known
    def moments(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """The variance is sum_k s_k (v_k + (m_k - mean)^2), with weights s_k, means m_k and variances v_k."""
        each = [state.moments(j) for state in self.states]
        mean = self.mean_of([m for m, _ in each])
        return mean, self.mean_of([v + (m - mean) ** 2 for m, v in each])

    @of_known
    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self.mean_of([state.cdf(j, x) for state in self.states])

    @of_known
    def pdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self.mean_of([state.pdf(j, x) for state in self.states])

    @of_known
    def histogram(self, j: int, cuts: np.ndarray) -> np.ndarray:
        return self.mean_of([state.histogram(j, cuts) for state in self.states])

    @of_known
    def mean_and_histogram(self, j: int, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        each = [state.mean_and_histogram(j, cuts) for state in self.states]
        return self.mean_of([mean for mean, _ in each]), self.mean_of([mass for _, mass in each])

    @of_known
    def quantile(self, j: int, q: np.ndarray) -> np.ndarray:
        """Quantiles lie between those of the components, where the mixture's CDF is inverted."""
        each = [state.quantile(j, q) for state in self.states]
        column, levels = self.distribution.schema.columns[j], np.asarray(q, dtype=np.float64)
        out = np.full(each[0].shape, np.nan)
        counts = self.component_weights.T[:, :, None] > 0.0
        low = np.where(counts, each, np.inf).min(axis=0)
        high = np.where(counts, each, -np.inf).max(axis=0)
        cells = _few_cells(column, low, high)
        if cells is not None and len(out) > 1:
            return self._among_cells(j, levels, cells, low, high)
        for i in np.flatnonzero(~np.isnan(self.component_weights[:, 0])).tolist():
            weight = self.component_weights[[i]]
            one = self.evidence.take(np.array([i]))
            row = list(self.states)
            if len(out) > 1:
                row = [p.observe(one).knowing(sorted(self._known)) for p in self.distribution.components]

            def below(x: np.ndarray, row: list[PosteriorState] = row, weight: np.ndarray = weight) -> np.ndarray:
                """P(column <= x) at points x."""
                return weighted(weight, [state.cdf(j, x) for state in row])[0]

            out[i] = inverted(below, levels, low[i], high[i], column)
        return out

    def _among_cells(self, j: int, q: np.ndarray, cells: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Quantiles (n, k) that lie in a few cells of a grid between ``low`` and ``high`` (n, k): all rows at once."""
        below = self.cdf(j, cells)
        out = high.copy()
        for k, level in enumerate(q.tolist()):
            enough = (below >= level) & (cells >= low[:, [k]])
            cell = cells[enough.argmax(axis=1)]
            out[:, k] = np.where(enough.any(axis=1), np.minimum(cell, high[:, k]), high[:, k])
        out[np.isnan(self.component_weights[:, 0])] = np.nan
        return out

    @of_known
    def parts(self, j: int) -> Parts:
        """The parts of all components; a component of weight 0 has none that counts."""
        each = [state.parts(j) for state in self.states]
        prior = [np.exp(w) * parts.prior for w, parts in zip(self.distribution.log_weight, each, strict=True)]
        weight = [
            w * parts.weight if w > 0.0 else np.zeros(len(parts.weight))
            for w, parts in zip(self.component_weights[0].tolist(), each, strict=True)
        ]
        mean, variance = ([getattr(parts, name) for parts in each] for name in ("mean", "variance"))
        return Parts(*map(np.concatenate, (prior, weight, mean, variance)))

    @of_known
    def quantile_points(self, j: int, q: np.ndarray) -> np.ndarray:
        return np.unique(np.concatenate([state.quantile_points(j, q) for state in self.states]))

    @of_known
    def covariance(self, a: int, b: int) -> np.ndarray:
        """sum_k s_k (cov_k + (a_k - a)(b_k - b)) with weights s_k and means a_k, b_k."""
        centers = [[state.center(j) for state in self.states] for j in (a, b)]
        mean_a, mean_b = (self.mean_of(center) for center in centers)
        apart = [(x - mean_a) * (y - mean_b) for x, y in zip(*centers, strict=True)]
        return self.mean_of([state.covariance(a, b) + d for state, d in zip(self.states, apart, strict=True)])

    def missing_shares(self, columns: Sequence[int]) -> np.ndarray:
        log_joint = self._log_joint_of_first
        weight = np.exp(log_joint - np.logaddexp.reduce(log_joint))
        possible = np.flatnonzero(weight > 0.0).tolist()
        return np.asarray(sum(weight[k] * self.states[k].missing_shares(columns) for k in possible))


def _weights_of(log_joint: np.ndarray) -> np.ndarray:
    """p(component | evidence), (n, K), from log p(component, evidence); NaN where all are -inf."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)))


def weighted(weight: np.ndarray, answers: Sequence[np.ndarray]) -> np.ndarray:
    """sum_k weight[:, k] answers[k]; components of weight 0 do not count, whatever they answer."""
    total = np.zeros_like(answers[0])
    for k, answer in enumerate(answers):
        w = weight[:, k].reshape(-1, *[1] * (answer.ndim - 1))
        total += np.where(w == 0.0, 0.0, w * answer)
    return total


_FEW_CELLS = 256  # whose CDF takes no longer than to propagate the evidence once more for each row


def _few_cells(column: Column, low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
    """Centres of the cells of a grid from the least ``low`` to the greatest ``high``; None if there are many."""
    known = np.isfinite(low) & np.isfinite(high)
    if column.step == 0.0 or not known.any():
        return None
    first, last = np.rint((np.array([low[known].min(), high[known].max()]) - column.center) / column.step)
    if last - first >= _FEW_CELLS:
        return None
    return np.asarray(column.center + np.arange(first, last + 1.0) * column.step)


def mixture_of(distributions: Sequence[Distribution], weight: np.ndarray) -> Distribution:
    """M(x) = sum_i weight[i] M_i(x) of one schema; forests become one forest, which answers questions of forests."""
    components = [p for distribution in distributions for p in distribution.components]
    log_weight = np.concatenate([p.log_weight + np.log(w) for p, w in zip(distributions, weight, strict=True)])
    is_forest = np.array([component.is_forest for component in components])
    if is_forest.sum() > 1:
        forests = [component.forest_for("a mixture") for component in components if component.is_forest]
        total = np.logaddexp.reduce(log_weight[is_forest])
        others = [component for component in components if not component.is_forest]
        components = [BoxForest(merge_forests(forests, log_weight[is_forest] - total)), *others]
        log_weight = np.concatenate([[total], log_weight[~is_forest]])
    mixed = _sum_of(components, log_weight)
    schemas = [distribution.schema for distribution in distributions]
    is_one_table = len({schema.n_rows for schema in schemas}) == 1
    n_rows = schemas[0].n_rows if is_one_table else 0.0
    return mixed.with_schema(replace(mixed.schema, n_rows=n_rows, rules=_rules_of_all(schemas), checked=""))


def _rules_of_all(schemas: Sequence[Schema]) -> tuple[Rule, ...]:
    """The rules that all schemas have; they are enforced where all enforce them."""
    by_text = [{str(rule): rule for rule in schema.rules} for schema in schemas]
    common = [rule for text, rule in by_text[0].items() if all(text in rules for rules in by_text)]
    return tuple(
        replace(
            rule,
            exceptions=max(rules[str(rule)].exceptions for rules in by_text),
            is_enforced=all(rules[str(rule)].is_enforced for rules in by_text),
        )
        for rule in common
    )
