"""`RuledDistribution`: a distribution of coordinates as one of the rows of a table, all of which obey its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...data.conditions import AnyOf, Not
from ...data.evidence import Evidence, build, is_met_by
from ...data.rules.rule import Rule
from ...data.schema import Column, Schema
from ...runtime.warnings import EstimatedAnswerWarning, warn, warn_of_draws
from ..base import Distribution, PosteriorState
from ..hidden_tree.column import HiddenState
from ..hidden_tree.hidden_tree import HiddenTree, LinkedPosterior
from ..mixture import Mixture
from .coordinates import NEVER, CoordinateCells, Coordinates
from .files import ruled_to_arrays
from .linked import Linker
from .posterior import GroupedPosterior, RuledPosterior
from .translate import CoordinateRows, known_values, open_rows, representatives, spread_out, translate

_ROWS = 128
"""Drawn rows by which it is decided whether densities are exact."""
_MOST_ROUNDS = 100
"""Most times that a row is drawn again because it leaves the range of a column."""
_RANGE_ROWS = 1 << 12
"""Drawn rows that estimate how often a column leaves its range."""
_TOLD_SHARE = 1e-3
"""Least share of rows beyond a column's range that answers warn of."""
_NEXT_SEED = 1_000_003
"""Between the seeds of two such rounds."""
_MOST_COMPONENTS = 256
"""Most rows about coordinates that conditioning makes components of."""


class PartsOfSum(NamedTuple):
    """constant + sum of coefficient * column, of the columns of a distribution given rows of evidence.

    evidence : Evidence. R rows, of which one holds.
    share : float64 array (R,). The probability of each that it is the one; NaN if all are impossible.
    is_exact : bool. Whether the rows are all there are, and no draws.
    coefficient : dict of int to float. By the number of the column; none is 0.
    """

    distribution: Distribution
    evidence: Evidence
    share: np.ndarray
    is_exact: bool
    coefficient: dict[int, float]
    constant: float


def ruled(coordinates: Coordinates, inner: Distribution) -> Distribution:
    """The distribution of rows of a table; of a mixture each component has the coordinates."""
    if len(inner.components) == 1:
        return RuledDistribution(coordinates, inner)
    parts = tuple(RuledDistribution(coordinates, component) for component in inner.components)
    return Mixture(parts, inner.log_weight)


