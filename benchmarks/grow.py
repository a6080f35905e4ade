"""Growing alone, warm: 100 trees to purity by our grower against scikit-learn's RandomForestClassifier.fit, 2 threads.

Both draw bootstrap rows and try as many columns a node. Ours starts from ranks, theirs from numbers (categorical
columns as codes); what making the ranks costs is shown. Runs take turns, and medians are compared; the processor's
seconds, of both threads together, are less disturbed by what else the machine does.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, finish, progress, read, verdict
from sklearn.ensemble import RandomForestClassifier

from jointforest.ground.threads import map_ordered
from jointforest.learn.rows import draw_rows
from jointforest.table.frames import encode
from jointforest.table.infer.infer_schema import infer_schema
from jointforest.table.schema import kernel_columns
from jointforest.trees.grow.criterion_kernels import ENTROPY, GINI
from jointforest.trees.grow.grow import GrowthSettings, grow
from jointforest.trees.ranks import rank, snap

TABLES = ("segment", "robot", "texture", "wine", "gesture", "electricity")
CRITERIA = {"gini": GINI, "entropy": ENTROPY}


def seconds(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds by the clock and of the processor, and the result."""
    clock, processor = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - clock, time.process_time() - processor, result


def compare(data: Path, name: str, target: str, criterion: str, n_trees: int, repeats: int, seed: int) -> list[dict]:
    """Rows of the table for one data set: as many columns a node as the square root, and as a third."""
    frame = read(data, f"gef/{name}")
    y = np.unique(frame.pop(target).astype(str), return_inverse=True)[1].astype(np.int32)
    schema = infer_schema(frame)
    columns = kernel_columns(schema)
    X = encode(schema, frame)[0]
    n, d = X.shape
    making, _, ranks = seconds(lambda: rank(columns, snap(columns, X)))
    is_ordered = np.array([c.kind == "ordered" for c in schema.columns], dtype=np.uint8)

    def ours(max_features: int, n_trees: int = n_trees) -> list[int]:
        def one(t: int) -> int:
            weight = draw_rows(n, n, True, seed, t)
            tree, _ = grow(ranks, columns.is_categorical, is_ordered, y, int(y.max()) + 1, weight,
                           GrowthSettings(max_features, CRITERIA[criterion]), seed=seed, number=t)  # fmt: skip
            return len(tree.feature)

        return list(map_ordered(one, [(t,) for t in range(n_trees)], 2))

    def theirs(max_features: int) -> list[int]:
        forest = RandomForestClassifier(n_trees, criterion=criterion, max_features=max_features, n_jobs=2,
                                        random_state=seed)  # fmt: skip
        return [tree.tree_.node_count for tree in forest.fit(X, y).estimators_]

    rows = []
    for max_features in sorted({max(1, int(d**0.5)), max(1, d // 3)}):
        ours(max_features, 2)  # compiled and read from the cache
        runs = [(seconds(partial(ours, max_features)), seconds(partial(theirs, max_features))) for _ in range(repeats)]
        a, b = ([statistics.median(run[k][i] for run in runs) for i in (0, 1)] for k in (0, 1))
        row = {
            "table": name, "rows": n, "columns": d, "criterion": criterion, "tried": max_features,
            "nodes": float(np.mean(runs[0][0][2])), "nodes, sklearn": float(np.mean(runs[0][1][2])),
            "ranks (s)": making, "ours (s)": a[0], "sklearn (s)": b[0],
            "ratio": a[0] / b[0], "ratio of processor": a[1] / b[1],
        }  # fmt: skip
        rows.append(row | verdict(row["ratio"], 0.6))
        progress(f"{name}, {criterion}, {max_features} columns a node: {row['ratio']:.2f} x")
    return rows


def main() -> None:
    options = arguments(__doc__, trees=dict(type=int, default=100), repeats=dict(type=int, default=3))
    n_trees, repeats = (5, 1) if options.quick else (options.trees, options.repeats)
    manifest = json.loads((options.data / "manifest.json").read_text())
    rows = []
    for criterion in CRITERIA:
        for name in TABLES[:2] if options.quick else TABLES:
            target = manifest[f"gef/{name}"]["target"]
            rows += compare(options.data, name, target, criterion, n_trees, repeats, options.seed)
    settings = {
        "trees": n_trees,
        "repeats": repeats,
        "bootstrap": True,
        "threads": 2,
        "warm": True,
        "seed": options.seed,
    }
    finish("grow", {"100 trees to purity, median seconds": rows}, settings, options.quick)


if __name__ == "__main__":
    main()
