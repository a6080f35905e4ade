"""Candidates learned from a part of the rows, judged by the others, and by what tells their draws from the rows."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from ...evaluation.cells import cells_of, some
from ...evaluation.told_apart import told_apart
from ...model.model import Model
from ...queries.posterior.density import log_density
from ...queries.rows.sampling import sample
from ...table.build_evidence import build
from ...table.schema import Schema
from .candidates import Candidate, learn
from .folds import known_levels

FEWEST_TOLD = 2_000
"""Rows below which draws are not told from them: a classifier learns too little."""
_CELLS_TOLD = 500_000  # of wide tables fewer rows are compared, but `FEWEST_TOLD`


class Split(NamedTuple):
    """Rows to learn from and rows to judge by, encoded: (n, d) and (m, d)."""

    learn: np.ndarray
    held: np.ndarray


class Compared(NamedTuple):
    """What a candidate gave the held-out rows.

    Attributes
    ----------
    candidate : Candidate
    log_density : float64 array (m,)
        Of the held-out rows of all splits, one after the other.
    told_apart : float
        Score of its draws beside the rows that it learned from (1: cannot be told); NaN in several splits or few rows.
    seconds : float
        To learn, in all splits, and to judge by log-density.
    model : Model
        Of the first split.
    """

    candidate: Candidate
    log_density: np.ndarray
    told_apart: float
    seconds: float
    model: Model

    @property
    def mean(self) -> float:
        return float(self.log_density.mean())


def compare(candidate: Candidate, schema: Schema, splits: list[Split], seed: int, n_jobs: int | None) -> Compared:
    """Learn a candidate from each split, and judge it."""
    start = time.monotonic()
    is_categorical = np.array([column.is_categorical for column in schema.columns])
    found, first = [], None
    for split in splits:
        model = learn(candidate.learner, schema, split.learn, seed)
        first = first or model
        held = known_levels(split.learn, split.held, is_categorical)
        found.append(log_density(model, build(schema, held), n_jobs))
    assert first is not None
    seconds = time.monotonic() - start
    score = _score(first, splits[0].learn, seed, n_jobs) if len(splits) == 1 else np.nan
    return Compared(candidate, np.concatenate(found), score, seconds, first)


def _score(model: Model, learned: np.ndarray, seed: int, n_jobs: int | None) -> float:
    """Told-apart score of as many draws as rows, by scikit-learn: the choice must not depend on what is installed."""
    n, d = learned.shape
    if n < FEWEST_TOLD:
        return np.nan
    rows = learned[some(n, max(_CELLS_TOLD // d, FEWEST_TOLD), np.random.default_rng(seed))]
    drawn = sample(model, build(model.schema, n=1), len(rows), seed, True, n_jobs)
    unseen = np.zeros(rows.shape, bool)
    real, own = (cells_of(model.schema, X, unseen) for X in (rows, drawn))
    return told_apart(real, own, seed, n_jobs, may_xgboost=False).score
