"""The joint distribution of two columns, in bins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data.conditions import PerRow
from ..data.evidence import build, intersect
from ..data.schema import Column, Schema, seconds_apart
from ..inference import comparison
from ..inference.histogram import even_edges
from ..inference.information import entropy as entropies
from ..inference.information.divergence import (
    MEASURES,
    ColumnDistance,
    all_informations,
    class_cuts,
    column_distance,
    conditions_of_bins,
)
from ..inference.information.integral import Estimate, exact, view, views
from ..inference.support import SUPPORT
from ..models.base import Distribution, PosteriorState
from ..query_language.parser import Comparison, Sum
from ..runtime.parameters import check, check_number, seed_of
from ..runtime.warnings import UnsupportedEvidenceWarning, warn

ENDS = np.array([0.01, 0.99])
"""Cuts lie evenly between these quantiles."""


class Pair(NamedTuple):
    """Joint distribution of two columns given evidence, made by `Posterior.pair`.

    Attributes
    ----------
    a, b : tuple of levels, or array of cuts
        Of a column of levels its levels, each a bin. Of numbers and dates the c cuts between c + 1 bins: up to the
        first cut, up to the next and so on, and above the last.
    probability : float64 array (bins of a, bins of b)
        Sums to 1.
    """

    a: Any
    b: Any
    probability: np.ndarray


def pair_given(state: PosteriorState, a: str, b: str, bins: int) -> Pair:
    """See `Posterior.pair`."""
    check_number("bins", bins, 2, whole=True, text="an integer of at least 2")
    schema = state.distribution.schema
    if a == b:
        raise ValueError(f"pair: column {a!r} twice; name two columns")
    j, k = schema.index(a), schema.index(b)
    first, second = schema.columns[j], schema.columns[k]
    state = _given_known(state, [j, k]).observe(state.evidence)
    cuts = [_cuts_between_bins(state, i, schema.columns[i], int(bins)) for i in (j, k)]
    # p(a in bin, b in bin) = p(a in bin) p(b in bin | a in bin): the bins of a are rows of evidence
    rows = intersect(schema, state.evidence, {a: PerRow(tuple(conditions_of_bins(first, cuts[0])))})
    with np.errstate(invalid="ignore"):
        share = np.exp(state.distribution.log_density(rows) - state.distribution.log_density(state.evidence))
    possible = np.flatnonzero(share > 0.0)
    rows = rows.take(possible)
    if second.is_categorical:
        inside = state.distribution.observe(rows).level_probabilities(k)
    else:
        below = state.distribution.observe(rows).cdf(k, cuts[1])
        inside = np.diff(below, axis=1, prepend=0.0, append=1.0)
    probability = np.zeros((len(share), inside.shape[1]))
    probability[possible] = share[possible, None] * np.maximum(inside, 0.0)
    return Pair(_pair_cuts(first, cuts[0]), _pair_cuts(second, cuts[1]), probability)


def _cuts_between_bins(state: PosteriorState, j: int, column: Column, bins: int) -> np.ndarray:
    """Cuts between the bins of a column of numbers, on a grid between cells; none of a column of levels."""
    if column.is_categorical:
        return np.empty(0)
    low, high = state.quantile(j, ENDS)[0].tolist()
    edges = even_edges(column, low, high, bins)
    return edges[1:-1] if len(edges) > 2 else edges[-1:]


def _pair_cuts(column: Column, cuts: np.ndarray) -> Any:
    return column.levels if column.is_categorical else column.values(cuts)


# ---- Sums of columns, and comparisons of columns, given evidence.

_JUDGED = 1_000
"""Drawn rows that show whether the question is like anything learned."""


def mean_of_sum(state: PosteriorState, of: Sum) -> np.ndarray:
    """Mean of a sum of columns, (n,); of the difference of two dates timedelta64."""
    is_time, origin = _times_of_column(state.distribution.schema, of)
    columns, c = _numbers_of_sum(state.distribution.schema, of)
    state = state.knowing(columns)
    mean = np.column_stack([state.center(j) for j in columns])
    seconds = mean @ c + of.constant + origin
    return seconds_apart(seconds) if is_time else seconds


def variance_of(state: PosteriorState, of: Sum) -> np.ndarray:
    """Variance of a sum of columns, (n,); of dates in seconds squared."""
    schema = state.distribution.schema
    _times_of_column(schema, of)
    columns, c = _numbers_of_sum(schema, of)
    covariance = comparison.mean_and_covariance(state, columns)[1]
    return np.maximum(np.einsum("i,nij,j->n", c, covariance, c), 0.0)


def deviation_of(state: PosteriorState, of: Sum) -> np.ndarray:
    """Standard deviation of a sum of columns, (n,); of dates timedelta64."""
    deviation = np.sqrt(variance_of(state, of))
    return seconds_apart(deviation) if _times_of_column(state.distribution.schema, of)[0] else deviation


def covariance_of(state: PosteriorState, a: str, b: str) -> np.ndarray:
    """Covariance of two columns of numbers or booleans, (n,)."""
    return _variances_and_covariance(state, a, b)[2]


def correlation_of(state: PosteriorState, a: str, b: str) -> np.ndarray:
    """Correlation of two columns of numbers or booleans, (n,); NaN where one of them has one value."""
    first, second, both = _variances_and_covariance(state, a, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.clip(both / np.sqrt(first * second), -1.0, 1.0)
    return np.where((first <= 0.0) | (second <= 0.0), np.nan, correlation)


def _variances_and_covariance(state: PosteriorState, a: str, b: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variances of two columns, and their covariance, each (n,)."""
    j, k = state.distribution.schema.index(a), state.distribution.schema.index(b)
    covariance = comparison.mean_and_covariance(state, [j, k] if j != k else [j])[1]
    return covariance[:, 0, 0], covariance[:, -1, -1], covariance[:, 0, -1]


