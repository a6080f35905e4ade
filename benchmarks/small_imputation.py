"""Measures imputation of small tables: how far drawn cells are from the hidden ones, and whether intervals cover.

A fifth of the cells is hidden completely at random; each method learns from the table with missing cells, and fills it
five times. Error: the mean over hidden cells of |drawn - hidden|, numbers in units of their column's range, of levels
0 or 1. Coverage: how often the 95 % interval pooled by Rubin's rules contains the value of the complete table, over
the means of all numbers, all pairs' correlations (Fisher's z), and all coefficients of the regression in `impute.py`.
Between alone: the same for intervals as wide as the filled tables differ, which shows bias more clearly.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from _common import arguments, finish, hide, over_seeds, progress, read, timed
from impute import Filled, M, by_arrays, design, marginal, regress
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

import jointforest as jf

RATE, PAIRS = 0.2, 200


def tables_of(data: Path, folder: str) -> list[str]:
    return [f"{folder}/{path.stem}" for path in sorted((data / folder).glob("*.parquet"))]


def errors(filled: Filled, frame: pd.DataFrame, hidden: np.ndarray) -> tuple[float, float]:
    """Mean error of drawn numbers in ranges, and share of drawn levels that are wrong; NaN of what there is none."""
    numbers, levels = [], []
    for j, name in enumerate(frame):
        at, truth = hidden[:, j], frame[name].to_numpy()
        if pd.api.types.is_numeric_dtype(frame[name]):
            span = np.ptp(truth.astype(float)) or 1.0
            numbers += [
                np.abs(table[name].to_numpy(dtype=float)[at] - truth[at].astype(float)) / span for table in filled
            ]
        else:
            levels += [table[name].astype(str).to_numpy()[at] != truth.astype(str)[at] for table in filled]
    mean = [float(np.concatenate(each).mean()) if each else np.nan for each in (numbers, levels)]
    return mean[0], mean[1]


def estimates(frame: pd.DataFrame, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Means, z of correlations, and coefficients: values and squared errors."""
    n = len(frame)
    numbers = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name])]
    value, square = [], []
    X = frame[numbers].to_numpy(dtype=float)
    value += X.mean(axis=0).tolist()
    square += (X.var(axis=0, ddof=1) / n).tolist()
    pairs = list(combinations(range(len(numbers)), 2))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(pairs))[:PAIRS])
    R = np.clip(np.nan_to_num(np.corrcoef(X.T)), -1 + 1e-9, 1 - 1e-9) if len(numbers) > 1 else np.eye(1)
    value += [float(np.arctanh(R[pairs[k]])) for k in chosen]
    square += [1 / (n - 3)] * len(chosen)
    if len(numbers) > 1:
        beta, errors = regress(frame, *design(frame))
        value += beta.tolist()
        square += errors.tolist()
    return np.array(value), np.array(square)


def coverage(filled: Filled, frame: pd.DataFrame, seed: int) -> tuple[float, float, float]:
    """Of pooled intervals, of those by the variance between tables alone, and their width relative to complete rows."""
    truth, complete = estimates(frame, seed)
    if not len(truth):
        return np.nan, np.nan, np.nan
    each = [estimates(table, seed) for table in filled]
    found = []
    for share, df in ((1.0, len(frame) - 1), (0.0, None)):
        pooled = jf.pool([q for q, _ in each], [u * share for _, u in each], df=df)
        found.append(float(((pooled.low <= truth) & (truth <= pooled.high)).mean()))
        if share:
            width = float(np.median((pooled.high - pooled.low) / (2 * 1.96 * np.sqrt(complete))))
    return found[0], found[1], width


def methods(seed: int) -> dict[str, Callable[[pd.DataFrame], Filled]]:
    def ours(**how: object) -> Callable[[pd.DataFrame], Filled]:
        return lambda frame: jf.JointImputer(m=M, n_jobs=1, random_state=seed, **how).fit(frame).impute(frame)

    def of_joint(frame: pd.DataFrame) -> Filled:
        joint = jf.HiddenTreeForest(n_jobs=1, random_state=seed).fit(frame).joint_
        return joint.impute(frame, "sample", M, seed, n_jobs=1)

    return {
        "draws of the joint": of_joint,
        "sample": ours(method="sample"),
        "proper": ours(method="sample", proper=True),
        "IterativeImputer, draws": lambda frame: by_arrays(
            lambda k: IterativeImputer(
                max_iter=3, sample_posterior=True, keep_empty_features=True, random_state=seed + k
            ),
            frame,
            M,
        ),
        "KNNImputer (k = 7)": lambda frame: by_arrays(
            lambda k: KNNImputer(n_neighbors=7, keep_empty_features=True), frame, 1
        ),
        "draws of the column": lambda frame: marginal(frame, seed),
    }


def main() -> None:
    options = arguments(__doc__, seeds=dict(type=int, nargs="+", default=[0, 1]), tables=dict(nargs="+"),
                        methods=dict(nargs="+"), rows=dict(type=int, default=2_000))  # fmt: skip
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    tables = options.tables or tables_of(options.data, "small")
    tables, seeds = (tables[:1], options.seeds[:1]) if options.quick else (tables, options.seeds)
    runs = []
    for seed in seeds:
        lines = []
        for name in tables:
            frame = read(options.data, name).dropna().reset_index(drop=True)
            order = np.random.default_rng(seed).permutation(len(frame))[: options.rows]
            frame = frame.iloc[np.sort(order)].reset_index(drop=True)
            for column in frame.select_dtypes(exclude="number"):
                frame[column] = frame[column].astype(str).astype("category")
            masked, hidden = hide(frame, RATE, seed)
            for method, fill in methods(seed).items():
                if options.methods and method not in options.methods:
                    continue
                seconds, filled = timed(lambda fill=fill, masked=masked: fill(masked))
                number, level = errors(filled, frame, hidden)
                row = {"table": name, "method": method, "error of numbers": number, "wrong levels": level}
                if len(filled) > 1:
                    names = ("coverage of 95 %", "between alone", "width (complete = 1)")
                    row |= dict(zip(names, coverage(filled, frame, seed), strict=True))
                lines.append(row | {"seconds": seconds})
                progress(" ".join(f"{v:.4f}" if isinstance(v, float) else str(v) for v in lines[-1].values()))
        whole = pd.DataFrame(lines).drop(columns="table").groupby("method", sort=False).mean().reset_index()
        runs.append({"By table": lines, "Means over tables": whole.to_dict("records")})
    found = {title: [{k: None if v != v else v for k, v in row.items()} for row in rows]
             for title, rows in over_seeds(runs).items()}  # fmt: skip
    finish("small_imputation", found, {"rate": RATE, "m": M, "seeds": seeds, "tables": tables}, options.quick)


if __name__ == "__main__":
    main()
