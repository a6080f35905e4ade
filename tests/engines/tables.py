"""A table that all engines hold: numbers, text, dates, booleans, missing cells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def table(n: int = 600, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    gaps = rng.random((n, 3)) < 0.1
    return pa.table(
        {
            "g": pa.array(np.array(["a", "b", "c"])[group], mask=gaps[:, 0]),
            "x": pa.array(rng.normal(size=n) + group, mask=gaps[:, 1]),
            "k": pa.array(rng.poisson(3 * group + 1), mask=gaps[:, 2]),
            "day": pa.array(np.datetime64("2024-01-01") + rng.integers(0, 30, n) + 30 * group).cast(pa.date32()),
            "flag": rng.random(n) < 0.2 + 0.2 * group,
        }
    )
