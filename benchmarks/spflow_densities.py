"""Compares log-densities of joints with those of SPFlow for the same circuits.

Forests of normal, uniform, quantile and LearnSPN leaves are converted (`Joint.to_spflow`) in an environment of its
own. Rows are complete, or have cells hidden. Sums, products, marginals and densities are SPFlow's own; only the
truncation of normals is ours.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, hide, progress, read, verdict
from peers import peer_python, run_json

import jointforest as jf

PINS = ["torch==2.13.0", "spflow==1.1.0", "numpy==2.4.6", "numba==0.68.0", "narwhals", "safetensors",
        "scikit-learn==1.9.1", "scipy==1.17.1", "threadpoolctl", "pandas", "pyarrow"]  # fmt: skip
RATES = (0.0, 0.3, 0.6)


def learners(kinds: dict, target: str, seed: int) -> dict:
    settings = {"epsilon": 0.0, "kinds": kinds, "random_state": seed}
    classifier = jf.GenerativeForestClassifier(3, leaf="spn", min_samples_leaf=100, max_depth=6, **settings)
    return {
        "adversarial forest, normal leaves": jf.AdversarialForest(5, leaf="normal", **settings),
        "adversarial forest, uniform leaves": jf.AdversarialForest(5, leaf="uniform", **settings),
        "joint tree, quantile leaves": jf.JointTree(leaf="quantile", min_samples_leaf=0.02, **settings),
        f"generative forest of {target}, LearnSPN leaves": classifier,
    }


def learned(learner: object, frame: pd.DataFrame, target: str) -> jf.Joint:
    if isinstance(learner, jf.GenerativeForestClassifier):
        return learner.fit(frame.drop(columns=target), frame[target]).joint_
    return learner.fit(frame).joint_


def compare(joint: jf.Joint, rows: pd.DataFrame, python: Path, seed: int) -> list[dict]:
    table = []
    for rate in RATES:
        some = hide(rows, rate, seed)[0]
        with tempfile.TemporaryDirectory() as folder:
            joint.save(Path(folder) / "one.joint")
            some.to_parquet(Path(folder) / "rows.parquet")
            theirs = run_json([python, HERE / "_spflow_worker.py", folder])
        ours = joint.log_density(some)
        theirs_log = np.array(theirs["log_density"], dtype=float)
        both = np.isfinite(ours) & np.isfinite(theirs_log)
        table.append({"hidden": rate, "leaves": joint.n_leaves, "rows": len(some), "of density 0": int((~both).sum()),
                      "same rows of density 0": bool((np.isfinite(ours) == np.isfinite(theirs_log)).all()),
                      "mean log-density": float(ours[both].mean()),
                      "largest difference": float(np.abs(ours - theirs_log)[both].max())})  # fmt: skip
        table[-1] |= verdict(table[-1]["largest difference"], 1e-9)
    return table


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(__doc__)
    python = peer_python("spflow", PINS)
    tables = {}
    for file, target in {"gef/credit-g": "class", "adult_train": "income"}.items():
        frame = read(options.data, file)
        frame = frame.sample(min(len(frame), 500 if options.quick else 2_000), random_state=options.seed)
        cut = len(frame) // 2
        learn, new = (part.reset_index(drop=True) for part in (frame.iloc[:cut], frame.iloc[cut:]))
        numbers = learn.select_dtypes("number").columns
        kinds = {str(name): "continuous" for name in numbers if name != target}
        rows = []
        for name, learner in learners(kinds, target, options.seed).items():
            found = compare(learned(learner, learn, target), new, python, options.seed)
            rows += [{"joint": name} | row for row in found]
            progress(str(rows[-1]))
        tables[f"{file}: {len(learn):,} rows learned from, {len(new):,} asked"] = rows
    finish("spflow_densities", tables, {"pins": PINS, "seed": options.seed}, options.quick)


if __name__ == "__main__":
    main()
