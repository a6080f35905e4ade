"""A forest of boxes as a part of a model: `models.part.Part`, filled by the questions of this room."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...data.evidence import Evidence
from ...data.schema import Schema
from . import column
from .condition import condition, given_missing
from .covariance import covariance
from .forest import Forest
from .histogram import BinTables, histogram
from .marginalize import marginalize
from .posterior import OneRow, background_weight, log_density
from .sampling import impute_and_weigh, sample, sample_and_weigh


@dataclass(frozen=True)
class ForestPart:
    """The answers of one forest; shapes are those of `models.part.Part`."""

    forest: Forest
    kind: str = "forest"

    @property
    def schema(self) -> Schema:
        return self.forest.schema

    @cached_property
    def bin_tables(self) -> BinTables:
        """Tables for histograms."""
        return BinTables(self.forest)

    def log_density(self, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
        return log_density(self.forest, evidence, n_jobs)

    def weigh(self, evidence: Evidence) -> OneRow:
        return OneRow(self.forest, evidence)

    def background_share(self, evidence: Evidence, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        return background_weight(self.forest, evidence, n_jobs, known)

    def level_probability(self, evidence: Evidence, j: int, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        return column.level_probability(self.forest, evidence, j, n_jobs, known=known)

    def mean_variance(
        self, evidence: Evidence, j: int, n_jobs: int | None = -1, known: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        return column.mean_variance(self.forest, evidence, j, n_jobs, known=known)

    def cdf(self, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        return column.cdf(self.forest, evidence, j, x, n_jobs, known)

    def pdf(self, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        return column.pdf(self.forest, evidence, j, x, n_jobs, known)

    def histogram(
        self, evidence: Evidence, j: int, cuts: np.ndarray, n_jobs: int | None = -1, known: Any = None
    ) -> np.ndarray:
        return histogram(self.forest, self.bin_tables, evidence, j, cuts, n_jobs, known)

    def quantile(
        self, evidence: Evidence, j: int, q: np.ndarray, n_jobs: int | None = -1, known: Any = None
    ) -> np.ndarray:
        return column.quantile(self.forest, evidence, j, q, n_jobs, known=known)

    def covariance(self, evidence: Evidence, a: int, b: int, known: Any = None) -> np.ndarray:
        return covariance(self.forest, evidence, a, b, known)

    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool, n_jobs: int | None = -1) -> np.ndarray:
        return sample(self.forest, evidence, m, seed, missing, n_jobs)

    def sample_and_weigh(
        self, evidence: Evidence, m: int, seed: int, missing: bool, n_jobs: int | None = -1
    ) -> tuple[np.ndarray, np.ndarray]:
        return sample_and_weigh(self.forest, evidence, m, seed, missing, n_jobs)

    def impute(self, evidence: Evidence, n_jobs: int | None = -1) -> tuple[np.ndarray, np.ndarray]:
        return impute_and_weigh(self.forest, evidence, n_jobs)

    def condition(self, evidence: Evidence) -> ForestPart:
        return ForestPart(condition(self.forest, evidence))

    def marginalize(self, columns: list[int]) -> ForestPart:
        return ForestPart(marginalize(self.forest, columns))

    def given_missing(self, j: int, is_missing: bool) -> tuple[ForestPart | None, float]:
        forest, log_share = given_missing(self.forest, j, is_missing)
        return None if forest is None else ForestPart(forest), log_share
