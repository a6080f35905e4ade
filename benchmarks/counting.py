"""Compares answers of joints with counting the rows that they learned from, by the loss on the other rows.

A table is cut into learned rows and a population. Random questions about one column, given nothing, one or two other
columns, are answered by the joint and by counting the learned rows that meet the evidence. The loss is the squared
difference to the population, in units of the variance that counting has with so many rows, and at most 25. A ratio of
losses below 1 says that the joint is the better tool. The second table says how far the moments of each column, given
nothing, are from those of the learned rows.
"""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read, timed
from pandas.api.types import is_bool_dtype, is_numeric_dtype

import jointforest as jf

TABLES = ("adult_train", "insurance", "flights/hflights", "large/fremtpl2freq", "gef/electricity", "gef/bank",
          "gef/gesture", "jpt/dry_bean", "jpt/wine_quality")  # fmt: skip
LEARNERS: dict[str, Callable[[pd.DataFrame, int], Any]] = {
    "jf.fit, fast": lambda frame, seed: jf.fit(frame, budget="fast", random_state=seed),
    "jf.fit": lambda frame, seed: jf.fit(frame, random_state=seed),
    "HiddenTreeForest": lambda frame, seed: jf.HiddenTreeForest(random_state=seed).fit(frame).joint_,
    "HiddenTreeForest(4)": lambda frame, seed: jf.HiddenTreeForest(4, random_state=seed).fit(frame).joint_,
    "AdversarialForest": lambda frame, seed: jf.AdversarialForest(random_state=seed).fit(frame).joint_,
    "JointTree": lambda frame, seed: jf.JointTree(random_state=seed).fit(frame).joint_,
}
SUPPORTS = ((5, "5 to 19 rows"), (20, "20 to 99"), (100, "100 and more"))
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST, FEWEST = 25.0, 50


class Condition(NamedTuple):
    """Evidence on a column: an interval or a value."""

    column: str
    given: Any
    holds: Callable[[pd.Series], pd.Series]


