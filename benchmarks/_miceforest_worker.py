"""Runs inside the miceforest environment: m tables filled by chained boosted trees, one below the other, as Parquet.

Arguments: masked table, output, m, rounds, seed.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import miceforest
import pandas as pd

warnings.filterwarnings("ignore")


def main() -> None:
    source, out, m, rounds, seed = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    table = pd.read_parquet(source)
    start = time.perf_counter()
    kernel = miceforest.ImputationKernel(table, num_datasets=m, random_state=seed)
    kernel.mice(rounds, num_threads=1)
    filled = [kernel.complete_data(dataset=k) for k in range(m)]
    seconds = time.perf_counter() - start
    pd.concat(filled).reset_index(drop=True).to_parquet(out)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
