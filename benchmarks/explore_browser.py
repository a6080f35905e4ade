"""Measures how long the explorer takes in a browser from a gesture to all cards, given random evidence.

The clock starts where the evidence changes and stops when the frame with its answer is painted. Evidence and tables
are those of explore.py, which measures the server alone. Needs Chromium and playwright:
pip install -e '.[test-browser]'.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

import numpy as np
from _common import arguments, finish, progress, read, verdict
from explore import FAST, MEDIAN, MOST, WIDE, random_evidence, wide
from playwright.sync_api import Page, sync_playwright

from jointforest.api.joint import Joint
from jointforest.learners.adversarial.adversarial_forest import AdversarialForest
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest

WINDOW = {"width": 1600, "height": 1000}
# The page calls performance.measure in the frame in which it has drawn; a message sent there is read after painting.
CHANGE = """conditions => new Promise(done => {
    const { port1, port2 } = new MessageChannel();
    const measure = Performance.prototype.measure;
    port1.onmessage = ({ data }) => done([performance.now() - data]);
    performance.measure = (name, options) => {
        if (name === "known" && !options.detail.exact) {
            delete performance.measure;
            port2.postMessage(options.start);
        }
        return measure.call(performance, name, options);
    };
    const said = new CustomEvent("evidence-all", { detail: { conditions }, bubbles: true });
    document.querySelector("jf-sentence").dispatchEvent(said);
})"""


def measure(page: Page, name: str, joint: Joint, n: int, seed: int, limit: float, most: float | None) -> dict[str, Any]:
    """Milliseconds of n changes of evidence, a row of the table of results."""
    rng = np.random.default_rng(seed)
    with joint.explore(browser=False) as served:
        page.goto(served.url)
        page.wait_for_selector("body[data-state=exact]", timeout=300_000)
        ask = "([what, body]) => fetch(`ask/${what}`, {method: 'POST', body: JSON.stringify(body), "
        ask += "headers: {'Content-Type': 'application/json'}}).then(answer => answer.json())"
        columns = page.evaluate(ask, ["table", {}])["columns"]
        rows = page.evaluate(ask, ["rows", {"n": n + 20, "seed": seed}])["rows"]
        pieces = [random_evidence(columns, row, rng) for row in rows]
        wall = []
        for piece in pieces:
            wall.append(page.evaluate(CHANGE, piece)[0])
            page.wait_for_selector("body[data-state=exact]", timeout=300_000)
    wall = wall[20:]  # the first ones warm up
    median, high = np.quantile(wall, [0.5, 0.95]).tolist()
    told = verdict(median, limit)
    if most is not None:
        told = {"target": f"<= {limit:g}, 95 % <= {most:g}", "met": "yes" if median <= limit and high <= most else "NO"}
    return {"joint": name, "columns": len(columns), "median ms": median, "95 % ms": high, **told}


def main() -> None:
    options = arguments(__doc__, pieces=dict(type=int, default=200))
    frame = read(options.data, "adult_train")
    frame = frame.iloc[:1500] if options.quick else frame
    seed, n = options.seed, 20 if options.quick else options.pieces
    broad = wide(frame, np.random.default_rng(seed))
    learners: list[tuple[str, Any, Any, float, float | None]] = [
        ("Adult, 10 trees", AdversarialForest(n_estimators=10, random_state=seed), frame, MEDIAN, MOST),
        ("Adult, hidden tree of 128 states", HiddenTreeForest(random_state=seed, **FAST), frame, MEDIAN, MOST),
        ("wide, 10 trees", AdversarialForest(n_estimators=10, random_state=seed), broad, WIDE, None),
        ("wide, hidden tree of 128 states", HiddenTreeForest(random_state=seed, **FAST), broad, WIDE, None),
    ]
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW, reduced_motion="reduce")  # the first frame is the last one
        for name, learner, table, limit, most in learners:
            progress(name)
            found.append(measure(page, name, learner.fit(table).joint_, n, seed, limit, most))
        browser.close()
    title = f"All cards drawn given {n} random pieces of evidence, one after the other"
    finish("explore_browser", {title: found}, {"seed": seed, "pieces": n, "window": WINDOW}, options.quick)


if __name__ == "__main__":
    main()
