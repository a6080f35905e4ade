"""Measures speed and memory of adversarial forests on Adult and on a table of 678,013 x 11.

10 trees, minimum leaf 5. Kernels are compiled before the clock starts. Peak memory is that of a fresh process that
reads the table, fits, and (for Adult) asks the same questions.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, hide, median_seconds, peak_memory, progress, read, timed, verdict

from jointforest.learners.adversarial.adversarial_forest import AdversarialForest


def forest(seed: int = 0) -> AdversarialForest:
    return AdversarialForest(n_estimators=10, min_samples_leaf=5, random_state=seed)


def warm_up(frame: pd.DataFrame) -> None:
    """Load every kernel that is timed below from the cache (or compile it)."""
    few = frame.iloc[:300].reset_index(drop=True)
    joint = forest().fit(few).joint_
    masked, _ = hide(few, 0.3, 0)
    joint.log_density(few)
    joint.log_density(masked)
    joint.impute(masked)
    joint.sample(100, random_state=0)


def adult(frame: pd.DataFrame, repeats: int, samples: int, asked: int, seed: int) -> list[dict]:
    complete = frame.dropna().reset_index(drop=True)
    masked, _ = hide(frame.iloc[:asked].reset_index(drop=True), 0.3, seed)
    model = forest(seed)
    fit = median_seconds(lambda: model.fit(frame), repeats)
    joint = model.joint_
    rows = [{"what": f"fit, {len(frame):,} rows", "seconds": fit, "rows/s": len(frame) / fit} | verdict(fit, 4.0)]
    progress(f"fit {fit:.2f} s, {joint.n_leaves:,} leaves, {len(model.oob_accuracy_)} rounds")
    questions = {
        "log-density, complete rows": (lambda: joint.log_density(complete), len(complete), 200_000),
        "log-density, as they are": (lambda: joint.log_density(frame), len(frame), None),
        "log-density, 30 % of cells missing": (lambda: joint.log_density(masked), len(masked), 10_000),
        "imputation, 30 % of cells missing": (lambda: joint.impute(masked), len(masked), 5_000),
        "sampling to a frame": (lambda: joint.sample(samples, random_state=seed), samples, 500_000),
    }
    for name, (work, n, target) in questions.items():
        seconds = median_seconds(work, repeats)
        row = {"what": f"{name}, {n:,} rows", "seconds": seconds, "rows/s": n / seconds}
        rows.append(row | (verdict(n / seconds, target, at_most=False) if target else {}))
        progress(f"{name}: {n / seconds:,.0f} rows/s")
    return rows


def worker(name: str, data: Path, rows: int | None, seed: int) -> None:
    """The work of a fresh process: fit one table, print seconds and peak memory."""
    frame = read(data, name).iloc[:rows]
    if name == "adult_train":
        warm_up(frame)
    else:
        forest().fit(frame.iloc[:1000].reset_index(drop=True))
    model = forest(seed)
    seconds, _ = timed(lambda: model.fit(frame))
    after_fit = peak_memory()
    if name == "adult_train":
        joint = model.joint_
        joint.log_density(frame)
        masked, _ = hide(frame, 0.3, seed)
        joint.log_density(masked)
        joint.impute(masked.iloc[:10_000])
        joint.sample(100_000, random_state=seed)
    content = {"rows": len(frame), "seconds": seconds, "fit": after_fit, "all": peak_memory(),
               "leaves": model.joint_.n_leaves, "rounds": len(model.oob_accuracy_)}  # fmt: skip
    print(json.dumps(content))


def fresh(name: str, data: Path, rows: int | None, seed: int) -> dict:
    """Run `worker` in a process of its own."""
    command = [sys.executable, str(HERE / "speed.py"), "--worker", name, "--data", str(data), "--seed", str(seed)]
    if rows is not None:
        command += ["--rows", str(rows)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    options = arguments(
        __doc__,
        repeats=dict(type=int, default=5),
        worker=dict(help="(used by the benchmark itself) fit this table and print seconds and memory"),
        rows=dict(type=int, default=None),
    )
    if options.worker:
        worker(options.worker, options.data, options.rows, options.seed)
        return
    quick = options.quick
    repeats = 1 if quick else options.repeats
    frame = read(options.data, "adult_train").iloc[: 2_000 if quick else None]
    warm_up(frame)
    samples, asked = (10_000, 500) if quick else (500_000, 32_561)
    times = adult(frame, repeats, samples, asked, options.seed)

    memory, large = [], []
    found = fresh("adult_train", options.data, 2_000 if quick else None, options.seed)
    memory.append({"process": "Adult, fit", "peak (GB)": found["fit"] / 1e9})
    memory.append({"process": "Adult, fit and questions", "peak (GB)": found["all"] / 1e9}
                  | verdict(found["all"] / 1e9, 1.0))  # fmt: skip
    progress(f"Adult: peak {found['all'] / 1e9:.2f} GB")
    runs = []
    for repeat in range(1 if quick else 3):
        runs.append(fresh("large/fremtpl2freq", options.data, 5_000 if quick else None, options.seed + repeat))
        progress(f"large table: {runs[-1]['seconds']:.1f} s, peak {runs[-1]['all'] / 1e9:.2f} GB")
    seconds = float(np.median([run["seconds"] for run in runs]))
    peak = max(run["all"] for run in runs) / 1e9
    large.append({"what": f"fit, {runs[0]['rows']:,} rows", "seconds": seconds, "leaves": runs[0]["leaves"],
                  "rounds": runs[0]["rounds"]} | verdict(seconds, 90.0))  # fmt: skip
    memory.append({"process": "large table, fit", "peak (GB)": peak} | verdict(peak, 4.0))
    settings = {"trees": 10, "min_samples_leaf": 5, "repeats": repeats, "warm": True, "seed": options.seed}
    tables = {"Adult, median seconds": times, "fremtpl2freq, median seconds": large, "Peak memory": memory}
    finish("speed", tables, settings, quick)


if __name__ == "__main__":
    main()
