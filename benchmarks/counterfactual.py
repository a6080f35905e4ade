"""Compares counterfactuals of a classifier with those of DiCE: validity, plausibility, changes, seconds.

Adult and credit-g. 45 % of the rows train the classifier (the same gradient boosting in both environments), the joint
and DiCE. Another 45 % train a second joint, whose log-density measures plausibility. The rest are real rows: some are
to be changed, and all of them show which log-densities are unusual.
"""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, over_seeds, progress, read, timed
from _counterfactual_model import trained
from peers import peer_python, run_json

import jointforest as jf

PINS = ["dice-ml==0.12", "numpy==2.4.6", "pandas==2.3.3", "scikit-learn==1.9.1", "scipy==1.17.1", "pyarrow==26.0.1"]
TABLES = {
    "adult": ("adult_train", "income", ["sex", "race", "native_country"]),
    "credit-g": ("gef/credit-g", None, []),
}
N = 5


def table_of(data: Path, name: str) -> tuple[pd.DataFrame, str, list[str]]:
    """Complete rows, the classes as 0 and 1, levels as plain text."""
    file, target, fixed = TABLES[name]
    frame = read(data, file).dropna().reset_index(drop=True)
    target = target or str(frame.columns[-1])
    classes = sorted(frame[target].astype(str).unique())
    frame[target] = (frame[target].astype(str) == classes[1]).astype(int)
    for column in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype(str).astype(object)
    return frame, target, fixed


def gower(learn: pd.DataFrame, rows: pd.DataFrame, row: pd.Series) -> np.ndarray:
    """Mean over columns of |difference| / range, or 0 or 1."""
    total = np.zeros(len(rows))
    for name in rows.columns:
        if pd.api.types.is_numeric_dtype(learn[name]):
            width = float(learn[name].max() - learn[name].min()) or 1.0
            total += np.minimum(np.abs(rows[name].to_numpy(float) - float(row[name])) / width, 1.0)
        else:
            total += rows[name].to_numpy(object) != row[name]
    return total / rows.shape[1]


def judged(found: list[pd.DataFrame], asked: pd.DataFrame, was: np.ndarray, model, judge, floor, learn, target) -> dict:
    """Figures of the rows found for each row asked about."""
    valid, density, unlikely, changes, distance, best = [], [], [], [], [], []
    for k, rows in enumerate(found):
        if not len(rows):
            continue
        wanted = 1 - was[k]
        valid += (model.predict(rows) == wanted).tolist()
        log = judge.log_density(rows.assign(**{target: wanted}))
        density += log.tolist()
        unlikely += (log < floor[wanted]).tolist()
        row = asked.iloc[k]
        changed = np.column_stack([rows[name].to_numpy(object) != row[name] for name in rows.columns]).sum(axis=1)
        changes += changed.tolist()
        best.append(int(changed.min()))
        distance += gower(learn, rows, row).tolist()
    return {
        "rows found": len(valid), "asked": N * len(found), "valid": float(np.mean(valid)),
        "log-density": float(np.mean(density)), "below 5 % of real rows": float(np.mean(unlikely)),
        "changes": float(np.mean(changes)), "fewest changes": float(np.mean(best)), "Gower": float(np.mean(distance)),
    }  # fmt: skip


def like(learn: pd.DataFrame, rows: list[dict]) -> pd.DataFrame:
    """A peer's rows with the types of the table."""
    frame = pd.DataFrame(rows, columns=learn.columns)
    for name in learn.columns if len(frame) else []:
        is_number = pd.api.types.is_numeric_dtype(learn[name])
        frame[name] = frame[name].astype(float) if is_number else frame[name].astype(object)
    return frame


def one_table(options, name: str, n_rows: int, seed: int) -> list[dict]:
    frame, target, fixed = table_of(options.data, name)
    order = np.random.default_rng(seed).permutation(len(frame))
    most = 2_000 if options.quick else 20_000
    n = min(len(frame), most)
    cuts = [0, 45 * n // 100, 90 * n // 100, n]
    parts = [frame.iloc[order[a:b]].reset_index(drop=True) for a, b in itertools.pairwise(cuts)]
    learn, others, rest = parts
    model = trained(learn, target)
    asked = rest.drop(columns=target).iloc[:n_rows].reset_index(drop=True)
    was = model.predict(asked)
    judge = jf.AdversarialForest(n_estimators=10, random_state=seed).fit(others).joint_
    floor = {k: np.quantile(judge.log_density(rest[rest[target] == k]), 0.05) for k in (0, 1)}
    joint = jf.HiddenTreeForest(n_states=64, n_estimators=1, random_state=seed).fit(learn).joint_
    columns = learn.drop(columns=target)
    table = []

    def add(method: str, found: list[pd.DataFrame], seconds: list[float]) -> None:
        figures = judged(found, asked, was, model, judge, floor, columns, target)
        table.append({"table": name, "method": method, **figures, "seconds a row": float(np.median(seconds))})
        progress(str(table[-1]))

    joint.counterfactual(asked.iloc[[0]], model, int(1 - was[0]), fixed=fixed, n=N, random_state=0)  # compile
    runs = [
        timed(lambda k=k: joint.counterfactual(asked.iloc[[k]], model, int(1 - was[k]), fixed=fixed, n=N,
                                               random_state=seed))
        for k in range(len(asked))
    ]  # fmt: skip
    add("jointforest", [found.rows[list(columns)] for _, found in runs], [seconds for seconds, _ in runs])
    python = peer_python("dice", PINS)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "learn.parquet", Path(folder) / "asked.parquet"]
        learn.to_parquet(paths[0])
        asked.to_parquet(paths[1])
        for method in ("random", "genetic"):
            settings = [target, method, ",".join(fixed), N, seed]
            done = run_json([python, HERE / "_dice_worker.py", *paths, *settings])
            assert done["was"] == was.tolist(), "the classifiers of the two environments differ"
            add(f"DiCE {method}", [like(columns, done["rows"][str(k)]) for k in range(len(asked))], done["seconds"])
    for label, classes in (("(the rows asked about)", was), ("(the same, called the other class)", 1 - was)):
        real = judge.log_density(asked.assign(**{target: classes}))
        below = real < np.array([floor[k] for k in classes])
        table.append({"table": name, "method": label, "log-density": float(real.mean()),
                      "below 5 % of real rows": float(below.mean())})  # fmt: skip
    return table


def main() -> None:
    options = arguments(__doc__, rows=dict(type=int, default=12), seeds=dict(type=int, nargs="+", default=[0]))
    n_rows = 3 if options.quick else options.rows
    runs = [
        {f"{N} counterfactuals for each of {n_rows} rows of {name}": one_table(options, name, n_rows, seed)
         for name in TABLES}
        for seed in options.seeds
    ]  # fmt: skip
    versions = subprocess.run([str(peer_python("dice", PINS)), "-m", "pip", "freeze"], capture_output=True, text=True)
    pinned = [line for line in versions.stdout.split() if line.split("==")[0] in ("dice_ml", "scikit-learn", "pandas")]
    settings = {"rows": n_rows, "each": N, "seeds": options.seeds, "peer": pinned}
    finish("counterfactual", over_seeds(runs), settings, options.quick)


if __name__ == "__main__":
    main()
