"""Draws of rows in which columns stand in a relation. The mathematics is in docs/language.md, "Draws"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...ground.threads import chunks
from ...model.model import Model
from ...table.conditions import AnyOf
from ...table.evidence import Evidence
from ...table.meaning import NOWHERE, Region, meaning_of
from ...table.vary import with_values, within
from ..rows.sampling import BLOCK, sample, seed_of_block
from .comparison import Relation, _cells, _check_order, _first_levels, _given_first, _holds, _satisfied, _sides

LEAST_SHARE, FIRST = 1e-3, 65_536
"""Draws that are rejected are given up where fewer are accepted, of so many at least."""
AT_ONCE = 4_096
"""Draws at a time, where some are rejected."""


class Levels(NamedTuple):
    """Column ``a`` of levels stands in a relation to column ``b``."""

    a: int
    b: int
    op: str


class Rejected(ValueError):
    """Too few draws stand in the relation."""


def related_blocks(
    model: Model, evidence: Evidence, relations: Sequence[Relation | Levels], n: int, seed: int, n_jobs: int | None = -1
) -> Iterator[np.ndarray]:
    """n draws as `sample_related` makes them, `sampling.BLOCK` at a time, each block with a seed of its own: (k, d)."""
    for block, (first, stop) in enumerate(chunks(n, BLOCK)):
        yield sample_related(model, evidence, relations, stop - first, seed_of_block(seed, block), n_jobs)


def sample_related(
    model: Model, evidence: Evidence, relations: Sequence[Relation | Levels], n: int, seed: int, n_jobs: int | None = -1
) -> np.ndarray:
    """n draws given one row of evidence and relations between columns, (n, d).

    Of one relation of two columns, without rejection if they have levels, or one is known or has a grid of at most
    4,096 cells: a value of the first by p(value) p(relation | value), then the rest of the row, given the value and
    where the second has to be. Of two columns without such a grid values of the first are drawn, and kept with the
    probability of the relation given the value. Else whole rows are drawn, and those kept that fit. All of it is exact.

    Raises
    ------
    Rejected
        If the relations have probability 0, or fewer than one draw in a thousand is kept.
    """
    if n == 0:
        return sample(model, evidence, 0, seed, n_jobs=n_jobs)
    rng, one = np.random.default_rng(seed), relations[0]
    if len(relations) == 1 and isinstance(one, Levels):
        return _of_levels(model, evidence, one, n, rng, n_jobs)
    if len(relations) == 1 and isinstance(one, Relation) and len(one.column) == 2:
        return _of_two(model, evidence, one, n, rng, n_jobs)

    def rows(m: int, new: int) -> np.ndarray:
        X = sample(model, evidence, m, new, n_jobs=n_jobs)
        return X[np.all([_fits(model, relation, X) for relation in relations], axis=0)]

    return _accepted(rows, n, rng)


def _of_two(
    model: Model, evidence: Evidence, relation: Relation, n: int, rng: np.random.Generator, n_jobs: int | None
) -> np.ndarray:
    """Draws of one relation between two columns of numbers."""
    for first in (0, 1):
        x = _cells(model, evidence, relation.column[first], n_jobs)
        if x is not None:
            weight, inside = _given_first(model, evidence, relation, first, x, n_jobs)
            mass = weight * inside
            if not mass.sum() > 0.0:
                raise Rejected("it has probability 0")
            return _rest(model, evidence, relation, first, rng.choice(x, n, p=mass / mass.sum()), rng, n_jobs)

    def firsts(m: int, new: int) -> np.ndarray:
        x = sample(model, evidence, m, new, n_jobs=n_jobs)[:, relation.column[0]]
        inside = _given_first(model, evidence, relation, 0, x, n_jobs)[1]
        return x[np.random.default_rng([new, 1]).random(m) < inside]  # draws themselves may start from `new`

    return _rest(model, evidence, relation, 0, _accepted(firsts, n, rng), rng, n_jobs)


def _rest(
    model: Model, evidence: Evidence, relation: Relation, first: int, x: np.ndarray, rng: np.random.Generator,
    n_jobs: int | None,
) -> np.ndarray:  # fmt: skip
    """A row for each value x (n,) of the first column, the second where it has to be, (n, d)."""
    values, place = np.unique(x, return_inverse=True)
    sides = _sides(model.schema, relation, first, values)
    return _completed(
        model, evidence, relation.column[first], relation.column[1 - first], values, sides, place, rng, n_jobs
    )


def _completed(
    model: Model, evidence: Evidence, a: int, b: int, values: np.ndarray, regions: list[Region], place: np.ndarray,
    rng: np.random.Generator, n_jobs: int | None,
) -> np.ndarray:  # fmt: skip
    """A row for each place (n,): column a has ``values[place]`` and column b lies in ``regions[place]``, (n, d)."""
    is_known = not np.isnan(evidence.value[0, a])
    rows = evidence.repeat(len(values)) if is_known else with_values(model.schema, evidence, a, values)
    rows = within(model.schema, rows, b, regions)
    return sample(model, rows.take(place), 1, int(rng.integers(2**62)), n_jobs=n_jobs)


def _of_levels(
    model: Model, evidence: Evidence, relation: Levels, n: int, rng: np.random.Generator, n_jobs: int | None
) -> np.ndarray:
    """Draws of a relation between two columns of levels."""
    codes, weight, inside, holds = _first_levels(model, evidence, *relation, n_jobs)
    mass = weight * inside
    if not mass.sum() > 0.0:
        raise Rejected("it has probability 0")
    regions = [_set_of(model, relation.b, np.flatnonzero(one)) for one in holds]
    place = rng.choice(len(codes), n, p=mass / mass.sum())
    return _completed(model, evidence, relation.a, relation.b, codes, regions, place, rng, n_jobs)


def _set_of(model: Model, j: int, codes: np.ndarray) -> Region:
    """The region of some levels of a column."""
    column = model.schema.columns[j]
    meaning = meaning_of(column, AnyOf(*(column.levels[k] for k in codes.tolist()))) if len(codes) else NOWHERE
    assert isinstance(meaning, Region)
    return meaning


def _fits(model: Model, relation: Relation | Levels, X: np.ndarray) -> np.ndarray:
    """Which rows (n, d) stand in a relation, bool (n,)."""
    if isinstance(relation, Relation):
        return _satisfied(relation, X)
    first, second = model.schema.columns[relation.a], model.schema.columns[relation.b]
    if relation.op not in ("=", "!="):
        _check_order(first, second, relation.op)
    codes = X[:, [relation.a, relation.b]].astype(np.int64)
    return np.asarray(_holds(first, second, relation.op)[codes[:, 0], codes[:, 1]])


def _accepted(draw: Callable[[int, int], np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
    """n of what ``draw(m, seed)`` keeps of m draws, block by block."""
    kept: list[np.ndarray] = []
    tried = found = 0
    while found < n:
        kept.append(draw(AT_ONCE, int(rng.integers(2**62))))
        tried, found = tried + AT_ONCE, found + len(kept[-1])
        if tried >= FIRST and found < LEAST_SHARE * tried:
            raise Rejected(f"{found} of {tried:,} draws were kept")
    return np.concatenate(kept)[:n] if kept else draw(0, 0)
