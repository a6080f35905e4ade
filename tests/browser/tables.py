"""Made-up tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

HOSTILE_NAME = "<script>alert(1)</script>"
HOSTILE_LEVELS = [
    "<img src=x onerror=alert(1)>",
    'it\'s "quoted"',
    "🐧 emoji 🎉",
    "مرحبا بالعالم",
    "back`tick\\",
    "a or b",
]


def mixed(n: int = 600) -> pd.DataFrame:
    """Every kind of column: levels, ordered levels, booleans, whole and real numbers, an atom, dates, missing cells."""
    random = np.random.default_rng(0)
    group = random.integers(0, 3, n)
    amount = np.where(random.random(n) < 0.6, 0.0, random.gamma(2.0, 50.0, n) * (1 + group))
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 120, n) + 100 * group, unit="D")
    size = pd.Categorical.from_codes(np.clip(group + random.integers(0, 2, n), 0, 3), list("SMLX"), ordered=True)
    real = random.normal(group, 0.7)
    return pd.DataFrame(
        {
            "group": np.array(["red", "green", "blue"])[group],
            "size": size,
            "smoker": random.random(n) < 0.2 + 0.3 * group,
            "age": random.integers(18, 80, n) + 5 * group,
            "real": np.where(random.random(n) < 0.1, np.nan, real),
            "amount": amount,
            "day": day,
        }
    )


def hostile(n: int = 400) -> pd.DataFrame:
    """Names and levels that a careless page would run, break on, or show the wrong way round."""
    random = np.random.default_rng(1)
    level = random.integers(0, len(HOSTILE_LEVELS), n)
    return pd.DataFrame(
        {
            HOSTILE_NAME: np.array(HOSTILE_LEVELS, dtype=object)[level],
            'it\'s `a` "name"': random.normal(level, 0.5),
            "עמודה": np.where(level > 2, "ימין", "שמאל"),
            "": random.integers(0, 9, n),
            "a very long name " * 12: random.random(n) < 0.5,
        }
    )


def wide(d: int = 300, n: int = 200) -> pd.DataFrame:
    """Many columns, a third of them levels."""
    random = np.random.default_rng(2)
    group = random.integers(0, 2, n)
    columns = {}
    for k in range(d):
        if k % 3:
            columns[f"x{k}"] = np.round(random.normal(group * (k % 5), 1.0), 1)
        else:
            columns[f"x{k}"] = np.array(["no", "yes"])[(random.random(n) < 0.3 + 0.4 * group).astype(int)]
    return pd.DataFrame(columns)


def many_levels(size: int = 10_000) -> pd.DataFrame:
    """A column of thousands of levels."""
    random = np.random.default_rng(3)
    n = 2 * size
    code = np.concatenate([np.arange(size), np.minimum(random.geometric(0.002, n - size), size) - 1])
    return pd.DataFrame({"code": [f"code {k:05d}" for k in code], "even": np.where(code % 2 == 0, "yes", "no")})


def some_levels(size: int = 30, n: int = 3_000) -> pd.DataFrame:
    """A column of more levels than are shown, others of them likely in each group."""
    random = np.random.default_rng(4)
    group = random.integers(0, 3, n)
    code = (random.geometric(0.15, n) - 1 + 11 * group) % size
    return pd.DataFrame({"group": np.array(list("abc"))[group], "code": [f"code {k:02d}" for k in code]})


def dirty(n: int = 600) -> pd.DataFrame:
    """Towns with one code and one region each, and a few wrong cells."""
    random = np.random.default_rng(1)
    names = ["Springfield", "Riverside", "Franklin", "Greenville", "Bristol", "Clinton", "Fairview", "Salem"]
    k = random.integers(0, 24, n)
    table = pd.DataFrame(
        {
            "code": [f"{10_000 + 137 * i}" for i in k],
            "town": [names[i % 8] for i in k],
            "region": [["north", "south", "west"][i % 3] for i in k],
            "sales": random.integers(200, 900, n).astype(float),
        }
    )
    table.loc[3, "town"] = table.loc[3, "town"][:-2] + "xx"
    table.loc[3, "region"] += "h"
    table.loc[50, "town"] = next(town for town in names if town != table.loc[50, "town"])
    table.loc[99, "sales"] *= 1000
    return table
