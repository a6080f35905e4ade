"""Measures questions that once were slow: many rows, rare events, and tables of many columns."""

from __future__ import annotations

from typing import Any

from _common import arguments, finish, progress, read, timed, verdict
from budgets import table as wide_table

import jointforest as jf

REPORTED = {  # seconds, as first reported: other rows, other events of the same kind, another run of the machine
    "covariance given 1,000 rows": 37.0,
    "quantiles given 1,500 rows": 22.0,
    "2,000 draws of a rare relation": 169.0,
    "comparison of two joints": 218.0,
    "mode": 29.0,
}
RARE = "hours_per_week > age + education_num + 38"
"""Of about one row in 200."""


def main() -> None:
    options = arguments(__doc__)
    frame = read(options.data, "adult_train")
    learn = frame.iloc[:2_500]
    joint = jf.fit(learn, budget="fast" if options.quick else "default", random_state=options.seed)
    progress(f"{joint}")
    n = 20 if options.quick else 1_000
    rows = frame.drop(columns=["age", "hours_per_week"])
    asked = {
        "covariance given 1,000 rows": lambda: joint.given(rows.iloc[:n]).cov("age", "hours_per_week"),
        "quantiles given 1,500 rows": lambda: joint.given(rows.iloc[: n + n // 2]).quantile("age", [0.1, 0.5, 0.9]),
        "2,000 draws of a rare relation": lambda: joint.sample(2 * n, random_state=options.seed, where=RARE),
    }
    joint.given(rows.iloc[:20]).quantile("age", [0.5])  # compiles
    table = []
    for what, ask in asked.items():
        seconds, _ = timed(ask)
        row = {"question": what, "seconds": seconds, "first reported": REPORTED[what]}
        table.append(row | verdict(seconds, REPORTED[what] / 10.0))
        progress(f"{table[-1]}")
    wide = of_many_columns(40 if options.quick else 400, options.seed)
    results = {"A mixture with forests, Adult": table, "Hidden trees of 32 states, 400 columns": wide}
    finish("slow_questions", results, {"rows": n}, options.quick)


def of_many_columns(d: int, seed: int) -> list[dict[str, Any]]:
    """Questions to hidden trees of d columns, learned from 2,000 rows; the first halves of the rows and the others."""
    frame = wide_table(4_000, d)
    learner = jf.HiddenTreeForest(n_states=32, max_iter=2, max_leaf_nodes=1, random_state=seed)
    a, b = (learner.fit(part.reset_index(drop=True)).joint_ for part in (frame[:2_000], frame[2_000:]))
    table: list[dict[str, Any]] = []
    for what, ask in {"comparison of two joints": lambda: a.compare(b), "mode": lambda: a.given(c0="a").mode()}.items():
        seconds, _ = timed(ask)
        row = {"question": what, "seconds": seconds, "first reported": REPORTED[what]}
        table.append(row | verdict(seconds, REPORTED[what] / 10.0))
        progress(f"{table[-1]}")
    return table


if __name__ == "__main__":
    main()
