"""Learns histories of 20,000 subjects, draws as many, and compares them with the table and with held-out subjects.

The table is that of the sequential challenge of the MOSTLY AI Prize 2025 (stage 2): ``training.parquet`` and
``holdout.parquet`` in the folder ``sequences`` of ``--data``, or in ``--folder``. Any other two tables will do: name
their columns of subjects and times with ``--group`` and ``--order``.

With ``--scale N``, visits of N patients are made instead, and the time and memory of each question are measured, on one
thread; for forecasts also with the smoothing that suits them.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
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
FORECAST = 10_000
"""Subjects of a forecast."""
PER_THREAD = 5_000
"""Subjects that a thread is to forecast in a second."""


def part_of(frame: pd.DataFrame, group: str, share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a random share of the subjects, and those of the others."""
    subjects = frame[group].unique()
    chosen = np.random.default_rng(seed).random(len(subjects)) < share
    is_chosen = frame[group].isin(set(subjects[chosen]))
    return frame[is_chosen], frame[~is_chosen]


def measure(
    training: pd.DataFrame,
    holdout: pd.DataFrame,
    group: str,
    order: str | None,
    smoothing: float | str,
    seed: int,
) -> dict[str, list[dict[str, Any]]]:
    """Tables of seconds, of accuracy and of two-sample tests."""
    learner = jf.HistoryForest(smoothing=smoothing, random_state=seed)
    fit, joint = timed(lambda: learner.fit(training, group=group, order=order).joint_)
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
        "Classifier two-sample test of drawn and held-out subjects: 1 - (2 AUC - 1)": tests,
        "Aims": aims,
    }


def scale(n_subjects: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Processor seconds of learning from made visits and of questions, and the greatest memory of the process."""
    visits = jf.datasets.make_visits(n_subjects, random_state=seed)
    new = jf.datasets.make_visits(FORECAST, random_state=seed + 1)
    rows: list[dict[str, Any]] = []

    def measured(smoothing: str, what: str, ask: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = ask()
        seconds = time.process_time() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        rows.append({"smoothing": smoothing, "what": what, "seconds": seconds, "peak GB": memory})
        progress(f"{rows[-1]}")
        return found

    models, forecasts = [], []

    def ask(smoothing: float | str) -> None:
        learner, name = jf.HistoryForest(smoothing=smoothing, random_state=seed, n_jobs=1), str(smoothing)
        joint = measured(name, "learn", lambda: learner.fit(visits, group="patient", order="date").joint_)
        measured(name, "log-density", lambda: joint.log_density(visits, n_jobs=1))
        measured(name, "draw as many subjects", lambda: joint.sample(n_subjects, seed, n_jobs=1))
        measured(name, f"forecast of {FORECAST:,} rows", lambda: joint.forecast(new, random_state=seed, n_jobs=1))
        rate = FORECAST / rows[-1]["seconds"]
        held_out = float(joint.log_density(new, n_jobs=1).mean())
        models.append({"smoothing": name, "leaves": joint.model.n_leaves, "held-out log-density": held_out})
        forecasts.append({"smoothing": name, "subjects a second": rate} | verdict(rate, PER_THREAD, at_most=False))

    ask("auto")
    ask(1.0)
    size = {"subjects": n_subjects, "rows": len(visits), "columns": visits.shape[1]}
    return {"Made visits": [size], "Joints": models, "One thread": rows, "Forecasts of one step": forecasts}


def main() -> None:
    options = arguments(
        __doc__,
        scale={"type": int, "metavar": "N", "help": "measure time and memory with N made subjects"},
        folder={"type": Path, "help": "folder of training.parquet and holdout.parquet"},
        group={"default": "group_id", "help": "column of subjects"},
        order={"help": "column of times; default: rows as they stand"},
        smoothing={"default": "auto", "help": "smoothing of the learner, a number or auto (default)"},
        validate={
            "action": "store_true",
            "help": "hold out 20 %% of the training subjects in place of holdout.parquet",
        },
    )
    if options.scale:
        jf.fit(few := jf.datasets.make_visits(100), group="patient", order="date").forecast(few)  # compiles
        finish("sequences.scale", scale(options.scale, options.seed), {"seed": options.seed}, options.quick)
        return
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
    smoothing = options.smoothing if options.smoothing == "auto" else float(options.smoothing)
    tables = measure(training, holdout, options.group, options.order, smoothing, options.seed)
    settings = {"seed": options.seed, "validate": options.validate, "smoothing": options.smoothing}
    name = "sequences.validate" if options.validate else "sequences"
    finish(name if smoothing == "auto" else f"{name}.smoothing-{smoothing:g}", tables, settings, options.quick)


if __name__ == "__main__":
    main()
