"""Time the fast budget of `jf.fit`, and `HiddenTreeForest.fit`, on tables of several shapes that are made here."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import jointforest as jf

RESULTS = Path(__file__).parent / "results"


def table(n: int, d: int, is_binary: bool = False) -> pd.DataFrame:
    """Rows of eight common factors and noise: two columns of numbers to one of three levels, or all of two."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8)) @ rng.normal(size=(8, d)) + rng.normal(size=(n, d))
    if is_binary:
        return pd.DataFrame({f"c{j}": (X[:, j] > 0).astype(int) for j in range(d)})
    levels = np.where(X > 0, "a", np.where(X < -2, "b", "c"))
    return pd.DataFrame({f"c{j}": levels[:, j] if j % 3 == 0 else X[:, j] for j in range(d)})


def seconds(work: Callable[[], Any]) -> float:
    start = time.monotonic()
    work()
    return round(time.monotonic() - start, 2)


def main() -> None:
    warnings.simplefilter("ignore")
    jf.fit(table(200, 10), budget="fast", random_state=0)  # compiles
    jf.fit(table(5_000, 15), budget="fast", random_state=0)
    jf.HiddenTreeForest(random_state=0).fit(table(200, 10))
    works = [
        (f"jf.fit, fast, {n:,} x {d}", partial(jf.fit, table(n, d), budget="fast", random_state=0))
        for n, d in ((32_561, 15), (3_000, 150), (2_000, 400), (60, 400))
    ]
    works += [
        (f"HiddenTreeForest.fit, {n:,} x {d}", partial(jf.HiddenTreeForest(random_state=0).fit, table(n, d, is_binary)))
        for n, d, is_binary in ((60, 400, False), (1_670, 1_058, True))
    ]
    found = {}
    for name, work in works:
        found[name] = seconds(work)
        print(f"{name}: {found[name]} s", flush=True)
        (RESULTS / "budgets.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
