"""The probability that a sum of columns stands in a relation to a number, draws of such rows, and covariances."""

# The mathematics is in docs/concepts/two-columns.md.

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..data.conditions import AnyOf
from ..data.evidence import Evidence, side_of, with_values, within
from ..data.meaning import NOWHERE, Region, meaning_of
from ..data.schema import Column, Schema
from ..models.base import Distribution, PosteriorState
from ..models.ruled.ruled import PartsOfSum, sum_in_parts
from ..runtime.threads import chunks
from .information.integral import Estimate, averaged, exact
from .sampling import DRAWS_AT_ONCE, sample, seed_of_block

RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_TAIL = 1e-8
"""Probability on either side of a column that its grid leaves out."""
_MOST_CELLS = 4096
"""Most cells of a column that are summed one by one."""
_NEAR = 1e-9
"""Relative difference below which a sum equals the bound: sums of numbers on a grid are rounded."""


class LinearRelation(NamedTuple):
    """sum_i coefficient[i] * column[i] op bound; date-times count in seconds since their column's origin.

    column : tuple of int. Numbers of two or more columns, each once.
    coefficient : tuple of float. None 0.
    op : str. One of `RELATIONS`.
    """

    column: tuple[int, ...]
    coefficient: tuple[float, ...]
    op: str
    bound: float


def probability_of_relation(
    model: Distribution, evidence: Evidence, relation: LinearRelation, n: int, seed: int
) -> Estimate:
    """P(relation | one row of evidence) of numeric columns; exact for most pairs, else a mean over ``n`` draws."""
    # Exact if one of two columns is known or has a grid of at most 4,096 cells. Else the first column is drawn in n / 2
    # strata, and the probability given its value is exact. Three columns and more are means over drawn rows.
    if relation.op == "!=":
        equal = probability_of_relation(model, evidence, relation._replace(op="="), n, seed)
        return equal._replace(value=1.0 - equal.value)
    share = model.observe(evidence).component_weights[0]
    possible = [part for part, p in zip(model.components, share, strict=True) if p > 0.0]
    parts = [sum_in_parts(part, evidence, *relation[:2]) for part in possible]
    sums = [of for of in parts if of is not None]
    is_sum = len(sums) == len(possible) > 0
    is_short = [len(of.coefficient) < 2 or (len(of.coefficient) == 2 and len(of.share) == 1) for of in sums]
    if is_sum and any(is_short):  # in other components the sum has more parts
        each = [
            _of_parts(of, relation, n, seed + k) if short
            else probability_of_relation(part, evidence, relation, n, seed + k)
            for k, (part, of, short) in enumerate(zip(possible, sums, is_short, strict=True))
        ]  # fmt: skip
        return _mixed_estimates(share[share > 0.0], each)
    if len(relation.column) > 2:
        return _by_rows(model, evidence, relation, n, seed)
    for first in (0, 1):
        estimate = _sum_over_cells(model, evidence, relation, first)
        if estimate is not None:
            return estimate
    smooth = [first for first in (0, 1) if model.schema.columns[relation.column[first]].step == 0.0]
    if relation.op == "=" and smooth:
        return _of_atoms(model, evidence, relation, smooth[0])
    if is_sum:
        return _by_rows(model, evidence, relation, n, seed)
    each = [
        _by_strata(part, evidence, relation, n, seed + k) if share[k] > 0.0 else exact(0.0)
        for k, part in enumerate(model.components)
    ]
    return _mixed_estimates(share, each)


def _mixed_estimates(share: np.ndarray, each: Sequence[Estimate]) -> Estimate:
    """The answers of components, weighed by their shares."""
    value, error, _ = zip(*each, strict=True)
    if all(one.method == "exact" for one in each):
        return exact(float(share @ value))
    return Estimate(float(share @ value), float(np.sqrt(np.square(share * error).sum())), "sampling")


