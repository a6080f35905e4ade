"""Compares times of jointforest and its peers on the same rows of Adult in one run.

arfpy runs in an environment of its own under benchmarks/.peers, made on first use. The R package `arf` runs where an
Rscript with it exists. Quote the ratios, not the seconds.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pandas as pd
from _common import HERE, arguments, finish, progress, read, timed, verdict

from jointforest.learners.adversarial.adversarial_forest import AdversarialForest

PINS = ["arfpy==0.1.1", "numpy==2.3.5", "pandas==2.3.3", "scikit-learn==1.9.1", "scipy==1.17.1", "pyarrow"]
STEPS = ("rounds", "densities", "log_density", "sample")


def peer_python(name: str, pins: list[str]) -> Path:
    """Interpreter of the peer's environment, made and filled if it is not there."""
    folder = HERE / ".peers" / name
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done = folder / "installed.txt"
    if not done.exists() or done.read_text().split() != pins:
        progress(f"making the environment of {name}: {' '.join(pins)}")
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *pins], check=True)
        done.write_text("\n".join(pins))
    return python


def run_json(command: list) -> dict:
    """Run a peer and read the JSON object on its last line."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"peer failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def arfpy(
    learn: pd.DataFrame,
    *,
    trees: int,
    min_leaf: int,
    sample: int,
    density_rows: int,
    seed: int,
    out: Path | None = None,
) -> dict:
    """One run of arfpy on these rows; asked for the density of the first `density_rows` of them."""
    python = peer_python("arfpy", PINS)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "learn.parquet"
        learn.to_parquet(table)
        command = [python, HERE / "_arfpy_worker.py", table, "--trees", trees, "--min-leaf", min_leaf,
                   "--sample", sample, "--density-rows", density_rows, "--seed", seed]  # fmt: skip
        return run_json(command + (["--out", out] if out else []))


def arf_in_r(learn: pd.DataFrame, *, trees: int, min_leaf: int, sample: int, seed: int) -> dict | None:
    """One run of the R package, or None where it is not installed."""
    rscript = shutil.which("Rscript")
    if rscript is None or subprocess.run([rscript, "-e", "library(arf)"], capture_output=True).returncode:
        return None
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "learn.csv"
        learn.to_csv(table, index=False)
        return run_json([rscript, HERE / "_arf_worker.R", table, trees, min_leaf, sample, seed])


def ours(learn: pd.DataFrame, *, trees: int, min_leaf: int, sample: int, seed: int) -> dict:
    model = AdversarialForest(n_estimators=trees, min_samples_leaf=min_leaf, random_state=seed)
    fit, _ = timed(lambda: model.fit(learn))
    joint = model.joint_
    density, _ = timed(lambda: joint.log_density(learn))
    sampling, _ = timed(lambda: joint.sample(sample, random_state=seed))
    return {"seconds": {"rounds": fit, "densities": 0.0, "log_density": density, "sample": sampling},
            "rounds": len(model.oob_accuracy_)}  # fmt: skip


def main() -> None:
    options = arguments(__doc__, repeats=dict(type=int, default=3))
    repeats = 1 if options.quick else options.repeats
    learn = read(options.data, "adult_train").iloc[: 1_000 if options.quick else None].reset_index(drop=True)
    common = dict(trees=3 if options.quick else 10, min_leaf=5, sample=len(learn))
    ours(learn.iloc[:300].reset_index(drop=True), seed=0, **common)  # compile, or load the cache
    runs: dict[str, list[dict]] = {"jointforest": [], "arfpy 0.1.1": [], "arf (R)": []}
    for repeat in range(repeats):  # interleaved, so that a busy spell hits all alike
        seed = options.seed + repeat
        runs["jointforest"].append(ours(learn, seed=seed, **common))
        runs["arfpy 0.1.1"].append(arfpy(learn, density_rows=len(learn), seed=seed, **common))
        found = arf_in_r(learn, seed=seed, **common)
        if found:
            runs["arf (R)"].append(found)
        progress(f"repeat {repeat + 1} of {repeats}: " + ", ".join(
            f"{name} {sum(run[-1]['seconds'].values()):.1f} s" for name, run in runs.items() if run))  # fmt: skip

    def median(name: str, steps: tuple[str, ...]) -> float:
        return statistics.median(sum(run["seconds"][step] for step in steps) for run in runs[name])

    table = []
    for name, found in runs.items():
        if not found:
            continue
        total = median(name, STEPS)
        row = {"library": name, "fit (s)": median(name, STEPS[:2]), "log-density (s)": median(name, ("log_density",)),
               "sampling (s)": median(name, ("sample",)), "total (s)": total,
               "rounds": statistics.median(run["rounds"] for run in found)}  # fmt: skip
        if name != "jointforest":
            ratios = [sum(p["seconds"].values()) / sum(o["seconds"].values())
                      for p, o in zip(found, runs["jointforest"], strict=True)]  # fmt: skip
            row["times ours"] = statistics.median(ratios)
            if name.startswith("arfpy"):
                row |= verdict(row["times ours"], 20.0, at_most=False)
        table.append(row)
    title = f"Adult, {len(learn):,} rows x {learn.shape[1]}: fit, log-density of all rows, {len(learn):,} sampled rows"
    settings = {**common, "repeats": repeats, "seed": options.seed,
                "versions": {name: found[-1].get("versions") for name, found in runs.items() if found}}  # fmt: skip
    if not runs["arf (R)"]:
        print("arf (R): not found (no Rscript with the package `arf`)")
    print("arfpy 0.1.1 has no likelihood of its own: computed from its parameters, vectorised (_arfpy_worker.py)")
    finish("peers", {title: table}, settings, options.quick)


if __name__ == "__main__":
    main()