def usable(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers, and columns of at most 200 levels, as text."""
    frame = frame.copy()
    for name in frame:
        if not is_numeric_dtype(frame[name]) or is_bool_dtype(frame[name]):
            frame[name] = frame[name].astype(str).where(frame[name].notna(), None)
    few = [name for name in frame if is_numeric_dtype(frame[name]) or frame[name].nunique() <= 200]
    return frame[[name for name in few if frame[name].nunique() > 1]]


def conditions(rows: pd.DataFrame, target: str, k: int, rng: np.random.Generator) -> list[Condition]:
    """Evidence on up to k other columns."""
    found = []
    for name in rng.permutation([name for name in rows if name != target])[:k]:
        known = rows[name].dropna()
        if is_numeric_dtype(rows[name]):
            low, high = sorted(rng.choice(known.to_numpy(float), 2).tolist())
            kind = rng.integers(3)
            ends = [None if kind == 1 else low, None if kind == 2 else high]
            low, high = (-np.inf if ends[0] is None else low), (np.inf if ends[1] is None else high)
            found.append(Condition(name, jf.between(*ends), lambda x, low=low, high=high: (x >= low) & (x <= high)))
        else:
            value = known.iloc[rng.integers(len(known))]
            found.append(Condition(name, value, lambda x, value=value: x == value))
    return found


def meeting(rows: pd.DataFrame, evidence: list[Condition], target: str) -> pd.Series:
    """Known cells of the target in the rows that meet the evidence."""
    meets = np.ones(len(rows), bool)
    for condition in evidence:
        meets &= condition.holds(rows[condition.column]).to_numpy(bool)
    return rows.loc[meets, target].dropna()


def rank_error(values: np.ndarray, x: float, q: float) -> float:
    """Distance of the level q to the ranks from below x to x."""
    below, up_to = np.mean(values < x), np.mean(values <= x)
    return float(max(below - q, q - up_to, 0.0))


def losses(posterior: Any, target: str, a: pd.Series, b: pd.Series, rng: np.random.Generator) -> Iterator[tuple]:
    """Kind of question, loss of the joint, and of counting."""
    m = len(a)

    def share(p: float) -> float:
        return m / max(p * (1 - p), 1 / m)

    if not is_numeric_dtype(a):
        level = b.iloc[rng.integers(len(b))]
        p, counted = np.mean(b == level), np.mean(a == level)
        yield "level", (posterior.proba(target).get(level, 0.0) - p) ** 2 * share(p), (counted - p) ** 2 * share(p)
        return
    x, y = a.to_numpy(float), b.to_numpy(float)
    end = float(rng.choice(y))
    p, counted = np.mean(y <= end), np.mean(x <= end)
    ours = posterior.probability({target: jf.between(None, end)})
    yield "probability", (ours - p) ** 2 * share(p), (counted - p) ** 2 * share(p)
    if x.std() > 0 and y.std() > 1e-6 * abs(y.mean()):
        mean, std = float(posterior.mean(target)), max(float(posterior.std(target)), 1e-12)
        yield "mean", *(((found - y.mean()) / y.std()) ** 2 * m for found in (mean, x.mean()))
        yield "standard deviation", *(np.log(found / y.std()) ** 2 * 2 * m for found in (std, x.std()))
    q = float(rng.choice(LEVELS))
    pair = float(posterior.quantile(target, q)), float(np.quantile(x, q, method="inverted_cdf"))
    yield "quantile", *(rank_error(y, found, q) ** 2 * m / (q * (1 - q)) for found in pair)


def ask(joint: Any, learned: pd.DataFrame, others: pd.DataFrame, n: int, rng: np.random.Generator) -> Iterator[tuple]:
    """Kind and support of n questions, with both losses."""
    for _ in range(n):
        target = str(rng.choice(list(learned)))
        evidence = conditions(learned, target, int(rng.choice([0, 1, 1, 2])), rng)
        a, b = meeting(learned, evidence, target), meeting(others, evidence, target)
        if len(a) < SUPPORTS[0][0] or len(b) < FEWEST:
            continue
        support = next(name for least, name in reversed(SUPPORTS) if len(a) >= least) if evidence else "given nothing"
        posterior = joint.given(**{condition.column: condition.given for condition in evidence})
        for kind, *pair in losses(posterior, target, a, b, rng):
            yield kind, support, *np.minimum(pair, MOST)


def moments(joint: Any, learned: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Errors of means, in standard errors, and of standard deviations, as a share, of columns without missing cells."""
    posterior, means, stds = joint.given(), [], []
    for name in learned.select_dtypes("number"):
        x = learned[name]
        if not x.hasnans and x.std() > 0:
            means.append(abs(posterior.mean(name) - x.mean()) / x.std(ddof=0) * np.sqrt(len(x)))
            stds.append(abs(posterior.std(name) / x.std(ddof=0) - 1.0))
    return means, stds


def main() -> None:
    options = arguments(__doc__, rows=dict(type=int, nargs="+", default=[200, 1_000, 3_000]), tables=dict(nargs="+"),
                        learners=dict(nargs="+", default=list(LEARNERS)[:1], choices=list(LEARNERS)),
                        questions=dict(type=int, default=300))  # fmt: skip
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    tables = options.tables or TABLES
    if options.quick:
        tables, options.rows, options.questions = tables[:1], options.rows[:1], 20
    ratios, errors = [], []
    for learner in options.learners:
        for n in options.rows:
            found, means, stds, seconds = defaultdict(list), [], [], 0.0
            for name in tables:
                frame = usable(read(options.data, name))
                if len(frame) < 3 * n:
                    continue
                rng = np.random.default_rng([options.seed, n])
                order = rng.permutation(len(frame))
                learned, others = (
                    frame.iloc[order[at]].reset_index(drop=True) for at in (slice(n), slice(n, n + 50_000))
                )
                learned = learned[[column for column in learned if learned[column].nunique() > 1]]
                spent, joint = timed(partial(LEARNERS[learner], learned, options.seed))
                seconds += spent
                for kind, support, *pair in ask(joint, learned, others, options.questions, rng):
                    found[kind, support].append(pair)
                more = moments(joint, learned)
                means, stds = means + more[0], stds + more[1]
                progress(f"{learner}, {name}, {n} rows: {spent:.1f} s")
            for kind in dict.fromkeys(kind for kind, _ in found):
                row: dict[str, Any] = {"learner": learner, "rows": n, "question": kind}
                for support in ("given nothing", *(name for _, name in reversed(SUPPORTS))):
                    pairs = np.array(found[kind, support] or [(np.nan, np.nan)])
                    row[support] = float(pairs[:, 0].sum() / max(pairs[:, 1].sum(), 1e-12))
                ratios.append(row | {"questions": sum(len(v) for (k, _), v in found.items() if k == kind)})
            row = {"learner": learner, "rows": n, "columns": len(means), "seconds": seconds}
            row |= {"mean, standard errors": float(np.mean(means)), "most": float(np.max(means))}
            row |= {"standard deviation, share": float(np.mean(stds)), "at most": float(np.max(stds))}
            errors.append(row)
    results = {"Loss of the joint over that of counting": ratios, "Moments given nothing": errors}
    finish(
        "counting",
        results,
        {"seed": options.seed, "questions": options.questions, "tables": list(tables)},
        options.quick,
    )


if __name__ == "__main__":
    main()
