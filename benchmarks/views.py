"""Times the views of joints and of what they answer in notebooks: the first one, and the median of several."""

from __future__ import annotations

from typing import Any

import pandas as pd
from _common import adult_split, arguments, finish, median_seconds, progress, read, timed, verdict

import jointforest as jf

EVIDENCE = "sex = 'Female' and income = '>50K' and age >= 30"
REPEATS = 9
LIMIT = 0.3
"""Seconds that a view may take."""


def views(name: str, joint: jf.Joint, rows: pd.DataFrame, evidence: str, target: str, number: str) -> list[dict]:
    """Seconds of every view of one joint."""
    found = []
    objects: dict[str, Any] = {"joint": joint, "posterior": joint.given(evidence)}
    objects["marginal"] = joint.given(evidence).marginal(number)
    objects["explanation"] = joint.given(evidence).explain(5)
    objects["Shapley values"] = jf.shapley(target, joint, rows.head(2))
    objects["fidelity"] = jf.fidelity(joint, rows.head(1000), rows.tail(1000), random_state=0)
    objects["how the table was read"] = joint.reading
    if joint.fitted_by is not None:
        objects["fit report"] = joint.fitted_by
    for what, shown in objects.items():
        first, html = timed(shown._repr_html_)
        again = median_seconds(shown._repr_html_, REPEATS)
        if what in ("posterior", "marginal"):  # nothing of another view of the same object is kept
            again = median_seconds(lambda: joint.given(evidence)._repr_html_(), REPEATS)
            if what == "marginal":
                again = median_seconds(lambda: joint.given(evidence).marginal(number)._repr_html_(), REPEATS)
        found.append(
            dict(joint=name, view=what, first=first, median=again, kilobytes=len(html) / 1000, **verdict(again, LIMIT))
        )
        progress(f"{name}, {what}: {again:.3f} s")
    return found


def main() -> None:
    options = arguments(__doc__)
    train, _ = adult_split(options.data, options.seed)
    flights = read(options.data, "flights/hflights").sample(23_000, random_state=options.seed).reset_index(drop=True)
    few = 2_000 if options.quick else len(train)
    results = []
    for name, frame, asked in (
        ("Adult", train.head(few), (EVIDENCE, "income", "hours_per_week")),
        ("hflights", flights.head(few), ("ArrDelay > 60", "Cancelled", "ArrDelay")),
    ):
        joint = jf.fit(frame, budget="fast", random_state=options.seed)
        results += views(f"{name}, jf.fit", joint, frame, *asked)
        forest = jf.AdversarialForest(n_estimators=10, random_state=options.seed).fit(frame).joint_
        results += views(f"{name}, adversarial forest", forest, frame, *asked)
    settings = dict(seed=options.seed, rows=few, repeats=REPEATS, limit=LIMIT)
    finish("views", {"Seconds of a view in a notebook": results}, settings, options.quick)


if __name__ == "__main__":
    main()
