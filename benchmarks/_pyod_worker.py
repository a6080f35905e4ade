"""Runs inside the PyOD environment: scores of KNN, ECOD and HBOS (their defaults) on one table, all rows learned from.

Prints one JSON object on the last line of standard output: name -> outlier scores of the rows, higher is more unusual.
"""

from __future__ import annotations

import json
import sys
import warnings

import pandas as pd
from pyod.models.ecod import ECOD
from pyod.models.hbos import HBOS
from pyod.models.knn import KNN

warnings.filterwarnings("ignore")


def main() -> None:
    X = pd.read_parquet(sys.argv[1]).to_numpy(dtype=float)
    models = {"KNN": KNN(), "ECOD": ECOD(), "HBOS": HBOS()}
    print(json.dumps({name: model.fit(X).decision_scores_.tolist() for name, model in models.items()}))


if __name__ == "__main__":
    main()
