"""Measures the size of reports of 10, 100 and 300 columns: the file, the embedded joint and the rest.

Two made tables: numbers that depend on a hidden group, and every second column of forty levels with long names. Rows
and a target are given, so that every section of the report exists.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import arguments, finish, progress

from jointforest.api.joint import Joint
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest

ROWS = 5_000
LIMIT = 1.0
"""Megabytes beside the embedded joint, of up to 100 columns."""


def table(d: int, has_levels: bool, seed: int) -> pd.DataFrame:
    """Rows of d columns that hang together by a hidden group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 5, ROWS)
    columns: dict[str, Any] = {}
    for j in range(d):
        if has_levels and j % 2:
            place = (group * 8 + rng.integers(0, 12, ROWS)) % 40
            columns[f"column {j} of levels"] = np.array([f"level {k} of column {j}" for k in range(40)], object)[place]
        else:
            columns[f"column {j} of numbers"] = np.round(rng.normal(group, 1.0), 4)
    return pd.DataFrame(columns)


def row(joint: Joint, frame: pd.DataFrame, name: str, limit: float | None) -> dict[str, Any]:
    """A row of the table of results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        joint.report(path, frame, target=str(frame.columns[0]), examples=3)
        text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="joint">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    size, data = len(text.encode()) / 1e6, found[1]
    tables = len(json.loads(data)["packed"]) / 1e6
    rest = size - tables
    progress(f"{name}, {frame.shape[1]} columns: {size:.2f} MB, {tables:.2f} of them the joint")
    sizes = {"file MB": size, "embedded joint MB": tables, "rest MB": rest}
    sizes["of it: columns, cuts, levels MB"] = len(data.encode()) / 1e6 - tables
    told = {} if limit is None else {"target": f"rest <= {limit:g}", "met": "yes" if rest <= limit else "NO"}
    return {"table": name, "columns": frame.shape[1], **sizes, **told}


def main() -> None:
    options = arguments(__doc__)
    rows = []
    for d in (10, 30) if options.quick else (10, 100, 300):
        for name, has_levels in (("numbers", False), ("numbers and levels", True)):
            frame = table(d, has_levels, options.seed)
            learner = HiddenTreeForest(n_states=48, max_leaf_nodes=1, random_state=options.seed)
            rows.append(row(learner.fit(frame).joint_, frame, name, LIMIT if d <= 100 else None))
    finish("report_sizes", {"Reports with all sections": rows}, {"seed": options.seed, "rows": ROWS}, options.quick)


if __name__ == "__main__":
    main()
