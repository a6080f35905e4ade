"""Measures how far the answers of a report are from those of its joint, its size, and how long a click takes.

Each report is opened in Chromium and asked 1,000 random pieces of evidence on one to three columns. The error of a
piece is the largest difference of a probability of a bin or level, over all columns, from that which Python gives.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, finish, progress, read
from playwright.sync_api import sync_playwright

import jointforest as jf
from jointforest.explorer.shown import ShownJoint
from jointforest.report.embed import answers_of, embedded, random_pieces, row_evidence

TABLES = {
    "Adult": "adult_train",
    "shoppers": "synth/shoppers",
    "Beijing": "synth/beijing",
    "hflights": "flights/hflights",
}
MOST_POINTS = 0.5
ASK = """async pieces => {
    const { InPageSource } = await import("jf/in_page_source.js");
    const source = new InPageSource(JSON.parse(document.getElementById("joint").textContent));
    await source.ask("posterior", { evidence: [], columns: null });
    const found = [], times = [];
    for (const evidence of pieces) {
        const start = performance.now();
        const answer = await source.ask("posterior", { evidence, columns: null });
        times.push(performance.now() - start);
        found.push(answer.columns.map(({ mass }) => mass));
    }
    return { found, times };
}"""


def row(page: Any, name: str, joint: Any, n: int) -> dict[str, Any]:
    """A row of the table of results."""
    shown = ShownJoint(joint, name)
    pieces = random_pieces(shown, n)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        joint.report(path, title=name)
        size = path.stat().st_size / 1e6
        page.goto(path.as_uri())
        page.wait_for_selector("#live[data-state=exact]")
        answer = page.evaluate(ASK, pieces)
    exact = answers_of(joint.distribution, row_evidence(joint.schema, pieces), shown.bins)
    worst = np.zeros(n)
    for j, masses in enumerate(exact):
        mine = np.array([found[j] for found in answer["found"]])
        worst = np.maximum(worst, np.nan_to_num(np.abs(mine - masses).max(axis=1)))
    what = embedded(shown)
    progress(f"{name}: largest error {100 * worst.max():.3f} points, {size:.2f} MB")
    return {
        "table": name,
        "in the file": f"the joint, {what.bits} bits" if what.is_itself else "a smaller joint",
        "file MB": size,
        "largest error, points": 100 * worst.max(),
        "median error, points": 100 * float(np.median(worst)),
        "click ms, median": float(np.median(answer["times"])),
        "click ms, 99 %": float(np.quantile(answer["times"], 0.99)),
        "target": f"error <= {MOST_POINTS:g}",
        "met": "yes" if 100 * worst.max() <= MOST_POINTS else "NO",
    }


def main() -> None:
    options = arguments(__doc__)
    names = list(TABLES)[:1] if options.quick else list(TABLES)
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM"), args=["--no-sandbox"])
        page = browser.new_page()
        for name in names:
            frame = read(options.data, TABLES[name])
            joint = jf.fit(frame, budget="fast", random_state=options.seed)
            rows.append(row(page, name, joint, 100 if options.quick else 1_000))
        browser.close()
    finish("report_errors", {"Joints of jf.fit(budget='fast')": rows}, {"seed": options.seed}, options.quick)


if __name__ == "__main__":
    main()
