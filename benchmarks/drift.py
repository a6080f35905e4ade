"""Measures how well changes between two tables are found, beside tests of each column and a classifier.

Changes of one marginal, of one pair only and of one subgroup only are planted in halves of real tables, smaller where
there are more rows. ``--repeats`` sets the comparisons of each kind, ``--null`` those without a change. ``--only``
runs one part; ``--tables`` takes some tables.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read
from scipy.stats import chi2_contingency, ks_2samp, mannwhitneyu
from sklearn.ensemble import HistGradientBoostingClassifier

import jointforest as jf

KINDS = ("marginal", "pair", "subgroup", "missing", "level")
PLACES = {  # a column of levels, a level of it, and two columns of numbers that depend on each other
    "hflights": ("UniqueCarrier", "WN", "DepDelay", "TaxiOut"),
    "adult": ("workclass", "Self-emp-not-inc", "hours_per_week", "age"),
}
FLIGHTS = ["Month", "DayOfWeek", "DepTime", "UniqueCarrier", "FlightNum", "AirTime", "ArrDelay", "DepDelay", "Origin",
           "Dest", "Distance", "TaxiIn", "TaxiOut", "Cancelled", "Diverted"]  # fmt: skip


def halves(frame: pd.DataFrame, rows: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two tables of as many rows, drawn from one."""
    order = rng.permutation(len(frame))[: 2 * rows]
    old, new = (frame.iloc[part].reset_index(drop=True) for part in (order[:rows], order[rows:]))
    return old, new


def shifted(cells: pd.Series, by: float, rng: np.random.Generator) -> pd.Series:
    """Whole numbers that grow by so much on average."""
    return np.floor(cells + by + rng.random(len(cells)))


def plant(frame: pd.DataFrame, name: str, kind: str, rng: np.random.Generator) -> pd.DataFrame:
    """The frame with one change, whose size falls with the root of the number of rows."""
    levels, level, number, other = PLACES[name]
    out, size = frame.copy(), 4.0 / np.sqrt(len(frame))
    spread = np.subtract(*np.nanpercentile(frame[number], [84, 16])) / 2
    if kind == "marginal":
        out[number] = shifted(out[number], size * spread, rng)
    elif kind == "subgroup":
        inside = out[levels] == level
        out.loc[inside, number] = shifted(out.loc[inside, number], size * spread / np.sqrt(inside.mean()), rng)
    elif kind == "pair":  # exchange cells, so that rows which are high in one column are high in the other one
        rows = np.flatnonzero(rng.random(len(out)) < min(1.5 * size, 1.0))
        cells = out[number].to_numpy(copy=True)
        cells[rows[np.argsort(out[other].to_numpy()[rows], kind="stable")]] = np.sort(cells[rows])
        out[number] = cells
    elif kind == "missing":
        out.loc[rng.random(len(out)) < 0.5 * size**1.5, number] = np.nan
    elif kind == "level":
        out[levels] = out[levels].astype(object).where(rng.random(len(out)) > 0.5 * size**1.5, "new")
    return out


def by_columns(old: pd.DataFrame, new: pd.DataFrame) -> tuple[float, str]:
    """Kolmogorov-Smirnov and chi-squared tests of each column, with Bonferroni's correction."""
    p = {}
    for name in old:
        if pd.api.types.is_numeric_dtype(old[name]):
            p[name] = ks_2samp(old[name].dropna(), new[name].dropna()).pvalue
        else:
            both = pd.concat([old[name], new[name]]).astype(object).fillna("missing")
            table = pd.crosstab(both.to_numpy(), np.repeat([0, 1], [len(old), len(new)]))
            p[name] = chi2_contingency(table).pvalue if len(table) > 1 else 1.0
    best = min(p, key=p.__getitem__)
    return min(1.0, p[best] * len(p)), best


