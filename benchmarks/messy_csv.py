"""Compares how jointforest and other libraries read the messy CSV files of tests/data/messy_csv.py.

The other libraries run in an environment of their own under benchmarks/.peers, made on first use. A column counts as
right if it has the kind (text, number or date) and the cells that the file stands for. A time of day counts as the
number of its minutes, which no other library makes of it.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from _common import HERE, arguments, finish
from peers import peer_python, run_json

from jointforest.data.csv_files import CsvForm
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.table_files import find_form, read_table
from tests.data.messy_csv import Case, cases
from tests.data.test_messy_csv import same_cells

PINS = ["clevercsv==0.8.5", "skrub==0.11.0", "dateparser==1.5.0", "babel==2.18.0", "duckdb==2.0.1", "pandas==3.1.1"]
PINS += ["pyarrow", "scikit-learn"]


def as_json(case: Case) -> dict[str, Any]:
    columns = {
        name: (kind, [cell if cell is None or isinstance(cell, int | float | str) else str(cell) for cell in cells])
        for name, (kind, cells) in case.columns.items()
    }
    return {"name": case.name, "content": base64.b64encode(case.content).decode(), "columns": columns}


def by_jointforest(case: Case) -> dict[str, bool]:
    """Which columns of a file are read as expected."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(case.content)
        file.flush()
        table = read_table(file.name, csv=find_form(file.name, CsvForm(separator="")))
    schema = infer_schema(table)
    X, _ = encode(schema, table)
    return {
        name: name in schema.names and same_cells(schema[name], X[:, schema.index(name)], kind, cells)
        for name, (kind, cells) in case.columns.items()
    }


def main() -> None:
    options = arguments(__doc__)
    warnings.simplefilter("ignore")
    corpus = list(cases())
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([as_json(case) for case in corpus], file)
        file.flush()
        found = run_json([peer_python("messy_csv", PINS), HERE / "_messy_csv_worker.py", file.name])
    start = time.monotonic()
    own = {case.name: by_jointforest(case) for case in corpus}
    found = {"jointforest": {"seconds": round(time.monotonic() - start, 2), "right": own}} | found
    rows = []
    for name, one in found.items():
        whole = [all(case.values()) for case in one["right"].values()]
        kinds: dict[str, list[bool]] = {"text": [], "number": [], "date": []}
        for case in corpus:
            for column, (kind, _) in case.columns.items():
                kinds["number" if kind == "integer" else kind].append(one["right"][case.name][column])
        row: dict[str, Any] = {"reader": name, "whole files": f"{sum(whole)} of {len(whole)}"}
        row |= {f"{kind} columns": f"{sum(each)} of {len(each)}" for kind, each in kinds.items()}
        rows.append(row | {"seconds": one["seconds"]})
    finish("messy_csv", {"read as expected": rows}, {"pins": PINS}, options.quick)


if __name__ == "__main__":
    main()
