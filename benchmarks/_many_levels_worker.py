"""One case of `many_levels.py` in a process of its own: prints seconds, peak memory and the file's size as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import peak_memory

import jointforest as jf


def made_table(rows: int, columns: int, levels: tuple[int, ...], seed: int) -> pd.DataFrame:
    """Numbers and three columns of four levels that depend on three hidden ones, and columns of many levels.

    Few of the many levels are common: level k has a share of about 1 / k.
    """
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((rows, 3))
    made: dict[str, Any] = {}
    for k in range(columns - 3 - len(levels)):
        made[f"number {k}"] = hidden[:, k % 3] + rng.standard_normal(rows)
    for k in range(3):
        made[f"few {k}"] = np.digitize(hidden[:, k] + rng.standard_normal(rows), [-1, 0, 1]).astype(str)
    for k, n in enumerate(levels):
        level = np.minimum((n / 20 * rng.pareto(1.0, rows)).astype(int), n - 1)
        level[:n] = np.arange(min(n, rows))  # each is there
        made[f"many {k}"] = np.char.add("level ", level.astype(str))
    return pd.DataFrame(made)


def joint_of(name: str, frame: pd.DataFrame, seed: int) -> jf.Joint:
    """The joint that a learner makes; the first column of many levels is what a generative forest predicts."""
    if name == "outlier detector":
        return jf.ForestOutlierDetector(random_state=seed).fit(frame).joint_
    if name == "generative forest":
        return (
            jf.GenerativeForestClassifier(10, random_state=seed)
            .fit(frame.drop(columns="many 0"), frame["many 0"])
            .joint_
        )
    return jf.AdversarialForest(5, random_state=seed).fit(frame).joint_


def main() -> None:
    warnings.simplefilter("ignore")
    name, rows, columns, seed = sys.argv[1], *map(int, sys.argv[2:5])
    levels = tuple(map(int, sys.argv[5:]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.joint"
        few = made_table(300, columns, (100,) * len(levels), seed)  # kernels come from the cache, or are compiled
        small = joint_of(name, few, seed)
        small.save(path)
        small.log_density(few)
        frame, before = made_table(rows, columns, levels, seed), peak_memory()
        clock = time.perf_counter()
        joint = joint_of(name, frame, seed)
        fit, peak = time.perf_counter() - clock, peak_memory()
        joint.save(path)
        clock = time.perf_counter()
        joint.log_density(frame.iloc[:10_000])
        print(json.dumps({
            "seconds": fit,
            "before": before,
            "peak": peak,
            "peak with the file": peak_memory(),
            "file": path.stat().st_size,
            "density": time.perf_counter() - clock,
            "leaves": joint.n_leaves,
        }))  # fmt: skip


if __name__ == "__main__":
    main()