def by_classifier(old: pd.DataFrame, new: pd.DataFrame, seed: int) -> float:
    """A classifier learned on half of the rows; a rank test of its scores on the other half."""
    both = pd.concat([old, new], ignore_index=True)
    X = np.column_stack(
        [both[name] if pd.api.types.is_numeric_dtype(both[name]) else pd.factorize(both[name])[0] for name in both]
    ).astype(float)
    is_levels = np.array([not pd.api.types.is_numeric_dtype(both[name]) for name in both])
    X[:, is_levels] = np.minimum(X[:, is_levels], 254)
    X[:, is_levels] = np.where(X[:, is_levels] < 0, np.nan, X[:, is_levels])
    y, learn = np.repeat([0, 1], [len(old), len(new)]), np.random.default_rng(seed).random(len(both)) < 0.5
    model = HistGradientBoostingClassifier(
        max_iter=50, categorical_features=is_levels, early_stopping=False, random_state=seed
    )
    score = model.fit(X[learn], y[learn]).predict_proba(X[~learn])[:, 1]
    return float(mannwhitneyu(score[y[~learn] == 1], score[y[~learn] == 0], alternative="greater").pvalue)


def power(name: str, frame: pd.DataFrame, kind: str, rows: int, repeats: int, seed: int) -> dict:
    """Share of comparisons in which each method finds a change, and this the right one."""
    levels, _, number, other = PLACES[name]
    places = {"subgroup": {levels, number}, "pair": {number, other}, "level": {levels}}.get(kind, {number})
    hits = dict.fromkeys(("compare_tables", "first change right", "columns", "classifier"), 0.0)
    seconds = 0.0
    for k in range(repeats):
        rng = np.random.default_rng([seed, rows, k])
        old, new = halves(frame, rows, rng)
        new = plant(new, name, kind, rng)
        start = time.process_time()
        found = jf.compare_tables(old, new, random_state=k, n_jobs=1)
        seconds += time.process_time() - start
        hits["compare_tables"] += found.p_value <= 0.05
        hits["first change right"] += bool(found.changes) and places <= set(found.changes[0].columns)
        hits["columns"] += by_columns(old, new)[0] <= 0.05
        hits["classifier"] += by_classifier(old, new, k) <= 0.05
    about = {"table": name, "change": kind, "rows": rows, "comparisons": repeats}
    return about | {what: n / repeats for what, n in hits.items()} | {"CPU s each": seconds / repeats}


def null(name: str, frame: pd.DataFrame, rows: int, repeats: int, seed: int) -> dict:
    """False alarms of comparisons without a change."""
    alarms, findings = 0, 0
    for k in range(repeats):
        found = jf.compare_tables(*halves(frame, rows, np.random.default_rng([seed, rows, k, 1])), random_state=k)
        alarms += found.p_value <= 0.05
        findings += bool(found.changes)
    about = {"table": name, "rows": rows, "comparisons": repeats}
    return about | {"p <= 0.05": alarms / repeats, "any change": findings / repeats}


def false_changes(name: str, frame: pd.DataFrame, rows: int, repeats: int, seed: int) -> dict:
    """False changes among those that are listed, where some changes are real.

    Two columns change: one in its marginal, one in a subgroup. All other columns keep their cells. Columns drawn at
    random from the whole table are independent of all others, so that pairs with them do not change either.
    """
    levels, _, number, other = PLACES[name]
    false, listed, shares = 0, 0, []
    for k in range(repeats):
        rng = np.random.default_rng([seed, rows, k, 3])
        old, new = halves(frame, rows, rng)
        for part in (old, new):
            for j in range(3):
                part[f"drawn {j}"] = frame[[number, other, levels][j]].sample(rows, random_state=rng).to_numpy()
        new = plant(plant(new, name, "marginal", rng), name, "subgroup", rng)
        new[other] = shifted(new[other], 0.5 * frame[other].std(), rng)
        changes = jf.compare_tables(old, new, random_state=k, n_jobs=1).changes
        wrong = [c for c in changes if not {number, other} & set(c.columns) or "drawn" in " ".join(c.columns)]
        false, listed = false + bool(wrong), listed + len(changes)
        shares.append(len(wrong) / max(len(changes), 1))
    about = {"table": name, "rows": rows, "comparisons": repeats, "changes listed": listed / repeats}
    return about | {"false share": float(np.mean(shares)), "any false change": false / repeats}


