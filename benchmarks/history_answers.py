"""Compares answers about histories with unknown cells with sums over every way that fits, and counts the wrong ones.

Random small tables have columns of every kind: levels, booleans, levels that may be missing, walks on a grid of which
changes are predicted, numbers with point masses, repeated numbers, and dates. Log-densities, forecasts and imputed
cells of random subjects are compared with `tests/oracle/history_values.py`. An exact answer is wrong if it is off by
more than rounding, an estimate if it is more than six standard errors off. ``--comparisons N`` makes at least N.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from _common import arguments, finish

from tests.random_cases.histories import Compared, case, comparisons

SUBJECTS = 40
"""Subjects of each table."""
FAR = 6.0
"""Standard errors beyond which an estimate is wrong: of a million answers, not one by chance."""


def summary(sort: str, compared: list[Compared]) -> dict[str, Any]:
    """Number of comparisons, of wrong answers, and the spread of the errors of estimates in standard errors."""
    signed = [(one.found - one.expected) / one.error for one in compared if one.error > 0.0]
    return {
        "answers": sort,
        "comparisons": len(compared),
        "wrong": sum(not one.z <= FAR for one in compared),
        "estimates": len(signed),
        "standard deviation of z": float(np.std(signed)) if signed else 0.0,
        "share beyond 3": float(np.mean(np.abs(signed) > 3.0)) if signed else 0.0,
    }


def main() -> None:
    options = arguments(__doc__, comparisons={"type": int, "default": 100_000})
    wanted = 1_000 if options.quick else options.comparisons
    found: dict[str, list[Compared]] = {}
    warnings.simplefilter("ignore")
    for seed in itertools.count(options.seed):
        one, rng = case(seed), np.random.default_rng([seed, 8])
        for compared in itertools.chain.from_iterable(comparisons(one, rng) for _ in range(SUBJECTS)):
            found.setdefault(compared.sort, []).append(compared._replace(what=f"seed {seed}: {compared.what}"))
            if not compared.z <= FAR:
                print(found[compared.sort][-1], flush=True)
        if sum(map(len, found.values())) >= wanted:
            break
    table = [summary(sort, compared) for sort, compared in found.items()]
    settings = {"seed": options.seed, "comparisons": wanted, "tables": seed + 1 - options.seed}
    finish("history_answers", {"Answers about histories with unknown cells": table}, settings, options.quick)


if __name__ == "__main__":
    main()
