"""Measures rows per second of robustness: 30 trees on gef/segment, complete and 30 % missing rows.

The best of seven calls, `predict_proba` of the levels included. Processor time stands beside wall time.
"""

from __future__ import annotations

import time

import numpy as np
from _common import arguments, cores, finish, timed, verdict
from gef_tables import features_and_target, make_missing
from robustness import learn

TREES, REPEATS = 30, 7
LIMITS = {"complete": 10_000, "30 % missing": 500}


def main() -> None:
    options = arguments(__doc__)
    X, y = features_and_target(options.data, "segment")
    clf, X, _ = learn(X, y, options.seed, TREES)
    rows = []
    for name, limit in LIMITS.items():
        asked = X if name == "complete" else make_missing(X, 0.3, [options.seed])
        clf.robustness(asked)  # compiles
        best, cpu = np.inf, np.inf
        for _ in range(1 if options.quick else REPEATS):
            before = time.process_time()
            best = min(best, timed(lambda asked=asked: clf.robustness(asked))[0])
            cpu = min(cpu, time.process_time() - before)
        n = len(asked)
        row = {"rows": name, "n": n, "cores": cores(), "rows/s": n / best, "CPU us/row": 1e6 * cpu / n}
        rows.append(row | verdict(n / best, limit, at_most=False))
    finish("robustness_speed", {"30 trees, segment": rows}, {"seed": options.seed, "trees": TREES}, options.quick)


if __name__ == "__main__":
    main()
