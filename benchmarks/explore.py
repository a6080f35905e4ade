"""Measures how long the explorer's server takes to answer for all columns, given random evidence.

Each evidence restricts one to three columns around a row of the table, so none is impossible. Questions go through a
socket, one after the other, as a page sends them, and the JSON is read. The wide table has Adult's columns ten times,
with the copies in other orders of rows.
"""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read, timed, verdict

from jointforest.api.joint import Joint
from jointforest.learners.adversarial.adversarial_forest import AdversarialForest
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest

FAST = {"n_states": 128, "max_iter": 3, "max_leaf_nodes": 1, "start": "shared", "smoothing": 30.0}  # as jf.fit
MEDIAN, MOST, WIDE = 50.0, 100.0, 300.0
COPIES, WIDE_ROWS = 10, 5_000


class Page:
    """What a page does: it asks over one connection."""

    def __init__(self, url: str) -> None:
        address, self.token = url.removeprefix("http://").split("/")[:2]
        self.link = http.client.HTTPConnection(address)

    def ask(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        self.link.request("POST", f"/{self.token}/ask/{what}", json.dumps(body), {"Content-Type": "application/json"})
        found = json.loads(self.link.getresponse().read())
        if "error" in found:
            raise ValueError(found["error"])
        return found


def random_evidence(columns: list[dict[str, Any]], row: list[Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Conditions that a row meets, on one to three of its known columns."""
    known = [j for j, cell in enumerate(row) if cell is not None]
    said = []
    for j in rng.choice(known, int(rng.integers(1, 4)), replace=False).tolist():
        column = columns[j]
        if column["levels"] is not None:
            places = {
                column["labels"].index(row[j]),
                *rng.integers(0, len(column["levels"]), rng.integers(0, 3)).tolist(),
            }
            said.append({"column": j, "levels": sorted(places)})
            continue
        x, width = float(row[j]), column["edges"][-1] - column["edges"][0]
        below, above = (float(part) * width for part in rng.uniform(0.0, 0.5, 2))
        low, high = [(x - below, x + above), (x - below, None), (None, x + above), (x, x)][rng.integers(4)]
        said.append({"column": j, "low": low, "high": high})
    return said


def measure(name: str, joint: Joint, n: int, seed: int, limit: float, most: float | None) -> dict[str, Any]:
    """Milliseconds of n questions, a row of the table of results."""
    rng = np.random.default_rng(seed)
    with joint.explore(browser=False) as served:
        page = Page(served.url)
        start, _ = timed(lambda: page.ask("posterior", {"evidence": []}))
        columns = page.ask("table", {})["columns"]
        rows = page.ask("rows", {"n": n, "seed": seed})["rows"]
        pieces = [random_evidence(columns, row, rng) for row in rows]
        for piece in pieces[:20]:
            page.ask("posterior", {"evidence": piece})
        wall, size = [], []
        busy = time.process_time()
        for piece in pieces:
            seconds, found = timed(lambda piece=piece: page.ask("posterior", {"evidence": piece}))
            wall.append(1e3 * seconds)
            size.append(len(json.dumps(found)))
        busy = 1e3 * (time.process_time() - busy) / n
        exact = [1e3 * timed(lambda p=p: page.ask("posterior", {"evidence": p, "exact": True}))[0] for p in pieces[:20]]
        page.ask("mode", {"evidence": pieces[0]})  # compiles, where nothing was kept
        modes = [timed(lambda piece=piece: page.ask("mode", {"evidence": piece}))[0] for piece in pieces[:5]]
    median, high = np.quantile(wall, [0.5, 0.95]).tolist()
    row = {"joint": name, "columns": len(columns), "first s": start, "median ms": median, "95 % ms": high}
    row |= {"most probable row s": max(modes)}
    row |= {"processor ms": busy, "exact median ms": float(np.median(exact)), "answer kB": float(np.mean(size)) / 1e3}
    told = verdict(median, limit)
    if most is not None:
        told = {"target": f"<= {limit:g}, 95 % <= {most:g}", "met": "yes" if median <= limit and high <= most else "NO"}
    return row | told


def wide(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Copies of a frame's columns side by side, each copy in an order of its own."""
    frame = frame.iloc[rng.permutation(len(frame))[:WIDE_ROWS]]
    copies = [frame.iloc[rng.permutation(len(frame))].reset_index(drop=True).add_suffix(f"_{k}") for k in range(COPIES)]
    return pd.concat(copies, axis=1)


def main() -> None:
    options = arguments(__doc__, pieces=dict(type=int, default=200))
    frame = read(options.data, "adult_train")
    frame = frame.iloc[:1500] if options.quick else frame
    seed, n = options.seed, 20 if options.quick else options.pieces
    learners: list[tuple[str, Any, pd.DataFrame, float, float | None]] = [
        ("Adult, 10 trees", AdversarialForest(n_estimators=10, random_state=seed), frame, MEDIAN, MOST),
        ("Adult, hidden tree of 128 states", HiddenTreeForest(random_state=seed, **FAST), frame, MEDIAN, MOST),
    ]
    broad = wide(frame, np.random.default_rng(seed))
    learners.append(("wide, 10 trees", AdversarialForest(n_estimators=10, random_state=seed), broad, WIDE, None))
    learners.append(("wide, hidden tree of 128 states", HiddenTreeForest(random_state=seed, **FAST), broad, WIDE, None))
    found = []
    for name, learner, table, limit, most in learners:
        progress(name)
        found.append(measure(name, learner.fit(table).joint_, n, seed, limit, most))
    title = f"All columns given {n} random pieces of evidence, one after the other"
    finish("explore", {title: found}, {"seed": seed, "pieces": n}, options.quick)


if __name__ == "__main__":
    main()
