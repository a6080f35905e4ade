"""Runs inside the pyjpt environment: one fit, likelihoods of some rows, posteriors of all columns.

Prints one JSON object on the last line of standard output.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import time
import warnings

import pandas as pd
from jpt.trees import JPT
from jpt.variables import infer_from_dataframe

warnings.filterwarnings("ignore")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("train")
    parser.add_argument("--min-leaf", type=float, required=True)
    parser.add_argument("--density-rows", type=int, required=True)
    parser.add_argument("--column", required=True)
    parser.add_argument("--values", nargs="+", required=True)
    arguments = parser.parse_args()
    train = pd.read_parquet(arguments.train)
    seconds = {}

    start = time.perf_counter()
    model = JPT(infer_from_dataframe(train), min_samples_leaf=arguments.min_leaf)
    model.fit(train)
    seconds["fit"] = time.perf_counter() - start

    test = train.iloc[: arguments.density_rows].reset_index(drop=True)
    start = time.perf_counter()
    likelihood = model.likelihood(test)
    seconds["likelihood"] = time.perf_counter() - start

    start = time.perf_counter()
    for value in arguments.values:
        model.posterior(evidence={arguments.column: value})
    seconds["posterior"] = (time.perf_counter() - start) / len(arguments.values)
    result = {
        "seconds": seconds,
        "leaves": len(model.leaves),
        "share_of_likelihood_0": float((likelihood <= 0).mean()),
        "versions": {p: importlib.metadata.version(p) for p in ("pyjpt", "numpy", "pandas", "scipy")},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
