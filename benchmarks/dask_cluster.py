"""Measures learning on a Dask cluster of one worker and of two, and what travels in each pass.

Rows of ten mixed columns, as in large.py, lie in Parquet files, one per partition. Each worker is a process with one
thread. XGBoost and LightGBM predict one column of the same rows with 100 trees; the joints learn all columns. All fits
run once before on few rows, so that kernels are compiled. Other programs on the machine distort the ratios.
"""

from __future__ import annotations

import pickle
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from operator import add
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import pandas as pd
import pyarrow.parquet as pq
from _common import arguments, finish, progress, timed
from distributed import Client, LocalCluster
from large import batch

from jointforest.integrations import dask as jfd
from jointforest.integrations.dask import DaskRows
from jointforest.learners.batches.sample import Pass

PARTITION = 250_000
FEW = 110_000
"""Half of the rows on which kernels are loaded: more than a sample has in all, so that all passes are made."""
TIMES = 1.6
TARGET, TEXT = "flag", {"group": list("pqrs"), "word": [f"v{i}" for i in range(20)]}
TINY = 500
OURS: dict[str, Callable[[], Any]] = {
    "joint tree": lambda: jfd.JointTree(random_state=0),
    "adversarial forest, 10 trees, 20,000 rows to grow": lambda: jfd.AdversarialForest(
        10, max_samples=20_000, random_state=0
    ),
}


def xgboost(X: dd.DataFrame, y: dd.Series) -> Any:
    from xgboost.dask import DaskXGBClassifier

    return DaskXGBClassifier(n_estimators=100, tree_method="hist", enable_categorical=True).fit(X, y)


def lightgbm(X: dd.DataFrame, y: dd.Series) -> Any:
    from lightgbm import DaskLGBMClassifier

    return DaskLGBMClassifier(n_estimators=100, verbosity=-1).fit(X, y)


PEERS = {"XGBoost, one target": xgboost, "LightGBM, one target": lightgbm}


