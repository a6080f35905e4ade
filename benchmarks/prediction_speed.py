"""Seconds that `JointClassifier` takes on Adult: to learn, by stage, and for 10,000 rows with cells hidden.

Processor seconds of one thread, so that other work on the machine does not count. The predictor learns from 22,000
rows; others, with 0, 30 and 60 % of their cells hidden at random, are predicted. The members that it keeps are asked
alone, too. An earlier fit of a few rows loads the compiled kernels. At last, the noise of expected predictions by draws
of which those of a row are spread evenly is compared with that of independent ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _common import adult_split, arguments, finish, hide, progress, verdict

import jointforest as jf
from jointforest.data.evidence import Evidence
from jointforest.estimators.predictor.constants import FIXED
from jointforest.estimators.predictor.members import EXPECTED, ask_members
from jointforest.inference.expectation.expectation import expected_by_completions, expected_by_draws

NAME, RATES, MOST = "prediction_speed", (0.0, 0.3, 0.6), 5.0
LEARN, ASK = 22_000, 10_000


def seconds(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """The fewest processor seconds of some runs, and what the last one gave."""
    found, spent = None, []
    for _ in range(repeats):
        start = time.process_time()
        found = work()
        spent.append(time.process_time() - start)
    return min(spent), found


def noise(clf: jf.JointClassifier, evidence: Evidence, repeats: int = 20) -> list[dict[str, Any]]:
    """Standard deviation over seeds of the expected answers of boosted trees, by completions and by independent draws.

    Of rows that need draws; the root of the mean variance of the probability of the first class.
    """
    joint, trees = clf.joint_.distribution, clf._members[EXPECTED].trees
    some = evidence.take(np.flatnonzero(trees.needs_draws(evidence))[:500])
    rows, m = trees._rows(some), FIXED.draws
    shared, independent = [], []
    for seed in range(repeats):
        drawn = joint.completions(some, np.full(len(some.value), m), seed).reshape(len(some.value), m, -1)
        shared.append(expected_by_completions(trees.features, joint, rows, drawn).answer[:, 0])
        independent.append(expected_by_draws(trees.features, joint, rows, "auto", m, seed).answer[:, 0])
    return [
        {
            "draws of a row": name,
            "rows": len(some.value),
            "standard deviation": float(np.sqrt(np.var(x, axis=0).mean())),
        }
        for name, x in (("independent", independent), ("completions", shared))
    ]


def main() -> None:
    options = arguments(__doc__)
    learn, n_ask = (500, 200) if options.quick else (LEARN, ASK)
    table, new = adult_split(options.data, options.seed, learn)
    X, y, new = table.drop(columns="income"), table["income"], new[:n_ask].drop(columns="income")
    clf = jf.JointClassifier(random_state=options.seed, n_jobs=1)
    clf.fit(X[:500], y[:500])
    spent, _ = seconds(lambda: clf.fit(X, y))
    progress(f"fit: {spent:.1f} s")
    wall = sum(clf.fitted_by.seconds.values())
    stages: list[dict[str, Any]] = [
        {"stage": stage, "share of the time": took / wall, "processor seconds": spent * took / wall}
        for stage, took in clf.fitted_by.seconds.items()
    ]
    stages.append({"stage": "all", "share of the time": 1.0, "processor seconds": spent})
    slowest = max(row["processor seconds"] for row in stages if row["stage"] in ("joint", "generative forest"))
    stages.append(
        {"stage": "all, relative to the slower of joint and forest", "ratio": spent / slowest}
        | verdict(spent / slowest, 3.0)
    )
    rows: list[dict[str, Any]] = []
    for rate in RATES:
        holed = hide(new, rate, options.seed)[0]
        took, _ = seconds(lambda holed=holed: clf.predict_proba(holed), 3)
        rows.append({"cells hidden": f"{rate:.0%}", "who": "predictor", "seconds": took} | verdict(took, MOST))
        evidence, joint = clf._evidence(holed), clf.joint_.distribution
        for name, member in clf._members.items():
            took, _ = seconds(partial(ask_members, {name: member}, joint, evidence, options.seed, 1), 3)
            rows.append({"cells hidden": f"{rate:.0%}", "who": name, "seconds": took})
    tables = {f"Learning from {learn:,} rows of Adult": stages, f"Predicting {n_ask:,} rows": rows}
    if EXPECTED in clf._members:
        tables[f"Noise of expected predictions, {RATES[1]:.0%} hidden"] = noise(
            clf, clf._evidence(hide(new, RATES[1], options.seed)[0])
        )
    finish(NAME, tables, {"learn": learn, "ask": n_ask, "seed": options.seed}, options.quick)


if __name__ == "__main__":
    main()
