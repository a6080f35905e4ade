"""Measures which rules between columns are found, in generated tables with planted rules and in real tables.

A generated table has ten planted rules of all kinds beside ten near misses of the same forms, and columns that depend
on each other without a rule. Four tables of each size make forty of each. Both directions of a rounded conversion of
units are right, so that rules are compared by their kind and columns.

With ``--limits``, rules about combinations are found in three quarters of a table, by several limits on how rare a
combination may be, and the other quarter shows which of them have exceptions.
"""

from __future__ import annotations

import re
import warnings
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read, timed, verdict
from _rules_tables import table

from jointforest.data.rules import functions
from jointforest.data.rules.contradictions import combined, ranked
from jointforest.data.rules.find import find_rules
from jointforest.data.rules.rule import Combinations, Rule
from jointforest.data.schema import Schema
from jointforest.learners.rows import read_training_rows

SIZES = (500, 2_000, 10_000, 100_000, 1_000_000)
SEEDS = 4
REAL = (
    "flights/hflights", "adult_train", "insurance", "large/fremtpl2freq", "synth/beijing", "synth/shoppers",
    "gef/electricity", "gef/bank", "gef/wine", "gef/segment",
)  # fmt: skip


COMBINED = ("adult_train", "gef/bank", "synth/shoppers", "gef/krvskp", "gef/phishing", "gef/jungle")
SPLITS = 12
LIMITS = {"3 rows": (3, 3), "10 rows": (10, 10), "10 rows, or 3 common ones": (10, 3)}
"""Fewest rows of each combination, and fewest where all are about as common as of independent columns."""


def identity(text: str) -> tuple[str, frozenset[str]]:
    """Kind and columns of a planted rule; of columns that are missing together any may stand for the others."""
    kind = next(k for k in ("combinations", "missing iff", "missing together", "->", " = ", "<") if k in text)
    names = re.findall(r"[rmc]\d?_\w+", text)
    return kind, frozenset(name.replace("weight", "delay") if kind == "missing iff" else name for name in names)


def found_in(frame: pd.DataFrame) -> tuple[float, tuple[Rule, ...]]:
    """Seconds of the search, and the rules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = read_training_rows(frame, None)
    return timed(lambda: find_rules(rows.schema, rows.X))


def generated(n: int, seeds: int) -> dict[str, Any]:
    """Planted rules found and false finds in tables of n rows."""
    hit = planted = false = told = 0
    seconds = []
    for seed in range(seeds):
        frame, groups = table(n, seed)
        spent, found = found_in(frame)
        got = {identity(str(rule)) for rule in found if not rule.exceptions}
        extra = got - {identity(text) for group in groups for text in group}
        hit += sum(all(identity(text) in got for text in group) for group in groups)
        planted += len(groups)
        false += len(extra)
        told += sum(rule.exceptions > 0 for rule in found)
        seconds.append(spent)
        progress(f"{n} rows, seed {seed}: {spent:.1f} s, false finds {sorted(map(str, extra))}")
    return {"rows": n, "columns": frame.shape[1], "planted": planted, "found": hit, "false finds": false,
            "told with exceptions": told, "seconds, most": max(seconds)}  # fmt: skip


def real(name: str, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rules of a real table."""
    spent, found = found_in(frame)
    progress(f"{name}: {len(found)} rules, {spent:.1f} s")
    return [{"table": name, "rule": str(rule), "rows": rule.rows, "exceptions": rule.exceptions} for rule in found]


def new_combinations(rule: Combinations, schema: Schema, X: np.ndarray, others: np.ndarray) -> int:
    """Combinations of values that rows X have, which other rows do not have."""
    columns = [schema.index(name) for name in rule.of]
    both = np.vstack([others[:, columns], X[:, columns]])
    known = np.all([np.isin(x, x[: len(others)]) & ~np.isnan(x) for x in both.T], axis=0)
    key = np.full(len(both), -1)
    key[known] = combined([ranked(x) for x in both[known].T])
    before, after = key[: len(others)], key[len(others) :]
    return len(np.setdiff1d(after[after >= 0], before))


def by_limits(name: str, frame: pd.DataFrame, splits: int) -> dict[str, Any]:
    """Rules about combinations found in three quarters of a table, and those that the other quarter contradicts."""
    rows = read_training_rows(frame, None)
    n = 3 * len(rows.X) // 4
    found: dict[str, Any] = {"table": name, "rows": n}
    for limit, (fewest, common) in LIMITS.items():
        total = wrong = 0
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(rows.X))
            learn, others = rows.X[np.sort(order[:n])], rows.X[np.sort(order[n:])]
            with mock.patch.multiple(functions, _FEWEST=fewest, _FEWEST_COMMON=common):
                rules = [rule for rule in find_rules(rows.schema, learn) if isinstance(rule, Combinations)]
            total += len(rules)
            wrong += sum(new_combinations(rule, rows.schema, others, learn) > 0 for rule in rules)
        found |= {f"found, {limit}": total, f"contradicted, {limit}": wrong}
    progress(f"{found}")
    return found


def main() -> None:
    options = arguments(
        __doc__,
        limits=dict(action="store_true", help="compare limits on the rows of each combination instead"),
        tables=dict(nargs="+", default=list(COMBINED), help="tables of --limits"),
    )
    if options.limits:
        splits = 1 if options.quick else SPLITS
        rows = [by_limits(name, read(options.data, name), splits) for name in options.tables]
        finish("rules", {"limits of combinations": rows}, {"splits": splits}, options.quick, "limits")
        return
    sizes, names = (SIZES[:1], REAL[2:3]) if options.quick else (SIZES, REAL)
    made = [generated(n, 1 if options.quick else SEEDS) for n in sizes]
    for row in made:
        row |= verdict(row["false finds"] + row["planted"] - row["found"], 0)
    tables = {
        "generated tables": made,
        "real tables": [row for name in names for row in real(name, read(options.data, name))],
    }
    finish("rules", tables, {"seeds": SEEDS}, options.quick, "found")


if __name__ == "__main__":
    main()
