"""Compare standard errors of answers with the spread of answers over bootstrap refits.

For each table a learner is fitted to the table, and to bootstrap samples of its rows. Random questions are asked of all
fits: probabilities of levels and means of numbers, given one or two conditions. The spread of the refits' answers from
their 5 % to their 95 % quantile is divided by the width of the 90 % interval that `Posterior.standard_error` gives.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import jointforest as jf

RESULTS = Path(__file__).parent / "results"


def questions(joint: jf.Joint, frame: pd.DataFrame, n: int, rng: np.random.Generator) -> list[tuple[dict, str, Any]]:
    """Evidence of one or two columns that stands for 30 rows at least, a column, and the level asked for."""
    asked: list[tuple[dict, str, Any]] = []
    while len(asked) < n:
        names = rng.choice(frame.columns, 3, replace=False).tolist()
        given = {}
        for name in names[1 : 2 + int(rng.integers(2))]:
            values = frame[name].dropna()
            value = values.iloc[int(rng.integers(len(values)))]
            if joint.levels(name):
                given[name] = value
            else:
                low, high = np.sort(rng.choice(values.to_numpy(), 2))
                given[name] = jf.between(float(low), float(high))
        known = joint.given(given)
        if not known.n_rows >= 30:
            continue
        levels = joint.levels(names[0])
        level = levels[int(rng.integers(len(levels)))] if levels else None
        asked.append((given, names[0], level))
    return asked


def answer(joint: jf.Joint, given: dict, column: str, level: Any) -> float:
    """The probability of the level, or the mean of the column."""
    known = joint.given(given)
    return float(known.mean(column)) if level is None else float(known.probability({column: level}))


def compare(frame: pd.DataFrame, learner: Any, n_refits: int, n_questions: int) -> dict[str, float]:
    """Ratios of the spread of refits and the interval of the standard error, over the questions."""
    rng = np.random.default_rng(0)
    joint = learner.fit(frame).joint_
    asked = questions(joint, frame, n_questions, rng)
    answers = np.full((n_refits, len(asked)), np.nan)
    for b in range(n_refits):
        sample = frame.iloc[rng.integers(0, len(frame), len(frame))].reset_index(drop=True)
        refit = learner.fit(sample).joint_
        for k, (given, column, level) in enumerate(asked):
            try:
                answers[b, k] = answer(refit, given, column, level)
            except ValueError:  # a level that this sample lacks
                continue
    low, high = np.nanquantile(answers, [0.05, 0.95], axis=0)
    error = []
    for given, column, level in asked:
        of = column if level is None else {column: level}
        error.append(joint.given(given).standard_error(of))
    ratio = (high - low) / (2 * 1.645 * np.array(error))
    return {
        "questions": len(asked),
        "refits": n_refits,
        "median ratio": float(np.median(ratio)),
        "5 % quantile": float(np.quantile(ratio, 0.05)),
        "95 % quantile": float(np.quantile(ratio, 0.95)),
        "within 1.5": float(np.mean((ratio > 1 / 1.5) & (ratio < 1.5))),
    }


def tables(folder: Path | None, n: int) -> dict[str, pd.DataFrame]:
    """Penguins, which ship, and rows of tables of the folder."""
    found = {"penguins": pd.DataFrame(jf.datasets.load_penguins())}
    for name, path in {"adult": "adult_train.parquet", "insurance": "insurance.parquet"}.items():
        if folder is not None and (folder / path).exists():
            frame = pd.read_parquet(folder / path)
            found[name] = frame.sample(min(n, len(frame)), random_state=0).reset_index(drop=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with adult_train.parquet and insurance.parquet")
    parser.add_argument("--refits", type=int, default=200)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--rows", type=int, default=3000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {}
    for name, frame in tables(args.data, args.rows).items():
        learners = {
            "joint tree": jf.JointTree(random_state=0),
            "hidden tree": jf.HiddenTreeForest(n_states=16, random_state=0),
        }
        for kind, learner in learners.items():
            found = compare(frame, learner, args.refits, args.questions)
            results[f"{name}, {kind}"] = found
            print(f"{name:<10} {kind:<12}", "  ".join(f"{key} {value:.2f}" for key, value in found.items()), flush=True)
    (RESULTS / "standard_errors.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