def probability_of(
    state: PosteriorState, compared: tuple[Comparison, ...], n_samples: int, random_state: Any
) -> Estimate:
    """Probability of a comparison of columns."""
    check_number("n_samples", n_samples, 4, whole=True, text="an integer of at least 4")
    if len(compared) != 1:
        raise ValueError(
            f"expected one comparison of columns, got {len(compared)}; for several take draws: "
            "joint.given(...).sample(n)"
        )
    relation = _relation(state.distribution.schema, compared[0])
    model = _given_known(state, _columns_of(relation))
    if isinstance(relation, comparison.Levels):
        return exact(comparison.probability_of_levels(model, state.evidence, *relation))
    return comparison.probability_of_relation(model, state.evidence, relation, int(n_samples), seed_of(random_state))


def drawn_where(
    state: PosteriorState, compared: tuple[Comparison, ...], n: int, random_state: Any
) -> Iterator[np.ndarray]:
    """n rows in which comparisons of columns hold, some at a time, (k, d); comparisons are checked at once."""
    relations = [_relation(state.distribution.schema, asked) for asked in compared]
    model = _given_known(state, sorted({j for relation in relations for j in _columns_of(relation)}))
    blocks = comparison.related_blocks(model, state.evidence, relations, int(n), seed_of(random_state))
    return _with_clear_errors(blocks, state.distribution, compared)


def _with_clear_errors(
    blocks: Iterator[np.ndarray], model: Distribution, compared: tuple[Comparison, ...]
) -> Iterator[np.ndarray]:
    """The same; an error in words where the comparisons are too rare, a warning where a background alone has them."""
    try:
        for i, rows in enumerate(blocks):
            if i == 0 and len(rows):
                _warn_unsupported(model, rows[:_JUDGED], compared)
            yield rows
    except comparison.Rejected as error:
        said = ", ".join(map(str, compared))
        raise ValueError(
            f"where {said!r}: {error}, so that it is too rare to be drawn; ask compare for its probability, "
            "or give evidence that makes it less rare"
        ) from None


def _warn_unsupported(model: Distribution, rows: np.ndarray, compared: tuple[Comparison, ...]) -> None:
    """Warn if p(background | comparisons), its mean over rows in which they hold, is large."""
    if model.observe(build(model.schema, rows)).background_weight().mean() > SUPPORT:
        said = ", ".join(map(str, compared))
        problem = f"rows in which {said!r} holds are unlike anything learned: most of those drawn are a background's"
        warn(UnsupportedEvidenceWarning(problem, "see compare for its probability"))


