"""Measures imputation of ten tables, and the coverage of intervals after multiple imputation.

A fifth of the cells of a sample are hidden: completely at random (MCAR), by another column that stays known (MAR), or
by the cell itself (MNAR). One filled table: rate of wrong categories, root mean squared error of numbers in standard
deviations. Five filled tables: a linear regression in each, pooled by Rubin's rules. Its coverage and width refer to
the coefficient of all rows; its bias is in standard errors of the complete sample (negative: too near 0). Figures are
means over seeds. An interrupted run continues from results/impute.tmp.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, over_seeds, progress, read, timed
from missing import OneHot, errors
from peers import peer_python, run_json
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

import jointforest as jf

TABLES = ["gef/cmc", "gef/segment", "gef/bank", "gef/electricity", "jpt/abalone", "jpt/wine_quality", "jpt/dry_bean",
          "synth/shoppers", "adult_train", "insurance"]  # fmt: skip
MECHANISMS = ["MCAR", "MAR", "MNAR"]
PINS = ["miceforest==6.0.5", "numpy==2.3.5", "pandas==2.3.3", "pyarrow==22.0.0", "lightgbm==4.6.0"]
RATE, SLOPE, M, LEVELS = 0.2, 1.5, 5, 12
Filled = list[pd.DataFrame]


def population(data: Path, name: str) -> pd.DataFrame:
    """The table's complete rows, levels as categories; columns of many levels left out."""
    frame = read(data, name).dropna().reset_index(drop=True)
    for column in list(frame):
        if not pd.api.types.is_numeric_dtype(frame[column]) or pd.api.types.is_bool_dtype(frame[column]):
            frame[column] = frame[column].astype(str).astype("category")
            if len(frame[column].cat.categories) > LEVELS:
                frame = frame.drop(columns=column)
    return frame


def scores(column: pd.Series) -> np.ndarray:
    """Standardised ranks of a column's cells (levels by their order)."""
    values = column.cat.codes if isinstance(column.dtype, pd.CategoricalDtype) else column
    rank = values.rank().to_numpy(dtype=float)
    return (rank - rank.mean()) / max(rank.std(), 1e-9)


def hide(rows: pd.DataFrame, mechanism: str, driver: int, rng: np.random.Generator) -> np.ndarray:
    """Which cells are hidden, a share `RATE` of those that may be."""
    chance = np.full(rows.shape, RATE)
    if mechanism != "MCAR":
        for j, name in enumerate(rows):
            score = scores(rows.iloc[:, driver] if mechanism == "MAR" else rows[name])
            low, high = -20.0, 20.0
            for _ in range(60):  # the intercept with the wanted share, by bisection
                middle = (low + high) / 2
                share = 1 / (1 + np.exp(-(middle + SLOPE * score)))
                low, high = (middle, high) if share.mean() < RATE else (low, middle)
            chance[:, j] = share
    hidden = rng.random(rows.shape) < chance
    if mechanism == "MAR":
        hidden[:, driver] = False
    return hidden


def design(frame: pd.DataFrame) -> tuple[str, list[str], dict[str, str]]:
    """A regression: the last number on the first two others and a category, the indicator of its first usual level."""
    numbers = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name])]
    levels = [name for name in frame if name not in numbers]
    given = [*numbers[:2], *levels][:3] if len(numbers) > 2 else [numbers[0], *levels[:2]]
    return numbers[-1], given, {name: str(frame[name].mode()[0]) for name in given if name in levels}


def regress(frame: pd.DataFrame, target: str, given: list[str], usual: dict[str, str], share: float = 0.0) -> tuple:
    """Coefficients without the intercept, and their squared errors; ``share``: of the population, that rows are."""
    columns = [(frame[n].astype(str) == usual[n]).to_numpy(float) if n in usual else frame[n].to_numpy(float)
               for n in given]  # fmt: skip
    Z, y = np.column_stack([np.ones(len(frame)), *columns]), frame[target].to_numpy(dtype=float)
    inverse = np.linalg.pinv(Z.T @ Z)
    beta = inverse @ Z.T @ y
    noise = np.sum((y - Z @ beta) ** 2) / (len(y) - Z.shape[1])
    return beta[1:], (noise * np.diag(inverse) * (1 - share))[1:]


