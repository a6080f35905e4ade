"""Runs inside DiCE's environment: counterfactuals of some rows by one method, and the class each row had.

Arguments: Parquet files of the table learned from and of the rows, the target's name, the method, fixed columns joined
by commas, how many a row, seed. Prints one JSON object on the last line: rows by number of the row asked of, seconds.
"""

from __future__ import annotations

import json
import random
import sys
import time
import warnings

import dice_ml
import numpy as np
import pandas as pd
from _counterfactual_model import trained

warnings.filterwarnings("ignore")


def main() -> None:
    table, asked, target, method, fixed, n, seed = sys.argv[1:]
    learn, rows = pd.read_parquet(table), pd.read_parquet(asked)
    random.seed(int(seed))
    np.random.seed(int(seed))  # noqa: NPY002 (DiCE draws from it)
    model = trained(learn, target)
    names = [name for name in learn if name != target]
    numbers = [name for name in names if pd.api.types.is_numeric_dtype(learn[name])]
    start = time.perf_counter()
    data = dice_ml.Data(dataframe=learn, continuous_features=numbers, outcome_name=target)
    dice = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method=method)
    ready = time.perf_counter() - start
    out, seconds = {}, []
    for k in range(len(rows)):
        start = time.perf_counter()
        more = {"random_seed": int(seed)} if method == "random" else {}
        try:
            found = dice.generate_counterfactuals(
                rows[names].iloc[[k]], total_CFs=int(n), desired_class="opposite",
                features_to_vary=[name for name in names if name not in fixed.split(",")], **more,
            ).cf_examples_list[0].final_cfs_df  # fmt: skip
        except Exception as error:  # none found is an exception of DiCE's
            print(type(error).__name__, error, file=sys.stderr)
            found = None
        seconds.append(time.perf_counter() - start)
        out[k] = [] if found is None else json.loads(found[names].to_json(orient="records"))
    print(json.dumps({"rows": out, "seconds": seconds, "ready": ready, "was": model.predict(rows[names]).tolist()}))


if __name__ == "__main__":
    main()