def _relation(schema: Schema, asked: Comparison) -> comparison.LinearRelation | comparison.Levels:
    """A comparison, with its columns by number."""
    of = asked.left - asked.right
    columns = [schema[name] for _, name in of.terms]
    if any(column.is_categorical for column in columns):
        if not (asked.left.is_column and asked.right.is_column):
            raise _not_numbers(columns, f"of {asked}")
        a, b = asked.left.terms[0][1], asked.right.terms[0][1]
        if not all(column.is_categorical for column in columns):
            raise _not_numbers(columns, f"of {asked}")
        return comparison.Levels(schema.index(a), schema.index(b), asked.op)
    _, origin = _times_of_column(schema, of)
    names, c = _numbers_of_sum(schema, of)
    return comparison.LinearRelation(tuple(names), tuple(c.tolist()), asked.op, -of.constant - origin)


def _given_known(state: PosteriorState, columns: Sequence[int]) -> Distribution:
    """The distribution of the rows in which columns have values; a ValueError if the evidence leaves none."""
    model = state.distribution.given_known(columns)
    if model is not state.distribution and model.log_density(state.evidence)[0] == -np.inf:
        names = ", ".join(repr(model.schema.names[j]) for j in columns)
        raise ValueError(f"given this evidence rules make one of the columns {names} missing in each row")
    return model


def _columns_of(relation: comparison.LinearRelation | comparison.Levels) -> tuple[int, ...]:
    return (relation.a, relation.b) if isinstance(relation, comparison.Levels) else relation.column


def _numbers_of_sum(schema: Schema, of: Sum) -> tuple[list[int], np.ndarray]:
    return [schema.index(name) for _, name in of.terms], np.array([c for c, _ in of.terms])


def _times_of_column(schema: Schema, of: Sum) -> tuple[bool, float]:
    """Whether a sum is a difference of dates, and the seconds that their origins add to it."""
    columns = [schema[name] for _, name in of.terms]
    for column in columns:
        if column.is_categorical and column.kind != "boolean":
            raise _not_numbers([column], "in a sum")
    times = [column.kind == "datetime" for column in columns]
    if any(times) and (not all(times) or abs(sum(c for c, _ in of.terms)) > 0.0):
        raise ValueError(
            f"{of}: dates are taken from dates, such as arrival - departure (in seconds); not added, nor to numbers"
        )
    origin = sum(c * float(column.origin) for (c, _), column in zip(of.terms, columns, strict=True) if any(times))
    return any(times), float(origin)


def _not_numbers(columns: list[Column], where: str) -> ValueError:
    column = next(column for column in columns if column.is_categorical)
    return ValueError(
        f"column {column.name!r} is {column.kind}: {where} columns are numbers or dates, "
        f"or two columns of levels compared as they are, such as P(a = `b`); {column.name!r} has levels"
    )


# ---- Information measures of joints: names of columns in, estimates out.

# The mathematics is in docs/how-to/measure-information.md.

__all__ = ["ColumnDistance", "Estimate", "compare", "divergence", "entropy", "mutual_information"]

Names = str | Sequence[str]


def entropy(model: Distribution, of: Names, given: Names | None, n_samples: int, random_state: Any) -> Estimate:
    """See `Joint.entropy`; no names are all columns that are not given."""
    known = _places(model.schema, () if given is None else given, "given")
    asked = _places(model.schema, of, "columns") or [j for j in range(len(model.schema.names)) if j not in known]
    first, last = _places_of_sets(model.schema, [asked, known])
    v, draws = view(model.given_known(asked + known), tuple(asked + known)), _number_and_seed(n_samples, random_state)
    if not asked:
        raise ValueError("entropy: every column is given; name at least one that is not")
    if not known:
        return entropies.entropy(v, first, *draws)
    return entropies.conditional_entropy(v, first, last, *draws)


def mutual_information(
    model: Distribution, a: Names, b: Names, given: Names | None, bins: int | None, n_samples: int, random_state: Any
) -> Estimate:
    """See `Joint.mutual_information`."""
    if bins is not None:
        return exact(of_bins(model.observe(build(model.schema)), a, b, given, bins))
    sides = (a, "a"), (b, "b"), (() if given is None else given, "given")
    sets = [_places(model.schema, names, what) for names, what in sides]
    if not sets[0] or not sets[1]:
        raise ValueError("mutual_information: name at least one column on either side")
    first, second, last = _places_of_sets(model.schema, sets)
    of = tuple(j for numbers in sets for j in numbers)
    v = view(model.given_known(of), of)
    return entropies.mutual_information(v, first, second, last, *_number_and_seed(n_samples, random_state))


