"""Hidden trees as a part of a model: `models.part.Part`, filled by the questions of this room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.evidence import Evidence
from ...data.schema import Schema
from . import column, sampling
from .column import covariance
from .condition import condition, given_missing, marginalize
from .evidence import is_far
from .hidden_trees import HiddenTrees
from .posterior import OneRow, log_density

CHOW_LIU = "forest with Chow-Liu leaves"
"""What errors call hidden trees that stand in the leaves of a forest."""


@dataclass(frozen=True)
class HiddenPart:
    """The answers of weighted hidden trees; shapes are those of `models.part.Part`.

    What answers in a background's stead are the far tails of the columns' scales.
    """

    hidden: HiddenTrees

    @property
    def kind(self) -> str:
        return "hidden trees" if self.hidden.grown is None else CHOW_LIU

    @property
    def schema(self) -> Schema:
        return self.hidden.schema

    def log_density(self, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
        return log_density(self.hidden, evidence, n_jobs)

    def weigh(self, evidence: Evidence) -> OneRow:
        return OneRow(self.hidden, evidence)

    def background_share(self, evidence: Evidence, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        found = self.log_density(evidence, n_jobs) if known is None else known.posterior.log_joint.max(axis=1)
        return np.where(np.isneginf(found), np.nan, is_far(self.hidden, evidence))

    def level_probability(self, evidence: Evidence, j: int, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        return column.level_probability(self.hidden, evidence, j, n_jobs, known)

    def mean_variance(
        self, evidence: Evidence, j: int, n_jobs: int | None = -1, known: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        return column.mean_variance(self.hidden, evidence, j, n_jobs, known)

    def cdf(self, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        return column.cdf(self.hidden, evidence, j, x, n_jobs, known)

    def pdf(self, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        return column.pdf(self.hidden, evidence, j, x, n_jobs, known)

    def histogram(
        self, evidence: Evidence, j: int, cuts: np.ndarray, n_jobs: int | None = -1, known: Any = None
    ) -> np.ndarray:
        return column.histogram(self.hidden, evidence, j, cuts, n_jobs, known)

    def quantile(
        self, evidence: Evidence, j: int, q: np.ndarray, n_jobs: int | None = -1, known: Any = None
    ) -> np.ndarray:
        return column.quantile(self.hidden, evidence, j, q, n_jobs, known)

    def covariance(self, evidence: Evidence, a: int, b: int, known: Any = None) -> np.ndarray:
        return covariance(self.hidden, evidence, a, b)

    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool, n_jobs: int | None = -1) -> np.ndarray:
        return sampling.sample(self.hidden, evidence, m, seed, missing, n_jobs)

    def sample_and_weigh(
        self, evidence: Evidence, m: int, seed: int, missing: bool, n_jobs: int | None = -1
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.sample(evidence, m, seed, missing, n_jobs), self.background_share(evidence, n_jobs)

    def impute(self, evidence: Evidence, n_jobs: int | None = -1) -> tuple[np.ndarray, np.ndarray]:
        filled, impossible = sampling.impute(self.hidden, evidence, n_jobs)
        return filled, np.where(impossible, np.nan, is_far(self.hidden, evidence))

    def condition(self, evidence: Evidence) -> HiddenPart:
        return HiddenPart(condition(self.hidden, evidence))

    def marginalize(self, columns: list[int]) -> HiddenPart:
        return HiddenPart(marginalize(self.hidden, columns))

    def given_missing(self, j: int, is_missing: bool) -> tuple[HiddenPart | None, float]:
        hidden, log_share = given_missing(self.hidden, j, is_missing)
        return None if hidden is None else HiddenPart(hidden), log_share
