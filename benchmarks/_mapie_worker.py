"""Runs inside the MAPIE environment: conformal intervals or sets of gradient boosting, which takes missing cells.

Arguments: a Parquet table to learn, one to ask about, the target (last column of the first), "regression" or "classes",
the level. Prints one JSON object on the last line: {"low", "high"} or {"sets"}, and seconds.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
import pandas as pd
from mapie.classification import CrossConformalClassifier
from mapie.regression import CrossConformalRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

warnings.filterwarnings("ignore")


def main() -> None:
    learn, ask = (pd.read_parquet(path).to_numpy(dtype=float) for path in sys.argv[1:3])
    X, y, level = learn[:, :-1], learn[:, -1], float(sys.argv[4])
    start = time.perf_counter()
    if sys.argv[3] == "regression":
        model = CrossConformalRegressor(HistGradientBoostingRegressor(max_iter=50), confidence_level=level,
                                        method="plus", cv=10, random_state=0)  # fmt: skip
        found = model.fit_conformalize(X, y).predict_interval(ask, allow_infinite_bounds=True)[1]
        answer = {"low": found[:, 0, 0].tolist(), "high": found[:, 1, 0].tolist()}
    else:
        model = CrossConformalClassifier(HistGradientBoostingClassifier(max_iter=50), confidence_level=level,
                                         conformity_score="lac", cv=5, random_state=0)  # fmt: skip
        found = model.fit_conformalize(X, y.astype(int)).predict_set(ask)[1]
        answer = {"sets": np.asarray(found)[:, :, 0].astype(bool).tolist()}
    print(json.dumps({**answer, "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