def ours(learner, masked: pd.DataFrame, seed: int) -> dict[str, tuple[float, Filled, Filled]]:
    """name -> seconds, one filled table, several: by means, by draws of one joint, by draws of joints of bootstraps."""
    found = {}
    for name, proper in (("draws", False), ("proper draws", True)):
        imputer = jf.JointImputer(learner, m=M, proper=proper, random_state=seed)
        seconds, filled = timed(lambda imputer=imputer: imputer.fit(masked).impute(masked))
        found[name] = seconds, filled[:1], filled
        if not proper:
            found["means"] = seconds, [imputer.transform(masked)], []
    return found


def by_arrays(imputers: Callable, masked: pd.DataFrame, m: int) -> Filled:
    """Tables filled by imputers of one-hot arrays."""
    coder = OneHot(masked)
    X = coder.encode(masked)
    return [coder.decode(imputers(k).fit_transform(X), masked) for k in range(m)]


def marginal(masked: pd.DataFrame, seed: int) -> Filled:
    """Each missing cell drawn from its column."""
    rng, tables = np.random.default_rng(seed), []
    for _ in range(M):
        table = masked.copy()
        for name in table:
            at = table[name].isna().to_numpy()
            table.loc[at, name] = rng.choice(masked[name].dropna().to_numpy(), at.sum())
        tables.append(table)
    return tables


def miceforest(masked: pd.DataFrame, seed: int) -> tuple[float, Filled]:
    python = peer_python("miceforest", PINS)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.parquet", Path(folder) / "out.parquet"
        masked.to_parquet(source)
        seconds = run_json([python, HERE / "_miceforest_worker.py", source, out, M, 2, seed])["seconds"]
        both = pd.read_parquet(out)
    return seconds, [both.iloc[k * len(masked) : (k + 1) * len(masked)].reset_index(drop=True) for k in range(M)]


def all_methods(masked: pd.DataFrame, seed: int) -> dict[str, tuple[float, Filled, Filled]]:
    found = {}
    learners = {"hidden trees": jf.HiddenTreeForest(
            n_states=16, start="local", max_leaf_nodes=1, smoothing=30, n_jobs=1, random_state=seed),
                "adversarial forest": jf.AdversarialForest(10, n_jobs=1, random_state=seed)}  # fmt: skip
    for name, learner in learners.items():
        found |= {f"{name}, {how}": each for how, each in ours(learner, masked, seed).items()}
    peers = {
        "IterativeImputer": (1, lambda k: IterativeImputer(max_iter=5, keep_empty_features=True, random_state=seed)),
        "IterativeImputer, draws": (M, lambda k: IterativeImputer(
            max_iter=3, sample_posterior=True, keep_empty_features=True, random_state=seed + k)),
        "KNNImputer (k = 7)": (1, lambda k: KNNImputer(n_neighbors=7, keep_empty_features=True)),
        "MissForest-style": (1, lambda k: IterativeImputer(
            RandomForestRegressor(10, max_features=1 / 3, random_state=seed), max_iter=2, keep_empty_features=True,
            random_state=seed)),
    }  # fmt: skip
    for name, (m, imputers) in peers.items():
        seconds, filled = timed(lambda imputers=imputers, m=m: by_arrays(imputers, masked, m))
        found[name] = seconds, filled[:1], filled if m > 1 else []
    seconds, filled = timed(lambda: marginal(masked, seed))
    found["draws of the column"] = seconds, filled[:1], filled
    try:
        seconds, filled = miceforest(masked, seed)
        found["miceforest"] = seconds, filled[:1], filled
    except SystemExit as error:
        progress(f"miceforest refused: {str(error)[-200:]}")
    return found


