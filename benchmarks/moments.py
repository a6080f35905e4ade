"""Compares means and standard deviations of columns under a joint with those of the learned rows.

For each learner and table: the worst ratio of standard deviations (or its inverse), and the worst difference of means
in standard deviations, with their columns. Columns of dates are left out.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read, timed

import jointforest as jf

TABLES = ("flights/hflights", "lognormal", "insurance", "adult_train", "gef/diabetes", "gef/segment", "jpt/abalone",
          "jpt/wine_quality", "jpt/bank", "jpt/dry_bean", "synth/shoppers", "outlier/thyroid")  # fmt: skip
LEARNERS = {
    "AdversarialForest, quantile": lambda seed: jf.AdversarialForest(leaf="quantile", random_state=seed),
    "AdversarialForest, normal": lambda seed: jf.AdversarialForest(leaf="normal", random_state=seed),
    "JointTree": lambda seed: jf.JointTree(leaf="quantile", random_state=seed),
    "JointTree(30, min_samples_leaf=10)": lambda seed: jf.JointTree(
        30, leaf="quantile", min_samples_leaf=10, random_state=seed
    ),
    "JointTree, normal": lambda seed: jf.JointTree(leaf="normal", random_state=seed),
}
ROWS = 10_000


def table(data: Path, name: str, rows: int, seed: int) -> pd.DataFrame:
    """At most so many rows at random; "lognormal" is a made column beside one that says a little of it."""
    rng = np.random.default_rng(seed)
    if name == "lognormal":
        z = rng.normal(size=rows)
        return pd.DataFrame({"x": np.exp(1.3 * z + 0.8), "sign": np.where(z + rng.normal(size=rows) > 0, "+", "-")})
    frame = read(data, name).dropna(axis=1, how="all")
    return frame.iloc[rng.permutation(len(frame))[:rows]].reset_index(drop=True)


def one(frame: pd.DataFrame, learner: str, seed: int) -> dict:
    """Figures of one table under one learner."""
    seconds, joint = timed(lambda: LEARNERS[learner](seed).fit(frame).joint_)
    ratio, shift = {}, {}
    for name in frame.columns[[pd.api.types.is_numeric_dtype(frame[c]) for c in frame]]:
        rows = frame[name].dropna().astype(float)
        sd = float(rows.std(ddof=0))
        if joint.kinds[name] in ("categorical", "boolean", "ordered") or not sd > 0:
            continue
        marginal = joint.marginal(name)
        found = float(np.sqrt(marginal.var()))
        ratio[name] = max(found / sd, sd / found)
        shift[name] = float(abs(marginal.mean() - rows.mean()) / sd)
    worst = {"ratio of sd": max(ratio, key=ratio.get), "shift of mean": max(shift, key=shift.get)}
    return {
        "ratio of sd": ratio[worst["ratio of sd"]],
        "its column": worst["ratio of sd"],
        "shift of mean": shift[worst["shift of mean"]],
        "of column": worst["shift of mean"],
        "seconds": seconds,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(
        __doc__,
        tables=dict(nargs="+", default=list(TABLES), metavar="TABLE"),
        learners=dict(nargs="+", choices=list(LEARNERS), default=list(LEARNERS)),
        rows=dict(type=int, default=ROWS, help="of each table, at most"),
    )
    tables, rows = (["lognormal"], 500) if options.quick else (options.tables, options.rows)
    lines = []
    for name in tables:
        frame = table(options.data, name, rows, options.seed)
        for learner in options.learners:
            lines.append({"table": name.split("/")[-1], "learner": learner} | one(frame, learner, options.seed))
            progress(str(lines[-1]))
    summary = []
    for learner in options.learners:
        mine = [line for line in lines if line["learner"] == learner]
        worst = {figure: max(line[figure] for line in mine) for figure in ("ratio of sd", "shift of mean")}
        summary.append({"learner": learner} | worst)
    settings = {"seed": options.seed, "rows": rows}
    finish("moments", {"Worst column": lines, "Worst of all": summary}, settings, options.quick)


if __name__ == "__main__":
    main()
