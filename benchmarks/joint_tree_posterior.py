"""Measures the time of the posterior of every column of a joint tree, for one row of evidence.

Mean and 90 % interval of each number, and the probabilities of each level; the table is that of joint_tree_speed.py.
The target is wall time. Processor time stands beside it, because other processes may take a time slice.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from _common import arguments, finish, verdict
from joint_tree_speed import LEVELS, MIN_LEAF, generate

from jointforest.api.joint import Joint
from jointforest.learners.joint_tree.joint_tree import JointTree

TARGET = 5.0
REPEATS = 21
EVIDENCE: dict[str, list[Any]] = {
    "a level": [{"few": f"few{code:03d}"} for code in range(LEVELS["few"])],
    "a number": [{"x0": x} for x in (-2.0, 0.5, 2.0)],
    "two numbers": [{"x1": x, "x2": -x} for x in (-2.0, 1.0, 2.0)],
    "an interval": [f"x{j} > 1" for j in range(4)],
    "two intervals and a set": [f"x{j} > 1 and x{(j + 1) % 4} < 1 and few in {{few001, few003}}" for j in range(4)],
}


def everything(joint: Joint, evidence: Any) -> None:
    """Mean, interval and probabilities of all columns given one row of evidence."""
    posterior = joint.given(evidence)
    for column, marginal in posterior.marginals().items():
        if joint.levels(column):
            posterior.proba(column)
        else:
            marginal.mean()
            posterior.interval(column)


def median_times(joint: Joint, evidence: Any) -> tuple[float, float]:
    """Median wall and processor milliseconds of several posteriors."""
    wall, processor = [], []
    for _ in range(REPEATS):
        start, busy = time.perf_counter(), time.process_time()
        everything(joint, evidence)
        wall.append(1e3 * (time.perf_counter() - start))
        processor.append(1e3 * (time.process_time() - busy))
    return statistics.median(wall), statistics.median(processor)


def main() -> None:
    options = arguments(__doc__, rows=dict(type=int, nargs="+", default=[100_000, 1_000_000]))
    found = []
    for n in [20_000] if options.quick else options.rows:
        frame = generate(n, options.seed)
        joint = JointTree(min_samples_leaf=MIN_LEAF, min_impurity_decrease=0, random_state=0).fit(frame).joint_
        size = {"rows": n, "leaves": joint.n_leaves, "pieces": len(joint.distribution.forest.leaves.tree)}
        for kind, several in EVIDENCE.items():
            everything(joint, several[0])  # compiled, or read from the cache
            times = np.array([median_times(joint, evidence) for evidence in several])
            wall, processor = times.max(axis=0).tolist()
            met = len(joint.given(several[0]).leaves.leaf)
            row = {"evidence": kind, "leaves met": met, "slowest (ms)": wall, "processor (ms)": processor}
            found.append(size | row | verdict(wall, TARGET))
    tables = {"Posterior of all 7 columns, medians of 21, the slowest of each kind of evidence": found}
    finish("joint_tree_posterior", tables, {"seed": options.seed, "min_samples_leaf": MIN_LEAF}, options.quick)


if __name__ == "__main__":
    main()