def one_cell(whole: pd.DataFrame, mechanism: str, n: int, seed: int) -> list[dict]:
    """What all methods do on one sample of rows: a line each."""
    rng = np.random.default_rng([seed, MECHANISMS.index(mechanism)])
    rows = whole.iloc[np.sort(rng.permutation(len(whole))[:n])].reset_index(drop=True)
    target, given, usual = design(whole)
    driver = list(whole).index(given[0])
    hidden = hide(rows, mechanism, driver, rng)
    masked = rows.mask(hidden)
    some = hidden.any(axis=0)
    spread = rows.std(numeric_only=True).replace(0.0, 1.0)
    truth, _ = regress(whole, target, given, usual)
    complete, variance = regress(rows, target, given, usual, n / len(whole))
    unit = np.sqrt(variance)
    reach = 1.96 * unit
    lines = [{"method": "no cell hidden", "covered": (np.abs(complete - truth) <= reach).tolist(),
              "off": ((complete - truth) / unit * np.sign(truth)).tolist(), "width": [1.0] * len(unit)}]  # fmt: skip
    for name, (seconds, single, several) in all_methods(masked, seed).items():
        rmse, wrong = errors(single[0][list(rows)].loc[:, some], rows.loc[:, some], hidden[:, some], spread)
        line = {"method": name, "seconds": seconds, "rmse": rmse, "wrong": wrong}
        if several:
            each = [regress(table, target, given, usual, n / len(whole)) for table in several]
            pooled = jf.pool([q for q, _ in each], [u for _, u in each], df=n - len(given) - 1)
            line |= {"covered": ((pooled.low <= truth) & (truth <= pooled.high)).tolist(),
                     "off": ((pooled.estimate - truth) / unit * np.sign(truth)).tolist(),
                     "width": ((pooled.high - pooled.low) / (2 * reach)).tolist()}  # fmt: skip
        lines.append(line)
    return lines


def summary(cells: dict[str, list[dict]], mechanism: str, seed: int) -> list[dict]:
    """One row a method, over the cells of one mechanism and seed."""
    lines = [line for key, each in cells.items() if key.split("|")[1:3] == [mechanism, str(seed)] for line in each]
    table = []
    for name in dict.fromkeys(line["method"] for line in lines):
        mine = [line for line in lines if line["method"] == name]
        row: dict = {"method": name}
        if "rmse" in mine[0]:
            row |= {"RMSE (std)": float(np.nanmean([line["rmse"] for line in mine])),
                    "wrong categories": float(np.nanmean([line["wrong"] for line in mine]))}  # fmt: skip
        if "covered" in mine[0]:
            covered, off, width = (np.concatenate([line[k] for line in mine]) for k in ("covered", "off", "width"))
            row |= {"coefficients": len(off), "coverage of 95 %": float(covered.mean()),
                    "too large (errors)": float(np.median(off)), "distance (errors)": float(np.median(np.abs(off))),
                    "width (complete = 1)": float(np.median(width))}  # fmt: skip
        if "seconds" in mine[0]:
            row["seconds (median)"] = float(np.median([line["seconds"] for line in mine]))
        table.append(row)
    return table


def main() -> None:
    options = arguments(__doc__, seeds=dict(type=int, nargs="+", default=[0]), rows=dict(type=int, default=200),
                        tables=dict(nargs="+", default=TABLES),
                        mechanisms=dict(nargs="+", default=MECHANISMS, choices=MECHANISMS),
                        again=dict(action="store_true"))  # fmt: skip
    tables = options.tables[:1] if options.quick else options.tables
    seeds, n = (options.seeds[:1], 120) if options.quick else (options.seeds, options.rows)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the peer: threads of tiny tasks wait for each other
    kept = HERE / "results" / f"impute{'.quick' if options.quick else ''}.tmp"
    done: dict[str, list[dict]] = {}
    if kept.exists() and not (options.again or options.quick):
        done = dict(json.loads(line) for line in kept.read_text().splitlines())
    kept.write_text("".join(json.dumps(pair) + "\n" for pair in done.items()))
    warnings.simplefilter("ignore")
    cells = {}
    for seed, mechanism, name in itertools.product(seeds, options.mechanisms, tables):
        key = f"{name}|{mechanism}|{seed}|{n}"
        if key not in done:
            whole = population(options.data, name)
            seconds, done[key] = timed(lambda w=whole, k=mechanism, s=seed: one_cell(w, k, n, s))
            with kept.open("a") as file:
                file.write(json.dumps((key, done[key])) + "\n")
            progress(f"{key}: {seconds:.0f} s")
        cells[key] = done[key]
    settings = {
        "rows": n,
        "rate": RATE,
        "m": M,
        "miceforest": PINS,
        "seeds": seeds,
        "tables": tables,
        "learners": "HiddenTreeForest(n_states=16, start='local', max_leaf_nodes=1, smoothing=30), "
        "AdversarialForest(10)",
    }
    finish("impute", over_seeds([{k: summary(cells, k, seed) for k in options.mechanisms} for seed in seeds]),
           settings, options.quick)  # fmt: skip


if __name__ == "__main__":
    main()
