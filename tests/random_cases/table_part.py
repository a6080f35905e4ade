"""A toy kind of distribution: a table of weighted rows, which answers every question by counting."""

from __future__ import annotations

import numpy as np

from jointforest.data.evidence import Evidence
from jointforest.data.schema import Schema
from jointforest.models.base import Distribution, PosteriorState


class TableDistribution(Distribution):
    """P(x) = weight of the rows that are x; of columns with levels, or a grid of step 1, so that mass is density."""

    kind = "table"

    def __init__(self, schema: Schema, rows: np.ndarray, weight: np.ndarray) -> None:
        self._schema, self.rows, self.weight = schema, rows, weight  # rows are (r, d), weights (r,)

    @property
    def schema(self) -> Schema:
        return self._schema

    def with_schema(self, schema: Schema) -> TableDistribution:
        return TableDistribution(schema, self.rows, self.weight)

    def posterior(self, evidence: Evidence) -> np.ndarray:
        """Weight of each row of the table by its likelihood under each row of evidence, (n, r)."""
        fits = np.ones((len(evidence.value), len(self.rows)))
        for i, known in enumerate(evidence.value):
            for j, x in enumerate(known.tolist()):
                cells = self.rows[:, j]
                region = int(evidence.region[i, j]) if evidence.region.size else -1
                if x == x:
                    fits[i] *= cells == x
                elif region >= 0:
                    runs = slice(evidence.run_start[region], evidence.run_start[region + 1])
                    lo, hi = evidence.run_lo[runs], evidence.run_hi[runs]
                    fits[i] *= ((lo < cells[:, None]) & (cells[:, None] <= hi)) @ np.exp(evidence.run_log_weight[runs])
        return fits * self.weight

    def shares(self, evidence: Evidence) -> np.ndarray:
        post = self.posterior(evidence)
        with np.errstate(invalid="ignore"):
            return post / post.sum(axis=1, keepdims=True)

    def log_density(self, evidence: Evidence) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.posterior(evidence).sum(axis=1)) + evidence.log_penalty

    def observe(self, evidence: Evidence) -> TablePosterior:
        return TablePosterior(self, evidence)

    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool) -> np.ndarray:
        rng = np.random.default_rng(seed)
        out = np.full((len(evidence.value), m, self.rows.shape[1]), np.nan)
        for i, share in enumerate(self.shares(evidence)):
            if not np.isnan(share).any():
                out[i] = self.rows[rng.choice(len(self.rows), m, p=share)]
        return out.reshape(-1, self.rows.shape[1])

    def condition(self, evidence: Evidence) -> TableDistribution:
        post = self.posterior(evidence)[0]
        return TableDistribution(self.schema, self.rows, post / post.sum())

    def marginalize(self, columns: list[int]) -> TableDistribution:
        schema = Schema(tuple(self.schema.columns[j] for j in columns), self.schema.frame)
        return TableDistribution(schema, self.rows[:, columns], self.weight)

    def given_missing(self, j: int, is_missing: bool) -> tuple[TableDistribution | None, float]:
        return (None, -np.inf) if is_missing else (self, 0.0)


class TablePosterior(PosteriorState):
    """The answers of the table, by counting."""

    distribution: TableDistribution

    @property
    def shares(self) -> np.ndarray:
        return self.distribution.shares(self.evidence)

    @property
    def rows(self) -> np.ndarray:
        return self.distribution.rows

    def background_weight(self) -> np.ndarray:
        return np.where(self.distribution.posterior(self.evidence).sum(axis=1) > 0, 0.0, np.nan)

    def level_probabilities(self, j: int) -> np.ndarray:
        levels = np.arange(len(self.distribution.schema.columns[j].levels))
        return self.shares @ (self.rows[:, [j]] == levels)

    def moments(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        share, x = self.shares, self.rows[:, j]
        mean = share @ x
        return mean, share @ x**2 - mean**2

    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self.shares @ (self.rows[:, [j]] <= np.asarray(x))

    def pdf(self, j: int, x: np.ndarray) -> np.ndarray:
        return self.shares @ (self.rows[:, [j]] == np.round(x))

    def histogram(self, j: int, cuts: np.ndarray) -> np.ndarray:
        if self.distribution.schema.columns[j].is_categorical:
            return self.level_probabilities(j)
        bins = np.searchsorted(cuts, self.rows[:, j])
        return self.shares @ (bins[:, None] == np.arange(len(cuts) + 1))

    def quantile(self, j: int, q: np.ndarray) -> np.ndarray:
        order = np.argsort(self.rows[:, j], kind="stable")
        below = np.cumsum(self.shares[:, order], axis=1)
        at = (below[:, None, :] < np.asarray(q)[None, :, None] - 1e-15).sum(axis=2)
        quantiles = self.rows[order, j][np.minimum(at, len(order) - 1)]
        return np.where(np.isnan(below[:, :1]), np.nan, quantiles)

    def covariance(self, a: int, b: int) -> np.ndarray:
        share, x, y = self.shares, self.rows[:, a], self.rows[:, b]
        return share @ (x * y) - (share @ x) * (share @ y)
