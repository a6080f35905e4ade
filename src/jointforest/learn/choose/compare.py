"""Candidates learned from a part of the rows, judged by the others."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from ...model.model import Model
from ...queries.posterior.density import log_density
from ...table.build_evidence import build
from ...table.schema import Schema
from .candidates import Candidate, learn
from .folds import known_levels


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
    seconds : float
        To learn, in all splits, and to judge.
    model : Model
        Of the first split.
    """

    candidate: Candidate
    log_density: np.ndarray
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
    return Compared(candidate, np.concatenate(found), time.monotonic() - start, first)
