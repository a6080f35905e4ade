"""Measures what learners keep of a table's dependence where cells are missing at learning.

Cells are hidden completely at random (MCAR), or with odds that rise with the rank of a column that stays known (MAR).
Slope: regression through the origin of the correlations of drawn complete rows on those of the complete table, over
pairs of numbers whose correlation exceeds 0.3. Log-density: mean over complete test rows, in nats, less that of the
same learner without missing cells. Known joint: columns of 3 z + u with a shared coin z and u uniform on 0, 1, 2, whose
mean of one given another is 4 or 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from _common import arguments, finish, hide, progress, read, timed

import jointforest as jf

TABLES = ["gef/texture", "gef/wine", "gef/vehicle", "gef/segment", "gef/wdbc", "gef/robot", "jpt/abalone",
          "jpt/dry_bean"]  # fmt: skip
LEARNERS: dict[str, Callable[[pd.DataFrame, int], jf.Joint]] = {
    "fit": lambda frame, seed: jf.fit(frame, budget="fast", random_state=seed),
    "hidden": lambda frame, seed: jf.HiddenTreeForest(random_state=seed).fit(frame).joint_,
    "adversarial": lambda frame, seed: jf.AdversarialForest(random_state=seed).fit(frame).joint_,
    "joint_tree": lambda frame, seed: jf.JointTree(random_state=seed).fit(frame).joint_,
}
STRONG, DRAWS, ROWS, TEST_ROWS = 0.3, 20_000, 5_000, 1_000
MAR_SLOPE = 1.5


def split(frame: pd.DataFrame, seed: int, most: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Complete rows to learn from, and test rows."""
    frame = frame.dropna().reset_index(drop=True)
    order = np.random.default_rng(seed).permutation(len(frame))
    n_test = min(TEST_ROWS, len(frame) // 5)
    parts = order[n_test : n_test + most], order[:n_test]
    learn, test = (frame.iloc[rows].reset_index(drop=True) for rows in parts)
    return learn, test


def hide_at_random(frame: pd.DataFrame, rate: float, seed: int) -> pd.DataFrame:
    """Cells missing with odds that rise with the rank of one column, which stays known."""
    rng = np.random.default_rng(seed)
    numbers = [j for j, name in enumerate(frame) if pd.api.types.is_numeric_dtype(frame[name])]
    known = int(rng.choice(numbers))
    rank = frame.iloc[:, known].rank(method="first").to_numpy() / len(frame)
    weight = np.exp(MAR_SLOPE * (rank - 0.5) * 2.0)
    hidden = rng.random(frame.shape) < np.minimum(rate * weight / weight.mean(), 0.95)[:, None]
    hidden[:, known] = False
    return frame.mask(hidden)


def correlations(frame: pd.DataFrame, numbers: list[str]) -> np.ndarray:
    return np.nan_to_num(frame[numbers].astype(float).corr().to_numpy())


def slope(drawn: pd.DataFrame, complete: pd.DataFrame) -> float:
    """Slope of the correlations of drawn rows on those of the complete table, over its strong pairs."""
    numbers = [name for name in complete if pd.api.types.is_numeric_dtype(complete[name])]
    truth, found = correlations(complete, numbers), correlations(drawn, numbers)
    strong = np.triu(np.abs(truth) > STRONG, 1)
    return float((truth[strong] * found[strong]).sum() / (truth[strong] ** 2).sum())


def known_joint(n: int, rate: float, d: int, seed: int) -> pd.DataFrame:
    """Columns of 3 z + u with a shared coin z, cells missing completely at random."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    frame = pd.DataFrame({f"x{j}": 3.0 * z + rng.integers(0, 3, n) for j in range(d)})
    return frame.mask(rng.random(frame.shape) < rate)


def main() -> None:
    options = arguments(
        __doc__,
        learners={"nargs": "+", "default": list(LEARNERS), "choices": list(LEARNERS)},
        tables={"nargs": "+", "default": TABLES},
        rates={"nargs": "+", "type": float, "default": [0.3, 0.6]},
        rows={"type": int, "default": ROWS},
    )
    warnings.filterwarnings("ignore")
    tables, most = (options.tables[:1], 500) if options.quick else (options.tables, options.rows)
    results = []
    for name in options.learners:
        learn_from = LEARNERS[name]
        for table in tables:
            complete, test = split(read(options.data, table), options.seed, most)
            cases = [("complete", 0.0, complete)]
            for rate in options.rates:
                cases += [("MCAR", rate, hide(complete, rate, options.seed)[0]),
                          ("MAR", rate, hide_at_random(complete, rate, options.seed))]  # fmt: skip
            base = None
            for mechanism, rate, frame in cases:
                seconds, joint = timed(partial(learn_from, frame, options.seed))
                density = float(joint.log_density(test).mean())
                base = density if base is None else base
                found = slope(joint.sample(DRAWS, random_state=options.seed), complete)
                results.append({"learner": name, "table": table, "mechanism": mechanism, "rate": rate, "slope": found,
                                "log_density": density - base, "seconds": seconds})  # fmt: skip
                progress(f"{name} {table} {mechanism} {rate:.0%}: slope {found:.3f}, log-density {density:.2f} "
                         f"({density - base:+.2f}), {seconds:.1f} s")  # fmt: skip
        for rate in options.rates:
            frame = known_joint(3_000, rate, 2, options.seed)
            joint = learn_from(frame, options.seed)
            r = float(joint.sample(DRAWS, random_state=options.seed).corr().iloc[0, 1])
            mean = float(joint.given("x0 = 5").mean("x1"))
            results.append({"learner": name, "table": "known joint", "mechanism": "MCAR", "rate": rate,
                            "slope": r / 0.771, "mean_given_5": mean})  # fmt: skip
            progress(f"{name} known joint {rate:.0%}: slope {r / 0.771:.3f}, E(x1 | x0 = 5) {mean:.2f}")
    frame = pd.DataFrame(results)
    by_table = frame.pivot_table(index=["learner", "mechanism", "rate"], columns="table", values="slope").reset_index()
    means = frame.groupby(["learner", "mechanism", "rate"])[["slope", "log_density", "seconds"]].mean().reset_index()
    shown = {"Slope, by table": by_table, "Means over tables": means}
    found = {title: rows.replace({np.nan: None}).to_dict("records") for title, rows in shown.items()}
    finish("missing_at_learning", found, {"rows": most, "tables": tables, "seed": options.seed}, options.quick)


if __name__ == "__main__":
    main()