def of_bins(state: PosteriorState, a: Names, b: Names, given: Names | None, bins: int) -> float:
    """Mutual information of two columns, numbers in bins of equal probability; see `Joint.mutual_information`."""
    check_number("bins", bins, 2, whole=True, text="an integer of at least 2")
    schema = state.distribution.schema
    sets = [_places(schema, names, what) for names, what in ((a, "a"), (b, "b"), (given or (), "given"))]
    _places_of_sets(schema, sets)
    if [len(one) for one in sets] != [1, 1, 0]:
        raise ValueError("mutual_information: bins are of two columns; name one on either side, and none given")
    columns = [sets[0][0], sets[1][0]]
    found = all_informations(state, columns, {j: class_cuts(state, j, int(bins)) for j in columns})
    return float(found[0, 1])


def divergence(
    model: Distribution, other: Distribution, measure: str, columns: Names | None, n_samples: int, random_state: Any
) -> Estimate:
    """See `Joint.divergence`."""
    check("measure", measure, tuple(MEASURES))
    shared = _shared(model.schema, other.schema, columns)
    theirs = [other.schema.index(model.schema.names[j]) for j in shared if model.schema.names[j] in other.schema.names]
    p, q = views(model.given_known(shared), other.given_known(theirs), shared)
    return MEASURES[measure](p, q, tuple(range(len(p.number))), *_number_and_seed(n_samples, random_state))


def compare(model: Distribution, other: Distribution, columns: Names | None) -> dict[str, ColumnDistance]:
    """See `Joint.compare`."""
    p, q = views(model, other, _shared(model.schema, other.schema, columns))
    distances = {column.name: column_distance(p, q, k) for k, column in enumerate(p.columns)}
    return dict(sorted(distances.items(), key=lambda item: -item[1].distance))


def _shared(ours: Schema, theirs: Schema, columns: Names | None) -> tuple[int, ...]:
    """Numbers of the columns to compare: those named, else all, which both must have."""
    if columns is not None:
        named = _places(ours, columns, "columns")
        if not named:
            raise ValueError("columns: name at least one, or leave it out to compare all")
        return tuple(named)
    extra = [name for name in theirs.names if name not in ours.names]
    if extra:
        raise ValueError(f"this model has no column {extra[0]!r}, the other has; name the columns that both have")
    return tuple(range(len(ours.names)))


def _places(schema: Schema, names: Names, what: str) -> list[int]:
    """Numbers of named columns, each once."""
    if not isinstance(names, str) and (not isinstance(names, Iterable) or isinstance(names, Mapping)):
        raise ValueError(f"{what} must be the name of a column, or a list of names, got {names!r}")
    numbers = [schema.index(name) for name in ([names] if isinstance(names, str) else names)]
    if len(set(numbers)) < len(numbers):
        twice = next(schema.names[j] for k, j in enumerate(numbers) if j in numbers[:k])
        raise ValueError(f"{what}: column {twice!r} is named twice")
    return numbers


def _places_of_sets(schema: Schema, sets: list[list[int]]) -> list[tuple[int, ...]]:
    """Places of each set's columns when all stand in a row; a ValueError if two sets share one."""
    flat = [j for numbers in sets for j in numbers]
    if len(set(flat)) < len(flat):
        both = next(schema.names[j] for k, j in enumerate(flat) if j in flat[:k])
        raise ValueError(f"column {both!r} is on two sides of the question; name it on one")
    at = np.cumsum([0] + [len(numbers) for numbers in sets])
    return [tuple(range(first, last)) for first, last in zip(at[:-1].tolist(), at[1:].tolist(), strict=True)]


def _number_and_seed(n_samples: Any, random_state: Any) -> tuple[int, int]:
    """Number of draws, and the seed."""
    check_number("n_samples", n_samples, 4, whole=True, text="an integer of at least 4")
    return int(n_samples), seed_of(random_state)
