"""Measures the speed of expected predictions of XGBoost on Adult, 30 % of the cells missing.

By the number of trees of the joint and by tolerance, with the certified and the actual error. Complete rows are
compared with XGBoost's own prediction. XGBoost has 100 trees of depth 6. Figures are medians.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from _common import arguments, cores, finish, hide, median_seconds, read, verdict
from xgboost import XGBClassifier

import jointforest as jf

TREES = {"n_estimators": 100, "max_depth": 6, "enable_categorical": True, "random_state": 0, "n_jobs": cores()}


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(
        __doc__, rows=dict(type=int, default=2000), joint_trees=dict(type=int, nargs="+", default=[10, 30])
    )
    frame = read(options.data, "adult_train").sample(frac=1, random_state=options.seed).reset_index(drop=True)
    y = (frame.pop("income").astype(str).str.contains(">")).astype(int)
    for c in frame.columns[[not pd.api.types.is_numeric_dtype(t) for t in frame.dtypes]]:
        frame[c] = frame[c].astype("category")
    n = 200 if options.quick else options.rows
    test, learn = frame[:n], frame[n : 5000 if options.quick else None].reset_index(drop=True)
    model = XGBClassifier(**TREES).fit(learn, y[n : n + len(learn)])
    rows, complete = hide(test, 0.3, options.seed)[0], test.dropna().reset_index(drop=True)
    speed, whole = [], []
    for n_trees in options.joint_trees:
        joint = jf.AdversarialForest(n_estimators=n_trees, random_state=0).fit(learn).joint_
        exact = jf.ExpectedPredictor(model, joint, tolerance=0.0)
        few = rows[:200]
        truth = exact.decision_function(few)
        for tolerance in (1e-2, 1e-3, 1e-4, 0.0):
            predictor = jf.ExpectedPredictor(model, joint, tolerance=tolerance)
            predictor.decision_function(rows)
            seconds = median_seconds(lambda: predictor.decision_function(rows), 3)  # noqa: B023
            row = {
                "joint trees": n_trees,
                "joint leaves": joint.n_leaves,
                "tolerance": tolerance,
                "rows/s": len(rows) / seconds,
            }
            row["largest bound"] = float(predictor.error_bound(few).max())
            row["largest error"] = float(np.abs(predictor.decision_function(few) - truth).max())
            speed.append(row | (verdict(len(rows) / seconds, 2000, at_most=False) if tolerance == 1e-4 else {}))
        predictor = jf.ExpectedPredictor(model, joint)
        seconds = median_seconds(lambda: predictor.predict_proba(rows[:500]), 3)  # noqa: B023
        speed.append({"joint trees": n_trees, "joint leaves": joint.n_leaves, "tolerance": "predict_proba",
                      "rows/s": 500 / seconds})  # fmt: skip
        predictor.predict_proba(complete)
        ours = median_seconds(lambda: predictor.predict_proba(complete), 5)  # noqa: B023
        theirs = median_seconds(lambda: model.predict_proba(complete), 5)
        whole.append({"joint trees": n_trees, "rows/s": len(complete) / ours, "XGBoost's own": len(complete) / theirs,
                      "ratio of time": ours / theirs})  # fmt: skip
    tables = {"Adult, 30 % of the cells missing, expected log-odds": speed, "Complete rows, predict_proba": whole}
    finish("expected_speed", tables, {"seed": options.seed, "rows": n, "model": TREES}, options.quick)


if __name__ == "__main__":
    main()
