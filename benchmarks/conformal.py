"""Measures coverage and width of conformal intervals and sets on eight tables, beside MAPIE.

Generative forests with ``conformal=True`` stand beside the joint's own intervals and sets, and beside MAPIE (in an
environment of its own) around gradient boosting. 0, 30 or 60 % of the cells of test rows are hidden, and none or as
many of the training rows. Width is in standard deviations, or the number of classes. Figures are means over seeds. An
interrupted run continues from results/conformal.tmp.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, hide, over_seeds, progress, read, timed
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


def summary(found: dict[tuple[str, float, float], dict]) -> dict[str, list[dict]]:
    """Tables of one seed; ``found`` by table, share hidden of rows learned, and of rows asked about."""
    table, total = [], []
    for (name, learned, asked), methods in found.items():
        for method, (covered, widths, seconds) in methods.items():
            table.append({"table": name, "hidden when learned": f"{learned:.0%}", "hidden when asked": f"{asked:.0%}",
                          "method": method, "coverage": float(np.mean(covered)),
                          "width or classes": float(np.mean(widths)), "median of it": float(np.median(widths)),
                          "seconds to ask (MAPIE: to learn, too)": seconds})  # fmt: skip
    for what, names in (("intervals", NUMBERS), ("sets", CLASSES)):
        mine = [row for row in table if row["table"] in names]
        for key in dict.fromkeys((r["hidden when learned"], r["hidden when asked"], r["method"]) for r in mine):
            of = [r for r in mine if (r["hidden when learned"], r["hidden when asked"], r["method"]) == key]
            total.append({"of": what, "hidden when learned": key[0], "hidden when asked": key[1], "method": key[2],
                          "coverage (mean of tables)": float(np.mean([r["coverage"] for r in of])),
                          "lowest": float(np.min([r["coverage"] for r in of])),
                          "mean width or classes": float(np.mean([r["width or classes"] for r in of]))})  # fmt: skip
    return {"By table": table, "All tables": total}


def main() -> None:
    options = arguments(__doc__, seeds=dict(type=int, nargs="+", default=[0]), rows=dict(type=int, default=300),
                        tests=dict(type=int, default=100),
                        patterns=dict(type=int, default=len(HIDDEN)))  # fmt: skip
    n, m, trees = (120, 20, 8) if options.quick else (options.rows, options.tests, 30)
    tables = {**NUMBERS, **CLASSES} if not options.quick else {"insurance": "charges", "gef/cmc": CLASSES["gef/cmc"]}
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"  # of the peer: threads of tiny tasks wait for each other
    kept = HERE / "results" / f"conformal{'.quick' if options.quick else ''}.tmp"
    done: dict[str, dict] = {}
    if kept.exists() and not options.quick:
        done = dict(json.loads(line) for line in kept.read_text().splitlines())
    kept.write_text("".join(json.dumps(pair) + "\n" for pair in done.items()))
    runs = []
    for seed in options.seeds:
        found = {}
        for (learned, asked), (name, target) in itertools.product(HIDDEN[: options.patterns], tables.items()):
            key = f"{name}|{learned}|{asked}|{seed}|{n}|{m}"
            if key not in done:
                done[key] = one_table(read(options.data, name), target, (n, m, trees), (learned, asked), seed)
                with kept.open("a") as file:
                    file.write(json.dumps((key, done[key])) + "\n")
                progress(key)
            found[name, learned, asked] = done[key]
        runs.append(summary(found))
    settings = {"rows": n, "tests": m, "trees": trees, "seeds": options.seeds, "level": LEVEL, "mapie": PINS}
    finish("conformal", over_seeds(runs), settings, options.quick)


if __name__ == "__main__":
    main()