def write(folder: Path, n: int) -> None:
    """Parquet files of n rows in all, two at least."""
    size = min(PARTITION, n // 2)
    for start in range(0, n, size):
        name = f"{start // size:05d}.parquet"
        pq.write_table(batch(start // size, min(size, n - start)), folder / name)


def read(folder: Path) -> dd.DataFrame:
    return dd.read_parquet(sorted(map(str, folder.iterdir())), split_row_groups=False)


def for_peers(folder: Path) -> tuple[dd.DataFrame, dd.Series]:
    """Features with text as categories, and the target, in the workers' memory: XGBoost needs partitions alike."""
    table = read(folder).persist()
    types = {name: pd.CategoricalDtype(levels) for name, levels in TEXT.items()}
    return table.drop(columns=TARGET).astype(types), table[TARGET].astype("int64")


def received(dask_worker: Any) -> dict[str, int]:
    """Results that a worker had from others: passes, and sums."""
    keys = [str(key) for log in dask_worker.transfer_incoming_log for key in log["keys"]]
    n_passes = sum("Pass-" in key for key in keys)
    return {"passes": n_passes, "sums": len(keys) - n_passes}


class Told(DaskRows):
    """Rows whose passes are told: seconds, sizes, and what goes from worker to worker."""

    def fold(self, one: Any, n: int | None = None) -> Any:
        before = self.client.run(received)
        seconds, found = timed(lambda: super(Told, self).fold(one, n))
        after = self.client.run(received)
        moved = {what: sum(after[w][what] - before[w][what] for w in after) for what in ("passes", "sums")}
        passes.append(
            {
                "pass": one.what,
                "seconds": seconds,
                "the pass (MB)": len(pickle.dumps(one)) / 1e6,
                "a set of sums (MB)": len(pickle.dumps(found)) / 1e6,
                "passes from worker to worker": moved["passes"],
                "sets of sums from worker to worker": moved["sums"],
            }
        )
        return found


passes: list[dict[str, Any]] = []


def work(client: Client, fit: Callable[[], Any]) -> dict[str, float]:
    """Seconds of a fit, and of the processors: the busiest worker's, and this process's, scheduler and all."""
    before, own = client.run(time.process_time), time.process_time()
    seconds, _ = timed(fit)
    own, after = time.process_time() - own, client.run(time.process_time)
    return {"seconds": seconds, "worker, cpu": max(after[name] - before[name] for name in before), "here, cpu": own}


def none() -> int:
    return 0


def count(found: int, part: pd.DataFrame, _: int | None) -> int:
    return found + len(part)


def row(_: int) -> pd.DataFrame:
    return pd.DataFrame({"a": [1.0]})


def scheduling(client: Client) -> dict[str, Any]:
    """A pass that counts the rows of many partitions of one row each: what a partition costs that holds nothing."""
    tiny = DaskRows(dd.from_map(row, range(TINY), meta=row(0)), client)
    own = time.process_time()
    seconds, _ = timed(lambda: tiny.fold(Pass(none, count, add, "")))
    own = time.process_time() - own
    return {"partitions": TINY, "seconds": seconds, "here, cpu a partition (ms)": 1000 * own / TINY}


def by_pass(client: Client, folder: Path, learners: list[str]) -> list[dict[str, Any]]:
    """What travels in each pass of the learners."""
    rows = []
    for name in learners:
        passes.clear()
        table = read(folder)
        OURS[name]().fit_batches(Told(table, client))
        rows += [{"learner": name, "partitions": table.npartitions, **of} for of in passes]
    return rows


def fits(learners: list[str], with_peers: bool) -> dict[str, Callable[[Path], Any]]:
    """What is fitted to the files of a folder."""
    ours = {name: lambda folder, name=name: OURS[name]().fit(read(folder)) for name in learners}
    peers = {name: lambda folder, fit=fit: fit(*for_peers(folder)) for name, fit in PEERS.items()}
    return {**ours, **(peers if with_peers else {})}


def main() -> None:
    options = arguments(
        __doc__,
        rows=dict(type=float, default=4e6),
        learners=dict(nargs="+", default=list(OURS), choices=list(OURS)),
        alone=dict(action="store_true", help="without the peers"),
    )
    n = 500_000 if options.quick else int(options.rows)
    warnings.filterwarnings("ignore")
    found: dict[str, dict[int, dict[str, float]]] = {}
    travels: list[dict[str, Any]] = []
    nothing: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as top:
        few, quarter, whole = (Path(top, name) for name in ("few", "quarter", "whole"))
        for folder, rows in ((few, 2 * FEW), (quarter, n // 4), (whole, n)):
            folder.mkdir()
            write(folder, rows)
        for workers in (1, 2):
            with (
                LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster) as client,
            ):
                client.wait_for_workers(workers)
                for name, fit in fits(options.learners, not options.alone).items():
                    fit(few)
                    found.setdefault(name, {})[workers] = work(client, partial(fit, whole))
                    progress(f"{workers} workers, {name}: {found[name][workers]}")
                if workers == 2:
                    nothing = [scheduling(client)]
                    for folder in (quarter, whole):
                        travels += by_pass(client, folder, options.learners)
    table = [
        {
            "fit": name,
            "rows": n,
            **{f"{what}: {w}": of[w][what] for what in of[1] for w in (1, 2)},
            "times as fast": of[1]["seconds"] / of[2]["seconds"],
        }
        for name, of in found.items()
    ]
    for row in table:
        if row["fit"] in OURS:
            row |= {"target": f">= {TIMES}", "met": "yes" if row["times as fast"] >= TIMES else "NO"}
    finish(
        "dask_cluster",
        {"one worker and two": table, "what travels in a pass, two workers": travels, "a pass over nothing": nothing},
        {"partition": PARTITION, "seed": options.seed},
        options.quick,
    )


if __name__ == "__main__":
    main()
