"""Measures hidden trees on Adult: seconds, rows per second, memory, size of files, and the first call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from statistics import median

import pandas as pd
from _common import HERE, arguments, finish, hide, median_seconds, peak_memory, progress, read, timed, verdict

from jointforest.api.joint import Joint
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest

PRESETS = {
    "fast": {"n_states": 128, "max_iter": 3, "max_leaf_nodes": 1, "start": "shared", "smoothing": 30.0},  # as jf.fit
    "default": {},
}
LIMITS = {"fast": {"fit": 5.0, "log_density": 100_000}, "default": {"fit": 40.0, "log_density": 20_000}}


def learner(preset: str, seed: int) -> HiddenTreeForest:
    return HiddenTreeForest(random_state=seed, **PRESETS[preset])


def every_posterior(joint: Joint) -> None:
    """Mean or probabilities of all columns given three of them."""
    known = joint.given(age=44, sex="Male", hours_per_week=50)
    for name in joint.columns:
        if joint.levels(name):
            known.proba(name)
        else:
            known.mean(name)


def adult(frame: pd.DataFrame, preset: str, repeats: int, seed: int) -> list[dict]:
    limits = LIMITS[preset]
    complete = frame.dropna().reset_index(drop=True)
    masked, _ = hide(frame, 0.3, seed)
    fit = median_seconds(lambda: learner(preset, seed).fit(frame), repeats)
    joint = learner(preset, seed).fit(frame).joint_
    rows = [{"what": f"{preset}: fit, {len(frame):,} rows", "seconds": fit} | verdict(fit, limits["fit"])]
    asked = {
        "log-density, complete rows": (lambda: joint.log_density(complete), len(complete), limits["log_density"]),
        "log-density, 30 % missing": (lambda: joint.log_density(masked), len(masked), limits["log_density"]),
        "imputation, 30 % missing": (lambda: joint.impute(masked), len(masked), 10_000),
        "sampling to a frame": (lambda: joint.sample(300_000, random_state=seed), 300_000, 300_000),
    }
    for name, (work, n, target) in asked.items():
        work()
        seconds = median_seconds(work, repeats)
        row = {"what": f"{preset}: {name}, {n:,} rows", "seconds": seconds, "rows/s": n / seconds}
        rows.append(row | verdict(n / seconds, target, at_most=False))
        progress(f"{rows[-1]}")
    seconds = median_seconds(lambda: every_posterior(joint), 5 * repeats)
    rows.append({"what": f"{preset}: posterior of all columns", "seconds": seconds} | verdict(seconds, 0.005))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.joint"
        joint.save(path)
        size = path.stat().st_size / 1e6
    rows.append({"what": f"{preset}: file (MB)", "size": size} | verdict(size, 20.0))
    return rows


def growth(frame: pd.DataFrame, seed: int) -> list[dict]:
    """Seconds of a fit of four passes by rows, columns and states."""
    table = []
    for rows, columns, states in [(4_000, 15, 64), (8_000, 15, 64), (16_000, 15, 64), (16_000, 5, 64), (16_000, 10, 64),
                                  (16_000, 15, 32), (16_000, 15, 128), (16_000, 15, 256)]:  # fmt: skip
        some = frame.iloc[:rows, -columns:]
        model = HiddenTreeForest(n_states=states, max_leaf_nodes=1, start="shared", smoothing=30.0, max_iter=4,
                                  random_state=seed)  # fmt: skip
        seconds, _ = timed(lambda model=model, some=some: model.fit(some))
        table.append({"rows": rows, "columns": columns, "states": states, "seconds": seconds})
        progress(f"{table[-1]}")
    return table


def worker(what: str, data: Path, seed: int) -> None:
    """The work of a fresh process: seconds from import to answers on few rows, or memory of a whole fit."""
    name = "large/fremtpl2freq" if what == "large" else "adult_train"
    frame = read(data, name)
    if what == "fit":
        HiddenTreeForest(n_states=8, max_iter=1, random_state=seed).fit(frame.iloc[:500])  # compiles
        busy = time.process_time()
        seconds, _ = timed(lambda: HiddenTreeForest(random_state=seed).fit(frame))
        print(json.dumps({"seconds": seconds, "processor seconds": time.process_time() - busy}))
        return
    if what == "first":
        frame = frame.iloc[:500].reset_index(drop=True)
        seconds, _ = timed(lambda: _first_call(frame))
    else:
        seconds, joint = timed(lambda: HiddenTreeForest(random_state=seed).fit(frame).joint_)
        joint.log_density(frame.iloc[:30_000])
        joint.sample(10_000, random_state=0)
    print(json.dumps({"seconds": seconds, "peak": peak_memory() / 1e9}))


def _first_call(frame: pd.DataFrame) -> None:
    joint = HiddenTreeForest(n_states=16, max_iter=2, random_state=0).fit(frame).joint_
    joint.log_density(frame)
    joint.impute(frame)
    joint.sample(10, random_state=0)
    every_posterior(joint)
    joint.given("age >= 40 and sex = 'Female'").quantile("hours_per_week", [0.1, 0.9])
    joint.condition(sex="Female")


def fresh(what: str, options: Namespace, cache: str | None = None, source: Path | None = None) -> dict:
    """What `worker` says, in a process with a numba cache of its own, or with another source."""
    command = [sys.executable, __file__, "--data", str(options.data), "--work", what]
    environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    if source is not None:
        environment |= {"PYTHONPATH": str(source.resolve())}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def beside(options: Namespace) -> list[dict]:
    """Fits of Adult by this source and by another one, in turn."""
    here, there = [], []
    for _ in range(options.repeats):
        there.append(fresh("fit", options, source=options.beside))
        here.append(fresh("fit", options))
        progress(f"{there[-1]} {here[-1]}")
    rows = []
    for key in here[0]:
        old, new = ([run[key] for run in runs] for runs in (there, here))
        ratio = median(a / b for a, b in zip(new, old, strict=True))
        rows.append({"measure": key, "other source": median(old), "this source": median(new), "ratio": ratio})
    return rows


def main() -> None:
    options = arguments(
        __doc__, repeats=dict(type=int, default=3), work=dict(default="", help="what a fresh process does"),
        large=dict(action="store_true", help="also large/fremtpl2freq"),
        beside=dict(type=Path, help="folder src/ of another revision: only fits of Adult by both, in turn"),
    )  # fmt: skip
    if options.work:
        worker(options.work, options.data, options.seed)
        return
    if options.beside:
        finish("hidden_speed_beside", {"Fit of Adult": beside(options)}, {"repeats": options.repeats}, options.quick)
        return
    frame = read(options.data, "adult_train")
    if options.quick:
        frame = frame.iloc[:2_000].reset_index(drop=True)
    table = [row for preset in PRESETS for row in adult(frame, preset, 1 if options.quick else options.repeats, 0)]
    with tempfile.TemporaryDirectory() as cache:
        first = fresh("first", options, cache)
        table.append({"what": "first call of everything, empty cache", **first} | verdict(first["seconds"], 5.0))
        whole = fresh("memory", options, cache)
        table.append({"what": "default: peak memory (GB)", **whole} | verdict(whole["peak"], 1.0))
        if options.large:
            large = fresh("large", options, cache)
            table.append({"what": "678,013 x 11", **large} | verdict(large["seconds"], 180.0))
    tables = {"Adult, two cores, medians": table}
    if not options.quick:
        tables["Fits of four passes"] = growth(frame, 0)
    finish("hidden_speed", tables, {"repeats": options.repeats, "folder": HERE.name}, options.quick)


if __name__ == "__main__":
    main()