def stream(name: str, frame: pd.DataFrame, kind: str, streams: int, batches: int, size: int, seed: int) -> dict:
    """Batches until an alarm of a stream that changes after 20 batches, or the false alarms of one that does not."""
    alarms, delays, false, e_values, right = 0, [], 0, [], 0
    levels, _, number, other = PLACES[name]
    places = {"subgroup": {levels, number}, "pair": {number, other}, "level": {levels}}.get(kind, {number})
    for k in range(streams):
        rng = np.random.default_rng([seed, k, 2])
        old = frame.iloc[rng.integers(len(frame), size=2_000)].reset_index(drop=True)
        monitor = jf.Monitor(old, random_state=k)
        for b in range(batches):
            batch = frame.iloc[rng.integers(len(frame), size=size)].reset_index(drop=True)
            monitor.update(plant(batch, name, kind, rng) if kind and b >= 20 else batch)
            if monitor.alarm and kind:
                break
        e_values.append(monitor.e_value)
        if monitor.alarm is not None:
            alarms += 1
            false += bool(kind) and monitor.alarm <= 20
            delays.append(monitor.alarm - 20)
            right += places <= set(next(iter(monitor.evidence)))
    line = {"table": name, "change": kind or "none", "streams": streams, "batches": batches, "rows of a batch": size}
    line |= {"alarms": alarms / streams, "false alarms": (false if kind else alarms) / streams}
    if kind:
        line |= {"batches until the alarm, median": float(np.median(delays)) if delays else None}
        return line | {"right columns": right / max(alarms, 1)}
    return line | {"mean e-value": float(np.mean(e_values))}


def main() -> None:
    options = arguments(
        __doc__, repeats={"type": int, "default": 8}, null={"type": int, "default": 100}, tables={"nargs": "*"},
        only={"choices": ("power", "null", "false", "stream")}, streams={"type": int, "default": 10},
        looks={"type": int, "default": 300},
    )  # fmt: skip
    warnings.simplefilter("ignore")
    flights = read(options.data, "flights/hflights")[FLIGHTS]
    tables = {"hflights": flights, "adult": read(options.data, "adult_train")}
    tables = {name: frame for name, frame in tables.items() if name in (options.tables or tables)}
    repeats = 2 if options.quick else options.repeats
    found: dict[str, list[dict]] = {}
    if options.only in (None, "power"):
        lines = found["Power at a level of 5 %"] = []
        for name, frame in tables.items():
            for rows in (200,) if options.quick else (200, 2_000, 20_000):
                if 2 * rows > len(frame):
                    continue
                for kind in KINDS:
                    progress(f"{name}, {rows} rows, {kind}")
                    lines.append(
                        power(name, frame, kind, rows, max(repeats // (3 if rows > 5_000 else 1), 2), options.seed)
                    )
    if options.only in (None, "null"):
        lines = found["Comparisons without a change"] = []
        for name, frame in tables.items():
            progress(f"{name}, no change")
            lines.append(null(name, frame[frame.columns[:8]], 300, 5 if options.quick else options.null, options.seed))
    if options.only in (None, "false"):
        lines = found["False changes beside real ones"] = []
        for name, frame in tables.items():
            some = frame[list(dict.fromkeys([PLACES[name][0], *PLACES[name][2:], *frame.columns[:8]]))]
            for rows in (300,) if options.quick else (300, 3_000):
                progress(f"{name}, {rows} rows, false changes")
                lines.append(false_changes(name, some, rows, 3 if options.quick else options.null // 2, options.seed))
    if options.only in (None, "stream"):
        lines = found["Streams"] = []
        for name, frame in tables.items():
            some = frame[list(dict.fromkeys([*PLACES[name][:1], *PLACES[name][2:], *frame.columns[:4]]))]
            for kind in ("", *KINDS):
                progress(f"{name}, stream, {kind or 'no change'}")
                n, looks = (2, 30) if options.quick else (options.streams, options.looks if not kind else 120)
                lines.append(stream(name, some, kind, n, looks, 50 if kind else 10, options.seed))
    finish("drift", found, {"seed": options.seed}, options.quick, options.only or "")


if __name__ == "__main__":
    main()
