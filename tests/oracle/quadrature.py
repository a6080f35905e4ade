"""Points and weights that integrate a column out: sums over levels, cells and atoms, Gauss rules in between."""

from __future__ import annotations

import numpy as np

from jointforest.data.evidence import Evidence
from jointforest.models.box_forest.leaves.table import PIECES, STUDENT, UNIFORM
from jointforest.models.box_forest.structure import Forest

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def rule(model: Forest, j: int, cuts: tuple[float, ...] = (), reach: float = 400.0) -> tuple[np.ndarray, np.ndarray]:
    """Points x and weights w of column j with ``sum(w * p(x)) = 1`` for its density; ``cuts`` are further breaks.

    On grids the cells go to ``reach`` scales of each Student t: beyond 400 lie 2e-10 of its mass, beyond 100 6e-8.
    """
    column, s = model.schema.columns[j], int(model.columns.slot[j])
    if column.is_categorical:
        return np.arange(len(column.levels), dtype=float), np.ones(len(column.levels))
    family, a, b, lo, hi = _densities(model, s)
    student = family == STUDENT
    if column.step > 0.0:
        far = np.where(student, reach, 9.0) * b
        ends = [np.maximum(lo, a - far), np.minimum(hi, a + far)]
        uniform = family == UNIFORM
        ends += [lo[uniform], hi[uniform], np.array(column.atoms)]
        finite = np.concatenate([e[np.isfinite(e)] for e in ends])
        first, last = (round(float((x - column.center) / column.step)) for x in (finite.min(), finite.max()))
        return column.center + np.arange(first - 1, last + 2) * column.step, np.full(last - first + 3, column.step)
    spans = [np.outer(b, 0.5 * 2.0 ** np.arange(6)), np.outer(b[student], 2.0 ** np.arange(5, 14))]
    breaks = np.concatenate(
        [lo, hi, np.array(cuts)]
        + [(a[:, None] + sign * spans[0]).ravel() for sign in (-1, 1)]
        + [(a[student][:, None] + sign * spans[1]).ravel() for sign in (-1, 1)]
    )
    breaks = np.unique(breaks[np.isfinite(breaks)])
    half, middle = np.diff(breaks) / 2, (breaks[1:] + breaks[:-1]) / 2
    points, weights = (middle[:, None] + np.outer(half, _NODES)).ravel(), np.outer(half, _WEIGHTS).ravel()
    return np.concatenate([points, column.atoms]), np.concatenate([weights, np.ones(len(column.atoms))])


def _densities(model: Forest, s: int) -> list[np.ndarray]:
    """Family, parameters and support of all densities of a numeric slot; pieces count as such."""
    leaves, whole = model.leaves, model.leaves.family[:, s] != PIECES
    number = [np.arange(int(leaves.a[k, s]), int(leaves.a[k, s] + leaves.b[k, s])) for k in np.flatnonzero(~whole)]
    at = np.concatenate([np.empty(0, np.int64), *number])
    fields = ("family", "a", "b", "lo", "hi")
    return [np.append(getattr(leaves, name)[whole, s], getattr(leaves.pieces, name)[at, 0]) for name in fields]


def complete(values: np.ndarray) -> Evidence:
    """Evidence of complete rows."""
    return Evidence(
        value=np.ascontiguousarray(values, dtype=np.float64),
        region=np.empty((0, 0), dtype=np.int32),
        run_start=np.zeros(1, dtype=np.int32),
        run_lo=np.empty(0),
        run_hi=np.empty(0),
        atoms=np.empty(0, dtype=np.uint64),
        run_log_weight=np.empty(0),
        atom_log_weight=np.empty((0, 0)),
        log_penalty=np.zeros(len(values)),
    )


def integrand(evidence: Evidence, j: int, x: np.ndarray) -> Evidence:
    """The only row of the evidence once for each of the values x of column j."""
    value, region = np.repeat(evidence.value, len(x), axis=0), evidence.region
    value[:, j] = x
    if region.size:
        region = np.repeat(region, len(x), axis=0)
        region[:, j] = -1
    return evidence._replace(value=value, region=region, log_penalty=np.repeat(evidence.log_penalty, len(x)))
