"""Measures the processor seconds of questions to a joint that enforces a sum, beside the same joint without rules.

Both hidden trees are learned from the same rows with the same settings, and asked the same questions in turn. The
parts of two tables have few values, so that answers are added up over them. The parts of the third have too many.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _common import arguments, finish, hide, progress, read, verdict

import jointforest as jf

LEARN, NEW, ASKED = 10_000, 1_000, 500
"""Rows that are learned, new rows, and rows of a question about many rows."""
HIDDEN = 0.3
"""Share of the cells that are missing in these rows."""
MOST_TIMES = 5.0


class Table(NamedTuple):
    """A table with a column that is a sum, one of its parts, another column, one of levels, and the other parts."""

    frame: pd.DataFrame
    rule: str
    total: str
    part: str
    other: str
    levels: str
    rest: tuple[str, ...]


def flights(data: Path) -> Table:
    """hflights: a flight takes the time in the air and on two runways."""
    rule = "ActualElapsedTime = AirTime + TaxiIn + TaxiOut"
    rest = ("TaxiIn", "TaxiOut")
    return Table(
        read(data, "flights/hflights"), rule, "ActualElapsedTime", "AirTime", "Distance", "UniqueCarrier", rest
    )


def orders(n: int, decimals: int) -> Table:
    """A generated table of orders with a total of two amounts; with decimals these have many values."""
    rng = np.random.default_rng([n, decimals])
    shop = rng.choice(8, n, p=rng.dirichlet(np.full(8, 4.0)))
    net = np.round(rng.gamma(2.0, 8.0 + 4.0 * shop), decimals)
    tax = np.round(rng.gamma(3.0, 1.0 + 0.05 * net), decimals)
    frame = pd.DataFrame({
        "shop": np.array([f"shop {k}" for k in shop]), "net": net, "tax": tax, "total": np.round(net + tax, decimals),
        "weight": np.round(rng.gamma(4.0, 1.0 + 0.1 * net), 1), "items": rng.poisson(1.0 + 0.1 * net),
    })  # fmt: skip
    if not decimals:
        frame = frame.astype({"net": int, "tax": int, "total": int})
    return Table(frame, "total = net + tax", "total", "net", "weight", "shop", ("tax",))


def questions(table: Table, new: pd.DataFrame, seed: int) -> dict[str, Callable[[jf.Joint], Any]]:
    """Each question as a function of a joint. New rows obey the rule, and some of their cells are missing."""
    holes = hide(new.iloc[:ASKED], HIDDEN, seed)[0]
    total, part, other = table.total, table.part, table.other
    value = table.frame[total].median()
    about, between = {total: value}, {total: jf.Interval(value, 1.2 * value)}
    known = new[[total, other]].iloc[:ASKED]
    no_parts = holes.astype({name: float for name in (part, *table.rest)})
    no_parts[[part, *table.rest]], no_parts[total] = np.nan, new[total].iloc[: len(holes)]
    no_levels = no_parts.drop(columns=table.levels)

    def write(joint: jf.Joint) -> None:
        with tempfile.TemporaryDirectory() as folder:
            joint.report(Path(folder) / "report.html")

    return {
        "mean of a part given the sum": lambda joint: joint.given(about).mean(part),
        "mean of another column given the sum": lambda joint: joint.given(about).mean(other),
        "probabilities of levels given the sum": lambda joint: joint.given(about).proba(table.levels),
        "interval of a part given the sum": lambda joint: joint.given(about).interval(part),
        "interval of the sum": lambda joint: joint.given({table.levels: new[table.levels].iloc[0]}).interval(total),
        "probability of an interval of the sum": lambda joint: joint.probability(between),
        "mean of a part given an interval of the sum": lambda joint: joint.given(between).mean(part),
        "1,000 draws given the sum": lambda joint: joint.given(about).sample(1_000, random_state=seed),
        "10,000 draws": lambda joint: joint.sample(10_000, random_state=seed),
        "explain, given the sum": lambda joint: joint.given(about).explain(),
        "mode, given a part": lambda joint: joint.given({part: table.frame[part].median()}).mode(),
        "all marginals given the sum": lambda joint: joint.given(about).marginals(),
        "means of a part, 500 rows": lambda joint: joint.given(known).mean(part),
        "intervals of a part, 500 rows": lambda joint: joint.given(known).interval(part),
        "probabilities of levels, 500 rows": lambda joint: joint.given(known).proba(table.levels),
        "means of a part, 500 rows with holes and without parts": lambda joint: joint.given(no_parts).mean(part),
        "probabilities of levels, the same": lambda joint: joint.given(no_levels).proba(table.levels),
        "log-density, the same": lambda joint: joint.log_density(no_parts),
        "imputation, the same": lambda joint: joint.impute(no_parts),
        "log-density, 500 rows with missing cells": lambda joint: joint.log_density(holes),
        "imputation, 500 rows": lambda joint: joint.impute(holes),
        "drawn imputation, 500 rows": lambda joint: joint.impute(holes, method="sample", random_state=seed),
        "attribution, 500 rows": lambda joint: joint.attribution(holes),
        "outlier scores, 1,000 rows": lambda joint: jf.ForestOutlierDetector.from_joint(joint, new).score_samples(new),
        "mutual information, sum and another": lambda joint: joint.mutual_information(total, other, random_state=seed),
        "mutual information, sum and part": lambda joint: joint.mutual_information(total, part, random_state=seed),
        "entropy of the sum": lambda joint: joint.entropy(total, random_state=seed),
        "fidelity": lambda joint: jf.fidelity(joint, new, new, random_state=seed),
        "report": write,
    }  # fmt: skip


def compare(name: str, table: Table, asked: list[str] | None, seed: int, quick: bool) -> list[dict[str, Any]]:
    """Seconds of each question, with and without the rule."""
    order = np.random.default_rng(seed).permutation(len(table.frame))
    n = 1_500 if quick else LEARN
    rows = [table.frame.iloc[np.sort(part)].reset_index(drop=True) for part in (order[:n], order[n : n + NEW])]
    joints = [
        jf.HiddenTreeForest(rules=rules, random_state=seed, n_jobs=1, **({"n_states": 8} if quick else {}))
        .fit(rows[0]).joint_
        for rules in ("off", [table.rule])
    ]  # fmt: skip
    progress(f"{name}: learned")
    new = rows[1].dropna(subset=[table.total, table.part, table.other, table.levels]).reset_index(drop=True)
    found: list[dict[str, Any]] = []
    for what, ask in questions(table, new, seed).items():
        if asked and not any(text in what for text in asked):
            continue
        seconds, is_estimated = [], False
        for joint in joints:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                start = time.process_time()
                ask(joint)
                seconds.append(time.process_time() - start)
            is_estimated = any(issubclass(one.category, jf.EstimatedAnswerWarning) for one in said)
        row = {
            "table": name, "question": what, "processor seconds, no rule": seconds[0],
            "processor seconds, rule": seconds[1], "times": seconds[1] / seconds[0], "estimated": is_estimated,
        }  # fmt: skip
        found.append(row | verdict(row["times"], MOST_TIMES))
        progress(", ".join(f"{key} {value}" for key, value in row.items()))
    return found


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="+", default=["hflights", "orders", "prices"], choices=["hflights", "orders", "prices"]),
        questions=dict(nargs="+", metavar="TEXT", help="only questions that contain one of these texts"),
    )
    warnings.simplefilter("ignore")
    made = {
        "hflights": lambda: flights(options.data),
        "orders": lambda: orders(LEARN + NEW, 0),
        "prices": lambda: orders(LEARN + NEW, 2),
    }
    for name in options.tables:
        rows = compare(name, made[name](), options.questions, options.seed, options.quick)
        settings = {"seed": options.seed, "rows": LEARN}
        finish("rules_questions", {"Questions under a sum": rows}, settings, options.quick, name)


if __name__ == "__main__":
    main()
