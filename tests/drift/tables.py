"""Tables of whose changes the tests know all."""

from __future__ import annotations

import numpy as np
import pandas as pd


def plans(rows: int, seed: int, free: float = 0.3) -> pd.DataFrame:
    """Customers: plan, region and hours, which depend on each other, size with missing cells, and a date."""
    random = np.random.default_rng(seed)
    plan = random.choice(["free", "basic", "pro"], rows, p=[free, 0.9 - free, 0.1])
    region = np.where(random.random(rows) < 0.7, np.where(plan == "free", "north", "south"), "west")
    hours = random.normal(20, 5, rows) + 4 * (plan == "pro")
    size = np.round(0.5 * hours + random.normal(10, 3, rows))
    return pd.DataFrame(
        {
            "plan": plan,
            "region": region,
            "hours": hours,
            "size": np.where(random.random(rows) < 0.05, np.nan, size),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 60, rows), "D"),
        }
    )
