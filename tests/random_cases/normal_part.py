"""A toy kind of part: correlated normals, of which conditional draws are known in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jointforest.api.joint import Joint
from jointforest.data.evidence import Evidence
from jointforest.data.schema import Column, Schema


@dataclass(frozen=True)
class NormalPart:
    """Normals with this mean (d,) and covariance (d, d); it draws, and answers nothing else."""

    schema: Schema
    mean: np.ndarray
    covariance: np.ndarray
    kind: str = "normal"

    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return np.concatenate([self._draw(row, m, rng) for row in evidence.value])

    def _draw(self, row: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
        out = np.tile(row, (m, 1))
        known, free = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        if len(free):
            C = self.covariance
            slope = C[np.ix_(free, known)] @ np.linalg.inv(C[np.ix_(known, known)])
            mean = self.mean[free] + slope @ (row[known] - self.mean[known])
            rest = C[np.ix_(free, free)] - slope @ C[np.ix_(known, free)]
            out[:, free] = mean + rng.normal(size=(m, len(free))) @ np.linalg.cholesky(rest).T
        return out


def normal_joint(mean: np.ndarray, covariance: np.ndarray) -> Joint:
    """A joint of columns x0, x1, ... that are these normals."""
    columns = tuple(Column(f"x{j}", "continuous", "float64", n_observed=1000) for j in range(len(mean)))
    part: Any = NormalPart(Schema(columns, "pandas"), mean, covariance)
    return Joint(part)
