"""Small tables of every sort of column, and the lists the oracle reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from jointforest.evaluation.columns_and_pairs import TableCells


def table(n: int, seed: int) -> pd.DataFrame:
    """Numbers, a grid, a date, levels, missing cells."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": x,
            "y": x + rng.normal(size=n) * 0.5,
            "count": rng.poisson(2, n).astype(float),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100, n), "D"),
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])),
            "flag": x > 0.3,
        }
    )
    frame.loc[rng.random(n) < 0.1, "y"] = np.nan
    frame.loc[rng.random(n) < 0.1, "kind"] = np.nan
    return frame


def columns(cells: TableCells) -> list[list[Any]]:
    """Each column as a list, None where a number is missing."""
    return [[None if np.isnan(v) else float(v) for v in cells.X[:, j]] for j in range(cells.X.shape[1])]
