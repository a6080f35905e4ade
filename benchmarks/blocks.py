"""Measures whether joints keep the strongest pairs of columns of made tables and of flights.

Made tables hold a pair of correlation 0.9: alone, beside two and five other such pairs, and beside one and three
blocks. A block is a column of 100 levels, one of 10 that it determines, and a number that follows it. Flights: the
five strongest pairs of numbers, and the mean arrival delay given a late departure. All figures are of rows drawn from
the joint. "warned" says whether a `LostDependenceWarning` was issued. "with missing cells" refers to rows drawn with
missing cells as in the table. Recorded lines of other learners are kept.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read, recorded_tables, timed

import jointforest as jf

LEARNERS = {
    "one tree": lambda **k: jf.JointTree(**k),
    "30 trees": lambda **k: jf.JointTree(30, **k),
    "adversarial": lambda **k: jf.AdversarialForest(**k),
    "one tree, quantile": lambda **k: jf.JointTree(leaf="quantile", **k),
    "30 trees, quantile": lambda **k: jf.JointTree(30, leaf="quantile", **k),
    "one tree, chow_liu": lambda **k: jf.JointTree(leaf="chow_liu", **k),
    "30 trees, chow_liu": lambda **k: jf.JointTree(30, leaf="chow_liu", **k),
    "adversarial, chow_liu": lambda **k: jf.AdversarialForest(leaf="chow_liu", **k),
    "hidden trees": lambda **k: jf.HiddenTreeForest(**k),
}
ROWS, FLIGHTS, DRAWS, CORRELATION, STRONGEST, FAR, NEAR = 10_000, 20_000, 50_000, 0.9, 5, 0.1, 0.1
PAIRS = "Farthest correlation of a pair in rows drawn from the joint, and the pair's in the table"
DELAYS = "hflights: mean arrival delay where departure was more than 60 minutes late"


def pairs(n: int, count: int, rng: np.random.Generator) -> pd.DataFrame:
    """``count`` independent pairs of normal columns of correlation 0.9."""
    first, noise = rng.normal(size=(2, count, n))
    second = CORRELATION * first + np.sqrt(1 - CORRELATION**2) * noise
    return pd.DataFrame(
        {f"{side}{k}": values[k] for k in range(count) for side, values in (("a", first), ("b", second))}
    )


def blocks(n: int, count: int, rng: np.random.Generator) -> pd.DataFrame:
    """``count`` independent blocks: 100 levels, 10 levels that they determine, and a number that follows those."""
    made = {}
    for k in range(count):
        level = rng.integers(100, size=n)
        made[f"level{k}"] = np.array([f"l{value:02d}" for value in level])
        made[f"group{k}"] = np.array([f"g{value // 10}" for value in level])
        made[f"number{k}"] = level // 10 + rng.normal(size=n) * 0.3
    return pd.DataFrame(made)


def tables(seed: int, n: int) -> dict[str, pd.DataFrame]:
    """The made tables by name; each has the pair in its first two columns."""
    found = {}
    for name, n_pairs, n_blocks in (("alone", 1, 0), ("beside 2 pairs", 3, 0), ("beside 5 pairs", 6, 0),
                                    ("beside 1 block", 1, 1), ("beside 3 blocks", 1, 3)):  # fmt: skip
        rng = np.random.default_rng(seed)
        found[name] = pd.concat([pairs(n, n_pairs, rng), blocks(n, n_blocks, rng)], axis=1)
    return found


def strongest(frame: pd.DataFrame) -> list[tuple[str, str, float]]:
    """The pairs of numbers of greatest correlation, at most five, and it."""
    table = frame.select_dtypes("number").corr().to_numpy()
    names = frame.select_dtypes("number").columns
    table = np.where(np.triu(np.ones_like(table), 1) > 0, np.nan_to_num(table), 0.0)
    order = np.argsort(-np.abs(table), axis=None)[:STRONGEST]
    return [(names[i], names[j], table[i, j]) for i, j in zip(*np.unravel_index(order, table.shape), strict=True)]


def farthest(drawn: pd.DataFrame, wanted: list[tuple[str, str, float]]) -> tuple[float, str, str, float]:
    """The correlation farthest from what is wanted, its pair, and what is wanted."""
    found = [(drawn[a].corr(drawn[b]), a, b, truth) for a, b, truth in wanted]
    return max(found, key=lambda one: abs(one[0] - one[3]))


def line(name: str, who: str, frame: pd.DataFrame, seed: int) -> tuple[dict, pd.DataFrame, pd.DataFrame]:
    """The pair that fares worst, and the rows drawn: whole, and with cells missing as in the table."""
    wanted = [(f"a{k}", f"b{k}", frame[f"a{k}"].corr(frame[f"b{k}"])) for k in range(6) if f"a{k}" in frame]
    wanted = wanted or strongest(frame)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seconds, learner = timed(lambda: LEARNERS[who](random_state=seed).fit(frame))
    drawn = learner.joint_.sample(DRAWS, random_state=seed)
    worst, a, b, truth = farthest(drawn, wanted)
    warned = any(issubclass(one.category, jf.LostDependenceWarning) for one in caught)
    row = {"table": name, "learner": who, "in the table": truth, "farthest": worst, "pair": f"{a}, {b}",
           "fit_s": round(seconds, 1), "warned": warned, "target": f"within {FAR}",
           "met": "yes" if abs(worst - truth) <= FAR else "NO"}  # fmt: skip
    as_known = drawn
    if frame.isna().to_numpy().any():
        as_known = learner.joint_.sample(DRAWS, random_state=seed, missing=True)
        row["with missing cells"] = farthest(as_known, wanted)[0]
    progress(str(row))
    return row, drawn, as_known


def flights(data: Path, who: str, seed: int, n: int) -> tuple[dict, dict]:
    """The lines of flights."""
    frame = read(data, "flights/hflights")
    frame = frame.sample(min(n, len(frame)), random_state=seed).reset_index(drop=True)
    row, drawn, as_known = line("hflights", who, frame, seed)

    def late(rows: pd.DataFrame) -> float:
        return float(rows["ArrDelay"][rows["DepDelay"] > 60].mean())

    ratio = late(drawn) / late(frame)
    return row, {"learner": who, "in the table": late(frame), "in rows drawn": late(drawn), "ratio": ratio,
                 "with missing cells": late(as_known) / late(frame),
                 "target": f"1 +- {NEAR}", "met": "yes" if abs(ratio - 1) <= NEAR else "NO"}  # fmt: skip


def recorded() -> tuple[dict, dict]:
    """Lines of earlier runs, by table and learner, and by learner."""
    found = {PAIRS: [], DELAYS: []} | recorded_tables("blocks")
    return {(r["table"], r["learner"]): r for r in found[PAIRS]}, {r["learner"]: r for r in found[DELAYS]}


def main() -> None:
    options = arguments(__doc__, learners=dict(nargs="+", choices=list(LEARNERS), default=list(LEARNERS)))
    n, of_flights = (1_000, 1_000) if options.quick else (ROWS, FLIGHTS)
    made = tables(options.seed, n)
    correlations, delays = ({}, {}) if options.quick else recorded()
    for who in ["one tree"] if options.quick else options.learners:
        for name, frame in made.items():
            correlations[name, who] = line(name, who, frame, options.seed)[0]
        correlations["hflights", who], delays[who] = flights(options.data, who, options.seed, of_flights)
    order = [(name, who) for name in [*made, "hflights"] for who in LEARNERS]
    settings = {"seed": options.seed, "rows": n, "rows of flights": of_flights, "rows drawn": DRAWS}
    rows = [correlations[key] for key in order if key in correlations]
    means = [delays[who] for who in LEARNERS if who in delays]
    finish("blocks", {PAIRS: rows, DELAYS: means}, settings, options.quick)


if __name__ == "__main__":
    main()
