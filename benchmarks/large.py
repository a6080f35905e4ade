"""Measures seconds and peak memory of `fit_batches` by the number of rows, and compares it with `fit`.

Rows of ten mixed columns are made in batches, and each run is a process of its own. Making the rows is timed apart.
``--beside`` learns freMTPL2 in memory and in batches: held-out log-density and seconds. Recorded lines are kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _common import HERE, arguments, finish, peak_memory, progress, read, recorded_tables, timed, verdict

import jointforest as jf

BATCH = 262_144
"""Rows made at once: two batches are more than a sample has, and are learned by all passes."""
MOST_GB, RATIO, NATS = 3.0, 2.0, 0.01
TARGET = "ClaimNb"
"""Of generative forests: a count, whose cells have probabilities; a plain density is as high as leaves are narrow."""
BY_ROWS, BESIDE = "fit_batches by rows", "freMTPL2 in memory and in batches"
IN_AND_OUT = {
    "adversarial forest, 10 trees": lambda seed: jf.AdversarialForest(10, random_state=seed),
    "joint tree": lambda seed: jf.JointTree(random_state=seed),
    "joint tree, Chow-Liu leaves": lambda seed: jf.JointTree(leaf="chow_liu", random_state=seed),
    "hidden trees, 64 states": lambda seed: jf.HiddenTreeForest(n_states=64, max_leaf_nodes=1, random_state=seed),
    "generative forest, 10 trees": lambda seed: jf.GenerativeForestRegressor(
        10, kinds={TARGET: "integer"}, random_state=seed
    ),
}
LEARNERS = {
    "adversarial forest, 10 trees": lambda: jf.AdversarialForest(10, random_state=0),
    "joint tree": lambda: jf.JointTree(random_state=0),
    "joint tree, Chow-Liu leaves": lambda: jf.JointTree(leaf="chow_liu", random_state=0),
    "hidden tree, 64 states": lambda: jf.HiddenTreeForest(n_states=64, max_leaf_nodes=1, max_iter=2, random_state=0),
    "generative forest, 10 trees": lambda: jf.GenerativeForestClassifier(10, random_state=0),
}
MADE_TARGET = "flag"
"""Of generative forests, in rows that are made."""


def batch(number: int, n: int) -> pa.Table:
    """Rows of ten columns that depend on a hidden group: numbers of all kinds, text, a boolean."""
    rng = np.random.default_rng(number)
    group, z = rng.integers(0, 4, n), rng.normal(size=(n, 5))
    words = np.array([f"v{i}" for i in range(20)])
    return pa.table(
        {
            "a": z[:, 0] + group,
            "b": z[:, 1] * (1 + group),
            "c": np.exp(z[:, 2]),
            "count": rng.poisson(3 + 2 * group),
            "code": rng.integers(0, 1000, n),
            "d": np.round(z[:, 3] * 10 + group, 1),
            "zeros": np.where(rng.random(n) < 0.3, 0.0, z[:, 4]),
            "group": np.array(list("pqrs"))[group],
            "word": words[rng.integers(0, 5, n) + 5 * group],
            "flag": rng.random(n) < 0.2 + 0.1 * group,
        }
    )


def batches(n: int) -> Iterator[pa.Table]:
    for start in range(0, n, BATCH):
        yield batch(start // BATCH, min(BATCH, n - start))


def one(learner: str, n: int) -> dict[str, Any]:
    """Seconds and peak memory of one fit in this process."""
    target = [MADE_TARGET] if learner.startswith("generative") else []
    LEARNERS[learner]().fit_batches(lambda: batches(2_000 if n <= BATCH else 2 * BATCH), *target)  # loads kernels
    start = time.perf_counter()
    for _ in batches(n):
        pass
    making = time.perf_counter() - start
    seconds, _ = timed(lambda: LEARNERS[learner]().fit_batches(lambda: batches(n), *target))
    return {"seconds": seconds, "making rows": making, "peak (GB)": peak_memory() / 1e9}


def joint_of(learner: Any, how: str, rows: Any) -> jf.Joint:
    """The joint of some rows, in memory (``fit``) or in batches (``fit_batches``)."""
    if not isinstance(learner, jf.GenerativeForestRegressor):
        return getattr(learner, how)(rows).joint_
    target = (rows.drop(columns=TARGET), rows[TARGET]) if how == "fit" else (rows, TARGET)
    return getattr(learner, how)(*target).joint_


def in_and_out(data: Any, seeds: list[int], learners: list[str]) -> list[dict[str, Any]]:
    """freMTPL2 in memory and in batches, a line a seed and their mean: held-out log-density, seconds."""
    frame = read(data, "large/fremtpl2freq")
    order = np.random.default_rng(0).permutation(len(frame))
    learn = frame.iloc[np.sort(order[50_000:])].reset_index(drop=True)
    test = frame.iloc[order[:50_000]].reset_index(drop=True)
    rows = []
    for name in learners:
        learner = IN_AND_OUT[name]
        for how, n in (("fit", BATCH // 10), ("fit_batches", 2 * BATCH)):  # loads kernels
            joint_of(learner(0).set_params(n_estimators=1), how, learn.iloc[:n])
        found = []
        for seed in seeds:
            row: dict[str, Any] = {"learner": name, "seed": seed, "rows": len(learn)}
            for how in ("fit", "fit_batches"):
                row[f"{how}, seconds"], joint = timed(lambda: joint_of(learner(seed), how, learn))  # noqa: B023
                row[f"{how}, log-density"] = float(joint.log_density(test).mean())
                progress(f"{name}, seed {seed}, {how}: {row[f'{how}, seconds']:.1f} s")
            found.append(row)
        mean = {key: float(np.mean([row[key] for row in found])) for key in list(found[0])[3:]}
        gap = mean["fit_batches, log-density"] - mean["fit, log-density"]
        ratio = float(np.median([row["fit_batches, seconds"] / row["fit, seconds"] for row in found]))
        alike = abs(gap) <= NATS and ratio <= RATIO
        verdict = {"target": f"within {NATS}, <= {RATIO} x", "met": "yes" if alike else "NO"}
        mean = {"learner": name, "seed": "mean", "rows": len(learn)} | mean
        rows += [*found, mean | {"difference": gap, "times as long": ratio} | verdict]
    return rows


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds and peak memory by the number of rows, a line a learner."""
    from matplotlib.figure import Figure  # not into the processes whose memory is measured

    figure = Figure(figsize=(9, 3.9), layout="constrained")
    time_axes, memory_axes = figure.subplots(1, 2)
    for learner in LEARNERS:
        own = [row for row in rows if row["learner"] == learner]
        if not own:
            continue
        n = [row["rows"] for row in own]
        time_axes.plot(n, [row["seconds"] for row in own], "o-", label=learner)
        memory_axes.plot(n, [row["peak (GB)"] for row in own], "o-", label=learner)
    time_axes.set(xscale="log", yscale="log", xlabel="rows", title="seconds to learn")
    memory_axes.set(xscale="log", ylim=(0, 1.1 * MOST_GB), xlabel="rows", title="peak memory (GB)")
    memory_axes.axhline(MOST_GB, color="0.6", linestyle=":")
    figure.legend(*time_axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=80)


