"""Tables cut into partitions as clusters do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed

import jointforest as jf


def table(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Dependent columns of all kinds with missing cells and repeated rows; one has more than 64 levels."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "g": np.array(["a", "b", "c"])[group],
            "x": rng.lognormal(size=n) * (1 + group),
            "k": rng.poisson(3 * group + 1),
            "many": (rng.integers(0, 40, n) + 40 * group).astype(str),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 30, n) + 30 * group, "D"),
            "flag": rng.random(n) < 0.2 + 0.2 * group,
        }
    )
    gaps = rng.random((n, 5)) < 0.08
    for j, name in enumerate(["g", "x", "k", "many", "day"]):
        frame[name] = frame[name].mask(gaps[:, j])
    return pd.concat([frame, frame.iloc[:40]], ignore_index=True)


def cut(frame: pd.DataFrame, ends: Sequence[int]) -> dd.DataFrame:
    """A Dask frame of unknown divisions; partitions may be empty."""
    ends = [0, *sorted(ends), len(frame)]
    parts = [delayed(frame.iloc[a:b].reset_index(drop=True)) for a, b in itertools.pairwise(ends)]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


def stored(joint: jf.Joint, folder: Path) -> bytes:
    """All that a joint is."""
    path = folder / "one.joint"
    joint.save(path)
    return path.read_bytes()
