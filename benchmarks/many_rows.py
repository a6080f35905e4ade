"""Compares ten adversarial trees with one joint tree on many rows, and values of `max_samples`.

Each fit is a fresh process; peak memory covers interpreter, libraries and table. The second part measures what growing
trees on `max_samples` rows costs in held-out log-density.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, progress, read, recorded_tables, timed, verdict
from _many_rows_worker import made_table

import jointforest as jf

TABLES = ("made", "large/fremtpl2freq")
TEST = 20_000
DIFFER = {"large/fremtpl2freq": ["ClaimNb", "Exposure"]}
"""Columns in which the rows of one policy differ: such rows are held out together."""


def fresh(name: str, rows: int, seed: int) -> dict:
    """What `_many_rows_worker.py` says of one fit."""
    command = [sys.executable, str(HERE / "_many_rows_worker.py"), name, str(rows), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def speed(rows: int, names: dict[str, str], seed: int) -> list[dict]:
    """One row a learner; the first is what the others are held against."""
    table: list[dict] = []
    for what, name in names.items():
        found = fresh(name, rows, seed)
        row = {
            "learner": what,
            "rows": rows,
            "seconds": found["seconds"],
            "processor seconds": found["processor"],
            "table (GB)": found["table"] / 1e9,
            "peak (GB)": found["peak"] / 1e9,
            "leaves": found["leaves"],
        }
        if table:
            row["ratio of seconds"] = found["seconds"] / table[0]["seconds"]
            row |= verdict(row["ratio of seconds"], 3.0)
        table.append(row)
        progress(f"{what}: {found['seconds']:.1f} s, peak {found['peak'] / 1e9:.2f} GB")
    return table


def table_rows(data: Path, name: str, most: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from, at most so many, and others to test: a fifth, at most `TEST`."""
    frame = made_table(most + TEST, seed) if name == "made" else read(data, name)
    random = np.random.default_rng(seed)
    order, n_test = random.permutation(len(frame)), min(TEST, len(frame) // 5)
    test, others = order[:n_test], order[n_test:]
    if name in DIFFER:
        key = frame.groupby(list(frame.columns.difference(DIFFER[name])), observed=True, sort=False).ngroup().to_numpy()
        others = others[~np.isin(key[others], key[test])]
    learn = others[:most]
    return frame.iloc[learn].reset_index(drop=True), frame.iloc[test].reset_index(drop=True)


def likelihood(data: Path, name: str, most: int, samples: Sequence[int | None], seeds: list[int]) -> list[dict]:
    """Mean held-out log-density by ``max_samples``, and what it is less than with all rows."""
    densities: dict[int | None, list[np.ndarray]] = {m: [] for m in samples}
    seconds: dict[int | None, list[float]] = {m: [] for m in samples}
    for seed in seeds:
        learn, test = table_rows(data, name, most, seed)
        for m in samples:
            forest = jf.AdversarialForest(10, max_samples=m, random_state=seed)
            spent, _ = timed(lambda forest=forest, learn=learn: forest.fit(learn))
            densities[m].append(forest.joint_.log_density(test))
            seconds[m].append(spent)
        progress(f"{name}, seed {seed}: " + ", ".join(f"{m}: {densities[m][-1].mean():.4f}" for m in samples))
    whole = np.concatenate(densities[None])
    rows = []
    for m in samples:
        gain = np.concatenate(densities[m]) - whole
        rows.append({
            "table": name,
            "rows learned": len(learn),
            "max_samples": "all" if m is None else m,
            "log-density": float(np.concatenate(densities[m]).mean()),
            "less all's": float(gain.mean()),
            "error": float(gain.std() / np.sqrt(len(gain))),
            "seconds": float(np.median(seconds[m])),
        })  # fmt: skip
    return rows


def main() -> None:
    options = arguments(
        __doc__,
        rows=dict(type=int, default=1_000_000, help="rows of the made table (default 1,000,000)"),
        samples=dict(type=int, nargs="*", default=[50_000, 100_000, 200_000], help="max_samples to compare"),
        most=dict(type=int, default=400_000, help="rows learned at most where likelihoods are compared"),
        tables=dict(nargs="*", default=TABLES, help="tables where likelihoods are compared"),
        seeds=dict(type=int, default=1),
        only=dict(choices=("speed", "likelihood"), default=None),
    )
    default = int(jf.AdversarialForest().max_samples)
    rows, most, samples = options.rows, options.most, sorted(options.samples)
    tables: list[str] = list(options.tables)
    if options.quick:
        rows, most, samples, tables = 5_000, 2_000, [500], ["made"]
    content = recorded_tables("many_rows") if options.only and not options.quick else {}  # the other half is kept
    if options.only != "likelihood":
        names = {"JointTree": "joint tree", f"AdversarialForest(10), max_samples={default:,}": str(default)}
        content[f"Fit of {rows:,} made rows"] = speed(rows, names, options.seed)
    if options.only != "speed":
        found: list[dict] = []
        for name in tables:
            found += likelihood(options.data, name, most, [*samples, None], list(range(options.seeds)))
        content["Held-out log-density by max_samples, ten trees"] = found
    settings = {"trees": 10, "max_samples": default, "seeds": options.seeds, "seed": options.seed}
    finish("many_rows", content, settings, options.quick)


if __name__ == "__main__":
    main()
