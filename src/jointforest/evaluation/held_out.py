"""Rows that were held out: their log-density beside independence, and what the joint's intervals cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.evidence import build
from ..data.schema import Schema
from ..models.base import Distribution
from .columns_and_pairs import some

_MOST_ROWS = 20_000
"""Rows whose log-density is taken."""
_MOST_CELLS = 500
"""Cells of a column with more distinct values whose density alone is taken."""
COVERED_ROWS = 300
"""Rows whose cells are held against their intervals."""
_MOST_COLUMNS = 50
"""Columns whose intervals are asked for."""
_LEVEL = 0.9
"""Probability of the intervals."""


@dataclass(frozen=True)
class HeldOut:
    """How probable a joint finds rows that it has not seen.

    log_density : float. Mean log-density of a row, in nats: of numbers on a grid, levels and atoms their mass.
    independent : float. The same if all columns were independent, each distributed as in the joint.
    impossible : float. Share of rows with density 0 (only in a joint without background); the mean is then minus
        infinity.
    n_rows : int
    """

    log_density: float
    independent: float
    impossible: float
    n_rows: int


@dataclass(frozen=True)
class Coverage:
    """Share of cells within the joint's 90 % intervals of equal tails, given the other cells of their rows.

    share : dict of column to float. 0.9 or a little more is right: numbers on a coarse grid, or with atoms, are covered
        more often. Those farthest from it first, too few before too many. Columns without a known cell are left out.
    n_rows : int. Rows asked, of which cells that are missing are left out.
    """

    share: dict[str, float]
    n_rows: int


def held_out(model: Distribution, X: np.ndarray, unseen: np.ndarray, random: np.random.Generator) -> HeldOut:
    """Log-density of rows, X (n, d) and unseen (n, d) as `data.frames.encode` gives them, beside independence."""
    rows = some(len(X), _MOST_ROWS, random)
    X, unseen = X[rows], unseen[rows]
    log_density = model.log_density(build(model.schema, X, unseen))
    alone = sum(_apart(model, j, X[:, j], unseen[:, j], random) for j in range(X.shape[1]))
    return HeldOut(float(log_density.mean()), float(alone), float(np.mean(log_density == -np.inf)), len(X))


def log_densities(
    model: Distribution, X: np.ndarray, unseen: np.ndarray, most: int, random: np.random.Generator
) -> np.ndarray:
    """Log-densities of at most ``most`` rows, drawn by chance, of X (n, d) and unseen (n, d)."""
    rows = some(len(X), most, random)
    return model.log_density(build(model.schema, X[rows], unseen[rows]))


def _apart(model: Distribution, j: int, x: np.ndarray, unseen: np.ndarray, random: np.random.Generator) -> float:
    """Mean over rows of log p(x_j), cells (n,); missing ones count 0, levels never seen their penalty."""
    known = x[~np.isnan(x)]
    total = float(unseen.mean()) * model.schema.columns[j].log_unseen
    if not len(known):
        return total
    value, count = np.unique(known, return_counts=True)
    if len(value) > _MOST_CELLS:
        value, count = known[some(len(known), _MOST_CELLS, random)], np.ones(_MOST_CELLS, dtype=count.dtype)
    cells = np.full((len(value), len(model.schema.columns)), np.nan)
    cells[:, j] = value
    mean = np.average(model.log_density(build(model.schema, cells)), weights=count)
    return total + float(mean) * len(known) / len(x)


def coverage(model: Distribution, X: np.ndarray, unseen: np.ndarray, random: np.random.Generator) -> Coverage:
    """What the 90 % intervals of columns of numbers cover, rows X (n, d) and unseen (n, d)."""
    rows = some(len(X), COVERED_ROWS, random)
    numeric = np.array(numeric_columns(model.schema), dtype=np.int64)
    tails = np.array([(1.0 - _LEVEL) / 2.0, (1.0 + _LEVEL) / 2.0])
    share = {}
    for j in numeric[some(len(numeric), _MOST_COLUMNS, random)].tolist():
        known = rows[~np.isnan(X[rows, j])]
        if not len(known):
            continue
        others = X[known]
        others[:, j] = np.nan
        ends = model.observe(build(model.schema, others, unseen[known])).quantile(j, tails)
        # half a cell of the grid: a number anywhere in a cell counts as the cell
        slack = model.schema.columns[j].step / 2.0
        share[model.schema.names[j]] = float(
            np.mean((ends[:, 0] - slack <= X[known, j]) & (X[known, j] <= ends[:, 1] + slack))
        )
    return Coverage(dict(sorted(share.items(), key=lambda item: _badness(item[1]), reverse=True)), len(rows))


def numeric_columns(schema: Schema) -> list[int]:
    """Numbers of the columns that hold numbers or dates."""
    return [j for j, column in enumerate(schema.columns) if not column.is_categorical]


def _badness(share: float) -> float:
    """Too few cells covered is worse than too many, by as much as the tails are smaller than the interval."""
    return (_LEVEL - share) / _LEVEL if share < _LEVEL else (share - _LEVEL) / _LEVEL * 0.1
