"""Runs inside the pyjpt environment: trees of several smallest leaves, and what they say of one column given others.

Prints one JSON object on the last line of standard output: for each smallest leaf and asked column the predictions, the
mean of numbers and the likeliest level, null where pyjpt says that the evidence is impossible.
"""

from __future__ import annotations

import argparse
import json
import warnings

import pandas as pd
from jpt.trees import JPT
from jpt.variables import infer_from_dataframe

warnings.filterwarnings("ignore")


def predictions(model: JPT, test: pd.DataFrame, column: str) -> list[float | str | None]:
    """One prediction a row of ``test``, given all its other columns."""
    variable = model.varnames[column]
    found: list[float | str | None] = []
    for row in test.drop(columns=column).to_dict("records"):
        posterior = model.posterior([variable], row, fail_on_unsatisfiability=False)
        if posterior is None:
            found.append(None)
        else:
            said = posterior[variable].expectation()
            found.append(sorted(said)[0] if variable.symbolic else float(said))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--min-leaf", type=float, nargs="+", required=True)
    parser.add_argument("--columns", nargs="+", required=True)
    arguments = parser.parse_args()
    train, test = pd.read_parquet(arguments.train), pd.read_parquet(arguments.test)
    found = []
    for share in arguments.min_leaf:
        model = JPT(infer_from_dataframe(pd.concat([train, test])), min_samples_leaf=share)
        model.fit(train)
        said = {column: predictions(model, test, column) for column in arguments.columns}
        found.append({"leaves": len(model.leaves), "predictions": said})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
