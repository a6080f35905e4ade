"""Information measures of joints: names of columns in, estimates out.

The mathematics is in docs/how-to/measure-information.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..data.evidence import build
from ..data.schema import Schema
from ..inference.information import entropy as entropies
from ..inference.information.classes import all_informations, class_cuts
from ..inference.information.divergence import MEASURES, ColumnDistance, column_distance
from ..inference.information.projection import Estimate, exact, view, views
from ..models.base import Distribution, PosteriorState
from ..runtime.parameters import check, check_number, seed_of

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
