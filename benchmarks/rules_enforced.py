"""Compares hidden trees that enforce some or all of the rules found in a table with hidden trees that enforce none.

Measured on each table: rules found and enforced, rows of 50,000 drawn ones that break a rule, the log-likelihood of
held-out rows, the score of the classifier two-sample test against held-out rows, what XGBoost learns from drawn rows,
and seconds of learning. The rules by which draws are judged are those of the rows that were learned, in all cases.
"""

from __future__ import annotations

import time
import warnings
from contextlib import nullcontext
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read, recorded_tables, timed, verdict
from sklearn.metrics import r2_score, roc_auc_score
from xgboost import XGBClassifier, XGBRegressor

import jointforest as jf
from jointforest.data.rules.contradictions import combined, contradicted, ranked
from jointforest.data.rules.rule import Combinations, Function, Rule

TABLES = {
    "hflights": ("flights/hflights", "ArrDelay"), "adult": ("adult_train", "income"),
    "insurance": ("insurance", "charges"), "beijing": ("synth/beijing", "pm2.5"),
    "shoppers": ("synth/shoppers", "Revenue"), "bank": ("gef/bank", "y"), "segment": ("gef/segment", "class"),
    "wine": ("gef/wine", "quality"),
}  # fmt: skip
"""File of each table, and the column that XGBoost predicts."""
LEARN, TEST, DRAWN = 20_000, 5_000, 50_000
NO_SUMS = "auto without sums"
"""What "auto" enforces, but found sums."""
SCORES = 3
"""Sets of drawn rows whose scores are averaged."""


def is_broken(rule: Rule, joint: jf.Joint, table: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Which drawn rows break a rule of a table, which shows what functions and combinations allow."""
    if not isinstance(rule, Function | Combinations):
        return contradicted(rule, joint.schema, drawn)
    columns = [joint.schema.index(name) for name in rule.columns]
    both = np.vstack([table[:, columns], drawn[:, columns]])
    known = ~np.isnan(both).any(axis=1)
    key = np.full(len(both), -1)
    key[known] = combined([ranked(x) for x in both[known].T])
    is_new = known & ~np.isin(key, key[: len(table)][known[: len(table)]])
    if isinstance(rule, Function):  # where the table knows what the other columns determine
        key[known] = combined([ranked(x) for x in both[known, :-1].T])
        is_new &= np.isin(key, key[: len(table)][known[: len(table)]])
    return is_new[len(table) :]


def predicts(rows: pd.DataFrame, test: pd.DataFrame, target: str) -> float:
    """How well XGBoost that learned drawn rows predicts: area under the curve of two levels, accuracy, or R^2."""
    rows, test = rows[rows[target].notna()], test[test[target].notna()]
    both = pd.concat([rows, test])
    others = [both[name] for name in both.columns.drop(target)]
    cells = [x if pd.api.types.is_numeric_dtype(x) else x.astype("category").cat.codes for x in others]
    X = np.column_stack([np.asarray(x, float) for x in cells])
    y = both[target]
    n = len(rows)
    settings = {"n_estimators": 100, "max_depth": 6, "n_jobs": 1, "random_state": 0}
    if y.nunique() > 2 and pd.api.types.is_numeric_dtype(y):
        number = y.to_numpy(float)
        return float(r2_score(number[n:], XGBRegressor(**settings).fit(X[:n], number[:n]).predict(X[n:])))
    code = y.astype(str).astype("category").cat.codes.to_numpy()
    model = XGBClassifier(**settings).fit(X[:n], code[:n])
    if y.nunique() > 2:
        return float(np.mean(model.predict(X[n:]) == code[n:]))
    return float(roc_auc_score(code[n:], model.predict_proba(X[n:])[:, 1]))


def run(name: str, learn: pd.DataFrame, test: pd.DataFrame, rules: str, seed: int) -> dict[str, Any]:
    """One joint, with or without rules."""
    no_sums = mock.patch("jointforest.learners.rules.AUTO_PLACES", {}) if rules == NO_SUMS else nullcontext()
    given = {"off": "off", "auto": "auto", "all": "all", NO_SUMS: "auto"}.get(rules, [rules])
    learner = jf.HiddenTreeForest(rules=given, random_state=seed, n_jobs=1)
    busy = time.process_time()
    with no_sums:
        seconds, joint = timed(lambda: learner.fit(learn).joint_)
    busy = time.process_time() - busy
    target = TABLES[name][1]
    rows = joint.sample(DRAWN, random_state=seed, missing=True)
    table, drawn = (joint._encode(frame)[0] for frame in (learn, rows))
    found = [rule for rule in joint.rules if not rule.exceptions]
    broken = [is_broken(rule, joint, table, drawn) for rule in found]
    enforced = [out for rule, out in zip(found, broken, strict=True) if rule.is_enforced]
    log_density = joint.log_density(test)
    possible = np.isfinite(log_density)
    size = len(test)
    scores = [
        jf.fidelity(rows.iloc[k * size : (k + 1) * size], test, only=["told_apart"], random_state=seed).told_apart.score
        for k in range(SCORES)
    ]
    return {
        "table": name, "rules": rules, "seed": seed, "rows": len(learn), "found": len(found), "enforced": len(enforced),
        "draws that break a rule": int(np.any(broken, axis=0).sum()) if broken else 0,
        "draws that break an enforced one": int(np.any(enforced, axis=0).sum()) if enforced else 0,
        "log-likelihood": float(log_density[possible].mean()), "impossible": int((~possible).sum()),
        "score": float(np.mean(scores)), "apart": float(np.ptp(scores)),
        "predicts": predicts(rows.iloc[: len(learn)], test, target),
        "real rows predict": predicts(learn, test, target), "seconds": seconds, "processor seconds": busy,
    }  # fmt: skip


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="+", default=list(TABLES), choices=list(TABLES)),
        rules=dict(
            nargs="+", default=["off", "auto", "all"], help=f"off, auto, all, {NO_SUMS!r} or a rule; off comes first"
        ),
    )
    runs = []
    warnings.simplefilter("ignore")
    for name in options.tables:
        frame = read(options.data, TABLES[name][0])
        order = np.random.default_rng(options.seed).permutation(len(frame))
        n = min(2_000 if options.quick else LEARN, int(0.8 * len(frame)))
        learn = frame.iloc[np.sort(order[:n])].reset_index(drop=True)
        test = frame.iloc[np.sort(order[n : n + TEST])].reset_index(drop=True)
        jf.HiddenTreeForest(n_states=2, max_iter=0, n_jobs=1).fit(learn.iloc[:400])  # compiles kernels
        for rules in options.rules:
            runs.append(run(name, learn, test, rules, options.seed))
            progress(", ".join(f"{key} {value}" for key, value in runs[-1].items()))
            runs[-1] |= verdict(runs[-1]["draws that break an enforced one"], 0)
            before = next(one for one in runs if (one["table"], one["rules"]) == (name, "off"))
            runs[-1]["times the seconds"] = runs[-1]["processor seconds"] / before["processor seconds"]
    if not options.quick:  # recorded runs of other tables and seeds are kept
        others = recorded_tables("rules_enforced").get("Hidden trees", [])
        runs = [row for row in others if row["table"] not in options.tables or row["seed"] != options.seed] + runs
    finish("rules_enforced", {"Hidden trees": runs}, {"seed": options.seed, "drawn": DRAWN}, options.quick)


if __name__ == "__main__":
    main()