def _of_parts(parts: PartsOfSum, relation: LinearRelation, n: int, seed: int) -> Estimate:
    """`probability_of_relation` by the columns that rows are made of: one or none, or two given one row of evidence."""
    model, rows, bound = parts.distribution, parts.evidence, relation.bound - parts.constant
    columns, coefficients = tuple(parts.coefficient), tuple(parts.coefficient.values())
    among = LinearRelation(columns, coefficients, relation.op, bound)
    if len(columns) == 2:
        return probability_of_relation(model, rows, among, n, seed)
    value = np.zeros(len(rows.value)) if not columns else rows.value[:, columns[0]]
    X = np.zeros((len(value), len(model.schema.columns)))
    X[:, list(columns)] = value[:, None]
    inside = _satisfied(among, np.nan_to_num(X)).astype(np.float64)
    free = np.flatnonzero(np.isnan(value))
    if len(free):
        (j,), (c,) = columns, coefficients
        side = side_of(model.schema.columns[j], relation.op if c > 0.0 else _TURNED[relation.op], bound / c)
        some = rows.take(free)
        log_both = model.log_density(within(model.schema, some, j, [side] * len(free)))
        with np.errstate(invalid="ignore"):
            inside[free] = np.exp(np.minimum(log_both - model.log_density(some), 0.0))
    weight = np.where(parts.share == 0.0, 0.0, parts.share)
    found = float(weight @ np.where(weight == 0.0, 0.0, inside))
    if parts.is_exact:
        return exact(found)
    return Estimate(found, float(np.sqrt(np.square(weight * (inside - found)).sum())), "sampling")


