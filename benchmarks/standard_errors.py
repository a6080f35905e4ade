"""Compare standard errors of answers with the spread of answers over bootstrap refits.

For each table a learner is fitted to the table, and to bootstrap samples of its rows. Random questions are asked of all
fits: probabilities of levels and means of numbers, given one or two conditions. The spread of the refits' answers from
their 5 % to their 95 % quantile is divided by the width of the 90 % interval that `Posterior.standard_error` gives.

With ``--work FOLDER`` the answers of the refits are kept there, and the next run goes on where this one stopped.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import jointforest as jf

RESULTS = Path(__file__).parent / "results"
LEARNERS = {
    "joint tree": lambda: jf.JointTree(random_state=0),
    "hidden tree": lambda: jf.HiddenTreeForest(n_states=16, random_state=0),
    "adversarial forest": lambda: jf.AdversarialForest(random_state=0),
}
CLEAR = 5.0
"""Least number of rows that a probability and its opposite stand for, where refits show how uncertain it is."""


class Question(NamedTuple):
    """The probability of a level of a column, or without a level the mean of the column, given evidence."""

    given: dict[str, Any]
    column: str
    level: Any

    def ask(self, joint: jf.Joint) -> float:
        known = joint.given(self.given)
        return float(known.mean(self.column) if self.level is None else known.probability({self.column: self.level}))

    def error(self, joint: jf.Joint) -> float:
        of = self.column if self.level is None else {self.column: self.level}
        return float(joint.given(self.given).standard_error(of))


def questions(joint: jf.Joint, frame: pd.DataFrame, n: int) -> list[Question]:
    """Evidence of one or two columns that stands for 30 rows at least, a column, and the level asked for."""
    rng, asked = np.random.default_rng(0), []
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
        if not joint.given(given).n_rows >= 30:
            continue
        levels = joint.levels(names[0])
        asked.append(Question(given, names[0], levels[int(rng.integers(len(levels)))] if levels else None))
    return asked


def refits(frame: pd.DataFrame, learner: Any, asked: list[Question], first: int, n: int) -> Iterator[list[float]]:
    """Answers of the refits from number ``first`` on; NaN where a sample lacks the level."""
    rng = np.random.default_rng(1)
    for b in range(n):
        rows = rng.integers(0, len(frame), len(frame))
        if b < first:
            continue
        joint = learner.fit(frame.iloc[rows].reset_index(drop=True)).joint_
        answers = []
        for question in asked:
            try:
                answers.append(question.ask(joint))
            except ValueError:
                answers.append(np.nan)
        yield answers


def answers_of(
    frame: pd.DataFrame, learner: Any, asked: list[Question], n: int, file: Path | None, end: float
) -> np.ndarray | None:
    """Answers of n refits, (n, questions); None if the time is over before."""
    found = json.loads(file.read_text()) if file is not None and file.exists() else []
    for answers in refits(frame, learner, asked, len(found), n):
        found.append(answers)
        if time.monotonic() > end and len(found) < n:
            break
    if file is not None:
        file.write_text(json.dumps(found))
    return np.array(found) if len(found) >= n else None


def compared(joint: jf.Joint, asked: list[Question], answers: np.ndarray) -> dict[str, float]:
    """Ratios of the spread of refits and the interval of the standard error, over the distinct questions."""
    low, high = np.nanquantile(answers, [0.05, 0.95], axis=0)
    ratio = (high - low) / (2 * 1.645 * np.array([question.error(joint) for question in asked]))
    distinct = sorted({str(question): k for k, question in enumerate(asked)}.values())
    n = np.array([joint.given(question.given).n_rows for question in asked])
    share = np.array([0.5 if q.level is None else q.ask(joint) for q in asked])
    is_clear = np.minimum(share, 1.0 - share) * n >= CLEAR
    found = {"refits": len(answers)}
    for name, kept in (("", np.ones(len(asked), bool)), (", clear", is_clear)):
        r = ratio[[k for k in distinct if kept[k]]]
        found |= {
            f"questions{name}": len(r),
            f"median ratio{name}": float(np.median(r)),
            f"5 % quantile{name}": float(np.quantile(r, 0.05)),
            f"95 % quantile{name}": float(np.quantile(r, 0.95)),
            f"within 1.5{name}": float(np.mean((r > 1 / 1.5) & (r < 1.5))),
            f"within 2{name}": float(np.mean((r > 0.5) & (r < 2.0))),
        }
    return found


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
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--work", type=Path, help="folder that keeps the answers of refits")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many minutes; needs --work")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    end = time.monotonic() + 60 * args.minutes
    if args.work:
        args.work.mkdir(parents=True, exist_ok=True)
    results = {}
    for name, frame in tables(args.data, args.rows).items():
        for kind, learner in LEARNERS.items():
            joint = learner().fit(frame).joint_
            asked = questions(joint, frame, args.questions)
            file = args.work / f"{name}-{kind}.json" if args.work else None
            answers = answers_of(frame, learner(), asked, args.refits, file, end)
            if answers is None:
                print("the time is over; run it again to go on")
                return
            results[f"{name}, {kind}"] = found = compared(joint, asked, answers)
            print(f"{name:<10} {kind:<18}", "  ".join(f"{key} {value:.2f}" for key, value in found.items()), flush=True)
    (RESULTS / "standard_errors.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
