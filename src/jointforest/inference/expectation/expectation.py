"""Expected predictions of an ensemble of trees under a joint, given the known cells of each row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...data.evidence import Evidence, distinct_rows
from ...integrations.ensembles.evaluate import raw
from ...models.box_forest.forest import Forest
from ...models.box_forest.posterior import chunk_posterior, row_chunks
from ...runtime.records import record
from ...runtime.threads import chunks, map_ordered
from .component_kernels import fill_region_masses
from .descent_kernels import expected_rows, leaf_rows
from .match import Features, MatchedEnsemble, split_features
from .scratch import row_scratch

_ROWS = 128
_TABLE_BYTES = 2**29


class LeafProbabilities(NamedTuple):
    """Probabilities of an ensemble's leaves, sparse: row i has the entries ``start[i]:start[i + 1]``.

    Attributes
    ----------
    start : int64 array (n + 1,)
    leaf : int32 array (m,)
        Leaves of probability above 0, tree by tree.
    probability : float64 array (m,)
        Sum to 1 over the leaves of each tree. A row of probability 0 has no entries.
    """

    start: np.ndarray
    leaf: np.ndarray
    probability: np.ndarray


@record
class Rows(NamedTuple):
    """n rows as the joint and as the ensemble see them.

    Attributes
    ----------
    evidence : Evidence
        Values and levels, no regions.
    X : float64 array (n, n_features)
    other : bool array (n, n_features)
        As `integrations.ensembles.evaluate.encode` gives them. What is known here is known there too, but for levels
        that only one
        side has.
    """

    evidence: Evidence
    X: np.ndarray
    other: np.ndarray


def with_table(matched: MatchedEnsemble, most_bytes: int = _TABLE_BYTES, n_jobs: int | None = -1) -> MatchedEnsemble:
    """The ensemble with the masses of its numeric regions computed beforehand, as many as fit into so many bytes.

    Worth its time, some 50 ns a region and component, where thousands of rows are to be answered; answers do not
    depend on it.
    """
    n, model, regions = len(matched.components.leaf), matched.model, matched.regions
    is_number = (regions.column >= 0) & (model.columns.is_categorical[regions.column] == 0)
    region = np.flatnonzero(is_number)[: most_bytes // (8 * n)].astype(np.int32)
    place = np.full(len(regions.column), -1, dtype=np.int32)
    place[region] = np.arange(len(region))
    table = np.empty((n, len(region)))
    evidence = _nothing_known(model)

    def work(first: int, stop: int) -> None:
        fill_region_masses(
            model.columns, model.leaves, evidence, regions, matched.components, region, first, stop, table
        )

    list(map_ordered(work, chunks(n, 1024), n_jobs))
    return replace(matched, masses=matched.masses._replace(table=table, place=place))


def expected(
    matched: MatchedEnsemble,
    rows: Rows,
    tolerance: float = 0.0,
    n_jobs: int | None = -1,
) -> tuple[np.ndarray, np.ndarray]:
    """E[F | known cells] of the sums F before the link, and a certified bound of the error of each, both (n, K).

    Proposition 1 of P. Khosravi and others, "Handling Missing Data in Decision Trees" (2020): the sum, over leaves, of
    the leaf's value times its probability given the known cells; forests by linearity. Rows that know all features that
    are split have their plain sums; other rows are NaN where the joint gives the known cells probability 0.
    """
    n_outputs = matched.middle.shape[1]
    mean, error = np.empty((len(rows.X), n_outputs)), np.zeros((len(rows.X), n_outputs))
    complete = knows_splits(matched.features, rows)
    whole = np.flatnonzero(complete)
    mean[whole] = raw(matched.ensemble, rows.X[whole], rows.other[whole], n_jobs)
    part = np.flatnonzero(~complete)
    if not len(part):
        return mean, error
    few, place = distinct(take(rows, part))
    found, bounds = np.empty((len(few.X), n_outputs)), np.empty((len(few.X), n_outputs))

    arrays = matched.arrays()

    def work(first: int, stop: int) -> None:
        post = chunk_posterior(matched.model, few.evidence, first, stop)
        expected_rows(arrays, few, first, post, float(tolerance), row_scratch(arrays), found, bounds)

    list(map_ordered(work, row_chunks(matched.model, few.evidence, _ROWS), n_jobs))
    mean[part], error[part] = (found + matched.ensemble.base)[place], bounds[place]
    return mean, error


def leaf_probability(matched: MatchedEnsemble, rows: Rows, n_jobs: int | None = -1) -> LeafProbabilities:
    """P(X in box of the leaf | known cells) of every leaf of every tree, exactly."""
    # every leaf counts, also beside one of the same value
    arrays = matched.arrays()._replace(half_most=np.ones(len(matched.half)))

    def work(first: int, stop: int) -> Any:
        post = chunk_posterior(matched.model, rows.evidence, first, stop)
        return leaf_rows(arrays, rows, first, post, row_scratch(arrays))

    parts = list(map_ordered(work, row_chunks(matched.model, rows.evidence, _ROWS), n_jobs))
    ends = np.cumsum([0] + [len(leaf) for _, leaf, _ in parts])
    starts = [start[1:] + end for (start, _, _), end in zip(parts, ends[:-1], strict=True)]
    return LeafProbabilities(
        np.concatenate([np.zeros(1, dtype=np.int64), *starts]),
        np.concatenate([leaf for _, leaf, _ in parts]),
        np.concatenate([probability for _, _, probability in parts]),
    )


def knows_splits(features: Features, rows: Rows) -> np.ndarray:
    """Whether each row knows every feature that is split, bool (n,)."""
    split = split_features(features)
    return np.asarray((~np.isnan(rows.X[:, split]) | rows.other[:, split]).all(axis=1))


def take(rows: Rows, index: np.ndarray) -> Rows:
    """The rows of these numbers."""
    return Rows(rows.evidence.take(index), np.ascontiguousarray(rows.X[index]), np.ascontiguousarray(rows.other[index]))


def distinct(rows: Rows) -> tuple[Rows, np.ndarray | slice]:
    """Rows without repetition, and which of them each row is; see `data.evidence`."""
    d, f = rows.evidence.value.shape[1], rows.X.shape[1]
    both = np.ascontiguousarray(np.hstack([rows.evidence.value, rows.X, rows.other]))
    few, place = distinct_rows(rows.evidence._replace(value=both))
    if isinstance(place, slice):
        return rows, place
    value = few.value
    evidence = few._replace(value=np.ascontiguousarray(value[:, :d]))
    return Rows(evidence, np.ascontiguousarray(value[:, d : d + f]), value[:, d + f :] != 0), place


def _nothing_known(model: Forest) -> Evidence:
    return Evidence.of_values(np.full((1, len(model.schema.columns)), np.nan))
