"""Boosted trees of predictors chosen by the loss of more complete rows, where cells are missing at learning.

The predictor learns from 450 rows with 30 % of the cells hidden, as it is, and without the extrapolation of
`Constants.toward_complete`. It predicts at most 500 other rows with 0, 30 and 60 % hidden. All rows are learning rows
of the first fold of ``prediction.py``, so the choice is made without that benchmark's test rows. Each table is a part
of the results, so tables can be run one by one.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from _common import arguments, finish, print_results, progress, recorded_tables
from prediction import folds, hidden, load

import jointforest as jf
from jointforest.estimators.predictor import boosting
from jointforest.estimators.predictor.constants import FIXED

NAME, LEARN, MOST, RATES = "prediction_iterations", 450, 500, (0.0, 0.3, 0.6)
TABLES = ["authent", "krvskp", "jungle", "diabetes", "wine", "cmc", "electricity", "vehicle", "phishing", "insurance"]
KINDS = {"as it is": FIXED, "by rows as they are": replace(FIXED, toward_complete=0.0)}


def losses(options: Any, table: str) -> list[dict[str, Any]]:
    """Log-loss, or squared error over the variance of the target, at each rate."""
    X, y, K = load(options.data, table)
    learn, _ = next(folds(X, y, K, options))
    rng = np.random.default_rng(options.seed + 1)
    rows = rng.permutation(learn)
    learn, test = rows[: options.learn_rows], rows[options.learn_rows :][:MOST]
    X_learn = hidden(X.iloc[learn].reset_index(drop=True), "random", 0.3, rng)
    asked = {rate: hidden(X.iloc[test].reset_index(drop=True), "random", rate, rng) for rate in RATES}
    found = []
    for name, constants in KINDS.items():
        boosting.FIXED = constants
        start = time.process_time()
        model = (jf.JointClassifier if K else jf.JointRegressor)(random_state=0, n_jobs=1).fit(X_learn, y[learn])
        spent = time.process_time() - start
        row: dict[str, Any] = {"table": table, "trees are chosen": name}
        for rate, frame in asked.items():
            if K:
                p = model.predict_proba(frame)
                place = np.minimum(np.searchsorted(model.classes_, y[test]), len(model.classes_) - 1)
                there = model.classes_[place] == y[test]
                row[f"{rate:.0%}"] = float(-np.log(p[np.arange(len(test)), place][there]).mean())
            else:
                row[f"{rate:.0%}"] = float(((model.predict(frame) - y[test]) ** 2).mean() / y[test].var())
        found.append(row | {"fit, processor seconds": round(spent, 1)})
        progress(f"{table}, {name}: {[round(row[f'{rate:.0%}'], 4) for rate in RATES]}")
    boosting.FIXED = FIXED
    return found


def main() -> None:
    options = arguments(__doc__, tables=dict(nargs="*", choices=TABLES, default=TABLES, metavar="TABLE"))
    options.learn, options.test, options.learn_rows = 2_000, 500, 100 if options.quick else LEARN
    title = "Learned from rows of which 30 % of the cells are hidden"
    for table in ["diabetes"] if options.quick else options.tables:
        settings = {"learn": options.learn_rows, "test": MOST, "seed": options.seed}
        finish(NAME, {title: losses(options, table)}, settings, options.quick, table)
    every = [row for table in TABLES for row in recorded_tables(NAME, table).get(title, [])]
    print_results({title: every}, options.quick)


if __name__ == "__main__":
    main()
