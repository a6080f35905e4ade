"""Conformal intervals and sets on eight tables: how often do they hold the truth, and how wide are they?

Generative forests with ``conformal=True`` beside their own intervals (of classes: the smallest set with the
probability) and MAPIE (own environment) around gradient boosting. 0, 30 or 60 % of the cells of test rows are hidden,
and of the rows learned either none or as many. Width: in standard deviations of the target; of sets, classes in them.
What is done is kept in results/conformal.tmp, and taken up again.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, hide, progress, read, timed
from peers import peer_python, run_json

import jointforest as jf

NUMBERS = {"jpt/abalone": "rings", "jpt/wine_quality": "quality", "insurance": "charges", "synth/beijing": "pm2.5"}
CLASSES = {"gef/cmc": "Contraceptive_method_used", "gef/diabetes": "class", "gef/vehicle": "Class",
           "gef/segment": "class"}  # fmt: skip
PINS = ["mapie==1.3.0", "numpy==2.3.5", "pandas==2.3.3", "pyarrow==22.0.0", "scikit-learn==1.7.2"]
HIDDEN = [(0.0, 0.0), (0.0, 0.3), (0.0, 0.6), (0.3, 0.3), (0.6, 0.6)]
LEVEL = 0.9


def coded(frame: pd.DataFrame) -> pd.DataFrame:
    """Levels as codes, NaN where missing."""
    return frame.apply(
        lambda c: c.cat.codes.where(c.notna()) if isinstance(c.dtype, pd.CategoricalDtype) else c
    ).astype(float)


def mapie(X: pd.DataFrame, y: np.ndarray, ask: pd.DataFrame, kind: str) -> dict:
    python = peer_python("mapie", PINS)
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "learn.parquet", Path(folder) / "ask.parquet"
        coded(X).assign(**{"the target": y}).to_parquet(paths[0])
        coded(ask).to_parquet(paths[1])
        return run_json([python, HERE / "_mapie_worker.py", *paths, kind, LEVEL])


def smallest_set(proba: np.ndarray) -> np.ndarray:
    """The most probable classes whose probabilities add up to the level."""
    order = np.argsort(-proba, axis=1)
    ranked = np.take_along_axis(proba, order, axis=1)
    kept = np.cumsum(ranked, axis=1) - ranked < LEVEL
    sets = np.zeros(proba.shape, dtype=bool)
    np.put_along_axis(sets, order, kept, axis=1)
    return sets


def of_numbers(X: pd.DataFrame, y: np.ndarray, ask: pd.DataFrame, wanted: np.ndarray, trees: int, seed: int) -> dict:
    """method -> (which rows are covered, widths, seconds)."""
    found = {}
    for name, conformal in (("own intervals", False), ("conformal", True)):
        forest = jf.GenerativeForestRegressor(trees, conformal=conformal, n_jobs=1, random_state=seed).fit(X, y)
        seconds, ends = timed(lambda forest=forest: forest.predict_interval(ask, LEVEL))
        found[name] = *ends, seconds
    peer = mapie(X, y, ask, "regression")
    found["MAPIE, boosting"] = np.array(peer["low"]), np.array(peer["high"]), peer["seconds"]
    return {name: ((low <= wanted) & (wanted <= high), (high - low) / y.std(), seconds)
            for name, (low, high, seconds) in found.items()}  # fmt: skip


def of_classes(X: pd.DataFrame, y: np.ndarray, ask: pd.DataFrame, wanted: np.ndarray, trees: int, seed: int) -> dict:
    forest = jf.GenerativeForestClassifier(trees, conformal=True, n_jobs=1, random_state=seed).fit(X, y)
    seconds, plain = timed(lambda: smallest_set(forest.predict_proba(ask)))
    found = {"own intervals": (plain, seconds)}
    seconds, sets = timed(lambda: forest.predict_set(ask, LEVEL))
    found["conformal"] = sets, seconds
    peer = mapie(X, y, ask, "classes")
    found["MAPIE, boosting"] = np.array(peer["sets"]), peer["seconds"]
    return {name: (sets[np.arange(len(wanted)), wanted], sets.sum(axis=1), seconds)
            for name, (sets, seconds) in found.items()}  # fmt: skip


def one_table(frame: pd.DataFrame, target: str, sizes: tuple[int, int, int], hidden: tuple, seed: int) -> dict:
    """method -> (which test rows are covered, widths, seconds), of rows drawn from a table."""
    n, m, trees = sizes
    frame = frame.sample(frac=1, random_state=seed).reset_index(drop=True)[: n + m]
    is_number = target in NUMBERS.values()
    y = frame[target].to_numpy(dtype=float) if is_number else pd.factorize(frame[target], sort=True)[0]
    X, work = frame.drop(columns=target), of_numbers if is_number else of_classes
    known, ask = hide(X[:n], hidden[0], seed)[0], hide(X[n:].reset_index(drop=True), hidden[1], seed + 1)[0]
    found = work(known, y[:n], ask, y[n:], trees, seed)
    return {
        method: (covered.tolist(), widths.tolist(), seconds) for method, (covered, widths, seconds) in found.items()
    }


def main() -> None:
    options = arguments(__doc__, repeats=dict(type=int, default=5), rows=dict(type=int, default=300),
                        tests=dict(type=int, default=100),
                        patterns=dict(type=int, default=len(HIDDEN)))  # fmt: skip
    n, m, trees, repeats = (120, 20, 8, 1) if options.quick else (options.rows, options.tests, 30, options.repeats)
    tables = {**NUMBERS, **CLASSES} if not options.quick else {"insurance": "charges", "gef/cmc": CLASSES["gef/cmc"]}
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"  # of the peer: threads of tiny tasks wait for each other
    kept = HERE / "results" / f"conformal{'.quick' if options.quick else ''}.tmp"
    done: dict[str, dict] = {}
    if kept.exists() and not options.quick:
        done = dict(json.loads(line) for line in kept.read_text().splitlines())
    kept.write_text("".join(json.dumps(pair) + "\n" for pair in done.items()))
    lines: dict[tuple, list] = {}
    for repeat in range(repeats):
        seed = options.seed + repeat
        for learned, asked in HIDDEN[: options.patterns]:
            for name, target in tables.items():
                key = f"{name}|{learned}|{asked}|{seed}|{n}|{m}"
                if key not in done:
                    done[key] = one_table(read(options.data, name), target, (n, m, trees), (learned, asked), seed)
                    with kept.open("a") as file:
                        file.write(json.dumps((key, done[key])) + "\n")
                    progress(key)
                for method, found in done[key].items():
                    lines.setdefault((name, learned, asked, method), []).append(found)
    table, total = [], []
    for (name, learned, asked, method), each in lines.items():
        covered, widths = (np.concatenate([one[k] for one in each]) for k in (0, 1))
        table.append({"table": name, "hidden when learned": learned, "hidden when asked": asked, "method": method,
                      "coverage": float(covered.mean()), "width or classes (median, mean)":
                      f"{np.median(widths):.2f}, {widths.mean():.2f}",
                      "seconds to ask (MAPIE: to learn, too)": float(np.median([one[2] for one in each]))})  # fmt: skip
    for learned, asked in HIDDEN[: options.patterns]:
        for method in ("own intervals", "conformal", "MAPIE, boosting"):
            for what, names in (("intervals", NUMBERS), ("sets", CLASSES)):
                mine = [np.mean(np.concatenate([one[0] for one in each])) for key, each in lines.items()
                        if key[0] in names and key[1:] == (learned, asked, method)]  # fmt: skip
                wide = [np.mean(np.concatenate([one[1] for one in each])) for key, each in lines.items()
                        if key[0] in names and key[1:] == (learned, asked, method)]  # fmt: skip
                total.append({"of": what, "hidden when learned": learned, "hidden when asked": asked, "method": method,
                              "coverage (mean of tables)": float(np.mean(mine)), "lowest": float(np.min(mine)),
                              "mean width or classes": float(np.mean(wide))})  # fmt: skip
    settings = {"rows": n, "tests": m, "trees": trees, "repeats": repeats, "level": LEVEL, "mapie": PINS}
    total.sort(key=lambda row: row["of"])
    finish("conformal", {"By table": table, "All tables": total}, settings, options.quick)


if __name__ == "__main__":
    main()
