"""The joint distribution of two columns, in bins."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from ..explain.rules import side_condition
from ..ground.checks import check_number
from ..queries.column.distribution import cdf, quantile
from ..queries.column.levels import level_probability
from ..queries.posterior.density import log_density
from ..queries.posterior.weighed import WeighedEvidence
from ..table import values as answers
from ..table.build_evidence import intersect
from ..table.conditions import AnyOf, PerRow
from ..table.schema import Column

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


def pair(weighed: WeighedEvidence, a: str, b: str, bins: int, n_jobs: int | None) -> Pair:
    """See `Posterior.pair`."""
    check_number("bins", bins, 2, whole=True, text="an integer of at least 2")
    schema = weighed.model.schema
    if a == b:
        raise ValueError(f"pair: column {a!r} twice; name two columns")
    if len(weighed) != 1:
        raise ValueError(f"pair: expected evidence of one row, got {len(weighed)} rows")
    weighed.check(n_jobs)
    j, k = schema.index(a), schema.index(b)
    first, second = schema.columns[j], schema.columns[k]
    cuts = [_cuts(weighed, i, schema.columns[i], int(bins), n_jobs) for i in (j, k)]
    # p(a in bin, b in bin) = p(a in bin) p(b in bin | a in bin): the bins of a are rows of evidence
    rows = intersect(schema, weighed.evidence, {a: PerRow(tuple(_conditions(first, cuts[0])))})
    with np.errstate(invalid="ignore"):
        share = np.exp(log_density(weighed.model, rows, n_jobs) - weighed.log_probability)
    some = np.flatnonzero(share > 0.0)
    rows = rows.take(some)
    if second.is_categorical:
        inside = level_probability(weighed.model, rows, k, n_jobs)
    else:
        below = cdf(weighed.model, rows, k, cuts[1], n_jobs)
        inside = np.diff(below, axis=1, prepend=0.0, append=1.0)
    probability = np.zeros((len(share), inside.shape[1]))
    probability[some] = share[some, None] * np.maximum(inside, 0.0)
    return Pair(_shown(first, cuts[0]), _shown(second, cuts[1]), probability)


def _cuts(weighed: WeighedEvidence, j: int, column: Column, bins: int, n_jobs: int | None) -> np.ndarray:
    """Cuts between the bins of a column of numbers, on a grid between cells; none of a column of levels."""
    if column.is_categorical:
        return np.empty(0)
    low, high = quantile(weighed.model, weighed.evidence, j, ENDS, n_jobs, known=weighed.known)[0].tolist()
    cuts = np.linspace(low, high, bins + 1)[1:-1]
    if column.step > 0.0:
        cuts = column.center + (np.floor((cuts - column.center) / column.step) + 0.5) * column.step
    return np.unique(cuts)


def _conditions(column: Column, cuts: np.ndarray) -> list[Any]:
    """What says that a column is in each of its bins."""
    if column.is_categorical:
        return [AnyOf(level) for level in column.levels]
    ends = [-np.inf, *cuts.tolist(), np.inf]
    return [AnyOf(side_condition(column, lo, hi)) for lo, hi in itertools.pairwise(ends)]


def _shown(column: Column, cuts: np.ndarray) -> Any:
    return column.levels if column.is_categorical else answers.values(column, cuts)