def main() -> None:
    options = arguments(
        __doc__,
        rows=dict(type=float, nargs="*", default=[1e5, 1e6, 1e7], help="numbers of rows; none: only --beside"),
        learners=dict(nargs="+", default=list(LEARNERS), choices=list(LEARNERS)),
        worker=dict(nargs=2, help="learner and rows: one fit, in this process"),
        seeds=dict(type=int, nargs="+", default=[0, 1, 2], help="of --beside"),
        beside=dict(
            nargs="*", choices=list(IN_AND_OUT), metavar="LEARNER", help="freMTPL2 in memory and in batches, too"
        ),
        picture=dict(action="store_true", help="only draw docs/images/large.png of the results that are there"),
    )
    if options.worker:
        print(json.dumps(one(options.worker[0], int(options.worker[1]))))
        return
    before = {} if options.quick else recorded_tables("large")
    if options.picture:
        picture(before[BY_ROWS], HERE.parent / "docs" / "images" / "large.png")
        return
    rows = list(before.get(BY_ROWS, []))
    for learner in options.learners:
        for n in [2e4] if options.quick else options.rows:
            command = [sys.executable, str(HERE / "large.py"), "--worker", learner, str(int(n))]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            per_million = found["seconds"] / n * 1e6
            row = {"learner": learner, "rows": int(n), **found, "seconds a million": per_million}
            rows = [old for old in rows if (old["learner"], old["rows"]) != (learner, int(n))]
            rows.append(row | verdict(found["peak (GB)"], MOST_GB))
            progress(f"{learner}, {n:.0e} rows: {found['seconds']:.0f} s, {found['peak (GB)']:.2f} GB")
    rows.sort(key=lambda row: (list(LEARNERS).index(row["learner"]), row["rows"]))
    tables = before | {BY_ROWS: rows}
    if options.beside is not None and not options.quick:
        chosen = options.beside or list(IN_AND_OUT)
        kept = [row for row in before.get(BESIDE, []) if row["learner"] not in chosen]
        found = kept + in_and_out(options.data, options.seeds, chosen)
        tables |= {BESIDE: sorted(found, key=lambda row: list(IN_AND_OUT).index(row["learner"]))}
    finish("large", tables, {"batch": BATCH, "seeds": options.seeds}, options.quick)


if __name__ == "__main__":
    main()
