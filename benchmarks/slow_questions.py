"""Measures questions that once were slow: many rows of evidence, and rare events, asked of a mixture with forests."""

from __future__ import annotations

from _common import arguments, finish, progress, read, timed, verdict

import jointforest as jf

REPORTED = {  # seconds, as first reported: other rows, other events of the same kind, another run of the machine
    "covariance given 1,000 rows": 37.0,
    "quantiles given 1,500 rows": 22.0,
    "2,000 draws of a rare relation": 169.0,
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
    finish("slow_questions", {"A mixture with forests, Adult": table}, {"rows": n}, options.quick)


if __name__ == "__main__":
    main()
