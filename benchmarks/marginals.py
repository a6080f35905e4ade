"""Measures histograms of all columns of Adult given one evidence, and the tables behind them.

The first question makes the tables that later evidence reads; its seconds and their size are shown. Distribution
functions of the numbers at 64 points are measured by `cdf` in every leaf, and by `histogram` with 64 bins.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import arguments, finish, progress, read, timed, verdict

from jointforest.api.joint import Joint
from jointforest.learners.adversarial.adversarial_forest import AdversarialForest
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
from jointforest.runtime.warnings import LostDependenceWarning

EVIDENCE = (
    "",
    "age >= 40",
    "sex = 'Female'",
    "age >= 40 and hours_per_week < 40",
    "education = 'Masters' and age = 44",
)
FAST = {"n_states": 128, "max_iter": 3, "max_leaf_nodes": 1, "start": "shared", "smoothing": 30.0}  # as jf.fit
POINTS = 64
MILLISECONDS, SECONDS = 50.0, 2.0


def histograms(joint: Joint, evidence: str, bins: int = 20) -> None:
    """Histograms of all columns."""
    for marginal in joint.given(evidence or None).marginals().values():
        marginal.histogram(bins)


def functions(joint: Joint, evidence: str, by_tables: bool) -> None:
    """Distribution functions of all columns of numbers."""
    for name, marginal in joint.given(evidence or None).marginals().items():
        if not joint.levels(name):
            column = joint.schema[name]
            points = np.linspace(column.minimum, column.maximum, POINTS)
            if by_tables:
                marginal.histogram(np.append(points, np.inf)).mass.cumsum()
            else:
                marginal.cdf(points)


def milliseconds(work: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Median wall and processor milliseconds."""
    wall, busy = [], []
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        work()
        wall.append(1e3 * (time.perf_counter() - start))
        busy.append(1e3 * (time.process_time() - used))
    return {"ms": statistics.median(wall), "processor ms": statistics.median(busy)}


def table_bytes(joint: Joint) -> int:
    """Bytes of a joint's tables of bins."""
    return sum(part.bin_tables.nbytes for part in joint.distribution.components if part.kind == "forest")


def main() -> None:
    options = arguments(__doc__, repeats=dict(type=int, default=15))
    frame = read(options.data, "adult_train")
    small = frame.iloc[:1500]
    warnings.simplefilter("ignore", LostDependenceWarning)  # of quick runs
    frame = small if options.quick else frame
    learners: dict[str, Any] = {
        f"{n} trees": AdversarialForest(n_estimators=n, random_state=options.seed) for n in (10, 30)
    }
    learners["hidden tree, 128 states"] = HiddenTreeForest(random_state=options.seed, **FAST)
    warm = AdversarialForest(n_estimators=2, random_state=0).fit(small).joint_
    for evidence in EVIDENCE:
        histograms(warm, evidence)
    functions(warm, EVIDENCE[1], False)
    made, asked, below = [], [], []
    for name, learner in learners.items():
        progress(name)
        joint = learner.fit(frame).joint_
        seconds, _ = timed(lambda joint=joint: histograms(joint, EVIDENCE[1]))
        leaves = joint.n_leaves if joint.distribution.is_forest else None
        row = {"joint": name, "leaves": leaves, "first question s": seconds, "tables MB": table_bytes(joint) / 1e6}
        made.append(row | verdict(seconds, SECONDS))
        for evidence in EVIDENCE:
            found = milliseconds(lambda joint=joint, said=evidence: histograms(joint, said), options.repeats)
            asked.append({"joint": name, "evidence": evidence or "none"} | found | verdict(found["ms"], MILLISECONDS))
        for by_tables in (False, True):
            functions(joint, EVIDENCE[1], by_tables)
            found = milliseconds(lambda joint=joint, by=by_tables: functions(joint, EVIDENCE[1], by), 3)
            below.append({"joint": name, "by": "histogram" if by_tables else "cdf"} | found)
    tables = {
        "Tables for histograms of 20 bins": made,
        "Histograms of all columns": asked,
        f"Distribution functions at {POINTS} points given {EVIDENCE[1]}": below,
    }
    finish("marginals", tables, {"seed": options.seed, "repeats": options.repeats}, options.quick)


if __name__ == "__main__":
    main()
