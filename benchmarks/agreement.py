"""Compares the marginals of joints with those of the rows that they were learned from.

Numbers and dates: Kolmogorov distance between the exact distribution function of the joint and that of the known
cells, at no more than 500 values. Levels: total variation distance. The table names the worst column of each table and
learner, and counts the columns above 0.02. ``--rake`` measures the same before and after `Joint.rake`, learned from
three quarters of the rows, and the gain in log-density of the others. Recorded lines of other tables are kept.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read, recorded_tables, timed

import jointforest as jf

LEARNERS = {
    "AdversarialForest": jf.AdversarialForest,
    "AdversarialForest, normal": lambda **k: jf.AdversarialForest(leaf="normal", **k),
    "AdversarialForest, quantile": lambda **k: jf.AdversarialForest(leaf="quantile", **k),
    "JointTree": jf.JointTree,
    "JointTree, quantile": lambda **k: jf.JointTree(leaf="quantile", **k),
    "GenerativeForest": None,
    "GenerativeForest, auto": None,
    "HiddenTreeForest": jf.HiddenTreeForest,
}
WITH_TARGET = {"GenerativeForest": {}, "GenerativeForest, auto": {"leaf": "auto"}}
USUAL = ("AdversarialForest", "JointTree", "GenerativeForest")
TITLE, SUMMARY, RAKED = "Farthest column of each table", "Summary", "Raked: farthest column, gain of held-out rows"
LEAST, ROWS, POINTS, LIMIT = 1_000, 5_000, 500, 0.02
LEVELS = ("categorical", "boolean", "ordered")


def tables(data: Path) -> dict[str, dict]:
    """What the manifest says of each table of enough rows; of split tables the part to learn from."""
    known = json.loads((data / "manifest.json").read_text())
    return {
        name: facts
        for name, facts in known.items()
        if facts["rows"] >= LEAST
        and (data / f"{name}.parquet").exists()
        and not name.endswith((".test", ".valid", "_test"))
    }


def learned(learner: str, frame: pd.DataFrame, target: str | None, seed: int) -> jf.Joint | None:
    """The joint; None of a learner that needs a target where there is none."""
    make = LEARNERS[learner]
    if make is None:
        if target is None:
            return None
        frame = frame[frame[target].notna()].reset_index(drop=True)
        is_number = pd.api.types.is_float_dtype(frame[target]) or frame[target].nunique() > 50
        make = jf.GenerativeForestRegressor if is_number else jf.GenerativeForestClassifier
        return make(random_state=seed, **WITH_TARGET[learner]).fit(frame.drop(columns=target), frame[target]).joint_
    return make(random_state=seed).fit(frame).joint_


def distance(joint: jf.Joint, cells: pd.Series) -> float:
    """Of one column's known cells and the joint's marginal: Kolmogorov, of levels total variation."""
    name, known = cells.name, cells.dropna()
    marginal = joint.marginal(name)
    if joint.kinds[name] in LEVELS:
        share = pd.Series(marginal.proba())
        rows = known.value_counts(normalize=True).reindex(share.index).fillna(0.0)
        return float(0.5 * np.abs(share.to_numpy(float) - rows.to_numpy(float)).sum())
    known = np.sort(known.to_numpy())
    values, count = np.unique(known, return_counts=True)
    upper = np.cumsum(count) / len(known)
    step = joint.schema.columns[joint.schema.index(name)].step
    if step > 0.0 and values.dtype.kind in "iuf":  # numbers that only rounding tells apart are one
        last = np.append(np.diff(values.astype(float)) > step / 4, True)
        values, upper = values[last], upper[last]
    count = np.diff(upper, prepend=0.0)
    lower = upper - count
    if len(values) > POINTS:
        jumps = np.argsort(-count, kind="stable")[: POINTS // 5]  # where CDFs are most likely to part
        even = np.searchsorted(upper, np.arange(1, POINTS - POINTS // 5) / (POINTS - POINTS // 5))
        at = np.unique(np.concatenate([[0, len(values) - 1], jumps, even]))
        values, upper, lower = values[at], upper[at], lower[at]
    found = np.abs(marginal.cdf(values) - upper).max()
    if joint.kinds[name] in ("continuous", "mixed"):
        found = max(found, np.abs(marginal.cdf(np.nextafter(values.astype(float), -np.inf)) - lower).max())
    return float(found)


def one(frame: pd.DataFrame, table: str, learner: str, target: str | None, seed: int) -> list[dict]:
    """A line a column of one table under one learner, the farthest first; none if it cannot learn it."""
    seconds, joint = timed(lambda: learned(learner, frame, target, seed))
    if joint is None:
        return []
    if LEARNERS[learner] is None:
        frame = frame[frame[target].notna()]
    lines = [
        {"table": table, "learner": learner, "rows": len(frame), "column": name, "kind": joint.kinds[name],
         "distance": distance(joint, frame[name]), "seconds": seconds}
        for name in joint.columns if frame[name].notna().any()
    ]  # fmt: skip
    return sorted(lines, key=lambda line: -line["distance"])


def raked(frame: pd.DataFrame, table: str, learner: str, seed: int) -> dict:
    """Farthest column before and after raking, and what held-out rows gain; a message where it would be too large."""
    n = 3 * len(frame) // 4
    learn, test = frame.iloc[:n].reset_index(drop=True), frame.iloc[n:].reset_index(drop=True)
    joint = learned(learner, learn, None, seed)
    names = [name for name in joint.columns if learn[name].notna().any()]
    before = [distance(joint, learn[name]) for name in names]
    line = {
        "table": table,
        "learner": learner,
        "rows": n,
        "before": max(before),
        "beyond": sum(np.array(before) > LIMIT),
    }
    try:
        seconds, better = timed(lambda: joint.rake(learn))
    except ValueError as error:
        return line | {"after": None, "failed": str(error)[:60]}
    after = [distance(better, learn[name]) for name in names]
    gain = better.log_density(test) - joint.log_density(test)
    size = len(better.distribution.forest.leaves.tree) / len(joint.distribution.forest.leaves.tree)
    return line | {
        "after": max(after), "beyond after": sum(found > LIMIT for found in after), "gain": gain.mean(),
        "its error": gain.std() / np.sqrt(len(gain)), "size": size, "seconds": seconds,
    }  # fmt: skip


def farthest(lines: list[dict]) -> dict:
    """The line of a table: its farthest column."""
    beyond = [line for line in lines if line["distance"] > LIMIT]
    first = lines[0]
    keys = ("table", "learner", "rows", "column", "kind", "distance")
    found = {key: first[key] for key in keys}
    return found | {"columns": len(lines), "beyond": len(beyond), "seconds": first["seconds"]}


def summary(lines: list[dict]) -> list[dict]:
    """How many tables and columns of each learner are beyond the limit."""
    rows = []
    for learner in dict.fromkeys(line["learner"] for line in lines):
        mine = [line for line in lines if line["learner"] == learner]
        rows.append({
            "learner": learner, "tables": len(mine), "tables beyond": sum(line["beyond"] > 0 for line in mine),
            "columns": sum(line["columns"] for line in mine), "columns beyond": sum(line["beyond"] for line in mine),
            "farthest": max(line["distance"] for line in mine),
            "median of farthest": float(np.median([line["distance"] for line in mine])),
        })  # fmt: skip
    return rows


def recorded(title: str) -> dict[tuple[str, str], dict]:
    """Lines of earlier runs by table and learner."""
    lines = recorded_tables("agreement").get(title, [])
    return {(line["table"], line["learner"]): line for line in lines}


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(
        __doc__,
        tables=dict(nargs="+", metavar="TABLE", help="default: all of 1,000 rows and more"),
        learners=dict(nargs="+", choices=list(LEARNERS), default=list(USUAL)),
        rows=dict(type=int, default=ROWS, help="most rows of a table, at random"),
        columns=dict(action="store_true", help="print every column beyond the limit"),
        rake=dict(action="store_true", help="before and after raking"),
    )
    known = tables(options.data)
    names = ["gef/cmc"] if options.quick else options.tables or list(known)
    rows = LEAST if options.quick else options.rows
    found, after = ({}, {}) if options.quick else (recorded(TITLE), recorded(RAKED))
    for name in names:
        frame = read(options.data, name).dropna(axis=1, how="all")
        frame = frame.iloc[np.random.default_rng(options.seed).permutation(len(frame))[:rows]].reset_index(drop=True)
        for learner in options.learners:
            if options.rake:
                after[name, learner] = raked(frame, name, learner, options.seed)
                progress(str(after[name, learner]))
                continue
            lines = one(frame, name, learner, known[name].get("target"), options.seed)
            if lines:
                found[name, learner] = farthest(lines)
                progress(str(found[name, learner]))
                if options.columns:
                    for line in lines:
                        if line["distance"] > LIMIT:
                            progress(f"    {line['column']} ({line['kind']}): {line['distance']:.4f}")
    order = [(name, learner) for name in known for learner in LEARNERS]
    lines = [found[key] for key in sorted(found, key=order.index)]
    of_raked = [after[key] for key in sorted(after, key=order.index)]
    settings = {"seed": options.seed, "rows": rows, "limit": LIMIT, "points": POINTS}
    finish("agreement", {TITLE: lines, SUMMARY: summary(lines), RAKED: of_raked}, settings, options.quick)


if __name__ == "__main__":
    main()
