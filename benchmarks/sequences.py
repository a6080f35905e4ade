"""Learns histories of 20,000 subjects, draws as many, and compares them with the table and with held-out subjects.

The table is that of the sequential challenge of the MOSTLY AI Prize 2025 (stage 2): ``training.parquet`` and
``holdout.parquet`` in the folder ``sequences`` of ``--data``, or in ``--folder``. Any other two tables will do: name
their columns of subjects and times with ``--group`` and ``--order``.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, timed, verdict

import jointforest as jf

AIMS = {"columns": 0.991, "pairs": 0.972, "triples": 0.928, "distinct": 0.984}
"""Accuracy."""
MOST_SECONDS = 600.0
"""Of learning and drawing, on two cores."""


def part_of(frame: pd.DataFrame, group: str, share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a random share of the subjects, and those of the others."""
    subjects = frame[group].unique()
    chosen = np.random.default_rng(seed).random(len(subjects)) < share
    is_chosen = frame[group].isin(set(subjects[chosen]))
    return frame[is_chosen], frame[~is_chosen]


def measure(
    training: pd.DataFrame, holdout: pd.DataFrame, group: str, order: str | None, seed: int
) -> dict[str, list[dict[str, Any]]]:
    """Tables of seconds, of accuracy and of two-sample tests."""
    fit, joint = timed(lambda: jf.fit(training, group=group, order=order, random_state=seed))
    progress(f"learned in {fit:.1f} s")
    n = training[group].nunique()
    draw, _ = timed(lambda: joint.sample(n, seed))
    score, log_density = timed(lambda: joint.log_density(holdout))
    found = joint.fidelity(training, holdout, random_state=seed)
    accuracy = [
        {"histories": name} | asdict(one) for name, one in (("drawn", found.drawn), ("held out", found.held_out))
    ]
    aims = [
        {"figure": name, "value": getattr(found.drawn, name)} | verdict(getattr(found.drawn, name), aim, at_most=False)
        for name, aim in AIMS.items()
    ]
    aims.append({"figure": "seconds", "value": fit + draw} | verdict(fit + draw, MOST_SECONDS))
    tests = [
        {"from": name, "score": test.score, "classifier": test.classifier, "used most": ", ".join([*test.columns][:4])}
        for name, test in (("two consecutive rows", found.told_apart_rows), ("summaries", found.told_apart_subjects))
    ]
    size = {"subjects": n, "rows": len(training), "trees": joint.model.n_trees, "leaves": joint.model.n_leaves}
    seconds = {"fit s": fit, "draw s": draw, "log-density s": score, "held-out log-density": float(log_density.mean())}
    return {
        "Histories, and the joint learned from them": [size | seconds],
        "Accuracy: 1 - total variation distance from the table": accuracy,
        "Told apart from held-out subjects: 1 - (2 AUC - 1)": tests,
        "Aims": aims,
    }


def main() -> None:
    options = arguments(
        __doc__,
        folder={"type": Path, "help": "folder of training.parquet and holdout.parquet"},
        group={"default": "group_id", "help": "column of subjects"},
        order={"help": "column of times; default: rows as they stand"},
        validate={
            "action": "store_true",
            "help": "hold out 20 %% of the training subjects in place of holdout.parquet",
        },
    )
    folder = options.folder or options.data / "sequences"
    training = pd.read_parquet(folder / "training.parquet")
    if options.quick:
        training, _ = part_of(training, options.group, 0.05, 1)
    if options.validate or options.quick:
        training, holdout = part_of(training, options.group, 0.8, 2)
    else:
        holdout = pd.read_parquet(folder / "holdout.parquet")
    few = training[training[options.group].isin(set(training[options.group].unique()[:100]))]
    jf.fit(few, group=options.group, order=options.order, random_state=0).fidelity(few, few)  # compiles
    tables = measure(training, holdout, options.group, options.order, options.seed)
    settings = {"seed": options.seed, "validate": options.validate}
    finish("sequences.validate" if options.validate else "sequences", tables, settings, options.quick)


if __name__ == "__main__":
    main()
