"""A table with columns of every kind and hard names, and joints of it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

import jointforest as jf

NAMES = {
    "script": "<script>alert(1)</script>",
    "level": 'it\'s "quoted" & <b>bold</b>',
    "right_to_left": "שלום",
    "emoji": "🌲",
}


@cache
def frame() -> pd.DataFrame:
    """300 rows that hang together by a hidden group."""
    rng = np.random.default_rng(0)
    n = 300
    group = rng.integers(0, 3, n)
    day = pd.Timestamp("2024-03-20") + pd.to_timedelta(group * 10 + rng.integers(0, 10, n), "D")
    half_hour = pd.Timestamp("2024-10-26 12:00", tz="UTC") + pd.to_timedelta(30 * rng.integers(0, 100, n), "min")
    table = pd.DataFrame(
        {
            "x": rng.normal(3.0 * group, 1.0),
            "spend": np.where(rng.random(n) < 0.4, 0.0, rng.exponential(10.0 + 5.0 * group, n)),
            "age": 20 + 15 * group + rng.integers(0, 20, n),
            "price": np.round(rng.normal(10.0 + group, 1.0, n), 2),
            "day": day,
            "at": half_hour.tz_convert("Europe/Berlin"),
            "member": rng.random(n) < 0.2 + 0.3 * group,
            NAMES["script"]: np.array([NAMES["level"], NAMES["right_to_left"], NAMES["emoji"]], object)[group],
            "size": pd.Categorical(np.array(["S", "M", "L"])[group], ["S", "M", "L"], ordered=True),
            "town": np.array([f"town {k}" for k in range(12)], object)[rng.integers(0, 4, n) + 4 * group],
        }
    )
    table.loc[rng.random(n) < 0.2, "price"] = np.nan
    table.loc[rng.random(n) < 0.1, "town"] = None
    return table


@cache
def forest() -> jf.Joint:
    """A joint that is a forest."""
    return jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame()).joint_


@cache
def hidden() -> jf.Joint:
    """A joint of hidden trees."""
    return jf.HiddenTreeForest(n_states=8, max_iter=2, rules="off", random_state=0).fit(frame()).joint_


@cache
def both() -> jf.Joint:
    """A mixture of parts of both kinds."""
    schema = forest().schema
    learner = jf.HiddenTreeForest(n_states=8, max_iter=2, rules="off", random_state=0)
    other = learner.fit(frame()).joint_
    assert other.schema == schema
    return jf.mix([forest(), other], [0.7, 0.3])


@cache
def heavy_frame() -> pd.DataFrame:
    """Claims with many zeros and a heavy tail, with and without a grid, and a column without such a tail."""
    rng = np.random.default_rng(3)
    n = 2_000
    group = rng.integers(0, 2, n)
    amount = rng.lognormal(5.0 + group, 1.6)
    return pd.DataFrame(
        {
            "claim": np.where(rng.random(n) < 0.6, 0.0, amount),
            "count": np.floor(rng.lognormal(1.0 + group, 1.5)).astype(int),
            "age": rng.integers(18, 90, n),
            "group": np.array(["a", "b"])[group],
        }
    )


@cache
def heavy() -> jf.Joint:
    """A joint of hidden trees of it."""
    return jf.HiddenTreeForest(n_states=6, rules="off", random_state=0).fit(heavy_frame()).joint_


@cache
def contracts() -> pd.DataFrame:
    """Contracts, half of which are not over yet; another column has a few ranges."""
    rng = np.random.default_rng(0)
    n = 1_000
    plan = rng.choice(["basic", "pro"], n)
    months = rng.weibull(1.3, n) * np.where(plan == "pro", 60, 15)
    so_far = rng.uniform(1, 48, n)
    table = pd.DataFrame({"plan": plan, "ended": months <= so_far, "months": np.minimum(months, so_far).round(1)})
    table["seats"] = [str(x) if x < 9 else "9+" for x in rng.poisson(4, n) + 1]
    return table


@cache
def contracts_joint() -> jf.Joint:
    """A joint of them that knows which contracts are not over."""
    kinds = {"months": jf.censored(event="ended")}
    return jf.HiddenTreeForest(n_states=8, rules="off", kinds=kinds, random_state=0).fit(contracts()).joint_


JOINTS = {"forest": forest, "hidden trees": hidden, "mixture": both}
