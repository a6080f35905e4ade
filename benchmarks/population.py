"""Measures whether joints and drawn rows resemble the population, or only the rows that they were learned from.

Three quarters of each table are learned, the others are held out; Adult's test rows are not read. Measured: the score
of the classifier two-sample test (1 is best) against rows of the table and against as many held-out rows, the
advantage of guessing by density which rows were learned, and the log-density of both. For comparison there are rows
of the table drawn with replacement, and held-out rows beside the table. Binary tables have a line for the log-density
of their own validation rows; ``--test`` reads their test rows, after everything is learned from the other two parts.
``--causes`` shows where learned rows are more probable than held-out rows, ``--dropout`` compares passes that hide
cells with passes that do not, and ``--best`` lets `jf.fit` choose for likelihood with its best budget. Recorded runs of
other tables and seeds are kept.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from _common import arguments, finish, over_seeds, progress, read, recorded_tables, verdict

import jointforest as jf
from jointforest.data.discretization.discretizer import Scale, codes_of
from jointforest.data.discretization.learn import MAX_POINTS, learn_scale
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.evaluation.columns_and_pairs import TableCells, read_table_cells
from jointforest.evaluation.held_out import advantage
from jointforest.evaluation.two_sample_test import told_apart
from jointforest.learners.hidden_tree.constants import FIXED

FILES = {"adult": "adult_train", "beijing": "synth/beijing", "shoppers": "synth/shoppers", "bank": "gef/bank"}
BINARY = {"nltcs": 6.00, "plants": 12.30, "jester": 52.3, "dna": 80.0, "pumsb_star": 23.0}
"""Binary tables, and the negative log-likelihoods that one tree is to have."""
OBJECTIVES = ("draws", "likelihood")
RUNS, MEANS = "Every run", "Against the table and against held-out rows, mean over seeds"
CAUSES = (
    "Where learned rows are more probable than held-out rows",
    "Fewest rows that give a value a point mass inside a bin",
    "Rows that have a value, in as many new rows, by its number of learned rows",
)
DROPOUT = "Log-density of validation rows, or of held-out rows, by the share of cells that are hidden in passes"
BEST = "Validation rows of binary tables, best budget"
DROPOUT_STATES = 128
SHARE = 0.75
DRAWS = 3
"""Drawn tables of one joint whose scores are averaged: one score of 8,000 rows has a standard error of about .01."""


class Split:
    """A table cut into rows to learn from and rows held out."""

    def __init__(self, frame: pd.DataFrame, seed: int, most: int | None) -> None:
        order = np.random.default_rng(seed).permutation(len(frame))[:most]
        n = int(SHARE * len(order))
        self.learn, self.held_out = (frame.iloc[rows].reset_index(drop=True) for rows in (order[:n], order[n:]))
        schema = infer_schema(self.learn)
        self.cells, self.new = (
            read_table_cells(schema, self.learn, "table"),
            read_table_cells(schema, self.held_out, "held out"),
        )
        self.as_many = self.cells.take(np.arange(len(self.new.X)))
        self._schema = schema

    def read(self, rows: pd.DataFrame) -> TableCells:
        return read_table_cells(self._schema, rows, "drawn rows")


def scores(split: Split, drawn: list[pd.DataFrame], seed: int) -> dict[str, float]:
    """Mean scores of drawn tables against as many rows of the table, and against held-out rows."""
    rows = [split.read(some) for some in drawn]
    of_table, of_new = (
        float(np.mean([told_apart(real, some, seed + i).score for i, some in enumerate(rows)]))
        for real in (split.as_many, split.new)
    )
    return {"score": of_table, "score, held out": of_new, "difference": of_table - of_new}


def comparison(table: str, split: Split, seed: int) -> list[dict[str, Any]]:
    """Held-out rows beside the table, and rows of the table drawn with replacement."""
    n = len(split.learn)
    again = [split.learn.iloc[np.random.default_rng(seed + i).integers(n, size=n)] for i in range(DRAWS)]
    same = told_apart(split.as_many, split.new, seed).score
    return [
        {"table": table, "rows": "held-out rows", "seed": seed, "score": same},
        {"table": table, "rows": "the table, with replacement", "seed": seed} | scores(split, again, seed),
    ]


def of_learner(table: str, split: Split, name: str, learner: jf.HiddenTreeForest, seed: int) -> dict[str, Any]:
    """All figures of one learner."""
    start, busy = time.perf_counter(), time.process_time()
    joint = learner.fit(split.learn).joint_
    row: dict[str, Any] = {"table": table, "rows": name, "seed": seed}
    spent = {"seconds": time.perf_counter() - start, "processor seconds": time.process_time() - busy}
    n = len(split.learn)
    drawn = [joint.sample(n, random_state=seed + i, missing=True) for i in range(DRAWS)]
    row |= scores(split, drawn, seed)
    seen, unseen = joint.log_density(split.learn), joint.log_density(split.held_out)
    gained, error = advantage(seen, unseen)
    possible = np.isfinite(unseen)  # a few rows contradict rules of the learned ones, which are enforced
    row |= {"advantage": gained, "se": error, "log-density": float(seen.mean())}
    return row | {"held out": float(unseen[possible].mean()), "impossible": float(1.0 - possible.mean())} | spent


def causes(table: str, split: Split, seed: int, jobs: int) -> tuple[list[dict[str, Any]], ...]:
    """The tables of `CAUSES` for one hidden tree for draws, which enforces no rules."""
    learner = jf.HiddenTreeForest(rules="off", random_state=seed, n_jobs=jobs).fit(split.learn)
    hidden = learner.joint_.distribution.hidden
    frames = split.learn, split.held_out
    total, cells = [learner.joint_.log_density(rows) for rows in frames], [encode(hidden.schema, X)[0] for X in frames]
    columns = {j: column for j, column in enumerate(hidden.schema.columns) if not column.is_categorical}

    def inside(scales: dict[int, Scale]) -> dict[int, list[np.ndarray]]:
        """Log-densities inside the bins of each column, of learned rows and of held-out rows."""
        return {j: [np.nan_to_num(codes_of(scale, X[:, j])[1]) for X in cells] for j, scale in scales.items()}

    now = inside({j: hidden.scales[j] for j in columns})
    gap = {columns[j].name: float(learned.mean() - new.mean()) for j, (learned, new) in now.items()}
    nats = {f"values inside the bins of {column}": value for column, value in gap.items() if value > 0.02}
    nats["values inside the bins of other columns"] = sum(gap.values()) - sum(nats.values())
    nats["states of all columns"] = float(total[0].mean() - total[1].mean()) - sum(gap.values())

    points = []
    for text, most, singles in (("none", 0, False), ("two rows", MAX_POINTS, False), ("one row", MAX_POINTS, True)):
        with mock.patch("jointforest.data.discretization.learn.MAX_POINTS", most):
            bins = learner._most_bins(len(cells[0]))
            other = inside({j: learn_scale(c, cells[0][:, j], None, bins, 0.0, singles) for j, c in columns.items()})
        seen, unseen = (total[k] + sum(other[j][k] - now[j][k] for j in columns) for k in (0, 1))
        gained, error = advantage(seen, unseen)
        means = {"log-density": float(seen.mean()), "held out": float(unseen.mean())}
        points.append({"point masses from": text, "advantage": gained, "se": error} | means)

    top = max(columns, key=lambda j: gap[columns[j].name])
    value, count = np.unique(cells[0][:, top], return_counts=True)
    new = np.searchsorted(np.sort(cells[1][:, top]), [value, np.nextafter(value, np.inf)])
    met = (new[1] - new[0]) * len(cells[0]) / len(cells[1])
    met_by_count = [
        {"column": columns[top].name, "learned": n, "new": float(met[count == n].mean())} for n in (1, 2, 3)
    ]
    parts = [{"part": part, "nats": value} for part, value in nats.items()]
    return tuple([{"table": table, "seed": seed} | row for row in rows] for rows in (parts, points, met_by_count))


def binary(data: Path, table: str, objective: str, jobs: int, with_test: bool, quick: bool) -> dict[str, Any]:
    """One tree of a binary table: negative log-likelihood of its validation rows, or of its test rows."""
    learn, asked = read(data, f"debd/{table}.train"), read(data, f"debd/{table}.valid")
    if with_test:
        learn, asked = pd.concat([learn, asked], ignore_index=True), read(data, f"debd/{table}.test")
    learner = jf.HiddenTreeForest(objective=objective, random_state=0, n_jobs=jobs)
    start = time.perf_counter()
    joint = learner.fit(learn.iloc[:300] if quick else learn).joint_
    spent = time.perf_counter() - start
    chosen = learner.settings_
    row = {"table": table, "objective": objective, "NLL": -float(joint.log_density(asked).mean())}
    row |= verdict(row["NLL"], BINARY[table]) if with_test else {}
    return row | {"states": chosen.n_states, "leaves": chosen.n_leaves, "seconds": spent}


def of_dropout(data: Path, table: str, jobs: int, quick: bool) -> list[dict[str, Any]]:
    """Log-density of rows that were not learned, with `DROPOUT_STATES`, without dropout and with the share in use."""
    if table in BINARY:
        learn, new = read(data, f"debd/{table}.train"), read(data, f"debd/{table}.valid")
    else:
        split = Split(read(data, FILES[table]), 0, None)
        learn, new = split.learn, split.held_out
    states = 8 if quick else DROPOUT_STATES
    rows = []
    for share in (0.0, FIXED.dropout):
        learner = jf.HiddenTreeForest(n_states=states, objective="likelihood", random_state=0, n_jobs=jobs)
        with mock.patch("jointforest.learners.hidden_tree.choose.FIXED", replace(FIXED, dropout=share)):
            joint = learner.fit(learn.iloc[:5_000] if quick else learn).joint_
        rows.append({"table": table, "dropout": share, "log-density": float(joint.log_density(new).mean())})
    return rows


def best(data: Path, table: str, jobs: int, quick: bool) -> dict[str, Any]:
    """What `jf.fit` chooses for likelihood with its best budget, on validation rows of a binary table."""
    learn, new = read(data, f"debd/{table}.train"), read(data, f"debd/{table}.valid")
    start = time.perf_counter()
    joint = jf.fit(
        learn.iloc[:300] if quick else learn, budget="best", objective="likelihood", random_state=0, n_jobs=jobs
    )
    spent = time.perf_counter() - start
    chosen = ", ".join(joint.fitted_by.chosen)
    return {"table": table, "chosen": chosen, "NLL": -float(joint.log_density(new).mean()), "seconds": spent}


def kept(title: str, rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The recorded rows of a table, those measured anew in place of theirs."""
    known = {tuple(row[name] for name in names): row for row in recorded_tables("population").get(title, [])}
    return list((known | {tuple(row[name] for name in names): row for row in rows}).values())


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(
        __doc__,
        tables=dict(nargs="*", choices=list(FILES), default=list(FILES)),
        seeds=dict(type=int, nargs="+", default=[0, 1, 2]),
        binary=dict(nargs="*", choices=list(BINARY), default=list(BINARY)),
        objectives=dict(nargs="*", choices=OBJECTIVES, default=OBJECTIVES),
        causes=dict(action="store_true", help="show only what the differences come from"),
        dropout=dict(action="store_true", help="show only what dropout changes"),
        best=dict(action="store_true", help="show only what jf.fit chooses with its best budget, on binary tables"),
        test=dict(action="store_true", help="read the test rows of binary tables"),
        jobs=dict(type=int, default=-1),
    )
    runs: list[dict[str, Any]] = []
    found: list[list[dict[str, Any]]] = [[], [], []]
    trials: dict[str, list[dict[str, Any]]] = {DROPOUT: [], BEST: []}
    for table in (*options.tables, *options.binary):
        if options.dropout:
            trials[DROPOUT] += of_dropout(options.data, table, options.jobs, options.quick)
        if options.best and table in BINARY:
            trials[BEST].append(best(options.data, table, options.jobs, options.quick))
            progress(str(trials[BEST][-1]))
    is_main = not (options.dropout or options.best)
    for table in options.tables if is_main else ():
        for seed in options.seeds:
            split = Split(read(options.data, FILES[table]), seed, 1_500 if options.quick else None)
            if options.causes:
                for rows, more in zip(found, causes(table, split, seed, options.jobs), strict=True):
                    rows += more
                continue
            runs += comparison(table, split, seed)
            for objective in options.objectives:
                learner = jf.HiddenTreeForest(objective=objective, random_state=seed, n_jobs=options.jobs)
                runs.append(of_learner(table, split, f"hidden tree, {objective}", learner, seed))
                progress(str(runs[-1]))
    lines: list[dict[str, Any]] = []
    for table in options.binary if is_main and not options.causes else ():
        for objective in options.objectives:
            lines.append(binary(options.data, table, objective, options.jobs, options.test, options.quick))
            progress(str(lines[-1]))
    title = f"{'Test' if options.test else 'Validation'} rows of binary tables, one tree"
    if not options.quick:
        runs = kept(RUNS, runs, ("table", "rows", "seed"))
        lines = kept(title, lines, ("table", "objective"))
        keys = [
            ("table", "seed", "part"),
            ("table", "seed", "point masses from"),
            ("table", "seed", "column", "learned"),
        ]
        for name, key in ((DROPOUT, ("table", "dropout")), (BEST, ("table",))):
            trials[name] = kept(name, trials[name], key)
        found = [kept(title, rows, names) for title, rows, names in zip(CAUSES, found, keys, strict=True)]
    others = {name: rows for name, rows in recorded_tables("population").items() if not options.quick}
    means = over_seeds([{MEANS: [row for row in runs if row["seed"] == s]} for s in sorted({r["seed"] for r in runs})])
    tables = {
        name: rows
        for name, rows in (
            others | {RUNS: runs, title: lines} | means | dict(zip(CAUSES, found, strict=True)) | trials
        ).items()
        if rows
    }
    finish("population", tables, {"share": SHARE, "draws": DRAWS}, options.quick)


if __name__ == "__main__":
    main()
