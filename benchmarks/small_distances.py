"""Compares draws of small tables with test rows: Wasserstein distance, coverage, and whether draws are copies.

The measures are those of ForestDiffusion's benchmark (Jolicoeur-Martineau et al. 2024), without its learners. Four
fifths of a table are learned, and as many rows drawn. Columns are scaled to [0, 1] by the learned rows, two levels
differ by 1, and the distance of two rows is the sum over columns. A ratio is the distance of drawn rows to test rows,
over that of learned rows to test rows. Coverage is the share of test rows that have a drawn row near; the k-th nearest
test row says what is near. "Nearer" is the share of drawn rows that are nearer to a learned row than to a test row,
among as many of both: one half for fresh rows, 1 for copies. Bootstrapped rows show how near independent draws of the
learned rows are.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import ot  # the package POT
import pandas as pd
from _common import arguments, finish, progress, read
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import jointforest as jf

PUBLISHED = {
    "airfoil_self_noise": (0.241, 0.256, 0.293), "blood_transfusion": (0.109, 0.128, 0.152),
    "concrete_compression": (0.485, 0.542, 0.621), "concrete_slump": (1.100, 1.171, 1.197),
    "ecoli": (0.401, 0.449, 0.438), "iris": (0.236, 0.328, 0.341), "libras": (8.906, 9.997, 11.647),
    "parkinsons": (1.705, 1.674, 1.766), "planning_relax": (1.445, 1.425, 1.474), "seeds": (0.460, 0.515, 0.548),
    "tictactoe": (2.034, 1.945, 1.947), "wine": (1.440, 1.421, 1.526), "yacht_hydrodynamics": (0.500, 0.537, 0.636),
}  # fmt: skip
"""Distances to test rows of the learned rows, of Forest-Flow and of UnmaskingTrees, as they were published."""
ROWS = {"gef/diabetes": 400, "gef/vehicle": 300, "gef/wdbc": 250, "jpt/abalone": 250, "jpt/dry_bean": 200,
        "gef/wine": 400, "gef/vowel": 300, "gef/authent": 150, "gef/texture": 300}  # fmt: skip
"""Tables that constants were chosen on, and rows that are taken of them; `OTHERS` are some more of these tables."""
OTHERS = ("diabetes of scikit-learn", "penguins", "outlier/glass")
DRAWS, COVERED = 3, 0.95


def load(data: Path, name: str) -> pd.DataFrame:
    """A small table, the target last."""
    if name == OTHERS[0]:
        return load_diabetes(as_frame=True, scaled=False).frame
    if name == "penguins":
        return jf.datasets.load_penguins().dropna().reset_index(drop=True)
    if name in PUBLISHED:
        return read(data, f"small/{name}")
    frame = read(data, name)
    return frame.sample(ROWS[name], random_state=0).reset_index(drop=True) if name in ROWS else frame


def numbers(frame: pd.DataFrame, learned: pd.DataFrame) -> np.ndarray:
    """Rows as numbers: numbers in the range of the learned rows, levels as halves of indicators."""
    parts = []
    for name in learned:
        if learned[name].dtype.kind in "iuf":
            low, high = float(learned[name].min()), float(learned[name].max())
            parts.append(((frame[name].to_numpy(float) - low) / (high - low if high > low else 1.0))[:, None])
        else:
            levels = np.array(sorted(learned[name].astype(str).unique()))
            parts.append((frame[name].astype(str).to_numpy()[:, None] == levels) / 2.0)
    return np.ascontiguousarray(np.hstack(parts))


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Distance of each two rows."""
    return np.asarray(ot.dist(a, b, metric="cityblock"))


def wasserstein(a: np.ndarray, b: np.ndarray) -> float:
    """Cost of moving the rows of one table to those of the other."""
    return float(ot.emd2(ot.unif(len(a)), ot.unif(len(b)), distances(a, b), numItermax=2_000_000))


def coverage(learned: np.ndarray, test: np.ndarray, drawn: np.ndarray) -> float:
    """Share of test rows with a drawn row as near as the k-th nearest test row, where learned rows cover 95 %."""
    within = np.sort(distances(test, test), axis=1)
    covers = (distances(test, learned).min(axis=1)[:, None] <= within[:, 1:]).mean(axis=0) >= COVERED
    k = 1 + int(covers.argmax()) if covers.any() else within.shape[1] - 1
    return float((distances(test, drawn).min(axis=1) <= within[:, k]).mean())


def nearer(learned: np.ndarray, test: np.ndarray, drawn: np.ndarray, rng: np.random.Generator) -> float:
    """Share of drawn rows that are nearer to a learned row than to a test row."""
    some = learned[rng.permutation(len(learned))[: len(test)]]
    to_learned, to_test = distances(drawn, some).min(axis=1), distances(drawn, test).min(axis=1)
    return float(np.mean((to_learned < to_test) + 0.5 * (to_learned == to_test)))


def measure(frame: pd.DataFrame, seed: int) -> dict[str, float]:
    """All figures of one split, means over the draws."""
    target = frame.iloc[:, -1]
    strata = None if target.dtype.kind in "iuf" else target
    rows, other = train_test_split(frame, test_size=0.2, random_state=seed, stratify=strata)
    rows, other = rows.reset_index(drop=True), other.reset_index(drop=True)
    begin = time.process_time()
    joint = jf.fit(rows, budget="fast", random_state=seed, n_jobs=1)
    seconds = time.process_time() - begin
    A, B = numbers(rows, rows), numbers(other, rows)
    real, rng = wasserstein(A, B), np.random.default_rng(seed)
    found = []
    for k in range(DRAWS):
        drawn = numbers(joint.sample(len(rows), random_state=1_000 * seed + k), rows)
        again = A[rng.integers(len(A), size=len(A))]
        found.append((wasserstein(drawn, B) / real, coverage(A, B, drawn), nearer(A, B, drawn, rng),
                      wasserstein(again, B) / real))  # fmt: skip
    ratio, covered, near, bootstrap = np.mean(found, axis=0).tolist()
    return {
        "ratio": ratio,
        "coverage": covered,
        "nearer": near,
        "ratio, bootstrapped rows": bootstrap,
        "held-out log-density": float(joint.log_density(other).mean()),
        "processor seconds": seconds,
    }


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="*", default=[*PUBLISHED], help="names of tables (default: the 13 of ForestDiffusion)"),
        chosen_on=dict(action="store_true", help="the tables that constants were chosen on, instead"),
        splits=dict(type=int, default=2, help="random splits (default 2)"),
    )
    names = [*ROWS, *OTHERS] if options.chosen_on else options.tables
    if options.quick:
        names, options.splits = ["penguins"], 1
    table: list[dict[str, Any]] = []
    for name in names:
        frame = load(options.data, name)
        runs = [measure(frame, options.seed + k) for k in range(options.splits)]
        row: dict[str, Any] = {"table": name} | {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        if name in PUBLISHED:
            real, flow, unmasking = PUBLISHED[name]
            row |= {"Forest-Flow": flow / real, "UnmaskingTrees": unmasking / real}
        table.append(row)
        progress(f"{row}")
    keys = [key for key in table[0] if key not in ("table", "held-out log-density")]
    means = [{key: float(np.mean([row[key] for row in table if key in row])) for key in keys}]
    settings = {"seed": options.seed, "splits": options.splits}
    finish("small_distances", {"Small tables, means": means, "Each small table": table}, settings, options.quick)


if __name__ == "__main__":
    main()
