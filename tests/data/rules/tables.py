"""Small tables that obey rules of all kinds, and the same with exceptions."""

from __future__ import annotations

import numpy as np
import pandas as pd

RULES = {
    "shop -> town",
    "number <-> name",
    "product, size -> price",
    "combinations(department, job)",
    "total = net + fee",
    "end = start + 60 * minutes",
    "opened <= closed",
    "low <= middle",
    "middle < high",
    "delay, weight missing together",
    "delay missing iff state = 'gone'",
}


def obedient(n: int, seed: int, n_wrong: int = 0) -> pd.DataFrame:
    """n rows that obey `RULES`; each with ``n_wrong`` exceptions. Columns a and b obey none."""
    rng = np.random.default_rng(seed)
    wrong = [rng.permutation(n)[:n_wrong] for _ in range(12)]
    odd = np.arange(n_wrong) % 2 == 1

    def spoilt(values: np.ndarray, k: int) -> np.ndarray:
        out = values.astype(object)
        out[wrong[k]] = [rng.choice(np.unique(values)[np.unique(values) != values[i]]) for i in wrong[k]]
        return out

    shop, code = rng.integers(0, 15, n), rng.integers(0, 9, n)
    product, size = rng.integers(0, 6, n), rng.integers(0, 4, n)
    allowed = np.array([(a, b) for a in range(6) for b in range(7) if (a * 5 + b * 3) % 7 < 2])
    department, job = allowed[rng.integers(0, len(allowed), n)].T
    frame = pd.DataFrame({"shop": np.char.add("s", shop.astype(str)), "number": code * 7, "product": product,
                          "size": size, "department": np.char.add("d", department.astype(str))})  # fmt: skip
    frame["town"] = spoilt(np.char.add("t", (shop % 4).astype(str)), 0)
    frame["name"] = spoilt(np.char.add("n", code.astype(str)), 1)
    frame["price"] = spoilt((product + size) % 3, 2).astype(int)
    frame["job"] = spoilt(np.char.add("j", job.astype(str)), 3)
    frame["net"], frame["fee"] = rng.poisson(40, n), rng.geometric(0.1, n)
    frame["total"] = frame["net"] + frame["fee"]
    frame.loc[wrong[4], "total"] = np.where(odd, frame["net"][wrong[4]] - 1, frame["total"][wrong[4]] - 1)
    frame["start"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500_000, n), unit="min")
    frame["minutes"] = rng.geometric(0.03, n)
    frame["end"] = frame["start"] + pd.to_timedelta(frame["minutes"], unit="min")
    frame.loc[wrong[5], "end"] -= pd.Timedelta("20D")
    frame["opened"] = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    days = rng.geometric(0.05, n) - 1
    days[wrong[6]] = -3
    frame["closed"] = frame["opened"] + pd.to_timedelta(days, unit="D")
    frame["low"] = rng.poisson(30, n)
    frame["middle"] = frame["low"] + rng.geometric(0.2, n) - 1
    frame["high"] = frame["middle"] + rng.geometric(0.15, n)
    frame.loc[wrong[7], "middle"] = frame["low"][wrong[7]] - 1
    frame.loc[wrong[8], "high"] = frame["low"][wrong[8]] - 2
    state = rng.choice(["new", "done", "gone"], n, p=[0.6, 0.25, 0.15])
    state[wrong[9]] = "gone"
    frame["state"] = state
    delay = np.round(rng.normal(10.0, 4.0, n), 1)
    delay[state == "gone"] = np.nan
    delay[wrong[10]] = 3.0
    delay[wrong[9]] = 5.0
    weight = np.where(np.isnan(delay), np.nan, np.round(rng.normal(50.0, 9.0, n), 2))
    weight[wrong[11]] = np.nan
    frame["delay"], frame["weight"] = delay, weight
    x = rng.normal(50.0, 10.0, n)
    frame["a"], frame["b"] = np.round(x), np.round(2.0 * x + rng.normal(0, 2.0, n))
    return frame
