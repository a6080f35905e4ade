"""Answers of forests of boxes as functions of a forest, evidence and a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointforest.data.evidence import Evidence
from jointforest.models.box_forest.box_forest import BoxForest, BoxForestPosterior
from jointforest.models.box_forest.histogram import Bins, BinTables, mass_in_row
from jointforest.models.box_forest.histogram_kernels import bin_rows
from jointforest.models.box_forest.posterior import OneRow
from jointforest.models.box_forest.structure import Forest


def state(forest: Forest, evidence: Evidence, beta: float = 1.0, known: OneRow | None = None) -> BoxForestPosterior:
    """The posterior, which answers in chunks unless its one row is ``known``."""
    found = BoxForestPosterior(BoxForest(forest), evidence, beta)
    found.row = known
    return found


def background_weight(forest: Forest, evidence: Evidence, **how: Any) -> np.ndarray:
    return state(forest, evidence, **how).background_weight()


def level_probability(forest: Forest, evidence: Evidence, j: int, **how: Any) -> np.ndarray:
    return state(forest, evidence, **how).level_probabilities(j)


def levels_and_log_density(forest: Forest, evidence: Evidence, j: int) -> tuple[np.ndarray, np.ndarray]:
    return state(forest, evidence).levels_and_log_probability(j)


def mean_variance(forest: Forest, evidence: Evidence, j: int, **how: Any) -> tuple[np.ndarray, np.ndarray]:
    return state(forest, evidence, **how).moments(j)


def cdf(forest: Forest, evidence: Evidence, j: int, x: Any, **how: Any) -> np.ndarray:
    return state(forest, evidence, **how).cdf(j, x)


def pdf(forest: Forest, evidence: Evidence, j: int, x: Any, **how: Any) -> np.ndarray:
    return state(forest, evidence, **how).pdf(j, x)


def quantile(forest: Forest, evidence: Evidence, j: int, q: Any, **how: Any) -> np.ndarray:
    return state(forest, evidence, **how).quantile(j, q)


def histogram(
    forest: Forest, tables: BinTables, evidence: Evidence, j: int, cuts: np.ndarray, **how: Any
) -> np.ndarray:
    found = state(forest, evidence, **how)
    found.distribution.__dict__["bin_tables"] = tables
    return found.histogram(j, cuts)


def bin_mass(forest: Forest, evidence: Evidence, j: int, bins: Bins, known: OneRow | None = None) -> np.ndarray:
    if known is not None:
        return mass_in_row(forest, evidence, j, known.posterior, bins)
    return state(forest, evidence)._read(bin_rows, j, bins.lo, bins.hi)


def impute(forest: Forest, evidence: Evidence) -> np.ndarray:
    return BoxForest(forest).impute(evidence)[0]