@dataclass(frozen=True)
class RuledDistribution(Distribution):
    """The rows that a distribution of coordinates makes.

    inner : Distribution. Of the coordinates; no mixture.
    """

    coordinates: Coordinates
    inner: Distribution

    @property
    def kind(self) -> str:  # type: ignore[override] # it depends on what has the rules
        return f"{self.inner.kind} with rules"

    @property
    def forest_hint(self) -> str:
        return "; learn with rules='off' to have one without" if self.inner.is_forest else self.inner.forest_hint

    @property
    def schema(self) -> Schema:
        return self.coordinates.schema

    def with_schema(self, schema: Schema) -> RuledDistribution:
        return RuledDistribution(replace(self.coordinates, schema=schema), self.inner)

    @property
    def missing_by_rule(self) -> frozenset[str]:  # type: ignore[override] # it depends on the rules
        absences = self.coordinates.absences
        return frozenset(
            name for name, of in zip(self.schema.names, absences, strict=True) if of.by_rule and of.besides < 0
        )

    @cached_property
    def linker(self) -> Linker | None:
        """Makes sums that stay beside rows, where the coordinates' distribution knows their distribution."""
        return Linker(self.coordinates, self.inner) if isinstance(self.inner, HiddenTree) else None

    def rows(self, evidence: Evidence) -> Iterator[tuple[np.ndarray, CoordinateRows]]:
        """The evidence as rows about the coordinates: numbers of some rows at a time, and what stands for them."""
        return translate(self.coordinates, self.inner, evidence, self.linker)

    def _states(self, evidence: Evidence) -> Iterator[tuple[np.ndarray, RuledPosterior]]:
        """Numbers of some rows at a time, and the posterior of these."""
        for some, rows in self.rows(evidence):
            yield some, RuledPosterior(self, self.inner, evidence.take(some), rows, self.linker)

    @cached_property
    def share_beyond(self) -> dict[int, float]:
        """Share of rows in which each column that an order makes of others leaves its observed range."""
        if not self.coordinates.gaps:
            return {}
        X = self.coordinates.rows(self.inner.sample(build(self.inner.schema), _RANGE_ROWS, 0, False))
        return {j: float(self.coordinates.is_outside(j, X[:, j]).mean()) for j in self.coordinates.gaps}

    def _warn_of_ranges(self, evidence: Evidence) -> None:
        """Warn, once, where answers count rows beyond the range of a column without a value, which are never drawn."""
        made = list(self.coordinates.gaps)
        is_open = np.isnan(evidence.value[:, made]).any(axis=0)
        share = [self.share_beyond[j] for j in np.array(made)[is_open].tolist()]
        names = [self.schema.names[j] for j in np.array(made)[is_open].tolist()]
        warned = self.coordinates.warned
        lost_columns = [
            (name, x) for name, x in zip(names, share, strict=True) if x > _TOLD_SHARE and name not in warned
        ]
        if lost_columns:
            warned.update(name for name, _ in lost_columns)
            shares = ", ".join(f"{name!r} of {x:.1%}" for name, x in lost_columns)
            warn(
                EstimatedAnswerWarning(
                    f"some rows of the joint have values that lie beyond those of the table ({shares} of all rows), as "
                    "an order makes these columns of others; answers count such rows, and drawn rows have none of them",
                    f"a probability without evidence may differ by up to {sum(share):.2g} from its share of drawn rows",
                )
            )

    def log_density(self, evidence: Evidence) -> np.ndarray:
        if len(evidence.value) == 1:  # a question, no table of rows
            self._warn_of_ranges(evidence)
        place = np.arange(len(evidence.value))
        if len(evidence.value) > 1:
            of_all, place = representatives(evidence, open_rows(self.coordinates, evidence))
            if len(of_all) < len(place):
                evidence = evidence.take(of_all)
        out, draws = np.empty(len(evidence.value)), np.inf
        for some, rows in translate(self.coordinates, self.inner, evidence, self.linker, 0):  # all sums are linked
            state = RuledPosterior(self, self.inner, evidence.take(some), rows, self.linker)
            out[some] = state.log_probability()
            draws = min(draws, float(state.effective_draws.min(initial=np.inf)))
        warn_of_draws(draws, "log-densities")
        return out[place]

    def has_exact_density(self, columns: list[int]) -> bool:
        """Whether no density of a few drawn rows is an estimate."""
        X = self.sample(build(self.schema), _ROWS, 0, False)
        X = np.where(np.isin(np.arange(X.shape[1]), columns), X, np.nan)
        return all(rows.is_exact.all() for _, rows in self.rows(Evidence.of_values(X)))

    def observe(self, evidence: Evidence) -> PosteriorState:
        self._warn_of_ranges(evidence)
        states = [(some, state.without_tails()) for some, state in self._states(evidence)]
        return states[0][1] if len(states) == 1 else GroupedPosterior(self, evidence, states)

    def spread_out(self, evidence: Evidence) -> RuledPosterior:
        """The posterior from rows about coordinates alone, without sums beside them."""
        return RuledPosterior(
            self, self.inner, evidence, spread_out(self.coordinates, self.inner, evidence), self.linker
        )

    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool) -> np.ndarray:
        """As the base class; columns that an order makes of others stay in their observed range."""
        # They stop at an end that is a point mass. Other rows that leave a range are drawn again.
        X, draws = self._drawn(evidence, m, seed, missing)
        warn_of_draws(draws, "rows")
        free = np.isnan(evidence.value) & (evidence.cell_regions() < 0)
        rows = np.arange(len(X))
        for k in range(_MOST_ROUNDS):
            outside = [self.coordinates.is_outside(j, X[rows, j]) & free[rows // m, j] for j in self.coordinates.gaps]
            rows = rows[np.any(outside, axis=0)] if outside else rows[:0]
            if not len(rows):
                break
            X[rows] = self._drawn(evidence.take(rows // m), 1, seed + (k + 1) * _NEXT_SEED, missing)[0]
        return X

    def _drawn(self, evidence: Evidence, m: int, seed: int, missing: bool) -> tuple[np.ndarray, float]:
        """m draws for each row (n * m, d), and how many draws of equal weight they come from."""
        d, draws = len(self.schema.columns), np.inf
        out = np.empty((len(evidence.value), m, d))
        for k, (some, state) in enumerate(self._states(evidence)):
            if state.rows.sums is not None:
                X = self._sampled_with_sums(state, m, seed + k, missing)
            elif state.rows.is_one_each:
                X = self._sampled(state.evidence, state.rows, m, seed + k, missing)
            else:
                draws = min(draws, float(state.effective_draws.min(initial=np.inf)))
                X = self._sampled_of_many(state, m, seed + k, missing)
            out[some] = X.reshape(len(some), m, d)
        return out.reshape(len(out) * m, d), draws

    def _sampled(self, evidence: Evidence, rows: CoordinateRows, m: int, seed: int, missing: bool) -> np.ndarray:
        """Draws of rows of evidence that are one row about coordinates each."""
        Z = self.inner.sample(rows.evidence, m, seed, False)
        Z[np.repeat(rows.log_weight == -np.inf, m)] = np.nan
        self._keep_to_caps(evidence, Z, m)
        X = self.coordinates.rows(Z)
        hidden = self.inner.sample(rows.evidence, m, seed, True) if missing and self._is_hidden else None
        return self._seen(evidence, X, Z, hidden, m, missing)

    def _sampled_with_sums(self, state: RuledPosterior, m: int, seed: int, missing: bool) -> np.ndarray:
        """Draws of rows with a sum beside them: of its parts one after the other, then of all others."""
        rng = np.random.default_rng([seed, 2])
        cells, count = state.rows.cells.take(np.arange(len(state.rows.owner))), np.full(len(state.rows.owner), m)
        count[np.isnan(state.share)] = 0
        while len(cells.owner) and cells.pending.any():
            cells, count = _with_drawn_part(state.with_cells(cells), count, rng)
        rows = cells.take(np.repeat(np.arange(len(count)), count))
        X = np.full((len(state.evidence.value) * m, len(self.schema.columns)), np.nan)
        if len(rows.owner):
            each = CoordinateRows(rows.alone(np.arange(len(rows.owner))), np.ones(len(rows.owner), bool))
            drawn = self._sampled(state.evidence.take(rows.owner), each, 1, seed, missing)
            order = np.lexsort((rng.random(len(drawn)), rows.owner))
            X[np.repeat(~np.isnan(state.share), m)] = drawn[order]
        return X

    def _sampled_of_many(self, state: RuledPosterior, m: int, seed: int, missing: bool) -> np.ndarray:
        """Draws of rows of evidence that are many rows about coordinates each."""
        share, rows, n = state.share, state.rows, len(state.evidence.value)
        rng = np.random.default_rng([seed, 1])
        X = np.empty((n * m, len(self.schema.columns)))
        for i in range(n):
            mine = np.flatnonzero(rows.owner == i)
            if np.isnan(share[mine[0]]):
                X[i * m : (i + 1) * m] = np.nan
                continue
            chosen = np.sort(rng.choice(mine, m, p=share[mine] / share[mine].sum()))
            drawn, own = rows.take(chosen), int(rng.integers(2**62))
            Z = self.inner.sample(drawn, 1, own, False)
            hidden = self.inner.sample(drawn, 1, own, True) if missing and self._is_hidden else None
            one = state.evidence.take(np.array([i]))
            self._keep_to_caps(one, Z, m)
            order = rng.permutation(m)
            X[i * m : (i + 1) * m] = self._seen(one, self.coordinates.rows(Z), Z, hidden, m, missing)[order]
        return X

    def _keep_to_caps(self, evidence: Evidence, Z: np.ndarray, m: int) -> None:
        """Move draws of coordinates (n * m, p) so that columns stop at an end of their range that is a point mass."""
        # A column whose values crowd at its maximum, such as a percentage at 100, has its rows beyond it there.
        free = np.isnan(evidence.value) & (evidence.cell_regions() < 0)
        for j, at in self.coordinates.gaps.items():
            column = self.schema.columns[j]
            others = [
                k
                for k, source in enumerate(self.coordinates.sources)
                if k != j and any(t.at == at for t in source.terms)
            ]
            for end, sign in ((column.minimum, -1.0), (column.maximum, 1.0)):
                if end in column.atoms:
                    is_free = free[:, others].all(axis=1) & (free[:, j] | _allows(column, evidence, j, end))
                    is_beyond = sign * (self.coordinates.column(j, Z) - end) > 0.0
                    self.coordinates.move_gaps(j, Z, np.flatnonzero(is_beyond & np.repeat(is_free, m)), end, end)

    @property
    def _is_hidden(self) -> bool:
        """Whether a column is missing where a coordinate is."""
        return any(absence.like >= 0 for absence in self.coordinates.absences)

    def _seen(
        self, evidence: Evidence, X: np.ndarray, Z: np.ndarray, hidden: np.ndarray | None, m: int, missing: bool
    ) -> np.ndarray:
        """Draws X (n * m, d) from coordinates Z, with the known cells, and without the missing ones (``hidden``)."""
        known = np.repeat(~np.isnan(evidence.value), m, axis=0)
        regions = np.repeat(evidence.cell_regions() >= 0, m, axis=0)
        impossible = np.isnan(Z).any(axis=1)
        X = np.where(known, np.repeat(evidence.value, m, axis=0), X)
        for j, absence in enumerate(self.coordinates.absences):
            is_free = ~known[:, j] & ~regions[:, j]
            if absence.where >= 0 and (missing or absence.by_rule):
                X[is_free & np.isin(Z[:, absence.where], absence.values), j] = np.nan
            if absence.besides >= 0 and missing:
                X[is_free & (Z[:, absence.besides] == 1.0), j] = np.nan
            if absence.like >= 0 and hidden is not None:
                X[is_free & np.isnan(hidden[:, absence.like]), j] = np.nan
        X[impossible] = np.nan
        return X

    def impute(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        """As the base class, but that the filled row obeys the rules: coordinates are filled, and make the columns."""
        filled, background, draws = np.empty(evidence.value.shape), np.empty(len(evidence.value)), np.inf
        for some, state in self._states(evidence):
            draws = min(draws, float(state.effective_draws.min(initial=np.inf)))
            state = state.without_tails()
            filled[some], background[some] = state.filled(), state.background_weight()
        warn_of_draws(draws, "imputed cells")
        return filled, background

    def condition(self, evidence: Evidence) -> Distribution:
        state = self.spread_out(evidence)
        some = np.flatnonzero(np.nan_to_num(state.share) > 0.0)
        if not len(some):
            why = self.why_impossible(evidence)
            raise ValueError(f"the evidence has probability 0{f': {why}' if why else ''}; drop or widen a condition")
        if len(some) > _MOST_COMPONENTS or not state.rows.is_exact.all():
            names = ", ".join(map(repr, state.rows.said_sums()))
            raise ValueError(
                f"condition: evidence about {names}, a sum of columns that are not known, is no joint of its own; "
                "ask given(...), which answers it, or draw rows from it"
            )
        parts = []
        for r in some.tolist():
            inner = self.inner.condition(state.rows.take(np.array([r])))
            parts.append(RuledDistribution(self.coordinates.pinned(inner.schema), inner))
        if len(parts) == 1:
            return parts[0]
        schema = parts[0].schema
        return Mixture(tuple(part.with_schema(schema) for part in parts), np.log(state.share[some]))

    def marginalize(self, columns: list[int]) -> RuledDistribution:
        coordinates, kept = self.coordinates.select(sorted(columns))
        return RuledDistribution(coordinates, self.inner.marginalize(kept))

    def is_seen(self, evidence: Evidence) -> np.ndarray:
        return ~CoordinateCells.of(self.coordinates, evidence).is_new

    def given_known(self, columns: Sequence[int]) -> Distribution:
        absences = [self.coordinates.absences[j] for j in columns]
        values: dict[int, set[float]] = {}
        for of in absences:
            if of.by_rule:
                values.setdefault(of.where, set()).update(of.values)
        if not values:
            return self
        said = {}
        for at, excluded in values.items():
            column = self.coordinates.inner.columns[at]
            said[column.name] = Not(AnyOf(*(column.from_number(x) for x in sorted(excluded))))
        evidence = build(self.coordinates.inner, conditions=said)
        if self.inner.log_density(evidence)[0] == -np.inf:
            names = ", ".join(repr(self.schema.names[j]) for j, of in zip(columns, absences, strict=True) if of.by_rule)
            raise ValueError(f"no row has values of all these columns: rules make one of {names} missing in each row")
        inner = self.inner.condition(evidence)
        return RuledDistribution(self.coordinates.pinned(inner.schema), inner)

    def given_missing(self, j: int, is_missing: bool) -> tuple[Distribution | None, float]:
        absence = self.coordinates.absences[j]
        if absence.like >= 0:
            inner, log_p = self.inner.given_missing(absence.like, is_missing)
            return None if inner is None else RuledDistribution(self.coordinates, inner), log_p
        if absence.where < 0:
            return (None, -np.inf) if is_missing else (self, 0.0)
        of = [self.coordinates.inner.columns[at] for at in (absence.where, max(absence.besides, 0))]
        values = AnyOf(*(of[0].from_number(x) for x in absence.values))
        others: dict[str, Any] = {of[0].name: Not(values)}
        besides = {of[1].name: is_missing} if absence.besides >= 0 else {}
        ways = [others | besides] if besides or not is_missing else []
        ways += [{of[0].name: values}] if is_missing else []
        said = [build(self.coordinates.inner, conditions=conditions) for conditions in ways]
        log_each = [float(self.inner.log_density(one)[0]) for one in said]
        log_p = float(np.logaddexp.reduce(log_each))
        parts = [self.inner.condition(one) for one, x in zip(said, log_each, strict=True) if x > -np.inf]
        if not parts:
            return None, -np.inf
        if len(parts) == 1:
            return RuledDistribution(self.coordinates.pinned(parts[0].schema), parts[0]), log_p
        each = tuple(RuledDistribution(self.coordinates, part.with_schema(self.inner.schema)) for part in parts)
        return Mixture(each, np.array(log_each) - log_p), log_p

    def log_density_without_each(self, evidence: Evidence, known: np.ndarray) -> np.ndarray:
        """Columns that rules do not touch by the inner distribution, the others one by one."""
        out, is_found = np.zeros(known.shape), np.zeros(known.shape, bool)
        for some, rows in self.rows(evidence):
            if not rows.is_one_each or rows.sums is not None or not self.coordinates.untouched:
                continue
            inside = np.zeros((len(some), len(self.coordinates.inner.columns)), bool)
            for j, at in self.coordinates.untouched.items():
                inside[:, at] = known[some, j]
            each = self.inner.log_density_without_each(rows.evidence, inside) + rows.log_weight[:, None]
            for j, at in self.coordinates.untouched.items():
                out[some, j], is_found[some, j] = each[:, at], True
        for j in range(known.shape[1]):
            rest = np.flatnonzero(known[:, j] & ~is_found[:, j])
            if len(rest):
                out[rest, j] = self.log_density(evidence.take(rest).without(j))
        return out

    def modes(self, evidence: Evidence, k: int, budget: int) -> tuple[np.ndarray, float]:
        """Of the rows that have values in all columns."""
        model, log_known = self._complete
        rows = spread_out(model.coordinates, model.inner, evidence)
        names = ", ".join(map(repr, rows.said_sums()))
        if not rows.is_one_each:
            raise ValueError(
                f"mode: the evidence about {names}, a sum of columns that are not known, has no certified mode; "
                "give evidence about its parts, or draw rows"
            )
        Z, log_bound = model.inner.modes(rows.evidence, k, budget)
        X = np.where(np.isnan(evidence.value), model.coordinates.rows(Z), evidence.value)
        hidden = model.coordinates.merged & set(np.flatnonzero(np.isnan(rows.evidence.value[0])).tolist())
        if hidden or np.isnan(known_values(model.coordinates, X)).any():
            raise ValueError(
                "mode: the columns do not tell what rules make them of, so that there is no certified mode; ask the "
                "joint of all columns, or draw rows"
            )
        # what units add to the density is the same in all complete rows
        complete = spread_out(model.coordinates, model.inner, Evidence.of_values(X))
        return X, log_bound + float(complete.log_weight.max()) + float(evidence.log_penalty[0]) + log_known

    @cached_property
    def _complete(self) -> tuple[RuledDistribution, float]:
        """The rows that have values in all columns, without coordinates of missing cells; log of their share."""
        columns = range(len(self.schema.columns))
        known = self.given_known(columns)
        assert isinstance(known, RuledDistribution)
        state = self.observe(build(self.schema)).knowing(columns)
        coordinates = replace(known.coordinates, absences=(NEVER,) * len(columns))
        coordinates, kept = coordinates.select(list(columns))
        return RuledDistribution(coordinates, known.inner.marginalize(kept)), float(state.log_probability()[0])

    def why_impossible(self, evidence: Evidence) -> str:
        known = ~np.isnan(evidence.value[0]) | (evidence.cell_regions()[0] >= 0)
        names = {name for name, is_known in zip(self.schema.names, known.tolist(), strict=True) if is_known}
        for rule in self.coordinates.enforced:
            if self._is_impossible(evidence, names & set(rule.columns)):
                return f"it contradicts the rule {str(rule)!r}"
        for rules in _connected(self.coordinates.enforced):
            if len(rules) > 1 and self._is_impossible(
                evidence, names & {name for rule in rules for name in rule.columns}
            ):
                return f"it contradicts the rules {', '.join(repr(str(rule)) for rule in rules)} together"
        return ""

    def _is_impossible(self, evidence: Evidence, names: set[str]) -> bool:
        """Whether the evidence on some columns has probability 0."""
        for j, name in enumerate(self.schema.names):
            if name not in names:
                evidence = evidence.without(j)
        return bool(names) and self.log_density(evidence._replace(log_penalty=np.zeros(1)))[0] == -np.inf

    def heaviest_states(self, evidence: Evidence, k: int) -> tuple[list[HiddenState], int] | None:
        """Those of the coordinates' distribution; of several rows that stand for the evidence, of the heaviest one."""
        ((_, state),) = self._states(evidence)
        row, sums = int(np.nan_to_num(state.share).argmax()), state.rows.sums
        one_row = state.rows.take(np.array([row]))
        if sums is None:
            found = self.inner.heaviest_states(one_row, k)
        else:
            assert isinstance(self.inner, HiddenTree)
            found = self.inner.heaviest_states(one_row, k, sums[row])
        if found is None:
            return None
        extra = float(state.log_rows[row]) - float(np.logaddexp.reduce([one.log_weight for one in found[0]]))
        extra += float(np.log(sum(one.weight for one in found[0])))
        return [
            one._replace(
                log_weight=one.log_weight + extra, distribution=RuledDistribution(self.coordinates, one.distribution)
            )
            for one in found[0]
        ], found[1]

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return ruled_to_arrays(self.coordinates, self.inner)

    def size(self) -> dict[str, int]:
        return self.inner.size()

    def density_breaks(self, j: int) -> list[np.ndarray]:
        return self.inner.density_breaks(self.coordinates.plain[j]) if j in self.coordinates.plain else []

    def density_cost(self) -> float:
        return self.inner.density_cost()

    def mode_cost(self) -> int:
        return self.inner.mode_cost()


def sum_in_parts(
    model: Distribution, evidence: Evidence, columns: Sequence[int], coefficients: Sequence[float]
) -> PartsOfSum | None:
    """A sum of columns, given one row of evidence, by what rules make these of; None where it is no such sum."""
    if not isinstance(model, RuledDistribution):
        return None
    combined = model.coordinates.combined(columns, coefficients)
    if combined is None:
        return None
    model._warn_of_ranges(evidence)
    state = model.spread_out(evidence)
    return PartsOfSum(model.inner, state.rows.evidence, state.share, bool(state.rows.is_exact[0]), *combined)


def _with_drawn_part(
    state: RuledPosterior, count: np.ndarray, rng: np.random.Generator
) -> tuple[CoordinateCells, np.ndarray]:
    """Rows with a value of the shortest unknown part of their sum, for as many draws of it; and how many each."""
    cells, sums = state.rows.cells, state.rows.sums
    assert sums is not None
    at, values = sums[0].columns[0], [one.values[0] for one in sums]
    assert isinstance(state.inner, LinkedPosterior)
    laws = state.inner.law(at)
    drawn = [
        rng.multinomial(m, law / law.sum()) if m else np.zeros(len(law), np.int64)
        for m, law in zip(count.tolist(), laws, strict=True)
    ]
    row = np.concatenate([np.full(np.count_nonzero(d), i) for i, d in enumerate(drawn)])
    found = cells.take(row.astype(np.int64))
    found.assign(at, np.concatenate([x[d > 0] for x, d in zip(values, drawn, strict=True)]))
    found.solve()
    return found, np.concatenate([d[d > 0] for d in drawn])


def _allows(column: Column, evidence: Evidence, j: int, x: float) -> np.ndarray:
    """Which rows of evidence have a hard region of column j that holds a number, bool (n,)."""
    numbers = evidence.cell_regions()[:, j]
    out = np.zeros(len(numbers), bool)
    for number in np.unique(numbers[numbers >= 0]).tolist():
        rows = np.flatnonzero(numbers == number)
        runs = slice(evidence.run_start[number], evidence.run_start[number + 1])
        is_hard = not evidence.run_log_weight[runs].any() and not evidence.atom_log_weight[number : number + 1].any()
        out[rows] = is_hard and bool(is_met_by(column, evidence.take(rows[:1]), j, np.array([x]))[0])
    return out


def _connected(rules: tuple[Rule, ...]) -> list[list[Rule]]:
    """Groups of rules that share columns, directly or by others."""
    groups: list[tuple[set[str], list[Rule]]] = []
    for rule in rules:
        touched = [group for group in groups if group[0] & set(rule.columns)]
        names = set(rule.columns).union(*(names for names, _ in touched))
        groups = [group for group in groups if group not in touched]
        groups.append((names, [*(one for _, of in touched for one in of), rule]))
    return [of for _, of in groups]
