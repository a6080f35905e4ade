"""One fit of a made table in a process of its own: prints seconds, peak memory and leaves as JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from _common import peak_memory

import jointforest as jf


def made_table(n: int, seed: int) -> pd.DataFrame:
    """Ten columns of mixed kinds that depend on a group that is not shown, and on each other."""
    rng = np.random.default_rng(seed)
    group = rng.choice(6, n, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    centre = np.array([0.0, 1.5, -1.0, 3.0, -2.5, 0.5])[group]
    a = centre + np.array([1.0, 0.6, 1.4, 0.8, 0.5, 2.0])[group] * rng.standard_normal(n)
    b = 0.8 * a + 0.6 * rng.standard_normal(n)
    c = np.exp(0.5 * b + 0.4 * rng.standard_normal(n))
    paid = np.round(np.exp(6 + 0.3 * np.clip(c, 0, 6) + 0.5 * rng.standard_normal(n)), 2)
    region = np.minimum((20 * rng.random(n) ** (1 + group / 2)).astype(int), 19)
    plan = (group + (rng.random(n) < 0.25) * rng.integers(0, 6, n)) % 6
    return pd.DataFrame({
        "a": a,
        "b": b,
        "c": c,
        "d": np.sin(a) + 0.3 * rng.standard_normal(n),
        "age": np.clip(np.round(42 + 8 * centre + 9 * rng.standard_normal(n)), 17, 95).astype(np.int64),
        "count": rng.poisson(np.exp(0.3 * centre)),
        "paid": np.where(rng.random(n) < 0.6 - 0.08 * centre, 0.0, paid),
        "region": pd.Categorical.from_codes(region, [f"region {k}" for k in range(20)]),
        "plan": pd.Categorical.from_codes(plan, list("ABCDEF")),
        "flag": rng.random(n) < 1 / (1 + np.exp(-a)),
    })  # fmt: skip


def learner(name: str, seed: int) -> Any:
    """One joint tree, if that is the name, or an adversarial forest grown on "all" rows or on so many at most."""
    if name == "joint tree":
        return jf.JointTree(random_state=seed)
    return jf.AdversarialForest(10, max_samples=None if name == "all" else int(name), random_state=seed)


def main() -> None:
    warnings.simplefilter("ignore")
    name, rows, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    learner(name, seed).fit(made_table(400, seed))  # kernels come from the cache, or are compiled
    frame = made_table(rows, seed)
    before = peak_memory()
    clock, processor = time.perf_counter(), time.process_time()
    model = learner(name, seed).fit(frame)
    print(json.dumps({
        "seconds": time.perf_counter() - clock,
        "processor": time.process_time() - processor,
        "table": float(frame.memory_usage(deep=True).sum()),
        "before": before,
        "peak": peak_memory(),
        "leaves": model.joint_.n_leaves,
        "rounds": len(getattr(model, "oob_accuracy_", [])),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