def _by_strata(model: Distribution, evidence: Evidence, relation: LinearRelation, n: int, seed: int) -> Estimate:
    """The mean over pairs of draws of the first column, a pair a stratum, and its standard error."""
    rng = np.random.default_rng(seed)
    strata = max(n // 2, 2)
    level = (np.arange(strata)[:, None] + rng.random((strata, 2))) / strata
    level = np.clip(level, 2.0**-52, 1.0 - 2.0**-52)
    x = model.observe(evidence).quantile(relation.column[0], np.sort(level.ravel()))[0]
    weight, inside = _given_first(model, evidence, relation, 0, x)
    pairs = np.where(weight > 0.0, inside, 0.0).reshape(strata, 2)
    error = np.sqrt(((pairs[:, 0] - pairs[:, 1]) ** 2).sum() / 4.0) / strata
    return Estimate(float(pairs.mean()), float(error), "sampling")


def probability_of_levels(model: Distribution, evidence: Evidence, a: int, b: int, op: str) -> float:
    """P(column a op column b | one row of evidence), exact, of columns of levels, which are compared as text."""
    _, weight, inside, _ = _first_levels(model, evidence, a, b, op)
    return float(np.clip(weight @ inside, 0.0, 1.0))


def _first_levels(
    model: Distribution, evidence: Evidence, a: int, b: int, op: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Levels of a given one row of evidence, their probabilities, P(relation | level), and the levels of b."""
    first, second = model.schema.columns[a], model.schema.columns[b]
    if op not in ("=", "!="):
        _check_order(first, second, op)
    known = evidence.value[0, a]
    codes = np.arange(len(first.levels), dtype=np.float64) if np.isnan(known) else np.array([known])
    rows = evidence if not np.isnan(known) else with_values(model.schema, evidence, a, codes)
    log_p = model.log_density(rows)
    possible = np.flatnonzero(log_p > -np.inf)
    weight = np.exp(log_p[possible] - np.logaddexp.reduce(log_p[possible]))
    holds = _holds(first, second, op)[codes[possible].astype(np.int64)]
    inside = (model.observe(rows.take(possible)).level_probabilities(b) * holds).sum(axis=1)
    return codes[possible], weight, inside, holds


def _holds(first: Column, second: Column, op: str) -> np.ndarray:
    """Which pairs of levels of two columns stand in a relation, bool (levels of one, levels of the other)."""
    compare = RELATIONS[op]
    if op in ("=", "!="):
        return np.array([[bool(compare(x, y)) for y in second.levels] for x in first.levels])
    return np.array([[bool(compare(x, y)) for y in range(len(second.levels))] for x in range(len(first.levels))])


def _check_order(first: Column, second: Column, op: str) -> None:
    same = first.levels == second.levels
    if not (same and {first.kind, second.kind} <= {"ordered", "boolean"}):
        raise ValueError(
            f"{first.name!r} {op} {second.name!r}: order is defined between ordered columns of the same levels; these "
            f"are {first.kind} and {second.kind}; ask whether they are equal (=, !=)"
        )


def _sum_over_cells(model: Distribution, evidence: Evidence, relation: LinearRelation, first: int) -> Estimate | None:
    """The sum over the cells of one column; None if it has no grid, or too many cells."""
    x = _values_of_column(model, evidence, relation.column[first])
    if x is None:
        return None
    weight, inside = _given_first(model, evidence, relation, first, x)
    if not np.isnan(evidence.value[0, relation.column[first]]):
        return exact(float(np.clip(inside[0], 0.0, 1.0)))
    weight *= model.schema.columns[relation.column[first]].step
    beyond = max(1.0 - weight.sum(), 0.0)  # beyond the ends: at most 2e-8, half of which is counted
    return exact(float(np.clip(weight @ inside + 0.5 * beyond, 0.0, 1.0)))


def _values_of_column(model: Distribution, evidence: Evidence, j: int) -> np.ndarray | None:
    """Values of a column that hold all but 2e-8, (q,): the known one, or cells; None without grid, or of too many."""
    column, known = model.schema.columns[j], evidence.value[0, j]
    if not np.isnan(known):
        return np.array([known])
    if column.step == 0.0:
        return None
    state = model.observe(evidence)
    ends = state.quantile(j, np.array([_TAIL, 1.0 - _TAIL]))[0]
    low, high = np.rint((ends - column.center) / column.step).tolist()
    if not high - low < _MOST_CELLS:
        return None
    x = column.center + np.arange(low, high + 1.0) * column.step
    # as evidence, a value that was never seen among levels has a penalty, but it has no probability
    return np.asarray(x[state.pdf(j, x)[0] > 0.0])


def _sides(schema: Schema, relation: LinearRelation, first: int, x: np.ndarray) -> list[Region]:
    """Where the other of two columns has to be if the first has the values x (q,)."""
    a, b = relation.coefficient[first], relation.coefficient[1 - first]
    op = relation.op if b > 0.0 else _TURNED[relation.op]
    column = schema.columns[relation.column[1 - first]]
    return [side_of(column, op, bound) for bound in ((relation.bound - a * x) / b).tolist()]


def _given_first(
    model: Distribution, evidence: Evidence, relation: LinearRelation, first: int, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior density of one column at values x (q,), and P(relation | it has the value), each (q,)."""
    j, k = relation.column[first], relation.column[1 - first]
    is_known = not np.isnan(evidence.value[0, j])
    rows = evidence if is_known else with_values(model.schema, evidence, j, x)
    sides = _sides(model.schema, relation, first, x)
    log_rows = np.where(model.is_seen(rows), model.log_density(rows), -np.inf)
    log_both = model.log_density(within(model.schema, rows, k, sides))
    log_evidence = model.log_density(evidence)[0]
    with np.errstate(invalid="ignore"):
        inside = np.where(log_rows > -np.inf, np.exp(np.minimum(log_both - log_rows, 0.0)), 0.0)
        return np.exp(log_rows - log_evidence), inside


def _of_atoms(model: Distribution, evidence: Evidence, relation: LinearRelation, first: int) -> Estimate:
    """P(a sum of a column without grid and another is a number): it may be at the column's atoms alone."""
    atoms = np.array(model.schema.columns[relation.column[first]].atoms)
    if not len(atoms):
        return exact(0.0)
    weight, inside = _given_first(model, evidence, relation, first, atoms)
    return exact(float(np.clip(weight @ inside, 0.0, 1.0)))


def _by_rows(model: Distribution, evidence: Evidence, relation: LinearRelation, n: int, seed: int) -> Estimate:
    return averaged(_satisfied(relation, sample(model, evidence, n, seed, False)).astype(np.float64))


def _satisfied(relation: LinearRelation, X: np.ndarray) -> np.ndarray:
    """Which rows X (n, d) stand in the relation, bool (n,)."""
    total = X[:, list(relation.column)] @ np.array(relation.coefficient)
    near = np.abs(total - relation.bound) <= _NEAR * np.maximum(np.abs(relation.bound), 1.0)
    total = np.where(near, relation.bound, total)  # sums of grids round
    return np.asarray(RELATIONS[relation.op](total, relation.bound))


# ---- Draws of rows in which columns stand in a relation. The mathematics is in docs/reference/query-language.md,
# "Draws".

LEAST_SHARE, FIRST = 1e-3, 65_536
"""Draws that are rejected are given up where fewer are accepted, of so many at least."""
AT_ONCE = 4_096
"""Draws at first, where some are rejected."""
_MOST_AT_ONCE = 65_536
"""Most draws at a time, which bounds memory."""
_TO_SPARE = 1.2
"""Factor by which more rows are drawn than are expected to be needed, so that one further round is mostly enough."""


class Levels(NamedTuple):
    """Column ``a`` of levels stands in a relation to column ``b``."""

    a: int
    b: int
    op: str


class Rejected(ValueError):
    """Too few draws stand in the relation."""


def related_blocks(
    model: Distribution, evidence: Evidence, relations: Sequence[LinearRelation | Levels], n: int, seed: int
) -> Iterator[np.ndarray]:
    """n draws as `sample_related` makes them, by blocks of `sampling.DRAWS_AT_ONCE` with seeds of their own: (k, d)."""
    for block, (first, stop) in enumerate(chunks(n, DRAWS_AT_ONCE)):
        yield sample_related(model, evidence, relations, stop - first, seed_of_block(seed, block))


def sample_related(
    model: Distribution, evidence: Evidence, relations: Sequence[LinearRelation | Levels], n: int, seed: int
) -> np.ndarray:
    """n draws (n, d) given one row of evidence and relations between columns; Rejected if hardly any satisfy them."""
    # One relation of two columns needs no rejection if one is known, has levels, or has a grid of at most 4,096 cells:
    # a value of the first by p(value) p(relation | value), then the rest. Otherwise rows that fit are kept. All is
    # exact.
    if n == 0:
        return sample(model, evidence, 0, seed)
    rng, one = np.random.default_rng(seed), relations[0]
    if len(relations) == 1 and isinstance(one, Levels):
        return _draws_of_levels(model, evidence, one, n, rng)
    if len(relations) == 1 and isinstance(one, LinearRelation) and len(one.column) == 2:
        for first in (0, 1):
            x = _values_of_column(model, evidence, one.column[first])
            if x is not None:
                return _draws_of_two(model, evidence, one, first, x, n, rng)

    def rows(m: int, new: int) -> np.ndarray:
        X = sample(model, evidence, m, new)
        return X[np.all([_fits(model, relation, X) for relation in relations], axis=0)]

    return _accepted(rows, n, rng)


def _draws_of_two(
    model: Distribution, evidence: Evidence, relation: LinearRelation, first: int, x: np.ndarray, n: int,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Draws of one relation between two columns of numbers, one of which has the values x (q,)."""
    weight, inside = _given_first(model, evidence, relation, first, x)
    mass = weight * inside
    if not mass.sum() > 0.0:
        raise Rejected("it has probability 0")
    return _rest(model, evidence, relation, first, rng.choice(x, n, p=mass / mass.sum()), rng)


def _rest(
    model: Distribution,
    evidence: Evidence,
    relation: LinearRelation,
    first: int,
    x: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """A row for each value x (n,) of the first column, the second where it has to be, (n, d)."""
    values, place = np.unique(x, return_inverse=True)
    sides = _sides(model.schema, relation, first, values)
    return _completed(model, evidence, relation.column[first], relation.column[1 - first], values, sides, place, rng)


def _completed(
    model: Distribution, evidence: Evidence, a: int, b: int, values: np.ndarray, regions: list[Region],
    place: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """A row for each place (n,): column a has ``values[place]`` and column b lies in ``regions[place]``, (n, d)."""
    is_known = not np.isnan(evidence.value[0, a])
    rows = evidence.repeat(len(values)) if is_known else with_values(model.schema, evidence, a, values)
    rows = within(model.schema, rows, b, regions)
    return sample(model, rows.take(place), 1, int(rng.integers(2**62)))


def _draws_of_levels(
    model: Distribution, evidence: Evidence, relation: Levels, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Draws of a relation between two columns of levels."""
    codes, weight, inside, holds = _first_levels(model, evidence, *relation)
    mass = weight * inside
    if not mass.sum() > 0.0:
        raise Rejected("it has probability 0")
    regions = [_set_of(model, relation.b, np.flatnonzero(one)) for one in holds]
    place = rng.choice(len(codes), n, p=mass / mass.sum())
    return _completed(model, evidence, relation.a, relation.b, codes, regions, place, rng)


def _set_of(model: Distribution, j: int, codes: np.ndarray) -> Region:
    """The region of some levels of a column."""
    column = model.schema.columns[j]
    meaning = meaning_of(column, AnyOf(*(column.levels[k] for k in codes.tolist()))) if len(codes) else NOWHERE
    assert isinstance(meaning, Region)
    return meaning


def _fits(model: Distribution, relation: LinearRelation | Levels, X: np.ndarray) -> np.ndarray:
    """Which rows (n, d) stand in a relation, bool (n,)."""
    if isinstance(relation, LinearRelation):
        return _satisfied(relation, X)
    first, second = model.schema.columns[relation.a], model.schema.columns[relation.b]
    if relation.op not in ("=", "!="):
        _check_order(first, second, relation.op)
    codes = X[:, [relation.a, relation.b]].astype(np.int64)
    return np.asarray(_holds(first, second, relation.op)[codes[:, 0], codes[:, 1]])


def _accepted(draw: Callable[[int, int], np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
    """n of what ``draw(m, seed)`` keeps of m draws, block by block."""
    kept: list[np.ndarray] = []
    tried = n_kept = 0
    while n_kept < n:
        # the posterior is computed once for all draws of a round: the rarer rows are kept, the more are drawn
        expected = _TO_SPARE * (n - n_kept) * tried / max(n_kept, 1)
        m = int(np.clip(expected, AT_ONCE, _MOST_AT_ONCE))
        kept.append(draw(m, int(rng.integers(2**62))))
        tried, n_kept = tried + m, n_kept + len(kept[-1])
        if tried >= FIRST and n_kept < LEAST_SHARE * tried:
            raise Rejected(f"{n_kept} of {tried:,} draws were kept")
    return np.concatenate(kept)[:n] if kept else draw(0, 0)


# ---- Means and covariances of columns of numbers.


def mean_and_covariance(state: PosteriorState, columns: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means (n, q) and covariances (n, q, q) of numeric or boolean columns, all being present."""
    # In the columns' units (date-times: seconds); NaN where the evidence has probability 0.
    state = state.knowing(columns)
    n, q = len(state.evidence.value), len(columns)
    mean, covariance = np.empty((n, q)), np.empty((n, q, q))
    for i, j in enumerate(columns):
        column = state.distribution.schema.columns[j]
        if column.kind == "boolean":
            levels = np.array([float(level) for level in column.levels])
            p = state.level_probabilities(j) @ levels
            mean[:, i], covariance[:, i, i] = p, p * (1.0 - p)
        elif column.is_categorical:
            raise ValueError(
                f"column {column.name!r} is {column.kind}: covariance needs numbers; see mutual_information"
            )
        else:
            mean[:, i], covariance[:, i, i] = state.moments(j)
        for k in range(i):
            covariance[:, i, k] = covariance[:, k, i] = state.covariance(columns[k], j)
    return mean, covariance
