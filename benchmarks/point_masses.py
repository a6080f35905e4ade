"""Compares hidden trees with the rows that they learned: probabilities of common values, and means.

One tree with default settings learns three quarters of at most 12,000 rows of a table. A common value is one that at
least 3 % of the learned rows have in a column of numbers; at most eight of a column are compared. Errors of
probabilities are absolute, those of means in standard deviations of the column. Held-out rows have a log-density.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read

import jointforest as jf

TABLES = {
    "adult": "adult_train",
    "bank": "gef/bank",
    "beijing": "synth/beijing",
    "credit-g": "gef/credit-g",
    "electricity": "gef/electricity",
    "fremtpl2": "large/fremtpl2freq",
    "gesture": "gef/gesture",
    "hflights": "flights/hflights",
    "insurance": "insurance",
    "shoppers": "synth/shoppers",
    "wine": "gef/wine",
}
MOST_ROWS, SHARE = 12_000, 0.75
COMMON, MOST_VALUES = 0.03, 8


def errors(joint: jf.Joint, learned: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Errors of the probabilities of common values, and of the means of columns of numbers."""
    given = joint.given()
    of_values, of_means = [], []
    for column in joint.schema.columns:
        if column.is_categorical or column.kind == "datetime":
            continue
        x = learned[column.name].astype(float).dropna()
        of_means.append(abs(given.mean(column.name) - x.mean()) / (x.std() or 1.0))
        share = x.value_counts(normalize=True)
        for value in share.index[share >= COMMON][:MOST_VALUES]:
            half = 0.5 * column.step
            ends = [value - half, value + half] if half else [np.nextafter(value, -np.inf), value]
            below, up_to = given.marginal(column.name).cdf(ends)
            of_values.append(abs(up_to - below - share[value]))
    return of_values, of_means


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="*", choices=list(TABLES), default=list(TABLES)),
        seeds=dict(type=int, nargs="+", default=[0, 1]),
    )
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for table in ["insurance"] if options.quick else options.tables:
        frame = read(options.data, TABLES[table])
        for seed in options.seeds:
            some = frame.sample(min(len(frame), MOST_ROWS), random_state=seed).reset_index(drop=True)
            learned, held_out = (
                part.reset_index(drop=True) for part in (some[: int(SHARE * len(some))], some[int(SHARE * len(some)) :])
            )
            joint = jf.HiddenTreeForest(random_state=seed).fit(learned).joint_
            of_values, of_means = errors(joint, learned)
            log_density = joint.log_density(held_out)
            rows.append(
                {
                    "table": table,
                    "seed": seed,
                    "error of probabilities": float(np.mean(of_values or [0.0])),
                    "largest": float(np.max(of_values or [0.0])),
                    "error of means": float(np.mean(of_means or [0.0])),
                    "held-out log-density": float(log_density[np.isfinite(log_density)].mean()),
                }
            )
            progress(str(rows[-1]))
    finish("point_masses", {"Hidden trees beside the learned rows": rows}, {"rows": MOST_ROWS}, options.quick)


if __name__ == "__main__":
    main()
